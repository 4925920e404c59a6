"""Decoding by changing one variable at a time: iterated conditional modes, simulated annealing, tabu search.

None of them proves anything: answers have an infinite gap. All of them stop when told, with the best assignment so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError, ModelError, StoppedError
from markovfield.factors.factor_graph import TABLE, FactorGraph, Structure
from markovfield.factors.factor_kinds import caps
from markovfield.inference.constants.scale import unit_among
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.local_search.local_search_kernel import (
    Factors,
    anneal,
    climb_from,
    fill_gains,
    shake_steps,
    tabu_steps,
)
from markovfield.inference.problem.domains_kernel import factors_of_variables
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import prepare
from markovfield.kernels.random import streams

__all__ = [
    "ICM",
    "LocalSearch",
    "SimulatedAnnealing",
    "TabuSearch",
    "add_unary",
    "check_local",
    "check_possible",
    "given_states",
    "started_states",
]

# Changes looked at in one call of a kernel: about a tenth of a second.
CHUNK = 2**18
# Shakes in one call, and the most changes that one of them may make before it is given up.
SHAKES, JOURNAL = 2000, 4096
_NO_JOURNAL = np.zeros(0, np.int64)


def check_local(name: str, graph: FactorGraph, variables: Sequence[int] | None, n_best: int) -> None:
    """Refuse what a search over single assignments cannot answer."""
    if n_best != 1:
        raise ModelError(f"{name} finds one assignment: use junction_tree for the n best")
    if variables is not None:
        raise ModelError(f"{name} decodes all variables: use junction_tree or marginal_search for marginal MAP")
    if graph.structure.has_latent:
        raise ModelError(f"{name} cannot maximise over a noisy-max: use junction_tree")


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

    def shake(self, steps: int, shaken: int, rng: np.random.Generator, running: Running) -> None:
        """Iterated local search for so many steps."""
        stream = streams(rng, 1)[0]
        journal = np.zeros(2 * (JOURNAL + shaken + 2), np.int64)
        while steps > 0:
            now = min(steps, SHAKES)
            shake_steps(self.factors, now, shaken, stream, self.queue, *self.gains, self.queued, self.tally, journal)
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


def add_unary(s: Structure, log_tables: FloatArray, unary: FloatArray) -> None:
    """Add the plain tables of one variable to ``unary``, the scores of all variables' states."""
    single = np.flatnonzero((np.diff(s.scope_offsets) == 1) & (s.kind == TABLE))
    variable, axis = s.scopes[s.scope_offsets[single]], s.scope_offsets[single]
    cards = s.cardinalities[variable].astype(np.int64)
    factor = np.repeat(np.arange(len(single)), cards)
    state = np.arange(int(cards.sum())) - np.repeat(np.cumsum(cards) - cards, cards)
    cells = s.table_offsets[single][factor] + s.table_strides[axis][factor] * state
    np.add.at(unary, s.value_offsets[variable[factor]] + state, log_tables[cells])


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


def _searched(
    method: Any,
    graph: FactorGraph,
    evidence: Evidence,
    running: Running,
    init: Any,
    rng: np.random.Generator,
    search: Callable[[LocalSearch], int],
) -> Decoding:
    """Prepare, search until done or told to stop, and answer with the best."""
    prepare(graph, evidence)  # refuses evidence that is plainly impossible
    found = LocalSearch(graph, evidence, started_states(graph, evidence, init, rng))
    converged, rounds = True, 0
    try:
        rounds = search(found)
    except (TimeoutError, StoppedError, KeyboardInterrupt):
        converged = False
        if found.best_broken:
            raise
    if found.best_broken:
        check_possible(graph, evidence, running)
    states, score = found.answer()
    return decoding_of_states(
        graph,
        [(states, score)],
        None,
        gap=np.inf,
        guarantee="lower",
        method=method.name,
        converged=converged,
        iterations=rounds,
        seconds=time.perf_counter() - running.started,
    )


@dataclass(frozen=True)
class ICM:
    """Iterated conditional modes: each variable takes its best state given the others, until none changes.

    The answer is a local optimum: no change of a single variable scores higher (Besag 1986; Murphy 19.4.2). It is
    fast, time for a change growing with the variable's neighbours times their states, and poor when potentials are
    strong; restarts help.

    Parameters
    ----------
    restarts
        Further climbs from random assignments; the best local optimum is the answer.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[1.0, 0.0], [0.0, 3.0]])
    >>> mf.decode(net, method=mf.methods.ICM(restarts=5), rng=0).assignment
    {'A': 1, 'B': 1}
    """

    restarts: int = 0

    name: ClassVar[str] = "icm"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})

    def __post_init__(self) -> None:
        check_method(self)
        if self.restarts < 0:
            raise ModelError(f"restarts must be at least 0, got {self.restarts}")

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
        """Climb, from where ``init`` says and then from random assignments."""
        check_local(self.name, graph, variables, n_best)

        def search(found: LocalSearch) -> int:
            cards = graph.structure.cardinalities
            everyone = np.arange(len(cards))
            found.climb(everyone, running)
            for _ in range(self.restarts):
                running.check(found.best_score)
                found.move_to((rng.random(len(cards)) * cards).astype(np.int64))
                found.climb(rng.permutation(everyone), running)
            return 1 + self.restarts

        return _searched(self, graph, evidence, running, init, rng, search)


@dataclass(frozen=True)
class SimulatedAnnealing:
    """Simulated annealing: heat-bath sweeps at a falling temperature, then a climb (Kirkpatrick et al. 1983).

    A sweep costs as much as one of Gibbs sampling. A broken hard constraint costs ``penalty`` times the largest spread
    of a table.

    Parameters
    ----------
    sweeps
        Sweeps over all variables in one run.
    start, end
        First and last temperature; None sets them from the potentials: a tenth of all changes refused, nearly all.
    runs
        Independent runs; the best end is the answer.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.Ising((6, 6), coupling=-1.0, field=0.1)
    >>> round(mf.decode(model, method=mf.methods.SimulatedAnnealing(sweeps=200), rng=0).score, 6)
    60.0
    """

    sweeps: int = 500
    start: float | None = None
    end: float | None = None
    runs: int = 1
    penalty: float = 2.0

    name: ClassVar[str] = "simulated_annealing"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init", "rng"})

    def __post_init__(self) -> None:
        check_method(self)
        if self.sweeps < 1 or self.runs < 1:
            raise ModelError(f"sweeps and runs must be at least 1, got {self.sweeps} and {self.runs}")
        for name, value in (("start", self.start), ("end", self.end), ("penalty", self.penalty)):
            if value is not None and not 0 < value < np.inf:
                raise ModelError(f"{name} must be positive and finite, got {value}")

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
        """Cool down, as often as ``runs`` says."""
        check_local(self.name, graph, variables, n_best)

        def search(found: LocalSearch) -> int:
            s = graph.structure
            everyone = np.arange(s.n_variables)
            first, last = self._temperatures(found)
            cooling = (last / first) ** (1.0 / max(1, self.sweeps - 1))
            at_once = max(1, CHUNK // max(1, int(s.value_offsets[-1])))
            # What a broken constraint costs: more than keeping it can lose in any one factor.
            finite = graph.log_tables
            finite = finite[np.isfinite(finite)]
            penalty = self.penalty * max(1.0, float(np.ptp(finite)) if len(finite) else 1.0)
            for run in range(self.runs):
                stream = streams(rng, 1)[0]
                if run:
                    found.move_to((rng.random(s.n_variables) * s.cardinalities).astype(np.int64))
                temperature, left = first, self.sweeps
                while left:
                    now = min(left, at_once)
                    temperature = anneal(found.factors, temperature, penalty, now, cooling, stream, *found.gains)
                    left -= now
                    found.renew()
                    running.check(found.best_score)
                found.climb(everyone, running)
            return self.sweeps * self.runs

        return _searched(self, graph, evidence, running, init, rng, search)

    def _temperatures(self, found: LocalSearch) -> tuple[float, float]:
        """From a temperature at which an average change is taken to one at which the smallest hardly is."""
        s = found.graph.structure
        owner = np.repeat(np.arange(s.n_variables), s.cardinalities)
        tops = np.maximum.reduceat(found.soft, s.value_offsets[:-1]) if s.n_variables else np.zeros(0)
        losses = tops[owner] - found.soft
        losses = losses[losses > 1e-12]
        if not len(losses):
            return self.start or 1.0, self.end or 1e-2
        start = self.start or float(np.quantile(losses, 0.9)) / 2
        end = self.end or max(float(np.quantile(losses, 0.05)) / 10, 1e-6 * start)
        return start, min(end, start)


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
        check_method(self, least={"largest": 0})
        for name in ("steps", "tenure", "shaken"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ModelError(f"{name} must be at least 1, got {value}")

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
        """Climb, then search on."""
        check_local(self.name, graph, variables, n_best)

        def search(found: LocalSearch) -> int:
            n = graph.n_variables
            steps = self.steps if self.steps is not None else min(10**6, 200 * n)
            found.climb(np.arange(n), running)
            if n > self.largest:
                found.shake(steps, self.shaken, rng, running)
            else:
                self._tabu(found, steps, rng, running)
            return steps

        return _searched(self, graph, evidence, running, init, rng, search)

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
