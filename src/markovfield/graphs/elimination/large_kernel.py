"""Orders of very large sparse graphs: a sweep, and minimum weight on a quotient graph.

Invariant: memory is linear in the graph and its cliques; fill is never written down. Free to change: the rules tried on
a component, and `MOST_ENTRIES`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.graphs.elimination.sparse_kernel import component_of, grown, sort_by_stage
from markovfield.kernels.bitsets import FIXED
from markovfield.kernels.compiler import kernel

__all__ = ["order_large"]

MOST_ENTRIES = 1 << 27
"""Orders whose cliques have more members than this in all (half a gigabyte) are given up: nobody could run them."""


@kernel
def order_large(cards: Any, stage: Any, offsets: Any, neighbours: Any, order: Any, n_large: int, limit: float) -> float:
    """Order the components made up by the last ``n_large`` entries of ``order``, in place; then sort by stage.

    Takes the better of minimum weight and a sweep from one end of a component to the other. Returns log2 of the
    largest component's states (an upper bound on it); when that is more than ``limit``, or infinite, the order is
    unfinished.
    """
    alive = np.zeros(cards.size, np.bool_)
    done = order.size - n_large
    for i in range(done, order.size):
        alive[order[i]] = True
    buffer = np.empty(n_large, np.int32)
    local = np.full(cards.size, -1, np.int32)
    heaviest = 0.0
    roots = order[done:].copy()
    for root in roots:
        if not alive[root]:
            continue
        m = component_of(root, offsets, neighbours, alive, buffer)
        members = buffer[:m]
        own = np.empty(m, np.int64)
        for i in range(m):
            local[members[i]] = i
            own[i] = np.int64(np.log2(np.float64(cards[members[i]])) * FIXED)
        swept = np.empty(m, np.int32)
        reached = _sweep(own, stage, offsets, neighbours, members, local, swept)
        greedy = _minimum_weight(own, stage, offsets, neighbours, members, local, min(reached, limit), order[done:])
        if reached <= greedy:
            for i in range(m):
                order[done + i] = swept[i]
        done += m
        heaviest = max(heaviest, min(reached, greedy))
        if heaviest > limit or heaviest == np.inf:
            return heaviest
    sort_by_stage(order, stage)
    return heaviest


@kernel
def _sweep(own: Any, stage: Any, offsets: Any, neighbours: Any, members: Any, local: Any, order: Any) -> float:
    """Breadth-first order from a vertex far from all others: the best there is for long thin graphs, and near it
    for grids, where local rules are far off. Returns log2 of the states of all fronts, or infinity."""
    m = members.size
    position = np.empty(m, np.int32)
    start = 0
    for _ in range(3):
        for i in range(m):
            position[i] = -1
        order[0] = start
        position[start] = 0
        end = 1
        for head in range(m):
            v = members[order[head]]
            for k in range(offsets[v], offsets[v + 1]):
                u = local[neighbours[k]]
                if u >= 0 and position[u] < 0:
                    position[u] = end
                    order[end] = u
                    end += 1
        start = order[m - 1]
    # Stages break the sweep; vertices are then taken stage by stage, in the order of the sweep.
    at = 0
    done = order.copy()
    for s in range(128):
        if at == m:
            break
        for i in range(m):
            if stage[members[done[i]]] == s:
                order[at] = done[i]
                position[done[i]] = at
                at += 1
    # A vertex is in the front from its first neighbour's turn to its own.
    front = np.zeros((2, m + 1), np.int64)
    for i in range(m):
        first = position[i]
        for k in range(offsets[members[i]], offsets[members[i] + 1]):
            u = local[neighbours[k]]
            if u >= 0:
                first = min(first, position[u])
        front[0, first] += own[i]
        front[0, position[i] + 1] -= own[i]
        front[1, first] += 1
        front[1, position[i] + 1] -= 1
    heaviest = 0.0
    total = 0.0
    weight = 0
    size = 0
    entries = 0
    for i in range(m):
        weight += front[0, i]
        size += front[1, i]
        entries += size
        heaviest, total = _added(heaviest, total, weight)
        order[i] = members[order[i]]
    return heaviest + np.log2(total) if entries <= MOST_ENTRIES else np.inf


@kernel
def _added(top: float, total: float, weight: int) -> tuple[float, float]:
    """The sum ``total * 2**top`` and one more clique of fixed-point weight, with ``top`` the largest so far."""
    x = weight / FIXED
    if x > top:
        return x, total * np.exp2(top - x) + 1.0
    return top, total + np.exp2(x - top)


@kernel
def _minimum_weight(
    own: Any, stage: Any, offsets: Any, neighbours: Any, members: Any, local: Any, limit: float, order: Any
) -> float:
    """Minimum-weight order by a quotient graph: memory linear in the graph and its cliques.

    Eliminated vertices stay as *elements* whose members are cliques, so fill is never written down; the weight of a
    vertex is the usual upper bound that counts overlaps of old elements twice (Amestoy, Davis and Duff 1996).
    ``order`` receives the members. Returns log2 of the states of all cliques, or,
    at once, of those so far when they are more than ``limit``.
    """
    m = members.size
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
    key = np.empty(m, np.int64)
    highest = 0
    heaviest = 0.0
    states = 0.0
    for i in range(m):
        v = members[i]
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
        key[i] = (np.int64(stage[members[i]]) << 48) + total
    heap = np.arange(m).astype(np.int32)
    where = heap.copy()
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
                pool = grown(pool, used, element_end[e] - element_start[e])
                for j in range(element_start[e], element_end[e]):
                    u = pool[j]
                    if stamp[u] < step:
                        stamp[u] = step
                        pool[used] = u
                        used += 1
                        total += own[u]
            else:
                pool = grown(pool, used, 1)
                u = entries[k]
                if stamp[u] < step:
                    stamp[u] = step
                    pool[used] = u
                    used += 1
                    total += own[u]
        heaviest, states = _added(heaviest, states, total)
        if used > MOST_ENTRIES:
            return np.inf
        if heaviest + np.log2(states) > limit:
            return heaviest + np.log2(states)
        if used - begin == m - step - 1 and highest == 0:
            for j in range(begin, used):
                order[step + 1 + j - begin] = members[pool[j]]
            return heaviest + np.log2(states)
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
            new = (np.int64(stage[members[i]]) << 48) + bound
            old = key[i]
            key[i] = new
            if new < old:
                _sift_up(heap, where, key, where[i])
            elif new > old:
                _sift_down(heap, where, key, where[i], m - step - 1)
    return heaviest + np.log2(states)


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
