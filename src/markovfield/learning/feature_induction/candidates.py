"""Which patterns a field could take up next, and which of them are worth a closer look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.learning.feature_induction.corpus import Corpus, IntArray
from markovfield.learning.feature_induction.gains import Candidate, sampled_gain
from markovfield.learning.feature_induction.patterns import Atom, Pattern

__all__ = ["Screen"]

Key = tuple[int, ...]
# Strings that are candidates: the most frequent.
MOST_STRINGS = 5000


class Screen:
    """Finds candidates: atoms, patterns of the model with an atom before or after them, and strings of the data.

    What the data say of them is remembered.

    Parameters
    ----------
    data
        The words.
    least
        How often in a word a candidate must occur.
    longest
        The longest pattern.
    strings
        The longest string that is a candidate by itself, ``<`` and ``>`` counted; none below 2.
    """

    def __init__(self, data: Corpus, least: float, longest: int, strings: int) -> None:
        self.data, self.least, self.longest = data, least, longest
        self.places = float(data.weights @ data.lengths) + 1.0
        self._neighbours: dict[Key, tuple[FloatArray, FloatArray]] = {}
        self._strings = [_Strings(data, least, k) for k in range(2, min(strings, longest) + 1)]

    def best(self, patterns: Sequence[Pattern], drawn: Corpus, refused: set[Key], n: int) -> list[Candidate]:
        """The candidates of the largest gain, best first, by words drawn from the model."""
        known = {p.key for p in patterns} | refused
        found: dict[Key, tuple[float, Pattern, float]] = {}

        def add(pattern: Pattern, observed: float, rough: float) -> None:
            if len(pattern) <= self.longest and pattern.key not in known:
                found.setdefault(pattern.key, (rough, pattern, observed))

        for atoms, observed, gain in self._grown(patterns, drawn):
            add(Pattern(atoms), observed, gain)
        for strings in self._strings:
            rough = self._rough(strings.observed, strings.shares(drawn), drawn)
            # Some of the best may be known already.
            for i in np.argsort(-rough, kind="stable")[: n + len(known)]:
                add(strings.patterns[i], float(strings.observed[i]), float(rough[i]))
        chosen = sorted(found.values(), key=lambda each: -each[0])[:n]
        return sorted(
            (sampled_gain(pattern, observed, drawn) for _, pattern, observed in chosen), key=lambda c: -c.gain
        )

    def _grown(self, patterns: Sequence[Pattern], drawn: Corpus) -> list[tuple[tuple[Atom, ...], float, float]]:
        """Atoms, and atoms beside patterns: how often they are in a word of the data, and their rough gains."""
        alphabet = self.data.alphabet
        # The beginning and the end are in every word.
        inside = np.where(np.arange(alphabet.n_symbols) < alphabet.begin, 1.0, 0.0)
        nothing: tuple[Atom, ...] = ()
        rows = [(nothing, nothing, _singles(self.data) * inside, _singles(drawn) * inside)]
        for pattern in patterns:
            if pattern.key not in self._neighbours:
                self._neighbours[pattern.key] = _beside(self.data, pattern)
            seen, model = self._neighbours[pattern.key], _beside(drawn, pattern)
            rows += [(nothing, pattern.atoms, seen[0], model[0]), (pattern.atoms, nothing, seen[1], model[1])]
        found = []
        for before, after, of_data, of_model in rows:
            observed, expected = alphabet.membership @ of_data, alphabet.membership @ of_model
            seen_enough = np.flatnonzero(observed > self.least)
            gains = self._rough(observed[seen_enough], expected[seen_enough], drawn)
            for a, gain in zip(seen_enough, gains, strict=True):
                found.append(((*before, alphabet.atoms[a], *after), float(observed[a]), float(gain)))
        return found

    def _rough(self, observed: FloatArray, expected: FloatArray, drawn: Corpus) -> FloatArray:
        """Gains as if places were independent: enough to say which candidates are worth a closer look."""
        expected = np.clip(expected, 0.5 / len(drawn.lengths), self.places - 1e-9)
        rest = np.maximum(self.places - observed, 1e-12)
        gains = observed * np.log(observed / expected) + rest * np.log(rest / (self.places - expected))
        return np.asarray(gains, np.float64)


def _singles(corpus: Corpus) -> FloatArray:
    """How often each symbol is in a word."""
    return np.bincount(corpus.codes, corpus.weights[corpus.word], corpus.alphabet.n_symbols).astype(np.float64)


def _beside(corpus: Corpus, pattern: Pattern) -> tuple[FloatArray, FloatArray]:
    """How often each symbol stands before and after a pattern."""
    alphabet, found = corpus.alphabet, corpus.matches(pattern)
    weights = corpus.weights[corpus.word[found]]
    nothing = np.zeros(alphabet.n_symbols)

    def share(at: IntArray) -> FloatArray:
        return np.bincount(corpus.codes[at], weights, alphabet.n_symbols).astype(np.float64)

    before = nothing if pattern.atoms[0] is alphabet.begin_atom else share(found - 1)
    after = nothing if pattern.atoms[-1] is alphabet.end_atom else share(found + len(pattern))
    return before, after


class _Strings:
    """The most frequent strings of so many symbols, and how often they are in a word."""

    def __init__(self, data: Corpus, least: float, length: int) -> None:
        self.length, self.n_symbols = length, data.alphabet.n_symbols
        numbers, weights = self._numbers(data)
        self.known, at = np.unique(numbers, return_inverse=True)
        observed = np.bincount(at, weights, len(self.known)).astype(np.float64)
        kept = np.flatnonzero(observed > least)
        kept = np.sort(kept[np.argsort(-observed[kept], kind="stable")[:MOST_STRINGS]])
        self.known, self.observed = self.known[kept], observed[kept]
        characters = [*data.alphabet.atoms[: len(data.alphabet.characters)], *data.alphabet.atoms[-2:]]
        digits = self.known[:, None] // self.n_symbols ** np.arange(length - 1, -1, -1) % self.n_symbols
        self.patterns = [Pattern(tuple(characters[s] for s in row)) for row in digits]

    def _numbers(self, corpus: Corpus) -> tuple[IntArray, FloatArray]:
        """Every string within a word as one number, and the weight of its word."""
        places = len(corpus.codes) - self.length + 1
        number = np.zeros(max(places, 0), np.int64)
        for k in range(self.length):
            number = number * self.n_symbols + corpus.codes[k : k + len(number)]
        within = corpus.word[: len(number)] == corpus.word[self.length - 1 : self.length - 1 + len(number)]
        return number[within], corpus.weights[corpus.word[: len(number)][within]]

    def shares(self, drawn: Corpus) -> FloatArray:
        """How often each is in a drawn word."""
        numbers, weights = self._numbers(drawn)
        at = np.minimum(np.searchsorted(self.known, numbers), max(len(self.known) - 1, 0))
        there = self.known[at] == numbers if len(self.known) else np.zeros(len(numbers), np.bool_)
        return np.bincount(at[there], weights[there], len(self.known)).astype(np.float64)
