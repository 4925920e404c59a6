"""Graphs as maps of the independences of a distribution, or of another graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_dag, check_undirected, is_graph, kind_of
from markovfield.graphs.equivalence import v_structures
from markovfield.graphs.independence import all_pairs, n_all_pairs, statement_test
from markovfield.graphs.joint_table import JointTable, as_joint_table
from markovfield.graphs.markov_properties import global_independences, local_independences, pairwise_independences
from markovfield.graphs.triangulation import is_chordal

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "equivalent_to_directed",
    "equivalent_to_undirected",
    "is_dmap",
    "is_imap",
    "is_perfect_map",
    "minimal_imap",
    "minimal_undirected_imap",
    "same_independences",
]

MAX_TESTS = 2**17
"""Most statements tested on a joint table, each at the cost of a pass over it."""


def is_imap(graph: Any, source: Any, *, tolerance: float = 1e-9) -> bool:
    """Whether every independence that a graph states holds: the graph is an I-map (Caetano, lecture 4).

    Parameters
    ----------
    graph
        A graph of any kind.
    source
        A distribution (a `JointTable` or a model of at most ``2**20`` joint states), or another graph on the same
        nodes.
    tolerance
        The largest `dependence` of a distribution that counts as none.

    Returns
    -------
    bool

    Notes
    -----
    The local property decides for a DAG; the pairwise property for undirected and chain graphs, where the source is a
    graph or a positive distribution. Otherwise all pairs of nodes are tried with all sets that separate them, of which
    there may be up to ``2**20`` (``2**17`` on a distribution).

    Examples
    --------
    >>> import networkx as nx
    >>> square = nx.cycle_graph(["A", "B", "C", "D"])
    >>> is_imap(nx.DiGraph([("A", "B"), ("A", "D"), ("B", "C"), ("D", "C")]), square)
    False
    >>> is_imap(nx.DiGraph([("A", "B"), ("A", "D"), ("B", "D"), ("B", "C"), ("D", "C")]), square)
    True
    """
    known = _known(graph, source, "is_imap")
    test = statement_test(known, tolerance, "is_imap")
    statements: Iterable[Any]
    if kind_of(graph, "is_imap") == "directed":
        statements = local_independences(graph)
    elif not _has_bidirected(graph) and (not isinstance(known, JointTable) or known.is_positive):
        statements = pairwise_independences(graph)
    else:
        if isinstance(known, JointTable):
            _check_tests(known, "is_imap")
        statements = global_independences(graph)
    return all(test(s.a, s.b, s.given) for s in statements)


def is_dmap(graph: Any, source: Any, *, tolerance: float = 1e-9) -> bool:
    """Whether a graph states every independence that holds: the graph is a D-map (Caetano, lecture 4).

    Parameters
    ----------
    graph, source, tolerance
        As in `is_imap`. On a distribution every pair of variables is tested given every set of others, up to ``2**17``
        tests (12 variables).

    Returns
    -------
    bool

    Examples
    --------
    >>> import networkx as nx
    >>> collider, chain = nx.DiGraph([("A", "C"), ("B", "C")]), nx.path_graph(["A", "C", "B"])
    >>> is_dmap(chain, collider), is_dmap(nx.complete_graph(["A", "B", "C"]), collider)
    (False, False)
    >>> is_dmap(nx.empty_graph(["A", "B", "C"]), collider)
    True
    """
    known = _known(graph, source, "is_dmap")
    if not isinstance(known, JointTable):
        return is_imap(known, graph)
    _check_tests(known, "is_dmap")
    test, stated = statement_test(known, tolerance, "is_dmap"), statement_test(graph, 0.0, "is_dmap")
    return all(stated({a}, {b}, given) or not test({a}, {b}, given) for a, b, given in all_pairs(known.variables))


def is_perfect_map(graph: Any, source: Any, *, tolerance: float = 1e-9) -> bool:
    """Whether a graph states exactly the independences that hold (Murphy 19.2.3): an I-map and a D-map.

    Parameters
    ----------
    graph, source, tolerance
        As in `is_imap` and `is_dmap`.

    Returns
    -------
    bool

    Examples
    --------
    >>> import networkx as nx
    >>> collider = nx.DiGraph([("A", "C"), ("B", "C")])
    >>> is_perfect_map(collider, collider), is_perfect_map(nx.complete_graph(["A", "B", "C"]), collider)
    (True, False)
    """
    known = _known(graph, source, "is_perfect_map")
    return is_imap(graph, known, tolerance=tolerance) and is_dmap(graph, known, tolerance=tolerance)


def same_independences(first: Any, second: Any) -> bool:
    """Whether two graphs of any kinds, on the same nodes, make the same statements.

    A DAG and an undirected graph do when the DAG has no v-structure and its skeleton is the undirected graph, which is
    then chordal (Murphy 19.2.3).

    Examples
    --------
    >>> import networkx as nx
    >>> chain = nx.path_graph(["A", "B", "C"])
    >>> same_independences(nx.DiGraph([("A", "B"), ("B", "C")]), chain)
    True
    >>> same_independences(nx.DiGraph([("A", "B"), ("C", "B")]), chain)
    False
    """
    if not is_graph(second):
        raise ModelError(f"same_independences compares two graphs, got a {type(second).__name__}")
    return is_imap(first, second) and is_imap(second, first)


def equivalent_to_undirected(dag: nx.DiGraph) -> bool:
    """Whether some undirected graph makes the same statements as a DAG: exactly when it has no v-structure.

    That graph is the DAG without its arrowheads, which is also its moral graph.

    Examples
    --------
    >>> import networkx as nx
    >>> equivalent_to_undirected(nx.DiGraph([("A", "B"), ("B", "C")]))
    True
    >>> equivalent_to_undirected(nx.DiGraph([("A", "B"), ("C", "B")]))
    False
    """
    check_dag(dag, "equivalent_to_undirected")
    return not v_structures(dag)


def equivalent_to_directed(graph: nx.Graph) -> bool:
    """Whether some DAG makes the same statements as an undirected graph: exactly when it is chordal.

    Directing the edges against a `perfect_order` gives such a DAG.

    Examples
    --------
    >>> import networkx as nx
    >>> equivalent_to_directed(nx.path_graph(4)), equivalent_to_directed(nx.cycle_graph(4))
    (True, False)
    """
    check_undirected(graph, "equivalent_to_directed")
    return is_chordal(graph)


def minimal_imap(source: Any, order: Iterable[Hashable], *, tolerance: float = 1e-9) -> nx.DiGraph:
    """The DAG, with arrows along an order, that is an I-map and would not be one with an arrow less.

    Each variable gets, of those before it, a smallest set of parents given which it is independent of the others
    (Caetano, lecture 2: the chain rule with what can be left out left out).

    Parameters
    ----------
    source
        A distribution (a `JointTable` or a model of at most ``2**20`` joint states), or a graph.
    order
        Every variable once.
    tolerance
        The largest `dependence` of a distribution that counts as none.

    Returns
    -------
    networkx.DiGraph
        Unique for a positive distribution and for a graph. Takes n (n - 1) / 2 tests.

    Examples
    --------
    >>> import networkx as nx
    >>> collider = nx.DiGraph([("A", "C"), ("B", "C")])
    >>> sorted(minimal_imap(collider, ["A", "B", "C"]).edges), sorted(minimal_imap(collider, ["C", "A", "B"]).edges)
    ([('A', 'C'), ('B', 'C')], [('A', 'B'), ('C', 'A'), ('C', 'B')])
    """
    import networkx as nx

    known = source if is_graph(source) else as_joint_table(source, "minimal_imap")
    nodes = list(order)
    if len(nodes) != len(known) or set(nodes) != set(known):
        raise ModelError(f"order of minimal_imap must name each of the {len(known)} variables once, got {nodes!r}")
    test = statement_test(known, tolerance, "minimal_imap")
    dag = nx.DiGraph()
    for i, v in enumerate(nodes):
        parents = nodes[:i]
        dropped: list[Any] = []
        # A set that serves still does with more of those before: what cannot be dropped now cannot be later.
        for u in nodes[:i]:
            fewer = [w for w in parents if w != u]
            if test({v}, {*dropped, u}, set(fewer)):
                parents = fewer
                dropped.append(u)
        dag.add_node(v)
        dag.add_edges_from((u, v) for u in parents)
    return dag


def minimal_undirected_imap(source: Any, *, tolerance: float = 1e-9) -> nx.Graph:
    """The undirected graph that is an I-map and would not be one with an edge less.

    Two variables are joined unless they are independent given all others (Murphy 19.2).

    Parameters
    ----------
    source
        A positive distribution (a `JointTable` or a model of at most ``2**20`` joint states), or a graph.
    tolerance
        The largest `dependence` of a distribution that counts as none.

    Returns
    -------
    networkx.Graph
        Of a DAG, its moral graph. Takes n (n - 1) / 2 tests.

    Examples
    --------
    >>> import networkx as nx
    >>> minimal_undirected_imap(nx.DiGraph([("A", "C"), ("B", "C")])).number_of_edges()
    3
    """
    import networkx as nx

    known = source if is_graph(source) else as_joint_table(source, "minimal_undirected_imap")
    if isinstance(known, JointTable) and not known.is_positive:
        raise ModelError(
            "minimal_undirected_imap needs a positive distribution, got one with configurations of probability zero"
        )
    test = statement_test(known, tolerance, "minimal_undirected_imap")
    nodes = list(known)
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    for i, u in enumerate(nodes):
        for v in nodes[i + 1 :]:
            if not test({u}, {v}, {w for w in nodes if w not in (u, v)}):
                graph.add_edge(u, v)
    return graph


def _known(graph: Any, source: Any, caller: str) -> Any:
    """The source as a graph or a joint table, on the nodes of the graph."""
    kind_of(graph, caller)
    known = source if is_graph(source) else as_joint_table(source, caller)
    if set(known) != set(graph):
        strange = next(v for v in (*graph, *known) if v not in graph or v not in known)
        raise ModelError(f"{caller} needs the same nodes on both sides, but {strange!r} is on one side only")
    return known


def _has_bidirected(graph: Any) -> bool:
    return kind_of(graph, "is_imap") == "mixed" and graph.bidirected.size() > 0


def _check_tests(joint: JointTable, caller: str) -> None:
    count = n_all_pairs(len(joint))
    if count > MAX_TESTS:
        raise ModelError(
            f"{caller} would test {count} statements about {len(joint)} variables on a distribution, over 2**17"
        )
