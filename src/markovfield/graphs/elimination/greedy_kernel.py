"""Greedy elimination on a dense bit matrix: the inner loop of the search for elimination orders.

A graph of m vertices is ``rows uint64[m, words]`` (row v = neighbours of v) and ``state int64[9, m]``, one row per
quantity below. The row of a vertex is not touched any more once it is eliminated, so after a run ``rows[v]`` is the
set of neighbours v had at its elimination, and degree and weight are those of its clique.

Invariant: weights are log2 of states in fixed point (`FIXED`), so that sums of them are exact and orders the same on
every machine. Free to change: how keys are kept and searched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.kernels.bitsets import FIXED, bit, log2_fixed, lowest_bit, popcount, random_word
from markovfield.kernels.compiler import kernel

__all__ = ["clique_cost", "eliminate_vertex", "greedy", "initial_state"]

DEGREE, FILL, WEIGHTED_FILL, WEIGHT, KEY, OWN_WEIGHT, CARDINALITY, STAGE, POSITION = range(9)
NEVER = np.iinfo(np.int64).max
"""Key of a vertex that cannot be chosen now."""
SIMPLICIAL = -(1 << 62)
"""Keys of vertices whose elimination adds no edge lie near this, below all others."""
ABORTED = np.inf


@kernel
def initial_state(rows: Any, state: Any, n_free: int) -> None:
    """Degrees, weights and fill counts of the first ``n_free`` vertices (the static rows of ``state`` are given)."""
    m, words = rows.shape
    for v in range(n_free):
        d = 0
        weight = state[OWN_WEIGHT, v]
        joined = 0
        for w in range(words):
            x = rows[v, w]
            d += popcount(x)
            while x != 0:
                a = (w << 6) + lowest_bit(x)
                x &= x - np.uint64(1)
                weight += state[OWN_WEIGHT, a]
                for u in range(words):
                    joined += popcount(rows[a, u] & rows[v, u])
        state[DEGREE, v] = d
        state[WEIGHT, v] = weight
        state[FILL, v] = (d * (d - 1) - joined) >> 1
    for v in range(n_free, m):
        for k in range(4):
            state[k, v] = 0


@kernel
def _weigh_fill(rows: Any, state: Any, n_free: int) -> None:
    """Weighted fill: over the missing pairs of a vertex, the sum of the products of their cardinalities."""
    words = rows.shape[1]
    card = state[CARDINALITY]
    for v in range(n_free):
        total = 0
        if state[FILL, v] > 0:
            for w in range(words):
                x = rows[v, w]
                while x != 0:
                    a = (w << 6) + lowest_bit(x)
                    x &= x - np.uint64(1)
                    missing = 0
                    for u in range(words):
                        y = rows[v, u] & ~rows[a, u]
                        while y != 0:
                            missing += card[(u << 6) + lowest_bit(y)]
                            y &= y - np.uint64(1)
                    total += card[a] * (missing - card[a])
        state[WEIGHTED_FILL, v] = total >> 1


@kernel
def eliminate_vertex(rows: Any, state: Any, v: int, n_free: int, neighbours: Any, touched: Any, weighted: int) -> int:
    """Join the neighbours of v, remove v, and keep all counts exact. Returns a count of the work done.

    Counts of vertices from ``n_free`` on, which are never eliminated, are not kept, nor is the weighted fill unless
    ``weighted``. ``touched`` becomes the set of vertices whose counts may have changed; ``neighbours`` is scratch.
    """
    words = rows.shape[1]
    degree, fill, weight = state[DEGREE], state[FILL], state[WEIGHT]
    own, card, wfill = state[OWN_WEIGHT], state[CARDINALITY], state[WEIGHTED_FILL]
    free_words = (n_free + 63) >> 6
    d = 0
    for w in range(words):
        x = rows[v, w]
        touched[w] = x
        while x != 0:
            neighbours[d] = (w << 6) + lowest_bit(x)
            x &= x - np.uint64(1)
            d += 1
    left = fill[v]
    word_v = v >> 6
    bit_v = bit(v)
    for i in range(d):
        a = neighbours[i]
        rows[a, word_v] &= ~bit_v
        if a >= n_free:
            continue
        common = d - 1
        if left > 0:
            common = 0
            for w in range(words):
                common += popcount(rows[a, w] & rows[v, w])
        # v and each neighbour of a outside N[v] was a missing pair of a.
        degree[a] -= 1
        fill[a] -= degree[a] - common
        weight[a] -= own[v]
        if weighted and degree[a] > common:
            total = 0
            for w in range(words):
                x = rows[a, w] & ~rows[v, w]
                while x != 0:
                    total += card[(w << 6) + lowest_bit(x)]
                    x &= x - np.uint64(1)
            wfill[a] -= card[v] * total
    work = d * (words + 2)
    if left == 0:
        return work
    for i in range(d):
        a = neighbours[i]
        for w in range(a >> 6, words):
            x = rows[v, w] & ~rows[a, w]
            if w == a >> 6:
                x &= ~(bit(a) | (bit(a) - np.uint64(1)))
            while x != 0:
                b = (w << 6) + lowest_bit(x)
                x &= x - np.uint64(1)
                common = 0
                for u in range(words):
                    y = rows[a, u] & rows[b, u]
                    common += popcount(y)
                    if u < free_words:
                        if n_free - (u << 6) < 64:
                            y &= bit(n_free) - np.uint64(1)
                        touched[u] |= y
                        while y != 0:
                            c = (u << 6) + lowest_bit(y)
                            y &= y - np.uint64(1)
                            fill[c] -= 1
                            if weighted:
                                wfill[c] -= card[a] * card[b]
                if weighted:
                    _weigh_new_edge(rows, card, wfill, a, b)
                fill[a] += degree[a] - common
                fill[b] += degree[b] - common
                degree[a] += 1
                degree[b] += 1
                weight[a] += own[b]
                weight[b] += own[a]
                rows[a, w] |= bit(b)
                rows[b, a >> 6] |= bit(a)
                work += words + common
                left -= 1
        if left == 0:
            break
    return work


@kernel
def _weigh_new_edge(rows: Any, card: Any, wfill: Any, a: int, b: int) -> None:
    """Missing pairs a gains by its new neighbour b, and b by a."""
    only_a = 0
    only_b = 0
    for w in range(rows.shape[1]):
        y = rows[a, w] & ~rows[b, w]
        while y != 0:
            only_a += card[(w << 6) + lowest_bit(y)]
            y &= y - np.uint64(1)
        y = rows[b, w] & ~rows[a, w]
        while y != 0:
            only_b += card[(w << 6) + lowest_bit(y)]
            y &= y - np.uint64(1)
    wfill[a] += card[b] * only_a
    wfill[b] += card[a] * only_b


@kernel
def _key(state: Any, v: int, rule: Any, random: Any) -> int:
    """Priority of v (lowest first) under ``rule = (fill factor, weight factor, noise, use weighted fill)``."""
    if state[FILL, v] == 0:
        return SIMPLICIAL + state[WEIGHT, v]
    fill = state[WEIGHTED_FILL, v] if rule[3] else state[FILL, v]
    key = rule[0] * log2_fixed(fill) + rule[1] * state[WEIGHT, v]
    if rule[2] > 0:
        key += np.int64(random_word(random) >> np.uint64(40)) * rule[2]
    return key


@kernel
def greedy(
    rows0: Any,
    state0: Any,
    n_free: int,
    rule: Any,
    ref: float,
    bound: float,
    rows: Any,
    state: Any,
    order: Any,
    random: Any,
) -> tuple[float, int]:
    """Eliminate the first ``n_free`` vertices, simplicial ones first, then by the rule's key, stage by stage.

    Fills ``rows``, ``state`` and ``order``. Costs are in units of ``2**ref`` states. Returns a lower bound on the cost
    (the cliques that needed fill), or `ABORTED` as soon as it exceeds ``bound``, and a count of the work done.
    """
    m, words = rows0.shape
    for v in range(m):
        for w in range(words):
            rows[v, w] = rows0[v, w]
    for k in range(4):
        for v in range(m):
            state[k, v] = state0[k, v]
    key, stages, fill, weight, degree = state[KEY], state[STAGE], state[FILL], state[WEIGHT], state[DEGREE]
    heaviest = np.int64((ref + np.log2(bound)) * FIXED) + 1 if bound < 1e300 else NEVER
    for v in range(n_free):
        key[v] = NEVER
        stages[v] = state0[STAGE, v]
    weighted = rule[3]
    if weighted:
        _weigh_fill(rows, state, n_free)
    neighbours = np.empty(m, np.int64)
    touched = np.empty(words, np.uint64)
    stage = np.int64(-1)
    done = np.int64(0)
    cost = 0.0
    work = m * (words + 4)
    while done < n_free:
        least = NEVER
        for u in range(n_free):
            least = min(least, key[u])
        if least == NEVER:
            following = 1 << 20
            for u in range(n_free):
                if stages[u] > stage:
                    following = min(following, stages[u])
            stage = following
            for u in range(n_free):
                if stages[u] == stage:
                    key[u] = _key(state, u, rule, random)
            continue
        v = 0
        while key[v] != least:
            v += 1
        work += 8 + n_free // 4
        if weight[v] > heaviest:
            return ABORTED, work
        if fill[v] == 0 and degree[v] == m - 1 - done:
            _finish_clique(rows, state, v, n_free, stage, done, order)
            return cost, work
        if fill[v] > 0:
            cost += np.exp2(weight[v] / FIXED - ref)
            if cost > bound:
                return ABORTED, work
        # From here on it counts as eliminated.
        key[v] = NEVER
        stages[v] = -1
        work += eliminate_vertex(rows, state, v, n_free, neighbours, touched, weighted)
        order[done] = v
        done += 1
        for w in range(words):
            x = touched[w]
            work += popcount(x)
            while x != 0:
                u = (w << 6) + lowest_bit(x)
                x &= x - np.uint64(1)
                if u < n_free and stages[u] == stage:
                    key[u] = _key(state, u, rule, random)
    return cost, work


@kernel
def _finish_clique(rows: Any, state: Any, v: int, n_free: int, stage: int, done: int, order: Any) -> None:
    """Order what is left when it is one clique, ``N[v]``: any order of it is as good."""
    words = rows.shape[1]
    rest = rows[v].copy()
    rest[v >> 6] |= bit(v)
    degree = state[DEGREE, v] + 1
    weight = state[WEIGHT, v]
    while done < n_free:
        following = 1 << 20
        for u in range(n_free):
            if state[STAGE, u] == stage and rest[u >> 6] & bit(u) != 0:
                rest[u >> 6] &= ~bit(u)
                degree -= 1
                for w in range(words):
                    rows[u, w] = rest[w]
                state[DEGREE, u] = degree
                state[WEIGHT, u] = weight
                weight -= state[OWN_WEIGHT, u]
                order[done] = u
                done += 1
            elif state[STAGE, u] > stage:
                following = min(following, state[STAGE, u])
        stage = following


@kernel
def clique_cost(
    rows: Any, state: Any, n_free: int, order: Any, hanging: Any, ref: float, parents: Any, absorbed: Any
) -> float:
    """Total states of the maximal elimination cliques of a finished run, in units of ``2**ref``.

    ``hanging`` are cliques left behind by earlier eliminations outside this graph: a clique equal to one of them is
    contained in it and costs nothing. ``parents int32[n_free + n_hanging]`` receives the first vertex eliminated of
    each vertex's higher neighbours and of each hanging clique, or -1; ``absorbed uint8[n_free]`` is 1 where the
    vertex's clique is not maximal.
    """
    words = rows.shape[1]
    position = state[POSITION]
    for i in range(n_free):
        position[order[i]] = i
        absorbed[i] = 0
    for i in range(n_free + hanging.shape[0]):
        parent = -1
        first = n_free
        size = 0
        for w in range(words):
            x = rows[i, w] if i < n_free else hanging[i - n_free, w]
            size += popcount(x)
            while x != 0:
                u = (w << 6) + lowest_bit(x)
                x &= x - np.uint64(1)
                if u < n_free and position[u] < first:
                    first = position[u]
                    parent = u
        parents[i] = parent
        # A clique is contained in another one exactly when a child's separator has its size.
        if parent >= 0 and state[DEGREE, parent] + 1 == size:
            absorbed[parent] = 1
    cost = 0.0
    for v in range(n_free):
        if absorbed[v] == 0:
            cost += np.exp2(state[WEIGHT, v] / FIXED - ref)
    return cost
