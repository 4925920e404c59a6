"""Sequences as flat arrays: references of tokens to attributes, and columns of text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray, offsets_of
from markovfield.exceptions import ModelError

__all__ = ["ColumnCorpus", "SequenceData", "gather_ranges", "split_sequences"]


def gather_ranges(starts: npt.NDArray[np.integer[Any]], lengths: npt.NDArray[np.integer[Any]]) -> IntArray:
    """The numbers ``start, ..., start + length - 1`` of every range, one range after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(np.asarray(starts, np.int64) - (ends - lengths), lengths)


def split_sequences(flat: list[Any], offsets: IntArray) -> list[list[Any]]:
    """A list for all tokens cut into a list for each sequence."""
    return [flat[a:b] for a, b in pairwise(offsets.tolist())]


@dataclass(frozen=True, eq=False)
class SequenceData:
    """What the tokens of many sequences refer to, as a compressed sparse matrix of tokens by attributes.

    Parameters
    ----------
    sequence_offsets : int64[n_sequences + 1]
        Sequence s has the tokens from entry s up to entry s + 1.
    token_offsets : int64[n_tokens + 1]
        Token t has the references from entry t up to entry t + 1.
    attributes : int32[n_references]
        The attribute of each reference; within a token in the order given, and twice where given twice (both count).
    values : float64[n_references] or None
        The value of each reference; None where all are one.
    n_attributes
        How many attributes there are.

    Examples
    --------
    >>> data = SequenceData(np.array([0, 2, 3]), np.array([0, 2, 3, 3]), np.array([0, 1, 1], np.int32), None, 2)
    >>> data.n_sequences, data.n_tokens, data.lengths
    (2, 3, array([2, 1]))
    >>> data.select([1, 0]).attributes
    array([0, 1, 1], dtype=int32)
    """

    sequence_offsets: IntArray
    token_offsets: IntArray
    attributes: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64] | None
    n_attributes: int

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return len(self.sequence_offsets) - 1

    @property
    def n_tokens(self) -> int:
        """How many tokens there are in all sequences."""
        return len(self.token_offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """Tokens of each sequence, ``int64[n_sequences]``."""
        return np.diff(self.sequence_offsets)

    def __len__(self) -> int:
        return self.n_sequences

    def __repr__(self) -> str:
        return (
            f"SequenceData(n_sequences={self.n_sequences}, n_tokens={self.n_tokens}, "
            f"n_references={len(self.attributes)}, n_attributes={self.n_attributes})"
        )

    def select(self, indices: Sequence[int] | npt.NDArray[Any]) -> SequenceData:
        """Some of the sequences, in the order asked; a sequence may be asked for twice.

        ``indices`` are numbers of sequences or a mask over them. Time and memory are linear in what is selected.
        """
        chosen = np.asarray(indices)
        if chosen.dtype == np.bool_:
            if chosen.shape != (self.n_sequences,):
                raise ModelError(f"select: a mask needs {self.n_sequences} entries, got shape {chosen.shape}")
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64, casting="same_kind") if chosen.size else np.zeros(0, np.int64)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= self.n_sequences):
            raise ModelError(
                f"select: indices must be from 0 to {self.n_sequences - 1}, got {chosen.min()} to {chosen.max()}"
            )
        lengths = self.lengths[chosen]
        tokens = gather_ranges(self.sequence_offsets[chosen], lengths)
        counts = np.diff(self.token_offsets)[tokens]
        references = gather_ranges(self.token_offsets[tokens], counts)
        return SequenceData(
            offsets_of(lengths),
            offsets_of(counts),
            self.attributes[references],
            None if self.values is None else self.values[references],
            self.n_attributes,
        )

    def to_csr(self) -> Any:
        """The same as ``scipy.sparse.csr_matrix``, tokens by attributes; repeated references are added."""
        from scipy.sparse import csr_matrix

        values = np.ones(len(self.attributes)) if self.values is None else self.values
        matrix = csr_matrix(
            (values.copy(), self.attributes.copy(), self.token_offsets), shape=(self.n_tokens, self.n_attributes)
        )
        matrix.sum_duplicates()
        return matrix


@dataclass(frozen=True, eq=False)
class ColumnCorpus:
    """Sentences whose tokens have columns of text, such as word, part of speech and label.

    Each column is kept as numbers into its list of distinct texts, so that a corpus takes four bytes for a token and
    column, and a template is expanded once for each distinct text instead of once for each token.

    Parameters
    ----------
    names
        The name of each column.
    codes
        For each column ``int32[n_tokens]``, which of its texts each token has.
    texts
        For each column its distinct texts.
    sequence_offsets : int64[n_sequences + 1]
        Sequence s has the tokens from entry s up to entry s + 1.

    Examples
    --------
    >>> corpus = ColumnCorpus.from_rows([[("He", "PRP"), ("ran", "VBD")], [("He", "PRP")]], ["word", "tag"])
    >>> corpus["tag"]
    [['PRP', 'VBD'], ['PRP']]
    >>> corpus[1]
    [('He', 'PRP')]
    """

    names: tuple[str, ...]
    codes: tuple[npt.NDArray[np.int32], ...]
    texts: tuple[list[str], ...]
    sequence_offsets: IntArray

    @classmethod
    def from_rows(
        cls, sequences: Iterable[Sequence[Sequence[str]]], names: Sequence[str] | None = None
    ) -> ColumnCorpus:
        """A corpus from sequences of tokens, each a row of texts; every row has the same number of them.

        Without ``names``, columns are called ``"0"``, ``"1"`` and so on. A token given as one text is a row of one.
        """
        lengths: list[int] = []
        rows: list[Sequence[str]] = []
        for sequence in sequences:
            if isinstance(sequence, str):
                raise ModelError(f"a sequence must be a list of tokens, got the text {sequence[:40]!r}")
            lengths.append(len(sequence))
            rows.extend([(token,) if isinstance(token, str) else token for token in sequence])
        offsets = offsets_of(np.array(lengths, np.int64))
        width = len(names) if names is not None else len(rows[0]) if rows else 0
        if set(map(len, rows)) - {width}:
            token = next(i for i, row in enumerate(rows) if len(row) != width)
            sequence_at, token_at = _locate(offsets, token)
            raise ModelError(
                f"token {token_at} of sequence {sequence_at} has {len(rows[token])} columns where {width} are expected"
            )
        columns = list(zip(*rows, strict=True)) or [()] * width
        return cls.from_columns(columns, offsets, names)

    @classmethod
    def from_columns(
        cls, columns: Sequence[Sequence[str]], sequence_offsets: IntArray, names: Sequence[str] | None = None
    ) -> ColumnCorpus:
        """A corpus from a text for each token and column, all sequences one after the other."""
        names = tuple(str(i) for i in range(len(columns))) if names is None else tuple(names)
        if len(set(names)) < len(names) or len(names) != len(columns):
            raise ModelError(f"{len(columns)} columns need as many different names, got {names}")
        codes, texts = [], []
        for name, column in zip(names, columns, strict=True):
            table: defaultdict[str, int] = defaultdict(count().__next__)
            codes.append(np.fromiter(map(table.__getitem__, column), np.int32, len(column)))
            strange = next((text for text in table if not isinstance(text, str)), None)
            if strange is not None:
                raise ModelError(f"column {name!r} must hold texts, got {strange!r} of type {type(strange).__name__}")
            texts.append(list(table))
        return cls(names, tuple(codes), tuple(texts), sequence_offsets)

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return len(self.sequence_offsets) - 1

    @property
    def n_tokens(self) -> int:
        """How many tokens there are in all sequences."""
        return int(self.sequence_offsets[-1])

    @cached_property
    def lengths(self) -> IntArray:
        """Tokens of each sequence, ``int64[n_sequences]``."""
        return np.diff(self.sequence_offsets)

    def position(self, column: str | int) -> int:
        """Where a column stands, by its name or its number; a negative number counts from the last one."""
        if isinstance(column, str):
            if column not in self.names:
                raise ModelError(f"there is no column {column!r}; the columns are {', '.join(map(repr, self.names))}")
            return self.names.index(column)
        if not -len(self.names) <= column < len(self.names):
            raise ModelError(f"there is no column {column}; there are {len(self.names)} of them")
        return column % len(self.names)

    def column(self, column: str | int) -> list[list[str]]:
        """One column as a list of texts for each sequence; equal texts are one object."""
        at = self.position(column)
        flat = list(map(self.texts[at].__getitem__, self.codes[at].tolist()))
        return split_sequences(flat, self.sequence_offsets)

    def keep(self, *columns: str | int) -> ColumnCorpus:
        """The same sentences with only some of the columns, in the order asked; nothing is copied."""
        at = [self.position(column) for column in columns]
        return ColumnCorpus(
            tuple(self.names[i] for i in at),
            tuple(self.codes[i] for i in at),
            tuple(self.texts[i] for i in at),
            self.sequence_offsets,
        )

    def drop(self, *columns: str | int) -> ColumnCorpus:
        """The same sentences without some of the columns; nothing is copied."""
        gone = {self.position(column) for column in columns}
        return self.keep(*[i for i in range(len(self.names)) if i not in gone])

    def with_column(self, name: str, values: Iterable[Sequence[str]]) -> ColumnCorpus:
        """The same sentences with one more column, a list of texts for each sequence."""
        listed = [list(sequence) for sequence in values]
        if [len(sequence) for sequence in listed] != self.lengths.tolist():
            raise ModelError(f"column {name!r} must have a text for each token of each of {self.n_sequences} sequences")
        new = ColumnCorpus.from_columns([list(chain.from_iterable(listed))], self.sequence_offsets, [name])
        if name in self.names:
            raise ModelError(f"there is a column {name!r} already")
        return ColumnCorpus(
            (*self.names, name), (*self.codes, *new.codes), (*self.texts, *new.texts), self.sequence_offsets
        )

    def __len__(self) -> int:
        return self.n_sequences

    def __iter__(self) -> Iterator[list[tuple[str, ...]]]:
        return (self[s] for s in range(self.n_sequences))

    def __getitem__(self, key: int | str) -> Any:
        """A sequence by number, as a list of rows; or a column by name, as `column` gives it."""
        if isinstance(key, str):
            return self.column(key)
        if not -self.n_sequences <= key < self.n_sequences:
            raise IndexError(f"there is no sequence {key}; there are {self.n_sequences} of them")
        a, b = self.sequence_offsets[[key % self.n_sequences, key % self.n_sequences + 1]].tolist()
        parts = [
            map(texts.__getitem__, codes[a:b].tolist()) for codes, texts in zip(self.codes, self.texts, strict=True)
        ]
        return list(zip(*parts, strict=True))

    def __repr__(self) -> str:
        return f"ColumnCorpus(names={self.names}, n_sequences={self.n_sequences}, n_tokens={self.n_tokens})"


def _locate(offsets: IntArray, token: int) -> tuple[int, int]:
    """The sequence that a token belongs to, and its place there."""
    sequence = int(np.searchsorted(offsets, token, side="right")) - 1
    return sequence, token - int(offsets[sequence])
