"""Moves of many variables at once: networks whose minimum cut is the best expansion or swap.

Pairs are those of a problem of single variables and pairs: factor ``e`` of variables ``low[e] < high[e]`` has the score
``pool[base[e] + low_stride[e] x + high_stride[e] y]``, and ``unary[v, x]`` is the score of a variable's state by
itself, -inf where it has no such state. Variable ``v`` is ``excess[node[v]]`` of the network, and ``capacity[arcs[2
e]]`` and ``capacity[arcs[2 e + 1]]`` are the arcs of a pair, there and back. The source's side is that of state 1.

What is in a pair's arcs when a network is made is taken for what an earlier flow left: half of what the way back has
more than the way there is sent again, as far as the pair has room for it. That is the same network whatever the flow
was, and a good one leaves little to do (Kohli and Torr 2007). Arcs without anything mean no flow.

Expansions once more: a network that is kept for each state, and brought up to date where something has changed.

After the best expansion of a state, no variable that has not taken it gains by that: none has an ``excess`` above zero.
Only changes since can alter this, at the variables that changed and at their neighbours; from there, what is in excess
mostly finds its way within a few steps, and where it does not, the variables that it reaches are those that move. Pairs
and networks are those of `moves_kernel`, with finite tables; entry ``t`` of a variable's list is factor
``pair[t]`` to ``other[t]``, with the arcs ``out[t]`` and ``back[t]``.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.graph_cuts.move_messages_kernel import foretold
from markovfield.kernels.compiler import kernel

__all__ = ["choosers", "expansion", "gain", "hopeful", "preferences", "refresh", "repair", "swap", "taken"]


@kernel
def _attractive(i, j, there, back, a, b, c, d, capacity, excess):
    """Add a pair with costs a, b, c, d of the states 00, 01, 10, 11: a and d finite, a + d at most b + c.

    Arcs that may become infinite must be without anything.
    """
    if b == np.inf and c == np.inf:
        capacity[there] = capacity[back] = np.inf
        excess[i] -= d - a
    elif b == np.inf:
        capacity[back] = np.inf
        excess[i] -= c - a
        excess[j] -= d - c
    elif c == np.inf:
        capacity[there] = np.inf
        excess[i] -= d - b
        excess[j] -= b - a
    else:
        half = max(0.0, 0.5 * (b + c - a - d))
        flow = min(max(0.5 * (capacity[back] - capacity[there]), -half), half)
        capacity[there] = half - flow
        capacity[back] = half + flow
        excess[i] -= 0.5 * (c + d - a - b) + flow
        excess[j] -= 0.5 * (b + d - a - c) - flow


@kernel
def expansion(alpha, states, unary, pool, low, high, base, low_stride, high_stride, node, arcs, capacity, excess):
    """The network of a move in which any variables take state ``alpha`` (state 1) and the others stay.

    Where a pair would rather have one of its variables move than both or none (the move is not submodular), moving one
    is made as much dearer as it takes; with both moved ruled out, the first stays. So the network never promises more
    than a move gives, and staying costs what it is: no move makes things worse (Rother, Kumar, Kolmogorov and Blake
    2005).
    """
    for v in range(len(states)):
        w = unary[v, alpha]
        excess[node[v]] = 0.0 if states[v] == alpha or w == -np.inf else w - unary[v, states[v]]
    for e in range(len(low)):
        i, j = low[e], high[e]
        x, y = states[i], states[j]
        still_i = x == alpha or unary[i, alpha] == -np.inf
        still_j = y == alpha or unary[j, alpha] == -np.inf
        there, back = arcs[2 * e], arcs[2 * e + 1]
        if still_i or still_j:
            capacity[there] = capacity[back] = 0.0
            if still_i and still_j:
                continue
        at = base[e]
        p, q = low_stride[e], high_stride[e]
        a = -pool[at + p * x + q * y]
        if still_i:
            excess[node[j]] += pool[at + p * x + q * alpha] + a
            continue
        c = -pool[at + p * alpha + q * y]
        if still_j:
            excess[node[i]] += a - c
            continue
        b = -pool[at + p * x + q * alpha]
        d = -pool[at + p * alpha + q * alpha]
        if d == np.inf:
            capacity[there] = capacity[back] = 0.0
            excess[node[i]] = -np.inf
            excess[node[j]] -= b - a
            continue
        if a + d > b + c:
            more = 0.5 * (a + d - b - c)
            b += more
            c += more
        _attractive(node[i], node[j], there, back, a, b, c, d, capacity, excess)


@kernel
def _chooses(alpha, beta, state, unary, v):
    return (state == alpha and unary[v, beta] > -np.inf) or (state == beta and unary[v, alpha] > -np.inf)


@kernel
def choosers(alpha, beta, since, stamp, states, unary, first, other, mark, now, active):
    """List the variables in one of two states that may take the other; returns how many.

    With ``since`` of at least zero, only those that are joined, through others of them, to a variable that changed
    after move ``since`` or to a neighbour of one: the rest is as it was when it last chose, and would choose the same.
    ``mark`` is below ``now`` everywhere.
    """
    count = 0
    if since >= 0:
        for u in range(len(states)):
            if stamp[u] > since:
                count = _join(alpha, beta, u, states, unary, mark, now, active, count)
                for t in range(first[u], first[u + 1]):
                    count = _join(alpha, beta, other[t], states, unary, mark, now, active, count)
        done = 0
        while done < count:
            u = active[done]
            done += 1
            for t in range(first[u], first[u + 1]):
                count = _join(alpha, beta, other[t], states, unary, mark, now, active, count)
        # In their own order again, which is that of memory.
        count = 0
    for v in range(len(states)):
        if mark[v] == now if since >= 0 else _chooses(alpha, beta, states[v], unary, v):
            active[count] = v
            count += 1
    return count


@kernel
def _join(alpha, beta, v, states, unary, mark, now, active, count):
    if mark[v] != now and _chooses(alpha, beta, states[v], unary, v):
        mark[v] = now
        active[count] = v
        count += 1
    return count


@kernel
def swap(
    alpha, beta, active, first, pair, states, unary, pool, low, high, base, low_stride, high_stride, incoming, messages,
    grain, node, arcs, capacity, excess,
):  # fmt: skip
    """The network of a move in which ``active`` variables choose anew between ``alpha`` (state 0) and ``beta``.

    The factors of variable ``v`` are ``pair[first[v]:first[v + 1]]``. Pairs that are not submodular are handled as for
    an expansion: the present states cost what they are, others at least that. With ``grain`` above zero, messages
    foretell the flow, see `foretold`. Returns whether all pairs were submodular.
    """
    submodular = True
    for k in range(len(active)):
        v = active[k]
        excess[node[v]] = unary[v, beta] - unary[v, alpha]
    for k in range(len(active)):
        v = active[k]
        for t in range(first[v], first[v + 1]):
            e = pair[t]
            at = base[e]
            i, j, p, q = low[e], high[e], low_stride[e], high_stride[e]
            if v == j:
                i, j, p, q = j, i, q, p
            y = states[j]
            if not _chooses(alpha, beta, y, unary, j):
                excess[node[i]] += pool[at + p * beta + q * y] - pool[at + p * alpha + q * y]
                continue
            if v != low[e]:
                continue
            x = states[i]
            a, b = -pool[at + p * alpha + q * alpha], -pool[at + p * alpha + q * beta]
            c, d = -pool[at + p * beta + q * alpha], -pool[at + p * beta + q * beta]
            if max(a, d) == np.inf:
                submodular = False
                excess[node[i]] = np.inf if x == beta else -np.inf
                excess[node[j]] += c - d if x == beta else a - b
                continue
            if a + d > b + c:
                submodular = False
                if x == alpha and y == beta:
                    c = a + d - b
                else:
                    b = a + d - c
            there, back = arcs[2 * e], arcs[2 * e + 1]
            if grain > 0.0:
                capacity[back] = foretold(
                    b - c, incoming[2 * e], incoming[2 * e + 1], messages, alpha, alpha, beta, grain
                )
                capacity[there] = -capacity[back]
            _attractive(node[i], node[j], there, back, a, b, c, d, capacity, excess)
    return submodular


@kernel
def taken(labels, node, closed, alpha, beta, active, unary, states, moved):
    """Read a cut off the trees' labels into ``moved``; returns how many variables change their state.

    With ``alpha`` of at least zero the move was a swap with ``beta``, otherwise an expansion of ``beta``.
    """
    changed = 0
    for k in range(len(active)):
        v = active[k]
        label = labels[node[v]]
        source = label >= 0 if closed < 0 else label > 0
        if alpha < 0:
            moved[v] = beta if source and unary[v, beta] > -np.inf else states[v]
        else:
            moved[v] = beta if source else alpha
        changed += moved[v] != states[v]
    return changed


@kernel
def gain(active, first, pair, states, moved, unary, pool, low, high, base, low_stride, high_stride):
    """How much better it scores if ``active`` variables move, and the size of the numbers this is the difference of.

    ``moved`` is the present state of all other variables.
    """
    total, size = 0.0, 0.0
    for k in range(len(active)):
        v = active[k]
        if moved[v] == states[v]:
            continue
        total += unary[v, moved[v]] - unary[v, states[v]]
        size += abs(unary[v, moved[v]]) + abs(unary[v, states[v]])
        for t in range(first[v], first[v + 1]):
            e = pair[t]
            i, j = low[e], high[e]
            if v == i or moved[i] == states[i]:
                new = pool[base[e] + low_stride[e] * moved[i] + high_stride[e] * moved[j]]
                old = pool[base[e] + low_stride[e] * states[i] + high_stride[e] * states[j]]
                total += new - old
                size += abs(new) + abs(old)
    return total, size


@kernel
def preferences(pool, low, high, base, low_stride, high_stride, rounding, apart, excess):
    """Of pairs of binary variables: half of what different states cost more than equal ones, into ``apart``.

    What is left of a pair's costs is that of single variables, and is taken from their ``excess``. A difference below
    ``rounding``, relative to the costs, is none. Returns False, with nothing to rely on, where a cost is infinite.
    """
    for e in range(len(low)):
        at = base[e]
        a, b = -pool[at], -pool[at + high_stride[e]]
        c, d = -pool[at + low_stride[e]], -pool[at + low_stride[e] + high_stride[e]]
        size = abs(a) + abs(b) + abs(c) + abs(d)
        if size == np.inf:
            return False
        x = 0.5 * (b + c - a - d)
        apart[e] = x if abs(x) > rounding * size else 0.0
        excess[low[e]] -= 0.5 * (c + d - a - b)
        excess[high[e]] -= 0.5 * (b + d - a - c)
    return True


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
