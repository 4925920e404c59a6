"""Local search on an elimination tree: small connected parts of it are eliminated anew, better.

The graph left after eliminating a set does not depend on the order within the set. So when a connected part S of the
elimination tree is reordered, only the cliques of S change: everything below was eliminated before, everything above
sees the same graph. A part and the vertices it touches make a small dense graph on which a greedy run costs
microseconds, whatever the size of the whole.

Invariant: ``tree`` has the rows named below, the pool holds higher sets in elimination order, and all randomness comes
from ``random``: the same seed gives the same order. Free to change: `TRIES`, how parts are grown and how many are
tried.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.graphs.elimination.greedy_kernel import (
    ABORTED,
    CARDINALITY,
    DEGREE,
    OWN_WEIGHT,
    STAGE,
    WEIGHT,
    clique_cost,
    greedy,
    initial_state,
)
from markovfield.graphs.elimination.rules_kernel import random_rule
from markovfield.graphs.elimination.sparse_kernel import sort_by_stage
from markovfield.kernels.bitsets import FIXED, bit, lowest_bit, random_below
from markovfield.kernels.compiler import kernel

__all__ = ["improve"]

PARENT, FIRST, NEXT, PREVIOUS, START, SIZE, CLIQUE, ABSORBED, LOCAL = range(9)
"""Rows of ``tree int64[9, n]``: parent, children as linked lists, higher set in the pool, weight of the clique,
whether it is contained in another, and the index in the part being reordered."""


TRIES = 2
"""Greedy runs per part: extracting a part costs about as much as one run."""


@kernel
def improve(
    cards: Any,
    stage: Any,
    offsets: Any,
    neighbours: Any,
    order: Any,
    starts: Any,
    higher: Any,
    log2_states: float,
    effort: float,
    ratio: float,
    kicks: int,
    random: Any,
) -> float:
    """Reorder ``order`` in place until ``min(effort, ratio * states)`` units of work are done; returns the work done.

    ``starts``, ``higher`` and ``log2_states`` are those of the order given. The first ``kicks`` parts may get worse, by
    as much as the whole costs, to leave a local optimum: the result may then be worse than what was given.
    """
    n = cards.size
    own = np.empty(n, np.int64)
    for v in range(n):
        own[v] = np.int64(np.log2(np.float64(cards[v])) * FIXED + 0.5)
    tree = _tree(own, order, starts, higher)
    pool = np.empty(2 * higher.size + 1024, np.int32)
    for k in range(higher.size):
        pool[k] = higher[k]
    used = higher.size
    # Costs below are in units of the first order's, so that they never overflow.
    ref = log2_states
    current = 1.0
    part = np.empty(n, np.int32)
    candidates = np.empty(n, np.int32)
    heavy = np.empty(n, np.int32)
    chances = np.empty(n, np.float64)
    n_heavy = 0
    since = 0
    rule = np.zeros(4, np.int64)
    spent = 1.0 * higher.size + 8.0 * n
    while spent < min(effort, ratio * np.exp2(ref) * current):
        if since <= 0:
            n_heavy, current = _heavy_cliques(tree, order, ref, heavy, chances)
            since = 64 + n_heavy // 8
            spent += 4 * n
        since -= 1
        centre = heavy[_chosen(chances, n_heavy, random)]
        target = 4 << (random_below(random, 4) * (random_below(random, 4) > 0))
        target += random_below(random, target)
        size = _grow(tree, centre, target, part, candidates, random)
        rows, state, hanging, hangers, names = _extract(own, cards, stage, offsets, neighbours, tree, pool, part[:size])
        spent += 100 + 4 * rows.size + 10 * hangers.size
        old = 0.0
        for i in range(size):
            if tree[ABSORBED, names[i]] == 0:
                old += np.exp2(tree[CLIQUE, names[i]] / FIXED - ref)
        work_rows = np.empty(rows.shape, np.uint64)
        work_state = state.copy()
        trial = np.empty(size, np.int32)
        parents = np.empty(size + hangers.size, np.int32)
        absorbed = np.empty(size, np.int32)
        found = False
        bound = old * (1 + 1e-9)
        if kicks > 0:
            kicks -= 1
            bound += current
        for _ in range(TRIES):
            random_rule(rule, random)
            cost, work = greedy(rows, state, size, rule, ref, bound, work_rows, work_state, trial, random)
            spent += work
            if cost != ABORTED:
                cost = clique_cost(work_rows, work_state, size, trial, hanging, ref, parents, absorbed)
                # Equal cost is taken too: plateaus are wide, and walking them finds the way down.
                found = cost <= bound
            if found:
                current += cost - old
                break
        if found:
            needed = np.int64(0)
            for i in range(size):
                needed += work_state[DEGREE, i]
            if used + needed > pool.size:
                pool, used = _collected(tree, order, pool, needed)
            used = _commit(tree, pool, used, names, work_rows, work_state, parents, absorbed, hangers)
        for i in range(names.size):
            tree[LOCAL, names[i]] = -1
    _postorder(tree, order)
    sort_by_stage(order, stage)
    return spent


@kernel
def _tree(own: Any, order: Any, starts: Any, higher: Any) -> Any:
    """Elimination tree of an order with its higher sets (first entry = parent)."""
    tree = np.full((9, own.size), -1, np.int64)
    for i in range(order.size):
        tree[ABSORBED, order[i]] = 0
    for i in range(order.size):
        v = order[i]
        size = starts[i + 1] - starts[i]
        tree[START, v] = starts[i]
        tree[SIZE, v] = size
        weight = own[v]
        for k in range(starts[i], starts[i + 1]):
            weight += own[higher[k]]
        tree[CLIQUE, v] = weight
        if size > 0:
            _link(tree, v, higher[starts[i]])
    for i in range(order.size):
        v = order[i]
        p = tree[PARENT, v]
        if p >= 0 and tree[SIZE, v] == tree[SIZE, p] + 1:
            tree[ABSORBED, p] = 1
    return tree


@kernel
def _link(tree: Any, v: int, parent: int) -> None:
    """Make v a child of ``parent``."""
    tree[PARENT, v] = parent
    tree[PREVIOUS, v] = -1
    tree[NEXT, v] = tree[FIRST, parent]
    if tree[FIRST, parent] >= 0:
        tree[PREVIOUS, tree[FIRST, parent]] = v
    tree[FIRST, parent] = v


@kernel
def _unlink(tree: Any, v: int) -> None:
    """Take v from its parent's children."""
    before, after = tree[PREVIOUS, v], tree[NEXT, v]
    if before >= 0:
        tree[NEXT, before] = after
    else:
        tree[FIRST, tree[PARENT, v]] = after
    if after >= 0:
        tree[PREVIOUS, after] = before


@kernel
def _heavy_cliques(tree: Any, order: Any, ref: float, heavy: Any, chances: Any) -> tuple[int, float]:
    """How many cliques are worth attention, and the total cost.

    ``heavy`` receives the cliques, ``chances`` the running sum of what their probabilities are proportional to: the
    square roots of their states.
    """
    heaviest = 0
    for v in order:
        heaviest = max(heaviest, tree[CLIQUE, v])
    count = 0
    total = 0.0
    cost = 0.0
    for v in order:
        below = heaviest - tree[CLIQUE, v]
        if below <= 48 * FIXED and tree[ABSORBED, v] == 0:
            chance = np.exp2(-0.5 * below / FIXED)
            cost += chance * chance
            if below <= 24 * FIXED:
                total += chance
                heavy[count] = v
                chances[count] = total
                count += 1
    return count, cost * np.exp2(heaviest / FIXED - ref)


@kernel
def _chosen(chances: Any, count: int, random: Any) -> int:
    """Index drawn in proportion to the steps of a running sum."""
    x = random_below(random, 1 << 30) / (1 << 30) * chances[count - 1]
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if chances[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _grow(tree: Any, centre: int, target: int, part: Any, candidates: Any, random: Any) -> int:
    """A connected part of the tree around ``centre``, preferring heavy cliques."""
    count = 0
    size = 0
    candidates[0] = centre
    count = 1
    tree[LOCAL, centre] = 0
    while count > 0 and size < target:
        pick = random_below(random, count)
        other = random_below(random, count)
        if tree[CLIQUE, candidates[other]] > tree[CLIQUE, candidates[pick]]:
            pick = other
        v = candidates[pick]
        count -= 1
        candidates[pick] = candidates[count]
        part[size] = v
        size += 1
        u = tree[PARENT, v]
        if u >= 0 and tree[LOCAL, u] < 0:
            tree[LOCAL, u] = 0
            candidates[count] = u
            count += 1
        u = tree[FIRST, v]
        while u >= 0:
            if tree[LOCAL, u] < 0:
                tree[LOCAL, u] = 0
                candidates[count] = u
                count += 1
            u = tree[NEXT, u]
    for i in range(count):
        tree[LOCAL, candidates[i]] = -1
    for i in range(size):
        tree[LOCAL, part[i]] = i
    return size


@kernel
def _extract(
    own: Any, cards: Any, stage: Any, offsets: Any, neighbours: Any, tree: Any, pool: Any, part: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """The graph on a part and what it touches above, after everything below the part is eliminated.

    The part's vertices come first. The vertices above are joined to a clique: they will be one whatever is done here.
    """
    size = part.size
    root = part[0]
    while tree[PARENT, root] >= 0 and tree[LOCAL, tree[PARENT, root]] >= 0:
        root = tree[PARENT, root]
    above = tree[SIZE, root]
    m = size + above
    words = (m + 63) >> 6
    names = np.empty(m, np.int32)
    for i in range(size):
        names[i] = part[i]
    for k in range(above):
        u = pool[tree[START, root] + k]
        names[size + k] = u
        tree[LOCAL, u] = size + k
    n_hanging = 0
    for i in range(size):
        u = tree[FIRST, part[i]]
        while u >= 0:
            if tree[LOCAL, u] < 0:
                n_hanging += 1
            u = tree[NEXT, u]
    rows = np.zeros((m, words), np.uint64)
    hanging = np.zeros((n_hanging, words), np.uint64)
    hangers = np.empty(n_hanging, np.int32)
    state = np.empty((9, m), np.int64)
    h = 0
    for i in range(m):
        v = names[i]
        state[OWN_WEIGHT, i] = own[v]
        state[CARDINALITY, i] = min(cards[v], 1024)
        state[STAGE, i] = stage[v]
        if i >= size:
            continue
        for k in range(offsets[v], offsets[v + 1]):
            j = tree[LOCAL, neighbours[k]]
            if j >= 0:
                rows[i, j >> 6] |= bit(j)
                rows[j, i >> 6] |= bit(i)
        u = tree[FIRST, v]
        while u >= 0:
            if tree[LOCAL, u] < 0:
                hangers[h] = u
                for k in range(tree[START, u], tree[START, u] + tree[SIZE, u]):
                    j = tree[LOCAL, pool[k]]
                    hanging[h, j >> 6] |= bit(j)
                for k in range(tree[START, u], tree[START, u] + tree[SIZE, u]):
                    j = tree[LOCAL, pool[k]]
                    for w in range(words):
                        rows[j, w] |= hanging[h, w]
                h += 1
            u = tree[NEXT, u]
    for i in range(size, m):
        for j in range(size, m):
            rows[i, j >> 6] |= bit(j)
    for i in range(m):
        rows[i, i >> 6] &= ~bit(i)
    initial_state(rows, state, size)
    return rows, state, hanging, hangers, names


@kernel
def _commit(
    tree: Any,
    pool: Any,
    used: int,
    names: Any,
    rows: Any,
    state: Any,
    parents: Any,
    absorbed: Any,
    hangers: Any,
) -> int:
    """Write a part's new order into the tree; returns the new end of the pool."""
    size = absorbed.size
    words = rows.shape[1]
    root = names[0]
    while tree[PARENT, root] >= 0 and 0 <= tree[LOCAL, tree[PARENT, root]] < size:
        root = tree[PARENT, root]
    above = tree[PARENT, root]
    if above >= 0:
        _unlink(tree, root)
    for i in range(size):
        v = names[i]
        tree[FIRST, v] = -1
        tree[CLIQUE, v] = state[WEIGHT, i]
        tree[ABSORBED, v] = absorbed[i]
        tree[START, v] = used
        for w in range(words):
            x = rows[i, w]
            while x != 0:
                pool[used] = names[(w << 6) + lowest_bit(x)]
                used += 1
                x &= x - np.uint64(1)
        tree[SIZE, v] = used - tree[START, v]
    for i in range(size):
        if parents[i] >= 0:
            _link(tree, names[i], names[parents[i]])
        elif above >= 0:
            _link(tree, names[i], above)
        else:
            tree[PARENT, names[i]] = -1
    for h in range(hangers.size):
        _link(tree, hangers[h], names[parents[size + h]])
    return used


@kernel
def _collected(tree: Any, order: Any, pool: Any, needed: int) -> tuple[Any, int]:
    """The pool without the sets that were replaced, with room for at least ``needed`` more entries."""
    total = 0
    for v in order:
        total += tree[SIZE, v]
    fresh = np.empty(2 * total + needed + 1024, np.int32)
    used = 0
    for v in order:
        start = tree[START, v]
        tree[START, v] = used
        for k in range(start, start + tree[SIZE, v]):
            fresh[used] = pool[k]
            used += 1
    return fresh, used


@kernel
def _postorder(tree: Any, order: Any) -> None:
    """An order in which children come before their parents."""
    end = order.size
    roots = order.copy()
    for v in roots:
        if tree[PARENT, v] >= 0:
            continue
        # Parents first, filled in from the back: the stack is the part of ``order`` not yet written.
        stack = 0
        order[0] = v
        while stack >= 0:
            u = order[stack]
            stack -= 1
            end -= 1
            child = tree[FIRST, u]
            tree[LOCAL, u] = end
            while child >= 0:
                stack += 1
                order[stack] = child
                child = tree[NEXT, child]
    for v in roots:
        order[tree[LOCAL, v]] = v
