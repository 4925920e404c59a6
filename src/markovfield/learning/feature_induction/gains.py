"""What a further pattern is worth: the most that the likelihood gains by its weight alone, all others held.

The gain of a pattern g with weight a is ``a * observed - sum_l p(l) log E_l[exp(a * count)]``, E_l the expectation over
words of length l under the model so far; its maximum over a is found by Newton's method. Candidates are many: they are
compared by words drawn from the model, with standard errors, and the best of them exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from markovfield.learning.feature_induction.corpus import Corpus
from markovfield.learning.feature_induction.patterns import Pattern
from markovfield.learning.feature_induction.word_field import WordField

__all__ = ["Candidate", "draw_corpus", "exact_gain", "sampled_gain"]

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
