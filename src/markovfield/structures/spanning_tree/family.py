"""Dependency trees with crossing arcs over many sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.core.running import Running
from markovfield.kernels.random import streams
from markovfield.structures.core.partitioning import n_best
from markovfield.structures.spanning_tree.arcs import ArcTrees
from markovfield.structures.spanning_tree.best_kernel import best_trees
from markovfield.structures.spanning_tree.elimination_kernel import spanning_sums
from markovfield.structures.spanning_tree.log_elimination_kernel import draw_trees

__all__ = ["SpanningTrees"]


@dataclass(frozen=True, eq=False)
class SpanningTrees(ArcTrees):
    """Arborescences over sentences of some lengths, from the root."""

    name: ClassVar[str] = "spanning_tree"

    def _sums(self, arcs: FloatArray, log_z: FloatArray, counts: FloatArray, running: Running) -> None:
        self._run(spanning_sums, arcs, (log_z, counts), running)

    def _heads(self, arcs: FloatArray, size: int, best: bool, rng: Any, running: Running) -> IntArray:
        starts = offsets_of(self.lengths * size)
        heads = np.empty(int(starts[-1]), np.int64)
        if best:
            self._run(best_trees, arcs, (heads, starts), running)
        else:
            self._run(draw_trees, arcs, (size, streams(rng, self.n_instances), heads, starts), running)
        return heads

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        return n_best(self, pool, n, running)
