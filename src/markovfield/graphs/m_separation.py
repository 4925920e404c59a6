"""Directed mixed graphs: arrows, and bidirected edges for causes that are not in the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_dag, check_mixed, disjoint_sets
from markovfield.graphs._walks import trail_walk
from markovfield.graphs.mixed_graph import MixedGraph
from markovfield.graphs.separation import d_separated

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["m_separated", "with_latent_confounders"]


def with_latent_confounders(graph: MixedGraph) -> nx.DiGraph:
    """The DAG in which every bidirected edge is a hidden common parent (Murphy 19.4.4.1, figure 19.11).

    Parameters
    ----------
    graph
        Arrows without a directed cycle, and bidirected edges.

    Returns
    -------
    networkx.DiGraph
        The nodes of the graph with the attribute ``latent=False``, then one node ``("latent", u, v)`` with
        ``latent=True`` for each bidirected edge. Among the nodes of the graph it says the same independences.

    Examples
    --------
    >>> dag = with_latent_confounders(MixedGraph(bidirected=[("Y1", "Y2"), ("Y2", "Y3")]))
    >>> sorted(dag.predecessors("Y2"))
    [('latent', 'Y1', 'Y2'), ('latent', 'Y2', 'Y3')]
    """
    import networkx as nx

    mixed = check_mixed(graph, "with_latent_confounders", without="undirected")
    check_dag(mixed.directed, "with_latent_confounders")
    dag = nx.DiGraph()
    dag.add_nodes_from(mixed, latent=False)
    dag.add_edges_from(mixed.directed.edges())
    for u, v in mixed.bidirected.edges():
        confounder = ("latent", u, v)
        if confounder in mixed:
            raise ModelError(f"with_latent_confounders needs the name {confounder!r}, which is a node of the graph")
        dag.add_node(confounder, latent=True)
        dag.add_edges_from([(confounder, u), (confounder, v)])
    return dag


def m_separated(graph: MixedGraph, a: Any, b: Any, given: Any = (), *, method: str = "paths") -> bool:
    """Whether a graph of arrows and bidirected edges says that two sets of nodes are independent given a third.

    Parameters
    ----------
    graph
        Arrows without a directed cycle, and bidirected edges. A networkx.DiGraph is one without bidirected edges.
    a, b, given
        A node or a collection of nodes each, disjoint, as in `separated`.
    method
        ``"paths"`` follows paths from a until all are blocked, as in `d_separated`, where a bidirected edge has an
        arrowhead at both ends; ``"latent"`` asks for d-separation in `with_latent_confounders`.

    Returns
    -------
    bool
        In time linear in the graph, with either method.

    Examples
    --------
    >>> graph = MixedGraph(bidirected=[("Y1", "Y2"), ("Y2", "Y3")])
    >>> m_separated(graph, "Y1", "Y3"), m_separated(graph, "Y1", "Y3", given="Y2")
    (True, False)
    """
    mixed = check_mixed(graph, "m_separated", without="undirected")
    check_dag(mixed.directed, "m_separated")
    sources, targets, blocked = disjoint_sets(mixed, a, b, given, "m_separated")
    if method == "latent":
        return d_separated(with_latent_confounders(mixed), sources, targets, blocked, method="moral")
    if method == "paths":
        arrows = mixed.directed
        return trail_walk(arrows.pred, arrows.succ, mixed.bidirected.adj, sources, targets, blocked)[0] is None
    raise ModelError(f"method of m_separated must be 'paths' or 'latent', got {method!r}")
