"""A log-linear model and the data it is fitted to: rows told apart, counts taken once, what looks wrong said."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.factors.factor_kinds import TABLE, caps
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.running import Running
from markovfield.inference.problem.domains_kernel import factors_of_variables
from markovfield.kernels.interpreter import small
from markovfield.learning.core.data import DataTable
from markovfield.learning.undirected.sites_kernel import SiteLayout, count_cells
from markovfield.models import LogLinear

__all__ = ["Problem", "cell_counts", "site_layout"]

# Rows counted between two looks at the clock, times factors.
STEP = 2**25
# With more factors than this many times the rows, one kernel call is quicker than NumPy calls for every factor.
FEW_FACTORS = 20


@remembered
def site_layout(structure: Structure) -> SiteLayout:
    """A structure with the factors of each variable."""
    s = structure
    with small(10.0 * len(s.scopes)):
        starts, factors = factors_of_variables(s.n_variables, s.scope_offsets, s.scopes)
    owner = np.repeat(np.arange(s.n_variables), np.diff(starts))
    new = np.ones(len(owner), np.bool_)
    new[1:] = (owner[1:] != owner[:-1]) | (factors[1:] != factors[:-1])
    variable, incident = owner[new], factors[new].astype(np.int64)
    offsets = offsets_of(np.bincount(variable, minlength=s.n_variables))
    own, other_offsets, others, strides = _entries(s, variable, incident)
    return SiteLayout(
        s.cardinalities,
        s.scope_offsets,
        s.scopes,
        s.kind,
        caps(s),
        s.table_offsets,
        s.table_strides,
        offsets,
        incident.astype(np.int32),
        own,
        other_offsets,
        others,
        strides,
    )


def _entries(s: Structure, variable: IntArray, incident: IntArray) -> tuple[IntArray, IntArray, Any, IntArray]:
    """For each variable and factor of its: the stride of its axis, and where the others and their strides are."""
    arity = np.diff(s.scope_offsets)[incident]
    entry = np.repeat(np.arange(len(incident)), arity)
    within = np.arange(len(entry)) - np.repeat(np.cumsum(arity) - arity, arity)
    axis = s.scope_offsets[incident][entry] + within
    mine = s.scopes[axis] == variable[entry]
    table = s.kind[incident][entry] == TABLE
    own = np.bincount(entry[mine & table], s.table_strides[axis[mine & table]], len(incident)).astype(np.int64)
    rest = ~mine & table
    counts = np.bincount(entry[rest], minlength=len(incident))
    other_offsets = offsets_of(counts)
    return own, other_offsets, s.scopes[axis[rest]].astype(np.int32), s.table_strides[axis[rest]].astype(np.int64)


def cell_counts(structure: Structure, table: DataTable, running: Running) -> FloatArray:
    """How often complete rows read each cell, weighted: ``float64[cells]``. About 2 ns for each row and axis."""
    counts = np.zeros(structure.n_cells)
    weights = np.zeros(0) if table.weights is None else table.weights
    if structure.is_plain and table.n_rows * FEW_FACTORS >= structure.n_factors:
        return _by_columns(structure, table, running)
    step = max(1, STEP // max(1, len(structure.scopes)))
    layout = site_layout(structure)
    for first in range(0, table.n_rows, step):
        running.check()
        last = min(first + step, table.n_rows)
        with small((last - first) * len(structure.scopes)):
            count_cells(layout, table.codes, np.array(weights), first, last, counts)
    return counts


def _by_columns(s: Structure, table: DataTable, running: Running) -> FloatArray:
    """The same for plain tables, factor by factor: as fast as a kernel where there are many rows."""
    counts = np.zeros(s.n_cells)
    for f in range(s.n_factors):
        if f % 1024 == 0:
            running.check()
        scope, strides = s.scope(f).tolist(), s.strides(f).tolist()
        cell = np.zeros(table.n_rows, np.int64)
        for v, stride in zip(scope, strides, strict=True):
            cell += table.codes[v].astype(np.int64) * stride
        seen = np.bincount(cell, table.weights)
        counts[s.table_offsets[f] : s.table_offsets[f] + len(seen)] += seen
    return counts


class Problem:
    """What every method of fitting an undirected model starts from.

    Attributes
    ----------
    model
        The log-linear form.
    complete, incomplete
        Distinct rows with nothing missing, and the others, with weights.
    total
        The weight of all rows.
    """

    def __init__(self, model: LogLinear, table: DataTable, running: Running) -> None:
        self.model, self.running = model, running
        self.structure = model.base_graph.structure
        self.table = table.distinct()
        whole = np.asarray((self.table.codes >= 0).all(axis=0))
        self.complete, self.incomplete = self.table.rows(whole), self.table.rows(~whole)
        self.total = table.total_weight
        self.n_rows = table.n_rows

    @cached_property
    def counts(self) -> FloatArray:
        """Counts of cells of the complete rows; an error where one of them is impossible."""
        counts = cell_counts(self.structure, self.complete, self.running)
        bad = np.flatnonzero((counts > 0) & (self.model.base_graph.log_tables == -np.inf))
        if len(bad):
            raise ModelError(
                f"the model gives probability zero to some row of the data: it rules out {self._told(int(bad[0]))}, "
                f"which the data have {counts[bad[0]]:g} times"
            )
        return counts

    def _told(self, cell: int) -> str:
        """The states that a cell is for, in the first table that reads it."""
        graph, s = self.model.base_graph, self.structure
        for f in np.flatnonzero(s.kind == TABLE).tolist():
            at = np.argwhere(graph.cells(f) == cell)
            if len(at):
                pairs = zip(s.scope(f).tolist(), at[0].tolist(), strict=True)
                names = graph.names
                states = ((v, names.state_names(v, int(s.cardinalities[v]))[k]) for v, k in pairs)
                return ", ".join(f"{names.variables[v]}={state!r}" for v, state in states)
        return f"what cell {cell} of its factors stands for"

    @cached_property
    def moments(self) -> FloatArray:
        """Moments of the features, summed over the complete rows."""
        return self.model.moments(self.counts)

    @cached_property
    def base_score(self) -> float:
        """What the base measure gives to the complete rows together."""
        base, counts = self.model.base_graph.log_tables, self.counts
        return float(base[counts > 0] @ counts[counts > 0])

    def need_complete(self, method: str, other: str) -> None:
        """Raise where values are missing."""
        if self.incomplete.n_rows:
            v = int(np.flatnonzero((self.incomplete.codes < 0).any(axis=1))[0])
            raise ModelError(
                f"method {method!r} needs complete data, but variable {self.table.variables[v]!r} has missing values; "
                f"use {other}"
            )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What looks wrong with the data: constant columns."""
        told = []
        for v, codes in enumerate(self.table.codes):
            seen = codes[codes >= 0]
            if len(seen) and len(self.table.states[v]) > 1 and (seen == seen[0]).all():
                told.append(repr(self.table.variables[v]))
        if not told:
            return ()
        more = f" and {len(told) - 5} more" if len(told) > 5 else ""
        return (
            f"{', '.join(told[:5])}{more} never change{'s' * (len(told) == 1)} in the data: without a penalty the "
            "likelihood has no finite maximum there",
        )
