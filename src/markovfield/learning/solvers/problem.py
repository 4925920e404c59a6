"""What every solver is handed: an objective with its penalty, and whom to tell of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running
from markovfield.learning.solvers.checkpoint import Keeper
from markovfield.learning.solvers.minimum import Callback
from markovfield.learning.solvers.penalty import Penalty

__all__ = ["Problem"]

# Weights this much larger than one, or than the start, run away.
FAR = 1e10


@dataclass(eq=False)
class Problem:
    """An objective, where to start, and the ways in which solving it is watched.

    Attributes
    ----------
    ending
        Why `told` asked to stop, where that was not the callback's doing.
    last
        The weights after the last iteration and the one before it.
    """

    objective: Any
    start: FloatArray
    penalty: Penalty
    running: Running
    keeper: Keeper
    rng: np.random.Generator
    callback: Callback | None = None
    ending: str = ""
    last: tuple[FloatArray, FloatArray] | None = None

    def __post_init__(self) -> None:
        self.last = (self.start, self.start)
        self.far = FAR * max(1.0, float(np.abs(self.start).max(initial=0.0)))

    def smooth(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The objective with the quadratic part of the penalty, and the gradient."""
        value, gradient = self.objective(w)
        if not self.penalty.has_l2:
            return float(value), gradient
        more, slope = self.penalty.smooth(w)
        return float(value) + more, gradient + slope

    def told(self, iteration: int, value: float, w: FloatArray) -> bool:
        """After an iteration: whether to stop."""
        assert self.last is not None
        self.last = (w, self.last[0])
        if not float(np.abs(w).max(initial=0.0)) < self.far:
            self.ending = "the weights run away: the objective has no minimum; a penalty (l2) gives it one"
            return True
        self.running.check(None if np.isnan(value) else value)
        return self.callback is not None and bool(self.callback(iteration, value, w))
