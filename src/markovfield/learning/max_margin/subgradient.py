"""Steps along subgradients that shrink as 1 / t (Ratliff et al. 2007; Pegasos, Shalev-Shwartz et al. 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, Watch

__all__ = ["Subgradient"]


@dataclass(frozen=True)
class Subgradient:
    """Stochastic subgradients with the schedule of Pegasos.

    There is no dual: it ends after its passes. The primal is worked out after every ``check_every`` passes.

    Parameters
    ----------
    passes
        Over all examples.
    averaged
        Whether the weights are the average over all steps, later ones counting for more (weights t).
    projected
        Whether weights are kept within the ball that the optimum is known to lie in, which takes a pass to know.
    check_every
        Passes from one value of the primal to the next.

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> svm = mf.MulticlassCRF(objective="hinge", solver=Subgradient(passes=20), l2=0.1, rng=0).fit(X, y)
    >>> svm.predict([[0.0], [3.0]]).tolist()
    ['a', 'b']
    """

    passes: int = 50
    averaged: bool = True
    projected: bool = True
    check_every: int = 10

    name: ClassVar[str] = "subgradient"

    def __post_init__(self) -> None:
        check_method(self, least={"passes": 1, "check_every": 1})

    def run(self, problem: HingeProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        watch = Watch(problem, running)
        w, mean = np.zeros(problem.n_weights), np.zeros(problem.n_weights)
        n = len(problem.shards)
        radius, t, restraint = np.inf, 0, problem.restraint
        message = "as many passes as were asked for"
        try:
            if self.projected:
                # At the optimum primal and dual are equal: |w|^2 is at most the losses that masses weigh, and these
                # are at most the primal of w = 0, where all losses count in full.
                radius = np.sqrt(watch.everywhere(w)[1])
            for step in range(self.passes):
                for shard in rng.permutation(n).tolist():
                    planes = watch.planes(w, shard)
                    t += 1
                    active = planes.heights(w) > 0.0
                    slope, _ = planes.summed(problem.n_weights, problem.costs[planes.blocks] * active)
                    rate = 1.0 / t
                    if restraint is not None:
                        slope -= restraint.l1 * np.sign(w) / n
                    w = (1.0 - rate) * w + (rate * n) * slope
                    if restraint is not None:
                        w[restraint.nonnegative & (w < 0.0)] = 0.0
                    length = float(np.linalg.norm(w))
                    if length > radius:
                        w *= radius / length
                    mean += 2.0 / (t + 1.0) * (w - mean)
                chosen = mean if self.averaged else w
                last = step == self.passes - 1
                value = watch.everywhere(chosen)[1] if last or (step + 1) % self.check_every == 0 else np.nan
                watch.note(value, np.nan)
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        if not len(watch.weights):
            watch.weights = mean if self.averaged else w
        return watch.ended(np.nan, -1.0, message)
