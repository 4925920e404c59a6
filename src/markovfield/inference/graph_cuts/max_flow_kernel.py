"""Maximum flow on any sparse graph, and signed graphs that two colours balance.

The algorithm is that of `grid_flow_kernel`; here the arcs of node ``v`` are ``first[v]`` to
``first[v + 1]``, arc ``a`` leads to ``head[a]``, its reverse is ``sister[a]``, and ``capacity[a]`` is what can still
flow along it. A capacity may be infinite, and so may an ``excess``; a path on which nothing bounds the flow ends the
work.

Free to change: `UNEVEN`, and which tree grows next; the flow is the same, the minimum cut found may be another one.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = [
    "ARC_TO_PARENT",
    "BUCKET",
    "ENDLESS",
    "GRAPH_ROWS",
    "NO_ARC",
    "balance",
    "clear_graph",
    "grow_graph",
    "lay_arcs",
    "plant_graph",
]

# Rows of `work`, int32[GRAPH_ROWS, n]: as for grids, then the arc to the parent, and in which pending lists a node is.
LABEL, CUT_OFF, QUEUE, LOST, BUCKET, LINK, CURRENT, PENDING, PARENT, LISTED = 0, 1, 2, 3, 4, 5, 6, 7, 9, 10
GRAPH_ROWS = 11
TERMINAL, ORPHAN, NO_PARENT = -1, -2, -3
# Entries of `state`, int64[8]: as for grids.
LEVEL, GROWING, POSITION, COUNT, PENDING_COUNT, CLOSED = 0, 2, 3, 4, 5, 7
# How many times as many outermost nodes one tree must have for the other to grow, whatever their levels.
UNEVEN = 8
ARC_TO_PARENT, NO_ARC = PARENT, NO_PARENT
ENDLESS = 2
"""What `CLOSED` holds when a path without any bound was met."""


@kernel
def lay_arcs(n, tails, heads, first, head, sister, arcs):
    """Arrays of a graph with a pair of opposite arcs between each of two nodes; ``arcs[2 e]`` and ``arcs[2 e + 1]`` are
    those of pair ``e``, from ``tails[e]`` to ``heads[e]`` and back."""
    for v in range(n + 1):
        first[v] = 0
    for e in range(len(tails)):
        first[tails[e] + 1] += 1
        first[heads[e] + 1] += 1
    for v in range(n):
        first[v + 1] += first[v]
    place = first[:-1].copy()
    for e in range(len(tails)):
        a, b = place[tails[e]], place[heads[e]]
        place[tails[e]] += 1
        place[heads[e]] += 1
        head[a], head[b] = heads[e], tails[e]
        sister[a], sister[b] = b, a
        arcs[2 * e], arcs[2 * e + 1] = a, b


@kernel
def balance(first, head, sign, colour, queue):
    """Colour nodes so that arcs of sign 1 join equal and those of sign -1 different colours; whether that is possible.

    ``colour`` (int8) is 0 or 1 for every node afterwards; where it is not possible it means nothing.
    """
    for v in range(len(colour)):
        colour[v] = -1
    balanced = True
    for start in range(len(colour)):
        if colour[start] >= 0:
            continue
        colour[start] = 0
        queue[0] = start
        begin, end = 0, 1
        while begin < end:
            v = queue[begin]
            begin += 1
            for a in range(first[v], first[v + 1]):
                if sign[a] == 0:
                    continue
                want = colour[v] if sign[a] > 0 else 1 - colour[v]
                u = head[a]
                if colour[u] < 0:
                    colour[u] = want
                    queue[end] = u
                    end += 1
                elif colour[u] != want:
                    balanced = False
    return balanced


@kernel
def plant_graph(nodes, excess, work, state):
    """Start both trees: nodes with something left from the source (positive ``excess``) or to the sink (negative).

    All others than ``nodes`` must be without excess, capacities and a place in either tree.
    """
    for i in range(len(state)):
        state[i] = 0
    state[LEVEL] = 1
    state[LEVEL + 1] = 1
    for k in range(len(nodes)):
        v = nodes[k]
        work[LABEL, v] = 0
        work[PARENT, v] = NO_PARENT
        work[LISTED, v] = 0
        if excess[v] != 0.0:
            side = 0 if excess[v] > 0.0 else 1
            work[LABEL, v] = 1 - 2 * side
            work[PARENT, v] = TERMINAL
            work[LISTED, v] = 1 + side
            work[PENDING + side, state[PENDING_COUNT + side]] = v
            state[PENDING_COUNT + side] += 1


@kernel
def clear_graph(nodes, first, capacity, excess, work):
    """Take nodes out again: no excess, no arcs that leave them, no place in a tree."""
    for k in range(len(nodes)):
        v = nodes[k]
        for a in range(first[v], first[v + 1]):
            capacity[a] = 0.0
        excess[v] = 0.0
        work[LABEL, v] = 0
        work[PARENT, v] = NO_PARENT


@kernel
def _augment(head, sister, capacity, excess, work, a):
    """Push what the path through arc ``a`` takes.

    Returns the flow and how many nodes it cut off in the tree of the source and in all; they are listed in `CUT_OFF`,
    each tree's by rising level. Nothing is pushed where nothing bounds the flow.
    """
    f = capacity[a]
    v = head[sister[a]]
    while work[PARENT, v] != TERMINAL:
        f = min(f, capacity[sister[work[PARENT, v]]])
        v = head[work[PARENT, v]]
    f = min(f, excess[v])
    v = head[a]
    while work[PARENT, v] != TERMINAL:
        f = min(f, capacity[work[PARENT, v]])
        v = head[work[PARENT, v]]
    f = min(f, -excess[v])
    if f == np.inf:
        return f, 0, 0
    capacity[a] -= f
    capacity[sister[a]] += f
    cut = 0
    from_source = 0
    for side in range(2):
        v = head[sister[a]] if side == 0 else head[a]
        begin = cut
        while work[PARENT, v] != TERMINAL:
            p = work[PARENT, v]
            forward, back = (sister[p], p) if side == 0 else (p, sister[p])
            capacity[forward] -= f
            capacity[back] += f
            if capacity[forward] == 0.0:
                work[PARENT, v] = ORPHAN
                work[CUT_OFF, cut] = v
                cut += 1
            v = head[p]
        excess[v] -= (1 - 2 * side) * f
        if excess[v] == 0.0:
            work[PARENT, v] = ORPHAN
            work[CUT_OFF, cut] = v
            cut += 1
        for i in range((cut - begin) // 2):
            v = work[CUT_OFF, begin + i]
            work[CUT_OFF, begin + i] = work[CUT_OFF, cut - 1 - i]
            work[CUT_OFF, cut - 1 - i] = v
        if side == 0:
            from_source = cut
    return f, from_source, cut


@kernel
def _lose(first, head, sister, capacity, work, begin, end, sign):
    """Give orphans another parent at the same level; list in `LOST` those without, by rising level, children included.

    Returns how many are lost, and how many arcs were looked at.
    """
    out = back = lost = seen = 0
    while begin < end or out < back:
        if begin < end and (
            out == back or sign * work[LABEL, work[CUT_OFF, begin]] <= sign * work[LABEL, work[QUEUE, out]]
        ):
            v = work[CUT_OFF, begin]
            begin += 1
        else:
            v = work[QUEUE, out]
            out += 1
        want = work[LABEL, v] - sign
        parent = NO_PARENT
        if want != 0:
            for a in range(first[v], first[v + 1]):
                seen += 1
                u = head[a]
                if (
                    work[LABEL, u] == want
                    and work[PARENT, u] != NO_PARENT
                    and capacity[sister[a] if sign > 0 else a] > 0.0
                ):
                    parent = a
                    break
        work[PARENT, v] = parent
        if parent == NO_PARENT:
            work[LOST, lost] = v
            lost += 1
            for a in range(first[v], first[v + 1]):
                seen += 1
                u = head[a]
                if work[PARENT, u] == sister[a]:
                    work[PARENT, u] = ORPHAN
                    work[QUEUE, back] = u
                    back += 1
    return lost, seen


@kernel
def _settle(first, head, sister, capacity, work, state, lost, sign, limit):
    """Find the new levels of lost nodes, up to ``limit``; the others leave the tree."""
    low, high = limit + 1, 0
    for i in range(lost):
        v = work[LOST, i]
        best = limit
        for a in range(first[v], first[v + 1]):
            label = sign * work[LABEL, head[a]]
            if 0 < label < best and work[PARENT, head[a]] != NO_PARENT and capacity[sister[a] if sign > 0 else a] > 0.0:
                best = label
        if best < limit:
            work[LINK, v] = work[BUCKET, best + 1]
            work[BUCKET, best + 1] = v
            low, high = min(low, best + 1), max(high, best + 1)
    out = back = 0
    level = low
    side = 0 if sign > 0 else 1
    while level <= high or out < back:
        if level <= high:
            back = _seeds(first, head, sister, capacity, work, level, sign, back)
        end = back
        while out < end:
            v = work[QUEUE, out]
            out += 1
            if level == limit:
                # Not scanned at this level yet.
                if not work[LISTED, v] & (1 + side):
                    work[LISTED, v] |= 1 + side
                    work[PENDING + side, state[PENDING_COUNT + side]] = v
                    state[PENDING_COUNT + side] += 1
                continue
            for a in range(first[v], first[v + 1]):
                u = head[a]
                if (
                    work[PARENT, u] == NO_PARENT
                    and sign * work[LABEL, u] > 0
                    and capacity[a if sign > 0 else sister[a]] > 0.0
                ):
                    work[LABEL, u] = sign * (level + 1)
                    work[PARENT, u] = sister[a]
                    work[QUEUE, back] = u
                    back += 1
        level += 1
    for i in range(lost):
        if work[PARENT, work[LOST, i]] == NO_PARENT:
            work[LABEL, work[LOST, i]] = 0


@kernel
def _seeds(first, head, sister, capacity, work, level, sign, back):
    """Lost nodes of one bucket that are still without a parent take one that was never lost; they join the queue."""
    v = work[BUCKET, level]
    work[BUCKET, level] = -1
    while v >= 0:
        if work[PARENT, v] == NO_PARENT:
            for a in range(first[v], first[v + 1]):
                u = head[a]
                if (
                    sign * work[LABEL, u] == level - 1
                    and work[PARENT, u] != NO_PARENT
                    and capacity[sister[a] if sign > 0 else a] > 0.0
                ):
                    work[PARENT, v] = a
                    break
            work[LABEL, v] = sign * level
            work[QUEUE, back] = v
            back += 1
        v = work[LINK, v]
    return back


@kernel
def _next_level(work, state):
    """Choose the tree to grow and list its outermost nodes; False when one of the trees cannot grow."""
    source, sink = state[PENDING_COUNT], state[PENDING_COUNT + 1]
    if source == 0 or sink == 0:
        state[CLOSED] = 1 if source == 0 else -1
        return False
    if UNEVEN * source < sink or UNEVEN * sink < source:
        side = 0 if source < sink else 1
    else:
        side = 0 if state[LEVEL] <= state[LEVEL + 1] else 1
    sign = 1 - 2 * side
    count = 0
    for i in range(state[PENDING_COUNT + side]):
        v = work[PENDING + side, i]
        work[LISTED, v] &= 2 - side
        if work[LABEL, v] == sign * state[LEVEL + side]:
            work[CURRENT, count] = v
            count += 1
    state[PENDING_COUNT + side] = 0
    state[GROWING], state[POSITION], state[COUNT] = sign, 0, count
    return True


@kernel
def grow_graph(first, head, sister, capacity, excess, work, state, budget):
    """Grow and push until no path is left or about ``budget`` arcs were looked at; returns the flow of this call.

    ``state[CLOSED]`` is then 1 where the nodes of positive label are the source's side of a minimum cut, -1 where
    those of negative label are the sink's side, `ENDLESS` where every cut is infinite, and 0 where the work has to go
    on.
    """
    flow = 0.0
    while budget > 0:
        if state[GROWING] == 0 and not _next_level(work, state):
            break
        sign = state[GROWING]
        side = 0 if sign > 0 else 1
        level = sign * state[LEVEL + side]
        limits = (state[LEVEL] + (1 - side), state[LEVEL + 1] + side)
        while state[POSITION] < state[COUNT] and budget > 0:
            v = work[CURRENT, state[POSITION]]
            arc, last = first[v], first[v + 1]
            budget -= last - arc
            while arc < last and work[LABEL, v] == level:
                w = head[arc]
                label = work[LABEL, w]
                if (label != 0 and (label > 0) == (sign > 0)) or not capacity[arc if sign > 0 else sister[arc]] > 0.0:
                    arc += 1
                elif label == 0:
                    work[LABEL, w] = level + sign
                    work[PARENT, w] = sister[arc]
                    if not work[LISTED, w] & (1 + side):
                        work[LISTED, w] |= 1 + side
                        work[PENDING + side, state[PENDING_COUNT + side]] = w
                        state[PENDING_COUNT + side] += 1
                    arc += 1
                else:
                    bridge = arc if sign > 0 else sister[arc]
                    f, middle, cut = _augment(head, sister, capacity, excess, work, bridge)
                    flow += f
                    if f == np.inf:
                        state[CLOSED] = ENDLESS
                        return flow
                    budget -= abs(level) + abs(label)
                    for which in range(2):
                        begin, end = (0, middle) if which == 0 else (middle, cut)
                        if begin < end:
                            of = 1 - 2 * which
                            lost, seen = _lose(first, head, sister, capacity, work, begin, end, of)
                            budget -= seen
                            if lost:
                                _settle(first, head, sister, capacity, work, state, lost, of, limits[which])
            state[POSITION] += 1
        if state[POSITION] == state[COUNT]:
            state[LEVEL + side] += 1
            state[GROWING] = 0
    return flow
