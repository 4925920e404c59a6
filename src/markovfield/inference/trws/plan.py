"""What sequential message passing needs to know of a problem: factors, tables, the order of visits and their roles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.problem.pairwise import Pairwise, pairwise
from markovfield.inference.trws.passes_kernel import COLLECT, PUSH, PairTables, SequentialLayout, fill_pair_tables, peel

__all__ = ["SequentialPlan", "sequential_plan"]


@dataclass(frozen=True, eq=False)
class SequentialPlan:
    """Everything about the passes that depends on the structure only.

    Attributes
    ----------
    layout, later
        As the first pass reads it, and as all others do: what hangs on the rest by trees has by then said it all.
    pairs
        Distinct tables of two variables, without their numbers.
    order
        ``int64[n]``: the variables taken off as leaves, then the ``n - n_peeled`` others as they are numbered.
    work
        ``int64[n + 1]``: cells that a pass reads, added up along the order.
    """

    layout: SequentialLayout
    later: SequentialLayout
    pairs: PairTables
    order: IntArray
    n_peeled: int
    work: IntArray
    most_states: int
    _spare: list[PairTables] = field(default_factory=list, init=False, repr=False)

    @property
    def n_messages(self) -> int:
        """How many numbers all messages have."""
        return int(self.layout.message_offsets[-1])

    def filled(self, log_tables: FloatArray) -> PairTables:
        """The tables of two variables, with their numbers."""
        p = self.pairs
        rows, n = int(p.row_starts[-1]), len(p.rows)
        tables = p._replace(
            cells=np.empty(int(p.starts[-1])),
            first=np.empty(rows, np.int32),
            last=np.empty(rows, np.int32),
            floor=np.empty(n),
            kind=np.empty(n, np.int8),
            near=np.empty(rows),
            cap=np.zeros(n, np.int64),
        )
        fill_pair_tables(tables, log_tables)
        return tables

    @contextmanager
    def tables(self, log_tables: FloatArray) -> Iterator[PairTables]:
        """The same in memory that is kept for the next run (one for each at a time)."""
        try:
            tables = self._spare.pop()
            fill_pair_tables(tables, log_tables)
        except IndexError:
            tables = self.filled(log_tables)
        try:
            yield tables
        finally:
            self._spare.append(tables)


@remembered
def sequential_plan(s: Structure) -> SequentialPlan:
    """The plan of a structure of plain tables; made once and kept with it. Linear in the axes and distinct tables."""
    n = s.n_variables
    cards = s.cardinalities.astype(np.int64)
    view = pairwise(s)
    arity, large = view.arity, view.large
    low, high, pair_table, pairs = _pairs(s, view)
    counts = np.concatenate([np.full(len(low), 2, np.int64), arity[large]])
    offsets = offsets_of(counts)
    scopes, strides = np.empty(int(offsets[-1]), np.int64), np.zeros(int(offsets[-1]), np.int64)
    scopes[0 : 2 * len(low) : 2], scopes[1 : 2 * len(low) : 2] = low, high
    axes = np.repeat(s.scope_offsets[large] - offsets[len(low) : -1], arity[large]) + np.arange(
        2 * len(low), offsets[-1]
    )
    scopes[2 * len(low) :], strides[2 * len(low) :] = s.scopes[axes], s.table_strides[axes]
    bases = np.concatenate([np.zeros(len(low), np.int64), s.table_offsets[large]])
    tables = np.concatenate([pair_table, np.full(len(large), -1, np.int64)])
    factor = np.repeat(np.arange(len(counts)), counts)
    by_variable = np.argsort(scopes, kind="stable")
    variable_offsets = offsets_of(np.bincount(scopes, minlength=n))
    peeled, taken, role = peel(variable_offsets, by_variable, factor, offsets, scopes)
    order = np.concatenate([peeled, np.flatnonzero(~taken)])
    first, later, weight = _roles(n, offsets, scopes, factor, taken, role)
    layout = SequentialLayout(
        s.value_offsets,
        variable_offsets,
        by_variable,
        factor,
        offsets_of(cards[scopes]),
        first,
        offsets,
        scopes,
        tables,
        bases,
        strides,
        weight,
    )
    logs = np.zeros(len(counts))
    np.add.at(logs, factor, np.log(cards[scopes]))
    cells = np.exp(logs)
    work = np.bincount(scopes, cells[factor] + 8.0, minlength=n)[order]
    return SequentialPlan(
        layout,
        layout._replace(roles=later),
        pairs,
        order,
        len(peeled),
        offsets_of(np.minimum(work, 2.0**40)),
        int(cards.max(initial=1)),
    )


def _pairs(s: Structure, view: Pairwise) -> tuple[IntArray, IntArray, IntArray, PairTables]:
    """Lower and higher variable of each factor of two, its table, and the distinct tables."""
    pairs, low, high, one, two = view.pairs, view.low, view.high, view.low_stride, view.high_stride
    base = s.table_offsets[pairs]
    rows, columns = s.cardinalities[low].astype(np.int64), s.cardinalities[high].astype(np.int64)
    key = np.stack([rows, columns, one, two, base])
    ordered = np.lexsort(key)
    fresh = np.ones(len(pairs), np.bool_)
    fresh[1:] = (key[:, ordered[1:]] != key[:, ordered[:-1]]).any(axis=0)
    table = np.empty(len(pairs), np.int64)
    table[ordered] = np.cumsum(fresh) - 1
    chosen = ordered[fresh]
    rows, columns = rows[chosen], columns[chosen]
    no_cells, no_rows = np.zeros(0), np.zeros(0, np.int32)
    tables = PairTables(
        rows, columns, offsets_of(2 * rows * columns), offsets_of(rows + columns),
        base[chosen], one[chosen], two[chosen],
        no_cells, no_rows, no_rows, no_cells, np.zeros(0, np.int8), no_cells, np.zeros(0, np.int64),
    )  # fmt: skip
    return low, high, table, tables


def _roles(
    n: int,
    offsets: IntArray,
    scopes: IntArray,
    factor: IntArray,
    taken: npt.NDArray[np.bool_],
    role: npt.NDArray[np.int8],
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8], FloatArray]:
    """What each axis does in the first pass and in the later ones, and the share that each variable pushes.

    Among the variables left, the first of a factor does not collect forwards and the last does not push; backwards it
    is the other way round. A variable pushes 1 / (the larger of the numbers of factors it is not first and not last in)
    to each (Kolmogorov 2006); one that was taken off pushes everything to the only factor it had left.
    """
    core = ~taken[scopes]
    rank = np.where(core, scopes, -1)
    m = len(offsets) - 1
    last = np.full(m, -1, np.int64)
    np.maximum.at(last, factor, rank)
    first = np.full(m, n, np.int64)
    np.minimum.at(first, factor, np.where(core, scopes, n))
    joined = core & (first < last)[factor]
    inward, outward = joined & (scopes != first[factor]), joined & (scopes != last[factor])
    later = (COLLECT * inward + PUSH * outward + 4 * COLLECT * outward + 4 * PUSH * inward).astype(np.int8)
    hanging = np.where(joined, 0, role * 1)
    hanging = np.where(taken[scopes], role, hanging).astype(np.int8)
    collects, pushes = np.bincount(scopes[inward], minlength=n), np.bincount(scopes[outward], minlength=n)
    return later | hanging, later, 1.0 / np.maximum(1, np.maximum(collects, pushes))
