"""What follows from a vector autoregression: forecasts with bands, and impulse responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield._validation import number
from markovfield.arrays import FloatArray, Frozen
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.names import VariableName

if TYPE_CHECKING:
    from markovfield.time_series.vector_autoregression import VectorAutoregression

__all__ = ["Forecast", "ImpulseResponses", "band", "forecast", "impulse_responses", "moving_averages"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Forecast(Frozen, Tabular):
    """Normal distributions of series at time steps.

    Attributes
    ----------
    variables
        Names of the series.
    mean
        ``float64[steps, k]``.
    covariance
        ``float64[steps, k, k]``: of all series at each step.
    lower, upper
        ``float64[steps, k]``: a band that each number is in with probability ``level``.
    """

    variables: tuple[VariableName, ...]
    mean: FloatArray
    covariance: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, variable: VariableName) -> FloatArray:
        """Means of a series, step by step."""
        if variable not in self.variables:
            raise ModelError(f"there is no series {variable!r}; there are {', '.join(map(repr, self.variables[:8]))}")
        column: FloatArray = self.mean[:, self.variables.index(variable)]
        return column

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        k = len(self.variables)
        shown = slice(0, limit)
        return {
            "step": np.repeat(np.arange(1, len(self) + 1), k)[shown].tolist(),
            "series": (list(self.variables) * len(self))[shown],
            "mean": self.mean.ravel()[shown],
            "lower": self.lower.ravel()[shown],
            "upper": self.upper.ravel()[shown],
        }

    def __repr__(self) -> str:
        return f"Forecast({len(self)} step{'s' * (len(self) != 1)} of {len(self.variables)} series, level {self.level})"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ImpulseResponses(Frozen, Tabular):
    """What noise in one series does to all of them.

    Attributes
    ----------
    responses
        ``float64[steps + 1, k, k]``: entry [h, i, j] is what series i does h steps after the noise of series j.
    """

    variables: tuple[VariableName, ...]
    responses: FloatArray

    def __getitem__(self, pair: tuple[VariableName, VariableName]) -> FloatArray:
        """Responses, step by step, of ``(series, noise of which series)``."""
        i, j = (self.variables.index(v) if v in self.variables else -1 for v in pair)
        if min(i, j) < 0:
            raise ModelError(f"impulse responses are asked for as (series, cause), both of them series, got {pair!r}")
        found: FloatArray = self.responses[:, i, j]
        return found

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        h, i, j = (axis.ravel()[:limit].tolist() for axis in np.indices(self.responses.shape))
        return {
            "step": h,
            "series": [self.variables[a] for a in i],
            "cause": [self.variables[b] for b in j],
            "response": self.responses.ravel()[:limit],
        }

    def __repr__(self) -> str:
        return f"ImpulseResponses({len(self.responses) - 1} steps of {len(self.variables)} series)"


def moving_averages(coefficients: FloatArray, steps: int) -> FloatArray:
    """``float64[steps + 1, k, k]``: weights of the noise of h steps ago (Luetkepohl 2005, 2.1.22)."""
    p, k, _ = coefficients.shape
    found = np.zeros((steps + 1, k, k))
    found[0] = np.eye(k)
    for h in range(1, steps + 1):
        for lag in range(1, min(h, p) + 1):
            found[h] += found[h - lag] @ coefficients[lag - 1]
    return found


def band(mean: FloatArray, variance: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Both ends of what normal numbers are in with a probability."""
    if not 0 < number(level, "level", above=0) < 1:
        raise ModelError(f"level is a probability between 0 and 1, got {level}")
    from scipy.special import ndtri

    half = ndtri(0.5 + level / 2) * np.sqrt(variance)
    return mean - half, mean + half


def forecast(model: VectorAutoregression, steps: int, history: FloatArray, level: float) -> Forecast:
    """Means by going on without noise; covariances by what all noise since then adds up to."""
    p, k = model.order, model.n_variables
    values = np.vstack([history, np.zeros((steps, k))])
    for t in range(p, p + steps):
        values[t] = model.intercept_ + sum(model.coefficients_[lag] @ values[t - 1 - lag] for lag in range(p))
    weights = moving_averages(model.coefficients_, steps - 1)
    covariance = np.cumsum(weights @ model.noise_covariance_ @ weights.transpose(0, 2, 1), axis=0)
    mean = values[p:]
    lower, upper = band(mean, np.diagonal(covariance, axis1=1, axis2=2), level)
    return Forecast(
        variables=model.variables_, mean=mean, covariance=covariance, lower=lower, upper=upper, level=float(level)
    )


def impulse_responses(model: VectorAutoregression, steps: int, orthogonal: bool, cumulated: bool) -> ImpulseResponses:
    """Moving averages, as they are or times a factor of the noise."""
    model.check_fitted()
    responses = moving_averages(model.coefficients_, steps)
    if orthogonal:
        responses = responses @ np.linalg.cholesky(model.noise_covariance_)
    if cumulated:
        responses = np.cumsum(responses, axis=0)
    return ImpulseResponses(variables=model.variables_, responses=responses)
