"""Weighted mini-buckets: tables formed from their parts, power sums towards the roots, beliefs back.

A mini-bucket is a table in log space over a variable, its first axis, and over variables eliminated later, in the order
of their elimination. Its message is ``w log sum exp(table / w)`` over the first axis: the maximum where the weight
``w`` is zero, and where it is negative the power sum of the reverse Hoelder inequality.

Free to change: `BLOCK`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.logarithm import log_scalar

__all__ = [
    "BucketLayout",
    "add_factor_beliefs",
    "backward",
    "bucket_marginals",
    "decode_buckets",
    "fill_bases",
    "forward",
    "match_forward",
]

BLOCK = 1024
"""States of the last axes that are walked through one list of indices."""

Ints = npt.NDArray[np.int64]


class BucketLayout(NamedTuple):
    """Mini-buckets laid out flat, in the order of elimination; arrays of 64-bit integers.

    Attributes
    ----------
    bucket_offsets
        The mini-buckets of the variable eliminated b-th are ``bucket_offsets[b]`` up to ``bucket_offsets[b + 1]``.
    axis_offsets, axis_variable, axis_card
        Axes of each mini-bucket: the variable's place in the order of elimination (rising) and its states.
    table_offsets, message_offsets, shift_offsets
        Where its table, its message and what is moved between it and the others of its bucket lie in their arenas.
    shift_strides
        For each axis, its stride in the table of what is moved; 0 where that does not depend on it.
    child_offsets, children, parent_strides
        Mini-buckets whose messages it takes; strides of a message in the axes of the one that takes it, at
        ``stride_offsets`` of the sender.
    factor_offsets, factor_base, factor_strides
        The tables of the model it takes, as offsets and strides into the pool; strides at ``factor_stride_offsets``.
    """

    bucket_offsets: Ints
    axis_offsets: Ints
    axis_variable: Ints
    axis_card: Ints
    table_offsets: Ints
    message_offsets: Ints
    shift_offsets: Ints
    shift_strides: Ints
    child_offsets: Ints
    children: Ints
    stride_offsets: Ints
    parent_strides: Ints
    factor_offsets: Ints
    factor_base: Ints
    factor_stride_offsets: Ints
    factor_strides: Ints


@kernel
def _index_block(cards, arity, strides, index):
    """Offsets, in a table of the given strides, of the states of the last axes; how many states and axes that are."""
    index[0] = 0
    length = 1
    used = 0
    while used < arity:
        card = cards[arity - 1 - used]
        if used and length * card > BLOCK:
            break
        stride = strides[arity - 1 - used]
        for x in range(1, card):
            for j in range(length):
                index[x * length + j] = index[j] + x * stride
        length *= card
        used += 1
    return length, used


@kernel
def _step(counter, cards, strides, n_outer, at):
    """Next state of the outer axes: the new offset, or -1 at the end."""
    a = n_outer - 1
    while a >= 0:
        counter[a] += 1
        at += strides[a]
        if counter[a] < cards[a]:
            return at
        at -= strides[a] * counter[a]
        counter[a] = 0
        a -= 1
    return np.int64(-1)


@kernel
def _add(table, cards, strides, source, base, index, counter):
    """table += source, spread along the axes whose stride is zero."""
    arity = len(cards)
    length, used = _index_block(cards, arity, strides, index)
    straight = True
    for j in range(length):
        if index[j] != j:
            straight = False
            break
    n_outer = arity - used
    for a in range(n_outer):
        counter[a] = 0
    at = np.int64(base)
    start = 0
    while at >= 0:
        if straight:
            for j in range(length):
                table[start + j] += source[at + j]
        else:
            for j in range(length):
                table[start + j] += source[at + index[j]]
        start += length
        at = _step(counter, cards, strides, n_outer, at)


@kernel
def _sum_onto(table, cards, strides, target, base, index, counter):
    """target += table, summed along the axes whose stride is zero."""
    arity = len(cards)
    length, used = _index_block(cards, arity, strides, index)
    n_outer = arity - used
    for a in range(n_outer):
        counter[a] = 0
    at = np.int64(base)
    start = 0
    while at >= 0:
        for j in range(length):
            target[at + index[j]] += table[start + j]
        start += length
        at = _step(counter, cards, strides, n_outer, at)


@kernel
def _power_onto(table, cards, strides, inverse, top, target, index, counter):
    """Maxima of the table along the axes whose stride is zero, to ``top``; sums of exp((table - top) * inverse)."""
    arity = len(cards)
    length, used = _index_block(cards, arity, strides, index)
    n_outer = arity - used
    for turn in range(2):
        for a in range(n_outer):
            counter[a] = 0
        at = np.int64(0)
        start = 0
        while at >= 0:
            for j in range(length):
                here = at + index[j]
                x = table[start + j]
                if turn == 0:
                    top[here] = max(top[here], x)
                elif x > -np.inf:
                    target[here] += exp_scalar((x - top[here]) * inverse)
            start += length
            at = _step(counter, cards, strides, n_outer, at)


@kernel
def scratch(layout):
    """Room for the largest block of indices and the longest counter."""
    widest, most = 1, np.int64(BLOCK)
    for k in range(len(layout.axis_offsets) - 1):
        widest = max(widest, layout.axis_offsets[k + 1] - layout.axis_offsets[k])
    for a in range(len(layout.axis_card)):
        most = max(most, layout.axis_card[a])
    return np.empty(most, np.int64), np.empty(widest, np.int64)


@kernel
def fill_bases(layout, start, stop, pool, bases):
    """The sum of the model's tables in each mini-bucket from ``start`` to ``stop``."""
    index, counter = scratch(layout)
    for k in range(start, stop):
        cards = layout.axis_card[layout.axis_offsets[k] : layout.axis_offsets[k + 1]]
        table = bases[layout.table_offsets[k] : layout.table_offsets[k + 1]]
        for j in range(len(table)):
            table[j] = 0.0
        for i in range(layout.factor_offsets[k], layout.factor_offsets[k + 1]):
            at = layout.factor_stride_offsets[i]
            strides = layout.factor_strides[at : at + len(cards)]
            _add(table, cards, strides, pool, layout.factor_base[i], index, counter)


@kernel
def _form(layout, k, bases, shifts, messages, tables, index, counter):
    """The table of a mini-bucket: the model's tables, what was moved here, and messages."""
    first, last = layout.axis_offsets[k], layout.axis_offsets[k + 1]
    cards = layout.axis_card[first:last]
    start, stop = layout.table_offsets[k], layout.table_offsets[k + 1]
    table = tables[start:stop]
    for j in range(stop - start):
        table[j] = bases[start + j]
    if layout.shift_offsets[k + 1] > layout.shift_offsets[k]:
        _add(table, cards, layout.shift_strides[first:last], shifts, layout.shift_offsets[k], index, counter)
    for i in range(layout.child_offsets[k], layout.child_offsets[k + 1]):
        child = layout.children[i]
        at = layout.stride_offsets[child]
        strides = layout.parent_strides[at : at + len(cards)]
        _add(table, cards, strides, messages, layout.message_offsets[child], index, counter)


@kernel
def _eliminate(table, card, weight, message, sums):
    """The message of a table: its power sum along the first axis."""
    n = len(message)
    if weight >= 0.0:
        for j in range(n):
            message[j] = table[j]
        for x in range(1, card):
            for j in range(n):
                message[j] = max(message[j], table[x * n + j])
        if weight == 0.0:
            return
    else:
        # A cell of plus infinity (or nan: that on a hard zero) is left out of the sum, which keeps the bound low.
        for j in range(n):
            message[j] = np.inf
        for x in range(card):
            for j in range(n):
                y = table[x * n + j]
                message[j] = min(message[j], y)
    inverse = 1.0 / weight
    for j in range(n):
        sums[j] = -np.inf if weight < 0.0 and message[j] == -np.inf else 0.0
        if not abs(message[j]) < np.inf:
            message[j] = 0.0
    for x in range(card):
        for j in range(n):
            y = (table[x * n + j] - message[j]) * inverse
            sums[j] += exp_scalar(y) if y <= 0.0 else 0.0
    for j in range(n):
        # Where anything is summed, its largest term is one.
        largest = message[j] + weight * log_scalar(max(sums[j], 1.0))
        nothing = -np.inf if weight > 0.0 or sums[j] < 0.0 else 0.0
        message[j] = largest if sums[j] > 0.0 else nothing


@kernel
def forward(layout, start, stop, bases, shifts, weights, messages, tables):
    """Form and eliminate the mini-buckets from ``start`` to ``stop``; the sum of what leaves the roots."""
    index, counter = scratch(layout)
    sums = np.empty(_longest(layout.message_offsets, start, stop))
    total = 0.0
    for k in range(start, stop):
        _form(layout, k, bases, shifts, messages, tables, index, counter)
        total += _send(layout, k, weights[k], messages, tables, sums)
    return total


@kernel
def _longest(offsets, start, stop):
    longest = np.int64(1)
    for k in range(start, stop):
        longest = max(longest, offsets[k + 1] - offsets[k])
    return longest


@kernel
def _send(layout, k, weight, messages, tables, sums):
    """Eliminate a formed mini-bucket; what it sends, where it is a root, or else 0."""
    message = messages[layout.message_offsets[k] : layout.message_offsets[k + 1]]
    table = tables[layout.table_offsets[k] : layout.table_offsets[k + 1]]
    _eliminate(table, layout.axis_card[layout.axis_offsets[k]], weight, message, sums)
    return message[0] if layout.axis_offsets[k + 1] - layout.axis_offsets[k] == 1 else 0.0


@kernel
def match_forward(layout, start, stop, bases, shifts, shares, temperature, messages, tables):
    """As `forward` over whole buckets, but first move potential between the mini-buckets of each to match moments.

    What a mini-bucket says of the common variables, L_r = w_r log sum exp(table / w_r), becomes its share u_r of the
    sum of all L: the shifts ``u_r G - L_r`` add up to nothing. Where one of them says that a state is impossible it
    is so in all. Weights are ``temperature * shares``.
    """
    index, counter = scratch(layout)
    sums = np.empty(_longest(layout.message_offsets, start, stop))
    longest = _longest(layout.shift_offsets, start, stop)
    top, power, total_log = np.empty(longest), np.empty(longest), np.empty(longest)
    total = 0.0
    bucket = 0
    while layout.bucket_offsets[bucket] < start:
        bucket += 1
    while layout.bucket_offsets[bucket] < stop:
        first, last = layout.bucket_offsets[bucket], layout.bucket_offsets[bucket + 1]
        bucket += 1
        size = layout.shift_offsets[first + 1] - layout.shift_offsets[first]
        for s in range(size):
            total_log[s] = 0.0
        for k in range(first, last):
            _form(layout, k, bases, shifts, messages, tables, index, counter)
            if not size:
                continue
            for s in range(size):
                top[s], power[s] = -np.inf, 0.0
            a, b = layout.axis_offsets[k], layout.axis_offsets[k + 1]
            table = tables[layout.table_offsets[k] : layout.table_offsets[k + 1]]
            weight = temperature * shares[k]
            inverse = 1.0 / weight if weight > 0.0 else 0.0
            _power_onto(table, layout.axis_card[a:b], layout.shift_strides[a:b], inverse, top, power, index, counter)
            at = layout.shift_offsets[k]
            for s in range(size):
                own = top[s] + weight * math.log(power[s]) if weight > 0.0 and power[s] > 0.0 else top[s]
                total_log[s] += own
                # Until the sum over all of them is known, shifts hold what each says.
                shifts[at + s] = own
        for k in range(first, last):
            if size:
                at = layout.shift_offsets[k]
                for s in range(size):
                    impossible = total_log[s] == -np.inf
                    shifts[at + s] = -np.inf if impossible else shares[k] * total_log[s] - shifts[at + s]
                a, b = layout.axis_offsets[k], layout.axis_offsets[k + 1]
                table = tables[layout.table_offsets[k] : layout.table_offsets[k + 1]]
                _add(table, layout.axis_card[a:b], layout.shift_strides[a:b], shifts, at, index, counter)
            total += _send(layout, k, temperature * shares[k], messages, tables, sums)
    return total


@kernel
def backward(layout, start, stop, weights, messages, tables, beliefs, moments, entropies):
    """Turn the tables of mini-buckets, from ``stop`` down to ``start``, into derivatives of the bound.

    ``beliefs`` lie like messages: of the separators, filled by the mini-bucket above. ``moments`` lie like shifts: each
    table summed onto what the mini-buckets of its bucket have in common. ``entropies[k]`` is that of the first axis
    given the others: the derivative by the weight.
    """
    index, counter = scratch(layout)
    for k in range(stop - 1, start - 1, -1):
        first, last = layout.axis_offsets[k], layout.axis_offsets[k + 1]
        cards = layout.axis_card[first:last]
        message = messages[layout.message_offsets[k] : layout.message_offsets[k + 1]]
        belief = beliefs[layout.message_offsets[k] : layout.message_offsets[k + 1]]
        table = tables[layout.table_offsets[k] : layout.table_offsets[k + 1]]
        if last - first == 1:
            belief[0] = 1.0
        n = len(message)
        inverse = 1.0 / weights[k]
        entropy = 0.0
        for x in range(cards[0]):
            for j in range(n):
                y = (table[x * n + j] - message[j]) * inverse
                # Rounding may leave y a little above zero; impossible and left out states are not below.
                inside = y < 1.0 and message[j] > -np.inf
                p = belief[j] * exp_scalar(y) if inside else 0.0
                table[x * n + j] = p
                entropy -= p * y if p > 0.0 else 0.0
        entropies[k] = entropy
        size = layout.shift_offsets[k + 1] - layout.shift_offsets[k]
        if size:
            at = layout.shift_offsets[k]
            for s in range(size):
                moments[at + s] = 0.0
            _sum_onto(table, cards, layout.shift_strides[first:last], moments, at, index, counter)
        for i in range(layout.child_offsets[k], layout.child_offsets[k + 1]):
            child = layout.children[i]
            at = layout.message_offsets[child]
            for j in range(at, layout.message_offsets[child + 1]):
                beliefs[j] = 0.0
            strides = layout.parent_strides[layout.stride_offsets[child] : layout.stride_offsets[child] + len(cards)]
            _sum_onto(table, cards, strides, beliefs, at, index, counter)


@kernel
def decode_buckets(layout, tables, states):
    """Choose states against the order of elimination, each by the tables of its mini-buckets given those chosen."""
    widest = 1
    for a in range(len(layout.axis_card)):
        widest = max(widest, layout.axis_card[a])
    scores = np.empty(widest)
    for bucket in range(len(layout.bucket_offsets) - 2, -1, -1):
        first, last = layout.bucket_offsets[bucket], layout.bucket_offsets[bucket + 1]
        card = layout.axis_card[layout.axis_offsets[first]]
        for x in range(card):
            scores[x] = 0.0
        for k in range(first, last):
            at = np.int64(0)
            for a in range(layout.axis_offsets[k] + 1, layout.axis_offsets[k + 1]):
                at = at * layout.axis_card[a] + states[layout.axis_variable[a]]
            n = layout.message_offsets[k + 1] - layout.message_offsets[k]
            for x in range(card):
                scores[x] += tables[layout.table_offsets[k] + x * n + at]
        best = 0
        for x in range(1, card):
            if scores[x] > scores[best]:
                best = x
        states[bucket] = best


@kernel
def add_factor_beliefs(layout, tables, counts):
    """Add beliefs to the pool cells that each mini-bucket's factors read."""
    index, counter = scratch(layout)
    for k in range(len(layout.table_offsets) - 1):
        cards = layout.axis_card[layout.axis_offsets[k] : layout.axis_offsets[k + 1]]
        table = tables[layout.table_offsets[k] : layout.table_offsets[k + 1]]
        for i in range(layout.factor_offsets[k], layout.factor_offsets[k + 1]):
            at = layout.factor_stride_offsets[i]
            strides = layout.factor_strides[at : at + len(cards)]
            _sum_onto(table, cards, strides, counts, layout.factor_base[i], index, counter)


@kernel
def bucket_marginals(layout, shares, tables, marginals, index_of):
    """Belief of each variable: that of its mini-buckets, weighted by their shares; to ``marginals[index_of[b]:]``."""
    for bucket in range(len(layout.bucket_offsets) - 1):
        first, last = layout.bucket_offsets[bucket], layout.bucket_offsets[bucket + 1]
        card = layout.axis_card[layout.axis_offsets[first]]
        at = index_of[bucket]
        whole = 0.0
        for x in range(card):
            value = 0.0
            for k in range(first, last):
                n = layout.message_offsets[k + 1] - layout.message_offsets[k]
                start = layout.table_offsets[k] + x * n
                part = 0.0
                for j in range(start, start + n):
                    part += tables[j]
                value += part * shares[k]
            marginals[at + x] = value
            whole += value
        for x in range(card):
            marginals[at + x] = marginals[at + x] / whole if whole > 0.0 else 1.0 / card
