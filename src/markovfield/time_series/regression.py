"""Regressions of series on their past: least squares, and maximum likelihood under missing arrows and edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.proximal_gradient import ProximalGradient
from markovfield.learning.solvers.solve import solve

__all__ = ["Fitted", "Moments", "lagged", "maximum_likelihood", "selected_precision"]

Mask = npt.NDArray[np.bool_]

# Rows of a design that are factored at once.
BLOCK = 2048


def lagged(values: FloatArray, order: int, intercept: bool) -> tuple[FloatArray, FloatArray]:
    """Regressors ``[n, m]`` (one, then all series at lag 1, at lag 2, ...) and targets ``[n, k]``."""
    n = len(values) - order
    past = [values[order - lag : order - lag + n] for lag in range(1, order + 1)]
    return np.hstack([*([np.ones((n, 1))] if intercept else []), *past]), values[order:]


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of regressors and targets by rows, with columns scaled to comparable sizes.

    Attributes
    ----------
    n
        Rows.
    regressors, cross, targets
        ``[m, m]``, ``[m, k]``, ``[k, k]``: means of products of the scaled columns.
    columns, rows
        What regressors and targets were divided by.
    """

    n: int
    regressors: FloatArray
    cross: FloatArray
    targets: FloatArray
    columns: FloatArray
    rows: FloatArray

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> Moments:
        """Of a design and its targets; series that never change are named by the caller."""
        n = len(x)
        columns = np.sqrt(np.mean(x**2, axis=0))
        rows = np.std(y, axis=0)
        columns, rows = np.where(columns > 0, columns, 1.0), np.where(rows > 0, rows, 1.0)
        a, b = x / columns, y / rows
        return cls(n, a.T @ a / n, a.T @ b / n, b.T @ b / n, columns, rows)

    def residual(self, weights: FloatArray) -> FloatArray:
        """``[k, k]``: covariance of the residuals of scaled weights ``[k, m]``."""
        half = weights @ self.cross
        found = self.targets - half - half.T + weights @ self.regressors @ weights.T
        return (found + found.T) / 2


@dataclass(frozen=True, eq=False)
class Fitted:
    """Weights ``[k, m]``, covariance and precision of the noise, and how the search for them ended."""

    weights: FloatArray
    covariance: FloatArray
    precision: FloatArray
    iterations: int
    converged: bool


def maximum_likelihood(
    x: FloatArray,
    y: FloatArray,
    free: Mask,
    joined: Mask,
    *,
    penalty: float = 0.0,
    tolerance: float = 1e-10,
    max_iterations: int = 500,
) -> Fitted:
    """Weights and noise that maximise the likelihood, of those whose zeros are given.

    Where all weights are free, least squares are the maximum whatever the noise is (Zellner). Otherwise generalised
    least squares given the precision of the noise, and covariance selection given the weights, take turns: each is the
    exact maximum in its own part, so the likelihood never falls.

    Parameters
    ----------
    x, y
        ``[n, m]`` and ``[n, k]``.
    free
        ``bool[k, m]``: which weights there are.
    joined
        ``bool[k, k]``, symmetric: which entries of the noise's precision there are.
    penalty
        Of absolute weights of scaled columns; a first column of ones is not penalised.
    """
    if not penalty and free.all():
        weights, left = _least_squares(x, y)
        covariance, precision = selected_precision(left, joined)
        return Fitted(weights, covariance, precision, 1, True)
    moments = Moments.of(x, y)
    weights = _generalised(moments, np.eye(y.shape[1]), free)
    converged, iterations = False, 0
    while iterations < max_iterations and not converged:
        iterations += 1
        covariance, precision = selected_precision(moments.residual(weights), joined)
        before = weights
        if penalty:
            constant = bool((x[:, 0] == 1.0).all())
            weights = _penalised(moments, precision, free, weights, penalty / moments.n, constant)
        else:
            weights = _generalised(moments, precision, free)
        moved = float(np.abs(weights - before).max(initial=0.0))
        converged = moved <= tolerance * max(1.0, float(np.abs(weights).max(initial=0.0)))
    covariance, precision = selected_precision(moments.residual(weights), joined)
    scale = moments.rows
    return Fitted(
        weights * scale[:, None] / moments.columns,
        covariance * np.outer(scale, scale),
        precision / np.outer(scale, scale),
        iterations,
        converged,
    )


def _least_squares(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights and the covariance of what they leave, by QR of blocks of rows that stay in the cache."""
    from scipy.linalg import solve_triangular

    n, m = x.shape
    scale = np.sqrt(np.mean(x**2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    upper: Any = np.zeros((0, m + y.shape[1]))
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        upper = np.linalg.qr(np.vstack([upper, np.hstack([x[rows] / scale, y[rows]])]), mode="r")
    # Columns have the root of the rows' number as their length.
    if np.abs(np.diag(upper)[:m]).min() <= 1e-10 * np.sqrt(n):
        raise ModelError(
            f"the past of the series is linearly dependent: {n} rows of {m} regressors; take a lower order, a graph "
            "with fewer arrows, or a penalty"
        )
    weights = solve_triangular(upper[:m, :m], upper[:m, m:])
    left = upper[m:, m:]
    return np.asarray((weights / scale[:, None]).T), left.T @ left / n


def _generalised(moments: Moments, precision: FloatArray, free: Mask) -> FloatArray:
    """The weights that minimise ``tr(precision residual)`` among those that are free."""
    rows, columns = np.nonzero(free)
    weights = np.zeros(free.shape)
    if not len(rows):
        return weights
    system = precision[rows[:, None], rows] * moments.regressors[columns[:, None], columns]
    right = (precision @ moments.cross.T)[rows, columns]
    try:
        factor = np.linalg.cholesky(system)
    except np.linalg.LinAlgError:
        raise ModelError(
            "the past of the series is linearly dependent: the graph's weights cannot be told apart from "
            f"{moments.n} rows; take a lower order, a graph with fewer arrows, or a penalty"
        ) from None
    weights[rows, columns] = np.linalg.solve(factor.T, np.linalg.solve(factor, right))
    return weights


def _penalised(
    moments: Moments, precision: FloatArray, free: Mask, start: FloatArray, penalty: float, constant: bool
) -> FloatArray:
    """The same with absolute values penalised, by an accelerated proximal gradient."""
    rows, columns = np.nonzero(free)

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        full = np.zeros(free.shape)
        full[rows, columns] = w
        slope = precision @ (full @ moments.regressors - moments.cross.T)
        value = 0.5 * float(np.sum(precision * moments.residual(full)))
        return value, slope[rows, columns]

    strength = np.where(constant & (columns == 0), 0.0, penalty)
    solver = ProximalGradient(max_iterations=5000, tolerance=1e-9)
    found = solve(objective, start[rows, columns], solver=solver, penalty=Penalty(l1=strength))
    weights = np.zeros(free.shape)
    weights[rows, columns] = found.weights
    return weights


def selected_precision(
    covariance: FloatArray, joined: Mask, *, tolerance: float = 1e-13, max_iterations: int = 1000
) -> tuple[FloatArray, FloatArray]:
    """Covariance and precision of the Gaussian of maximum likelihood whose precision has given zeros.

    It agrees with the sample's covariance on the diagonal and on edges (Dempster 1972). Column after column is
    regressed on its neighbours (Hastie, Tibshirani and Friedman, algorithm 17.1).
    """
    k = len(covariance)
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0).all():
        raise ModelError(f"the noise of series number {int(np.argmin(scale))} is zero: its past tells it exactly")
    s = covariance / np.outer(scale, scale)
    off = ~np.eye(k, dtype=bool)
    try:
        np.linalg.cholesky(s)
    except np.linalg.LinAlgError:
        raise ModelError(
            f"the noise of the {k} series is linearly dependent, so that it has no precision: leave out a series"
        ) from None
    if joined[off].all():
        precision = np.linalg.inv(s)
        return covariance, (precision + precision.T) / 2 / np.outer(scale, scale)
    w = s.copy()
    slopes = np.zeros((k, k))
    for _ in range(max_iterations):
        moved = 0.0
        for j in range(k):
            near = np.flatnonzero(joined[j] & off[j])
            rest = np.flatnonzero(off[j])
            slopes[j] = 0.0
            if len(near):
                slopes[j, near] = np.linalg.solve(w[np.ix_(near, near)], s[near, j])
            column = w[rest] @ slopes[j]
            moved = max(moved, float(np.abs(column - w[rest, j]).max(initial=0.0)))
            w[rest, j] = w[j, rest] = column
        if moved <= tolerance:
            break
    precision = np.zeros((k, k))
    for j in range(k):
        precision[j, j] = 1.0 / (1.0 - w[j] @ slopes[j])
        precision[j] -= slopes[j] * precision[j, j]
    precision = (precision + precision.T) / 2
    return w * np.outer(scale, scale), precision / np.outer(scale, scale)
