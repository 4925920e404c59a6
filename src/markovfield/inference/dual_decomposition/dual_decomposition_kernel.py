"""Subproblems of dual decomposition: each factor's best configuration, and its quadratic program by an active set.

Every axis of a factor has its own copy of its variable: weights on the states, and multipliers that draw the copies
together. The quadratic program of AD3 (Martins et al. 2015) is, over mixtures of the factor's configurations,

    maximise  score - (penalty / 2) * |copies - consensus|^2,

and its solution mixes few configurations. They are kept from one iteration to the next. In each step the mixture is
optimised over the kept ones (a small linear system), and the best configuration at the new prices joins them.

Free to change: `RIDGE`, and how many rounds an active set gets; the bound does not depend on how well a program is
solved.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.factors.oracles_kernel import best_configuration, factor_score
from markovfield.kernels.compiler import kernel

__all__ = ["best_copies", "quadratic_copies"]

# Added to the diagonal of the system, in units of the penalty: kept configurations may be affinely dependent.
RIDGE = 1e-8


@kernel
def best_copies(at, log_tables, begin, end, scores, values, copies, work, states):  # type: ignore[no-untyped-def]
    """The best configuration of each factor from ``begin`` to ``end``: its score, and its copies as zeros and ones."""
    chosen = np.empty(len(states), np.int64)
    for f in range(begin, end):
        first, last = at.scope_offsets[f], at.scope_offsets[f + 1]
        low, high = at.copy_offsets[first], at.copy_offsets[last]
        values[f] = best_configuration(at, log_tables, f, scores[low:high], chosen, 0, work, states)
        for k in range(low, high):
            copies[k] = 0.0
        for p in range(first, last):
            copies[at.copy_offsets[p] + chosen[p - first]] = 1.0


@kernel
def _solve(n, gram, right, mixture, system, ones):  # type: ignore[no-untyped-def]
    """mixture = the best weights adding up to one, any sign; the common price. By Cholesky factors of the system."""
    for i in range(n):
        for j in range(i + 1):
            total = gram[i, j]
            for k in range(j):
                total -= system[i, k] * system[j, k]
            system[i, j] = math.sqrt(max(total, 1e-300)) if i == j else total / system[j, j]
    for i in range(n):
        a, b = right[i], 1.0
        for k in range(i):
            a -= system[i, k] * mixture[k]
            b -= system[i, k] * ones[k]
        mixture[i], ones[i] = a / system[i, i], b / system[i, i]
    for i in range(n - 1, -1, -1):
        a, b = mixture[i], ones[i]
        for k in range(i + 1, n):
            a -= system[k, i] * mixture[k]
            b -= system[k, i] * ones[k]
        mixture[i], ones[i] = a / system[i, i], b / system[i, i]
    total, norm = 0.0, 0.0
    for i in range(n):
        total += mixture[i]
        norm += ones[i]
    price = (total - 1.0) / norm
    for i in range(n):
        mixture[i] -= price * ones[i]
    return price


@kernel
def _drop(which, n, arity, kept, base, weights, gram, right):  # type: ignore[no-untyped-def]
    """Take a configuration out of those kept: the last one takes its place."""
    end = n - 1
    if which != end:
        for k in range(arity):
            kept[base + which * arity + k] = kept[base + end * arity + k]
        weights[which], right[which] = weights[end], right[end]
        for j in range(n):
            gram[which, j] = gram[end, j]
        for j in range(n):
            gram[j, which] = gram[j, end]
        gram[which, which] = gram[end, end]


@kernel
def _enter(at, log_tables, f, n, arity, kept, base, scores, aim, penalty, gram, right):  # type: ignore[no-untyped-def]
    """Fill the row of configuration n: how many variables it shares with each, and what it scores."""
    first, zero = at.scope_offsets[f], at.copy_offsets[at.scope_offsets[f]]
    value = factor_score(at, log_tables, f, kept, base + n * arity)
    for k in range(arity):
        where = at.copy_offsets[first + k] - zero + kept[base + n * arity + k]
        value += scores[where] + penalty * aim[where]
    right[n] = value
    for i in range(n + 1):
        same = 0.0
        for k in range(arity):
            same += kept[base + n * arity + k] == kept[base + i * arity + k]
        gram[n, i] = penalty * same
        gram[i, n] = gram[n, i]
    gram[n, n] += penalty * RIDGE * arity


@kernel
def quadratic_copies(  # type: ignore[no-untyped-def]
    at, log_tables, begin, end, scores, aims, penalty, rounds, set_offsets, weight_offsets, counts, kept, weights,
    copies, work, states,
):  # fmt: skip
    """Solve the quadratic programs of factors ``begin`` to ``end``, in at most so many rounds of their active sets.

    ``scores`` are the copies' (multipliers and shares of the variables' unary potentials), ``aims`` the consensus that
    each copy is drawn to. Factor f keeps ``counts[f]`` configurations from ``kept[set_offsets[f]]`` on, with weights
    from ``weights[weight_offsets[f]]`` on.
    """
    most = 1
    for f in range(begin, end):
        most = max(most, weight_offsets[f + 1] - weight_offsets[f])
    gram, system = np.empty((most, most)), np.empty((most, most))
    right, mixture, ones, priced = np.empty(most), np.empty(most), np.empty(most), np.empty(len(work))
    for f in range(begin, end):
        first, last = at.scope_offsets[f], at.scope_offsets[f + 1]
        low, high = at.copy_offsets[first], at.copy_offsets[last]
        arity, room = last - first, weight_offsets[f + 1] - weight_offsets[f]
        own, aim, copy = scores[low:high], aims[low:high], copies[low:high]
        base, mixed = set_offsets[f], weights[weight_offsets[f] : weight_offsets[f + 1]]
        n = counts[f]
        for k in range(high - low):
            copy[k] = 0.0
        for i in range(n):
            _enter(at, log_tables, f, i, arity, kept, base, own, aim, penalty, gram, right)
        for _ in range(rounds):
            price = -np.inf
            if n > 0:
                price = _solve(n, gram, right, mixture, system, ones)
                step, blocking = 1.0, -1
                for i in range(n):
                    if mixture[i] < -1e-12 and mixed[i] - mixture[i] > 0.0:
                        share = mixed[i] / (mixed[i] - mixture[i])
                        if share < step:
                            step, blocking = share, i
                for i in range(n):
                    mixed[i] = max(0.0, mixed[i] + step * (mixture[i] - mixed[i]))
                if blocking >= 0:
                    _drop(blocking, n, arity, kept, base, mixed, gram, right)
                    n -= 1
                    continue
                _mix(at, first, arity, n, kept, base, mixed, copy)
            for k in range(high - low):
                priced[k] = own[k] + penalty * (aim[k] - copy[k])
            if n == room:
                # Those of no weight make room.
                for i in range(n - 1, -1, -1):
                    if mixed[i] < 1e-9:
                        _drop(i, n, arity, kept, base, mixed, gram, right)
                        n -= 1
                if n == room:
                    break
            value = best_configuration(at, log_tables, f, priced, kept, base + n * arity, work, states)
            # The ridge makes kept configurations look this much better than they are priced.
            if n > 0 and value <= price + 2.0 * penalty * RIDGE * arity + 1e-9 * (1.0 + abs(price)):
                break
            mixed[n] = 1.0 if n == 0 else 0.0
            _enter(at, log_tables, f, n, arity, kept, base, own, aim, penalty, gram, right)
            n += 1
        _mix(at, first, arity, n, kept, base, mixed, copy)
        counts[f] = n


@kernel
def _mix(at, first, arity, n, kept, base, mixed, copy):  # type: ignore[no-untyped-def]
    """The copies of a mixture of configurations."""
    zero, total = at.copy_offsets[first], 0.0
    for k in range(at.copy_offsets[first + arity] - zero):
        copy[k] = 0.0
    for i in range(n):
        total += mixed[i]
    for i in range(n):
        for k in range(arity):
            copy[at.copy_offsets[first + k] - zero + kept[base + i * arity + k]] += mixed[i] / total
