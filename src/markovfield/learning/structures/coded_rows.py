"""Rows of data as the columns that pairwise models read: contrasts of states, equal rows counted once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.learning.core.data import DataTable

__all__ = ["CodedRows", "contrasts_of"]

MOST_DRAWS = 10**7
"""Rows with whole weights up to this total are resampled one by one; above it, row by row with their weights."""


def contrasts_of(n_states: int) -> FloatArray:
    """Orthonormal contrasts ``float64[K, K - 1]`` (Helmert): columns add up to zero. Of two states: -1 and +1 by
    the square root of 2.

    Examples
    --------
    >>> contrasts_of(2).round(4).tolist()
    [[-0.7071], [0.7071]]
    """
    k = n_states
    found = np.zeros((k, k - 1))
    for i in range(k - 1):
        found[: i + 1, i] = -1.0
        found[i + 1, i] = i + 1.0
        found[:, i] /= np.sqrt((i + 1.0) * (i + 2.0))
    return found


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Complete rows of the variables that vary, as `Regressions` reads them.

    Attributes
    ----------
    table
        Where they come from.
    kept, seen
        Positions of the variables with more than one state among the rows that count, and those states' numbers.
    codes
        ``int16[p, rows]``: states, numbered among those seen.
    features, offsets
        ``float64[D, rows]``: rows ``offsets[s]`` to ``offsets[s + 1]`` are the contrasts of variable s. Eight bytes for
        each row and state but one.
    contrasts
        Of each variable, ``float64[K, K - 1]``.
    weights
        ``float64[rows]``.
    """

    table: DataTable
    kept: tuple[int, ...]
    seen: tuple[npt.NDArray[np.intp], ...]
    codes: npt.NDArray[np.int16]
    features: FloatArray
    offsets: npt.NDArray[np.int64]
    contrasts: tuple[FloatArray, ...]
    weights: FloatArray
    _member: npt.NDArray[np.intp]
    _draws: FloatArray

    @classmethod
    def of(cls, table: DataTable, what: str) -> CodedRows:
        """Code a table; a missing value is an error of the method ``what``."""
        if table.has_missing:
            v = int(np.argmax((table.codes < 0).any(axis=1)))
            row = int(np.argmax(table.codes[v] < 0))
            raise ModelError(
                f"{what} needs complete data, but variable {table.variables[v]!r} is missing in row {row}; "
                "impute it, or keep the complete rows only (drop_missing=True)"
            )
        draws = np.ones(table.n_rows) if table.weights is None else table.weights
        if table.weights is not None and table.total_weight <= 1.0 < table.n_rows:
            raise ModelError(
                f"weights count rows, and these add up to {table.total_weight:.3g} for {table.n_rows} rows; "
                "multiply them by the number of rows"
            )
        first, member = _distinct(table)
        weights = np.bincount(member, draws, len(first)).astype(np.float64)
        if table.weights is not None and draws.sum() <= MOST_DRAWS and np.array_equal(draws, np.floor(draws)):
            member = np.repeat(member, draws.astype(np.intp))
            draws = np.ones(len(member))
        kept, seen, codes = [], [], []
        for v in range(table.n_variables):
            column = table.codes[v][first]
            states = np.unique(column[weights > 0])
            if len(states) > 1:
                kept.append(v)
                seen.append(states.astype(np.intp))
                codes.append(np.searchsorted(states, column))
        contrasts = tuple(contrasts_of(len(s)) for s in seen)
        offsets = np.cumsum([0, *(len(s) - 1 for s in seen)]).astype(np.int64)
        features = np.empty((int(offsets[-1]), len(first)))
        for i, column in enumerate(codes):
            # A row that does not count may have a state that none has that does.
            codes[i] = np.minimum(column, len(seen[i]) - 1)
            features[offsets[i] : offsets[i + 1]] = contrasts[i][codes[i]].T
        kind = np.array(codes, np.int16).reshape(len(kept), len(first))
        return cls(table, tuple(kept), tuple(seen), kind, features, offsets, contrasts, weights, member, draws)

    @property
    def widths(self) -> npt.NDArray[np.int64]:
        """One less than the states of each variable."""
        return np.diff(self.offsets)

    @property
    def scales(self) -> FloatArray:
        """``float64[p, p]``: entry [s, t] times the Frobenius norm of a centred table over s and t is the square root
        of its (K - 1)(L - 1) degrees of freedom times the root mean square of its K L cells; of two spins their
        coupling."""
        share: FloatArray = np.sqrt(self.widths / (self.widths + 1.0))
        return np.outer(share, share)

    @property
    def n_draws(self) -> int:
        """How many draws there are to choose from: rows, each as often as its weight says where that is whole."""
        return len(self._member)

    def weights_of(self, draws: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> FloatArray:
        """Weights of the rows that make up some of the draws."""
        return np.bincount(self._member[draws], self._draws[draws], len(self.weights)).astype(np.float64)


def _distinct(table: DataTable) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows that stand for all, and which of them each row is; all rows where few are equal."""
    n, rows = table.codes.shape

    def unique(count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        whole = np.ascontiguousarray(table.codes[:, :count].T).view(f"V{2 * n}").ravel()
        _, first, member = np.unique(whole, return_index=True, return_inverse=True)
        return first, member

    tried = min(rows, 4096)
    if 2 * len(unique(tried)[0]) <= tried:
        first, member = unique(rows)
        if 2 * len(first) <= rows:
            return first, member
    return np.arange(rows), np.arange(rows)
