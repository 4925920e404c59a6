"""One column of data: reading it without knowing its library, and turning its values into state numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.names import VariableName

__all__ = ["Column", "code_column", "discover_states", "is_missing", "named_columns", "read_column", "single_row"]

Codes = npt.NDArray[np.int16]

MAX_STATES = 2**15 - 1
"""Codes are int16."""

MAX_FLOAT_STATES = 64
"""More distinct numbers than this, not all of them whole, and a column is taken for a continuous one."""

_MISSING, _UNKNOWN = -1, -2
_SPAN = 2**16  # integers this close together are looked up in a table instead of sorted


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one column: a numeric array or a list; numbers into ``categories`` (-1 is missing) where given."""

    values: npt.NDArray[Any] | list[Any]
    mask: npt.NDArray[np.bool_] | None = None
    categories: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> Any:
        """The value in one row, for an error message."""
        value = self.values[row]
        if self.categories is not None:
            value = self.categories[int(value)]
        return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT, pandas.NA or masked."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))
    )


def named_columns(data: Any) -> dict[Any, Any] | None:
    """Columns by name, as their library gives them: of a dict, a pandas or polars frame, a structured array; or None.

    Examples
    --------
    >>> named_columns({"A": [0, 1]}), named_columns([[0, 1]])
    ({'A': [0, 1]}, None)
    """
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, np.ndarray):
        return {name: data[name] for name in data.dtype.names} if data.dtype.names else None
    if not hasattr(data, "columns") or not hasattr(data, "__getitem__"):
        return None
    names = [_python(n) for n in data.columns]
    _once(names)
    return {name: data[name] for name in names}


def single_row(data: Any) -> dict[Any, Any] | None:
    """What a Series, or a frame of one row, says of each name: missing values are left out. None for anything else.

    Whole numbers that pandas made floats, as it does beside missing ones, are whole again.

    Examples
    --------
    >>> import pandas as pd
    >>> single_row(pd.Series({"A": 1, "B": None}))
    {'A': 1}
    """
    if isinstance(data, Mapping | np.ndarray):
        return None
    if hasattr(data, "items") and hasattr(data, "index"):
        pairs = [(_python(name), value) for name, value in data.items()]
        if getattr(data, "ndim", 1) == 1:
            _once([name for name, _ in pairs])
            return {name: _whole(value) for name, value in pairs if not is_missing(value)}
    columns = named_columns(data)
    if columns is None:
        return None
    for name, column in columns.items():
        if len(column) != 1:
            raise ModelError(
                f"a frame as evidence has one row, this has {len(column)} in column {name!r}: many rows are for "
                "mf.predict, or run_batch of a compiled method"
            )
    values = {name: next(iter(column)) for name, column in columns.items()}
    return {name: _whole(value) for name, value in values.items() if not is_missing(value)}


def _whole(value: Any) -> Any:
    value = _python(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _once(names: Sequence[Any]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"the data has more than one column named {name!r}")


def read_column(name: VariableName, column: Any) -> Column:
    """Take a column of any library: a categorical by its codes, numbers as an array, everything else as a list."""
    categories = getattr(getattr(column, "dtype", None), "categories", None)
    if categories is not None:
        codes = getattr(column, "codes", None)
        codes = getattr(getattr(column, "cat", None), "codes", None) if codes is None else codes
        if codes is not None:
            return Column(np.asarray(codes), None, tuple(_python(c) for c in categories))
        if hasattr(categories, "to_list") and hasattr(column, "to_list"):
            # An enumeration that does not show its codes (polars): its texts, in its order.
            index = {c: i for i, c in enumerate(categories.to_list())}
            values = column.to_list()
            codes = np.fromiter((index.get(v, _MISSING) for v in values), np.int32, len(values))
            return Column(codes, None, tuple(index))
    mask = None
    if isinstance(column, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(column)
        column = column.data
    if isinstance(column, list | tuple):
        values = list(column)
        if values and all(type(v) is int or type(v) is float or type(v) is bool for v in values[:8]):
            values = _numbers(values)
    elif isinstance(column, str) or not hasattr(column, "__len__"):
        raise ModelError(f"column {name!r} must be a sequence of values, got {type(column).__name__}")
    elif hasattr(column, "to_numpy"):
        values = column.to_numpy()
    else:
        values = np.asarray(column) if hasattr(column, "__array__") else list(column)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ModelError(f"column {name!r} must be one-dimensional, got shape {values.shape}")
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8")
        if values.dtype.kind not in "biuf":
            values = values.tolist()
    if mask is not None and mask.any() and isinstance(values, list):
        values = [None if hidden else v for v, hidden in zip(values, mask.tolist(), strict=True)]
        mask = None
    return Column(values, mask if mask is not None and mask.any() else None)


def _numbers(values: list[Any]) -> Any:
    """A list as an array when all of it is plain numbers of one kind; otherwise the list."""
    kinds = set(map(type, values))
    if kinds in ({bool}, {int}) or kinds <= {int, float}:
        array = np.array(values)
        if array.dtype.kind in "bif":
            return array
    return values


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _describe(states: Sequence[Any]) -> str:
    shown = ", ".join(repr(s) for s in states[:12])
    return f"{shown}{', ...' if len(states) > 12 else ''}"


class _States:
    """Numbers of a variable's states by name, by the rules of `markovfield.names.Names.state`."""

    def __init__(self, variable: VariableName, names: Sequence[Any]) -> None:
        self.variable = variable
        self.names = names
        self.index = {name: i for i, name in enumerate(names)}
        self.plain = all(type(n) is int and n == i for i, n in enumerate(names))
        self.numeric = any(isinstance(n, int | float) and not isinstance(n, bool) for n in names)
        self.textual = all(isinstance(n, str) for n in names)

    def code(self, value: Any) -> int:
        """The number of one state; -1 when missing, -2 when there is no such state."""
        if is_missing(value):
            return _MISSING
        value = _python(value)
        try:
            found = self.index.get(value, _UNKNOWN)
        except TypeError:
            raise ModelError(
                f"variable {self.variable!r} has a value of type {type(value).__name__}, which cannot be a state"
            ) from None
        if found >= 0 and (self.plain or isinstance(value, bool) == isinstance(self.names[found], bool)):
            return found
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int):
            if self.plain and value == -1:
                return _MISSING
            if any(isinstance(n, bool) for n in self.names) and tuple(self.names) != (False, True):
                raise ModelError(
                    f"the integer {value} in the column of {self.variable!r} could be the number of a state or the "
                    f"truth of one, as its states are {_describe(self.names)}; give the column as booleans"
                )
            if not self.numeric and 0 <= value < len(self.names):
                by_text = self.index.get(str(value), value)
                if by_text != value:
                    raise ModelError(
                        f"the integer {value} in the column of {self.variable!r} could be the state named "
                        f"{str(value)!r} or the state numbered {value}; give the column as text"
                    )
                return value
        return _UNKNOWN

    def codes(self, values: Sequence[Any]) -> Codes:
        """Codes of some distinct values."""
        return np.array([self.code(v) for v in values], np.int16)


def _as_integers(column: Column) -> Column:
    """A float column of integral values as an integer one: what a library makes of integers with gaps."""
    values = column.values
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return column
    gaps = np.isnan(values)
    mask = gaps if column.mask is None else gaps | column.mask
    filled = np.where(mask, 0.0, values)
    if not ((np.abs(filled) < 2**53) & (np.trunc(filled) == filled)).all():
        return Column(values, mask)
    return Column(filled.astype(np.int64), mask)


def _distinct_numbers(column: Column) -> tuple[list[Any], npt.NDArray[np.intp] | None, int]:
    """Distinct values of a numeric column, and each row's position among them (None: value less the offset)."""
    values = column.values
    assert isinstance(values, np.ndarray)
    if not len(values):
        return [], None, 0
    if values.dtype.kind == "b":
        return [False, True], None, 0
    if values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if high - low < _SPAN:
            return list(range(low, high + 1)), None, low
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct.tolist(), inverse.ravel(), 0


def _code_list(states: _States, values: list[Any]) -> Codes:
    if states.textual:
        # One dict lookup for each cell: the common case, texts and gaps.
        index: dict[Any, int] = {**states.index, None: _MISSING, np.nan: _MISSING}
        try:
            return np.fromiter(map(index.__getitem__, values), np.int16, len(values))
        except (KeyError, TypeError):
            pass
    # Keyed by type as well: 1, 1.0 and True are one dict key, but not one state.
    try:
        lookup = {key: states.code(key[1]) for key in dict.fromkeys(zip(map(type, values), values, strict=True))}
    except TypeError:
        lookup = {}
        for value in values:
            states.code(value)  # raises the sentence about the type
    keys = zip(map(type, values), values, strict=True)
    return np.fromiter(map(lookup.__getitem__, keys), np.int16, len(values))


def code_column(variable: VariableName, names: Sequence[Any], column: Column) -> Codes:
    """State numbers of a column, -1 where missing; a value that is no state is an error that names the row."""
    states = _States(variable, names)
    if column.categories is not None:
        values = np.asarray(column.values)
        if column.categories == tuple(names):
            return values.astype(np.int16)
        lookup = np.append(states.codes(column.categories), np.int16(_MISSING))
        codes = lookup[values]
    elif isinstance(column.values, list):
        codes = _code_list(states, column.values)
    else:
        column = _as_integers(column)
        values = np.asarray(column.values)
        distinct, inverse, low = _distinct_numbers(column)
        if states.plain and inverse is None and values.dtype.kind in "iu" and len(values):
            known = (values >= -1) & (values < len(names))
            codes = np.where(known, values, _UNKNOWN).astype(np.int16)
        elif inverse is not None:
            codes = states.codes(distinct)[inverse]
        else:
            used = np.zeros(len(distinct), np.bool_)
            used[values.astype(np.int64) - low] = True
            lookup = np.full(len(distinct), _UNKNOWN, np.int16)
            for i in np.flatnonzero(used).tolist():
                lookup[i] = states.code(distinct[i])
            codes = lookup[values.astype(np.int64) - low]
        if column.mask is not None:
            codes[column.mask] = _MISSING
    if len(codes) and codes.min() == _UNKNOWN:
        row = int(np.argmax(codes == _UNKNOWN))
        raise ModelError(
            f"row {row} of the data has state {column.value(row)!r} for variable {variable!r}, "
            f"whose states are {_describe(names)}"
        )
    return codes


def _order(value: Any) -> tuple[int, Any]:
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    return 2, (type(value).__name__, repr(value))


def _check_states(variable: VariableName, states: list[Any]) -> None:
    if not states:
        raise ModelError(
            f"column {variable!r} has no value that is not missing, so its states are unknown; "
            f"leave it out or give a network that names them"
        )
    fractions = sum(isinstance(s, float) and not s.is_integer() for s in states)
    if fractions and len(states) > MAX_FLOAT_STATES:
        raise ModelError(
            f"column {variable!r} looks continuous: {len(states)} distinct numbers that are not all whole; "
            f"cut it into classes, or give a network that names these states"
        )
    if len(states) > MAX_STATES:
        raise ModelError(f"column {variable!r} has {len(states)} distinct values; at most {MAX_STATES} can be states")


def discover_states(variable: VariableName, column: Column) -> tuple[tuple[Any, ...], Codes]:
    """The states of a column, its distinct values in rising order, and the codes of its rows."""
    if column.categories is not None:
        _check_states(variable, [c for c in column.categories if not isinstance(c, float)] or [*column.categories])
        return column.categories, np.asarray(column.values).astype(np.int16)
    if isinstance(column.values, list):
        values = column.values
        try:
            found = dict.fromkeys(values)
        except TypeError:
            bad = next(type(v).__name__ for v in values if getattr(v, "__hash__", None) is None)
            raise ModelError(f"variable {variable!r} has a value of type {bad}, which cannot be a state") from None
        states = sorted((_python(v) for v in found if not is_missing(v)), key=_order)
        _check_states(variable, states)
        index = {s: i for i, s in enumerate(states)}
        lookup = {v: _MISSING if is_missing(v) else index[v] for v in found}
        return tuple(states), np.fromiter(map(lookup.__getitem__, values), np.int16, len(values))
    column = _as_integers(column)
    distinct, inverse, low = _distinct_numbers(column)
    positions = (np.asarray(column.values).astype(np.int64) - low) if inverse is None else inverse
    used = np.zeros(len(distinct), np.bool_)
    used[positions if column.mask is None else positions[~column.mask]] = True
    if distinct == [False, True] and isinstance(distinct[0], bool):
        used[:] = True
    kept = np.flatnonzero(used)
    states = [distinct[i] for i in kept.tolist()]
    _check_states(variable, states)
    lookup_array = np.full(len(distinct), _MISSING, np.int16)
    lookup_array[kept] = np.arange(len(kept))
    codes = lookup_array[positions]
    if column.mask is not None:
        codes[column.mask] = _MISSING
    return tuple(states), codes
