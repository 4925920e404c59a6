"""The best configuration of a single factor, given a score for every state of each of its variables.

| kind | cost |
| --- | --- |
| table | its cells |
| clause, cardinality, parity | the states of its variables, and sorting n numbers |
| distance | the product of the states |

Invariant: `FactorLayout`, and that scores of states lie axis after axis in scope order. How a kind finds its best
configuration is free to change; ties may go either way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.factors.kinds_kernel import CARDINALITY, DISTANCE, PARITY, TABLE
from markovfield.factors.literals_kernel import _sort_falling
from markovfield.kernels.compiler import kernel

__all__ = ["FactorLayout", "best_configuration", "factor_score", "oracle_work_size"]


class FactorLayout(NamedTuple):
    """Factors of any kind but a noisy-max, as the structure has them, with the last cell of each structured one.

    Axis p has a vector over its variable's states at ``copy_offsets[p]`` in every array of copies.
    """

    cardinalities: npt.NDArray[np.int32]
    scope_offsets: npt.NDArray[np.int64]
    scopes: npt.NDArray[np.int32]
    kind: npt.NDArray[np.int8]
    caps: npt.NDArray[np.int64]
    table_offsets: npt.NDArray[np.int64]
    table_strides: npt.NDArray[np.int64]
    copy_offsets: npt.NDArray[np.int64]


def oracle_work_size(most_axes: int) -> int:
    """Scratch that `best_configuration` needs for a factor of so many variables."""
    return 5 * most_axes + 8


@kernel
def _literal(kind, stride):  # type: ignore[no-untyped-def]
    """The state a literal speaks of, and whether it is true in that state only (or else in all others)."""
    literal = stride
    if kind == CARDINALITY:
        literal = literal - (((literal + 2147483648) >> 32) << 32)
    return (literal, False) if literal >= 0 else (-literal - 1, True)


@kernel
def factor_score(at, log_tables, f, configuration, begin):  # type: ignore[no-untyped-def]
    """The factor's log-potential of a configuration, which starts at ``configuration[begin]``."""
    first, last = at.scope_offsets[f], at.scope_offsets[f + 1]
    kind, cell = at.kind[f], at.table_offsets[f]
    if kind == TABLE:
        for p in range(first, last):
            cell += at.table_strides[p] * configuration[begin + p - first]
    elif kind == DISTANCE:
        cell += min(abs(configuration[begin] - configuration[begin + 1]), at.caps[f])
    else:
        true = np.int64(0)
        for p in range(first, last):
            state, only = _literal(kind, at.table_strides[p])
            true += (configuration[begin + p - first] == state) == only
        cell += true & 1 if kind == PARITY else min(true, at.caps[f])
    return log_tables[cell]


@kernel
def best_configuration(at, log_tables, f, scores, configuration, begin, work, states):  # type: ignore[no-untyped-def]
    """Find it, write it from ``configuration[begin]`` on, and return its score.

    ``scores`` are those of the states, axis after axis as in the copies, from the factor's first axis on; ``states`` is
    scratch as long as the largest scope.
    """
    if at.kind[f] == TABLE:
        return _best_cell(at, log_tables, f, scores, configuration, begin, states)
    if at.kind[f] == DISTANCE:
        return _best_distance(at, log_tables, f, scores, configuration, begin)
    return _best_literals(at, log_tables, f, scores, configuration, begin, work)


@kernel
def _best_cell(at, log_tables, f, scores, configuration, begin, states):  # type: ignore[no-untyped-def]
    first, last = at.scope_offsets[f], at.scope_offsets[f + 1]
    offsets, strides, zero = at.copy_offsets, at.table_strides, at.copy_offsets[first]
    cell = at.table_offsets[f]
    if first == last:
        return log_tables[cell]
    for p in range(first, last):
        states[p - first] = 0
    inner = last - 1
    size, stride, source = offsets[last] - offsets[inner], strides[inner], offsets[inner] - zero
    best = -np.inf
    while True:
        outer = 0.0
        for p in range(first, inner):
            outer += scores[offsets[p] - zero + states[p - first]]
        if outer > -np.inf:
            for j in range(size):
                value = outer + log_tables[cell + stride * j] + scores[source + j]
                if value > best:
                    best = value
                    for p in range(first, inner):
                        configuration[begin + p - first] = states[p - first]
                    configuration[begin + inner - first] = j
        p = inner - 1
        while p >= first:
            states[p - first] += 1
            cell += strides[p]
            if states[p - first] < offsets[p + 1] - offsets[p]:
                break
            cell -= strides[p] * states[p - first]
            states[p - first] = 0
            p -= 1
        if p < first:
            return best


@kernel
def _best_distance(at, log_tables, f, scores, configuration, begin):  # type: ignore[no-untyped-def]
    first, base, cap = at.scope_offsets[f], at.table_offsets[f], at.caps[f]
    n = at.copy_offsets[first + 1] - at.copy_offsets[first]
    m = at.copy_offsets[first + 2] - at.copy_offsets[first + 1]
    best = -np.inf
    for i in range(n):
        for j in range(m):
            value = scores[i] + scores[n + j] + log_tables[base + min(abs(i - j), cap)]
            if value > best:
                best = value
                configuration[begin], configuration[begin + 1] = i, j
    return best


@kernel
def _best_literals(at, log_tables, f, scores, configuration, begin, work):  # type: ignore[no-untyped-def]
    """The best states with every literal false, then as many literals true as pays, those that gain most first."""
    first, last = at.scope_offsets[f], at.scope_offsets[f + 1]
    n, kind, zero = last - first, at.kind[f], at.copy_offsets[first]
    # The best state with the literal false stays in the configuration, the one with it true goes to ``others``.
    gains, items, others = 0, n, 2 * n
    free, forced = np.int64(0), np.int64(0)
    total = 0.0
    for i in range(n):
        p = first + i
        state, only = _literal(kind, at.table_strides[p])
        source = at.copy_offsets[p] - zero
        single, rest, rest_state = scores[source + state], -np.inf, np.int64(-1)
        for x in range(at.copy_offsets[p + 1] - at.copy_offsets[p]):
            if x != state and scores[source + x] > rest:
                rest, rest_state = scores[source + x], np.int64(x)
        false, true = (rest, single) if only else (single, rest)
        false_state, true_state = (rest_state, state) if only else (state, rest_state)
        if false == -np.inf:
            forced += 1
            total += true
            configuration[begin + i] = true_state
        else:
            total += false
            configuration[begin + i] = false_state
            if true > -np.inf:
                work[gains + free] = true - false
                work[items + free] = i
                free += 1
        work[others + i] = true_state
    _sort_falling(work, gains, items, free)
    best, count, gained = -np.inf, 0, 0.0
    for c in range(free + 1):
        if c > 0:
            gained += work[gains + c - 1]
        true_ones = forced + c
        cell = true_ones & 1 if kind == PARITY else min(true_ones, at.caps[f])
        value = gained + log_tables[at.table_offsets[f] + cell]
        if value > best:
            best, count = value, c
    for c in range(count):
        i = np.int64(work[items + c])
        configuration[begin + i] = np.int64(work[others + i])
    return total + best
