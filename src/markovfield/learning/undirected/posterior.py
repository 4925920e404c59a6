"""Uncertainty of the parameters of an undirected model: Laplace's approximation, and samples by a Markov chain.

The likelihood of an undirected model has log Z of the parameters in it. Here it is exact, by the junction tree, so that
both are for models whose tree is small: nothing is approximated but the posterior itself (Laplace), or nothing but the
Monte Carlo error (samples).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield._validation import generator_of, number, whole_number
from markovfield.arrays import FloatArray, short_repr
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import encode
from markovfield.learning.core.rows import as_rows
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.solve import solve
from markovfield.learning.undirected.fitting import PRECISE
from markovfield.learning.undirected.likelihood import Likelihood
from markovfield.learning.undirected.problem import Problem
from markovfield.models import LogLinear
from markovfield.models.log_linear import with_parameters

__all__ = ["ParameterPosterior", "parameter_posterior"]

# More parameters than this would need a Hessian of too many entries.
MOST_PARAMETERS = 2000
# Leapfrog steps of a proposal, and the share of proposals to accept that the step is tuned for.
LEAPS, WANTED = 10, 0.8


@dataclass(frozen=True, eq=False, repr=False)
class ParameterPosterior(Tabular):
    """What data and a prior say of parameters.

    Attributes
    ----------
    names
        Of the parameters.
    mode, covariance
        The most probable parameters, and the inverse of the Hessian there (Laplace).
    log_evidence
        Laplace's approximation of the log-probability of the data.
    samples
        ``float64[draws, k]`` of a Markov chain; those of the Gaussian where Laplace's approximation is all there is.
    acceptance
        Share of proposals accepted; nan for Laplace.
    """

    names: tuple[str, ...]
    mode: FloatArray
    covariance: FloatArray
    log_evidence: float
    samples: FloatArray
    acceptance: float
    method: str
    _model: Any

    @property
    def mean(self) -> FloatArray:
        """Of the samples, or the mode for Laplace."""
        return self.mode if self.method == "laplace" else np.asarray(self.samples.mean(axis=0))

    @property
    def standard_deviations(self) -> FloatArray:
        """Of each parameter."""
        if self.method == "laplace":
            return np.sqrt(np.diag(self.covariance))
        return np.asarray(self.samples.std(axis=0, ddof=1))

    def models(self, n: int) -> list[Any]:
        """Models at the first n samples, to ask anything of: the spread of answers is that of the posterior."""
        return [with_parameters(self._model, theta) for theta in self.samples[:n]]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        columns = {"mode": self.mode, "mean": self.mean, "standard_deviation": self.standard_deviations}
        return {"parameter": list(self.names[:limit])} | {name: column[:limit] for name, column in columns.items()}

    def __repr__(self) -> str:
        return f"{short_repr(self)[:-1]})" if len(self.names) > 20 else self._listed()

    def _listed(self) -> str:
        pairs = zip(self.names, self.mean, self.standard_deviations, strict=True)
        listed = ", ".join(f"{name} {mean:.3g} +- {spread:.2g}" for name, mean, spread in pairs)
        return f"ParameterPosterior({self.method}: {listed})"


def parameter_posterior(
    model: Any,
    data: Any,
    *,
    l2: float = 1.0,
    method: str = "laplace",
    draws: int = 1000,
    burn_in: int = 200,
    weights: Any = None,
    rng: int | np.random.Generator | None = None,
    time_limit: float | None = None,
    callback: Any = None,
) -> ParameterPosterior:
    """The posterior of an undirected model's parameters under independent normal priors of variance 1 / l2.

    Parameters
    ----------
    model, data, weights
        As for `markovfield.fit`; values may be missing.
    method
        ``"laplace"``: a Gaussian at the mode. ``"hmc"``: Hamiltonian Monte Carlo, with the mode's covariance as its
        metric. log Z is exact in both, by the junction tree.
    draws, burn_in
        Samples to keep, and to leave out before; of Laplace's Gaussian draws are independent.

    Examples
    --------
    >>> import markovfield as mf
    >>> data = mf.sample(mf.Ising((4, 4), coupling=0.3), 200, rng=0)
    >>> mf.learning.parameter_posterior(mf.Ising((4, 4), coupling=0.0), data, rng=0)
    ParameterPosterior(laplace: coupling 0.302 +- 0.013)
    """
    if method not in ("laplace", "hmc"):
        raise ModelError(f"method of parameter_posterior must be 'laplace' or 'hmc', got {method!r}")
    l2 = number(l2, "parameter_posterior(l2=...)", above=0)
    draws, burn_in = whole_number(draws, "draws", 1), whole_number(burn_in, "burn_in", 0)
    generator, running = generator_of(rng), Running(1, time_limit, callback)
    form = LogLinear.of(model)
    k = len(form.parameters)
    if k > MOST_PARAMETERS:
        raise ModelError(f"parameter_posterior takes models of at most {MOST_PARAMETERS} parameters, got {k}")
    problem = Problem(form, encode(as_rows(model, data), model, weights=weights), running)
    if not problem.n_rows:
        raise ModelError("parameter_posterior(model, data) needs at least one row of data, got none")
    likelihood = Likelihood(problem, resolve("junction_tree", "marginals"))
    total = problem.total

    def energy(theta: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log of the posterior, but for a constant, and its gradient."""
        value, gradient = likelihood(theta)
        return total * value + 0.5 * l2 * float(theta @ theta), total * gradient + l2 * theta

    found = solve(likelihood, np.zeros(k), solver=PRECISE, penalty=Penalty(l2=l2 / total), running=running)
    mode = found.weights
    hessian = _hessian(energy, mode, running)
    factor: FloatArray = np.linalg.cholesky(hessian).astype(np.float64)
    covariance: FloatArray = np.linalg.inv(hessian).astype(np.float64)
    log_det = 2.0 * float(np.log(np.diag(factor)).sum())
    evidence = -energy(mode)[0] + 0.5 * k * np.log(l2) - 0.5 * log_det
    noise = generator.normal(size=(draws, k))
    # x = mode + L^-T z has the inverse Hessian as covariance.
    samples = mode + np.linalg.solve(factor.T, noise.T).T
    acceptance = float("nan")
    if method == "hmc":
        samples, acceptance = _hamiltonian(energy, mode, factor, draws, burn_in, generator, running)
    return ParameterPosterior(
        form.parameter_names, mode, covariance, float(evidence), samples, acceptance, method, model
    )


def _hessian(energy: Any, at: FloatArray, running: Running) -> FloatArray:
    """Central differences of the gradient, made symmetric."""
    k = len(at)
    rows = np.empty((k, k))
    for i in range(k):
        step = np.zeros(k)
        step[i] = 1e-4
        rows[i] = (energy(at + step)[1] - energy(at - step)[1]) / 2e-4
        running.check()
    return np.asarray((rows + rows.T) / 2)


def _hamiltonian(
    energy: Any, mode: FloatArray, factor: FloatArray, draws: int, burn_in: int, rng: Any, running: Running
) -> tuple[FloatArray, float]:
    """Hamiltonian Monte Carlo (Duane et al. 1987) in coordinates where the mode's Gaussian is round.

    The step is tuned while burning in, by stochastic approximation, and stays afterwards.
    """

    def whitened(z: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        theta = mode + np.linalg.solve(factor.T, z)
        value, gradient = energy(theta)
        return value, np.linalg.solve(factor, gradient), theta

    z = np.zeros(len(mode))
    value, slope, theta = whitened(z)
    kept = np.empty((draws, len(mode)))
    step, accepted = 0.3, 0
    for i in range(burn_in + draws):
        momentum = rng.normal(size=len(z))
        # A length that varies keeps trajectories from closing on themselves.
        length = step * rng.uniform(0.7, 1.3)
        new, new_slope, new_value, new_theta = z, slope, value, theta
        moving = momentum - 0.5 * length * new_slope
        for leap in range(LEAPS):
            new = new + length * moving
            new_value, new_slope, new_theta = whitened(new)
            moving = moving - (0.5 if leap == LEAPS - 1 else 1.0) * length * new_slope
        change = value + 0.5 * momentum @ momentum - new_value - 0.5 * moving @ moving
        chance = min(1.0, float(np.exp(min(change, 0.0)))) if np.isfinite(change) else 0.0
        if rng.random() < chance:
            z, slope, value, theta = new, new_slope, new_value, new_theta
            accepted += i >= burn_in
        if i < burn_in:
            step = float(np.clip(step * np.exp((chance - WANTED) / np.sqrt(i + 1.0)), 1e-3, 1.5))
        else:
            kept[i - burn_in] = theta
        running.check()
    return kept, accepted / draws
