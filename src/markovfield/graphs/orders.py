"""Elimination orders of graphs, and how wide they are."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield._validation import generator_of
from markovfield.exceptions import ModelError
from markovfield.extras import check_installed
from markovfield.graphs._arrays import GraphArrays, check_found, eliminated, graph_arrays

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["elimination_order", "induced_width"]

# Bits of the kernel's greedy portfolio. Minimum degree is minimum weight where all cardinalities are equal.
GREEDY_RULES = {"auto": 15, "min_fill": 1, "min_weight": 2, "min_degree": 2}


def elimination_order(
    graph: nx.Graph,
    cardinalities: Mapping[Any, int] | None = None,
    *,
    method: str = "auto",
    effort: float = 0.0,
    rng: int | np.random.Generator | None = None,
) -> list[Any]:
    """An order in which to eliminate the nodes of a graph so that the cliques made have few states.

    The cost is the number of states of the maximal elimination cliques, the size of a junction tree. Finding the best
    order is NP-hard; trees, and all chordal graphs of up to 8192 nodes, are ordered without fill.

    Parameters
    ----------
    graph
        An undirected graph; self-loops are ignored.
    cardinalities
        Number of states of each node; 2 for all when not given. Nodes of one state cost nothing and come first.
    method
        ``"auto"`` takes the best of several greedy rules, ``"min_fill"``, ``"min_weight"`` (the states of the clique
        made) and ``"min_degree"`` one rule; ``"cotengra"`` takes the order in which that package (an optional
        dependency) contracts one tensor per edge.
    effort
        Nanoseconds, roughly, of local search after the greedy rules. It improves any order but cotengra's.
    rng
        Seed or generator of the local search, and of cotengra; nothing else is random.

    Returns
    -------
    list
        Every node once.

    Notes
    -----
    A greedy run on m nodes left after stripping trees takes time and memory of the order of ``m**2 / 64`` and up for
    each neighbour made; above 8192 nodes, sparse rules take memory linear in the cliques.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.cycle_graph(5)
    >>> order = elimination_order(graph)
    >>> sorted(order), induced_width(graph, order)
    ([0, 1, 2, 3, 4], 2)
    """
    if method not in (*GREEDY_RULES, "cotengra"):
        known = ", ".join(repr(name) for name in (*GREEDY_RULES, "cotengra"))
        raise ModelError(f"method of elimination_order must be one of {known}, got {method!r}")
    if not effort >= 0:
        raise ModelError(f"effort of elimination_order must not be negative, got {effort}")
    arrays = graph_arrays(graph, cardinalities, "elimination_order")
    seed = int(generator_of(rng).integers(2**31)) if effort > 0 or method == "cotengra" else 0
    if method == "cotengra":
        return _cotengra_order(arrays, seed)
    from markovfield.graphs.elimination.orders_kernel import search_order_balanced

    cards = np.minimum(arrays.cardinalities, 2) if method == "min_degree" else arrays.cardinalities
    # A single rule is that rule: no almost simplicial vertices before it.
    rules = 3 if method == "auto" else 1
    found, _, _, log2_states = search_order_balanced(
        cards,
        arrays.scope_offsets,
        arrays.scopes,
        np.zeros(len(cards), np.int8),
        float(effort),
        np.inf,
        np.inf,
        seed,
        rules,
        GREEDY_RULES[method],
    )
    check_found(log2_states, "elimination_order")
    constants = np.flatnonzero(arrays.cardinalities == 1).tolist()
    return [arrays.nodes[i] for i in (*constants, *found.tolist())]


def _cotengra_order(arrays: GraphArrays, seed: int) -> list[Any]:
    """The order in which a contraction of one tensor per edge sums out its indices."""
    check_installed("elimination_order with method 'cotengra'", "cotengra")
    import cotengra

    edges = [tuple(map(str, pair)) for pair in arrays.scopes.reshape(-1, 2).tolist()]
    summed: list[str] = []
    if edges:
        sizes = {str(i): int(card) for i, card in enumerate(arrays.cardinalities)}
        tree = cotengra.RandomGreedyOptimizer(max_repeats=64, seed=seed, parallel=False).search(edges, (), sizes)
        for parent, left, right in tree.traverse():
            kept = tree.get_legs(parent)
            summed += [
                i for i in dict.fromkeys(itertools.chain(tree.get_legs(left), tree.get_legs(right))) if i not in kept
            ]
    # Indices of a single tensor are summed before any contraction.
    seen = set(summed)
    early = [v for i, v in enumerate(arrays.nodes) if str(i) not in seen]
    return early + [arrays.nodes[int(i)] for i in summed]


def induced_width(graph: nx.Graph, order: Iterable[Hashable]) -> int:
    """Size of the largest elimination clique of an order, less one.

    Parameters
    ----------
    graph
        An undirected graph.
    order
        Every node once.

    Returns
    -------
    int
        The width; its minimum over all orders is the treewidth. 0 for a graph without edges.

    Examples
    --------
    >>> import networkx as nx
    >>> star = nx.star_graph(4)
    >>> induced_width(star, [1, 2, 3, 4, 0]), induced_width(star, [0, 1, 2, 3, 4])
    (1, 4)
    """
    return max((len(higher) for higher in eliminated(graph, order, "induced_width").higher), default=0)
