"""How the cells of a table lie in a smaller one: sums onto it, and multiplication by it.

The axes of every table rise by position, the last fastest. A projection is two short lists of positions in the smaller
table, one for the outer axes of the larger and one for the inner: cell (o, i) lies at ``outer[o] + inner[i]``.
"""

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["INNER_CELLS", "multiply_by", "project_pairs", "sum_onto"]

INNER_CELLS = 64


@kernel
def project_pairs(cardinalities, set_offsets, members, pairs):
    """Projections of pairs (larger set, smaller set).

    ``members`` holds the sets, each rising; the smaller set of a pair is part of the larger. Returns
    ``int64[pairs, 4]``, where outer and inner lists begin and how long they are, and the lists, ``int32``.
    """
    n = len(pairs)
    where = np.empty((n, 4), np.int64)
    total = 0
    for p in range(n):
        a, b = set_offsets[pairs[p, 0]], set_offsets[pairs[p, 0] + 1]
        inner, first = 1, b
        while first > a and (first == b or inner * cardinalities[members[first - 1]] <= INNER_CELLS):
            first -= 1
            inner *= cardinalities[members[first]]
        outer = 1
        for k in range(a, first):
            outer *= cardinalities[members[k]]
        where[p, 0], where[p, 1], where[p, 2], where[p, 3] = total, outer, total + outer, inner
        total += outer + inner
    index = np.zeros(total, np.int32)
    for p in range(n):
        a, b = set_offsets[pairs[p, 0]], set_offsets[pairs[p, 0] + 1]
        k = set_offsets[pairs[p, 1] + 1] - 1
        low = set_offsets[pairs[p, 1]]
        stride = 1
        start, filled = where[p, 2], 1
        for j in range(b - 1, a - 1, -1):
            if filled == where[p, 3] and start == where[p, 2]:
                start, filled = where[p, 0], 1
            v = members[j]
            card = cardinalities[v]
            step = 0
            if k >= low and members[k] == v:
                step = stride
                stride *= card
                k -= 1
            for s in range(1, card):
                for i in range(filled):
                    index[start + s * filled + i] = index[start + i] + s * step
            filled *= card
    return where, index


@kernel
def sum_onto(table, where, index, out):
    """Add up the table's cells in the smaller table."""
    outer, inner = where[0], where[2]
    n = where[3]
    for c in range(len(out)):
        out[c] = 0.0
    cell = 0
    for o in range(where[1]):
        base = index[outer + o]
        for i in range(n):
            out[base + index[inner + i]] += table[cell + i]
        cell += n


@kernel
def multiply_by(table, where, index, ratio):
    """Multiply every cell by that of the smaller table that it lies in."""
    outer, inner = where[0], where[2]
    n = where[3]
    cell = 0
    for o in range(where[1]):
        base = index[outer + o]
        for i in range(n):
            table[cell + i] *= ratio[base + index[inner + i]]
        cell += n
