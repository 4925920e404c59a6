"""Elimination on sparse graphs in linear time: primal graph, trees, components, symbolic elimination.

Invariant: graphs are compressed rows (``offsets``, ``neighbours``), both directions of an edge listed, variables of one
state without neighbours. Everything but elimination itself is linear in the graph; that is linear in the cliques.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["component_of", "grown", "primal_graph", "sort_by_stage", "strip_leaves", "symbolic_elimination"]


@kernel
def grown(buffer: Any, used: int, needed: int) -> Any:
    """``buffer`` with room for ``needed`` more entries after the first ``used``."""
    if used + needed <= buffer.size:
        return buffer
    larger = np.empty(max(2 * buffer.size, used + needed), np.int32)
    for k in range(used):
        larger[k] = buffer[k]
    return larger


@kernel
def primal_graph(cards: Any, scope_offsets: Any, scopes: Any) -> tuple[Any, Any]:
    """Neighbours of every variable in compressed rows; variables of one state have none and are nobody's."""
    n = cards.size
    m = scope_offsets.size - 1
    start = np.zeros(n + 2, np.int64)
    for k in range(scopes.size):
        start[scopes[k] + 2] += 1
    for v in range(n):
        start[v + 2] += start[v + 1]
    factors = np.empty(scopes.size, np.int32)
    for f in range(m):
        for k in range(scope_offsets[f], scope_offsets[f + 1]):
            v = scopes[k]
            factors[start[v + 1]] = f
            start[v + 1] += 1
    offsets = np.zeros(n + 1, np.int64)
    neighbours = np.empty(4 * scopes.size + 16, np.int32)
    stamp = np.full(n, -1, np.int32)
    used = 0
    for v in range(n):
        if cards[v] > 1:
            stamp[v] = v
            for i in range(start[v], start[v + 1]):
                f = factors[i]
                if used + scope_offsets[f + 1] - scope_offsets[f] > neighbours.size:
                    neighbours = grown(neighbours, used, scope_offsets[f + 1] - scope_offsets[f])
                for k in range(scope_offsets[f], scope_offsets[f + 1]):
                    u = scopes[k]
                    if stamp[u] != v and cards[u] > 1:
                        stamp[u] = v
                        neighbours[used] = u
                        used += 1
        offsets[v + 1] = used
    return offsets, neighbours[:used]


@kernel
def strip_leaves(cards: Any, offsets: Any, neighbours: Any, stage: Any, alive: Any, order: Any) -> int:
    """Eliminate vertices of degree at most one as long as there are any, in linear time; returns how many.

    Clears ``alive``. Only vertices of the lowest stage alive are taken.
    """
    n = cards.size
    degree = np.empty(n, np.int32)
    done = 0
    left = np.zeros(128, np.int64)
    for v in range(n):
        degree[v] = offsets[v + 1] - offsets[v]
        alive[v] = cards[v] > 1
        if alive[v]:
            left[stage[v]] += 1
    for s in range(128):
        if left[s] == 0:
            continue
        for v in range(n):
            u = v
            while u >= 0 and alive[u] and degree[u] <= 1 and stage[u] == s:
                alive[u] = False
                order[done] = u
                done += 1
                left[s] -= 1
                parent = -1
                if degree[u] == 1:
                    k = offsets[u]
                    while not alive[neighbours[k]]:
                        k += 1
                    parent = neighbours[k]
                    degree[parent] -= 1
                u = parent
        if left[s] > 0:
            break
    return done


@kernel
def component_of(root: int, offsets: Any, neighbours: Any, alive: Any, members: Any) -> int:
    """Write the living vertices reachable from ``root`` to ``members``, clearing ``alive``; returns how many."""
    alive[root] = False
    members[0] = root
    head = 0
    end = 1
    while head < end:
        v = members[head]
        head += 1
        for k in range(offsets[v], offsets[v + 1]):
            u = neighbours[k]
            if alive[u]:
                alive[u] = False
                members[end] = u
                end += 1
    return end


@kernel
def symbolic_elimination(cards: Any, offsets: Any, neighbours: Any, order: Any) -> tuple[Any, Any, float]:
    """Higher neighbours of every vertex of an order, nearest in the order first, and log2 of the total states.

    The higher set of a vertex is the union of its later neighbours and its children's higher sets, where the parent
    of a vertex is the first of its higher set: every set is merged once, so time is linear in the result.
    """
    n = cards.size
    steps = order.size
    position = np.full(n, -1, np.int32)
    for i in range(steps):
        position[order[i]] = i
    first_child = np.full(steps, -1, np.int32)
    sibling = np.full(steps, -1, np.int32)
    stamp = np.full(steps, -1, np.int32)
    starts = np.zeros(steps + 1, np.int64)
    weights = np.empty(steps, np.float64)
    absorbed = np.zeros(steps, np.uint8)
    sets = np.empty(max(neighbours.size, 16), np.int32)
    logs = np.empty(n, np.float64)
    last_card = -1
    last_log = 0.0
    for v in range(n):
        if cards[v] != last_card:
            last_card = cards[v]
            last_log = np.log2(np.float64(last_card))
        logs[v] = last_log
    used = 0
    counts = np.zeros(steps + 1, np.int64)
    heaviest = 0.0
    for i in range(steps):
        v = order[i]
        parent = steps
        weight = logs[v]
        stamp[i] = i
        sets = grown(sets, used, offsets[v + 1] - offsets[v])
        for k in range(offsets[v], offsets[v + 1]):
            p = position[neighbours[k]]
            if p > i:
                stamp[p] = i
                sets[used] = p
                used += 1
                weight += logs[neighbours[k]]
                counts[p] += 1
                parent = min(parent, p)
        child = first_child[i]
        while child >= 0:
            sets = grown(sets, used, starts[child + 1] - starts[child])
            for k in range(starts[child], starts[child + 1]):
                p = sets[k]
                if stamp[p] != i:
                    stamp[p] = i
                    sets[used] = p
                    used += 1
                    weight += logs[order[p]]
                    counts[p] += 1
                    parent = min(parent, p)
            child = sibling[child]
        starts[i + 1] = used
        size = used - starts[i]
        child = first_child[i]
        while child >= 0:
            if starts[child + 1] - starts[child] == size + 1:
                absorbed[i] = 1
            child = sibling[child]
        if parent < steps:
            sibling[i] = first_child[parent]
            first_child[parent] = i
        weights[i] = weight
        heaviest = max(heaviest, weight)
    total = 0.0
    for i in range(steps):
        if absorbed[i] == 0 and weights[i] > heaviest - 64.0:
            total += np.exp2(weights[i] - heaviest)
    # Sort every set by position, in linear time: list the sets each position is in, then walk the positions.
    begin = 0
    for p in range(steps + 1):
        begin, counts[p] = begin + counts[p], begin
    members = np.empty(used, np.int32)
    for i in range(steps):
        for k in range(starts[i], starts[i + 1]):
            p = sets[k]
            members[counts[p]] = i
            counts[p] += 1
    higher = np.empty(used, np.int32)
    fill_at = starts[:steps].copy()
    k = 0
    for p in range(steps):
        while k < counts[p]:
            i = members[k]
            higher[fill_at[i]] = order[p]
            fill_at[i] += 1
            k += 1
    log2_states = heaviest + np.log2(total) if steps else 0.0
    return starts, higher, log2_states


@kernel
def sort_by_stage(order: Any, stage: Any) -> None:
    """Stable sort by stage: cliques stay as they are, because stages never fall towards the root of the tree."""
    counts = np.zeros(129, np.int64)
    sorted_already = True
    for i in range(order.size):
        counts[stage[order[i]] + 1] += 1
        if i > 0 and stage[order[i]] < stage[order[i - 1]]:
            sorted_already = False
    if sorted_already:
        return
    for s in range(128):
        counts[s + 1] += counts[s]
    old = order.copy()
    for v in old:
        order[counts[stage[v]]] = v
        counts[stage[v]] += 1
