"""Dependency trees without crossing arcs over many sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.core.running import Running
from markovfield.kernels.random import streams
from markovfield.structures.core.family import Edge
from markovfield.structures.core.k_best import k_best
from markovfield.structures.projective_tree.inside_outside_kernel import projective_sums
from markovfield.structures.projective_tree.log_chart_kernel import draw_or_decode, fill_log_chart
from markovfield.structures.spanning_tree.arcs import ArcTrees

__all__ = ["ProjectiveTrees"]


@dataclass(frozen=True, eq=False)
class ProjectiveTrees(ArcTrees):
    """Projective trees over sentences of some lengths, the root left of all words."""

    name: ClassVar[str] = "projective_tree"

    def _sums(self, arcs: FloatArray, log_z: FloatArray, counts: FloatArray, running: Running) -> None:
        self._run(projective_sums, arcs, (log_z, counts), running)

    def _heads(self, arcs: FloatArray, size: int, best: bool, rng: Any, running: Running) -> IntArray:
        starts = offsets_of(self.lengths * size)
        heads = np.empty(int(starts[-1]), np.int64)
        states = np.zeros((self.n_instances, 4), np.uint64) if best else streams(rng, self.n_instances)
        self._run(draw_or_decode, arcs, (size, best, states, heads, starts), running)
        return heads

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        return [self._best_of(pool, i, n, running) for i in range(self.n_instances)]

    def _best_of(self, pool: FloatArray, instance: int, n: int, running: Running) -> list[IntArray]:
        side, labels = int(self.lengths[instance]) + 1, self.n_labels
        if side == 1:
            return [np.zeros(0, np.int64)]
        first = int(self.cell_offsets[instance])
        own = pool[first : int(self.cell_offsets[instance + 1])].reshape(side, side, labels)
        scores = np.ascontiguousarray(own.max(axis=2))
        arc, span, turned = np.empty((3, side, side))
        fill_log_chart(scores, side - 1, self.single_root, True, arc, span, turned)

        def value(item: Any) -> float:
            kind, a, b = item
            if kind == "between":
                return float(np.max(span[a, a:b] + span[b, a + 1 : b + 1]))
            return float((span if kind == "span" else arc)[a, b])

        def edges(item: Any) -> list[Edge]:
            kind, a, b = item
            low, high = min(a, b), max(a, b)
            if kind == "arc":
                at = first + (a * side + b) * labels
                return [Edge((("between", low, high),), (at + label,)) for label in range(labels)]
            if kind == "between":
                pairs = (((low, k), (high, k + 1)) for k in range(low, high))
                return [Edge(tuple(("span", h, e) for h, e in pair if h != e), ()) for pair in pairs]
            words = range(a + 1, b + 1) if a < b else range(b, a)
            return [Edge((("arc", a, m), *([("span", m, b)] if m != b else [])), ()) for m in words]

        return k_best(("span", 0, side - 1), edges, value, pool, n, running)
