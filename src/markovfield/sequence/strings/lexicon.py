"""Words, and which of them look like a string: candidates by the letters and pairs of letters that they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError

__all__ = ["Lexicon", "checked_strings"]

# Strings whose overlaps with all words are in memory at once.
TOGETHER = 64


def checked_strings(strings: Iterable[Any], what: str) -> list[str]:
    """Strings that are some, each of one character at least."""
    if isinstance(strings, str) or not isinstance(strings, Iterable):
        raise ModelError(
            f"{what}s must be a list of strings, got {'one string' if isinstance(strings, str) else repr(strings)}"
        )
    found = list(strings)
    for i, string in enumerate(found):
        if not isinstance(string, str) or not string:
            raise ModelError(f"{what} {i} must be a string of one character at least, got {string!r}")
    return found


class Lexicon:
    """Words with how often they come.

    Parameters
    ----------
    words
        Different words; or a dict from words to counts above 0.

    Examples
    --------
    >>> words = Lexicon({"their": 20, "there": 30, "three": 5})
    >>> [words.words[k] for k in words.candidates(["thier"], 2)[0]]
    ['their', 'there']
    """

    def __init__(self, words: Iterable[str] | Mapping[str, float]) -> None:
        self.words: tuple[str, ...] = tuple(checked_strings(words, "word"))
        if not self.words:
            raise ModelError("a lexicon needs a word at least")
        self.number = {word: k for k, word in enumerate(self.words)}
        if len(self.number) < len(self.words):
            twice = next(word for k, word in enumerate(self.words) if self.number[word] != k)
            raise ModelError(f"the word {twice!r} is twice in the lexicon")
        counts = np.ones(len(self.words))
        if isinstance(words, Mapping):
            try:
                counts = np.array([float(words[word]) for word in self.words])
            except (TypeError, ValueError):
                raise ModelError("counts of words must be numbers") from None
            if bad := [word for word, count in zip(self.words, counts, strict=True) if not 0 < count < np.inf]:
                raise ModelError(f"counts of words must be above 0 and finite, that of {bad[0]!r} is {words[bad[0]]}")
        # As shares of all, so that a weight means the same for counts and for frequencies.
        self.log_shares: FloatArray = np.log(counts) - np.log(counts.sum())

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def _grams(self) -> dict[str, int]:
        return {gram: k for k, gram in enumerate(sorted({gram for word in self.words for gram in _grams_of(word)}))}

    def _marks(self, strings: Sequence[str]) -> Any:
        """Which letters and pairs of letters each string has: sparse, 0 and 1."""
        from scipy.sparse import csr_array

        known = self._grams
        rows = [sorted({known[gram] for gram in _grams_of(string) if gram in known}) for string in strings]
        offsets = offsets_of([len(row) for row in rows])
        columns = np.array([k for row in rows for k in row], np.int64)
        return csr_array((np.ones(len(columns)), columns, offsets), shape=(len(strings), len(known)))

    @cached_property
    def _index(self) -> tuple[Any, IntArray, IntArray]:
        marks = self._marks(self.words)
        return marks.T.tocsr(), np.diff(marks.indptr), np.array([len(word) for word in self.words])

    def candidates(self, strings: Sequence[str], n: int) -> list[IntArray]:
        """For each string the ``n`` words that share the most with it (fewer where there are fewer), best first."""
        index, sizes, lengths = self._index
        found: list[IntArray] = []
        many = min(n, len(self))
        for at in range(0, len(strings), TOGETHER):
            some = strings[at : at + TOGETHER]
            shared = (self._marks(some) @ index).toarray()
            own = np.array([len(set(_grams_of(string))) for string in some])
            likeness = 2.0 * shared / (own[:, None] + sizes[None, :])
            likeness -= 1e-3 * np.abs(np.array([len(string) for string in some])[:, None] - lengths[None, :])
            likeness += 1e-6 * self.log_shares
            best = np.argpartition(-likeness, many - 1, axis=1)[:, :many]
            order = np.argsort(-np.take_along_axis(likeness, best, axis=1), axis=1, kind="stable")
            found += list(np.take_along_axis(best, order, axis=1).astype(np.int64))
        return found


def _grams_of(string: str) -> list[str]:
    """Letters, and pairs of letters with marks at both ends."""
    padded = f"\0{string}\0"
    return [*string, *(padded[k : k + 2] for k in range(len(padded) - 1))]
