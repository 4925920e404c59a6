"""Elimination on sparse graphs: primal graph, trees, components, very large graphs, and symbolic elimination."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.kernels._flags import kernel
from markovfield.kernels.bitsets import FIXED

__all__ = ["component_of", "primal_graph", "sparse_greedy", "strip_leaves", "symbolic_elimination"]


@kernel
def _grown(buffer: Any, used: int, needed: int) -> Any:
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
                    neighbours = _grown(neighbours, used, scope_offsets[f + 1] - scope_offsets[f])
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
def component_of(root: int, offsets: Any, neighbours: Any, alive: Any, members: Any, used: int) -> int:
    """Append the living vertices reachable from ``root`` to ``members``, clearing ``alive``; returns the new end."""
    alive[root] = False
    members[used] = root
    end = used + 1
    while used < end:
        v = members[used]
        used += 1
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
        sets = _grown(sets, used, offsets[v + 1] - offsets[v])
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
            sets = _grown(sets, used, starts[child + 1] - starts[child])
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
def sparse_greedy(
    cards: Any, stage: Any, offsets: Any, neighbours: Any, members: Any, limit: float, order: Any
) -> bool:
    """Minimum-weight order of a large component by a quotient graph: memory linear in the graph and its cliques.

    Eliminated vertices stay as *elements* whose members are cliques, so fill is never written down; the weight of a
    vertex is the usual upper bound that counts overlaps of old elements twice (Amestoy, Davis and Duff 1996).
    ``order`` receives the members; False, at once, when a clique weighs more than ``limit`` (log2).
    """
    n = cards.size
    m = members.size
    local = np.full(n, -1, np.int32)
    for i in range(m):
        local[members[i]] = i
    starts = np.zeros(m + 1, np.int64)
    for i in range(m):
        v = members[i]
        count = 0
        for k in range(offsets[v], offsets[v + 1]):
            if local[neighbours[k]] >= 0:
                count += 1
        starts[i + 1] = starts[i] + count
    # Entries of i: first its elements, then its plain neighbours; the list never grows.
    entries = np.empty(starts[m], np.int32)
    n_elements = np.zeros(m, np.int32)
    length = np.empty(m, np.int32)
    own = np.empty(m, np.int64)
    weight = np.empty(m, np.int64)
    highest = 0
    for i in range(m):
        v = members[i]
        own[i] = np.int64(np.log2(np.float64(cards[v])) * FIXED)
        highest = max(highest, np.int64(stage[v]))
        at = starts[i]
        for k in range(offsets[v], offsets[v + 1]):
            u = local[neighbours[k]]
            if u >= 0:
                entries[at] = u
                at += 1
        length[i] = at - starts[i]
    for i in range(m):
        total = own[i]
        for k in range(starts[i], starts[i + 1]):
            total += own[entries[k]]
        weight[i] = total
    heap = np.arange(m).astype(np.int32)
    where = heap.copy()
    key = np.empty(m, np.int64)
    for i in range(m):
        key[i] = (np.int64(stage[members[i]]) << 48) + weight[i]
    for i in range(m // 2, -1, -1):
        _sift_down(heap, where, key, i, m)
    element_start = np.zeros(m, np.int64)
    element_end = np.zeros(m, np.int64)
    element_weight = np.zeros(m, np.int64)
    live_element = np.zeros(m, np.uint8)
    outside = np.zeros(m, np.int64)
    outside_stamp = np.full(m, -1, np.int32)
    stamp = np.full(m, -1, np.int32)
    pool = np.empty(2 * starts[m] + 16, np.int32)
    used = np.int64(0)
    for step in range(m):
        p = heap[0]
        last = heap[m - step - 1]
        heap[0] = last
        where[last] = 0
        _sift_down(heap, where, key, 0, m - step - 1)
        order[step] = members[p]
        stamp[p] = m + step
        begin = used
        total = own[p]
        for k in range(starts[p], starts[p] + length[p]):
            if k - starts[p] < n_elements[p]:
                e = entries[k]
                if live_element[e] == 0:
                    continue
                live_element[e] = 0
                pool = _grown(pool, used, element_end[e] - element_start[e])
                for j in range(element_start[e], element_end[e]):
                    u = pool[j]
                    if stamp[u] < step:
                        stamp[u] = step
                        pool[used] = u
                        used += 1
                        total += own[u]
            else:
                pool = _grown(pool, used, 1)
                u = entries[k]
                if stamp[u] < step:
                    stamp[u] = step
                    pool[used] = u
                    used += 1
                    total += own[u]
        if total > limit * FIXED:
            return False
        if used - begin == m - step - 1 and highest == 0:
            for j in range(begin, used):
                order[step + 1 + j - begin] = members[pool[j]]
            return True
        element_start[p], element_end[p] = begin, used
        element_weight[p] = total - own[p]
        live_element[p] = 1
        for j in range(begin, used):
            i = pool[j]
            for k in range(starts[i], starts[i] + n_elements[i]):
                e = entries[k]
                if live_element[e] == 1:
                    if outside_stamp[e] != step:
                        outside_stamp[e] = step
                        outside[e] = element_weight[e]
                    outside[e] -= own[i]
        for j in range(begin, used):
            i = pool[j]
            at = starts[i]
            kept_elements = 0
            bound = total
            n_before = n_elements[i]
            for k in range(starts[i], starts[i] + n_before):
                e = entries[k]
                if live_element[e] == 1:
                    if outside[e] <= 0:
                        live_element[e] = 0
                        continue
                    entries[at] = e
                    at += 1
                    kept_elements += 1
                    bound += outside[e]
            free = at
            for k in range(starts[i] + n_before, starts[i] + length[i]):
                u = entries[k]
                if stamp[u] < step:
                    entries[at] = u
                    at += 1
                    bound += own[u]
            # There is room: p, or an element absorbed into it, has just left this list.
            entries[at] = entries[free]
            entries[free] = p
            at += 1
            n_elements[i] = kept_elements + 1
            length[i] = at - starts[i]
            weight[i] = bound
            new = (np.int64(stage[members[i]]) << 48) + bound
            old = key[i]
            key[i] = new
            if new < old:
                _sift_up(heap, where, key, where[i])
            elif new > old:
                _sift_down(heap, where, key, where[i], m - step - 1)
    return True


@kernel
def _sift_down(heap: Any, where: Any, key: Any, i: int, size: int) -> None:
    """Move the entry at i of a binary heap down to its place."""
    if i >= size:
        return
    moving = heap[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[moving]:
            break
        heap[i] = heap[child]
        where[heap[i]] = i
        i = child
    heap[i] = moving
    where[moving] = i


@kernel
def _sift_up(heap: Any, where: Any, key: Any, i: int) -> None:
    """Move the entry at i of a binary heap up to its place."""
    moving = heap[i]
    while i > 0 and key[heap[(i - 1) // 2]] > key[moving]:
        heap[i] = heap[(i - 1) // 2]
        where[heap[i]] = i
        i = (i - 1) // 2
    heap[i] = moving
    where[moving] = i
