"""What relaxations share: the best assignment found so far, and an answer that sets it against the proven bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.constants.scale import MANY_FACTORS, extremes, score_scale, unit_among
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.running import Running
from markovfield.inference.local_search.local_search import LocalSearch, given_states
from markovfield.inference.problem.feasible import BUDGET, Feasible
from markovfield.inference.problem.problem import Problem

__all__ = [
    "ROUNDING",
    "Incumbent",
    "ScoreUnits",
    "relaxed_decoding",
    "stopped_decoding",
]

# Bound and score are sums over the whole graph, rounded in different orders: nearer than this they are the same.
ROUNDING = 1e-9


@dataclass(frozen=True)
class ScoreUnits:
    """What scores of a problem are compared in.

    Attributes
    ----------
    unit
        See `unit_among`. Cells that no factor can read do not count, though in a graph of very many factors they do.
    fixed
        What scores are compared from: the best of every factor that evidence or hard zeros have changed. A constant
        says nothing of how well a score was computed. Those of a whole model are gone before a method sees it; what is
        left of a factor once some of its variables are known may have one again.
    """

    unit: float
    fixed: float

    @classmethod
    def of(cls, problem: Problem) -> ScoreUnits:
        """Those of a prepared problem, in time linear in the cells that its factors read."""
        pool, reduced = problem.potentials.log_tables, problem.reduced is not None
        if not reduced and problem.structure.n_factors > MANY_FACTORS:
            return cls(unit_among(pool, problem.likelihood), 0.0)
        found = extremes(FactorGraph(problem.structure, pool) if reduced else problem.as_tables)
        unit = unit_among(found.top, found.low, problem.likelihood)
        return cls(unit, float(found.top.sum()) if reduced else 0.0)

    def size(self, score: float) -> float:
        """What a difference is compared with: the score less what all assignments score alike, or the unit."""
        return max(self.unit, min(abs(score), abs(score - self.fixed)))


class Incumbent:
    """The best assignment of a prepared problem that was found so far; candidates climb before they are compared."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.units = ScoreUnits.of(problem)
        self.scale = score_scale(problem.graph, problem.evidence)
        self.score = -np.inf
        self.states = np.zeros(problem.graph.n_variables, np.int32)
        self._search: LocalSearch | None = None

    def offer(self, states: npt.NDArray[np.integer[Any]], running: Running) -> None:
        """Take a candidate, states of the problem; auxiliary variables do not matter."""
        self.offer_own(self.problem.states(np.asarray(states)), running)

    def offer_own(self, states: npt.NDArray[np.integer[Any]], running: Running) -> None:
        """Take a candidate, states of the user's variables: change single variables for the better, keep the best."""
        if self._search is None:
            self._search = LocalSearch(self.problem.graph, self.problem.evidence, states)
        else:
            self._search.move_to(np.asarray(states, np.int64))
        try:
            self._search.climb(np.arange(len(states)), running)
        finally:
            if not self._search.best_broken and self._search.best_score > self.score:
                self.states, self.score = self._search.best.astype(np.int32), self._search.best_score

    def meets(self, bound: float) -> bool:
        """Whether the best assignment is as good as the bound, but for rounding or for less than scores can differ."""
        return self.score > -np.inf and self.scale.proves(bound - self.score, ROUNDING * self.size)

    @property
    def size(self) -> float:
        """What a difference from the best score is compared with."""
        return self.units.size(self.score)

    def offer_given(self, init: Any, running: Running) -> None:
        """Start from an earlier answer, or a dict of states by name."""
        self.offer_own(given_states(self.problem.graph, init), running)

    def search(self, preference: FloatArray, running: Running) -> None:
        """Where every candidate breaks a hard constraint: look for an assignment that breaks none.

        Raises `ImpossibleEvidenceError` where the search proves that there is none.
        """
        if self.score > -np.inf:
            return
        found = Feasible.of(self.problem).assignment(preference)
        if found is not None:
            self.offer(found, running)

    def answer(self, name: str) -> tuple[npt.NDArray[np.int32], float]:
        """The best assignment of the user's variables and its score."""
        if self.score == -np.inf:
            raise ModelError(
                f"{name} found no assignment free of hard zeros, nor did a search of {BUDGET} steps back: "
                "use junction_tree or branch_and_bound"
            )
        return self.states, self.score


def stopped_decoding(name: str, problem: Problem, running: Running, stop: BaseException) -> Decoding:
    """The answer of a method that was stopped before it had one: a quick local search, of which nothing is proven.

    Raises ``stop`` where that finds no assignment free of hard zeros.
    """
    best = Incumbent(problem)
    n_values = int(problem.structure.value_offsets[-1])
    best.offer(np.zeros(problem.structure.n_variables, np.int64), Running())
    best.search(np.zeros(n_values), Running())
    if best.score == -np.inf:
        raise stop
    return relaxed_decoding(name, best, np.inf, running, converged=False)


def relaxed_decoding(
    name: str,
    best: Incumbent,
    bound: float,
    running: Running,
    *,
    tolerance: float | None = None,
    **details: Any,
) -> Decoding:
    """The answer: the best assignment, and the bound less its score as its gap."""
    states, score = best.answer(name)
    gap = max(0.0, bound - score)
    if tolerance is None:
        tolerance = ROUNDING * best.size
    return decoding_of_states(
        best.problem.graph,
        [(states, score)],
        gap=gap,
        tolerance=tolerance,
        guarantee="exact" if gap <= tolerance else "lower",
        method=name,
        seconds=running.seconds,
        **details,
    )
