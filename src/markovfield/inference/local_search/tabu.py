"""Tabu search: the best change of one variable, even for the worse, that was not made of late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.local_search.local_search import (
    LocalSearch,
    searched,
)
from markovfield.inference.local_search.local_search_kernel import (
    tabu_steps,
)
from markovfield.kernels.random import streams

__all__ = ["TabuSearch"]


@dataclass(frozen=True)
class TabuSearch:
    """Tabu search up to some thousands of variables, iterated local search beyond.

    Tabu search (Glover 1986) takes the best change of a single variable, gain or loss, and forbids the variable to
    move again for a while; a step costs as much as there are states. Iterated local search shakes a few neighbouring
    variables, climbs, and goes back where that was no better; a step costs what it touches.

    Parameters
    ----------
    steps
        Changes in all; None is 200 for each variable, at most 10^6.
    tenure
        For how many steps a variable that moved stays; None is ten and a twentieth of the variables, at most 50 and
        at most half of them.
    largest
        With more variables than this, iterated local search.
    shaken
        Variables that one shake changes.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.Ising((6, 6), coupling=-1.0, field=0.1)
    >>> round(mf.decode(model, method=mf.methods.TabuSearch(), rng=0).score, 6)
    60.0
    """

    steps: int | None = None
    tenure: int | None = None
    largest: int = 3000
    shaken: int = 6

    name: ClassVar[str] = "tabu_search"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})

    def __post_init__(self) -> None:
        check_method(self, least={"largest": 0, "steps": 1, "tenure": 1, "shaken": 1})

    def decode(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None, rng: np.random.Generator
    ) -> Decoding:
        """Climb, then search on."""

        def search(found: LocalSearch) -> int:
            n = graph.n_variables
            steps = self.steps if self.steps is not None else min(10**6, 200 * n)
            found.climb(np.arange(n), running)
            if n > self.largest:
                found.shake(steps, self.shaken, rng, running)
            else:
                self._tabu(found, steps, rng, running)
            return steps

        return searched(self, graph, evidence, running, init, rng, search)

    def _tabu(self, found: LocalSearch, steps: int, rng: np.random.Generator, running: Running) -> None:
        s = found.graph.structure
        n = s.n_variables
        tenure = self.tenure if self.tenure is not None else max(1, min(n // 2, 10 + n // 20, 50))
        until, stream = np.zeros(n, np.int64), streams(rng, 1)[0]
        record = np.array([found.best_broken, found.best_score, *found.tally])
        best = found.best.copy()
        clock, at_once = 0, max(1, 2**24 // max(1, int(s.value_offsets[-1])))
        while clock < steps:
            now = min(at_once, steps - clock)
            clock = tabu_steps(found.factors, now, tenure, clock, until, stream, *found.gains, best, record)
            here = found.states.copy()
            found.move_to(best)  # scores it afresh, and keeps it if it is the best
            found.move_to(here)
            record[:] = found.best_broken, found.best_score, *found.tally
            running.check(found.best_score)
        found.move_to(found.best)
        found.climb(np.arange(n), running)
