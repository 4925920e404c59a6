"""A sparse factorisation of a symmetric positive definite matrix: solves, determinant, samples, inverse's diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray

__all__ = ["SparseFactor"]


class SparseFactor:
    """``P Lambda P' = L D L'`` by SuperLU with diagonal pivots: a sparse Cholesky factorisation in all but name."""

    def __init__(self, matrix: Any) -> None:
        from scipy.sparse.linalg import splu

        self.n = matrix.shape[0]
        self.pivots: FloatArray = np.zeros(0)
        diagonal = matrix.diagonal()
        # Whether the matrix is positive definite; if not, nothing may be asked.
        self.ok = bool((diagonal > 0).all())
        if not self.ok or not self.n:
            return
        # Scaled to a unit diagonal, so that "too small a pivot" has one meaning for all units of measurement.
        self.scale = np.sqrt(diagonal)
        scaled = matrix.copy()
        scaled.data = scaled.data / self.scale[scaled.indices] / np.repeat(self.scale, np.diff(scaled.indptr))
        try:
            self.lu = splu(scaled, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:  # exactly singular
            self.ok = False
            return
        # Off the diagonal SuperLU pivots only where a diagonal pivot vanished.
        self.place = self.lu.perm_c
        self.pivots = self.lu.U.diagonal()
        self.ok = bool(np.array_equal(self.lu.perm_r, self.place) and self.pivots.min() > self.n * 2.0**-52)

    def solve(self, right: FloatArray) -> FloatArray:
        """``Lambda^-1 right`` for one or several columns."""
        if not self.n:
            return np.zeros(right.shape)
        scale = self.scale if right.ndim == 1 else self.scale[:, None]
        return self.lu.solve(np.ascontiguousarray(right / scale)) / scale

    def columns(self, positions: Sequence[int]) -> FloatArray:
        """Columns of the inverse, ``float64[n, k]``."""
        right = np.zeros((self.n, len(positions)))
        right[positions, np.arange(len(positions))] = 1.0
        return self.solve(right)

    def log_determinant(self) -> float:
        """Of the matrix that was factored."""
        return float(np.log(self.pivots).sum() + 2 * np.log(self.scale).sum()) if self.n else 0.0

    def colour(self, white: FloatArray) -> FloatArray:
        """Rows of white noise turned into rows with the inverse as covariance: ``L' y = D^-1/2 z``."""
        from scipy import sparse
        from scipy.sparse.linalg import spsolve_triangular

        if not white.size:
            return white
        upper = sparse.csr_array(self.lu.L.T)
        right = np.ascontiguousarray(white.T) / np.sqrt(self.pivots)[:, None]
        solved = spsolve_triangular(upper, right, lower=False, unit_diagonal=True)
        return np.ascontiguousarray((solved[self.place] / self.scale[:, None]).T)

    def inverse_diagonal(self) -> FloatArray:
        """Diagonal of the inverse by the Takahashi equations, on the pattern of L only.

        From the last column to the first, each column's part of the inverse follows from that of its parent in the
        elimination tree, which holds all rows of it. The part of a column is dropped once its children are done.
        """
        lower = self.lu.L.tocsc()
        lower.sort_indices()
        bounds = lower.indptr.tolist()
        below = [lower.indices[bounds[j] + 1 : bounds[j + 1]] for j in range(self.n)]
        values = [lower.data[bounds[j] + 1 : bounds[j + 1]] for j in range(self.n)]
        waiting = [0] * self.n
        for j in range(self.n):
            if len(below[j]):
                parent = int(below[j][0])
                waiting[parent] += 1
                # An entry that cancelled may be missing from L although the equations visit it.
                full = np.union1d(below[parent], below[j][1:])
                if len(full) != len(below[parent]):
                    padded = np.zeros(len(full))
                    padded[np.searchsorted(full, below[parent])] = values[parent]
                    below[parent], values[parent] = full, padded
        result = np.empty(self.n)
        fronts: dict[int, FloatArray] = {}
        for j in range(self.n - 1, -1, -1):
            rows, weights = below[j], values[j]
            front = np.empty((len(rows) + 1, len(rows) + 1))
            front[0, 0] = 1.0 / self.pivots[j]
            if len(rows):
                parent = int(rows[0])
                at = np.concatenate([[0], 1 + np.searchsorted(below[parent], rows[1:])])
                known = fronts[parent][at[:, None], at]
                column = -known @ weights
                front[1:, 1:], front[0, 1:], front[1:, 0] = known, column, column
                front[0, 0] -= weights @ column
                waiting[parent] -= 1
                if not waiting[parent]:
                    del fronts[parent]
            result[j] = front[0, 0]
            if waiting[j]:
                fronts[j] = front
        return result[self.place] / self.scale**2
