"""IBM models 1 and 2: every target word comes from a source word, or from none, whatever the others do.

Positions are a table for every pair of lengths: entry ``j * n_sources + i`` is the probability of source position i for
target position j, none aside. Invariant: posteriors of a target word and of none add up to one.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.alignment.translation_kernel import gather
from markovfield.kernels.compiler import kernel

__all__ = ["diagonal_moments", "diagonal_table", "ibm_best", "ibm_expectations"]


@kernel
def ibm_expectations(
    pairs, table, positions, position_starts, null_probability, first, last, expected, posteriors, log_likelihoods
):
    """Expected counts of sentence pairs ``first`` to ``last``, added to ``expected``.

    ``expected`` is (pairs of words, target words after none, positions); arrays of length 0 are not wanted, and neither
    are ``posteriors``. A ``null_probability`` below 0 makes none as likely as each source word.
    """
    source_offsets, _, target_offsets, targets, cell_offsets, cells = pairs
    pair_counts, null_counts, position_counts = expected
    rows, columns = 0, 0
    for s in range(first, last):
        rows = max(rows, target_offsets[s + 1] - target_offsets[s])
        columns = max(columns, source_offsets[s + 1] - source_offsets[s])
    block, nulls = np.empty((rows, columns)), np.empty(rows)
    for s in range(first, last):
        n, m = source_offsets[s + 1] - source_offsets[s], target_offsets[s + 1] - target_offsets[s]
        impossible = gather(pairs, table, s, block, nulls)
        none = null_probability if null_probability >= 0.0 else 1.0 / (n + 1)
        at, place, log_likelihood = cell_offsets[s], position_starts[s], 0.0
        for j in range(m):
            total = none * nulls[j]
            for i in range(n):
                block[j, i] *= (1.0 - none) * positions[place + i]
                total += block[j, i]
            if not total > 0.0:
                # Only none explains the word and none is ruled out, or the other way round.
                impossible = True
                total = 1.0
            log_likelihood += math.log(total)
            scale = 1.0 / total
            if len(pair_counts):
                for i in range(n):
                    pair_counts[cells[at + i]] += scale * block[j, i]
                null_counts[targets[target_offsets[s] + j]] += scale * none * nulls[j]
            if len(position_counts):
                for i in range(n):
                    position_counts[place + i] += scale * block[j, i]
            if len(posteriors):
                for i in range(n):
                    posteriors[at + i] = scale * block[j, i]
            at += n
            place += n
        log_likelihoods[s] = -np.inf if impossible else log_likelihood


@kernel
def ibm_best(pairs, table, positions, position_starts, null_probability, first, last, best):
    """``best[t]``: the source position of each target word, -1 for none; at a tie the first."""
    source_offsets, _, target_offsets, _, _, _ = pairs
    rows, columns = 0, 0
    for s in range(first, last):
        rows = max(rows, target_offsets[s + 1] - target_offsets[s])
        columns = max(columns, source_offsets[s + 1] - source_offsets[s])
    block, nulls = np.empty((rows, columns)), np.empty(rows)
    for s in range(first, last):
        n = source_offsets[s + 1] - source_offsets[s]
        gather(pairs, table, s, block, nulls)
        none = null_probability if null_probability >= 0.0 else 1.0 / (n + 1)
        place = position_starts[s]
        for j in range(target_offsets[s + 1] - target_offsets[s]):
            top, at = none * nulls[j], -1
            for i in range(n):
                value = (1.0 - none) * positions[place + i] * block[j, i]
                if value > top:
                    top, at = value, i
            best[target_offsets[s] + j] = at
            place += n


@kernel
def diagonal_table(lengths, starts, tension, positions):
    """Positions that fall off from the diagonal: ``exp(-tension |(i + 1/2) / I - (j + 1/2) / J|)``, normalised."""
    for k in range(len(lengths)):
        n, m = lengths[k, 0], lengths[k, 1]
        for j in range(m):
            at, total = starts[k] + j * n, 0.0
            for i in range(n):
                positions[at + i] = math.exp(-tension * abs((i + 0.5) / n - (j + 0.5) / m))
                total += positions[at + i]
            for i in range(n):
                positions[at + i] /= total


@kernel
def diagonal_moments(lengths, starts, positions, counts):
    """Of distances from the diagonal: their sum over counts, the sum expected of positions, and its variance."""
    seen, expected, variance = 0.0, 0.0, 0.0
    for k in range(len(lengths)):
        n, m = lengths[k, 0], lengths[k, 1]
        for j in range(m):
            at = starts[k] + j * n
            total, mean, square = 0.0, 0.0, 0.0
            for i in range(n):
                distance = abs((i + 0.5) / n - (j + 0.5) / m)
                total += counts[at + i]
                seen += counts[at + i] * distance
                mean += positions[at + i] * distance
                square += positions[at + i] * distance * distance
            expected += total * mean
            variance += total * (square - mean * mean)
    return seen, expected, variance
