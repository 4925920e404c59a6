"""Decoding against the clock: several methods in turn, the best assignment and the best bound of them all."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError, ModelError, StoppedError
from markovfield.factor_graph import FactorGraph
from markovfield.inference.decodings import Decoding
from markovfield.inference.evidence import Evidence
from markovfield.inference.local_search import ICM, TabuSearch, check_local, given_states
from markovfield.inference.running import Progress, Running
from markovfield.inference.score_scale import ScoreScale, score_scale
from markovfield.inference.subgraph_search import SubgraphSearch

__all__ = ["Portfolio"]

# Cells of tables beyond which a search with proofs has no hope of ending, and is not begun.
MOST_SEARCHED = 2**22
# Mini-buckets close gaps that the local polytope leaves, where there are not too many of them.
MOST_BUCKETS = 2_000
# What is this method's own of the time, whatever came before it.
LEAST_SHARE = 0.3


@dataclass
class _Best:
    """The best assignment and the least upper bound so far, and who found them."""

    answer: Decoding | None = None
    bound: float = np.inf
    # How near to the bound counts as reaching it, by whoever proved the bound.
    tolerance: float = 0.0
    scale: ScoreScale = field(default_factory=lambda: ScoreScale(np.inf, 0.0))
    told: list[str] = field(default_factory=list)

    @property
    def score(self) -> float:
        return -np.inf if self.answer is None else self.answer.score

    @property
    def gap(self) -> float:
        return max(0.0, self.bound - self.score)

    @property
    def proven(self) -> bool:
        return self.answer is not None and self.reached_by(self.score)

    def reached_by(self, score: float) -> bool:
        """Whether a score is as good as the bound, but for rounding or for less than scores can differ."""
        return self.scale.proves(self.bound - score, self.tolerance)

    def take(self, found: Decoding) -> None:
        """Keep what is better of a new answer."""
        self.told.append(found.method)
        if found.upper_bound < self.bound:
            self.bound, self.tolerance = found.upper_bound, found.tolerance
        if found.score > self.score:
            self.answer = found


@dataclass(frozen=True)
class Portfolio:
    """Several methods in turn until one proves the answer or the time is over; ``auto`` ends here.

    First a climb, then graph cuts where every variable has two states and expansion moves where there are more; TRW-S
    for a bound, moves of subgraphs from the best so far, mini-buckets where the model is not too large, tabu search and
    branch and bound. What that does not prove in its share of the time is handed to toulbar2, where it is installed.
    The time left goes to subgraphs and tabu search, to whichever gained more when it was last asked. The answer has
    the best assignment and the best bound of all of them.

    Parameters
    ----------
    seconds
        How long in all where `mf.decode` was given no ``time_limit``.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.Ising((6, 6), coupling=-1.0, field=0.1)
    >>> answer = mf.decode(model, method=mf.Portfolio(), time_limit=10, rng=0)
    >>> round(answer.score, 6), answer.optimal
    (60.0, True)
    """

    seconds: float = 30.0

    name: ClassVar[str] = "portfolio"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})

    def __post_init__(self) -> None:
        check_method(self)
        if not self.seconds > 0:
            raise ModelError(f"seconds must be positive, got {self.seconds}")

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        n_best: int = 1,
        running: Running,
        init: Any = None,
        rng: np.random.Generator,
    ) -> Decoding:
        """Go through the stages."""
        check_local(self.name, graph, variables, n_best)
        if init is not None:
            given_states(graph, init)  # refuses what is no start
        limit = self.seconds if running.time_limit is None else running.time_limit
        # What came before may have used up the time; some of it is this method's own.
        deadline = max(running.started + limit, time.perf_counter() + LEAST_SHARE * limit)
        best, stopped = _Best(scale=score_scale(graph, evidence)), False
        with _interrupts() as interrupted:
            for method, share in _stages(graph, best):
                left = deadline - time.perf_counter()
                if best.proven or interrupted.is_set() or (left <= 0.02 * limit and best.answer is not None):
                    break
                start = init if best.answer is None else best.answer
                try:
                    _run(method, graph, evidence, running, best, max(left * share, 0.01), start, rng)
                except (StoppedError, KeyboardInterrupt):
                    stopped = True
                    break
        if best.answer is None:
            if stopped or interrupted.is_set():
                raise StoppedError("stopped before any assignment was found")
            raise ModelError("no assignment free of hard zeros was found in the time given: give more time_limit")
        return self._answer(best, not (stopped or interrupted.is_set()), running)

    def _answer(self, best: _Best, whole: bool, running: Running) -> Decoding:
        assert best.answer is not None
        return replace(
            best.answer,
            gap=best.gap,
            tolerance=best.tolerance,
            guarantee="exact" if best.proven else "lower",
            method=self.name,
            converged=best.proven and whole,
            iterations=len(best.told),
            seconds=time.perf_counter() - running.started,
        )


def _stages(graph: FactorGraph, best: _Best) -> Iterator[tuple[Any, float]]:
    """Methods in turn, each with its share of the time that is left."""
    from markovfield.inference.branch_and_bound import BranchAndBound
    from markovfield.inference.graph_cut import GraphCut
    from markovfield.inference.mini_bucket import MiniBucket
    from markovfield.inference.move_making import AlphaExpansion
    from markovfield.inference.toulbar2 import Toulbar2, installed
    from markovfield.inference.trws import TRWS

    yield ICM(), 0.1
    if int(graph.structure.cardinalities.max(initial=1)) <= 2:
        yield GraphCut(), 0.3
    else:
        yield AlphaExpansion(), 0.2
    yield TRWS(), 0.3
    yield SubgraphSearch(), 0.2
    if graph.n_variables <= MOST_BUCKETS:
        yield MiniBucket(), 0.2
    yield TabuSearch(), 0.1
    if graph.structure.n_cells <= MOST_SEARCHED:
        yield BranchAndBound(), 0.5 if installed() else 0.7
        if installed():
            yield Toulbar2(), 1.0
    yield from _searches(best)


def _searches(best: _Best) -> Iterator[tuple[Any, float]]:
    """Subgraphs and tabu search by what they gained in a second when they were last asked; in turn where none did."""
    searches: list[list[Any]] = [[np.inf, SubgraphSearch(steps=10**9)], [np.inf, TabuSearch(steps=10**9)]]
    while True:
        # The first of the best; who was asked goes to the end.
        entry = max(searches, key=lambda entry: float(entry[0]))
        score, started = best.score, time.perf_counter()
        yield entry[1], 0.3
        entry[0] = (best.score - score) / max(time.perf_counter() - started, 1e-9) if score > -np.inf else 0.0
        searches.remove(entry)
        searches.append(entry)


def _run(
    method: Any,
    graph: FactorGraph,
    evidence: Evidence,
    running: Running,
    best: _Best,
    seconds: float,
    init: Any,
    rng: np.random.Generator,
) -> None:
    """One method for a while; what it refuses or does not finish is not held against it."""

    def forward(progress: Progress) -> bool:
        value = max(best.score, progress.value if progress.value is not None else -np.inf)
        bound = min(best.bound, progress.bound if progress.bound is not None else np.inf)
        with suppress(TimeoutError):  # each method has a limit of its own
            running.check(value if value > -np.inf else None, bound if bound < np.inf else None)
        # Whoever reaches what was proven before is done.
        return best.reached_by(value)

    settings: dict[str, Any] = {}
    if "init" in method.abilities and init is not None:
        settings["init"] = init
    if "rng" in method.abilities:
        settings["rng"] = rng
    stops: list[StoppedError] = []
    alone = Running(running.n_jobs, seconds, _remembering(forward, stops))
    try:
        best.take(method.decode(graph, evidence, running=alone, **settings))
    except ImpossibleEvidenceError:
        raise
    except (ModelError, MemoryLimitError, TimeoutError, StoppedError):
        pass
    if stops:
        raise stops[0]


def _remembering(forward: Callable[[Progress], bool], stops: list[StoppedError]) -> Callable[[Progress], bool]:
    """A callback that stops the method when the user's does, and remembers that it was the user."""

    def call(progress: Progress) -> bool:
        try:
            return forward(progress)
        except StoppedError as stop:
            stops.append(stop)
            return True

    return call


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Notices Ctrl-C, which a method answers with what it has, so that the next one is not begun."""
    seen = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    usual = signal.getsignal(signal.SIGINT)
    if not callable(usual):
        yield seen
        return

    def note(number: int, frame: Any) -> None:
        seen.set()
        usual(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, usual)
