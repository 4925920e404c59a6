"""Decoding by moves of many variables at once: random subgraphs of small width, each maximised exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import IntArray, offsets_of
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.constants.scale import unit_among
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.local_search.local_search import check_possible, started_states
from markovfield.inference.local_search.subgraph_search_kernel import (
    COLD,
    ENTRIES,
    SIZE,
    VISITS,
    WHOLE,
    Model,
    Settings,
    Tables,
    cross,
    search_steps,
)
from markovfield.inference.local_search.subgraph_tables_kernel import INNER
from markovfield.inference.local_search.subgraphs_kernel import LEVELS, Region
from markovfield.inference.problem.domains_kernel import factors_of_variables
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.merged_pairs import prepare_merged
from markovfield.inference.problem.pairwise import add_unary
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.kernels.compilations import clock
from markovfield.kernels.random import streams

__all__ = ["SubgraphMoves", "SubgraphSearch"]

# Log2 of the cells of a table, at most: some tens of megabytes.
WIDEST = 20
# Seconds of one call of the kernel, about.
GRAIN = 0.05
# Cells of all tables of a move together, at most.
WORK = 2**20
# Variables of the first regions, about; later ones are as large as the width allows.
FIRST_REGION = 128.0
# Of a cycle: how readily losses are kept at its beginning, how many visits of each variable it has, on average, and how
# many of them begin from random states somewhere. Chosen on random lattices, regular graphs and diagnosis networks.
HEAT, CYCLE, ANEW = 0.5, 20, 0.3


@dataclass(frozen=True)
class SubgraphSearch:
    """Random subgraphs of small width in turn, each put into its best states with all other variables held.

    A step grows a region around a random variable and eliminates its variables one after the other, smallest tables
    first; whoever would make a table too large is held. Some of those held are put into random states, the others are
    maximised exactly, and again with others held; ties are broken at random (Hamze and de Freitas 2004; Selby 2014).
    What is worse than before is undone, or, with a probability that falls over a cycle of steps, kept. At its end the
    assignment is crossed with the best so far: each component of the graph in which they differ takes the better of the
    two (Tinós, Whitley and Chicano 2015), so improvements in different places add up. Time of a step grows with the
    variables of a region times ``2**width``. Hard constraints are kept; where the start breaks some, repairing them
    comes before everything else. Nothing is proven, unless all variables were eliminated in one move.

    Parameters
    ----------
    steps
        Regions in all; None is one for each variable, from 300 to 20000.
    width
        Log2 of the cells that a table of the elimination may have: on models of two states, the variables in it. Where
        variables have many states it is raised so that two of them fit.
    largest
        Variables of a region, at most. Regions grow as long as nothing must be held in them, and shrink otherwise.
    rounds
        Moves in a region after the one from random states.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.Ising((6, 6), coupling=-1.0, field=0.1)
    >>> round(mf.decode(model, method=SubgraphSearch(steps=10), rng=0).score, 6)
    60.0
    """

    steps: int | None = None
    width: int = 12
    largest: int = 4096
    rounds: int = 1

    name: ClassVar[str] = "subgraph_search"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})

    def __post_init__(self) -> None:
        check_method(self, least={"steps": 1, "largest": 1, "rounds": 0})
        if not 1 <= self.width <= WIDEST:
            raise ModelError(
                f"width must be from 1 to {WIDEST}, since a table has up to 2**width cells, got {self.width}"
            )

    def decode(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None, rng: np.random.Generator
    ) -> Decoding:
        """Search from where ``init`` says, or from the best state of each variable by itself."""
        moves = SubgraphMoves(graph, evidence, started_states(graph, evidence, init, rng), self, rng)
        steps = self.steps if self.steps is not None else min(20_000, max(300, graph.n_variables))
        converged = True
        try:
            moves.run(steps, running)
        except STOPS:
            converged = False
            moves.cross()
            if not np.isfinite(moves.best_score):
                raise
        if not np.isfinite(moves.best_score):
            check_possible(graph, evidence, running)
            raise ModelError(
                "no assignment free of hard zeros was found: give subgraph_search more steps, or use junction_tree or "
                "branch_and_bound"
            )
        return decoding_of_states(
            graph,
            [(moves.best, moves.best_score)],
            gap=0.0 if moves.whole else np.inf,
            guarantee="exact" if moves.whole else "lower",
            method=self.name,
            converged=converged,
            iterations=moves.done,
            seconds=running.seconds,
        )


class SubgraphMoves:
    """An assignment of a prepared problem that moves by subgraphs, and the best one seen.

    Attributes
    ----------
    best, best_score
        States of the user's variables and their score; -inf while hard constraints are broken.
    whole
        Whether all variables were eliminated in one move, so that the best is the best there is.
    done
        Steps so far.
    """

    def __init__(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        states: npt.NDArray[np.integer[Any]],
        method: SubgraphSearch,
        rng: np.random.Generator,
    ) -> None:
        self.problem = prepare_merged(graph, evidence)
        self.model, hopeless = _model(self.problem)
        self.method = method
        s = self.problem.structure
        largest = float(s.cardinalities.max(initial=1))
        self.width = max(float(method.width), min(float(WIDEST), 2.0 * np.log2(largest)))
        members = max(1, min(method.largest, len(self.model.free)))
        self.region, self.tables = _scratch(s.n_variables, members, self.width)
        self.saved = np.zeros(members, np.int64)
        cycle = float(CYCLE * len(self.model.free))
        self.settings = Settings(self.width, float(WORK), method.rounds, HEAT, ANEW, cycle, hopeless)
        self.stream = streams(rng, 1)[0]
        self.tally = np.zeros(ENTRIES)
        self.tally[SIZE] = FIRST_REGION
        # The first cycle is short and cold: from a poor start every gain is worth taking.
        self.tally[VISITS] = COLD * cycle
        self.states = _reduced_states(self.problem, states, rng)
        self.record = self.states.copy()
        self.best = self.problem.states(self.states)
        self.best_score, self.done = -np.inf, 0
        self._look(self.states)

    @property
    def whole(self) -> bool:
        return bool(self.tally[WHOLE]) or not len(self.model.free)

    def run(self, steps: int, running: Running) -> None:
        """So many steps, or fewer where one of them eliminated everything."""
        now = 1
        while steps > 0 and not self.whole:
            running.check(self.best_score if np.isfinite(self.best_score) else None)
            now = min(now, steps)
            started = clock()
            done = search_steps(
                self.model, self.region, self.tables, self.settings, now, self.stream,
                self.states, self.record, self.saved, self.tally,
            )  # fmt: skip
            spent = clock() - started
            steps -= int(done)
            self.done += int(done)
            self._look(self.record)
            # How steps are bundled does not change them: answers do not depend on the clock.
            now = int(np.clip(now * GRAIN / max(spent, 1e-9), 1, 2 * now))
        self.cross()

    def offer(self, states: npt.NDArray[np.integer[Any]], rng: np.random.Generator) -> None:
        """Cross the best with an assignment from elsewhere: each component in which they differ takes the better."""
        cross(self.model, _reduced_states(self.problem, states, rng), self.record)
        self._look(self.record)

    def cross(self) -> None:
        """Take over what is better in the present cycle."""
        present, record = self.states.copy(), self.record.copy()
        cross(self.model, present, record)
        self._look(record)

    def _look(self, reduced: IntArray) -> None:
        """Score an assignment, and keep it if it is the best."""
        states = self.problem.states(reduced)
        score = float(self.problem.graph.score(states))
        score += self.problem.evidence.log_likelihood(states)
        if score > self.best_score:
            self.best, self.best_score = states, score


def _model(problem: Problem) -> tuple[Model, float]:
    """Factors of one variable as scores of its states, the others as they are, in the unit that scores are compared in;
    a hard zero costs more than all soft scores together can gain. And half of that cost."""
    s = problem.structure
    unit = unit_among(problem.potentials.log_tables, problem.likelihood)
    pool, likelihood, hopeless = problem.potentials.log_tables / unit, problem.likelihood / unit, np.inf
    hard = np.isneginf(pool)
    if hard.any():
        finite = pool[~hard]
        spread = float(np.ptp(finite)) if len(finite) else 0.0
        low = float(finite.min()) if len(finite) else 0.0
        if len(likelihood):
            spread += float(np.ptp(likelihood))
        cost = 1.0 + spread * (s.n_factors + s.n_variables)
        pool, hopeless = np.where(hard, low - cost, pool), 0.5 * cost
    arity = np.diff(s.scope_offsets)
    unary = likelihood if len(likelihood) else np.zeros(int(s.value_offsets[-1]))
    add_unary(s, pool, unary)
    kept = np.flatnonzero(arity >= 2)
    scope_offsets = offsets_of(arity[kept])
    axes = np.flatnonzero(np.repeat(arity >= 2, arity))
    scopes = s.scopes[axes].astype(np.int64)
    variable_offsets, variable_factors = factors_of_variables(s.n_variables, scope_offsets, scopes)
    neighbour_offsets, neighbours = _neighbours(s.n_variables, scope_offsets, scopes, s.cardinalities > 1)
    cards = s.cardinalities.astype(np.int64)
    model = Model(
        cards,
        s.value_offsets.astype(np.int64),
        unary,
        scope_offsets,
        scopes,
        s.table_offsets[kept],
        s.table_strides[axes],
        pool,
        variable_offsets,
        variable_factors.astype(np.int64),
        neighbour_offsets,
        neighbours,
        np.log2(cards.astype(np.float64)),
        np.flatnonzero(cards > 1),
    )
    return model, hopeless


def _neighbours(
    n: int, scope_offsets: IntArray, scopes: IntArray, free: npt.NDArray[np.bool_]
) -> tuple[IntArray, IntArray]:
    """For each variable those that share a factor with it and have more than one state: offsets and a flat list."""
    arity = np.diff(scope_offsets)
    keys = [np.zeros(0, np.int64)]
    for a in np.unique(arity).tolist():
        inside = scopes[scope_offsets[:-1][arity == a][:, None] + np.arange(a)]
        for i in range(a):
            for j in range(a):
                if i != j:
                    keys.append(inside[:, i] * n + inside[:, j])
    pairs = np.unique(np.concatenate(keys))
    pairs = pairs[free[pairs // n] & free[pairs % n]] if len(pairs) else pairs
    offsets = offsets_of(np.bincount(pairs // n, minlength=n) if len(pairs) else np.zeros(n, np.int64))
    return offsets, pairs % n


def _scratch(n: int, members: int, width: float) -> tuple[Region, Tables]:
    """Arrays that moves in regions of so many members need."""

    def whole(*shape: int) -> IntArray:
        return np.zeros(shape, np.int64)

    region = Region(
        whole(n),
        np.full(n, -1, np.int64),
        np.zeros((members, (members + 63) // 64), np.uint64),
        np.zeros(members),
        whole(members),
        whole(members),
        whole(LEVELS, members),
        whole(LEVELS),
        whole(members, 2),
    )
    # Sizes are compared in half bits.
    cells, axes = int(2.0 ** (np.ceil(2.0 * width) / 2.0)) + 1, int(width) + 3
    tables = Tables(
        whole(members, axes),
        whole(members),
        whole(members),
        whole(members),
        whole(members),
        whole(members),
        np.zeros(WORK + cells),
        np.zeros(cells),
        np.zeros(cells),
        whole(axes),
        whole(axes),
        whole(INNER),
        whole(cells),
    )
    return region, tables


def _reduced_states(problem: Problem, states: npt.NDArray[np.integer[Any]], rng: np.random.Generator) -> IntArray:
    """States of the user's variables as those of the problem; the first where a state was ruled out."""
    as_tables = states
    if problem.as_tables is not problem.graph:
        as_tables = _with_auxiliary(problem, states, rng)
    if problem.reduced is None:
        return as_tables.astype(np.int64)
    r, offsets = problem.reduced, problem.as_tables.structure.value_offsets
    cards = problem.structure.cardinalities.astype(np.int64)
    index = np.zeros(int(offsets[-1]), np.int64)
    owner = np.repeat(np.arange(len(cards)), cards)
    index[offsets[owner] + r.states] = np.arange(len(owner)) - np.repeat(np.cumsum(cards) - cards, cards)
    return index[offsets[:-1] + as_tables]


def _with_auxiliary(problem: Problem, states: npt.NDArray[np.integer[Any]], rng: np.random.Generator) -> Any:
    """States of a graph of tables: those of the user's variables decide those of the auxiliary ones."""
    n = problem.as_tables.structure.n_variables
    out = np.zeros(n, np.int64)
    out[: len(states)] = states
    observed = np.asarray(states, np.int32)
    try:
        given = prepare(problem.graph, Evidence(observed, problem.evidence.likelihoods))
        found = Feasible.of(given).assignment(rng.random(int(given.structure.value_offsets[-1])))
    except ImpossibleEvidenceError:
        return out
    if found is None:
        return out
    return found if given.reduced is None else given.reduced.states[given.reduced.state_offsets[:-1] + found]
