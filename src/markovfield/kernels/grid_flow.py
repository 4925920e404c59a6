"""Maximum flow on a rectangle whose nodes are joined to their four neighbours, the source and the sink.

The rectangle lies inside a rim of nodes without capacities, so that no neighbour has to be checked for being there.
Node ``v`` has its neighbours at ``v + steps[d]`` for ``d`` = right, left, below, above, and ``d ^ 1`` is the way back.
There are no lists of arcs: ``capacity[4 v + d]`` is what can still flow from ``v`` towards ``d``.

Two trees of shortest paths grow level by level, one from the source and one into the sink, and are kept while flow is
pushed along the paths on which they meet (incremental breadth-first search, Goldberg, Hed, Kaplan, Tarjan and Werneck
2011). A saturated arc cuts a subtree off. Those of its nodes that have no other parent one level higher are collected
in order of their labels and then given their new distances by a search of their own, each once, so that labels stay
true distances and nodes that are cut off for good are let go at once.
"""

from __future__ import annotations

from markovfield.kernels._flags import kernel

__all__ = [
    "BUCKET",
    "CLOSED",
    "FLOW_ROWS",
    "LABEL",
    "NO_PARENT",
    "PARENT",
    "clear_grid",
    "grow_grid",
    "plant",
    "push_neighbours",
]

# Rows of `work`, int32[FLOW_ROWS, n]: the level of each node in its tree (positive from the source, negative into the
# sink, 0 in neither), and lists.
LABEL, CUT_OFF, QUEUE, LOST, BUCKET, LINK, CURRENT, PENDING = 0, 1, 2, 3, 4, 5, 6, 7
FLOW_ROWS = 9
# Rows of `tags`, int8[2, n]: the direction of the parent, and in which lists of pending nodes a node is (bits).
PARENT, LISTED = 0, 1
TERMINAL, ORPHAN, NO_PARENT = 4, 5, 6
# Entries of `state`, int64[8]: levels of both trees, which one is growing, where, of how many nodes, the lengths of
# both pending lists, and which tree is closed at the end (1: source, -1: sink, 0: not done).
LEVEL, GROWING, POSITION, COUNT, PENDING_COUNT, CLOSED = 0, 2, 3, 4, 5, 7
# How many times as many outermost nodes one tree must have for the other to grow, whatever their levels.
UNEVEN = 8


@kernel
def push_neighbours(nodes, steps, capacity, excess):
    """Send what ``nodes`` can give their neighbours directly; returns the flow. This saves most of the short paths."""
    flow = 0.0
    for k in range(len(nodes)):
        v = nodes[k]
        if excess[v] == 0.0:
            continue
        for d in range(4):
            w = v + steps[d]
            if excess[v] > 0.0 and capacity[4 * v + d] > 0.0 and excess[w] < 0.0:
                f = min(excess[v], capacity[4 * v + d], -excess[w])
                capacity[4 * v + d] -= f
                capacity[4 * w + (d ^ 1)] += f
                excess[v] -= f
                excess[w] += f
                flow += f
    return flow


@kernel
def plant(nodes, excess, work, tags, state):
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
        tags[PARENT, v] = NO_PARENT
        tags[LISTED, v] = 0
        if excess[v] != 0.0:
            side = 0 if excess[v] > 0.0 else 1
            work[LABEL, v] = 1 - 2 * side
            tags[PARENT, v] = TERMINAL
            tags[LISTED, v] = 1 + side
            work[PENDING + side, state[PENDING_COUNT + side]] = v
            state[PENDING_COUNT + side] += 1


@kernel
def clear_grid(nodes, capacity, excess, work, tags):
    """Take nodes out again: no excess, no arcs that leave them, no place in a tree."""
    for k in range(len(nodes)):
        v = nodes[k]
        for d in range(4):
            capacity[4 * v + d] = 0.0
        excess[v] = 0.0
        work[LABEL, v] = 0
        tags[PARENT, v] = NO_PARENT


@kernel
def _augment(steps, capacity, excess, work, tags, a, d):
    """Push what the path through the arc from ``a`` towards ``d`` takes.

    Returns the flow and how many nodes it cut off in the tree of the source and in all; they are listed in `CUT_OFF`,
    each tree's by rising level.
    """
    b = a + steps[d]
    f = capacity[4 * a + d]
    v = a
    while tags[PARENT, v] != TERMINAL:
        p = tags[PARENT, v]
        v += steps[p]
        f = min(f, capacity[4 * v + (p ^ 1)])
    f = min(f, excess[v])
    v = b
    while tags[PARENT, v] != TERMINAL:
        p = tags[PARENT, v]
        f = min(f, capacity[4 * v + p])
        v += steps[p]
    f = min(f, -excess[v])
    capacity[4 * a + d] -= f
    capacity[4 * b + (d ^ 1)] += f
    cut = 0
    from_source = 0
    for side in range(2):
        v = a if side == 0 else b
        sign = 1 - 2 * side
        begin = cut
        while tags[PARENT, v] != TERMINAL:
            p = tags[PARENT, v]
            u = v + steps[p]
            forward = 4 * u + (p ^ 1) if side == 0 else 4 * v + p
            back = 4 * v + p if side == 0 else 4 * u + (p ^ 1)
            capacity[forward] -= f
            capacity[back] += f
            if capacity[forward] == 0.0:
                tags[PARENT, v] = ORPHAN
                work[CUT_OFF, cut] = v
                cut += 1
            v = u
        excess[v] -= sign * f
        if excess[v] == 0.0:
            tags[PARENT, v] = ORPHAN
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
def _lose(steps, capacity, work, tags, begin, end, sign):
    """Give orphans another parent at the same level; list in `LOST` those without, by rising level, children included.

    Returns how many are lost, and how many were looked at.
    """
    head = tail = lost = seen = 0
    while begin < end or head < tail:
        if begin < end and (
            head == tail or sign * work[LABEL, work[CUT_OFF, begin]] <= sign * work[LABEL, work[QUEUE, head]]
        ):
            v = work[CUT_OFF, begin]
            begin += 1
        else:
            v = work[QUEUE, head]
            head += 1
        seen += 1
        want = work[LABEL, v] - sign
        parent = NO_PARENT
        if want != 0:
            for d in range(4):
                u = v + steps[d]
                if (
                    work[LABEL, u] == want
                    and tags[PARENT, u] != NO_PARENT
                    and capacity[4 * u + (d ^ 1) if sign > 0 else 4 * v + d] > 0.0
                ):
                    parent = d
                    break
        tags[PARENT, v] = parent
        if parent == NO_PARENT:
            work[LOST, lost] = v
            lost += 1
            for d in range(4):
                u = v + steps[d]
                if tags[PARENT, u] == d ^ 1:
                    tags[PARENT, u] = ORPHAN
                    work[QUEUE, tail] = u
                    tail += 1
    return lost, seen


@kernel
def _settle(steps, capacity, work, tags, state, lost, sign, limit):
    """Find the new levels of lost nodes, up to ``limit``; the others leave the tree."""
    low, high = limit + 1, 0
    for i in range(lost):
        v = work[LOST, i]
        best = limit
        for d in range(4):
            u = v + steps[d]
            label = sign * work[LABEL, u]
            if (
                0 < label < best
                and tags[PARENT, u] != NO_PARENT
                and capacity[4 * u + (d ^ 1) if sign > 0 else 4 * v + d] > 0.0
            ):
                best = label
        if best < limit:
            work[LINK, v] = work[BUCKET, best + 1]
            work[BUCKET, best + 1] = v
            low, high = min(low, best + 1), max(high, best + 1)
    head = tail = 0
    level = low
    side = 0 if sign > 0 else 1
    while level <= high or head < tail:
        if level <= high:
            tail = _seeds(steps, capacity, work, tags, level, sign, tail)
        end = tail
        while head < end:
            v = work[QUEUE, head]
            head += 1
            if level == limit:
                # Not scanned at this level yet.
                if not tags[LISTED, v] & (1 + side):
                    tags[LISTED, v] |= 1 + side
                    work[PENDING + side, state[PENDING_COUNT + side]] = v
                    state[PENDING_COUNT + side] += 1
                continue
            for d in range(4):
                u = v + steps[d]
                if (
                    tags[PARENT, u] == NO_PARENT
                    and sign * work[LABEL, u] > 0
                    and capacity[4 * v + d if sign > 0 else 4 * u + (d ^ 1)] > 0.0
                ):
                    work[LABEL, u] = sign * (level + 1)
                    tags[PARENT, u] = d ^ 1
                    work[QUEUE, tail] = u
                    tail += 1
        level += 1
    for i in range(lost):
        if tags[PARENT, work[LOST, i]] == NO_PARENT:
            work[LABEL, work[LOST, i]] = 0


@kernel
def _seeds(steps, capacity, work, tags, level, sign, tail):
    """Lost nodes of one bucket that are still without a parent take one that was never lost; they join the queue."""
    v = work[BUCKET, level]
    work[BUCKET, level] = -1
    while v >= 0:
        if tags[PARENT, v] == NO_PARENT:
            for d in range(4):
                u = v + steps[d]
                if (
                    sign * work[LABEL, u] == level - 1
                    and tags[PARENT, u] != NO_PARENT
                    and capacity[4 * u + (d ^ 1) if sign > 0 else 4 * v + d] > 0.0
                ):
                    tags[PARENT, v] = d
                    break
            work[LABEL, v] = sign * level
            work[QUEUE, tail] = v
            tail += 1
        v = work[LINK, v]
    return tail


@kernel
def _next_level(work, tags, state):
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
        tags[LISTED, v] &= 2 - side
        if work[LABEL, v] == sign * state[LEVEL + side]:
            work[CURRENT, count] = v
            count += 1
    state[PENDING_COUNT + side] = 0
    state[GROWING], state[POSITION], state[COUNT] = sign, 0, count
    return True


@kernel
def grow_grid(steps, capacity, excess, work, tags, state, budget):
    """Grow and push until no path is left or about ``budget`` nodes were looked at; returns the flow of this call.

    ``state[CLOSED]`` is then 1 where the nodes of positive label are the source's side of a smallest cut, -1 where
    those of negative label are the sink's side, and 0 where the work has to go on.
    """
    flow = 0.0
    while budget > 0:
        if state[GROWING] == 0 and not _next_level(work, tags, state):
            break
        sign = state[GROWING]
        side = 0 if sign > 0 else 1
        level = sign * state[LEVEL + side]
        limits = (state[LEVEL] + (1 - side), state[LEVEL + 1] + side)
        while state[POSITION] < state[COUNT] and budget > 0:
            v = work[CURRENT, state[POSITION]]
            budget -= 4
            d = 0
            while d < 4 and work[LABEL, v] == level:
                w = v + steps[d]
                if capacity[4 * v + d if sign > 0 else 4 * w + (d ^ 1)] > 0.0:
                    label = work[LABEL, w]
                    if label == 0:
                        work[LABEL, w] = level + sign
                        tags[PARENT, w] = d ^ 1
                        if not tags[LISTED, w] & (1 + side):
                            tags[LISTED, w] |= 1 + side
                            work[PENDING + side, state[PENDING_COUNT + side]] = w
                            state[PENDING_COUNT + side] += 1
                    elif (label > 0) != (sign > 0):
                        a, direction = (v, d) if sign > 0 else (w, d ^ 1)
                        f, middle, cut = _augment(steps, capacity, excess, work, tags, a, direction)
                        flow += f
                        budget -= abs(level) + abs(label)
                        for which in range(2):
                            begin, end = (0, middle) if which == 0 else (middle, cut)
                            if begin < end:
                                of = 1 - 2 * which
                                lost, seen = _lose(steps, capacity, work, tags, begin, end, of)
                                budget -= 4 * seen
                                if lost:
                                    _settle(steps, capacity, work, tags, state, lost, of, limits[which])
                        continue
                d += 1
            state[POSITION] += 1
        if state[POSITION] == state[COUNT]:
            state[LEVEL + side] += 1
            state[GROWING] = 0
    return flow
