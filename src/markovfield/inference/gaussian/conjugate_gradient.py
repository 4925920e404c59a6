"""Gaussian fields too large to factor: conjugate gradients, draws by perturbing and solving, estimated variances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.running import Running
from markovfield.inference.gaussian.answers import GaussianDecoding, GaussianMarginals, GaussianSamples
from markovfield.inference.gaussian.decoding import decoding_of
from markovfield.inference.gaussian.evidence import GaussianEvidence
from markovfield.inference.gaussian.roots import posterior_root
from markovfield.inference.gaussian.solves import Preconditioner, circulant, jacobi, lanczos_log_determinants, solve
from markovfield.inference.gaussian.walks import without_constraints

__all__ = ["ConjugateGradient"]

PRECONDITIONERS = ("auto", "jacobi", "circulant")
# Numbers in the arrays that are solved for together.
TOGETHER = 2**22


@dataclass(frozen=True)
class ConjugateGradient:
    """Means by conjugate gradients, draws by perturbing the right-hand side and solving, variances from draws.

    Memory is some arrays of n beside the precision: fields of 10^7 sites. Means and the mode are as near as
    ``tolerance`` says. A draw solves ``Q x = b + R'z`` where ``R'R = Q`` (Papandreou and Yuille 2010), so it needs a
    root of the precision, which is known of `GaussianMarkovField` and of diagonally dominant matrices. Variances are
    averages over draws of what is left when each variable is integrated out given its neighbours (Siden et al. 2018),
    with standard errors in ``answer.variance_errors``. log Z is estimated by Lanczos quadrature, also with a standard
    error; `marginals` leaves it out.

    Parameters
    ----------
    tolerance, max_iterations
        Stop at a residual of this share of the right-hand side, or after so many steps.
    n_samples
        Draws that variances are estimated from.
    n_probes, steps
        Of the quadrature.
    preconditioner
        ``"jacobi"``, ``"circulant"`` (Fourier transforms, for lattices), or ``"auto"``: circulant on lattices where
        nothing or everything was seen.

    Examples
    --------
    >>> import markovfield as mf
    >>> field = mf.GaussianMarkovField.lattice((40, 40), kind="matern", range=8)
    >>> exact = mf.marginals(field, {(3, 4): 1.2}, noise=0.1)
    >>> answer = mf.marginals(field, {(3, 4): 1.2}, noise=0.1, method="conjugate_gradient", rng=0)
    >>> bool(abs(answer.means - exact.means).max() < 1e-6)
    True
    >>> off = abs(answer.variances - exact.variances) / answer.variance_errors
    >>> bool(off.mean() < 2)
    True
    """

    tolerance: float = 1e-8
    max_iterations: int = 10_000
    n_samples: int = 50
    n_probes: int = 20
    steps: int = 200
    preconditioner: str = "auto"

    name: ClassVar[str] = "conjugate_gradient"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"sample", "marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"rng"})

    def __post_init__(self) -> None:
        least = {"max_iterations": 1, "n_samples": 2, "n_probes": 2, "steps": 1}
        check_method(self, least=least, above={"tolerance": 0.0}, choices={"preconditioner": PRECONDITIONERS})

    def _preconditioner(self, field: GaussianField, known: GaussianEvidence, rest: GaussianField) -> Preconditioner:
        shape = getattr(field, "shape", None)
        even = len(known.seen_at) in (0, field.n_variables)
        if shape is not None and not len(known.at) and self.preconditioner != "jacobi":
            found = circulant(rest.precision, shape) if even or self.preconditioner == "circulant" else None
            if found is not None:
                return found
        return jacobi(rest.precision.diagonal())

    def _mean(
        self, field: GaussianField, known: GaussianEvidence, rest: GaussianField, running: Running
    ) -> tuple[FloatArray, float, int]:
        without_constraints(rest, self.name)
        if not rest.n_variables:
            return np.zeros(0), 0.0, 0
        by = self._preconditioner(field, known, rest)
        solved, error, iterations = solve(
            rest.precision,
            rest.information[:, None],
            by,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            running=running,
        )
        return solved[:, 0], float(error.max(initial=0.0)), iterations

    def _ended(self, residual: float, iterations: int, running: Running) -> dict[str, Any]:
        """What every answer says of how it was got."""
        return {
            "converged": residual <= 10 * self.tolerance,
            "iterations": iterations,
            "residuals": (residual,),
            "method": self.name,
            "seconds": running.seconds,
        }

    def _draws(
        self,
        field: GaussianField,
        known: GaussianEvidence,
        free: Any,
        rest: GaussianField,
        size: int,
        rng: np.random.Generator,
        running: Running,
    ) -> Any:
        """Blocks of draws with mean zero, ``float64[n, k]``, and their worst residual."""
        root = posterior_root(field, known, free, rest, self.name)
        turned = root.T.tocsr()
        by = self._preconditioner(field, known, rest)
        step = max(1, TOGETHER // max(rest.n_variables, 1))
        for start in range(0, size, step):
            white = rng.standard_normal((min(step, size - start), root.shape[0]))
            yield solve(
                rest.precision,
                np.ascontiguousarray(turned @ white.T),
                by,
                tolerance=self.tolerance,
                max_iterations=self.max_iterations,
                running=running,
            )

    def marginals(
        self,
        field: GaussianField,
        known: GaussianEvidence,
        *,
        rng: np.random.Generator,
        running: Running,
    ) -> GaussianMarginals:
        """Means to a tolerance, and variances with standard errors."""
        free, rest, _ = known.condition(field)
        found, residual, iterations = self._mean(field, known, rest, running)
        n = field.n_variables
        means, variances, errors = known.filled(n), np.zeros(n), np.zeros(n)
        means[free] = found
        if len(free):
            own = 1 / rest.precision.diagonal()
            total = np.zeros(len(free))
            for drawn, off, _ in self._draws(field, known, free, rest, self.n_samples, rng, running):
                # The mean of each variable given its neighbours.
                given = drawn - own[:, None] * (rest.precision @ drawn)
                total += (given**2).sum(axis=1)
                residual = max(residual, float(off.max()))
            explained = total / self.n_samples
            variances[free] = own + explained
            errors[free] = explained * np.sqrt(2 / self.n_samples)
        return GaussianMarginals(
            field=field,
            posterior=rest,
            means=means,
            variances=variances,
            variance_errors=errors,
            log_partition=float("nan"),
            guarantee="approximate",
            means_guarantee="approximate",
            variances_guarantee="approximate",
            **self._ended(residual, iterations, running),
        )

    def log_partition(
        self,
        field: GaussianField,
        known: GaussianEvidence,
        *,
        rng: np.random.Generator,
        running: Running,
    ) -> LogPartition:
        """log Z by stochastic Lanczos quadrature, with a standard error."""
        _, rest, extra = known.condition(field)
        found, residual, iterations = self._mean(field, known, rest, running)
        value, error = extra, 0.0
        if rest.n_variables:
            logs = lanczos_log_determinants(rest.precision, self.n_probes, self.steps, rng, running)
            value += 0.5 * (rest.n_variables * float(np.log(2 * np.pi)) - float(logs.mean()))
            value += 0.5 * float(rest.information @ found)
            error = 0.5 * float(logs.std(ddof=1)) / self.n_probes**0.5
        return LogPartition(
            log_partition=value,
            standard_error=error,
            guarantee="approximate",
            **self._ended(residual, iterations, running),
        )

    def decode(
        self,
        field: GaussianField,
        known: GaussianEvidence,
        *,
        variables: Sequence[int] | None,
        running: Running,
        **_: Any,
    ) -> GaussianDecoding:
        """The mode to a tolerance; nothing is proven of its gap."""
        free, rest, _extra = known.condition(field)
        values = known.filled(field.n_variables)
        values[free], residual, iterations = self._mean(field, known, rest, running)
        return decoding_of(
            field,
            known,
            values,
            variables,
            gap=np.inf if len(free) else 0.0,
            **self._ended(residual, iterations, running),
        )

    def sample(
        self,
        field: GaussianField,
        size: int,
        known: GaussianEvidence,
        *,
        rng: np.random.Generator,
        running: Running,
    ) -> GaussianSamples:
        """Independent draws to a tolerance: perturb, and solve."""
        free, rest, _ = known.condition(field)
        found, residual, iterations = self._mean(field, known, rest, running)
        values = np.tile(known.filled(field.n_variables), (size, 1))
        row = 0
        if len(free) and size:
            for drawn, off, _steps in self._draws(field, known, free, rest, size, rng, running):
                values[row : row + drawn.shape[1], free] = drawn.T + found
                row += drawn.shape[1]
                residual = max(residual, float(off.max()))
        return GaussianSamples(
            field=field,
            values=values,
            guarantee="approximate",
            **self._ended(residual, iterations, running),
        )
