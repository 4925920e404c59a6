"""networkx graphs as the index arrays the kernels read."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import MemoryLimitError, ModelError

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Elimination", "GraphArrays", "check_found", "eliminated", "graph_arrays", "positions_of"]


class GraphArrays(NamedTuple):
    """Nodes in the graph's order, and every edge as a scope of two positions."""

    nodes: list[Any]
    position: dict[Any, int]
    cardinalities: npt.NDArray[np.int32]
    scope_offsets: npt.NDArray[np.int64]
    scopes: npt.NDArray[np.int32]


class Elimination(NamedTuple):
    """An order and, for each node of it, the neighbours it has when eliminated, nearest in the order first."""

    order: list[Any]
    higher: list[list[Any]]


def graph_arrays(graph: nx.Graph, cardinalities: Mapping[Any, int] | None, caller: str) -> GraphArrays:
    """Check an undirected graph and its cardinalities (2 each when not given) and index them."""
    if not hasattr(graph, "is_directed"):
        raise ModelError(
            f"{caller} needs a graph of networkx, got {type(graph).__name__}; a model's to_networkx() makes one"
        )
    if graph.is_directed():
        raise ModelError(
            f"{caller} needs an undirected graph, got a directed one; moralise it or forget the directions"
        )
    nodes = list(graph.nodes)
    position = {v: i for i, v in enumerate(nodes)}
    if cardinalities is None:
        cards = np.full(len(nodes), 2, np.int32)
    else:
        missing = next((v for v in nodes if v not in cardinalities), None)
        if missing is not None:
            raise ModelError(f"cardinalities of {caller} says nothing of node {missing!r}")
        cards = np.array([cardinalities[v] for v in nodes], np.int32)
        if nodes and cards.min() < 1:
            node = nodes[int(cards.argmin())]
            raise ModelError(f"cardinalities of {caller} must be at least 1, got {cards.min()} for node {node!r}")
    pairs = [(position[u], position[v]) for u, v in graph.edges() if u != v]
    scopes = np.array(pairs, np.int32).reshape(-1)
    return GraphArrays(nodes, position, cards, np.arange(0, len(scopes) + 1, 2, dtype=np.int64), scopes)


def positions_of(arrays: GraphArrays, order: Iterable[Hashable], caller: str) -> npt.NDArray[np.int32]:
    """Positions of the nodes of an order, which must name every node of the graph once."""
    given = list(order)
    unknown = next((v for v in given if v not in arrays.position), None)
    if unknown is not None:
        raise ModelError(f"order of {caller} names {unknown!r}, which is not a node of the graph")
    if len(given) != len(arrays.nodes) or len(set(given)) != len(given):
        raise ModelError(
            f"order of {caller} must name each of the {len(arrays.nodes)} nodes once, got {len(given)} names"
        )
    return np.array([arrays.position[v] for v in given], np.int32)


def check_found(log2_states: float, caller: str) -> None:
    """Refuse a graph whose search was given up."""
    if log2_states == np.inf:
        raise MemoryLimitError(f"{caller} gave up: the cliques of every order tried have over 2**27 members in all")


def eliminated(graph: nx.Graph, order: Iterable[Hashable] | None, caller: str) -> Elimination:
    """Eliminate a graph in the order given, or in one found by the greedy portfolio."""
    from markovfield.graphs.elimination.orders_kernel import eliminate, search_order

    arrays = graph_arrays(graph, None, caller)
    if order is None:
        stage = np.zeros(len(arrays.nodes), np.int8)
        found, starts, higher, log2_states = search_order(*arrays[2:], stage, 0.0, 0, 3)
        check_found(log2_states, caller)
    else:
        found = positions_of(arrays, order, caller)
        starts, higher, _ = eliminate(*arrays[2:], found)
    nodes = arrays.nodes
    flat = [nodes[i] for i in higher.tolist()]
    ends = starts.tolist()
    return Elimination([nodes[i] for i in found.tolist()], [flat[a:b] for a, b in itertools.pairwise(ends)])
