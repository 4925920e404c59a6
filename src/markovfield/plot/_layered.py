"""Layered drawings of directed graphs (after Sugiyama): rows, fewer crossings, places in the rows. Sizes in points.

No library takes its place: measured on networks of up to 70 variables, `grandalf` (GPL or EPL) crosses up to twice as
many edges and draws up to 2.6 times as wide, and `fast-sugiyama` (MIT) knows no sizes of boxes.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

__all__ = ["Layered", "layered", "spread"]

Size = tuple[float, float]
Point = tuple[float, float]

SWEEPS = 24
STARTS = 12
# Beyond these many arcs, or pieces of arcs between rows, cheaper rules take the place of linear programmes.
MOST_ARCS = 4000
MOST_PIECES = 2500
# Up to here all sweeps are made, beyond it fewer.
QUICK_PIECES = 400
# Widest row, in sides of a square of the area that all boxes need.
WIDEST = 2.0
# Negative, so that edges side by side take less room than boxes do: two bends stand gap + BEND_WIDTH apart.
BEND_WIDTH = -11.0


def spread(
    wanted: Sequence[float], widths: Sequence[float], gap: float, weights: Sequence[float] | None = None
) -> list[float]:
    """Centres nearest to the wanted ones (least squares) in the order given, at least ``gap`` between boxes.

    Pool adjacent violators: with the widths taken off, the only constraint is that the sequence rises.

    Examples
    --------
    >>> spread([0.0, 0.0], [10.0, 10.0], 2.0)
    [-6.0, 6.0]
    """
    offsets = [0.0] * min(1, len(widths))
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2 + gap)
    pools: list[tuple[float, float, int]] = []
    for want, offset, pull in zip(wanted, offsets, weights or [1.0] * len(widths), strict=True):
        total, mass, count = pull * (want - offset), pull, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / mass:
            before, more, n = pools.pop()
            total, mass, count = total + before, mass + more, count + n
        pools.append((total, mass, count))
    level = [total / mass for total, mass, count in pools for _ in range(count)]
    return [a + b for a, b in zip(level, offsets, strict=True)]


@dataclass(frozen=True)
class Layered:
    """Centres of the nodes, and for each edge the control points of its Bezier curve; y grows upwards."""

    centres: dict[int, Point]
    curves: dict[tuple[int, int], list[Point]]
    width: float
    height: float


@dataclass
class _Rows:
    """Rows of nodes from the top down; nodes from ``n`` on are bends of edges that span several rows."""

    n: int
    rows: list[list[int]]
    above: dict[int, list[int]] = field(default_factory=dict)
    below: dict[int, list[int]] = field(default_factory=dict)

    def join(self, upper: int, lower: int) -> None:
        self.below.setdefault(upper, []).append(lower)
        self.above.setdefault(lower, []).append(upper)

    def pieces(self) -> list[tuple[int, int]]:
        """Pairs of nodes in adjacent rows that an edge joins, the upper one first."""
        return [(a, b) for a, those in self.below.items() for b in those]

    def pull(self, a: int, b: int) -> float:
        """How much a piece wants to be straight: more within a long edge than at its ends."""
        return (1.0, 2.0, 12.0)[(a >= self.n) + (b >= self.n)]

    def sort(self) -> None:
        """Fewer crossings: rows in the order of their neighbours' mean places, then swaps of adjacent nodes."""
        pieces = 1 + sum(map(len, self.below.values()))
        sweeps = int(np.clip(SWEEPS * QUICK_PIECES / pieces, 4, SWEEPS))
        starts = [self._depth_first(down) for down in (True, False)]
        # Sweeps fall into local optima; small graphs can afford to start from other orders too. The seed is fixed: the
        # same graph is always drawn the same way.
        rng = np.random.default_rng(0)
        for _ in range(min(STARTS, 5 * QUICK_PIECES // pieces)):
            starts.append([[row[i] for i in rng.permutation(len(row))] for row in self.rows])
        best, least = starts[0], -1
        for start in starts:
            self.rows = start
            for sweep in range(sweeps):
                self._sweep(down=sweep % 2 == 0)
                if sweep >= sweeps // 3:
                    self._swap()
                found = self.crossings()
                if least < 0 or found < least:
                    best, least = [list(r) for r in self.rows], found
                if not found:
                    break
            if not least:
                break
        self.rows = best

    def _depth_first(self, down: bool) -> list[list[int]]:
        """Rows in the order of a walk along the edges, which keeps what hangs together side by side."""
        level = {v: r for r, row in enumerate(self.rows) for v in row}
        order: list[list[int]] = [[] for _ in self.rows]
        seen: set[int] = set()
        for row in self.rows if down else self.rows[::-1]:
            for start in row:
                stack = [start]
                while stack:
                    v = stack.pop()
                    if v in seen:
                        continue
                    seen.add(v)
                    order[level[v]].append(v)
                    both = (self.above, self.below) if down else (self.below, self.above)
                    stack += [w for near in both for w in reversed(near.get(v, [])) if w not in seen]
        return order

    def _sweep(self, down: bool) -> None:
        order = range(1, len(self.rows)) if down else range(len(self.rows) - 2, -1, -1)
        near = self.above if down else self.below
        for r in order:
            other = {v: i for i, v in enumerate(self.rows[r - 1 if down else r + 1])}
            old = {v: i for i, v in enumerate(self.rows[r])}
            places = {v: [other[u] for u in near.get(v, [])] for v in old}
            means = {v: sum(p) / len(p) if p else float(old[v]) for v, p in places.items()}
            self.rows[r].sort(key=lambda v, means=means: means[v])  # type: ignore[misc]

    def _swap(self) -> None:
        """Exchange neighbours in a row wherever that leaves fewer crossings, until nowhere does."""
        place = {v: i for row in self.rows for i, v in enumerate(row)}

        def crossed(v: int, w: int) -> int:
            """Crossings of the edges of two nodes of a row when v stands left of w."""
            count = 0
            for near in (self.above, self.below):
                right = sorted(place[u] for u in near.get(w, []))
                count += sum(bisect_right(right, place[u] - 1) for u in near.get(v, []))
            return count

        for _ in range(8):
            better = False
            for row in self.rows:
                for i in range(len(row) - 1):
                    v, w = row[i], row[i + 1]
                    if crossed(w, v) < crossed(v, w):
                        row[i], row[i + 1] = w, v
                        place[v], place[w] = i + 1, i
                        better = True
            if not better:
                return

    def crossings(self) -> int:
        """Pairs of edges between adjacent rows that cross."""
        count = 0
        for upper, lower in pairwise(self.rows):
            at = {v: i for i, v in enumerate(lower)}
            passed: list[int] = []
            for v in upper:
                ends = sorted(at[w] for w in self.below.get(v, []))
                count += sum(len(passed) - bisect_right(passed, e) for e in ends)
                for e in ends:
                    insort(passed, e)
        return count

    def places(self, widths: Mapping[int, float], gap: float) -> dict[int, float]:
        """Places across: short and straight edges within the order of the rows."""
        x = dict.fromkeys(widths, 0.0)
        for row in self.rows:
            x |= dict(zip(row, spread([0.0] * len(row), [widths[v] for v in row], gap), strict=True))
        pieces = self.pieces()
        straight = 0 < len(pieces) <= MOST_PIECES
        if straight:
            x = self._straight(x, pieces, widths, gap)
        # Least absolute lengths make straight lines; a few rounds of least squares then centre parents and children.
        for sweep in range(4 if straight else SWEEPS):
            for row in self.rows if sweep % 2 else self.rows[::-1]:
                wanted, mass = [], []
                for v in row:
                    near = self.above.get(v, []) + self.below.get(v, [])
                    pulls = [self.pull(u, v) for u in near]
                    total = sum(pulls)
                    wanted.append(sum(p * x[u] for p, u in zip(pulls, near, strict=True)) / total if near else x[v])
                    mass.append(max(total, 0.1))
                x |= dict(zip(row, spread(wanted, [widths[v] for v in row], gap, mass), strict=True))
        return self._straight(x, pieces, widths, gap, bends_only=True) if straight else x

    def _straight(
        self,
        start: dict[int, float],
        pieces: list[tuple[int, int]],
        widths: Mapping[int, float],
        gap: float,
        *,
        bends_only: bool = False,
    ) -> dict[int, float]:
        """The least weighted sum of sideways steps of all pieces: a linear programme."""
        from scipy import sparse
        from scipy.optimize import linprog

        n, m = len(start), len(pieces)
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        bounds: list[float] = []

        def constrain(entries: list[tuple[int, float]], bound: float) -> None:
            for column, value in entries:
                rows.append(len(bounds))
                columns.append(column)
                values.append(value)
            bounds.append(bound)

        for k, (a, b) in enumerate(pieces):
            constrain([(a, 1.0), (b, -1.0), (n + k, -1.0)], 0.0)
            constrain([(a, -1.0), (b, 1.0), (n + k, -1.0)], 0.0)
        for row in self.rows:
            for a, b in pairwise(row):
                constrain([(a, 1.0), (b, -1.0)], -(widths[a] + widths[b]) / 2 - gap)
        matrix = sparse.csr_array((values, (rows, columns)), shape=(len(bounds), n + m))
        cost = np.concatenate([np.zeros(n), [self.pull(a, b) for a, b in pieces]])
        lower, upper = np.full(n + m, -np.inf), np.full(n + m, np.inf)
        if bends_only:
            lower[: self.n] = upper[: self.n] = [start[v] for v in range(self.n)]
        # A hair less than what stands already, which must not become infeasible by rounding.
        found = linprog(cost, matrix, np.array(bounds) + 1e-6, bounds=np.column_stack([lower, upper]), method="highs")
        return start if found.x is None else {v: float(found.x[v]) for v in start}


def _longest(n: int, parents: Mapping[int, Sequence[int]], children: list[list[int]]) -> list[int]:
    level = [0] * n
    waiting = {v: len(parents.get(v, ())) for v in range(n)}
    ready = [v for v in range(n) if not waiting[v]]
    while ready:
        v = ready.pop()
        for w in children[v]:
            level[w] = max(level[w], level[v] + 1)
            waiting[w] -= 1
            if not waiting[w]:
                ready.append(w)
    for v in range(n):
        if not parents.get(v) and children[v]:
            level[v] = min(level[w] for w in children[v]) - 1
    return level


def _levels(n: int, parents: Mapping[int, Sequence[int]], widths: Sequence[float]) -> list[int]:
    """Row of each node, below all parents: the rows that make the edges shortest in all (a linear programme)."""
    children: list[list[int]] = [[] for _ in range(n)]
    for v in range(n):
        for p in parents.get(v, ()):
            children[p].append(v)
    level = _longest(n, parents, children)
    arcs = [(p, v) for v in range(n) for p in parents.get(v, ())]
    if not 2 < len(arcs) <= MOST_ARCS:
        return level
    from scipy import sparse
    from scipy.optimize import linprog

    at = np.repeat(np.arange(len(arcs)), 2)
    matrix = sparse.csr_array((np.tile([1.0, -1.0], len(arcs)), (at, np.ravel(arcs))), shape=(len(arcs), n))
    cost = np.array([len(parents.get(v, ())) - len(children[v]) for v in range(n)], float)
    found = linprog(cost, matrix, -np.ones(len(arcs)), bounds=(0, None), method="highs")
    if found.x is None:
        return level
    level = np.round(found.x).astype(int).tolist()
    for component in _components(n, arcs):
        top = min(level[v] for v in component)
        for v in component:
            level[v] -= top
    # A node pulled as much up as down may stand anywhere between: best where there is room.
    used = [0.0] * (max(level) + 1)
    for v in range(n):
        used[level[v]] += widths[v]
    for v in range(n):
        if cost[v] == 0 and children[v]:
            choice = range(max(level[p] for p in parents[v]) + 1, min(level[w] for w in children[v]))
            used[level[v]] -= widths[v]
            level[v] = min(choice, key=lambda r: (used[r], r))
            used[level[v]] += widths[v]
    return level


def _narrowed(
    level: list[int], parents: Mapping[int, Sequence[int]], sizes: Sequence[Size], gap: float, row_gap: float
) -> list[int]:
    """Rows much too wide are cut into several, nodes with few parents and those with children last."""
    inner = {p for those in parents.values() for p in those}
    area = sum((w + gap) * (h + row_gap) for w, h in sizes)
    limit = WIDEST * float(np.sqrt(area))
    result = list(level)
    shift = 0
    for r in range(max(level, default=-1) + 1):
        row = [v for v in range(len(level)) if level[v] == r]
        total = sum(sizes[v][0] + gap for v in row)
        parts = int(np.ceil(total / limit))
        row.sort(key=lambda v: (v in inner, -len(parents.get(v, ()))))
        filled = 0.0
        for v in row:
            result[v] = r + shift + min(int(filled * parts / total), parts - 1)
            filled += sizes[v][0] + gap
        shift += parts - 1
    return result


def _components(n: int, arcs: list[tuple[int, int]]) -> list[list[int]]:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(arcs)
    return [sorted(component) for component in nx.connected_components(graph)]


def layered(
    sizes: Sequence[Size], parents: Mapping[int, Sequence[int]], *, gap: float = 20.0, row_gap: float = 36.0
) -> Layered:
    """Rows of nodes with all arcs pointing down.

    Parameters
    ----------
    sizes
        Width and height of each node's box.
    parents
        Node to the nodes above it; without directed cycles.
    gap, row_gap
        Least distance of boxes in a row, and of rows; rows between which edges run far sideways stand further apart.
    """
    n = len(sizes)
    level = _narrowed(_levels(n, parents, [w for w, _ in sizes]), parents, sizes, gap, row_gap)
    depth = max(level, default=0) + 1
    rows = _Rows(n, [[v for v in range(n) if level[v] == r] for r in range(depth)])
    widths = {v: sizes[v][0] for v in range(n)}
    chains: dict[tuple[int, int], list[int]] = {}
    for v in range(n):
        for p in parents.get(v, ()):
            chain = [p]
            for r in range(level[p] + 1, level[v]):
                bend = len(widths)
                widths[bend] = BEND_WIDTH
                rows.rows[r].append(bend)
                chain.append(bend)
            chain.append(v)
            chains[p, v] = chain
            for a, b in pairwise(chain):
                rows.join(a, b)
    rows.sort()
    x = rows.places(widths, gap)
    left = min((x[v] - abs(widths[v]) / 2 for v in x), default=0.0)
    right = max((x[v] + abs(widths[v]) / 2 for v in x), default=0.0)
    x = {v: at - left for v, at in x.items()}
    row_of = {v: r for r, row in enumerate(rows.rows) for v in row}
    tall = [max((sizes[v][1] for v in row if v < n), default=0.0) for row in rows.rows]
    between = [row_gap] * max(depth - 1, 0)
    for a, b in rows.pieces():
        between[row_of[a]] = max(between[row_of[a]], min(0.11 * abs(x[a] - x[b]), 2.2 * row_gap))
    height = sum(tall) + sum(between)
    middles, at = [], height
    for r, t in enumerate(tall):
        middles.append(at - t / 2)
        at -= t + (between[r] if r < depth - 1 else 0.0)
    curves = {}
    for (p, v), chain in chains.items():
        stops: list[tuple[Point, Point]] = []
        for i, u in enumerate(chain):
            y, rim = middles[row_of[u]], tall[row_of[u]] / 2
            if u >= n:
                stops.append(((x[u], y + rim), (x[u], y - rim)))
                continue
            # Edges leave a box towards where they go, so that those of one box do not all share a point; out of a box
            # lower than its row they go upright, clear of its neighbours.
            towards = x[chain[i + 1 if i == 0 else i - 1]] - x[u]
            port = x[u] + float(np.clip(0.25 * towards, -0.32 * widths[u], 0.32 * widths[u]))
            half = sizes[u][1] / 2
            stops.append(((port, y - half), (port, y - rim)) if i == 0 else ((port, y + rim), (port, y + half)))
        curves[p, v] = _bezier(stops)
    return Layered({v: (x[v], middles[level[v]]) for v in range(n)}, curves, right - left, height)


def _bezier(stops: list[tuple[Point, Point]]) -> list[Point]:
    """Control points of a curve that comes down through stops: where it reaches a row and where it leaves it."""
    points = [stops[0][0], *_upright(*stops[0])]
    for (_, (x0, y0)), (reached, left) in pairwise(stops):
        x1, y1 = reached
        # Upright where the pieces on both sides are, so that they join smoothly; leaning at the bare ends of the edge.
        lean0 = 0.22 if len(points) == 1 else 0.0
        lean1 = 0.22 if left is stops[-1][1] and reached == left else 0.0
        dx, dy = x1 - x0, y1 - y0
        points += [(x0 + lean0 * dx, y0 + 0.42 * dy), (x1 - lean1 * dx, y1 - 0.42 * dy), (x1, y1)]
        points += _upright(reached, left)
    return points


def _upright(top: Point, bottom: Point) -> list[Point]:
    """The rest of the control points of a straight piece; none when it has no length."""
    (x, y0), (_, y1) = top, bottom
    return [(x, y0 + (y1 - y0) / 3), (x, y1 - (y1 - y0) / 3), (x, y1)] if y0 - y1 > 1e-9 else []
