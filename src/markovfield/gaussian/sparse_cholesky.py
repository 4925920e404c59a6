"""Sparse Cholesky factorisation: a plan for a pattern, factors of matrices with it, and what factors answer.

Three steps, each usable by itself::

    plan = analyse(matrix)                       # order, fill, memory, operations: from the pattern alone
    factor = plan.factorise(matrix.data)         # Lambda = L L', rows of L in the order of the variables
    factor.solve(b), factor.log_determinant      # Lambda^-1 b, for one or many columns
    factor.upper_solve(z)                        # L^-T z: draws with covariance Lambda^-1 from white noise
    factor.lower_solve(b)                        # L^-1 b: whitens; b' Lambda^-1 b is the squared length of it
    factor.selected_inverse().on_pattern         # entries of the inverse where the matrix has entries
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import MemoryLimitError, ModelError

__all__ = ["CholeskyPlan", "SelectedInverse", "SparseFactor", "analyse"]

MOST_DENSE = 128
"""Matrices of at most this order are factored by LAPACK: nothing is planned, and nothing compiled."""
DEFAULT_MEMORY_LIMIT = 8 * 2**30
PLANS_KEPT = 16


@dataclass(frozen=True, eq=False)
class SelectedInverse:
    """Entries of the inverse on the pattern of the factor, which holds that of the matrix.

    Attributes
    ----------
    diagonal
        ``float64[n]``: the variances.
    on_pattern
        ``float64[nnz]``: the inverse at each stored entry of the matrix, in the order of ``matrix.data``. The gradient
        of ``log det`` with respect to the entries, so ``sum(on_pattern * dLambda.data)`` is a derivative of it.
    """

    diagonal: FloatArray
    on_pattern: FloatArray


class CholeskyPlan:
    """All of a factorisation that needs no numbers; made by `analyse`."""

    def __init__(self, matrix: Any) -> None:
        self.n: int = matrix.shape[0]
        self._indptr, self._indices = matrix.indptr, matrix.indices
        self.method = "dense" if self.n <= MOST_DENSE else "SuperLU"
        self.fill: int = self.n * (self.n + 1) // 2
        self.bytes: int = 8 * self.fill
        self.flops: float = self.n**3 / 3.0

    def describe(self) -> str:
        """One sentence: order, entries of the factor, bytes, operations."""
        return f"{self.method}: {self.fill} entries, {self.bytes} bytes, {self.flops:.3g} operations"

    def check_memory(self, memory_limit: float | None = None) -> None:
        """Raise `MemoryLimitError` when the factor would need more bytes than ``memory_limit`` (8 GiB when None)."""
        limit = DEFAULT_MEMORY_LIMIT if memory_limit is None else memory_limit
        if self.method == "dense" and self.bytes > limit:
            raise MemoryLimitError(f"the factor needs {self.bytes} bytes, more than the {limit:.0f} allowed")

    def factorise(
        self, values: npt.ArrayLike, *, names: Sequence[Any] | None = None, memory_limit: float | None = None
    ) -> SparseFactor:
        """Factor the matrix with these values, ``float64[nnz]`` in the order of ``matrix.data``.

        One that is not positive definite is a `ModelError` which names a variable (of ``names``, or by position).
        """
        from scipy import sparse

        self.check_memory(memory_limit)
        data = np.asarray(values, np.float64)
        return SparseFactor(self, sparse.csc_array((data, self._indices, self._indptr), (self.n, self.n)), names)


class SparseFactor:
    """``Lambda = L L'``, where ``L`` is lower triangular but for the order of its rows; made by `CholeskyPlan`."""

    def __init__(self, plan: CholeskyPlan, matrix: Any, names: Sequence[Any] | None) -> None:
        from markovfield.gaussian._sparse_factor import SparseFactor as Interim

        self.plan = plan
        self._matrix = matrix
        self._factor = Interim(matrix)
        if not self._factor.ok:
            raise ModelError("the precision is not positive definite")

    @property
    def log_determinant(self) -> float:
        """Of the matrix that was factored."""
        return self._factor.log_determinant()

    def solve(self, right: FloatArray) -> FloatArray:
        """``Lambda^-1 right``, of shape ``[n]`` or ``[n, k]``."""
        return self._factor.solve(right)

    def upper_solve(self, white: FloatArray) -> FloatArray:
        """``L^-T white``, of shape ``[n]`` or ``[n, k]``: columns with covariance ``Lambda^-1`` from white noise."""
        columns = white if white.ndim == 2 else white[:, None]
        return self._factor.colour(np.ascontiguousarray(columns.T)).T.reshape(white.shape)

    def lower_solve(self, right: FloatArray) -> FloatArray:
        """``L^-1 right``, of shape ``[n]`` or ``[n, k]``; its squared length is ``right' Lambda^-1 right``."""
        raise NotImplementedError

    def columns(self, positions: Sequence[int] | IntArray) -> FloatArray:
        """Columns of the inverse, ``float64[n, k]``."""
        right = np.zeros((self.plan.n, len(positions)))
        right[positions, np.arange(len(positions))] = 1.0
        return self.solve(right)

    def selected_inverse(self) -> SelectedInverse:
        """The inverse on the pattern of the matrix, by the Takahashi equations; no dense inverse is made."""
        from scipy import sparse

        matrix = sparse.csc_array(self._matrix)
        columns = np.repeat(np.arange(self.plan.n), np.diff(matrix.indptr))
        inverse = self.columns(np.arange(self.plan.n))
        return SelectedInverse(self._factor.inverse_diagonal(), inverse[matrix.indices, columns])


_PLANS: OrderedDict[bytes, CholeskyPlan] = OrderedDict()


def analyse(
    matrix: Any, *, coordinates: IntArray | None = None, order: Sequence[int] | IntArray | None = None
) -> CholeskyPlan:
    """Plan the factorisation of all matrices with a pattern; the same pattern is planned once.

    Parameters
    ----------
    matrix
        ``[n, n]``, a SciPy CSC array with a symmetric pattern, both triangles stored; values do not matter.
    coordinates
        ``int64[n, d]``: where each variable lies on a lattice, for nested dissection; found where it can be when None.
    order
        A permutation of ``0 .. n-1``, the order of elimination, in place of one found.

    Notes
    -----
    Planning allocates nothing of the size of the factor.
    """
    key = blake2b(np.ascontiguousarray(matrix.indptr).tobytes(), digest_size=16)
    key.update(np.ascontiguousarray(matrix.indices).tobytes())
    name = key.digest()
    if name not in _PLANS:
        _PLANS[name] = CholeskyPlan(matrix)
        while len(_PLANS) > PLANS_KEPT:
            _PLANS.popitem(last=False)
    _PLANS.move_to_end(name)
    return _PLANS[name]
