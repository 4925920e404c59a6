"""Trees of labelled spans over many sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.core.running import Running
from markovfield.structures.core.family import ByDescent, Edge, Parts, Sums, in_shards
from markovfield.structures.core.k_best import k_best
from markovfield.structures.span_tree.span_tree_kernel import span_counts, span_descents, span_sums

__all__ = ["SpanTrees"]


@dataclass(frozen=True, eq=False)
class SpanTrees(ByDescent):
    """Binary trees over sentences of some lengths.

    Cells of a sentence are spans in the order (0, 0), (0, 1), ... (1, 1), ..., with all labels of a span together.
    """

    lengths: IntArray
    n_labels: int

    name: ClassVar[str] = "span_tree"

    @classmethod
    def of(cls, lengths: IntArray, n_labels: int) -> Self:
        """Sentences of some lengths, each at least 1."""
        sizes = np.asarray(lengths, np.int64)
        cells = sizes * (sizes + 1) // 2 * n_labels
        return cls(offsets_of(cells), sizes, n_labels)

    def span_cell(self, instance: int, i: int, j: int) -> int:
        """The cell of the first label of a span."""
        n = int(self.lengths[instance])
        return int(self.cell_offsets[instance]) + (i * n - i * (i - 1) // 2 + j - i) * self.n_labels

    def spans(self, instance: int, cells: IntArray) -> IntArray:
        """``int64[len(cells), 3]``: first word, last word and label of cells."""
        inside, label = np.divmod(np.asarray(cells) - self.cell_offsets[instance], self.n_labels)
        n = int(self.lengths[instance])
        rows = np.arange(n)
        starts = rows * n - rows * (rows - 1) // 2
        first = np.searchsorted(starts, inside, "right") - 1
        return np.stack([first, inside - starts[first] + first, label], axis=1)

    def work(self) -> FloatArray:
        n = self.lengths.astype(np.float64)
        return n**3 / 3 + n**2 * self.n_labels

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        log_z = np.empty(self.n_instances)
        if not counts:
            self._run(span_sums, (pool, False, log_z), running)
            return Sums(log_z)
        found = np.zeros(self.n_cells)
        given = np.ones(self.n_instances) if weights is None else np.asarray(weights, np.float64)
        self._run(span_counts, (pool, given, log_z, found), running)
        return Sums(log_z, found)

    def _run(self, kernel: object, words: tuple[object, ...], running: Running) -> None:
        def task(shard: int, first: int, last: int) -> int:
            kernel(first, last, self.cell_offsets, self.lengths, self.n_labels, *words)  # type: ignore[operator]
            return 0

        in_shards(self.work(), task, running)

    def _descents(self, pool: FloatArray, best: bool, size: int, state: Any, running: Running) -> Parts:
        sizes = np.repeat(2 * self.lengths - 1, size)
        offsets = offsets_of(sizes)
        cells = np.empty(int(offsets[-1]), np.int64)
        starts = np.ascontiguousarray(offsets[:-1][::size]) if size else offsets[:0]
        self._run(span_descents, (pool, best, size, state, starts, cells), running)
        return Parts(offsets, cells).possible()

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        return [self._best_of(pool, i, n, running) for i in range(self.n_instances)]

    def _best_of(self, pool: FloatArray, instance: int, n: int, running: Running) -> list[IntArray]:
        length, labels = int(self.lengths[instance]), self.n_labels
        chart: dict[tuple[int, int], float] = {}
        for width in range(length):
            for i in range(length - width):
                at = self.span_cell(instance, i, i + width)
                splits = (chart[i, k] + chart[k + 1, i + width] for k in range(i, i + width))
                chart[i, i + width] = float(pool[at : at + labels].max()) + max(splits, default=0.0)

        def value(item: Any) -> float:
            i, j, open_label = item
            if open_label:
                return chart[i, j]
            at = self.span_cell(instance, i, j)
            return chart[i, j] - float(pool[at : at + labels].max())

        def edges(item: Any) -> list[Edge]:
            # First the label of a span, then where it splits.
            i, j, open_label = item
            if open_label:
                at = self.span_cell(instance, i, j)
                tails = ((i, j, False),) if i < j else ()
                return [Edge(tails, (at + label,)) for label in range(labels)]
            return [Edge(((i, k, True), (k + 1, j, True)), ()) for k in range(i, j)]

        return k_best((0, length - 1, True), edges, value, pool, n, running)

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        n, labels = int(self.lengths[instance]), self.n_labels
        i, j = np.triu_indices(n)
        own = pool[self.cell_offsets[instance] : self.cell_offsets[instance + 1]].reshape(-1, labels)
        for a, b, label in self.spans(instance, cells):
            # A binary tree that has no span across the borders of (a, b) has (a, b) itself.
            crosses = ((i < a) & (a <= j) & (j < b)) | ((a < i) & (i <= b) & (b < j))
            own[crosses] = -np.inf
            own[(i == a) & (j == b), np.arange(labels) != label] = -np.inf

    def _chosen(self, instances: IntArray) -> Self:
        return type(self).of(self.lengths[instances], self.n_labels)
