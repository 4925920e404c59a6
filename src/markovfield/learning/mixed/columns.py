"""A data frame of both kinds of columns: state numbers and real numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.columns import code_column, discover_states, is_missing, named_columns, read_column
from markovfield.exceptions import ModelError
from markovfield.names import VariableName, check_name

__all__ = ["MixedTable", "patterns", "row_weights"]

# Whole numbers of fewer different values than this are states; more of them, or fractions, are numbers.
MOST_STATES = 10


@dataclass(frozen=True, eq=False)
class MixedTable:
    """Columns by variable.

    Attributes
    ----------
    variables
        Names, in the order of the data or of a model.
    states
        State names of each discrete variable; real-valued ones are not there.
    codes, numbers
        State numbers, -1 where missing; real numbers, nan where missing.
    weights
        ``float64[rows]``.
    """

    variables: tuple[VariableName, ...]
    states: dict[VariableName, tuple[Any, ...]]
    codes: dict[VariableName, IntArray]
    numbers: dict[VariableName, FloatArray]
    weights: FloatArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weights)

    @classmethod
    def of(
        cls, data: Any, what: str, weights: Any = None, known: Mapping[VariableName, Any] | None = None
    ) -> MixedTable:
        """Read data; ``known`` has the states of variables, None for real-valued ones, and others are ignored.

        Without it, columns of text, of truth values and of few whole numbers have states, all others are numbers.
        """
        if isinstance(data, MixedTable):
            return data
        columns = named_columns(data)
        if columns is None:
            raise ModelError(f"{what} takes a dict of columns or a data frame, got {type(data).__name__}")
        column_of_weights = columns.pop(weights, None) if isinstance(weights, str) else weights
        if isinstance(weights, str) and column_of_weights is None:
            raise ModelError(f"weights name the column {weights!r}, which the data does not have")
        names = tuple(check_name(c) for c in columns) if known is None else tuple(known)
        states: dict[VariableName, tuple[Any, ...]] = {}
        codes: dict[VariableName, IntArray] = {}
        numbers: dict[VariableName, FloatArray] = {}
        lengths: dict[VariableName, int] = {}
        for name in names:
            if name not in columns:
                continue
            column = read_column(name, columns[name])
            lengths[name] = len(column)
            real = known[name] is None if known is not None else _is_real(column)
            if real:
                numbers[name] = _numbers(name, columns[name])
            elif known is None:
                states[name], found = discover_states(name, column)
                codes[name] = found.astype(np.int64)
            else:
                states[name] = tuple(known[name])
                codes[name] = code_column(name, states[name], column).astype(np.int64)
        rows = next(iter(lengths.values()), 0)
        for name, count in lengths.items():
            if count != rows:
                raise ModelError(
                    f"columns {names[0]!r} and {name!r} have different numbers of rows: {rows} and {count}"
                )
        if not rows:
            raise ModelError(f"{what} needs at least one row of data, got none")
        for name in names:
            if name not in lengths and known is not None:
                if known[name] is None:
                    numbers[name] = np.full(rows, np.nan)
                else:
                    states[name], codes[name] = tuple(known[name]), np.full(rows, -1)
        return cls(names, states, codes, numbers, row_weights(column_of_weights, rows, what))

    def check_complete(self, what: str) -> None:
        """Raise where a value is missing."""
        for name in self.variables:
            column = self.codes[name] < 0 if name in self.codes else np.isnan(self.numbers[name])
            if column.any():
                raise ModelError(f"{what} needs complete data: {name!r} is missing in row {int(np.argmax(column))}")


def _is_real(column: Any) -> bool:
    """Whether a column holds numbers rather than states."""
    if column.categories is not None:
        return False
    values = column.values
    if isinstance(values, list):
        present = [v for v in values if not is_missing(v)]
        if not present or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in present):
            return False
        values = np.array(present, np.float64)
    if values.dtype.kind == "b":
        return False
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
        if not len(values) or (values != np.floor(values)).any():
            return True
    return len(np.unique(values)) > MOST_STATES


def _numbers(name: VariableName, column: Any) -> FloatArray:
    if isinstance(column, np.ma.MaskedArray):
        column = np.ma.filled(column.astype(np.float64), np.nan)
    values: Any = column.to_numpy() if hasattr(column, "to_numpy") else column
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        try:
            found = np.array([np.nan if is_missing(v) else v for v in values], np.float64)
        except (TypeError, ValueError):
            bad = next(v for v in values if not is_missing(v) and not isinstance(v, int | float | np.number))
            raise ModelError(f"column {name!r} must hold numbers only, got {bad!r}") from None
    if np.isinf(found).any():
        raise ModelError(f"column {name!r} is infinite in row {int(np.argmax(np.isinf(found)))}")
    return found


def row_weights(weights: Any, rows: int, what: str) -> FloatArray:
    """One number for each row; one each where none are given."""
    if weights is None:
        return np.ones(rows)
    found = np.asarray(weights, np.float64)
    if found.shape != (rows,) or not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise ModelError(f"{what}: weights need {rows} finite numbers of zero or more, not all zero")
    return found


def patterns(columns: Sequence[npt.NDArray[np.bool_]]) -> list[tuple[npt.NDArray[np.bool_], IntArray]]:
    """Which columns are present, and the rows of which that is so, for each such pattern."""
    table = np.column_stack(columns)
    distinct, which = np.unique(table, axis=0, return_inverse=True)
    return [(pattern, np.flatnonzero(which.ravel() == i)) for i, pattern in enumerate(distinct)]
