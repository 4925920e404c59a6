"""Restoring soft local consistency after states were lost or costs moved: what a search does in every node.

Invariant: as in `consistency_kernel`; flags say what is still to be looked at. Free to change: `MOST_ROUNDS` and the
order of the queues, which cost strength and never truth.

Soft local consistency of functions of three variables or more, which keep the costs of their cells.

Invariant: as in `consistency_kernel`: costs are only moved, so that every assignment costs what it did, and all that
changes goes through the trail. Free to change: the order in which axes are served, which changes the strength of the
bound and not its truth.
"""

from __future__ import annotations

from markovfield.inference.branch_and_bound.consistency_kernel import (
    BOUND,
    CAUSE,
    CUT,
    FORBIDDEN,
    LIMIT,
    QUEUED,
    THETA,
    WORK,
    assign,
    least_along,
    project,
    put_on,
    remove,
    support,
)
from markovfield.kernels.compiler import kernel

__all__ = ["propagate", "support_function"]


@kernel
def _live_cells(net, b, f):  # type: ignore[no-untyped-def]
    """Drop the cells of f that a domain or the cut rules out, move their least cost to the bound; how many are left."""
    state = b.state
    first, cells = net.function_cells[f], net.function_cells[f + 1] - net.function_cells[f]
    at, axes = net.at_cell + first, net.axis_at[f]
    scope, arity = net.scope_offsets[f], net.scope_offsets[f + 1] - net.scope_offsets[f]
    count = state[net.at_count + f]
    room = b.registers[CUT] - state[BOUND]
    least = FORBIDDEN
    for k in range(count - 1, -1, -1):
        c = b.cells[first + k]
        live = state[at + c] < room
        x = 0
        while live and x < arity:
            v = net.scopes[scope + x]
            live = b.place[net.value_offsets[v] + net.cell_states[axes + x * cells + c]] < state[net.at_size + v]
            x += 1
        if live:
            least = min(least, state[at + c])
        else:
            count -= 1
            b.cells[first + k], b.cells[first + count] = b.cells[first + count], c
    b.registers[WORK] += cells * arity
    put_on(b, net.at_count + f, count)
    if count and least != 0:
        for k in range(count):
            c = b.cells[first + k]
            put_on(b, at + c, state[at + c] - least)
        put_on(b, BOUND, state[BOUND] + least)
        b.registers[QUEUED] = 1
    return count


@kernel
def support_function(net, b, f, full):  # type: ignore[no-untyped-def]
    """Supports of a function of many variables: its cells' least costs go to each variable in turn, earliest first.

    With ``full`` the later variables first hand in their unary costs, and get back what the earlier ones could not use.
    """
    state, registers = b.state, b.registers
    registers[CAUSE] = len(net.edge_base) + f
    count = _live_cells(net, b, f)
    if count == 0 or state[BOUND] >= registers[CUT]:
        return False
    first, cells = net.function_cells[f], net.function_cells[f + 1] - net.function_cells[f]
    at, scope, arity = net.at_cell + first, net.scope_offsets[f], net.scope_offsets[f + 1] - net.scope_offsets[f]
    run, earliest = 0, True
    for x in range(arity):
        v = net.scopes[scope + x]
        vv, size, axis = net.value_offsets[v], state[net.at_size + v], net.axis_at[f] + x * cells
        card = net.value_offsets[v + 1] - vv
        for a in range(card):
            b.before[run + a] = FORBIDDEN
        if full and size > 1:
            moved = False
            if not earliest:
                for k in range(size):
                    a = b.domain[vv + k]
                    moved |= state[net.at_unary + vv + a] != 0
            if moved:
                for k in range(count):
                    c = b.cells[first + k]
                    own = state[net.at_unary + vv + net.cell_states[axis + c]]
                    if own != 0:
                        put_on(b, at + c, state[at + c] + own)
                for k in range(size):
                    a = b.domain[vv + k]
                    b.before[run + a] = state[net.at_unary + vv + a]
                    put_on(b, net.at_unary + vv + a, 0)
            earliest = False
        run += card
    run = 0
    for x in range(arity):
        v = net.scopes[scope + x]
        vv, size, axis = net.value_offsets[v], state[net.at_size + v], net.axis_at[f] + x * cells
        if size > 1:
            for k in range(size):
                b.gain[b.domain[vv + k]] = FORBIDDEN
            for k in range(count):
                c = b.cells[first + k]
                a = net.cell_states[axis + c]
                b.gain[a] = min(b.gain[a], state[at + c])
            worth = False
            for k in range(size - 1, -1, -1):
                a = b.domain[vv + k]
                if b.gain[a] >= LIMIT:
                    if not remove(net, b, v, a):
                        return False
                elif b.gain[a] > 0:
                    worth = True
                    put_on(b, net.at_unary + vv + a, state[net.at_unary + vv + a] + b.gain[a])
                    had = b.before[run + a]
                    if b.gain[a] > (0 if had >= LIMIT else had):
                        b.directional[v] = True
                        registers[QUEUED] = 1
            if worth:
                for k in range(count):
                    c = b.cells[first + k]
                    put_on(b, at + c, state[at + c] - b.gain[net.cell_states[axis + c]])
            if not project(net, b, v):
                return False
        run += net.value_offsets[v + 1] - vv
    registers[WORK] += 2 * count * arity
    return True


# Rounds with full and existential supports in one propagation; what is left undone costs only strength.
MOST_ROUNDS = 40


@kernel
def _cost_beside(net, b, h, x, enough):  # type: ignore[no-untyped-def]
    """The least cost of state x along h's edge with the other end's unary cost, or anything up to ``enough``."""
    o = h ^ 1
    j = net.half_node[o]
    vj, mj, nj = net.value_offsets[j], net.message_at[o], b.state[net.at_size + j]
    at, sj, given = net.edge_base[h >> 1] + net.half_stride[h] * x, net.half_stride[o], b.state[net.message_at[h] + x]
    least = FORBIDDEN
    for m in range(nj):
        y = b.domain[vj + m]
        cost = net.costs[at + sj * y] - b.state[mj + y] + b.state[net.at_unary + vj + y]
        if cost < least:
            least = cost
            if least - given <= enough:
                b.hints[net.message_at[h] + x - net.at_message] = y
                break
    b.registers[WORK] += nj
    return least - given


@kernel
def _existential(net, b, i):  # type: ignore[no-untyped-def]
    """See that some state of i costs nothing together with its earlier neighbours; otherwise the bound can rise."""
    state = b.state
    first, size = net.value_offsets[i], state[net.at_size + i]
    start, degree = net.adjacency_offsets[i], state[net.at_degree + i]
    if size == 1:
        return True
    s = b.support[i]
    if b.place[first + s] < size and state[net.at_unary + first + s] == 0:
        fine = True
        for k in range(degree):
            h = b.adjacency[start + k]
            j = net.half_node[h ^ 1]
            if j < i:
                y = b.hints[net.message_at[h] + s - net.at_message]
                vj, o = net.value_offsets[j], h ^ 1
                if b.place[vj + y] < state[net.at_size + j]:
                    cost = net.costs[net.edge_base[h >> 1] + net.half_stride[h] * s + net.half_stride[o] * y]
                    cost += state[net.at_unary + vj + y] - state[net.message_at[h] + s] - state[net.message_at[o] + y]
                    if cost <= 0:
                        continue
                if _cost_beside(net, b, h, s, 0) > 0:
                    fine = False
                    break
        b.registers[WORK] += degree
        if fine:
            return True
    for k in range(size):
        a = b.domain[first + k]
        b.total[a] = state[net.at_unary + first + a]
    edges = 0
    for k in range(degree):
        h = b.adjacency[start + k]
        if net.half_node[h ^ 1] < i:
            edges += 1
            least_along(net, b, h, True, b.gain)
            for m in range(size):
                a = b.domain[first + m]
                b.total[a] = min(FORBIDDEN, b.total[a] + b.gain[a])
    least, best = FORBIDDEN, b.support[i]
    for k in range(size):
        a = b.domain[first + k]
        if b.total[a] < least:
            least, best = b.total[a], a
    b.support[i] = best
    if edges and least > b.registers[THETA]:
        # The lists of neighbours do not change here: states are removed, but no variable is assigned.
        for k in range(degree):
            h = b.adjacency[start + k]
            if net.half_node[h ^ 1] < i and not support(net, b, h, True):
                return False
    fine = project(net, b, i)
    # Looking again would find the same: gains below the threshold are left where they are.
    b.existential[i] = False
    return fine


@kernel
def _nodes(net, b):  # type: ignore[no-untyped-def]
    """Drop states whose unary cost reaches the cut."""
    room = b.registers[CUT] - b.state[BOUND]
    if room <= 0:
        return False
    for k in range(b.state[net.at_free]):
        v = b.free[k]
        first = net.value_offsets[v]
        for m in range(b.state[net.at_size + v] - 1, -1, -1):
            a = b.domain[first + m]
            if b.state[net.at_unary + first + a] >= room and not remove(net, b, v, a):
                return False
    return True


@kernel
def _spread(net, b, v, limited):  # type: ignore[no-untyped-def]
    """Supports that the loss of states of v may have broken."""
    if b.state[net.at_size + v] == 1:
        return b.free_place[v] >= b.state[net.at_free] or assign(net, b, v)
    if not project(net, b, v):
        return False
    for k in range(b.state[net.at_degree + v]):
        o = b.adjacency[net.adjacency_offsets[v] + k] ^ 1
        i = net.half_node[o]
        if not support(net, b, o, i < v and not limited):
            return False
        b.existential[i] = b.existential[i] or i > v
    for k in range(net.variable_function_offsets[v], net.variable_function_offsets[v + 1]):
        b.function[net.variable_functions[k]] = True
    b.registers[QUEUED] = 1
    return True


@kernel
def _direct(net, b, v):  # type: ignore[no-untyped-def]
    """Unary costs of v that rose: earlier neighbours may take them, later ones may have lost their support."""
    for k in range(b.state[net.at_degree + v]):
        o = b.adjacency[net.adjacency_offsets[v] + k] ^ 1
        i = net.half_node[o]
        if i > v:
            b.existential[i] = True
        elif not support(net, b, o, True):
            return False
    for k in range(net.variable_function_offsets[v], net.variable_function_offsets[v + 1]):
        if not support_function(net, b, net.variable_functions[k], True):
            return False
    return True


@kernel
def propagate(net, b):  # type: ignore[no-untyped-def]
    """Restore consistency from the flags raised; False where no assignment below the cut is left."""
    n = len(net.value_offsets) - 1
    registers = b.registers
    registers[QUEUED] = 1
    rounds = 0
    while registers[QUEUED]:
        registers[QUEUED] = 0
        rounds += 1
        limited = rounds > MOST_ROUNDS
        if not _nodes(net, b):
            return False
        for v in range(n):
            if b.arc[v]:
                b.arc[v] = False
                if not _spread(net, b, v, limited):
                    return False
        for f in range(len(b.function)):
            if b.function[f]:
                b.function[f] = False
                if not support_function(net, b, f, False):
                    return False
        for v in range(n - 1, -1, -1):
            if b.directional[v]:
                b.directional[v] = False
                if not limited and not _direct(net, b, v):
                    return False
        for v in range(n):
            if b.existential[v]:
                b.existential[v] = False
                if not limited and not _existential(net, b, v):
                    return False
    return True
