"""Attributes of words for tagging and named entities: neighbours, affixes, shapes, lists of names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from markovfield.exceptions import FormatError, ModelError
from markovfield.sequence.text._expansion import Column, Corpus, TokenAttributes, join
from markovfield.sequence.text.sequences import ColumnCorpus, SequenceData
from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["TokenFeatures", "short_shape", "word_shape"]

Gazetteer = Iterable[str] | str | os.PathLike[str]


@dataclass(eq=False, repr=False)
class TokenFeatures(TransformerMixin, BaseEstimator):
    """Turns sentences of words into lists of attributes for each word; nothing is learned.

    A sentence is a list of words, or of rows whose first column is the word and whose others (part of speech, chunk)
    are taken as they are; or give a `ColumnCorpus`. Columns are named by their number, or as the corpus names them.

    ==========================  ===================================================================
    attribute                   what it says
    ==========================  ===================================================================
    ``w=Paris``                 the word itself
    ``l[-1]=in``                a neighbour in small letters, for distances up to ``window``
    ``l[-1..0]=in|paris``       this word and a neighbour together (``pairs``)
    ``p3=Par``, ``s3=ris``      first and last characters, up to ``affixes`` of them
    ``shape[0]=Xxxx``           capital X, small x, digit d, others as they are; next to it, too
    ``short[0]=Xx``             the same with repetitions squeezed
    ``is=title``                title, upper, lower, digit, number, hyphen, mixed, punctuation
    ``1[-1]=IN``                another column, for distances up to ``window``, and pairs of it
    ``in=cities:B``             first (B) or later (I) word of an entry of a gazetteer
    ``first``, ``last``         of the sentence
    ==========================  ===================================================================

    Parameters
    ----------
    window
        How far neighbours are looked at; beyond the sentence there is ``<s>`` or ``</s>``.
    affixes
        The longest prefix and suffix; 0 for none. A word must be longer than its affix.
    pairs
        Whether neighbouring words, and neighbouring entries of other columns, also count together.
    shape
        Whether to add shapes, of the word and its two neighbours.
    flags
        Whether to add what kind of word it is.
    boundaries
        Whether to mark first and last words.
    gazetteers
        Name to a list of entries, or to a file with one on each line. Entries of several words are found where these
        follow each other, the longest first; capitals do not matter.

    Notes
    -----
    The defaults suit named entities. Every attribute is made once for each distinct word, then copied: time is a few
    vectorised passes over the tokens for each attribute, and equal attributes are one object in memory.

    Examples
    --------
    >>> features = TokenFeatures(window=1, affixes=1, shape=False, pairs=False, gazetteers={"cities": ["new york"]})
    >>> [first, second] = features.transform([["New", "York"]])[0]
    >>> first
    ['w=New', 'l[0]=new', 'l[-1]=<s>', 'l[1]=york', 'p1=N', 's1=w', 'is=title', 'in=cities:B', 'first']
    """

    window: int = 2
    affixes: int = 3
    _: KW_ONLY
    pairs: bool = True
    shape: bool = True
    flags: bool = True
    boundaries: bool = True
    gazetteers: Mapping[str, Gazetteer] | None = None

    def fit(self, X: Any, y: Any = None) -> TokenFeatures:
        """Check the settings; there is nothing to learn."""
        self._check()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: ColumnCorpus | Iterable[Sequence[Any]]) -> TokenAttributes:
        """For each sentence and word the list of its attributes."""
        corpus = _corpus(X)
        return TokenAttributes(self._columns(corpus), corpus.sequence_offsets)

    def vectorise(
        self, X: ColumnCorpus | Iterable[Sequence[Any]], vectoriser: AttributeVectoriser, *, fit: bool = False
    ) -> SequenceData:
        """`transform` and the vectoriser's own ``transform`` in one; with ``fit``, it learns the attributes first."""
        return self.transform(X).encoded(vectoriser, fit=fit)

    def _check(self) -> None:
        for name in ("window", "affixes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
                raise ModelError(f"TokenFeatures: {name} must be an integer from 0 on, got {value!r}")
        if self.gazetteers is not None and not isinstance(self.gazetteers, Mapping):
            raise ModelError(
                "TokenFeatures: gazetteers must be a dict of names to lists of entries or to files, "
                f"got {type(self.gazetteers).__name__}"
            )

    def _columns(self, corpus: ColumnCorpus) -> list[Column]:
        self._check()
        if not corpus.names:
            return []
        view = Corpus(corpus)
        word = view.columns[0]
        lower = word.mapped(str.lower)
        parts: list[list[str | Column]] = [["w=", word]]
        parts += self._around("l", lower, view)
        for n in range(1, self.affixes + 1):
            parts.append([f"p{n}=", word.mapped(partial(_affix, part=slice(n)))])
            parts.append([f"s{n}=", word.mapped(partial(_affix, part=slice(-n, None)))])
        if self.shape:
            for name, column in (("shape", word.mapped(word_shape)), ("short", word.mapped(short_shape))):
                parts += [[f"{name}[{d}]=", view.at(column, d, _outside)] for d in (0, -1, 1)]
        if self.flags:
            parts += [["is=", word.mapped(test)] for test in _FLAGS]
        for name, column in zip(corpus.names[1:], view.columns[1:], strict=True):
            parts += self._around(name, column, view)
        for name, entries in (self.gazetteers or {}).items():
            parts.append([f"in={name}:", _matches(_entries(name, entries), lower, view)])
        if self.boundaries:
            parts.append(["first", _where(view.positions == 0)])
            parts.append(["last", _where(view.positions == view.lengths - 1)])
        return [join(part, corpus.n_tokens) for part in parts]

    def _around(self, name: str, column: Column, view: Corpus) -> list[list[str | Column]]:
        """A column at every distance, and pairs of it with what stands next to it."""
        near = {d: view.at(column, d, _outside) for d in range(-self.window, self.window + 1)}
        order = sorted(near, key=lambda d: (abs(d), d))
        parts: list[list[str | Column]] = [[f"{name}[{d}]=", near[d]] for d in order]
        if self.pairs and self.window:
            parts += [[f"{name}[{d}..{d + 1}]=", near[d], "|", near[d + 1]] for d in (-1, 0)]
        return parts


def word_shape(word: str) -> str:
    """A word with X for capitals, x for small letters, d for digits, and everything else as it is.

    Examples
    --------
    >>> word_shape("McCain-2008")
    'XxXxxx-dddd'
    """
    return "".join(["X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word])


def short_shape(word: str) -> str:
    """The shape of a word with repetitions squeezed.

    Examples
    --------
    >>> short_shape("McCain-2008")
    'XxXx-d'
    """
    shape = word_shape(word)
    return "".join([c for c, before in zip(shape, "\0" + shape, strict=False) if c != before])


def _affix(word: str, part: slice) -> str | None:
    found = word[part]
    return found if len(found) < len(word) else None


_FLAGS: tuple[Callable[[str], str | None], ...] = (
    lambda word: "title" if word[:1].isupper() and word[1:].islower() else None,
    lambda word: "upper" if word.isupper() else None,
    lambda word: "lower" if word.islower() else None,
    lambda word: "digit" if any(map(str.isdigit, word)) else None,
    lambda word: "number" if word.replace(".", "").replace(",", "").isdigit() else None,
    lambda word: "hyphen" if "-" in word else None,
    lambda word: "mixed" if any(map(str.isupper, word[1:])) and any(map(str.islower, word)) else None,
    lambda word: "punctuation" if not any(map(str.isalnum, word)) else None,
)


def _outside(steps: int) -> str:
    return "<s>" if steps < 0 else "</s>"


def _where(mask: Any) -> Column:
    return Column(np.where(mask, 0, -1).astype(np.int32), [""])


def _corpus(given: ColumnCorpus | Iterable[Sequence[Any]]) -> ColumnCorpus:
    return given if isinstance(given, ColumnCorpus) else ColumnCorpus.from_rows(given)


def _entries(name: str, given: Gazetteer) -> list[tuple[str, ...]]:
    """The entries of a gazetteer, each as its words in small letters."""
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        with open(path, "rb") as stream:
            raw = stream.read()
        try:
            given = raw.decode().removeprefix("\ufeff").split("\n")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise FormatError(f"{path}:{line}:1: this line of gazetteer {name!r} is not UTF-8 text") from None
    listed = list(given)
    strange = next((entry for entry in listed if not isinstance(entry, str)), None)
    if strange is not None:
        raise ModelError(f"TokenFeatures: the entries of gazetteer {name!r} must be texts, got {strange!r}")
    return [words for entry in listed if (words := tuple(entry.lower().split()))]


def _matches(entries: list[tuple[str, ...]], lower: Column, view: Corpus) -> Column:
    """B at the first and I at every other word of an entry; of entries that overlap, the first and longest counts."""
    number = {text: i for i, text in enumerate(lower.texts)}
    longest: dict[int, set[tuple[int, ...]]] = {}
    for words in entries:
        if all(word in number for word in words):
            codes = tuple(number[word] for word in words)
            longest.setdefault(codes[0], set()).add(codes)
    starts = np.zeros(len(lower.texts), np.bool_)
    starts[list(longest)] = True
    result = np.full(len(lower.codes), -1, np.int32)
    sizes = {code: sorted({len(entry) for entry in found}, reverse=True) for code, found in longest.items()}
    free = 0
    for t in np.flatnonzero(starts[lower.codes]).tolist():
        if t < free:
            continue
        code = int(lower.codes[t])
        left = int(view.lengths[t] - view.positions[t])
        for size in sizes[code]:
            if size <= left and tuple(lower.codes[t : t + size].tolist()) in longest[code]:
                result[t : t + size] = 1
                result[t] = 0
                free = t + size
                break
    return Column(result, ["B", "I"])
