"""L-BFGS and OWL-QN as a solver with settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.learning.solvers.checkpoint import State
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.problem import Problem
from markovfield.learning.solvers.quasi_newton import MOST_STEPS, minimise

__all__ = ["LBFGS"]


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS, and OWL-QN where absolute values are penalised: the first choice for smooth objectives.

    Parameters
    ----------
    memory
        Steps remembered.
    tolerance, period
        Converged when the objective fell by less than this, relative to itself, over the last ``period`` iterations.
    gradient_tolerance
        Converged when the gradient's norm is below this times the larger of one and the weights' norm.
    most_steps
        Trials of one line search.
    """

    name: ClassVar[str] = "lbfgs"
    memory: int = 10
    max_iterations: int = 1000
    tolerance: float = 1e-10
    gradient_tolerance: float = 1e-6
    period: int = 10
    most_steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        positive = {"memory": 1, "period": 1, "most_steps": 1}
        check_method(self, least={**positive, "max_iterations": 0, "tolerance": 0, "gradient_tolerance": 0})

    def run(self, problem: Problem) -> Minimum:
        """Minimise."""
        if problem.penalty.has_groups:
            raise ModelError("LBFGS cannot penalise norms of groups; use ProximalGradient")
        resume = problem.keeper.read(len(problem.start))
        latest: list[Callable[[], State]] = []

        def keep(state: Callable[[], State]) -> None:
            latest[:] = [state]
            problem.keeper.offer(state)

        found = minimise(
            problem.smooth,
            problem.start if resume is None else resume["weights"],
            l1=problem.penalty.l1,
            memory=self.memory,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            gradient_tolerance=self.gradient_tolerance,
            period=self.period,
            most_steps=self.most_steps,
            callback=problem.told,
            n_jobs=problem.running.n_jobs,
            resume=resume,
            keep=keep,
        )
        for state in latest:
            problem.keeper.offer(state, now=True)
        return found
