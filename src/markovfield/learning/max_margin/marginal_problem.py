"""Structural SVMs by marginals: distributions over outputs, as numbers for cells, and what they expect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.kernels.compilations import clock
from markovfield.learning.max_margin.problem import HingeProblem, Watch

__all__ = ["MarginalProblem", "MarginalWatch", "Moments"]


class Moments(NamedTuple):
    """What distributions over the outputs of blocks expect, each block with its cost as its factor, summed.

    Attributes
    ----------
    features
        ``float64[n_weights]``: features of the truth less those expected.
    loss
        The loss expected.
    log_partition
        log Z less the score of the truth.
    """

    features: FloatArray
    loss: float
    log_partition: float

    def mixed(self, other: Moments, share: float) -> Moments:
        """Of mixtures of distributions, ``share`` being that of the other ones; log Z has no meaning then."""
        features = self.features + share * (other.features - self.features)
        return Moments(features, self.loss + share * (other.loss - self.loss), np.nan)

    @property
    def dual(self) -> float:
        """``loss - 1/2 |features|^2``, of distributions for all blocks: never above the optimum."""
        return self.loss - 0.5 * float(self.features @ self.features)


class MarginalProblem(HingeProblem, Protocol):
    """A problem of planes whose outputs are made of cells, so that there are distributions over them.

    A vector of numbers for the cells of a shard stands for the distribution of each block with log-probabilities that
    are sums over the cells of an output, but for a constant. Multiplicative updates of all outputs are additions to it.
    """

    def cells(self, w: FloatArray, shard: int) -> FloatArray:
        """Scores of cells at some weights, with losses: of an output they add up to its height, but for a constant."""
        ...

    def moments(self, cells: FloatArray, shard: int) -> Moments:
        """What the distributions of numbers for the cells of a shard expect."""
        ...


@dataclass(eq=False)
class MarginalWatch(Watch):
    """A watch that counts inference as calls of the oracle too."""

    problem: MarginalProblem = field()

    def moments(self, cells: FloatArray, shard: int) -> Moments:
        """What a shard expects."""
        self.look()
        started = clock()
        found = self.problem.moments(cells, shard)
        self.oracle_seconds += clock() - started
        self.calls += len(self.problem.shards[shard])
        return found

    def all_moments(self, cells: list[FloatArray]) -> Moments:
        """What all shards expect together."""
        found = [self.moments(own, shard) for shard, own in enumerate(cells)]
        return Moments(
            np.sum([one.features for one in found], axis=0),
            float(sum(one.loss for one in found)),
            float(sum(one.log_partition for one in found)),
        )

    def even(self) -> list[FloatArray]:
        """Numbers for cells that make all outputs equally likely, but for those that the model rules out."""
        found = self.all_cells(np.zeros(self.problem.n_weights))
        return [np.where(np.isneginf(own), own, 0.0) for own in found]

    def all_cells(self, w: FloatArray) -> list[FloatArray]:
        """Scores of the cells of all shards."""
        return [self.problem.cells(w, shard) for shard in range(len(self.problem.shards))]
