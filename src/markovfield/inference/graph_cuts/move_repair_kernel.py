"""Expansions once more: a network that is kept for each state, and brought up to date where something has changed.

After the best expansion of a state, no variable that has not taken it gains by that: none has an ``excess`` above zero.
Only changes since can alter this, at the variables that changed and at their neighbours; from there, what is in excess
mostly finds its way within a few steps, and where it does not, the variables that it reaches are those that move. Pairs
and networks are those of `moves_kernel`, with finite tables; entry ``t`` of a variable's list is factor
``pair[t]`` to ``other[t]``, with the arcs ``out[t]`` and ``back[t]``.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["hopeful", "refresh", "repair"]


@kernel
def hopeful(node, excess, rounding, listed):
    """List the variables that gain by moving alone; returns how many. What is within ``rounding`` of zero is zero."""
    count = 0
    for v in range(len(node)):
        if abs(excess[node[v]]) <= rounding:
            excess[node[v]] = 0.0
        elif excess[node[v]] > 0.0:
            listed[count] = v
            count += 1
    return count


@kernel
def _touched(since, stamp, first, other, mark, now, limit, listed):
    """List the variables that changed after move ``since`` and their neighbours; how many, or -1 if above ``limit``."""
    count = 0
    for u in range(len(stamp)):
        if stamp[u] <= since:
            continue
        if mark[u] != now:
            mark[u] = now
            listed[count] = u
            count += 1
        for t in range(first[u], first[u + 1]):
            w = other[t]
            if mark[w] != now:
                mark[w] = now
                listed[count] = w
                count += 1
        if count > limit:
            return -1
    return count


@kernel
def refresh(
    alpha, since, stamp, limit, states, unary, pool, low, base, low_stride, high_stride, first, pair, other, out, back,
    node, capacity, excess, mark, now, rounding, listed,
):  # fmt: skip
    """Bring a network of expansions of ``alpha`` up to date; lists the variables that now gain by moving alone.

    Returns how many, or -1, with nothing changed, where more than ``limit`` variables would have to be looked at.
    Variables have changed last in move ``stamp[v]``, and the network is as it was after move ``since``. ``mark`` is
    below ``now`` everywhere.
    """
    positive = 0
    count = _touched(since, stamp, first, other, mark, now, limit, listed)
    if count < 0:
        return -1
    for k in range(count):
        v = listed[k]
        x = states[v]
        still = x == alpha or unary[v, alpha] == -np.inf
        total = 0.0 if still else unary[v, alpha] - unary[v, x]
        size = 0.0 if still else abs(unary[v, alpha]) + abs(unary[v, x])
        for t in range(first[v], first[v + 1]):
            if still:
                capacity[out[t]] = capacity[back[t]] = 0.0
                continue
            e, w = pair[t], other[t]
            p, q = low_stride[e], high_stride[e]
            if v != low[e]:
                p, q = q, p
            at, y = base[e], states[w]
            a, c = -pool[at + p * x + q * y], -pool[at + p * alpha + q * y]
            size += abs(a) + abs(c)
            if y == alpha or unary[w, alpha] == -np.inf:
                capacity[out[t]] = capacity[back[t]] = 0.0
                total += a - c
                continue
            b, d = -pool[at + p * x + q * alpha], -pool[at + p * alpha + q * alpha]
            flow = 0.5 * (capacity[back[t]] - capacity[out[t]])
            if stamp[v] > since or stamp[w] > since:
                half = max(0.0, 0.5 * (b + c - a - d))
                flow = min(max(flow, -half), half)
                capacity[out[t]] = half - flow
                capacity[back[t]] = half + flow
            total -= 0.5 * (c + d - a - b) + flow
            size += abs(b) + abs(d) + abs(flow)
        excess[node[v]] = total if abs(total) > rounding * size else 0.0
        if total > rounding * size:
            listed[positive] = v
            positive += 1
    return positive


@kernel
def repair(starts, first, other, out, back, node, capacity, excess, mark, now, budget, queue, via, came, stuck):
    """Push what ``starts`` have in excess to the nearest variables that take it; lists in ``stuck`` those that move.

    These are the ones that are left with something, and those it could still go to. Returns how many, or -1 where it
    would look at more than ``budget`` variables, and the last mark that was used; all were below ``now``. Every
    variable in excess must be among ``starts``.
    """
    count, done = 0, now
    for k in range(len(starts)):
        r = starts[k]
        while excess[node[r]] > 0.0 and mark[r] != done:
            now += 1
            mark[r] = now
            queue[0] = r
            head, tail, found = 0, 1, -1
            while head < tail and found < 0:
                v = queue[head]
                head += 1
                for t in range(first[v], first[v + 1]):
                    w = other[t]
                    if capacity[out[t]] > 0.0 and mark[w] != now and mark[w] != done:
                        mark[w] = now
                        via[w], came[w] = t, v
                        if excess[node[w]] < 0.0:
                            found = w
                            break
                        queue[tail] = w
                        tail += 1
            budget -= head
            if found < 0:
                # Nothing leads out of these any more, so that no later path goes through them.
                for i in range(tail):
                    mark[queue[i]] = done
                    stuck[count] = queue[i]
                    count += 1
                break
            f = min(excess[node[r]], -excess[node[found]])
            w = found
            while w != r:
                f = min(f, capacity[out[via[w]]])
                w = came[w]
            excess[node[r]] -= f
            excess[node[found]] += f
            w = found
            while w != r:
                capacity[out[via[w]]] -= f
                capacity[back[via[w]]] += f
                w = came[w]
            if budget < 0:
                return -1, now
    return count, now
