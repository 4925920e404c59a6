"""Gaussian fields with more to them: open directions (intrinsic priors), linear constraints, a lattice's shape.

The form of `markovfield.models.GaussianMarkovField`. Whatever a `GaussianField` can be asked, this can be asked too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.gaussian.subspace import Subspace, independent_rows, open_directions
from markovfield.names import Names, VariableName

__all__ = ["ConstrainedField"]

_PLANNED_BY = ("memory_limit", "coordinates")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ConstrainedField(GaussianField):
    """A Gaussian field that may be intrinsic, under linear constraints, or on a lattice.

    Its density is proportional to ``exp(b.x - x.Q.x / 2)`` where ``A x = e``. The precision ``Q`` is positive
    semidefinite; directions it leaves open (``Q v = 0``) are listed, not guessed, and what is asked of the field is
    refused as long as neither observations nor constraints hold them.

    Attributes
    ----------
    null_space
        ``float64[n, k]``, orthonormal: the directions that the precision leaves open.
    constraints, values
        ``A``, sparse ``[m, n]`` with independent rows, and ``e``, ``float64[m]``.
    shape
        Of a lattice whose sites these are, in row order; None for any other graph.
    stencil
        The first row of the precision in the shape of the lattice, where the field is the same at every site of a
        torus: the precision then is a convolution. None otherwise.
    root
        A sparse ``R`` with ``R'R`` the precision, or None where none is known: it makes draws without a factorisation.

    Examples
    --------
    >>> import markovfield as mf
    >>> walk = mf.GaussianMarkovField.lattice(5, kind="rw1").sum_to_zero().compile()
    >>> walk.null_space.shape, walk.variances.round(2).tolist()
    ((5, 1), [1.2, 0.6, 0.4, 0.6, 1.2])
    """

    null_space: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    constraints: Any = None
    values: FloatArray = field(default_factory=lambda: np.zeros(0))
    shape: tuple[int, ...] | None = None
    stencil: FloatArray | None = None
    root: Any = None

    def __init__(
        self,
        precision: Any,
        information: npt.ArrayLike | None = None,
        names: Names | None = None,
        *,
        null_space: FloatArray | None = None,
        constraints: Any = None,
        values: FloatArray | None = None,
        shape: tuple[int, ...] | None = None,
        stencil: FloatArray | None = None,
        root: Any = None,
    ) -> None:
        from scipy import sparse

        matrix = sparse.csc_array(precision)
        n = matrix.shape[0]
        vector = np.zeros(n) if information is None else np.array(information, np.float64)
        if matrix.data.flags.writeable:  # otherwise it is another field's, and in order
            matrix.eliminate_zeros()
            matrix.sort_indices()
        self._set(matrix, vector, Names(range(n)) if names is None else names)
        rows = sparse.csr_array((0, n)) if constraints is None else sparse.csr_array(constraints)
        sides = np.zeros(rows.shape[0]) if values is None else np.asarray(values, np.float64)
        rows, sides = independent_rows(rows, sides)
        opened = np.zeros((n, 0)) if null_space is None else np.asarray(null_space, np.float64)
        for array in (opened, sides, rows.data, rows.indices, rows.indptr, stencil):
            if array is not None:
                array.flags.writeable = False
        for name, value in (
            ("null_space", opened),
            ("constraints", rows),
            ("values", sides),
            ("shape", shape),
            ("stencil", stencil),
            ("root", root),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, plain: GaussianField) -> ConstrainedField:
        """A plain field as one of these; those that are already stay what they are."""
        if isinstance(plain, ConstrainedField):
            return plain
        return cls(plain.precision, plain.information, plain.names)

    def changed(self, **parts: Any) -> ConstrainedField:
        """The same with some parts replaced."""
        now = {
            name: getattr(self, name)
            for name in (
                "precision information names null_space constraints values shape stencil root".split()  # noqa: SIM905
            )
        }
        return ConstrainedField(**(now | parts))

    @property
    def plain(self) -> bool:
        """Whether it is proper and without constraints: a `GaussianField` and nothing else."""
        return not self.null_space.shape[1] and not self.constraints.shape[0]

    @property
    def rank(self) -> int:
        """Rank of the precision: variables less open directions."""
        return self.n_variables - self.null_space.shape[1]

    def __repr__(self) -> str:
        n, edges = self.n_variables, (self.precision.nnz - self.n_variables) // 2
        where = "" if self.shape is None else f", lattice {' x '.join(map(str, self.shape))}"
        k, m = self.null_space.shape[1], self.constraints.shape[0]
        opened = f", intrinsic of rank {self.rank}" if k else ""
        held = f", {m} constraint{'s' * (m != 1)}" if m else ""
        return f"GaussianField({n} variable{'s' * (n != 1)}, {edges} edge{'s' * (edges != 1)}{where}{opened}{held})"

    # ---- the same questions, on the subspace ------------------------------------------------------------------------

    def _remembered(self, what: str, make: Any) -> Any:
        if what not in self._cache:
            made = make()
            if isinstance(made, np.ndarray):
                made.flags.writeable = False
            self._cache[what] = made
        return self._cache[what]

    def _subspace(self) -> Subspace:
        parts = (self.precision, self.information, self.names, self.null_space, self.constraints, self.values)
        space: Subspace = self._remembered("subspace", partial(Subspace, *parts))
        # What the factorisation of its matrix goes by.
        space.base._cache.update({word: self._cache[word] for word in _PLANNED_BY if word in self._cache})
        return space

    def _coordinates(self) -> Any:
        if "coordinates" not in self._cache and self.shape is not None:
            self._cache["coordinates"] = np.stack([axis.ravel() for axis in np.indices(self.shape)], axis=1)
        return super()._coordinates()

    def _factor(self) -> Any:
        if self.plain:
            return super()._factor()
        raise ModelError("this field has constraints or open directions, so its precision alone has no factor")

    @property
    def mean(self) -> FloatArray:
        """``float64[n]``."""
        return super().mean if self.plain else self._remembered("mean", self._subspace().mean.copy)

    @property
    def variances(self) -> FloatArray:
        """``float64[n]``."""
        if self.plain:
            return super().variances
        return self._remembered("variances", self._subspace().variances.copy)

    @property
    def covariance(self) -> FloatArray:
        """``float64[n, n]``, dense; refused beyond 10,000 variables."""
        if self.plain:
            return super().covariance
        from markovfield.gaussian.gaussian_field import _guard_dense

        _guard_dense(self.n_variables, "the covariance")
        return self._remembered("covariance", lambda: self._columns_of(range(self.n_variables)))

    def _columns_of(self, at: Sequence[int] | range) -> FloatArray:
        """Covariances of some variables with each other."""
        block = self._subspace().covariance_columns(np.asarray(at, np.int64))[np.asarray(at, np.int64)]
        return np.asarray((block + block.T) / 2)

    @property
    def log_partition(self) -> float:
        """log of the integral of exp(score) where the constraints hold, as a density of ``A x`` at ``e``.

        Directions that nothing holds are left out of the integral, which then goes over all x at right angles to them:
        the constant of a density of rank n - k (Rue and Held 2005, definition 3.1).
        """
        if self.plain:
            return super().log_partition
        return float(self._remembered("log_partition", self._log_partition))

    def _log_partition(self) -> float:
        from scipy import sparse

        opened = self.null_space
        if opened.shape[1] and self.constraints.shape[0]:
            _, values, right = np.linalg.svd(self.constraints @ opened, full_matrices=True)
            opened = opened @ right[int((values > 1e-9 * max(values.max(initial=0.0), 1e-300)).sum()) :].T
        if not opened.shape[1]:
            return self._subspace().log_partition
        rows = sparse.csr_array(sparse.vstack([self.constraints, sparse.csr_array(opened.T)]))
        values = np.concatenate([self.values, np.zeros(opened.shape[1])])
        parts = (self.precision, self.information, self.names, self.null_space, rows, values)
        return Subspace(*parts).log_partition

    def log_density(self, x: npt.ArrayLike | Mapping[VariableName, Any]) -> Any:
        """Log density at a point or at each of several; that of rank n - k where the field is intrinsic.

        -inf where a constraint does not hold.
        """
        if self.plain:
            return super().log_density(x)
        points = self._points(x)
        score = points @ self.information - 0.5 * np.sum(points * (self.precision @ points.T).T, axis=-1)
        if self.constraints.shape[0]:
            off = np.abs((self.constraints @ points.T).T - self.values)
            size = (abs(self.constraints) @ np.abs(points).T).T + np.abs(self.values)
            score = np.where((off <= 1e-8 * size + 1e-12).all(axis=-1), score, -np.inf)
        return score - self.log_partition

    def sample(self, size: int, rng: int | np.random.Generator | None = None) -> FloatArray:
        """Draw ``float64[size, n]``, exact; constraints hold in every row (conditioning by kriging)."""
        if self.plain:
            return super().sample(size, rng)
        if size < 0:
            raise ModelError(f"GaussianField.sample(size) must not be negative, got {size}")
        return self._subspace().sample(size, generator_of(rng))

    def condition(self, evidence: Mapping[VariableName, Any]) -> GaussianField:
        """The field of the other variables once some are known; constraints move what is known to their right side."""
        known = super().condition(evidence)
        at = np.array(self.names.positions(list(evidence)), np.int64)
        free = np.setdiff1d(np.arange(self.n_variables), at)
        return self.restricted(known, free, at, np.array([float(v) for v in evidence.values()]))

    def restricted(self, known: GaussianField, free: Any, at: Any, values: FloatArray) -> GaussianField:
        """What is left of open directions and constraints, put onto the field of the variables that are not known."""
        opened = open_directions(self.null_space, at)[free]
        rows, sides = self.constraints[:, free], self.values - self.constraints[:, at] @ values
        if not opened.shape[1] and not rows.shape[0]:
            return known
        return ConstrainedField(
            known.precision, known.information, known.names, null_space=opened, constraints=rows, values=sides
        )

    def observed(self, precision: Any, information: FloatArray, at: Any) -> ConstrainedField:
        """The field with other numbers, after sites were observed with noise: those directions are open no longer."""
        opened = open_directions(self.null_space, at)
        return self.changed(precision=precision, information=information, null_space=opened, stencil=None, root=None)

    def marginal(self, variables: Iterable[VariableName]) -> GaussianField:
        """The field of some variables, in the order asked, the others integrated out."""
        if self.plain:
            return super().marginal(variables)
        listed = list(variables)
        at = self.names.positions(listed)
        moments = self.mean[at], self._columns_of(at)
        if len(at) and not (np.linalg.eigvalsh(moments[1])[0] > 1e-12 * moments[1].max()):
            raise ModelError(
                f"the constraints fix a combination of {listed[:4]!r}: their joint has no precision matrix"
            )
        return GaussianField.from_moments(*moments, [self.variables[i] for i in at])

    def independent(
        self,
        a: VariableName | Iterable[VariableName],
        b: VariableName | Iterable[VariableName],
        given: VariableName | Iterable[VariableName] = (),
        *,
        tolerance: float = 1e-9,
    ) -> bool:
        """Whether two sets of variables are independent given a third; not told of fields with constraints."""
        if self.plain:
            return super().independent(a, b, given, tolerance=tolerance)
        raise ModelError("independent() is of fields without constraints and open directions")
