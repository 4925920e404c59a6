"""Cycle inequalities: what the local polytope allows around a cycle and no assignment does.

Look at each variable through an indicator "is it in state s" (one of them for two states, one for each state
otherwise). Around a cycle, indicators change an even number of times. So for any odd set F of its pairs, the pairs in F
cannot all differ while all the others agree: the weight of "agree" on F plus that of "differ" elsewhere is at least one
(Barahona and Mahjoub; for many states, Sontag and Jaakkola's projections). The most violated one through an indicator
is a shortest path in a graph of two copies of all indicators, in which pairs of F cross over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.linear_programming.local_polytope import LocalPolytope

__all__ = ["CycleCuts"]

# An inequality must be violated by this much to be worth adding.
LEAST_VIOLATION = 1e-3
# Weights this near to zero or one count as such.
WHOLE = 1e-6
# Shortest paths looked for at once.
AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of indicators: both ends, and the factor, axes and states they speak of."""

    left: IntArray
    right: IntArray
    factor: IntArray
    first_axis: IntArray
    second_axis: IntArray
    first_state: IntArray
    second_state: IntArray


class CycleCuts:
    """Finds violated cycle inequalities of a local polytope."""

    def __init__(self, polytope: LocalPolytope) -> None:
        self.polytope = polytope
        s = polytope.problem.structure
        cards = s.cardinalities.astype(np.int64)
        counts = np.where(cards == 2, 1, np.where(cards > 2, cards, 0))
        self.starts = offsets_of(counts)
        # The column of each indicator: of two states, the second.
        owner = np.repeat(np.arange(len(cards)), counts)
        state = np.arange(int(self.starts[-1])) - self.starts[owner]
        self.state = np.where(cards[owner] == 2, 1, state)
        self.column = s.value_offsets[owner] + self.state
        self.pairs = self._find_pairs(counts)
        self.known: set[tuple[tuple[int, bool], ...]] = set()

    @property
    def n_indicators(self) -> int:
        """How many indicators there are."""
        return int(self.starts[-1])

    def _find_pairs(self, counts: IntArray) -> _Pairs:
        parts: list[IntArray] = []
        for f, scope in enumerate(self.polytope.scopes):
            for a in range(len(scope)):
                for b in range(a + 1, len(scope)):
                    u, v = int(scope[a]), int(scope[b])
                    i, j = np.meshgrid(np.arange(counts[u]), np.arange(counts[v]), indexing="ij")
                    left, right = self.starts[u] + i.ravel(), self.starts[v] + j.ravel()
                    one = np.ones(len(left), np.int64)
                    parts.append(
                        np.stack([left, right, f * one, a * one, b * one, self.state[left], self.state[right]])
                    )
        joined = np.concatenate([np.zeros((7, 0), np.int64), *parts], axis=1)
        return _Pairs(*joined)

    def _differing(self, weights: FloatArray) -> FloatArray:
        """How much weight each pair of indicators gives to "they differ"."""
        p, out = self.pairs, np.empty(len(self.pairs.left))
        offsets, n = self.polytope.block_offsets, self.polytope.problem.structure.n_variables
        key = p.factor * 4096 + p.first_axis * 64 + p.second_axis
        begins = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else key
        for begin, end in zip(begins, np.append(begins[1:], len(key)), strict=True):
            f, a, b = int(p.factor[begin]), int(p.first_axis[begin]), int(p.second_axis[begin])
            states = self.polytope.cell_states[f]
            cells = weights[offsets[n + f] : offsets[n + f + 1]]
            scope = self.polytope.scopes[f]
            cards = self.polytope.problem.structure.cardinalities
            joint = np.bincount(
                states[a] * int(cards[scope[b]]) + states[b], cells, int(cards[scope[a]]) * int(cards[scope[b]])
            ).reshape(int(cards[scope[a]]), int(cards[scope[b]]))
            i, j = p.first_state[begin:end], p.second_state[begin:end]
            out[begin:end] = joint.sum(axis=1)[i] + joint.sum(axis=0)[j] - 2 * joint[i, j]
        return np.clip(out, 0.0, 1.0)

    def find(self, weights: FloatArray, most: int) -> list[tuple[IntArray, FloatArray, float]]:
        """Up to ``most`` violated inequalities ``values @ weights[columns] >= right``, the most violated first."""
        from scipy import sparse
        from scipy.sparse.csgraph import dijkstra

        p, n = self.pairs, self.n_indicators
        value = weights[self.column]
        loose = np.flatnonzero((value > WHOLE) & (value < 1 - WHOLE))
        if not len(p.left) or not len(loose):
            return []
        differ = self._differing(weights)
        keep, crosses = self._shortest(differ)
        # Not quite zero, so that a sparse matrix keeps it.
        straight, crossed = np.maximum(differ[keep], 1e-12), np.maximum(1 - differ[crosses], 1e-12)
        i, j, k, m = p.left[keep], p.right[keep], p.left[crosses], p.right[crosses]
        graph = sparse.csr_array(
            (
                np.concatenate([straight, straight, crossed, crossed]),
                (np.concatenate([i, i + n, k, k + n]), np.concatenate([j, j + n, m + n, m])),
            ),
            shape=(2 * n, 2 * n),
        )
        pair_at = {(int(a), int(b)): int(e) for a, b, e in zip(i, j, keep, strict=True)}
        cross_at = {(int(a), int(b)): int(e) for a, b, e in zip(k, m, crosses, strict=True)}
        found: list[tuple[float, tuple[tuple[int, bool], ...]]] = []
        for begin in range(0, len(loose), AT_ONCE):
            sources = loose[begin : begin + AT_ONCE]
            lengths, before = dijkstra(
                graph, directed=False, indices=sources, return_predecessors=True, limit=1.0 - LEAST_VIOLATION
            )
            for row, source in enumerate(sources.tolist()):
                if lengths[row, source + n] < 1.0 - LEAST_VIOLATION:
                    walk = self._walk(before[row], source, n, pair_at, cross_at)
                    found.append((float(lengths[row, source + n]), walk))
        return self._rows(found, most)

    def _shortest(self, differ: FloatArray) -> tuple[IntArray, IntArray]:
        """Of several factors on the same two indicators, the one that makes a straight, or a crossed, pair shortest."""
        p = self.pairs
        key = p.left * self.n_indicators + p.right

        def first(order: IntArray) -> IntArray:
            ordered = key[order]
            return order[np.concatenate([[True], ordered[1:] != ordered[:-1]])]

        return first(np.lexsort((differ, key))), first(np.lexsort((-differ, key)))

    @staticmethod
    def _walk(
        before: IntArray, source: int, n: int, pair_at: dict[tuple[int, int], int], cross_at: dict[tuple[int, int], int]
    ) -> tuple[tuple[int, bool], ...]:
        """The pairs of a closed walk and whether each crosses."""
        steps, here = [], source + n
        while here != source:
            there = int(before[here])
            crosses = (here >= n) != (there >= n)
            a, b = here % n, there % n
            where = cross_at if crosses else pair_at
            steps.append((where[(a, b)] if (a, b) in where else where[(b, a)], crosses))
            here = there
        return tuple(sorted(steps))

    def _rows(
        self, found: list[tuple[float, tuple[tuple[int, bool], ...]]], most: int
    ) -> list[tuple[IntArray, FloatArray, float]]:
        rows: list[tuple[IntArray, FloatArray, float]] = []
        for _, walk in sorted(found):
            if walk in self.known or len(rows) == most:
                continue
            self.known.add(walk)
            columns, values, crossed = [], [], 0
            for e, crosses in walk:
                where = self._cells(e)
                columns.append(where)
                values.append(np.full(len(where), -1.0 if crosses else 1.0))
                crossed += crosses
            rows.append((np.concatenate(columns), np.concatenate(values), 1.0 - crossed))
        return rows

    def _cells(self, e: int) -> IntArray:
        """The columns of the cells in which a pair of indicators differs."""
        p, f = self.pairs, int(self.pairs.factor[e])
        states = self.polytope.cell_states[f]
        differ = (states[p.first_axis[e]] == p.first_state[e]) != (states[p.second_axis[e]] == p.second_state[e])
        start = self.polytope.block_offsets[self.polytope.problem.structure.n_variables + f]
        cells: IntArray = start + np.flatnonzero(differ)
        return cells
