"""Views of a sparse precision that iterative methods share: its edges, forests, and whether it is walk-summable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.gaussian.constrained_field import ConstrainedField
from markovfield.gaussian.gaussian_field import GaussianField

__all__ = ["Edges", "spectral_bounds", "without_constraints"]


def without_constraints(field: GaussianField, method: str) -> GaussianField:
    """The field, where it is proper and has no constraints; otherwise one sentence says who takes those."""
    if isinstance(field, ConstrainedField) and not field.plain:
        what = "constraints" if field.constraints.shape[0] else "directions that nothing holds"
        raise ModelError(f"{method} takes no {what}: use sparse_cholesky")
    return field


@dataclass(frozen=True, eq=False)
class Edges:
    """Entries of a precision off its diagonal, row by row.

    Attributes
    ----------
    diagonal
        ``float64[n]``.
    indptr, indices, values
        Entries ``indptr[i]`` to ``indptr[i + 1]`` are those of row i.
    reverse
        For each entry that of the other end.
    """

    diagonal: FloatArray
    indptr: IntArray
    indices: IntArray
    values: FloatArray
    reverse: IntArray

    @classmethod
    def of(cls, precision: Any) -> Edges:
        """Read a sparse symmetric matrix."""
        from scipy import sparse

        n = precision.shape[0]
        entries = precision.tocoo()
        i, j = (axis.astype(np.int64) for axis in entries.coords)
        off = i != j
        numbers = sparse.csr_array((np.arange(1, off.sum() + 1, dtype=np.int64), (i[off], j[off])), shape=(n, n))
        numbers.sort_indices()
        values = entries.data[off][numbers.data - 1]
        place = numbers.copy()
        place.data = np.arange(1, len(values) + 1, dtype=np.int64)
        turned = place.T.tocsr()
        turned.sort_indices()
        return cls(
            precision.diagonal(),
            numbers.indptr.astype(np.int64),
            numbers.indices.astype(np.int64),
            values,
            turned.data - 1,
        )

    @property
    def rows(self) -> IntArray:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.diagonal)), np.diff(self.indptr))

    def components(self) -> tuple[int, IntArray]:
        """How many connected components there are, and which one each variable is in."""
        from scipy.sparse.csgraph import connected_components

        count, which = connected_components(self.matrix(np.ones(len(self.values))), directed=False)
        return int(count), which.astype(np.int64)

    def is_forest(self) -> bool:
        """Whether no two paths join the same variables."""
        return len(self.values) // 2 == len(self.diagonal) - self.components()[0]

    def matrix(self, values: FloatArray) -> Any:
        """These entries with other values, as CSR."""
        from scipy import sparse

        n = len(self.diagonal)
        return sparse.csr_array((values, self.indices, self.indptr), shape=(n, n))

    def outside_in(self) -> IntArray:
        """An order in which, on a forest, every variable but one of each tree comes before just one neighbour."""
        from scipy.sparse.csgraph import breadth_first_order

        links = self.matrix(np.ones(len(self.values)))
        seen = np.zeros(len(self.diagonal), np.bool_)
        parts = []
        for root in np.unique(self.components()[1], return_index=True)[1]:
            part = breadth_first_order(links, int(root), directed=False, return_predecessors=False)
            seen[part] = True
            parts.append(part)
        return np.concatenate([*parts, np.zeros(0, np.int64)])[::-1].astype(np.int64)


def spectral_bounds(edges: Edges, steps: int = 200) -> tuple[float, float]:
    """Proven (lower, upper) bounds on the spectral radius of absolute partial correlations.

    Below one the field is walk-summable (Malioutov, Johnson and Willsky 2006), and belief propagation converges to the
    exact means. For any positive v, the radius lies between the least and the greatest ``(A v)_i / v_i`` of a connected
    component (Collatz and Wielandt); powers of ``I + A`` bring them together, and steps end once one is past one.
    """
    n = len(edges.diagonal)
    if not len(edges.values):
        return 0.0, 0.0
    scale = np.sqrt(edges.diagonal)
    correlations = edges.matrix(np.abs(edges.values) / scale[edges.rows] / scale[edges.indices])
    count, which = edges.components()
    v = np.ones(n)
    low, high = 0.0, np.inf
    for _ in range(steps):
        moved = correlations @ v
        ratio = moved / v
        high = min(high, float(ratio.max()))
        least = np.full(count, np.inf)
        np.minimum.at(least, which, ratio)
        low = max(low, float(least.max()))
        if high < 1 or low >= 1:
            break
        v = v + moved
        v /= v.max()
        v = np.maximum(v, 1e-200)
    return low, high
