"""Decomposable graphs: the chordal ones, taken apart at cliques."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_undirected
from markovfield.graphs.triangulation import is_chordal, maximum_cardinality_search

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "CliqueStep",
    "Decomposition",
    "chordless_cycle",
    "decomposition",
    "is_decomposable",
    "perfect_order",
    "perfect_sequence",
]


class Decomposition(NamedTuple):
    """Three disjoint sets that make up the nodes of a graph; the separator is a clique between the other two."""

    a: frozenset[Any]
    separator: frozenset[Any]
    b: frozenset[Any]


class CliqueStep(NamedTuple):
    """A maximal clique, what it shares with those before it, and what is new in it."""

    clique: frozenset[Any]
    separator: frozenset[Any]
    residual: frozenset[Any]


def is_decomposable(graph: nx.Graph) -> bool:
    """Whether a graph is complete, or a clique splits it into two parts each decomposable with that clique.

    This definition (Caetano, lecture 6) names the chordal graphs, which are recognised in linear time.

    Examples
    --------
    >>> import networkx as nx
    >>> is_decomposable(nx.path_graph(4)), is_decomposable(nx.cycle_graph(4))
    (True, False)
    """
    check_undirected(graph, "is_decomposable")
    return is_chordal(graph)


def chordless_cycle(graph: nx.Graph) -> list[Any] | None:
    """A cycle of four or more nodes without a chord, which shows that a graph is not decomposable; None if it is.

    Examples
    --------
    >>> import networkx as nx
    >>> sorted(chordless_cycle(nx.cycle_graph(5))), chordless_cycle(nx.path_graph(5))
    ([0, 1, 2, 3, 4], None)
    """
    import networkx as nx

    check_undirected(graph, "chordless_cycle")
    if is_chordal(graph):
        return None
    for v in graph:
        around = set(graph.adj[v]) - {v}
        for a in sorted(around, key=list(graph).index):
            # From a neighbour around all others, until another neighbour that is not adjacent to it comes up.
            ends = around - set(graph.adj[a]) - {a}
            if not ends:
                continue
            reached = nx.single_source_shortest_path(graph.subgraph((set(graph) - around - {v}) | ends | {a}), a)
            paths = [path for b, path in reached.items() if b in ends]
            if paths:
                # The shortest passes no other neighbour and has no chord.
                return [v, *min(paths, key=len)]
    return None


def perfect_order(graph: nx.Graph) -> list[Any]:
    """An elimination order without fill: the later neighbours of every node form a clique.

    Found by maximum cardinality search in linear time. Arrows from later to earlier nodes make a DAG with the same
    independences as the graph.

    Parameters
    ----------
    graph
        A chordal graph.

    Returns
    -------
    list
        Every node once.

    Examples
    --------
    >>> import networkx as nx
    >>> perfect_order(nx.star_graph(2))[:2] in ([1, 2], [2, 1], [1, 0], [2, 0])
    True
    """
    return _perfect_order(graph, "perfect_order")


def _perfect_order(graph: nx.Graph, caller: str) -> list[Any]:
    check_undirected(graph, caller)
    if not is_chordal(graph):
        raise ModelError(f"{caller} needs a decomposable (chordal) graph; triangulate it first")
    return maximum_cardinality_search(graph)


def perfect_sequence(graph: nx.Graph) -> list[CliqueStep]:
    """The maximal cliques in an order with running intersection.

    What a clique shares with all those before it is in one of them.

    A distribution that is Markov to the graph is the product of its clique marginals over those of the separators.

    Parameters
    ----------
    graph
        A chordal graph.

    Returns
    -------
    list of CliqueStep
        In linear time; the separator of the first clique of each connected component is empty.

    Examples
    --------
    >>> import networkx as nx
    >>> for step in perfect_sequence(nx.path_graph(["A", "B", "C"])):
    ...     print(sorted(step.clique), sorted(step.separator), sorted(step.residual))
    ['B', 'C'] [] ['B', 'C']
    ['A', 'B'] ['B'] ['A']
    """
    return _perfect_sequence(graph, "perfect_sequence")


def _perfect_sequence(graph: nx.Graph, caller: str) -> list[CliqueStep]:
    steps: list[CliqueStep] = []
    found: set[Any] = set()
    separator: set[Any] = set()
    clique: set[Any] = set()
    # In the order of the search a clique grows node by node until a node's found neighbours are not all of it.
    for v in reversed(_perfect_order(graph, caller)):
        around = {u for u in graph.adj[v] if u in found}
        if not clique or around != clique:
            if clique:
                steps.append(CliqueStep(frozenset(clique), frozenset(separator), frozenset(clique - separator)))
            separator = around
        clique = around | {v}
        found.add(v)
    if clique:
        steps.append(CliqueStep(frozenset(clique), frozenset(separator), frozenset(clique - separator)))
    return steps


def decomposition(graph: nx.Graph) -> Decomposition | None:
    """Two parts of a decomposable graph and the clique that separates them (Caetano, lecture 6).

    Parameters
    ----------
    graph
        A chordal graph.

    Returns
    -------
    Decomposition or None
        Neither part is empty, the separator may be; None for a complete graph, which has no two such parts. The parts
        with the separator induce chordal graphs again. In linear time.

    Examples
    --------
    >>> import networkx as nx
    >>> a, separator, b = decomposition(nx.path_graph(["A", "B", "C"]))
    >>> sorted(a), sorted(separator), sorted(b)
    (['A'], ['B'], ['C'])
    """
    steps = _perfect_sequence(graph, "decomposition")
    if len(steps) < 2:
        return None
    last = steps[-1]
    return Decomposition(last.residual, last.separator, frozenset(graph) - last.clique)
