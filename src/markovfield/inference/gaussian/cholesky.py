"""Exact answers about Gaussian fields from a sparse Cholesky factorisation of what the evidence leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.gaussian.answers import GaussianDecoding, GaussianMarginals, GaussianSamples
from markovfield.inference.gaussian.decoding import decoding_of
from markovfield.inference.gaussian.evidence import GaussianEvidence

__all__ = ["SparseCholesky"]


@dataclass(frozen=True)
class SparseCholesky:
    """Exact inference in Gaussian fields (Murphy 19.24 to 19.28): condition, factorise, solve.

    In information form evidence only drops rows; means are one solve, variances a selected inversion, log Z the
    determinant, and draws white noise through the factor. The order of elimination is found by nested dissection on
    large lattices and by minimum degree elsewhere, and kept for the next field with the same neighbours.

    Parameters
    ----------
    memory_limit
        The most memory a factor may take, in bytes or like ``"4GiB"``; 8 GiB when None. What needs more is refused
        before anything is allocated.

    Examples
    --------
    >>> import markovfield as mf
    >>> field = mf.GaussianField([[4.0, -1.0], [-1.0, 4.0]], variables=["a", "b"])
    >>> answer = mf.marginals(field, {"a": 1.0})
    >>> answer["b"]
    Normal(mean=0.25, variance=0.25)
    """

    name: ClassVar[str] = "sparse_cholesky"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"sample", "marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    memory_limit: str | int | None = None

    def __post_init__(self) -> None:
        check_method(self)
        memory_limit_bytes(self.memory_limit)

    def _left(self, field: GaussianField, known: GaussianEvidence) -> tuple[Any, GaussianField, float]:
        """What the evidence leaves; refused where its factor would not fit."""
        free, rest, extra = known.condition(field)
        if len(free):
            rest.allow(memory_limit_bytes(self.memory_limit))
        return free, rest, extra

    def marginals(self, field: GaussianField, known: GaussianEvidence, *, running: Running) -> GaussianMarginals:
        """Means and variances of all variables, and log Z."""
        free, rest, extra = self._left(field, known)
        means, variances = known.filled(field.n_variables), np.zeros(field.n_variables)
        if len(free):
            means[free], variances[free] = rest.mean, rest.variances
        return GaussianMarginals(
            field=field,
            posterior=rest,
            means=means,
            variances=variances,
            log_partition=_log_partition(rest, extra),
            method=self.name,
            seconds=running.seconds,
        )

    def log_partition(self, field: GaussianField, known: GaussianEvidence, *, running: Running) -> LogPartition:
        """log of the integral over what was not observed."""
        _, rest, extra = self._left(field, known)
        return LogPartition(log_partition=_log_partition(rest, extra), method=self.name, seconds=running.seconds)

    def decode(
        self,
        field: GaussianField,
        known: GaussianEvidence,
        *,
        variables: Sequence[int] | None,
        running: Running,
    ) -> GaussianDecoding:
        """The mode; of some variables with the others integrated out, whose means are the same."""
        free, rest, _ = self._left(field, known)
        values = known.filled(field.n_variables)
        if len(free):
            values[free] = rest.mean
        return decoding_of(field, known, values, variables, method=self.name, seconds=running.seconds)

    def sample(
        self,
        field: GaussianField,
        size: int,
        known: GaussianEvidence,
        *,
        rng: np.random.Generator,
        running: Running,
    ) -> GaussianSamples:
        """Independent draws."""
        free, rest, _ = self._left(field, known)
        values = np.tile(known.filled(field.n_variables), (size, 1))
        if len(free):
            values[:, free] = rest.sample(size, rng)
        return GaussianSamples(field=field, values=values, method=self.name, seconds=running.seconds)


def _log_partition(rest: GaussianField, extra: float) -> float:
    """The integral over what is not known, and what the evidence contributes to it."""
    return extra + (rest.log_partition if rest.n_variables else 0.0)
