"""Chordal graphs: making them, recognising them, and their cliques."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.graphs._arrays import eliminated

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["is_chordal", "maximal_cliques", "maximum_cardinality_search", "triangulate"]


def triangulate(graph: nx.Graph, order: Iterable[Hashable] | None = None) -> nx.Graph:
    """A chordal supergraph: the graph with the edges that eliminating in an order adds.

    Parameters
    ----------
    graph
        An undirected graph.
    order
        Every node once; the best of several greedy rules when not given, which adds no edge to a chordal graph.

    Returns
    -------
    networkx.Graph
        A new graph with the same nodes and attributes and the edges added; the order is a perfect elimination order
        of it.

    Examples
    --------
    >>> import networkx as nx
    >>> square = nx.cycle_graph(4)
    >>> chordal = triangulate(square, order=[0, 1, 2, 3])
    >>> is_chordal(square), is_chordal(chordal), sorted(chordal.edges)
    (False, True, [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)])
    """
    import networkx as nx

    result = nx.Graph(graph)
    elimination = eliminated(graph, order, "triangulate")
    for v, higher in zip(elimination.order, elimination.higher, strict=True):
        result.add_edges_from((v, u) for u in higher if not result.has_edge(v, u))
    return result


def is_chordal(graph: nx.Graph) -> bool:
    """Whether every cycle of four or more nodes has a chord (networkx's test).

    Examples
    --------
    >>> import networkx as nx
    >>> is_chordal(nx.cycle_graph(3)), is_chordal(nx.cycle_graph(4))
    (True, False)
    """
    import networkx as nx

    return bool(nx.is_chordal(graph))


def maximal_cliques(graph: nx.Graph) -> list[frozenset[Any]]:
    """Maximal cliques of a chordal graph, in linear time.

    Parameters
    ----------
    graph
        A chordal graph; see `triangulate`.

    Returns
    -------
    list of frozenset
        At most as many as there are nodes.

    Examples
    --------
    >>> import networkx as nx
    >>> sorted(sorted(clique) for clique in maximal_cliques(nx.path_graph(4)))
    [[0, 1], [1, 2], [2, 3]]
    """
    order = maximum_cardinality_search(graph)
    position = {v: i for i, v in enumerate(order)}
    cliques: list[frozenset[Any]] = []
    covered: dict[Any, int] = {}
    for i, v in enumerate(order):
        later = [u for u in graph[v] if position[u] > i]
        if later:
            parent = min(later, key=position.__getitem__)
            if any(u != parent and u not in graph[parent] for u in later):
                raise ModelError("maximal_cliques needs a chordal graph; triangulate it first")
            covered[parent] = max(covered.get(parent, 0), len(later))
        # A child of v with one more later neighbour than v has a clique that contains v's.
        if covered.get(v, 0) <= len(later):
            cliques.append(frozenset((v, *later)))
    return cliques


def maximum_cardinality_search(graph: nx.Graph) -> list[Any]:
    """Nodes, last those found first: each search step takes a node with the most neighbours already found.

    The result is a perfect elimination order when the graph is chordal.
    """
    found_neighbours = dict.fromkeys(graph, 0)
    buckets: list[dict[Any, None]] = [dict.fromkeys(graph)]
    found: list[Any] = []
    done: set[Any] = set()
    top = 0
    while len(found) < len(found_neighbours):
        while not buckets[top]:
            top -= 1
        v, _ = buckets[top].popitem()
        found.append(v)
        done.add(v)
        for u in graph[v]:
            if u not in done:
                count = found_neighbours[u]
                del buckets[count][u]
                if count + 1 == len(buckets):
                    buckets.append({})
                buckets[count + 1][u] = None
                found_neighbours[u] = count + 1
                top = max(top, count + 1)
    return found[::-1]
