"""Alignments without crossings of many pairs of sequences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.core.running import Running
from markovfield.structures.alignment.alignment_kernel import alignment_charts, alignment_descents, alignment_sums
from markovfield.structures.core.family import ByDescent, Edge, Parts, Sums, in_shards
from markovfield.structures.core.k_best import k_best

__all__ = ["MonotoneAlignments"]

LINK, DOWN, RIGHT = 0, 1, 2


class Places(NamedTuple):
    """Where the cells of an instance begin."""

    links: int
    rows: int
    columns: int


@dataclass(frozen=True, eq=False)
class MonotoneAlignments(ByDescent):
    """Alignments of pairs of sequences of some lengths.

    Cells of a pair: links row by row, then three for each row (first of a gap, further ones, ones at a free end: all
    first ones together, then all further ones, then all at ends), then three for each column.
    """

    rows: IntArray
    columns: IntArray
    free_rows: bool
    free_columns: bool
    band: float | None
    bands: IntArray
    low: IntArray
    high: IntArray

    name: ClassVar[str] = "monotone_alignment"

    @classmethod
    def of(
        cls,
        rows: IntArray,
        columns: IntArray,
        *,
        free_rows: bool = False,
        free_columns: bool = False,
        band: float | None = None,
    ) -> Self:
        """Pairs of sequences of some lengths."""
        m, n = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
        bands = offsets_of(m + 1)
        of_row = np.repeat(np.arange(len(m)), m + 1)
        row = np.arange(bands[-1]) - bands[of_row]
        low, high = np.ones(len(row), np.int64), n[of_row] + 1
        if band is not None:
            middle = row * n[of_row] / np.maximum(m[of_row], 1)
            low = np.maximum(low, np.ceil(middle - band).astype(np.int64))
            high = np.minimum(high, np.floor(middle + band).astype(np.int64) + 1)
        high = np.where(row == 0, low, np.maximum(low, high))
        cells = m * n + 3 * (m + n)
        return cls(offsets_of(cells), m, n, free_rows, free_columns, band, bands, low, high)

    def work(self) -> FloatArray:
        cells = np.concatenate([[0.0], np.cumsum(self.high - self.low)])
        return np.asarray(30.0 * np.diff(cells[self.bands]) + np.diff(self.cell_offsets))

    def _run(self, kernel: Any, words: tuple[object, ...], running: Running) -> None:
        shape = (self.cell_offsets, self.rows, self.columns, self.bands, self.low, self.high)
        free = (self.free_rows, self.free_columns)

        def task(shard: int, first: int, last: int) -> int:
            kernel(first, last, *shape, *free, *words)
            return 0

        in_shards(self.work(), task, running)

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        log_z, found = np.empty(self.n_instances), np.zeros(self.n_cells if counts else 0)
        given = np.ones(self.n_instances) if weights is None else np.array(weights, np.float64)
        self._run(alignment_sums, (pool, given, counts, log_z, found), running)
        return Sums(log_z, found if counts else None)

    def _descents(self, pool: FloatArray, best: bool, size: int, state: Any, running: Running) -> Parts:
        room = self.rows + self.columns
        starts = offsets_of(room * size)
        cells = np.empty(int(starts[-1]), np.int64)
        self._run(alignment_descents, (pool, best, size, state, starts, cells), running)
        return Parts(offsets_of(np.repeat(room, size)), cells).possible()

    def places(self, instance: int) -> Places:
        """Where the cells of an instance begin."""
        begin = int(self.cell_offsets[instance])
        m, n = int(self.rows[instance]), int(self.columns[instance])
        return Places(begin, begin + m * n, begin + m * n + 3 * m)

    def border(self, begin: int, n: int, free: bool, first: int, last: int) -> tuple[int, ...]:
        """Cells of a run without links before the first link or after the last."""
        if free:
            return tuple(range(begin + 2 * n + first, begin + 2 * n + last))
        return tuple(begin + k if k == first else begin + n + k for k in range(first, last))

    def cells_of(self, instance: int, links: Iterable[tuple[int, int]]) -> IntArray:
        """The cells of an alignment, given as links in rising order."""
        at = self.places(instance)
        m, n = int(self.rows[instance]), int(self.columns[instance])
        found: list[int] = []
        previous = (-1, -1)
        for i, j in [*links, (m, n)]:
            ends = previous[0] < 0 or i == m
            for begin, size, free, first, last in (
                (at.rows, m, self.free_rows, previous[0] + 1, i),
                (at.columns, n, self.free_columns, previous[1] + 1, j),
            ):
                found.extend(self.border(begin, size, free and ends, first, last))
            if i < m:
                found.append(at.links + i * n + j)
            previous = (i, j)
        return np.array(found, np.int64)

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        return [self._best_of(pool, i, n, running) for i in range(self.n_instances)]

    def _best_of(self, pool: FloatArray, instance: int, size: int, running: Running) -> list[IntArray]:
        m, n, at = int(self.rows[instance]), int(self.columns[instance]), self.places(instance)
        charts, borders = np.empty((3, (m + 1) * (n + 1))), np.empty(2 * (m + n + 2))
        low, high = (a[self.bands[instance] : self.bands[instance + 1]] for a in (self.low, self.high))
        total = alignment_charts(
            pool, at.links, m, n, low, high, self.free_rows, self.free_columns, True, charts, borders
        )
        known = charts.reshape(3, m + 1, n + 1)

        def border(i: int, j: int, tail: bool) -> tuple[int, ...]:
            rows, columns = ((i, m), (j, n)) if tail else ((0, i), (0, j))
            return self.border(at.rows, m, self.free_rows, *rows) + self.border(
                at.columns, n, self.free_columns, *columns
            )

        def value(item: Any) -> float:
            return total if item == () else float(known[item])

        def edges(item: Any) -> list[Edge]:
            if item == ():
                possible = np.argwhere(known[LINK] > -np.inf).tolist()
                return [
                    Edge((), border(m, n, False)),
                    *(Edge(((LINK, i, j),), border(i, j, True)) for i, j in possible),
                ]
            kind, i, j = item
            if kind == LINK:
                cell = (at.links + (i - 1) * n + j - 1,)
                ways = [Edge(((k, i - 1, j - 1),), cell) for k in (LINK, DOWN, RIGHT)]
                return [*ways, Edge((), cell + border(i - 1, j - 1, False))]
            if kind == DOWN:
                return [Edge(((k, i - 1, j),), (at.rows + m * (k == DOWN) + i - 1,)) for k in (LINK, DOWN)]
            return [Edge(((k, i, j - 1),), (at.columns + n * (k == RIGHT) + j - 1,)) for k in (LINK, DOWN, RIGHT)]

        return k_best((), edges, value, pool, size, running)

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        m, n, at = int(self.rows[instance]), int(self.columns[instance]), self.places(instance)
        links = pool[at.links : at.rows].reshape(m, n)
        rows, columns = pool[at.rows : at.columns].reshape(3, m), pool[at.columns : at.columns + 3 * n].reshape(3, n)
        for cell in cells.tolist():
            kept = pool[cell] if pool[cell] > -np.inf else -np.inf
            if cell < at.rows:
                i, j = divmod(cell - at.links, n)
                links[i], links[:, j], rows[:, i], columns[:, j] = -np.inf, -np.inf, -np.inf, -np.inf
                links[:i, j:], links[i:, :j] = -np.inf, -np.inf
                links[i + 1 :, :j], links[:i, j + 1 :] = -np.inf, -np.inf
            elif cell < at.columns:
                i = (cell - at.rows) % m
                links[i], rows[:, i] = -np.inf, -np.inf
            else:
                j = (cell - at.columns) % n
                links[:, j], columns[:, j] = -np.inf, -np.inf
            pool[cell] = kept

    def _chosen(self, instances: IntArray) -> Self:
        return type(self).of(
            self.rows[instances],
            self.columns[instances],
            free_rows=self.free_rows,
            free_columns=self.free_columns,
            band=self.band,
        )
