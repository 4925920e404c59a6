"""What dual decomposition takes a model apart into: its factors, or forests that share them out.

Subproblems hold copies of the variables they speak of; the copies' scores are shares of the variables' unary potentials
plus multipliers that add up to zero over the copies of a state. So the subproblems' best scores add up to a bound.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.factors.factor_kinds import TABLE, caps
from markovfield.factors.oracles_kernel import FactorLayout, oracle_work_size
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.running import Running
from markovfield.inference.dual_decomposition.dual_decomposition_kernel import best_copies, quadratic_copies
from markovfield.inference.local_search.incumbent import Incumbent
from markovfield.inference.problem.merged_pairs import merge_pairs
from markovfield.inference.problem.pairwise import add_unary, unary_scores
from markovfield.inference.problem.problem import Problem
from markovfield.inference.trws.passes_kernel import round_states, run_pass
from markovfield.inference.trws.plan import sequential_plan
from markovfield.kernels.forest import spanning_factors

__all__ = ["Factors", "Forests", "Subproblems"]

# Cells of the factors that one call of a kernel takes on.
CHUNK = 2**22
# The most configurations that a factor keeps.
MOST_KEPT = 64


class Subproblems(Protocol):
    """Copies of variables and how to find the best ones.

    Attributes
    ----------
    structure
        Whose variables are copied.
    unary
        Scores of every state by itself, -inf where it is ruled out.
    value
        ``int64``: the state that each copied state is a copy of.
    constant
        What no copy takes part in.
    """

    structure: Structure
    unary: FloatArray
    value: IntArray
    constant: float

    def best(self, scores: FloatArray, copies: FloatArray, running: Running) -> float:
        """The best copies under their scores, as zeros and ones, and the sum of what the subproblems score."""

    def offer(self, weights: FloatArray, best: Incumbent, running: Running) -> None:
        """Round weights of all states to an assignment, a candidate for the best."""


def _heaviest(structure: Structure, weights: FloatArray, unary: FloatArray) -> IntArray:
    """The heaviest state of each variable; of several, the one with the best unary score."""
    owner = np.repeat(np.arange(structure.n_variables), structure.cardinalities)
    order = np.lexsort((-unary, -np.round(weights, 6), np.isneginf(unary), owner))
    best: IntArray = order[structure.value_offsets[:-1]] - structure.value_offsets[:-1]
    return best


class Factors:
    """Every factor as a subproblem.

    Clauses, cardinality potentials and parities stay as they are: then it is the user's graph that is taken apart, with
    ruled-out states at -inf. Without them it is the prepared problem, which is smaller.
    """

    def __init__(self, problem: Problem) -> None:
        graph = problem.graph
        self.as_given = problem.structure.n_variables > graph.n_variables
        if not self.as_given:
            self.structure, self.log_tables = problem.structure, problem.potentials.log_tables
            self.unary, self.constant = unary_scores(problem)
        else:
            self.structure, self.log_tables = merge_pairs(graph.structure, graph.log_tables)
            self._read_unary(problem)
        s = self.structure
        arity = np.diff(s.scope_offsets)
        rest = np.flatnonzero((arity > 1) | ((arity == 1) & (s.kind != TABLE)))
        self._lay_out(s, rest, arity)

    def _read_unary(self, problem: Problem) -> None:
        """Scores of single states of the user's graph; what is ruled out, the reduction in plain tables found."""
        s = self.structure
        self.unary = problem.expand(np.zeros(int(problem.structure.value_offsets[-1])), -np.inf).copy()
        for v, vector in problem.evidence.likelihoods:
            self.unary[s.value_offsets[v] : s.value_offsets[v + 1]] += vector
        add_unary(s, self.log_tables, self.unary)
        self.constant = float(self.log_tables[s.table_offsets[np.diff(s.scope_offsets) == 0]].sum())

    def _lay_out(self, s: Structure, rest: IntArray, arity: npt.NDArray[np.int64]) -> None:
        offsets = offsets_of(arity[rest])
        axes = np.repeat(s.scope_offsets[rest] - offsets[:-1], arity[rest]) + np.arange(offsets[-1])
        scopes = s.scopes[axes]
        cards = s.cardinalities[scopes].astype(np.int64)
        copy_offsets = offsets_of(cards)
        self.layout = FactorLayout(
            s.cardinalities, offsets, scopes, s.kind[rest], caps(s)[rest], s.table_offsets[rest],
            s.table_strides[axes], copy_offsets,
        )  # fmt: skip
        self.value = np.repeat(s.value_offsets[scopes] - copy_offsets[:-1], cards) + np.arange(copy_offsets[-1])
        factor = np.repeat(np.arange(len(rest)), arity[rest])
        free = np.bincount(factor, cards - 1, len(rest)).astype(np.int64)
        room = np.minimum(free + 2, MOST_KEPT)
        self.weight_offsets, self.set_offsets = offsets_of(room), offsets_of(room * arity[rest])
        self.counts = np.zeros(len(rest), np.int64)
        self.kept, self.weights = np.zeros(int(self.set_offsets[-1]), np.int64), np.zeros(int(room.sum()))
        most = int(arity[rest].max(initial=1))
        widest = int(np.diff(copy_offsets[offsets]).max(initial=1))
        self.work, self.states = np.zeros(max(oracle_work_size(most), widest)), np.zeros(most, np.int64)
        logs = np.zeros(len(rest))
        np.add.at(logs, factor, np.where(s.kind[rest][factor] == TABLE, np.log(cards), 0.0))
        effort = offsets_of(np.minimum(np.exp(logs), 2.0**40) + 16.0 * arity[rest])
        cuts = np.searchsorted(effort, np.arange(0, effort[-1], CHUNK))
        self.cuts = np.unique(np.append(cuts, len(rest))).tolist()

    def best(self, scores: FloatArray, copies: FloatArray, running: Running) -> float:
        """The best configuration of every factor."""
        values = np.zeros(len(self.layout.kind))
        for begin, end in zip(self.cuts[:-1], self.cuts[1:], strict=True):
            best_copies(self.layout, self.log_tables, begin, end, scores, values, copies, self.work, self.states)
            if end < self.cuts[-1]:
                running.check()
        return float(values.sum())

    def quadratic(
        self, scores: FloatArray, aims: FloatArray, penalty: float, rounds: int, copies: FloatArray, running: Running
    ) -> None:
        """The copies that solve every factor's quadratic program."""
        for begin, end in zip(self.cuts[:-1], self.cuts[1:], strict=True):
            quadratic_copies(
                self.layout, self.log_tables, begin, end, scores, aims, penalty, rounds, self.set_offsets,
                self.weight_offsets, self.counts, self.kept, self.weights, copies, self.work, self.states,
            )  # fmt: skip
            if end < self.cuts[-1]:
                running.check()

    def offer(self, weights: FloatArray, best: Incumbent, running: Running) -> None:
        """Each variable takes its heaviest state."""
        states = _heaviest(self.structure, weights, self.unary)
        if self.as_given:
            best.offer_own(states, running)
        else:
            best.offer(states, running)


class Forests:
    """Forests that share out the factors of the problem in plain tables, each solved exactly by max-product."""

    def __init__(self, problem: Problem) -> None:
        s, self.log_tables = problem.structure, problem.potentials.log_tables
        self.structure = s
        self.unary, self.constant = unary_scores(problem)
        # Kept with the structure, and their plans with them.
        self.structures = _forests(s)
        self.slices: list[slice] = []
        self.present: list[IntArray] = []
        values: list[IntArray] = [np.zeros(0, np.int64)]
        at = 0
        for part in self.structures:
            inside = np.zeros(s.n_variables, np.bool_)
            inside[part.scopes] = True
            states = np.flatnonzero(np.repeat(inside, s.cardinalities))
            self.present.append(states)
            self.slices.append(slice(at, at + len(states)))
            values.append(states)
            at += len(states)
        self.value = np.concatenate(values)
        self.plans = [sequential_plan(part) for part in self.structures]
        self.tables = [plan.filled(self.log_tables) for plan in self.plans]

    def best(self, scores: FloatArray, copies: FloatArray, running: Running) -> float:
        """Max-product on every forest, and its best assignment by going back."""
        total, pool, n = 0.0, self.log_tables, self.structure.n_variables
        for plan, tables, states, where in zip(self.plans, self.tables, self.present, self.slices, strict=True):
            unary = np.zeros(len(self.unary))
            unary[states] = scores[where]
            messages, shift = np.zeros(plan.n_messages), np.zeros(len(plan.layout.table_offsets))
            kept, fixed = np.zeros(n), np.zeros(n, np.bool_)
            chosen, scratch = np.zeros(n, np.int64), np.zeros(n, np.int64)
            work = np.zeros(12 * (plan.most_states + 2))
            run_pass(
                plan.layout, tables, pool, plan.order, 0, n, np.bool_(False), unary, messages, shift, kept, fixed,
                scratch, work,
            )  # fmt: skip
            backwards = plan.order[::-1].copy()
            round_states(plan.layout, tables, pool, backwards, unary, messages, fixed, chosen, scratch, work)
            one = np.zeros(len(self.unary))
            one[self.structure.value_offsets[:-1] + chosen] = 1.0
            copies[where] = one[states]
            total += float(kept.sum()) + float(shift.sum())
            running.check()
        return total

    def offer(self, weights: FloatArray, best: Incumbent, running: Running) -> None:
        """Each variable takes its heaviest state."""
        best.offer(_heaviest(self.structure, weights, self.unary), running)


@remembered
def _forests(s: Structure) -> list[Structure]:
    """Take as many factors as close no cycle, then as many of the others, and so on."""
    left = np.flatnonzero(np.diff(s.scope_offsets) > 1)
    parts = []
    while len(left):
        taken = spanning_factors(s.n_variables, s.scope_offsets, s.scopes, left)[left]
        parts.append(_only(s, left[taken]))
        left = left[~taken]
    return parts


def _only(s: Structure, factors: IntArray) -> Structure:
    """The structure with some of its factors."""
    counts = np.diff(s.scope_offsets)[factors]
    offsets = offsets_of(counts)
    axes = np.repeat(s.scope_offsets[factors] - offsets[:-1], counts) + np.arange(offsets[-1])
    return Structure(
        s.cardinalities,
        offsets,
        s.scopes[axes],
        s.table_offsets[factors],
        s.table_strides[axes],
        s.n_cells,
        s.child[factors],
        s.kind[factors],
        s.names,
    )
