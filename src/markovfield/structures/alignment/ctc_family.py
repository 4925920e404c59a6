"""Paths of CTC for many sequences of frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.core.running import Running
from markovfield.structures.alignment.ctc_kernel import ctc_chart, ctc_descents, ctc_sums
from markovfield.structures.alignment.free_paths import keep_symbols
from markovfield.structures.core.family import ByDescent, Edge, Parts, Sums, in_shards
from markovfield.structures.core.k_best import k_best

__all__ = ["CTCPaths"]


@dataclass(frozen=True, eq=False)
class CTCPaths(ByDescent):
    """Paths through frames, each with given labels; cells of an instance are frames x symbols.

    Attributes
    ----------
    labels
        ``int64[n + 1]``: where the states of each instance begin.
    states, skips
        The symbol of each state, and 0 where it may follow the one two before it, otherwise -inf.
    """

    frames: IntArray
    n_symbols: int
    blank: int
    labels: IntArray
    states: IntArray
    skips: FloatArray

    name: ClassVar[str] = "ctc"

    @classmethod
    def of(cls, frames: IntArray, n_symbols: int, labels: Sequence[npt.ArrayLike], blank: int = 0) -> Self:
        """Sequences of some numbers of frames, and the labels of each."""
        lengths = np.asarray(frames, np.int64)
        own = [np.asarray(one, np.int64) for one in labels]
        sizes = np.array([2 * len(one) + 1 for one in own], np.int64)
        offsets = offsets_of(sizes)
        states, skips = np.full(int(offsets[-1]), blank, np.int64), np.full(int(offsets[-1]), -np.inf)
        for at, one in zip(offsets[:-1], own, strict=True):
            states[at + 1 : at + 2 * len(one) : 2] = one
            skips[at + 3 : at + 2 * len(one) : 2] = np.where(one[1:] == one[:-1], -np.inf, 0.0)
        cells = offsets_of(lengths * n_symbols)
        return cls(cells, lengths, n_symbols, blank, offsets, states, skips)

    def work(self) -> FloatArray:
        return np.asarray(20.0 * self.frames * np.diff(self.labels) + 100)

    def _run(self, kernel: Any, words: tuple[object, ...], running: Running) -> None:
        shape = (self.cell_offsets, self.frames, self.n_symbols, self.labels, self.states, self.skips)

        def task(shard: int, first: int, last: int) -> int:
            kernel(first, last, *shape, *words)
            return 0

        in_shards(self.work(), task, running)

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        log_z, found = np.empty(self.n_instances), np.zeros(self.n_cells if counts else 0)
        given = np.ones(self.n_instances) if weights is None else np.array(weights, np.float64)
        self._run(ctc_sums, (pool, given, counts, log_z, found), running)
        return Sums(log_z, found if counts else None)

    def _descents(self, pool: FloatArray, best: bool, size: int, state: Any, running: Running) -> Parts:
        starts = offsets_of(self.frames * size)
        cells = np.empty(int(starts[-1]), np.int64)
        self._run(ctc_descents, (pool, best, size, state, starts, cells), running)
        return Parts(offsets_of(np.repeat(self.frames, size)), cells).possible()

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        return [self._best_of(pool, i, n, running) for i in range(self.n_instances)]

    def _best_of(self, pool: FloatArray, instance: int, n: int, running: Running) -> list[IntArray]:
        own = slice(self.labels[instance], self.labels[instance + 1])
        states, skips = self.states[own], self.skips[own]
        begin, length = int(self.cell_offsets[instance]), int(self.frames[instance])
        chart = np.empty(length * (len(states) + 2))
        total = ctc_chart(pool, begin, length, self.n_symbols, states, skips, True, chart)
        known = chart.reshape(length, -1)[:, 2:]

        def edges(item: Any) -> list[Edge]:
            if item == ():
                return [Edge(((length - 1, k),), ()) for k in range(max(len(states) - 2, 0), len(states))]
            t, k = item
            cell = (begin + t * self.n_symbols + int(states[k]),)
            if t == 0:
                return [Edge((), cell)]
            steps = range(min(k, 2 if skips[k] == 0 else 1) + 1)
            return [Edge(((t - 1, k - step),), cell) for step in steps]

        def value(item: Any) -> float:
            return total if item == () else float(known[item])

        return k_best((), edges, value, pool, n, running) if length else []

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        keep_symbols(pool[self.cell_offsets[instance] :], cells - self.cell_offsets[instance], self.n_symbols)

    def _chosen(self, instances: IntArray) -> Self:
        labels = [self.states[self.labels[i] + 1 : self.labels[i + 1] : 2] for i in instances]
        return type(self).of(self.frames[instances], self.n_symbols, labels, self.blank)
