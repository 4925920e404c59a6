"""Proximal gradient steps, plain and accelerated: for penalties with kinks, norms of groups among them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import StoppedError
from markovfield.inference.core.running import STOPS
from markovfield.kernels.compilations import clock
from markovfield.learning.solvers.checkpoint import State, check_same
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.problem import Problem

__all__ = ["ProximalGradient"]

# Values that differ by less, relative to themselves, are equal.
ROUNDING = 1e-15
# Steps are halved until they are short enough, and every so often tried longer again.
SHORTER, LONGER, PERIOD = 0.5, 1.5, 30


@dataclass(frozen=True)
class ProximalGradient:
    """FISTA (Beck and Teboulle 2009) with step lengths found by backtracking, and restarts where momentum leads uphill.

    Steps grow again when the objective allows it (Scheinberg, Goldfarb and Bai 2014); a restart forgets the momentum
    (O'Donoghue and Candes 2015). The error falls as 1 / iterations^2, and geometrically near the minimum of a strongly
    convex objective. An iteration costs two evaluations, and one without momentum.

    Parameters
    ----------
    accelerated
        Whether steps have momentum.
    tolerance, period
        Converged when the objective fell by less than this, relative to itself, over the last ``period`` iterations.
    gradient_tolerance
        Converged when the norm of the shortest subgradient is below this times the larger of one and the weights' norm.
    """

    name: ClassVar[str] = "proximal_gradient"
    accelerated: bool = True
    max_iterations: int = 10_000
    tolerance: float = 1e-12
    gradient_tolerance: float = 1e-6
    period: int = 10
    most_steps: int = 60

    def __post_init__(self) -> None:
        positive = {"period": 1, "most_steps": 1}
        check_method(self, least={**positive, "max_iterations": 0, "tolerance": 0, "gradient_tolerance": 0})

    def run(self, problem: Problem) -> Minimum:
        """Minimise."""
        started = clock()
        course = _Course(problem, self.most_steps)
        message, converged = f"{self.max_iterations} iterations", False
        try:
            if not np.isfinite(course.value + course.norm):
                message = "the objective or its gradient is not finite at the start"
                return course.minimum(message, False, clock() - started)
            while course.iteration < self.max_iterations:
                if course.norm <= self.gradient_tolerance * max(1.0, float(np.linalg.norm(course.w))):
                    message, converged = "the gradient vanishes", True
                    break
                if not course.step(self.accelerated):
                    message = "no proximal step lowers the objective"
                    break
                problem.keeper.offer(course.state)
                if problem.told(course.iteration, course.value, course.w):
                    message = "stopped by the callback"
                    break
                before = course.values[-1 - self.period] if course.iteration > self.period else math.inf
                if before - course.value <= self.tolerance * abs(course.value):
                    message = f"the objective fell by less than {self.tolerance:g} in {self.period} iterations"
                    converged = True
                    break
        except STOPS as stop:
            if course.iteration == 0 and not isinstance(stop, StoppedError):
                raise
            message = str(stop) or "interrupted"
        problem.keeper.offer(course.state, now=True)
        return course.minimum(message, converged, clock() - started)


class _Course:
    """Where the iteration is: the weights, the point with momentum, the step length."""

    def __init__(self, problem: Problem, most_steps: int) -> None:
        self.problem, self.penalty, self.most_steps = problem, problem.penalty, most_steps
        self.w = problem.start
        self.iteration, self.values, self.evaluations = 0, [], 1
        self.length, self.time = 0.0, 1.0
        state = problem.keeper.read(len(self.w))
        self.before = self.w
        if state is not None:
            self.w, self.before = state["weights"], state["before"]
            self.length, self.time = state["numbers"].tolist()
            self.iteration, self.values = state["iteration"], state["values"].tolist()
        smooth, self.gradient = problem.smooth(self.w)
        self.smooth, self.value = smooth, smooth + self.penalty.kinked(self.w)
        check_same(self.value, self.values)
        self.norm = self.penalty.optimality(self.w, self.gradient)
        if not self.length and self.norm > 0:
            self.length = 1.0 / max(self.norm, 1.0)

    def state(self) -> State:
        """What to go on from."""
        numbers = np.array([self.length, self.time])
        known = {"weights": self.w, "before": self.before, "numbers": numbers, "values": np.array(self.values)}
        return {**known, "iteration": self.iteration}

    def step(self, accelerated: bool) -> bool:
        """One step; with momentum if that lowers the objective, and else without."""
        length = self.length * (LONGER if self.iteration % PERIOD == PERIOD - 1 else 1.0)
        for _ in range(self.most_steps):
            time = (1 + math.sqrt(1 + 4 * self.time**2 * self.length / length)) / 2
            momentum = (self.time - 1) / time if accelerated else 0.0
            if momentum:
                point = self.w + momentum * (self.w - self.before)
                base, gradient = self.problem.smooth(point)
                self.evaluations += 1
            else:
                point, base, gradient = self.w, self.smooth, self.gradient
            new = self.penalty.prox(point - length * gradient, length)
            smooth, new_gradient = self.problem.smooth(new)
            self.evaluations += 1
            value = smooth + self.penalty.kinked(new)
            if self._short_enough(new - point, length, (base, smooth), (gradient, new_gradient)):
                if value <= self.value + ROUNDING * abs(value):
                    # Momentum that points against the step is forgotten.
                    against = float((point - new) @ (new - self.w)) > 0
                    self._take(new, smooth, value, new_gradient, length, 1.0 if against or not accelerated else time)
                    return True
                if not momentum:
                    # What rounding leaves: nothing lower is in reach.
                    return False
                self.time, self.before = 1.0, self.w  # restart
                continue
            length *= SHORTER
        return False

    def _short_enough(
        self, moved: FloatArray, length: float, values: tuple[float, float], gradients: tuple[FloatArray, FloatArray]
    ) -> bool:
        """Whether the objective lies below its quadratic bound; by gradients where values differ by rounding."""
        (base, value), (gradient, new_gradient) = values, gradients
        square = float(moved @ moved) / length
        turned = float((new_gradient - gradient) @ moved)
        if not np.isfinite(base + value + turned):
            return False
        rise = value - base - float(gradient @ moved)
        if abs(rise) > 1e-9 * max(abs(value), abs(base)):
            return rise <= 0.5 * square
        return turned <= square

    def _take(
        self, new: FloatArray, smooth: float, value: float, gradient: FloatArray, length: float, time: float
    ) -> None:
        self.before, self.w = self.w, new
        self.smooth, self.value, self.gradient = smooth, value, gradient
        self.length, self.time = length, time
        self.norm = self.penalty.optimality(new, gradient)
        self.iteration += 1
        self.values.append(value)

    def minimum(self, message: str, converged: bool, seconds: float) -> Minimum:
        """Where it ended."""
        ended = (self.norm, self.iteration, self.evaluations, converged, message)
        return Minimum(self.w, self.value, *ended, tuple(self.values), seconds)
