"""The hard zeros of tables as clauses: few partial configurations that cover all cells of -inf and no other.

Invariant: the configurations cover all cells of -inf and no others. Free to change: the order in which axes are freed;
fewer configurations are faster.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["copy_cells", "nogoods"]


@kernel
def copy_cells(base, sizes, strides, log_tables, cells):  # type: ignore[no-untyped-def]
    """A table's cells in order, last axis fastest."""
    arity = len(sizes)
    states = np.zeros(arity, np.int64)
    cell = base
    for k in range(len(cells)):
        cells[k] = log_tables[cell]
        a = arity - 1
        while a >= 0:
            states[a] += 1
            cell += strides[a]
            if states[a] < sizes[a]:
                break
            cell -= strides[a] * states[a]
            states[a] = 0
            a -= 1


@kernel
def _visit(cells, sizes, steps, states, free, at, mark, covered):  # type: ignore[no-untyped-def]
    """Walk over the cells that agree with ``states`` on all axes not free: ``mark`` them, or say if all are -inf."""
    arity = len(sizes)
    cell = np.int64(0)
    for a in range(arity):
        at[a] = 0
        if not free[a]:
            cell += steps[a] * states[a]
    while True:
        if mark:
            covered[cell] = True
        elif cells[cell] != -np.inf:
            return False
        a = arity - 1
        while a >= 0:
            if free[a]:
                at[a] += 1
                cell += steps[a]
                if at[a] < sizes[a]:
                    break
                cell -= steps[a] * at[a]
                at[a] = 0
            a -= 1
        if a < 0:
            return True


@kernel
def nogoods(cells, sizes):  # type: ignore[no-untyped-def]
    """Partial configurations that together are the cells of -inf, ``int64[count, arity]`` with -1 for a free axis.

    Each is made by freeing one axis after the other as long as all it covers is -inf.
    """
    arity = len(sizes)
    steps = np.ones(arity, np.int64)
    for a in range(arity - 2, -1, -1):
        steps[a] = steps[a + 1] * sizes[a + 1]
    covered = np.zeros(len(cells), np.bool_)
    free, states, at = np.zeros(arity, np.bool_), np.zeros(arity, np.int64), np.zeros(arity, np.int64)
    found, count = np.empty((4, arity), np.int64), 0
    for cell in range(len(cells)):
        if cells[cell] != -np.inf or covered[cell]:
            continue
        for a in range(arity):
            states[a] = cell // steps[a] % sizes[a]
            free[a] = False
        for a in range(arity):
            free[a] = True
            if not _visit(cells, sizes, steps, states, free, at, False, covered):
                free[a] = False
        _visit(cells, sizes, steps, states, free, at, True, covered)
        if count == len(found):
            more = np.empty((2 * count, arity), np.int64)
            more[:count] = found
            found = more
        for a in range(arity):
            found[count, a] = -1 if free[a] else states[a]
        count += 1
    return found[:count]
