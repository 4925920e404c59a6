"""Passes over the history of a quasi-Newton method: each reads it once, and does all there is to do with what it read.

A history is a table of vectors, steps first and then changes of the gradient. Vectors are handled in parts, whose sums
are added up in order: the answer does not depend on how many threads the parts are spread over.

Invariant: the layout of the history, and the order in which parts are added up. Free to change: `CHUNK`, entries that
stay in cache while every vector goes by.
"""

from __future__ import annotations

from markovfield.kernels.compiler import kernel

__all__ = ["add_pair", "combine"]

# Entries that stay in the nearest cache while every vector of the history goes by.
CHUNK = 1024


@kernel
def add_pair(vectors, at, new, old, new_gradient, old_gradient, slope, first, last, products):
    """Write a step and a change in rows ``at`` and ``at + half`` of the history, and multiply it with them.

    ``products[0]``, ``[1]`` and ``[2]`` become the inner products of every vector with the step, the change and
    ``slope``, over entries ``first`` to ``last``.
    """
    n = vectors.shape[0]
    half = n // 2
    for r in range(n):
        products[0, r] = products[1, r] = products[2, r] = 0.0
    for start in range(first, last, CHUNK):
        stop = min(start + CHUNK, last)
        step, change, own = vectors[at, start:stop], vectors[at + half, start:stop], slope[start:stop]
        one, two, three, four = new[start:stop], old[start:stop], new_gradient[start:stop], old_gradient[start:stop]
        for i in range(len(step)):
            step[i] = one[i] - two[i]
            change[i] = three[i] - four[i]
        # A step and a change at a time: what they are multiplied with is read once for both.
        for r in range(half):
            row, other = vectors[r, start:stop], vectors[r + half, start:stop]
            a, b, c, d, e, f = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(len(step)):
                a += row[i] * step[i]
                b += row[i] * change[i]
                c += row[i] * own[i]
                d += other[i] * step[i]
                e += other[i] * change[i]
                f += other[i] * own[i]
            products[0, r] += a
            products[1, r] += b
            products[2, r] += c
            products[0, r + half] += d
            products[1, r + half] += e
            products[2, r + half] += f


@kernel
def combine(vectors, mix, own, slope, first, last, out):
    """Write minus the combination of the history and of ``slope`` to ``out``, entries ``first`` to ``last``."""
    n = vectors.shape[0]
    for start in range(first, last, CHUNK):
        stop = min(start + CHUNK, last)
        part, base = out[start:stop], slope[start:stop]
        for i in range(len(part)):
            part[i] = -own * base[i]
        for r in range(0, n, 2):
            one, two = mix[r], mix[r + 1]
            left, right = vectors[r, start:stop], vectors[r + 1, start:stop]
            for i in range(len(part)):
                part[i] -= one * left[i] + two * right[i]
