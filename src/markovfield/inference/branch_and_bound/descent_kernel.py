"""A first assignment before a search, by iterated local search on the costs as they have been moved.

Invariant: it reads costs as in `consistency_kernel` and moves none. All of it is free to change: it only offers
assignments.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.branch_and_bound.consistency_kernel import BOUND, FORBIDDEN, LIMIT, WORK
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_index

__all__ = ["descend"]


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
