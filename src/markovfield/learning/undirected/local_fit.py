"""Fitting by a local objective, and what the report says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.undirected.differences import Differences
from markovfield.learning.undirected.fitting import fits_exactly, minimise, reported, start_of
from markovfield.learning.undirected.likelihood import Likelihood
from markovfield.learning.undirected.local_objective import LocalObjective
from markovfield.learning.undirected.problem import Problem
from markovfield.learning.undirected.sites_kernel import PSEUDO
from markovfield.models import LogLinear

__all__ = ["LocalFit", "fit_local", "likelihood_if_cheap"]


@dataclass(frozen=True)
class LocalFit:
    """The settings that methods with a local objective share; see `MaximumLikelihood` for what they mean."""

    l2: float = 0.0
    l1: float = 0.0
    group_l1: float = 0.0
    penalty: Penalty | None = None
    solver: Any = "auto"
    checkpoint: Any = None

    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self, least={"l2": 0, "l1": 0, "group_l1": 0})


def likelihood_if_cheap(problem: Problem, parameters: Any) -> float:
    """The exact log-likelihood where a pass of the junction tree is cheap, otherwise nan."""
    graph = problem.model.base_graph.with_tables(problem.model.log_tables(parameters))
    if not fits_exactly(graph, problem.running):
        return float("nan")
    return -problem.total * Likelihood(problem, resolve("junction_tree", "marginals"))(parameters)[0]


def _fit_differences(method: Any, given: Any, problem: Problem, objective_name: str, rng: Any) -> Any:
    """The same where the log-odds of every variable are worked out once; log Z is not asked for."""
    objective = Differences(problem)
    planning = problem.running.seconds
    found = minimise(method, problem, objective, np.array(problem.model.parameters), rng)
    return reported(
        method,
        given,
        problem,
        found,
        log_likelihood=float("nan"),
        objective_name=objective_name,
        guarantee="approximate",
        planning_seconds=planning,
        notes=(
            "not the maximum of the likelihood, but an estimate that converges to the same where the model is right",
            f"each evaluation looks at {len(objective.offsets)} different log-odds of variables",
        ),
    )


def fit_local(
    method: Any, given: Any, table: DataTable, loss: int, objective_name: str, rng: Any, running: Running
) -> Any:
    """A new model whose parameters minimise a local loss, with penalties."""
    problem = Problem(LogLinear.of(given), table, running)
    problem.need_complete(method.name, "MaximumLikelihood or StochasticMaximumLikelihood, which sum it out")
    if loss == PSEUDO and Differences.apply(problem):
        return _fit_differences(method, given, problem, objective_name, rng)
    _ = problem.counts  # refuses impossible rows
    objective = LocalObjective(problem, loss)
    start = start_of(problem)
    objective(start)
    planning = running.seconds
    found = minimise(method, problem, objective, start, rng)
    cases = int(objective.by_cells.cases.offsets[-1])
    return reported(
        method,
        given,
        problem,
        found,
        log_likelihood=likelihood_if_cheap(problem, found.weights),
        objective_name=objective_name,
        guarantee="approximate",
        planning_seconds=planning,
        notes=(
            "not the maximum of the likelihood, but an estimate that converges to the same where the model is right",
            f"each evaluation looks at {cases} configurations of neighbours",
        ),
    )
