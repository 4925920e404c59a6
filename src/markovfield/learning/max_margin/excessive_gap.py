"""The excessive gap method with smoothed hinges (Nesterov 2005; Zhang, Saha and Vishwanathan 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.dual_extragradient import longest
from markovfield.learning.max_margin.marginal_problem import MarginalProblem, MarginalWatch
from markovfield.learning.max_margin.problem import MarginMinimum

__all__ = ["ExcessiveGap"]

# The constant of the slope is first taken to be so small a part of its bound, and grows so much where that was wrong.
HOPE, MORE = 1e-2, 4.0


@dataclass(frozen=True)
class ExcessiveGap:
    """Weights and distributions that keep the *smoothed* primal below the dual while smoothing is turned down.

    A hinge that is smoothed by u is ``u (log of the mean over outputs of exp(height / u))``: softmax for max. Where it,
    with ``1/2 |w|^2``, is below the dual of some distributions, the true primal is above that dual by at most u times
    the logarithm of how many outputs there are. An iteration keeps that order with u smaller by ``1 - 2 / (k + 3)``.

    Parameters
    ----------
    gap
        Ends where primal less dual is below this share of the primal.
    max_passes
        Iterations; each takes two runs of inference for every example.
    check_every
        Iterations from one value of the primal to the next.

    Notes
    -----
    u falls as ``L / k^2``, where L is the constant of the dual's slope: within e of the optimum after O(1 / sqrt(e))
    iterations, the fewest of solvers that take all examples at a time. L is not known: it starts small, and grows
    where the order is lost, from where the iterations begin anew.

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> svm = mf.MulticlassCRF(objective="hinge", solver=ExcessiveGap(gap=1e-3), l2=0.1).fit(X, y)
    >>> svm.report_.converged
    True
    """

    gap: float = 1e-3
    max_passes: int = 2000
    check_every: int = 5

    name: ClassVar[str] = "excessive_gap"

    def __post_init__(self) -> None:
        check_method(self, least={"max_passes": 1, "check_every": 1, "gap": 0.0})

    def run(self, problem: MarginalProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        watch = MarginalWatch(problem, running)
        w, dual, message = np.zeros(problem.n_weights), -np.inf, "as many passes as were allowed"
        try:
            smoothing = first = HOPE * longest(watch) ** 2
            even = watch.all_moments(watch.even())
            start, k = True, 0
            for number in range(self.max_passes):
                if start:
                    w, smoothing, k, start = even.features, first, 0, False
                    known = watch.all_moments([own / smoothing for own in watch.all_cells(w)])
                cells = [own / smoothing for own in watch.all_cells(w)]
                smooth = watch.all_moments(cells)
                value = 0.5 * float(w @ w) + smoothing * (smooth.log_partition - even.log_partition)
                if value > known.dual + 1e-9 * max(1.0, abs(value)):
                    first, start = MORE * first, True
                    watch.note(np.nan, dual)
                    continue
                share = 2.0 / (k + 3.0)
                between = known.mixed(smooth, share).features
                further = share / ((1.0 - share) * smoothing)
                slopes = watch.all_cells(between)
                w = (1.0 - share) * w + share * between
                known = known.mixed(
                    watch.all_moments([own + further * slope for own, slope in zip(cells, slopes, strict=True)]), share
                )
                smoothing *= 1.0 - share
                k += 1
                dual = max(dual, known.dual)
                if (number + 1) % self.check_every == 0 or number == self.max_passes - 1:
                    watch.note(watch.everywhere(w)[1], dual)
                    if watch.closed(dual, self.gap):
                        break
                else:
                    watch.note(np.nan, dual)
        except STOPS as stop:
            message = watch.stopped(stop, w)
        return watch.ended(dual, self.gap, message)
