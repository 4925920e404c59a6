"""Junction trees of graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from markovfield.graphs._arrays import eliminated

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["has_running_intersection", "junction_tree"]


def junction_tree(graph: nx.Graph, order: Iterable[Hashable] | None = None) -> nx.Graph:
    """A junction tree: maximal cliques of a triangulation, joined so that every node's cliques are connected.

    It is a maximum spanning tree of the cliques by the sizes of their intersections, read off the elimination order
    in time linear in the cliques.

    Parameters
    ----------
    graph
        An undirected graph.
    order
        Elimination order, every node once; the best of several greedy rules when not given.

    Returns
    -------
    networkx.Graph
        Nodes are the cliques, as frozensets; every edge has the attribute ``separator``, the intersection of its
        ends. One tree for each connected component of the graph.

    Examples
    --------
    >>> import networkx as nx
    >>> tree = junction_tree(nx.cycle_graph(4), order=[0, 1, 2, 3])
    >>> sorted(sorted(clique) for clique in tree)
    [[0, 1, 3], [1, 2, 3]]
    >>> [sorted(separator) for _, _, separator in tree.edges(data="separator")]
    [[1, 3]]
    """
    import networkx as nx

    elimination = eliminated(graph, order, "junction_tree")
    tree = nx.Graph()
    # The clique that holds a node and its higher neighbours: its own, or a child's that contains that.
    holder: dict[Any, frozenset[Any]] = {}
    waiting: dict[Any, list[tuple[frozenset[Any], frozenset[Any]]]] = {}
    for v, higher in zip(elimination.order, elimination.higher, strict=True):
        children = waiting.pop(v, [])
        clique = frozenset((v, *higher))
        held = next((other for other, separator in children if len(separator) == len(clique)), None)
        holder[v] = clique if held is None else held
        if held is None:
            tree.add_node(clique)
        for other, separator in children:
            if other is not held:
                tree.add_edge(other, holder[v], separator=separator)
        if higher:
            waiting.setdefault(higher[0], []).append((holder[v], frozenset(higher)))
    return tree


def has_running_intersection(tree: nx.Graph) -> bool:
    """Whether a graph of node sets is a forest in which the sets that hold any one node are connected.

    Parameters
    ----------
    tree
        Its nodes are sets, such as the cliques of `junction_tree`.

    Returns
    -------
    bool

    Examples
    --------
    >>> import networkx as nx
    >>> ab, bc, ca = frozenset("ab"), frozenset("bc"), frozenset("ca")
    >>> has_running_intersection(nx.Graph([(ab, bc)])), has_running_intersection(nx.Graph([(ab, bc), (bc, ca)]))
    (True, False)
    """
    import networkx as nx

    if len(tree) and not nx.is_forest(tree):
        return False
    # In a forest, the sets that hold a node are connected exactly when they outnumber the edges between them by one.
    pieces = Counter(v for clique in tree for v in clique)
    for a, b in tree.edges():
        pieces.subtract(a & b)
    return all(count == 1 for count in pieces.values())
