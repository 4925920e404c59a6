"""Elimination of words from a dependency graph with logs, and trees drawn by putting them back.

The steps are those of `elimination_kernel`, for scores of any range. Words are in an order of their own: with a single
root, a word that only the root can govern has to be the last that is eliminated.

Drawing puts words back. A tree over words that are left after k was eliminated has arcs (h, m) that are either direct
or stand for h to k to m, in proportion to their two terms. Take away the arcs through k: what hangs together with the
root is where the head of k must lie, in proportion to its arcs; the words whose arcs went through k become its
children. Summed over the ways to join what was taken apart this is the weight of the tree with k (a Cayley sum that is
one), so that draws are exact and need no walk that could be long (Wilson 1996 walks around cycles until they are left).
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.log_space import log_add
from markovfield.kernels.random import draw_from_logs

__all__ = ["differentiate_logs", "draw_trees", "eliminate_logs"]


@kernel
def _entering(w, k, begin):
    """log of the sum of ``w[begin:k, k]``."""
    top = -np.inf
    for h in range(begin, k):
        top = max(top, w[h, k])
    if top == -np.inf:
        return top
    total = 0.0
    for h in range(begin, k):
        total += math.exp(w[h, k] - top)
    return top + math.log(total)


@kernel
def _exchange(w, n, a, b, order):
    """Two words change places."""
    order[a], order[b] = order[b], order[a]
    for j in range(n + 1):
        w[a, j], w[b, j] = w[b, j], w[a, j]
    for j in range(n + 1):
        w[j, a], w[j, b] = w[j, b], w[j, a]


@kernel
def eliminate_logs(scores, n, single, w, entering, order):
    """log Z; ``w`` and ``order`` keep what was eliminated: position j holds word ``order[j]``.

    ``entering[k]`` is log d[k]; ``w[k, m]`` and ``w[h, k]`` for h, m < k are arcs when k was eliminated.
    """
    for h in range(n + 1):
        order[h] = h
        for m in range(n + 1):
            w[h, m] = scores[h, m] if m > 0 and h != m else -np.inf
    log_z = 0.0
    for k in range(n, 0, -1):
        begin = 1 if single and k > 1 else 0
        total = _entering(w, k, begin)
        if total == -np.inf and begin == 1:
            _exchange(w, n, k, 1, order)
            total = _entering(w, k, begin)
        if total == -np.inf:
            return total
        entering[k] = total
        log_z += total
        for h in range(k):
            factor = w[h, k] - total
            if factor > -np.inf:
                for m in range(1, k):
                    if m != h and w[k, m] > -np.inf:
                        w[h, m] = log_add(w[h, m], factor + w[k, m])
    return log_z


@kernel
def differentiate_logs(w, n, single, entering, slope, work):
    """``slope[h, m]``: the log of the derivative of log Z by the weight of an arc, in the order of positions."""
    slope[:, :] = -np.inf
    slope[0, 1] = -entering[1]
    for k in range(2, n + 1):
        children = 0.0
        for h in range(k):
            top = -np.inf
            for m in range(1, k):
                top = max(top, w[k, m] + slope[h, m])
            total = 0.0
            if top > -np.inf:
                for m in range(1, k):
                    total += math.exp(w[k, m] + slope[h, m] - top)
            work[h] = top + math.log(total) if total > 0.0 else -np.inf
            children += math.exp(min(w[h, k] - entering[k] + work[h], 700.0))
        for h in range(k):
            if single and h == 0:
                value = work[h]
            elif work[h] > 40.0:
                value = work[h] + math.log1p((1.0 - children) * math.exp(-work[h]))
            else:
                linear = 1.0 - children + math.exp(work[h])
                value = math.log(linear) if linear > 0.0 else -np.inf
            slope[h, k] = value - entering[k]
        for m in range(1, k):
            total = -np.inf
            for h in range(k):
                if h != m:
                    total = log_add(total, w[h, k] - entering[k] + slope[h, m])
            slope[k, m] = total


@kernel
def _find_with_root(head, way, k, with_root):
    """Which words before k hang together with the root once arcs through k are gone; whether none does."""
    with_root[0] = 1
    for m in range(1, k):
        with_root[m] = -1
    alone = True
    for m in range(1, k):
        at = m
        while with_root[at] < 0 and way[at] != k:
            at = head[at]
        known = max(with_root[at], 0)
        at = m
        while with_root[at] < 0:
            with_root[at] = known
            if way[at] == k:
                break
            at = head[at]
        alone = alone and known == 0
    return alone


@kernel
def _detour(scores, w, n, entering, order, k, h, m, state, logs):
    """Draw for arc (h, m), among the words behind k, the first it goes through when they are put back; 0: none.

    Its weight before k was eliminated is the direct arc and a term for each word behind k.
    """
    logs[0] = scores[order[h], order[m]]
    for j in range(k + 1, n + 1):
        logs[j - k] = w[h, j] - entering[j] + w[j, m]
    drawn = draw_from_logs(state, logs, 0, n - k + 1)
    return 0 if drawn == 0 else drawn + k


@kernel
def draw_trees(pool, offsets, sizes, first, last, single, size, states, heads, starts):
    """``size`` trees of each of the instances first..last: heads of words, from ``starts[i]`` on; -1 where none is."""
    for i in range(first, last):
        n = sizes[i]
        side = n + 1
        state = states[i]
        scores = pool[offsets[i] : offsets[i] + side * side].reshape(side, side)
        w = np.empty((side, side))
        entering, order = np.empty(side), np.empty(side, np.int64)
        log_z = eliminate_logs(scores, n, single, w, entering, order)
        head, way = np.empty(side, np.int64), np.empty(side, np.int64)
        logs, with_root = np.empty(side), np.empty(side, np.int64)
        for draw in range(size):
            found = heads[starts[i] + draw * n : starts[i] + (draw + 1) * n]
            if log_z == -np.inf:
                found[:] = -1
                continue
            head[0] = -1
            for k in range(1, side):
                alone = _find_with_root(head, way, k, with_root)
                for h in range(k):
                    logs[h] = w[h, k] if with_root[h] == 1 and (h > 0 or alone or not single) else -np.inf
                head[k] = draw_from_logs(state, logs, 0, k)
                way[k] = _detour(scores, w, n, entering, order, k, head[k], k, state, logs)
                for m in range(1, k):
                    if way[m] == k:
                        head[m] = k
                        way[m] = _detour(scores, w, n, entering, order, k, k, m, state, logs)
            for k in range(1, side):
                found[order[k] - 1] = order[head[k]]
