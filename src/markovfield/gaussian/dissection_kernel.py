"""Nested dissection: halves of a graph are eliminated before the vertices between them (George 1973).

For n vertices of a planar lattice the factor has about n log n entries and takes n^1.5 operations, which no order
beats but by a constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["lattice_reach", "slab_order"]


@kernel
def lattice_reach(offsets: Any, rows: Any, coordinates: Any) -> Any:
    """How far apart along each axis neighbours are at the most."""
    n, d = coordinates.shape
    reach = np.zeros(d, np.int64)
    for j in range(n):
        for e in range(offsets[j], offsets[j + 1]):
            for a in range(d):
                reach[a] = max(reach[a], abs(np.int64(coordinates[rows[e], a]) - coordinates[j, a]))
    return reach


@kernel
def slab_order(coordinates: Any, reach: Any, leaf: int) -> Any:
    """Order of elimination of vertices with whole coordinates, by slabs across the longest axis.

    A slab as thick as neighbours reach separates what is before it from what is behind.
    """
    n, d = coordinates.shape
    order = np.arange(n).astype(np.int32)
    other = np.empty(n, np.int32)
    pending = np.empty((4 * 64 + 64, 2), np.int64)
    pending[0, 0], pending[0, 1] = 0, n
    top = 1
    low = np.empty(d, np.int64)
    high = np.empty(d, np.int64)
    tally = np.zeros(1, np.int64)
    while top:
        top -= 1
        begin, end = pending[top, 0], pending[top, 1]
        if end - begin <= leaf:
            continue
        for a in range(d):
            low[a] = high[a] = coordinates[order[begin], a]
        for k in range(begin, end):
            for a in range(d):
                spot = np.int64(coordinates[order[k], a])
                low[a] = min(low[a], spot)
                high[a] = max(high[a], spot)
        axis = -1
        longest = 0.0
        for a in range(d):
            length = (high[a] - low[a] + 1) / max(reach[a], 1)
            if high[a] - low[a] + 1 > reach[a] + 1 and length > longest:
                axis, longest = a, length
        if axis < 0:
            continue
        span = int(high[axis] - low[axis] + 1)
        if tally.size < span:
            tally = np.zeros(2 * span, np.int64)
        for x in range(span):
            tally[x] = 0
        for k in range(begin, end):
            tally[coordinates[order[k], axis] - low[axis]] += 1
        # The slab before which and behind which are as many.
        thick = int(max(reach[axis], 0))
        slab = 0
        for x in range(min(thick, span)):
            slab += int(tally[x])
        before = 0
        cut = 0
        best = np.inf
        for x in range(span - thick + 1):
            behind = end - begin - before - slab
            if before > 0 and behind > 0 and abs(before - behind) + 0.5 * slab < best:
                best = abs(before - behind) + 0.5 * slab
                cut = x
            before += int(tally[x])
            slab += (int(tally[x + thick]) if x + thick < span else 0) - int(tally[x])
        if best == np.inf:
            continue
        cut += int(low[axis])
        # Before, behind, slab: in this order, each in the order it was in.
        lower, upper, middle = begin, 0, 0
        for k in range(begin, end):
            place = coordinates[order[k], axis]
            upper += place >= cut + thick
            lower += place < cut
        lower, upper, middle = begin, lower, lower + upper
        first, second = upper, middle
        for k in range(begin, end):
            v = order[k]
            place = coordinates[v, axis]
            if place < cut:
                other[lower] = v
                lower += 1
            elif place >= cut + thick:
                other[upper] = v
                upper += 1
            else:
                other[middle] = v
                middle += 1
        for k in range(begin, end):
            order[k] = other[k]
        pending[top, 0], pending[top, 1] = begin, first
        pending[top + 1, 0], pending[top + 1, 1] = first, second
        top += 2
    return order
