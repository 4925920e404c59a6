"""Where to put the nodes of a drawing: layered for directed graphs, tidy for trees. Sizes are in points."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np

__all__ = ["Layered", "layered", "spread", "tidy_forest"]

Node = TypeVar("Node", bound=Hashable)
Size = tuple[float, float]
Point = tuple[float, float]

SWEEPS = 24


def spread(wanted: Sequence[float], widths: Sequence[float], gap: float) -> list[float]:
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
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        total, count = want - offset, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            before, n = pools.pop()
            total, count = total + before, count + n
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    return [a + b for a, b in zip(level, offsets, strict=True)]


@dataclass(frozen=True)
class Layered:
    """Centres of the nodes, and for each edge the points it bends through, its ends included; y grows upwards."""

    centres: dict[int, Point]
    routes: dict[tuple[int, int], list[Point]]
    width: float
    height: float


@dataclass
class _Rows:
    """Rows of nodes from the top down; nodes from ``n`` on are bends of edges that span several rows."""

    rows: list[list[int]]
    above: dict[int, list[int]] = field(default_factory=dict)
    below: dict[int, list[int]] = field(default_factory=dict)

    def sort(self) -> None:
        """Fewer crossings: order each row by the mean place of its neighbours, downwards and upwards in turn."""
        best, least = [list(r) for r in self.rows], self.crossings()
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            order = range(1, len(self.rows)) if down else range(len(self.rows) - 2, -1, -1)
            near = self.above if down else self.below
            for r in order:
                other = {v: i for i, v in enumerate(self.rows[r - 1 if down else r + 1])}
                old = {v: i for i, v in enumerate(self.rows[r])}

                places = {v: [other[u] for u in near.get(v, []) if u in other] for v in old}
                means = {v: float(np.mean(p)) if p else float(old[v]) for v, p in places.items()}
                self.rows[r].sort(key=lambda v, means=means: means[v])  # type: ignore[misc]
            found = self.crossings()
            if found < least:
                best, least = [list(r) for r in self.rows], found
        self.rows = best

    def crossings(self) -> int:
        """Pairs of edges between adjacent rows that cross."""
        count = 0
        for upper, lower in pairwise(self.rows):
            at = {v: i for i, v in enumerate(lower)}
            ends = [(i, at[w]) for i, v in enumerate(upper) for w in self.below.get(v, []) if w in at]
            count += sum((a - c) * (b - d) < 0 for k, (a, b) in enumerate(ends) for c, d in ends[:k])
        return count


def _levels(n: int, parents: Mapping[int, Sequence[int]]) -> list[int]:
    """Row of each node: below all parents, and roots no higher than they need to be."""
    level = [0] * n
    children: dict[int, list[int]] = {v: [] for v in range(n)}
    for v in range(n):
        for p in parents.get(v, ()):
            children[p].append(v)
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


def layered(
    sizes: Sequence[Size], parents: Mapping[int, Sequence[int]], *, gap: float = 22.0, row_gap: float = 40.0
) -> Layered:
    """Rows of nodes with all arcs pointing down (after Sugiyama): levels, fewer crossings, then places in each row."""
    n = len(sizes)
    level = _levels(n, parents)
    depth = max(level, default=0) + 1
    rows = _Rows([[v for v in range(n) if level[v] == r] for r in range(depth)])
    widths = {v: sizes[v][0] for v in range(n)}
    chains: dict[tuple[int, int], list[int]] = {}
    for v in range(n):
        for p in parents.get(v, ()):
            chain = [p]
            for r in range(level[p] + 1, level[v]):
                bend = len(widths)
                widths[bend] = 4.0
                rows.rows[r].append(bend)
                chain.append(bend)
            chain.append(v)
            chains[p, v] = chain
            for a, b in pairwise(chain):
                rows.below.setdefault(a, []).append(b)
                rows.above.setdefault(b, []).append(a)
    rows.sort()
    x = dict.fromkeys(widths, 0.0)
    for row in rows.rows:
        x |= dict(zip(row, spread([0.0] * len(row), [widths[v] for v in row], gap), strict=True))
    for sweep in range(SWEEPS):
        for row in rows.rows if sweep % 2 else rows.rows[::-1]:
            wanted = []
            for v in row:
                near = rows.above.get(v, []) + rows.below.get(v, [])
                wanted.append(float(np.mean([x[u] for u in near])) if near else x[v])
            x |= dict(zip(row, spread(wanted, [widths[v] for v in row], gap), strict=True))
    left = min((x[v] - widths[v] / 2 for v in x), default=0.0)
    right = max((x[v] + widths[v] / 2 for v in x), default=0.0)
    tall = [max((sizes[v][1] for v in row if v < n), default=0.0) for row in rows.rows]
    height = sum(tall) + row_gap * (depth - 1)
    y, at = {}, height
    for row, t in zip(rows.rows, tall, strict=True):
        for v in row:
            y[v] = at - t / 2
        at -= t + row_gap
    centres = {v: (x[v] - left, y[v]) for v in range(n)}
    routes = {
        (p, v): [
            (x[p] - left, y[p] - sizes[p][1] / 2),
            *((x[b] - left, y[b]) for b in chain[1:-1]),
            (x[v] - left, y[v] + sizes[v][1] / 2),
        ]
        for (p, v), chain in chains.items()
    }
    return Layered(centres, routes, right - left, height)


def tidy_forest(
    roots: Sequence[Node], children: Mapping[Node, Sequence[Node]], breadth: Mapping[Node, float], *, gap: float
) -> tuple[dict[Node, float], dict[Node, int], float]:
    """Places across and depths of the nodes of trees standing side by side.

    Each parent stands over the middle of its children, subtrees next to each other as close as their outlines allow.

    Returns
    -------
    place, depth, total
        Centre of each node across, its depth, and the whole breadth.
    """
    place: dict[Node, float] = {}
    depth: dict[Node, int] = {}
    order: list[Node] = []
    stack = [(root, 0) for root in reversed(roots)]
    while stack:
        v, d = stack.pop()
        depth[v] = d
        order.append(v)
        stack += [(c, d + 1) for c in reversed(list(children.get(v, ())))]
    # Outline of a subtree: per depth, leftmost and rightmost extent relative to its root's centre.
    outlines: dict[Node, list[tuple[float, float]]] = {}
    shift: dict[Node, float] = {}
    for v in reversed(order):
        own = (-breadth[v] / 2, breadth[v] / 2)
        below = list(children.get(v, ()))
        at, merged = _pack([outlines.pop(c) for c in below], gap)
        middle = (at[0] + at[-1]) / 2 if at else 0.0
        for c, where in zip(below, at, strict=True):
            shift[c] = where - middle
        outlines[v] = [own, *((low - middle, high - middle) for low, high in merged)]
    at, merged = _pack([outlines[r] for r in roots], gap)
    left = min((low for low, _ in merged), default=0.0)
    for r, where in zip(roots, at, strict=True):
        shift[r] = where - left
    above = {c: v for v in order for c in children.get(v, ())}
    for v in order:
        place[v] = shift[v] + (place[above[v]] if v in above else 0.0)
    return place, depth, max((high for _, high in merged), default=0.0) - left


def _pack(outlines: list[list[tuple[float, float]]], gap: float) -> tuple[list[float], list[tuple[float, float]]]:
    """Put outlines side by side, each as far left as it goes; their places and the outline of all."""
    at: list[float] = []
    merged: list[tuple[float, float]] = []
    for outline in outlines:
        where = max((right + gap - low for (_, right), (low, _) in zip(merged, outline, strict=False)), default=0.0)
        at.append(where)
        for d, (low, high) in enumerate(outline):
            if d < len(merged):
                merged[d] = (merged[d][0], where + high)
            else:
                merged.append((where + low, where + high))
    return at, merged
