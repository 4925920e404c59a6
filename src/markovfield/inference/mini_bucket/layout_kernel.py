"""Strides by which mini-buckets read factors, messages and shifts.

Invariant: the axes of a mini-bucket are its variable and then variables in the order of their elimination, last axis
fastest; a stride of zero is an axis that is not read.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["factor_strides", "message_strides", "moved_strides"]


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
