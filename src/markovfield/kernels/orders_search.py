"""Search for elimination orders of one connected graph: a greedy portfolio, then noisy restarts."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.kernels._flags import kernel
from markovfield.kernels.bitsets import FIXED, random_below
from markovfield.kernels.orders_greedy import ABORTED, WEIGHT, clique_cost, greedy

__all__ = ["portfolio", "random_rule", "restarts"]


@kernel
def _try(
    rows0: Any,
    state0: Any,
    rule: Any,
    best: float,
    rows: Any,
    state: Any,
    scratch: Any,
    order: Any,
    random: Any,
) -> tuple[float, int]:
    """One greedy run against ``best`` (log2 of the cost to beat); the better cost, and ``order`` updated with it."""
    m = rows0.shape[0]
    ref = best if best < 1e300 else 0.0
    bound = 1.0 if best < 1e300 else np.inf
    trial = scratch[0]
    cost, work = greedy(rows0, state0, m, rule, ref, bound, rows, state, trial, random)
    if cost == ABORTED:
        return best, work
    if best > 1e300:
        for v in range(m):
            ref = max(ref, state[WEIGHT, v] / FIXED)
    cost = clique_cost(rows, state, m, trial, rows[:0], ref, scratch[1], scratch[2])
    cost = ref + np.log2(cost)
    work += 2 * m * rows0.shape[1]
    if cost < best:
        for i in range(m):
            order[i] = trial[i]
        best = cost
    return best, work


@kernel
def portfolio(rows0: Any, state0: Any, which: int, order: Any, random: Any) -> float:
    """The best of a few deterministic greedy orders; returns log2 of its states.

    ``which`` has bits 1 for minimum fill, 2 minimum weight, 4 weighted minimum fill, 8 fill and weight in equal parts.
    """
    m = rows0.shape[0]
    rows = np.empty_like(rows0)
    state = state0.copy()
    scratch = np.empty((3, m), np.int32)
    rule = np.zeros(4, np.int64)
    best = np.inf
    for k in range(4):
        if which & (1 << k) == 0:
            continue
        rule[3] = 0
        if k == 0:
            rule[0], rule[1] = 1 << 36, 1
        elif k == 1:
            rule[0], rule[1] = 1, 1 << 22
        elif k == 2:
            rule[0], rule[1], rule[3] = 1 << 36, 1, 1
        else:
            rule[0], rule[1] = 1 << 20, 1 << 20
        best, _ = _try(rows0, state0, rule, best, rows, state, scratch, order, random)
    return best


@kernel
def restarts(rows0: Any, state0: Any, best: float, budget: float, order: Any, random: Any) -> tuple[float, float]:
    """Noisy greedy runs with random rules until the budget is spent."""
    m = rows0.shape[0]
    rows = np.empty_like(rows0)
    state = state0.copy()
    scratch = np.empty((3, m), np.int32)
    rule = np.zeros(4, np.int64)
    spent = 0.0
    while spent < budget:
        random_rule(rule, random)
        best, more = _try(rows0, state0, rule, best, rows, state, scratch, order, random)
        spent += more
    return best, spent


@kernel
def random_rule(rule: Any, random: Any) -> None:
    """Mostly fill alone, weighted or not, sometimes mixed with the clique's weight; noise of two to sixteen bits.

    Measured on linkage, Promedus, grid and circuit models: fill finds three times as many improvements per unit of
    work as weight does, and with less noise the search stays where it is.
    """
    kind = random_below(random, 16)
    if kind < 12:
        rule[0], rule[1] = 1 << 20, 1 << 8
    else:
        share = random_below(random, 513) + 512 * (kind < 15)
        rule[0], rule[1] = share << 10, (1024 - share) << 10
    rule[3] = random_below(random, 2)
    rule[2] = np.int64(1) << (12 + random_below(random, 4))
