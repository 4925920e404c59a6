"""A graph some of whose edges are directed, closed step by step under the rules of Meek (1995)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markovfield.graphs.mixed_graph import MixedGraph

__all__ = ["Orientation"]


class Orientation:
    """Adjacency with arrows, written to while edges are being directed.

    Each arrow made is put in a queue and the rules are tried around it once, so that closing costs, for every arrow,
    the nodes around its ends and no further passes over the graph. Dictionaries serve as sets that keep their order:
    results never depend on hashes.
    """

    def __init__(self, nodes: Iterable[Any], edges: Iterable[tuple[Any, Any]], *, guard_cycles: bool) -> None:
        self.nodes = list(nodes)
        self.parents: dict[Any, dict[Any, None]] = {v: {} for v in self.nodes}
        self.children: dict[Any, dict[Any, None]] = {v: {} for v in self.nodes}
        self.loose: dict[Any, dict[Any, None]] = {v: {} for v in self.nodes}
        self.guard_cycles = guard_cycles
        self.edges = list(edges)
        for u, v in self.edges:
            self.loose[u][v] = None
            self.loose[v][u] = None
        self._queue: list[tuple[Any, Any]] = []

    def adjacent(self, u: Any, v: Any) -> bool:
        return v in self.loose[u] or v in self.parents[u] or v in self.children[u]

    def possible(self, u: Any, v: Any) -> bool:
        """Whether u -> v is there already or can be made without turning an arrow round or closing a cycle."""
        if v in self.children[u]:
            return True
        return v in self.loose[u] and not (self.guard_cycles and self._reaches(v, u))

    def orient(self, u: Any, v: Any) -> bool:
        """Make the arrow u -> v where that is possible."""
        if not self.possible(u, v):
            return False
        if v in self.loose[u]:
            del self.loose[u][v], self.loose[v][u]
            self.children[u][v] = None
            self.parents[v][u] = None
            self._queue.append((u, v))
        return True

    def _reaches(self, source: Any, target: Any) -> bool:
        seen = {source}
        stack = [source]
        while stack:
            for child in self.children[stack.pop()]:
                if child == target:
                    return True
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return False

    def close(self) -> None:
        """Apply the rules until none fits."""
        done = 0
        while done < len(self._queue):
            u, v = self._queue[done]
            done += 1
            self._away_from_collider(u, v)
            self._away_from_cycle(u, v)
            self._two_ways_round(u, v)
            self._long_way_round(u, v)

    def _away_from_collider(self, u: Any, v: Any) -> None:
        """Rule 1: u -> v - w with u, w not adjacent gives v -> w."""
        for w in list(self.loose[v]):
            if not self.adjacent(u, w):
                self.orient(v, w)

    def _away_from_cycle(self, u: Any, v: Any) -> None:
        """Rule 2: x -> y -> z with x - z gives x -> z; the new arrow is the first or the second."""
        for w in list(self.loose[u]):
            if w in self.children[v]:
                self.orient(u, w)
        for w in list(self.loose[v]):
            if w in self.parents[u]:
                self.orient(w, v)

    def _two_ways_round(self, u: Any, v: Any) -> None:
        """Rule 3: x - v, x - u -> v, x - w -> v with u, w not adjacent gives x -> v."""
        for x in list(self.loose[v]):
            if x in self.loose[u] and any(
                w != u and w in self.loose[x] and not self.adjacent(u, w) for w in self.parents[v]
            ):
                self.orient(x, v)

    def _long_way_round(self, u: Any, v: Any) -> None:
        """Rule 4: x - z, x - c, c -> d -> z, d adjacent to x, c and z not adjacent, gives x -> z.

        It fits only where some arrows were known beforehand. The new arrow is d -> z or c -> d.
        """
        for x in list(self.loose[v]):
            if self.adjacent(x, u) and any(c in self.loose[x] and not self.adjacent(c, v) for c in self.parents[u]):
                self.orient(x, v)
        for z in list(self.children[v]):
            if self.adjacent(u, z):
                continue
            for x in list(self.loose[z]):
                if x in self.loose[u] and self.adjacent(x, v):
                    self.orient(x, z)

    def result(self) -> MixedGraph:
        """The arrows and what is left undirected, edges in the order they were given."""
        arrows = []
        loose = []
        for u, v in self.edges:
            if v in self.loose[u]:
                loose.append((u, v))
            else:
                arrows.append((u, v) if v in self.children[u] else (v, u))
        return MixedGraph(self.nodes, directed=arrows, undirected=loose)
