"""The best score by mini-buckets: upper bounds tightened at falling temperature, and assignments read off them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from markovfield.inference.constants.scale import score_scale
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.local_search.incumbent import ScoreUnits
from markovfield.inference.problem.problem import Problem

if TYPE_CHECKING:
    from markovfield.inference.mini_bucket.mini_bucket import MiniBucket

__all__ = ["Search"]

# Temperatures start at the gap per cut variable and fall by this factor, about so many times.
COOLING, COOLINGS = 0.5, 10


class Search:
    """The best score by upper bounds at falling temperature: power sums of small weights are smooth, maxima are not."""

    def __init__(self, method: MiniBucket, problem: Problem, running: Running) -> None:
        self.method, self.running = method, running
        self.stop: BaseException | None = None
        self.units = ScoreUnits.of(problem)
        self.scale = score_scale(problem.graph, problem.evidence)
        buckets, first = method.best_buckets(problem, 0.0, running)
        self.buckets, self.bound, self.shifts = buckets, first.bound, first.shifts
        self.gains: list[float] = []
        self.shares = buckets.shares()
        self.states, self.score = np.zeros(problem.graph.n_variables, np.int32), -np.inf
        try:
            self.look(buckets.forward(first.shifts, 0.0 * first.weights, running))
        except STOPS as stop:
            # There is a bound already.
            running.remember(stop)
        self.converged = not buckets.plan.n_split
        scale = self.bound - self.score if self.score > -np.inf else 1.0 + abs(self.bound)
        self.temperature = scale / max(1, buckets.plan.n_split)

    def cool(self) -> None:
        """Tighten at one temperature after the other; the bound of maxima is looked at after each.

        Called again after a stop it goes on from where that was, under ``running`` as it is then.
        """
        method, buckets = self.method, self.buckets
        limit = max(1, method.max_iterations // COOLINGS)
        try:
            while not (self.converged or self.close) and len(self.gains) < method.max_iterations:
                found = buckets.tighten(
                    self.shifts,
                    self.temperature * self.shares,
                    sign=-1.0,
                    max_iterations=min(limit, method.max_iterations - len(self.gains)),
                    tolerance=method.tolerance,
                    running=self.running,
                    move_weights=False,
                )
                self.shifts = found.shifts
                self.gains += found.gains
                self.look(buckets.forward(self.shifts, 0.0 * self.shares, self.running))
                self.temperature *= COOLING
                self.converged = found.converged and self.temperature * len(self.shares) < method.tolerance
            if not self.close:
                cutset = method.cutset(buckets, self.shifts, self.temperature * self.shares, self.running, self.states)
                self.keep(cutset.decode())
        except STOPS as stop:
            self.converged, self.stop = False, stop

    @property
    def tolerance(self) -> float:
        """What rounding may leave between a score and the bound on it."""
        return 1e-9 * self.units.size(self.score) if self.score > -np.inf else 0.0

    @property
    def close(self) -> bool:
        """Whether the assignment is proven best."""
        return self.score > -np.inf and self.scale.proves(self.bound - self.score, self.tolerance)

    def look(self, bound: float) -> None:
        """Keep a better bound, and a better assignment."""
        self.bound = min(self.bound, bound)
        states = self.buckets.problem.states(self.buckets.decode())
        problem = self.buckets.problem
        self.keep((states, float(problem.graph.score(states)) + problem.evidence.log_likelihood(states)))

    def keep(self, found: tuple[npt.NDArray[np.int32], float] | None) -> None:
        """Keep an assignment that is better."""
        if found is not None and found[1] > self.score:
            self.states, self.score = found
