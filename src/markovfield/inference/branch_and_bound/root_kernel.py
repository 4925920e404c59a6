"""What is done once, before a search: sequential reweighted message passing, dead-end elimination, a first descent.

Invariant: as in `consistency_kernel`; this is the root, so nothing done here is taken back. Calls stop after about
``work`` cells and say where to go on. Free to change: the local search, which only offers assignments.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.branch_and_bound.consistency_kernel import (
    BOUND,
    FORBIDDEN,
    LIMIT,
    WORK,
    least_along,
    project,
    remove,
)
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_index

__all__ = ["descend", "dominate", "edge_minima", "pass_messages"]


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
def _best_state(net, b, penalty, states, v):  # type: ignore[no-untyped-def]
    """The cheapest state of v given its neighbours' states; ``b.total`` holds what each would cost."""
    state = b.state
    vv, size = net.value_offsets[v], state[net.at_size + v]
    for k in range(size):
        a = b.domain[vv + k]
        b.total[a] = state[net.at_unary + vv + a]
    for k in range(state[net.at_degree + v]):
        h = b.adjacency[net.adjacency_offsets[v] + k]
        o = h ^ 1
        y = states[net.half_node[o]]
        if y < 0:
            continue
        base, stride = net.edge_base[h >> 1] + net.half_stride[o] * y, net.half_stride[h]
        for m in range(size):
            a = b.domain[vv + m]
            cost = net.costs[base + stride * a]
            cost = penalty if cost >= LIMIT else cost - state[net.message_at[h] + a]
            b.total[a] = min(LIMIT, b.total[a] + cost)
    b.registers[WORK] += size * state[net.at_degree + v]
    best = b.domain[vv]
    for k in range(1, size):
        a = b.domain[vv + k]
        if b.total[a] < b.total[best] or (b.total[a] == b.total[best] and a < best):
            best = a
    return best


@kernel
def _total(net, b, penalty, states):  # type: ignore[no-untyped-def]
    """Cost of an assignment of the variables that are free, above the bound; forbidden pairs count ``penalty``."""
    state = b.state
    cost = np.int64(0)
    for k in range(state[net.at_free]):
        v = b.free[k]
        cost += state[net.at_unary + net.value_offsets[v] + states[v]]
        for m in range(state[net.at_degree + v]):
            h = b.adjacency[net.adjacency_offsets[v] + m]
            o = h ^ 1
            j = net.half_node[o]
            if v < j:
                x, y = states[v], states[j]
                one = net.costs[net.edge_base[h >> 1] + net.half_stride[h] * x + net.half_stride[o] * y]
                given = state[net.message_at[h] + x] + state[net.message_at[o] + y]
                cost = min(LIMIT, cost + (penalty if one >= LIMIT else one - given))
    return cost


@kernel
def _settle(net, b, penalty, states):  # type: ignore[no-untyped-def]
    """Change single variables for the better until none can."""
    for _ in range(100):
        changed = False
        for k in range(b.state[net.at_free]):
            v = b.free[k]
            old = states[v]
            new = _best_state(net, b, penalty, states, v)
            if new != old and b.total[new] < b.total[old]:
                states[v] = new
                changed = True
        if not changed:
            break


@kernel
def descend(net, b, stream, best, best_cost, states, start, rounds):  # type: ignore[no-untyped-def]
    """Iterated local search on the functions of one and two variables; ``best`` is replaced by what is better.

    The first round, where ``start`` says so, builds an assignment in order of the variables, each given the earlier
    ones. A round shakes a variable and its neighbours, descends, and is kept where it is no worse.
    """
    n_free = b.state[net.at_free]
    n = len(states)
    # With a forbidden pair an assignment costs no less than the best: fewer of them is better, and none is accepted.
    penalty = max(1, best_cost - b.state[BOUND])
    if start:
        for v in range(n):
            states[v] = b.domain[net.value_offsets[v]]
            if b.free_place[v] < n_free:
                states[v] = -1
        for v in range(n):
            if b.free_place[v] < n_free:
                states[v] = _best_state(net, b, penalty, states, v)
        _settle(net, b, penalty, states)
        cost = b.state[BOUND] + _total(net, b, penalty, states)
        if cost < best_cost:
            best_cost = cost
            for v in range(n):
                best[v] = states[v]
    current = np.int64(FORBIDDEN)
    for r in range(rounds):
        if n_free == 0:
            break
        if r == 0:
            for v in range(n):
                states[v] = best[v]
                # None may be known yet, or states may have been ruled out since: a dominated one has a stand-in.
                if states[v] < 0 or b.place[net.value_offsets[v] + states[v]] >= b.state[net.at_size + v]:
                    states[v] = b.domain[net.value_offsets[v]]
            _settle(net, b, penalty, states)
            current = b.state[BOUND] + _total(net, b, penalty, states)
        old = states.copy()
        v = b.free[draw_index(stream, n_free)]
        states[v] = b.domain[net.value_offsets[v] + draw_index(stream, b.state[net.at_size + v])]
        for m in range(b.state[net.at_degree + v]):
            j = net.half_node[b.adjacency[net.adjacency_offsets[v] + m] ^ 1]
            if draw_index(stream, 2) == 0:
                states[j] = b.domain[net.value_offsets[j] + draw_index(stream, b.state[net.at_size + j])]
        _settle(net, b, penalty, states)
        cost = b.state[BOUND] + _total(net, b, penalty, states)
        if cost <= current:
            current = cost
            if cost < best_cost:
                best_cost = cost
                for u in range(n):
                    best[u] = states[u]
        else:
            for u in range(n):
                states[u] = old[u]
    return best_cost


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
