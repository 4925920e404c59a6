"""A Gaussian on a subspace: a precision that may be singular in known directions, under linear constraints.

``p(x)`` is proportional to ``exp(b.x - x.Q.x / 2)`` where ``A x = e``. What the precision leaves open (its null space)
must be held by the constraints. A few pivots on the diagonal make a matrix that can be factored, and both they and the
constraints are accounted for by a matrix as small as their number: with ``Q = R - E E'``, ``B = [E, A']`` and
``S = B' R^-1 B - diag(I, 0)``,

    mean = R^-1 b - W S^-1 (B' R^-1 b - (0, e)),    covariance = R^-1 - W S^-1 W',    W = R^-1 B,

and the bordered matrix [[Q, A'], [A, 0]] has the determinant ``det R det S`` up to its sign (Rue and Held 2005, section
2.3, where conditioning by kriging is the case without pivots).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError, ModelError
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.names import Names

__all__ = ["Subspace", "independent_rows", "open_directions"]

MOST_BORDER = 2**27
"""Numbers in the columns beside the matrix: sites times constraints and pivots. A gigabyte."""
SMALL = 1e-9
"""Directions weaker than this share of the strongest count as absent."""


def open_directions(null_space: FloatArray, held: Any) -> FloatArray:
    """Of the directions that a precision leaves open, those that no held site touches: ``float64[n, k]``, orthonormal.

    ``null_space`` is ``float64[n, k]`` with orthonormal columns, ``held`` a mask or positions.
    """
    if not null_space.shape[1]:
        return null_space
    # The triangle of the held rows has their singular values, and is as small as the number of directions.
    rows = np.linalg.qr(null_space[held], mode="r")
    _, values, right = np.linalg.svd(rows, full_matrices=True)
    scale = np.sqrt(len(null_space))  # a direction of unit length has entries of about 1 / sqrt(n)
    strong = int((values * scale > SMALL).sum())
    return np.asarray(null_space @ right[strong:].T)


def independent_rows(matrix: Any, values: FloatArray) -> tuple[Any, FloatArray]:
    """The rows of ``A x = e`` that say something new; rows that contradict them are impossible evidence."""
    m = matrix.shape[0]
    if not m:
        return matrix, values
    dense = matrix.toarray()
    size = np.sqrt((dense**2).sum(axis=1))
    kept: list[int] = []
    basis = np.zeros((0, dense.shape[1]))
    coordinates: list[FloatArray] = []
    for row in range(m):
        rest = dense[row].copy()
        along = basis @ rest
        rest -= along @ basis
        again = basis @ rest  # twice is enough
        rest -= again @ basis
        length = float(np.sqrt(rest @ rest))
        # What the rows before make of this one's value.
        told = float((along + again) @ np.array([c[0] for c in coordinates])) if kept else 0.0
        if length <= SMALL * max(size[row], np.finfo(float).tiny):
            if abs(values[row] - told) > 1e-8 * max(1.0, abs(values[row]), size[row]):
                raise ImpossibleEvidenceError(
                    f"constraint {row} contradicts the evidence or the constraints before it: what it leaves is "
                    f"{values[row]:.6g}, and it must be {told:.6g}"
                )
            continue
        kept.append(row)
        basis = np.vstack([basis, rest / length])
        coordinates.append(np.array([(values[row] - told) / length]))
    return matrix[kept], values[kept]


class Subspace:
    """Means, variances, draws and log Z of a Gaussian whose precision may be singular, under constraints.

    Parameters
    ----------
    precision, information, names
        As of a `GaussianField`; the precision positive semidefinite.
    null_space
        ``float64[n, k]``: orthonormal directions that the precision leaves open.
    constraints, values
        ``A``, sparse ``[m, n]`` with independent rows, and ``e``, ``float64[m]``.
    """

    def __init__(
        self,
        precision: Any,
        information: FloatArray,
        names: Names,
        null_space: FloatArray,
        constraints: Any,
        values: FloatArray,
    ) -> None:
        from scipy import linalg, sparse

        n, k, m = len(information), null_space.shape[1], constraints.shape[0]
        if n * (k + m) > MOST_BORDER:
            raise MemoryLimitError(
                f"{k} open directions and {m} constraints of {n} variables take {8 * n * (k + m) / 1e9:.3g} GB, more "
                f"than the {8 * MOST_BORDER / 1e9:.3g} GB allowed"
            )
        self.precision, self.information, self.names = precision, information, names
        self.values, self.n, self.n_pivots, self.n_constraints = values, n, k, m
        self._check_held(null_space, constraints)
        pivots = linalg.qr(null_space.T, mode="r", pivoting=True)[1][:k] if k else np.zeros(0, np.int64)
        strength = precision.diagonal()[pivots]
        strength = np.where(strength > 0, strength, 1.0)
        added = sparse.csc_array((strength, (pivots, pivots)), shape=(n, n))
        self.border = np.zeros((n, k + m))
        self.border[pivots, np.arange(k)] = np.sqrt(strength)
        if m:
            self.border[:, k:] = constraints.T.toarray()
        self.base = GaussianField.trusted(precision + added if k else precision.copy(), information, names)

    def _check_held(self, null_space: FloatArray, constraints: Any) -> None:
        """Raise where a direction is open that no constraint holds."""
        if not null_space.shape[1]:
            return
        touched = constraints @ null_space
        _, values, right = np.linalg.svd(np.atleast_2d(touched), full_matrices=True)
        rank = int((values > SMALL * max(np.abs(touched).max(initial=0.0), np.finfo(float).tiny)).sum())
        if rank < null_space.shape[1]:
            free = null_space @ right[-1]
            name = self.names.variables[int(np.argmax(np.abs(free)))]
            count = null_space.shape[1] - rank
            raise ModelError(
                f"the field is intrinsic and leaves {count} direction{'s' * (count != 1)} open, among others where "
                f"variable {name!r} is: observe a variable of it, or add a constraint such as sum_to_zero()"
            )

    @cached_property
    def _answers(self) -> FloatArray:
        """``W = R^-1 B``."""
        return np.asarray(self.base._factor().solve(self.border))

    @cached_property
    def _small(self) -> FloatArray:
        """``S``."""
        small = self.border.T @ self._answers
        small[np.arange(self.n_pivots), np.arange(self.n_pivots)] -= 1.0
        return (small + small.T) / 2

    @cached_property
    def mean(self) -> FloatArray:
        """``float64[n]``."""
        plain = self.base.mean
        if not self.border.shape[1]:
            return plain
        off = self.border.T @ plain
        off[self.n_pivots :] -= self.values
        return plain - self._answers @ np.linalg.solve(self._small, off)

    @cached_property
    def variances(self) -> FloatArray:
        """``float64[n]``."""
        plain = self.base.variances
        if not self.border.shape[1]:
            return plain
        lost = np.linalg.solve(self._small, self._answers.T)
        return np.maximum(plain - np.einsum("nk,kn->n", self._answers, lost), 0.0)

    def covariance_columns(self, positions: Any) -> FloatArray:
        """``float64[n, len(positions)]``."""
        right = np.zeros((self.n, len(positions)))
        right[positions, np.arange(len(positions))] = 1.0
        columns = np.asarray(self.base._factor().solve(right))
        if not self.border.shape[1]:
            return columns
        return columns - self._answers @ np.linalg.solve(self._small, self._answers[positions].T)

    def score(self, x: FloatArray) -> float:
        """``b.x - x.Q.x / 2``."""
        return float(x @ self.information - 0.5 * x @ (self.precision @ x))

    @cached_property
    def log_partition(self) -> float:
        """log of the integral of exp(score) where ``A x = e``, as a density of ``A x`` at ``e``."""
        if not self.border.shape[1]:
            return self.base.log_partition
        quadratic = float(self.base.information @ self.base.mean)
        # log det R, from the log Z of its field.
        determinant = self.n * np.log(2 * np.pi) + quadratic - 2 * self.base.log_partition
        determinant += float(np.linalg.slogdet(self._small)[1])
        return self.score(self.mean) + 0.5 * ((self.n - self.n_constraints) * np.log(2 * np.pi) - determinant)

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        """``float64[size, n]``: draws of what the pivots read, then the rest given that and the constraints."""
        k = self.n_pivots
        if not self.border.shape[1]:
            return self.base.sample(size, rng)
        wanted = np.tile(np.concatenate([np.zeros(k), self.values]), (size, 1))
        if k:
            pivots = np.argmax(self.border[:, :k], axis=0)
            strength = self.border[pivots, np.arange(k)]
            spread = self.covariance_columns(pivots)[pivots] * strength[:, None] * strength
            values, vectors = np.linalg.eigh((spread + spread.T) / 2)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            wanted[:, :k] = rng.standard_normal((size, k)) @ root.T + self.mean[pivots] * strength
        drawn = self.base.sample(size, rng)
        gram = self.border.T @ self._answers
        off = drawn @ self.border - wanted
        # A constraint may repeat what a pivot reads.
        return drawn - off @ np.linalg.pinv((gram + gram.T) / 2, rcond=1e-12, hermitian=True) @ self._answers.T
