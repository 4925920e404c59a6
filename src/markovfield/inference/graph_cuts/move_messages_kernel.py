"""Messages that say where moves start from and what their flows will be.

A few passes of sequential tree-reweighted messages (Kolmogorov 2006) over the pairs of `moves_kernel`.
Entry ``t`` of a variable's list, ``first[v] <= t < first[v + 1]``, is factor ``pair[t]`` to the variable ``other[t]``,
whose own entry for it is ``twin[t]``; ``messages[t]`` (float32) is the incoming message of ``v`` through it. All scores
are finite but those of single variables.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["foretell", "foretold", "sweep"]


@kernel
def _choice(v, k, unary, pool, base, low_stride, high_stride, first, pair, other, messages, states, score):
    """The best state of a variable, given the states of those before it and what those after it say."""
    for x in range(k):
        score[x] = unary[v, x]
    for t in range(first[v], first[v + 1]):
        if other[t] > v:
            for x in range(k):
                score[x] += messages[t, x]
        else:
            e = pair[t]
            at, q = base[e] + low_stride[e] * states[other[t]], high_stride[e]
            for x in range(k):
                score[x] += pool[at + q * x]
    best = 0
    for x in range(1, k):
        if score[x] > score[best]:
            best = x
    return best


@kernel
def sweep(
    backward, decide, begin, end, unary, sizes, pool, low, base, low_stride, high_stride, first, pair, other, twin,
    messages, incoming, table, states,
):  # fmt: skip
    """Pass messages on from variables ``begin`` to ``end``, in order or backwards; or, to end with, choose states.

    ``incoming`` and ``table`` are room to work in, for three more senders' states than there are.
    """
    last, last_p, last_q, last_k, last_l = -1, -1, -1, -1, -1
    same, apart = np.float32(0.0), np.float32(-np.inf)
    for step in range(begin, end):
        v = len(states) - 1 - step if backward else step
        k, start, stop = sizes[v], first[v], first[v + 1]
        if decide:
            states[v] = _choice(
                v, k, unary, pool, base, low_stride, high_stride, first, pair, other, messages, states, incoming[1]
            )  # fmt: skip
            continue
        for x in range(k):
            incoming[0, x] = unary[v, x]
        ahead = 0
        for t in range(start, stop):
            ahead += (other[t] > v) != backward
            for x in range(k):
                incoming[0, x] += messages[t, x]
        share = np.float32(1.0 / max(1, ahead, stop - start - ahead))
        for t in range(start, stop):
            if (other[t] > v) == backward:
                continue
            e, l = pair[t], sizes[other[t]]
            p, q = low_stride[e], high_stride[e]
            if v != low[e]:
                p, q = q, p
            if base[e] != last or p != last_p or q != last_q or k != last_k or l != last_l:
                last, last_p, last_q, last_k, last_l = base[e], p, q, k, l
                same, apart = _copy_table(pool, last, p, q, k, l, table)
            for x in range(k):
                incoming[1, x] = share * incoming[0, x] - messages[t, x]
            _send(incoming[1], table, k, l, same, apart, messages[twin[t]])


@kernel
def _copy_table(pool, at, p, q, k, l, table):
    """A pair's scores in one piece, filled up to a multiple of four rows.

    Returns the scores of equal and of different states, if it has only these two, or -inf as the second.
    """
    same, apart = np.float32(pool[at]), np.float32(pool[at + q] if l > 1 else pool[at])
    potts = k == l and same >= apart
    for x in range(k):
        for y in range(l):
            table[x, y] = pool[at + p * x + q * y]
            potts &= table[x, y] == (same if x == y else apart)
    for x in range(k, k + (-k) % 4):
        for y in range(l):
            table[x, y] = -np.inf
    return same, (apart if potts else np.float32(-np.inf))


@kernel
def _send(here, table, k, l, same, apart, message):
    """The best that a sender with scores ``here`` has for each of the receiver's states, less its own best."""
    most = here[0]
    for x in range(1, k):
        most = max(most, here[x])
    for x in range(k):
        here[x] -= most
    if apart > -np.inf:
        for y in range(l):
            there = here[y] + same
            message[y] = there if there > apart else apart
        return
    for x in range(k, k + (-k) % 4):
        here[x] = 0.0
    for y in range(l):
        message[y] = -np.inf
    # Four rows at once: what is in `message` is read and written a quarter as often.
    for x in range(0, k, 4):
        a, b, c, d = here[x], here[x + 1], here[x + 2], here[x + 3]
        row_a, row_b, row_c, row_d = table[x], table[x + 1], table[x + 2], table[x + 3]
        for y in range(l):
            one, two = a + row_a[y], b + row_b[y]
            three, four = c + row_c[y], d + row_d[y]
            one = one if one > two else two
            three = three if three > four else four
            one = one if one > three else three
            message[y] = one if one > message[y] else message[y]


@kernel
def foretold(lopsided, i, j, messages, x, y, alpha, grain):
    """The flow of a pair when the scores of its variables are those with messages.

    They choose between ``x`` and ``y`` (state 0) and ``alpha``, and ``lopsided`` is how much more it costs if only the
    second takes ``alpha`` than if only the first does. Integer multiples of ``grain``, a power of two, keep sums of
    integer costs exact.
    """
    flow = lopsided + messages[i, x] - messages[i, alpha] + messages[j, alpha] - messages[j, y]
    return np.rint(0.5 * flow / grain) * grain if abs(flow) < np.inf else 0.0


@kernel
def foretell(
    alpha, states, unary, pool, low, high, base, low_stride, high_stride, incoming, messages, grain, arcs, capacity
):  # fmt: skip
    """Write the flows of an expansion's network, as messages foretell them, into arcs that are without anything.

    ``incoming[2 e]`` and ``incoming[2 e + 1]`` are the entries of pair ``e`` in the lists of its variables.
    """
    for e in range(len(low)):
        i, j = low[e], high[e]
        x, y = states[i], states[j]
        if alpha in (x, y) or min(unary[i, alpha], unary[j, alpha]) == -np.inf:
            continue
        at, p, q = base[e], low_stride[e], high_stride[e]
        lopsided = pool[at + p * alpha + q * y] - pool[at + p * x + q * alpha]
        flow = foretold(lopsided, incoming[2 * e], incoming[2 * e + 1], messages, x, y, alpha, grain)
        capacity[arcs[2 * e]] = -flow
        capacity[arcs[2 * e + 1]] = flow
