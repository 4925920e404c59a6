"""Maximum likelihood of undirected models by gradients, exact or with the expectations of any inference method."""

from __future__ import annotations

from typing import Any

from markovfield.exceptions import ModelError
from markovfield.inference.core.counts import resolve_counts
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.undirected.fitting import minimise, reported, start_of
from markovfield.learning.undirected.likelihood import Likelihood
from markovfield.learning.undirected.problem import Problem
from markovfield.models import LogLinear

__all__ = ["fit_likelihood"]

# What the value of the objective is, by what log Z is.
MEANING = {
    "exact": "the likelihood is exact",
    "upper": "log Z is an upper bound, so that the log-likelihood is a lower bound, and the objective is convex",
    "lower": "log Z is a lower bound, so that the log-likelihood is an upper bound of the true one",
    "approximate": "log Z is an approximation, so that the log-likelihood is neither exact nor a bound",
}


def fit_likelihood(method: Any, given: Any, table: DataTable, *, rng: Any, running: Running) -> Any:
    """A new model whose parameters maximise the likelihood, less penalties."""
    inference = resolve_counts(method.inference)
    # As `counts_of` sees it: what can sample, and draws also for its marginals.
    samples = "sample" in inference.verbs and ("marginals" not in inference.verbs or "rng" in inference.abilities)
    if samples and (method.solver == "auto" or getattr(method.solver, "name", method.solver) == "lbfgs"):
        raise ModelError(
            f"expectations of {inference.name!r} are averages over samples, which no line search can follow: use "
            "StochasticMaximumLikelihood, or a stochastic solver such as solver='adam'"
        )
    problem = Problem(LogLinear.of(given), table, running)
    objective = Likelihood(problem, inference, n_samples=method.n_samples, rng=rng)
    start = start_of(problem)
    value, _ = objective(start)
    planning = running.seconds
    found = minimise(method, problem, objective, start, rng)
    value, _ = objective(found.weights)
    notes = [MEANING[objective.guarantee]]
    if problem.incomplete.n_rows:
        notes.append("with missing values the likelihood need not be concave: this may be a local maximum")
    if not objective.converged:
        notes.append(f"{inference.name} did not converge at every step: gradients are those of what it had")
    return reported(
        method,
        given,
        problem,
        found,
        log_likelihood=-problem.total * value,
        objective_name="minus the log-likelihood, with penalties",
        guarantee="exact" if objective.guarantee == "exact" else "approximate",
        planning_seconds=planning,
        notes=tuple(notes),
    )
