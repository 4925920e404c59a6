"""Any factor graph as a graph of pairs: what tree-reweighted methods work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.problem.pairwise import pairwise, unary_scores
from markovfield.inference.problem.problem import Problem
from markovfield.inference.tree_reweighted.stars_kernel import breadth_first, finite_cells
from markovfield.inference.tree_reweighted.sweeps_kernel import FIRST_IS_CELLS, SECOND_IS_CELLS, TABLE, PairLayout

__all__ = ["PairGraph", "pair_graph"]


@dataclass(frozen=True, eq=False)
class PairGraph:
    """A problem as nodes and pairs of nodes, with the same partition function.

    Factors on the same two variables are one edge. A factor of three or more variables is an auxiliary node whose
    states are its cells above -inf, joined to each of the variables.

    Attributes
    ----------
    node_log
        ``float64``: the log-potential of every node's states, at ``layout.value_offsets``.
    constant
        The sum of the factors of no variable.
    variable_node
        ``int64[n]``: the node of each variable of the problem.
    factor_edge, factor_node
        ``int64[m]``: the edge of a factor of two variables, or the first edge of a larger one (the others follow, in
        the order of its scope) and its auxiliary node; -1 for the rest.
    largest
        The most cells of a table, or of a node.
    """

    problem: Problem
    layout: PairLayout
    node_log: FloatArray
    constant: float
    variable_node: IntArray
    factor_edge: IntArray
    factor_node: IntArray
    largest: int

    @property
    def n_nodes(self) -> int:
        """Variables and auxiliary nodes."""
        return len(self.layout.value_offsets) - 1

    @property
    def n_edges(self) -> int:
        """Pairs of nodes that are joined."""
        return len(self.layout.edge_base)

    @property
    def n_components(self) -> int:
        """Connected components."""
        return len(self.layout.component_offsets) - 1

    @property
    def same_shape(self) -> tuple[Any, ...]:
        """What two graphs of pairs have in common when messages of one fit the other."""
        at = self.layout
        return (at.value_offsets.tobytes(), at.half_node.tobytes(), at.message_offsets.tobytes())


def pair_graph(problem: Problem, *, max_factor_cells: int = 2**16) -> PairGraph:
    """Write a prepared problem as a graph of pairs.

    Time and memory are linear in the axes of factors of two variables, whose tables stay where they are, and in the
    cells of larger ones; a larger one of more than ``max_factor_cells`` cells is refused.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.problem import prepare
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factor(["A", "B", "C"], [[[1, 0], [0, 1]], [[0, 1], [1, 2]]])
    >>> graph = net.compile()
    >>> pairs = pair_graph(prepare(graph, Evidence.parse(graph.structure, None)))
    >>> pairs.n_nodes, pairs.n_edges, len(pairs.node_log)
    (4, 3, 11)
    """
    s = problem.structure
    view = pairwise(s)
    arity, pairs, large = view.arity, view.pairs, view.large
    cells, axis_at, cell_log, cell_states = _cells(problem, large, max_factor_cells)
    n = s.n_variables
    u, v = s.scopes[s.scope_offsets[pairs]].astype(np.int64), s.scopes[s.scope_offsets[pairs] + 1].astype(np.int64)
    star = offsets_of(arity[large])
    axes = np.repeat(s.scope_offsets[large] - star[:-1], arity[large]) + np.arange(star[-1])
    hubs = np.repeat(n + np.arange(len(large)), arity[large])
    order, components = _order(
        n + len(large), np.concatenate([u, hubs]), np.concatenate([v, s.scopes[axes].astype(np.int64)])
    )
    label = np.empty(len(order), np.int64)
    label[order] = np.arange(len(order))

    first, second, base, one, two, edge_of_pair, pool = _pair_edges(problem, pairs, label[u], label[v])
    hub, member = label[hubs], label[s.scopes[axes]]
    within = np.arange(star[-1]) - np.repeat(star[:-1], arity[large])
    star_base = np.repeat(axis_at[:-1], arity[large]) + within * np.repeat(np.diff(cells), arity[large])
    half_node = np.empty(2 * (len(first) + len(hub)), np.int32)
    half_node[0::2] = np.concatenate([first, np.minimum(hub, member)])
    half_node[1::2] = np.concatenate([second, np.maximum(hub, member)])
    half_stride = np.zeros(len(half_node), np.int64)
    half_stride[0 : 2 * len(first) : 2], half_stride[1 : 2 * len(first) : 2] = one, two
    kind = np.full(len(half_node) // 2, TABLE, np.int8)
    kind[len(first) :] = np.where(hub < member, FIRST_IS_CELLS, SECOND_IS_CELLS)

    cards = np.concatenate([s.cardinalities.astype(np.int64), np.diff(cells)])[order]
    sizes = cards[half_node]
    sizes[2 * len(first) :] = np.repeat(s.cardinalities[s.scopes[axes]], 2)
    by_node = np.argsort(half_node, kind="stable")
    layout = PairLayout(
        offsets_of(cards),
        components,
        offsets_of(np.bincount(half_node, minlength=len(order))),
        by_node.astype(np.int64),
        half_node,
        half_stride,
        offsets_of(sizes),
        np.concatenate([base, star_base]).astype(np.int64),
        kind,
        cell_states,
        pool,
        int(cards.max(initial=1)),
    )
    factor_edge, factor_node = np.full(s.n_factors, -1, np.int64), np.full(s.n_factors, -1, np.int64)
    factor_edge[pairs] = edge_of_pair
    factor_edge[large] = len(first) + star[:-1]
    factor_node[large] = label[n:]
    tables = cards[half_node[0 : 2 * len(first) : 2]] * cards[half_node[1 : 2 * len(first) : 2]]
    return PairGraph(
        problem,
        layout,
        _node_log(problem, layout.value_offsets, label, cells, cell_log),
        float(problem.potentials.log_tables[s.table_offsets[arity == 0]].sum()),
        label[:n].copy(),
        factor_edge,
        factor_node,
        max(int(tables.max(initial=1)), layout.most_states),
    )


def _cells(problem: Problem, large: IntArray, limit: int) -> tuple[IntArray, IntArray, FloatArray, Any]:
    """Cells above -inf of the factors of three or more variables, and the state of each axis in each of them."""
    s = problem.structure
    log_tables = problem.potentials.log_tables
    sizes = np.ones(s.n_factors)
    np.multiply.at(sizes, np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets)), s.cardinalities[s.scopes])
    sizes = sizes[large]
    if len(sizes) and sizes.max() > limit:
        f = int(large[int(sizes.argmax())])
        scope = [v for v in s.scope(f).tolist() if v < problem.graph.n_variables]
        names = ", ".join(repr(problem.graph.variables[v]) for v in scope[:4]) + (", ..." if len(scope) > 4 else "")
        raise ModelError(
            f"the factor over {names} has {sizes.max():.3g} cells, and as an auxiliary variable at most {limit} are "
            "taken: raise max_factor_cells, or use mini_bucket or belief_propagation"
        )
    arguments = (
        large, s.cardinalities, s.scope_offsets, s.scopes, s.table_offsets, s.table_strides, log_tables,
    )  # fmt: skip
    counts = np.zeros(len(large) + 1, np.int64)
    nothing, no_states = np.zeros(0), np.zeros(0, np.int32)
    if not len(large):
        return counts, counts, nothing, no_states
    finite_cells(*arguments, counts, counts.copy(), nothing, no_states)
    cells = np.cumsum(counts)
    axis_at = offsets_of(np.diff(cells) * np.diff(s.scope_offsets)[large])
    cell_log, cell_states = np.empty(int(cells[-1])), np.empty(int(axis_at[-1]), np.int32)
    if len(cell_log):
        finite_cells(*arguments, cells, axis_at, cell_log, cell_states)
    if (np.diff(cells) == 0).any():
        raise problem.impossible()
    return cells, axis_at, cell_log, cell_states


def _order(n_nodes: int, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """Breadth-first order of the nodes, and where its components start."""
    ends = np.concatenate([left, right])
    others = np.concatenate([right, left])
    order, components = breadth_first(
        offsets_of(np.bincount(ends, minlength=n_nodes)), others[np.argsort(ends, kind="stable")]
    )
    return order, components


def _pair_edges(problem: Problem, pairs: IntArray, left: IntArray, right: IntArray) -> tuple[Any, ...]:
    """Edges of the factors of two variables: nodes, base and strides, the edge of each factor, and the pool.

    Several factors on the same two variables are added up in a table of their own at the end of the pool.
    """
    s = problem.structure
    pool = problem.potentials.log_tables
    base, axis = s.table_offsets[pairs], s.scope_offsets[pairs]
    swap = left > right
    one = np.where(swap, s.table_strides[axis + 1], s.table_strides[axis])
    two = np.where(swap, s.table_strides[axis], s.table_strides[axis + 1])
    n = problem.structure.n_variables + int((np.diff(s.scope_offsets) > 2).sum())
    key = np.minimum(left, right) * n + np.maximum(left, right)
    unique, representative, edge, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    first, second = unique // max(n, 1), unique % max(n, 1)
    edge_base, edge_one, edge_two = base[representative], one[representative], two[representative]
    shared = np.flatnonzero(counts > 1)
    if len(shared):
        by_edge = np.argsort(edge, kind="stable")
        starts = offsets_of(counts)
        added = [pool]
        at = len(pool)
        for e in shared.tolist():
            factors = by_edge[starts[e] : starts[e + 1]]
            f = int(pairs[factors[0]])
            shape = s.cardinalities[s.scope(f)].astype(np.int64)
            rows, columns = (int(shape[1]), int(shape[0])) if swap[factors[0]] else (int(shape[0]), int(shape[1]))
            i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
            total = sum(pool[base[k] + one[k] * i + two[k] * j] for k in factors.tolist())
            added.append(np.ravel(np.asarray(total)))
            edge_base[e], edge_one[e], edge_two[e] = at, columns, 1
            at += rows * columns
        pool = np.concatenate(added)
        pool.flags.writeable = False
    return first, second, edge_base, edge_one, edge_two, edge, pool


def _node_log(problem: Problem, value_offsets: IntArray, label: IntArray, cells: IntArray, cell_log: Any) -> FloatArray:
    """Factors of one variable and likelihoods, added up; the values of cells."""
    s = problem.structure
    out = np.zeros(int(value_offsets[-1]))
    n = s.n_variables
    cards = s.cardinalities.astype(np.int64)

    def expand(counts: IntArray) -> tuple[IntArray, IntArray]:
        starts = offsets_of(counts)
        owner = np.repeat(np.arange(len(counts)), counts)
        return owner, np.arange(starts[-1]) - starts[owner]

    owner, state = expand(cards)
    out[value_offsets[label[owner]] + state] = unary_scores(problem)[0]
    owner, state = expand(np.diff(cells))
    out[value_offsets[label[n + owner]] + state] = cell_log
    return out
