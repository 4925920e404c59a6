"""Where a minimisation ended, which every solver answers with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markovfield.arrays import FloatArray

__all__ = ["Callback", "Minimum", "Objective"]

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
# Told the iteration, the objective and the weights; a true answer stops.
Callback = Callable[[int, float, FloatArray], bool | None]


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a minimisation ended.

    Attributes
    ----------
    weights
        Always finite.
    value
        The objective there, with all penalties; nan where a stochastic objective does not tell it.
    gradient_norm
        Of the gradient there, or of the shortest subgradient where a penalty has a kink. Stochastic solvers estimate it
        by the average of the gradients of their last pass.
    evaluations
        Calls of the objective.
    message
        Why it ended.
    history
        The objective after each iteration.
    """

    weights: FloatArray
    value: float
    gradient_norm: float
    iterations: int
    evaluations: int
    converged: bool
    message: str
    history: tuple[float, ...]
    seconds: float
