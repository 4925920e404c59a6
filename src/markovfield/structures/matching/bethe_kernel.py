"""Sum-product messages between rows and columns of a matching, until they stand still.

Invariant: beliefs are in [0, 1], 0 where a link is impossible. Free to change: the schedule.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = ["bethe_messages"]

LARGEST = 1e5


@kernel
def _others(terms, n, alone, out):
    """For each of n logs the log of the sum of exp of all others and of ``alone``, without cancellation."""
    top, at = alone, -1
    for k in range(n):
        if terms[k] > top:
            top, at = terms[k], k
    if top == -np.inf:
        out[:n] = -np.inf
        return
    total = exp_scalar(alone - top)
    for k in range(n):
        total += exp_scalar(terms[k] - top)
    second, rest = alone if at >= 0 else -np.inf, 0.0
    for k in range(n):
        if k != at:
            second = max(second, terms[k])
    if at >= 0 and second > -np.inf:
        rest = exp_scalar(alone - second)
        for k in range(n):
            if k != at:
                rest += exp_scalar(terms[k] - second)
    for k in range(n):
        if k == at:
            out[k] = second + math.log(rest) if rest > 0.0 else -np.inf
        else:
            out[k] = top + math.log(total - exp_scalar(terms[k] - top))


@kernel
def bethe_messages(links, rows, columns, max_iterations, tolerance, beliefs, to_columns):
    """Fill beliefs of links and the messages to columns, both m x n; answers iterations, negative where they end it."""
    m, n = links.shape
    to_rows, terms, out = np.zeros((m, n)), np.empty(max(m, n)), np.empty(max(m, n))
    beliefs[:] = 0.0
    for step in range(max_iterations):
        for i in range(m):
            for j in range(n):
                terms[j] = links[i, j] + to_rows[i, j]
            _others(terms, n, rows[i], out)
            for j in range(n):
                to_columns[i, j] = -np.inf if links[i, j] == -np.inf else min(links[i, j] - out[j], LARGEST)
        change = 0.0
        for j in range(n):
            for i in range(m):
                terms[i] = to_columns[i, j]
            _others(terms, m, columns[j], out)
            for i in range(m):
                to_rows[i, j] = min(-out[i], LARGEST)
                odds = to_columns[i, j] + to_rows[i, j]
                belief = 1.0 / (1.0 + exp_scalar(-odds)) if odds > -700.0 else 0.0
                change = max(change, abs(belief - beliefs[i, j]))
                beliefs[i, j] = belief
        if change < tolerance:
            return step + 1
    return -max_iterations
