"""Max-margin problems whose outputs have marginals: what solvers of distributions ask of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.component_counts import counts_by_component
from markovfield.inference.core.evidence import no_evidence
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.marginal_problem import Moments
from markovfield.learning.max_margin.max_margin_network import Polytope
from markovfield.learning.max_margin.problem import Planes, only_squares
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.form_batch import FormBatch
from markovfield.structured.core.inference import choose_inference
from markovfield.structured.marginals.augmented import with_losses
from markovfield.structured.marginals.polytope import polytope_of
from markovfield.structured.marginals.relaxed import RelaxedDecoder
from markovfield.structured.oracles.oracles import AdditiveOracle

__all__ = ["MarginalShards"]

NO_MARGINALS = "which ChainSSVM and other structures do not make: take solver='block_frank_wolfe', or GraphSSVM"


class _Shard(Protocol):
    """Cells of the examples of a shard, losses among what they score without weights."""

    batch: Any
    truth: FloatArray

    def sums(self, cells: FloatArray) -> tuple[float, FloatArray]:
        """log Z and expected counts of cells, summed over examples with their costs."""
        ...


class _Graphs:
    """Factor graphs, by exact inference."""

    def __init__(self, batch: Batch, costs: FloatArray, added: FloatArray, running: Running) -> None:
        self.batch, self._running = replace(with_losses(batch, added), weights=costs), running
        self.truth = self.batch.counts()
        s = self.batch.structure
        self._method: Any = choose_inference(s, self.batch.variable_offsets, running.quiet)
        self._alike = bool((costs == costs[0]).all())

    def sums(self, cells: FloatArray) -> tuple[float, FloatArray]:
        s, weights = self.batch.structure, self.batch.weights
        assert weights is not None
        graph = FactorGraph(s, cells, marks_hold=True)
        # Where examples weigh differently, they must not share cells, which takes longer.
        offsets = [0, s.n_variables] if self._alike else self.batch.variable_offsets
        found = counts_by_component(
            self._method, graph, no_evidence(s), offsets, running=self._running.quiet,
            weights=None if self._alike else weights,
        )  # fmt: skip
        graph.cache.clear()
        if found.answer.guarantee != "exact":
            raise ModelError("solvers by marginals need exact inference, and these graphs are too wide for it")
        if self._alike:
            return float(weights[0] * found.log_partition.sum()), weights[0] * found.counts
        return float(weights @ found.log_partition), found.counts


class _Forms:
    """Structures, by the dynamic program of their family."""

    def __init__(self, batch: FormBatch, costs: FloatArray, added: FloatArray, running: Running) -> None:
        base = added if batch.base is None else batch.base + added
        self.batch, self._running = replace(batch, base=base, weights=costs), running
        assert batch.parts is not None
        self.truth = batch.parts.counts(batch.family.n_cells, costs)

    def sums(self, cells: FloatArray) -> tuple[float, FloatArray]:
        found = self.batch.sums(cells, running=self._running.quiet)
        assert found.counts is not None
        assert self.batch.weights is not None
        if found.guarantee != "exact":
            raise ModelError(f"solvers by marginals need exact inference, and that of {self.batch.family.name} is not")
        return float(self.batch.weights @ found.log_partition), found.counts


@dataclass(eq=False)
class MarginalShards:
    """A problem of planes with the marginals of its outputs; see `MarginalProblem`.

    Parameters
    ----------
    problem
        Its oracles must have losses that add up.
    who
        The solver that needs marginals, for errors.
    """

    problem: Any
    running: Running
    who: str

    def __post_init__(self) -> None:
        self.n_weights: int = self.problem.n_weights
        self.costs: FloatArray = self.problem.costs
        self.shards: list[IntArray] = self.problem.shards
        only_squares(self.problem, f"solver {self.who!r}")
        self.restraint = None
        # Of a problem that is watched, the problem itself.
        self._oracles: Sequence[Any] = getattr(self.problem, "problem", self.problem).oracles
        for oracle in self._oracles:
            if type(oracle) is not AdditiveOracle:
                raise ModelError(f"solver {self.who!r} needs a loss that adds up, and rescaling='margin'")
            if isinstance(oracle.decoder, RelaxedDecoder):
                raise ModelError(f"solver {self.who!r} takes no relaxed=True, which is for solvers of planes")

    @cached_property
    def _parts(self) -> list[_Shard]:
        return [self._part(oracle, self.costs[own]) for oracle, own in zip(self._oracles, self.shards, strict=True)]

    def _part(self, oracle: Any, costs: FloatArray) -> _Shard:
        batch = getattr(oracle.decoder, "batch", None)
        if isinstance(batch, Batch):
            return _Graphs(batch, costs, oracle.costs, self.running)
        if isinstance(batch, FormBatch):
            return _Forms(batch, costs, oracle.costs, self.running)
        raise ModelError(f"solver {self.who!r} needs marginals, {NO_MARGINALS}")

    @property
    def exact(self) -> bool:
        """Whether every answer so far was proven to be the best."""
        return bool(self.problem.exact)

    def planes(self, w: FloatArray, shard: int, *, losses: bool = True) -> Planes:
        """The highest plane of each example of a shard."""
        found: Planes = self.problem.planes(w, shard, losses=losses)
        return found

    def cells(self, w: FloatArray, shard: int) -> FloatArray:
        """Scores of cells, with losses."""
        return np.asarray(self._parts[shard].batch.pool(w))

    def polytope(self, relaxation: str, max_cells: int) -> Polytope:
        """The marginals of factor graphs as equations."""
        batches: list[Any] = [getattr(oracle.decoder, "batch", None) for oracle in self._oracles]
        if not all(isinstance(batch, Batch) for batch in batches):
            raise ModelError(f"solver {self.who!r} is for factor graphs, {NO_MARGINALS}")
        return polytope_of(batches, [oracle.costs for oracle in self._oracles], self.costs, relaxation, max_cells)

    def moments(self, cells: FloatArray, shard: int) -> Moments:
        """What the distributions of numbers for cells expect."""
        part = self._parts[shard]
        log_partition, counts = part.sums(cells)
        differ = part.truth - counts
        return Moments(
            part.batch.adjoint(differ), -_product(differ, part.batch.base), log_partition - _product(part.truth, cells)
        )


def _product(counts: FloatArray, values: FloatArray) -> float:
    """Their inner product; cells that are ruled out are never read."""
    return float(counts @ np.where(np.isneginf(values), 0.0, values))
