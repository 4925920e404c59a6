"""Fusing two assignments: of every variable the state that one of them has, as good as a cut can choose."""

from __future__ import annotations

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.core.running import Running
from markovfield.inference.graph_cuts.penalties import ROUNDING, Penalties
from markovfield.inference.problem.pairs import PairProblem

__all__ = ["fused"]


def fused(pairs: PairProblem, states: IntArray, proposal: IntArray, running: Running) -> IntArray:
    """A mixture of two assignments, neither of which breaks a hard zero, that is no worse than the first.

    A fusion move (Lempitsky, Rother, Roth and Blake 2010): variables choose between their two states by one cut, the
    best there is where all pairs are submodular in that choice. Where some are not, only those variables move of which
    roof duality proves that moving is no worse. Variables in which both agree take no part: time is that of a flow
    through the others.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.pairs import pair_problem
    >>> graph = mf.Potts((2, 2), n_states=3, coupling=1.0, field=np.eye(3)[[[0, 0], [1, 1]]]).compile()
    >>> pairs = pair_problem("fusion_moves", graph, Evidence.parse(graph.structure, None), shrink=False)
    >>> fused(pairs, np.array([0, 0, 2, 2]), np.array([2, 2, 1, 1]), Running()).tolist()
    [0, 0, 1, 1]
    """
    active = np.flatnonzero(states != proposal)
    if not len(active):
        return states
    penalties = _choice(pairs, states, proposal, active)
    if penalties.repels.any():
        doubled = penalties.doubled()
        doubled.run(running)
        side = doubled.source_side()
        moves = side[: len(active)] & ~side[len(active) :]
    else:
        network = penalties.network()
        network.run(running)
        moves = network.source_side()
    out = states.copy()
    out[active[moves]] = proposal[active[moves]]
    return out


def _choice(pairs: PairProblem, states: IntArray, proposal: IntArray, active: IntArray) -> Penalties:
    """What it costs the active variables to stay (state 0) or to take the proposal (state 1)."""
    n, number = len(active), np.full(len(states), -1)
    number[active] = np.arange(n)
    joined = np.flatnonzero((states != proposal)[pairs.low] | (states != proposal)[pairs.high])
    low, high = pairs.low[joined], pairs.high[joined]
    base, p, q = pairs.base[joined], pairs.low_stride[joined], pairs.high_stride[joined]
    both = (states, proposal)
    costs = np.stack([-pairs.pool[base + p * x[low] + q * y[high]] for x in both for y in both])
    _, first, which = np.unique(low * len(states) + high, return_index=True, return_inverse=True)
    if len(first) < len(low):
        # Several factors on the same two variables count as one.
        costs = np.stack([np.bincount(which.reshape(-1), cost, len(first)) for cost in costs])
        low, high = low[first], high[first]
    a, b, c, d = costs
    first_only, second_only, of_low, of_high = _parts(a, b, c, d)
    excess = pairs.unary[active, proposal[active]] - pairs.unary[active, states[active]]
    i, j = number[low], number[high]
    excess -= np.bincount(i[i >= 0], of_low[i >= 0], n) + np.bincount(j[j >= 0], of_high[j >= 0], n)
    with np.errstate(invalid="ignore"):
        rounding = ROUNDING * np.abs(costs).sum(axis=0)
        keep = (i >= 0) & (j >= 0) & ((np.abs(first_only) > rounding) | np.isinf(first_only) | np.isinf(second_only))
    one, two = first_only[keep], second_only[keep]
    equal = np.maximum(-one, 0.0)
    return Penalties(i[keep], j[keep], excess, np.maximum(one, 0.0), np.maximum(two, 0.0), equal, equal)


def _parts(
    a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Costs of pairs in (0, 0), (0, 1), (1, 0), (1, 1) as those of (1, 0) and of (0, 1), negative where it is equal
    states that cost something, and what either variable pays in state 1. Only the second and third may be infinite.
    """
    with np.errstate(invalid="ignore"):
        apart, of_low, of_high = (b + c - a - d) / 2, (c + d - a - b) / 2, (b + d - a - c) / 2
    hard_b, hard_c = np.isinf(b), np.isinf(c)
    first_only = np.where(hard_c, np.inf, np.where(hard_b, 0.0, apart))
    second_only = np.where(hard_b, np.inf, np.where(hard_c, 0.0, apart))
    for ruled, low, high in (
        (hard_b & ~hard_c, c - a, d - c),
        (hard_c & ~hard_b, d - b, b - a),
        (hard_b & hard_c, d - a, 0 * a),
    ):
        of_low, of_high = np.where(ruled, low, of_low), np.where(ruled, high, of_high)
    return first_only, second_only, of_low, of_high
