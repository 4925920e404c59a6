"""The Markov properties of graphs, as lists of the statements they make."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_dag
from markovfield.graphs._walks import ancestral_set
from markovfield.graphs.chain_graphs import check_chain_graph
from markovfield.graphs.independence import Independence, all_pairs, n_all_pairs, statement_test

if TYPE_CHECKING:
    import networkx as nx

    from markovfield.graphs.mixed_graph import MixedGraph

__all__ = ["global_independences", "local_independences", "ordered_independences", "pairwise_independences"]

MAX_STATEMENTS = 2**20
"""Most statements `global_independences` tries."""


def pairwise_independences(graph: nx.Graph | nx.DiGraph | MixedGraph) -> list[Independence]:
    """Pairwise Markov property: two nodes that are not adjacent are independent given the rest (Murphy 19.2).

    The rest, in an undirected graph, is all other nodes; in a DAG or a chain graph, all other non-descendants of one of
    the two nodes, of which the other is one.

    Parameters
    ----------
    graph
        An undirected graph, a directed acyclic one or a chain graph.

    Returns
    -------
    list of Independence
        Without repetitions. A positive distribution that has them all has all of the global property.

    Examples
    --------
    >>> import networkx as nx
    >>> pairwise_independences(nx.cycle_graph(["A", "B", "C", "D"]))
    [A ⊥ C | B, D, B ⊥ D | A, C]
    """
    found: dict[Independence, None] = {}
    for v, others, boundary in _non_descendants(graph, "pairwise_independences"):
        for u in others:
            if u not in boundary:
                found[Independence({v}, {u}, [w for w in others if w != u])] = None
    return list(found)


def local_independences(graph: nx.Graph | nx.DiGraph | MixedGraph) -> list[Independence]:
    """Local Markov property: a node is independent of the rest given the nodes next to it.

    In an undirected graph, of all other nodes given its neighbours (Murphy 19.1); in a DAG, of its other
    non-descendants given its parents (Caetano, lecture 3); in a chain graph, of its other non-descendants given both.

    Parameters
    ----------
    graph
        An undirected graph, a directed acyclic one or a chain graph.

    Returns
    -------
    list of Independence
        One for each node that has such others. For a DAG they give all of the global property, in any distribution.

    Examples
    --------
    >>> import networkx as nx
    >>> local_independences(nx.DiGraph([("A", "B"), ("B", "C"), ("A", "D")]))
    [B ⊥ D | A, C ⊥ A, D | B, D ⊥ B, C | A]
    """
    found: dict[Independence, None] = {}
    for v, others, boundary in _non_descendants(graph, "local_independences"):
        rest = [u for u in others if u not in boundary]
        if rest:
            found[Independence({v}, rest, boundary)] = None
    return list(found)


def _non_descendants(graph: Any, caller: str) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """Each node with its non-descendants and, among them, its parents and neighbours."""
    chain, components = check_chain_graph(graph, caller)
    holder = {v: component for component in components for v in component}
    for v in chain:
        below = ancestral_set([v], chain.directed.succ, chain.undirected.adj) - holder[v]
        others = [u for u in chain if u != v and u not in below]
        yield v, others, [*chain.parents(v), *chain.neighbours(v)]


def ordered_independences(dag: nx.DiGraph, order: Iterable[Hashable] | None = None) -> list[Independence]:
    """Ordered Markov property of a DAG: a node is independent of those before it given its parents.

    Parameters
    ----------
    dag
        A directed acyclic graph.
    order
        A topological sort of the nodes; some such order when not given.

    Returns
    -------
    list of Independence
        One for each node that has others before it than its parents. They give all of the global property, in any
        distribution: each is an arrow left out of the chain rule (Caetano, lecture 2).

    Examples
    --------
    >>> import networkx as nx
    >>> ordered_independences(nx.DiGraph([("A", "B"), ("B", "C"), ("A", "D")]), ["A", "D", "B", "C"])
    [B ⊥ D | A, C ⊥ A, D | B]
    """
    import networkx as nx

    check_dag(dag, "ordered_independences")
    nodes = list(nx.topological_sort(dag) if order is None else order)
    if len(nodes) != len(dag) or set(nodes) != set(dag):
        raise ModelError(
            f"order of ordered_independences must name each of the {len(dag)} nodes once, got {len(nodes)} names"
        )
    found = []
    before: dict[Any, None] = {}
    for v in nodes:
        late = next((u for u in dag.pred[v] if u not in before), None)
        if late is not None:
            raise ModelError(f"order of ordered_independences has {v!r} before its parent {late!r}")
        rest = [u for u in before if u not in dag.pred[v]]
        if rest:
            found.append(Independence({v}, rest, dag.pred[v]))
        before[v] = None
    return found


def global_independences(
    graph: nx.Graph | nx.DiGraph | MixedGraph, *, max_given: int | None = None
) -> Iterator[Independence]:
    """Global Markov property: every pair of nodes with every set that separates them.

    Two sets of nodes are separated by a third exactly when each node of one is from each node of the other, so that the
    statements about pairs tell all others.

    Parameters
    ----------
    graph
        A graph of any kind.
    max_given
        Largest size of the sets tried; all when not given.

    Returns
    -------
    iterator of Independence
        Small separating sets first, for each pair. There are n (n - 1) / 2 times ``2**(n - 2)`` candidates; more than
        ``2**20`` are refused.

    Examples
    --------
    >>> import networkx as nx
    >>> list(global_independences(nx.DiGraph([("A", "C"), ("B", "C"), ("C", "D")])))
    [A ⊥ B, A ⊥ D | C, A ⊥ D | B, C, B ⊥ D | C, B ⊥ D | A, C]
    """
    if max_given is not None and max_given < 0:
        raise ModelError(f"max_given of global_independences must not be negative, got {max_given}")
    test = statement_test(graph, 0.0, "global_independences")
    count = n_all_pairs(len(graph), max_given)
    if count > MAX_STATEMENTS:
        raise ModelError(
            f"global_independences would try {count} statements about {len(graph)} nodes, over 2**20; set max_given"
        )
    return (
        Independence({a}, {b}, given)
        for a, b, given in all_pairs(list(graph), max_given)
        if test({a}, {b}, frozenset(given))
    )
