"""Gaussian belief propagation: messages along the entries of a sparse precision, one sweep in place.

Entry ``e`` of row ``i`` (``indptr[i] <= e < indptr[i + 1]``) is the edge to ``indices[e]`` with the precision
``values[e]``; ``reverse[e]`` is the same edge seen from the other end. ``weights[e]`` and ``pulls[e]`` are the message
that leaves row i along e: it multiplies ``exp(pull x - weight x^2 / 2)`` into the other end's density, so weights of
messages are negative. ``precisions`` and ``potentials`` of a variable have all incoming messages in them, and are kept
up to date by each change.
"""

from __future__ import annotations

from markovfield.kernels.compiler import kernel

__all__ = ["sweep_messages"]


@kernel
def sweep_messages(order, indptr, indices, values, reverse, damping, weights, pulls, precisions, potentials):
    """All messages of the variables in ``order``, then in the opposite order; 1 where a precision would vanish.

    ``weights`` and ``pulls`` (``float64[entries]``), ``precisions`` and ``potentials`` (``float64[n]``) are changed.
    """
    n = len(order)
    for step in range(2 * n):
        i = order[step] if step < n else order[2 * n - 1 - step]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            r = reverse[e]
            own = precisions[i] - weights[r]
            if not own > 0.0:
                return 1
            coupling = values[e]
            weight = -coupling * coupling / own
            pull = -coupling * (potentials[i] - pulls[r]) / own
            if damping > 0.0:
                weight = (1.0 - damping) * weight + damping * weights[e]
                pull = (1.0 - damping) * pull + damping * pulls[e]
            precisions[j] += weight - weights[e]
            potentials[j] += pull - pulls[e]
            weights[e] = weight
            pulls[e] = pull
    return 0
