"""Belief propagation laid out once and asked often: one row of evidence at a time, or thousands in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.belief_propagation.batch_kernel import LANES, flood_lanes, lane_beliefs
from markovfield.inference.belief_propagation.layout import SPREAD, loopy_graph, numbers, unary_of
from markovfield.inference.core.answers import Marginals
from markovfield.inference.core.batches import MarginalsBatch
from markovfield.inference.core.convergence import DAMPING, warn_not_converged
from markovfield.inference.core.evidence import Evidence, rows
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock

if TYPE_CHECKING:
    from markovfield.inference.belief_propagation.belief_propagation import BeliefPropagation

__all__ = ["CompiledPropagation", "PropagationBatch"]

# Messages of one tile of lanes above this many bytes leave the cache: then rows go one by one.
TILE_BYTES = 2**27


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PropagationBatch(MarginalsBatch):
    """Beliefs for many rows of evidence: as `MarginalsBatch`, and which rows converged, after how many sweeps."""

    converged: npt.NDArray[np.bool_]
    iterations: npt.NDArray[np.int64]


class CompiledPropagation:
    """What `BeliefPropagation.compile` gives: a layout for a fixed model, any evidence.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factors([["A", "B"], ["B", "C"], ["C", "A"]], [[3.0, 2.0], [2.0, 3.0]])
    >>> messages = mf.methods.BeliefPropagation().compile(net)
    >>> batch = messages.run_batch([[0, -1, -1], [-1, -1, 1]])
    >>> batch["B"].round(4).tolist(), batch.converged.tolist()
    ([[0.619, 0.381], [0.381, 0.619]], [True, True])
    """

    def __init__(self, graph: FactorGraph, method: BeliefPropagation) -> None:
        self.graph, self.method = graph, method
        if method.schedule in ("tree", "residual"):
            raise ModelError(
                f"BeliefPropagation.compile takes schedules 'auto', 'synchronous' and 'sequential', "
                f"got {method.schedule!r}"
            )
        self._plain = graph.to_tables()
        self._g, self._known = loopy_graph(self._plain.structure), numbers(self._plain)

    def __repr__(self) -> str:
        return f"CompiledPropagation({self.graph.n_variables} variables, {len(self._g.layout.edge_variable)} edges)"

    def run(self, evidence: Mapping[Any, Any] | None = None) -> Marginals:
        """All marginals and the Bethe value under this evidence."""
        return self.method.marginals(self.graph, Evidence.parse(self.graph.structure, evidence), running=Running())

    def _batchable(self) -> bool:
        """Whether lanes in linear space are safe, and small enough for the cache."""
        g, known = self._g, self._known
        unary = unary_of(self._plain, Evidence.parse(self._plain.structure, None))
        degree = np.diff(g.layout.variable_offsets)
        # Lanes are not scaled on the way, so each message may also take the log of its length.
        spread = known.spread + degree * np.log(np.diff(g.layout.value_offsets))
        if unary.log_components(g, replace(known, spread=spread)).any() or known.spread.max(initial=0.0) > SPREAD:
            return False
        return 16.0 * LANES * float(g.layout.message_offsets[-1]) <= TILE_BYTES

    def run_batch(
        self, evidence: npt.ArrayLike, *, impossible: str = "raise", n_jobs: int | None = None
    ) -> PropagationBatch:
        """Beliefs and Bethe values for every row of a frame, or of ``int[rows, n_variables]`` indices, -1 for missing.

        Rows go through side by side, synchronously, until each has converged. ``impossible="nan"`` gives rows found to
        be of probability zero a log_partition of -inf and marginals of nan, where the default raises an error.
        """
        start = clock()
        if impossible not in ("raise", "nan"):
            raise ModelError(f"impossible must be 'raise' or 'nan', got {impossible!r}")
        given = rows(self.graph.structure, evidence)
        n_rows, n_values = len(given), int(self._plain.structure.value_offsets[-1])
        values, value = np.empty((n_rows, n_values)), np.zeros(n_rows)
        converged, iterations = np.zeros(n_rows, np.bool_), np.zeros(n_rows, np.int64)
        alone = np.ones(n_rows, np.bool_)
        worst = np.zeros(n_rows)
        try:
            unary = self._batchable() and unary_of(self._plain, Evidence.parse(self._plain.structure, None))
        except ImpossibleEvidenceError:
            unary = False
        if unary:
            out = (values, value, converged, iterations, alone, worst)
            tiles = range(0, n_rows, LANES)
            running = Running(n_jobs)
            running.side_by_side([partial(self._tile, unary, given[a : a + LANES], a, out) for a in tiles])
            value += float(self._plain.log_tables[self._g.constants].sum())
        n_own = int(self.graph.structure.value_offsets[-1])
        for row in np.flatnonzero(alone).tolist():
            self._run_alone(given[row], row, values[:, :n_own], value, converged, iterations)
        dead = np.flatnonzero(value == -np.inf)
        if len(dead) and impossible == "raise":
            raise ImpossibleEvidenceError(
                f"the model gives probability zero to the evidence of row {dead[0]}: "
                f"{Evidence(given[dead[0]]).describe(self.graph.structure)}"
            )
        values[dead] = np.nan
        converged[dead] = True
        if not converged.all() and (~alone & ~converged).any():
            warn_not_converged(
                self.method.name, int(iterations.max()), float(worst.max()), self.method.tolerance, DAMPING
            )
        return PropagationBatch(
            graph=self.graph,
            values=np.ascontiguousarray(values[:, :n_own]),
            log_partition=value,
            guarantee="approximate",
            method=self.method.name,
            seconds=clock() - start,
            converged=converged,
            iterations=iterations,
        )

    def _tile(self, unary: Any, given: npt.NDArray[np.int32], at: int, out: tuple[Any, ...]) -> int:
        """One tile of at most `LANES` rows."""
        values, value, converged, iterations, alone, worst = out
        g, known, method = self._g, self._known, self.method
        n, offsets = len(given), self._plain.structure.value_offsets
        mine = np.repeat(unary.linear[:, None], LANES, axis=1)
        for lane in range(n):
            seen = np.flatnonzero(given[lane] >= 0)
            for v in seen.tolist():
                column = mine[offsets[v] : offsets[v + 1], lane]
                kept = column[given[lane, v]]
                column[:] = 0.0
                column[given[lane, v]] = kept
        counts = np.diff(g.layout.message_offsets)
        incoming = np.repeat(np.repeat(1.0 / counts, counts)[:, None], LANES, axis=1)
        outgoing = np.empty_like(incoming)
        sweeps, residual = np.zeros(LANES, np.int64), np.zeros(LANES)
        flags = np.zeros(LANES, np.uint8)
        flood_lanes(
            g.layout, known.linear, mine, outgoing, incoming, method.damping, method.tolerance, method.max_iterations,
            known.floor, sweeps, residual, flags,
        )  # fmt: skip
        beliefs, total = np.zeros((len(mine), LANES)), np.zeros(LANES)
        lane_beliefs(
            g.layout,
            known.linear,
            mine,
            unary.scales,
            known.shift,
            outgoing,
            incoming,
            known.floor,
            beliefs,
            total,
            flags,
        )
        rows_here = slice(at, at + n)
        values[rows_here] = beliefs[:, :n].T
        value[rows_here] = total[:n]
        iterations[rows_here] = sweeps[:n]
        worst[rows_here] = residual[:n]
        converged[rows_here] = residual[:n] <= method.tolerance
        # What got too small, or contradicted itself, is run by itself, where both are looked at closely.
        alone[rows_here] = flags[:n] != 0
        return 0

    def _run_alone(
        self,
        given: npt.NDArray[np.int32],
        row: int,
        values: FloatArray,
        value: FloatArray,
        converged: npt.NDArray[np.bool_],
        iterations: npt.NDArray[np.int64],
    ) -> None:
        try:
            answer = replace(self.method, schedule="synchronous").marginals(
                self.graph, Evidence(given), running=Running()
            )
        except ImpossibleEvidenceError:
            value[row] = -np.inf
            return
        values[row], value[row] = answer.values, answer.log_partition
        converged[row], iterations[row] = answer.converged, answer.iterations
