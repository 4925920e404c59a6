"""Inside sums or maxima over binary trees of spans, their derivatives, and descents through them.

A chart of n words is kept twice, by where spans begin and by where they end, so that both children of a span are read
in order. Sums with counts take numbers relative to the largest of all spans of the same width, so that a split costs no
exponential; where one is too small for that, or impossible, logs. Invariant: -inf is impossible, and never becomes NaN.
Free to change: the order of addition.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.random import draw_unit

__all__ = ["span_counts", "span_descents", "span_sums"]

# Logs of numbers that are multiplied, relative to the largest of their kind: four of them are above 1e-240.
SMALLEST = -138.0
SMALLEST_TOTAL = 1e-60
MANY_LABELS = 60


@kernel
def _pick(values, n, best, state):
    """The index of the largest of some logs; or one at random, in proportion to exp."""
    top, at = -np.inf, 0
    for k in range(n):
        if values[k] > top:
            top, at = values[k], k
    if best or top == -np.inf:
        return at
    total = 0.0
    for k in range(n):
        total += exp_scalar(values[k] - top)
    u = draw_unit(state) * total
    for k in range(n):
        u -= exp_scalar(values[k] - top)
        if u < 0.0:
            return k
    return at


@kernel
def _log_sum(values, n, best):
    """log of the sum of exp of some values, or the largest of them."""
    top = -np.inf
    for k in range(n):
        top = max(top, values[k])
    if best or top == -np.inf:
        return top
    total = 0.0
    for k in range(n):
        total += exp_scalar(values[k] - top)
    return top + math.log(total)


@kernel
def _inside(pool, begin, n, labels, best, by_start, by_end, terms):
    """Fill both charts of a sentence; ``terms`` has room for n numbers and for a number for each label."""
    cell = begin
    for i in range(n):
        for j in range(i, n):
            by_start[i * n + j] = _log_sum(pool[cell : cell + labels], labels, best)
            cell += labels
    _splits(n, best, by_start, by_end, terms)


@kernel
def _label_numbers(pool, begin, n, labels, by_start, totals, numbers):
    """Sums over labels, and for each label its number relative to the largest of the span, whose sum ``totals`` has."""
    cell = begin
    for i in range(n):
        for j in range(i, n):
            own, out = pool[cell : cell + labels], numbers[cell : cell + labels]
            top = -np.inf
            for k in range(labels):
                top = max(top, own[k])
            total = 0.0
            safe = max(top, -1e300)
            for k in range(labels):
                out[k] = exp_scalar(own[k] - safe)
                total += out[k]
            totals[i * n + j] = total
            by_start[i * n + j] = top + math.log(total) if top > -np.inf else top
            cell += labels


@kernel
def _largest(values):
    """The largest of some numbers, by eight chains: one would wait for every comparison."""
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    e, f, g, h = -np.inf, -np.inf, -np.inf, -np.inf
    whole = len(values) - len(values) % 8
    for k in range(0, whole, 8):
        a, b, c, d = max(a, values[k]), max(b, values[k + 1]), max(c, values[k + 2]), max(d, values[k + 3])
        e, f, g, h = max(e, values[k + 4]), max(f, values[k + 5]), max(g, values[k + 6]), max(h, values[k + 7])
    for k in range(whole, len(values)):
        a = max(a, values[k])
    return max(a, b, c, d, e, f, g, h)


@kernel
def _all_numbers(pool, begin, n, labels, totals, worth, numbers):
    """What spans are worth, relative to the largest of the sentence, whose log is answered: NaN where one is too small.

    ``numbers`` are those of labels, and ``totals`` their sums: relative to the same where labels are few, so that one
    loop goes over those of many spans; otherwise to the largest of the span.
    """
    if labels >= MANY_LABELS:
        _label_numbers(pool, begin, n, labels, worth, totals, numbers)
        top, least = -np.inf, 0.0
        for i in range(n):
            for j in range(i, n):
                top, least = max(top, worth[i * n + j]), min(least, worth[i * n + j])
        if not least - top > SMALLEST:
            return np.nan
        for i in range(n):
            for j in range(i, n):
                worth[i * n + j] = exp_scalar(worth[i * n + j] - top)
        return top
    top = _largest(pool[begin : begin + n * (n + 1) // 2 * labels])
    if top == -np.inf:
        return np.nan
    cell, least = begin, 1.0
    for i in range(n):
        size = (n - i) * labels
        own, out = pool[cell : cell + size], numbers[cell : cell + size]
        for k in range(size):
            out[k] = exp_scalar(own[k] - top)
        for j in range(i, n):
            first, total = (j - i) * labels, 0.0
            for k in range(first, first + labels):
                total += out[k]
            totals[i * n + j] = worth[i * n + j] = total
            least = min(least, total)
        cell += size
    return top if least > SMALLEST_TOTAL else np.nan


@kernel
def _splits(n, best, by_start, by_end, terms):
    """Fill both charts, from what each span is worth by itself."""
    for i in range(n):
        by_end[i * n + i] = by_start[i * n + i]
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            left, right = by_start[i * n + i : i * n + j], by_end[j * n + i + 1 : j * n + j + 1]
            for k in range(width):
                terms[k] = left[k] + right[k]
            inside = by_start[i * n + j] + _log_sum(terms, width, best)
            by_start[i * n + j] = inside
            by_end[j * n + i] = inside


@kernel
def span_sums(first, last, offsets, lengths, labels, pool, best, log_z):
    """log Z, or the best score, of some sentences."""
    for s in range(first, last):
        n = lengths[s]
        by_start, by_end, terms = np.empty(n * n), np.empty(n * n), np.empty(max(n, labels))
        _inside(pool, offsets[s], n, labels, best, by_start, by_end, terms)
        log_z[s] = by_start[n - 1]


@kernel
def _width_ratios(scale, width, ratio):
    """For each split of spans of a width the product of both scales relative to the largest, whose log it is.

    NaN where one is too small.
    """
    top, least = -np.inf, np.inf
    for k in range(width):
        ratio[k] = scale[k] + scale[width - 1 - k]
        top, least = max(top, ratio[k]), min(least, ratio[k])
    if not least - top > SMALLEST:
        return np.nan
    for k in range(width):
        ratio[k] = exp_scalar(ratio[k] - top)
    return top


@kernel
def _linear_inside(n, own, log_own, by_start, by_end, totals, scale, ratio):
    """log Z by numbers relative to the largest of all spans of the same width, from what spans are worth.

    ``own`` is that, relative to what has the log ``log_own``. ``by_start``, ``by_end`` get the numbers, ``totals`` the
    sums over splits. NaN where one is too small, or 0.
    """
    for width in range(n):
        top = 0.0
        if width > 0:
            top = _width_ratios(scale, width, ratio)
            if math.isnan(top):
                return top
        most, least = 0.0, np.inf
        for i in range(n - width):
            j = i + width
            left, right = by_start[i * n + i : i * n + j], by_end[j * n + i + 1 : j * n + j + 1]
            total = 1.0 if width == 0 else 0.0
            for k in range(width):
                total += ratio[k] * left[k] * right[k]
            totals[i * n + j] = total
            value = total * own[i * n + j]
            by_start[i * n + j] = value
            most, least = max(most, value), min(least, value)
        inverse = 1.0 / most
        if not least * inverse > SMALLEST_TOTAL:
            return np.nan
        for i in range(n - width):
            by_start[i * n + i + width] *= inverse
            by_end[(i + width) * n + i] = by_start[i * n + i + width]
        scale[width] = top + log_own + math.log(most)
    return scale[n - 1]


@kernel
def _linear_flow(n, by_start, by_end, totals, scale, ratio, as_left, as_right):
    """Expected numbers of spans as left and as right children, from charts of numbers."""
    for width in range(n - 1, 0, -1):
        _width_ratios(scale, width, ratio)
        for i in range(n - width):
            j = i + width
            share = (as_left[i * n + j] + as_right[j * n + i]) / totals[i * n + j]
            left, right = by_start[i * n + i : i * n + j], by_end[j * n + i + 1 : j * n + j + 1]
            to_left, to_right = as_left[i * n + i : i * n + j], as_right[j * n + i + 1 : j * n + j + 1]
            for k in range(width):
                used = share * ratio[k] * left[k] * right[k]
                to_left[k] += used
                to_right[k] += used


@kernel
def _log_flow(n, by_start, by_end, terms, as_left, as_right):
    """Expected numbers of spans as left and as right children, from charts of logs."""
    for width in range(n - 1, 0, -1):
        for i in range(n - width):
            j = i + width
            expected = as_left[i * n + j] + as_right[j * n + i]
            if expected == 0.0:
                continue
            left, right = by_start[i * n + i : i * n + j], by_end[j * n + i + 1 : j * n + j + 1]
            to_left, to_right = as_left[i * n + i : i * n + j], as_right[j * n + i + 1 : j * n + j + 1]
            top = -np.inf
            for k in range(width):
                top = max(top, left[k] + right[k])
            total = 0.0
            for k in range(width):
                terms[k] = exp_scalar(left[k] + right[k] - top)
                total += terms[k]
            share = expected / total
            for k in range(width):
                to_left[k] += share * terms[k]
                to_right[k] += share * terms[k]


@kernel
def span_counts(first, last, offsets, lengths, labels, pool, weights, log_z, counts):
    """log Z of some sentences, and the derivatives of its weighted sum by the pool."""
    for s in range(first, last):
        n, begin = lengths[s], offsets[s]
        if n == 0:
            log_z[s] = -np.inf
            continue
        by_start, by_end, terms, totals = np.empty(n * n), np.empty(n * n), np.empty(n), np.empty(n * n)
        sums, worth, scale = np.empty(n * n), np.empty(n * n), np.empty(n)
        as_left, as_right = np.zeros(n * n), np.zeros(n * n)
        as_left[n - 1] = weights[s]
        log_z[s] = _all_numbers(pool, begin, n, labels, totals, worth, counts)
        if not math.isnan(log_z[s]):
            log_z[s] = _linear_inside(n, worth, log_z[s], by_start, by_end, sums, scale, terms)
        if not math.isnan(log_z[s]):
            _linear_flow(n, by_start, by_end, sums, scale, terms, as_left, as_right)
        else:
            _label_numbers(pool, begin, n, labels, by_start, totals, counts)
            _splits(n, False, by_start, by_end, terms)
            log_z[s] = by_start[n - 1]
            if log_z[s] == -np.inf:
                counts[begin : begin + n * (n + 1) // 2 * labels] = 0.0
                continue
            _log_flow(n, by_start, by_end, terms, as_left, as_right)
        cell = begin
        for i in range(n):
            for j in range(i, n):
                expected = as_left[i * n + j] + as_right[j * n + i]
                share = expected / totals[i * n + j] if expected != 0.0 else 0.0
                own = counts[cell : cell + labels]
                for k in range(labels):
                    own[k] *= share
                cell += labels


@kernel
def span_descents(first, last, offsets, lengths, labels, pool, best, size, streams, starts, cells):
    """The cells of the best tree of some sentences, or of ``size`` random ones; -1 where there is none.

    ``starts[s]`` is where the cells of the first tree of a sentence begin; each has ``2 n - 1``.
    """
    for s in range(first, last):
        n, begin, at = lengths[s], offsets[s], starts[s]
        by_start, by_end, terms = np.empty(n * n), np.empty(n * n), np.empty(max(n, labels))
        _inside(pool, begin, n, labels, best, by_start, by_end, terms)
        if by_start[n - 1] == -np.inf:
            cells[at : at + size * (2 * n - 1)] = -1
            continue
        state = streams[s]
        waiting = np.empty(2 * n, np.int64)
        for _ in range(size):
            waiting[0], waiting[1], depth = 0, n - 1, 1
            while depth > 0:
                depth -= 1
                i, j = waiting[2 * depth], waiting[2 * depth + 1]
                cell = begin + (i * n - i * (i - 1) // 2 + j - i) * labels
                for k in range(labels):
                    terms[k] = pool[cell + k]
                cells[at] = cell + _pick(terms, labels, best, state)
                at += 1
                if i == j:
                    continue
                for k in range(j - i):
                    terms[k] = by_start[i * n + i + k] + by_end[j * n + i + 1 + k]
                split = i + _pick(terms, j - i, best, state)
                waiting[2 * depth], waiting[2 * depth + 1] = split + 1, j
                waiting[2 * depth + 2], waiting[2 * depth + 3] = i, split
                depth += 2
