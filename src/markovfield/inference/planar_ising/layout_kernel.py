"""Plane graphs as darts: faces, signs for the Pfaffian, and a tree of regions with short borders.

Edge e has two darts, 2e from its first vertex to its second and 2e + 1 back. ``after int64[darts]`` is the next dart
along the face on the left of a dart.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["cut_faces", "edge_nodes", "orient", "region_tree"]

PIECE = 4
"""The most darts of a piece of a face."""


@kernel
def cut_faces(after, tail):
    """Faces cut into pieces of at most `PIECE` darts by chords, which all start at one vertex of the face.

    Gives the offsets of the pieces and their darts in order, and the tails of all darts, those of the chords last.
    """
    n = len(after)
    offsets = np.empty(n + 2, np.int64)
    # A face of d darts gets at most d / 2 chords.
    darts = np.empty(2 * n + 2, np.int32)
    tails = np.empty(2 * n + 2, np.int64)
    for d in range(n):
        tails[d] = tail[d]
    seen = np.zeros(n, np.bool_)
    count, used, total = 0, 0, n
    offsets[0] = 0
    for d in range(n):
        if seen[d]:
            continue
        degree, x = 0, d
        while not seen[x]:
            seen[x] = True
            degree += 1
            x = after[x]
        size, left = 0, degree
        for _ in range(degree):
            darts[used] = x
            used += 1
            size += 1
            left -= 1
            x = after[x]
            if size == PIECE - 1 and left > 1:
                # The chord closes this piece, and its way back opens the next.
                tails[total], tails[total + 1] = tail[x], tail[d]
                darts[used] = total
                count += 1
                offsets[count] = used + 1
                darts[used + 1] = total + 1
                used += 2
                total += 2
                size = 1
        count += 1
        offsets[count] = used
    return offsets[: count + 1].copy(), darts[:used].copy(), tails[:total].copy()


@kernel
def orient(n_vertices, offsets, darts, tails):
    """``float64[edges]``: the sign of the entry at (2e, 2e + 1) that lets all terms of the Pfaffian have one sign.

    Around every vertex, the signs of edges and of the corners between them must multiply to -1 (Kasteleyn); a spanning
    tree of the graph, walked from its leaves, sees to that at every vertex but the root, and Euler's formula there.
    """
    n = len(tails)
    product = np.ones(n_vertices)
    for f in range(len(offsets) - 1):
        for x in range(offsets[f], offsets[f + 1]):
            last = x + 1 == offsets[f + 1]
            follows = darts[offsets[f] if last else x + 1]
            if last:
                product[tails[follows]] *= -1
    degree = np.zeros(n_vertices + 1, np.int64)
    for d in range(n):
        degree[tails[d] + 1] += 1
        if d % 2:
            product[tails[d]] *= -1
    starts = np.cumsum(degree)
    fill = starts.copy()
    out = np.empty(n, np.int64)
    for d in range(n):
        out[fill[tails[d]]] = d
        fill[tails[d]] += 1
    above = np.full(n_vertices, -2, np.int64)
    order = np.empty(n_vertices, np.int64)
    reached = 1
    above[0] = -1
    order[0] = 0
    for t in range(n_vertices):
        v = order[t]
        for x in range(starts[v], starts[v + 1]):
            w = tails[out[x] ^ 1]
            if above[w] == -2:
                above[w] = out[x]
                order[reached] = w
                reached += 1
    sign = np.ones(n // 2)
    for t in range(n_vertices - 1, 0, -1):
        v = order[t]
        if product[v] > 0:
            sign[above[v] // 2] = -1.0
            product[v] = -1.0
            product[tails[above[v]]] *= -1
    return sign, above, order


@kernel
def _distances(source, region, inside, offsets, neighbours, distance, queue):
    """Steps from a face to those of its region; the last one reached."""
    distance[source] = 0
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        f = queue[head]
        head += 1
        for x in range(offsets[f], offsets[f + 1]):
            g = neighbours[x]
            if region[g] == inside and distance[g] < 0:
                distance[g] = distance[f] + 1
                queue[tail] = g
                tail += 1
    return queue[tail - 1]


@kernel
def _landmarks(faces, region, inside, offsets, neighbours, distances, queue):
    """Four faces far from each other, as distances from each: like the corners of a square."""
    size = len(faces)
    far = faces[0]
    for turn in range(5):
        k = max(turn - 1, 0)
        for t in range(size):
            distances[k, faces[t]] = -1
        source = far
        if turn == 3:
            # Neither near the first nor near the second, and far from where the middle between them was found first.
            best = -1
            for t in range(size):
                near = min(distances[0, faces[t]], distances[1, faces[t]])
                if near > best:
                    best, source = near, faces[t]
            for t in range(size):
                distances[3, faces[t]] = -1
            _distances(source, region, inside, offsets, neighbours, distances[3], queue)
            best = -1
            for t in range(size):
                f = faces[t]
                value = distances[3, f] + min(distances[0, f], distances[1, f])
                if value > best:
                    best, source = value, f
        far = _distances(source, region, inside, offsets, neighbours, distances[k], queue)
        for t in range(size):
            if distances[k, faces[t]] < 0:
                distances[k, faces[t]] = 2 * size
                far = faces[t]


@kernel
def _best_cut(faces, region, inside, offsets, neighbours, distances, side):
    """Order the faces so that the first part and the rest have a short border; where the first part ends."""
    size = len(faces)
    keys = np.empty(size, np.int64)
    best_cost, best_at = np.inf, size // 2
    best = faces.copy()
    for i in range(4):
        for j in range(i + 1, 4):
            third = 0 if i > 0 else (1 if j > 1 else 2)
            for t in range(size):
                f = faces[t]
                keys[t] = (distances[i, f] - distances[j, f]) * (4 * size) + distances[third, f]
            order = np.argsort(keys, kind="mergesort")
            for t in range(size):
                side[faces[t]] = 1
            cut, better = 0, False
            for t in range(size - 1):
                f = faces[order[t]]
                side[f] = 0
                for x in range(offsets[f], offsets[f + 1]):
                    g = neighbours[x]
                    if region[g] == inside and g != f:
                        cut += 1 if side[g] == 1 else -1
                share = (t + 1) / size
                if 0.3 <= share <= 0.7 or t + 1 == size // 2:
                    cost = cut * (1.0 + 2.0 * (share - 0.5) ** 2)
                    if cost < best_cost:
                        best_cost, best_at, better = cost, t + 1, True
            if better:
                for t in range(size):
                    best[t] = faces[order[t]]
    for t in range(size):
        faces[t] = best[t]
    return best_at


@kernel
def region_tree(offsets, neighbours, leaf_size):
    """Halve the faces again and again along short borders.

    Gives the faces in an order in which every region is a range, the nodes' children (before their parents, -1 for
    leaves) and their ranges.
    """
    n = len(offsets) - 1
    order = np.arange(n)
    region = np.zeros(n, np.int64)
    side = np.zeros(n, np.int8)
    distances = np.zeros((4, n), np.int64)
    queue = np.empty(n, np.int64)
    # Nodes are made from the root down, and numbered backwards at the end.
    ranges = np.empty((2 * n + 1, 2), np.int64)
    children = np.full((2 * n + 1, 2), -1, np.int64)
    ranges[0, 0], ranges[0, 1] = 0, n
    count, at = 1, 0
    stack = np.empty(2 * n + 1, np.int64)
    stack[0] = 0
    depth = 1
    visited = np.empty(2 * n + 1, np.int64)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        visited[at] = node
        at += 1
        first, end = ranges[node, 0], ranges[node, 1]
        if end - first <= leaf_size:
            continue
        faces = order[first:end]
        for t in range(len(faces)):
            region[faces[t]] = node
        _landmarks(faces, region, node, offsets, neighbours, distances, queue)
        middle = first + _best_cut(faces, region, node, offsets, neighbours, distances, side)
        for half in range(2):
            ranges[count, 0] = first if half == 0 else middle
            ranges[count, 1] = middle if half == 0 else end
            children[node, half] = count
            stack[depth] = count
            depth += 1
            count += 1
    # The order of visits is parent, right subtree, left subtree: backwards, children come first.
    number = np.empty(count, np.int64)
    for t in range(count):
        number[visited[t]] = count - 1 - t
    final_ranges = np.empty((count, 2), np.int64)
    final_children = np.full((count, 2), -1, np.int32)
    for node in range(count):
        for half in range(2):
            final_ranges[number[node], half] = ranges[node, half]
            if children[node, half] >= 0:
                final_children[number[node], half] = number[children[node, half]]
    return order, final_children, final_ranges


@kernel
def edge_nodes(first, second, children, ranges):
    """For each edge, the lowest region that holds the positions of both of its faces."""
    out = np.empty(len(first), np.int64)
    for e in range(len(first)):
        node = len(children) - 1
        while children[node, 0] >= 0:
            middle = ranges[children[node, 0], 1]
            a, b = first[e] < middle, second[e] < middle
            if a != b:
                break
            node = children[node, 0 if a else 1]
        out[e] = node
    return out
