"""The sums of a chain in log space: slower, and safe where potentials differ by more than a float can hold."""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels._flags import kernel

__all__ = ["log_posteriors"]


@kernel
def log_posteriors(scores, transitions, n_labels, posteriors):
    """Write the posteriors of one chain, ``[n, n_labels]``; its log Z and its entropy, -inf and 0 where it has none.

    ``scores[n, width]`` and ``transitions[width, width]`` are logs.
    """
    n = scores.shape[0]
    forward, backward = np.empty((n, n_labels)), np.zeros((n, n_labels))
    for i in range(n):
        for k in range(n_labels):
            if i == 0:
                forward[i, k] = scores[i, k]
                continue
            top = -np.inf
            for j in range(n_labels):
                top = max(top, forward[i - 1, j] + transitions[j, k])
            total = 0.0
            if top > -np.inf:
                for j in range(n_labels):
                    total += math.exp(forward[i - 1, j] + transitions[j, k] - top)
                forward[i, k] = top + math.log(total) + scores[i, k]
            else:
                forward[i, k] = -np.inf
    for i in range(n - 2, -1, -1):
        for k in range(n_labels):
            top = -np.inf
            for j in range(n_labels):
                top = max(top, transitions[k, j] + scores[i + 1, j] + backward[i + 1, j])
            total = 0.0
            if top > -np.inf:
                for j in range(n_labels):
                    total += math.exp(transitions[k, j] + scores[i + 1, j] + backward[i + 1, j] - top)
                backward[i, k] = top + math.log(total)
            else:
                backward[i, k] = -np.inf
    top = -np.inf
    for k in range(n_labels):
        top = max(top, forward[n - 1, k])
    if top == -np.inf:
        return -np.inf, 0.0
    total = 0.0
    for k in range(n_labels):
        total += math.exp(forward[n - 1, k] - top)
    log_partition = top + math.log(total)
    expected = 0.0
    for i in range(n):
        for k in range(n_labels):
            p = math.exp(forward[i, k] + backward[i, k] - log_partition)
            posteriors[i, k] = p
            if p > 0.0:
                expected += p * scores[i, k]
            if i + 1 < n and forward[i, k] > -np.inf:
                for j in range(n_labels):
                    step = transitions[k, j] + scores[i + 1, j] + backward[i + 1, j]
                    q = math.exp(forward[i, k] + step - log_partition)
                    if q > 0.0:
                        expected += q * transitions[k, j]
    return log_partition, log_partition - expected
