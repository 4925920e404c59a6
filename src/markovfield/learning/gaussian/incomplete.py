"""Expectation maximisation for Gaussian models: rows with holes, grouped by which values they have."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from markovfield.arrays import FloatArray, distinct_rows
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.gaussian.moments import ROUNDING, GaussianMoments, NumberTable

__all__ = ["em", "expected_moments", "first_moments"]


def first_moments(table: NumberTable) -> GaussianMoments:
    """Means and variances of what was observed, without covariances: where EM begins."""
    seen = ~np.isnan(table.values)
    weights = seen * table.weights[:, None]
    total = weights.sum(axis=0)
    for v, t in zip(table.variables, total, strict=True):
        if t == 0:
            raise ModelError(f"column {v!r} has no values at all: leave it out")
    filled = np.where(seen, table.values, 0.0)
    mean = (weights * filled).sum(axis=0) / total
    centred = np.where(seen, table.values - mean, 0.0)
    variance = (weights * centred**2).sum(axis=0) / total
    flat = np.flatnonzero(np.abs(centred).max(axis=0) <= ROUNDING * np.abs(mean))
    if len(flat):
        raise ModelError(
            f"column {table.variables[flat[0]]!r} is the same in every row, so it has no variance: leave it out"
        )
    return GaussianMoments.trusted(np.diag(variance), float(table.weights.sum()), mean, table.variables)


def expected_moments(table: NumberTable, mean: FloatArray, covariance: FloatArray) -> tuple[GaussianMoments, float]:
    """Mean and covariance of the rows with their holes filled by what is expected, and the log-likelihood observed.

    For each pattern of holes one factorisation of the covariance of what was observed.
    """
    n = len(mean)
    seen = ~np.isnan(table.values)
    first, which = distinct_rows(*seen.T)
    total = float(table.weights.sum())
    filled = np.empty_like(table.values)
    spread = np.zeros((n, n))
    log_likelihood = 0.0
    for pattern, row in enumerate(first):
        rows = np.flatnonzero(which == pattern)
        there, lost = np.flatnonzero(seen[row]), np.flatnonzero(~seen[row])
        weights = table.weights[rows]
        apart = table.values[np.ix_(rows, there)] - mean[there]
        filled[np.ix_(rows, there)] = apart
        if len(there):
            factor = np.linalg.cholesky(covariance[np.ix_(there, there)])
            white = np.linalg.solve(factor, apart.T)
            log_det = 2 * float(np.log(np.diag(factor)).sum()) + len(there) * math.log(2 * math.pi)
            log_likelihood -= 0.5 * float(weights @ (white**2).sum(axis=0) + weights.sum() * log_det)
        if len(lost):
            rest = covariance[np.ix_(lost, lost)]
            if len(there):
                half = np.linalg.solve(factor, covariance[np.ix_(there, lost)])
                filled[np.ix_(rows, lost)] = white.T @ half
                rest = rest - half.T @ half
            else:
                filled[np.ix_(rows, lost)] = 0.0
            spread[np.ix_(lost, lost)] += weights.sum() * rest
    shift = table.weights @ filled / total
    centred = filled - shift
    second = ((centred * table.weights[:, None]).T @ centred + spread) / total
    return GaussianMoments.trusted((second + second.T) / 2, total, mean + shift, table.variables), log_likelihood


def em(
    table: NumberTable,
    maximise: Callable[[GaussianMoments], FloatArray],
    *,
    tolerance: float,
    max_iterations: int,
    running: Running | None = None,
) -> tuple[GaussianMoments, FloatArray, list[float], bool]:
    """The last expected moments, the precision that ``maximise`` makes of them, the log-likelihoods, and convergence.

    It never falls, and ends when an iteration gains at most ``tolerance`` by the weight of the rows.
    """
    moments = first_moments(table)
    history: list[float] = []
    precision = maximise(moments)
    for _ in range(max_iterations):
        moments, value = expected_moments(table, moments.mean, np.asarray(np.linalg.inv(precision)))
        precision = maximise(moments)
        history.append(value)
        if running is not None:
            running.check(value)
        if len(history) > 1 and history[-1] - history[-2] <= tolerance * moments.n_rows:
            return moments, precision, history, True
    return moments, precision, history, False
