"""What the data say of every variable: rows, with auxiliary variables that the others determine filled in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.verbs import decode, log_partition
from markovfield.learning.undirected.problem import Problem

__all__ = ["Rows", "rows_of"]

# How far the sum over completions may be from the best of them where there is one only.
ONE = 1e-6


class Rows:
    """Distinct rows of data.

    Attributes
    ----------
    states
        ``int64[rows, n]``, complete.
    seen
        ``bool[rows, n]``: what the data themselves say.
    weights
        How often each occurs.
    """

    def __init__(self, states: Any, seen: npt.NDArray[np.bool_], weights: Any) -> None:
        self.states, self.seen = np.asarray(states, np.int64), seen
        self.weights = np.asarray(weights, np.float64)

    def __len__(self) -> int:
        return len(self.states)


def rows_of(problem: Problem, method: str) -> Rows:
    """The rows; an error where a value is missing that constraints leave open."""
    table = problem.table
    states = table.codes.T.astype(np.int64)
    seen = states >= 0
    weights = np.ones(len(states)) if table.weights is None else np.asarray(table.weights)
    problem.counts  # noqa: B018 - refuses complete rows that are impossible
    graph = FactorGraph(problem.structure, np.array(problem.model.base_graph.log_tables), marks_hold=True)
    for i in np.flatnonzero(~seen.all(axis=1)).tolist():
        states[i] = _completed(graph, problem, states[i], method)
    return Rows(states, seen, weights)


def _completed(graph: FactorGraph, problem: Problem, row: Any, method: str) -> Any:
    """A row with the one completion that hard constraints allow."""
    evidence: Any = Evidence(row.astype(np.int32))
    try:
        best = decode(graph, evidence)
    except ImpossibleEvidenceError:
        raise ModelError("the model gives probability zero to the data: a hard constraint is violated") from None
    if not best.optimal or log_partition(graph, evidence).log_partition > best.score + ONE:
        name = problem.table.variables[int(np.flatnonzero(row < 0)[0])]
        raise ModelError(
            f"method {method!r} needs complete data, but variable {name!r} has missing values; use MaximumLikelihood, "
            "DiagonalNewton or ExpectationMaximization, which sum it out"
        )
    return best.states.astype(np.int64)
