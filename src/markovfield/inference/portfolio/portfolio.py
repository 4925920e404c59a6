"""Decoding against the clock: several methods side by side, the best assignment and the best bound of them all."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import States
from markovfield.exceptions import ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import TABLE
from markovfield.inference.branch_and_bound.toulbar2 import installed
from markovfield.inference.constants.scale import ScoreScale, score_scale
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Progress, Running
from markovfield.inference.graph_cuts.fusion_moves import FusionMoves, is_picture
from markovfield.inference.local_search.icm import ICM
from markovfield.inference.local_search.local_search import given_states
from markovfield.inference.local_search.tabu import TabuSearch
from markovfield.inference.portfolio.interrupts import interrupts
from markovfield.inference.portfolio.members import Annealing, Beside, Buckets, Member, Relaxation, Single, Subgraphs
from markovfield.inference.problem.pairwise import pairwise
from markovfield.inference.problem.problem import potentials
from markovfield.kernels.compilations import clock

__all__ = ["Portfolio"]

# Cells of tables beyond which a search with proofs has no hope of ending, and is not begun.
MOST_SEARCHED = 2**22
# Mini-buckets are planned in Python: some milliseconds for each variable.
MOST_BUCKETS = 20_000
# What is this method's own of the time, whatever came before it, so that there is an answer.
LEAST_SHARE = 0.05
# How long in all where nobody says.
SECONDS = 30.0
# A turn is this share of all the time, though not shorter than that many seconds.
TURN, SHORTEST_TURN = 0.1, 0.05
# First turns are shorter by this factor: most methods show soon whether they gain.
FIRST = 0.25
# One turn in so many goes to whoever has waited longest, whatever it gained.
EVERY = 6
# Where the gap is worth no more factors than this, a search with proofs is likely to end, and has its lane to itself.
PROMISING = 50.0
# How long the end of all waits for the other thread, which looks up every 0.2 s or so.
_JOIN = 0.3
# Without any assignment at the end: how much longer one is looked for, as a share, and in how many turns at least.
_EXTRA, _TRIED = 0.05, 8
THREAD = "markovfield portfolio"
# Where no time is given, what is enough on pictures: iterations of messages, on lattices and on other graphs (after six
# by the moves themselves), and the gap as a share of what the labels cost.
QUICK, QUICK_OTHERS, NEAR = 16, 1, 1e-3
# The share of the gap that a turn of subgraphs must gain for there to be another.
LITTLE = 0.01


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


@dataclass
class _Asked:
    """A member, and how it did: what it gained in a second of late, when it was last asked, its time in all.

    One that is ``spare`` is asked only while a proof is near: then the other thread waits for toulbar2.
    """

    member: Member
    share: float = TURN
    spare: bool = False
    rate: float = np.inf
    last: int = 0
    spent: float = 0.0


class _Race:
    """What the members share, and when it is over."""

    def __init__(self, graph: FactorGraph, evidence: Evidence, init: Any, limit: float, deadline: float) -> None:
        self.graph, self.evidence, self.init = graph, evidence, init
        self.limit, self.deadline = limit, deadline
        self.best = _Best(scale=score_scale(graph, evidence))
        self.lock = threading.Lock()
        self.quit = threading.Event()
        self.error: BaseException | None = None
        self.busy: set[int] = set()
        self.turns = 0
        # Whether a proof is near.
        self.near = False

    def begin(self, states: States) -> None:
        """Count an assignment that was given as the best so far, where it agrees with the evidence."""
        known = self.evidence.states
        if ((known >= 0) & (known != states)).any():
            return
        score = float(self.graph.score(states))
        score += self.evidence.log_likelihood(states)
        if score > -np.inf:
            self.take(decoding_of_states(self.graph, [(states, score)], gap=np.inf, method="portfolio"))

    @property
    def answer(self) -> Decoding | None:
        return self.best.answer

    @property
    def left(self) -> float:
        return self.deadline - clock()

    @property
    def has_large_factors(self) -> bool:
        """Whether factors join three variables or more: there relaxations of pairs say little, and toulbar2 much."""
        return bool((np.diff(self.graph.structure.scope_offsets) > 2).any())

    def take(self, found: Decoding) -> None:
        with self.lock:
            self.best.take(found)

    def tighten(self, bound: float) -> None:
        with self.lock:
            if bound < self.best.bound:
                self.best.bound, self.best.tolerance = bound, self.best.scale.slack

    @property
    def over(self) -> bool:
        """Whether nobody should go on; without any answer, each of the first may look for one in spite of the time."""
        left = self.left
        late = left <= 0.0 if self.best.answer is not None else left <= -_EXTRA * self.limit and self.turns >= _TRIED
        return self.best.proven or self.quit.is_set() or late

    def promising(self, bound: float) -> bool:
        """Whether the gap to a bound of local consistency is so small that a search with proofs may well end."""
        pool = potentials(self.graph.to_tables())
        spread = (pool.high - pool.low)[np.isfinite(pool.high - pool.low)]
        typical = float(np.mean(spread)) * np.log(2.0) if len(spread) else 0.0
        return bool(bound - self.best.score <= PROMISING * typical)


class _Lane:
    """One thread's share of the work: who may be asked there, and whose turn it is.

    ``running`` is the user's, in the thread that may call back, and None elsewhere; ``bounds`` says whether better
    bounds count here, and not only better assignments.
    """

    def __init__(
        self, race: _Race, members: list[_Asked], running: Running | None, n_jobs: int, bounds: bool = False
    ) -> None:
        self.race, self.members, self.running, self.n_jobs = race, members, running, n_jobs
        self.bounds = bounds
        self.stops: list[BaseException] = []
        self.turns = 0

    def work(self) -> None:
        """Ask one member after the other until all is over."""
        if self.running is None and self.race.has_large_factors:
            for asked in self.members:
                if isinstance(asked.member, Beside):
                    asked.member.begin(self.race)
        while not self.race.over and not self.stops:
            chosen = self.choose()
            if chosen is None:
                # Others may still be at work.
                if self.running is None or not self.race.busy:
                    return
                self.told(Progress(0, 0.0))
                time.sleep(0.02)
                continue
            try:
                self.ask(chosen)
            finally:
                with self.race.lock:
                    self.race.busy.discard(id(chosen.member))

    def choose(self) -> _Asked | None:
        """Who was never asked, in order; then who gained most in a second of late, at times who waited longest."""
        with self.race.lock:
            near, busy = self.race.near, self.race.busy
            free = [a for a in self.members if not a.member.over and id(a.member) not in busy and (near or not a.spare)]
            if not free:
                return None
            chosen = self._proof(free) or next((a for a in free if a.rate == np.inf), None)
            if chosen is None and self.turns % EVERY == EVERY - 1:
                chosen = min(free, key=lambda asked: asked.last)
            chosen = chosen or max(free, key=lambda asked: (asked.rate, -asked.last))
            self.turns += 1
            self.race.busy.add(id(chosen.member))
            return chosen

    def _proof(self, free: list[_Asked]) -> _Asked | None:
        """toulbar2 shows nothing of what it gains: where it is likely to end it has its lane, or half of all."""
        beside = next((a for a in free if isinstance(a.member, Beside)), None)
        relaxed = next((a.member for a in self.members if isinstance(a.member, Relaxation)), None)
        if beside is None or relaxed is None or relaxed.bound == np.inf:
            return None
        self.race.near = self.race.promising(relaxed.bound)
        if isinstance(beside.member, Beside) and not self.race.near:
            beside.member.hold()
        share = 1.0 if self.running is None else 0.5
        due = beside.spent < share * sum(a.spent for a in self.members)
        return beside if self.race.near and due else None

    def ask(self, asked: _Asked) -> None:
        """One turn of a member, and what it gained."""
        race, best = self.race, self.race.best
        score, bound, started = best.score, best.bound, clock()
        share = asked.share * (FIRST if asked.rate == np.inf else 1.0)
        seconds = max(min(max(share * race.limit, SHORTEST_TURN), race.left), 0.01)
        asked.member.turn(race, Running(self.n_jobs, seconds, self.told))
        spent = max(clock() - started, 1e-9)
        gained = 0.0
        if score > -np.inf and best.score > score:
            gained += best.score - score
        if self.bounds and bound < np.inf:
            gained += max(0.0, bound - best.bound)
        with race.lock:
            race.turns += 1
        # The first bound at all is no gain that could be compared: who found it is asked once more.
        rate = np.inf if self.bounds and best.bound < bound == np.inf else gained / spent
        asked.rate = rate if asked.rate == np.inf else 0.25 * asked.rate + 0.75 * rate
        asked.last, asked.spent = race.turns, asked.spent + spent

    def told(self, progress: Progress) -> bool:
        """Hear of progress, tell the user, and say whether to stop."""
        best = self.race.best
        value = max(best.score, progress.value if progress.value is not None else -np.inf)
        bound = min(best.bound, progress.bound if progress.bound is not None else np.inf)
        if self.running is not None:
            try:
                with suppress(TimeoutError):  # each turn has a limit of its own
                    self.running.check(value if value > -np.inf else None, bound if bound < np.inf else None)
            except StoppedError as stop:
                # Whoever is at work may answer it with what it has: it is remembered here.
                self.stops.append(stop)
                return True
        # Whoever reaches what was proven before is done.
        return self.race.over or (value > -np.inf and best.reached_by(value))


@dataclass(frozen=True)
class Portfolio:
    """Several methods side by side until one proves the answer or the time is over; ``auto`` ends here.

    Pictures, that is large models of semi-metric pairs, are left to `FusionMoves`, then to moves of subgraphs for as
    long as they gain. On all other models:

    One thread looks for assignments: a climb, graph cuts where every variable has two states and expansion moves where
    there are more, moves of subgraphs, annealing, tabu search, mini-buckets. Another looks for bounds and proofs:
    TRW-S, mini-buckets of growing size, branch and bound, and toulbar2, where it is installed, in a process of its own.
    Each works for a turn, from the best so far of all, and goes on where it stopped when it is asked again; the next
    turn goes to whoever gained most in a second of late. Where the gap is so small that a proof is near, toulbar2 goes
    on without a break. With ``n_jobs=1`` all of them take turns in one thread, and toulbar2 rests between its own. The
    answer has the best assignment and the best bound of all of them; it depends on the clock.

    Parameters
    ----------
    seconds
        How long in all, at most, where `mf.decode` was given no ``time_limit``. None: 30 seconds, and on pictures as
        long as moves with few iterations of messages take.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.Ising((6, 6), coupling=-1.0, field=0.1)
    >>> answer = mf.decode(model, method=mf.methods.Portfolio(), time_limit=10, rng=0)
    >>> round(answer.score, 6), answer.optimal
    (60.0, True)
    """

    seconds: float | None = None

    name: ClassVar[str] = "portfolio"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})

    def __post_init__(self) -> None:
        check_method(self, above={"seconds": 0})

    def decode(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None, rng: np.random.Generator
    ) -> Decoding:
        """Go through the stages."""
        start = None if init is None else given_states(graph, init)
        picture = is_picture(graph)
        limit = running.time_limit or self.seconds
        quick = picture and limit is None
        limit = limit or (np.inf if picture else SECONDS)
        # What came before may have used up the time; a little of it is this method's own.
        deadline = max(running.started + limit, clock() + LEAST_SHARE * limit)
        race = _Race(graph, evidence, init, limit, deadline)
        run = partial(_run_on_picture, quick) if picture else _run
        if start is not None:
            race.begin(start.astype(np.int32))
        stopped = False
        with interrupts(race.quit) as interrupted, without_warnings():
            try:
                stopped = run(race, running, rng)
            except KeyboardInterrupt:
                stopped = True
            except SystemError as error:
                # What a compiled kernel makes of Ctrl-C.
                if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
                    raise
                stopped = True
        best, stopped = race.best, stopped or interrupted.is_set()
        if race.error is not None:
            raise race.error
        if best.answer is None:
            if stopped:
                raise StoppedError("stopped before any assignment was found")
            raise ModelError("no assignment free of hard zeros was found in the time given: give more time_limit")
        return self._answer(best, not stopped, running)

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
            seconds=running.seconds,
        )


def _members(graph: FactorGraph, rng: np.random.Generator) -> tuple[list[_Asked], list[_Asked]]:
    """Who looks for assignments, and who looks for bounds and proofs, in the order of their first turns."""
    from markovfield.inference.branch_and_bound.branch_and_bound import BranchAndBound
    from markovfield.inference.graph_cuts.graph_cut import GraphCut
    from markovfield.inference.graph_cuts.move_making import AlphaExpansion
    from markovfield.inference.trws.trws import TRWS

    pairs = int(graph.structure.cardinalities.max(initial=1)) <= 2
    streams = [np.random.default_rng(rng.integers(2**63)) for _ in range(7)]
    cells = _cells(graph)
    first = [
        _Asked(Single(ICM(), streams[0], once=True)),
        _Asked(Single(GraphCut() if pairs else AlphaExpansion(), streams[1], once=True, fresh=not pairs), 0.2),
        _Asked(Subgraphs(streams[2])),
        _Asked(Annealing(streams[6])),
        _Asked(Single(TabuSearch(steps=10**9), streams[3])),
    ]
    # Its first turn should close the gap of what it can close, and tell whether a proof is near.
    second = [_Asked(Relaxation(TRWS()), 0.2 / FIRST)]
    if graph.n_variables <= MOST_BUCKETS:
        buckets = Buckets()
        second.append(_Asked(buckets, 0.4))
        first.append(_Asked(buckets, 0.2, spare=True))
    if cells <= MOST_SEARCHED and installed():
        second.append(_Asked(Beside(), rate=0.0))
    if cells <= MOST_SEARCHED:
        prover = Single(BranchAndBound(), streams[4], once=True)
        second.append(_Asked(prover, 0.5, spare=installed(), rate=0.0 if installed() else np.inf))
    # Only where nobody else there gains.
    second.append(_Asked(Subgraphs(streams[5]), rate=0.0))
    return first, second


def _cells(graph: FactorGraph) -> float:
    """Cells of all factors, each with a table of its own: searches with proofs change them one by one."""
    s = graph.structure
    arity = np.diff(s.scope_offsets)
    factor = np.repeat(np.arange(s.n_factors), arity)
    logs = np.bincount(factor, np.log2(s.cardinalities[s.scopes]), s.n_factors)
    return float((2.0 ** np.where(s.kind == TABLE, logs, np.log2(arity + 2.0))).sum())


def _run_on_picture(quick: bool, race: _Race, running: Running, rng: np.random.Generator) -> bool:
    """Moves and messages, then subgraphs as long as they gain; whether the user has stopped it."""
    # On whole lattices messages take a third of the time.
    whole = pairwise(race.graph.to_tables().structure).width and not (race.evidence.states >= 0).any()
    few = QUICK if whole else QUICK_OTHERS
    method = FusionMoves(max_iterations=few, relative_gap=NEAR) if quick else FusionMoves()
    moves = _Asked(Single(method, rng, once=True), 1.0 / FIRST)
    lane = _Lane(race, [moves], running, running.n_jobs or os.cpu_count() or 1, bounds=True)
    lane.work()
    search = _Asked(Subgraphs(rng))
    while not quick and not race.over and not lane.stops:
        before = race.best.score
        lane.ask(search)
        if race.best.score - before <= LITTLE * race.best.gap:
            break
    search.member.end()
    return bool(lane.stops)


def _run(race: _Race, running: Running, rng: np.random.Generator) -> bool:
    """Both halves side by side, or in turn in one thread; whether the user has stopped it."""
    first, second = _members(race.graph, rng)
    jobs = running.n_jobs or os.cpu_count() or 1
    if jobs == 1:
        first = [asked for asked in first if not asked.spare]
        together = [asked for pair in zip_longest(first, second) for asked in pair if asked is not None]
        lanes = [_Lane(race, together, running, 1, bounds=True)]
    else:
        lanes = [_Lane(race, first, running, jobs - jobs // 2), _Lane(race, second, None, jobs // 2, bounds=True)]
    other: threading.Thread | None = None
    if len(lanes) > 1:
        other = threading.Thread(target=copy_context().run, args=(_beside, lanes[1]), name=THREAD, daemon=True)
        other.start()
    try:
        lanes[0].work()
    finally:
        race.quit.set()
        if other is not None:
            other.join(_JOIN)
        _end(race, (*first, *second))
    return bool(lanes[0].stops)


def _end(race: _Race, members: Sequence[_Asked]) -> None:
    """Free what members hold, but for those that are still at work in the other thread, which does so itself."""
    for asked in members:
        if id(asked.member) not in race.busy:
            asked.member.end()


def _beside(lane: _Lane) -> None:
    """The other thread; what it dies of is for the first to raise."""
    try:
        lane.work()
    except BaseException as error:
        lane.race.error = error
        lane.race.quit.set()
    finally:
        if lane.race.quit.is_set():
            _end(lane.race, lane.members)
