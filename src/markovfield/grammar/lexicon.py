"""Which tags a word can have: words by number, and classes for words that were never seen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import FormatError

__all__ = ["UNKNOWN", "Lexicon", "lexicon_counts", "word_class"]

# The class of every word that no other class holds; names of classes begin like it.
UNKNOWN = "<unknown>"
_CLASS = re.compile(r"<unknown[^<>\s]*>").fullmatch
_SUFFIXES = ("ing", "ion", "ity", "est", "ed", "er", "ly", "al", "y", "s")
SHORTEST_WITH_SUFFIX = 4


@lru_cache(maxsize=65536)
def word_class(word: str) -> str:
    """The class of a word by how it is written: capitals, digits, hyphens and its ending.

    Examples
    --------
    >>> word_class("Smithers"), word_class("1,250"), word_class("well-known"), word_class("blorfing")
    ('<unknown-capital-s>', '<unknown-number>', '<unknown-hyphen>', '<unknown-ing>')
    """
    letters = [c for c in word if c.isalpha()]
    marks = []
    if any(c.isdigit() for c in word):
        if not letters:
            return "<unknown-number>"
        marks.append("digit")
    elif not letters:
        return "<unknown-sign>"
    if all(c.isupper() for c in letters):
        marks.append("capitals" if len(letters) > 1 else "capital")
    elif word[0].isupper():
        marks.append("capital")
    if "-" in word[1:]:
        marks.append("hyphen")
    elif len(word) >= SHORTEST_WITH_SUFFIX and "digit" not in marks:
        lowered = word.lower()
        ending = next((s for s in _SUFFIXES if lowered.endswith(s) and not (s == "s" and lowered[-2] in "su")), "")
        marks.extend([ending] if ending else [])
    return f"<unknown-{'-'.join(marks)}>" if marks else "<unknown-plain>"


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Words and the symbols (columns of token scores) that each can be, in rows of entries.

    Attributes
    ----------
    words
        Names of rows: words, and classes of unknown words as `word_class` names them, or ``<unknown>``.
    offsets
        ``int64[rows + 1]``: where the entries of each row begin.
    columns
        ``int64[entries]``: the column of each, all different within a row.

    Examples
    --------
    >>> lexicon = Lexicon.of([("dog", 0), ("barked", 1), ("<unknown>", 0)])
    >>> lexicon.rows(["dog", "wombat"]).tolist()
    [0, 2]
    >>> lexicon.spread(lexicon.rows(["barked"]), np.array([-1.0, -2.0, -3.0]), 2).tolist()
    [[-inf, -2.0]]
    """

    words: tuple[str, ...]
    offsets: IntArray
    columns: IntArray

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, int]]) -> Lexicon:
        """The lexicon of words with columns, all different. Entries are in the order of words, then as given."""
        rows: dict[str, list[int]] = {}
        for word, column in pairs:
            rows.setdefault(word, []).append(column)
        sizes = np.array([len(own) for own in rows.values()], np.int64)
        flat = np.array([column for own in rows.values() for column in own], np.int64)
        return cls(tuple(rows), offsets_of(sizes), flat)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def n_entries(self) -> int:
        """How many pairs of a word and a column there are."""
        return len(self.columns)

    @property
    def entry_rows(self) -> IntArray:
        """``int64[entries]``: the row of each entry."""
        return np.repeat(np.arange(len(self.words)), np.diff(self.offsets))

    def pairs(self) -> list[tuple[str, int]]:
        """All entries as words with columns."""
        return [(self.words[row], t) for row, t in zip(self.entry_rows.tolist(), self.columns.tolist(), strict=True)]

    def rows(self, words: Iterable[str]) -> IntArray:
        """The row of each word: its own, that of its class, or that of all unknown words; -1 where there is none."""
        known = self.row_of
        rest = known.get(UNKNOWN, -1)
        # A word that is written like the name of a class is not one.
        found = [
            row if (row := known.get(word, -1)) >= 0 and not is_class(word) else known.get(word_class(word), rest)
            for word in words
        ]
        return np.array(found, np.int64)

    def entries_of(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """For words given by rows: the entries of each, one after the other, and which word each is of."""
        kept = np.flatnonzero(rows >= 0)
        begin, sizes = self.offsets[rows[kept]], np.diff(self.offsets)[rows[kept]]
        which = np.repeat(kept, sizes)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(begin, sizes) + np.arange(len(which)) - first, which

    def spread(self, rows: IntArray, values: FloatArray, n_columns: int) -> FloatArray:
        """Values of entries as ``float64[words, columns]``, -inf where a word has no entry."""
        found = np.full((len(rows), n_columns), -np.inf)
        entries, which = self.entries_of(rows)
        found[which, self.columns[entries]] = values[entries]
        return found

    def gathered(self, rows: IntArray, counts: FloatArray) -> FloatArray:
        """Counts ``[words, columns]`` added up by entry: the transpose of `spread`."""
        entries, which = self.entries_of(rows)
        return np.bincount(entries, counts[which, self.columns[entries]], self.n_entries).astype(np.float64)

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What an archive keeps: JSON and vectors."""
        return {"words": list(self.words)}, {"word_offsets": self.offsets, "word_columns": self.columns}

    @classmethod
    def restored(cls, about: Any, arrays: Any, n_columns: int) -> Lexicon:
        """The lexicon that an archive describes; a `FormatError` where it describes none."""
        words, offsets, columns = about.get("words"), arrays.get("word_offsets"), arrays.get("word_columns")
        if not isinstance(words, list) or not all(type(w) is str and w for w in words) or len(set(words)) < len(words):
            raise FormatError("its words are not there, or one is there twice")
        if offsets is None or columns is None or offsets.dtype != np.int64 or columns.dtype != np.int64:
            raise FormatError("it has no lexicon")
        fits = len(offsets) == len(words) + 1 and offsets[0] == 0 and offsets[-1] == len(columns)
        if not fits or (np.diff(offsets) < 0).any() or (len(columns) and columns.min() < 0):
            raise FormatError("its lexicon does not fit its words")
        lexicon = cls(tuple(words), offsets, columns)
        keys = lexicon.entry_rows * max(n_columns, 1) + columns
        if len(columns) and (columns.max() >= n_columns or len(np.unique(keys)) < len(keys)):
            raise FormatError("its lexicon has tags that are not there, or one twice")
        return lexicon


def is_class(word: str) -> bool:
    """Whether a row is that of a class of unknown words."""
    return _CLASS(word) is not None


def lexicon_counts(
    seen: Mapping[tuple[str, str], float], *, unknown: str = "classes", rare_count: int = 1, smoothing: float = 0.0
) -> dict[tuple[str, str], float]:
    """Counts of (word, tag), with those of unknown words.

    Words that were seen at most ``rare_count`` times stand for what was never seen: their counts are also counts of
    their classes (``unknown="classes"``) or of one class (``"one"``). A class that was never seen shares one further
    count by the tags of rare words. ``smoothing`` is added to the counts of each word, by the tags of its class.
    """
    totals: Counter[str] = Counter()
    for (word, _), count in seen.items():
        totals[word] += count  # type: ignore[assignment]
    found = dict(seen)
    if unknown == "none":
        return found
    rare = {pair: count for pair, count in seen.items() if totals[pair[0]] <= rare_count}
    classes: Counter[tuple[str, str]] = Counter()
    tags: Counter[str] = Counter()
    for (word, tag), count in rare.items():
        classes[word_class(word) if unknown == "classes" else UNKNOWN, tag] += count  # type: ignore[assignment]
        tags[tag] += count  # type: ignore[assignment]
    by_class: dict[str, list[tuple[str, float]]] = {}
    for (name, tag), count in classes.items():
        by_class.setdefault(name, []).append((tag, count))
    total = sum(tags.values())
    rest = [(tag, count / total) for tag, count in tags.items()]
    if smoothing:
        for word in totals:
            own = by_class.get(word_class(word) if unknown == "classes" else UNKNOWN, rest)
            whole = sum(count for _, count in own)
            for tag, count in own:
                found[word, tag] = found.get((word, tag), 0.0) + smoothing * count / whole
    found.update(classes)
    if unknown == "classes":
        found.update({(UNKNOWN, tag): share for tag, share in rest})
    return found
