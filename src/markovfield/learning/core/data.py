"""Tables of data: columns of any library as one array of state numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.columns import MAX_STATES, Column, code_column, discover_states, named_columns, read_column
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.answers import Samples
from markovfield.names import Names, VariableName, check_name

__all__ = ["DataTable", "encode"]


@dataclass(frozen=True, eq=False)
class DataTable(Tabular):
    """Rows of observations as state numbers, one contiguous run of rows for each variable.

    Attributes
    ----------
    variables
        Names of the variables.
    states
        State names of each variable.
    codes
        ``int16[n_variables, n_rows]``, read-only: entry [v, r] is the state of variable v in row r, -1 where missing.
    weights
        ``float64[n_rows]``, how often each row counts, or None when each counts once.
    """

    variables: tuple[VariableName, ...]
    states: tuple[tuple[Any, ...], ...]
    codes: npt.NDArray[np.int16]
    weights: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        codes = np.ascontiguousarray(self.codes, np.int16).view()
        if codes.ndim != 2 or len(codes) != len(self.variables) or len(self.states) != len(self.variables):
            raise ModelError(
                f"codes of {len(self.variables)} variables need shape ({len(self.variables)}, n_rows), "
                f"got {codes.shape} and {len(self.states)} lists of states"
            )
        codes.flags.writeable = False
        object.__setattr__(self, "codes", codes)
        if self.weights is not None:
            weights = _check_weights(self.weights, codes.shape[1]).view()
            weights.flags.writeable = False
            object.__setattr__(self, "weights", weights)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        named = [(*states, None) for states in self.states]
        rows = zip(self.variables, named, self.codes[:, :limit], strict=True)
        return {name: [states[k] for k in column.tolist()] for name, states, column in rows}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.variables)

    @cached_property
    def cardinalities(self) -> npt.NDArray[np.int32]:
        """``int32[n_variables]``: the number of states of each variable."""
        return np.array([len(s) for s in self.states], np.int32)

    @cached_property
    def has_missing(self) -> bool:
        """Whether any value is missing."""
        return bool(self.codes.size) and int(self.codes.min()) < 0

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights: the number of rows when there are none."""
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    def complete_rows(self) -> DataTable:
        """The rows in which nothing is missing.

        Examples
        --------
        >>> encode({"A": ["x", None, "y"], "B": [0, 1, 1]}).complete_rows().n_rows
        2
        """
        if not self.has_missing:
            return self
        return self.rows(np.asarray((self.codes >= 0).all(axis=0)))

    def rows(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> DataTable:
        """Some of the rows, by a mask or by their positions."""
        weights = None if self.weights is None else self.weights[chosen]
        return DataTable(self.variables, self.states, self.codes[:, chosen], weights)

    def distinct(self) -> DataTable:
        """Each row that occurs once, with the weight of all its occurrences, in order of first appearance.

        Examples
        --------
        >>> table = encode({"A": ["x", "y", "x"]}).distinct()
        >>> table.codes.tolist(), table.weights.tolist()
        ([[0, 1]], [2.0, 1.0])
        """
        n, n_rows = self.codes.shape
        weights = np.ones(n_rows) if self.weights is None else self.weights
        # Rows are told apart by a 64-bit hash; should two different rows share one, all rows are kept.
        salt: Any = np.random.default_rng(0).integers(1, 2**63, n, dtype=np.uint64) | np.uint64(1)
        key = np.zeros(n_rows, np.uint64)
        for v in range(n):
            key = (key ^ self.codes[v].astype(np.uint16)) * salt[v]
            key ^= key >> np.uint64(29)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        same = len(first) == n_rows
        if same or not all(np.array_equal(codes, codes[first][inverse]) for codes in self.codes):
            return DataTable(self.variables, self.states, self.codes, weights)
        order = np.argsort(first, kind="stable")
        total = np.bincount(inverse, weights=weights, minlength=len(first))[order].astype(np.float64)
        return DataTable(self.variables, self.states, self.codes[:, first[order]], total)

    def __repr__(self) -> str:
        n, rows = self.n_variables, self.n_rows
        extra = f", {int((self.codes < 0).sum())} values missing" if self.has_missing else ""
        extra += f", weight {self.total_weight:g}" if self.weights is not None else ""
        return f"DataTable({rows} row{'s' * (rows != 1)} of {n} variable{'s' * (n != 1)}{extra})"


def _check_weights(weights: npt.ArrayLike, n_rows: int) -> npt.NDArray[np.float64]:
    try:
        values = np.ascontiguousarray(weights, np.float64)
    except (TypeError, ValueError):
        raise ModelError("weights must be numbers, one for each row") from None
    if values.shape != (n_rows,):
        raise ModelError(f"weights need one number for each of the {n_rows} rows, got shape {values.shape}")
    bad = np.flatnonzero(~((values >= 0) & (values < np.inf)))
    if len(bad):
        raise ModelError(
            f"weights must be finite and not negative, got {values[bad[0]]} in row {int(bad[0])} of the data"
        )
    if n_rows and not values.any():
        raise ModelError("weights are zero in every row of the data")
    return values


def _read(data: Any) -> dict[Any, Any]:
    """Columns by name, as their library gives them."""
    if isinstance(data, Samples):
        s = data.graph.structure
        return {
            name: Column(data.states[:, i], None, tuple(s.names.state_names(i, int(s.cardinalities[i]))))
            for i, name in enumerate(s.names.variables)
        }
    if isinstance(data, DataTable):
        return {v: Column(data.codes[i], None, data.states[i]) for i, v in enumerate(data.variables)}
    columns = named_columns(data)
    if columns is not None:
        return columns
    if isinstance(data, np.ndarray):
        raise ModelError("a plain array of state numbers needs a network; give a dict of columns instead")
    raise ModelError(
        "data must be a dict of columns, a data frame, a structured array, samples, or with a network "
        f"int[rows, n_variables], got {type(data).__name__}"
    )


def _matrix(data: Any, variables: Sequence[VariableName], states: Sequence[tuple[Any, ...]]) -> dict[Any, Any]:
    """An array of state numbers as columns, its entries checked against the states."""
    n = len(variables)
    if data.ndim != 2 or data.shape[1] != n:
        raise ModelError(f"data as an array needs shape (rows, {n}), one column a variable, got {data.shape}")
    if data.dtype.kind not in "iub":
        raise ModelError(f"data as an array must be state numbers, -1 for missing, got dtype {data.dtype}")
    by_variable = np.ascontiguousarray(data.T)
    for v in range(n):
        column = by_variable[v]
        if len(column) and (column.min() < -1 or column.max() >= len(states[v])):
            row = int(np.argmax((column < -1) | (column >= len(states[v]))))
            raise ModelError(
                f"row {row} of the data has state {int(column[row])} for variable {variables[v]!r}, "
                f"expected -1 to {len(states[v]) - 1}"
            )
    return {variables[v]: Column(by_variable[v], None, states[v]) for v in range(n)}


def _network_states(network: Any) -> tuple[tuple[VariableName, ...], tuple[tuple[Any, ...], ...]]:
    names: Names = network._current_names()
    variables = tuple(names.variables)
    return variables, tuple(tuple(names.state_names(v, network._count_states(v))) for v in range(len(variables)))


def _same_length(columns: Mapping[Any, Column]) -> int:
    """Number of rows of all columns."""
    first: Any = None
    for name, column in columns.items():
        if first is None:
            first = name
        elif len(column) != len(columns[first]):
            raise ModelError(
                f"columns {first!r} and {name!r} have different numbers of rows: "
                f"{len(columns[first])} and {len(column)}"
            )
    return 0 if first is None else len(columns[first])


def _column(name: Any, column: Any) -> Column:
    return column if isinstance(column, Column) else read_column(name, column)


def encode(data: Any, network: Any = None, *, weights: npt.ArrayLike | VariableName | None = None) -> DataTable:
    """Turn data into a `DataTable` of state numbers.

    Parameters
    ----------
    data
        A dict of columns, a pandas or polars frame, a structured array, a `Samples` answer, a `DataTable`, or
        ``int[rows, n_variables]`` of state numbers when a network is given. None, NaN, NaT, pandas.NA and masked
        entries are missing, and so is -1 where states are plain numbers 0, 1, ....
    network
        A model whose variables and states the codes shall follow: variables without a column are wholly missing, other
        columns are ignored. Without one, every column is a variable and its states are the distinct values found:
        numbers and texts in rising order, categoricals in the order of their categories, booleans False and True.
    weights
        ``float[n_rows]``, how often each row counts, or the name of a column that holds that.

    Returns
    -------
    DataTable
        ``codes`` takes two bytes a cell; time is one dict lookup for each cell of text, a few passes for numbers.

    Examples
    --------
    >>> table = encode({"rain": ["no", "yes", None], "floor": [3, 1, 2], "n": [5, 2, 1]}, weights="n")
    >>> table
    DataTable(3 rows of 2 variables, 1 values missing, weight 8)
    >>> table.states
    (('no', 'yes'), (1, 2, 3))
    >>> table.codes.tolist()
    [[0, 1, -1], [2, 0, 1]]
    """
    if isinstance(data, DataTable) and network is None and weights is None:
        return data
    variables: tuple[VariableName, ...] = ()
    states: tuple[tuple[Any, ...], ...] = ()
    if network is not None:
        variables, states = _network_states(network)
        for v, named in zip(variables, states, strict=True):
            if len(named) > MAX_STATES:
                raise ModelError(f"variable {v!r} has {len(named)} states; data can speak of at most {MAX_STATES}")
    if isinstance(data, list | tuple) and network is not None:
        data = _array_of_rows(data)
    if isinstance(data, np.ndarray) and not data.dtype.names and network is not None:
        given = _matrix(data, variables, states)
    else:
        given = _read(data)
    by_name = isinstance(weights, str | int) and not isinstance(weights, bool)
    weight_column = _weight_column(given, weights) if by_name else None
    if network is None:
        columns = {check_name(k): _column(k, c) for k, c in given.items() if not (by_name and k == weights)}
        if not columns:
            raise ModelError("the data has no columns")
    else:
        if by_name and weights in variables:
            raise ModelError(f"weights name the column {weights!r}, which is a variable of the network")
        _check_spelling(variables, given)
        columns = {v: _column(v, given[v]) for v in variables if v in given}
        if variables and not columns:
            raise ModelError(
                f"no column of the data is a variable of the network: "
                f"columns {_some(given)}, variables {_some(variables)}"
            )
    n_rows = _same_length(columns)
    if weights is None and isinstance(data, DataTable):
        weights = data.weights
    elif weights is None and isinstance(data, Samples) and data.log_weights is not None:
        weights = data.weights * len(data)
    chosen = weights if weight_column is None else weight_column
    if network is None:
        coded = [discover_states(v, c) for v, c in columns.items()]
        variables, states = tuple(columns), tuple(s for s, _ in coded)
        codes = np.array([c for _, c in coded], np.int16).reshape(len(coded), n_rows)
    else:
        codes = np.full((len(variables), n_rows), -1, np.int16)
        for i, v in enumerate(variables):
            if v in columns:
                codes[i] = code_column(v, states[i], columns[v])
    checked = None if chosen is None else _check_weights(np.array(chosen), n_rows)  # type: ignore[arg-type]
    return DataTable(variables, states, codes, checked)


def _check_spelling(variables: Sequence[VariableName], given: Mapping[Any, Any]) -> None:
    """Raise when a variable without a column is there in another spelling: it would be taken for hidden."""
    absent = {v.strip().casefold(): v for v in variables if isinstance(v, str) and v not in given}
    for name in given if absent else ():
        meant = absent.get(name.strip().casefold()) if isinstance(name, str) else None
        if meant is not None and name not in variables:
            raise ModelError(f"the data has a column {name!r} and none for the variable {meant!r}: spell them alike")


def _array_of_rows(data: Any) -> npt.NDArray[Any]:
    try:
        return np.array(data)
    except ValueError:
        raise ModelError("data as rows of state numbers needs rows of equal length") from None


def _weight_column(given: Mapping[Any, Any], weights: Any) -> Any:
    if weights not in given:
        raise ModelError(f"weights name the column {weights!r}, which the data does not have: {_some(given)}")
    column = given[weights]
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _some(names: Iterable[Any]) -> str:
    listed = list(names)
    return ", ".join(repr(n) for n in listed[:6]) + (", ..." if len(listed) > 6 else "")
