"""Elimination orders: the cost minimised is the number of states of the junction tree's maximal cliques.

Trees are stripped in linear time, simplicial and almost simplicial vertices eliminated where that is safe, and each
connected rest is ordered by the best of several greedy rules, then, given effort, by a seeded search. Very large rests
use a quotient graph instead. All counts of work are deterministic: the same call always gives the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.kernels._flags import kernel
from markovfield.kernels.bitsets import FIXED, bit, lowest_bit, random_seed
from markovfield.kernels.orders_greedy import (
    CARDINALITY,
    OWN_WEIGHT,
    STAGE,
    initial_state,
    reduce_graph,
)
from markovfield.kernels.orders_improve import improve
from markovfield.kernels.orders_search import portfolio, restarts
from markovfield.kernels.orders_sparse import (
    component_of,
    primal_graph,
    sparse_greedy,
    strip_leaves,
    symbolic_elimination,
)

__all__ = ["eliminate", "search_order"]

LARGEST_DENSE = 8192
"""Components with more vertices are ordered on the quotient graph: a bit matrix would take over 8 MB."""
import os

RESTARTS = float(os.environ.get("RS", "0.25"))
"""Share of the effort given to noisy restarts; the rest improves the best of them locally."""


@kernel
def eliminate(cardinalities: Any, scope_offsets: Any, scopes: Any, order: Any) -> tuple[Any, Any, float]:
    """Eliminate in a given order.

    Parameters
    ----------
    cardinalities, scope_offsets, scopes
        ``int32[n]``, ``int64[m + 1]``, ``int32[k]``: the factors, as in `Structure`.
    order
        ``int32[n']``: the variables of more than one state, each once.

    Returns
    -------
    higher_offsets, higher, log2_states
        As for `search_order`.
    """
    cards = cardinalities.copy()
    offsets, neighbours = primal_graph(cards, scope_offsets.copy(), scopes.copy())
    return symbolic_elimination(cards, offsets, neighbours, order.copy())


@kernel
def search_order(
    cardinalities: Any, scope_offsets: Any, scopes: Any, stage: Any, effort: float, seed: int, rules: int
) -> tuple[Any, Any, Any, float]:
    """Search for an order of low total clique states.

    Parameters
    ----------
    cardinalities, scope_offsets, scopes
        ``int32[n]``, ``int64[m + 1]``, ``int32[k]``: the factors, as in `Structure`. Variables of one state are ignored.
    stage
        ``int8[n]``, not negative: variables of a lower stage are eliminated before those of a higher one.
    effort
        Nanoseconds, roughly, of search beyond the greedy portfolio.
    seed
        Of the random search; nothing is random when ``effort`` is 0.
    rules
        Reductions: 1 simplicial vertices, 2 almost simplicial ones; 3 is both.

    Returns
    -------
    order
        ``int32[n']``: the variables of more than one state.
    higher_offsets, higher
        ``int64[n' + 1]``, ``int32[...]``: neighbours of ``order[i]`` when it is eliminated, in order of their own
        elimination, so the first is its parent in the elimination tree.
    log2_states
        log2 of the sum, over maximal elimination cliques, of the product of cardinalities.
    """
    return _search(
        cardinalities.copy(),
        scope_offsets.copy(),
        scopes.copy(),
        stage.copy(),
        effort,
        seed,
        rules,
        15,
        np.inf,
    )


@kernel
def _search(
    cards: Any,
    scope_offsets: Any,
    scopes: Any,
    stage: Any,
    effort: float,
    seed: int,
    rules: int,
    which: int,
    limit: float,
) -> tuple[Any, Any, Any, float]:
    n = cards.size
    offsets, neighbours = primal_graph(cards, scope_offsets, scopes)
    order = np.empty(n, np.int32)
    alive = np.empty(n, np.bool_)
    done = strip_leaves(cards, offsets, neighbours, stage, alive, order)
    total = done
    for v in range(n):
        total += alive[v]
    if done < total:
        lower_bound = _heaviest_factor(cards, scope_offsets, scopes)
        members = np.empty(total - done, np.int32)
        local = np.full(n, -1, np.int32)
        core_rows = [np.empty((0, 0), np.uint64) for _ in range(0)]
        core_states = [np.empty((0, 0), np.int64) for _ in range(0)]
        core_members = [np.empty(0, np.int32) for _ in range(0)]
        for root in range(n):
            if not alive[root]:
                continue
            size = component_of(root, offsets, neighbours, alive, members, 0)
            if size > LARGEST_DENSE:
                if not sparse_greedy(cards, stage, offsets, neighbours, members[:size], limit, order[done:]):
                    return order[:0], np.zeros(1, np.int64), order[:0], np.inf
                done += size
                continue
            rows, state = _dense(cards, stage, offsets, neighbours, members[:size], local)
            reduced = np.empty(size, np.int64)
            count = reduce_graph(rows, state, rules, lower_bound, reduced) if rules else 0
            for i in range(count):
                order[done] = members[reduced[i]]
                done += 1
            if count < size:
                _append_cores(rows, state, members[:size], core_rows, core_states, core_members)
        random = random_seed(seed)
        done = _order_cores(core_rows, core_states, core_members, RESTARTS * effort, which, order, done, random)
    order = order[:total].copy()
    _sort_by_stage(order, stage)
    higher_offsets, higher, log2_states = symbolic_elimination(cards, offsets, neighbours, order)
    if effort > 0.0 and done > 0:
        own = np.empty(n, np.int64)
        for v in range(n):
            own[v] = _weight(cards[v])
        budget = effort * (1.0 - RESTARTS)
        random = random_seed(seed + 1)
        improve(own, cards, stage, offsets, neighbours, order, higher_offsets, higher, log2_states, budget, random)
        _sort_by_stage(order, stage)
        higher_offsets, higher, log2_states = symbolic_elimination(cards, offsets, neighbours, order)
    return order, higher_offsets, higher, log2_states


@kernel
def _heaviest_factor(cards: Any, scope_offsets: Any, scopes: Any) -> int:
    """Fixed-point log2 of the largest factor: every scope is a clique, so this bounds the heaviest clique below."""
    heaviest = np.int64(0)
    for f in range(scope_offsets.size - 1):
        weight = np.int64(0)
        for k in range(scope_offsets[f], scope_offsets[f + 1]):
            if cards[scopes[k]] > 1:
                weight += _weight(cards[scopes[k]])
        heaviest = max(heaviest, weight)
    return heaviest


@kernel
def _weight(cardinality: int) -> int:
    if cardinality == 2:
        return np.int64(FIXED)
    return np.int64(np.log2(np.float64(cardinality)) * FIXED + 0.5)


@kernel
def _dense(cards: Any, stage: Any, offsets: Any, neighbours: Any, members: Any, local: Any) -> tuple[Any, Any]:
    """Bit matrix and state of a component; ``local`` is scratch, -1 on entry and on return."""
    m = members.size
    rows = np.zeros((m, (m + 63) >> 6), np.uint64)
    state = np.empty((9, m), np.int64)
    for i in range(m):
        local[members[i]] = i
    for i in range(m):
        v = members[i]
        state[OWN_WEIGHT, i] = _weight(cards[v])
        state[CARDINALITY, i] = min(cards[v], 1024)
        state[STAGE, i] = stage[v]
        for k in range(offsets[v], offsets[v + 1]):
            j = local[neighbours[k]]
            if j >= 0:
                rows[i, j >> 6] |= bit(j)
    for i in range(m):
        local[members[i]] = -1
    initial_state(rows, state, m)
    return rows, state


@kernel
def _append_cores(rows: Any, state: Any, members: Any, core_rows: Any, core_states: Any, core_members: Any) -> None:
    """Cut what a reduction left into connected graphs with their own, smaller bit matrices."""
    m, words = rows.shape
    seen = np.zeros(m, np.bool_)
    index = np.empty(m, np.int64)
    queue = np.empty(m, np.int64)
    for root in range(m):
        if seen[root] or state[STAGE, root] < 0:
            continue
        seen[root] = True
        queue[0] = root
        head, size = 0, 1
        while head < size:
            v = queue[head]
            index[v] = head
            head += 1
            for w in range(words):
                x = rows[v, w]
                while x != 0:
                    u = (w << 6) + lowest_bit(x)
                    x &= x - np.uint64(1)
                    if not seen[u]:
                        seen[u] = True
                        queue[size] = u
                        size += 1
        small = np.zeros((size, (size + 63) >> 6), np.uint64)
        own = np.empty((9, size), np.int64)
        names = np.empty(size, np.int32)
        for i in range(size):
            v = queue[i]
            names[i] = members[v]
            for k in range(9):
                own[k, i] = state[k, v]
            for w in range(words):
                x = rows[v, w]
                while x != 0:
                    j = index[(w << 6) + lowest_bit(x)]
                    x &= x - np.uint64(1)
                    small[i, j >> 6] |= bit(j)
        initial_state(small, own, size)
        core_rows.append(small)
        core_states.append(own)
        core_members.append(names)


@kernel
def _order_cores(
    core_rows: Any,
    core_states: Any,
    core_members: Any,
    effort: float,
    which: int,
    order: Any,
    done: int,
    random: Any,
) -> int:
    """Order every core: the portfolio for each, then effort in proportion to their costs."""
    n_cores = len(core_rows)
    costs = np.empty(n_cores)
    worst = 0.0
    first = done
    for c in range(n_cores):
        local = np.empty(core_members[c].size, np.int32)
        costs[c] = portfolio(core_rows[c], core_states[c], which, local, random)
        worst = max(worst, costs[c])
        for i in range(local.size):
            order[done + i] = local[i]
        done += local.size
    if effort > 0.0:
        total = 0.0
        for c in range(n_cores):
            total += np.exp2(costs[c] - worst)
        done = first
        for c in range(n_cores):
            local = order[done : done + core_members[c].size]
            budget = effort * np.exp2(costs[c] - worst) / total
            cost, spent = restarts(core_rows[c], core_states[c], costs[c], budget, local, random)
            done += local.size
    done = first
    for c in range(n_cores):
        for i in range(core_members[c].size):
            order[done] = core_members[c][order[done]]
            done += 1
    return done


@kernel
def _sort_by_stage(order: Any, stage: Any) -> None:
    """Stable sort by stage: cliques stay as they are, because stages never fall towards the root of the tree."""
    counts = np.zeros(129, np.int64)
    sorted_already = True
    for i in range(order.size):
        counts[stage[order[i]] + 1] += 1
        if i > 0 and stage[order[i]] < stage[order[i - 1]]:
            sorted_already = False
    if sorted_already:
        return
    for s in range(128):
        counts[s + 1] += counts[s]
    old = order.copy()
    for v in old:
        order[counts[stage[v]]] = v
        counts[stage[v]] += 1
