"""Ascent of the dual of structural SVMs over planes that are kept (Murphy 19.7.2; Lacoste-Julien et al. 2013).

Block i has planes (a, b): its hinge is at least ``b - <w, a>``. Masses over the planes of a block, with that of the
true output (a = 0, b = 0) among them, add up to its cost, and ``w`` is the sum of mass times a over all of them. A
step moves mass from one plane of a block to another, or to one from all others, as far as the dual rises: it never
falls. Planes of a block are a linked list; their features are sparse.

Invariant: masses are at least 0 and add up to costs. Free to change: the order of blocks and of steps.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["ascend", "ascend_gram", "violations"]


@kernel
def _dot(w, offsets, columns, values, plane):
    total = 0.0
    for k in range(offsets[plane], offsets[plane + 1]):
        total += w[columns[k]] * values[k]
    return total


@kernel
def _add(w, offsets, columns, values, plane, factor):
    for k in range(offsets[plane], offsets[plane + 1]):
        w[columns[k]] += factor * values[k]


@kernel
def violations(w, offsets, columns, values, losses, first, found):
    """``b - <w, a>`` of the planes from ``first`` on."""
    for i in range(len(found)):
        found[i] = losses[first + i] - _dot(w, offsets, columns, values, first + i)


@kernel
def _square(scratch, offsets, columns, values, to, source):
    """The squared length of the difference of two planes; -1 is the true output's. ``scratch`` stays zero."""
    total = 0.0
    if to >= 0:
        for k in range(offsets[to], offsets[to + 1]):
            scratch[columns[k]] += values[k]
    if source >= 0:
        for k in range(offsets[source], offsets[source + 1]):
            scratch[columns[k]] -= values[k]
    if to >= 0:
        for k in range(offsets[to], offsets[to + 1]):
            total += scratch[columns[k]] ** 2
            scratch[columns[k]] = 0.0
    if source >= 0:
        for k in range(offsets[source], offsets[source + 1]):
            total += scratch[columns[k]] ** 2
            scratch[columns[k]] = 0.0
    return total


@kernel
def ascend(
    blocks, heads, following, offsets, columns, values, losses, masses, true_masses, w, scratch, n_steps, enough, rise
):  # fmt: skip
    """Pairwise steps on some blocks, at most ``n_steps`` on each and until none gains more than ``enough``.

    The rise of the dual by the steps on the k-th block is put into ``rise[k]``.
    """
    room = 0
    for position in range(len(blocks)):
        n, plane = 0, heads[blocks[position]]
        while plane >= 0:
            n += 1
            plane = following[plane]
        room = max(room, n)
    planes, found = np.empty(room, np.int64), np.empty(room)
    for position in range(len(blocks)):
        block = blocks[position]
        n, plane = 0, heads[block]
        while plane >= 0:
            planes[n] = plane
            n += 1
            plane = following[plane]
        risen = 0.0
        for _ in range(n_steps):
            # The true output has violation 0.
            to, best = -1, 0.0
            source, worst = -1, np.inf
            if true_masses[block] > 0.0:
                worst = 0.0
            for i in range(n):
                found[i] = losses[planes[i]] - _dot(w, offsets, columns, values, planes[i])
                if found[i] > best:
                    to, best = planes[i], found[i]
                if masses[planes[i]] > 0.0 and found[i] < worst:
                    source, worst = planes[i], found[i]
            gain = best - worst
            if not gain > enough:
                break
            square = _square(scratch, offsets, columns, values, to, source)
            most = masses[source] if source >= 0 else true_masses[block]
            step = most if gain >= square * most else gain / square
            risen += step * gain - 0.5 * step * step * square
            if to >= 0:
                masses[to] += step
                _add(w, offsets, columns, values, to, step)
            else:
                true_masses[block] += step
            left = 0.0 if step == most else most - step
            if source >= 0:
                masses[source] = left
                _add(w, offsets, columns, values, source, -step)
            else:
                true_masses[block] = left
        rise[position] = risen


@kernel
def ascend_gram(gram, losses, masses, n_steps, enough):
    """The same on one block of which the inner products of planes are known, the true output among them; the rise.

    ``gram`` is ``float64[n, n]``; masses are changed in place.
    """
    n = len(losses)
    heights = losses - gram @ masses
    risen = 0.0
    for _ in range(n_steps):
        to, source = 0, -1
        for i in range(n):
            if heights[i] > heights[to]:
                to = i
            if masses[i] > 0.0 and (source < 0 or heights[i] < heights[source]):
                source = i
        gain = heights[to] - heights[source]
        if not gain > enough:
            break
        square = gram[to, to] + gram[source, source] - 2.0 * gram[to, source]
        most = masses[source]
        step = most if gain >= square * most else gain / square
        risen += step * gain - 0.5 * step * step * square
        masses[to] += step
        masses[source] = 0.0 if step == most else most - step
        for i in range(n):
            heights[i] -= step * (gram[i, to] - gram[i, source])
    return risen
