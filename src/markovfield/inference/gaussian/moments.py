"""The seam that learning of Gaussian fields stands on: log Z and the expectations that are its derivatives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.gaussian.constrained_field import ConstrainedField
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.gaussian.sparse_cholesky import analyse
from markovfield.inference.gaussian.evidence import GaussianEvidence

__all__ = ["GaussianMoments", "expected_moments"]


class GaussianMoments(NamedTuple):
    """log Z, and what it changes by.

    Attributes
    ----------
    log_partition
        log Z, given the evidence.
    first
        ``float64[n]``, E[x]: the derivative of log Z by the information vector.
    second
        ``float64[nnz]``, E[x_i x_j] at each stored entry of the precision, in the order of ``precision.data``: minus
        twice the derivative of log Z by that entry, both triangles counted by themselves.
    """

    log_partition: float
    first: FloatArray
    second: FloatArray


def expected_moments(model: Any, evidence: Any = None, *, noise: Any = None) -> GaussianMoments:
    """log Z, E[x], and E[x x'] on the pattern of the precision, by one factorisation and its selected inverse.

    Examples
    --------
    >>> import markovfield as mf
    >>> field = mf.GaussianField([[2.0, -1.0], [-1.0, 2.0]], [1.0, 0.0])
    >>> found = expected_moments(field)
    >>> found.first.round(4).tolist(), found.second.round(4).tolist()
    ([0.6667, 0.3333], [1.1111, 0.5556, 0.5556, 0.7778])
    """
    field: GaussianField = model if isinstance(model, GaussianField) else model.compile()
    known = GaussianEvidence.parse(field, evidence, noise)
    free, rest, extra = known.condition(field)
    first = known.filled(field.n_variables)
    columns = np.repeat(np.arange(field.n_variables), np.diff(field.precision.indptr))
    rows = field.precision.indices
    second = np.zeros(len(rows))
    value = extra
    if len(free):
        first[free] = rest.mean
        value += rest.log_partition
        place = np.full(field.n_variables, -1, np.int64)
        place[free] = np.arange(len(free))
        both = (place[rows] >= 0) & (place[columns] >= 0)
        second[both] = _covariances(rest, place[rows[both]], place[columns[both]])
    return GaussianMoments(float(value), first, second + first[rows] * first[columns])


def _covariances(rest: GaussianField, rows: Any, columns: Any) -> FloatArray:
    """Covariances of pairs that are entries of the precision."""
    from scipy import sparse

    space = rest._subspace() if isinstance(rest, ConstrainedField) and not rest.plain else None
    matrix = rest.precision if space is None else space.base.precision
    inverse = analyse(matrix).factorise(matrix.data, names=rest.variables).selected_inverse().on_pattern
    whole = sparse.csc_array((inverse, matrix.indices, matrix.indptr), shape=matrix.shape)
    # A stored entry of zero is none of the pattern: it is looked up among all that are.
    found = np.asarray(whole[rows, columns]).ravel()
    if space is None:
        return found
    lost = np.linalg.solve(space._small, space._answers.T)
    return np.asarray(found - np.einsum("ek,ke->e", space._answers[rows], lost[:, columns]))
