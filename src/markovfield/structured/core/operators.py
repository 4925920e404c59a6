"""Linear operators from weights to log-potentials: products of features and states, and given terms.

Each has ``forward``, which takes weights to the cells of factors of one kind, and ``adjoint``, which takes counts of
cells to features. Neither writes a matrix out: what is kept are the features as they were given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from markovfield.arrays import FloatArray

__all__ = ["LinearTerms", "Operator", "TensorProduct"]


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
