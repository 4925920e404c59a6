"""The sums of a linear chain in log space: slower, and safe where potentials differ by more than a float holds.

Invariant: logs throughout, ``-inf`` for what is not allowed; ``[n, width]`` scores, and one step of transitions for all
or one for each. Used only where `sums_kernel` gives nan, and by hidden Markov models likewise.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_from_logs

__all__ = ["log_draws", "log_posteriors"]


@kernel
def _log_sum(values, n):
    """Log of the sum of the exponentials of ``n`` values."""
    top = -np.inf
    for j in range(n):
        top = max(top, values[j])
    if top == -np.inf:
        return top
    total = 0.0
    for j in range(n):
        total += math.exp(values[j] - top)
    return top + math.log(total)


@kernel
def log_posteriors(scores, transitions, n_labels, posteriors, expected):
    """Posteriors of one chain's labels, ``[n, n_labels]``, and steps; its log Z and entropy, -inf and 0 if impossible.

    ``scores[n, width]`` and ``transitions[steps, width, width]`` are logs; one step stands for all. ``expected``, of
    the shape of ``transitions``, gains the posteriors of neighbouring labels.
    """
    n = scores.shape[0]
    same = transitions.shape[0] == 1
    forward, backward = np.empty((n, n_labels)), np.zeros((n, n_labels))
    terms = np.empty(n_labels)
    for i in range(n):
        for k in range(n_labels):
            forward[i, k] = scores[i, k]
            if i > 0:
                step = 0 if same else i - 1
                for j in range(n_labels):
                    terms[j] = forward[i - 1, j] + transitions[step, j, k]
                forward[i, k] += _log_sum(terms, n_labels)
    for i in range(n - 2, -1, -1):
        step = 0 if same else i
        for k in range(n_labels):
            for j in range(n_labels):
                terms[j] = transitions[step, k, j] + scores[i + 1, j] + backward[i + 1, j]
            backward[i, k] = _log_sum(terms, n_labels)
    log_partition = _log_sum(forward[n - 1], n_labels)
    if log_partition == -np.inf:
        return -np.inf, 0.0
    total = 0.0
    for i in range(n):
        step = 0 if same else i
        for k in range(n_labels):
            p = math.exp(forward[i, k] + backward[i, k] - log_partition)
            posteriors[i, k] = p
            if p > 0.0:
                total += p * scores[i, k]
            if i + 1 < n and forward[i, k] > -np.inf:
                for j in range(n_labels):
                    after = transitions[step, k, j] + scores[i + 1, j] + backward[i + 1, j]
                    q = math.exp(forward[i, k] + after - log_partition)
                    if q > 0.0:
                        total += q * transitions[step, k, j]
                        expected[step, k, j] += q
    return log_partition, log_partition - total


@kernel
def log_draws(scores, transitions, n_labels, stream, paths):
    """Draw label sequences of one chain, ``paths[size, n]``; False where none is allowed."""
    n = scores.shape[0]
    same = transitions.shape[0] == 1
    forward, terms = np.empty((n, n_labels)), np.empty(n_labels)
    for i in range(n):
        for k in range(n_labels):
            forward[i, k] = scores[i, k]
            if i > 0:
                step = 0 if same else i - 1
                for j in range(n_labels):
                    terms[j] = forward[i - 1, j] + transitions[step, j, k]
                forward[i, k] += _log_sum(terms, n_labels)
    if _log_sum(forward[n - 1], n_labels) == -np.inf:
        return False
    for row in range(paths.shape[0]):
        after = -1
        for i in range(n - 1, -1, -1):
            for k in range(n_labels):
                terms[k] = forward[i, k]
                if after >= 0:
                    terms[k] += transitions[0 if same else i, k, after]
            after = draw_from_logs(stream, terms, 0, n_labels)
            paths[row, i] = after
    return True
