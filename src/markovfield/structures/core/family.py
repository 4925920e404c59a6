"""A family of structures: what the structures of many instances are made of, without their scores.

An instance is a sentence, a pair of sentences, a list to rank. A structure (a tree, a segmentation, a matching) is a
set of *parts*: arcs, labelled spans, segments, links. Every part has a cell in one flat pool of scores, and the score
of a structure is the sum over its parts, so that log Z, expected counts, the best, the n best and samples mean the
same for all families. This is what `markovfield.factors.Structure` is to factor graphs; a plan, once made, is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.core.answers import Guarantee
from markovfield.inference.core.running import Running
from markovfield.kernels.random import streams

__all__ = ["ByDescent", "Edge", "Family", "Hyperedges", "Parts", "Sums", "in_shards"]


class Parts(NamedTuple):
    """Structures as the cells they are made of.

    Attributes
    ----------
    offsets
        ``int64[n + 1]``: where the cells of each structure begin.
    cells
        ``int64[...]``: positions in the pool; a cell that is used twice stands there twice.
    """

    offsets: IntArray
    cells: IntArray

    def of(self, i: int) -> IntArray:
        """The cells of one structure."""
        return self.cells[self.offsets[i] : self.offsets[i + 1]]

    def scores(self, pool: FloatArray) -> FloatArray:
        """The score of each structure."""
        sums = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(values := pool[self.cells]), values, 0.0))])
        found = np.diff(sums[self.offsets])
        ruled_out = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))[np.isneginf(values)]
        found[ruled_out] = -np.inf
        return np.asarray(found)

    def counts(self, n_cells: int, weights: FloatArray | None = None) -> FloatArray:
        """How often each cell is used in all structures together, with their weights."""
        spread = None if weights is None else np.repeat(weights, np.diff(self.offsets))
        return np.bincount(self.cells, spread, n_cells).astype(np.float64)

    def possible(self) -> Parts:
        """The same, with no cells for structures whose cells are -1: there was none."""
        none = self.cells < 0
        if not none.any():
            return self
        sizes = np.diff(offsets_of(~none)[self.offsets])
        return Parts(offsets_of(sizes), self.cells[~none])

    @classmethod
    def joined(cls, cells: Sequence[Any]) -> Parts:
        """Structures, each given as its cells."""
        sizes = np.array([len(own) for own in cells], np.int64)
        flat = np.concatenate([np.asarray(own, np.int64) for own in cells]) if len(cells) else np.zeros(0, np.int64)
        return cls(offsets_of(sizes), flat)


class Sums(NamedTuple):
    """log Z of each instance, with what it promises; and expected counts where they were asked for.

    Attributes
    ----------
    log_partition
        ``float64[n]``; -inf where no structure of an instance is possible.
    counts
        ``float64[n_cells]``: expected counts of all instances together, with their weights: the derivative of the
        weighted sum of ``log_partition`` by the pool. None where only log Z was asked for.
    guarantee, bounds, errors
        As those of `LogPartition`: of log Z, and so of the counts; bounds ``float64[n, 2]`` and standard errors
        ``float64[n]`` where there are some.
    """

    log_partition: FloatArray
    counts: FloatArray | None = None
    guarantee: Guarantee = "exact"
    bounds: FloatArray | None = None
    errors: FloatArray | None = None


class Edge(NamedTuple):
    """One way to make an item: from other items, at the price of some cells."""

    tails: tuple[Any, ...]
    cells: tuple[int, ...]


# From an item of a dynamic program to the ways to make it.
Hyperedges = Callable[[Any], list[Edge]]


@dataclass(frozen=True, eq=False)
class Family(ABC):
    """The structures of some instances.

    Attributes
    ----------
    cell_offsets
        ``int64[n + 1]``: where the cells of each instance begin in the pool; cells before the first offset are shared
        by all instances (the rules of a grammar).
    """

    cell_offsets: IntArray

    name: ClassVar[str]

    @property
    def n_instances(self) -> int:
        """How many instances there are."""
        return len(self.cell_offsets) - 1

    @property
    def n_cells(self) -> int:
        """Length of the pool."""
        return int(self.cell_offsets[-1])

    @abstractmethod
    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        """log Z of each instance; with ``counts`` also expected counts, each instance ``weights[i]`` times."""

    @abstractmethod
    def maxima(self, pool: FloatArray, *, running: Running) -> Parts:
        """The best structure of each instance: no cells where none is possible."""

    @abstractmethod
    def draws(self, pool: FloatArray, size: int, *, rng: np.random.Generator, running: Running) -> Parts:
        """``size`` structures of each instance from the distribution that scores give, instance after instance."""

    @abstractmethod
    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        """For each instance the cells of its ``n`` best structures (fewer where there are fewer), best first.

        By `k_best` where there is a dynamic program, otherwise by `partitioning.n_best`.
        """

    def conditioned(self, pool: FloatArray, instance: int, required: IntArray, forbidden: IntArray) -> FloatArray:
        """A pool in which only structures of an instance with all of some cells, and none of others, are possible.

        Cells that go with none of the required ones get -inf, and so do forbidden ones.
        """
        found = np.array(pool, np.float64)
        self._require(found, instance, np.asarray(required, np.int64))
        found[forbidden] = -np.inf
        return found

    @abstractmethod
    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        """Write -inf into the cells of an instance that go with none of these."""

    def select(self, instances: IntArray) -> tuple[Self, IntArray]:
        """The family of some instances (one may come several times), and the cell of this pool that each cell is."""
        chosen = np.asarray(instances, np.int64)
        family, first = self._chosen(chosen), int(self.cell_offsets[0])
        shift = np.repeat(self.cell_offsets[chosen] - family.cell_offsets[:-1], np.diff(family.cell_offsets))
        return family, np.concatenate([np.arange(first), np.arange(first, family.n_cells) + shift])

    @abstractmethod
    def _chosen(self, instances: IntArray) -> Self:
        """The family of some instances."""

    def proof(self, pool: FloatArray, cells: IntArray) -> tuple[Guarantee, float]:
        """What is proven of a structure that `maxima` found: its guarantee, and by how much others could be better."""
        return "exact", 0.0

    def work(self) -> FloatArray:
        """``float64[n]``: operations of each instance, about, by which batches are cut."""
        return np.diff(self.cell_offsets).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ByDescent(Family):
    """A family whose best structures and draws come out of a chart from the top down, by one kernel."""

    def maxima(self, pool: FloatArray, *, running: Running) -> Parts:
        return self._descents(pool, True, 1, np.zeros((self.n_instances, 4), np.uint64), running)

    def draws(self, pool: FloatArray, size: int, *, rng: np.random.Generator, running: Running) -> Parts:
        return self._descents(pool, False, size, streams(rng, self.n_instances), running)

    @abstractmethod
    def _descents(self, pool: FloatArray, best: bool, size: int, state: Any, running: Running) -> Parts:
        """``size`` structures of each instance: the best, or draws by the random numbers of ``state``."""


# Shards take about so many operations, so that there are enough for all threads and none takes long.
SHARD = 4e6


def in_shards(work: FloatArray, task: Callable[[int, int, int], int], running: Running, size: float = SHARD) -> int:
    """Run ``task(shard, first, last)`` over ranges of instances, side by side; the borders do not depend on threads.

    Returns how many shards there were. Tasks answer 0.
    """
    borders = shard_borders(work, size)
    pairs = list(pairwise(borders))
    running.side_by_side([lambda i=i, a=a, b=b: task(i, a, b) for i, (a, b) in enumerate(pairs)])  # type: ignore[misc]
    return len(pairs)


def shard_borders(work: FloatArray, size: float = SHARD) -> list[int]:
    """Where ranges of instances of about ``size`` operations each begin and end."""
    if len(work) and work.sum() <= size:
        return [0, len(work)]
    which = (np.concatenate([[0.0], np.cumsum(work)])[:-1] // size).astype(np.int64)
    starts = np.flatnonzero(np.diff(which, prepend=-1)).tolist()
    return [*starts, len(work)] if len(work) else []
