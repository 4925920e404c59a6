"""Linear operators from weights to log-potentials: products of features and states, and given terms.

Each has ``forward``, which takes weights to the cells of factors of one kind, and ``adjoint``, which takes counts of
cells to features. Neither writes a matrix out: what is kept are the features as they were given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of

__all__ = ["LinearTerms", "Operator", "TensorProduct", "entries_of", "rows_of"]


class Operator(Protocol):
    """From so many weights to so many cells, and back."""

    @property
    def n_weights(self) -> int:
        """Weights it takes."""
        ...

    @property
    def n_cells(self) -> int:
        """Cells it makes."""
        ...

    def forward(self, w: FloatArray) -> FloatArray:
        """Log-potentials."""
        ...

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Features of counts of cells."""
        ...


@dataclass(frozen=True, eq=False)
class TensorProduct:
    """``table of row i = F[i] W M'``: features of inputs times features of states (Murphy 19.6.2.5).

    Attributes
    ----------
    n_rows, n_columns
        Rows of tables, and cells in each.
    features
        ``F``: ``float64[n_rows, k]``, dense or sparse; None is the identity, tables that are weights themselves.
    states
        ``M``: ``float64[n_columns, m]``, dense or sparse: the features of each cell; None is the identity, a weight
        for each cell.

    Examples
    --------
    >>> import numpy as np
    >>> potts = TensorProduct(2, 4, np.array([[1.0], [0.5]]), np.array([[1.0], [0.0], [0.0], [1.0]]))
    >>> potts.forward(np.array([3.0])).tolist()
    [3.0, 0.0, 0.0, 3.0, 1.5, 0.0, 0.0, 1.5]
    >>> potts.adjoint(np.ones(8)).tolist()
    [3.0]
    """

    n_rows: int
    n_columns: int
    features: Any = None
    states: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Of the weights: features of inputs by features of states."""
        k = self.n_rows if self.features is None else self.features.shape[1]
        return k, self.n_columns if self.states is None else self.states.shape[1]

    @property
    def n_weights(self) -> int:
        """Weights it takes."""
        return self.shape[0] * self.shape[1]

    @property
    def n_cells(self) -> int:
        """Cells it makes."""
        return self.n_rows * self.n_columns

    def forward(self, w: FloatArray) -> FloatArray:
        """Log-potentials, row after row."""
        tables = w.reshape(self.shape)
        if self.states is not None:
            tables = (self.states @ tables.T).T
        return np.asarray(tables if self.features is None else self.features @ tables).ravel()

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Features of counts of cells."""
        counts = cells.reshape(self.n_rows, self.n_columns)
        if self.features is not None:
            counts = self.features.T @ counts
        return np.asarray(counts if self.states is None else counts @ self.states).ravel()

    def rows(self, cells: IntArray) -> Any:
        """``float64[len(cells), n_weights]``, sparse: what some cells are made of."""
        from scipy.sparse import csr_array

        sizes, columns, values = self.entries(cells)
        offsets = offsets_of(sizes)
        return csr_array((values, columns, offsets), shape=(len(sizes), self.n_weights))

    def entries(self, cells: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The same as plain arrays: how long each row is, columns and values."""
        row, column = np.divmod(np.asarray(cells, np.int64), self.n_columns)
        n_inputs, inputs, of_inputs = _gathered(self._features, row)
        n_states, states, of_states = _gathered(self._states, column)
        # Every feature of the input times every feature of the state.
        of_input = np.repeat(np.arange(len(row)), n_inputs)
        repeats = n_states[of_input]
        left = np.repeat(np.arange(len(inputs)), repeats)
        first = (np.cumsum(n_states) - n_states)[of_input]
        right = np.repeat(first - (np.cumsum(repeats) - repeats), repeats) + np.arange(len(left))
        return n_inputs * n_states, inputs[left] * self.shape[1] + states[right], of_inputs[left] * of_states[right]

    @cached_property
    def _features(self) -> Any:
        return _sparse(self.features, self.n_rows)

    @cached_property
    def _states(self) -> Any:
        return _sparse(self.states, self.n_columns)


@dataclass(frozen=True, eq=False)
class LinearTerms:
    """``cells = terms w``: a weight for each of a few given terms, such as energies.

    Attributes
    ----------
    terms
        ``float64[n_cells, k]``, dense or sparse.
    """

    terms: Any

    @property
    def n_weights(self) -> int:
        """Weights it takes."""
        return int(self.terms.shape[1])

    @property
    def n_cells(self) -> int:
        """Cells it makes."""
        return int(self.terms.shape[0])

    def forward(self, w: FloatArray) -> FloatArray:
        """Log-potentials."""
        return np.asarray(self.terms @ w)

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Features of counts of cells."""
        return np.asarray(self.terms.T @ cells)

    def rows(self, cells: IntArray) -> Any:
        """``float64[len(cells), n_weights]``, sparse: what some cells are made of."""
        return _sparse_rows(_sparse(self.terms, self.n_cells), cells)


def entries_of(operator: Operator, cells: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """What some cells are made of: how many weights each, their numbers, and what each is multiplied with."""
    if hasattr(operator, "entries"):
        found: tuple[IntArray, IntArray, FloatArray] = operator.entries(cells)
        return found
    rows = rows_of(operator, cells)
    return np.diff(rows.indptr).astype(np.int64), rows.indices.astype(np.int64), rows.data


def rows_of(operator: Operator, cells: IntArray) -> Any:
    """``float64[len(cells), n_weights]``, sparse: what some cells are made of.

    An operator that has no ``rows`` is asked cell by cell, by its adjoint, which is for small ones.
    """
    from scipy.sparse import csr_array

    if hasattr(operator, "rows"):
        return operator.rows(cells)
    found = []
    for cell in np.asarray(cells).tolist():
        unit = np.zeros(operator.n_cells)
        unit[cell] = 1.0
        found.append(operator.adjoint(unit))
    return csr_array(np.array(found).reshape(len(found), operator.n_weights))


def _sparse(matrix: Any, n: int) -> Any:
    """A matrix as sparse rows; None is the identity."""
    from scipy.sparse import csr_array, eye_array

    return csr_array(eye_array(n)) if matrix is None else csr_array(matrix)


def _gathered(matrix: Any, rows: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Some rows of a sparse matrix, one after the other: their lengths, columns and values."""
    first = matrix.indptr[rows].astype(np.int64)
    sizes = matrix.indptr[rows + 1] - first
    which = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    return sizes, matrix.indices[which].astype(np.int64), matrix.data[which]


def _sparse_rows(matrix: Any, rows: IntArray) -> Any:
    return matrix[np.asarray(rows, np.int64)]
