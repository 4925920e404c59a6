"""Branch and bound: the best assignment with a proof, and on the way there ever better ones with ever better bounds."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import IntArray
from markovfield.exceptions import MemoryLimitError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.branch_and_bound.consistency_kernel import BOUND, CUT, LIMIT, THETA
from markovfield.inference.branch_and_bound.costs import CostNetwork, Costs
from markovfield.inference.branch_and_bound.descent_kernel import descend
from markovfield.inference.branch_and_bound.root_kernel import dominate, pass_messages
from markovfield.inference.branch_and_bound.search_kernel import (
    BEST,
    DECISIONS,
    LAST,
    LEVELS,
    LIMITED,
    NODES,
    PAUSED,
    Search,
    explore,
    propagate_root,
    retreat,
    start_subtree,
)
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.kernels.random import streams

__all__ = ["BranchAndBound"]


# Cells looked at in one call of a kernel: well under 0.2 s.
WORK = 30_000_000
# Variables whose consistency is looked at in one call.
ROOT_VARIABLES = 8192
# Steps back before a subtree is put aside (Allouche et al. 2015), and the share of nodes seen a second time between
# which that number is kept.
FIRST_BACKTRACKS, MOST_BACKTRACKS = 16, 1 << 14
SEEN_AGAIN = (0.05, 0.1)


@dataclass(order=True)
class _Open:
    """A subtree to look at later: the first ``length`` decisions of a branch, the last of them turned round."""

    bound: int
    depth: int
    number: int
    branch: IntArray = field(compare=False)
    length: int = field(compare=False)
    turned: bool = field(compare=False)

    def decisions(self) -> IntArray:
        path = self.branch[: self.length].copy()
        if self.turned:
            path[-1] = -path[-1]
        return path


class _Component:
    """The search in one connected component."""

    def __init__(self, network: CostNetwork, parts: int) -> None:
        self.network = network
        self.net, self.board = network.layout, network.board
        self.parts = parts
        n, values = network.n_variables, int(self.net.value_offsets[-1])
        self.search = Search(
            np.zeros(values + 1, np.int64),
            np.zeros(n + 1, np.int64),
            np.zeros(n + 1, np.int64),
            np.zeros(n + 1, np.int64),
            np.zeros(n + 1, np.int64),
            np.repeat(np.arange(n), np.diff(self.net.value_offsets)),
            np.full(n, -1, np.int64),
        )
        self.search.owner.flags.writeable = False
        registers = self.board.registers
        registers[BEST] = registers[CUT] = network.total + 1
        registers[LAST] = -1
        self.finished = False
        self.open: list[_Open] = []
        self.made = 0
        self.inside = False
        self.present = 0

    @property
    def solved(self) -> bool:
        """Whether an assignment is known."""
        return bool(self.search.best[0] >= 0)

    @property
    def best(self) -> int:
        return int(self.board.registers[BEST])

    @property
    def bound(self) -> int:
        """No assignment of this component costs less."""
        if self.finished:
            return self.best
        bounds = [node.bound for node in self.open[:1]]
        if self.inside:
            # The levels' other sides lie above the node that the subtree began with.
            bounds.append(self.present)
        least = min(bounds) if bounds else int(self.board.state[BOUND])
        # Costs of assignments are integer multiples of the parts.
        return min(self.best, -(-least // self.parts) * self.parts)

    def improve(self, cost: int) -> None:
        self.board.registers[BEST] = cost
        self.board.registers[CUT] = cost - self.parts + 1

    def propagate(self, check: Callable[[], None]) -> bool:
        """Consistency at the root, for good; marks the component as finished where nothing is left.

        Of very many variables some are looked at after the others, so that there is a look at the clock between.
        """
        registers = self.board.registers
        room = int(registers[CUT] - self.board.state[BOUND])
        registers[THETA] = min(self.parts >> 4, room >> 16) if self.parts > 16 else room >> (20 if self.solved else 30)
        n, flags = self.network.n_variables, (self.board.arc, self.board.directional, self.board.existential)
        waiting = [flag.copy() for flag in flags]
        for begin in range(0, n, ROOT_VARIABLES):
            if n > ROOT_VARIABLES:
                piece = slice(begin, begin + ROOT_VARIABLES)
                for flag, wait in zip(flags, waiting, strict=True):
                    flag[:] = False
                    flag[piece] = wait[piece]
                check()
            if not propagate_root(self.net, self.board, self.search):
                self.finished = True
                break
        return not self.finished

    def flag_all(self) -> None:
        for flags in (self.board.arc, self.board.directional, self.board.existential, self.board.function):
            flags[:] = True


@dataclass(frozen=True)
class BranchAndBound:
    """The best assignment with a proof that it is, by search (hybrid best-first; Allouche et al. 2015).

    Log-potentials become integer costs, exactly where all are multiples of a decimal unit, and otherwise rounded
    down to about 2^-54 of their sum, which `Decoding.tolerance` states; from there on all arithmetic is exact, so
    bounds are proofs. At the root sequential reweighted message passing (Kolmogorov 2015), dead-end elimination and
    local search; in every node existential directional arc consistency (EDAC; Cooper et al. 2010); branching on the
    variable with the fewest states for its part in earlier conflicts. Connected components are searched by themselves,
    and a model of small width that the root does not solve is left to the junction tree.

    Stopped by ``time_limit``, by the callback or by Ctrl-C, the answer is the best assignment so far with ``gap``, its
    distance from the least bound of what is left to search. Time is exponential in the worst case; memory is that of
    the tables, of at most some hundred MB to go back by, and of the subtrees put aside.

    Parameters
    ----------
    max_work
        Clique states up to which a junction tree is used in place of the search; 0 searches always.
    sweeps
        The most sweeps of message passing at the root.
    local_search
        Rounds of iterated local search at the root, for models of pairs.
    max_factor_cells
        The most cells of a factor of three or more variables.
    seed
        Of the local search. The answer's score does not depend on it, the assignment may where several are best.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.branch_and_bound.branch_and_bound import BranchAndBound
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factors([["A", "B"], ["B", "C"], ["C", "A"]], log_table=[[-1, 0], [0, -1]])
    >>> answer = mf.decode(net, method=BranchAndBound(max_work=0))
    >>> answer.score, answer.optimal
    (-1.0, True)
    """

    max_work: float = 2.0**20
    sweeps: int = 200
    local_search: int = 200
    max_factor_cells: int = 2**18
    seed: int = 0

    name: ClassVar[str] = "branch_and_bound"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_method(self, least={"sweeps": 0, "local_search": 0, "max_factor_cells": 1, "seed": 0, "max_work": 0})

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Decoding:
        """The best assignment, or the best so far with its gap where the search is stopped."""
        return _Run(self, prepare(graph, evidence), running).decode()


class _Run:
    """One decoding: all components, what was found, and when to stop."""

    def __init__(self, method: BranchAndBound, problem: Problem, running: Running) -> None:
        self.method, self.problem, self.running = method, problem, running
        self.costs = Costs.of(problem, max_factor_cells=method.max_factor_cells)
        self.states = np.zeros(problem.structure.n_variables, np.int64)
        s, pool = problem.structure, problem.potentials.log_tables
        constants = pool[s.table_offsets[np.diff(s.scope_offsets) == 0]]
        if np.isneginf(constants).any():
            raise problem.impossible()
        self.constant = float(constants.sum())
        self.components: list[_Component] = []
        self.told = np.inf
        self.single = 0
        self.stopped = False

    def decode(self) -> Decoding:
        stop: BaseException | None = None
        try:
            self._split()
            for component in self.components:
                self._root(component)
            if not all(component.finished for component in self.components):
                found = self._eliminate()
                if found is not None:
                    return found
            for component in self.components:
                self._search(component)
        except STOPS as caught:
            stop = caught
        return self._answer(stop)

    def _eliminate(self) -> Decoding | None:
        """By a junction tree, where one found without much searching is small enough."""
        if self.method.max_work <= 0:
            return None
        tree = JunctionTree(work_limit=self.method.max_work, search=0.0)
        graph = self.problem.graph
        try:
            found = tree.decode(graph, self.problem.evidence, running=self.running)
        except MemoryLimitError:
            return None
        return decoding_of_states(
            graph,
            [(found.states, found.score)],
            method=self.name,
            seconds=self.running.seconds,
            width=found.width,
        )

    def _split(self) -> None:
        parts = self.costs.scale.parts
        for network in self.costs.networks():
            if isinstance(network, CostNetwork):
                self.components.append(_Component(network, parts))
            else:
                single, best = network
                self.states[single] = best
                unary = self.costs.unary[self.problem.structure.value_offsets[single] + best]
                if (unary >= LIMIT).any():
                    raise self.problem.impossible()
                self.single = int(unary.sum())

    # ---- the root -------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Between two pieces of work: the best score so far, where all components have one, and the least bound."""
        value = None
        if self.components and all(component.solved for component in self.components):
            value = self.constant + self.costs.scale.score(
                self.single + sum(component.best for component in self.components)
            )
        if self.components:
            # A component whose open subtrees are all in hand has no bound of its own at that moment; the least holds.
            now = self.constant + self.costs.scale.score(
                self.single + sum(component.bound for component in self.components)
            )
            self.told = min(self.told, float(now))
        self.running.check(value, self.told if np.isfinite(self.told) else None)

    def _root(self, component: _Component) -> None:
        """Bounds, dominance and a first assignment, before any branching."""
        board, registers = component.board, component.board.registers
        stream = streams(np.random.default_rng(self.method.seed), 1)[0]
        self._check()
        if not component.propagate(self._check):
            raise self.problem.impossible()
        self._descend(component, stream, np.bool_(True), 0)
        first = last = int(board.state[BOUND])
        registers[THETA] = 0
        for sweep in range(self.method.sweeps):
            for forward in (np.bool_(True), np.bool_(False)):
                at = 0
                while 0 <= at < component.network.n_variables:
                    at = pass_messages(component.net, board, forward, at, WORK)
                    self._check()
                if at < 0:
                    component.flag_all()
                    component.finished = True
                    return
            if sweep % 8 == 7:
                self._descend(component, stream, np.bool_(True), 0)
            bound = int(board.state[BOUND])
            if bound >= registers[CUT] or (sweep >= 10 and bound - last <= (bound - first) >> 10):
                break
            last = bound
        component.flag_all()
        if not component.propagate(self._check):
            return
        self._descend(component, stream, np.bool_(True), self.method.local_search)
        while not component.finished:
            if not component.propagate(self._check) or not self._dominate(component):
                break

    def _descend(self, component: _Component, stream: npt.NDArray[np.uint64], start: np.bool_, rounds: int) -> None:
        if component.network.n_functions:
            return
        states = component.search.best.copy()
        best = component.search.best
        while True:
            few = min(rounds, 20)
            cost = descend(component.net, component.board, stream, best, np.int64(component.best), states, start, few)
            if cost < component.best:
                component.improve(int(cost))
            self._check()
            rounds -= few
            start = np.bool_(False)
            if rounds <= 0:
                return

    def _dominate(self, component: _Component) -> int:
        """Dead-end elimination; how many states were removed."""
        removed = at = 0
        while at < component.network.n_variables:
            at, gone = dominate(component.net, component.board, at, WORK)
            removed += gone
            self._check()
        return removed

    # ---- the search -----------------------------------------------------------------------------------------------

    def _search(self, component: _Component) -> None:
        """Best-first among subtrees, depth-first in them."""
        registers = component.board.registers
        backtracks, again = FIRST_BACKTRACKS, 0
        component.open = [_Open(int(component.board.state[BOUND]), 0, 0, np.zeros(0, np.int64), 0, False)]
        propagated = component.best
        while component.open and not component.finished:
            if component.best < propagated:
                propagated = component.best
                if not component.propagate(self._check):
                    break
            if component.open[0].bound >= registers[CUT]:
                break
            # In this order: Ctrl-C may come between any two steps, and no subtree may be forgotten.
            component.present = component.open[0].bound
            component.inside = True
            node = heapq.heappop(component.open)
            path = node.decisions()
            fine = start_subtree(component.net, component.board, component.search, path, backtracks)
            again += len(path)
            while fine:
                status = explore(component.net, component.board, component.search, component.parts, WORK)
                if status != PAUSED:
                    break
                self._check()
            if fine and status == LIMITED:
                self._put_aside(component, node.bound)
            component.inside = False
            retreat(component.board)
            self._check()
            share = again / max(1, int(registers[NODES]))
            if share > SEEN_AGAIN[1]:
                backtracks = min(2 * backtracks, MOST_BACKTRACKS)
            elif share < SEEN_AGAIN[0]:
                backtracks = max(backtracks // 2, FIRST_BACKTRACKS)
        component.finished = True

    def _put_aside(self, component: _Component, bound: int) -> None:
        """The present node and the other sides of its levels become open subtrees."""
        registers, search = component.board.registers, component.search
        length = int(registers[DECISIONS])
        branch = search.decisions[:length].copy()
        self._push(component, max(bound, int(component.board.state[BOUND])), branch, length, False)
        for level in range(int(registers[LEVELS])):
            other = max(bound, int(search.level_bound[level]))
            self._push(component, other, branch, int(search.level_decision[level]) + 1, True)

    def _push(self, component: _Component, bound: int, branch: IntArray, length: int, turned: bool) -> None:
        if bound < component.board.registers[CUT]:
            component.made += 1
            heapq.heappush(component.open, _Open(bound, -length, component.made, branch, length, turned))

    # ---- the answer -----------------------------------------------------------------------------------------------

    def _answer(self, stop: BaseException | None) -> Decoding:
        scale = self.costs.scale
        if any(component.finished and not component.solved for component in self.components):
            raise self.problem.impossible()
        if not all(component.solved for component in self.components) or (stop is not None and not self.components):
            self._fill_in(stop)
        for component in self.components:
            if component.solved:
                self.states[component.network.variables] = component.search.best
        states = self.problem.states(self.states)
        score = self._score(states)
        if score == -np.inf:
            # What was filled in is ruled out by evidence: no assignment is known.
            raise stop if stop is not None else self.problem.impossible()
        bound = self.constant + scale.score(self.single + sum(component.bound for component in self.components))
        # Rounding: costs were rounded down by less than a unit each, scores are sums of doubles.
        ulps = 4.0 * np.finfo(float).eps * len(self.problem.structure.table_offsets)
        slack = self.costs.rounding + ulps * (abs(score) + abs(bound) + abs(self.constant))
        tolerance = 0.0 if scale.exact and scale.unit == 1.0 else 2.0 * slack
        if all(component.solved for component in self.components):
            # What was searched and what is answered must be the same thing, whatever the kernels did.
            cost = scale.score(self.single + sum(component.best for component in self.components))
            assert abs(self.constant + cost - score) <= 2.0 * slack + 1e-9 * abs(score), "costs and score disagree"
        gap = max(0.0, bound - score + (slack if tolerance else 0.0))
        done = stop is None and all(component.finished for component in self.components)
        return decoding_of_states(
            self.problem.graph,
            [(states, score)],
            gap=float(gap),
            tolerance=float(tolerance),
            guarantee="exact" if gap <= tolerance else "lower",
            method=self.name,
            converged=done,
            iterations=int(sum(component.board.registers[NODES] for component in self.components)),
            seconds=self.running.seconds,
        )

    @property
    def name(self) -> str:
        return self.method.name

    def _fill_in(self, stop: BaseException | None) -> None:
        """Stopped before every component had an assignment: search for a possible one, or let the stop pass on."""
        feasible = Feasible.of(self.problem)
        found = feasible.assignment(np.zeros(int(self.problem.structure.value_offsets[-1])))
        if found is None:
            assert stop is not None
            raise stop
        self.states[:] = feasible.climbed(found)

    def _score(self, states: npt.NDArray[np.int32]) -> float:
        total = float(self.problem.graph.score(states))
        for v, likelihood in self.problem.evidence.likelihoods:
            total += float(likelihood[states[v]])
        return total
