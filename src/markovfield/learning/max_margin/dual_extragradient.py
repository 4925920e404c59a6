"""The dual extragradient method on the saddle of weights and marginals (Nesterov 2007; Taskar et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.marginal_problem import MarginalProblem, MarginalWatch, Moments
from markovfield.learning.max_margin.problem import MarginMinimum

__all__ = ["DualExtragradient"]

# What a step is multiplied by after one that was short enough, and after one that was not.
LONGER, SHORTER = 1.2, 0.5


@dataclass(frozen=True)
class DualExtragradient:
    """Steps down in weights and up in distributions of outputs, each looked ahead by one.

    The objective is ``1/2 |w|^2 + the expected height``, to be made small by weights and large by distributions. Every
    iteration goes to a trial point, and then from where it was along the slope *there*. Distributions stay such by
    adding to their numbers for cells (Bregman steps of the entropy), so that no projection is needed but inference. The
    average of trial points is what converges.

    Parameters
    ----------
    gap
        Ends where primal less dual is below this share of the primal.
    max_passes
        Iterations, with those whose step was too long; each takes two runs of inference for every example.
    step
        None: as long as slopes allow, which is looked at in every iteration.
    check_every
        Iterations from one value of the primal to the next.

    Notes
    -----
    The gap falls as O(1 / iterations). Memory is two numbers for each cell.

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> svm = mf.MulticlassCRF(objective="hinge", solver=DualExtragradient(gap=1e-2), l2=0.1).fit(X, y)
    >>> svm.report_.converged
    True
    """

    gap: float = 1e-2
    max_passes: int = 2000
    step: float | None = None
    check_every: int = 10

    name: ClassVar[str] = "dual_extragradient"

    def __post_init__(self) -> None:
        check_method(self, least={"max_passes": 1, "check_every": 1, "gap": 0.0}, above={"step": 0.0})

    def run(self, problem: MarginalProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        watch = MarginalWatch(problem, running)
        w, mean = np.zeros(problem.n_weights), Moments(np.zeros(problem.n_weights), 0.0, np.nan)
        dual, total, message = -np.inf, 0.0, "as many passes as were allowed"
        try:
            step = self.step or 1.0 / longest(watch)
            cells = watch.even()
            here, slopes = watch.all_moments(cells), watch.all_cells(w)
            for number in range(self.max_passes):
                ahead = w - step * (w - here.features)
                there = watch.all_moments([own + step * slope for own, slope in zip(cells, slopes, strict=True)])
                steeper = watch.all_cells(ahead)
                moved = w - step * (ahead - there.features)
                tried = [own + step * slope for own, slope in zip(cells, steeper, strict=True)]
                after = watch.all_moments(tried)
                if self.step is None and _too_long(step, (w, here), (ahead, there), (moved, after)):
                    step *= SHORTER
                    watch.note(np.nan, dual)
                    continue
                w, here, cells, slopes = moved, after, tried, watch.all_cells(moved)
                # Points count as their steps, and later ones for more, as the first are far off.
                total += step * (number + 1.0)
                mean = mean.mixed(there, step * (number + 1.0) / total)
                step *= LONGER if self.step is None else 1.0
                dual = max(dual, mean.dual)
                if (number + 1) % self.check_every == 0 or number == self.max_passes - 1:
                    watch.note(watch.everywhere(mean.features)[1], dual)
                    if watch.closed(dual, self.gap):
                        break
                else:
                    watch.note(np.nan, dual)
        except STOPS as stop:
            message = watch.stopped(stop, mean.features)
        return watch.ended(dual, self.gap, message)


Point = tuple[FloatArray, Moments]


def _too_long(step: float, start: Point, ahead: Point, end: Point) -> bool:
    """Whether slopes have changed by more than the distances between the points of a step allow (Nemirovski 2004)."""
    (w, here), (u, there), (v, after) = start, ahead, end
    change = (u - there.features) - (w - here.features)
    bend = step * (float(change @ (u - v)) - float((u - w) @ (after.features - there.features)))
    # Relative entropies of the distributions, from their log Z: numbers for cells differ by steps times heights.
    first = step * (there.loss - float(w @ there.features)) - (there.log_partition - here.log_partition)
    second = -step * float((u - w) @ after.features) - (after.log_partition - there.log_partition)
    return bend > 0.5 * float((u - w) @ (u - w)) + 0.5 * float((v - u) @ (v - u)) + max(first, 0.0) + max(second, 0.0)


def longest(watch: MarginalWatch) -> float:
    """The greatest length of a plane at no weights, times the root of all costs: about the slope's constant."""
    found, _ = watch.everywhere(np.zeros(watch.problem.n_weights))
    squares = [np.diff(np.concatenate([[0.0], np.cumsum(p.values**2)])[p.offsets]).max(initial=0.0) for p in found]
    return max(float(np.sqrt(max(squares) * watch.problem.costs.sum())), 1.0)
