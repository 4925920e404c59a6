"""Expectation maximisation for linear-Gaussian networks: data with missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, distinct_rows
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock
from markovfield.learning.core.report import FitReport
from markovfield.learning.directed.linear_gaussian import _columns, _shares
from markovfield.models.gaussian_network import LinearGaussianNetwork

__all__ = ["LinearGaussianEM"]


@dataclass(frozen=True)
class LinearGaussianEM:
    """Maximum likelihood of linear-Gaussian networks where values are missing (nan), by expectation maximisation.

    Each step fills what is missing with its mean given what is seen, adds its covariance to the second moments, and
    regresses each variable on its parents by those moments. The likelihood never falls. Rows that miss the same
    variables are done together; a step costs n^3 operations for each such pattern and n^2 for each row.

    Parameters
    ----------
    tolerance
        Stop when a step raises the log-likelihood by less than this for each row.
    max_iterations
        Steps at the most.

    Examples
    --------
    >>> import markovfield as mf
    >>> nan = float("nan")
    >>> net = mf.LinearGaussianNetwork(["x", "y"])
    >>> net.set_parents("y", ["x"])
    >>> fitted = mf.fit(net, {"x": [0.0, 1.0, 2.0, nan], "y": [1.0, 3.0, 5.5, 3.0]}, method=LinearGaussianEM())
    >>> round(fitted.cpd("y").weights[0], 3), fitted.fit_report.converged
    (2.247, True)
    """

    tolerance: float = 1e-9
    max_iterations: int = 1000

    name: ClassVar[str] = "linear_gaussian_em"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_method(self, least={"max_iterations": 1}, above={"tolerance": 0.0})

    def fit(
        self, network: LinearGaussianNetwork, data: Any, *, weights: Any = None, running: Running | None = None
    ) -> LinearGaussianNetwork:
        """A new network with the estimated weights, biases and variances."""
        started = clock()
        order = network.order()
        names = network.variables
        columns = _columns(names, data, missing=True)
        values = np.stack([columns[v] for v in names], axis=1) if names else np.zeros((0, 0))
        rows = len(values)
        if not rows:
            raise ModelError("linear_gaussian_em needs at least one row")
        if isinstance(weights, str):
            weights = _columns((weights,), data)[weights]
        share, total = _shares(weights, rows)
        for i, v in enumerate(names):
            if np.isnan(values[:, i]).all():
                raise ModelError(f"linear_gaussian_em has no value of variable {v!r} in any row")
        parents = [np.array([names.index(p) for p in network.parents(v)], np.int64) for v in names]
        patterns = _patterns(values)
        # Begin with what each variable is by itself.
        mean = np.nanmean(values, axis=0)
        covariance = np.diag(np.maximum(np.nanvar(values, axis=0), 1e-12))
        history: list[float] = []
        fitted, converged = network, False
        for _ in range(self.max_iterations + 1):
            if running is not None:
                running.check(history[-1] if history else None)
            first, second, likelihood = _expect(values, share, patterns, mean, covariance)
            history.append(total * likelihood)
            if len(history) > 2 and history[-1] - history[-2] < self.tolerance * total:
                converged = True
                break
            fitted = _maximise(network, parents, first, second)
            mean, covariance = fitted.joint()
        fitted.fit_report = FitReport(
            method=self.name,
            log_likelihood=history[-1],
            n_rows=rows,
            total_weight=total,
            missing={v: int(np.isnan(values[:, i]).sum()) for i, v in enumerate(names) if np.isnan(values[:, i]).any()},
            n_parameters=sum(len(network.parents(v)) + 2 for v in order),
            converged=converged,
            iterations=len(history) - 1,
            history=tuple(history[1:]),
            seconds=clock() - started,
        )
        return fitted


def _patterns(values: FloatArray) -> list[tuple[Any, Any]]:
    """For each set of missing variables: which are seen, and the rows of it."""
    seen = ~np.isnan(values)
    _, which = distinct_rows(*seen.T) if values.shape[1] else (None, np.zeros(len(values), np.int64))
    found = []
    for pattern in range(int(which.max()) + 1):
        at = np.flatnonzero(which == pattern)
        found.append((seen[at[0]], at))
    return found


def _expect(
    values: FloatArray, share: FloatArray, patterns: list[tuple[Any, Any]], mean: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Weighted means of x and of x x' given what is seen, and of its log-likelihood."""
    n = len(mean)
    first, second, likelihood = np.zeros(n), np.zeros((n, n)), 0.0
    for seen, at in patterns:
        weight = share[at]
        filled = np.tile(mean, (len(at), 1))
        hidden = covariance.copy()
        if seen.any():
            inner = covariance[np.ix_(seen, seen)]
            try:
                root = np.linalg.cholesky(inner)
            except np.linalg.LinAlgError as error:
                raise ModelError(
                    "linear_gaussian_em has come to a variance of zero: some variables are determined by others in "
                    "every row where they are seen"
                ) from error
            off = values[np.ix_(at, seen)] - mean[seen]
            white = np.linalg.solve(root, off.T)
            gain = np.linalg.solve(inner, covariance[seen]).T
            filled = mean + off @ gain.T
            filled[:, seen] = values[np.ix_(at, seen)]
            hidden = covariance - gain @ covariance[seen]
            hidden[seen] = 0.0
            hidden[:, seen] = 0.0
            constant = seen.sum() * np.log(2 * np.pi) + 2 * np.log(np.diag(root)).sum()
            likelihood += float(-0.5 * (weight @ (white**2).sum(axis=0) + weight.sum() * constant))
        first += weight @ filled
        second += (filled * weight[:, None]).T @ filled + weight.sum() * hidden
    return first, second, likelihood


def _maximise(
    network: LinearGaussianNetwork, parents: list[Any], first: FloatArray, second: FloatArray
) -> LinearGaussianNetwork:
    """The regressions of these moments."""
    names = network.variables
    spread = second - np.outer(first, first)
    fitted = LinearGaussianNetwork(names)
    for i, v in enumerate(names):
        above = parents[i]
        slopes = np.linalg.lstsq(spread[np.ix_(above, above)], spread[above, i], rcond=1e-12)[0]
        variance = float(spread[i, i] - 2 * slopes @ spread[above, i] + slopes @ spread[np.ix_(above, above)] @ slopes)
        bias = float(first[i] - slopes @ first[above])
        fitted.add_cpd(v, [names[p] for p in above], slopes, bias=bias, variance=max(variance, 0.0))
    return fitted
