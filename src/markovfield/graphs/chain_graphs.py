"""Chain graphs: arrows between components, undirected edges within them.

They are read as Lauritzen, Wermuth and Frydenberg do: a component given its parents is a Markov network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_mixed, disjoint_sets
from markovfield.graphs._walks import ancestral_set, moral_reach
from markovfield.graphs.mixed_graph import MixedGraph, as_mixed_graph

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["chain_components", "chain_separated", "is_chain_graph"]


def is_chain_graph(graph: MixedGraph | nx.Graph | nx.DiGraph) -> bool:
    """Whether a graph has arrows and undirected edges only, and no cycle along them that follows an arrow.

    Directed acyclic graphs and undirected graphs are chain graphs.

    Examples
    --------
    >>> is_chain_graph(MixedGraph(directed=[("A", "B")], undirected=[("B", "C")]))
    True
    >>> is_chain_graph(MixedGraph(directed=[("A", "B")], undirected=[("B", "C"), ("C", "A")]))
    False
    """
    mixed = as_mixed_graph(graph, "is_chain_graph")
    return not mixed.bidirected.size() and ordered_components(mixed)[1] is None


def chain_components(graph: MixedGraph | nx.Graph | nx.DiGraph) -> list[set[Any]]:
    """The sets of nodes joined by undirected edges, each after all from which arrows lead to it.

    The single nodes of a DAG, the connected components of an undirected graph. Linear in the graph.

    Examples
    --------
    >>> graph = MixedGraph(directed=[("A", "C"), ("B", "D")], undirected=[("C", "D")])
    >>> [sorted(component) for component in chain_components(graph)]
    [['A'], ['B'], ['C', 'D']]
    """
    return check_chain_graph(graph, "chain_components")[1]


def chain_separated(graph: MixedGraph | nx.Graph | nx.DiGraph, a: Any, b: Any, given: Any = ()) -> bool:
    """Whether a chain graph says that two sets of nodes are independent given a third.

    They are when the third separates them in the moralised graph of the smallest set that holds all three and, with a
    node, its parents and its undirected neighbours. For a DAG this is `d_separated`, for an undirected graph
    `separated`.

    Parameters
    ----------
    graph
        A chain graph.
    a, b, given
        A node or a collection of nodes each, disjoint, as in `separated`.

    Returns
    -------
    bool
        In time linear in the graph.

    Examples
    --------
    >>> graph = MixedGraph(directed=[("A", "C"), ("B", "D")], undirected=[("C", "D")])
    >>> chain_separated(graph, "A", "B"), chain_separated(graph, "A", "D", given=["B", "C"])
    (True, True)
    >>> chain_separated(graph, "A", "B", given=["C", "D"])
    False
    """
    mixed, components = check_chain_graph(graph, "chain_separated")
    sources, targets, blocked = disjoint_sets(mixed, a, b, given, "chain_separated")
    arrows, lines = mixed.directed, mixed.undirected
    holder = {v: component for component in components for v in component}
    kept = ancestral_set(sources | targets | blocked, arrows.pred, lines.adj)
    reached = moral_reach(arrows.pred, arrows.succ, lines.adj, holder.__getitem__, kept, sources, blocked)
    return targets.isdisjoint(reached)


def check_chain_graph(graph: Any, caller: str) -> tuple[MixedGraph, list[set[Any]]]:
    """A chain graph as a `MixedGraph`, with its components in order; anything else is an error."""
    mixed = check_mixed(graph, caller, without="bidirected")
    components, arrow = ordered_components(mixed)
    if arrow is not None:
        raise ModelError(
            f"{caller} needs a chain graph, but the arrow {arrow[0]!r} -> {arrow[1]!r} is on a cycle of arrows and "
            "undirected edges"
        )
    return mixed, components


def ordered_components(mixed: MixedGraph) -> tuple[list[set[Any]], tuple[Any, Any] | None]:
    """Components joined by undirected edges, in an order that the arrows follow, and an arrow that none can follow."""
    import networkx as nx

    components = list(nx.connected_components(mixed.undirected))
    holder = {v: i for i, component in enumerate(components) for v in component}
    between = nx.DiGraph()
    between.add_nodes_from(range(len(components)))
    between.add_edges_from((holder[u], holder[v]) for u, v in mixed.directed.edges())
    if nx.is_directed_acyclic_graph(between):
        return [components[i] for i in nx.lexicographical_topological_sort(between)], None
    first, second = nx.find_cycle(between)[0][:2]
    arrow = next((u, v) for u, v in mixed.directed.edges() if (holder[u], holder[v]) == (first, second))
    return components, arrow
