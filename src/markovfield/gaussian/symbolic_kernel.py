"""Which entries a sparse Cholesky factor has, found without computing any: tree, counts, supernodes, rows.

Sources: the elimination tree of Liu (1990), counts of columns of Gilbert, Ng and Peyton (1994), relaxed supernodes of
Ashcraft and Grimes (1989). Time is nearly linear in the entries of the matrix and of the supernodes' rows; the entries
of the factor are never listed.

Invariant: a supernode is a run of columns with the same rows below them, up to a few zeros; its parent is the supernode
of the first of these rows, and its rows are among the parent's columns and rows. Free to change: when to merge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["column_counts", "elimination_tree", "entry_places", "mirror_entries", "supernode_rows", "supernodes"]


@kernel
def mirror_entries(offsets: Any, rows: Any) -> Any:
    """For every entry of a matrix by columns the place of the entry on the other side of the diagonal.

    An empty array when the pattern is not symmetric, or rows are not in order.
    """
    n = offsets.size - 1
    mirror = np.empty(rows.size, np.int64)
    following = offsets[:n].copy()
    for j in range(n):
        for e in range(offsets[j], offsets[j + 1]):
            i = rows[e]
            if e > offsets[j] and rows[e - 1] >= i:
                return mirror[:0]
            at = following[i]
            if at >= offsets[i + 1] or rows[at] != j:
                return mirror[:0]
            following[i] = at + 1
            mirror[e] = at
    return mirror


@kernel
def elimination_tree(offsets: Any, rows: Any, order: Any) -> Any:
    """Parents in the elimination tree, by position in the order, after putting ``order`` into a postorder of the tree.

    In a postorder every subtree is a run of positions that ends with its root.
    """
    n = order.size
    position = np.empty(n, np.int32)
    for p in range(n):
        position[order[p]] = p
    parent = np.full(n, -1, np.int32)
    ancestor = np.full(n, -1, np.int32)
    for p in range(n):
        v = order[p]
        for e in range(offsets[v], offsets[v + 1]):
            q = position[rows[e]]
            while q < p:
                above = ancestor[q]
                ancestor[q] = p
                if above < 0:
                    parent[q] = p
                    break
                if above == p:
                    break
                q = above
    # Children in the order of their positions, then a walk without recursion.
    child = np.full(n, -1, np.int32)
    sibling = np.full(n, -1, np.int32)
    for p in range(n - 1, -1, -1):
        if parent[p] >= 0:
            sibling[p] = child[parent[p]]
            child[parent[p]] = p
    place = np.empty(n, np.int32)
    done = 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        q = np.int32(root)
        while True:
            while child[q] >= 0:
                q = child[q]
            place[q] = done
            done += 1
            while q != root and sibling[q] < 0:
                q = parent[q]
                place[q] = done
                done += 1
            if q == root:
                break
            q = sibling[q]
    before = order.copy()
    moved = np.full(n, -1, np.int32)
    for p in range(n):
        order[place[p]] = before[p]
        if parent[p] >= 0:
            moved[place[p]] = place[parent[p]]
    return moved


@kernel
def column_counts(offsets: Any, rows: Any, order: Any, parent: Any) -> Any:
    """Entries of every column of the factor, its diagonal included, for an order that is a postorder of its tree.

    Row i of the factor is a subtree of the elimination tree; an entry of the matrix adds to it only as a new leaf,
    which shares with the leaf before it the path above their common ancestor.
    """
    n = order.size
    position = np.empty(n, np.int32)
    for p in range(n):
        position[order[p]] = p
    first = np.full(n, -1, np.int32)
    count = np.zeros(n, np.int64)
    for p in range(n):
        q = np.int32(p)
        count[p] = 1 if first[q] < 0 else 0
        while q >= 0 and first[q] < 0:
            first[q] = p
            q = parent[q]
    highest = np.full(n, -1, np.int32)
    leaf = np.full(n, -1, np.int32)
    ancestor = np.arange(n).astype(np.int32)
    for p in range(n):
        if parent[p] >= 0:
            count[parent[p]] -= 1
        v = order[p]
        for e in range(offsets[v], offsets[v + 1]):
            i = position[rows[e]]
            if i <= p or first[p] <= highest[i]:
                continue
            highest[i] = first[p]
            before = leaf[i]
            leaf[i] = p
            count[p] += 1
            if before >= 0:
                top = before
                while ancestor[top] != top:
                    top = ancestor[top]
                while ancestor[before] != top:
                    ancestor[before], before = top, ancestor[before]
                count[top] -= 1
        if parent[p] >= 0:
            ancestor[p] = parent[p]
    for p in range(n):
        if parent[p] >= 0:
            count[parent[p]] += count[p]
    return count


@kernel
def _worth_merging(columns: int, entries: float, zeros: float) -> bool:
    """Whether a supernode may hold so many zeros, for fewer and larger blocks."""
    if columns <= 8:
        return zeros <= 0.7 * entries
    if columns <= 16:
        return zeros <= 0.35 * entries
    if columns <= 48:
        return zeros <= 0.15 * entries
    return zeros <= 0.05 * entries


@kernel
def supernodes(parent: Any, count: Any, order: Any) -> tuple[Any, Any, Any]:
    """Runs of columns that are factored together, with some zeros where that makes fewer and larger blocks.

    ``order`` and ``parent`` are put in the order of the supernodes. Returns the first column of every supernode
    (``int64[s + 1]``), the parent of each (-1 for roots) and how many rows are below its columns.
    """
    n = parent.size
    node_of = np.empty(n, np.int32)
    start = np.empty(n + 1, np.int64)
    m = 0
    for p in range(n):
        if p == 0 or parent[p - 1] != p or count[p - 1] != count[p] + 1:
            start[m] = p
            m += 1
        node_of[p] = m - 1
    start[m] = n
    # Merged nodes are lists of runs; a child's runs go before its parent's.
    up = np.full(m, -1, np.int32)
    width = np.empty(m, np.int64)
    below = np.empty(m, np.int64)
    zeros = np.zeros(m, np.float64)
    head = np.arange(m).astype(np.int32)
    tail = np.arange(m).astype(np.int32)
    following = np.full(m, -1, np.int32)
    gone = np.zeros(m, np.bool_)
    child = np.full(m, -1, np.int32)
    sibling = np.full(m, -1, np.int32)
    for s in range(m):
        last = start[s + 1] - 1
        width[s] = start[s + 1] - start[s]
        below[s] = count[last] - 1
        if parent[last] >= 0:
            up[s] = node_of[parent[last]]
    for s in range(m - 1, -1, -1):
        if up[s] >= 0:
            sibling[s] = child[up[s]]
            child[up[s]] = s
    for s in range(m):
        # Children that would cost the fewest zeros go first.
        while True:
            best = -1
            best_zeros = np.inf
            c = child[s]
            while c >= 0:
                if not gone[c]:
                    added = np.float64(width[c]) * (width[s] + below[s] - below[c])
                    total = zeros[s] + zeros[c] + added
                    columns = width[s] + width[c]
                    entries = columns * (columns + 1) / 2.0 + np.float64(columns) * below[s]
                    if total < best_zeros and _worth_merging(columns, entries, total):
                        best, best_zeros = c, total
                c = sibling[c]
            if best < 0:
                break
            gone[best] = True
            zeros[s] = best_zeros
            width[s] += width[best]
            following[tail[best]] = head[s]
            head[s] = head[best]
            # Its children are now children of s.
            c = child[best]
            last_child = -1
            while c >= 0:
                up[c] = s
                last_child = c
                c = sibling[c]
            if last_child >= 0:
                sibling[last_child] = child[s]
                child[s] = child[best]
    return _renumbered(start, up, below, width, head, following, gone, child, sibling, order, parent)


@kernel
def _renumbered(
    start: Any,
    up: Any,
    below: Any,
    width: Any,
    head: Any,
    following: Any,
    gone: Any,
    child: Any,
    sibling: Any,
    order: Any,
    parent: Any,
) -> tuple[Any, Any, Any]:
    """Merged nodes in a postorder of their tree, columns with them."""
    m = up.size
    number = np.full(m, -1, np.int32)
    listed = np.empty(m, np.int32)
    done = 0
    pending = np.empty(m, np.int32)
    # Every node is met before its children, so the reverse is a postorder in which children keep their order.
    top = 0
    for root in range(m):
        if up[root] < 0 and not gone[root]:
            pending[top] = root
            top += 1
    while top:
        top -= 1
        s = pending[top]
        listed[done] = s
        done += 1
        c = child[s]
        while c >= 0:
            if not gone[c]:
                pending[top] = c
                top += 1
            c = sibling[c]
    starts = np.zeros(done + 1, np.int64)
    parents = np.full(done, -1, np.int32)
    rows = np.empty(done, np.int64)
    place = np.empty(order.size, np.int32)
    at = 0
    for k in range(done):
        s = listed[done - 1 - k]
        number[s] = k
        rows[k] = below[s]
        r = head[s]
        while r >= 0:
            for p in range(start[r], start[r + 1]):
                place[p] = at
                at += 1
            r = following[r]
        starts[k + 1] = at
    for k in range(done):
        s = listed[done - 1 - k]
        if up[s] >= 0:
            parents[k] = number[up[s]]
    before = order.copy()
    for p in range(order.size):
        order[place[p]] = before[p]
    moved = np.full(order.size, -1, np.int32)
    for p in range(order.size):
        if parent[p] >= 0:
            moved[place[p]] = place[parent[p]]
    for p in range(order.size):
        parent[p] = moved[p]
    return starts, parents, rows


@kernel
def supernode_rows(offsets: Any, rows: Any, order: Any, starts: Any, parents: Any, row_offsets: Any) -> tuple[Any, Any]:
    """Rows below every supernode, by position and in order, and where each is among its parent's columns and rows."""
    n = order.size
    m = starts.size - 1
    position = np.empty(n, np.int32)
    for p in range(n):
        position[order[p]] = p
    below = np.empty(row_offsets[m], np.int32)
    child = np.full(m, -1, np.int32)
    sibling = np.full(m, -1, np.int32)
    stamp = np.full(n, -1, np.int32)
    for s in range(m):
        used = row_offsets[s]
        last = starts[s + 1]
        for p in range(starts[s], last):
            v = order[p]
            for e in range(offsets[v], offsets[v + 1]):
                q = position[rows[e]]
                if q >= last and stamp[q] != s:
                    stamp[q] = s
                    below[used] = q
                    used += 1
        c = child[s]
        while c >= 0:
            for k in range(row_offsets[c], row_offsets[c + 1]):
                q = below[k]
                if q >= last and stamp[q] != s:
                    stamp[q] = s
                    below[used] = q
                    used += 1
            c = sibling[c]
        below[row_offsets[s] : used].sort()
        if parents[s] >= 0:
            sibling[s] = child[parents[s]]
            child[parents[s]] = s
    relative = np.empty(row_offsets[m], np.int32)
    for s in range(m):
        first, last = starts[s], starts[s + 1]
        for k in range(row_offsets[s], row_offsets[s + 1]):
            stamp[below[k]] = last - first + k - row_offsets[s]
        c = child[s]
        while c >= 0:
            for k in range(row_offsets[c], row_offsets[c + 1]):
                q = below[k]
                relative[k] = q - first if q < last else stamp[q]
            c = sibling[c]
    return below, relative


@kernel
def entry_places(
    offsets: Any,
    rows: Any,
    order: Any,
    starts: Any,
    row_offsets: Any,
    below: Any,
    panel_widths: Any,
) -> tuple[Any, Any, Any]:
    """The entries of one triangle of the matrix, supernode by supernode, and where each is in its panel.

    Returns offsets by supernode, the entries, and their places: row of the panel times its width, plus column.
    """
    n = order.size
    m = starts.size - 1
    position = np.empty(n, np.int32)
    for p in range(n):
        position[order[p]] = p
    stamp = np.empty(n, np.int32)
    entry_offsets = np.zeros(m + 1, np.int64)
    entries = np.empty((rows.size + n) // 2 + 1, np.int64)
    places = np.empty(entries.size, np.int64)
    used = 0
    for s in range(m):
        first, last = starts[s], starts[s + 1]
        for k in range(row_offsets[s], row_offsets[s + 1]):
            stamp[below[k]] = last - first + k - row_offsets[s]
        for p in range(first, last):
            v = order[p]
            for e in range(offsets[v], offsets[v + 1]):
                q = position[rows[e]]
                if q >= p:
                    entries[used] = e
                    places[used] = (p - first) * panel_widths[s] + (q - first if q < last else stamp[q])
                    used += 1
        entry_offsets[s + 1] = used
    return entry_offsets, entries[:used], places[:used]
