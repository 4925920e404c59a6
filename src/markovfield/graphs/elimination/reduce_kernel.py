"""Eliminations that are safe whatever comes after: done once, shared by all greedy runs.

Invariant: rule 2 needs a ``lower_bound`` that really bounds the heaviest clique from below, and almost simplicial
vertices wait until no simplicial one is left, since a chordal graph must get no fill. Vertices taken have stage -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.graphs.elimination.greedy_kernel import DEGREE, FILL, OWN_WEIGHT, STAGE, WEIGHT, eliminate_vertex
from markovfield.kernels.bitsets import bit, lowest_bit, popcount
from markovfield.kernels.compiler import kernel

__all__ = ["reduce_graph"]


@kernel
def reduce_graph(rows: Any, state: Any, rules: int, lower_bound: int, order: Any) -> int:
    """Eliminate vertices whose elimination is safe; returns how many, the first entries of ``order``.

    Rule 1: simplicial vertices (their closed neighbourhood is a clique, so some clique holds it anyway). Rule 2: almost
    simplicial ones, all of whose missing pairs share a neighbour w, when w has no more states than the vertex and
    the clique is no heavier than ``lower_bound`` on the heaviest clique: eliminating is then contracting an edge,
    which cannot raise the weighted width (Bodlaender, Koster and van den Eijkhof 2005). Only vertices of the lowest
    stage alive are taken. Eliminated vertices get stage -1.
    """
    m, words = rows.shape
    stages = state[STAGE]
    neighbours = np.empty(m, np.int64)
    touched = np.empty(words, np.uint64)
    # Row 0: vertices that may have become simplicial. Row 1: almost so, looked at only when row 0 is empty, since a
    # chordal graph must get no fill.
    dirty = np.zeros((2, words), np.uint64)
    done = 0
    stage = np.int64(-1)
    left = 0
    while True:
        if left == 0:
            stage = np.int64(1 << 20)
            for v in range(m):
                if stages[v] >= 0:
                    stage = min(stage, stages[v])
            for v in range(m):
                if stages[v] == stage:
                    left += 1
                    dirty[0, v >> 6] |= bit(v)
        level = 0
        w = 0
        while level < 2 and dirty[level, w] == 0:
            w += 1
            if w == words:
                w = 0
                level += 1
        if level == 2:
            return done
        v = (w << 6) + lowest_bit(dirty[level, w])
        dirty[level, w] &= dirty[level, w] - np.uint64(1)
        if stages[v] != stage:
            continue
        if state[FILL, v] == 0:
            if rules & 1 == 0:
                continue
            lower_bound = max(lower_bound, state[WEIGHT, v])
        elif level == 0:
            if rules & 2:
                dirty[1, w] |= bit(v)
            continue
        elif not _almost_simplicial(rows, state, v, lower_bound):
            continue
        eliminate_vertex(rows, state, v, m, neighbours, touched, np.int64(0))
        order[done] = v
        done += 1
        stages[v] = -1
        left -= 1
        for u in range(words):
            dirty[0, u] |= touched[u]


@kernel
def _almost_simplicial(rows: Any, state: Any, v: int, lower_bound: int) -> bool:
    """Whether one neighbour w, with no more states than v, is in every missing pair of v, and N[v] is light."""
    missing = state[FILL, v]
    if state[WEIGHT, v] > lower_bound or missing >= state[DEGREE, v]:
        return False
    words = rows.shape[1]
    for w in range(words):
        x = rows[v, w]
        while x != 0:
            a = (w << 6) + lowest_bit(x)
            x &= x - np.uint64(1)
            absent = -1
            for u in range(words):
                absent += popcount(rows[v, u] & ~rows[a, u])
            if absent == missing and state[OWN_WEIGHT, a] <= state[OWN_WEIGHT, v]:
                return True
            if 0 < absent < missing and absent > 1:
                # Two missing pairs at a, and others elsewhere: no single vertex is in all of them.
                return False
    return False
