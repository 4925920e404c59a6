"""Data of a Boltzmann machine: rows of visible units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.columns import named_columns
from markovfield.exceptions import ModelError
from markovfield.learning.core.data import DataTable

__all__ = ["Rows", "rows_of"]


class Rows(NamedTuple):
    """Checked data.

    Attributes
    ----------
    values
        ``float64[n_rows, n_visible]``, each in [0, 1].
    weights
        ``float64[n_rows]``, how often each row counts.
    binary
        Whether every value is 0 or 1.
    """

    values: FloatArray
    weights: FloatArray
    binary: bool

    @property
    def means(self) -> FloatArray:
        """Weighted mean of each unit, kept from 0 and 1 by half a row."""
        total = self.weights.sum()
        found: FloatArray = (self.weights @ self.values + 0.5) / (total + 1.0)
        return found


def rows_of(data: Any, n_visible: int, weights: Any = None) -> Rows:
    """Rows of 0 and 1, or of probabilities, from an array or from columns named v0, v1, ....

    Parameters
    ----------
    data
        ``[n_rows, n_visible]``, a frame or a dict of columns, or a `DataTable`; columns of other names are ignored.
    weights
        ``float[n_rows]``; None takes those of a `DataTable`, or one for each row.

    Examples
    --------
    >>> rows_of({"v1": [1, 0], "v0": [0.5, 1], "other": ["a", "b"]}, 2)
    Rows(values=array([[0.5, 1. ],
           [1. , 0. ]]), weights=array([1., 1.]), binary=False)
    """
    if isinstance(data, DataTable):
        weights = data.weights if weights is None else weights
        data = _columns_of(data)
    columns = named_columns(data)
    if columns is not None:
        wanted = [f"v{i}" for i in range(n_visible)]
        lacking = next((name for name in wanted if name not in columns), None)
        if lacking is not None:
            raise ModelError(
                f"the data has no column {lacking!r}: a machine of {n_visible} visible units needs v0 to {wanted[-1]}"
            )
        data = [np.asarray(columns[name]) for name in wanted]
        if len({len(column) for column in data}) > 1:
            raise ModelError("columns v0, v1, ... of the data have different numbers of rows")
        data = np.array(data).T
    values = _numbers(data)
    if values.ndim != 2 or values.shape[1] != n_visible:
        raise ModelError(
            f"data of a machine of {n_visible} visible units needs shape (rows, {n_visible}), got {values.shape}"
        )
    if not len(values):
        raise ModelError("a Boltzmann machine needs at least one row of data, got none")
    within = (values >= 0.0) & (values <= 1.0)
    if not within.all():
        r, i = (int(k) for k in np.argwhere(~within)[0])
        remedy = "fill in what is missing" if np.isnan(values[r, i]) else "scale the data"
        raise ModelError(f"units must be 0, 1 or between, got {values[r, i]} for v{i} in row {r}: {remedy}")
    return Rows(values, _weights(weights, len(values)), bool(((values == 0.0) | (values == 1.0)).all()))


def _columns_of(table: DataTable) -> dict[Any, Any]:
    """The values, not the codes, of columns that have numbers."""
    found = {}
    for name, states, codes in zip(table.variables, table.states, table.codes, strict=True):
        if all(isinstance(state, int | float | np.number | np.bool_) for state in states):
            found[name] = np.append(np.array(states, np.float64), np.nan)[codes]
    return found


def _numbers(data: Any) -> FloatArray:
    try:
        return np.ascontiguousarray(data, np.float64)
    except (TypeError, ValueError):
        raise ModelError("data of a Boltzmann machine must be numbers from 0 to 1, one column a visible unit") from None


def _weights(weights: Any, n_rows: int) -> FloatArray:
    if weights is None:
        return np.ones(n_rows)
    found = _numbers(weights)
    if found.shape != (n_rows,) or not ((found >= 0) & (found < np.inf)).all() or not found.any():
        raise ModelError(
            f"weights need one finite number of at least zero for each of the {n_rows} rows, not all of them zero"
        )
    return found
