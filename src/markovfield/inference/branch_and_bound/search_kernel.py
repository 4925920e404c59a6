"""Depth-first search with a maintained bound: one subtree at a time, in pieces that can be interrupted.

Invariant: the registers below, `Search`, and that everything a step back must restore is in the board's ``state``. Free
to change: which variable and which state are taken next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.inference.branch_and_bound.consistency_kernel import (
    BOUND,
    CAUSE,
    CUT,
    QUEUED,
    STAMP,
    TOP,
    WORK,
    Board,
    CostLayout,
    clear_flags,
    remove,
    undo,
)
from markovfield.inference.branch_and_bound.propagate_kernel import propagate
from markovfield.kernels.compiler import kernel

__all__ = [
    "BEST",
    "DECISIONS",
    "DONE",
    "LAST",
    "LEVELS",
    "LIMITED",
    "NODES",
    "PAUSED",
    "Search",
    "explore",
    "propagate_root",
    "retreat",
    "start_subtree",
]

# How a call ends: the subtree is exhausted; so many steps back were taken; so much work was done.
DONE, LIMITED, PAUSED = 0, 1, 2
_SETTLE, _START, _EXPLORE = 0, 1, 2
# Registers that the search adds: best cost, steps back left, levels, decisions, nodes seen, variable of the last
# conflict, stamps given out.
BEST, BACKTRACKS, LEVELS, DECISIONS, NODES, LAST, STAMPS = 7, 8, 9, 10, 11, 12, 13


class Search(NamedTuple):
    """The branch being looked at.

    ``decisions[d]`` is ``g + 1`` where the state at flat position g was chosen and ``-(g + 1)`` where it was ruled out;
    level k chose ``decisions[level_decision[k]]`` with a trail of ``level_top[k]``, and its other side has the bound
    ``level_bound[k]``. ``best`` is the best assignment.
    """

    decisions: npt.NDArray[np.int64]
    level_decision: npt.NDArray[np.int64]
    level_top: npt.NDArray[np.int64]
    level_bound: npt.NDArray[np.int64]
    level_stamp: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    best: npt.NDArray[np.int64]


@kernel
def _next_variable(net, b):  # type: ignore[no-untyped-def]
    """The variable of the last conflict, or the one with the fewest states for the conflicts its functions caused."""
    registers, state = b.registers, b.state
    last = registers[LAST]
    if last >= 0 and b.free_place[last] < state[net.at_free]:
        return last
    n_edges = len(net.edge_base)
    chosen, least, most = np.int64(-1), np.inf, np.int64(-1)
    for k in range(state[net.at_free]):
        v = b.free[k]
        first, size = net.value_offsets[v], state[net.at_size + v]
        weight = 1e-3
        registers[WORK] += state[net.at_degree + v] + size
        for m in range(state[net.at_degree + v]):
            weight += b.weights[b.adjacency[net.adjacency_offsets[v] + m] >> 1]
        for m in range(net.variable_function_offsets[v], net.variable_function_offsets[v + 1]):
            weight += b.weights[n_edges + net.variable_functions[m]]
        ratio = size / weight
        if ratio > least * (1 + 1e-9):
            continue
        cost = np.int64(0)
        for m in range(size):
            cost += state[net.at_unary + first + b.domain[first + m]]
        if ratio < least * (1 - 1e-9) or cost > most or (cost == most and v < chosen):
            chosen, least, most = v, min(ratio, least), cost
    return chosen


@kernel
def _next_state(net, b, s, v):  # type: ignore[no-untyped-def]
    """A state of least unary cost: that of the best assignment, or the support, where it is one."""
    first, size = net.value_offsets[v], b.state[net.at_size + v]
    at = net.at_unary + first
    least, chosen = b.state[at + b.domain[first]], b.domain[first]
    for k in range(1, size):
        a = b.domain[first + k]
        if b.state[at + a] < least or (b.state[at + a] == least and a < chosen):
            least, chosen = b.state[at + a], a
    for a in (s.best[v], b.support[v]):
        if a >= 0 and b.place[first + a] < size and b.state[at + a] == least:
            return a
    return chosen


@kernel
def _keep_only(net, b, v, a):  # type: ignore[no-untyped-def]
    """Choose state ``a`` of v; False where it is ruled out."""
    first = net.value_offsets[v]
    if b.place[first + a] >= b.state[net.at_size + v]:
        return False
    for k in range(b.state[net.at_size + v] - 1, -1, -1):
        other = b.domain[first + k]
        if other != a:
            remove(net, b, v, other)
    b.arc[v] = True
    return True


@kernel
def _decide(net, b, s, decision):  # type: ignore[no-untyped-def]
    g = abs(decision) - 1
    v = s.owner[g]
    a = g - net.value_offsets[v]
    if decision > 0:
        return _keep_only(net, b, v, a)
    return b.place[net.value_offsets[v] + a] >= b.state[net.at_size + v] or remove(net, b, v, a)


@kernel
def retreat(b):  # type: ignore[no-untyped-def]
    """Back to the root."""
    undo(b, 0)
    clear_flags(b)
    b.registers[LEVELS] = 0
    b.registers[DECISIONS] = 0


@kernel
def _run(net, b, s, task, decisions, backtracks, unit, work):  # type: ignore[no-untyped-def]
    """All three tasks in one kernel: whatever calls `propagate` is compiled with all of it.

    Search on below the present node until the subtree is exhausted or it is time to say something.

    A solution of cost c leaves room only for those of at most ``c - unit``: costs of assignments are integer multiples.
    """
    registers, state = b.registers, b.state
    if task != _EXPLORE:
        registers[STAMP] = 0
        fine = True
        if task == _START:
            registers[STAMPS] += 1
            registers[STAMP] = registers[STAMPS]
            registers[BACKTRACKS] = backtracks
            registers[LAST] = -1
            registers[DECISIONS] = len(decisions)
            for d in range(len(decisions)):
                s.decisions[d] = decisions[d]
                fine = fine and _decide(net, b, s, decisions[d])
        fine = fine and propagate(net, b)
        if task == _SETTLE:
            # What an earlier subtree had touched was remembered once more; here nothing is to be taken back.
            registers[TOP] = 0
        if not fine:
            clear_flags(b)
        return PAUSED if fine else DONE
    until = registers[WORK] + work
    room = len(b.trail_at) - len(state)
    while True:
        if registers[BACKTRACKS] <= 0 or registers[TOP] > room:
            return LIMITED
        if registers[WORK] > until:
            return PAUSED
        registers[NODES] += 1
        registers[WORK] += state[net.at_free]
        fine = False
        if state[net.at_free] == 0:
            if state[BOUND] < registers[BEST]:
                registers[BEST] = state[BOUND]
                registers[CUT] = state[BOUND] - unit + 1
                for v in range(len(s.best)):
                    s.best[v] = b.domain[net.value_offsets[v]]
        else:
            v = _next_variable(net, b)
            a = _next_state(net, b, s, v)
            level, d = registers[LEVELS], registers[DECISIONS]
            s.decisions[d] = net.value_offsets[v] + a + 1
            s.level_decision[level] = d
            s.level_top[level] = registers[TOP]
            s.level_bound[level] = state[BOUND]
            s.level_stamp[level] = registers[STAMP]
            registers[LEVELS], registers[DECISIONS] = level + 1, d + 1
            registers[STAMPS] += 1
            registers[STAMP] = registers[STAMPS]
            fine = _keep_only(net, b, v, a) and propagate(net, b)
            if not fine:
                b.weights[registers[CAUSE]] += 1.0
                registers[LAST] = v
        while not fine:
            clear_flags(b)
            if registers[LEVELS] == 0:
                return DONE
            level = registers[LEVELS] - 1
            registers[LEVELS] = level
            undo(b, s.level_top[level])
            registers[STAMP] = s.level_stamp[level]
            d = s.level_decision[level]
            s.decisions[d] = -s.decisions[d]
            registers[DECISIONS] = d + 1
            registers[BACKTRACKS] -= 1
            if registers[TOP] > room:
                # No room to remember what this side changes: it is left to another call, as an open node.
                return LIMITED
            g = -s.decisions[d] - 1
            w = s.owner[g]
            registers[QUEUED] = 1
            fine = remove(net, b, w, g - net.value_offsets[w]) and propagate(net, b)
            if not fine:
                b.weights[registers[CAUSE]] += 1.0
                registers[LAST] = w


_NO_DECISIONS = np.zeros(0, np.int64)


def propagate_root(net: CostLayout, b: Board, s: Search) -> bool:
    """Propagate without a trail: what is found holds for the whole search. False when the search is over."""
    return bool(_run(net, b, s, _SETTLE, _NO_DECISIONS, 0, 1, 0) == PAUSED)


def start_subtree(net: CostLayout, b: Board, s: Search, decisions: npt.NDArray[np.int64], backtracks: int) -> bool:
    """From the root, take these decisions at once; False where nothing is left below the cut."""
    return bool(_run(net, b, s, _START, decisions, backtracks, 1, 0) == PAUSED)


def explore(net: CostLayout, b: Board, s: Search, unit: int, work: int) -> int:
    """Search on below the present node; how it ended."""
    return int(_run(net, b, s, _EXPLORE, _NO_DECISIONS, 0, unit, work))
