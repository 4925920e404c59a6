"""A log-linear model and its rows as a structural SVM: each connected component of each row is an example."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import TABLE, cell_reader
from markovfield.factors.structure import Structure, frozen
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.core.method import MethodLike
from markovfield.inference.verbs import decode
from markovfield.learning.discriminative.truth import Rows
from markovfield.learning.max_margin.problem import Planes
from markovfield.learning.max_margin.restraint import Restraint
from markovfield.learning.undirected.problem import Problem

__all__ = ["AssignmentHinge"]


class AssignmentHinge:
    """Planes of ``1/2 |w|^2 + sum of costs times hinges``; see `markovfield.learning.max_margin.problem.HingeProblem`.

    The loss of an assignment is the number of variables that it gets wrong, of those that the data say something of.
    What the model scores by itself, without weights, counts as a loss too. A component whose variables are all known
    has no hinge and is no block.
    """

    def __init__(
        self, problem: Problem, rows: Rows, l2: float, l1: float, decoder: MethodLike, loss: float, rng: Any
    ) -> None:
        self.model, self.rows, self.decoder, self.rng = problem.model, rows, decoder, rng
        s = self.structure = problem.structure
        self.running = problem.running
        self.n_weights, self.exact = len(problem.model.parameters), True
        self.restraint = Restraint.of(l1 / l2, self.n_weights)
        self._component, self.n_components = _components(s)
        first = s.scopes[np.minimum(s.scope_offsets[:-1], max(len(s.scopes) - 1, 0))]
        self._owner = np.where(np.diff(s.scope_offsets) > 0, self._component[first], 0) if len(s.scopes) else first
        self._read = cell_reader(s)
        self._augmented = _with_own_cells(s)
        self._own = s.n_cells + offsets_of(s.cardinalities)
        self._loss = loss
        self._base = np.array(problem.model.base_graph.log_tables)
        self._true = [self._of(row) for row in rows.states]
        self.costs = np.repeat(rows.weights / l2, self.n_components)
        blocks = np.arange(len(self.costs), dtype=np.int64)
        self.shards: list[IntArray] = [
            blocks[i * self.n_components : (i + 1) * self.n_components] for i in range(len(rows))
        ]

    def _of(self, row: npt.NDArray[Any]) -> tuple[Any, FloatArray]:
        """Features of each component, sparse, and what it scores without weights."""
        cells = self._read(row.astype(np.int64))
        shape = (self.n_components, self.structure.n_cells)
        counts = csr_array((np.ones(len(cells)), (self._owner, cells)), shape=shape)
        scores = np.bincount(self._owner, self._base[cells], self.n_components)
        return counts @ self.model.operator, scores.astype(np.float64)

    def planes(self, w: FloatArray, shard: int, *, losses: bool = True) -> Planes:
        """The highest plane of each component of a row; without ``losses`` the assignment of highest score."""
        truth, seen = self.rows.states[shard], self.rows.seen[shard]
        added = np.zeros(int(self._own[-1]) - self.structure.n_cells)
        if losses:
            n = self.structure.cardinalities
            added += np.repeat(np.where(seen, self._loss, 0.0), n)
            added[self._own[:-1] + truth - self.structure.n_cells] = 0.0
        pool = np.concatenate([self.model.log_tables(w), added])
        graph = FactorGraph(self._augmented, pool, marks_hold=True)
        with without_warnings():
            best = decode(graph, method=self.decoder, rng=self.rng, n_jobs=self.running.n_jobs)
        self.exact = self.exact and best.optimal
        features, base = self._of(best.states)
        own, own_base = self._true[shard]
        apart = csr_array(own - features)
        apart.eliminate_zeros()
        wrong = np.where(seen & (best.states != truth), self._loss, 0.0)
        lost = np.bincount(self._component, wrong, self.n_components) + (base - own_base)
        if not self.exact:
            lost, apart = _at_least_truth(w, lost, apart)
        return Planes(
            self.shards[shard], apart.indptr.astype(np.int64), apart.indices.astype(np.int64), apart.data, lost
        )


def _at_least_truth(w: FloatArray, lost: FloatArray, apart: Any) -> tuple[FloatArray, Any]:
    """Where a decoder that proves nothing found less than the truth scores, the truth itself."""
    keep = (lost - apart @ w >= 0.0).astype(np.float64)
    kept = csr_array(diags_array(keep) @ apart)
    kept.eliminate_zeros()
    return lost * keep, kept


def _components(s: Structure) -> tuple[IntArray, int]:
    """The component of each variable, and how many there are."""
    if not s.n_variables:
        return np.zeros(0, np.int64), 0
    size = np.diff(s.scope_offsets)
    first = np.repeat(s.scopes[s.scope_offsets[:-1][size > 0]], size[size > 0])
    shape = (s.n_variables, s.n_variables)
    n, label = connected_components(csr_array((np.ones(len(first), np.int8), (first, s.scopes)), shape=shape), False)
    return label.astype(np.int64), int(n)


def _with_own_cells(s: Structure) -> Structure:
    """A structure with one more factor for each variable, whose cells are behind all others."""
    n = s.n_variables
    own = s.n_cells + offsets_of(s.cardinalities)
    axes = len(s.scopes)
    return Structure(
        s.cardinalities,
        frozen(np.concatenate([s.scope_offsets, axes + 1 + np.arange(n)]), np.int64),
        frozen(np.concatenate([s.scopes, np.arange(n)]), np.int32),
        frozen(np.concatenate([s.table_offsets, own[:-1]]), np.int64),
        frozen(np.concatenate([s.table_strides, np.ones(n)]), np.int64),
        int(own[-1]),
        frozen(np.concatenate([s.child, np.full(n, -1)]), np.int32),
        frozen(np.concatenate([s.kind, np.full(n, TABLE)]), np.int8),
        s.names,
    )
