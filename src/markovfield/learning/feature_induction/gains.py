"""What a further pattern is worth: the most that the likelihood gains by its weight alone, all others held.

The gain of a pattern g with weight a is ``a * observed - sum_l p(l) log E_l[exp(a * count)]``, E_l the expectation over
words of length l under the model so far; its maximum over a is found by Newton's method. Candidates are many: they are
compared by words drawn from the model, with standard errors, and the best of them exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.learning.feature_induction.corpus import Corpus, IntArray
from markovfield.learning.feature_induction.patterns import Pattern
from markovfield.learning.feature_induction.word_field import WordField

__all__ = ["Candidate", "Screen", "draw_corpus", "exact_gain", "sampled_gain"]

# No weight is farther from zero.
FARTHEST = 20.0
MOST_NEWTON = 50
# Exact steps end when the slope is this share of what was observed: the gain is then right to its square.
ENOUGH, MOST_EXACT = 1e-3, 12


@dataclass(frozen=True)
class Candidate:
    """A pattern, how often it is in a word of the data, the best weight for it alone, its gain in log-likelihood per
    word, and the standard error of that (zero where it is exact)."""

    pattern: Pattern
    observed: float
    weight: float
    gain: float
    error: float


def draw_corpus(field: WordField, n: int, rng: np.random.Generator) -> Corpus:
    """About ``n`` words from a field, of each length its share and at least one, weighted to it."""
    p = field.length_probabilities
    sizes = np.where(p > 0, np.maximum(np.round(n * p), 1), 0).astype(np.int64)
    lengths = np.repeat(np.arange(len(p)), sizes)
    weights = p[lengths] / sizes[lengths]
    return Corpus(field.alphabet, field.draw(lengths, rng), lengths, weights)


class Screen:
    """Finds candidates: atoms, and patterns that are in the model with an atom before or after them.

    Where patterns occur in the data is remembered; ``least`` is how often they must.
    """

    def __init__(self, data: Corpus, least: float) -> None:
        self.data, self.least = data, least
        self._neighbours: dict[tuple[int, ...], tuple[FloatArray, FloatArray]] = {}

    @staticmethod
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

    def best(
        self, patterns: Sequence[Pattern], drawn: Corpus, longest: int, refused: set[tuple[int, ...]], n: int
    ) -> list[Candidate]:
        """The candidates of the largest gain, best first, by words drawn from the model."""
        alphabet = self.data.alphabet
        known = {p.key for p in patterns} | refused
        found: list[tuple[Pattern, float, float]] = []

        def add(shares: tuple[FloatArray, FloatArray], before: tuple[Pattern, ...], after: tuple[Pattern, ...]) -> None:
            observed, expected = (alphabet.membership @ each for each in shares)
            for a in np.flatnonzero(observed > self.least):
                atoms = (*(x for p in before for x in p.atoms), alphabet.atoms[a], *(x for p in after for x in p.atoms))
                if len(atoms) <= longest and tuple(x.members for x in atoms) not in known:
                    known.add(tuple(x.members for x in atoms))
                    found.append((Pattern(atoms), float(observed[a]), float(expected[a])))

        # The beginning and the end are in every word.
        inside = np.where(np.arange(alphabet.n_symbols) < alphabet.begin, 1.0, 0.0)
        both = [np.bincount(c.codes, c.weights[c.word], alphabet.n_symbols) * inside for c in (self.data, drawn)]
        add((both[0].astype(np.float64), both[1].astype(np.float64)), (), ())
        for pattern in patterns:
            if pattern.key not in self._neighbours:
                self._neighbours[pattern.key] = self._beside(self.data, pattern)
            seen, model = self._neighbours[pattern.key], self._beside(drawn, pattern)
            add((seen[0], model[0]), (), (pattern,))
            add((seen[1], model[1]), (pattern,), ())
        if not found:
            return []
        # As if places were independent: enough to say which candidates are worth a closer look.
        observed, expected = np.array([x[1:] for x in found]).T
        places = float(self.data.weights @ self.data.lengths) + 1.0
        expected = np.clip(expected, 0.5 * drawn.weights.min(), places - 1e-9)
        rest = np.maximum(places - observed, 1e-12)
        rough = observed * np.log(observed / expected) + rest * np.log(rest / (places - expected))
        chosen = np.argsort(-rough, kind="stable")[:n]
        candidates = [sampled_gain(found[i][0], float(observed[i]), drawn) for i in chosen]
        return sorted(candidates, key=lambda c: -c.gain)


def sampled_gain(pattern: Pattern, observed: float, drawn: Corpus) -> Candidate:
    """The gain of a pattern by words drawn from the model, and its standard error."""
    counts = drawn.counts(pattern).astype(np.int64)
    n_lengths, most = int(drawn.lengths.max()) + 1, max(int(counts.max()), 1)
    table = np.bincount(drawn.lengths * (most + 1) + counts, minlength=n_lengths * (most + 1)).astype(np.float64)
    table = table.reshape(n_lengths, most + 1)
    kept = table.sum(axis=1) > 0
    table, sizes = table[kept], table[kept].sum(axis=1)
    p = np.bincount(drawn.lengths, drawn.weights)[kept]
    if not counts.any():
        # It was not drawn: as if it had been half a time.
        table[:, 1] += 0.5 * p
        table[:, 0] -= 0.5 * p
    shares = table / sizes[:, None]
    x = np.arange(most + 1.0)
    mean = float(p @ shares @ x)
    weight = float(np.clip(np.log(observed / mean), -FARTHEST, FARTHEST))
    for _ in range(MOST_NEWTON):
        tilted = shares * np.exp(weight * (x - most * (weight > 0)))
        tilted /= tilted.sum(axis=1, keepdims=True)
        means = tilted @ x
        slope = observed - float(p @ means)
        bend = float(p @ (tilted @ (x * x) - means * means))
        step = float(np.clip(slope / max(bend, 1e-12), -1.0, 1.0))
        weight = float(np.clip(weight + step, -FARTHEST, FARTHEST))
        if abs(step) < 1e-8 or abs(weight) == FARTHEST:
            break
    shift = most * weight if weight > 0 else 0.0
    exponentials = np.exp(weight * x - shift)
    z = shares @ exponentials
    gain = weight * observed - float(p @ (np.log(z) + shift))
    spread = shares @ (exponentials * exponentials) - z * z
    error = float(np.sqrt(np.sum(p * p * np.maximum(spread, 0.0) / (sizes * z * z))))
    return Candidate(pattern, observed, weight, gain, error)


def exact_gain(field: WordField, candidate: Candidate) -> tuple[Candidate, WordField]:
    """The exact gain of a candidate, and the field with its pattern at the best weight for it alone."""
    patterns, held = (*field.patterns, candidate.pattern), field.weights
    base = field.mean_log_partition
    grown = WordField(field.alphabet, patterns, [*held, 0.0], field.length_probabilities, max_states=field.max_states)
    observed, weight = candidate.observed, candidate.weight
    low, high = -FARTHEST, FARTHEST
    last: tuple[float, float] | None = None
    best: tuple[float, float, WordField] | None = None
    for _ in range(MOST_EXACT):
        tried = grown.with_weights([*held, weight])
        slope = observed - float(tried.expectations()[-1])
        gain = weight * observed - tried.mean_log_partition + base
        if isfinite(gain + slope) and (best is None or gain > best[0]):
            best = (gain, weight, tried)
        if isfinite(slope) and abs(slope) <= ENOUGH * observed:
            break
        # The slope falls with the weight: a secant step that stays between what is too low and what is too high.
        low, high = (weight, high) if slope > 0 else (low, weight)
        if last is not None and isfinite(slope) and last[1] != slope:
            following = weight + slope * (weight - last[0]) / (last[1] - slope)
        else:
            following = weight + (0.1 if slope > 0 else -0.1)
        last = (weight, slope)
        weight = following if low < following < high else (low + high) / 2
    if best is None:
        return Candidate(candidate.pattern, observed, 0.0, 0.0, 0.0), grown
    return Candidate(candidate.pattern, observed, best[1], best[0], 0.0), best[2]
