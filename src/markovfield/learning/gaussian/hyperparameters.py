"""Ranges, variances and noise of Gaussian priors, by the marginal likelihood of what was observed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield._validation import number
from markovfield.arrays import BoolArray, FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.gaussian.sparse_cholesky import analyse
from markovfield.inference.core.running import Running

if TYPE_CHECKING:
    from markovfield.models.gaussian.markov_field import GaussianMarkovField

__all__ = ["Hyperparameters", "MarginalEvidence", "fit_hyperparameters"]

# Of the logarithm of a parameter: central differences of a precision's entries are good to ten digits with it.
STEP = 1e-5
FURTHEST = math.log(1e4)
"""From where the search begins, in logarithms."""
WALL = 1e3


@dataclass(frozen=True, eq=False, kw_only=True)
class Hyperparameters(Tabular):
    """Parameters of a Gaussian prior with their intervals, and the field that they make.

    Attributes
    ----------
    values
        By name; ``"noise"`` is the variance of the noise.
    intervals
        About 95 %, from the curvature of the log-likelihood in the logarithms.
    field
        The prior with these values: `markovfield.marginals` of it, with the same data and noise, smooths them.
    log_likelihood
        Log-density of what was observed, with the field integrated out.
    converged, iterations, message
        Of L-BFGS-B.
    """

    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    field: GaussianMarkovField = field(repr=False)
    log_likelihood: float
    converged: bool
    iterations: int
    message: str

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        names = list(self.values)[:limit]
        return {
            "parameter": names,
            "value": [self.values[name] for name in names],
            "low": [self.intervals[name][0] for name in names],
            "high": [self.intervals[name][1] for name in names],
        }

    def __repr__(self) -> str:
        said = ", ".join(f"{name} {value:.4g}" for name, value in self.values.items())
        return f"Hyperparameters({said}; log-likelihood {self.log_likelihood:.6g})"


class MarginalEvidence:
    """Log-density of observations under a prior with noise, and its gradient in the logarithms of the parameters.

    With prior precision Q, noise of precision t at what was observed, P = Q + t A'A and m = P^-1 t A'y, it is
    ``(log|Q| - log|P| + rows log t - t y'y + t y'A m) / 2`` and a constant. Derivatives of the determinants are sums
    over entries of Q of the selected inverses, so no dense matrix is made. Of an intrinsic prior ``|Q|`` is the
    determinant on what it does not leave open, had from that of all but as many variables as there are open directions.
    """

    def __init__(
        self,
        build: Callable[..., GaussianMarkovField],
        names: tuple[str, ...],
        y: FloatArray,
        *,
        running: Running | None = None,
    ) -> None:
        self.build, self.names, self.running = build, names, running
        self.seen: BoolArray = np.isfinite(y)
        self.y = np.where(self.seen, y, 0.0)
        self.rows = int(self.seen.sum())

    def field(self, parameters: FloatArray) -> GaussianMarkovField:
        """The prior with these logarithms of parameters."""
        values = dict(zip(self.names, np.exp(parameters).tolist(), strict=True))
        values.pop("noise")
        return self.build(**values)

    def _precision(self, parameters: FloatArray) -> Any:
        form = self.field(parameters).compile()
        if form.n_variables != len(self.y):
            raise ModelError(f"the data have {len(self.y)} values, and the field {form.n_variables} variables")
        if np.any(form.information) or form.constraints.shape[0]:
            raise ModelError("fit_hyperparameters is for fields of mean zero without constraints: take the mean off")
        matrix = form.precision.tocsc()
        matrix.sort_indices()
        return matrix, form.null_space

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """The value, and ``float64[parameters]``."""
        if self.running is not None:
            self.running.check()
        q, opened = self._precision(parameters)
        t = math.exp(-float(parameters[self.names.index("noise")]))
        n, k = len(self.y), opened.shape[1]
        p = q.copy()
        p.setdiag(q.diagonal() + t * self.seen)
        p.sort_indices()
        factor = analyse(p).factorise(p.data)
        mean = factor.solve(t * self.y)
        inverse = factor.selected_inverse()
        kept = _rest(opened)
        inner = q if not k else q[kept][:, kept].tocsc()
        inner.sort_indices()
        own = analyse(inner).factorise(inner.data)
        log_det = own.log_determinant
        if k:
            grounded = np.setdiff1d(np.arange(n), kept)
            log_det -= 2 * float(np.linalg.slogdet(opened[grounded])[1])
        residual = self.y - np.where(self.seen, mean, 0.0)
        fit = t * float(self.y @ self.y) - t * float(self.y @ mean)
        value = log_det - factor.log_determinant + self.rows * math.log(t) - fit
        value = 0.5 * (value - (self.rows - k) * math.log(2 * math.pi))
        before, after = _on(inner, own.selected_inverse().on_pattern), _on(p, inverse.on_pattern)
        gradient = np.empty(len(self.names))
        for at, name in enumerate(self.names):
            if name == "noise":
                lost = float(residual @ residual) + float(inverse.diagonal[self.seen].sum())
                gradient[at] = -0.5 * (self.rows - t * lost)
                continue
            shift = np.zeros(len(parameters))
            shift[at] = STEP
            change = (self._precision(parameters + shift)[0] - self._precision(parameters - shift)[0]) / (2 * STEP)
            part = change if not k else change.tocsc()[kept][:, kept]
            traces = float(before.multiply(part).sum()) - float(after.multiply(change).sum())
            gradient[at] = 0.5 * (traces - float(mean @ (change @ mean)))
        return value, gradient


def _rest(opened: FloatArray) -> IntArray:
    """All variables but as many as there are open directions, at which these differ most."""
    from scipy.linalg import qr

    n, k = opened.shape
    if not k:
        return np.arange(n)
    pivots = qr(opened.T, mode="r", pivoting=True)[1][:k]
    return np.asarray(np.setdiff1d(np.arange(n), pivots))


def _on(matrix: Any, values: FloatArray) -> Any:
    """Other numbers on the pattern of a CSC matrix."""
    from scipy import sparse

    return sparse.csc_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def fit_hyperparameters(
    build: Callable[..., GaussianMarkovField],
    data: Any,
    start: Mapping[str, float],
    *,
    noise: float = 1.0,
    max_iterations: int = 200,
    time_limit: float | None = None,
) -> Hyperparameters:
    """Parameters of a Gaussian prior by maximum marginal likelihood (empirical Bayes), and the noise's variance.

    Parameters
    ----------
    build
        Called with the parameters by name, gives the prior: for instance ``lambda range, variance:
        mf.GaussianMarkovField.lattice((30, 30), range=range, variance=variance)``. Its graph may not change.
    data
        What was observed: an array in the shape of the lattice, or ``float64[n]``, nan where nothing was; or a dict
        from variables to numbers.
    start
        Where the search begins, every value above zero; all are looked for on a scale of logarithms.
    noise
        Where the variance of the noise begins.
    max_iterations, time_limit
        Of the search (L-BFGS-B).

    Returns
    -------
    Hyperparameters
        A step takes two sparse factorisations, their selected inverses, and two constructions of the prior for each
        parameter.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> def prior(precision):
    ...     return mf.GaussianMarkovField.lattice(60, kind="rw1", precision=precision)
    >>> steps = np.random.default_rng(0).standard_normal((2, 60))
    >>> seen = steps[0].cumsum() * 0.5 + steps[1] * 0.3
    >>> found = mf.learning.fit_hyperparameters(prior, seen, {"precision": 1.0})
    >>> bool(found.intervals["precision"][0] < 4.0 < found.intervals["precision"][1])
    True
    """
    from scipy.optimize import minimize

    names = (*start, "noise")
    if "noise" in start:
        raise ModelError("start of fit_hyperparameters has parameters of the prior: give noise=...")
    begin = np.log(
        [number(v, f"start[{name!r}]", above=0) for name, v in start.items()] + [number(noise, "noise", above=0)]
    )
    first = build(**start)
    y = _observed(data, first)
    running = Running(time_limit=time_limit)
    evidence = MarginalEvidence(build, names, y, running=running)
    if evidence.rows <= first.null_space.shape[1]:
        raise ModelError(f"fit_hyperparameters has {evidence.rows} values observed, too few for this prior")

    best, lowest = begin, math.inf

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best, lowest
        try:
            value, gradient = evidence(parameters)
        except ModelError:
            if lowest == math.inf:
                raise
            # A step so long that rounding leaves no precision: the way back to where it was well.
            back = parameters - best
            return lowest + WALL * (1 + float(back @ back)), 2 * WALL * back
        if -value < lowest:
            best, lowest = parameters.copy(), -value
        return -value, -gradient

    bounds = [(b - FURTHEST, b + FURTHEST) for b in begin]
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": max_iterations})
    errors = _errors(evidence, best)
    values = np.exp(best)
    return Hyperparameters(
        values=dict(zip(names, values.tolist(), strict=True)),
        intervals={
            name: (float(v * math.exp(-1.96 * e)), float(v * math.exp(min(1.96 * e, 700.0))))
            for name, v, e in zip(names, values, errors, strict=True)
        },
        field=evidence.field(best),
        log_likelihood=-lowest,
        converged=bool(found.success),
        iterations=int(found.nit),
        message=str(found.message),
    )


def _observed(data: Any, model: GaussianMarkovField) -> FloatArray:
    n = len(model.variables)
    if isinstance(data, Mapping):
        y = np.full(n, np.nan)
        names = model.compile().names
        y[names.positions(list(data))] = [float(v) for v in data.values()]
        return y
    try:
        y = np.ma.filled(np.ma.asarray(data, np.float64), np.nan)
    except (TypeError, ValueError) as error:
        raise ModelError(f"fit_hyperparameters(data) needs numbers: {error}") from error
    if y.shape not in ((n,), model.shape):
        raise ModelError(f"fit_hyperparameters(data) needs shape {model.shape or (n,)}, got {y.shape}")
    if np.isinf(y).any():
        raise ModelError("fit_hyperparameters(data) has an infinite value")
    return np.asarray(y.ravel())


def _errors(evidence: MarginalEvidence, at: FloatArray) -> FloatArray:
    """Standard errors of the logarithms, from differences of the gradient; infinite where the likelihood is flat."""
    m = len(at)
    hessian = np.empty((m, m))
    for i in range(m):
        shift = np.zeros(m)
        shift[i] = 1e-3
        hessian[i] = (evidence(at + shift)[1] - evidence(at - shift)[1]) / 2e-3
    values, vectors = np.linalg.eigh(-(hessian + hessian.T) / 2)
    with np.errstate(divide="ignore"):
        spread = np.where(values > 1e-10, 1 / np.maximum(values, 1e-300), np.inf)
        variances = np.where(vectors != 0, vectors**2 * spread, 0.0).sum(axis=1)
    return np.asarray(np.sqrt(variances))
