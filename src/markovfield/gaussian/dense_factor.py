"""Cholesky factors of small matrices by LAPACK: nothing to plan, nothing to compile."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.arrays import FloatArray

__all__ = ["DenseFactor", "dense_inverse"]

MOST_ALONE = 64
"""Up to here OpenBLAS multiplies on one thread; its dpotri does not, and waits 0.1 s for another on a busy machine."""


class DenseFactor:
    """``Lambda = L L'`` with a dense lower triangle, in the order of the variables."""

    def __init__(self, matrix: FloatArray, tolerance: float) -> None:
        from scipy.linalg import lapack

        self._lapack: Any = lapack
        self.matrix = matrix
        self.lower: FloatArray
        self.lower, failed = lapack.dpotrf(matrix, lower=1, clean=1)
        # The first variable without a positive pivot, or -1.
        self.failed = failed - 1
        if not failed:
            weak = np.diag(self.lower) ** 2 <= tolerance * np.diag(matrix)
            self.failed = int(np.argmax(weak)) if weak.any() else -1

    def solve(self, right: FloatArray) -> FloatArray:
        """``Lambda^-1 right``."""
        if len(self.lower) == 1:  # without the rounding of a root
            return np.asarray(right / self.matrix[0, 0])
        found: FloatArray = self._lapack.dpotrs(self.lower, right, lower=1)[0]
        return found

    def triangular(self, right: FloatArray, *, transposed: bool) -> FloatArray:
        """``L^-1 right``, or ``L^-T right``."""
        found: FloatArray = self._lapack.dtrtrs(self.lower, right, lower=1, trans=int(transposed))[0]
        return found

    def log_determinant(self) -> float:
        """Of the matrix."""
        return 2.0 * float(np.log(np.diag(self.lower)).sum())

    def inverse(self) -> FloatArray:
        """All of it, ``float64[n, n]``."""
        if len(self.lower) == 1:
            return 1.0 / self.matrix
        if len(self.lower) <= MOST_ALONE:
            root = self.triangular(np.eye(len(self.lower)), transposed=False)
            return np.asarray(root.T @ root)
        half: FloatArray = self._lapack.dpotri(self.lower, lower=1)[0]
        return np.tril(half) + np.tril(half, -1).T


def dense_inverse(matrix: FloatArray) -> FloatArray | None:
    """Inverse of a symmetric matrix, itself symmetric to the last bit, or None when it is not positive definite."""
    n = len(matrix)
    diagonal = np.diag(matrix)
    if not (diagonal > 0).all():
        return None
    scale = np.sqrt(diagonal)
    try:
        factor = np.linalg.cholesky(matrix / scale[:, None] / scale)
    except np.linalg.LinAlgError:
        return None
    if (np.diag(factor) ** 2 <= n * 2.0**-52).any():
        return None
    half = np.linalg.inv(factor) / scale
    inverse = half.T @ half
    return (inverse + inverse.T) / 2
