"""Words as numbers, and where patterns occur in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.learning.feature_induction.patterns import Alphabet, Atom, Pattern

__all__ = ["Corpus"]

IntArray = npt.NDArray[np.int64]


class Corpus:
    """Words, one after the other, each between the symbols for its beginning and its end.

    Attributes
    ----------
    codes, word
        The symbol at each position, and which word it is of.
    lengths
        Characters of each word.
    weights
        Of words; they sum to one.
    """

    def __init__(self, alphabet: Alphabet, codes: IntArray, lengths: IntArray, weights: FloatArray) -> None:
        self.alphabet, self.lengths, self.weights = alphabet, lengths, weights / weights.sum()
        places = np.cumsum(lengths + 2)
        self.codes = np.empty(int(places[-1]), np.int64)
        self.word = np.repeat(np.arange(len(lengths)), lengths + 2)
        inside = np.ones(len(self.codes), np.bool_)
        first, last = places - lengths - 2, places - 1
        self.codes[first], self.codes[last] = alphabet.begin, alphabet.end
        inside[first] = inside[last] = False
        self.codes[inside] = codes
        self._members: dict[Atom, npt.NDArray[np.bool_]] = {}
        self._places: dict[Atom, IntArray] = {}

    @classmethod
    def of(cls, alphabet: Alphabet, words: Sequence[str], weights: FloatArray | None = None) -> Corpus:
        """Words as a user has them."""
        if not len(words):
            raise ModelError("there must be at least one word")
        lengths = np.array([len(word) for word in words], np.int64)
        try:
            codes = np.array([alphabet.code[c] for word in words for c in word], np.int64)
        except KeyError as error:
            word = next(word for word in words if error.args[0] in word)
            raise ModelError(f"word {word!r} has {error.args[0]!r}, which is not in the alphabet") from None
        return cls(alphabet, codes, lengths, np.ones(len(words)) if weights is None else weights)

    @property
    def length_probabilities(self) -> FloatArray:
        """Entry l is the share of words of length l."""
        return np.bincount(self.lengths, self.weights).astype(np.float64)

    def matches(self, pattern: Pattern) -> IntArray:
        """Where a pattern begins; it never reaches over the end of a word, whose symbol only > takes."""
        for atom in pattern.atoms:
            if atom not in self._members:
                self._members[atom] = self.alphabet.member(atom)
        first = pattern.atoms[0]
        if first not in self._places:
            self._places[first] = np.flatnonzero(self._members[first][self.codes])
        # A place at a time, and only where all places before it fit: what is not the end of a word has a next symbol.
        found = self._places[first]
        for k, atom in enumerate(pattern.atoms[1:], 1):
            found = found[self._members[atom][self.codes[found + k]]]
        return found

    def counts(self, pattern: Pattern) -> FloatArray:
        """How often it occurs in each word."""
        return np.bincount(self.word[self.matches(pattern)], minlength=len(self.lengths)).astype(np.float64)

    def mean(self, pattern: Pattern) -> float:
        """How often it occurs in a word, in expectation."""
        return float(self.weights[self.word[self.matches(pattern)]].sum())
