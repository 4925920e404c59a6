"""Decoding by changing one variable at a time: iterated conditional modes, simulated annealing, tabu search.

None of them proves anything: answers have an infinite gap. All of them stop when told, with the best assignment so far.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import caps
from markovfield.inference.constants.scale import unit_among
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.local_search.local_search_kernel import (
    Factors,
    climb_from,
    fill_gains,
    shake_steps,
)
from markovfield.inference.problem.domains_kernel import factors_of_variables
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.pairwise import add_unary
from markovfield.inference.problem.problem import prepare
from markovfield.kernels.random import streams

__all__ = ["LocalSearch", "check_possible", "given_states", "searched", "started_states"]

# Changes looked at in one call of a kernel: about a tenth of a second.
CHUNK = 2**18
# Shakes in one call, and the most changes that one of them may make before it is given up.
SHAKES, JOURNAL = 2000, 4096
_NO_JOURNAL = np.zeros(0, np.int64)


class LocalSearch:
    """An assignment of a graph with what every single change would gain, and the best one seen.

    Structured factors are read as they are, not as chains of auxiliary variables, so that a change is one of the
    user's variables. Scores are compared first by the constraints they break. Sums are renewed from time to time,
    against rounding.

    Parameters
    ----------
    states
        ``int[n]``, where to start; observed variables take the state they are observed in.
    """

    def __init__(self, graph: FactorGraph, evidence: Evidence, states: npt.NDArray[np.integer[Any]]) -> None:
        s = graph.structure
        self.graph = graph
        offsets, factors = factors_of_variables(s.n_variables, s.scope_offsets, s.scopes)
        self.factors = Factors(
            s.cardinalities,
            s.value_offsets,
            s.scope_offsets,
            s.scopes,
            s.table_offsets,
            s.table_strides,
            s.kind,
            caps(s),
            graph.log_tables,
            offsets,
            factors,
            evidence.states >= 0,
            unit_among(graph.log_tables, *(vector for _, vector in evidence.likelihoods)),
        )
        n = int(s.value_offsets[-1])
        self.likelihood = np.zeros(n) if evidence.likelihoods else np.zeros(0)
        for v, vector in evidence.likelihoods:
            self.likelihood[s.value_offsets[v] : s.value_offsets[v + 1]] += vector
        self.states = np.where(evidence.states >= 0, evidence.states, states).astype(np.int64)
        self.soft, self.hard = np.empty(n), np.empty(n, np.int64)
        self.totals = np.zeros(s.n_factors, np.int64)
        self.queued = np.zeros(s.n_variables, np.bool_)
        self.queue = np.zeros(s.n_variables + 1, np.int64)
        self.tally = np.zeros(2)
        self.best = self.states.copy()
        self.best_broken, self.best_score = np.inf, -np.inf
        self.renew()

    @property
    def gains(self) -> tuple[Any, Any, Any, Any]:
        """What kernels read and write: states, sums, gains."""
        return self.states, self.totals, self.soft, self.hard

    def renew(self) -> None:
        """Compute gains and the score of the present assignment from nothing, and remember it if it is the best."""
        fill_gains(self.factors, self.likelihood, *self.gains, self.tally)
        broken, value = self.tally.tolist()
        if (broken, -value) < (self.best_broken, -self.best_score):
            self.best_broken, self.best_score = broken, value
            self.best = self.states.copy()

    def move_to(self, states: npt.NDArray[np.int64]) -> None:
        """Go on from another assignment; observed variables stay."""
        self.states[:] = np.where(self.factors.fixed, self.states, states)
        self.renew()

    def climb(self, order: npt.NDArray[np.int64], running: Running) -> None:
        """Change single variables for the better until none is left to change."""
        self.queue[: len(order)] = order
        self.queued[order] = True
        ends = np.array([0, len(order)])
        try:
            while not climb_from(
                self.factors, self.queue, ends, *self.gains, self.queued, self.tally, _NO_JOURNAL, CHUNK
            ):
                running.check(self.best_score)
        finally:
            self.queued[:] = False
            self.renew()

    def shake(
        self,
        steps: int,
        shaken: int,
        rng: np.random.Generator,
        running: Running,
        starts: Callable[[], npt.NDArray[np.int64]] | None = None,
    ) -> None:
        """Iterated local search for so many steps, around any variables or those that ``starts`` names now and then."""
        stream = streams(rng, 1)[0]
        everyone = np.arange(len(self.states))
        journal = np.zeros(2 * (JOURNAL + shaken + 2), np.int64)
        while steps > 0:
            now = min(steps, SHAKES)
            around = everyone if starts is None else starts()
            if not len(around):
                return
            shake_steps(
                self.factors, now, shaken, around, stream, self.queue, *self.gains, self.queued, self.tally, journal
            )
            steps -= now
            self.renew()
            running.check(self.best_score)

    def answer(self) -> tuple[npt.NDArray[np.int32], float]:
        """The best assignment of the user's variables; an error where no constraint-free one was found."""
        if self.best_broken:
            raise ModelError(
                f"no assignment free of hard zeros was found: the best one breaks {self.best_broken:.0f} constraints; "
                "use junction_tree or branch_and_bound"
            )
        return self.best.astype(np.int32), self.best_score


def started_states(
    graph: FactorGraph, evidence: Evidence, init: Any, rng: np.random.Generator
) -> npt.NDArray[np.integer[Any]]:
    """Where to start: an earlier answer or assignment, or the best state of each variable's unary potentials.

    Where that breaks a hard constraint, a search for an assignment that breaks none is tried.
    """
    if init is not None:
        return given_states(graph, init)
    s = graph.structure
    unary = np.zeros(int(s.value_offsets[-1]))
    for v, vector in evidence.likelihoods:
        unary[s.value_offsets[v] : s.value_offsets[v + 1]] += vector
    add_unary(s, graph.log_tables, unary)
    owner = np.repeat(np.arange(s.n_variables), s.cardinalities)
    # The first of the largest, variable by variable: a stable sort by owner, then by falling value.
    order = np.lexsort((-unary, owner))
    best = order[s.value_offsets[:-1]] - s.value_offsets[:-1]
    if not np.isneginf(graph.log_tables).any() and not np.isneginf(unary).any():
        return best
    best = np.where(evidence.states >= 0, evidence.states, best)
    if np.isneginf(graph.score(best)):
        problem = prepare(graph, evidence)
        found = Feasible.of(problem).assignment(rng.random(int(problem.structure.value_offsets[-1])))
        if found is not None:
            return problem.states(found)
    return best


def has_zeros(graph: FactorGraph, evidence: Evidence) -> bool:
    """Whether anything may be ruled out."""
    likely = (np.isneginf(vector).any() for _, vector in evidence.likelihoods)
    return bool(np.isneginf(graph.log_tables).any()) or any(likely)


def given_states(graph: FactorGraph, init: Any) -> npt.NDArray[np.int64]:
    """An earlier `Decoding`, or a dict of states by name, as states by position."""
    if isinstance(init, Decoding):
        states = np.asarray(init.states, np.int64)
    elif isinstance(init, dict):
        states = np.full(graph.n_variables, -1, np.int64)
        for name, state in init.items():
            v = graph.names.position(name)
            states[v] = graph.names.state(v, state, int(graph.structure.cardinalities[v]))
    else:
        raise ModelError(f"init must be an earlier Decoding or a dict of states, got {type(init).__name__}")
    if len(states) != graph.n_variables or (states < 0).any() or (states >= graph.structure.cardinalities).any():
        raise ModelError("init must give a state to every variable")
    return states


def check_possible(graph: FactorGraph, evidence: Evidence, running: Running) -> None:
    """Raise `ImpossibleEvidenceError` where a small junction tree proves that there is nothing to find."""
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

    with suppress(MemoryLimitError, TimeoutError):
        JunctionTree(search=0, work_limit=2.0**22).log_partition(graph, evidence, running=running)


def searched(
    method: Any,
    graph: FactorGraph,
    evidence: Evidence,
    running: Running,
    init: Any,
    rng: np.random.Generator,
    search: Callable[[LocalSearch], int],
    bound: Callable[[LocalSearch], tuple[float, float]] | None = None,
) -> Decoding:
    """Prepare, search until done or told to stop, and answer with the best.

    ``bound`` gives a number that no score exceeds, and how near to it a score is the best, but for rounding.
    """
    if has_zeros(graph, evidence):
        prepare(graph, evidence)  # refuses evidence that is plainly impossible
    found = LocalSearch(graph, evidence, started_states(graph, evidence, init, rng))
    converged, rounds = True, 0
    try:
        rounds = search(found)
    except STOPS:
        converged = False
        if found.best_broken:
            raise
    if found.best_broken:
        check_possible(graph, evidence, running)
    states, score = found.answer()
    top, tolerance = (np.inf, 0.0) if bound is None else bound(found)
    gap = max(0.0, top - score)
    return decoding_of_states(
        graph,
        [(states, score)],
        gap=gap,
        tolerance=tolerance,
        guarantee="exact" if gap <= tolerance else "lower",
        method=method.name,
        converged=converged,
        iterations=rounds,
        seconds=running.seconds,
    )
