"""How well a child is explained by its parents and one more: the inner loop of learning a structure.

All candidates for the one more parent share what is already there, so its cell numbers (``base``) are computed once,
and several candidates are counted by one pass over the rows, jointly: their shared table is summed out afterwards,
which costs less than a pass for each.

Invariant: counts are ``[configuration, state, candidate]``, the last candidate of a group fastest; scores are those of
`fit_of_table` whichever way candidates are grouped. How candidates are grouped is free to change.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.learning.core.counting_kernel import BLOCK, LANES, SMALL

__all__ = ["fit_of_table", "score_additions"]


@kernel
def _rising(prior, count):
    """log Gamma(prior + count) - log Gamma(prior)."""
    return math.lgamma(prior + count) - math.lgamma(prior)


@kernel
def fit_of_table(counts, configurations, states, columns, prior):
    """Log-likelihood of a child in ``counts[configuration, state, column]``, given configuration and column.

    At its maximum when ``prior`` is zero; otherwise integrated over Dirichlet distributions with that pseudo-count in
    every cell. Configurations that never occur add nothing to either.
    """
    total = 0.0
    for j in range(configurations):
        for x in range(columns):
            n_parents = 0.0
            for k in range(states):
                n = counts[(j * states + k) * columns + x]
                if n > 0.0:
                    n_parents += n
                    total += _rising(prior, n) if prior > 0.0 else n * math.log(n)
            if n_parents > 0.0:
                if prior > 0.0:
                    total -= _rising(prior * states, n_parents)
                else:
                    total -= n_parents * math.log(n_parents)
    return total


@kernel
def _count_group(codes, weights, cards, base, group, size, lanes, table):
    """Joint counts of the base cells and a group of candidates, the last candidate fastest, into ``table``."""
    cells = np.empty(BLOCK, np.uint32)
    copies = LANES if len(weights) == 0 and size <= SMALL else 1
    for i in range(copies * size):
        lanes[i] = 0
    for i in range(size):
        table[i] = 0.0
    for start in range(0, len(base), BLOCK):
        n = min(BLOCK, len(base) - start)
        block = base[start : start + n]
        for r in range(n):
            cells[r] = block[r]
        for g in range(len(group)):
            column = codes[group[g], start : start + n]
            card = np.uint32(cards[group[g]])
            for r in range(n):
                cells[r] = np.uint32(cells[r] * card) + np.uint32(column[r])
        if len(weights):
            heavy = weights[start : start + n]
            for r in range(n):
                table[cells[r]] += heavy[r]
        elif copies == 1:
            for r in range(n):
                lanes[cells[r]] += 1
        else:
            whole = n - n % LANES
            for r in range(0, whole, LANES):
                for k in range(LANES):
                    lanes[k * size + cells[r + k]] += 1
            for r in range(whole, n):
                lanes[cells[r]] += 1
    if len(weights) == 0:
        for i in range(size):
            count = 0
            for k in range(copies):
                count += lanes[k * size + i]
            table[i] = count


@kernel
def score_additions(codes, weights, cards, base, configurations, states, group_offsets, candidates, priors, out):
    """Log-likelihood of a child given its parents and each candidate, into ``out``.

    ``base`` is int32[rows]: the number of the parents' configuration times ``states`` plus the child's state.
    Candidates ``group_offsets[g] .. group_offsets[g + 1] - 1`` are counted together. ``priors`` holds, by candidate,
    the pseudo-count of a cell, or zero for the maximum likelihood.
    """
    cells = configurations * states
    largest = 0
    for g in range(len(group_offsets) - 1):
        size = cells
        for i in range(group_offsets[g], group_offsets[g + 1]):
            size *= cards[candidates[i]]
        largest = max(largest, size)
    lanes = np.empty(max(LANES * min(largest, SMALL), largest), np.int32)
    table = np.empty(largest)
    marginal = np.empty(largest)
    for g in range(len(group_offsets) - 1):
        first, last = group_offsets[g], group_offsets[g + 1]
        size = cells
        for i in range(first, last):
            size *= cards[candidates[i]]
        _count_group(codes, weights, cards, base, candidates[first:last], size, lanes, table)
        inner = size // cells
        for i in range(first, last):
            card = cards[candidates[i]]
            if last - first == 1:
                out[i] = fit_of_table(table, configurations, states, card, priors[i])
                continue
            inner //= card
            # The table is [cells, outer, card, inner]: sum out all but the first and the third axis.
            outer = size // (cells * card * inner)
            for c in range(cells * card):
                marginal[c] = 0.0
            for c in range(cells):
                at = c * outer * card * inner
                for _ in range(outer):
                    for x in range(card):
                        count = 0.0
                        for t in range(inner):
                            count += table[at + t]
                        at += inner
                        marginal[c * card + x] += count
            out[i] = fit_of_table(marginal, configurations, states, card, priors[i])
