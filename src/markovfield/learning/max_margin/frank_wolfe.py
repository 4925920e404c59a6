"""The Frank-Wolfe algorithm on the dual of a structural SVM, all blocks at a time (Lacoste-Julien et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, Watch, only_squares

__all__ = ["FrankWolfe"]


@dataclass(frozen=True)
class FrankWolfe:
    """All mass moves towards the highest planes of all blocks, as far as the dual rises.

    The linear problem of Frank-Wolfe is the oracle, and its gap is primal less dual at the same weights. Nothing is
    kept but the weights and the loss of where it is: the least memory of all solvers, and the most passes.

    Parameters
    ----------
    gap
        Ends where primal less dual is below this share of the primal.
    max_passes
        Over all blocks.

    Notes
    -----
    A pass costs a call of the oracle for each block; the dual is within e of the optimum after O(1 / e) passes.

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> svm = mf.MulticlassCRF(objective="hinge", solver=FrankWolfe(gap=0.05), l2=1.0).fit(X, y)
    >>> svm.report_.converged
    True
    """

    gap: float = 1e-2
    max_passes: int = 2000

    name: ClassVar[str] = "frank_wolfe"

    def __post_init__(self) -> None:
        check_method(self, least={"max_passes": 1, "gap": 0.0})

    def run(self, problem: HingeProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        only_squares(problem, "FrankWolfe")
        watch, w, loss = Watch(problem, running), np.zeros(problem.n_weights), 0.0
        dual, message = 0.0, "as many passes as were allowed"
        try:
            for _ in range(self.max_passes):
                found, primal = watch.everywhere(w)
                watch.note(primal, dual)
                if watch.closed(dual, self.gap):
                    break
                features, total = np.zeros(problem.n_weights), 0.0
                for planes in found:
                    # Where the true output is the highest, mass moves to it.
                    factors = problem.costs[planes.blocks] * (planes.heights(w) > 0.0)
                    a, b = planes.summed(problem.n_weights, factors)
                    features += a
                    total += b
                direction = features - w
                gain, square = (total - loss) - float(w @ direction), float(direction @ direction)
                if not gain > 0.0:
                    message = "no step raises the dual"
                    break
                step = 1.0 if gain >= square else gain / square
                w = w + step * direction
                loss += step * (total - loss)
                dual = loss - 0.5 * float(w @ w)
        except STOPS as stop:
            message = watch.stopped(stop, w)
        return watch.ended(dual, self.gap, message)
