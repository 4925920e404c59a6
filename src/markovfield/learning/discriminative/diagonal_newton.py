"""Newton steps with the diagonal of the Hessian (Lowd and Domingos 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.core.counts import is_sampler, resolve_counts
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.discriminative.expectations import Expectations, expectations_of
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.undirected.fitting import penalty_of, reported
from markovfield.learning.undirected.problem import Problem
from markovfield.models import LogLinear

__all__ = ["DiagonalNewton"]

# What is added to curvature, as a share of it, to begin with; and the least of it.
FIRST_DAMPING, LEAST_DAMPING = 0.01, 1e-6
# Gains, as a share of what the quadratic model foretells, that show it to be trusted more, or less.
GOOD, BAD = 0.75, 0.25
# A step moves no weight further than this: far away the quadratic model means nothing.
LONGEST = 4.0


@dataclass(frozen=True)
class DiagonalNewton:
    """Descend along the gradient over the diagonal of the Hessian, as far as a quadratic model says.

    The gradient is the expected features less those of the data, the Hessian their covariance under the model. Weights
    of very different numbers of factors, as those of Markov logic are, get steps of their own size by it, where plain
    gradients crawl. How far a step goes is the minimum of the quadratic model along it, with damping that grows where
    the model foretold too much. Minimised is ``-log-likelihood + l1 |w|_1 + (l2/2) |w|^2``, summed over rows.

    Parameters
    ----------
    inference
        Where expectations come from. A method that samples (``"gibbs"``, ``"mcsat"``) gives gradients and curvature
        from the same samples, and the weights are averaged over the second half of the steps. Any other method of
        `markovfield.marginals`, ``"junction_tree"`` (exact) or ``"belief_propagation"``, gives the curvature by
        differences of expectations.
    direction
        ``"newton"``, or ``"conjugate"``: conjugate gradients preconditioned by the diagonal, which keep more of what
        earlier steps have learned (the scaled conjugate gradient of the same article). It takes no l1.
    n_samples
        Of each expectation, where ``inference`` samples.
    max_iterations, tolerance
        Ends where the norm of the gradient, for each row, is below the tolerance; samples never get there, and take all
        iterations.
    refresh
        Iterations from one diagonal by differences to the next, each of which takes two expectations for each weight.
    l2, l1, penalty
        As for `MaximumLikelihood`.

    Examples
    --------
    >>> import markovfield as mf
    >>> data = mf.sample(mf.Ising((4, 4), coupling=0.3), 200, rng=0)
    >>> fitted = mf.fit(mf.Ising((4, 4), coupling=0.0), data, method=mf.methods.DiagonalNewton())
    >>> round(fitted.coupling, 3), fitted.fit_report.converged
    (0.302, True)
    """

    inference: Any = "junction_tree"
    direction: str = "newton"
    n_samples: int = 500
    max_iterations: int = 300
    tolerance: float = 1e-6
    refresh: int = 10
    l2: float = 0.0
    l1: float = 0.0
    penalty: Penalty | None = None

    name: ClassVar[str] = "diagonal_newton"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = True
    group_l1: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        least = {"n_samples": 2, "max_iterations": 1, "tolerance": 0, "refresh": 1, "l2": 0, "l1": 0}
        check_method(self, least=least, choices={"direction": ("newton", "conjugate")})

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated parameters."""
        inference = resolve_counts(self.inference)
        problem = Problem(LogLinear.of(model), table, running)
        penalty = penalty_of(problem.model, self, 1.0)
        if self.direction == "conjugate" and (penalty.has_l1 or penalty.has_groups):
            raise ModelError("direction='conjugate' of DiagonalNewton takes no l1: the objective must have a gradient")
        expectations = expectations_of(problem, inference, self.n_samples, rng)
        with without_warnings():
            found = _Descent(self, problem, expectations, penalty, is_sampler(inference)).run()
        likelihood = -(found.value - penalty.value(found.weights))
        sampled = is_sampler(inference)
        exact = not sampled and expectations.likelihood.guarantee == "exact"  # type: ignore[attr-defined]
        notes = [
            f"expectations by {inference.name}, {'curvature from the same samples' if sampled else 'by differences'}"
        ]
        if problem.incomplete.n_rows:
            notes.append("with missing values the likelihood need not be concave: this may be a local maximum")
        per_row = Minimum(
            found.weights, found.value / problem.total, found.gradient_norm / problem.total, found.iterations,
            found.evaluations, found.converged, found.message, tuple(v / problem.total for v in found.history),
            found.seconds,
        )  # fmt: skip
        return reported(
            self, model, problem, per_row,
            log_likelihood=likelihood,
            objective_name="minus the log-likelihood, with penalties",
            guarantee="exact" if exact else "approximate",
            notes=tuple(notes),
        )  # fmt: skip


class _Descent:
    """One run: weights, gradient, damping."""

    def __init__(
        self, method: DiagonalNewton, problem: Problem, expectations: Expectations, penalty: Penalty, sampled: bool
    ) -> None:
        self.method, self.problem, self.penalty, self.sampled = method, problem, penalty, sampled
        self.expectations = expectations
        self.damping, self.curvature, self.age = FIRST_DAMPING, np.zeros(0), method.refresh
        self.direction: FloatArray | None = None
        self.before: tuple[FloatArray, FloatArray] | None = None

    def run(self) -> Minimum:
        method, running = self.method, self.problem.running
        w = np.array(self.problem.model.parameters)
        value, slope = self._at(w)
        history: list[float] = []
        message, converged = f"{method.max_iterations} iterations", False
        best, total = w, np.zeros(len(w))
        kept = 0
        try:
            for step in range(method.max_iterations):
                if self.penalty.optimality(w, slope) <= method.tolerance * self.problem.total:
                    message, converged = "the gradient vanishes", True
                    break
                self._measure(w)
                d, foretold = self._step(w, slope)
                if not np.isfinite(foretold) or foretold >= 0.0:
                    message = "no step gains any more"
                    break
                new_value, new_slope = self._at(w + d)
                gained = self._gained(w, d, (value, slope), (new_value, new_slope))
                share = gained / foretold
                if share > GOOD:
                    self.damping = max(self.damping / 2.0, LEAST_DAMPING)
                elif share < BAD:
                    self.damping = max(4.0 * self.damping, FIRST_DAMPING)
                    self.direction = None
                if share <= 0.0 and not self.sampled:
                    if self.damping > 1e12:
                        message = "no step gains any more"
                        break
                    running.check(-value)
                    continue
                w, value, slope = w + d, new_value, new_slope
                best = w
                if self.sampled and 2 * step >= method.max_iterations:
                    total, kept = total + w, kept + 1
                    best = total / kept
                history.append(value)
                running.check(None if np.isnan(value) else -value)
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        if self.sampled and message.endswith("iterations"):
            message, converged = f"{method.max_iterations} iterations, averaged over the second half", True
        norm = self.penalty.optimality(w, slope)
        return Minimum(
            best, value, norm, len(history), self.expectations.evaluations, converged, message,
            () if self.sampled else tuple(history), running.seconds,
        )  # fmt: skip

    def _at(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The whole objective, and the gradient of what has one."""
        value, gradient = self.expectations.at(w)
        return value + self.penalty.value(w), gradient + self.penalty.smooth(w)[1]

    def _prior(self) -> FloatArray:
        """The curvature of the penalty's quadratic part."""
        n = len(self.problem.model.parameters)
        return self.penalty.smooth(np.ones(n))[1] - self.penalty.smooth(np.zeros(n))[1]

    def _measure(self, w: FloatArray) -> None:
        """The diagonal, now and then; nowhere so small that a step has no bound."""
        if not self.sampled and self.age < self.method.refresh:
            self.age += 1
            return
        self.age = 1
        found = self.expectations.variances(w) + self._prior()
        self.curvature = np.maximum(found, max(1e-6 * float(found.max(initial=0.0)), 1e-12))

    def _step(self, w: FloatArray, slope: FloatArray) -> tuple[FloatArray, float]:
        """A step, and the change of the objective that the quadratic model foretells."""
        d = self.penalty.prox(w - slope / self.curvature, 1.0 / self.curvature) - w
        if self.method.direction == "conjugate":
            scaled = -d
            if self.direction is not None and self.before is not None:
                old_slope, old_scaled = self.before
                share = float(slope @ (scaled - old_scaled)) / max(float(old_slope @ old_scaled), 1e-300)
                d = d + max(share, 0.0) * self.direction
                if float(slope @ d) >= 0.0:
                    d = -scaled
            self.before, self.direction = (slope, scaled), d
        kinked = self.penalty.kinked(w + d) - self.penalty.kinked(w)
        fall = float(slope @ d) + kinked
        bend = self.expectations.along(w, d) + float(self._prior() @ np.square(d))
        bend += self.damping * float(self.curvature @ np.square(d))
        length = -fall / bend if bend > 0.0 else 1.0
        if self.penalty.has_l1 or self.penalty.has_groups:
            length = min(length, 1.0)
        length = min(length, LONGEST / max(float(np.abs(d).max(initial=0.0)), 1e-300))
        return length * d, length * fall + 0.5 * length * length * bend

    def _gained(
        self, w: FloatArray, d: FloatArray, old: tuple[float, FloatArray], new: tuple[float, FloatArray]
    ) -> float:
        """By how much the objective changed; by the mean of the slopes at both ends where its value is not known, or
        where rounding has eaten it."""
        changed = new[0] - old[0]
        kinked = self.penalty.kinked(w + d) - self.penalty.kinked(w)
        by_slopes = 0.5 * float(d @ (old[1] + new[1])) + kinked
        lost = not np.isfinite(changed) or abs(changed) <= 1e-10 * abs(old[0])
        return by_slopes if lost else changed
