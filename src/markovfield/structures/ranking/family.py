"""Rankings of many instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.answers import Guarantee
from markovfield.inference.core.running import Running
from markovfield.kernels.random import streams
from markovfield.structures.core.family import Family, Parts, Sums, in_shards
from markovfield.structures.core.partitioning import n_best
from markovfield.structures.matching.sums import LARGEST_TABLE
from markovfield.structures.ranking.order import best_order
from markovfield.structures.ranking.sums import (
    RankingSums,
    bethe_ranking_sums,
    exact_ranking_draws,
    exact_ranking_sums,
    ranking_table_size,
)

__all__ = ["Rankings"]


@dataclass(frozen=True, eq=False)
class Rankings(Family):
    """The first items of lists, in order or as a set.

    Cells of an instance: item after item those of its positions (one position where the first are a set); then, where
    fewer are ranked than there are, one for each item that is not.

    Attributes
    ----------
    items, top
        ``int64[n]``: how many items each instance has, and how many of them are ranked.
    ordered
        Whether positions differ; otherwise the first are a set.
    exact_limit
        Largest tables of exact sums, in numbers; above it sums are Bethe's.
    """

    items: IntArray
    top: IntArray
    ordered: bool
    exact_limit: float = LARGEST_TABLE

    name: ClassVar[str] = "ranking"

    @classmethod
    def of(
        cls, items: IntArray, top: IntArray | None = None, *, ordered: bool = True, exact_limit: float = LARGEST_TABLE
    ) -> Self:
        """Lists of some lengths, of which the first ``top`` are ranked: all of them when None."""
        n = np.asarray(items, np.int64)
        k = n if top is None else np.asarray(top, np.int64)
        if (bad := (k < 1) | (k > n)).any():
            i = int(np.flatnonzero(bad)[0])
            raise ModelError(f"instance {i}: top must be from 1 to its {n[i]} items, got {k[i]}")
        cells = n * (k if ordered else 1) + np.where(k < n, n, 0)
        return cls(offsets_of(cells), n, k, ordered, exact_limit)

    def positions(self, instance: int) -> int:
        """How many positions are told apart."""
        return int(self.top[instance]) if self.ordered else 1

    def copies(self, instance: int) -> int:
        """How often the last position is there."""
        return 1 if self.ordered else int(self.top[instance])

    def split(self, instance: int, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Views of the values of items at positions, and of items that are not ranked (none where all are)."""
        n, m, begin = int(self.items[instance]), self.positions(instance), int(self.cell_offsets[instance])
        own = values[begin : int(self.cell_offsets[instance + 1])]
        return own[: n * m].reshape(n, m), own[n * m :]

    def cells_of(self, instance: int, positions: IntArray) -> IntArray:
        """The cells of a ranking: the position of each item, -1 for those that are not ranked."""
        n, m, begin = int(self.items[instance]), self.positions(instance), int(self.cell_offsets[instance])
        return begin + np.where(positions >= 0, np.arange(n) * m + positions, n * m + np.arange(n))

    def work(self) -> FloatArray:
        found = [self._table_size(i) for i in range(self.n_instances)]
        return np.minimum(np.array(found, np.float64), self.exact_limit) * 10.0 + 1e4

    def _table_size(self, i: int) -> float:
        return ranking_table_size(int(self.items[i]), self.positions(i), self.copies(i))

    def _scores(self, i: int, pool: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores of items at positions and nowhere: -inf where all are ranked."""
        positions, unranked = self.split(i, pool)
        return positions, unranked if len(unranked) else np.full(len(positions), -np.inf)

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        found: list[RankingSums] = [None] * self.n_instances  # type: ignore[list-item]

        def task(shard: int, first: int, last: int) -> int:
            for i in range(first, last):
                scores, copies = self._scores(i, pool), self.copies(i)
                if self._table_size(i) <= self.exact_limit:
                    found[i] = exact_ranking_sums(*scores, copies, counts)
                else:
                    found[i] = bethe_ranking_sums(*scores, copies)
            return 0

        in_shards(self.work(), task, running)
        bounds = np.array([(one.lower, one.upper) for one in found]).reshape(-1, 2)
        guarantee: Guarantee = "exact" if (bounds[:, 0] == bounds[:, 1]).all() else "lower"
        expected = np.zeros(self.n_cells) if counts else None
        for i, one in enumerate(found if counts else ()):
            weight = 1.0 if weights is None else float(weights[i])
            positions, unranked = self.split(i, expected)  # type: ignore[arg-type]
            positions[:] = weight * one.positions
            unranked[:] = weight * one.unranked[: len(unranked)]
        log_z = np.array([one.log_z for one in found])
        return Sums(log_z, expected, guarantee, bounds if guarantee == "lower" else None)

    def maxima(self, pool: FloatArray, *, running: Running) -> Parts:
        found: list[IntArray] = []
        for i in range(self.n_instances):
            if i % 100 == 0:
                running.check()
            scores, unranked = self.split(i, pool)
            order = best_order(scores, unranked if len(unranked) else None, self.copies(i))
            if order is None:
                found.append(np.zeros(0, np.int64))
                continue
            places = np.full(len(scores), -1, np.int64)
            places[order] = np.minimum(np.arange(len(order)), scores.shape[1] - 1)
            found.append(self.cells_of(i, places))
        return Parts.joined(found)

    def draws(self, pool: FloatArray, size: int, *, rng: np.random.Generator, running: Running) -> Parts:
        state = streams(rng, self.n_instances)
        found: list[IntArray] = []
        for i in range(self.n_instances):
            running.check()
            if self._table_size(i) > self.exact_limit:
                raise ModelError(
                    f"draws of rankings of {self.top[i]} of {self.items[i]} items need tables of more than "
                    f"{self.exact_limit:g} numbers: rank fewer, or draw from PlackettLuce, which is another "
                    "distribution"
                )
            drawn = exact_ranking_draws(*self._scores(i, pool), self.copies(i), size, state[i])
            for s in range(size):
                places = None if drawn is None else np.where(drawn[s].any(axis=1), drawn[s].argmax(axis=1), -1)
                found.append(np.zeros(0, np.int64) if places is None else self.cells_of(i, places))
        return Parts.joined(found)

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        return n_best(self, pool, n, running)

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        positions, unranked = self.split(instance, pool)
        n, m = positions.shape
        for cell in (cells - self.cell_offsets[instance]).tolist():
            if cell >= n * m:
                positions[cell - n * m] = -np.inf
                continue
            i, p = divmod(cell, m)
            kept = positions[i, p]
            positions[i] = -np.inf
            if self.copies(instance) == 1:
                positions[:, p] = -np.inf
            positions[i, p] = kept
            unranked[i : i + 1] = -np.inf

    def _chosen(self, instances: IntArray) -> Self:
        return type(self).of(
            self.items[instances], self.top[instances], ordered=self.ordered, exact_limit=self.exact_limit
        )
