"""Which factors are conditional distributions: a property of their numbers, checked whenever the numbers change.

A factor marked with a child sums to one over that child for every state of its other variables. Exact methods read a
mark as a permission: a barren variable is dropped with its distribution, a subtree of nothing but distributions sends a
message of ones. Marks are therefore kept only where they are true of the tables at hand (`true_marks`), where no
variable has two, and where they form no directed cycle (`sound_marks`): P(a | b) P(b | a) is no distribution.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.factors.factor_kinds import NOISY_MAX, TABLE, table_cells
from markovfield.factors.remembered import Shelf, Told, remembered

if TYPE_CHECKING:
    from markovfield.factors.structure import Structure

__all__ = ["ROW_TOLERANCE", "sound_marks", "true_marks"]

IntArray = npt.NDArray[Any]
# How far from one the sum of a row may be: the rounding of a division, a logarithm and a sum, and nothing more.
ROW_TOLERANCE = 1e-12
SPARE_CELLS = 10**6

# A structure that lost marks keeps the one that has them all; and that one, those that it became.
DECLARED: Told[Structure] = Told()
_WITH_MARKS: Shelf[Structure] = Shelf(1000)


def sound_marks(n_variables: int, scope_offsets: IntArray, scopes: IntArray, child: IntArray) -> IntArray:
    """The marks without a second one of the same variable, and without those of variables on a directed cycle."""
    marked = np.flatnonzero(child >= 0)
    if not len(marked):
        return child
    _, first = np.unique(child[marked], return_index=True)
    result = np.full_like(child, -1)
    marked = marked[np.sort(first)]
    result[marked] = child[marked]
    owner = np.repeat(result, np.diff(scope_offsets))
    arcs = (owner >= 0) & (scopes != owner)
    # Without a cycle, variables can be taken away one after the other once all their parents are gone.
    parents, children = scopes[arcs], owner[arcs]
    waiting = np.bincount(children, minlength=n_variables)
    order = np.argsort(parents, kind="stable")
    heads = children[order].tolist()
    at = np.searchsorted(parents[order], np.arange(n_variables + 1)).tolist()
    left = waiting.tolist()
    ready = np.flatnonzero(waiting == 0).tolist()
    while ready:
        v = ready.pop()
        for c in heads[at[v] : at[v + 1]]:
            left[c] -= 1
            if left[c] == 0:
                ready.append(c)
    cyclic = np.array(left, np.int64) > 0
    if cyclic.any():
        result[(result >= 0) & cyclic[np.maximum(result, 0)]] = -1
    return result


def true_marks(structure: Structure, log_tables: npt.NDArray[np.float64]) -> Structure:
    """The structure with the marks that hold for these tables; itself where all do.

    Costs a pass over the cells of marked factors. Structures with fewer marks are kept with the one they came from, so
    that plans are found again.
    """
    s = structure
    if not (s.child >= 0).any():
        return s
    cells, starts, factors, first_row = _rows(s)
    if not len(factors):
        return _with_marks(s, factors)
    # e is already too much for a probability, and sums of it do not overflow.
    with np.errstate(invalid="ignore"):
        sums = np.add.reduceat(np.exp(np.minimum(log_tables[cells], 1.0)), starts)
        holds = np.logical_and.reduceat(np.abs(sums - 1.0) <= ROW_TOLERANCE, first_row)
    return _with_marks(s, factors[holds])


def _with_marks(s: Structure, factors: IntArray) -> Structure:
    """The structure with the marks of these factors only."""
    if len(factors) == np.count_nonzero(s.child >= 0):
        return s
    kept = _WITH_MARKS.of(s)
    found: Structure | None = kept.get(factors.tobytes())
    if found is None:
        child = np.full(s.n_factors, -1, np.int32)
        child[factors] = s.child[factors]
        child.flags.writeable = False
        found = kept[factors.tobytes()] = replace(s, child=child)
        DECLARED.tell(found, s)
    return found


@remembered
def _rows(s: Structure) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cells of all marked factors row by row, where each row starts, the marked factors, and the first row of each."""
    pieces, lengths, first_row, rows = [], [], [], 0
    factors, room = [], float(8 * s.n_cells + SPARE_CELLS)
    for f in np.flatnonzero(s.child >= 0).tolist():
        card = int(s.cardinalities[s.child[f]])
        # Tables that read cells again and again could be of any size: beyond this nobody looks, and no mark is kept.
        if s.kind[f] == TABLE:
            room -= float(np.prod(s.cardinalities[s.scope(f)].astype(np.float64)))
            if room < 0:
                break
        if s.kind[f] == TABLE:
            cells = _with_child_last(s, f)
        elif s.kind[f] == NOISY_MAX:
            sizes = np.append(s.cardinalities[s.scope(f)[:-1]], 1).astype(np.int64) * card
            begin = int(s.table_offsets[f]) + s.strides(f)
            cells = np.concatenate([np.arange(a, a + n) for a, n in zip(begin.tolist(), sizes.tolist(), strict=True)])
        else:
            cells = table_cells(s, f).reshape(-1)
        factors.append(f)
        pieces.append(cells)
        first_row.append(rows)
        rows += len(cells) // card
        lengths.append(np.full(len(cells) // card, card))
    none = np.zeros(0, np.int64)
    ends = np.cumsum(np.concatenate([none, *lengths]))
    starts = np.concatenate([none, ends]) - np.concatenate([none, *lengths])
    cells = np.concatenate([none, *pieces])
    return cells, starts, np.array(factors, np.int64), np.array(first_row, np.int64)


def _with_child_last(s: Structure, f: int) -> IntArray:
    """Pool index of every cell of a table, the child's axis fastest."""
    cells = np.full(1, s.table_offsets[f], np.int64)
    scope, strides = s.scope(f).tolist(), s.strides(f).tolist()
    axes = sorted(range(len(scope)), key=lambda a: scope[a] == int(s.child[f]))
    for a in axes:
        cells = (cells[:, None] + strides[a] * np.arange(int(s.cardinalities[scope[a]]))).ravel()
    return cells
