"""Pseudo-marginals of tree-reweighted messages: of nodes, of edges, and what is read off them.

Invariant: `PairLayout` and messages as in `sweeps_kernel`; tables have the second node's axis last.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.inference.tree_reweighted.sweeps_kernel import FIRST_IS_CELLS, TABLE, edge_score
from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = ["cell_counts", "edge_belief", "mutual_information", "node_beliefs"]


@kernel
def node_beliefs(layout, held, beliefs):  # type: ignore[no-untyped-def]
    """beliefs = probabilities proportional to exp(held), node by node."""
    for node in range(len(layout.value_offsets) - 1):
        begin, end = layout.value_offsets[node], layout.value_offsets[node + 1]
        top = -np.inf
        for i in range(begin, end):
            top = max(top, held[i])
        total = 0.0
        for i in range(begin, end):
            beliefs[i] = exp_scalar(held[i] - top)
            total += beliefs[i]
        for i in range(begin, end):
            beliefs[i] /= total


@kernel
def edge_belief(layout, e, rho, messages, held, table):  # type: ignore[no-untyped-def]
    """The joint distribution of an edge's nodes, last axis the second; how many entries it has.

    Of a projection it is the distribution of the auxiliary node alone, which says everything.
    """
    first, second = layout.half_node[2 * e], layout.half_node[2 * e + 1]
    at, to = layout.value_offsets[first], layout.value_offsets[second]
    rows, columns = layout.value_offsets[first + 1] - at, layout.value_offsets[second + 1] - to
    kind, base, inverse = layout.edge_kind[e], layout.edge_base[e], 1.0 / rho
    top = -np.inf
    count = 0
    if kind == TABLE:
        for i in range(rows):
            for j in range(columns):
                table[count] = held[at + i] + held[to + j] + edge_score(layout, 2 * e, inverse, messages, i, j)
                top = max(top, table[count])
                count += 1
    elif kind == FIRST_IS_CELLS:
        for i in range(rows):
            j = np.int64(layout.cell_states[base + i])
            table[count] = held[at + i] + held[to + j] + edge_score(layout, 2 * e, inverse, messages, i, j)
            top = max(top, table[count])
            count += 1
    else:
        for j in range(columns):
            i = np.int64(layout.cell_states[base + j])
            table[count] = held[at + i] + held[to + j] + edge_score(layout, 2 * e, inverse, messages, i, j)
            top = max(top, table[count])
            count += 1
    total = 0.0
    for k in range(count):
        table[k] = exp_scalar(table[k] - top)
        total += table[k]
    for k in range(count):
        table[k] /= total
    return count


@kernel
def _information_of_table(table, rows, columns, left, right):  # type: ignore[no-untyped-def]
    """Mutual information of the axes of a joint distribution."""
    for i in range(rows):
        left[i] = 0.0
    for j in range(columns):
        right[j] = 0.0
    for i in range(rows):
        for j in range(columns):
            left[i] += table[i * columns + j]
            right[j] += table[i * columns + j]
    total = 0.0
    for i in range(rows):
        for j in range(columns):
            p = table[i * columns + j]
            if p > 0.0:
                total += p * math.log(p / (left[i] * right[j]))
    return total


@kernel
def mutual_information(layout, rho, messages, held, largest, out):  # type: ignore[no-untyped-def]
    """out[e] = mutual information of the nodes of edge e under its pseudo-marginal: what raising rho[e] gains."""
    table = np.empty(largest)
    left, right = np.empty(layout.most_states), np.empty(layout.most_states)
    for e in range(len(rho)):
        count = edge_belief(layout, e, rho[e], messages, held, table)
        first, second = layout.half_node[2 * e], layout.half_node[2 * e + 1]
        rows = layout.value_offsets[first + 1] - layout.value_offsets[first]
        columns = layout.value_offsets[second + 1] - layout.value_offsets[second]
        if layout.edge_kind[e] == TABLE:
            out[e] = max(0.0, _information_of_table(table, rows, columns, left, right))
            continue
        # The variable is a function of the cell: what they share is its entropy.
        size = columns if layout.edge_kind[e] == FIRST_IS_CELLS else rows
        for j in range(size):
            left[j] = 0.0
        for k in range(count):
            left[layout.cell_states[layout.edge_base[e] + k]] += table[k]
        total = 0.0
        for j in range(size):
            if left[j] > 0.0:
                total -= left[j] * math.log(left[j])
        out[e] = max(0.0, total)


@kernel
def cell_counts(  # type: ignore[no-untyped-def]
    layout, rho, messages, held, beliefs, largest, scope_offsets, scopes, table_offsets, table_strides, variable_node,
    factor_edge, factor_node, counts,
):  # fmt: skip
    """Add to every pool cell the pseudo-marginal probability that each factor reads it."""
    table = np.empty(largest)
    for f in range(len(table_offsets)):
        axis, arity = scope_offsets[f], scope_offsets[f + 1] - scope_offsets[f]
        base = table_offsets[f]
        if arity == 0:
            counts[base] += 1.0
        elif arity == 1:
            node = variable_node[scopes[axis]]
            at = layout.value_offsets[node]
            for i in range(layout.value_offsets[node + 1] - at):
                counts[base + table_strides[axis] * i] += beliefs[at + i]
        elif arity == 2:
            e = factor_edge[f]
            edge_belief(layout, e, rho[e], messages, held, table)
            first, second = layout.half_node[2 * e], layout.half_node[2 * e + 1]
            columns = layout.value_offsets[second + 1] - layout.value_offsets[second]
            one, two = table_strides[axis], table_strides[axis + 1]
            if variable_node[scopes[axis]] != first:
                one, two = two, one
            for i in range(layout.value_offsets[first + 1] - layout.value_offsets[first]):
                for j in range(columns):
                    counts[base + one * i + two * j] += table[i * columns + j]
        else:
            node = factor_node[f]
            at = layout.value_offsets[node]
            for cell in range(layout.value_offsets[node + 1] - at):
                where = base
                for a in range(arity):
                    e = factor_edge[f] + a
                    where += table_strides[axis + a] * layout.cell_states[layout.edge_base[e] + cell]
                counts[where] += beliefs[at + cell]
