"""Maximum likelihood for linear-Gaussian networks: one least-squares regression for each variable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock
from markovfield.learning.core.report import FitReport
from markovfield.models.gaussian_network import LinearGaussianNetwork
from markovfield.names import VariableName

__all__ = ["LeastSquares", "least_squares"]


def least_squares(
    network: LinearGaussianNetwork, data: Any, *, weights: npt.ArrayLike | str | None = None
) -> LinearGaussianNetwork:
    """Estimate weights, biases and variances of a structure from complete data, by maximum likelihood.

    The likelihood falls apart into one linear regression for each variable on its parents; the variance is the mean
    squared residual (divided by the number of rows, not by the degrees of freedom).

    Parameters
    ----------
    network
        Gives the variables and their parents; its numbers, if any, are not used.
    data
        A mapping or a data frame with one column of numbers for each variable (others are ignored), or
        ``float64[rows, n]`` in the order of ``network.variables``.
    weights
        ``float64[rows]``, how many times each row counts, or the name of the column that holds them; once each when
        None.

    Returns
    -------
    LinearGaussianNetwork
        A new network with ``fit_report``. Costs ``rows * (parents + 1)^2`` operations for each variable.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.LinearGaussianNetwork(["x", "y"])
    >>> net.set_parents("y", ["x"])
    >>> fitted = least_squares(net, {"x": [0.0, 1.0, 2.0], "y": [1.0, 3.0, 5.5]})
    >>> [round(w, 6) for w in fitted.cpd("y").weights], round(fitted.cpd("y").variance, 6)
    ([2.25], 0.013889)
    """
    started = clock()
    order = network.order()
    columns = _columns(network.variables, data)
    rows = len(next(iter(columns.values()), np.zeros(0)))
    if not rows:
        raise ModelError("least_squares(data) needs at least one row")
    share, total = _shares(_columns((weights,), data)[weights] if isinstance(weights, str) else weights, rows)
    fitted = LinearGaussianNetwork(network.variables)
    log_likelihood = 0.0
    for v in order:
        above = network.parents(v)
        slopes, bias, variance = _regress(v, columns[v], [columns[p] for p in above], above, share)
        fitted.add_cpd(v, above, slopes, bias=bias, variance=variance)
        # At the maximum the squared residuals by the variance add up to the number of rows.
        log_likelihood += -0.5 * total * (math.log(2 * math.pi * variance) + 1) if variance else math.inf
    fitted.fit_report = FitReport(
        method="least_squares",
        log_likelihood=log_likelihood,
        n_rows=rows,
        total_weight=total,
        n_parameters=sum(len(network.parents(v)) + 2 for v in order),
        seconds=clock() - started,
    )
    return fitted


@dataclass(frozen=True)
class LeastSquares:
    """Maximum likelihood of linear-Gaussian networks from complete data, as a method of `fit`: see `least_squares`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.LinearGaussianNetwork(["x", "y"])
    >>> net.set_parents("y", ["x"])
    >>> least = LeastSquares()
    >>> round(mf.fit(net, {"x": [0.0, 1.0, 2.0], "y": [1.0, 3.0, 5.5]}, method=least).cpd("y").bias, 6)
    0.916667
    """

    name: ClassVar[str] = "least_squares"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def fit(
        self, network: LinearGaussianNetwork, data: Any, *, weights: Any = None, running: Running | None = None
    ) -> LinearGaussianNetwork:
        """A new network with the estimated weights, biases and variances."""
        return least_squares(network, data, weights=weights)


def _regress(
    variable: VariableName,
    column: FloatArray,
    regressors: list[FloatArray],
    parents: tuple[VariableName, ...],
    share: FloatArray,
) -> tuple[FloatArray, float, float]:
    # Centred first: the bias then needs no column of ones, and large offsets cost no digits.
    centre = float(share @ column)
    target = column - centre
    if not regressors:
        return np.zeros(0), centre, float(share @ target**2)
    matrix = np.column_stack(regressors)
    middle = share @ matrix
    matrix -= middle
    scale = np.sqrt(share @ matrix**2)
    # The mean of equal numbers differs from them by rounding.
    constant = np.flatnonzero(scale <= 1e-13 * np.abs(middle))
    if len(constant):
        raise ModelError(
            f"least_squares cannot tell the weight of {parents[constant[0]]!r} on {variable!r}: its column is constant"
        )
    root = np.sqrt(share)
    found, _, rank, _ = np.linalg.lstsq(root[:, None] * (matrix / scale), root * target, rcond=1e-12)
    if rank < len(parents):
        raise ModelError(
            f"least_squares cannot tell the weights of {list(parents)!r} on {variable!r}: in {len(column)} rows their "
            f"columns are linearly dependent (rank {rank} of {len(parents)})"
        )
    slopes = found / scale
    residual = target - matrix @ slopes
    return slopes, float(centre - middle @ slopes), float(share @ residual**2)


def _columns(
    variables: tuple[VariableName, ...], data: Any, *, missing: bool = False
) -> dict[VariableName, FloatArray]:
    """Columns of numbers by name; nan where values may be missing."""
    if isinstance(data, np.ndarray) and data.dtype.names is None:
        if data.ndim != 2 or data.shape[1] != len(variables):
            raise ModelError(f"least_squares(data) needs shape [rows, {len(variables)}], got {data.shape}")
        return {v: _column(v, data[:, i], missing) for i, v in enumerate(variables)}
    columns: dict[VariableName, FloatArray] = {}
    for v in variables:
        try:
            given = data[v]
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"least_squares(data) has no column for variable {v!r}") from error
        columns[v] = _column(v, given, missing)
        first = columns[variables[0]]
        if len(columns[v]) != len(first):
            raise ModelError(f"column {v!r} has {len(columns[v])} rows, where column {variables[0]!r} has {len(first)}")
    return columns


def _column(variable: VariableName, values: Any, missing: bool = False) -> FloatArray:
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        column = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"column {variable!r} must hold numbers only: {error}") from error
    if column.ndim != 1:
        raise ModelError(f"column {variable!r} must be one-dimensional, got shape {column.shape}")
    strange = np.flatnonzero(np.isinf(column) if missing else ~np.isfinite(column))
    if len(strange):
        what = "missing" if np.isnan(column[strange[0]]) else "infinite"
        other = "; linear_gaussian_em takes missing values" if what == "missing" else ""
        raise ModelError(f"least_squares needs complete data: {variable!r} is {what} in row {strange[0]}{other}")
    return column


def _shares(weights: npt.ArrayLike | None, rows: int) -> tuple[FloatArray, float]:
    """Weights that add up to one, and what they added up to."""
    if weights is None:
        return np.full(rows, 1.0 / rows), float(rows)
    given = np.asarray(weights, np.float64)
    if given.shape != (rows,) or not np.isfinite(given).all() or (given < 0).any() or not given.any():
        raise ModelError(f"least_squares(weights=...) needs {rows} finite numbers of zero or more, not all zero")
    return given / given.sum(), float(given.sum())
