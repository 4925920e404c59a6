"""Effective sample sizes and split R-hat of series of numbers, and of states written as bits.

Both follow Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021): each Markov chain is cut in halves, autocovariances
are averaged over the halves, and Geyer's initial monotone sequence says where their sum ends. Lags are computed one
pair at a time, so that a series that forgets quickly costs little.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.bitsets import popcount
from markovfield.kernels.compiler import kernel

__all__ = ["summarise_indicators", "summarise_series"]

_ONE, _WORD = np.uint64(1), np.uint64(64)


@kernel
def _spread(means, variances, steps):  # type: ignore[no-untyped-def]
    """Mean variance within halves (unbiased), and the pooled variance, from ``variances`` over ``steps``."""
    m = len(means)
    within, centre = 0.0, 0.0
    for c in range(m):
        within += variances[c]
        centre += means[c]
    within *= 1.0 / (m * (1.0 - 1.0 / steps))
    centre /= m
    between = 0.0
    for c in range(m):
        between += (means[c] - centre) ** 2
    between /= m - 1
    return within, within * (1.0 - 1.0 / steps) + between


@kernel
def _summary(tau, within, pooled, count, out):  # type: ignore[no-untyped-def]
    """Effective sample size, split R-hat and squared standard error, from an autocorrelation time."""
    # Antithetic chains may beat independent draws, but not by as much as a noisy estimate can say.
    tau = max(tau, 1.0 / max(1.0, math.log10(count)))
    out[0] = count / tau
    out[1] = math.sqrt(pooled / within) if within > 0.0 else np.inf
    out[2] = pooled * tau / count


@kernel
def summarise_series(x, out):  # type: ignore[no-untyped-def]
    """``x`` is ``float64[chains, steps, series]`` with at least four steps; ``out`` is ``float64[series, 3]``.

    A row of ``out`` is the effective sample size, split R-hat and the squared standard error of the mean of a series;
    one that never changes has the number of steps, nan and 0.
    """
    chains, steps, _ = x.shape
    half = steps // 2
    m = 2 * chains
    y = np.empty((m, half))
    means, variances = np.empty(m), np.empty(m)
    for k in range(x.shape[2]):
        low, high = np.inf, -np.inf
        for c in range(m):
            first = 0 if c % 2 == 0 else steps - half
            total = 0.0
            for i in range(half):
                value = x[c // 2, first + i, k]
                y[c, i] = value
                total += value
                low, high = min(low, value), max(high, value)
            means[c] = total / half
        if not low < high:
            out[k, 0], out[k, 1], out[k, 2] = chains * steps, np.nan, 0.0
            continue
        for c in range(m):
            total = 0.0
            for i in range(half):
                y[c, i] -= means[c]
                total += y[c, i] * y[c, i]
            variances[c] = total / half
        within, pooled = _spread(means, variances, half)
        raw = within * (1.0 - 1.0 / half)
        tau, last, t = -1.0, np.inf, 0
        while t + 1 < half:
            pair = 0.0
            for lag in range(t, t + 2):
                total = 0.0
                for c in range(m):
                    for i in range(half - lag):
                        total += y[c, i] * y[c, i + lag]
                pair += 1.0 - (within - total / (m * half)) / pooled if lag else 1.0
            if t > 0 and not pair > 0.0:
                break
            last = min(last, pair)
            tau += 2.0 * last
            t += 2
        if raw == 0.0:
            tau = 2.0 * half  # every half is stuck at a place of its own: a chain is worth one draw
        _summary(tau, within, pooled, float(chains * steps), out[k])


@kernel
def _shared_ones(words, n_words, lag):  # type: ignore[no-untyped-def]
    """How many bits of a row are set together with the bit ``lag`` places later; one word of zeros must follow."""
    skip, shift = lag // 64, np.uint64(lag % 64)
    total = 0
    if shift == np.uint64(0):
        for w in range(n_words - skip):
            total += popcount(words[w] & words[w + skip])
    else:
        rest = _WORD - shift
        for w in range(n_words - skip):
            total += popcount(words[w] & ((words[w + skip] >> shift) | (words[w + skip + 1] << rest)))
    return total


@kernel
def _pack(column, starts, half, state, words):  # type: ignore[no-untyped-def]
    """Write "is this state" as bits: one row of words for each half Markov chain."""
    for c in range(len(starts)):
        for w in range(words.shape[1]):
            words[c, w] = np.uint64(0)
        for i in range(half):
            if column[starts[c] + i] == state:
                words[c, i >> 6] |= _ONE << np.uint64(i & 63)


@kernel
def _summarise_bits(words, half, means, variances, heads, tails, count, out):  # type: ignore[no-untyped-def]
    """One indicator whose bits are packed: as `summarise_series`, with counts of bits in place of products."""
    m, n_words = words.shape[0], words.shape[1] - 1
    ones = 0
    for c in range(m):
        total = 0
        for w in range(n_words):
            total += popcount(words[c, w])
        ones += total
        heads[c] = tails[c] = total
        means[c] = total / half
        variances[c] = means[c] * (1.0 - means[c])
    if ones == 0 or ones == m * half:
        out[0], out[1], out[2] = count, np.nan, 0.0
        return
    within, pooled = _spread(means, variances, half)
    tau, last, t = -1.0, np.inf, 0
    while t + 1 < half:
        pair = 0.0
        for lag in range(t, t + 2):
            if lag == 0:
                pair += 1.0
                continue
            total = 0.0
            for c in range(m):
                # Ones among the first and among the last (half - lag) places.
                i, j = half - lag, lag - 1
                heads[c] -= np.int64((words[c, i >> 6] >> np.uint64(i & 63)) & _ONE)
                tails[c] -= np.int64((words[c, j >> 6] >> np.uint64(j & 63)) & _ONE)
                both = _shared_ones(words[c], n_words, lag)
                total += both - means[c] * (heads[c] + tails[c]) + (half - lag) * means[c] * means[c]
            pair += 1.0 - (within - total / (m * half)) / pooled
        if t > 0 and not pair > 0.0:
            break
        last = min(last, pair)
        tau += 2.0 * last
        t += 2
    if within == 0.0:
        tau = 2.0 * half
    _summary(tau, within, pooled, count, out)


@kernel
def summarise_indicators(columns, starts, half, cardinalities, count, out):  # type: ignore[no-untyped-def]
    """The indicators of all states of some variables.

    ``columns`` is ``int32[variables, rows]``, ``starts`` where each half Markov chain begins in a row, ``count`` how
    many samples there are; ``out`` is ``float64[states of all these variables, 3]`` as for `summarise_series`.
    """
    m = len(starts)
    words = np.zeros((m, (half + 63) // 64 + 1), np.uint64)
    means, variances = np.empty(m), np.empty(m)
    heads, tails = np.empty(m, np.int64), np.empty(m, np.int64)
    at = 0
    for v in range(len(cardinalities)):
        for state in range(cardinalities[v]):
            if cardinalities[v] == 2 and state == 1:
                # The other state's indicator is one less this one.
                for k in range(3):
                    out[at, k] = out[at - 1, k]
            else:
                _pack(columns[v], starts, half, state, words)
                _summarise_bits(words, half, means, variances, heads, tails, count, out[at])
            at += 1
