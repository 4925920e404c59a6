"""Sums over matchings by a dynamic program over how often each column is taken; counts; draws.

Rows come one after the other, and in a row its columns. A state is a number whose digit j, in a mixed radix, says how
often column j is taken, and how many links the row has so far. Scores are relative to those of absent links; ``forced``
links have no absent alternative. Invariant: -inf is impossible and never becomes NaN.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_sum
from markovfield.kernels.logarithm import log_scalar
from markovfield.kernels.random import draw_from_logs, draw_unit

__all__ = ["permanent_counts", "permanent_draws", "permanent_tables"]


@kernel
def _log_add_rows(out, a, b):
    """log(exp(a) + exp(b)) for each number."""
    for k in range(len(out)):
        top = a[k] if a[k] > b[k] else b[k]
        safe = max(top, -1e300)
        out[k] = top + log_scalar(max(exp_scalar(a[k] - safe) + exp_scalar(b[k] - safe), 0.5))


@kernel
def _moved(out, states, score, radix, limit):
    """States after one more link to a column: -inf where there was room for none."""
    period = radix * (limit + 1)
    for begin in range(0, len(states), period):
        out[begin : begin + radix] = -np.inf
        for k in range(begin + radix, begin + period):
            out[k] = states[k - radix] + score


@kernel
def _row(before, scores, forced, unmatched, most, radices, limits, steps, after):
    """One row: from the states before it to those after it; ``steps`` keeps what was before each column.

    ``steps``: ``float64[n + 1, most + 1, states]``.
    """
    n = len(scores)
    moved = np.empty(len(before))
    steps[0] = -np.inf
    steps[0, 0] = before
    for j in range(n):
        for k in range(most + 1):
            if k > 0:
                _moved(moved, steps[j, k - 1], scores[j], radices[j], limits[j])
            elif forced[j]:
                moved[:] = -np.inf
            if forced[j]:
                steps[j + 1, k] = moved
            elif k > 0 and scores[j] > -np.inf:
                _log_add_rows(steps[j + 1, k], steps[j, k], moved)
            else:
                steps[j + 1, k] = steps[j, k]
    for c in range(len(before)):
        after[c] = steps[n, 0, c] + unmatched
    for k in range(1, most + 1):
        _log_add_rows(after, after, steps[n, k])


@kernel
def permanent_tables(links, forced, unmatched, ends, most, radices, limits, steps, tables):
    """Fill ``tables``, ``float64[m + 1, states]``; answers log Z. ``ends`` is the score of each state at the end."""
    m = len(links)
    tables[0] = -np.inf
    tables[0, 0] = 0.0
    for i in range(m):
        _row(tables[i], links[i], forced[i], unmatched[i], most[i], radices, limits, steps, tables[i + 1])
    last = tables[m] + ends
    return log_sum(last, 0, len(last))


@kernel
def permanent_counts(links, forced, unmatched, ends, most, radices, limits, steps, tables, log_z, counts, alone):
    """Expected numbers of links, of rows without one, and the probability of each state at the end (answered)."""
    m, n = links.shape
    states = len(ends)
    mass = np.empty(states)
    for c in range(states):
        mass[c] = exp_scalar(tables[m, c] + ends[c] - log_z)
    final = mass.copy()
    moved = np.empty(states)
    for i in range(m - 1, -1, -1):
        limit = most[i]
        _row(tables[i], links[i], forced[i], unmatched[i], limit, radices, limits, steps, moved)
        held = np.zeros((limit + 1, states))
        for c in range(states):
            if mass[c] > 0.0:
                value = tables[i + 1, c]
                held[0, c] = mass[c] * exp_scalar(steps[n, 0, c] + unmatched[i] - value)
                alone[i] += held[0, c]
                for k in range(1, limit + 1):
                    held[k, c] = mass[c] * exp_scalar(steps[n, k, c] - value)
        for j in range(n - 1, -1, -1):
            radix = radices[j]
            for k in range(1, limit + 1):
                _moved(moved, steps[j, k - 1], links[i, j], radix, limits[j])
                for c in range(states):
                    if held[k, c] > 0.0 and moved[c] > -np.inf:
                        sent = held[k, c] * exp_scalar(moved[c] - steps[j + 1, k, c])
                        held[k - 1, c - radix] += sent
                        # A forced link leaves nothing; otherwise what is not sent stays.
                        held[k, c] *= 0.0 if forced[i, j] else exp_scalar(steps[j, k, c] - steps[j + 1, k, c])
                        counts[i, j] += sent
        mass = held[0].copy()
    return final


@kernel
def permanent_draws(links, forced, unmatched, ends, most, radices, limits, steps, tables, size, state, drawn):
    """``drawn[s, i, j]`` becomes 1 where draw s has the link (i, j)."""
    m, n = links.shape
    states = len(ends)
    at = np.empty(size, np.int64)
    moved, logs = np.empty(states), np.empty(states)
    for s in range(size):
        logs[:] = tables[m] + ends
        at[s] = draw_from_logs(state, logs, 0, states)
    for i in range(m - 1, -1, -1):
        _row(tables[i], links[i], forced[i], unmatched[i], most[i], radices, limits, steps, moved)
        for s in range(size):
            c, ways = at[s], np.empty(most[i] + 1)
            for k in range(most[i] + 1):
                ways[k] = steps[n, k, c] + (unmatched[i] if k == 0 else 0.0)
            k = draw_from_logs(state, ways, 0, most[i] + 1)
            for j in range(n - 1, -1, -1):
                digit = (c // radices[j]) % (limits[j] + 1)
                if k > 0 and digit > 0:
                    taken = steps[j, k - 1, c - radices[j]] + links[i, j]
                    if forced[i, j] or draw_unit(state) < exp_scalar(taken - steps[j + 1, k, c]):
                        drawn[s, i, j] = 1
                        c -= radices[j]
                        k -= 1
            at[s] = c
