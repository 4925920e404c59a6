"""Stationary fields on a torus: the precision is a convolution, and Fourier transforms answer everything exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.gaussian.constrained_field import ConstrainedField
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.running import Running
from markovfield.inference.gaussian.answers import GaussianDecoding, GaussianMarginals, GaussianSamples
from markovfield.inference.gaussian.decoding import decoding_of
from markovfield.inference.gaussian.evidence import GaussianEvidence

__all__ = ["ToeplitzFFT", "is_stationary"]


def is_stationary(field: GaussianField, known: GaussianEvidence) -> bool:
    """Whether the field, with what was seen of it, is the same at every site of a torus."""
    if not isinstance(field, ConstrainedField) or field.stencil is None or field.null_space.shape[1] > 1:
        return False
    if field.constraints.shape[0] and not _is_level(field):
        return False
    if len(known.at):
        return False
    seen = len(known.seen_at)
    return not seen or (seen == field.n_variables and float(np.ptp(known.variances)) == 0.0)


def _is_level(field: ConstrainedField) -> bool:
    """Whether the one constraint is of the sum of all sites."""
    rows = field.constraints
    return bool(rows.shape[0] == 1 and rows.nnz == field.n_variables and np.ptp(rows.data) == 0.0)


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """The posterior in the Fourier domain; eigenvalue zero of a level that nothing holds is infinite."""

    eigenvalues: FloatArray
    mean: FloatArray
    log_partition: float

    def filtered(self, x: FloatArray, power: float) -> FloatArray:
        """The precision to a power, times images on the last axes."""
        from scipy import fft

        axes = tuple(range(-self.mean.ndim, 0))
        half = self.eigenvalues[..., : self.mean.shape[-1] // 2 + 1]
        return np.asarray(fft.irfftn(fft.rfftn(x, axes=axes) * half**power, self.mean.shape, axes=axes))


@dataclass(frozen=True)
class ToeplitzFFT:
    """Exact inference in stationary fields on a torus, by fast Fourier transforms.

    ``GaussianMarkovField.lattice(shape, periodic=True)``, with nothing seen or every site seen with the same variance:
    the precision is a convolution, its eigenvalues a Fourier transform of one row. Means, variances, draws and log Z
    in n log n operations and a few arrays of n (Rue and Held 2005, section 2.6). A constraint may be that of the sum.

    Examples
    --------
    >>> import markovfield as mf
    >>> field = mf.GaussianMarkovField.lattice((256, 256), kind="matern", range=20, periodic=True)
    >>> answer = mf.marginals(field, method="toeplitz_fft")
    >>> round(float(answer.variances[0]), 3), answer.guarantee
    (1.013, 'exact')
    """

    name: ClassVar[str] = "toeplitz_fft"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"sample", "marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def _solve(self, field: GaussianField, known: GaussianEvidence, proper: bool = True) -> _Spectrum:
        from scipy import fft

        if not is_stationary(field, known):
            raise ModelError(
                f"{self.name} takes fields that are the same at every site of a torus (a periodic lattice), of which "
                "nothing was seen or every site with the same noise: use sparse_cholesky"
            )
        assert isinstance(field, ConstrainedField) and field.stencil is not None
        n, shape = field.n_variables, field.stencil.shape
        eigenvalues = np.asarray(fft.fftn(field.stencil).real)
        information = field.information.reshape(shape)
        origin = (0,) * len(shape)
        if field.null_space.shape[1]:
            eigenvalues[origin] = 0.0
        extra = known.log_likelihood_constant
        if len(known.seen_at):
            eigenvalues = eigenvalues + 1 / known.variances[0]
            information = information + (known.seen / known.variances).reshape(shape)
        level, modes = None, n
        if field.constraints.shape[0]:
            coefficient = float(field.constraints.data[0])
            level = float(field.values[0]) / (coefficient * n)
            extra -= 0.5 * math.log(coefficient**2 * n)
        elif eigenvalues[origin] == 0.0:
            if proper:
                raise ModelError(
                    "the field is intrinsic and leaves its level open: add sum_to_zero(), or see its sites"
                )
            level = 0.0
        lowest = eigenvalues.copy()
        if level is not None:
            modes = n - 1
            own = eigenvalues[origin]
            # The level is fixed: its share of the score is known.
            extra += n * level * (float(information.mean()) - 0.5 * own * level)
            eigenvalues[origin] = np.inf
            lowest[origin] = 1.0
        if not (lowest > 0).all():
            raise ModelError(f"the precision is not positive definite: its smallest eigenvalue is {lowest.min():.3g}")
        found = _Spectrum(eigenvalues, np.zeros(shape), 0.0)
        off = found.filtered(information, -1.0)
        quadratic = float((information * off).sum())
        log_z = extra + 0.5 * (modes * math.log(2 * math.pi) - float(np.log(lowest).sum()) + quadratic)
        return _Spectrum(eigenvalues, off + (level or 0.0), log_z)

    def marginals(self, field: GaussianField, known: GaussianEvidence, *, running: Running) -> GaussianMarginals:
        """Means, the variance that all sites have, and log Z."""
        found = self._solve(field, known)
        variance = float((1 / found.eigenvalues).mean())
        return GaussianMarginals(
            field=field,
            posterior=known.condition(field)[1],
            means=found.mean.ravel(),
            variances=np.full(field.n_variables, variance),
            log_partition=found.log_partition,
            method=self.name,
            seconds=running.seconds,
        )

    def log_partition(self, field: GaussianField, known: GaussianEvidence, *, running: Running) -> LogPartition:
        """log Z from the eigenvalues."""
        found = self._solve(field, known, proper=False)
        return LogPartition(log_partition=found.log_partition, method=self.name, seconds=running.seconds)

    def decode(
        self,
        field: GaussianField,
        known: GaussianEvidence,
        *,
        variables: Sequence[int] | None,
        running: Running,
    ) -> GaussianDecoding:
        """The mode, which is the mean."""
        values = self._solve(field, known).mean.ravel()
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
        """Independent draws: white noise through the root of the inverse."""
        found = self._solve(field, known)
        shape = found.mean.shape
        values = np.empty((size, *shape))
        for row in range(size):  # one at a time: an image may be large
            running.check()
            values[row] = found.mean + found.filtered(rng.standard_normal(shape), -0.5)
        return GaussianSamples(field=field, values=values.reshape(size, -1), method=self.name, seconds=running.seconds)
