"""Spanning forests with weights, and how often each edge appears in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.remembered import Shelf
from markovfield.inference.tree_reweighted.stars import PairGraph
from markovfield.inference.tree_reweighted.stars_kernel import rooted, spanning_forest
from markovfield.names import VariableName

__all__ = ["MOST_TREES", "SpanningTrees", "even_trees", "given_trees"]

# Trees of an even cover: enough for smooth probabilities on small graphs, few on large ones.
MOST_TREES = 64
NODES_IN_TREES = 2**17


_EVEN: Shelf[SpanningTrees] = Shelf(1)


@dataclass(frozen=True, eq=False)
class SpanningTrees:
    """A mixture of spanning forests of a graph of pairs.

    Attributes
    ----------
    inside
        ``bool[trees, edges]``: which edges each forest has; every one spans every component.
    weights
        ``float64[trees]``, positive, adding up to one.
    orders, parents
        ``int32[trees, nodes]`` and ``int64[trees, nodes]``: nodes from the roots on, and the half-edge at each node
        that leads to its parent.
    """

    inside: npt.NDArray[np.bool_]
    weights: FloatArray
    orders: npt.NDArray[np.int32]
    parents: npt.NDArray[np.int64]

    @property
    def probabilities(self) -> FloatArray:
        """``float64[edges]``: the probability that a tree drawn by its weight has the edge."""
        return np.minimum(self.weights @ self.inside, 1.0)

    def __len__(self) -> int:
        return len(self.weights)

    def mixed_with(self, pairs: PairGraph, tree: npt.NDArray[np.bool_], step: float) -> SpanningTrees:
        """(1 - step) times this mixture and ``step`` times one tree: a step of Frank-Wolfe."""
        same = np.flatnonzero((self.inside == tree).all(axis=1))
        weights = self.weights * (1.0 - step)
        if len(same):
            weights[same[0]] += step
            return SpanningTrees(self.inside, weights, self.orders, self.parents)
        more = _rooted(pairs, tree[None, :], np.ones(1))
        return SpanningTrees(
            np.concatenate([self.inside, more.inside]),
            np.append(weights, step),
            np.concatenate([self.orders, more.orders]),
            np.concatenate([self.parents, more.parents]),
        )


def best_tree(pairs: PairGraph, weights: FloatArray) -> npt.NDArray[np.bool_]:
    """The spanning forest of greatest total weight; among equals, earlier edges first."""
    inside = np.zeros(pairs.n_edges, np.bool_)
    spanning_forest(np.argsort(-weights, kind="stable"), pairs.layout.half_node, pairs.n_nodes, inside)
    return inside


def _rooted(pairs: PairGraph, inside: npt.NDArray[np.bool_], weights: FloatArray) -> SpanningTrees:
    orders = np.empty((len(inside), pairs.n_nodes), np.int32)
    parents = np.empty((len(inside), pairs.n_nodes), np.int64)
    at = pairs.layout
    for t in range(len(inside)):
        rooted(at.adjacency_offsets, at.adjacency, at.half_node, inside[t], orders[t], parents[t])
    return SpanningTrees(inside, weights / weights.sum(), orders, parents)


def even_trees(pairs: PairGraph, n_trees: int | None = None) -> SpanningTrees:
    """Spanning forests that use all edges as evenly as they can, each tree taking the least used edges first.

    Bridges have probability one; where all edges are alike, probabilities tend to those of a uniform spanning tree. The
    number of trees depends on the graph alone: one for a forest, and otherwise at least twice as many as are needed to
    cover the edges; all of them together have about as many edges as two sweeps send messages. They depend on the
    structure alone, and are kept with it. With ``n_trees``, there are so many, or as many more as cover the edges.
    """
    return _EVEN.get(pairs.problem.structure, n_trees, lambda: _even_trees(pairs, n_trees))


def _even_trees(pairs: PairGraph, n_trees: int | None) -> SpanningTrees:
    rank = max(1, pairs.n_nodes - pairs.n_components)
    if pairs.n_edges <= rank and pairs.n_edges == pairs.n_nodes - pairs.n_components:
        return _rooted(pairs, np.ones((1, pairs.n_edges), np.bool_), np.ones(1))
    wanted = n_trees or max(2 * -(-pairs.n_edges // rank), min(MOST_TREES, NODES_IN_TREES // pairs.n_nodes))
    used = np.zeros(pairs.n_edges)
    trees: list[npt.NDArray[np.bool_]] = []
    # A dense part of a sparse graph may need more: each tree takes unused edges first, so this ends.
    while len(trees) < wanted or not used.all():
        trees.append(best_tree(pairs, -used))
        used += trees[-1]
    return _rooted(pairs, np.array(trees), np.ones(len(trees)))


def given_trees(
    pairs: PairGraph,
    trees: Sequence[Sequence[tuple[VariableName, VariableName]]],
    weights: Sequence[float] | None,
) -> SpanningTrees:
    """The user's trees, as pairs of variable names, each filled up to a spanning forest.

    Pairs that the evidence has dissolved are passed over. Edges of auxiliary nodes cannot be named: where a tree does
    not span the graph, it takes the least used ones.
    """
    names = pairs.problem.graph.names
    n = pairs.n_nodes
    key = pairs.layout.half_node[0::2].astype(np.int64) * n + pairs.layout.half_node[1::2]
    edge_of = {int(k): e for e, k in enumerate(key.tolist())}
    cards = pairs.problem.structure.cardinalities
    used = np.zeros(pairs.n_edges)
    inside = np.zeros((len(trees), pairs.n_edges), np.bool_)
    for t, tree in enumerate(trees):
        wanted = np.zeros(pairs.n_edges, np.bool_)
        for pair in tree:
            u, v = (names.position(name) for name in pair)
            if cards[u] == 1 or cards[v] == 1:
                continue
            i, j = sorted((int(pairs.variable_node[u]), int(pairs.variable_node[v])))
            if i * n + j not in edge_of:
                raise ModelError(f"tree {t} has the edge {pair!r}, and no factor is on these two variables alone")
            wanted[edge_of[i * n + j]] = True
        inside[t] = best_tree(pairs, np.where(wanted, 1.0, -used))
        if (wanted & ~inside[t]).any():
            raise ModelError(f"tree {t} of the spanning trees given has a cycle")
        used += inside[t]
    if not used.all():
        e = int(np.flatnonzero(used == 0)[0])
        raise ModelError(f"none of the spanning trees given has the edge between {_ends(pairs, e)}: together they must")
    return _rooted(pairs, inside, np.ones(len(trees)) if weights is None else np.asarray(weights, np.float64))


def _ends(pairs: PairGraph, e: int) -> str:
    """The two ends of an edge, in words."""
    graph = pairs.problem.graph
    node_variable = np.full(pairs.n_nodes, -1, np.int64)
    node_variable[pairs.variable_node] = np.arange(len(pairs.variable_node))
    words = []
    for node in pairs.layout.half_node[2 * e : 2 * e + 2].tolist():
        v = int(node_variable[node])
        words.append(repr(graph.variables[v]) if 0 <= v < graph.n_variables else "an auxiliary variable")
    return " and ".join(words)
