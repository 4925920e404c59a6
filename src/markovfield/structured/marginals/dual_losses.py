"""Hinges bounded by dual decomposition, with messages that stay from one call to the next (Meshi et al. 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.problem import Planes
from markovfield.learning.max_margin.restraint import Restraint
from markovfield.structured.core.batch import Batch
from markovfield.structured.marginals.local_messages_kernel import bounds, send
from markovfield.structured.marginals.relaxed import RelaxedDecoder
from markovfield.structured.oracles.oracles import AdditiveOracle

__all__ = ["DualLosses"]


class _Messages:
    """The messages of a batch, and the bound on its hinges that they make."""

    def __init__(self, batch: Batch, added: FloatArray, costs: FloatArray) -> None:
        s = batch.structure
        if batch.base is not None and np.isneginf(batch.base).any():
            raise ModelError("DualLossPrimalWeights takes no model that rules outputs out")
        sizes = s.cardinalities.astype(np.int64)[s.scopes]
        self._batch, self._weights = batch, costs[batch.example_of_factor]
        self._messages, self._beliefs = np.zeros(int(sizes.sum())), added.copy()
        self._offsets = np.cumsum(sizes) - sizes
        self._truth = np.bincount(batch.cells_read(batch.labels), self._weights, s.n_cells)
        self._owner = np.concatenate([batch.example_of_variable, batch.example_of_factor])

    def bounds(self, w: FloatArray, sweeps: int, temperature: float) -> tuple[FloatArray, FloatArray]:
        """Features of the truth less those expected, with costs, and bounds on hinges, after some more messages."""
        batch, s = self._batch, self._batch.structure
        pool = batch.pool(w)
        about = (
            s.scope_offsets, s.scopes, s.table_offsets, s.table_strides, s.cardinalities, s.value_offsets, pool,
            self._offsets, self._messages, self._beliefs,
        )  # fmt: skip
        send(*about, sweeps, temperature)
        values, counts = np.empty(s.n_variables + s.n_factors), np.zeros(s.n_cells)
        bounds(*about, self._weights, temperature, values, counts)
        heights = np.bincount(self._owner, values, batch.n_examples) - batch.scores(pool)
        return batch.adjoint(self._truth - counts), np.asarray(heights)


@dataclass(eq=False)
class DualLosses:
    """A problem whose hinges are bounded by messages, which every call makes a little better; see `BoundedProblem`."""

    problem: Any
    running: Running
    # Nothing is missed by a bound.
    exact: bool = True

    def __post_init__(self) -> None:
        self.n_weights: int = self.problem.n_weights
        self.costs: FloatArray = self.problem.costs
        self.shards: list[IntArray] = self.problem.shards
        self.restraint: Restraint | None = self.problem.restraint
        oracles: Sequence[Any] = getattr(self.problem, "problem", self.problem).oracles
        self._messages = []
        for oracle, blocks in zip(oracles, self.shards, strict=True):
            batch = getattr(oracle.decoder, "batch", None)
            if type(oracle) is not AdditiveOracle or isinstance(oracle.decoder, RelaxedDecoder):
                raise ModelError("DualLossPrimalWeights needs a loss that adds up, rescaling='margin', no relaxed=True")
            if not isinstance(batch, Batch):
                raise ModelError("DualLossPrimalWeights is for factor graphs: take GraphSSVM, or another solver")
            self._messages.append(_Messages(batch, oracle.costs, self.costs[blocks]))

    def planes(self, w: FloatArray, shard: int, *, losses: bool = True) -> Planes:
        """The highest plane of each example of a shard, by decoding."""
        found: Planes = self.problem.planes(w, shard, losses=losses)
        return found

    def bounds(self, w: FloatArray, shard: int, sweeps: int, temperature: float) -> tuple[FloatArray, FloatArray]:
        """A slope of the sum of the costs times bounds on the hinges of a shard, with a minus, and these bounds."""
        self.running.check()
        return self._messages[shard].bounds(w, sweeps, temperature)
