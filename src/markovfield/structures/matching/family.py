"""Matchings of many instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from markovfield.arrays import BoolArray, FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.answers import Guarantee
from markovfield.inference.core.running import Running
from markovfield.kernels.random import streams
from markovfield.structures.core.family import Family, Parts, Sums, in_shards
from markovfield.structures.core.partitioning import n_best
from markovfield.structures.matching.assignment import best_assignment, best_program
from markovfield.structures.matching.sums import (
    LARGEST_TABLE,
    Instance,
    MatchingSums,
    bethe_sums,
    exact_draws,
    exact_sums,
    table_size,
)

__all__ = ["Matchings"]


@dataclass(frozen=True, eq=False)
class Matchings(Family):
    """Matchings of rows with columns.

    Cells of an instance: links row by row; rows without a link; columns without a link; and, where rows or columns may
    have several links, links that are absent, which is what makes others certain when they are ruled out.

    Attributes
    ----------
    limits
        For each instance how many links its rows and its columns may have; None where all have one at most.
    exact_limit
        Largest tables of exact sums, in numbers; above it sums are Bethe's.
    """

    rows: IntArray
    columns: IntArray
    limits: tuple[tuple[IntArray, IntArray], ...] | None = None
    exact_limit: float = LARGEST_TABLE

    name: ClassVar[str] = "matching"

    @classmethod
    def of(
        cls,
        rows: IntArray,
        columns: IntArray,
        limits: tuple[tuple[IntArray, IntArray], ...] | None = None,
        exact_limit: float = LARGEST_TABLE,
    ) -> Self:
        """Instances of some numbers of rows and columns."""
        m, n = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
        cells = m * n * (1 if limits is None else 2) + m + n
        return cls(offsets_of(cells), m, n, limits, exact_limit)

    def split(self, instance: int, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Views of the values of links, of rows and columns without one, and of absent links (maybe none)."""
        m, n, begin = int(self.rows[instance]), int(self.columns[instance]), int(self.cell_offsets[instance])
        own = values[begin : int(self.cell_offsets[instance + 1])]
        return own[: m * n].reshape(m, n), own[m * n : m * n + m], own[m * n + m : m * n + m + n], own[m * n + m + n :]

    def instance(self, i: int, pool: FloatArray) -> tuple[Instance, float]:
        """An instance as sums take it, and what absent links score together."""
        links, rows, columns, absent = self.split(i, pool)
        if self.limits is None:
            ones = np.ones(len(rows), np.int64), np.ones(len(columns), np.int64)
            return Instance(links.copy(), np.zeros(links.shape, np.bool_), rows.copy(), columns.copy(), *ones), 0.0
        forced = np.isneginf(absent).reshape(links.shape)
        base = np.where(forced, 0.0, absent.reshape(links.shape))
        return Instance(links - base, forced, rows.copy(), columns.copy(), *self.limits[i]), float(base.sum())

    def cells_of(self, instance: int, links: BoolArray) -> IntArray:
        """The cells of a matching."""
        begin = int(self.cell_offsets[instance])
        rows, columns = ~links.any(axis=1), ~links.any(axis=0)
        marks = [links.ravel(), rows, columns, *([] if self.limits is None else [~links.ravel()])]
        return begin + np.flatnonzero(np.concatenate(marks))

    def work(self) -> FloatArray:
        return np.asarray(1e4 + 300.0 * self.rows * self.columns)

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        found: list[MatchingSums | None] = [None] * self.n_instances

        def task(shard: int, first: int, last: int) -> int:
            for i in range(first, last):
                found[i] = self._sums_of(i, pool, counts)
            return 0

        in_shards(self.work(), task, running)
        log_z = np.array([one.log_z for one in found if one is not None])
        bounds = np.array([(one.lower, one.upper) for one in found if one is not None]).reshape(-1, 2)
        guarantee: Guarantee = "exact" if (bounds[:, 0] == bounds[:, 1]).all() else "lower"
        expected = None
        if counts:
            expected = np.zeros(self.n_cells)
            for i, one in enumerate(found):
                weight = 1.0 if weights is None else float(weights[i])
                assert one is not None
                if np.isneginf(one.log_z):
                    continue
                parts = self.split(i, expected)
                for part, values in zip(parts, (one.links, one.rows, one.columns), strict=False):
                    part[:] = weight * values
                if self.limits is not None:
                    possible = self.split(i, pool)[3] > -np.inf
                    parts[3][:] = weight * np.where(possible, np.maximum(1.0 - one.links.ravel(), 0.0), 0.0)
        return Sums(log_z, expected, guarantee, bounds if guarantee == "lower" else None)

    def _sums_of(self, i: int, pool: FloatArray, counts: bool) -> MatchingSums:
        one, base = self.instance(i, pool)
        if min(table_size(one), table_size(one.turned())) <= self.exact_limit:
            found = exact_sums(one, counts)
        elif self.limits is not None:
            raise ModelError(
                f"sums over matchings with {' x '.join(map(str, one.links.shape))} links and fertilities need tables "
                f"of more than {self.exact_limit:g} numbers: decode them, or give every row and column one link"
            )
        elif best_assignment(one.links, one.rows, one.columns) is None:
            none = np.zeros(one.links.shape), np.zeros(len(one.rows)), np.zeros(len(one.columns))
            return MatchingSums(-np.inf, -np.inf, -np.inf, *none)
        else:
            found = bethe_sums(one)
        return found._replace(log_z=found.log_z + base, lower=found.lower + base, upper=found.upper + base)

    def maxima(self, pool: FloatArray, *, running: Running) -> Parts:
        found: list[IntArray] = []
        for i in range(self.n_instances):
            if i % 100 == 0 or self.limits is not None:
                running.check()
            best = self._best_of(i, pool)
            found.append(np.zeros(0, np.int64) if best is None else self.cells_of(i, best))
        return Parts.joined(found)

    def _best_of(self, i: int, pool: FloatArray) -> BoolArray | None:
        one, _ = self.instance(i, pool)
        if self.limits is None:
            return best_assignment(one.links, one.rows, one.columns)
        best = best_program(
            one.links,
            one.rows,
            one.columns,
            forced=one.forced,
            row_limits=one.row_limits,
            column_limits=one.column_limits,
        )
        return None if best is None else best[0]

    def draws(self, pool: FloatArray, size: int, *, rng: np.random.Generator, running: Running) -> Parts:
        state = streams(rng, self.n_instances)
        found: list[list[IntArray]] = [[]] * self.n_instances
        for i in range(self.n_instances):
            running.check()
            one, _ = self.instance(i, pool)
            if min(table_size(one), table_size(one.turned())) > self.exact_limit:
                raise ModelError(
                    f"draws of matchings with {' x '.join(map(str, one.links.shape))} links need tables of more than "
                    f"{self.exact_limit:g} numbers: ask for marginals, which are approximate, or rule out links"
                )
            drawn = exact_draws(one, size, state[i])
            none = np.zeros(0, np.int64)
            found[i] = [none] * size if drawn is None else [self.cells_of(i, links > 0) for links in drawn]
        return Parts.joined([cells for own in found for cells in own])

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        return n_best(self, pool, n, running)

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        links, rows, columns, absent = self.split(instance, pool)
        m, n = links.shape
        for cell in (cells - self.cell_offsets[instance]).tolist():
            if cell < m * n:
                i, j = divmod(cell, n)
                rows[i], columns[j] = -np.inf, -np.inf
                if self.limits is None:
                    kept = links[i, j]
                    links[i], links[:, j] = -np.inf, -np.inf
                    links[i, j] = kept
                else:
                    absent[cell] = -np.inf
            elif cell < m * n + m:
                links[cell - m * n] = -np.inf
            elif cell < m * n + m + n:
                links[:, cell - m * n - m] = -np.inf
            else:
                links[divmod(cell - m * n - m - n, n)] = -np.inf

    def _chosen(self, instances: IntArray) -> Self:
        limits = None if self.limits is None else tuple(self.limits[i] for i in instances.tolist())
        return type(self).of(self.rows[instances], self.columns[instances], limits, self.exact_limit)
