"""Marginal MAP at any width: the best states of some variables, the others summed out, with a bound on the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import States
from markovfield.exceptions import MemoryLimitError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import STOPS, Progress, Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.local_search.incumbent import ROUNDING, stopped_decoding
from markovfield.inference.marginal_map.bounds import I_BOUNDS, MixedBuckets
from markovfield.inference.marginal_map.reduction import SummedOut, sum_out
from markovfield.inference.marginal_map.scores import MarginalScores
from markovfield.inference.problem.problem import prepare

__all__ = ["MarginalSearch", "quick_decoding"]

# Cells of the largest table, and of all tables, that sums are turned into.
LARGEST_TABLE, TABLE_WORK = 2.0**18, 2.0**27
# Sizes of mini-buckets and cells of them in all: a first bound at once, a better one after it.
BUCKETS = (((2,), 2.0**22), (I_BOUNDS, 2.0**22))
# The share of the time left that goes to the relaxation of each, and the seconds it takes where there is no limit.
SHARE, SECONDS = 0.3, 10.0
# Assignments that are listed in falling order of their bounds, more and more of them, and summed; and the clique states
# of a junction tree that lists them.
LISTED, LISTED_WORK = (1, 8, 64, 512), 2.0**22


@dataclass(frozen=True)
class MarginalSearch:
    """Marginal MAP with bounds, at any time and any width.

    Variables to be summed are eliminated exactly where that makes no table of more than 2^18 cells. Often that is all
    of them: what is left is plain MAP, decoded as ``method="auto"`` would, and what is proven of it is proven of the
    marginal MAP.

    Where some remain, weighted mini-buckets bound their sums from above (Liu and Ihler 2013): plain MAP again, whose
    bound holds and whose best assignment is a good one. From there single variables are changed for the better, each
    assignment scored by its true sum: given the maximised variables the others fall into components, each summed
    exactly by a junction tree or, where even that is too wide, bounded from below (then the answer's
    ``score_guarantee`` is ``"lower"``, not ``"exact"``). Where a junction tree of the relaxed problem is small,
    assignments are gone through in falling order of their bounds until no bound is left above the best score, which
    proves it.

    Stopped by ``time_limit``, by the callback or by Ctrl-C, the answer is the best so far.

    Parameters
    ----------
    restarts
        Further climbs, from the best so far with a third of its variables drawn anew.
    memory_limit
        Bytes, or like ``"4GiB"``, for the tables of mini-buckets; None is 8 GiB, or four fifths of the container's
        memory if that is less.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 3})
    >>> _ = net.add_factor(["A", "B"], [[4.0, 1.0, 1.0], [3.0, 3.0, 1.0]])
    >>> answer = mf.decode(net, variables=["A"], method=mf.methods.MarginalSearch(), rng=0)
    >>> answer.assignment, round(float(np.exp(answer.score)), 6), answer.optimal
    ({'A': 1}, 7.0, True)
    """

    restarts: int = 4
    memory_limit: int | str | None = None

    name: ClassVar[str] = "marginal_search"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"marginal_map", "rng"})

    def __post_init__(self) -> None:
        check_method(self, least={"restarts": 0})
        memory_limit_bytes(self.memory_limit)

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        running: Running,
        rng: np.random.Generator,
    ) -> Decoding:
        """The best assignment of some variables that was found, and how far from the best it can be."""
        maximised = np.ones(graph.n_variables, np.bool_)
        if variables is not None:
            maximised[:] = False
            maximised[list(variables)] = True
        if maximised.all() and not graph.structure.has_latent:
            found = _plain(graph, evidence, 0.0, running.time_limit, running, rng)
            return replace(found, method=self.name)
        try:
            reduced = sum_out(graph, evidence, maximised, largest=LARGEST_TABLE, work=TABLE_WORK, running=running)
        except STOPS as stop:
            return quick_decoding(self.name, graph, evidence, running, stop, variables)
        search = _Search(self, graph, reduced, running, rng)
        try:
            search.run()
        except STOPS as stop:
            search.converged = False
            if search.best is None:
                return quick_decoding(self.name, graph, evidence, running, stop, variables)
        return search.answer(variables)


def quick_decoding(
    name: str,
    graph: FactorGraph,
    evidence: Evidence,
    running: Running,
    stop: BaseException,
    variables: Sequence[int] | None,
) -> Decoding:
    """The answer of a marginal MAP that was stopped before anything was summed.

    It is an assignment of all variables, whose score is no more than the sum. Raises ``stop`` where no assignment free
    of hard zeros is found.
    """
    as_tables = graph.to_tables()
    known = evidence.states
    if as_tables is not graph:
        known = np.concatenate([known, np.full(as_tables.n_variables - graph.n_variables, -1, np.int32)])
        known.flags.writeable = False
    found = stopped_decoding(name, prepare(as_tables, Evidence(known, evidence.likelihoods)), running, stop)
    return decoding_of_states(
        graph,
        [(found.states[: graph.n_variables], found.score)],
        variables,
        gap=np.inf,
        guarantee="lower",
        score_guarantee="lower",
        method=name,
        converged=False,
        seconds=running.seconds,
    )


def _plain(
    graph: FactorGraph,
    evidence: Evidence,
    constant: float,
    seconds: float | None,
    running: Running,
    rng: np.random.Generator,
) -> Decoding:
    """Plain MAP, by whatever ``auto`` takes; stopped, the best so far."""
    from markovfield.inference.verbs import decode

    callback: Callable[[Progress], bool] | None = None
    if running.callback is not None:

        def told(progress: Progress) -> bool:
            value = None if progress.value is None else progress.value + constant
            running.check(value, None if progress.bound is None else progress.bound + constant)
            return False

        callback = told
    known: Any = evidence
    return decode(graph, known, n_jobs=running.n_jobs, time_limit=seconds, callback=callback, rng=rng)


class _Search:
    """The best assignment of a reduced problem so far, and the least upper bound."""

    def __init__(
        self,
        method: MarginalSearch,
        graph: FactorGraph,
        reduced: SummedOut,
        running: Running,
        rng: np.random.Generator,
    ) -> None:
        self.method, self.graph, self.reduced = method, graph, reduced
        self.running, self.rng = running, rng
        self.best: States | None = None
        self.score, self.exact = -np.inf, True
        self.bound = np.inf
        self.tolerance = 0.0
        self.converged = True
        self.rounds = 0

    def run(self) -> None:
        """Plain MAP where nothing is left to sum; else bounds, then a climb, then a proof where that is near."""
        if not len(self.reduced.left):
            self._solve()
            return
        self.scores = MarginalScores(self.reduced, self.running)
        self._first()
        for i_bounds, cells in BUCKETS:
            self._relax(i_bounds, cells)
            if self.proven:
                return
        while self.rounds < self.method.restarts:
            self.running.check(self._told(self.score), self._told(self.bound))
            self._climb(self._elsewhere())
            self.rounds += 1

    def _passed_on(self) -> Callable[[Progress], bool] | None:
        """A callback for a part of the work that has a time of its own."""
        if self.running.callback is None:
            return None

        def told(_: Progress) -> bool:
            self.running.check(self._told(self.score), self._told(self.bound))
            return False

        return told

    def _told(self, value: float) -> float | None:
        return value + self.reduced.constant if np.isfinite(value) else None

    @property
    def room(self) -> float:
        """What rounding may leave between a score and the bound on it."""
        value = self.score + self.reduced.constant
        return max(self.tolerance, ROUNDING * max(1.0, abs(value), abs(self.score)))

    @property
    def proven(self) -> bool:
        return self.exact and self.score > -np.inf and self.bound - self.score <= self.room

    def left(self) -> float | None:
        """Seconds left; at least a little, since some came before."""
        limit = self.running.time_limit
        return None if limit is None else max(limit - (self.running.seconds), 0.05)

    # ---- nothing left to sum --------------------------------------------------------------------------------------

    def _solve(self) -> None:
        found = _plain(
            self.reduced.graph, self.reduced.evidence, self.reduced.constant, self.left(), self.running, self.rng
        )
        self.best, self.score, self.bound = found.states, found.score, found.upper_bound
        self.tolerance, self.converged, self.rounds = found.tolerance, found.converged, found.iterations

    # ---- some left ------------------------------------------------------------------------------------------------

    def offer(self, states: States) -> None:
        """Keep an assignment that is better."""
        states = self.scores.start(states)
        score, exact = self.scores.score(states)
        if score > self.score:
            self.best, self.score, self.exact = states, score, exact

    def _first(self) -> None:
        """An assignment that breaks no hard constraint: of all variables, so its score is below the sum."""
        problem = prepare(self.reduced.graph, self.reduced.evidence)
        found = stopped_decoding("", problem, self.running, StoppedError("no assignment free of hard zeros was found"))
        self.best, self.score, self.exact = found.states, found.score, False
        self.offer(found.states)

    def _relax(self, i_bounds: Sequence[int], cells: float) -> None:
        """Bound the sums that are left by mini-buckets, solve the plain MAP that this makes, and climb from there."""
        try:
            buckets = MixedBuckets(self.reduced, i_bounds, cells, self.method.memory_limit, self.running)
        except MemoryLimitError:
            return
        buckets.start()
        self.bound = min(self.bound, buckets.bound)
        left = self.left()
        buckets.cool(Running(self.running.n_jobs, None if left is None else SHARE * left, self._passed_on()))
        self.bound = min(self.bound, buckets.bound)
        self.offer(buckets.states())
        self.running.check(self._told(self.score), self._told(self.bound))
        relaxed = buckets.relaxed()
        constant = buckets.constant
        if self._listed(relaxed, constant):
            return
        left = self.left()
        seconds = SECONDS if left is None else SHARE * left
        found = _plain(
            relaxed, self.reduced.evidence, self.reduced.constant + constant, seconds, self.running, self.rng
        )
        self.bound = min(self.bound, found.upper_bound + constant)
        self._climb(found.states)
        assert self.best is not None
        self._climb(self.best)

    def _listed(self, relaxed: FactorGraph, constant: float) -> bool:
        """Go through the assignments in falling order of their bounds, by a junction tree. Whether that is proof."""
        tree = JunctionTree(work_limit=LISTED_WORK, search=0.0)
        known = self.reduced.evidence
        # Where a sum was only bounded from below, the bound of its assignment stands.
        seen, sure = 0, -np.inf
        for count in LISTED:
            try:
                listed = tree.decode(relaxed, known, n_best=count, running=self.running).n_best
            except MemoryLimitError:
                return False
            for solution in listed[seen:]:
                bound = solution.score + constant
                self.bound = min(self.bound, max(self.score, bound, sure))
                if bound <= self.score:
                    return self.proven
                score, exact = self.scores.score(solution.states)
                sure = sure if exact else max(sure, bound)
                if score > self.score:
                    self.best, self.score, self.exact = solution.states.copy(), score, exact
                self.running.check(self._told(self.score), self._told(self.bound))
            seen = len(listed)
            if seen < count:
                self.bound = min(self.bound, max(self.score, sure))
                break
        return self.proven

    def _climb(self, states: States) -> None:
        """Change single variables for the better until none gains."""
        states = self.scores.start(states)
        self.offer(states)
        moved = True
        while moved:
            moved = False
            for v in self.scores.free.tolist():
                self.running.check(self._told(self.score), self._told(self.bound))
                scores = self.scores.conditional(states, v)
                k, own = int(np.argmax(scores)), float(scores[states[v]])
                gains = own == -np.inf < scores[k] or scores[k] - own > ROUNDING * max(1.0, abs(own))
                if gains:
                    states[v] = k
                    moved = True
            if moved:
                self.offer(states)

    def _elsewhere(self) -> States:
        """The best so far with a third of its variables drawn anew, given the others."""
        assert self.best is not None
        states, free = self.best.copy(), self.scores.free
        for v in self.rng.permutation(free)[: max(1, len(free) // 3)].tolist():
            self.running.check()
            scores = self.scores.conditional(states, v)
            if scores.max() > -np.inf:
                p = np.exp(scores - scores.max())
                states[v] = int(self.rng.choice(len(p), p=p / p.sum()))
        return states

    def answer(self, variables: Sequence[int] | None) -> Decoding:
        assert self.best is not None
        gap = max(0.0, self.bound - self.score)
        return decoding_of_states(
            self.graph,
            [(self.best[: self.graph.n_variables].astype(np.int32), self.score + self.reduced.constant)],
            variables,
            gap=gap,
            tolerance=self.room,
            guarantee="exact" if gap <= self.room and self.exact else "lower",
            score_guarantee="exact" if self.exact else "lower",
            method=self.method.name,
            converged=self.converged,
            iterations=self.rounds + 1,
            seconds=self.running.seconds,
        )
