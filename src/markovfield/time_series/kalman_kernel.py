"""The Kalman filter and the fixed-interval smoother over one series with missing values, in plain loops.

States and observations are few and steps many, so that calls of a matrix library would cost more than their products.
The smoother goes back by what later observations tell (Durbin and Koopman 2012, section 4.4), which needs no inverse of
a state's covariance: transitions without noise are no exception.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["filter_series", "smooth_series"]


@kernel
def _product(a, b, out):
    """``out = a b``."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = 0.0
        for k in range(a.shape[1]):
            x = a[i, k]
            if x != 0.0:
                for j in range(b.shape[1]):
                    out[i, j] += x * b[k, j]


@kernel
def _product_transposed(a, b, out):
    """``out = a b'``."""
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[j, k]
            out[i, j] = total


@kernel
def _transposed_product(a, b, out):
    """``out = a' b``."""
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            out[i, j] = 0.0
    for k in range(a.shape[0]):
        for i in range(a.shape[1]):
            x = a[k, i]
            if x != 0.0:
                for j in range(b.shape[1]):
                    out[i, j] += x * b[k, j]


@kernel
def _observe(row, mean, spread, see, shift, noise, seen, half, whitened, innovation):
    """What a row tells: ``whitened`` and ``innovation`` become those of its values divided by a factor of their
    covariance; returns how many there are and their log-density, nan where that covariance is singular.
    """
    n = len(mean)
    count = 0
    for i in range(len(row)):
        if not math.isnan(row[i]):
            seen[count] = i
            count += 1
    density = 0.0
    for i in range(count):
        at = seen[i]
        expected = shift[at]
        for a in range(n):
            whitened[i, a] = see[at, a]
            expected += see[at, a] * mean[a]
        innovation[i] = row[at] - expected
        for j in range(i + 1):
            other = seen[j]
            total = noise[at, other]
            for a in range(n):
                inner = 0.0
                for b in range(n):
                    inner += spread[a, b] * see[other, b]
                total += see[at, a] * inner
            half[i, j] = total
    for i in range(count):
        largest = half[i, i]
        for j in range(i + 1):
            total = half[i, j]
            for k in range(j):
                total -= half[i, k] * half[j, k]
            if i == j:
                if not total > 1e-14 * largest:
                    return count, np.nan
                half[i, i] = math.sqrt(total)
            else:
                half[i, j] = total / half[j, j]
        # Both right-hand sides go along with the factor.
        for k in range(i):
            innovation[i] -= half[i, k] * innovation[k]
            for a in range(n):
                whitened[i, a] -= half[i, k] * whitened[k, a]
        inverse = 1.0 / half[i, i]
        innovation[i] *= inverse
        for a in range(n):
            whitened[i, a] *= inverse
        density -= math.log(half[i, i]) + 0.5 * innovation[i] * innovation[i] + 0.5 * math.log(2 * math.pi)
    return count, density


@kernel
def filter_series(
    rows,
    move,
    drift,
    move_noise,
    see,
    shift,
    see_noise,
    first_mean,
    first_spread,
    predicted,
    predicted_spread,
    filtered,
    filtered_spread,
    told,
    told_precision,
    densities,
):
    """Predicted and filtered states of all steps, and the log-density of each row given those before it.

    ``told[t]`` and ``told_precision[t]`` are what row t tells of its state, in information form, for the smoother.
    Returns -1, or the first step whose observations have a singular covariance.
    """
    steps, m = rows.shape
    n = len(first_mean)
    seen = np.zeros(m, np.int64)
    half, whitened, innovation = np.zeros((m, m)), np.zeros((m, n)), np.zeros(m)
    gain, between = np.zeros((m, n)), np.zeros((n, n))
    predicted[0] = first_mean
    predicted_spread[0] = first_spread
    for t in range(steps):
        mean, spread = predicted[t], predicted_spread[t]
        count, density = _observe(rows[t], mean, spread, see, shift, see_noise, seen, half, whitened, innovation)
        if math.isnan(density):
            return t
        densities[t] = density
        for a in range(n):
            told[t, a] = 0.0
            for b in range(n):
                told_precision[t, a, b] = 0.0
        for i in range(count):
            for a in range(n):
                told[t, a] += whitened[i, a] * innovation[i]
                total = 0.0
                for b in range(n):
                    told_precision[t, a, b] += whitened[i, a] * whitened[i, b]
                    total += spread[a, b] * whitened[i, b]
                gain[i, a] = total
        for a in range(n):
            total = mean[a]
            for i in range(count):
                total += gain[i, a] * innovation[i]
            filtered[t, a] = total
            for b in range(n):
                less = 0.0
                for i in range(count):
                    less += gain[i, a] * gain[i, b]
                filtered_spread[t, a, b] = spread[a, b] - less
        if t + 1 < steps:
            for a in range(n):
                total = drift[a]
                for b in range(n):
                    total += move[a, b] * filtered[t, b]
                predicted[t + 1, a] = total
            _product(move, filtered_spread[t], between)
            after = predicted_spread[t + 1]
            _product_transposed(between, move, after)
            for a in range(n):
                for b in range(a + 1):
                    both = 0.5 * (after[a, b] + after[b, a]) + move_noise[a, b]
                    after[a, b] = both
                    after[b, a] = both
    return -1


@kernel
def smooth_series(move, predicted, predicted_spread, told, told_precision, smoothed, smoothed_spread, crossed):
    """Means and covariances of all states given the whole series; ``crossed[t]`` is that of states t + 1 and t."""
    steps, n = predicted.shape
    later, precision = np.zeros(n), np.zeros((n, n))
    now, left, carried = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    inner, square = np.zeros((n, n)), np.zeros((n, n))
    for t in range(steps - 1, -1, -1):
        spread = predicted_spread[t]
        # A state's weight in the next one once its own row is known.
        _product(spread, told_precision[t], inner)
        for a in range(n):
            for b in range(n):
                inner[a, b] = (1.0 if a == b else 0.0) - inner[a, b]
        _product(move, inner, left)
        if t + 1 < steps:
            _product(left, spread, inner)
            _product(precision, inner, square)
            _product(predicted_spread[t + 1], square, carried)
            for a in range(n):
                for b in range(n):
                    crossed[t, a, b] = inner[a, b] - carried[a, b]
        for a in range(n):
            total = told[t, a]
            for b in range(n):
                total += left[b, a] * later[b]
            now[a] = total
        _product(precision, left, inner)
        _transposed_product(left, inner, precision)
        for a in range(n):
            later[a] = now[a]
            for b in range(n):
                precision[a, b] += told_precision[t, a, b]
        for a in range(n):
            total = predicted[t, a]
            for b in range(n):
                total += spread[a, b] * later[b]
            smoothed[t, a] = total
        _product(precision, spread, inner)
        _product(spread, inner, square)
        for a in range(n):
            for b in range(n):
                smoothed_spread[t, a, b] = spread[a, b] - 0.5 * (square[a, b] + square[b, a])
