"""Separation in undirected graphs and d-separation in directed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_dag, check_mixed, check_undirected, disjoint_sets, kind_of
from markovfield.graphs._walks import ancestral_set, moral_reach, path_to, plain_walk, trail_walk

if TYPE_CHECKING:
    import networkx as nx

    from markovfield.graphs.mixed_graph import MixedGraph

__all__ = ["active_path", "d_separated", "separated"]


def separated(graph: nx.Graph, a: Any, b: Any, given: Any = ()) -> bool:
    """Whether every path between two sets of nodes of an undirected graph meets a third (Murphy 19.2.1).

    It is then a statement of the graph, by its global Markov property, that a and b are independent given the third.

    Parameters
    ----------
    graph
        An undirected graph; self-loops mean nothing.
    a, b, given
        A node or a collection of nodes each; no node may be in two of them. What is itself a node of the graph, such as
        a tuple, is read as that node. An empty set is separated from everything.

    Returns
    -------
    bool
        In time linear in the graph.

    Examples
    --------
    >>> import networkx as nx
    >>> square = nx.cycle_graph(["A", "B", "C", "D"])
    >>> separated(square, "A", "C"), separated(square, "A", "C", given=["B", "D"])
    (False, True)
    """
    check_undirected(graph, "separated")
    sources, targets, blocked = disjoint_sets(graph, a, b, given, "separated")
    end, _ = plain_walk(graph.adj, sources, targets, blocked)
    return end is None


def d_separated(dag: nx.DiGraph, a: Any, b: Any, given: Any = (), *, method: str = "paths") -> bool:
    """Whether a DAG says that two sets of nodes are independent given a third.

    Parameters
    ----------
    dag
        A directed acyclic graph.
    a, b, given
        A node or a collection of nodes each, disjoint, as in `separated`.
    method
        ``"paths"`` follows paths from a until all are blocked (Caetano, lecture 3): by a given node with a tail on the
        path, or by a node between two arrowheads of which neither it nor a descendant is given. ``"moral"`` looks for
        plain separation in the moralised graph of the three sets and their ancestors (Murphy 19.2.2). The answers are
        the same.

    Returns
    -------
    bool
        In time linear in the graph, with either method.

    Examples
    --------
    >>> import networkx as nx
    >>> dag = nx.DiGraph([("rain", "wet"), ("sprinkler", "wet"), ("wet", "slippery")])
    >>> d_separated(dag, "rain", "sprinkler"), d_separated(dag, "rain", "sprinkler", given="slippery")
    (True, False)
    >>> d_separated(dag, {"rain", "sprinkler"}, "slippery", given="wet", method="moral")
    True
    """
    check_dag(dag, "d_separated")
    sources, targets, blocked = disjoint_sets(dag, a, b, given, "d_separated")
    if method == "paths":
        return trail_walk(dag.pred, dag.succ, None, sources, targets, blocked)[0] is None
    if method == "moral":
        kept = ancestral_set(sources | targets | blocked, dag.pred)
        reached = moral_reach(dag.pred, dag.succ, None, lambda v: (v,), kept, sources, blocked)
        return targets.isdisjoint(reached)
    raise ModelError(f"method of d_separated must be 'paths' or 'moral', got {method!r}")


def active_path(graph: nx.Graph | nx.DiGraph | MixedGraph, a: Any, b: Any, given: Any = ()) -> list[Any] | None:
    """A shortest path by which two sets of nodes depend on each other given a third, or None where they are separated.

    Parameters
    ----------
    graph
        An undirected graph (`separated`), a directed acyclic one (`d_separated`) or one with arrows and bidirected
        edges (`m_separated`).
    a, b, given
        A node or a collection of nodes each, disjoint, as in `separated`.

    Returns
    -------
    list or None
        Nodes from one of a to one of b. Each node between two arrowheads on it is given or has a descendant that is; no
        other is given.

    Examples
    --------
    >>> import networkx as nx
    >>> dag = nx.DiGraph([("rain", "wet"), ("sprinkler", "wet"), ("wet", "slippery")])
    >>> active_path(dag, "rain", "sprinkler", given="slippery")
    ['rain', 'wet', 'sprinkler']
    >>> active_path(dag, "rain", "sprinkler") is None
    True
    """
    if kind_of(graph, "active_path") == "undirected":
        lines: Any = graph
        sources, targets, blocked = disjoint_sets(lines, a, b, given, "active_path")
        end, previous = plain_walk(lines.adj, sources, targets, blocked)
        return None if end is None else path_to(end, previous)
    mixed = check_mixed(graph, "active_path", without="undirected")
    arrows = mixed.directed
    check_dag(arrows, "active_path")
    sources, targets, blocked = disjoint_sets(mixed, a, b, given, "active_path")
    state, before = trail_walk(arrows.pred, arrows.succ, mixed.bidirected.adj, sources, targets, blocked)
    return None if state is None else [v for v, _ in path_to(state, before)]
