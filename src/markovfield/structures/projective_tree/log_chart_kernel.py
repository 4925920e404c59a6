"""Eisner's chart with logs, for sums of any range and for maxima; trees read off it from the top.

Items are those of `inside_outside_kernel`; -inf is an item that cannot be. Posteriors go down from the whole sentence,
each item's share to the ways to make it, so that all of them are numbers between zero and one.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.random import draw_from_logs

__all__ = ["draw_or_decode", "fill_log_chart", "log_outside"]


@kernel
def _along(a, b, largest):
    """log of the sum of exp (or the maximum) of sums along two rows."""
    top = -np.inf
    for k in range(len(a)):
        top = max(top, a[k] + b[k])
    if largest or top == -np.inf:
        return top
    total = 0.0
    for k in range(len(a)):
        total += exp_scalar(a[k] + b[k] - top)
    return top + math.log(total)


@kernel
def fill_log_chart(scores, n, single, largest, arc, span, turned):
    """Logs of sums over trees below each item, or the best of them with ``largest``; ``span[0, n]`` is of all."""
    for i in range(n + 1):
        span[i, i] = turned[i, i] = 0.0
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            between = _along(span[i, i:j], span[j, i + 1 : j + 1], largest)
            arc[i, j] = scores[i, j] + between
            arc[j, i] = scores[j, i] + between if i > 0 else -np.inf
            right, left = -np.inf, -np.inf
            if i > 0 or j == n or not single:
                right = _along(arc[i, i + 1 : j + 1], turned[j, i + 1 : j + 1], largest)
            if i > 0:
                left = _along(arc[j, i:j], turned[i, i:j], largest)
            span[i, j] = turned[j, i] = right
            span[j, i] = turned[i, j] = left


@kernel
def log_outside(scores, n, single, arc, span, turned, of_arc, of_span):
    """Posteriors of arcs (marginals) and of spans; ``of_arc`` comes as zeros."""
    of_span[:, :] = 0.0
    of_span[0, n] = 1.0
    for j in range(n, 0, -1):
        for i in range(j):
            for side in range(2):
                head, end = (i, j) if side == 0 else (j, i)
                share = of_span[head, end]
                if share > 0.0:
                    begin = i + 1 if side == 0 else i
                    for m in range(begin, begin + j - i):
                        part = share * exp_scalar(arc[head, m] + turned[end, m] - span[head, end])
                        of_arc[head, m] += part
                        of_span[m, end] += part
            for side in range(2):
                head, word = (i, j) if side == 0 else (j, i)
                share = of_arc[head, word]
                if share > 0.0:
                    between = arc[head, word] - scores[head, word]
                    for k in range(i, j):
                        part = share * exp_scalar(span[i, k] + span[j, k + 1] - between)
                        of_span[i, k] += part
                        of_span[j, k + 1] += part


@kernel
def _chosen(a, b, largest, state, logs):
    """A position along two rows: that of the largest sum, or drawn in proportion to exp of the sums."""
    best = 0
    for k in range(len(a)):
        logs[k] = a[k] + b[k]
        if logs[k] > logs[best]:
            best = k
    return best if largest else draw_from_logs(state, logs, 0, len(a))


@kernel
def _descend(n, arc, span, turned, largest, state, head, stack, logs):
    """Heads of words in one tree, best or drawn, from the chart; ``stack`` holds (is an arc, head, end)."""
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, n
    waiting = 1
    while waiting > 0:
        waiting -= 1
        is_arc, h, e = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        if h == e:
            continue
        i, j = min(h, e), max(h, e)
        if is_arc == 1:
            head[e - 1] = h
            k = i + _chosen(span[i, i:j], span[j, i + 1 : j + 1], largest, state, logs)
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = 0, i, k
            stack[waiting + 1, 0], stack[waiting + 1, 1], stack[waiting + 1, 2] = 0, j, k + 1
        else:
            begin = i + 1 if h < e else i
            last = begin + j - i
            m = begin + _chosen(arc[h, begin:last], turned[e, begin:last], largest, state, logs)
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = 1, h, m
            stack[waiting + 1, 0], stack[waiting + 1, 1], stack[waiting + 1, 2] = 0, m, e
        waiting += 2


@kernel
def draw_or_decode(pool, offsets, sizes, first, last, single, size, largest, states, heads, starts):
    """``size`` trees of each of the instances first..last, drawn or the best: heads; -1 where no tree is possible."""
    widest = 0
    for i in range(first, last):
        widest = max(widest, sizes[i])
    room = np.empty((3, (widest + 1) * (widest + 1)))
    stack, logs = np.empty((2 * widest + 4, 3), np.int64), np.empty(widest + 1)
    for i in range(first, last):
        n = sizes[i]
        side = n + 1
        scores = pool[offsets[i] : offsets[i] + side * side].reshape(side, side)
        arc, span = room[0, : side * side].reshape(side, side), room[1, : side * side].reshape(side, side)
        turned = room[2, : side * side].reshape(side, side)
        fill_log_chart(scores, n, single, largest, arc, span, turned)
        for draw in range(size):
            found = heads[starts[i] + draw * n : starts[i] + (draw + 1) * n]
            if span[0, n] == -np.inf:
                found[:] = -1
            else:
                _descend(n, arc, span, turned, largest, states[i], found, stack, logs)
