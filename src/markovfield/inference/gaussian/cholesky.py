"""Exact answers about Gaussian fields from a sparse Cholesky factorisation of what the evidence leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.running import Running
from markovfield.inference.gaussian.answers import GaussianDecoding, GaussianMarginals, GaussianSamples

__all__ = ["SparseCholesky"]


@dataclass(frozen=True)
class SparseCholesky:
    """Exact inference in Gaussian fields (Murphy 19.24 to 19.28): condition, factorise, solve.

    In information form evidence only drops rows; means are one solve, variances a selected inversion, log Z the
    determinant, and draws white noise through the factor.

    Examples
    --------
    >>> import markovfield as mf
    >>> field = mf.GaussianField([[2.0, -1.0], [-1.0, 2.0]], variables=["a", "b"])
    >>> answer = mf.marginals(field, {"a": 1.0})
    >>> answer["b"]
    Normal(mean=0.5, variance=0.5)
    """

    name: ClassVar[str] = "sparse_cholesky"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"sample", "marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def marginals(self, field: GaussianField, known: Mapping[int, float], *, running: Running) -> GaussianMarginals:
        """Means and variances of all variables, and log Z."""
        free, rest = _conditioned(field, known)
        means, variances = _filled(field, known), np.zeros(field.n_variables)
        if len(free):
            means[free], variances[free] = rest.mean, rest.variances
        return GaussianMarginals(
            field=field,
            posterior=rest,
            means=means,
            variances=variances,
            log_partition=_log_partition(field, known, rest),
            method=self.name,
            seconds=running.seconds,
        )

    def log_partition(self, field: GaussianField, known: Mapping[int, float], *, running: Running) -> LogPartition:
        """log of the integral over what was not observed."""
        _, rest = _conditioned(field, known)
        return LogPartition(
            log_partition=_log_partition(field, known, rest),
            method=self.name,
            seconds=running.seconds,
        )

    def decode(
        self,
        field: GaussianField,
        known: Mapping[int, float],
        *,
        variables: Sequence[int] | None,
        running: Running,
    ) -> GaussianDecoding:
        """The mode; of some variables with the others integrated out, whose means are the same."""
        free, rest = _conditioned(field, known)
        values = _filled(field, known)
        if len(free):
            values[free] = rest.mean
        shown = tuple(range(field.n_variables)) if variables is None else tuple(variables)
        score = _score(field, values)
        summed = [v for v in free.tolist() if v not in set(shown)]
        if summed:
            fixed = {v: float(values[v]) for v in range(field.n_variables) if v not in set(summed)}
            score = _log_partition(field, fixed, _conditioned(field, fixed)[1])
            values[summed] = np.nan
        return GaussianDecoding(
            field=field,
            values=values,
            score=score,
            variables=shown,
            method=self.name,
            seconds=running.seconds,
        )

    def sample(
        self,
        field: GaussianField,
        size: int,
        known: Mapping[int, float],
        *,
        rng: np.random.Generator,
        running: Running,
    ) -> GaussianSamples:
        """Independent draws."""
        free, rest = _conditioned(field, known)
        values = np.tile(_filled(field, known), (size, 1))
        if len(free):
            values[:, free] = rest.sample(size, rng)
        return GaussianSamples(field=field, values=values, method=self.name, seconds=running.seconds)


def _conditioned(field: GaussianField, known: Mapping[int, float]) -> tuple[np.ndarray, GaussianField]:
    """Positions of what was not observed, and its field."""
    free = np.setdiff1d(np.arange(field.n_variables), list(known))
    if not known:
        return free, field
    return free, field.condition({field.variables[v]: x for v, x in known.items()})


def _filled(field: GaussianField, known: Mapping[int, float]) -> FloatArray:
    """Observed values where there are any, zeros elsewhere."""
    values = np.zeros(field.n_variables)
    values[list(known)] = list(known.values())
    return values


def _score(field: GaussianField, values: FloatArray) -> float:
    return float(values @ field.information - 0.5 * values @ (field.precision @ values))


def _log_partition(field: GaussianField, known: Mapping[int, float], rest: GaussianField) -> float:
    """The observed variables' own score, and the integral over the others."""
    observed = _score(field, _filled(field, known)) if known else 0.0
    return observed + (rest.log_partition if rest.n_variables else 0.0)
