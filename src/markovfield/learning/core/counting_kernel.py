"""Counting how often the variables of a family take each of their joint states.

Invariant: codes are ``int16[variables, rows]``, -1 for missing; tables have the last member of a family fastest; rows
are added in their order, so that weighted sums do not depend on threads. Free to change: `BLOCK`, `LANES` and `SMALL`.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["count_families"]

BLOCK = 2048
"""Rows handled at once: their cell numbers stay in the first-level cache."""

LANES = 4
"""Copies of a small table that take turns, so that rows with the same cell do not wait for one another."""

SMALL = 4096
"""A table of at most this many cells is counted in `LANES` copies."""


@kernel
def _cells_of_block(codes, cardinalities, members, start, n, cells, missing):
    """Cell of each row of a block in the family's table, the last member fastest; whether a member is missing in any.

    ``missing`` is negative in the rows where one is.
    """
    # Slices and unsigned cells: indices that may be negative would keep these loops from being vectorised.
    for r in range(n):
        cells[r] = 0
        missing[r] = 0
    for m in range(len(members)):
        column = codes[members[m], start : start + n]
        card = np.uint32(cardinalities[members[m]])
        for r in range(n):
            cells[r] = np.uint32(cells[r] * card) + np.uint32(column[r])
            missing[r] |= column[r]
    worst = np.int16(0)
    for r in range(n):
        worst |= missing[r]
    return worst < 0


@kernel
def count_families(codes, weights, cardinalities, family_offsets, families, table_offsets, first_row, last_row, out):
    """Add to each family's table how often its joint states occur in the rows ``first_row .. last_row - 1``.

    ``codes`` is int16[n, rows], -1 for missing; a row with a missing member does not count for that family.
    ``weights`` is float64[rows], or float64[0] when every row counts once. A family's table begins at its entry of
    ``table_offsets`` in ``out``, the last member fastest. Rows are added in their order, so that weighted sums do not
    depend on who counts which family.
    """
    cells = np.empty(BLOCK, np.uint32)
    missing = np.empty(BLOCK, np.int16)
    lanes = np.zeros(LANES * SMALL, np.int32)
    for f in range(len(family_offsets) - 1):
        members = families[family_offsets[f] : family_offsets[f + 1]]
        table = out[table_offsets[f] : table_offsets[f + 1]]
        size = len(table)
        small = len(weights) == 0 and size <= SMALL
        if small:
            for i in range(LANES * size):
                lanes[i] = 0
        for start in range(first_row, last_row, BLOCK):
            n = min(BLOCK, last_row - start)
            gaps = _cells_of_block(codes, cardinalities, members, start, n, cells, missing)
            if gaps:
                for r in range(n):
                    if missing[r] >= 0:
                        table[cells[r]] += weights[start + r] if len(weights) else 1.0
            elif small:
                whole = n - n % LANES
                for r in range(0, whole, LANES):
                    for k in range(LANES):
                        lanes[k * size + cells[r + k]] += 1
                for r in range(whole, n):
                    lanes[cells[r]] += 1
            elif len(weights):
                heavy = weights[start : start + n]
                for r in range(n):
                    table[cells[r]] += heavy[r]
            else:
                for r in range(n):
                    table[cells[r]] += 1.0
        if small:
            for i in range(size):
                count = 0
                for k in range(LANES):
                    count += lanes[k * size + i]
                table[i] += count
