"""Steepest descent with a line search: the gradient's direction, and how far to go along it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError, StoppedError
from markovfield.inference.core.running import STOPS
from markovfield.kernels.compilations import clock
from markovfield.learning.solvers.checkpoint import State, check_same
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.problem import Problem
from markovfield.learning.solvers.quasi_newton import DECREASE, line_search

__all__ = ["SteepestDescent"]

# The slope that an exact line search leaves, relative to the one it began with.
EXACT = 1e-4
# Iterations without a lower value after which only rounding is left.
PERIOD = 10


@dataclass(frozen=True)
class SteepestDescent:
    """Steepest descent with tolerance epsilon (Andres, algorithm 1): of smooth objectives, slow and simple.

    Parameters
    ----------
    line_search
        ``"exact"``: the minimum along the gradient, as the algorithm says, up to a slope of a ten-thousandth of the
        first; ``"backtracking"``: halve the step until the objective falls by a share of what the slope promises
        (Armijo), beginning with twice the last step.
    gradient_tolerance
        Epsilon: it ends when the gradient's norm is below this.
    """

    name: ClassVar[str] = "steepest_descent"
    line_search: str = "exact"
    max_iterations: int = 10_000
    gradient_tolerance: float = 1e-6
    most_steps: int = 60

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"max_iterations": 0, "gradient_tolerance": 0, "most_steps": 1},
            choices={"line_search": ("exact", "backtracking")},
        )

    def run(self, problem: Problem) -> Minimum:
        """Minimise."""
        if problem.penalty.has_l1 or problem.penalty.has_groups:
            raise ModelError(
                "SteepestDescent needs a smooth objective; use ProximalGradient with an l1 penalty or groups"
            )
        started = clock()
        w, first = problem.start, 0.0
        iteration, values = 0, list[float]()
        state = problem.keeper.read(len(w))
        if state is not None:
            w, first, iteration, values = (
                state["weights"],
                float(state["step"][0]),
                state["iteration"],
                [*state["values"]],
            )
        value, gradient = problem.smooth(w)
        check_same(value, values)
        norm, evaluations = float(np.linalg.norm(gradient)), 1
        message, converged = f"{self.max_iterations} iterations", False

        def now() -> State:
            return {"weights": w, "step": np.array([first]), "iteration": iteration, "values": np.array(values)}

        try:
            if not np.isfinite(value + norm):
                return Minimum(
                    w, value, norm, 0, 1, False, "the objective is not finite at the start", (), clock() - started
                )
            while iteration < self.max_iterations:
                if norm <= self.gradient_tolerance:
                    message, converged = "the gradient vanishes", True
                    break
                if iteration > PERIOD and values[-1 - PERIOD] <= value:
                    message, converged = f"the objective did not fall in {PERIOD} iterations", True
                    break
                found = self._step(problem, w, value, gradient, first or min(1.0, 1.0 / norm))
                if found is None:
                    # After some iterations that is what rounding leaves; at the start it is a failure.
                    message, converged = "no step lowers the objective further", iteration > 0
                    if not converged:
                        message = "no step lowers the objective: its gradient is not that of its value"
                    break
                new, value, gradient, used = found
                first = 2 * float(np.linalg.norm(new - w)) / norm
                w, norm, iteration, evaluations = (
                    new,
                    float(np.linalg.norm(gradient)),
                    iteration + 1,
                    evaluations + used,
                )
                values.append(value)
                problem.keeper.offer(now)
                if problem.told(iteration, value, w):
                    message = "stopped by the callback"
                    break
        except STOPS as stop:
            if iteration == 0 and not isinstance(stop, StoppedError):
                raise
            message = str(stop) or "interrupted"
        problem.keeper.offer(now, now=True)
        return Minimum(w, value, norm, iteration, evaluations, converged, message, tuple(values), clock() - started)

    def _step(
        self, problem: Problem, w: FloatArray, value: float, gradient: FloatArray, step: float
    ) -> tuple[FloatArray, float, FloatArray, int] | None:
        if self.line_search == "exact":
            return line_search(problem.smooth, w, value, gradient, -gradient, step, self.most_steps, curvature=EXACT)
        square = float(gradient @ gradient)
        for used in range(1, self.most_steps + 1):
            new = w - step * gradient
            new_value, new_gradient = problem.smooth(new)
            if new_value <= value - DECREASE * step * square and np.isfinite(new_value + new_gradient @ gradient):
                return new, new_value, new_gradient, used
            step *= 0.5
        return None
