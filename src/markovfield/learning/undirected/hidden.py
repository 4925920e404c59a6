"""Generalised EM for undirected models with missing values or hidden variables (Murphy 19.5.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.convergence import warn_caller
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.solvers.lbfgs import LBFGS
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.solve import solve
from markovfield.learning.undirected.fitting import reported
from markovfield.learning.undirected.likelihood import Likelihood
from markovfield.learning.undirected.problem import Problem
from markovfield.models import LogLinear

__all__ = ["fit_hidden"]

# Iterations of the solver in an M step: enough to gain, too few to waste on moments that the next E step changes.
M_ITERATIONS = 10


def fit_hidden(method: Any, given: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
    """The best run of EM: clamped expectations, then a few steps of a solver on the likelihood they complete."""
    if method.prior is not None or method.fixed:
        raise ModelError("prior and fixed of ExpectationMaximization are of Bayesian networks' tables")
    problem = Problem(LogLinear.of(given), table, running)
    likelihood = Likelihood(problem, resolve("junction_tree", "marginals"))
    runs: list[Minimum] = []
    planning = 0.0
    for i in range(method.restarts):
        start = np.array(problem.model.parameters)
        if i or (problem.incomplete.n_rows and not start.any()):
            start = rng.normal(scale=0.3, size=len(start))
        try:
            runs.append(_climb(method, problem, likelihood, start))
        except STOPS:
            if not runs:
                raise
            break
        planning = planning or running.seconds
    best = min(runs, key=lambda run: run.value)
    if not best.converged and "limit" not in best.message:
        warn_caller(f"expectation_maximization did not converge: {best.message}; more max_iterations may help")
    return reported(
        method,
        given,
        problem,
        best,
        log_likelihood=-problem.total * best.value,
        objective_name="minus the log-likelihood",
        restarts=tuple(-problem.total * run.value for run in runs),
        notes=("a local maximum of the likelihood: with hidden variables, more restarts may find a better one",),
    )


def _climb(method: Any, problem: Problem, likelihood: Likelihood, start: Any) -> Minimum:
    """One run, which never falls: an M step that gains nothing ends it."""
    model, total = problem.model, problem.total
    theta, history, message, converged = start, [], f"{method.max_iterations} iterations", False
    solver = LBFGS(max_iterations=M_ITERATIONS, tolerance=0.0, gradient_tolerance=1e-10)
    norm, evaluations = float("nan"), 0
    value, gradient = likelihood(theta)
    for _ in range(method.max_iterations):
        graph = FactorGraph(problem.structure, model.log_tables(theta), marks_hold=True)
        seen = model.moments(likelihood.clamped(graph)[1]) / total

        def completed(w: Any, seen: Any = seen) -> tuple[float, Any]:
            """Minus the expected log-likelihood of the completed data, for each row: convex."""
            there = FactorGraph(problem.structure, model.log_tables(w), marks_hold=True)
            log_partition, expected = likelihood.free(there)
            return log_partition - float(w @ seen), model.moments(expected) - seen

        found = solve(completed, theta, solver=solver)
        evaluations += found.evaluations
        new, slope = likelihood(found.weights)
        if not new <= value:
            message, converged = "no M step gains any more", True
            break
        gained, value, gradient, theta = value - new, new, slope, found.weights
        history.append(value)
        problem.running.check(-total * value)
        if gained <= method.tolerance * abs(value):
            message, converged = f"an iteration gained less than {method.tolerance:g} of the objective", True
            break
    norm = float(np.linalg.norm(gradient))
    return Minimum(
        theta, value, norm, len(history), evaluations, converged, message, tuple(history), problem.running.seconds
    )
