"""Approximate minimum degree: the order of elimination for graphs that nothing is known of (Amestoy, Davis, Duff 1996).

Eliminated vertices stay as *elements*, which stand for the clique of their members, so fill is never written down.
Vertices that have become indistinguishable are one *supervariable* from then on, and degrees are bounds that count the
overlap of old elements more than once. `markovfield.graphs.elimination` has minimum weight, for tables that grow
with the product of cardinalities; it knows no supervariables, which here save most of the work.

Invariant: entries of a living vertex are its elements, then its plain neighbours, in the room that its neighbours had
at first; members of elements are in a pool that grows. Free to change: what counts as dense.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["minimum_degree"]


@kernel
def minimum_degree(offsets: Any, rows: Any) -> Any:
    """Order of elimination for a symmetric pattern by columns; entries on the diagonal do not matter."""
    n = offsets.size - 1
    entries = np.empty(rows.size, np.int32)
    start = np.empty(n + 1, np.int64)
    length = np.zeros(n, np.int32)
    n_elements = np.zeros(n, np.int32)
    size = np.ones(n, np.int32)
    degree = np.zeros(n, np.int32)
    used = 0
    for i in range(n):
        start[i] = used
        for e in range(offsets[i], offsets[i + 1]):
            if rows[e] != i:
                entries[used] = rows[e]
                used += 1
        length[i] = used - start[i]
        degree[i] = length[i]
    # Vertices by degree, in doubly linked lists.
    head = np.full(n + 1, -1, np.int32)
    following = np.full(n, -1, np.int32)
    preceding = np.full(n, -1, np.int32)
    order = np.empty(n, np.int32)
    # Vertices with very many neighbours go last: looking at them again and again would take all the time.
    dense = max(16.0, 10.0 * np.sqrt(n))
    n_dense = 0
    for i in range(n - 1, -1, -1):
        if degree[i] > dense:
            n_dense += 1
            order[n - n_dense] = i
            size[i] = 0
        else:
            _insert(head, following, preceding, degree[i], i)
    left = n - n_dense
    # Vertices merged into another one, to be listed after it.
    merged_into_head = np.full(n, -1, np.int32)
    merged_next = np.full(n, -1, np.int32)
    merged_tail = np.arange(n).astype(np.int32)
    element_start = np.zeros(n, np.int64)
    element_end = np.zeros(n, np.int64)
    element_degree = np.zeros(n, np.int32)
    alive = np.zeros(n, np.bool_)
    outside = np.zeros(n, np.int32)
    outside_stamp = np.full(n, -1, np.int32)
    stamp = np.full(n, -1, np.int32)
    bucket = np.full(n, -1, np.int32)
    bucket_next = np.full(n, -1, np.int32)
    key = np.zeros(n, np.int64)
    compared = np.full(n, -1, np.int64)
    n_compared = 0
    pool = np.empty(rows.size + n + 16, np.int32)
    used = 0
    done = 0
    lowest = 0
    step = np.int32(-1)
    while done < left:
        while head[lowest] < 0:
            lowest += 1
        p = head[lowest]
        _remove(head, following, preceding, degree[p], p)
        step += 1
        # The element that p becomes: everything it was joined to.
        room = int(length[p] - n_elements[p])
        for k in range(start[p], start[p] + n_elements[p]):
            if alive[entries[k]]:
                room += element_end[entries[k]] - element_start[entries[k]]
        if used + room > pool.size:
            pool = _compacted(pool, used, room, element_start, element_end, alive, size, stamp)
            used = pool[pool.size - 1]
        begin = used
        stamp[p] = step
        weight = 0
        for k in range(start[p], start[p] + length[p]):
            e = entries[k]
            if k - start[p] < n_elements[p]:
                if not alive[e]:
                    continue
                alive[e] = False
                for j in range(element_start[e], element_end[e]):
                    i = pool[j]
                    if size[i] > 0 and stamp[i] != step:
                        stamp[i] = step
                        pool[used] = i
                        used += 1
                        weight += size[i]
            elif size[e] > 0 and stamp[e] != step:
                stamp[e] = step
                pool[used] = e
                used += 1
                weight += size[e]
        for j in range(begin, used):
            i = pool[j]
            _remove(head, following, preceding, degree[i], i)
            for k in range(start[i], start[i] + n_elements[i]):
                e = entries[k]
                if alive[e]:
                    if outside_stamp[e] != step:
                        outside_stamp[e] = step
                        outside[e] = element_degree[e]
                    outside[e] -= size[i]
        own = size[p]
        size[p] = 0
        for j in range(begin, used):
            i = pool[j]
            at = start[i]
            total = np.int64(0)
            code = np.int64(p)
            n_before = n_elements[i]
            for k in range(start[i], start[i] + n_before):
                e = entries[k]
                if alive[e]:
                    if outside[e] <= 0:
                        alive[e] = False  # all of its members are in the new element
                        continue
                    entries[at] = e
                    at += 1
                    total += outside[e]
                    code += e
            kept = at - start[i]
            for k in range(start[i] + n_before, start[i] + length[i]):
                u = entries[k]
                if size[u] > 0 and stamp[u] != step:
                    entries[at] = u
                    at += 1
                    total += size[u]
                    code += u
            if total == 0:
                # Joined to nothing outside the new element: eliminated with p at no further cost.
                own += size[i]
                weight -= size[i]
                size[i] = 0
                _append(merged_into_head, merged_next, merged_tail, p, i)
                continue
            # There is room: p, or an element that it took up, has just left this list.
            free = start[i] + kept
            if at > free:
                entries[at] = entries[free]
            entries[free] = p
            at += 1
            n_elements[i] = kept + 1
            length[i] = at - start[i]
            degree[i] = min(np.int64(degree[i]) + 0, total)
            key[i] = code
        _merge_equal(
            pool, begin, used, size, key, entries, start, length, n_elements, degree, bucket, bucket_next, compared,
            n_compared, merged_into_head, merged_next, merged_tail,
        )  # fmt: skip
        n_compared += used - begin
        kept_members = begin
        for j in range(begin, used):
            i = pool[j]
            if size[i] > 0:
                pool[kept_members] = i
                kept_members += 1
                # At most everything that is left.
                d = min(np.int64(degree[i]) + weight - size[i], np.int64(left - done - own - size[i]))
                degree[i] = max(d, 0)
                _insert(head, following, preceding, degree[i], i)
                lowest = min(lowest, degree[i])
        used = kept_members
        element_start[p], element_end[p] = begin, used
        element_degree[p] = weight
        alive[p] = used > begin
        order[done] = p
        done += 1
        i = merged_into_head[p]
        while i >= 0:
            order[done] = i
            done += 1
            i = merged_next[i]
    return order


@kernel
def _insert(head: Any, following: Any, preceding: Any, d: int, i: int) -> None:
    first = head[d]
    following[i] = first
    preceding[i] = -1
    if first >= 0:
        preceding[first] = i
    head[d] = i


@kernel
def _remove(head: Any, following: Any, preceding: Any, d: int, i: int) -> None:
    after, before = following[i], preceding[i]
    if after >= 0:
        preceding[after] = before
    if before >= 0:
        following[before] = after
    else:
        head[d] = after


@kernel
def _append(first: Any, following: Any, tail: Any, p: int, i: int) -> None:
    """List ``i``, and what was merged into it, after ``p``."""
    if first[p] < 0:
        first[p] = i
    else:
        following[tail[p]] = i
    if first[i] >= 0:
        following[i] = first[i]
        tail[p] = tail[i]
    else:
        tail[p] = i


@kernel
def _merge_equal(
    pool: Any,
    begin: int,
    end: int,
    size: Any,
    key: Any,
    entries: Any,
    start: Any,
    length: Any,
    n_elements: Any,
    degree: Any,
    bucket: Any,
    bucket_next: Any,
    compared: Any,
    stamp: int,
    merged_head: Any,
    merged_next: Any,
    merged_tail: Any,
) -> None:
    """Members of the new element that are joined to the same elements and vertices become one supervariable."""
    n = size.size
    for j in range(begin, end):
        i = pool[j]
        if size[i] > 0:
            h = key[i] % n
            bucket_next[i] = bucket[h]
            bucket[h] = i
    for j in range(begin, end):
        if size[pool[j]] == 0:
            continue
        h = key[pool[j]] % n
        i = bucket[h]
        bucket[h] = -1
        while i >= 0 and bucket_next[i] >= 0:
            stamp += 1
            for k in range(start[i], start[i] + length[i]):
                compared[entries[k]] = stamp
            before = i
            other = bucket_next[i]
            while other >= 0:
                same = length[other] == length[i] and n_elements[other] == n_elements[i]
                k = start[other]
                while same and k < start[other] + length[other]:
                    same = compared[entries[k]] == stamp
                    k += 1
                if same:
                    # What `other` is not joined to any more lies outside, and lowers the bound of none.
                    size[i] += size[other]
                    size[other] = 0
                    _append(merged_head, merged_next, merged_tail, i, other)
                    degree[i] = min(degree[i], degree[other])
                    bucket_next[before] = bucket_next[other]
                else:
                    before = other
                other = bucket_next[other]
            i = bucket_next[i]


@kernel
def _compacted(
    pool: Any, used: int, room: int, element_start: Any, element_end: Any, alive: Any, size: Any, stamp: Any
) -> Any:
    """A pool with room, in which only the living members of living elements are kept; its last entry says how many."""
    n = alive.size
    kept = np.int64(0)
    for e in range(n):
        if alive[e]:
            kept += element_end[e] - element_start[e]
    larger = np.empty(max(np.int64(pool.size), 2 * (kept + room) + 16), np.int32)
    used = 0
    for e in range(n):
        if alive[e]:
            begin = used
            for k in range(element_start[e], element_end[e]):
                if size[pool[k]] > 0:
                    larger[used] = pool[k]
                    used += 1
            element_start[e], element_end[e] = begin, used
    larger[larger.size - 1] = used
    return larger
