"""Linear-Gaussian state-space models: a Markov chain of hidden states, and noisy observations of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.names import VariableName, check_name
from markovfield.time_series import archive, kalman
from markovfield.time_series.forecasts import Forecast, band
from markovfield.time_series.series import read_series

if TYPE_CHECKING:
    from markovfield.gaussian.gaussian_field import GaussianField
    from markovfield.learning.core.report import FitReport

__all__ = ["LinearStateSpace"]


class LinearStateSpace(Tabular):
    """``x[t+1] = F x[t] + c + N(0, Q)`` and ``y[t] = H x[t] + d + N(0, R)``, with ``x[0] ~ N(m, P)``; it never changes.

    Filter and smoother are exact inference in the field that the model unrolls to, in one pass forward and one back:
    linear in time, cubic in states.

    Parameters
    ----------
    transition, transition_noise
        F and Q, ``[n, n]``. Q may be singular.
    observation, observation_noise
        H ``[m, n]`` and R ``[m, m]``. R may be singular as long as observations do not tell each other.
    transition_intercept, observation_intercept
        c ``[n]`` and d ``[m]``; zero when None.
    initial_mean, initial_covariance
        m and P, of the state at the first step; zero and the identity when None.
    variables, states
        Names of the series, 0, 1, ... when None, and of the states, ``"state0"``, ... when None.

    Examples
    --------
    A random walk seen through noise, of which one value is missing:

    >>> import numpy as np
    >>> import markovfield as mf
    >>> level = mf.time_series.LinearStateSpace([[1.0]], [[0.5]], [[1.0]], [[1.0]], states=["level"])
    >>> states = level.smooth([1.0, 2.0, np.nan, 4.0])
    >>> states["level"].round(3).tolist()
    [1.15, 1.8, 2.35, 2.9]
    >>> field = level.unrolled(4)
    >>> answer = mf.marginals(field, {"0[0]": 1.0, "0[1]": 2.0, "0[3]": 4.0})
    >>> bool(np.isclose(answer["level[2]"].mean, states["level"][2]))
    True
    """

    def __init__(
        self,
        transition: npt.ArrayLike,
        transition_noise: npt.ArrayLike,
        observation: npt.ArrayLike,
        observation_noise: npt.ArrayLike,
        *,
        transition_intercept: npt.ArrayLike | None = None,
        observation_intercept: npt.ArrayLike | None = None,
        initial_mean: npt.ArrayLike | None = None,
        initial_covariance: npt.ArrayLike | None = None,
        variables: Sequence[VariableName] | None = None,
        states: Sequence[VariableName] | None = None,
    ) -> None:
        self.transition = _matrix(transition, "transition")
        n = len(self.transition)
        self.observation = _matrix(observation, "observation", columns=n)
        m = len(self.observation)
        if self.transition.shape != (n, n) or not n or not m:
            raise ModelError(f"LinearStateSpace(transition) must be a square matrix, got {self.transition.shape}")
        self.transition_noise = _covariance(transition_noise, n, "transition_noise")
        self.observation_noise = _covariance(observation_noise, m, "observation_noise")
        start = np.eye(n) if initial_covariance is None else initial_covariance
        self.initial_covariance = _covariance(start, n, "initial_covariance")
        self.transition_intercept = _vector(transition_intercept, n, "transition_intercept")
        self.observation_intercept = _vector(observation_intercept, m, "observation_intercept")
        self.initial_mean = _vector(initial_mean, n, "initial_mean")
        self.variables = _names(variables, m, "variables") if variables is not None else tuple(range(m))
        self.states = _names(states, n, "states") if states is not None else tuple(f"state{i}" for i in range(n))
        clash = set(map(str, self.states)) & set(map(str, self.variables))
        if clash:
            raise ModelError(f"LinearStateSpace: {min(clash)!r} is the name of a state and of a series")
        self.fit_report: FitReport | None = None

    @property
    def n_states(self) -> int:
        """Number of hidden states."""
        return len(self.transition)

    @property
    def n_variables(self) -> int:
        """Number of series."""
        return len(self.observation)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        parts = ((self.transition, self.states), (self.observation, self.variables))
        rows = [
            (name, self.states[j], float(matrix[i, j]))
            for matrix, names in parts
            for i, name in enumerate(names)
            for j in np.flatnonzero(matrix[i])
        ][:limit]
        return {name: [row[i] for row in rows] for i, name in enumerate(("series", "state_before", "weight"))}

    def __repr__(self) -> str:
        return f"LinearStateSpace({self.n_states} state{'s' * (self.n_states != 1)}, {self.n_variables} series)"

    def _rows(self, data: Any, what: str) -> FloatArray:
        return read_series(data, f"LinearStateSpace.{what}", self.variables, missing=True)[1]

    def filter(self, data: Any) -> kalman.FilteredStates:
        """States given the series up to each step; missing values (None, nan) tell nothing."""
        return kalman.filtered(self, self._rows(data, "filter(data)"))

    def smooth(self, data: Any) -> kalman.SmoothedStates:
        """States given the whole series."""
        return kalman.smoothed(self, self._rows(data, "smooth(data)"))

    def log_likelihood(self, data: Any) -> float:
        """Log-density of what was observed."""
        return kalman.filtered(self, self._rows(data, "log_likelihood(data)")).log_likelihood

    def forecast(self, steps: int, data: Any, *, level: float = 0.95) -> Forecast:
        """Observations of the next steps after a series, noise included, with bands."""
        rows = self._rows(data, "forecast(data)")
        n_steps, m = whole_number(steps, "steps", 1), self.n_variables
        longer = np.vstack([rows, np.full((n_steps, m), np.nan)])
        ahead = kalman.filtered(self, longer)
        mean = ahead.predicted_mean[-n_steps:] @ self.observation.T + self.observation_intercept
        spread = self.observation @ ahead.predicted_covariance[-n_steps:] @ self.observation.T + self.observation_noise
        lower, upper = band(mean, np.diagonal(spread, axis1=1, axis2=2), level)
        return Forecast(
            variables=self.variables, mean=mean, covariance=spread, lower=lower, upper=upper, level=float(level)
        )

    def simulate(
        self, steps: int, rng: int | np.random.Generator | None = None
    ) -> tuple[dict[VariableName, FloatArray], FloatArray]:
        """Draw series, as columns, and the states ``float64[steps, n]`` behind them."""
        n_steps, generator = whole_number(steps, "steps", 1), generator_of(rng)
        drawn = np.empty((n_steps, self.n_states))
        noise = generator.standard_normal(drawn.shape) @ _root(self.transition_noise).T + self.transition_intercept
        drawn[0] = self.initial_mean + _root(self.initial_covariance) @ generator.standard_normal(self.n_states)
        for t in range(1, n_steps):
            drawn[t] = self.transition @ drawn[t - 1] + noise[t]
        seen = generator.standard_normal((n_steps, self.n_variables)) @ _root(self.observation_noise).T
        seen += drawn @ self.observation.T + self.observation_intercept
        return {v: seen[:, i].copy() for i, v in enumerate(self.variables)}, drawn

    def unrolled(self, steps: int) -> GaussianField:
        """The field of so many steps: ``"state[t]"`` for all states, then ``"series[t]"``; noise must be positive."""
        from markovfield.time_series.unrolled import unrolled_state_space

        return unrolled_state_space(self, whole_number(steps, "steps", 1))

    def compile(self) -> GaussianField:
        """What verbs take: two steps unrolled."""
        return self.unrolled(2)

    def fit(
        self,
        data: Any,
        estimate: Sequence[str] = ("transition", "transition_noise", "observation_noise", "initial_mean"),
        *,
        tolerance: float = 1e-8,
        max_iterations: int = 500,
    ) -> LinearStateSpace:
        """A new model whose parameters named in ``estimate`` maximise the likelihood, by EM from those of this one.

        Any of transition, transition_noise, transition_intercept, observation, observation_noise,
        observation_intercept, initial_mean, initial_covariance. The likelihood never falls; it may end in a local
        maximum, and not all of these can be told apart from a series (a state in other units is the same model).

        Parameters
        ----------
        tolerance
            Converged when an iteration gains less than this, relative to the log-likelihood.
        """
        from markovfield.time_series.state_space_fit import expectation_maximization

        return expectation_maximization(self, self._rows(data, "fit(data)"), estimate, tolerance, max_iterations)

    def with_parameters(self, **changed: Any) -> LinearStateSpace:
        """The same model with some arrays in place of others."""
        arrays = {name: getattr(self, name) for name in archive.ARRAYS}
        return LinearStateSpace(**{**arrays, **changed}, variables=self.variables, states=self.states)

    def save(self, path: Any) -> None:
        """Save to a file that `markovfield.load` reads."""
        archive.save_state_space(self, path)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """What `markovfield.load` calls."""
        return archive.state_space_of(cls, about, arrays)


def _matrix(values: npt.ArrayLike, what: str, columns: int | None = None) -> FloatArray:
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"LinearStateSpace({what}) must be a matrix of numbers") from None
    if found.ndim != 2 or (columns is not None and found.shape[1] != columns):
        wanted = "two axes" if columns is None else f"{columns} columns"
        raise ModelError(f"LinearStateSpace({what}) must be a matrix of {wanted}, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise ModelError(f"LinearStateSpace({what}) has an entry that is not a finite number")
    found.flags.writeable = False
    return found


def _covariance(values: npt.ArrayLike, n: int, what: str) -> FloatArray:
    found = _matrix(values, what)
    if found.shape != (n, n):
        raise ModelError(f"LinearStateSpace({what}) needs shape ({n}, {n}), got {found.shape}")
    largest = np.abs(found).max(initial=0.0)
    if np.abs(found - found.T).max(initial=0.0) > 1e-9 * largest:
        raise ModelError(f"LinearStateSpace({what}) must be symmetric")
    least = float(np.linalg.eigvalsh(found)[0])
    if least < -1e-9 * largest:
        raise ModelError(f"LinearStateSpace({what}) is no covariance: its smallest eigenvalue is {least:.3g}")
    return found


def _vector(values: npt.ArrayLike | None, n: int, what: str) -> FloatArray:
    found = np.zeros(n) if values is None else np.array(values, np.float64)
    if found.shape != (n,) or not np.isfinite(found).all():
        raise ModelError(f"LinearStateSpace({what}=...) needs {n} finite numbers, got shape {found.shape}")
    found.flags.writeable = False
    return found


def _names(given: Sequence[VariableName], n: int, what: str) -> tuple[VariableName, ...]:
    names = tuple(check_name(v) for v in given)
    if len(names) != n or len(set(names)) != n:
        raise ModelError(f"LinearStateSpace({what}=...) needs {n} different names, got {names!r}")
    return names


def _root(covariance: FloatArray) -> FloatArray:
    """A square root, also of a singular matrix."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
