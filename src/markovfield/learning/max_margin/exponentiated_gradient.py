"""Exponentiated gradients on the dual of a structural SVM (Bartlett et al. 2005; Collins et al. 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.marginal_problem import MarginalProblem, MarginalWatch
from markovfield.learning.max_margin.problem import MarginMinimum

__all__ = ["ExponentiatedGradient"]

# What a step is multiplied by after one that raised the dual, and after one that went too far; and how often to try.
LONGER, SHORTER, TRIES = 1.3, 0.5, 30
MOST = 1e6
# Relative to the dual. Where mass has left an output nearly all, steps change next to nothing until it is back: if
# rounding alone could call such a step too long, steps would be halved for ever.
ROUNDING = 1e-12


@dataclass(frozen=True)
class ExponentiatedGradient:
    """Probabilities of outputs are multiplied by ``exp(step * height)``, a shard at a time.

    The dual is kept as a distribution over the outputs of every example, which marginals stand for: a step adds scores
    and losses to its numbers for cells, and takes log Z and marginals in place of the best output. A step that does not
    raise the dual is halved. It is for models with exact marginals.

    Parameters
    ----------
    gap
        Ends where primal less dual is below this share of the primal.
    max_passes
        Over all blocks.
    step
        The first step; each shard then has its own, which grows as long as the dual rises.
    check_every
        Passes from one value of the primal to the next, which takes a call of the oracle for every example.

    Notes
    -----
    Memory is a number for each cell: of a chain, labels times tokens. The dual is within e of the optimum after
    O(1 / e) passes. It is reached from within, as no output ever has probability 0.

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> svm = mf.MulticlassCRF(objective="hinge", solver=ExponentiatedGradient(gap=1e-2), l2=0.1).fit(X, y)
    >>> svm.report_.converged
    True
    """

    gap: float = 1e-3
    max_passes: int = 1000
    step: float = 1.0
    check_every: int = 5

    name: ClassVar[str] = "exponentiated_gradient"

    def __post_init__(self) -> None:
        check_method(self, least={"max_passes": 1, "check_every": 1, "gap": 0.0}, above={"step": 0.0})

    def run(self, problem: MarginalProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        watch, n = MarginalWatch(problem, running), len(problem.shards)
        w, dual, loss = np.zeros(problem.n_weights), -np.inf, 0.0
        steps, message = np.full(n, self.step), "as many passes as were allowed"
        try:
            # Losses with a minus: most mass is on outputs near the truth.
            cells = [np.where(np.isneginf(own), own, -own) for own in watch.all_cells(w)]
            parts = [watch.moments(own, shard) for shard, own in enumerate(cells)]
            w = np.sum([part.features for part in parts], axis=0)
            loss = sum(part.loss for part in parts)
            dual = loss - 0.5 * float(w @ w)
            for number in range(self.max_passes):
                if number % self.check_every == 0:
                    watch.note(watch.everywhere(w)[1], dual)
                    if watch.closed(dual, self.gap):
                        break
                else:
                    watch.note(np.nan, dual)
                for shard in rng.permutation(n).tolist():
                    slope, rounding = problem.cells(w, shard), ROUNDING * (abs(dual) + abs(loss))
                    for _ in range(TRIES):
                        tried = cells[shard] + steps[shard] * slope
                        part = watch.moments(tried, shard)
                        moved = w + (part.features - parts[shard].features)
                        changed = loss + (part.loss - parts[shard].loss)
                        value = changed - 0.5 * float(moved @ moved)
                        if value >= dual - rounding:
                            # Where the dual falls at the end of the way, half of it would have been enough: mass that
                            # has gone takes long to come back.
                            late = (changed - loss) < float(moved @ (moved - w)) - rounding
                            cells[shard], parts[shard] = tried, part
                            w, loss, dual = moved, changed, value
                            # Where nothing is gained, as of examples that weigh nothing, steps would grow for ever.
                            steps[shard] = min(steps[shard] * (SHORTER if late else LONGER), MOST)
                            break
                        steps[shard] *= SHORTER
            else:
                watch.everywhere(w)
        except STOPS as stop:
            message = watch.stopped(stop, w)
        return watch.ended(dual, self.gap, message)
