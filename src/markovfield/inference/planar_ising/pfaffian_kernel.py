"""Pfaffians of sparse skew-symmetric matrices, front by front, and the entries of the inverse that are asked for.

The matrix has one row for each dart (directed edge) of a plane graph. Darts of one face are joined by +1 in the order
of the face, the two darts of an edge by a weight; a diagonal scaling keeps all entries at most about one. Regions of
faces are merged two by two: a front holds the darts of a region that are still there, and eliminates, in pairs, those
whose edge has both sides inside. A pair that would be too small a pivot waits for the next larger region.

A front keeps its upper triangle only. State that survives between calls, so that a call can be short, is in
``tops int64[5]``: how much is used of the stack of values, of the stack of modes, of the factor's values, of the
factor's modes, and of the sequence of eliminated modes.

An assignment of low energy for Ising spins, by annealing: where to count the flips of spins from.

Invariant: none but the arrays: any assignment is right, and one of low energy keeps the digits of the Pfaffian. Free to
change: temperatures and sweeps.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_unit

__all__ = ["anneal", "eliminate", "invert", "parity", "pfaffian", "solve"]


@kernel
def _swap(front, modes, i, j):
    """Exchange the modes at positions i < j, also in the rows already eliminated."""
    n = len(modes)
    for t in range(i):
        front[t, i], front[t, j] = front[t, j], front[t, i]
    for t in range(i + 1, j):
        front[i, t], front[t, j] = -front[t, j], -front[i, t]
    for t in range(j + 1, n):
        front[i, t], front[j, t] = front[j, t], front[i, t]
    front[i, j] = -front[i, j]
    modes[i], modes[j] = modes[j], modes[i]


@kernel
def _largest(front, c, first, summed, n):
    """Of row c: the largest entry, the largest among the summed modes, and where that is."""
    most, most_summed, where = 0.0, 0.0, -1
    for t in range(first, c):
        size = abs(front[t, c])
        most = max(most, size)
        if t < summed and size > most_summed:
            most_summed, where = size, t
    for t in range(c + 1, n):
        size = abs(front[c, t])
        most = max(most, size)
        if t < summed and size > most_summed:
            most_summed, where = size, t
    return most, most_summed, where


@kernel
def _eliminate_front(front, modes, summed, threshold, one, two):
    """Eliminate pairs among the first ``summed`` modes; how many modes went, the log of the pivots, their sign."""
    n = len(modes)
    k, trying, progress = 0, summed, False
    log_size, sign = 0.0, 1
    while k < summed:
        if k >= trying:
            if not progress:
                break
            trying, progress = summed, False
        # From row to row until an entry is the largest summed one of both of its rows.
        i = k
        most, size, j = _largest(front, i, k, summed, n)
        while size > 0.0 and size >= threshold * most:
            most, larger, next_row = _largest(front, j, k, summed, n)
            if larger <= size:
                break
            i, j, size = j, next_row, larger
        if size == 0.0 or size < threshold * most:
            trying -= 1
            if trying > k:
                _swap(front, modes, k, trying)
            continue
        progress = True
        if i > j:
            i, j = j, i
        if i > k:
            _swap(front, modes, k, i)
        if j > k + 1:
            _swap(front, modes, k + 1, j)
        pivot = front[k, k + 1]
        log_size += np.log(abs(pivot))
        if pivot < 0:
            sign = -sign
        for t in range(k + 2, n):
            one[t] = front[k, t]
            two[t] = front[k + 1, t]
        for i in range(k + 2, n):
            a, b = two[i] / pivot, one[i] / pivot
            if a != 0.0 or b != 0.0:
                row = front[i]
                for t in range(i + 1, n):
                    row[t] += a * one[t] - b * two[t]
        k += 2
        trying = max(trying, k)
    return k, log_size, sign


@kernel
def _add(front, i, j, value):
    """Add to the entry at (i, j), wherever the upper triangle has it."""
    if i < j:
        front[i, j] += value
    else:
        front[j, i] -= value


@kernel
def _summed_first(modes, joined, backwards, place):
    """Put the modes whose edge has both sides inside first; how many they are. ``place`` is where each mode went."""
    n = len(modes)
    given = modes.copy()
    summed = 0
    for t in range(n):
        if joined[given[t]]:
            summed += 1
    front, back = 0, summed
    for t in range(n):
        if joined[given[t]]:
            modes[summed - 1 - front if backwards else front] = given[t]
            front += 1
        else:
            modes[back] = given[t]
            back += 1
    for t in range(n):
        place[modes[t]] = t
    return summed


@kernel
def _add_faces(front, first, end, face_offsets, face_darts, log_scale, place):
    """The faces of a leaf: +1, scaled, between every two darts of a face."""
    for f in range(first, end):
        for x in range(face_offsets[f], face_offsets[f + 1]):
            for y in range(x + 1, face_offsets[f + 1]):
                a, b = face_darts[x], face_darts[y]
                _add(front, place[a], place[b], np.exp(log_scale[a] + log_scale[b]))


@kernel
def _add_child(front, values, modes, place):
    """What the elimination of a child left behind."""
    r = len(modes)
    for x in range(r):
        i = place[modes[x]]
        for y in range(x + 1, r):
            _add(front, i, place[modes[y]], values[x * r + y])


@kernel
def parity(order):
    """1 or -1: the sign of a permutation."""
    seen = np.zeros(len(order), np.bool_)
    sign = 1
    for t in range(len(order)):
        x = order[t]
        while x != t and not seen[t]:
            seen[x] = True
            x = order[x]
            sign = -sign
    return sign


@kernel
def pfaffian(front):
    """The Pfaffian of a small skew-symmetric matrix, of which the upper triangle is read and overwritten."""
    n = len(front)
    order = np.arange(n)
    gone, log_size, sign = _eliminate_front(front, order, n, 0.0, np.empty(n), np.empty(n))
    return 0.0 if gone < n else sign * parity(order) * np.exp(log_size)


@kernel
def eliminate(
    node,
    last,
    work,
    children,
    leaf_faces,
    face_offsets,
    face_darts,
    edge_offsets,
    node_edges,
    log_scale,
    weight,
    threshold,
    backwards,
    keep,
    joined,
    place,
    rest,
    eliminated,
    starts,
    stack,
    stack_modes,
    factor,
    factor_modes,
    tops,
    sequence,
    log_pivots,
    signs,
):
    """Go on with the nodes of the tree from ``node`` up to ``last``; the next one, where room or ``work`` ran out.

    ``children int32[nodes, 2]`` come before their parent; a leaf has -1 and the faces ``leaf_faces[node]`` (first,
    end). The edges joined at a node are ``node_edges[edge_offsets[node] :]``. The exponential of
    ``log_scale float64[darts]`` multiplies rows and columns; ``weight float64[edges]`` is the scaled entry at
    (2e, 2e + 1). Written: ``joined bool[darts]``, ``place int32[darts]``, for each node how many modes went
    (``eliminated``) and stayed (``rest``), the log of its pivots and their sign, ``sequence`` the modes in the order in
    which they went, and with ``keep`` the factor: for each node its modes and the two rows of each pivot from the pivot
    on, beginning at ``starts``.
    At least one node is done where there is room.
    """
    begun = node
    while node < last:
        left, right = children[node, 0], children[node, 1]
        n = 0
        if left < 0:
            first, end = face_offsets[leaf_faces[node, 0]], face_offsets[leaf_faces[node, 1]]
            n = end - first
            below_values, below_modes = tops[0], tops[1]
        else:
            n = rest[left] + rest[right]
            below_values = tops[0] - rest[left] ** 2 - rest[right] ** 2
            below_modes = tops[1] - n
        if (
            below_values + n * n > len(stack)
            or below_modes + n > len(stack_modes)
            or (keep and (tops[2] + n * n > len(factor) or tops[3] + n > len(factor_modes)))
        ):
            return node
        if work < 0 and node > begun:
            return node
        for e in range(edge_offsets[node], edge_offsets[node + 1]):
            joined[2 * node_edges[e]] = True
            joined[2 * node_edges[e] + 1] = True
        modes = np.empty(n, np.int32)
        for t in range(n):
            modes[t] = face_darts[first + t] if left < 0 else stack_modes[below_modes + t]
        summed = _summed_first(modes, joined, backwards, place)
        front = np.zeros((n, n))
        if left < 0:
            _add_faces(front, leaf_faces[node, 0], leaf_faces[node, 1], face_offsets, face_darts, log_scale, place)
        else:
            values, names = below_values, below_modes
            for side in range(2):
                r = rest[children[node, side]]
                _add_child(front, stack[values : values + r * r], stack_modes[names : names + r], place)
                values += r * r
                names += r
        for e in range(edge_offsets[node], edge_offsets[node + 1]):
            _add(front, place[2 * node_edges[e]], place[2 * node_edges[e] + 1], weight[node_edges[e]])
        gone, log_size, sign = _eliminate_front(front, modes, summed, threshold, np.empty(n), np.empty(n))
        work -= 40.0 + (1.0 + gone) * n * n
        log_pivots[node] = log_size
        signs[node] = sign
        for t in range(gone):
            sequence[tops[4] + t] = modes[t]
        tops[4] += gone
        if keep:
            starts[node, 0] = tops[2]
            starts[node, 1] = tops[3]
            for t in range(n):
                factor_modes[tops[3] + t] = modes[t]
            tops[3] += n
            for k in range(gone):
                for t in range(k // 2 * 2, n):
                    factor[tops[2]] = front[k, t]
                    tops[2] += 1
        r = n - gone
        for x in range(r):
            stack_modes[below_modes + x] = modes[gone + x]
            for y in range(x + 1, r):
                stack[below_values + x * r + y] = front[gone + x, gone + y]
        tops[0] = below_values + r * r
        tops[1] = below_modes + r
        rest[node] = r
        eliminated[node] = gone
        node += 1
    return node


@kernel
def _invert_front(inverse, factor, start, n, gone, one, two):
    """Fill the rows and columns of the eliminated modes, the last pivot first; ``start`` is where the rows end."""
    for k in range(gone - 2, -1, -2):
        start -= 2 * (n - k)
        pivot = factor[start + 1]
        for t in range(k + 2, n):
            one[t] = factor[start + t - k] / pivot
            two[t] = factor[start + n - 2 * k + t] / pivot
        middle = 0.0
        for i in range(k + 2, n):
            row = inverse[i]
            a, b = 0.0, 0.0
            for t in range(k + 2, n):
                a += row[t] * one[t]
                b += row[t] * two[t]
            inverse[i, k] = b
            inverse[k, i] = -b
            inverse[i, k + 1] = -a
            inverse[k + 1, i] = a
            middle += two[i] * a
        inverse[k, k] = 0.0
        inverse[k + 1, k + 1] = 0.0
        inverse[k, k + 1] = -1.0 / pivot - middle
        inverse[k + 1, k] = 1.0 / pivot + middle
    return start


@kernel
def invert(
    node,
    work,
    children,
    leaf_faces,
    face_offsets,
    face_darts,
    edge_offsets,
    node_edges,
    log_scale,
    place,
    rest,
    eliminated,
    starts,
    stack,
    factor,
    factor_modes,
    tops,
    entries,
    cut,
):
    """Go back from ``node`` to the first one, above which the inverse is known; the next node, where work ran out.

    Written: ``entries float64[edges]``, the entry of the inverse at (2e, 2e + 1), and added to ``cut float64[darts]``,
    the diagonal of matrix times inverse without the edges' part: with that part it is 1 up to rounding.
    """
    begun = node
    while node >= 0:
        r, gone = rest[node], eliminated[node]
        n = r + gone
        below = tops[0] - r * r
        pushed = 0
        if children[node, 0] >= 0:
            pushed = rest[children[node, 0]] ** 2 + rest[children[node, 1]] ** 2
        if (work < 0 and node < begun) or below + pushed > len(stack):
            return node
        work -= 40.0 + (1.0 + 3.0 * gone) * n * n
        names = starts[node, 1]
        inverse = np.empty((n, n))
        for x in range(r):
            for y in range(r):
                inverse[gone + x, gone + y] = stack[below + x * r + y]
        _invert_front(
            inverse, factor, starts[node, 0] + gone * (2 * n - gone + 2) // 2, n, gone, np.empty(n), np.empty(n)
        )
        for t in range(n):
            place[factor_modes[names + t]] = t
        for e in range(edge_offsets[node], edge_offsets[node + 1]):
            edge = node_edges[e]
            entries[edge] = inverse[place[2 * edge], place[2 * edge + 1]]
        if children[node, 0] < 0:
            for f in range(leaf_faces[node, 0], leaf_faces[node, 1]):
                for x in range(face_offsets[f], face_offsets[f + 1]):
                    for y in range(x + 1, face_offsets[f + 1]):
                        a, b = face_darts[x], face_darts[y]
                        value = np.exp(log_scale[a] + log_scale[b]) * inverse[place[a], place[b]]
                        cut[a] -= value
                        cut[b] -= value
        else:
            for side in range(2):
                child = children[node, side]
                kept, own = rest[child], starts[child, 1] + eliminated[child]
                for x in range(kept):
                    i = place[factor_modes[own + x]]
                    for y in range(kept):
                        stack[below + x * kept + y] = inverse[i, place[factor_modes[own + y]]]
                below += kept * kept
        tops[0] = below
        node -= 1
    return node


@kernel
def solve(rest, eliminated, starts, factor, factor_modes, x):
    """Solve in place for the right-hand sides ``x float64[darts, columns]``, scaled as the matrix is."""
    columns = x.shape[1]
    for node in range(len(rest)):
        gone, names = eliminated[node], starts[node, 1]
        n = gone + rest[node]
        at = starts[node, 0]
        for k in range(0, gone, 2):
            pivot = factor[at + 1]
            head, second = x[factor_modes[names + k]], x[factor_modes[names + k + 1]]
            for t in range(k + 2, n):
                a, b = factor[at + n - 2 * k + t] / pivot, factor[at + t - k] / pivot
                row = x[factor_modes[names + t]]
                for c in range(columns):
                    row[c] += a * head[c] - b * second[c]
            for c in range(columns):
                head[c], second[c] = -second[c] / pivot, head[c] / pivot
            at += 2 * (n - k)
    for node in range(len(rest) - 1, -1, -1):
        gone, names = eliminated[node], starts[node, 1]
        n = gone + rest[node]
        at = starts[node, 0] + gone * (2 * n - gone + 2) // 2
        for k in range(gone - 2, -1, -2):
            at -= 2 * (n - k)
            pivot = factor[at + 1]
            head, second = x[factor_modes[names + k]], x[factor_modes[names + k + 1]]
            for t in range(k + 2, n):
                a, b = factor[at + n - 2 * k + t] / pivot, factor[at + t - k] / pivot
                row = x[factor_modes[names + t]]
                for c in range(columns):
                    head[c] += a * row[c]
                    second[c] -= b * row[c]


@kernel
def anneal(offsets, neighbours, couplings, spins, stream, hottest, coldest, sweeps):
    """Cool the spins from one temperature to the other, in place, and end where no single flip raises the score.

    The neighbours of spin i are ``neighbours[offsets[i] : offsets[i + 1]]``, with their ``couplings``;
    ``spins float64[n]`` is -1 or +1.
    """
    n = len(spins)
    ratio = (coldest / hottest) ** (1.0 / max(sweeps - 1, 1))
    temperature = hottest
    for sweep in range(sweeps + 50):
        moved = False
        for i in range(n):
            field = 0.0
            for x in range(offsets[i], offsets[i + 1]):
                field += couplings[x] * spins[neighbours[x]]
            gain = -2.0 * field * spins[i]
            if gain > 0.0 or (sweep < sweeps and draw_unit(stream) < np.exp(gain / temperature)):
                spins[i] = -spins[i]
                moved = True
        temperature *= ratio
        if sweep >= sweeps and not moved:
            break
