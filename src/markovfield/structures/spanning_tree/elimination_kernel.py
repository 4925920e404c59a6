"""Sums over arborescences by elimination without subtraction, in scaled linear space where that is safe.

Eliminating word k from the arcs between others, ``w[h, m] += w[h, k] w[k, m] / d[k]`` with ``d[k]`` the sum of the arcs
that enter k, is a step of Gaussian elimination on the Laplacian of the matrix-tree theorem (its diagonal is never
written down, so that nothing is subtracted: Grassmann, Taksar and Heyman 1985). Z is the product of all ``d``. With a
single root, arcs from it are infinitesimally light: they count in no ``d`` but that of the last word.

Invariant: what underflows is bounded by ``lost`` (the bound grows with every step that spreads it); where it could be
seen in the result, or marginals do not add to one, the instance is done again with logs. Free to change: the order.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.structures.spanning_tree.log_elimination_kernel import differentiate_logs, eliminate_logs

__all__ = ["spanning_sums"]

# What an exponential or a product below the smallest number can lose; and how much of a sum may be lost.
_TINY = 4e-308
_LOST = 1e-13


@kernel
def _eliminate(w, n, single, lost, share):
    """Eliminate words n, ..., 1 in place; the log of the product of the ``d``, NaN where digits may be lost.

    ``share[k]`` becomes 1 / d[k]. ``lost[0]`` and ``lost[1]`` bound what underflow took from arcs of words (of all
    heads without ``single``) and from arcs of the root.
    """
    log_z = 0.0
    for k in range(n, 0, -1):
        apart = single and k > 1
        total = 0.0
        for h in range(1 if apart else 0, k):
            total += w[h, k]
        gone = lost[1, k] if single and k == 1 else lost[0, k]
        if not (total > 0.0 and gone <= _LOST * total and total < np.inf):
            return np.nan
        log_z += math.log(total)
        inverse = 1.0 / total
        share[k] = inverse
        spread = 2.0 * gone * inverse
        light = w[0, k] * inverse if apart else 0.0
        spread_light = (lost[1, k] + w[0, k] * spread) * inverse if apart else 0.0
        row = w[k]
        for m in range(1, k):
            lost[1, m] += row[m] * spread_light + lost[0, m] * light + _TINY
            lost[0, m] += row[m] * spread + n * _TINY
        for h in range(k):
            factor = w[h, k] * inverse
            if factor > 0.0:
                target = w[h]
                for m in range(1, k):
                    target[m] += factor * row[m]
    return log_z


@kernel
def _differentiate(w, n, single, share, slope):
    """``slope[h, m]``: the derivative of log Z by the weight of an arc, from what `_eliminate` left."""
    slope[0, 1] = share[1]
    slope[1, 1] = 0.0
    for k in range(2, n + 1):
        row, own = w[k], slope[k]
        inverse = share[k]
        for m in range(1, k + 1):
            own[m] = 0.0
        children = 0.0
        for h in range(k):
            factor = w[h, k] * inverse
            other = slope[h]
            total = 0.0
            for m in range(1, k):
                total += row[m] * other[m]
                own[m] += factor * other[m]
            other[k] = total
            children += factor * total
        for h in range(1, k):
            slope[h, k] = (1.0 + slope[h, k] - children) * inverse
        slope[0, k] = (slope[0, k] if single else 1.0 + slope[0, k] - children) * inverse


@kernel
def _in_linear_space(scores, n, single, counts, w, slope, work):
    """log Z of one instance, and counts; NaN where it must be done with logs."""
    side = n + 1
    top, lost, share = work[0], work[1:3], work[3]
    for m in range(1, side):
        top[m] = -np.inf
        lost[0, m] = n * _TINY
        lost[1, m] = _TINY
    for h in range(side):
        line = scores[h]
        for m in range(1, side):
            if m != h:
                top[m] = max(top[m], line[m])
    log_z = 0.0
    for m in range(1, side):
        if top[m] == -np.inf:
            return -np.inf
        log_z += top[m]
    for h in range(side):
        line, target = scores[h], w[h]
        for m in range(1, side):
            target[m] = exp_scalar(line[m] - top[m])
        if h > 0:
            target[h] = 0.0
    if len(counts) > 0:
        counts[:, :] = w
    log_z += _eliminate(w, n, single, lost, share)
    if len(counts) == 0 or math.isnan(log_z):
        return log_z
    _differentiate(w, n, single, share, slope)
    for m in range(side):
        top[m] = 0.0
    for h in range(side):
        counts[h, 0] = 0.0
        line, target = slope[h], counts[h]
        for m in range(1, side):
            target[m] = max(target[m] * line[m], 0.0)
            top[m] += target[m]
    for m in range(1, side):
        if not abs(top[m] - 1.0) < 1e-9:
            return np.nan
    return log_z


@kernel
def _in_log_space(scores, n, single, counts, w, slope, work, order):
    """The same, with logs."""
    side = n + 1
    log_z = eliminate_logs(scores, n, single, w, work[0], order)
    if len(counts) == 0:
        return log_z
    counts[:, :] = 0.0
    if log_z == -np.inf:
        return log_z
    differentiate_logs(w, n, single, work[0], slope, work[1])
    for h in range(side):
        for m in range(1, side):
            if h != m:
                head, word = order[h], order[m]
                counts[head, word] = math.exp(min(scores[head, word] + slope[h, m], 0.0))
    return log_z


@kernel
def spanning_sums(pool, offsets, sizes, first, last, single, log_z, counts):
    """log Z of instances first..last, and marginals of their arcs where ``counts`` is not empty.

    ``pool[offsets[i]:]`` are scores of instance i, ``[n + 1, n + 1]`` by head and modifier, as are counts. Cells that
    are no arcs (into the root, from a word to itself) are not looked at; their counts are zero.
    """
    largest = 0
    for i in range(first, last):
        largest = max(largest, sizes[i])
    side = largest + 1
    room = np.empty((2, side * side))
    work = np.empty((4, side))
    order = np.empty(side, np.int64)
    nothing = np.empty((0, 0))
    for i in range(first, last):
        n = sizes[i]
        side = n + 1
        begin, area = offsets[i], side * side
        scores = pool[begin : begin + area].reshape(side, side)
        own = counts[begin : begin + area].reshape(side, side) if len(counts) > 0 else nothing
        w, slope = room[0, :area].reshape(side, side), room[1, :area].reshape(side, side)
        if n == 0:
            log_z[i] = 0.0
            continue
        log_z[i] = _in_linear_space(scores, n, single, own, w, slope, work)
        if math.isnan(log_z[i]):
            log_z[i] = _in_log_space(scores, n, single, own, w, slope, work, order)
        elif log_z[i] == -np.inf and len(counts) > 0:
            own[:, :] = 0.0
