"""Kernels of inputs, and scores as sums over support vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield._validation import number
from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError

__all__ = ["InputKernel", "KernelExpansion"]

NAMES = ("linear", "rbf", "poly")
# Entries of inner products that are worked out at a time.
ENTRIES = 2**22


@dataclass(frozen=True)
class InputKernel:
    """An inner product of inputs.

    Parameters
    ----------
    kernel
        ``"linear"``, ``"rbf"`` (``exp(-gamma |a - b|^2)``), ``"poly"`` (``(1 + gamma <a, b>)^3``), or a function of two
        matrices ``[n, d]`` and ``[m, d]`` that gives all inner products ``[n, m]``.
    gamma
        Of ``"rbf"`` and ``"poly"``.
    constant
        Added to all inner products: that of a constant feature.

    Examples
    --------
    >>> InputKernel("poly", 2.0)(np.array([[1.0], [0.0]]), np.array([[0.5]])).tolist()
    [[8.0], [1.0]]
    """

    kernel: str | Callable[[Any, Any], Any] = "linear"
    gamma: float = 1.0
    constant: float = 0.0

    @classmethod
    def of(cls, kernel: Any, gamma: Any, rows: Any, constant: float, who: str) -> InputKernel:
        """What settings say, checked; gamma ``"scale"`` is 1 / (columns times variance of all entries)."""
        if not callable(kernel) and (not isinstance(kernel, str) or kernel not in NAMES):
            names = ", ".join(map(repr, NAMES))
            raise ModelError(f"kernel of {who} must be one of {names}, or a function of two matrices, got {kernel!r}")
        if gamma != "scale":
            return cls(kernel, number(gamma, f"gamma of {who}", above=0.0), constant)
        size = rows.shape[0] * rows.shape[1]
        variance = (float(_squares(rows).sum()) - float(rows.sum()) ** 2 / max(size, 1)) / max(size, 1)
        return cls(kernel, 1.0 / (rows.shape[1] * variance) if variance > 0.0 else 1.0, constant)

    def __call__(self, a: Any, b: Any) -> FloatArray:
        """All inner products, ``float64[n, m]``."""
        found = self.kernel(a, b) if callable(self.kernel) else a @ b.T
        products = np.asarray(found.toarray() if hasattr(found, "toarray") else found, np.float64)
        if products.shape != (a.shape[0], b.shape[0]):
            raise ModelError(f"the kernel must give shape {(a.shape[0], b.shape[0])}, got {products.shape}")
        if self.kernel == "rbf":
            distances = _squares(a)[:, None] + _squares(b)[None, :] - 2.0 * products
            products = np.exp(-self.gamma * np.maximum(distances, 0.0))
        elif self.kernel == "poly":
            products = (1.0 + self.gamma * products) ** 3
        return products + self.constant


def _squares(rows: Any) -> FloatArray:
    """The squared length of each row, dense or sparse."""
    if isinstance(rows, np.ndarray):
        return np.einsum("ij,ij->i", rows, rows)
    return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """``score of x and label = sum over support vectors of coefficient[vector, label] K(x, vector)``.

    Attributes
    ----------
    vectors
        ``float64[m, d]``, dense or sparse.
    coefficients
        ``float64[m, n_labels]``.
    """

    kernel: InputKernel
    vectors: Any
    coefficients: FloatArray

    @classmethod
    def of(cls, kernel: InputKernel, rows: Any, coefficients: FloatArray) -> KernelExpansion:
        """Rows whose coefficients are not all zero."""
        support = np.flatnonzero((coefficients != 0.0).any(axis=1))
        return cls(kernel, rows[support], np.ascontiguousarray(coefficients[support]))

    def scores(self, rows: Any) -> FloatArray:
        """Scores of all labels, ``float64[n, n_labels]``; blocks of inner products are let go again."""
        found = np.zeros((rows.shape[0], self.coefficients.shape[1]))
        size = max(1, ENTRIES // max(len(self.coefficients), 1))
        for a in range(0, len(found) if len(self.coefficients) else 0, size):
            found[a : a + size] = self.kernel(rows[a : a + size], self.vectors) @ self.coefficients
        return found

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What an archive holds; see `restored`."""
        if callable(self.kernel.kernel):
            raise ModelError("a kernel that is a function cannot be saved: a file holds numbers and names")
        about = {"kernel": self.kernel.kernel, "gamma": self.kernel.gamma, "constant": self.kernel.constant}
        arrays: dict[str, Any] = {"dual_coef": self.coefficients.ravel()}
        if isinstance(self.vectors, np.ndarray):
            arrays["support"] = self.vectors.ravel()
        else:
            own = self.vectors.tocsr()
            arrays["support"], arrays["support_columns"] = own.data, own.indices.astype(np.int64)
            arrays["support_offsets"] = own.indptr.astype(np.int64)
        return {**about, "shape": [int(n) for n in self.vectors.shape]}, arrays

    @classmethod
    def restored(cls, about: Any, arrays: Any, n_labels: int) -> KernelExpansion:
        """The expansion that an archive describes."""
        from scipy.sparse import csr_array

        try:
            n, d = about["shape"]
            kernel = InputKernel(str(about["kernel"]), float(about["gamma"]), float(about["constant"]))
            values = arrays["support"].astype(np.float64)
            coefficients = arrays["dual_coef"].astype(np.float64).reshape(n, n_labels)
            if "support_columns" in arrays:
                vectors: Any = csr_array((values, arrays["support_columns"], arrays["support_offsets"]), shape=(n, d))
                vectors.check_format()
            else:
                vectors = values.reshape(n, d)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"its support vectors do not fit: {error}") from None
        if kernel.kernel not in NAMES or not np.isfinite(coefficients).all() or not np.isfinite(values).all():
            raise FormatError("its support vectors are not those of a kernel")
        return cls(kernel, vectors, coefficients)
