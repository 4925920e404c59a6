"""Assignments of a prepared problem that no hard zero rules out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.problem.domains_kernel import factors_of_variables
from markovfield.inference.problem.feasible_kernel import FOUND, NONE, climb, grow_support, search
from markovfield.inference.problem.problem import Problem
from markovfield.inference.problem.reduction import zeros_in_factors

__all__ = ["Feasible", "best_of"]

# Choices that a search may take back before it gives up.
BUDGET = 2000
CLIMBING_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class Feasible:
    """The hard zeros of a prepared problem, and ways around them.

    Attributes
    ----------
    hard
        ``bool[m]``: which factors have a cell of -inf.
    """

    problem: Problem
    hard: npt.NDArray[np.bool_]
    variable_offsets: npt.NDArray[np.int64]
    variable_factors: npt.NDArray[np.int32]

    @classmethod
    def of(cls, problem: Problem) -> Feasible:
        """Look for the zeros of a problem."""
        s = problem.structure
        offsets, factors = factors_of_variables(s.n_variables, s.scope_offsets, s.scopes)
        return cls(problem, zeros_in_factors(s, problem.potentials.log_tables), offsets, factors)

    def _arguments(self, *rest: Any) -> tuple[Any, ...]:
        s = self.problem.structure
        return (
            s.cardinalities,
            s.scope_offsets,
            s.scopes,
            s.table_offsets,
            s.table_strides,
            self.problem.potentials.log_tables,
            self.variable_offsets,
            self.variable_factors,
            s.value_offsets,
            *rest,
        )

    def assignment(self, preference: FloatArray) -> npt.NDArray[np.int64] | None:
        """States with a score above -inf, each variable preferring its states by number; None if none was found.

        Raises `ImpossibleEvidenceError` where the search proves that there are none.
        """
        s = self.problem.structure
        states = np.zeros(s.n_variables, np.int64)
        constants = s.table_offsets[np.diff(s.scope_offsets) == 0]
        if np.isneginf(self.problem.potentials.log_tables[constants]).any():
            raise self.problem.impossible()
        held = np.zeros(s.n_variables, np.bool_)
        held[s.scopes[np.repeat(self.hard, np.diff(s.scope_offsets))]] = True
        found = search(*self._arguments(self.hard, preference, np.flatnonzero(held), BUDGET, states))
        if found == NONE:
            raise self.problem.impossible()
        return states if found == FOUND else None

    def support(self, states: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Sets of states around an assignment whose product holds no cell of -inf; ``bool`` over all states."""
        inside = np.zeros(int(self.problem.structure.value_offsets[-1]), np.bool_)
        inside[self.problem.structure.value_offsets[:-1] + states] = True
        grow_support(*self._arguments(self.hard, order, inside))
        return inside

    def climbed(self, states: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The assignment after changing single variables for the better."""
        better = states.copy()
        climb(*self._arguments(self.problem.likelihood, CLIMBING_ROUNDS, better))
        return better

    def score(self, states: npt.NDArray[np.int64]) -> float:
        """Sum of the log-potentials and log-likelihoods of an assignment of the problem."""
        s = self.problem.structure
        factor = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
        cell = s.table_offsets.copy()
        np.add.at(cell, factor, s.table_strides * states[s.scopes])
        total = float(self.problem.potentials.log_tables[cell].sum())
        if len(self.problem.likelihood):
            total += float(self.problem.likelihood[s.value_offsets[:-1] + states].sum())
        return total


def best_of(
    problem: Problem, candidates: npt.NDArray[np.int64], preference: FloatArray
) -> tuple[npt.NDArray[np.int64], float]:
    """The best of some assignments after each has climbed; where all are ruled out, one found by search.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.problem import prepare
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[1.0, -np.inf], [0.0, 3.0]])
    >>> graph = net.compile()
    >>> problem = prepare(graph, Evidence.parse(graph.structure, None))
    >>> states, score = best_of(problem, np.array([[0, 1]]), np.zeros(4))
    >>> states.tolist(), score
    ([1, 1], 3.0)
    """
    feasible = Feasible.of(problem)
    best, top = None, -np.inf
    for states in np.unique(candidates, axis=0):
        climbed = feasible.climbed(states)
        score = feasible.score(climbed)
        if score > top:
            best, top = climbed, score
    if best is None:
        found = feasible.assignment(preference)
        if found is None:
            raise ModelError(
                f"no assignment free of hard zeros was found in {BUDGET} steps back: use junction_tree to decode"
            )
        best = feasible.climbed(found)
        top = feasible.score(best)
    return best, top
