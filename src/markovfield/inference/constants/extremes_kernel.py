"""The largest and the smallest log-potential of every factor, and constants taken out of their cells.

Invariant: log-potentials are read through offsets and strides, last axis fastest; factors that read the same cells as
the one before them are not read again.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.problem.potentials_kernel import same_table
from markovfield.kernels.compiler import kernel

__all__ = ["largest_finite", "table_extremes", "take_out"]


@kernel
def largest_finite(pool):
    """The largest absolute value but for infinite ones; zero where there is none."""
    top, bottom = -np.inf, np.inf
    for i in range(len(pool)):
        x = pool[i]
        top = max(top, x)
        bottom = min(bottom, x if x > -np.inf else np.inf)
    return max(0.0, top, -bottom)


@kernel
def table_extremes(cardinalities, scope_offsets, scopes, table_offsets, table_strides, n_own, every, pool, top, low):
    """Write each factor's largest and smallest finite log-potential; -inf and inf for one that has none.

    With ``every`` above one, only every so many-th factor is looked at, and they are written one after the other.
    ``n_own[f]`` is how many cells from its offset on a structured factor reads, 0 for a plain table, and -1 for a
    factor to be passed over, which keeps what ``top`` and ``low`` hold.
    """
    counter = np.zeros(_widest(scope_offsets), np.int64)
    for place in range((len(table_offsets) + every - 1) // every):
        f = place * every
        if n_own[f] < 0:
            continue
        tied = every == 1 and f > 0 and n_own[f] == n_own[f - 1]
        if tied and same_table(f, scope_offsets, scopes, cardinalities, table_offsets, table_strides):
            top[f], low[f] = top[f - 1], low[f - 1]
            continue
        largest, smallest = -np.inf, np.inf
        if n_own[f] > 0:
            for i in range(table_offsets[f], table_offsets[f] + n_own[f]):
                x = pool[i]
                largest = max(largest, x)
                if x > -np.inf:
                    smallest = min(smallest, x)
            top[place], low[place] = largest, smallest
            continue
        start, stop = scope_offsets[f], scope_offsets[f + 1]
        inner_card, inner_stride, n_outer = _inner(start, stop, cardinalities, scopes, table_strides)
        counter[:n_outer] = 0
        at = table_offsets[f]
        while True:
            for j in range(inner_card):
                x = pool[at + j * inner_stride]
                largest = max(largest, x)
                if x > -np.inf:
                    smallest = min(smallest, x)
            at, more = _step(at, n_outer, start, counter, cardinalities, scopes, table_strides)
            if not more:
                break
        top[place], low[place] = largest, smallest


@kernel
def take_out(cardinalities, scope_offsets, scopes, table_offsets, table_strides, n_own, constants, shift):
    """Write to every cell the constant of the factors that read it; False where two of them do not agree.

    ``shift`` is nan where nobody has written yet. Factors with ``n_own`` of -1 are passed over.
    """
    counter = np.zeros(_widest(scope_offsets), np.int64)
    for f in range(len(table_offsets)):
        if n_own[f] < 0:
            continue
        if (
            f
            and n_own[f] == n_own[f - 1]
            and same_table(f, scope_offsets, scopes, cardinalities, table_offsets, table_strides)
        ):
            if constants[f] != constants[f - 1]:
                return False
            continue
        constant = constants[f]
        if n_own[f] > 0:
            for i in range(table_offsets[f], table_offsets[f] + n_own[f]):
                if shift[i] != shift[i]:
                    shift[i] = constant
                elif shift[i] != constant:
                    return False
            continue
        start, stop = scope_offsets[f], scope_offsets[f + 1]
        inner_card, inner_stride, n_outer = _inner(start, stop, cardinalities, scopes, table_strides)
        counter[:n_outer] = 0
        at = table_offsets[f]
        while True:
            for j in range(inner_card):
                i = at + j * inner_stride
                if shift[i] != shift[i]:
                    shift[i] = constant
                elif shift[i] != constant:
                    return False
            at, more = _step(at, n_outer, start, counter, cardinalities, scopes, table_strides)
            if not more:
                break
    return True


@kernel
def _widest(scope_offsets):
    widest = 1
    for f in range(len(scope_offsets) - 1):
        widest = max(widest, scope_offsets[f + 1] - scope_offsets[f])
    return widest


@kernel
def _inner(start, stop, cardinalities, scopes, table_strides):
    """Length and stride of the last axis, and how many others there are."""
    if stop == start:
        return 1, 0, 0
    stride = table_strides[stop - 1]
    card = np.int64(cardinalities[scopes[stop - 1]]) if stride != 0 else 1
    return card, stride, stop - start - 1


@kernel
def _step(at, n_outer, start, counter, cardinalities, scopes, table_strides):
    """The first cell of the next row of a table, and whether there is one."""
    a = n_outer - 1
    while a >= 0:
        stride = table_strides[start + a]
        if stride != 0:
            # Otherwise every state of this axis reads the same cells.
            counter[a] += 1
            at += stride
            if counter[a] < cardinalities[scopes[start + a]]:
                return at, True
            at -= stride * counter[a]
            counter[a] = 0
        a -= 1
    return at, False
