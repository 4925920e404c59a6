"""Elimination the slow way: sets, and a search over all subsets. Imports nothing of the library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np


def primal_graph(cardinalities: Sequence[int], scopes: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """Neighbours of each variable of more than one state."""
    graph: dict[int, set[int]] = {v: set() for v, card in enumerate(cardinalities) if card > 1}
    for scope in scopes:
        kept = {v for v in scope if cardinalities[v] > 1}
        for v in kept:
            graph[v] |= kept - {v}
    return graph


def eliminate(graph: dict[int, set[int]], order: Sequence[int]) -> list[set[int]]:
    """Neighbours of each variable of the order when it is eliminated."""
    graph = {v: set(neighbours) for v, neighbours in graph.items()}
    higher = []
    for v in order:
        neighbours = graph.pop(v)
        for u in neighbours:
            graph[u] |= neighbours - {u}
            graph[u].discard(v)
        higher.append(neighbours)
    assert not graph
    return higher


def maximal_cliques(order: Sequence[int], higher: Sequence[set[int]]) -> set[frozenset[int]]:
    """Elimination cliques that are in no other."""
    cliques = {frozenset({v, *above}) for v, above in zip(order, higher, strict=True)}
    holding: dict[int, list[frozenset[int]]] = {}
    for clique in cliques:
        for v in clique:
            holding.setdefault(v, []).append(clique)
    rarest = {c: min(c, key=lambda v: len(holding[v])) for c in cliques}
    return {c for c in cliques if not any(c < other for other in holding[rarest[c]])}


def log2_states(cardinalities: Sequence[int], cliques: set[frozenset[int]]) -> float:
    """log2 of the states of all cliques together."""
    return math.log2(sum(math.prod(cardinalities[v] for v in c) for c in cliques)) if cliques else 0.0


def best_heaviest(cardinalities: Sequence[int], graph: dict[int, set[int]]) -> int:
    """Least possible number of states of the largest clique, over all orders (dynamic programming over subsets)."""
    vertices = sorted(graph)
    best = {frozenset(): 1}
    for size in range(1, len(vertices) + 1):
        for chosen in itertools.combinations(vertices, size):
            eliminated = frozenset(chosen)
            best[eliminated] = min(
                max(best[eliminated - {v}], math.prod(cardinalities[u] for u in _reach(graph, eliminated - {v}, v)))
                for v in chosen
            )
    return best[frozenset(vertices)]


def _reach(graph: dict[int, set[int]], eliminated: frozenset[int], v: int) -> set[int]:
    """v and what it is joined to once the others are eliminated: all it reaches through eliminated vertices."""
    seen, queue = {v}, [v]
    while queue:
        for u in graph[queue.pop()]:
            if u not in seen:
                seen.add(u)
                if u in eliminated:
                    queue.append(u)
    return seen - eliminated


def arrays(cardinalities: Sequence[int], scopes: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arguments of the kernels."""
    offsets = np.cumsum([0, *(len(s) for s in scopes)]).astype(np.int64)
    return np.array(cardinalities, np.int32), offsets, np.array([v for s in scopes for v in s], np.int32)


def grid(rows: int, columns: int) -> list[tuple[int, int]]:
    """Edges of a grid."""
    at = np.arange(rows * columns).reshape(rows, columns)
    across = zip(at[:, :-1].ravel().tolist(), at[:, 1:].ravel().tolist(), strict=True)
    down = zip(at[:-1].ravel().tolist(), at[1:].ravel().tolist(), strict=True)
    return [*across, *down]
