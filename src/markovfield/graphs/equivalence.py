"""DAGs that encode the same independences: their common class (CPDAG), and how to read one off tests of independence.

A class is written as a `MixedGraph`: an arrow where every DAG of the class has it, an undirected edge where some have
it one way and some the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_dag, check_mixed, check_undirected
from markovfield.graphs._orientation import Orientation
from markovfield.graphs.mixed_graph import MixedGraph

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["cpdag", "dag_of_cpdag", "markov_equivalent", "meek_closure", "orient", "v_structures"]


def v_structures(dag: nx.DiGraph) -> list[tuple[Any, Any, Any]]:
    """The triples (a, c, b) with arrows a -> c <- b between nodes a and b that are not adjacent.

    Each is listed once, with a before b in the graph's order. Costs the square of the numbers of parents.

    Examples
    --------
    >>> import networkx as nx
    >>> v_structures(nx.DiGraph([("A", "C"), ("B", "C"), ("C", "D")]))
    [('A', 'C', 'B')]
    """
    check_dag(dag, "v_structures")
    position = {v: i for i, v in enumerate(dag)}
    found = []
    for c in dag:
        parents = sorted(dag.pred[c], key=position.__getitem__)
        for i, a in enumerate(parents):
            found += [(a, c, b) for b in parents[i + 1 :] if not (dag.has_edge(a, b) or dag.has_edge(b, a))]
    return found


def markov_equivalent(first: nx.DiGraph, second: nx.DiGraph) -> bool:
    """Whether two DAGs encode the same independences: the same adjacencies and the same v-structures.

    Parameters
    ----------
    first, second
        Directed acyclic graphs; on different nodes they are not equivalent.

    Examples
    --------
    >>> import networkx as nx
    >>> chain, fork = nx.DiGraph([("A", "B"), ("B", "C")]), nx.DiGraph([("B", "A"), ("B", "C")])
    >>> collider = nx.DiGraph([("A", "B"), ("C", "B")])
    >>> markov_equivalent(chain, fork), markov_equivalent(chain, collider)
    (True, False)
    """
    check_dag(first, "markov_equivalent")
    check_dag(second, "markov_equivalent")
    if set(first) != set(second) or _skeleton_pairs(first) != _skeleton_pairs(second):
        return False
    return _colliders(first) == _colliders(second)


def _skeleton_pairs(dag: nx.DiGraph) -> set[frozenset[Any]]:
    return {frozenset(edge) for edge in dag.edges()}


def _colliders(dag: nx.DiGraph) -> set[tuple[Any, frozenset[Any]]]:
    return {(c, frozenset((a, b))) for a, c, b in v_structures(dag)}


def cpdag(dag: nx.DiGraph) -> MixedGraph:
    """The class of DAGs equivalent to one: arrows that all of them share, undirected edges for the rest.

    The v-structures are kept and the rules of Meek (1995) applied until none fits.

    Parameters
    ----------
    dag
        A directed acyclic graph.

    Returns
    -------
    MixedGraph
        Equal for two DAGs exactly when they are `markov_equivalent`. It is a chain graph and encodes the same
        independences (`chain_separated`).

    Examples
    --------
    >>> import networkx as nx
    >>> cpdag(nx.DiGraph([("A", "B"), ("B", "C")]))
    MixedGraph(A -- B, B -- C)
    >>> cpdag(nx.DiGraph([("A", "C"), ("B", "C"), ("C", "D")]))
    MixedGraph(A -> C, C -> D, B -> C)
    """
    check_dag(dag, "cpdag")
    # Every arrow the rules make is one of the DAG's own, so that no cycle can arise.
    work = Orientation(dag, dag.edges(), guard_cycles=False)
    for a, c, b in v_structures(dag):
        work.orient(a, c)
        work.orient(b, c)
    work.close()
    return work.result()


def orient(
    skeleton: nx.Graph, separating_sets: Mapping[Collection[Any], Collection[Any]], *, directed: Collection[Any] = ()
) -> MixedGraph:
    """Direct the edges of a skeleton from the sets that separated its non-adjacent nodes, as the PC algorithm does.

    Where a - c - b with a and b not adjacent and c not in their separating set, the arrows a -> c <- b are made; then
    the rules of Meek (1995) direct what that compels.

    Parameters
    ----------
    skeleton
        The undirected graph of adjacencies.
    separating_sets
        ``{frozenset({a, b}): set that separated a and b}``; a tuple ``(a, b)`` serves as a key too. A pair without an
        entry tells nothing: no v-structure is made of it.
    directed
        Arrows known beforehand, as pairs (from, to) of adjacent nodes; they come first.

    Returns
    -------
    MixedGraph
        Of the true sets of a DAG, its `cpdag`. Sets that contradict each other, as noisy tests give them, still yield
        arrows without a directed cycle: in the skeleton's order, a v-structure that would turn an arrow round or close
        a cycle is left out, and so is an arrow of a rule that would close a cycle.

    Examples
    --------
    >>> import networkx as nx
    >>> skeleton = nx.Graph([("A", "C"), ("B", "C"), ("C", "D")])
    >>> orient(skeleton, {("A", "B"): set(), ("A", "D"): {"C"}, ("B", "D"): {"C"}})
    MixedGraph(A -> C, C -> D, B -> C)
    """
    check_undirected(skeleton, "orient")
    sets: dict[frozenset[Any], Collection[Any]] = {}
    for pair, nodes in separating_sets.items():
        key = frozenset(pair)
        if len(key) != 2:
            raise ModelError(f"separating_sets of orient needs pairs of nodes as keys, got {pair!r}")
        sets[key] = nodes
    work = Orientation(skeleton, [(u, v) for u, v in skeleton.edges() if u != v], guard_cycles=True)
    for edge in directed:
        u, v = edge
        if not (u in skeleton and skeleton.has_edge(u, v)):
            raise ModelError(f"directed of orient has the arrow {u!r} -> {v!r}, which is not an edge of the skeleton")
        if not work.orient(u, v):
            raise ModelError(f"directed of orient has the arrow {u!r} -> {v!r}, which closes a directed cycle")
    position = {v: i for i, v in enumerate(skeleton)}
    for c in skeleton:
        around = sorted((v for v in skeleton.adj[c] if v != c), key=position.__getitem__)
        for i, a in enumerate(around):
            for b in around[i + 1 :]:
                separator = sets.get(frozenset((a, b)))
                if skeleton.has_edge(a, b) or separator is None or c in separator:
                    continue
                if work.possible(a, c) and work.possible(b, c):
                    work.orient(a, c)
                    work.orient(b, c)
    work.close()
    return work.result()


def meek_closure(graph: MixedGraph) -> MixedGraph:
    """Direct the undirected edges whose direction the arrows compel, by the four rules of Meek (1995).

    Directing an edge the other way would close a cycle or make a v-structure. This is how knowledge of some arrows
    (an intervention, an order in time) enters an equivalence class.

    Parameters
    ----------
    graph
        Arrows and undirected edges, such as a `cpdag` with some edges directed by hand.

    Examples
    --------
    >>> meek_closure(MixedGraph(directed=[("A", "B")], undirected=[("B", "C"), ("C", "D")]))
    MixedGraph(A -> B, B -> C, C -> D)
    """
    mixed = check_mixed(graph, "meek_closure", without="bidirected")
    check_dag(mixed.directed, "meek_closure")
    both = next(
        (e for e in mixed.undirected.edges() if mixed.directed.has_edge(*e) or mixed.directed.has_edge(*e[::-1])), None
    )
    if both is not None:
        raise ModelError(f"meek_closure needs one edge between two nodes, got two between {both[0]!r} and {both[1]!r}")
    work = Orientation(mixed, [*mixed.directed.edges(), *mixed.undirected.edges()], guard_cycles=True)
    for u, v in mixed.directed.edges():
        work.orient(u, v)
    work.close()
    return work.result()


def dag_of_cpdag(graph: MixedGraph, *, strict: bool = True) -> nx.DiGraph:
    """A DAG of a class: every undirected edge directed, without a new v-structure and without a cycle.

    The method of Dor and Tarsi (1992): take away, again and again, a node without outgoing arrows whose undirected
    neighbours are adjacent to all nodes around it, and direct its edges into it.

    Parameters
    ----------
    graph
        Arrows and undirected edges.
    strict
        Whether a graph without such a DAG is an error. Otherwise the edges left are directed along an order of the
        arrows, which makes v-structures that the graph does not have; arrows that form a cycle are always an error.

    Returns
    -------
    networkx.DiGraph

    Examples
    --------
    >>> import networkx as nx
    >>> dag = dag_of_cpdag(MixedGraph(directed=[("A", "B"), ("C", "B")], undirected=[("C", "D")]))
    >>> sorted(dag.edges)
    [('A', 'B'), ('C', 'B'), ('D', 'C')]
    """
    import networkx as nx

    mixed = check_mixed(graph, "dag_of_cpdag", without="bidirected")
    check_dag(mixed.directed, "dag_of_cpdag")
    dag = nx.DiGraph()
    dag.add_nodes_from(mixed)
    dag.add_edges_from(mixed.directed.edges())
    around = {v: set(adjacent) for v, adjacent in mixed.skeleton().adj.items()}
    loose = {v: set(mixed.undirected.adj[v]) for v in mixed}
    heads = {v: len(mixed.directed.succ[v]) for v in mixed}
    waiting = dict.fromkeys(reversed(mixed.nodes))
    while waiting:
        v, _ = waiting.popitem()
        if heads[v] or any(around[v] - around[u] != {u} for u in loose[v]):
            continue
        dag.add_edges_from((u, v) for u in mixed.undirected.adj[v] if u in loose[v])
        for u in mixed.directed.pred[v]:
            heads[u] -= u in around[v]
        for u in around.pop(v):
            around[u].discard(v)
            loose[u].discard(v)
            waiting[u] = None
    # While a node without outgoing arrows remains, something undirected at it is what stopped the search.
    left = [(u, v) for u, v in mixed.undirected.edges() if u in around and v in loose[u]]
    if left and strict:
        raise ModelError(
            "dag_of_cpdag found no DAG with the arrows and v-structures of the graph: "
            f"the edge between {left[0][0]!r} and {left[0][1]!r} cannot be directed"
        )
    rank = {v: i for i, v in enumerate(nx.topological_sort(mixed.directed))}
    dag.add_edges_from((u, v) if rank[u] < rank[v] else (v, u) for u, v in left)
    return dag
