"""What is done once, before a search: sequential reweighted message passing, and dead-end elimination.

Invariant: as in `consistency_kernel`; this is the root, so nothing done here is taken back. Calls stop after about
``work`` cells and say where to go on.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.branch_and_bound.consistency_kernel import (
    FORBIDDEN,
    LIMIT,
    WORK,
    least_along,
    project,
    remove,
)
from markovfield.kernels.compiler import kernel

__all__ = ["dominate", "edge_minima", "pass_messages"]


@kernel
def _collect(net, b, v):  # type: ignore[no-untyped-def]
    """Move the least costs of all functions on v to its states; False when none is left."""
    state = b.state
    vv, size = net.value_offsets[v], state[net.at_size + v]
    at = net.at_unary + vv
    for k in range(state[net.at_degree + v]):
        h = b.adjacency[net.adjacency_offsets[v] + k]
        least_along(net, b, h, np.bool_(False), b.gain)
        for m in range(state[net.at_size + v] - 1, -1, -1):
            a = b.domain[vv + m]
            if b.gain[a] >= LIMIT:
                if not remove(net, b, v, a):
                    return False
            elif b.gain[a] != 0:
                state[net.message_at[h] + a] += b.gain[a]
                state[at + a] += b.gain[a]
    for p in range(net.variable_function_offsets[v], net.variable_function_offsets[v + 1]):
        f = net.variable_functions[p]
        first, cells = net.function_cells[f], net.function_cells[f + 1] - net.function_cells[f]
        x = 0
        while net.scopes[net.scope_offsets[f] + x] != v:
            x += 1
        axis, costs = net.axis_at[f] + x * cells, net.at_cell + first
        count = state[net.at_count + f]
        size = state[net.at_size + v]
        for a in range(net.value_offsets[v + 1] - vv):
            b.gain[a] = FORBIDDEN
        for k in range(count):
            c = b.cells[first + k]
            a = net.cell_states[axis + c]
            b.gain[a] = min(b.gain[a], state[costs + c])
        for m in range(size - 1, -1, -1):
            a = b.domain[vv + m]
            if b.gain[a] >= LIMIT:
                if not remove(net, b, v, a):
                    return False
            else:
                state[at + a] += b.gain[a]
        for k in range(count):
            c = b.cells[first + k]
            a = net.cell_states[axis + c]
            if b.place[vv + a] < state[net.at_size + v]:
                state[costs + c] -= b.gain[a]
        b.registers[WORK] += 2 * count
    return True


@kernel
def _share_out(net, b, v, forward):  # type: ignore[no-untyped-def]
    """Give each function that reaches beyond v, in the direction of the sweep, its share of v's costs."""
    state = b.state
    vv, size = net.value_offsets[v], state[net.at_size + v]
    at = net.at_unary + vv
    ahead, behind = 0, 0
    for k in range(state[net.at_degree + v]):
        h = b.adjacency[net.adjacency_offsets[v] + k]
        later = (net.half_node[h ^ 1] > v) == forward
        ahead += later
        behind += not later
    for p in range(net.variable_function_offsets[v], net.variable_function_offsets[v + 1]):
        f = net.variable_functions[p]
        first, last = net.scopes[net.scope_offsets[f]], net.scopes[net.scope_offsets[f + 1] - 1]
        ahead += v != (last if forward else first)
        behind += v != (first if forward else last)
    if ahead == 0:
        return
    parts = max(ahead, behind)
    for k in range(size):
        a = b.domain[vv + k]
        b.gain[a] = state[at + a] // parts
    for k in range(state[net.at_degree + v]):
        h = b.adjacency[net.adjacency_offsets[v] + k]
        if (net.half_node[h ^ 1] > v) == forward:
            for m in range(size):
                a = b.domain[vv + m]
                state[net.message_at[h] + a] -= b.gain[a]
    for p in range(net.variable_function_offsets[v], net.variable_function_offsets[v + 1]):
        f = net.variable_functions[p]
        start, end = net.scope_offsets[f], net.scope_offsets[f + 1]
        if v != (net.scopes[end - 1] if forward else net.scopes[start]):
            first, cells = net.function_cells[f], net.function_cells[f + 1] - net.function_cells[f]
            x = 0
            while net.scopes[start + x] != v:
                x += 1
            axis = net.axis_at[f] + x * cells
            for k in range(state[net.at_count + f]):
                c = b.cells[first + k]
                a = net.cell_states[axis + c]
                if b.place[vv + a] < size:
                    state[net.at_cell + first + c] += b.gain[a]
    for k in range(size):
        a = b.domain[vv + k]
        state[at + a] -= ahead * b.gain[a]


@kernel
def pass_messages(net, b, forward, start, work):  # type: ignore[no-untyped-def]
    """Part of a sweep of sequential reweighted message passing (Kolmogorov 2015; on pairs it is TRW-S), without trail.

    Begins at the ``start``-th variable of the sweep and stops after about ``work`` cells; answers where to go on, or
    -1 where no assignment is left. The bound never falls.
    """
    n = len(net.value_offsets) - 1
    until = b.registers[WORK] + work
    step = start
    while step < n and b.registers[WORK] < until:
        v = step if forward else n - 1 - step
        step += 1
        if b.free_place[v] >= b.state[net.at_free]:
            continue
        if not _collect(net, b, v):
            return -1
        b.support[v] = b.domain[net.value_offsets[v]]
        if not project(net, b, v):
            return -1
        _share_out(net, b, v, forward)
        b.registers[WORK] += 1
    return step


@kernel
def _worse(net, b, v, bad, good):  # type: ignore[no-untyped-def]
    """Whether changing v from ``bad`` to ``good`` never costs anything, whatever its neighbours are (Goldstein)."""
    state = b.state
    at = net.at_unary + net.value_offsets[v]
    total = state[at + bad] - state[at + good]
    for k in range(state[net.at_degree + v]):
        h = b.adjacency[net.adjacency_offsets[v] + k]
        o = h ^ 1
        j = net.half_node[o]
        base, stride, other = net.edge_base[h >> 1], net.half_stride[h], net.half_stride[o]
        least = FORBIDDEN
        size = state[net.at_size + j]
        for m in range(size):
            y = b.domain[net.value_offsets[j] + m]
            one = net.costs[base + stride * bad + other * y]
            if one < LIMIT:
                two = net.costs[base + stride * good + other * y]
                if two >= LIMIT:
                    return False
                least = min(least, one - two)
        b.registers[WORK] += size
        if least >= LIMIT:
            return True
        total += least - state[net.message_at[h] + bad] + state[net.message_at[h] + good]
    return total >= 0


@kernel
def dominate(net, b, start, work):  # type: ignore[no-untyped-def]
    """Remove states that another state of the same variable can always stand in for, beginning at variable ``start``.

    Variables of functions of three or more are left alone. Answers where to go on after about ``work`` cells, and how
    many states were removed.
    """
    n = len(net.value_offsets) - 1
    until = b.registers[WORK] + work
    removed = 0
    v = start
    while v < n and b.registers[WORK] < until:
        vv = net.value_offsets[v]
        open_ = b.free_place[v] < b.state[net.at_free]
        if open_ and net.variable_function_offsets[v] == net.variable_function_offsets[v + 1]:
            k = b.state[net.at_size + v] - 1
            while k >= 0:
                bad = b.domain[vv + k]
                for m in range(b.state[net.at_size + v]):
                    good = b.domain[vv + m]
                    if good != bad and _worse(net, b, v, bad, good):
                        remove(net, b, v, bad)
                        removed += 1
                        break
                k -= 1
        v += 1
    return v, removed


@kernel
def edge_minima(sizes, half_node, half_stride, edge_base, costs, out):  # type: ignore[no-untyped-def]
    """out[e] = the least cost in the table of edge e, FORBIDDEN where there is none."""
    for e in range(len(edge_base)):
        least = FORBIDDEN
        one, two = half_stride[2 * e], half_stride[2 * e + 1]
        for x in range(sizes[half_node[2 * e]]):
            for y in range(sizes[half_node[2 * e + 1]]):
                least = min(least, costs[edge_base[e] + one * x + two * y])
        out[e] = least
