"""Topological sorts of a DAG, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_dag

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["count_topological_sorts", "topological_sorts"]

MAX_SETS = 2**16
"""Most sets of nodes whose sorts are counted and remembered."""
MAX_COMPONENT = 200
"""Most nodes of a connected component, which bound the depth of the recursion."""


def topological_sorts(dag: nx.DiGraph) -> Iterator[list[Any]]:
    """All orders of the nodes in which parents come before children (Caetano, lecture 2), one after the other.

    Examples
    --------
    >>> import networkx as nx
    >>> sorted(topological_sorts(nx.DiGraph([("A", "B"), ("A", "C")])))
    [['A', 'B', 'C'], ['A', 'C', 'B']]
    """
    import networkx as nx

    check_dag(dag, "topological_sorts")
    return nx.all_topological_sorts(dag) if len(dag) else iter([[]])


def count_topological_sorts(dag: nx.DiGraph) -> int:
    """How many topological sorts a DAG has: n! without arrows, 1 when every two nodes are joined.

    Connected components are counted apart and interleaved (a binomial coefficient); a component is the sum
    over the nodes that can come first, or last, where those are fewer, of the count without it. Counts of sets of nodes
    met before are remembered.

    Parameters
    ----------
    dag
        A directed acyclic graph. The problem is #P-complete: a graph that needs more than ``2**16`` sets, or with a
        connected component of more than 200 nodes, is refused.

    Returns
    -------
    int
        Exact, of any size.

    Examples
    --------
    >>> import networkx as nx
    >>> count_topological_sorts(nx.DiGraph([("A", "B"), ("C", "D")]))
    6
    """
    check_dag(dag, "count_topological_sorts")
    position = {v: i for i, v in enumerate(dag)}
    parents = [sum(1 << position[u] for u in dag.pred[v]) for v in dag]
    children = [sum(1 << position[u] for u in dag.succ[v]) for v in dag]
    joined = [above | below for above, below in zip(parents, children, strict=True)]
    known: dict[int, int] = {}

    def count(nodes: int) -> int:
        total, placed = 1, 0
        for component in _components(nodes, joined):
            size = component.bit_count()
            placed += size
            total *= comb(placed, size)
            if size > 2:
                total *= count_connected(component, size)
        return total

    def count_connected(component: int, size: int) -> int:
        found = known.get(component)
        if found is None:
            if size > MAX_COMPONENT:
                raise ModelError(
                    f"count_topological_sorts takes components of up to {MAX_COMPONENT} nodes, got one of {size}"
                )
            if len(known) >= MAX_SETS:
                raise ModelError(f"count_topological_sorts gave up: the graph needs counts of over {MAX_SETS} sets")
            members = _bits(component)
            first = [i for i in members if not parents[i] & component]
            last = [i for i in members if not children[i] & component]
            ends = first if len(first) <= len(last) else last
            found = known[component] = sum(count(component & ~(1 << i)) for i in ends)
        return found

    return count((1 << len(dag)) - 1)


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _components(nodes: int, joined: list[int]) -> list[int]:
    """Sets of nodes joined by arrows, within a set; all sets as bit masks."""
    components = []
    while nodes:
        component = frontier = nodes & -nodes
        # Most sets are connected: stop as soon as all is found.
        while frontier and component != nodes:
            low = frontier & -frontier
            new = joined[low.bit_length() - 1] & nodes & ~component
            component |= new
            frontier = (frontier ^ low) | new
        components.append(component)
        nodes &= ~component
    return components
