"""What is missing from data that a network is fitted to, and warnings where that looks like a mistake."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from markovfield.exceptions import MissingDataWarning, ModelError
from markovfield.inference.core.convergence import warn_caller
from markovfield.learning.core.data import DataTable
from markovfield.names import VariableName

__all__ = ["missing_cells", "warn_of_missing"]

# Variables that one warning names.
MOST_NAMED = 5
# What pandas.read_csv takes for missing unless told otherwise.
READ_AS_MISSING = frozenset(
    {"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"}
    | {"N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)


def missing_cells(table: DataTable) -> dict[VariableName, int]:
    """How many rows have no value for each variable, of those that any row has none for.

    Examples
    --------
    >>> from markovfield.learning.core.data import encode
    >>> missing_cells(encode({"A": ["x", None, "y"], "B": [0, 1, 1]}))
    {'A': 1}
    """
    if not table.has_missing:
        return {}
    counts = (table.codes < 0).sum(axis=1).tolist()
    return {v: n for v, n in zip(table.variables, counts, strict=True) if n}


def warn_of_missing(table: DataTable, hidden: Iterable[VariableName]) -> None:
    """Warn of variables with no value in any row that are not said to be hidden, and of states that nothing shows.

    A state that never came up in a column with holes may be what the holes were: ``pandas.read_csv`` takes a state
    called "None" or "NA" for a missing value, and EM would then give it next to no probability.
    """
    meant = _checked(hidden, table)
    counts = missing_cells(table)
    nowhere = [v for v, n in counts.items() if n == table.n_rows and v not in meant]
    if nowhere:
        _warn(
            f"no row of the data has a value for {_named(nowhere)}: what has no column is taken to be hidden; "
            f"fit(..., hidden={nowhere[:MOST_NAMED]!r}) says that this is meant"
        )
    told = []
    for at, v in enumerate(table.variables):
        if not 0 < counts.get(v, 0) < table.n_rows:
            continue
        codes = table.codes[at]
        seen = np.bincount(codes[codes >= 0], minlength=len(table.states[at])) > 0
        unseen = [state for state, known in zip(table.states[at], seen.tolist(), strict=True) if not known]
        if unseen:
            told.append(
                f"the column of {v!r} has {counts[v]} missing values and nowhere the "
                f"state{'s' * (len(unseen) != 1)} {_named(unseen)}: {_reason(unseen)}"
            )
    more = f"; and so have {len(told) - MOST_NAMED} more columns" if len(told) > MOST_NAMED else ""
    for sentence in told[: MOST_NAMED - 1]:
        _warn(sentence)
    for sentence in told[MOST_NAMED - 1 : MOST_NAMED]:
        _warn(sentence + more)


def _reason(unseen: list[Any]) -> str:
    read = [state for state in unseen if isinstance(state, str) and state in READ_AS_MISSING]
    if read:
        return f"pandas.read_csv takes {read[0]!r} for a missing value, unless it is called with keep_default_na=False"
    return "if that is what the missing values stand for, write it into them, as EM will hardly expect it"


def _checked(hidden: Iterable[VariableName], table: DataTable) -> set[VariableName]:
    if isinstance(hidden, str | int) or not isinstance(hidden, Iterable):
        raise ModelError(f"fit(hidden=...) must be a list of variables, got {hidden!r}")
    meant = list(hidden)
    for v in meant:
        if v not in table.variables:
            raise ModelError(f"fit(hidden=...) names {v!r}, which is no variable of the network")
        if (table.codes[table.variables.index(v)] >= 0).any():
            raise ModelError(f"fit(hidden=...) names {v!r}, which the data has values for")
    return set(meant)


def _named(things: list[Any]) -> str:
    more = f" and {len(things) - MOST_NAMED} more" if len(things) > MOST_NAMED else ""
    return ", ".join(repr(thing) for thing in things[:MOST_NAMED]) + more


def _warn(text: str) -> None:
    warn_caller(text, MissingDataWarning)
