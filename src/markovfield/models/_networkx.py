"""What the nodes and edges of a networkx graph say of variables and tables, and what they leave open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["factors_of", "states_of_node"]


def states_of_node(data: Mapping[str, Any]) -> Any:
    """The ``states`` of a node's data: names, or a count where they are plain indices; two when it says nothing."""
    states = data.get("states", 2)
    if not isinstance(states, (int, np.integer)):
        # Equality alone would take [False, True] or [0.0, 1.0] for plain indices.
        plain = all(type(s) is int and s == i for i, s in enumerate(states))
        return len(states) if plain and len(states) else states
    return states


def factors_of(graph: nx.Graph, cardinalities: Mapping[Any, int]) -> Iterator[tuple[list[Any], Mapping[str, Any]]]:
    """Variables in the order of a table's axes, and the data that holds the table, of every node and edge with one.

    networkx keeps the neighbours of a node in the order in which edges were added to *this* graph, and the ends of an
    undirected edge in that of its nodes: copies, subgraphs and files may have another. So the order is taken from
    ``scope``, from a directed edge, or from a table that leaves no choice.
    """
    bipartite = False
    for node, data in graph.nodes(data=True):
        if data.get("bipartite") == 1:
            bipartite = True
            yield _in_order(f"factor node {node!r}", list(graph.neighbors(node)), data, cardinalities, False), data
    if bipartite:
        return
    for name, data in graph.nodes(data=True):
        if "table" in data or "log_table" in data:
            yield [name], data
    for a, b, data in graph.edges(data=True):
        yield _in_order(f"edge {a!r} - {b!r}", [a, b], data, cardinalities, graph.is_directed()), data


def _in_order(
    what: str, ends: list[Any], data: Mapping[str, Any], cardinalities: Mapping[Any, int], ordered: bool
) -> list[Any]:
    """The variables of a table in the order of its axes; ``ordered`` where ``ends`` are."""
    if "table" not in data and "log_table" not in data:
        raise ModelError(f"{what} has neither table nor log_table")
    scope = data.get("scope")
    if scope is not None:
        if not isinstance(scope, (list, tuple)) or sorted(map(repr, scope)) != sorted(map(repr, ends)):
            raise ModelError(f"the scope of {what} must list {ends!r} in the order of the table's axes, got {scope!r}")
        return list(scope)
    if ordered or len(set(ends)) < 2:
        return ends
    table: npt.NDArray[Any] = np.asarray(data["log_table" if "log_table" in data else "table"])
    cards = [cardinalities[v] for v in ends]
    if sorted(table.shape) != sorted(cards):
        return ends  # whoever adds the factor says what is wrong
    if len(set(cards)) == len(cards):
        return [ends[cards.index(size)] for size in table.shape]
    if len(set(cards)) == 1 and all(np.array_equal(table, np.swapaxes(table, 0, a)) for a in range(1, len(ends))):
        return ends
    raise ModelError(
        f"{what} has a table of shape {table.shape} and no scope: networkx does not keep the order of its variables, "
        f"so give scope={tuple(ends)!r}, in the order of the table's axes"
    )
