"""Checks shared by the functions on graphs: what kind of graph, which nodes, which sets of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError

if TYPE_CHECKING:
    from markovfield.graphs.mixed_graph import MixedGraph

__all__ = ["check_dag", "check_mixed", "check_undirected", "disjoint_sets", "is_graph", "kind_of", "node_set"]


def kind_of(graph: Any, caller: str) -> str:
    """``"undirected"`` or ``"directed"`` for a networkx graph, ``"mixed"`` for a `MixedGraph`."""
    from markovfield.graphs.mixed_graph import MixedGraph

    if isinstance(graph, MixedGraph):
        return "mixed"
    is_directed = getattr(graph, "is_directed", None)
    if callable(is_directed) and hasattr(graph, "adj"):
        return "directed" if is_directed() else "undirected"
    raise ModelError(f"{caller} needs a networkx graph or a MixedGraph, got {type(graph).__name__}")


def is_graph(source: Any) -> bool:
    """Whether something is a graph that `kind_of` knows."""
    try:
        kind_of(source, "is_graph")
    except ModelError:
        return False
    return True


def check_undirected(graph: Any, caller: str) -> None:
    """Refuse anything but an undirected networkx graph."""
    kind = kind_of(graph, caller)
    if kind != "undirected":
        raise ModelError(f"{caller} needs an undirected graph (networkx.Graph), got {_article(kind)} one")


def check_dag(graph: Any, caller: str) -> None:
    """Refuse anything but a directed networkx graph without cycles; the error prints the cycle."""
    import networkx as nx

    kind = kind_of(graph, caller)
    if kind != "directed":
        raise ModelError(f"{caller} needs a directed graph (networkx.DiGraph), got {_article(kind)} one")
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [edge[0] for edge in nx.find_cycle(graph)]
        shown = " -> ".join(repr(v) for v in (*cycle, cycle[0]))
        raise ModelError(f"{caller} needs a graph without directed cycles, got the cycle {shown}")


def check_mixed(graph: Any, caller: str, *, without: str) -> MixedGraph:
    """Any graph as a `MixedGraph` that has no edges of one kind (``"undirected"`` or ``"bidirected"``)."""
    from markovfield.graphs.mixed_graph import as_mixed_graph

    mixed = as_mixed_graph(graph, caller)
    unwanted = next(iter(getattr(mixed, without).edges()), None)
    if unwanted is not None:
        raise ModelError(
            f"{caller} has no meaning for {without} edges, got one between {unwanted[0]!r} and {unwanted[1]!r}"
        )
    return mixed


def node_set(graph: Any, nodes: Any, caller: str, argument: str) -> set[Any]:
    """The nodes an argument names: a node of the graph, or a collection of them.

    What is itself a node is that node, even when it is a tuple or a frozenset; text is never taken apart.
    """
    if _is_node(graph, nodes):
        return {nodes}
    found = [nodes] if isinstance(nodes, str) or not isinstance(nodes, Iterable) else list(nodes)
    for v in found:
        if not _is_node(graph, v):
            place = "node of the graph" if is_graph(graph) else "variable of the distribution"
            raise ModelError(f"{argument} of {caller} names {v!r}, which is not a {place}")
    return set(found)


def _article(kind: str) -> str:
    return f"an {kind}" if kind == "undirected" else f"a {kind}"


def _is_node(graph: Any, node: Any) -> bool:
    try:
        return node in graph
    except TypeError:
        return False


def disjoint_sets(graph: Any, a: Any, b: Any, given: Any, caller: str) -> tuple[set[Any], set[Any], set[Any]]:
    """The three sets of an independence statement; a node in two of them is an error."""
    sets = {
        "a": node_set(graph, a, caller, "a"),
        "b": node_set(graph, b, caller, "b"),
        "given": node_set(graph, given, caller, "given"),
    }
    for first, second in (("a", "b"), ("a", "given"), ("b", "given")):
        shared = sets[first] & sets[second]
        if shared:
            node = next(v for v in graph if v in shared)
            raise ModelError(f"{caller} needs disjoint sets, but {node!r} is in both {first} and {second}")
    return sets["a"], sets["b"], sets["given"]
