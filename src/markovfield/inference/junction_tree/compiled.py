"""A junction tree planned once and asked often: one row of evidence at a time, or thousands in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import Marginals
from markovfield.inference.core.batches import MarginalsBatch
from markovfield.inference.core.evidence import Evidence, rows
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.batch_kernel import LANES, Program, cell_counts, run_rows, unroll
from markovfield.inference.junction_tree.propagate import LN2, propagate
from markovfield.inference.problem.potentials_kernel import enter_states
from markovfield.inference.problem.problem import Problem
from markovfield.kernels.compilations import clock
from markovfield.kernels.interpreter import small

if TYPE_CHECKING:
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

__all__ = ["CompiledJunctionTree"]

# Above this many clique states rows are run one by one: their products no longer stay in cache.
BATCH_STATES = 2**22
# Counts are tallied in this many pieces of rows.
TALLIES = 16
_NO_WEIGHTS, _NO_VALUES = np.zeros(0), np.zeros((0, 0))


def _status_zero(task: Callable[..., None], *arguments: Any) -> int:
    """Run a kernel that cannot fail, as `Running` wants its tasks."""
    task(*arguments)
    return 0


class CompiledJunctionTree:
    """What `JunctionTree.compile` gives: a fixed plan for a fixed model, any evidence.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factors([["A", "B"], ["B", "C"]], [[3.0, 1.0], [1.0, 3.0]])
    >>> tree = mf.methods.JunctionTree.compile(net)
    >>> tree.run({"A": 0})["C"].round(4).tolist()
    [0.625, 0.375]
    >>> tree.run_batch([[0, -1, -1], [-1, -1, 1]])["B"].round(4).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    def __init__(self, graph: FactorGraph, method: JunctionTree) -> None:
        self.graph, self.method = graph, method
        nothing = Evidence.parse(graph.structure, None)
        self._problem = method.prepare(graph, nothing)
        self.plan = method.plan(self._problem)
        self._offsets = self.plan.value_offsets
        self._batch: tuple[Program, float] | None = None
        # Original state to reduced state, -1 where hard zeros rule it out.
        reduced = self._problem.reduced
        self._reduced_state: npt.NDArray[np.int32] | None = None
        if reduced is not None:
            at = self._problem.as_tables.structure.value_offsets
            table = np.full(int(at[-1]), -1, np.int32)
            counts = self._problem.structure.cardinalities
            local = np.arange(len(reduced.states)) - np.repeat(reduced.state_offsets[:-1], counts)
            table[np.repeat(at[:-1], counts) + reduced.states] = local
            self._reduced_state, self._original_at = table, at

    def __repr__(self) -> str:
        return f"CompiledJunctionTree({self.graph.n_variables} variables, {self.plan.describe()})"

    def _entered(self, evidence: Evidence) -> Problem:
        """The problem with this evidence as likelihoods; the structure stays."""
        base = self._problem
        if not evidence:
            return base
        offsets = self._offsets
        likelihood = np.zeros(int(offsets[-1]))
        active = np.zeros(base.structure.n_variables, np.bool_)
        reduced = base.reduced
        for v, vector in evidence.likelihoods:
            kept = vector
            if reduced is not None:
                kept = vector[reduced.states[reduced.state_offsets[v] : reduced.state_offsets[v + 1]]]
            likelihood[offsets[v] : offsets[v + 1]] = kept
            active[v] = True
        states = evidence.states
        if len(states) < base.structure.n_variables:
            states = np.concatenate([states, np.full(base.structure.n_variables - len(states), -1, np.int32)])
        if self._reduced_state is not None:
            mapped = self._reduced_state[self._original_at[:-1] + np.maximum(states, 0)]
            states = np.where(states < 0, -1, np.where(mapped < 0, -2, mapped)).astype(np.int32)
        if states.flags.writeable:
            states.flags.writeable = False
        possible = enter_states(states, offsets, likelihood, active)
        problem = replace(base, evidence=evidence, likelihood=likelihood, active=active)
        if not possible:
            raise problem.impossible()
        return problem

    def run(self, evidence: Mapping[Any, Any] | None = None) -> Marginals:
        """All marginals and log Z under this evidence; nothing is planned anew."""
        from markovfield.inference.junction_tree.junction_tree import answer

        running = Running()
        problem = self._entered(Evidence.parse(self.graph.structure, evidence))
        return answer(self.method, problem, propagate(self.plan, problem, running=running), running)

    def run_batch(
        self, evidence: npt.ArrayLike, *, impossible: str = "raise", n_jobs: int | None = None
    ) -> MarginalsBatch:
        """All marginals and log Z for every row of a frame, or of ``int[rows, n_variables]`` indices, -1 for missing.

        ``impossible="nan"`` gives rows of probability zero a log_partition of -inf and marginals of nan, where the
        default raises an error that names the first of them.
        """
        start = clock()
        if impossible not in ("raise", "nan"):
            raise ModelError(f"impossible must be 'raise' or 'nan', got {impossible!r}")
        given = rows(self.graph.structure, evidence)
        log_partition, values = self._propagate_rows(given, n_jobs)
        dead = np.flatnonzero(log_partition == -np.inf)
        if len(dead):
            if impossible == "raise":
                row = Evidence(given[dead[0]])
                raise ImpossibleEvidenceError(
                    f"the model gives probability zero to the evidence of row {dead[0]}: "
                    f"{row.describe(self.graph.structure)}"
                )
            values[dead] = np.nan
        seconds = clock() - start
        return MarginalsBatch(graph=self.graph, values=values, log_partition=log_partition, seconds=seconds)

    def _reduced_rows(self, given: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Rows in states of the reduced problem, and which of them observe a state that hard zeros rule out."""
        base, states = self._problem, given
        removed: npt.NDArray[np.bool_] = np.zeros(len(given), np.bool_)
        if base.structure.n_variables > given.shape[1]:
            extra = np.full((len(given), base.structure.n_variables - given.shape[1]), -1, np.int32)
            states = np.concatenate([given, extra], axis=1)
        if self._reduced_state is not None:
            mapped = self._reduced_state[self._original_at[:-1] + np.maximum(states, 0)]
            removed = np.any((mapped < 0) & (states >= 0), axis=1)
            states = np.where(states >= 0, mapped, -1).astype(np.int32)
        states = np.ascontiguousarray(states)
        states.flags.writeable = False
        return states, removed

    @property
    def _batchable(self) -> bool:
        return self._problem.potentials.safe and 2.0**self.plan.log2_states <= BATCH_STATES

    def _propagate_rows(self, given: npt.NDArray[np.int32], n_jobs: int | None) -> tuple[FloatArray, FloatArray]:
        base, plan = self._problem, self.plan
        n_rows = len(given)
        states, removed = self._reduced_rows(given)
        log_partition = np.empty(n_rows)
        values = np.empty((n_rows, int(self._offsets[-1])))
        suspect = np.ones(n_rows, np.bool_)
        if self._batchable:
            work = self._work(n_rows)
            with work:
                program, scale = self._unrolled()
            before: Any = (plan.layout, program, states)
            after: Any = (self._offsets, base.structure.cardinalities, log_partition, values, suspect, _NO_WEIGHTS)
            # Tiles are cut at fixed rows, whatever the number of threads.
            step = LANES * 64
            tasks = [
                partial(_status_zero, run_rows, *before, a, min(a + step, n_rows), *after, np.zeros(0))
                for a in range(0, n_rows, step)
            ]
            with work:
                Running(n_jobs).side_by_side(tasks)
            log_partition += scale
        for row in np.flatnonzero(suspect & ~removed).tolist():
            try:
                result = propagate(plan, self._entered(Evidence(given[row])))
            except ImpossibleEvidenceError:
                log_partition[row] = -np.inf
                continue
            log_partition[row] = result.value
            values[row] = result.marginals
        log_partition[removed] = -np.inf
        return log_partition, self._expand(values)

    def expected_counts(
        self, evidence: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, running: Running | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """log Z of every row of evidence, and the expected count of every cell added up over the rows.

        This is the E step of learning with missing values: the sum over rows of their expected sufficient statistics.

        Parameters
        ----------
        evidence
            ``int[rows, n_variables]`` state indices, -1 for missing.
        weights
            ``float[rows]``, how often each row counts; once when None.
        running
            Threads, time limit and callback. The rows are cut at fixed places: results do not depend on the threads.

        Returns
        -------
        log_partition, counts
            ``float64[rows]`` (-inf for a row of probability zero, which adds nothing to the counts) and
            ``float64[cells]``.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.BayesianNetwork({"A": 2, "B": 2})
        >>> net.add_cpt("A", [], [0.5, 0.5])
        >>> net.add_cpt("B", ["A"], [[0.9, 0.1], [0.2, 0.8]])
        >>> _, counts = mf.methods.JunctionTree.compile(net).expected_counts([[0, 1], [-1, 1]])
        >>> counts.round(3).tolist()
        [1.111, 0.889, 0.0, 1.111, 0.0, 0.889]
        """
        running = Running() if running is None else running
        given = rows(self.graph.structure, evidence)
        n_rows = len(given)
        weight = np.ones(n_rows) if weights is None else np.ascontiguousarray(weights, np.float64)
        if weight.shape != (n_rows,):
            raise ModelError(f"expected_counts needs one weight for each of {n_rows} rows, got shape {weight.shape}")
        states, removed = self._reduced_rows(given)
        log_partition, suspect = np.empty(n_rows), np.ones(n_rows, np.bool_)
        counts = np.zeros(self._problem.structure.n_cells)
        if self._batchable and n_rows:
            with self._work(n_rows):
                counts = self._tallied(states, weight, log_partition, suspect, running)
        for row in np.flatnonzero(suspect & ~removed).tolist():
            try:
                problem = self._entered(Evidence(given[row]))
                result = propagate(self.plan, problem, counts=True, running=running)
            except ImpossibleEvidenceError:
                log_partition[row] = -np.inf
                continue
            log_partition[row] = result.value
            counts += weight[row] * result.counts
        log_partition[removed] = -np.inf
        return log_partition, self._problem.counts(counts)

    def _tallied(
        self,
        states: npt.NDArray[np.int32],
        weight: FloatArray,
        log_partition: FloatArray,
        suspect: npt.NDArray[np.bool_],
        running: Running,
    ) -> FloatArray:
        """Expected counts of the reduced pool by tiles of rows; fills ``log_partition`` and ``suspect``."""
        layout, structure, n_rows = self.plan.layout, self._problem.structure, len(states)
        program, scale = self._unrolled()
        # Few pieces, because each has a tally of its own; their number depends on the rows alone.
        pieces = min(TALLIES, -(-n_rows // LANES))
        borders = [LANES * (i * -(-n_rows // LANES) // pieces) for i in range(pieces)] + [n_rows]
        tallies = np.zeros((pieces, int(program.offsets[-1])))
        tasks = [
            partial(
                _status_zero, run_rows, layout, program, states, borders[i], borders[i + 1], self._offsets,
                structure.cardinalities, log_partition, _NO_VALUES, suspect, weight, tallies[i],
            )
            for i in range(pieces)
        ]  # fmt: skip
        running.side_by_side(tasks)
        log_partition += scale
        counts = np.zeros(structure.n_cells)
        cell_counts(layout, program.offsets, tallies.sum(axis=0), counts)
        whole = float(weight[(log_partition > -np.inf) & ~suspect].sum())
        np.add.at(counts, structure.table_offsets[layout.home < 0], whole)
        return counts

    def with_tables(self, log_tables: npt.ArrayLike) -> CompiledJunctionTree:
        """The same tree for other log-potentials of the same structure; needs a method that keeps all states.

        Nothing is planned anew, unless tables that were conditional distributions no longer are: what the plan spared
        because of that must then be done. With ``propagate_zeros`` the tree depends on where the zeros are, so it must
        be off.
        """
        if self._problem.reduced is not None or self.method.propagate_zeros:
            raise ModelError("with_tables needs a tree compiled by JunctionTree(propagate_zeros=False)")
        graph = self.graph.with_tables(np.asarray(log_tables, np.float64))
        if graph.structure is not self.graph.structure:
            return CompiledJunctionTree(graph, self.method)
        other = copy(self)
        other.graph, other._batch = graph, None
        other._problem = self.method.prepare(graph, self._problem.evidence)
        return other

    def _work(self, n_rows: int) -> small:
        """Rows run in lanes, full or not, and the plain Python of a lane is slow."""
        return small(3.0 * LANES * -(-n_rows // LANES) * self.plan.operations)

    def _unrolled(self) -> tuple[Program, float]:
        """Products of factors per clique state, formed once, and the log of what was taken out of them."""
        if self._batch is None:
            base, lay = self._problem, self.plan.layout
            pool = base.potentials
            *arrays, exponent = unroll(lay, pool.linear, pool.low, pool.high)
            outside = base.structure.table_offsets[lay.home < 0]
            scale = exponent * LN2 + float(pool.log_tables[outside].sum())
            scale += pool.shift * int(np.count_nonzero(lay.home >= 0))
            self._batch = (Program._make(arrays), scale)
        return self._batch

    def _expand(self, values: FloatArray) -> FloatArray:
        """Reduced states back among all states, for every row."""
        base = self._problem
        if base.reduced is not None:
            out = np.zeros((len(values), int(self._original_at[-1])))
            counts = base.structure.cardinalities
            out[:, np.repeat(self._original_at[:-1], counts) + base.reduced.states] = values
            values = out
        n_values = int(self.graph.structure.cardinalities.sum())
        return values if values.shape[1] == n_values else np.ascontiguousarray(values[:, :n_values])
