"""Greedy rules: the deterministic portfolio, and the noisy rules of the local search.

Invariant: a rule is four integers: the shares of fill and weight, the noise, and whether fill is weighted. Free to
change: which rules there are (the bits of ``which`` are used by `graphs.orders`) and how often each is drawn, which was
measured, see `random_rule`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.graphs.elimination.greedy_kernel import ABORTED, DEGREE, STAGE, WEIGHT, clique_cost, greedy
from markovfield.kernels.bitsets import FIXED, random_below
from markovfield.kernels.compiler import kernel

__all__ = ["portfolio", "random_rule"]

HOPELESS = 100.0
"""Where the first rule needs more bits than this, the others are not tried: nobody will run the result."""

GIVE_UP = 200.0
"""From so many bits on even the first rule is left: a graph of thousands of vertices would take it many seconds."""


@kernel
def _finish_anyhow(state: Any, started: Any, order: Any) -> None:
    """The vertices eliminated so far, then the others by what degree they have now."""
    m = state.shape[1]
    done = 0
    for v in range(m):
        done += state[STAGE, v] < 0
    for i in range(done):
        order[i] = started[i]
    keys = np.empty(m - done, np.int64)
    rest = done
    for v in range(m):
        if state[STAGE, v] >= 0:
            keys[rest - done] = state[DEGREE, v]
            order[rest] = v
            rest += 1
    left = order[done:m].copy()
    for i, j in enumerate(np.argsort(keys, kind="mergesort")):
        order[done + i] = left[j]


@kernel
def portfolio(rows0: Any, state0: Any, which: int, order: Any, random: Any) -> float:
    """The best of a few deterministic greedy orders; returns log2 of its states, infinity where it gave up.

    ``which`` has bits 1 for minimum fill, 2 minimum weight, 4 weighted minimum fill, 8 fill and weight in equal parts.
    """
    m, words = rows0.shape
    rows = np.empty((m, words), np.uint64)
    state = state0.copy()
    scratch = np.empty((3, m), np.int32)
    hanging = np.empty((0, words), np.uint64)
    rule = np.zeros(4, np.int64)
    best = np.inf
    for k in range(4):
        if which & (1 << k) == 0 or HOPELESS < best < np.inf:
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
        first = best == np.inf
        ref = GIVE_UP if first else best
        cost, _ = greedy(rows0, state0, m, rule, ref, 1.0, rows, state, scratch[0], random)
        if cost == ABORTED:
            if first:
                _finish_anyhow(state, scratch[0], order)
                return np.inf
            continue
        if first:
            ref = 0.0
            for v in range(m):
                ref = max(ref, state[WEIGHT, v] / FIXED)
        cost = ref + np.log2(clique_cost(rows, state, m, scratch[0], hanging, ref, scratch[1], scratch[2]))
        if cost < best:
            best = cost
            for i in range(m):
                order[i] = scratch[0, i]
    return best


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
