"""Gaussian belief propagation: exact on forests, exact means wherever it converges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.answers import Guarantee, LogPartition
from markovfield.inference.core.running import Running
from markovfield.inference.gaussian.answers import GaussianDecoding, GaussianMarginals
from markovfield.inference.gaussian.decoding import decoding_of
from markovfield.inference.gaussian.evidence import GaussianEvidence
from markovfield.inference.gaussian.messages_kernel import sweep_messages
from markovfield.inference.gaussian.walks import Edges, spectral_bounds, without_constraints

__all__ = ["GaussianBeliefPropagation"]


@dataclass(frozen=True, eq=False)
class _Beliefs:
    """What messages ended at."""

    means: FloatArray
    variances: FloatArray
    log_partition: float
    forest: bool
    one_sided: bool
    radius: float
    converged: bool
    residuals: tuple[float, ...]

    def ended(self, method: str, running: Running) -> dict[str, Any]:
        """What every answer says of how it was got."""
        return {
            "converged": self.converged,
            "iterations": len(self.residuals),
            "residuals": self.residuals,
            "method": method,
            "seconds": running.seconds,
        }

    @property
    def bound(self) -> Guarantee:
        """What variances and log Z are."""
        if not self.converged:
            return "approximate"
        return "exact" if self.forest else "lower" if self.one_sided else "approximate"


@dataclass(frozen=True)
class GaussianBeliefPropagation:
    """Belief propagation in Gaussian fields: messages are Gaussians as well.

    One sweep costs the entries of the precision. On a forest one sweep there and back is exact. Elsewhere, once it has
    converged, means are exact (Weiss and Freeman 2001); variances and log Z are approximate, and lower bounds where no
    partial correlation is negative and the field is walk-summable (Malioutov, Johnson and Willsky 2006; Johnson,
    Chernyak and Chertkov 2009). Walk-summable fields converge; ``answer.guarantees`` says what holds.

    Parameters
    ----------
    tolerance
        Stop when no mean moves by more than this share of the deviation of a variable given all others, and no
        precision by more than this share of itself.
    max_iterations
        Sweeps, each there and back.
    damping
        Share of the old message that is kept.

    Examples
    --------
    >>> import markovfield as mf
    >>> field = mf.GaussianField([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]], [1.0, 0.0, 0.0])
    >>> answer = mf.marginals(field, method="belief_propagation")
    >>> answer.means.round(6).tolist(), answer.guarantee
    ([0.75, 0.5, 0.25], 'exact')
    """

    tolerance: float = 1e-10
    max_iterations: int = 1000
    damping: float = 0.0

    name: ClassVar[str] = "gaussian_belief_propagation"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_method(self, least={"max_iterations": 1, "tolerance": 0.0, "damping": 0.0}, below={"damping": 1.0})

    def _run(self, rest: GaussianField, running: Running) -> _Beliefs:
        without_constraints(rest, self.name)
        edges = Edges.of(rest.precision)
        forest = edges.is_forest()
        low, high = (0.0, 0.0) if forest else spectral_bounds(edges)
        n = rest.n_variables
        order = edges.outside_in() if forest else np.arange(n)
        weights, pulls = np.zeros(len(edges.values)), np.zeros(len(edges.values))
        precisions, potentials = edges.diagonal.copy(), rest.information.copy()
        deviation = 1 / np.sqrt(edges.diagonal)
        before, residuals = np.zeros(n), []
        old = precisions.copy()
        converged = False
        for _ in range(1 if forest else self.max_iterations):
            running.check()
            damping = 0.0 if forest else self.damping
            state = (weights, pulls, precisions, potentials)
            status = sweep_messages(order, edges.indptr, edges.indices, edges.values, edges.reverse, damping, *state)
            if status or not (precisions > 0).all():
                more = f"its walk-sum radius is at least {low:.4g}" if low >= 1 else "the field is not walk-summable"
                raise ModelError(f"{self.name} broke off, as a precision fell to zero: {more}; use sparse_cholesky")
            means = potentials / precisions
            moved = float(np.abs((means - before) / deviation).max(initial=0.0))
            moved = max(moved, float(np.abs(precisions / old - 1).max(initial=0.0)))
            residuals.append(moved)
            before, old = means, precisions.copy()
            if not np.isfinite(moved):
                raise ModelError(f"{self.name} diverged; use sparse_cholesky")
            if forest or moved <= self.tolerance:
                converged = True
                break
        one_sided = bool(high < 1 and (edges.values <= 0).all())
        value = _bethe(edges, weights, pulls, precisions, potentials)
        return _Beliefs(before, 1 / precisions, value, forest, one_sided, high, converged, tuple(residuals[-100:]))

    def marginals(self, field: GaussianField, known: GaussianEvidence, *, running: Running) -> GaussianMarginals:
        """Means and variances of all variables, and the Bethe approximation of log Z."""
        free, rest, extra = known.condition(field)
        found = self._run(rest, running)
        means, variances = known.filled(field.n_variables), np.zeros(field.n_variables)
        means[free], variances[free] = found.means, found.variances
        return GaussianMarginals(
            field=field,
            posterior=rest,
            means=means,
            variances=variances,
            log_partition=found.log_partition + extra,
            guarantee=found.bound,
            variances_guarantee=found.bound,
            means_guarantee="exact" if found.converged else "approximate",
            **found.ended(self.name, running),
        )

    def log_partition(self, field: GaussianField, known: GaussianEvidence, *, running: Running) -> LogPartition:
        """The Bethe approximation of log Z."""
        _, rest, extra = known.condition(field)
        found = self._run(rest, running)
        return LogPartition(
            log_partition=found.log_partition + extra,
            guarantee=found.bound,
            **found.ended(self.name, running),
        )

    def decode(
        self,
        field: GaussianField,
        known: GaussianEvidence,
        *,
        variables: Sequence[int] | None,
        running: Running,
    ) -> GaussianDecoding:
        """The mode, which is the mean; how far the score may be from the best is bounded in walk-summable fields."""
        free, rest, _ = known.condition(field)
        found = self._run(rest, running)
        values = known.filled(field.n_variables)
        values[free] = found.means
        gap = 0.0
        if not found.forest:
            off = rest.information - rest.precision @ found.means
            # The scaled precision has no eigenvalue below 1 - radius.
            gap = float(0.5 * (off**2 / rest.precision.diagonal()).sum() / (1 - found.radius))
            gap = gap if found.radius < 1 else np.inf
        return decoding_of(
            field,
            known,
            values,
            variables,
            gap=gap,
            **found.ended(self.name, running),
        )


def _bethe(
    edges: Edges, weights: FloatArray, pulls: FloatArray, precisions: FloatArray, potentials: FloatArray
) -> float:
    """log of the pairs' integrals, less those of the single variables for all but one of their pairs."""
    log_2pi = np.log(2 * np.pi)
    single = 0.5 * (log_2pi - np.log(precisions) + potentials**2 / precisions)
    degree = np.diff(edges.indptr)
    once = np.flatnonzero(edges.rows < edges.indices)
    i, j, back = edges.rows[once], edges.indices[once], edges.reverse[once]
    # Each end without what the other told it.
    a, b = precisions[i] - weights[back], precisions[j] - weights[once]
    p, q = potentials[i] - pulls[back], potentials[j] - pulls[once]
    c = edges.values[once]
    determinant = a * b - c * c
    pair = log_2pi - 0.5 * np.log(determinant) + 0.5 * (p * p * b - 2 * p * q * c + q * q * a) / determinant
    return float(pair.sum() - ((degree - 1) * single).sum())
