"""Sums over the paths of CTC and their counts with numbers instead of logs.

A row of the chart has the L + 1 blanks, a zero, and the L labels: entries are relative to the largest of their frame,
and scores of symbols to the largest of those that are used. What gets below 1e-290 is dropped. What was dropped at
frame t is at most ``1e-290 * 3^(T - t)`` times what the largest entry of its frame was, since every step leads to three
states at most and no number is above one; compared with log Z that says how much is missing at most, and where it might
be seen the instance is left to the kernel that works with logs (NaN).
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = ["linear_sums", "linear_width"]

LEAST = 1e-290
# log of LEAST, with room for the number of states and for what is not seen in the last digit.
SAFE = 667.0 - 60.0


@kernel
def linear_width(n_labels):
    """Numbers in a row of the chart."""
    return 2 * n_labels + 2


@kernel
def _symbol_numbers(pool, at, labels, blank, out):
    """Scores of a frame relative to the largest that is used, whose log it is: labels, then blank."""
    n = len(labels)
    top = pool[at + blank]
    for k in range(n):
        out[k] = pool[at + labels[k]]
    out[n] = top
    for k in range(n):
        top = max(top, out[k])
    if top > -np.inf:
        for k in range(n + 1):
            out[k] = exp_scalar(out[k] - top)
    return top


@kernel
def _step(before, here, numbers, may, n, low, high):
    """One frame: from blanks and labels before it to those at it; answers the largest, by which all are divided."""
    blanks, labels = before[: n + 1], before[n + 1 :]  # labels[0] is the zero before the first
    to_blanks, to_labels = here[: n + 1], here[n + 2 :]
    blank = numbers[n]
    top = 0.0
    for k in range(low, high + 1):
        to_blanks[k] = blank * (blanks[k] + labels[k])
        top = max(top, to_blanks[k])
    for k in range(low, high):
        to_labels[k] = numbers[k] * (labels[k + 1] + blanks[k] + may[k] * labels[k])
        top = max(top, to_labels[k])
    if top == 0.0:
        return top
    inverse = 1.0 / top
    for k in range(low, high + 1):
        value = to_blanks[k] * inverse
        to_blanks[k] = value if value > LEAST else 0.0
    for k in range(low, high):
        value = to_labels[k] * inverse
        to_labels[k] = value if value > LEAST else 0.0
    return top


@kernel
def _backwards(pool_symbols, begin, frames, labels, may, blank, weight, chart, room, counts):
    """Counts of an instance whose chart is filled: probability is sent back along the steps."""
    n = len(labels)
    mass, sent, ratio = room[0], room[1], room[2]
    mass[:] = 0.0
    last = chart[frames - 1]
    total = last[n] + (last[2 * n + 1] if n > 0 else 0.0)
    mass[n] = weight * last[n] / total
    if n > 0:
        mass[2 * n + 1] = weight * last[2 * n + 1] / total
    for t in range(frames - 1, -1, -1):
        at = begin + t * pool_symbols
        used = 0.0
        for k in range(n + 1):
            used += mass[k]
        counts[at + blank] += used
        for k in range(n):
            counts[at + labels[k]] += mass[n + 2 + k]
        if t == 0:
            break
        blanks, own = chart[t - 1, : n + 1], chart[t - 1, n + 1 :]
        of_blanks, of_labels = ratio[: n + 1], ratio[n + 1 :]  # of_labels[n] stays 0
        for k in range(n + 1):
            of_blanks[k] = mass[k] / max(blanks[k] + own[k], LEAST)
        for k in range(n):
            of_labels[k] = mass[n + 2 + k] / max(own[k + 1] + blanks[k] + may[k] * own[k], LEAST)
        of_labels[n] = 0.0
        for k in range(n + 1):
            sent[k] = blanks[k] * (of_blanks[k] + of_labels[k])
        for k in range(n):
            sent[n + 2 + k] = own[k + 1] * (of_labels[k] + of_blanks[k + 1] + may[k + 1] * of_labels[k + 1])
        mass, sent = sent, mass


@kernel
def linear_sums(pool, begin, frames, symbols, labels, may, blank, weight, with_counts, chart, room, numbers, counts):
    """log Z of an instance, and its counts; NaN, and none, where numbers might not do.

    ``may``: ``float64[L + 1]``, 1 where a label may follow the one before it at once, else 0; the last is 0. ``chart``:
    ``float64[frames, 2 L + 2]``; ``room``: three such rows; ``numbers``: ``float64[L + 1]``.
    """
    n = len(labels)
    chart[:] = 0.0
    log_z = _symbol_numbers(pool, begin, labels, blank, numbers)
    if log_z == -np.inf:
        return np.nan
    chart[0, 0] = numbers[n]
    if n > 0:
        chart[0, n + 2] = numbers[0]
    grown, most = 0.0, frames * math.log(3.0)
    for t in range(1, frames):
        top = _symbol_numbers(pool, begin + t * symbols, labels, blank, numbers)
        low, high = max(0, n - (frames - t)), min(n, t + 1)
        growth = _step(chart[t - 1], chart[t], numbers, may, n, low, high) if top > -np.inf else 0.0
        if growth == 0.0:
            return np.nan
        log_z += top
        grown += math.log(growth)
        most = max(most, grown + (frames - t) * math.log(3.0))
    last = chart[frames - 1]
    total = last[n] + (last[2 * n + 1] if n > 0 else 0.0)
    if total == 0.0:
        return np.nan
    grown += math.log(total)
    if most - grown > SAFE:
        return np.nan
    if with_counts:
        _backwards(symbols, begin, frames, labels, may, blank, weight, chart, room, counts)
    return log_z + grown
