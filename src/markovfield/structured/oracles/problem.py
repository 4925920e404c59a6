"""Oracles of shards as the problem that solvers of planes know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.learning.max_margin.problem import Planes, weight_cost
from markovfield.learning.max_margin.restraint import Restraint
from markovfield.structured.oracles.oracles import Oracle

__all__ = ["MarginProblem"]

# A plane that is lower than that of the truth by more than rounding.
WORSE = 1e-9
# Answers of an oracle that may not be exact are kept for so many passes.
MOST_SEEN = 500


@dataclass(eq=False)
class MarginProblem:
    """Oracles of shards as one problem of planes; see `HingeProblem`.

    Attributes
    ----------
    restraint
        What is asked of weights beside their squares, or None.
    n_worse
        How often an oracle gave an output that is worse than the truth, which was then taken in its place.
    """

    oracles: Sequence[Oracle]
    costs: FloatArray
    n_weights: int
    restraint: Restraint | None = None
    shards: list[IntArray] = field(init=False)
    n_worse: int = 0
    _seen: dict[int, list[Planes]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        sizes = [0, *(oracle.n_examples for oracle in self.oracles)]
        self.shards = [np.arange(a, b) for a, b in pairwise(np.cumsum(sizes).tolist())]

    @property
    def exact(self) -> bool:
        """Whether every answer so far was proven to be the best."""
        return all(oracle.exact for oracle in self.oracles)

    def planes(self, w: FloatArray, shard: int, *, losses: bool = True) -> Planes:
        """The highest plane of each example of a shard; the truth itself where the oracle found nothing higher."""
        rows, cost = self.oracles[shard].planes(w, losses=losses)
        found = Planes(self.shards[shard], *rows, cost)
        if not losses:
            return found
        found = self._truth_or_better(w, shard, found)
        return found if self.oracles[shard].sure else self._best_seen(w, shard, found)

    def primal(self, w: FloatArray) -> float:
        """The objective at some weights."""
        return self._objective(w, self.planes)

    def primal_seen(self, w: FloatArray) -> float:
        """What is known of the objective without asking the oracle: by the planes that one not sure has given."""

        def highest(w: FloatArray, shard: int) -> Planes:
            seen = self._seen[shard]
            return self._best_seen(w, shard, seen[-1])

        return self._objective(w, highest, [shard for shard in range(len(self.shards)) if self._seen.get(shard)])

    def _objective(self, w: FloatArray, planes: Callable[[FloatArray, int], Planes], shards: Any = None) -> float:
        value = weight_cost(w, self.restraint)
        for shard in range(len(self.shards)) if shards is None else shards:
            value += float(self.costs[self.shards[shard]] @ np.maximum(planes(w, shard).heights(w), 0.0))
        return value

    def _best_seen(self, w: FloatArray, shard: int, found: Planes) -> Planes:
        """Of an oracle that may not be exact: the highest of all planes that it gave, so that the primal is never below
        what is known of it, and so not below the dual."""
        seen = self._seen.setdefault(shard, [])
        heights = np.array([one.heights(w) for one in [found, *seen]])
        best = heights.argmax(axis=0)
        seen.append(found)
        del seen[:-MOST_SEEN]
        if not best.any():
            return found
        every = [found, *seen[:-1]]
        parts = [(every[k], i) for i, k in enumerate(best.tolist())]
        cuts = [slice(int(own.offsets[i]), int(own.offsets[i + 1])) for own, i in parts]
        return Planes(
            found.blocks,
            offsets_of([cut.stop - cut.start for cut in cuts]),
            np.concatenate([own.columns[cut] for (own, _), cut in zip(parts, cuts, strict=True)]),
            np.concatenate([own.values[cut] for (own, _), cut in zip(parts, cuts, strict=True)]),
            np.array([own.losses[i] for own, i in parts]),
        )

    def _truth_or_better(self, w: FloatArray, shard: int, found: Planes) -> Planes:
        heights, cost = found.heights(w), found.losses
        worse = heights < -WORSE * np.maximum(1.0, np.abs(cost))
        if not worse.any():
            return found
        if not self.oracles[shard].without_truth:
            self.n_worse += int(worse.sum())
        sizes = np.where(worse, 0, np.diff(found.offsets))
        kept = np.repeat(~worse, np.diff(found.offsets))
        offsets = offsets_of(sizes)
        return Planes(found.blocks, offsets, found.columns[kept], found.values[kept], np.where(worse, 0.0, cost))
