"""Soft local consistency of a network of costs: integers moved between functions, so that a bound rises.

Costs are minimised 64-bit integers, and every move is exact: what one function gains another loses, so the cost of
each assignment stays what it was and the constant that all of them share, ``state[0]``, is a lower bound that cannot
drift. Of a function of two variables only what was moved is kept (``costs[cell] - message - message``), so tables stay
shared and a step back in the search is cheap; a function of more variables keeps the costs of its cells.

The levels are those of Cooper, de Givry, Sanchez, Schiex, Zytnicki and Werner (2010): node consistency, simple supports
towards later variables, full supports towards earlier ones, and existential supports (EDAC).

Everything that a search must take back is in ``state``; domains, adjacency and cells are sparse sets, of which only the
sizes are in there.

The positions below are shared with the search. Which support is taken, where several would do, is free to change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel

__all__ = [
    "BOUND",
    "CAUSE",
    "CUT",
    "FORBIDDEN",
    "LIMIT",
    "QUEUED",
    "REGISTERS",
    "STAMP",
    "THETA",
    "TOP",
    "WORK",
    "Board",
    "CostLayout",
    "assign",
    "clear_flags",
    "least_along",
    "project",
    "put",
    "put_on",
    "remove",
    "support",
    "undo",
]

# Costs from LIMIT on are forbidden; finite ones stay far below, so that sums of a few neither overflow nor cross it.
FORBIDDEN = 1 << 60
LIMIT = 1 << 59
# Positions of the scalars: length of the trail, stamp of the level, cost from which nothing is wanted, gains too
# small to move, function at fault in a conflict, cells looked at, whether a flag was raised.
TOP, STAMP, CUT, THETA, CAUSE, WORK, QUEUED = 0, 1, 2, 3, 4, 5, 6
REGISTERS = 16
# The one number of the state that is not in an array of its own.
BOUND = 0


class CostLayout(NamedTuple):
    """A network of costs. Edge e is a function of two variables, with halves ``2 e`` and ``2 e + 1``; its cell is
    ``edge_base + stride * state + stride * state``. Function f of more variables has the cells
    ``function_cells[f] .. function_cells[f + 1]``; the state of its axis x in cell c is
    ``cell_states[axis_at[f] + x * cells + c]``. The ``at_`` are where the parts of the state begin.
    """

    value_offsets: npt.NDArray[np.int64]
    adjacency_offsets: npt.NDArray[np.int64]
    half_node: npt.NDArray[np.int64]
    half_stride: npt.NDArray[np.int64]
    message_at: npt.NDArray[np.int64]
    edge_base: npt.NDArray[np.int64]
    costs: npt.NDArray[np.int64]
    scope_offsets: npt.NDArray[np.int64]
    scopes: npt.NDArray[np.int64]
    function_cells: npt.NDArray[np.int64]
    axis_at: npt.NDArray[np.int64]
    cell_states: npt.NDArray[np.int64]
    variable_function_offsets: npt.NDArray[np.int64]
    variable_functions: npt.NDArray[np.int64]
    at_unary: int
    at_size: int
    at_degree: int
    at_free: int
    at_count: int
    at_message: int
    at_cell: int


class Board(NamedTuple):
    """What propagation and search write on.

    ``domain`` lists the states of each variable, those left first; ``place`` is where a state stands in that list. In
    the same way ``adjacency`` and ``half_place``, ``free`` and ``free_place``, ``cells``. ``hints``, like the messages,
    remembers for each state the one at the edge's other end that last supported it.
    """

    state: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.int64]
    trail_at: npt.NDArray[np.int64]
    trail_value: npt.NDArray[np.int64]
    registers: npt.NDArray[np.int64]
    domain: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    adjacency: npt.NDArray[np.int64]
    half_place: npt.NDArray[np.int64]
    free: npt.NDArray[np.int64]
    free_place: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64]
    support: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    arc: npt.NDArray[np.bool_]
    directional: npt.NDArray[np.bool_]
    existential: npt.NDArray[np.bool_]
    function: npt.NDArray[np.bool_]
    gain: npt.NDArray[np.int64]
    total: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]
    jump: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    hints: npt.NDArray[np.int64]


@kernel
def put(state, stamps, trail_at, trail_value, registers, at, value):  # type: ignore[no-untyped-def]
    """state[at] = value, remembering the old one if this level has not yet."""
    if stamps[at] != registers[STAMP]:
        top = registers[TOP]
        trail_at[top] = at
        trail_value[top] = state[at]
        registers[TOP] = top + 1
        stamps[at] = registers[STAMP]
    state[at] = value


@kernel
def put_on(b, at, value):  # type: ignore[no-untyped-def]
    put(b.state, b.stamps, b.trail_at, b.trail_value, b.registers, at, value)


@kernel
def undo(b, top):  # type: ignore[no-untyped-def]
    """Take back everything since the trail had length ``top``."""
    t = b.registers[TOP]
    while t > top:
        t -= 1
        b.state[b.trail_at[t]] = b.trail_value[t]
    b.registers[TOP] = top


@kernel
def clear_flags(b):  # type: ignore[no-untyped-def]
    """Forget what was still to be looked at: after a conflict it is of no use."""
    for v in range(len(b.arc)):
        b.arc[v] = False
        b.directional[v] = False
        b.existential[v] = False
    for f in range(len(b.function)):
        b.function[f] = False


@kernel
def remove(net, b, v, a):  # type: ignore[no-untyped-def]
    """Take state ``a`` out of v's domain; False when that was the last."""
    first = net.value_offsets[v]
    size = b.state[net.at_size + v] - 1
    k, other = b.place[first + a], b.domain[first + size]
    b.domain[first + k], b.place[first + other] = other, k
    b.domain[first + size], b.place[first + a] = a, size
    put_on(b, net.at_size + v, size)
    b.arc[v] = True
    b.registers[QUEUED] = 1
    if b.support[v] == a:
        b.existential[v] = True
    return size > 0


@kernel
def project(net, b, v):  # type: ignore[no-untyped-def]
    """Move the least cost of v's states to the bound; False when the bound reaches the cut."""
    first, size = net.value_offsets[v], b.state[net.at_size + v]
    at = net.at_unary + first
    s = b.support[v]
    if b.place[first + s] < size and b.state[at + s] == 0:
        return True
    least, best = FORBIDDEN, s
    for k in range(size):
        a = b.domain[first + k]
        if b.state[at + a] < least:
            least, best = b.state[at + a], a
    b.support[v] = best
    b.existential[v] = True
    b.registers[QUEUED] = 1
    if least != 0:
        for k in range(size):
            a = b.domain[first + k]
            put_on(b, at + a, b.state[at + a] - least)
        put_on(b, BOUND, b.state[BOUND] + least)
    return b.state[BOUND] < b.registers[CUT]


@kernel
def least_along(net, b, h, full, out):  # type: ignore[no-untyped-def]
    """out[a] = the least cost along h's edge of each state a left at h's end; ``full`` adds the other end's unary cost.

    Costs up to the threshold are called zero: they are not worth looking further.
    """
    o = h ^ 1
    i, j = net.half_node[h], net.half_node[o]
    base, si, sj = net.edge_base[h >> 1], net.half_stride[h], net.half_stride[o]
    mi, mj = net.message_at[h], net.message_at[o]
    ni, nj = b.state[net.at_size + i], b.state[net.at_size + j]
    vi, vj = net.value_offsets[i], net.value_offsets[j]
    theta = b.registers[THETA]
    ready = False
    b.registers[WORK] += ni + 4
    for k in range(ni):
        x = b.domain[vi + k]
        at = base + si * x
        y = b.hints[mi + x - net.at_message]
        if b.place[vj + y] < nj:
            cost = net.costs[at + sj * y] - b.state[mi + x] - b.state[mj + y]
            if full:
                cost += b.state[net.at_unary + vj + y]
            if cost <= theta:
                out[x] = 0
                continue
        if not ready:
            ready = True
            for m in range(nj):
                y = b.domain[vj + m]
                b.shift[m] = -b.state[mj + y]
                if full:
                    b.shift[m] += b.state[net.at_unary + vj + y]
                b.jump[m] = sj * y
        best, least = FORBIDDEN, 0
        for m in range(nj):
            cost = net.costs[at + b.jump[m]] + b.shift[m]
            if cost < best:
                best, least = cost, m
        b.registers[WORK] += nj
        b.hints[mi + x - net.at_message] = b.domain[vj + least]
        out[x] = best - b.state[mi + x] if best < LIMIT else FORBIDDEN


@kernel
def support(net, b, h, full):  # type: ignore[no-untyped-def]
    """Give every state at h's end a state at the other of cost zero, by moving costs; False for a conflict."""
    o = h ^ 1
    i, j = net.half_node[h], net.half_node[o]
    b.registers[CAUSE] = h >> 1
    least_along(net, b, h, full, b.gain)
    vi, vj = net.value_offsets[i], net.value_offsets[j]
    ni = b.state[net.at_size + i]
    worth, dead = False, False
    for k in range(ni):
        gain = b.gain[b.domain[vi + k]]
        if gain >= LIMIT:
            dead = True
        elif gain > b.registers[THETA]:
            worth = True
    if not (worth or dead):
        return True
    mi, mj, ui = net.message_at[h], net.message_at[o], net.at_unary + vi
    if worth and full:
        base, si, sj, uj = net.edge_base[h >> 1], net.half_stride[h], net.half_stride[o], net.at_unary + vj
        for m in range(b.state[net.at_size + j]):
            y = b.domain[vj + m]
            if b.state[uj + y] > 0:
                need = np.int64(0)
                for k in range(ni):
                    x = b.domain[vi + k]
                    cost = net.costs[base + si * x + sj * y]
                    if cost < LIMIT and b.gain[x] < LIMIT:
                        need = max(need, b.gain[x] - cost + b.state[mi + x] + b.state[mj + y])
                if need > 0:
                    put_on(b, mj + y, b.state[mj + y] - need)
                    put_on(b, uj + y, b.state[uj + y] - need)
        b.registers[WORK] += ni * b.state[net.at_size + j]
    for k in range(ni - 1, -1, -1):
        x = b.domain[vi + k]
        gain = b.gain[x]
        if gain >= LIMIT:
            if not remove(net, b, i, x):
                return False
        elif worth and gain > 0:
            put_on(b, mi + x, b.state[mi + x] + gain)
            put_on(b, ui + x, b.state[ui + x] + gain)
    if worth:
        b.directional[i] = True
        b.registers[QUEUED] = 1
    return project(net, b, i)


@kernel
def assign(net, b, i):  # type: ignore[no-untyped-def]
    """A variable with one state left: its costs go to the bound and to its neighbours, its edges come off."""
    registers, state = b.registers, b.state
    x = b.domain[net.value_offsets[i]]
    at = net.at_unary + net.value_offsets[i] + x
    if state[at] != 0:
        put_on(b, BOUND, state[BOUND] + state[at])
        put_on(b, at, 0)
    n_free = state[net.at_free] - 1
    k, other = b.free_place[i], b.free[n_free]
    b.free[k], b.free_place[other] = other, k
    b.free[n_free], b.free_place[i] = i, n_free
    put_on(b, net.at_free, n_free)
    for k in range(state[net.at_degree + i]):
        h = b.adjacency[net.adjacency_offsets[i] + k]
        o = h ^ 1
        j = net.half_node[o]
        registers[CAUSE] = h >> 1
        start, last = net.adjacency_offsets[j], state[net.at_degree + j] - 1
        p, other = b.half_place[o], b.adjacency[start + last]
        b.adjacency[start + p], b.half_place[other] = other, p
        b.adjacency[start + last], b.half_place[o] = o, last
        put_on(b, net.at_degree + j, last)
        vj, mj = net.value_offsets[j], net.message_at[o]
        base = net.edge_base[h >> 1] + net.half_stride[h] * x
        given = state[net.message_at[h] + x]
        raised = False
        for m in range(state[net.at_size + j] - 1, -1, -1):
            y = b.domain[vj + m]
            cost = net.costs[base + net.half_stride[o] * y]
            if cost >= LIMIT:
                if not remove(net, b, j, y):
                    return False
            else:
                cost -= given + state[mj + y]
                if cost != 0:
                    put_on(b, net.at_unary + vj + y, state[net.at_unary + vj + y] + cost)
                    raised = True
        if raised:
            b.directional[j] = True
            registers[QUEUED] = 1
        if not project(net, b, j):
            return False
    put_on(b, net.at_degree + i, 0)
    for k in range(net.variable_function_offsets[i], net.variable_function_offsets[i + 1]):
        b.function[net.variable_functions[k]] = True
        registers[QUEUED] = 1
    return state[BOUND] < registers[CUT]
