"""Moralisation, ancestral graphs and Markov blankets."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_dag, check_mixed, kind_of, node_set
from markovfield.graphs._walks import ancestral_set
from markovfield.graphs.chain_graphs import check_chain_graph
from markovfield.graphs.mixed_graph import MixedGraph

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["ancestral_graph", "markov_blanket", "moralize"]

AnyGraph = TypeVar("AnyGraph")


def moralize(graph: nx.DiGraph | MixedGraph) -> nx.Graph:
    """The undirected graph of a DAG: parents of a common child joined, arrowheads dropped (Murphy 19.2.2).

    In a chain graph all parents of a chain component are joined. A distribution that factorises by the graph factorises
    by its moral graph, whose independences are some of those of the graph.

    Parameters
    ----------
    graph
        A directed acyclic graph or a chain graph.

    Returns
    -------
    networkx.Graph
        A new graph with the same nodes and, for a networkx graph, their attributes. Costs the square of the numbers of
        parents.

    Examples
    --------
    >>> import networkx as nx
    >>> moral = moralize(nx.DiGraph([("A", "C"), ("B", "C")]))
    >>> sorted(map(sorted, moral.edges))
    [['A', 'B'], ['A', 'C'], ['B', 'C']]
    """
    import networkx as nx

    if kind_of(graph, "moralize") == "directed":
        check_dag(graph, "moralize")
        return nx.moral_graph(graph)
    mixed, components = check_chain_graph(graph, "moralize")
    moral = mixed.skeleton()
    if isinstance(graph, nx.Graph):
        moral.add_nodes_from(graph.nodes(data=True))
    for component in components:
        parents = dict.fromkeys(u for v in mixed if v in component for u in mixed.directed.pred[v])
        moral.add_edges_from(itertools.combinations(parents, 2))
    return moral


def ancestral_graph(graph: AnyGraph, nodes: Any) -> AnyGraph:
    """The graph induced on some nodes and their ancestors (Murphy 19.2.2, figure 19.4).

    Undirected edges, in a chain graph or an undirected graph, count in both directions: the set holds, with a node, its
    parents and its undirected neighbours. Bidirected edges make nobody an ancestor.

    Parameters
    ----------
    graph
        A directed, undirected or mixed graph.
    nodes
        A node or a collection of nodes.

    Returns
    -------
    A graph of the same type.

    Examples
    --------
    >>> import networkx as nx
    >>> dag = nx.DiGraph([(1, 2), (1, 3), (2, 4), (2, 5), (3, 5), (3, 6), (4, 7), (5, 7), (6, 7)])
    >>> sorted(ancestral_graph(dag, {2, 4, 5}))
    [1, 2, 3, 4, 5]
    """
    wanted = node_set(graph, nodes, "ancestral_graph", "nodes")
    source: Any = graph
    kind = kind_of(graph, "ancestral_graph")
    if kind == "mixed":
        return source.subgraph(ancestral_set(wanted, source.directed.pred, source.undirected.adj))
    kept = ancestral_set(wanted, source.pred if kind == "directed" else source.adj)
    return source.subgraph(kept).copy()


def markov_blanket(graph: nx.Graph | nx.DiGraph | MixedGraph, node: Any) -> set[Any]:
    """The smallest set of nodes given which a node is independent of all others (Murphy 19.1).

    Parameters
    ----------
    graph
        Undirected: the neighbours. Directed and acyclic: parents, children and the children's other parents. A chain
        graph: the same, with the parents of all of a child's chain component, and the neighbours. Arrows with
        bidirected edges: all nodes joined to it by a path on which every node between has two arrowheads.
    node
        A node of the graph.

    Returns
    -------
    set
        Without the node. In time linear in the graph around it.

    Examples
    --------
    >>> import networkx as nx
    >>> dag = nx.DiGraph([("A", "C"), ("B", "C"), ("C", "D")])
    >>> sorted(markov_blanket(dag, "A")), sorted(markov_blanket(moralize(dag), "C"))
    (['B', 'C'], ['A', 'B', 'D'])
    """
    if len(node_set(graph, node, "markov_blanket", "node")) != 1 or not isinstance(node, Hashable) or node not in graph:
        raise ModelError(f"markov_blanket needs one node, got {node!r}")
    source: Any = graph
    kind = kind_of(graph, "markov_blanket")
    if kind == "undirected":
        return set(source.adj[node]) - {node}
    if kind == "directed":
        check_dag(source, "markov_blanket")
        return (_with_parents([{child} for child in source.succ[node]], source) | set(source.pred[node])) - {node}
    arrows = source.directed
    if source.bidirected.size():
        check_dag(check_mixed(source, "markov_blanket", without="undirected").directed, "markov_blanket")
        # A path of bidirected edges is a path of colliders: it joins all of a district.
        districts = [ancestral_set([v], source.bidirected.adj) for v in (node, *arrows.succ[node])]
        return _with_parents(districts, arrows) - {node}
    mixed, components = check_chain_graph(source, "markov_blanket")
    children = set(arrows.succ[node])
    married = [component for component in components if component & children]
    co_parents = {u for component in married for v in component for u in arrows.pred[v]}
    return {*arrows.pred[node], *mixed.undirected.adj[node], *children, *co_parents} - {node}


def _with_parents(families: list[set[Any]], arrows: nx.DiGraph) -> set[Any]:
    return {u for family in families for v in family for u in (v, *arrows.pred[v])}
