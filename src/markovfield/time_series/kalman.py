"""What a state-space model says of a series: filtered and smoothed states, the likelihood, forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.arrays import FloatArray, Frozen
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.frames import Tabular
from markovfield.kernels.interpreter import small
from markovfield.names import VariableName
from markovfield.time_series.kalman_kernel import filter_series, smooth_series

if TYPE_CHECKING:
    from markovfield.time_series.state_space import LinearStateSpace

__all__ = ["FilteredStates", "SmoothedStates", "filtered", "smoothed"]

Shared = dict[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FilteredStates(Frozen, Tabular):
    """Normal distributions of the states, step by step, given the series.

    Attributes
    ----------
    states
        Names of the states.
    mean, covariance
        ``float64[steps, n]`` and ``float64[steps, n, n]``: given the series up to each step, for `FilteredStates`;
        given all of it, for `SmoothedStates`.
    predicted_mean, predicted_covariance
        The same given the series before each step.
    log_likelihoods
        ``float64[steps]``: log-density of each row given those before it.
    log_likelihood
        Their sum, the log-density of the series.
    """

    states: tuple[VariableName, ...]
    mean: FloatArray
    covariance: FloatArray
    predicted_mean: FloatArray
    predicted_covariance: FloatArray
    log_likelihoods: FloatArray

    @property
    def log_likelihood(self) -> float:
        """Log-density of what was observed."""
        return float(self.log_likelihoods.sum())

    @property
    def variance(self) -> FloatArray:
        """``float64[steps, n]``: diagonals of `covariance`."""
        return np.diagonal(self.covariance, axis1=1, axis2=2)

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, state: VariableName) -> FloatArray:
        """Means of a state, step by step."""
        if state not in self.states:
            raise ModelError(f"there is no state {state!r}; there are {', '.join(map(repr, self.states[:8]))}")
        column: FloatArray = self.mean[:, self.states.index(state)]
        return column

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        n, shown = len(self.states), slice(0, limit)
        return {
            "step": np.repeat(np.arange(len(self)), n)[shown].tolist(),
            "state": (list(self.states) * len(self))[shown],
            "mean": self.mean.ravel()[shown],
            "variance": self.variance.ravel()[shown],
        }

    def __repr__(self) -> str:
        steps, n = self.mean.shape
        size = f"{steps} step{'s' * (steps != 1)} of {n} state{'s' * (n != 1)}"
        return f"{type(self).__name__}({size}, log-likelihood {self.log_likelihood:.6g})"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SmoothedStates(FilteredStates):
    """The same given the whole series, and what neighbours in time have in common.

    Attributes
    ----------
    lag_covariance
        ``float64[steps - 1, n, n]``: entry [t] is the covariance of the states at t + 1 (rows) and t.
    """

    lag_covariance: FloatArray


def _run(model: LinearStateSpace, rows: FloatArray) -> Shared:
    steps, n = len(rows), model.n_states
    if not steps:
        raise ModelError("filter(data) needs at least one row, got none")
    kept: Shared = {
        "predicted": np.empty((steps, n)),
        "predicted_spread": np.empty((steps, n, n)),
        "filtered": np.empty((steps, n)),
        "filtered_spread": np.empty((steps, n, n)),
        "told": np.empty((steps, n)),
        "told_precision": np.empty((steps, n, n)),
        "densities": np.empty(steps),
    }
    with small(work(model, steps)):
        failed = filter_series(
            rows,
            model.transition,
            model.transition_intercept,
            model.transition_noise,
            model.observation,
            model.observation_intercept,
            model.observation_noise,
            model.initial_mean,
            model.initial_covariance,
            *kept.values(),
        )
    if failed >= 0:
        raise ImpossibleEvidenceError(
            f"the observations of row {int(failed)} have a singular covariance: without noise of their own they would "
            "tell each other; give observation_noise a positive variance, or leave out a series"
        )
    return kept


def work(model: LinearStateSpace, steps: int) -> float:
    """Steps of plain Python that one pass would take."""
    n, m = model.n_states, model.n_variables
    return float(steps) * (4 * n**3 + m * m * n * n + m * n * n)


def filtered(model: LinearStateSpace, rows: FloatArray) -> FilteredStates:
    """One pass forward."""
    kept = _run(model, rows)
    return FilteredStates(
        states=model.states,
        mean=kept["filtered"],
        covariance=kept["filtered_spread"],
        predicted_mean=kept["predicted"],
        predicted_covariance=kept["predicted_spread"],
        log_likelihoods=kept["densities"],
    )


def smoothed(model: LinearStateSpace, rows: FloatArray) -> SmoothedStates:
    """One pass forward, one back."""
    kept = _run(model, rows)
    steps, n = kept["predicted"].shape
    mean, spread, crossed = np.empty((steps, n)), np.empty((steps, n, n)), np.empty((max(steps - 1, 0), n, n))
    with small(work(model, steps)):
        smooth_series(
            model.transition,
            kept["predicted"],
            kept["predicted_spread"],
            kept["told"],
            kept["told_precision"],
            mean,
            spread,
            crossed,
        )
    return SmoothedStates(
        states=model.states,
        mean=mean,
        covariance=spread,
        predicted_mean=kept["predicted"],
        predicted_covariance=kept["predicted_spread"],
        log_likelihoods=kept["densities"],
        lag_covariance=crossed,
    )
