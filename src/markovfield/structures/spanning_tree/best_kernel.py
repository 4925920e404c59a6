"""The best arborescence: Chu and Liu 1965, Edmonds 1967, in the O(n^2) form of Tarjan 1977 for dense graphs.

Words take their best head along a path; where the path closes, its words become one, whose entering arcs are scored by
what they would change. Heads stay single words, so that joining is a maximum over rows. With a single root a word takes
the root only where nothing else can govern it: that is the order by (arcs of the root, score), exactly, without the
large number that is usually taken from the root's arcs (Stanojevic and Cohen 2021).

Invariant: a joined word has no entering arc from its own words. Free to change: which word starts a path.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["best_trees"]


@kernel
def _best_tree(scores, n, single, head, entering, enters, value, whole, up, arc_head, arc_word):
    """Heads of the best tree in ``head[1:]``; False where there is none.

    ``entering[v, h]`` is the score of the best arc from word h into v, ``enters[v, h]`` the word of v it goes to;
    ``up`` the joined word that v is part of, ``whole`` the outermost one of each word.
    """
    for m in range(1, n + 1):
        whole[m] = m
        for h in range(n + 1):
            entering[m, h] = scores[h, m] if h != m else -np.inf
            enters[m, h] = m
    for v in range(2 * n + 1):
        up[v], arc_head[v] = 0, -1
    n_joined = n
    before = np.empty(2 * n + 1, np.int64)
    on_path = np.zeros(2 * n + 1, np.bool_)
    for start in range(1, n + 1):
        v = whole[start]
        if arc_head[v] >= 0:
            continue
        before[v] = 0
        while v > 0:
            on_path[v] = True
            best, from_word = -np.inf, 0
            row = entering[v]
            for h in range(1, n + 1):
                if row[h] > best:
                    best, from_word = row[h], h
            if row[0] > best and (not single or best == -np.inf):
                best, from_word = row[0], 0
            if best == -np.inf:
                return False
            arc_head[v], arc_word[v], value[v] = from_word, enters[v, from_word], best
            u = whole[from_word] if from_word > 0 else 0
            if u == 0 or (arc_head[u] >= 0 and not on_path[u]):
                break
            if not on_path[u]:
                before[u] = v
                v = u
                continue
            # The path has closed: v, what stands before it, ... up to u become one.
            n_joined += 1
            joined = n_joined
            before[joined] = before[u]
            target, names = entering[joined], enters[joined]
            for h in range(n + 1):
                target[h] = -np.inf
                names[h] = 0
            at = v
            while True:
                up[at] = joined
                own, shift = entering[at], value[at]
                for h in range(n + 1):
                    if own[h] - shift > target[h]:
                        target[h] = own[h] - shift
                        names[h] = enters[at, h]
                if at == u:
                    break
                at = before[at]
            for m in range(1, n + 1):
                if up[whole[m]] == joined:
                    whole[m] = joined
                    target[m] = -np.inf
            v = joined
        # The path leads to the root: nothing on it can close any more.
        while v > 0:
            on_path[v] = False
            v = before[v]
    for v in range(1, n_joined + 1):
        on_path[v] = False
    n_roots = 0
    for v in range(n_joined, 0, -1):
        if on_path[v]:
            continue
        m = arc_word[v]
        head[m] = arc_head[v]
        n_roots += arc_head[v] == 0
        at = m
        while at != v:
            on_path[at] = True
            at = up[at]
    return not single or n_roots == 1


@kernel
def best_trees(pool, offsets, sizes, first, last, single, heads, starts):
    """Heads of the words of instances first..last in their best trees, from ``starts[i]`` on; -1 where none is."""
    largest = 0
    for i in range(first, last):
        largest = max(largest, sizes[i])
    double = 2 * largest + 1
    entering = np.empty((double, largest + 1))
    enters = np.empty((double, largest + 1), np.int64)
    value = np.empty(double)
    names = np.empty((5, double), np.int64)
    for i in range(first, last):
        n = sizes[i]
        side = n + 1
        scores = pool[offsets[i] : offsets[i] + side * side].reshape(side, side)
        head = names[4]
        found = n == 0 or _best_tree(
            scores, n, single, head, entering, enters, value, names[0], names[1], names[2], names[3]
        )
        for m in range(1, side):
            heads[starts[i] + m - 1] = head[m] if found else -1
