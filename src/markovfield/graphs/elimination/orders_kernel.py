"""Elimination orders: the cost minimised is the number of states of the junction tree's maximal cliques.

Trees are stripped in linear time, simplicial and almost simplicial vertices eliminated where that is safe, and each
connected rest is ordered by the best of several greedy rules. Very large rests use sparse rules instead. Given effort,
small parts of the elimination tree are then ordered anew. All counts of work are deterministic: the same call always
gives the same order.

The functions without a leading underscore are called from Python. Each phase is a kernel of its own, because Numba
compiles a kernel again inside each of its callers.

Invariant: an order lists variables of more than one state once, stage by stage, with its higher neighbours in
compressed rows; arrays are passed read-only, since another kind would compile everything anew. Free to change:
thresholds, periods and kicks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.graphs.elimination.greedy_kernel import CARDINALITY, OWN_WEIGHT, STAGE, initial_state
from markovfield.graphs.elimination.improve_kernel import improve
from markovfield.graphs.elimination.large_kernel import order_large
from markovfield.graphs.elimination.reduce_kernel import reduce_graph
from markovfield.graphs.elimination.rules_kernel import portfolio
from markovfield.graphs.elimination.sparse_kernel import (
    component_of,
    primal_graph,
    sort_by_stage,
    strip_leaves,
    symbolic_elimination,
)
from markovfield.kernels.bitsets import FIXED, bit, lowest_bit, random_seed
from markovfield.kernels.compiler import kernel

__all__ = ["EVERY_RULE", "eliminate", "search_order", "search_order_balanced"]

Order = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32], float]

LARGEST_DENSE = 8192
"""Components with more vertices are ordered on sparse graphs: a bit matrix would take over 8 MB."""
EVERY_RULE = 15
"""All of the greedy portfolio."""
NANOSECONDS = 5.0
"""Time of one unit of counted work, so that effort is about nanoseconds."""
PERIOD = 3e7
"""Effort of one period of the local search: short enough to be interrupted, long enough to converge after a kick."""
KICKS = 8
"""Parts of the elimination tree that a kick may make worse."""


def eliminate(
    cardinalities: npt.NDArray[np.int32],
    scope_offsets: npt.NDArray[np.int64],
    scopes: npt.NDArray[np.int32],
    order: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], float]:
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
    result: Any = _eliminate(_fixed(cardinalities), _fixed(scope_offsets), _fixed(scopes), _fixed(order))
    return result  # type: ignore[no-any-return]


def search_order(
    cardinalities: npt.NDArray[np.int32],
    scope_offsets: npt.NDArray[np.int64],
    scopes: npt.NDArray[np.int32],
    stage: npt.NDArray[np.int8],
    effort: float,
    seed: int,
    rules: int,
) -> Order:
    """Search for an order of low total clique states.

    Parameters
    ----------
    cardinalities, scope_offsets, scopes
        ``int32[n]``, ``int64[m + 1]``, ``int32[k]``: the factors, as in `Structure`. Variables of one state are
        ignored.
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
    return search_order_balanced(cardinalities, scope_offsets, scopes, stage, effort, np.inf, np.inf, seed, rules)


def search_order_balanced(
    cardinalities: npt.NDArray[np.int32],
    scope_offsets: npt.NDArray[np.int64],
    scopes: npt.NDArray[np.int32],
    stage: npt.NDArray[np.int8],
    effort: float,
    ratio: float,
    limit: float,
    seed: int,
    rules: int,
    greedy_rules: int = EVERY_RULE,
    check: Callable[[], None] | None = None,
) -> Order:
    """As `search_order`, but search only while that costs less than running the best order found so far.

    Nothing is searched where the graph is chordal: the first order is then the best.

    Parameters
    ----------
    cardinalities, scope_offsets, scopes, stage, seed, rules
        As for `search_order`.
    effort
        Ceiling of the search, in nanoseconds.
    ratio
        Nanoseconds of search per state of the best order so far: the search ends at ``min(effort, ratio * states)``.
    limit
        Components too large for a bit matrix (over 8192 vertices after stripping trees) are given up when their
        cliques have over ``2**limit`` states, or, in any case, over ``2**27`` members: the order returned is then
        empty, and ``log2_states`` is infinite.
    greedy_rules
        Greedy rules tried: 1 minimum fill, 2 minimum weight, 4 weighted fill, 8 fill and weight; 15 all of them.
    check
        Called now and then during the search; what it raises ends that.
    """
    cards, stages = _fixed(cardinalities), _fixed(stage)
    base: Any = _base_order(
        cards, _fixed(scope_offsets), _fixed(scopes), stages, np.int64(seed), int(rules), int(greedy_rules)
    )
    offsets, neighbours, random, order, starts, higher, log2_states, n_large = base
    if n_large:
        reached = order_large(cards, stages, offsets, neighbours, order, n_large, float(limit))
        if reached > limit or reached == np.inf:
            return order[:0], np.zeros(1, np.int64), order[:0], np.inf
        starts, higher, log2_states = symbolic_elimination(cards, offsets, neighbours, order)
    # Without fill the cliques are those of the graph itself, and no order has fewer states.
    if effort > 0.0 and 2 * len(higher) > len(neighbours):
        graph = cards, stages, offsets, neighbours
        return _improved(graph, (order, starts, higher, log2_states), effort, ratio, random, check)
    return order, starts, higher, log2_states


def _improved(
    graph: tuple[Any, ...],
    best: Order,
    effort: float,
    ratio: float,
    random: Any,
    check: Callable[[], None] | None,
) -> Order:
    """Iterated local search: periods of descent, each after a kick when the one before found next to nothing."""
    cards, stage, offsets, neighbours = graph
    spent = 0.0
    kicks = 0
    while True:
        if check is not None:
            check()
        order, starts, higher, log2_states = best
        left = min(effort, ratio * 2.0 ** min(log2_states, 1000.0)) - spent
        if left < NANOSECONDS * (len(higher) + 8 * len(order) + 10):
            return best
        period = min(left, PERIOD + 200.0 * len(higher)) / NANOSECONDS
        order = order.copy()
        per_state = ratio / NANOSECONDS if kicks == 0 else np.inf
        work = improve(
            cards, stage, offsets, neighbours, order, starts, higher, log2_states, period, per_state, kicks, random
        )
        spent += work * NANOSECONDS
        found = symbolic_elimination(cards, offsets, neighbours, order)
        kicks = KICKS if found[2] > log2_states - 1e-3 else 0
        if found[2] <= log2_states:
            best = order, *found


def _fixed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array as Numba sees most of ours, contiguous and read-only: each other kind would compile everything anew."""
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


@kernel
def _eliminate(cards: Any, scope_offsets: Any, scopes: Any, order: Any) -> tuple[Any, Any, float]:
    offsets, neighbours = primal_graph(cards, scope_offsets, scopes)
    return symbolic_elimination(cards, offsets, neighbours, order.copy())


@kernel
def _base_order(
    cards: Any, scope_offsets: Any, scopes: Any, stage: Any, seed: int, rules: int, which: int
) -> tuple[Any, Any, Any, Any, Any, Any, float, int]:
    """Strip, reduce, and order every core; components too large for that come last, as they are."""
    n = cards.size
    offsets, neighbours = primal_graph(cards, scope_offsets, scopes)
    order = np.empty(n, np.int32)
    alive = np.empty(n, np.bool_)
    done = strip_leaves(cards, offsets, neighbours, stage, alive, order)
    random = random_seed(seed)
    total = done
    for v in range(n):
        total += alive[v]
    large = total
    if done < total:
        lower_bound = _heaviest_factor(cards, scope_offsets, scopes)
        members = np.empty(total - done, np.int32)
        local = np.full(n, -1, np.int32)
        for root in range(n):
            if not alive[root]:
                continue
            size = component_of(root, offsets, neighbours, alive, members)
            if size > LARGEST_DENSE:
                for i in range(size):
                    large -= 1
                    order[large] = members[i]
                continue
            rows, state = _dense(cards, stage, offsets, neighbours, members[:size], local)
            queue = np.empty(size, np.int64)
            count = reduce_graph(rows, state, rules, lower_bound, queue) if rules else 0
            for i in range(count):
                order[done] = members[queue[i]]
                done += 1
            first = 0
            while count < size:
                while state[STAGE, first] < 0:
                    first += 1
                core_rows, core_state, queue = _core(rows, state, first)
                portfolio(core_rows, core_state, which, order[done:], random)
                count += queue.size
                for i in range(queue.size):
                    state[STAGE, queue[i]] = -1
                    order[done] = members[queue[order[done]]]
                    done += 1
    order = order[:total].copy()
    if large < total:
        return offsets, neighbours, random, order, offsets, order, 0.0, total - large
    sort_by_stage(order, stage)
    starts, higher, log2_states = symbolic_elimination(cards, offsets, neighbours, order)
    return offsets, neighbours, random, order, starts, higher, log2_states, 0


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
def _core(rows: Any, state: Any, root: int) -> tuple[Any, Any, Any]:
    """The connected graph around ``root`` with its own, smaller bit matrix, and its vertices."""
    m, words = rows.shape
    index = np.full(m, -1, np.int64)
    queue = np.empty(m, np.int64)
    queue[0] = root
    index[root] = 0
    head, size = 0, 1
    while head < size:
        v = queue[head]
        head += 1
        for w in range(words):
            x = rows[v, w]
            while x != 0:
                u = (w << 6) + lowest_bit(x)
                x &= x - np.uint64(1)
                if index[u] < 0:
                    index[u] = size
                    queue[size] = u
                    size += 1
    small = np.zeros((size, (size + 63) >> 6), np.uint64)
    own = np.empty((9, size), np.int64)
    for i in range(size):
        v = queue[i]
        for k in range(9):
            own[k, i] = state[k, v]
        for w in range(words):
            x = rows[v, w]
            while x != 0:
                j = index[(w << 6) + lowest_bit(x)]
                x &= x - np.uint64(1)
                small[i, j >> 6] |= bit(j)
    return small, own, queue[:size].copy()
