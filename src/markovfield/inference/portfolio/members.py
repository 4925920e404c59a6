"""Who takes part in a portfolio: methods that work for a turn, share what they find, and go on where they stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from markovfield.exceptions import ImpossibleEvidenceError, ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.branch_and_bound.toulbar2 import Toulbar2, Toulbar2Process
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.local_search.annealing import SimulatedAnnealing
from markovfield.inference.local_search.local_search import started_states
from markovfield.inference.local_search.subgraph_search import SubgraphMoves, SubgraphSearch
from markovfield.inference.mini_bucket.mini_bucket import MiniBucket
from markovfield.inference.mini_bucket.search import Search
from markovfield.inference.problem.problem import prepare
from markovfield.kernels.compilations import clock

if TYPE_CHECKING:
    from markovfield.inference.trws.trws import TRWS

__all__ = ["Annealing", "Beside", "Buckets", "Member", "Relaxation", "Shared", "Single", "Subgraphs"]

# Seconds between looks at toulbar2, and what it may take, at most, to say what it has when the time is up.
_POLL, _GRACE = 0.03, 0.3
# Mini-buckets begin with so many variables, go through so many iterations each, and grow as long as so many iterations
# fit into the time that is left; never by more variables at once, nor beyond so many, nor so many bytes.
FIRST_BOUND, ITERATIONS, WORTH_WHILE, LARGEST_STEP, WIDEST = 10, 100, 20, 4, 22
BUCKET_MEMORY = 2**31
# Sweeps of the first annealing, and of the longest.
FIRST_SWEEPS, MOST_SWEEPS = 250, 10**6


class Shared(Protocol):
    """What members share: the model, the best so far, and how long each may work."""

    graph: FactorGraph
    evidence: Evidence
    init: Any

    @property
    def answer(self) -> Decoding | None:
        """The best so far."""

    def take(self, found: Decoding) -> None:
        """Keep what is better of a new answer."""

    def tighten(self, bound: float) -> None:
        """No score is above this bound."""

    @property
    def left(self) -> float:
        """Seconds until all must be over."""


class Member(Protocol):
    """One who takes part.

    Attributes
    ----------
    over
        Whether it has nothing more to say.
    """

    over: bool

    @property
    def name(self) -> str:
        """What it is called."""

    def turn(self, shared: Shared, running: Running) -> None:
        """Work until ``running`` says stop, and hand over what was found."""

    def end(self) -> None:
        """Nobody will ask again."""


def attempt(shared: Shared, decode: Callable[[], Decoding]) -> Decoding | None:
    """What a method finds; what it refuses or does not finish is not held against it."""
    try:
        found = decode()
    except ImpossibleEvidenceError:
        raise
    except (ModelError, MemoryError, TimeoutError, StoppedError):
        return None
    shared.take(found)
    return found


@dataclass
class Single:
    """A method that begins anew at every turn, from the best so far where it can; ``once`` has one turn only.

    A ``fresh`` one takes a start of its own: expansion moves have a better one than a local optimum.
    """

    method: Any
    rng: np.random.Generator
    once: bool = False
    fresh: bool = False
    over: bool = False

    @property
    def name(self) -> str:
        return str(self.method.name)

    def turn(self, shared: Shared, running: Running) -> None:
        """One run."""
        settings: dict[str, Any] = {}
        start = shared.init if shared.answer is None else shared.answer
        if "init" in self.method.abilities and start is not None and not self.fresh:
            settings["init"] = start
        if "rng" in self.method.abilities:
            settings["rng"] = self.rng
        found = attempt(shared, lambda: self.method.decode(shared.graph, shared.evidence, running=running, **settings))
        # What refuses once refuses always.
        self.over = self.once or (found is None and running.still)

    def end(self) -> None:
        """Nothing is held."""


@dataclass
class Annealing:
    """Simulated annealing from random states, one run after the other, each so long that it fits into a turn."""

    rng: np.random.Generator
    sweeps: int = FIRST_SWEEPS
    over: bool = False

    name: str = "simulated_annealing"

    def turn(self, shared: Shared, running: Running) -> None:
        """Runs, each twice as long as the last one that was finished, until the time is up."""
        while running.still:
            found = attempt(shared, lambda: self._run(shared, running))
            if found is None and running.still:
                self.over = True
                return
            if found is None or not found.converged:
                self.sweeps = max(FIRST_SWEEPS, self.sweeps // 2)
                return
            self.sweeps = min(2 * self.sweeps, MOST_SWEEPS)

    def _run(self, shared: Shared, running: Running) -> Decoding:
        method = SimulatedAnnealing(sweeps=self.sweeps)
        return method.decode(shared.graph, shared.evidence, running=running, rng=self.rng)

    def end(self) -> None:
        """Nothing is held."""


@dataclass
class Relaxation:
    """TRW-S, which goes on from its own messages until they converge."""

    method: TRWS
    over: bool = False
    last: Decoding | None = None
    bound: float = np.inf

    name: str = "trws"

    def turn(self, shared: Shared, running: Running) -> None:
        """Some more iterations."""
        found = attempt(
            shared,
            lambda: self.method.decode(shared.graph, shared.evidence, running=running, init=self.last),
        )
        self.over = running.still if found is None else found.converged
        self.last = found or self.last
        if found is not None:
            self.bound = found.upper_bound

    def end(self) -> None:
        """Messages are not needed any more."""
        self.last = None


@dataclass
class Subgraphs:
    """Moves of subgraphs from the best so far, which is crossed with the assignment that is moved."""

    rng: np.random.Generator
    over: bool = False
    moves: SubgraphMoves | None = None

    name: str = "subgraph_search"

    def turn(self, shared: Shared, running: Running) -> None:
        """So many moves as there is time for."""
        best = shared.answer
        graph, evidence = shared.graph, shared.evidence
        if self.moves is None:
            start = shared.init if best is None else best
            states = started_states(graph, evidence, start, self.rng)
            self.moves = SubgraphMoves(graph, evidence, states, SubgraphSearch(), self.rng)
        elif best is not None and best.score > self.moves.best_score:
            self.moves.offer(best.states, self.rng)
        moves = self.moves
        try:
            moves.run(10**9, running)
        except (TimeoutError, StoppedError):
            moves.cross()
        if np.isfinite(moves.best_score):
            shared.take(
                decoding_of_states(
                    graph,
                    [(moves.best, moves.best_score)],
                    gap=0.0 if moves.whole else np.inf,
                    guarantee="exact" if moves.whole else "lower",
                    method=self.name,
                    converged=moves.whole,
                    iterations=moves.done,
                    seconds=running.seconds,
                )
            )
        self.over = moves.whole

    def end(self) -> None:
        """Tables are not needed any more."""
        self.moves = None


@dataclass
class Buckets:
    """Mini-buckets, tightened in every turn, and larger ones when those have converged."""

    over: bool = False
    method: MiniBucket = field(
        default_factory=lambda: MiniBucket(FIRST_BOUND, max_iterations=ITERATIONS, memory_limit=BUCKET_MEMORY)
    )
    search: Search | None = None
    spent: float = 0.0
    patience: float = 0.0

    name: str = "mini_bucket"

    def turn(self, shared: Shared, running: Running) -> None:
        """Plan, or tighten; or go over to larger mini-buckets."""
        started = clock()
        try:
            if self.search is None:
                # What is cut short is lost: the plan may take more than a turn, and the first pass more each time.
                problem = prepare(shared.graph, shared.evidence)
                left = max(shared.left, 0.01)
                self.method.plans(problem, Running(running.n_jobs, left, running.callback), 2)
                self.patience = 2.0 * (self.patience or running.time_limit or left)
                first = Running(running.n_jobs, min(max(shared.left, 0.01), self.patience), running.callback)
                self.search = Search(self.method, problem, first)
            self.search.running = running
            self.search.cool()
        except ImpossibleEvidenceError:
            raise
        except (ModelError, MemoryError):
            self.over = True
            return
        except (TimeoutError, StoppedError):
            return
        search = self.search
        self.spent += clock() - started
        shared.tighten(search.bound)
        if search.score > -np.inf:
            self._hand_over(shared, search, running)
        if running.still:
            self._grow(shared, search)

    def _hand_over(self, shared: Shared, search: Search, running: Running) -> None:
        shared.take(
            decoding_of_states(
                shared.graph,
                [(search.states, search.score)],
                gap=max(0.0, search.bound - search.score),
                tolerance=search.tolerance,
                guarantee="exact" if search.close else "lower",
                method=self.name,
                converged=search.close,
                iterations=len(search.gains),
                seconds=running.seconds,
            )
        )

    def _grow(self, shared: Shared, search: Search) -> None:
        """Mini-buckets of more variables, where enough iterations with them fit into the time left."""
        each = self.spent / max(1, len(search.gains))
        room = np.log2(max(shared.left / (WORTH_WHILE * max(each, 1e-4)), 1e-9))
        wider = min(WIDEST, self.method.i_bound + int(np.clip(np.floor(room), 0, LARGEST_STEP)))
        self.over = not search.buckets.plan.n_split or wider <= self.method.i_bound
        if not self.over:
            self.method = MiniBucket(wider, max_iterations=ITERATIONS, memory_limit=BUCKET_MEMORY)
            self.search, self.spent, self.patience = None, 0.0, 0.0

    def end(self) -> None:
        """Tables are not needed any more."""
        self.search = None


@dataclass
class Beside:
    """toulbar2 in a process of its own, which is held between its turns."""

    method: Toulbar2 = field(default_factory=Toulbar2)
    over: bool = False
    work: Toulbar2Process | None = None
    early: bool = False

    name: str = "toulbar2"

    def __post_init__(self) -> None:
        self.stack = ExitStack()

    def turn(self, shared: Shared, running: Running) -> None:
        """Let it work; at its end, or at the end of all, take its answer."""
        try:
            if self.early:
                self._judge(shared, running)
            self.work = self.work or self._begun(shared)
            self.work.go_on()
            stop: BaseException | None = None
            try:
                while not self.work.done and shared.left > 0.5 * _GRACE:
                    running.check()
                    self.work.rest(_POLL)
            except (TimeoutError, StoppedError) as wish:
                stop = wish
            if self.work.done:
                stop = None
            elif shared.left > _GRACE and stop is not None:
                self.work.hold()
                found = self.work.so_far(running)
                if found is not None:
                    shared.take(found)
                return
            else:
                stop = stop or TimeoutError()
                self.work.ask(_GRACE)
            shared.take(self.work.answer(stop, running))
        except ImpossibleEvidenceError:
            raise
        except (ModelError, MemoryError, TimeoutError, StoppedError, RuntimeError):
            # What it refuses, or what it dies of, is not held against it.
            pass
        self.over = True
        self.end()

    def _begun(self, shared: Shared) -> Toulbar2Process:
        score = -np.inf if shared.answer is None else shared.answer.score
        problem = prepare(shared.graph, shared.evidence)
        return self.stack.enter_context(Toulbar2Process(self.method, problem, score))

    def begin(self, shared: Shared) -> None:
        """Let it read the model, and work, while others have their first turns: it takes a while to start."""
        with suppress(ModelError, MemoryError, RuntimeError, ImpossibleEvidenceError):
            self.work = self._begun(shared)
            self.early = True

    def _judge(self, shared: Shared, running: Running) -> None:
        """Begun without any assignment, it goes on where its own is as good as the others'; else it begins anew."""
        self.early = False
        if self.work is None or self.work.done or shared.answer is None:
            return
        self.work.hold()
        found = self.work.so_far(running)
        if found is None or found.score < shared.answer.score:
            self.stack.close()
            self.work = None

    def hold(self) -> None:
        """Let it rest until its next turn."""
        if self.work is not None:
            self.work.hold()

    def end(self) -> None:
        """End the process."""
        self.stack.close()
