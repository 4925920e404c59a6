"""Data of real-valued variables: columns of numbers, and all that Gaussian learning needs of them, their moments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import number
from markovfield.arrays import FloatArray, Frozen
from markovfield.columns import is_missing, named_columns
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.names import VariableName, check_name

__all__ = ["GaussianMoments", "NumberTable", "guard_dense", "not_definite", "read_moments", "read_numbers"]

# A standard deviation below this share of the largest number is what rounding leaves of a constant column.
ROUNDING = 1e-13
# How many variables an error names.
NAMED = 6


@dataclass(frozen=True, eq=False, init=False)
class GaussianMoments(Frozen, Tabular):
    """Sufficient statistics of Gaussian models: the covariance, the mean, and how many rows they are of.

    Takes the place of the rows wherever Gaussian models are fitted or Gaussian structures learned.

    Parameters
    ----------
    covariance
        ``float64[n, n]``, with the rows' number as the divisor (maximum likelihood); symmetric. May be of correlations.
    n_rows
        How many rows, or their total weight.
    mean
        ``float64[n]``; zero when None.
    variables
        Names in the order of the matrix; ``0 .. n-1`` when None.

    Examples
    --------
    >>> import markovfield as mf
    >>> moments = mf.learning.GaussianMoments([[1.0, 0.5], [0.5, 1.0]], 100, variables=["x", "y"])
    >>> moments
    GaussianMoments(2 variables, 100 rows)
    >>> mf.learn_structure(moments, method=mf.methods.GraphicalLasso(penalty=0.1)).edges
    (('x', 'y'),)
    """

    covariance: FloatArray
    n_rows: float
    mean: FloatArray
    variables: tuple[VariableName, ...]

    def __init__(
        self,
        covariance: npt.ArrayLike,
        n_rows: float,
        mean: npt.ArrayLike | None = None,
        variables: Iterable[VariableName] | None = None,
    ) -> None:
        what = "GaussianMoments(covariance)"
        try:
            matrix = np.array(covariance, np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{what} needs a matrix of numbers: {error}") from error
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ModelError(f"{what} must be a square matrix, got shape {matrix.shape}")
        n = len(matrix)
        names = tuple(range(n)) if variables is None else tuple(check_name(v) for v in variables)
        if len(names) != n or len(set(names)) != n:
            raise ModelError(f"GaussianMoments(variables=...) needs {n} different names, got {list(names)!r}")
        _check_matrix(matrix, names, what)
        number(n_rows, "n_rows of GaussianMoments", above=0)
        centre = np.zeros(n) if mean is None else np.array(mean, np.float64)
        if centre.shape != (n,) or not np.isfinite(centre).all():
            raise ModelError(f"GaussianMoments(mean=...) needs {n} finite numbers, got shape {centre.shape}")
        self._set((matrix + matrix.T) / 2, float(n_rows), centre, names)

    def _set(self, covariance: FloatArray, n_rows: float, mean: FloatArray, names: Any) -> None:
        covariance.flags.writeable = mean.flags.writeable = False
        for name, value in (("covariance", covariance), ("n_rows", n_rows), ("mean", mean), ("variables", names)):
            object.__setattr__(self, name, value)

    @classmethod
    def trusted(
        cls, covariance: FloatArray, n_rows: float, mean: FloatArray, variables: tuple[VariableName, ...]
    ) -> GaussianMoments:
        """Moments of numbers that have been checked, without a copy."""
        made = object.__new__(cls)
        made._set(covariance, n_rows, mean, variables)
        return made

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.mean)

    @property
    def deviations(self) -> FloatArray:
        """``float64[n]``, standard deviations."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def correlation(self) -> FloatArray:
        """``float64[n, n]``."""
        deviations = self.deviations
        found = self.covariance / (deviations[:, None] * deviations)
        np.fill_diagonal(found, 1.0)
        return found

    def shrunk(self, share: float) -> GaussianMoments:
        """With the covariance mixed with its own diagonal: ``(1 - share)`` of every covariance is left."""
        if share == 0:
            return self
        matrix = (1 - share) * self.covariance
        np.fill_diagonal(matrix, np.diag(self.covariance))
        return GaussianMoments.trusted(matrix, self.n_rows, self.mean, self.variables)

    def among(self, variables: Sequence[VariableName]) -> GaussianMoments:
        """The moments of some of the variables, in the order asked."""
        if tuple(variables) == self.variables:
            return self
        place = {v: i for i, v in enumerate(self.variables)}
        lost = [v for v in variables if v not in place]
        if lost:
            raise ModelError(f"the data has no column for variable {lost[0]!r}")
        at = [place[v] for v in variables]
        return GaussianMoments.trusted(
            self.covariance[np.ix_(at, at)], self.n_rows, self.mean[at], tuple(self.variables[i] for i in at)
        )

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {
            "variable": list(self.variables[:limit]),
            "mean": self.mean[:limit],
            "deviation": self.deviations[:limit],
        }

    def __repr__(self) -> str:
        n = self.n_variables
        return f"GaussianMoments({n} variable{'s' * (n != 1)}, {self.n_rows:g} rows)"


@dataclass(frozen=True, eq=False)
class NumberTable:
    """Rows of numbers: ``values`` is ``float64[rows, n]``, nan where missing; ``weights`` ``float64[rows]``."""

    variables: tuple[VariableName, ...]
    values: FloatArray
    weights: FloatArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def has_missing(self) -> bool:
        """Whether any value is missing."""
        return bool(np.isnan(self.values).any())

    @property
    def missing(self) -> dict[VariableName, int]:
        """How many rows have no value, for each variable that any row has none of."""
        counts = np.isnan(self.values).sum(axis=0)
        return {v: int(c) for v, c in zip(self.variables, counts, strict=True) if c}

    def rows(self, chosen: Any) -> NumberTable:
        """Some of the rows."""
        return NumberTable(self.variables, self.values[chosen], self.weights[chosen])

    def moments(self, what: str) -> GaussianMoments:
        """Mean and covariance of complete rows, centred before they are multiplied."""
        if self.has_missing:
            name, count = next(iter(self.missing.items()))
            row = int(np.flatnonzero(np.isnan(self.values[:, self.variables.index(name)]))[0])
            raise ModelError(
                f"{what} needs complete data, but {name!r} is missing in {count} row{'s' * (count != 1)}, "
                f"the first of them row {row}"
            )
        total = float(self.weights.sum())
        mean = self.weights @ self.values / total
        centred = self.values - mean
        flat = np.flatnonzero(np.abs(centred).max(axis=0) <= ROUNDING * np.abs(mean))
        if len(flat):
            raise ModelError(_constant(self.variables[flat[0]], what))
        guard_dense(len(mean), "the covariance")
        if (self.weights == self.weights[0]).all():
            covariance = centred.T @ centred / self.n_rows
        else:
            covariance = (centred * self.weights[:, None]).T @ centred / total
        return GaussianMoments.trusted(covariance, total, mean, self.variables)


def _constant(variable: VariableName, what: str) -> str:
    return f"column {variable!r} is the same in every row, so it has no variance for {what}: leave it out"


def guard_dense(n: int, what: str, copies: int = 1, limit: str | float | None = None) -> None:
    """Refuse dense matrices above the memory limit, before anything is allocated."""
    size, most = 8.0 * n * n * copies, memory_limit_bytes(limit)
    if size > most:
        raise MemoryLimitError(
            f"{what} of {n} variables takes {format_bytes(math.log2(size))} as dense matrices, above the limit of "
            f"{format_bytes(math.log2(most))}: choose fewer variables"
        )


def _check_matrix(matrix: FloatArray, names: Sequence[VariableName], what: str) -> None:
    strange = np.argwhere(~np.isfinite(matrix))
    if len(strange):
        i, j = strange[0]
        raise ModelError(f"{what} of {names[i]!r} and {names[j]!r} is {matrix[i, j]}, not a finite number")
    largest = np.abs(matrix).max(initial=0.0)
    apart = np.abs(matrix - matrix.T)
    if apart.max(initial=0.0) > 1e-8 * largest:
        i, j = (int(k) for k in np.unravel_index(np.argmax(apart), apart.shape))
        raise ModelError(
            f"{what} must be symmetric, but has {matrix[i, j]:.6g} and {matrix[j, i]:.6g} for {names[i]!r} and "
            f"{names[j]!r}"
        )
    flat = np.flatnonzero(np.diag(matrix) <= 0)
    if len(flat):
        raise ModelError(f"{what} of {names[flat[0]]!r} with itself is {matrix[flat[0], flat[0]]:.6g}, no variance")


def not_definite(matrix: FloatArray, variables: Sequence[VariableName], what: str) -> str:
    """What is wrong with a matrix that is not positive definite: its smallest eigenvalue, and whose it is."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    values, vectors = np.linalg.eigh(matrix / scale[:, None] / scale)
    weight = np.abs(vectors[:, 0])
    most = np.argsort(-weight, kind="stable")
    most = most[weight[most] > 0.1 * weight[most[0]]]
    shown = ", ".join(repr(variables[i]) for i in most[:NAMED]) + (", ..." if len(most) > NAMED else "")
    return (
        f"{what} is not positive definite: as correlations its smallest eigenvalue is {values[0]:.3g}, "
        f"of a combination of {shown}"
    )


def read_numbers(
    data: Any, *, variables: Sequence[VariableName] | None = None, weights: Any = None, what: str = "data"
) -> NumberTable:
    """Columns of numbers of a dict, a data frame, a structured or a plain array; missing values become nan.

    ``variables`` says which columns, and in what order; all columns of numbers but that of the weights when None.
    """
    columns = named_columns(data)
    if isinstance(weights, str):
        if columns is None or weights not in columns:
            raise ModelError(f"the data has no column {weights!r} to be the weights")
        weights = _column(weights, columns.pop(weights))
    if columns is None:
        names, matrix = _matrix(data, variables, what)
    else:
        wanted = list(columns) if variables is None else list(variables)
        lost = [v for v in wanted if v not in columns]
        if lost:
            raise ModelError(f"the data has no column for variable {lost[0]!r}")
        names = tuple(check_name(v) for v in wanted)
        read = [_column(v, columns[v]) for v in names]
        for v, column in zip(names, read, strict=True):
            if len(column) != len(read[0]):
                raise ModelError(f"column {v!r} has {len(column)} rows, where column {names[0]!r} has {len(read[0])}")
        matrix = np.column_stack(read) if read else np.zeros((0, 0))
    if not matrix.size:
        raise ModelError(f"{what} needs at least one row and one column of numbers, got shape {matrix.shape}")
    strange = np.argwhere(np.isinf(matrix))
    if len(strange):
        raise ModelError(f"column {names[strange[0][1]]!r} is infinite in row {strange[0][0]}")
    return NumberTable(names, matrix, _weights(weights, len(matrix)))


def _matrix(data: Any, variables: Sequence[VariableName] | None, what: str) -> tuple[tuple[Any, ...], FloatArray]:
    if hasattr(data, "field") and hasattr(data, "values"):
        return read_numbers(data.to_dict(), variables=variables).variables, np.asarray(data.values, np.float64)
    try:
        masked = np.ma.isMaskedArray(data)
        matrix = np.ma.filled(np.ma.asarray(data, np.float64), np.nan) if masked else np.array(data, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what} needs columns of numbers: {error}") from error
    if matrix.ndim != 2:
        raise ModelError(f"{what} as an array needs shape [rows, variables], got {matrix.shape}")
    names = tuple(range(matrix.shape[1])) if variables is None else tuple(variables)
    if len(names) != matrix.shape[1]:
        raise ModelError(f"{what} has {matrix.shape[1]} columns, for {len(names)} variables")
    return names, matrix


def _column(variable: Any, values: Any) -> FloatArray:
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        column = np.array(values, np.float64)
    except (TypeError, ValueError):
        try:
            column = np.array([np.nan if is_missing(v) else float(v) for v in values], np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"column {variable!r} must hold numbers only: {error}") from error
    if column.ndim != 1:
        raise ModelError(f"column {variable!r} must be one-dimensional, got shape {column.shape}")
    return column


def _weights(weights: Any, rows: int) -> FloatArray:
    if weights is None:
        return np.ones(rows)
    given = np.asarray(weights, np.float64)
    if given.shape != (rows,) or not np.isfinite(given).all() or (given < 0).any() or not given.any():
        raise ModelError(f"weights need one finite number of at least 0 for each of the {rows} rows, not all 0")
    return given


def read_moments(
    data: Any, *, variables: Sequence[VariableName] | None = None, weights: Any = None, what: str = "data"
) -> GaussianMoments:
    """Moments given, or those of rows."""
    if isinstance(data, GaussianMoments):
        if weights is not None:
            raise ModelError("weights are of rows, and GaussianMoments have none: give them when the rows are counted")
        return data if variables is None else data.among(variables)
    if isinstance(data, NumberTable):
        return data.moments(what)
    return read_numbers(data, variables=variables, weights=weights, what=what).moments(what)
