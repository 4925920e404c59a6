"""Sums over projective trees: inside and outside of Eisner's chart in linear space where that is safe.

Two kinds of items, written by head: ``arc[h, m]``, an arc with all that stands between its ends, and ``span[h, e]``,
word h with all it governs on the side of e, as far as e (``turned[e, h]`` is the same number). With i < j

    arc[i, j] / w[i, j] = arc[j, i] / w[j, i] = sum over k of span[i, k] span[j, k + 1]     (i <= k < j)
    span[h, e] = sum over m of arc[h, m] turned[e, m]     (m from the word after h to e)

so that every sum runs along two rows. Arcs into a word are divided by their sum: then no item, and nothing outside
of one, is above one, and all that underflow can take from Z is the number of products times the smallest number.

Invariant: where Z is not far above that, the instance is done again with logs. Free to change: layout, order.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.structures.projective_tree.log_chart_kernel import fill_log_chart, log_outside

__all__ = ["projective_sums"]

# Underflow takes less than 4e-308 in each of fewer than n^3 products: below 1e-16 of this for n up to 1,000.
_SMALLEST = 1e-280


@kernel
def _weights(scores, n, w, top, total):
    """``w[h, m]``: the exponential of a score over the sum of those of all heads of m; the log of all sums."""
    for m in range(1, n + 1):
        top[m], total[m] = -np.inf, 0.0
    for h in range(n + 1):
        line = scores[h]
        for m in range(1, n + 1):
            if m != h:
                top[m] = max(top[m], line[m])
    for m in range(1, n + 1):
        if top[m] == -np.inf:
            return -np.inf
    for h in range(n + 1):
        line, target = scores[h], w[h]
        for m in range(1, n + 1):
            target[m] = exp_scalar(line[m] - top[m])
        target[h] = 0.0
        target[0] = 0.0
        for m in range(1, n + 1):
            total[m] += target[m]
    log_z = 0.0
    for m in range(1, n + 1):
        log_z += top[m] + math.log(total[m])
        total[m] = 1.0 / total[m]
    for h in range(n + 1):
        target = w[h]
        for m in range(1, n + 1):
            target[m] *= total[m]
    return log_z


@kernel
def _dot(a, b):
    """The sum of products along two rows."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@kernel
def _inside(w, n, single, arc, span, turned):
    """Fill the chart; Z."""
    for i in range(n + 1):
        span[i, i] = turned[i, i] = 1.0
    for j in range(1, n + 1):
        span_j, turned_j, arc_j = span[j], turned[j], arc[j]
        for i in range(j - 1, -1, -1):
            between = _dot(span[i, i:j], span_j[i + 1 : j + 1])
            arc[i, j] = w[i, j] * between
            arc_j[i] = w[j, i] * between
            right = _dot(arc[i, i + 1 : j + 1], turned_j[i + 1 : j + 1]) if i > 0 or j == n or not single else 0.0
            left = _dot(arc_j[i:j], turned[i, i:j]) if i > 0 else 0.0
            span[i, j] = turned_j[i] = right
            span_j[i] = turned[i, j] = left
    return span[0, n]


@kernel
def _push(slope_a, slope_b, a, b, slope):
    """The derivatives of a sum of products by its factors."""
    for k in range(len(a)):
        slope_a[k] += slope * b[k]
    for k in range(len(a)):
        slope_b[k] += slope * a[k]


@kernel
def _outside(w, n, single, arc, span, turned, of_arc, of_span, of_turned, counts):
    """Marginals of arcs into ``counts``: item times its derivative, over Z."""
    of_arc[:, :] = 0.0
    of_span[:, :] = 0.0
    of_turned[:, :] = 0.0
    inverse = 1.0 / span[0, n]
    of_span[0, n] = 1.0
    for j in range(n, 0, -1):
        span_j, turned_j, arc_j = span[j], turned[j], arc[j]
        to_span, to_turned, to_arc = of_span[j], of_turned[j], of_arc[j]
        e = j + 1
        for i in range(j):
            right = of_span[i, j] + to_turned[i]
            if right > 0.0 and (i > 0 or j == n or not single):
                _push(of_arc[i, i + 1 : e], to_turned[i + 1 : e], arc[i, i + 1 : e], turned_j[i + 1 : e], right)
            left = to_span[i] + of_turned[i, j]
            if left > 0.0 and i > 0:
                _push(to_arc[i:j], of_turned[i, i:j], arc_j[i:j], turned[i, i:j], left)
            counts[i, j] = of_arc[i, j] * arc[i, j] * inverse
            counts[j, i] = to_arc[i] * arc_j[i] * inverse
            slope = of_arc[i, j] * w[i, j] + to_arc[i] * w[j, i]
            if slope > 0.0:
                _push(of_span[i, i:j], to_span[i + 1 : e], span[i, i:j], span_j[i + 1 : e], slope)
    for i in range(n + 1):
        counts[i, i] = 0.0


@kernel
def projective_sums(pool, offsets, sizes, first, last, single, log_z, counts):
    """log Z of instances first..last, and marginals of their arcs where ``counts`` is not empty.

    ``pool[offsets[i]:]`` are scores of instance i, ``[n + 1, n + 1]`` by head and modifier, as are counts.
    """
    largest = 0
    for i in range(first, last):
        largest = max(largest, sizes[i])
    area = (largest + 1) * (largest + 1)
    room = np.empty((7, area))
    work = np.empty((2, largest + 1))
    nothing = np.empty((0, 0))
    for i in range(first, last):
        n = sizes[i]
        side = n + 1
        begin, area = offsets[i], side * side
        if n == 0:
            log_z[i] = 0.0
            continue
        scores = pool[begin : begin + area].reshape(side, side)
        own = counts[begin : begin + area].reshape(side, side) if len(counts) > 0 else nothing
        w, arc = room[0, :area].reshape(side, side), room[1, :area].reshape(side, side)
        span, turned = room[2, :area].reshape(side, side), room[3, :area].reshape(side, side)
        of_arc, of_span = room[4, :area].reshape(side, side), room[5, :area].reshape(side, side)
        of_turned = room[6, :area].reshape(side, side)
        log_z[i] = _weights(scores, n, w, work[0], work[1])
        z = _inside(w, n, single, arc, span, turned) if log_z[i] > -np.inf else 0.0
        if z > _SMALLEST:
            log_z[i] += math.log(z)
            if len(counts) > 0:
                _outside(w, n, single, arc, span, turned, of_arc, of_span, of_turned, own)
            continue
        if log_z[i] > -np.inf:
            fill_log_chart(scores, n, single, False, arc, span, turned)
            log_z[i] = span[0, n]
        if len(counts) > 0:
            own[:, :] = 0.0
            if log_z[i] > -np.inf:
                log_outside(scores, n, single, arc, span, turned, own, of_span)
