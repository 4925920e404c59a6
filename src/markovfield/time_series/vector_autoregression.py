"""Vector autoregressions as dynamic chain graphs (Murphy 19.4.4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, number, whole_number
from markovfield.arrays import BoolArray, FloatArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular, drawing
from markovfield.kernels.compilations import clock
from markovfield.learning.core.report import FitReport
from markovfield.names import VariableName, check_name
from markovfield.time_series import archive
from markovfield.time_series.chain_graph import dynamic_graph, masks_of, series_graph
from markovfield.time_series.estimation import conditional_likelihood, estimated, finite_array
from markovfield.time_series.regression import Fitted, lagged
from markovfield.time_series.series import read_series

if TYPE_CHECKING:
    from markovfield.gaussian.gaussian_field import GaussianField
    from markovfield.graphs.mixed_graph import MixedGraph
    from markovfield.time_series.causality import CausalityTest, CausalityTests
    from markovfield.time_series.forecasts import Forecast, ImpulseResponses
    from markovfield.time_series.order_selection import OrderSelection
    from markovfield.time_series.state_space import LinearStateSpace

__all__ = ["VectorAutoregression"]


class VectorAutoregression(Tabular):
    """``x[t] = intercept + A1 x[t-1] + ... + Ap x[t-p] + noise``, a chain graph that is unrolled in time.

    An arrow from a to b says that the past of a has a weight in b given the past of all others; an edge between a and b
    says that their noise has an entry in its precision (Murphy 19.4.4.1).

    Parameters
    ----------
    order
        p, how many time steps back weights reach.
    graph
        A `MixedGraph` on the series: its arrows and undirected edges are the only weights and noise entries there are.
        Every series has its own past, unless arrows start from pairs ``(series, lag)``, which say exactly which weights
        there are. A directed graph leaves the noise without edges. None: everything is free.
    intercept
        Whether there is a constant.
    penalty
        Of the sum of absolute weights, with each column divided by its scale: minus the log-likelihood plus ``penalty``
        times that is minimised. ``"ebic"`` takes the best of a path of 20 penalties by the extended Bayesian
        information criterion.
    gamma
        Of that criterion: 0 is BIC, larger for fewer weights.
    tolerance, max_iterations
        Of the turns of weights and noise where there are zeros or a penalty: converged when no weight (of scaled
        columns) moves by more.

    Attributes
    ----------
    coefficients_
        ``float64[order, k, k]``: entry [l, i, j] is the weight of series j, l + 1 steps back, in series i.
    intercept_
        ``float64[k]``.
    noise_covariance_, noise_precision_
        ``float64[k, k]``, of maximum likelihood (sums are divided by the number of rows).
    variables_
        Names of the series.
    fit_report
        The conditional likelihood given the first ``order`` rows, and how the fit went.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> true = mf.VectorAutoregression.from_parameters([[[0.5, 0.3], [0.0, 0.4]]], variables=["x", "y"])
    >>> drawn = true.simulate(2000, rng=0)
    >>> model = mf.VectorAutoregression(order=1).fit(drawn)
    >>> model.coefficients_.round(1).tolist()
    [[[0.5, 0.3], [-0.0, 0.4]]]
    >>> model.granger_graph()
    MixedGraph(y -> x)
    >>> graph = mf.graphs.MixedGraph(["x", "y"], directed=[("y", "x")])
    >>> float(mf.VectorAutoregression(order=1, graph=graph).fit(drawn).coefficients_[0, 1, 0])
    0.0
    """

    coefficients_: FloatArray
    intercept_: FloatArray
    noise_covariance_: FloatArray
    noise_precision_: FloatArray
    variables_: tuple[VariableName, ...]
    free_: BoolArray
    joined_: BoolArray
    history_: FloatArray | None
    design_: FloatArray | None

    def __init__(
        self,
        order: int = 1,
        graph: Any = None,
        *,
        intercept: bool = True,
        penalty: float | Literal["ebic"] = 0.0,
        gamma: float = 0.5,
        tolerance: float = 1e-10,
        max_iterations: int = 500,
    ) -> None:
        self.order = whole_number(order, "VectorAutoregression(order=...)", 1)
        if not isinstance(intercept, bool):
            raise ModelError(f"VectorAutoregression(intercept=...) must be True or False, got {intercept!r}")
        if penalty != "ebic":
            number(penalty, "VectorAutoregression(penalty=...), where it is not 'ebic',", least=0)
        number(gamma, "VectorAutoregression(gamma=...)", least=0)
        number(tolerance, "VectorAutoregression(tolerance=...)", above=0)
        self.graph, self.intercept, self.penalty, self.gamma = graph, intercept, penalty, gamma
        self.tolerance = tolerance
        self.max_iterations = whole_number(max_iterations, "VectorAutoregression(max_iterations=...)", 1)
        self.fit_report: FitReport | None = None

    @classmethod
    def from_parameters(
        cls,
        coefficients: npt.ArrayLike,
        noise_covariance: npt.ArrayLike | None = None,
        intercept: npt.ArrayLike | None = None,
        variables: Sequence[VariableName] | None = None,
    ) -> Self:
        """The model with given numbers: ``[order, k, k]``, ``[k, k]`` (the identity when None) and ``[k]``."""
        what = "VectorAutoregression.from_parameters"
        weights = finite_array(coefficients, f"{what}(coefficients)")
        if weights.ndim != 3 or not len(weights) or weights.shape[1] != weights.shape[2] or not weights.shape[1]:
            raise ModelError(f"{what}(coefficients) needs shape [order, k, k], got {weights.shape}")
        k = weights.shape[1]
        noise = (
            np.eye(k) if noise_covariance is None else finite_array(noise_covariance, f"{what}(noise_covariance=...)")
        )
        constant = np.zeros(k) if intercept is None else finite_array(intercept, f"{what}(intercept=...)")
        if noise.shape != (k, k) or constant.shape != (k,):
            raise ModelError(f"{what} needs noise [{k}, {k}] and intercept [{k}], got {noise.shape}, {constant.shape}")
        names = tuple(range(k)) if variables is None else tuple(check_name(v) for v in variables)
        if len(names) != k or len(set(names)) != k:
            raise ModelError(f"{what}(variables=...) needs {k} different names, got {names!r}")
        if not np.allclose(noise, noise.T, rtol=0, atol=1e-12 * np.abs(noise).max()):
            raise ModelError(f"{what}(noise_covariance=...) must be symmetric")
        try:
            np.linalg.cholesky(noise)
        except np.linalg.LinAlgError:
            least = np.linalg.eigvalsh(noise)[0]
            raise ModelError(
                f"{what}(noise_covariance=...) is not positive definite: its smallest eigenvalue is {least:.3g}"
            ) from None
        made = cls(len(weights), intercept=intercept is not None)
        precision = np.linalg.inv(noise)
        precision = (precision + precision.T) / 2
        diagonal = np.sqrt(np.diag(precision))
        joined = np.abs(precision) > 1e-12 * np.outer(diagonal, diagonal)
        made._hold(names, weights, constant, noise, np.where(joined, precision, 0.0), weights != 0, joined)
        return made

    def _hold(
        self,
        variables: tuple[VariableName, ...],
        coefficients: FloatArray,
        intercept: FloatArray,
        covariance: FloatArray,
        precision: FloatArray,
        free: BoolArray,
        joined: BoolArray,
    ) -> None:
        self.variables_, self.history_, self.design_ = variables, None, None
        self.coefficients_, self.intercept_ = coefficients, intercept
        self.noise_covariance_, self.noise_precision_ = covariance, precision
        self.free_, self.joined_ = free, joined
        for array in (coefficients, intercept, covariance, precision):
            array.flags.writeable = False

    def check_fitted(self) -> None:
        """Raise where there are no numbers yet."""
        if not hasattr(self, "coefficients_"):
            raise ModelError("this VectorAutoregression has no numbers yet: fit(data) or from_parameters gives them")

    @property
    def n_variables(self) -> int:
        """Number of series."""
        self.check_fitted()
        return len(self.variables_)

    def __repr__(self) -> str:
        if not hasattr(self, "coefficients_"):
            return f"VectorAutoregression(order={self.order}, not fitted)"
        k, used = self.n_variables, int(np.count_nonzero(self.coefficients_))
        return f"VectorAutoregression({k} series, order {self.order}, {used} of {self.coefficients_.size} weights)"

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        self.check_fitted()
        lag, to, source = np.nonzero(self.coefficients_)
        shown = slice(0, limit)
        return {
            "series": [self.variables_[i] for i in to[shown]],
            "cause": [self.variables_[j] for j in source[shown]],
            "lag": (lag[shown] + 1).tolist(),
            "weight": self.coefficients_[lag, to, source][shown],
        }

    def _picture(self) -> str:
        return drawing(self.chain_graph(), self.n_variables) if hasattr(self, "coefficients_") else ""

    # ---- fitting --------------------------------------------------------------------------------------------------

    def fit(self, data: Any, variables: Sequence[VariableName] | None = None) -> Self:
        """Estimate weights and noise from series by maximum likelihood given the first ``order`` rows.

        Parameters
        ----------
        data
            A dict of columns, a data frame or ``float64[time, k]``, rows in order of time without gaps.
        variables
            Which columns; all of them when None.
        """
        started = clock()
        what = "VectorAutoregression.fit(data)"
        names, values = read_series(data, what, variables)
        rows, k = values.shape
        # Residuals of fewer rows have a singular covariance.
        whole = not self.penalty and self.graph is None
        least = self.order + (self.order * k + self.intercept + k if whole else 2)
        if rows < least:
            raise ModelError(f"{what} needs at least {least} rows for {k} series and order {self.order}, got {rows}")
        constant = np.flatnonzero(np.ptp(values, axis=0) == 0)
        if len(constant):
            raise ModelError(f"{what}: the column of {names[constant[0]]!r} is constant, which has no noise")
        if self.graph is None:
            lags, joined = np.ones((self.order, k, k), np.bool_), np.ones((k, k), np.bool_)
        else:
            lags, joined = masks_of(self.graph, names, self.order)
        x, y = lagged(values, self.order, self.intercept)
        free = np.hstack([*([np.ones((k, 1), np.bool_)] if self.intercept else []), *lags])
        turns = {"tolerance": self.tolerance, "max_iterations": self.max_iterations}
        found, penalty = estimated(x, y, free, joined, self.intercept, self.penalty, self.gamma, turns)
        skip = int(self.intercept)
        coefficients = np.ascontiguousarray(found.weights[:, skip:].reshape(k, self.order, k).transpose(1, 0, 2))
        intercept = found.weights[:, 0].copy() if skip else np.zeros(k)
        self._hold(names, coefficients, intercept, found.covariance, found.precision, lags, joined)
        self.history_, self.design_ = values[-self.order :].copy(), x.T @ x
        used = int(np.count_nonzero(found.weights)) if penalty else int(free.sum())
        self.fit_report = FitReport(
            method="maximum_likelihood" if not penalty else "lasso",
            log_likelihood=conditional_likelihood(x, y, found),
            n_rows=len(y),
            total_weight=float(len(y)),
            n_parameters=used + k + int(np.triu(joined, 1).sum()),
            converged=found.converged,
            iterations=found.iterations,
            message="" if found.converged else f"{found.iterations} turns of weights and noise did not converge",
            notes=(f"penalty {penalty:.6g}",) if penalty else (),
            seconds=clock() - started,
        )
        return self

    def refitted(self, data: Any) -> VectorAutoregression:
        """A new model on the graph of this one's weights, fitted without a penalty: what the lasso shrank grows back.

        Every weight that is not zero here is free there, at its own lag.
        """
        self.check_fitted()
        arrows = [((a, lag), b) for a, lag, b in self._arrows()]
        k = self.n_variables
        edges = [(self.variables_[i], self.variables_[j]) for i, j in np.argwhere(np.triu(self.joined_, 1)).tolist()]
        from markovfield.graphs.mixed_graph import MixedGraph

        pairs = [(v, 1) for v in self.variables_[: int(not arrows)]]  # by lags, even where there are no arrows
        graph = MixedGraph([*self.variables_[:k], *pairs], directed=arrows, undirected=edges)
        made = VectorAutoregression(self.order, graph, intercept=self.intercept)
        return made.fit(data, self.variables_)

    def _arrows(self) -> list[tuple[VariableName, int, VariableName]]:
        return [
            (self.variables_[j], lag + 1, self.variables_[i]) for lag, i, j in np.argwhere(self.coefficients_).tolist()
        ]

    @classmethod
    def select_order(cls, data: Any, max_order: int, *, intercept: bool = True) -> OrderSelection:
        """AIC, BIC, Hannan-Quinn and final prediction error of orders 0 to ``max_order``, all on the same rows."""
        from markovfield.time_series.order_selection import select_order

        return select_order(data, max_order, intercept)

    # ---- graphs ---------------------------------------------------------------------------------------------------

    def chain_graph(self) -> MixedGraph:
        """Arrows for weights that are not zero, edges for entries of the noise's precision that are not."""
        self.check_fitted()
        return series_graph(self.variables_, (self.coefficients_ != 0).any(axis=0), self.joined_)

    def dynamic_graph(self) -> MixedGraph:
        """The same unrolled: one time step, and the ``order`` steps that it depends on, as ``"x[0]"`` and so on."""
        self.check_fitted()
        return dynamic_graph(self.variables_, self.coefficients_, self.joined_)

    def granger_test(self, causing: Any, caused: Any) -> CausalityTest:
        """Whether the past of some series has a weight in others, given the past of all: an F test (Wald)."""
        from markovfield.time_series.causality import granger_test

        return granger_test(self, causing, caused)

    def granger_tests(self) -> CausalityTests:
        """The same for every pair of series that the graph allows."""
        from markovfield.time_series.causality import granger_tests

        return granger_tests(self)

    def contemporaneous_tests(self) -> CausalityTests:
        """Whether the noise of each pair of series is correlated given that of all others, by Fisher's z."""
        from markovfield.time_series.causality import contemporaneous_tests

        return contemporaneous_tests(self)

    def granger_graph(self, alpha: float = 0.05, *, correction: str | None = "holm") -> MixedGraph:
        """Arrows from each series to those that its past helps to predict, by `granger_tests`.

        ``correction`` is for testing many pairs: ``"holm"`` keeps the probability of any false arrow below ``alpha``,
        ``"fdr"`` (Benjamini and Hochberg) the expected share of false ones, None tests each pair by itself.
        """
        from markovfield.time_series.causality import found_graph

        return found_graph(self, alpha, correction, arrows=True, edges=False)

    def contemporaneous_graph(self, alpha: float = 0.05, *, correction: str | None = "holm") -> MixedGraph:
        """Edges between series whose noise is correlated given that of all others, by `contemporaneous_tests`."""
        from markovfield.time_series.causality import found_graph

        return found_graph(self, alpha, correction, arrows=False, edges=True)

    def tested_graph(self, alpha: float = 0.05, *, correction: str | None = "holm") -> MixedGraph:
        """Both in one chain graph, which a `VectorAutoregression` can be fitted on."""
        from markovfield.time_series.causality import found_graph

        return found_graph(self, alpha, correction, arrows=True, edges=True)

    # ---- what follows from the numbers ----------------------------------------------------------------------------

    def companion(self) -> FloatArray:
        """``float64[order k, order k]``: the model as one of order 1 on the last ``order`` steps, the latest first."""
        self.check_fitted()
        k, p = self.n_variables, self.order
        matrix = np.eye(k * p, k=-k)
        matrix[:k] = np.hstack(list(self.coefficients_))
        return matrix

    @property
    def spectral_radius(self) -> float:
        """The largest modulus of an eigenvalue of `companion`: below one, effects die out."""
        return float(np.abs(np.linalg.eigvals(self.companion())).max())

    @property
    def is_stable(self) -> bool:
        """Whether effects die out, so that there is a stationary distribution."""
        return self.spectral_radius < 1.0

    def stationary(self) -> tuple[FloatArray, FloatArray]:
        """Mean ``[k]`` and covariance ``[order k, order k]`` of the last ``order`` steps, the latest first.

        The covariance solves the discrete Lyapunov equation of `companion`.
        """
        radius = self.spectral_radius
        if radius >= 1.0:
            raise ModelError(
                f"the model is not stable (an eigenvalue has modulus {radius:.4g}), so it has no stationary "
                "distribution; give a history to start from"
            )
        from scipy.linalg import solve_discrete_lyapunov

        k, p = self.n_variables, self.order
        mean = np.linalg.solve(np.eye(k) - self.coefficients_.sum(axis=0), self.intercept_)
        noise = np.zeros((k * p, k * p))
        noise[:k, :k] = self.noise_covariance_
        found = solve_discrete_lyapunov(self.companion(), noise)
        return mean, (found + found.T) / 2

    def _history(self, history: Any, what: str) -> FloatArray:
        """``float64[order, k]``, the last row the latest."""
        self.check_fitted()
        if history is None:
            if self.history_ is None:
                raise ModelError(f"{what} needs a history: this model was not fitted to data whose end it could take")
            return self.history_
        _, values = read_series(history, f"{what}, history,", self.variables_)
        if len(values) < self.order:
            raise ModelError(f"{what} needs a history of at least {self.order} rows, got {len(values)}")
        return values[-self.order :]

    def forecast(self, steps: int, history: Any = None, *, level: float = 0.95) -> Forecast:
        """Mean and covariance of the next time steps given the last ones, with bands.

        What is uncertain about the parameters is not in the bands, as is usual (Luetkepohl 2005, section 2.2).

        Parameters
        ----------
        steps
            How many.
        history
            What to go on from; the end of the data that the model was fitted to when None.
        level
            Probability of each band, for one series at one step.
        """
        from markovfield.time_series.forecasts import forecast

        start = self._history(history, "forecast(steps)")
        return forecast(self, whole_number(steps, "steps", 1), start, level)

    def impulse_responses(self, steps: int, *, orthogonal: bool = False, cumulated: bool = False) -> ImpulseResponses:
        """What a unit of noise in one series does to all of them, step by step.

        ``orthogonal`` takes one standard deviation of noise at a time, made independent by a Cholesky factor in the
        order of the series, which is then an assumption about which comes first. ``cumulated`` adds up.
        """
        from markovfield.time_series.forecasts import impulse_responses

        return impulse_responses(self, whole_number(steps, "steps", 0), orthogonal, cumulated)

    def simulate(
        self, steps: int, history: Any = None, rng: int | np.random.Generator | None = None
    ) -> dict[VariableName, FloatArray]:
        """Draw series, as columns; from the stationary distribution where no history is given."""
        n = whole_number(steps, "steps", 1)
        generator = generator_of(rng)
        self.check_fitted()
        k, p = self.n_variables, self.order
        values = np.empty((n + p, k))
        if history is None:
            mean, covariance = self.stationary()
            drawn = np.linalg.cholesky(covariance) @ generator.standard_normal(k * p)
            values[:p] = (drawn.reshape(p, k) + mean)[::-1]
        else:
            values[:p] = self._history(history, "simulate(steps)")
        noise = generator.standard_normal((n, k)) @ np.linalg.cholesky(self.noise_covariance_).T + self.intercept_
        for t in range(n):
            values[p + t] = noise[t] + sum(self.coefficients_[lag] @ values[p + t - 1 - lag] for lag in range(p))
        return {v: values[p:, i].copy() for i, v in enumerate(self.variables_)}

    def log_likelihood(self, data: Any) -> float:
        """Log-density of a series given its first ``order`` rows."""
        self.check_fitted()
        _, values = read_series(data, "log_likelihood(data)", self.variables_)
        x, y = lagged(values, self.order, True)
        weights = np.hstack([self.intercept_[:, None], *self.coefficients_])
        return conditional_likelihood(x, y, Fitted(weights, self.noise_covariance_, self.noise_precision_, 1, True))

    # ---- other models ---------------------------------------------------------------------------------------------

    def unrolled(self, steps: int, history: Any = None) -> GaussianField:
        """The field of ``steps`` time steps, a variable ``"name[t]"`` for each series and step.

        The first steps are stationary, or follow ``history``. Evidence may be on any of them, in any pattern; the
        precision has nonzeros only within ``order`` steps.
        """
        from markovfield.time_series.unrolled import unrolled_autoregression

        start = None if history is None else self._history(history, "unrolled(steps)")
        return unrolled_autoregression(self, whole_number(steps, "steps", 1), start)

    def compile(self) -> GaussianField:
        """What verbs take: ``unrolled(order + 1)``, one time step and all that it depends on, stationary."""
        return self.unrolled(self.order + 1)

    def state_space(self) -> LinearStateSpace:
        """The model as a `LinearStateSpace` that is observed without noise: for long series with missing values."""
        from markovfield.time_series.state_space import LinearStateSpace

        k, p = self.n_variables, self.order
        mean, covariance = self.stationary()
        noise = np.zeros((k * p, k * p))
        noise[:k, :k] = self.noise_covariance_
        return LinearStateSpace(
            transition=self.companion(),
            transition_noise=noise,
            observation=np.eye(k, k * p),
            observation_noise=np.zeros((k, k)),
            transition_intercept=np.concatenate([self.intercept_, np.zeros(k * (p - 1))]),
            initial_mean=np.tile(mean, p),
            initial_covariance=covariance,
            variables=self.variables_,
        )

    def save(self, path: Any) -> None:
        """Save to a file that `markovfield.load` reads; the history goes with it, data do not."""
        archive.save_autoregression(self, path)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """What `markovfield.load` calls."""
        return archive.autoregression_of(cls, about, arrays)
