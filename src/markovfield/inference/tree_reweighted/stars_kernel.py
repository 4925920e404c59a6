"""Turning factors of any arity into pairs: the finite cells of a table, and an order of the nodes for sweeps.

Invariant: cells above -inf in the order of the axes, last fastest; forests list every node after its parent, and take
edges in the order of preference given.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["breadth_first", "finite_cells", "rooted", "spanning_forest"]


@kernel
def breadth_first(offsets, neighbours):  # type: ignore[no-untyped-def]
    """Nodes in breadth-first order, component after component, and where each component starts in it."""
    n = len(offsets) - 1
    order = np.empty(n, np.int64)
    seen = np.zeros(n, np.bool_)
    starts = np.empty(n + 1, np.int64)
    components = 0
    filled = 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        starts[components] = filled
        components += 1
        at = filled
        order[filled] = root
        filled += 1
        while at < filled:
            node = order[at]
            at += 1
            for k in range(offsets[node], offsets[node + 1]):
                other = neighbours[k]
                if not seen[other]:
                    seen[other] = True
                    order[filled] = other
                    filled += 1
    starts[components] = n
    return order, starts[: components + 1].copy()


@kernel
def finite_cells(  # type: ignore[no-untyped-def]
    factors, cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, cell_offsets, axis_offsets,
    cell_log, cell_states,
):  # fmt: skip
    """The cells above -inf of each factor, in the order of its axes, last fastest.

    With ``cell_log`` empty they are only counted, into ``cell_offsets[1:]``. Otherwise ``cell_log`` receives their
    values and ``cell_states[axis_offsets[k] + a * cells + c]`` the state of axis a in cell c of the k-th factor.
    """
    states = np.empty(64, np.int64)
    for k in range(len(factors)):
        f = factors[k]
        first, arity = scope_offsets[f], scope_offsets[f + 1] - scope_offsets[f]
        if arity > len(states):
            states = np.empty(arity, np.int64)
        for a in range(arity):
            states[a] = 0
        cell = table_offsets[f]
        found = np.int64(0)
        count = cell_offsets[k + 1] - cell_offsets[k]
        while True:
            if log_tables[cell] > -np.inf:
                if len(cell_log):
                    cell_log[cell_offsets[k] + found] = log_tables[cell]
                    for a in range(arity):
                        cell_states[axis_offsets[k] + a * count + found] = states[a]
                found += 1
            a = arity - 1
            while a >= 0:
                states[a] += 1
                cell += table_strides[first + a]
                if states[a] < cardinalities[scopes[first + a]]:
                    break
                cell -= table_strides[first + a] * states[a]
                states[a] = 0
                a -= 1
            if a < 0:
                break
        if not len(cell_log):
            cell_offsets[k + 1] = found


@kernel
def spanning_forest(preference, half_node, n_nodes, inside):  # type: ignore[no-untyped-def]
    """inside[e] = whether edge e is in the spanning forest that takes edges in order of preference (Kruskal)."""
    leader = np.arange(n_nodes)
    for e in range(len(inside)):
        inside[e] = False
    for k in range(len(preference)):
        e = preference[k]
        one, two = np.int64(half_node[2 * e]), np.int64(half_node[2 * e + 1])
        while leader[one] != one:
            leader[one] = leader[leader[one]]
            one = leader[one]
        while leader[two] != two:
            leader[two] = leader[leader[two]]
            two = leader[two]
        if one != two:
            leader[max(one, two)] = min(one, two)
            inside[e] = True


@kernel
def rooted(adjacency_offsets, adjacency, half_node, inside, order, parent_half):  # type: ignore[no-untyped-def]
    """Every node after its parent, and the half-edge at each node that leads to it (-1 at roots), in a forest."""
    n = len(order)
    for node in range(n):
        parent_half[node] = -2
    filled = 0
    for root in range(n):
        if parent_half[root] != -2:
            continue
        parent_half[root] = -1
        at = filled
        order[filled] = root
        filled += 1
        while at < filled:
            node = order[at]
            at += 1
            for k in range(adjacency_offsets[node], adjacency_offsets[node + 1]):
                h = adjacency[k]
                other = half_node[h ^ 1]
                if inside[h >> 1] and parent_half[other] == -2:
                    parent_half[other] = h ^ 1
                    order[filled] = other
                    filled += 1
