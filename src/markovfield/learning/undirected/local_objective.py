"""Objectives of one variable at a time, given all others: pseudo-likelihood, ratio matching, probability flow.

Rows in which a variable's neighbours are the same are one case, with a weight for each of the variable's states: where
variables have few neighbours, an evaluation costs what the cases cost, however many rows there are.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.factors.structure import Structure
from markovfield.inference.core.running import Running
from markovfield.kernels.interpreter import small
from markovfield.learning.core.data import DataTable
from markovfield.learning.undirected.problem import Problem, site_layout
from markovfield.learning.undirected.sites_kernel import SiteLayout, local_loss

__all__ = ["Cases", "LocalLoss", "LocalObjective", "cases_of"]

# Cases are told apart by a table of all configurations of the neighbours where it has no more cells than this many
# times the rows.
TABLE_SHARE = 4
# Pieces that the variables are cut into, whatever the number of threads, and the work that makes a piece worth while.
PIECES, PIECE_WORK = 16, 2**17
# Each piece tallies its gradient for itself: all of them together have no more cells than there is work, nor than this,
# half a gigabyte.
MOST_CELLS = 2**26
# Evaluations that a minimisation may take: where all of them together are little work, kernels need not be compiled.
EVALUATIONS = 100.0


class Cases(NamedTuple):
    """For each variable, a row for each configuration of its neighbours, and the weights of its own states there.

    Attributes
    ----------
    offsets, rows
        Rows of variable v are ``rows[offsets[v] : offsets[v + 1]]``.
    weight_offsets, weights
        Those of its states, case after case, from ``weight_offsets[v]`` on.
    """

    offsets: IntArray
    rows: IntArray
    weight_offsets: IntArray
    weights: FloatArray


def cases_of(layout: SiteLayout, table: DataTable) -> Cases:
    """Collapse complete rows, variable by variable."""
    rows, weights = [], []
    for v in range(table.n_variables):
        at = layout.incident[layout.incident_offsets[v] : layout.incident_offsets[v + 1]]
        scopes = [layout.scopes[layout.scope_offsets[f] : layout.scope_offsets[f + 1]] for f in at]
        around = np.unique(np.concatenate([np.zeros(0, np.int32), *scopes]))
        found = _collapse(table, v, around[around != v])
        rows.append(found[0])
        weights.append(found[1].ravel())

    def ends(parts: list[Any]) -> IntArray:
        return np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)

    return Cases(ends(rows), np.concatenate(rows).astype(np.int64), ends(weights), np.concatenate(weights))


def _collapse(table: DataTable, v: int, around: IntArray) -> tuple[Any, Any]:
    """Representative rows and ``weights[case, state]``."""
    n_rows, n_states = table.n_rows, len(table.states[v])
    weights = np.ones(n_rows) if table.weights is None else table.weights
    own = table.codes[v].astype(np.int64)
    sizes = table.cardinalities[around].astype(object)
    size = 1
    for s in sizes:
        size *= int(s)
    if size < 2**62:
        key = np.zeros(n_rows, np.int64)
        for u, s in zip(around.tolist(), sizes, strict=True):
            key = key * int(s) + table.codes[u]
        if size * n_states <= TABLE_SHARE * n_rows + 64:
            total = np.bincount(key * n_states + own, weights, size * n_states).reshape(size, n_states)
            first = np.zeros(size, np.int64)
            first[key[::-1]] = np.arange(n_rows - 1, -1, -1)
            there = total.any(axis=1)
            return first[there], total[there]
        _, first, case = np.unique(key, return_index=True, return_inverse=True)
        if 2 * len(first) <= n_rows:
            total = np.bincount(case * n_states + own, weights, len(first) * n_states)
            return first, total.reshape(-1, n_states)
    each = np.zeros((n_rows, n_states))
    each[np.arange(n_rows), own] = weights
    return np.arange(n_rows), each


class LocalLoss:
    """A loss of the scores of a variable's states, summed over cases, as a function of the pool.

    Parameters
    ----------
    structure
        Factors of any kind but a noisy-max.
    states, cases
        ``int16[variables, rows]``, and which rows count how much for which variable.
    loss
        ``PSEUDO``, ``RATIO`` or ``FLOW`` of `sites_kernel`.
    """

    def __init__(self, structure: Structure, states: Any, cases: Cases, loss: int, running: Running) -> None:
        self.layout, self.plain, self.n_cells = site_layout(structure), structure.is_plain, structure.n_cells
        self.states, self.cases, self.loss, self.running = states, cases, loss, running
        degree = np.diff(self.layout.incident_offsets)
        each = np.diff(cases.offsets) * (degree + 2) * self.layout.cardinalities
        self.work = float(each.sum())
        tallies = min(self.work, MOST_CELLS) // max(1, self.n_cells)
        pieces = int(max(1, min(PIECES, self.work // PIECE_WORK, tallies)))
        done = np.concatenate([[0.0], np.cumsum(each)])
        borders = np.searchsorted(done, np.linspace(0, done[-1], pieces + 1))
        borders[0], borders[-1] = 0, len(degree)
        self.borders = np.unique(borders)
        self._tallies = np.zeros((len(self.borders) - 1, self.n_cells))

    def __call__(self, log_tables: FloatArray) -> tuple[float, FloatArray]:
        """The loss and its derivative by the pool."""
        tallies, values = self._tallies, np.zeros(len(self.borders) - 1)
        tallies[:] = 0.0
        pool = np.ascontiguousarray(log_tables).view()
        pool.flags.writeable = False  # one type of array, so that the kernel is compiled once

        def piece(i: int) -> int:
            values[i] = local_loss(
                self.layout, self.plain, pool, self.states, self.borders[i], self.borders[i + 1], *self.cases,
                self.loss, tallies[i],
            )  # fmt: skip
            return 0

        with small(EVALUATIONS * self.work):
            self.running.quiet.side_by_side([partial(piece, i) for i in range(len(values))])
        return float(values.sum()), tallies.sum(axis=0)


class LocalObjective:
    """The sum over rows and variables of a loss of the scores of a variable's states (Murphy 19.49 for ``PSEUDO``).

    Parameters
    ----------
    problem
        Complete data.
    loss
        ``PSEUDO``, ``RATIO`` or ``FLOW`` of `sites_kernel`.
    """

    def __init__(self, problem: Problem, loss: int) -> None:
        self.problem = problem
        cases = cases_of(site_layout(problem.structure), problem.complete)
        self.by_cells = LocalLoss(problem.structure, problem.complete.codes, cases, loss, problem.running)

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """The loss and its gradient, for each row."""
        model, total = self.problem.model, self.problem.total
        value, gradient = self.by_cells(model.log_tables(parameters))
        return value / total, model.moments(gradient) / total
