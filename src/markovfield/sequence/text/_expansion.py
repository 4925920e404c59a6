"""Attributes of whole corpora by columns: each is worked out once for every distinct text, not for every token.

A `Column` gives every token one of a list of texts, or none. Looking at a neighbour, rewriting, and joining columns
all work on numbers; texts are put together only for the combinations that occur.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray
from markovfield.sequence.text.sequences import ColumnCorpus, SequenceData, split_sequences

if TYPE_CHECKING:
    from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["Column", "Corpus", "TokenAttributes", "join", "to_data"]

# Up to so many cells for each token, combinations are found by a table over all of them instead of by sorting.
_CELLS_PER_TOKEN = 8
_SEQUENCES_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class Column:
    """``texts[codes[t]]`` is the text of token t; it has none where ``codes[t]`` is -1."""

    codes: npt.NDArray[np.int32]
    texts: list[str]

    def mapped(self, rewrite: Callable[[str], str | None]) -> Column:
        """The column with every distinct text rewritten; None takes it away."""
        table: dict[str, int] = {}
        numbers = np.full(len(self.texts) + 1, -1, np.int32)  # the last one is for tokens without a text
        for i, text in enumerate(map(rewrite, self.texts)):
            if text is not None:
                numbers[i] = table.setdefault(text, len(table))
        return Column(numbers[self.codes], list(table))


class Corpus:
    """The columns of a corpus, and what stands at a distance from each token."""

    def __init__(self, corpus: ColumnCorpus) -> None:
        self.offsets = corpus.sequence_offsets
        self.columns = [Column(codes, texts) for codes, texts in zip(corpus.codes, corpus.texts, strict=True)]
        lengths = corpus.lengths
        self.lengths = np.repeat(lengths, lengths)
        self.starts = np.repeat(corpus.sequence_offsets[:-1], lengths)
        self.positions = np.arange(corpus.n_tokens) - self.starts

    def at(
        self, column: Column, position: int, outside: Callable[[int], str | None], *, absolute: bool = False
    ) -> Column:
        """What a column has at another token: so many tokens on, or, if absolute, at the first (1), the last (-1), ...

        Beyond the sequence, it is what ``outside`` says of -1, -2, ... before its start and 1, 2, ... after its end.
        """
        if not absolute and position == 0:
            return column
        if not absolute:
            place = self.positions + position
        elif position < 0:
            place = self.lengths + position
        else:
            place = np.full(len(self.positions), position - 1)
        texts = list(column.texts)
        missing = (place < 0) | (place >= self.lengths)
        codes = np.full(len(place), -1, np.int32)
        inside = ~missing
        codes[inside] = column.codes[(self.starts + place)[inside]]
        distance = np.where(place < 0, place, place - self.lengths + 1)
        beyond: dict[str, int] = {}
        for steps in np.unique(distance[missing]).tolist():
            text = outside(steps)
            if text is not None:
                codes[missing & (distance == steps)] = beyond.setdefault(text, len(texts) + len(beyond))
        texts.extend(beyond)
        return Column(codes, texts)


def join(parts: Sequence[str | Column], n_tokens: int) -> Column:
    """Texts and columns put together, for the combinations that occur; a token that lacks one of them has none."""
    columns = [part for part in parts if isinstance(part, Column)]
    if not columns:
        return Column(np.zeros(n_tokens, np.int32), ["".join(map(str, parts))])
    keys = columns[0].codes.astype(np.int64)
    lacking = keys < 0
    size = max(len(columns[0].texts), 1)
    prefixes: list[IntArray] = []  # what the keys so far stood for, where they had to be made dense on the way
    steps: list[tuple[int, int]] = []
    for column in columns[1:]:
        width = max(len(column.texts), 1)
        if size > (1 << 62) // width:
            found, keys = np.unique(keys, return_inverse=True)
            prefixes.append(found)
            steps.append((len(prefixes) - 1, -1))
            size = len(found)
        keys = keys * width + column.codes
        lacking |= column.codes < 0
        steps.append((-1, width))
        size *= width
    keys[lacking] = -1
    present, codes = _dense(keys, size)
    names = _decoded(present, columns, prefixes, steps)
    pieces: list[Iterable[str]] = []
    for part in parts:
        pieces.append(map(part.texts.__getitem__, names.pop(0)) if isinstance(part, Column) else repeat(part))
    return Column(codes, list(map("".join, zip(*pieces, strict=False))))


def _dense(keys: IntArray, size: int) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """The keys from zero on that occur, in order, and the number of each token's key among them (-1 stays)."""
    lacking = keys < 0
    if size <= _CELLS_PER_TOKEN * len(keys):
        seen = np.zeros(size + 1, np.bool_)
        seen[keys] = True  # -1 marks the last cell, which is no key's
        seen[-1] = False
        numbers = np.cumsum(seen, dtype=np.int32) - np.int32(1)
        codes = numbers[keys]
        present = np.flatnonzero(seen)
    else:
        present, inverse = np.unique(keys, return_inverse=True)
        codes = inverse.astype(np.int32)
        if len(present) and present[0] < 0:
            present, codes = present[1:], codes - np.int32(1)
    codes[lacking] = -1
    return present, codes


def _decoded(
    keys: IntArray, columns: Sequence[Column], prefixes: list[IntArray], steps: list[tuple[int, int]]
) -> list[list[int]]:
    """For each column, its text in every key: the steps that made the keys, undone."""
    found: list[list[int]] = []
    for prefix, width in reversed(steps):
        if width < 0:
            keys = prefixes[prefix][keys]
        else:
            keys, last = np.divmod(keys, width)
            found.append(last.tolist())
    found.append(keys.tolist())
    return found[::-1]


class TokenAttributes(Sequence[list[list[str]]]):
    """For each sequence and token the list of its attributes, one for each column that has one.

    It can be read like a list of lists of lists, which are made when looked at, and where equal texts are one object.
    A vectoriser takes it by columns, without any list.
    """

    def __init__(self, columns: Sequence[Column], offsets: IntArray) -> None:
        self.columns = list(columns)
        self.offsets = offsets

    @cached_property
    def _texts(self) -> list[npt.NDArray[Any]]:
        # The last one is for tokens without a text.
        return [np.array([*column.texts, None], object) for column in self.columns]

    def _lists(self, first: int, last: int) -> list[list[list[str]]]:
        borders = self.offsets[first : last + 1]
        a, b = int(borders[0]), int(borders[-1])
        table = np.empty((b - a, len(self.columns)), object)
        lacking = False
        for j, (column, texts) in enumerate(zip(self.columns, self._texts, strict=True)):
            codes = column.codes[a:b]
            table[:, j] = texts[codes]
            lacking |= bool((codes < 0).any())
        rows: list[Any] = table.tolist()
        if lacking:
            rows = [[text for text in row if text is not None] for row in rows]
        return split_sequences(rows, borders - a)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [self[s] for s in range(*key.indices(len(self)))]
        at = operator.index(key)
        if not -len(self) <= at < len(self):
            raise IndexError(f"there is no sequence {at}; there are {len(self)} of them")
        at %= len(self)
        return self._lists(at, at + 1)[0]

    def __iter__(self) -> Iterator[list[list[str]]]:
        for first in range(0, len(self), _SEQUENCES_AT_ONCE):
            yield from self._lists(first, min(first + _SEQUENCES_AT_ONCE, len(self)))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (list, TokenAttributes)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TokenAttributes(n_sequences={len(self)}, n_tokens={int(self.offsets[-1])})"

    def encoded(self, vectoriser: AttributeVectoriser, *, fit: bool) -> SequenceData:
        """The same as references to attributes, whose names the vectoriser knows or, to ``fit``, learns."""
        return to_data(self.columns, self.offsets, vectoriser, fit=fit)


def to_data(
    columns: Sequence[Column], offsets: IntArray, vectoriser: AttributeVectoriser, *, fit: bool
) -> SequenceData:
    """The same as references to attributes, whose names the vectoriser knows or, to ``fit``, learns."""
    names = list(chain.from_iterable(column.texts for column in columns))
    if fit:
        tallies = [np.bincount(c.codes[c.codes >= 0], minlength=len(c.texts)) for c in columns]
        numbers = vectoriser.learn(names, np.concatenate([np.zeros(0, np.int64), *tallies]))
    else:
        numbers = vectoriser.numbers(names)
    n_tokens, first = int(offsets[-1]), 0
    table = np.empty((n_tokens, len(columns)), np.int32)
    for j, column in enumerate(columns):
        own = numbers[first : first + len(column.texts)]
        table[:, j] = np.append(own, np.int32(-1))[column.codes]
        first += len(column.texts)
    known = table >= 0
    token_offsets = np.zeros(n_tokens + 1, np.int64)
    if known.all():
        np.cumsum(np.full(n_tokens, len(columns)), out=token_offsets[1:])
        attributes = table.reshape(-1)
    else:
        np.cumsum(known.sum(axis=1), out=token_offsets[1:])
        attributes = table[known]
    return SequenceData(np.asarray(offsets, np.int64), token_offsets, attributes, None, vectoriser.n_attributes_)
