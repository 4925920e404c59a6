"""Sums and maxima over the paths of CTC, expected counts, and descents.

A path is in one of ``2 L + 1`` states at each frame: blank, label 1, blank, ... , label L, blank. Charts have two
columns of -inf before the first state, so that no step needs a test. Sums are had without logs where that is safe
(`ctc_linear_kernel`). Invariant: -inf is impossible and never becomes
NaN. Free to change: the order of addition.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.log_space import log_add
from markovfield.structures.alignment.alignment_kernel import add_log_totals, chosen, send_shares, share
from markovfield.structures.alignment.ctc_linear_kernel import linear_sums, linear_width

__all__ = ["ctc_chart", "ctc_descents", "ctc_sums"]


@kernel
def ctc_chart(pool, begin, frames, symbols, states, skips, best, chart):
    """Fill the chart of an instance, ``float64[frames * (n + 2)]``; answers log Z, or the best score.

    ``states``: the symbol of each of the n states; ``skips``: 0 where the state two before may come just before.
    """
    n = len(states)
    width = n + 2
    if frames == 0:
        return 0.0 if n == 1 else -np.inf
    chart[:] = -np.inf
    for k in range(min(n, 2)):
        chart[2 + k] = pool[begin + states[k]]
    skipped, nothing = np.empty(n), np.full(n, -np.inf)
    for t in range(1, frames):
        here, before = chart[t * width + 2 : (t + 1) * width], chart[(t - 1) * width : t * width]
        score = begin + t * symbols
        # A state must be reached and must leave time for those after it.
        first, last = max(0, n - 2 * (frames - t)), min(n, 2 * t + 2)
        if best:
            for k in range(first, last):
                here[k] = pool[score + states[k]] + max(before[k + 2], before[k + 1], before[k] + skips[k])
        else:
            for k in range(first, last):
                here[k] = pool[score + states[k]]
                skipped[k] = before[k] + skips[k]
            add_log_totals(
                here[first:last],
                before[first + 2 : last + 2],
                before[first + 1 : last + 1],
                skipped[first:last],
                nothing[first:last],
            )
    end = frames * width - 1
    return max(chart[end], chart[end - 1]) if best else log_add(chart[end], chart[end - 1])


@kernel
def _in_log_space(pool, begin, length, symbols, own, may_skip, weight, with_counts, counts):
    """log Z of an instance, and its counts."""
    n = len(own)
    width = n + 2
    chart = np.empty(length * width)
    log_z = ctc_chart(pool, begin, length, symbols, own, may_skip, False, chart)
    if not with_counts or log_z == -np.inf or length == 0:
        return log_z
    mass, sent, values, moved = np.zeros(n), np.zeros(n), np.empty(n), np.empty(n)
    end = length * width - 1
    mass[n - 1] = weight * share(chart[end], log_z)
    if n > 1:
        mass[n - 2] = weight * share(chart[end - 1], log_z)
    for t in range(length - 1, -1, -1):
        score = begin + t * symbols
        for k in range(n):
            counts[score + own[k]] += mass[k]
        if t == 0:
            break
        before = chart[(t - 1) * width + 2 : t * width]
        for k in range(n):
            value = chart[t * width + 2 + k]
            values[k] = value - pool[score + own[k]] if value > -np.inf else 1e300
            moved[k] = before[k - 2] + may_skip[k] if k > 1 else -np.inf
            sent[k] = 0.0
        send_shares(sent, mass, before, values)
        send_shares(sent[: n - 1], mass[1:], before[: n - 1], values[1:])
        if n > 2:
            send_shares(sent[: n - 2], mass[2:], moved[2:], values[2:])
        mass, sent = sent, mass
    return log_z


@kernel
def ctc_sums(first, last, offsets, frames, symbols, labels, states, skips, pool, weights, with_counts, log_z, counts):
    """log Z of some instances, and the derivatives of its weighted sum by the pool."""
    longest, most = 0, 0
    for s in range(first, last):
        longest = max(longest, frames[s] * linear_width((labels[s + 1] - labels[s]) // 2))
        most = max(most, (labels[s + 1] - labels[s]) // 2)
    chart, room = np.empty(longest), np.empty(3 * linear_width(most))
    numbers, own, may = np.empty(most + 1), np.empty(most, np.int64), np.zeros(most + 1)
    for s in range(first, last):
        begin, length, n = offsets[s], frames[s], (labels[s + 1] - labels[s]) // 2
        width = linear_width(n)
        for k in range(n):
            own[k] = states[labels[s] + 2 * k + 1]
            may[k] = 1.0 if skips[labels[s] + 2 * k + 1] == 0.0 else 0.0
        may[n] = 0.0
        log_z[s] = np.nan
        if length > 0:
            log_z[s] = linear_sums(
                pool, begin, length, symbols, own[:n], may[: n + 1], states[labels[s]], weights[s], with_counts,
                chart[: length * width].reshape(length, width), room[: 3 * width].reshape(3, width), numbers[: n + 1],
                counts,
            )  # fmt: skip
        if np.isnan(log_z[s]):
            mine, may_skip = states[labels[s] : labels[s + 1]], skips[labels[s] : labels[s + 1]]
            log_z[s] = _in_log_space(pool, begin, length, symbols, mine, may_skip, weights[s], with_counts, counts)


@kernel
def ctc_descents(
    first, last, offsets, frames, symbols, labels, states, skips, pool, best, size, streams, starts, cells
):
    """The cells of the best path of some instances, or of ``size`` random ones; -1 where there is none.

    ``starts[s]`` is where the cells of the first path of an instance begin; each has one for every frame.
    """
    for s in range(first, last):
        own, may_skip = states[labels[s] : labels[s + 1]], skips[labels[s] : labels[s + 1]]
        length, begin, n = frames[s], offsets[s], len(own)
        width = n + 2
        chart = np.empty(length * width)
        total = ctc_chart(pool, begin, length, symbols, own, may_skip, best, chart)
        if total == -np.inf or length == 0:
            cells[starts[s] : starts[s] + size * length] = -1
            continue
        for i in range(size):
            at = starts[s] + i * length
            end = length * width - 1
            k = n - 1 - chosen(chart[end], chart[end - 1], -np.inf, -np.inf, best, streams[s])
            for t in range(length - 1, -1, -1):
                cells[at + t] = begin + t * symbols + own[k]
                if t > 0:
                    before = (t - 1) * width + 2 + k
                    k -= chosen(
                        chart[before], chart[before - 1], chart[before - 2] + may_skip[k], -np.inf, best, streams[s]
                    )
