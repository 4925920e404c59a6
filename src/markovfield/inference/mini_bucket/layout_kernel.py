"""Strides by which mini-buckets read factors, messages and shifts.

Invariant: the axes of a mini-bucket are its variable and then variables in the order of their elimination, last axis
fastest; a stride of zero is an axis that is not read.

Where to move potential and weight between the mini-buckets of a variable, so that a bound becomes tighter.

Invariant: shifts add up to zero over the mini-buckets of a bucket and its weights keep their sum, so that a bound stays
a bound after any step. Free to change: the directions, and `LEAST`.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["directions", "exclude", "factor_strides", "message_strides", "moved_strides", "step"]


@kernel
def message_strides(axis_offsets, axis_variable, axis_card, parent):
    """Where the strides of each message in the axes of its taker start, and the strides."""
    n = len(parent)
    offsets = np.zeros(n + 1, np.int64)
    for k in range(n):
        width = axis_offsets[parent[k] + 1] - axis_offsets[parent[k]] if parent[k] >= 0 else 0
        offsets[k + 1] = offsets[k] + width
    strides = np.zeros(offsets[n], np.int64)
    for k in range(n):
        if parent[k] < 0:
            continue
        first = axis_offsets[parent[k]]
        other = axis_offsets[parent[k] + 1] - 1
        stride = np.int64(1)
        for a in range(axis_offsets[k + 1] - 1, axis_offsets[k], -1):
            while axis_variable[other] != axis_variable[a]:
                other -= 1
            strides[offsets[k] + other - first] = stride
            stride *= axis_card[a]
    return offsets, strides


@kernel
def moved_strides(bucket_offsets, axis_offsets, axis_variable, axis_card, n_variables):
    """The common axes of the mini-buckets of each bucket that has several: sizes and strides of tables over them."""
    n = len(axis_offsets) - 1
    offsets = np.zeros(n + 1, np.int64)
    strides = np.zeros(len(axis_variable), np.int64)
    seen = np.zeros(n_variables, np.int64)
    for bucket in range(len(bucket_offsets) - 1):
        first, last = bucket_offsets[bucket], bucket_offsets[bucket + 1]
        several = last - first > 1
        if several:
            for a in range(axis_offsets[first], axis_offsets[last]):
                seen[axis_variable[a]] = 0
            for a in range(axis_offsets[first], axis_offsets[last]):
                seen[axis_variable[a]] += 1
        for k in range(first, last):
            offsets[k + 1] = offsets[k]
            if not several:
                continue
            stride = np.int64(1)
            for a in range(axis_offsets[k + 1] - 1, axis_offsets[k] - 1, -1):
                if seen[axis_variable[a]] == last - first:
                    strides[a] = stride
                    stride *= axis_card[a]
            offsets[k + 1] += stride
    return offsets, strides


@kernel
def factor_strides(axis_offsets, axis_variable, place, holder, scope_offsets, scopes, table_strides):
    """Factors in the order of the mini-buckets that hold them, and their pool strides along those axes.

    ``place[v]`` is a variable's place in the order of elimination, ``holder[f]`` the mini-bucket of a factor or -1.
    """
    n, m = len(axis_offsets) - 1, len(holder)
    offsets = np.zeros(n + 1, np.int64)
    for f in range(m):
        if holder[f] >= 0:
            offsets[holder[f] + 1] += 1
    for k in range(n):
        offsets[k + 1] += offsets[k]
    factors = np.empty(offsets[n], np.int64)
    filled = offsets.copy()
    for f in range(m):
        if holder[f] >= 0:
            factors[filled[holder[f]]] = f
            filled[holder[f]] += 1
    stride_offsets = np.zeros(len(factors) + 1, np.int64)
    for i in range(len(factors)):
        k = holder[factors[i]]
        stride_offsets[i + 1] = stride_offsets[i] + axis_offsets[k + 1] - axis_offsets[k]
    strides = np.zeros(stride_offsets[len(factors)], np.int64)
    for i in range(len(factors)):
        f = factors[i]
        k = holder[f]
        for e in range(scope_offsets[f], scope_offsets[f + 1]):
            for a in range(axis_offsets[k], axis_offsets[k + 1]):
                if axis_variable[a] == place[scopes[e]]:
                    strides[stride_offsets[i] + a - axis_offsets[k]] += table_strides[e]
    return offsets, factors, stride_offsets, strides


LEAST = 1e-30
"""Beliefs are taken to be at least this where their logs are compared."""


@kernel
def directions(layout, weights, moments, entropies, moves, weight_moves, with_weights):
    """Fill the directions in which the bound tightens; how fast it would, the slope.

    An upper bound (all weights of a bucket positive) falls when the beliefs b_r of its mini-buckets approach their
    geometric mean g: the move ``|w_r| (log g - log b_r)`` sums to nothing over r, and the slope is minus a sum of
    divergences. A lower bound (one weight positive, the others negative) rises along the opposite move. Weights follow
    the entropies that are the bound's derivatives by them.
    """
    slope = 0.0
    for bucket in range(len(layout.bucket_offsets) - 1):
        first, last = layout.bucket_offsets[bucket], layout.bucket_offsets[bucket + 1]
        if last - first < 2:
            continue
        size = layout.shift_offsets[first + 1] - layout.shift_offsets[first]
        whole, sign, positive = 0.0, -1.0, first
        for k in range(first, last):
            whole += abs(weights[k])
            if weights[k] < 0.0:
                sign = 1.0
            else:
                positive = k
        for s in range(size):
            mean = 0.0
            for k in range(first, last):
                mean += abs(weights[k]) * math.log(max(moments[layout.shift_offsets[k] + s], LEAST))
            mean /= whole
            for k in range(first, last):
                at = layout.shift_offsets[k] + s
                moves[at] = sign * abs(weights[k]) * (math.log(max(moments[at], LEAST)) - mean)
                slope += moves[at] * moments[at]
        if not with_weights:
            continue
        mean = 0.0
        for k in range(first, last):
            mean += weights[k] * entropies[k] / whole
        for k in range(first, last):
            if sign > 0.0:
                move = entropies[positive] - entropies[k]
            else:
                move = mean - entropies[k]
            weight_moves[k] = min(1.0, max(-1.0, move))
        if sign > 0.0:
            for k in range(first, last):
                slope += abs(weights[k]) * weight_moves[k] * (entropies[positive] - entropies[k])
        else:
            centre = 0.0
            for k in range(first, last):
                centre += weights[k] * weight_moves[k] / whole
            for k in range(first, last):
                slope += weights[k] * (weight_moves[k] - centre) * entropies[k]
    return slope


@kernel
def step(layout, length, shifts, moves, weights, weight_moves, new_shifts, new_weights):
    """Shifts and weights ``length`` along their directions; the sum of a bucket's weights stays what it is."""
    for i in range(len(shifts)):
        new_shifts[i] = shifts[i] + length * moves[i] if abs(shifts[i]) < math.inf else shifts[i]
    for bucket in range(len(layout.bucket_offsets) - 1):
        first, last = layout.bucket_offsets[bucket], layout.bucket_offsets[bucket + 1]
        if last - first < 2:
            new_weights[first] = weights[first]
            continue
        before, after, negative = 0.0, 0.0, 0.0
        positive = first
        for k in range(first, last):
            before += weights[k]
            new_weights[k] = weights[k] * math.exp(length * weight_moves[k])
            after += new_weights[k]
            if weights[k] < 0.0:
                negative += new_weights[k]
            else:
                positive = k
        if negative < 0.0:
            new_weights[positive] = before - negative
            continue
        for k in range(first, last):
            new_weights[k] *= before / after


@kernel
def exclude(layout, weights, shifts):
    """In lower bounds, leave impossible states out: minus infinity where weights are positive, plus where not."""
    for k in range(len(weights)):
        if weights[k] < 0.0:
            for i in range(layout.shift_offsets[k], layout.shift_offsets[k + 1]):
                if shifts[i] == -math.inf:
                    shifts[i] = math.inf
