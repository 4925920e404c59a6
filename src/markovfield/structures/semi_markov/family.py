"""Segmentations of many sequences, with labels on segments: sums, maxima, draws and n best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.kernels.random import streams
from markovfield.structures.core.family import Edge, Family, Parts, Sums, in_shards
from markovfield.structures.core.k_best import k_best
from markovfield.structures.semi_markov.semi_markov_kernel import descend_segments, max_charts, sum_segments

__all__ = ["Segmentations"]

NOTHING = np.empty(0)


@dataclass(frozen=True, eq=False)
class Segmentations(Family):
    """Ways to cut sequences into labelled segments of bounded length.

    The pool starts with what all sequences share: ``transitions[before, after]``, then scores of the first label, then
    of the last. Each sequence has the cells ``[start, length - 1, label]`` of its segments; those that would go past
    its end are never used.

    Attributes
    ----------
    lengths
        ``int64[n]``: positions of each sequence.
    max_length, n_labels
        The longest segment, and how many labels segments may have.

    Examples
    --------
    >>> family = Segmentations.of([3, 2], max_length=2, n_labels=2)
    >>> family.cell_offsets.tolist()
    [8, 20, 28]
    """

    lengths: IntArray
    max_length: int
    n_labels: int

    name: ClassVar[str] = "semi_markov"

    @classmethod
    def of(cls, lengths: npt.ArrayLike, max_length: int, n_labels: int) -> Self:
        """The family of sequences of some lengths."""
        sizes = np.array(lengths, np.int64)
        shared = n_labels * (n_labels + 2)
        own = offsets_of(sizes * (max_length * n_labels))
        return cls(shared + own, sizes, max_length, n_labels)

    def work(self) -> FloatArray:
        """``float64[n]``: operations of each instance, about, by which batches are cut."""
        one = self.n_labels * (8.0 * self.max_length + self.n_labels + 20.0)
        return self.lengths.astype(np.float64) * one

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        """log Z of each instance; with ``counts`` also expected counts, each instance ``weights[i]`` times."""
        n, first = self.n_instances, int(self.cell_offsets[0])
        log_partitions = np.zeros(n)
        expected = np.zeros(self.n_cells) if counts else NOTHING
        heavy = NOTHING if weights is None else np.array(weights, np.float64)
        work = self.work()
        shared: dict[int, FloatArray] = {}

        def task(shard: int, a: int, b: int) -> int:
            shared[shard] = np.zeros(first)
            sum_segments(
                pool, self.cell_offsets, self.lengths, a, b, heavy, self.max_length, self.n_labels, log_partitions,
                expected, shared[shard],
            )  # fmt: skip
            return 0

        for shard in range(in_shards(work, task, running)):
            if counts:
                expected[:first] += shared[shard]
        return Sums(log_partitions, expected if counts else None)

    def maxima(self, pool: FloatArray, *, running: Running) -> Parts:
        """The best structure of each instance: no cells where none is possible."""
        return self._descend(pool, 1, np.empty((self.n_instances, 0), np.uint64), running)

    def draws(self, pool: FloatArray, size: int, *, rng: np.random.Generator, running: Running) -> Parts:
        """``size`` structures of each instance from the distribution that scores give, instance after instance."""
        return self._descend(pool, size, streams(rng, self.n_instances), running)

    def _descend(self, pool: FloatArray, size: int, states: npt.NDArray[np.uint64], running: Running) -> Parts:
        room = np.where(self.lengths > 0, 2 * self.lengths + 1, 0) * size
        places = offsets_of(room)
        cells, used = np.empty(places[-1], np.int64), np.zeros(self.n_instances * size, np.int64)

        def task(shard: int, a: int, b: int) -> int:
            descend_segments(
                pool, self.cell_offsets, self.lengths, a, b, size, self.max_length, self.n_labels, states, places,
                cells, used,
            )  # fmt: skip
            return 0

        in_shards(self.work(), task, running)
        offsets = offsets_of(used)
        # Structures of an instance lie side by side; those of the next begin where its room does.
        shift = np.repeat(places[:-1] - offsets[:-1:size] if size else places[:-1], size)
        kept = np.arange(offsets[-1]) + np.repeat(shift, used)
        return Parts(offsets, cells[kept])

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        """For each instance the cells of its ``n`` best structures (fewer where there are fewer), best first."""
        return [self._best(pool, i, n, running) for i in range(self.n_instances)]

    def _best(self, pool: FloatArray, instance: int, n: int, running: Running) -> list[IntArray]:
        length, at = int(self.lengths[instance]), int(self.cell_offsets[instance])
        size, longest = self.n_labels, self.max_length
        if length == 0:
            return [np.empty(0, np.int64)]
        ends, begins = np.empty((length + 1) * size), np.empty((length + 1) * size)
        charts = begins, ends
        goal = (2, length, 0)
        best = max_charts(pool, at, length, longest, size, ends, begins)
        first, last = size * size, size * size + size

        def edges(item: tuple[int, int, int]) -> list[Edge]:
            kind, j, label = item
            if kind == 2:
                return [Edge(((1, j, k),), (last + k,)) for k in range(size)]
            if kind == 1:  # segments that end at j
                return [
                    Edge(((0, j - d, label),), (at + ((j - d) * longest + d - 1) * size + label,))
                    for d in range(1, min(longest, j) + 1)
                ]
            if j == 0:
                return [Edge((), (first + label,))]
            return [Edge(((1, j, k),), (k * size + label,)) for k in range(size)]

        def value(item: tuple[int, int, int]) -> float:
            kind, j, label = item
            return best if kind == 2 else float(charts[kind][j * size + label])

        return k_best(goal, edges, value, pool, n, running)

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        a, b = self.cell_offsets[instance : instance + 2]
        size = self.n_labels
        if np.any(cells < size * size):
            raise ModelError("evidence of SemiMarkov can forbid transitions, not require one: require segments")
        for cell in cells[cells < self.cell_offsets[0]].tolist():  # the first or the last label: rule out others
            begin = cell - cell % size
            kept = pool[cell]
            pool[begin : begin + size] = -np.inf
            pool[cell] = kept
        own = pool[a:b].reshape(-1, self.max_length, self.n_labels)
        starts = np.arange(len(own))[:, None]
        stops = starts + np.arange(1, self.max_length + 1)
        for cell in cells[cells >= self.cell_offsets[0]]:
            start, d = divmod((int(cell) - int(a)) // self.n_labels, self.max_length)
            kept = pool[cell]  # -inf where it crosses another that is required: then nothing is possible
            own[(starts <= start + d) & (stops > start)] = -np.inf
            pool[cell] = kept

    def _chosen(self, instances: IntArray) -> Self:
        return type(self).of(self.lengths[instances], self.max_length, self.n_labels)
