"""Search for the structure with the best score, arc by arc, with a memory of where it has been."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import BoolArray
from markovfield.exceptions import ModelError, StoppedError
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.learned_structure import LearnedStructure, Move, arc_positions, graph_of
from markovfield.learning.structures.climber import Climber, Step
from markovfield.learning.structures.local_scores import LocalScores
from markovfield.learning.structures.scores import Score, resolve_score

__all__ = ["HillClimbing"]


@dataclass(frozen=True, eq=False)
class _Best:
    """The best structure so far and the moves that led to it."""

    score: float
    adjacent: BoolArray
    steps: tuple[Step, ...]


class _EnoughMoves(Exception):
    """As many moves as were allowed."""


class _Search:
    """A search under way: where it is, the best structure so far and the moves that led to both."""

    def __init__(self, settings: HillClimbing, climber: Climber, running: Running) -> None:
        self.settings, self.climber, self.running = settings, climber, running
        self.moves = 0
        self.steps: list[Step] = []
        self.best = _Best(climber.score, climber.adjacent.copy(), ())

    def run(self, rng: np.random.Generator) -> None:
        """All of the search; what stops it early is raised."""
        for v in range(len(self.climber.local)):
            self.running.check()
            self.climber.refresh(v)
        self.climb()
        self.reinsert_all()
        for _ in range(self.settings.restarts):
            self.restart(rng)

    def make(self, step: Step) -> bool:
        """Make a move; whether the structure is a new best."""
        if self.settings.max_iterations is not None and self.moves >= self.settings.max_iterations:
            raise _EnoughMoves
        self.climber.make(step)
        self.steps.append(step)
        self.moves += 1
        score = self.climber.score
        if score <= self.best.score + self.settings.tolerance:
            return False
        self.best = _Best(score, self.climber.adjacent.copy(), tuple(self.steps))
        return True

    def climb(self) -> None:
        """The best move again and again; over worse structures as long as patience lasts."""
        visited = deque([self.climber.signature], maxlen=max(self.settings.tabu, 1))
        patience = self.settings.patience if self.settings.tabu else 0
        idle = 0
        while True:
            self.running.check()
            step = self.climber.best_step(visited)
            if step is None or (step.gain <= self.settings.tolerance and idle >= patience):
                return
            idle = 0 if self.make(step) else idle + 1
            visited.append(self.climber.signature)

    def return_to_best(self) -> None:
        """Go back to the best structure."""
        self.climber.place(self.best.adjacent)
        for v in range(len(self.climber.local)):
            self.climber.refresh(v)
        self.steps = list(self.best.steps)

    def reinsert_all(self) -> None:
        """Cut every variable out and put it back, until a round of all of them brings nothing."""
        if not self.settings.reinsertions:
            return
        self.return_to_best()
        saved, kept = self.climber.snapshot(), self.best
        for _ in range(self.settings.reinsertions):
            before = self.best.score
            for v in range(len(self.climber.local)):
                self.reinsert(v)
                if self.best is not kept:
                    self.return_to_best()
                    saved, kept = self.climber.snapshot(), self.best
                else:
                    self.climber.restore(saved)
                    self.steps = list(kept.steps)
            if self.best.score <= before + self.settings.tolerance:
                return

    def reinsert(self, v: int) -> None:
        """Take away the arcs of one variable, give it its best parents, climb."""
        arcs = self.climber.deletion_steps(v)
        if not arcs:
            return
        for p, c in arcs:
            self.make(Step("delete", p, c, float(self.climber.delete[p, c])))
        while True:
            self.running.check()
            step = self.climber.parent_step(v)
            if step is None or step.gain <= self.settings.tolerance:
                break
            self.make(step)
        while True:  # without patience: this is done for every variable
            self.running.check()
            step = self.climber.best_step(())
            if step is None or step.gain <= self.settings.tolerance:
                return
            self.make(step)

    def restart(self, rng: np.random.Generator) -> None:
        """From the best structure, random moves, then all of the search."""
        self.return_to_best()
        chosen = self.settings.perturbation
        for _ in range(max(2, len(self.climber.local) // 4) if chosen is None else chosen):
            step = self.climber.random_step(rng)
            if step is None:
                break
            self.make(step)
        before = self.best
        self.climb()
        if self.best is not before:
            self.reinsert_all()


@dataclass(frozen=True)
class HillClimbing:
    """Add, delete or reverse the arc that raises the score most, until no move raises it.

    With a tabu list the search then goes on over the best move to a structure it has not just seen, even if the score
    falls, and gives up after `patience` moves without a new best. Local scores are remembered, a move recounts only the
    families of the children it changes, and all arcs into a child are counted together: for r rows and n variables
    a move takes about r n / 4 nanoseconds and n^2 comparisons.

    Parameters
    ----------
    score
        ``"bic"``, ``"aic"``, ``"bdeu"``, ``"k2"`` or a score object such as ``BDeu(equivalent_sample_size=5)``.
    max_parents
        Most parents a variable may have; None is no limit.
    tabu
        How many of the last structures may not be returned to; 0 stops at the first local optimum.
    patience
        Moves without a new best before the search gives up.
    reinsertions
        After that, every variable in turn is cut out of the best structure, given the parents that suit it best without
        regard to what depended on it, and the search goes on from there: this turns round a whole neighbourhood, which
        single moves do not. At most so many times for all variables, less when a round brings nothing; 0 is never.
    max_iterations
        Most moves, over all restarts; None is no limit.
    restarts
        How often to go on from the best structure after `perturbation` random moves.
    perturbation
        Random moves of a restart; None is a quarter of the number of variables, at least two.
    start
        A directed graph or a network to start from; None is no arcs.
    required, forbidden
        Arcs, as pairs (parent, child), that must be there and that must not.
    tolerance
        A gain must be larger than this to count.

    Examples
    --------
    >>> from markovfield.learning.structure import learn_structure
    >>> data = {"A": [0, 0, 1, 1] * 9, "B": [0, 0, 1, 1] * 9, "C": [0, 1] * 18}
    >>> learned = learn_structure(data, HillClimbing(score="bdeu", required=[("B", "A")]))
    >>> learned.arcs
    (('B', 'A'),)
    """

    name: ClassVar[str] = "hill_climbing"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    score: str | Score = "bic"
    max_parents: int | None = None
    tabu: int = 100
    patience: int = 15
    max_iterations: int | None = None
    reinsertions: int = 5
    restarts: int = 0
    perturbation: int | None = None
    start: Any = None
    required: Any = ()
    forbidden: Any = ()
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        counts = ("tabu", "patience", "reinsertions", "restarts", "max_parents", "max_iterations", "tolerance")
        check_method(self, least=dict.fromkeys(counts, 0) | {"perturbation": 1})
        resolve_score(self.score)

    def learn(self, table: DataTable, *, running: Running, rng: np.random.Generator) -> LearnedStructure:
        """Search; stopped by the clock, the callback or Ctrl-C, answer with the best structure so far."""
        n = table.n_variables
        start, allowed, fixed = self._arcs(table)
        scores = LocalScores(table, self.score, running=running)
        climber = Climber(scores, allowed, fixed, n if self.max_parents is None else self.max_parents)
        climber.place(start)
        search = _Search(self, climber, running)
        stopped = None
        try:
            search.run(rng)
        except TimeoutError:
            stopped = "the time limit"
        except StoppedError:
            stopped = "the callback"
        except KeyboardInterrupt:
            stopped = "the keyboard"
        except _EnoughMoves:
            stopped = "max_iterations"
        best, names = search.best, table.variables
        return LearnedStructure(
            variables=names,
            states=table.states,
            dag=graph_of(table, [(p, c) for p, c in np.argwhere(best.adjacent).tolist()]),
            method=self.name,
            score=best.score,
            score_name=scores.score.name,
            history=tuple(Move(s.kind, names[s.parent], names[s.child], s.gain) for s in best.steps),
            iterations=search.moves,
            converged=stopped is None,
            stopped=stopped,
        )

    def _arcs(self, table: DataTable) -> tuple[BoolArray, BoolArray, BoolArray]:
        """The structure to start from, the arcs that may be added, and those that must stay."""
        n = table.n_variables
        start, allowed, fixed = np.zeros((n, n), np.bool_), np.ones((n, n), np.bool_), np.zeros((n, n), np.bool_)
        for p, c in arc_positions(table, self.forbidden, "forbidden"):
            allowed[p, c] = False
        for p, c in arc_positions(table, self.required, "required"):
            fixed[p, c] = start[p, c] = True
        for p, c in arc_positions(table, () if self.start is None else self.start, "start"):
            start[p, c] = True
        bad = np.argwhere(start & ~allowed)
        if len(bad):
            parent, child = (table.variables[int(i)] for i in bad[0])
            raise ModelError(f"the arc from {parent!r} to {child!r} is forbidden, but required or part of start")
        _check_start(table, start)
        most = int(start.sum(axis=0).max(initial=0))
        if self.max_parents is not None and most > self.max_parents:
            child = table.variables[int(start.sum(axis=0).argmax())]
            raise ModelError(f"max_parents is {self.max_parents}, but start and required give {child!r} {most} parents")
        return start, allowed, fixed


def _check_start(table: DataTable, start: BoolArray) -> None:
    """Raise when the arcs of start and required form a cycle."""
    import networkx as nx

    graph = graph_of(table, [(p, c) for p, c in np.argwhere(start).tolist()])
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [arc[0] for arc in nx.find_cycle(graph)]
        shown = " -> ".join(repr(v) for v in [*cycle, cycle[0]])
        raise ModelError(f"the arcs of start and required form a directed cycle: {shown}")
