"""Random fields over words: the probability of a word given its length, by patterns counted over its places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.learning.feature_induction.automaton import automaton_of
from markovfield.learning.feature_induction.corpus import Corpus
from markovfield.learning.feature_induction.patterns import Alphabet, Pattern

__all__ = ["MAX_STATES", "WordField"]

MAX_STATES = 50_000


class WordField:
    """``p(word) = p(length) exp(sum_i weight_i * count_i(word)) / Z_length`` (19.52 to 19.54).

    ``count_i`` is how often pattern i occurs in the word. Parameters are shared by words of all lengths, as in Della
    Pietra, Della Pietra and Lafferty (1997), and lengths have a distribution of their own. Everything is exact.

    Parameters
    ----------
    alphabet
        The characters of words.
    patterns, weights
        Of the features; none is the uniform distribution.
    length_probabilities
        Entry l is the probability of length l.
    max_states
        Patterns whose automaton has more states are refused before anything is allocated.

    Examples
    --------
    >>> alphabet = Alphabet("ab")
    >>> field = WordField(alphabet, [alphabet.pattern("ab")], [1.0], [0.0, 0.0, 1.0])
    >>> np.exp(field.log_likelihood(["aa", "ab"])).round(4).tolist()
    [0.1749, 0.4754]
    >>> field.expectations().round(4).tolist()
    [0.4754]
    """

    def __init__(
        self,
        alphabet: Alphabet,
        patterns: Sequence[Pattern] = (),
        weights: npt.ArrayLike = (),
        length_probabilities: npt.ArrayLike = (0.0, 1.0),
        *,
        max_states: int = MAX_STATES,
    ) -> None:
        self.alphabet, self.patterns = alphabet, tuple(patterns)
        self.weights = np.array(weights, np.float64)
        self.length_probabilities = np.array(length_probabilities, np.float64)
        if self.weights.shape != (len(self.patterns),) or not np.isfinite(self.weights).all():
            raise ModelError(
                f"weights of WordField must be {len(self.patterns)} finite numbers, one for each pattern, "
                f"got shape {self.weights.shape}"
            )
        p = self.length_probabilities
        if p.ndim != 1 or not len(p) or not (p >= 0).all() or not abs(p.sum() - 1) < 1e-8:
            raise ModelError("length_probabilities of WordField must be a vector of probabilities that sum to one")
        self.max_states = max_states
        self.automaton = automaton_of(alphabet, self.patterns, max_states)

    def with_weights(self, weights: npt.ArrayLike) -> WordField:
        """The same patterns with other weights; nothing is built anew."""
        other = object.__new__(WordField)
        other.__dict__.update(self.__dict__)
        for cached in ("_factors", "_transfer", "_ends", "_backward"):
            other.__dict__.pop(cached, None)
        other.weights = np.array(weights, np.float64)
        return other

    @cached_property
    def _incidence(self) -> csr_matrix:
        """Entry [set, pattern] is 1 where a pattern is in a set."""
        sets = self.automaton.sets
        rows = np.repeat(np.arange(len(sets)), [len(s) for s in sets])
        columns = np.array([i for s in sets for i in s], np.int64)
        return csr_matrix((np.ones(len(rows)), (rows, columns)), (len(sets), len(self.patterns)))

    @cached_property
    def _factors(self) -> tuple[FloatArray, FloatArray]:
        """Of each character's column in each state, and of the end of the word."""
        a = self.automaton
        factors = np.exp(self._incidence @ self.weights)
        sizes = np.array([len(members) for members in a.members], np.float64)
        return factors[a.seen] * sizes, factors[a.seen_at_end]

    @cached_property
    def _transfer(self) -> csr_matrix:
        n, width = self.automaton.following.shape
        steps = np.arange(0, n * width + 1, width)
        return csr_matrix((self._factors[0].ravel(), self.automaton.following.ravel(), steps), (n, n))

    @cached_property
    def _backward(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What words can become from each state with r characters left, up to a scale for each r; the scales' growth
        and the logs of Z for each length."""
        longest = len(self.length_probabilities) - 1
        ahead = np.empty((longest + 1, len(self.automaton.following)))
        growth, logs = np.ones(longest + 1), np.empty(longest + 1)
        ahead[0] = self._factors[1]
        scale = 0.0
        logs[0] = np.log(ahead[0, 0])
        for r in range(1, longest + 1):
            ahead[r] = self._transfer @ ahead[r - 1]
            growth[r] = ahead[r].max()
            ahead[r] /= growth[r]
            scale += np.log(growth[r])
            logs[r] = np.log(ahead[r, 0]) + scale
        return ahead, growth, logs

    @property
    def log_partitions(self) -> FloatArray:
        """The log of Z for each length."""
        return self._backward[2]

    @property
    def mean_log_partition(self) -> float:
        """Its mean over lengths, whose gradient are the expectations."""
        p = self.length_probabilities
        return float(p @ np.where(p > 0, self.log_partitions, 0.0))

    def expectations(self) -> FloatArray:
        """How often each pattern occurs in a word, in expectation."""
        a, p = self.automaton, self.length_probabilities
        ahead, growth, _ = self._backward
        by_set = np.zeros(len(a.sets))
        mass = np.zeros(len(ahead[0]))
        total = np.zeros(a.seen.shape)
        back = self._transfer.T
        for r in range(len(p) - 1, 0, -1):
            mass[0] += p[r] / ahead[r, 0]
            # How often a character of each column is read in each state, with r characters left.
            total += (mass / growth[r])[:, None] * ahead[r - 1][a.following]
            mass = back @ mass / growth[r]
        mass[0] += p[0] / ahead[0, 0]
        by_set += np.bincount(a.seen.ravel(), (total * self._factors[0]).ravel(), len(a.sets))
        by_set += np.bincount(a.seen_at_end, mass * ahead[0], len(a.sets))
        return np.asarray(self._incidence.T @ by_set)

    def log_likelihood(self, words: Sequence[str]) -> FloatArray:
        """The log-probability of each word, its length included; -inf for lengths that do not occur."""
        return self._log_likelihood(Corpus.of(self.alphabet, words))

    def _log_likelihood(self, corpus: Corpus) -> FloatArray:
        p, longest = self.length_probabilities, len(self.length_probabilities) - 1
        with np.errstate(divide="ignore"):
            known = np.where(corpus.lengths <= longest, np.log(p)[np.minimum(corpus.lengths, longest)], -np.inf)
        score = known - self.log_partitions[np.minimum(corpus.lengths, longest)]
        for pattern, weight in zip(self.patterns, self.weights, strict=True):
            score += weight * corpus.counts(pattern)
        return score

    def sample(self, n: int, rng: Any = None) -> list[str]:
        """Words drawn independently from the distribution."""
        n = whole_number(n, "n", 0)
        rng = generator_of(rng)
        lengths = rng.choice(len(self.length_probabilities), n, p=self.length_probabilities)
        codes = self.draw(lengths, rng)
        text = np.array(list(self.alphabet.characters))[codes]
        ends = np.cumsum(lengths)
        return ["".join(text[end - length : end]) for end, length in zip(ends, lengths, strict=True)]

    def draw(self, lengths: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Characters of words of given lengths, one word after the other."""
        a = self.automaton
        ahead = self._backward[0]
        firsts = np.cumsum(lengths) - lengths
        state = np.zeros(len(lengths), np.int64)
        out = np.empty(int(lengths.sum()), np.int64)
        sizes = np.array([len(members) for members in a.members])
        members = np.concatenate(a.members)
        offsets = np.cumsum(sizes) - sizes
        for r in range(int(lengths.max(initial=0)), 0, -1):
            now = np.flatnonzero(lengths >= r)
            present, where = np.unique(state[now], return_inverse=True)
            shares = np.cumsum(self._factors[0][present] * ahead[r - 1][a.following[present]], axis=1)
            level = rng.random(len(now)) * shares[where, -1]
            column = np.minimum((shares[where] <= level[:, None]).sum(axis=1), shares.shape[1] - 1)
            out[firsts[now] + lengths[now] - r] = members[offsets[column] + rng.integers(sizes[column])]
            state[now] = a.following[state[now], column]
        return out
