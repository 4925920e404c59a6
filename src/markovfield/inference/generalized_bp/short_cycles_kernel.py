"""Short cycles of a graph, independent of each other.

Invariant: compressed rows with neighbours in rising order; cycles come in lexicographic order from their smallest
vertex, so that the same graph has the same regions.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["take_cycles"]


@kernel
def _arc(offsets, neighbours, a, b):
    """Where b stands among the neighbours of a, or -1."""
    low, high = offsets[a], offsets[a + 1]
    while low < high:
        middle = (low + high) // 2
        if neighbours[middle] < b:
            low = middle + 1
        else:
            high = middle
    return low if low < offsets[a + 1] and neighbours[low] == b else -1


@kernel
def _brings_an_edge(offsets, neighbours, path, covered):
    """Whether a cycle has an edge not yet covered; if so all its edges become covered."""
    new = False
    k = len(path)
    for step in range(2):
        for i in range(k):
            a, b = path[i], path[(i + 1) % k]
            arc = _arc(offsets, neighbours, min(a, b), max(a, b))
            if step == 0:
                new |= not covered[arc]
            else:
                covered[arc] = True
        if not new:
            return False
    return True


@kernel
def take_cycles(offsets, neighbours, cards, length, max_states, covered, work):
    """Chordless cycles of ``length`` vertices, flat, each with an edge that no cycle before it covers.

    Cycles are walked from their smallest vertex, in lexicographic order. ``covered[arc]`` (of the smaller end) is
    read and updated; ``work[0]`` is counted down and ends the search at zero.
    """
    n = len(offsets) - 1
    path = np.zeros(length, np.int64)
    next_arc = np.zeros(length, np.int64)
    states = np.ones(length, np.float64)
    taken = np.empty(64, np.int64)
    n_taken = 0
    for root in range(n):
        path[0], states[0], next_arc[0] = root, cards[root], offsets[root]
        depth = 0
        while depth >= 0 and work[0] > 0:
            arc = next_arc[depth]
            if arc == offsets[path[depth] + 1]:
                depth -= 1
                continue
            next_arc[depth] += 1
            work[0] -= 1
            v = neighbours[arc]
            size = states[depth] * cards[v]
            if v <= root or size > max_states:
                continue
            last = depth + 2 == length
            # Each cycle is met in both directions: keep the one whose second vertex is the smaller end.
            fits = not last or v > path[1]
            for i in range(depth):
                joined = path[i] == v or _arc(offsets, neighbours, path[i], v) >= 0
                work[0] -= 1
                if joined != (last and i == 0):
                    fits = False
                    break
            if not fits:
                continue
            depth += 1
            path[depth], states[depth], next_arc[depth] = v, size, offsets[v]
            if last:
                if _brings_an_edge(offsets, neighbours, path, covered):
                    if n_taken + length > len(taken):
                        larger = np.empty(2 * len(taken) + length, np.int64)
                        for i in range(n_taken):
                            larger[i] = taken[i]
                        taken = larger
                    for i in range(length):
                        taken[n_taken + i] = path[i]
                    n_taken += length
                depth -= 1
    return taken[:n_taken]
