"""Moments of spins of a planar Ising model: products of edges along a spanning tree, as small Pfaffians."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.inference.planar_ising.elimination import Elimination, eliminate_all
from markovfield.inference.planar_ising.pfaffian_kernel import pfaffian
from markovfield.inference.planar_ising.plan import PlanarPlan

__all__ = ["PlanarSolution"]

BLOCK = 64
"""Columns of the inverse computed at once."""
ENOUGH, MOST = 1e-10, 1e-9
"""The disagreement of two computations of the same number at which to be content, and the most allowed."""
SMALL = 1e-4
# Stands for a probability that is positive and too small for a difference of moments to tell.
SMALLEST = 1e-300
"""The share of a term, relative to the largest, below which its inverse has lost too many digits."""
CASES, NEGLIGIBLE = 256, 1e-13
"""The most cases to tell apart, and the probability of those that need not be."""


def _darts(edges: IntArray) -> IntArray:
    """Both darts of each edge, one after the other."""
    return (2 * edges[:, None] + np.arange(2)).reshape(-1)


@dataclass(frozen=True, eq=False)
class PlanarSolution:
    """A solved Ising model on the plane or a torus; vertices as in its plan.

    Attributes
    ----------
    terms, shares
        The factored matrices, one or on a torus four, and how much of Z each of them is: shares add up to one, some
        may be negative.
    coupling
        ``float64[edges]``: of every edge of the plan.
    solve_for
        Solves the same plan for other couplings.
    log_partition
        Of the spins, before any constant.
    spins
        ``float64[n]``, the assignment that flips were counted from.
    alike, differ
        For each edge of the plan, the probability that its ends are alike, or not.
    wrong
        How far two computations of the same probabilities are apart.
    """

    terms: tuple[Elimination, ...]
    shares: FloatArray
    coupling: FloatArray
    solve_for: Callable[[FloatArray], PlanarSolution]
    log_partition: float
    spins: FloatArray
    alike: FloatArray
    differ: FloatArray
    wrong: float

    @property
    def plan(self) -> PlanarPlan:
        """Shared by all terms."""
        return self.terms[0].plan

    def path(self, vertex: int) -> list[int]:
        """Edges of the plan's spanning tree from the root to a vertex."""
        above, tails = self.plan.above, self.plan.tails
        edges = []
        while above[vertex] >= 0:
            edges.append(int(above[vertex]) // 2)
            vertex = int(tails[above[vertex]])
        return edges[::-1]

    def _columns(self, edges: IntArray) -> list[FloatArray]:
        """Of each term: columns of the inverse for both darts of some edges, scaled for `_moment`."""
        darts = _darts(edges)
        out = []
        for term in self.terms:
            units = np.zeros((len(term.weight) * 2, len(darts)))
            units[darts, np.arange(len(darts))] = 1.0
            size = np.sqrt(2.0 * np.abs(np.repeat(term.weight, 2)))
            out.append(size[:, None] * term.solve(units) * size[darts])
        return out

    def _moment(self, term: Elimination, block: FloatArray, edges: IntArray) -> tuple[float, float]:
        """Expectation of the product of some edges, each 1 if its ends are alike and else -1, and a second opinion.

        Turning the sign of an edge's entry in a term counts assignments with that edge's value; the quotient of the
        two Pfaffians is one of the size of what was changed. Triangles of the block were computed separately.
        """
        sign = np.sign(term.weight[edges])
        at = np.arange(len(edges))
        found: list[float] = []
        for matrix in (block.copy(), -block.T):
            matrix[2 * at, 2 * at + 1] += sign
            matrix[2 * at + 1, 2 * at] -= sign
            backwards = slice(None, None, 1 if not found else -1)
            # All rows and columns in reverse: the sign of that is (-1)^edges.
            turn = 1.0 if not found or len(edges) % 2 == 0 else -1.0
            value = turn * float(pfaffian(np.ascontiguousarray(matrix[backwards, backwards]))) * float(np.prod(sign))
            found.append(-value if len(edges) % 2 else value)
        return found[0], found[1]

    def _settled(self, blocks: Sequence[FloatArray], edges: IntArray, turn: float) -> float:
        """A moment both of whose opinions agree, by cases if they do not; ``turn`` leads back to the model's spins."""
        sizes = np.abs(self.shares)
        parts = np.empty((len(sizes), 2))
        for t, (term, block) in enumerate(zip(self.terms, blocks, strict=True)):
            # A Pfaffian that is nearly zero has an inverse too large to go on with, and both opinions may be wrong.
            small = sizes[t] < SMALL * sizes.max()
            parts[t] = self._afresh(t, edges) if small else self.shares[t] * np.array(self._moment(term, block, edges))
        off = np.abs(parts[:, 0] - parts[:, 1])
        if off.sum() <= ENOUGH:
            return float(np.clip(turn * parts.sum(axis=0).mean(), -1.0, 1.0))
        return self._by_cases(edges.tolist(), [CASES], 60.0 + 4.0 * np.abs(self.coupling).max())

    def _afresh(self, t: int, edges: IntArray) -> list[float]:
        """What `_moment` finds for a term, times the term's share, from two eliminations with the edges turned."""
        plan, sign = self.plan, self.plan.signs[t].copy()
        sign[edges] *= -1.0
        most = int(np.argmax(np.abs(self.shares)))
        turned = self.coupling * self.spins[plan.tails[::2]] * self.spins[plan.tails[1::2]]
        found = []
        for threshold, backwards in ((0.1, False), (0.5, True)):
            term = eliminate_all(
                plan, turned, sign, keep=False, threshold=threshold, backwards=backwards, running=Running()
            )
            log_ratio = math.fsum((*term.log_pivots, *-self.terms[most].log_pivots))
            found.append(term.sign * float(np.prod(sign)) * math.exp(log_ratio) * abs(float(self.shares[most])))
        return found

    def _by_cases(self, edges: list[int], left: list[int], hold: float) -> float:
        """The same in the model's spins, without any cancelling: one edge after the other is fixed either way.

        Only couplings so strong that most edges have but one way make this necessary, which also keeps the cases few.
        """
        tails, total = self.plan.tails, 0.0
        ends = tails.reshape(-1, 2)[edges]
        turned = self.spins[ends[:, 0]] * self.spins[ends[:, 1]] < 0
        alike = np.where(turned, self.differ[edges], self.alike[edges])
        k = int(np.argmax(np.abs(alike - 0.5)))
        rest = edges[:k] + edges[k + 1 :]
        # What is neglected counts as if the rest of the path were alike: that is less than rounding.
        for value, probability in ((1.0, float(alike[k])), (-1.0, 1.0 - float(alike[k]))):
            if probability > NEGLIGIBLE and rest:
                left[0] -= 1
                if left[0] < 0:
                    raise ModelError(
                        f"method 'planar' loses its digits on moments of spins far apart under couplings as strong "
                        f"as {np.abs(self.coupling).max():.3g}: scale them down, or take junction_tree or mini_bucket"
                    )
                fixed = self.coupling.copy()
                fixed[edges[k]] = value * hold
                total += value * probability * self.solve_for(fixed)._by_cases(rest, left, hold)
            else:
                total += value * probability
        return total

    def _odd_edges(self, vertices: Sequence[int]) -> IntArray:
        """Edges on an odd number of the paths from the root to some vertices."""
        odd: set[int] = set()
        for v in vertices:
            odd ^= set(self.path(v))
        return np.array(sorted(odd), np.int64)

    def moments(self, sets: Sequence[Sequence[int]]) -> list[float]:
        """E of the product of the spins of each set; sets are even, or have the root of the tree to make them so."""
        wanted = [self._odd_edges(s) for s in sets]
        edges = np.unique(np.concatenate([np.zeros(0, np.int64), *wanted]))
        columns = self._columns(edges)
        out = []
        for s, needed in zip(sets, wanted, strict=True):
            cells = np.ix_(_darts(needed), _darts(np.searchsorted(edges, needed)))
            out.append(self._settled([c[cells] for c in columns], needed, float(np.prod(self.spins[list(s)]))))
        return out

    def with_root(self, vertices: IntArray, running: Running) -> FloatArray:
        """E of each vertex's spin times that of the root, by the path between them.

        One solution of a linear system for every dart on such a path, so about the square of the number of vertices
        in all; memory is their number times their depth squared.
        """
        paths = {v: np.array(self.path(v), np.int64) for v in vertices.tolist()}
        edges = np.unique(np.concatenate([np.zeros(0, np.int64), *paths.values()]))
        blocks = {v: np.zeros((len(self.terms), 2 * len(p), 2 * len(p))) for v, p in paths.items()}
        users: dict[int, list[tuple[int, int]]] = {}
        for v, p in paths.items():
            for t, e in enumerate(p.tolist()):
                users.setdefault(e, []).append((v, t))
        for start in range(0, len(edges), BLOCK // 2):
            running.check()
            some = edges[start : start + BLOCK // 2]
            columns = self._columns(some)
            for x, e in enumerate(some.tolist()):
                for v, t in users[e]:
                    rows = _darts(paths[v])
                    for block, term in zip(blocks[v], columns, strict=True):
                        block[:, 2 * t : 2 * t + 2] = term[rows, 2 * x : 2 * x + 2]
        root = self.spins[self.plan.order[0]]
        return np.array([self._settled(list(blocks[v]), p, float(self.spins[v] * root)) for v, p in paths.items()])

    def joint(self, vertices: Sequence[int], root: int | None) -> FloatArray:
        """Joint distribution of some spins, first states -1; ``root`` is a vertex that makes odd moments even."""
        k = len(vertices)
        sets, axes = [], []
        for size in range(1, k + 1):
            for chosen in combinations(range(k), size):
                if size % 2 and root is None:
                    continue
                sets.append([vertices[c] for c in chosen] + ([root] if size % 2 and root is not None else []))
                axes.append(chosen)
        table = np.ones((2,) * k)
        spin = np.array([-1.0, 1.0])
        for value, chosen in zip(self.moments(sets), axes, strict=True):
            term = np.array(value)
            for axis in range(k):
                term = np.multiply.outer(term, spin if axis in chosen else np.ones(2))
            table += term
        # Differences of moments are right to about 1e-16, and no state of an Ising model is impossible.
        table = np.maximum(table, SMALLEST)
        return np.asarray(table / table.sum())
