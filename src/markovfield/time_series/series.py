"""Columns of real numbers as one array, a row for each time step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.columns import is_missing, named_columns
from markovfield.exceptions import ModelError
from markovfield.names import VariableName, check_name

__all__ = ["numbers_of", "read_series"]


def numbers_of(name: VariableName, column: Any) -> FloatArray:
    """One column as ``float64[rows]``, nan where a value is missing."""
    if isinstance(column, np.ma.MaskedArray):
        column = np.ma.filled(column.astype(np.float64), np.nan)
    values = column.to_numpy() if hasattr(column, "to_numpy") else column
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        listed = [np.nan if is_missing(v) else v for v in values]
        bad = next((v for v in listed if not isinstance(v, int | float | np.number)), None)
        if bad is not None:
            raise ModelError(f"column {name!r} must hold numbers only, got {bad!r}") from None
        found = np.array(listed, np.float64)
    if found.ndim != 1:
        raise ModelError(f"column {name!r} must be one-dimensional, got shape {found.shape}")
    if np.isinf(found).any():
        raise ModelError(f"column {name!r} is infinite in row {int(np.argmax(np.isinf(found)))}")
    return found


def read_series(
    data: Any, what: str, variables: Sequence[VariableName] | None = None, *, missing: bool = False
) -> tuple[tuple[VariableName, ...], FloatArray]:
    """Names of the series and ``float64[time, series]``, the rows in order of time.

    Parameters
    ----------
    data
        A dict of columns, a data frame, a structured array, or ``float64[time, series]``.
    what
        Who asks, for messages.
    variables
        The series wanted, in their order; all columns when None (named 0, 1, ... where an array has no names).
    missing
        Whether values may be missing (nan).
    """
    columns = named_columns(data)
    if columns is None:
        try:
            values = np.array(data, np.float64)
        except (TypeError, ValueError):
            raise ModelError(
                f"{what} takes a dict of columns, a data frame or float[time, series], got {type(data).__name__}"
            ) from None
        values = values[:, None] if values.ndim == 1 else values
        names = tuple(range(values.shape[-1])) if variables is None else tuple(variables)
        if values.ndim != 2 or values.shape[1] != len(names):
            raise ModelError(f"{what} needs shape [time, {len(names)}], got {values.shape}")
    else:
        names = tuple(check_name(c) for c in columns) if variables is None else tuple(variables)
        absent = [v for v in names if v not in columns]
        if absent:
            raise ModelError(f"{what} has no column {absent[0]!r}; there are {', '.join(map(repr, list(columns)[:8]))}")
        read = [numbers_of(v, columns[v]) for v in names]
        for v, column in zip(names, read, strict=True):
            if len(column) != len(read[0]):
                raise ModelError(f"column {v!r} has {len(column)} rows, column {names[0]!r} has {len(read[0])}")
        values = np.column_stack(read) if read else np.zeros((0, 0))
    if not names:
        raise ModelError(f"{what} needs at least one series, got none")
    strange = ~np.isfinite(values) if not missing else np.isinf(values)
    if strange.any():
        row, at = (int(i) for i in np.argwhere(strange)[0])
        word = "missing" if np.isnan(values[row, at]) else "infinite"
        more = "; LinearStateSpace takes series with missing values" if word == "missing" else ""
        raise ModelError(f"{what}: {names[at]!r} is {word} in row {row}{more}")
    return names, np.ascontiguousarray(values)
