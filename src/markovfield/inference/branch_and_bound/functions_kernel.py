"""Soft local consistency of functions of three variables or more, which keep the costs of their cells.

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
    WORK,
    project,
    put_on,
    remove,
)
from markovfield.kernels.compiler import kernel

__all__ = ["support_function"]


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
