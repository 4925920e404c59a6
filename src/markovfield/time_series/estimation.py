"""What a vector autoregression is fitted by: the likelihood, or the lasso with its penalty chosen on a path."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import BoolArray, FloatArray
from markovfield.exceptions import ModelError
from markovfield.time_series.regression import Fitted, maximum_likelihood

__all__ = ["conditional_likelihood", "estimated", "finite_array"]

PENALTIES = 20
SMALLEST = 0.01


def estimated(
    x: FloatArray,
    y: FloatArray,
    free: BoolArray,
    joined: BoolArray,
    intercept: bool,
    asked: Any,
    gamma: float,
    turns: dict[str, Any],
) -> tuple[Fitted, float]:
    """Weights and noise, and the penalty that was taken: ``asked``, or the best by EBIC."""
    if asked != "ebic":
        return maximum_likelihood(x, y, free, joined, penalty=float(asked), **turns), float(asked)
    n, k = y.shape
    largest = _largest_penalty(x, y, intercept)
    best: tuple[float, float] | None = None
    for penalty in largest * SMALLEST ** np.linspace(0.0, 1.0, PENALTIES):
        shrunk = maximum_likelihood(x, y, free, joined, penalty=float(penalty), tolerance=1e-6, max_iterations=50)
        used = int(np.count_nonzero(shrunk.weights[:, int(intercept) :]))
        if used >= n * k:
            break
        score = -2 * conditional_likelihood(x, y, shrunk) + used * (np.log(n) + 2 * gamma * np.log(free.size))
        if best is None or score < best[0]:
            best = float(score), float(penalty)
    assert best is not None
    return maximum_likelihood(x, y, free, joined, penalty=best[1], **turns), best[1]


def finite_array(values: npt.ArrayLike, what: str) -> FloatArray:
    """Finite numbers, or one sentence on what is wrong."""
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be an array of numbers") from None
    if not np.isfinite(found).all():
        raise ModelError(f"{what} has an entry that is not a finite number")
    return found


def conditional_likelihood(x: FloatArray, y: FloatArray, found: Fitted) -> float:
    """Log-density of targets given their regressors."""
    residual = y - x @ found.weights.T
    n, k = y.shape
    sign, logdet = np.linalg.slogdet(found.precision)
    assert sign > 0
    square = float(np.sum((residual @ found.precision) * residual))
    return float(0.5 * (n * (logdet - k * np.log(2 * np.pi)) - square))


def _largest_penalty(x: FloatArray, y: FloatArray, intercept: bool) -> float:
    """The penalty at which all weights are zero: the gradient's largest entry there."""
    centred = y - y.mean(axis=0) if intercept else y
    scale = np.std(y, axis=0)
    columns = np.sqrt(np.mean(x**2, axis=0))
    covariance = centred.T @ centred / len(y) / np.outer(scale, scale)
    slope = np.linalg.pinv(covariance) @ (centred / scale).T @ (x / np.where(columns > 0, columns, 1.0))
    return float(np.abs(slope[:, int(intercept) :]).max())
