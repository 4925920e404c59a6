"""How well a Gaussian graphical model describes its data, against the model of the complete graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.frames import Tabular
from markovfield.learning.gaussian.moments import GaussianMoments

__all__ = ["GaussianGoodness", "goodness", "log_determinant", "log_likelihood"]


@dataclass(frozen=True, kw_only=True)
class GaussianGoodness(Tabular):
    """A Gaussian graphical model against the saturated one.

    Attributes
    ----------
    deviance
        Twice what the log-likelihood lacks to that of the complete graph; nan where that has none: as few rows as
        variables.
    degrees_of_freedom
        Missing edges.
    p_value
        Probability of a larger deviance under the chi-squared distribution with these degrees of freedom.
    log_likelihood, n_parameters, total
        Of the rows as they came; means, variances and edges; the number of rows, or their weight.
    """

    deviance: float
    degrees_of_freedom: int
    p_value: float
    log_likelihood: float
    n_parameters: int
    total: float

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        names = ("deviance", "degrees_of_freedom", "p_value", "log_likelihood", "n_parameters", "total")
        return {name: [getattr(self, name)] for name in names}

    def __repr__(self) -> str:
        return f"GaussianGoodness(deviance {self.deviance:.6g}, df {self.degrees_of_freedom}, p {self.p_value:.4g})"


def log_determinant(matrix: FloatArray) -> float:
    """Of a positive definite matrix; -inf where it is singular to rounding, whatever the scales of its variables."""
    diagonal = np.diag(matrix)
    if not (diagonal > 0).all():
        return -math.inf
    scale = np.sqrt(diagonal)
    try:
        factor = np.linalg.cholesky(matrix / scale[:, None] / scale)
    except np.linalg.LinAlgError:
        return -math.inf
    roots = np.diag(factor)
    if (roots**2 <= 4 * len(matrix) * 2.0**-52).any():
        return -math.inf
    return 2 * float(np.log(roots).sum() + np.log(scale).sum())


def log_likelihood(moments: GaussianMoments, precision: FloatArray, log_det: float) -> float:
    """Log-density of all rows at their own mean and a precision, whose log-determinant is ``log_det``."""
    n = moments.n_variables
    fit = float((moments.covariance * precision).sum())
    return 0.5 * moments.n_rows * (log_det - fit - n * math.log(2 * math.pi))


def goodness(moments: GaussianMoments, precision: FloatArray, n_edges: int) -> GaussianGoodness:
    """Of a precision that is the maximum on a graph of so many edges."""
    from scipy.special import chdtrc

    n, total = moments.n_variables, moments.n_rows
    log_det = log_determinant(precision)
    saturated = log_determinant(moments.covariance)
    deviance = total * (float((moments.covariance * precision).sum()) - n - log_det - saturated)
    deviance = math.nan if saturated == -math.inf else max(deviance, 0.0)
    freedom = n * (n - 1) // 2 - n_edges
    p_value = float(chdtrc(freedom, deviance)) if freedom and not math.isnan(deviance) else 1.0
    return GaussianGoodness(
        deviance=deviance,
        degrees_of_freedom=freedom,
        p_value=math.nan if math.isnan(deviance) else p_value,
        log_likelihood=log_likelihood(moments, precision, log_det),
        n_parameters=2 * n + n_edges,
        total=total,
    )
