"""EM: tables of a Bayesian network from data with missing values and hidden variables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import StoppedError
from markovfield.inference.core.convergence import warn_not_converged
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.report import FitReport
from markovfield.learning.directed.estimators import held
from markovfield.learning.directed.parameters import Parameters, fitted, prior_counts, template
from markovfield.learning.directed.statistics import Observations, SufficientStatistics
from markovfield.models import BayesianNetwork

__all__ = ["fit_tables"]


class _Run(NamedTuple):
    """Where one run of EM ended."""

    pool: FloatArray
    statistics: SufficientStatistics
    history: list[float]
    converged: bool
    message: str


def fit_tables(
    method: Any, network: BayesianNetwork, table: DataTable, *, rng: np.random.Generator, running: Running
) -> BayesianNetwork:
    """A new network with the tables of the best run; when stopped early, with what there was."""
    full, without = template(network)
    graph = full.compile()
    parameters = Parameters.of(graph)
    pseudo = prior_counts(parameters, method.prior, method.equivalent_sample_size)
    given = np.exp(graph.log_tables)
    kept = held(parameters, method.fixed, without)
    fresh = parameters.cells_of(graph.names.positions(without))
    observed = Observations(graph, table, running)
    runs: list[_Run] = []
    for i in range(method.restarts):
        drawn = parameters.random(rng, given) if i or fresh.any() else given
        start = np.where(kept, given, np.where(fresh, drawn, drawn if i else given))
        try:
            run = _climb(method, parameters, observed, start, pseudo, kept, running)
        except (StoppedError, TimeoutError):
            if not runs:
                raise
            break
        runs.append(run)
        if run.message:
            break
    best = max(runs, key=lambda r: r.history[-1])
    if not (best.converged or best.message):
        gain = (best.history[-1] - best.history[-2]) / abs(best.history[-1])
        warn_not_converged(method.name, method.max_iterations, gain, method.tolerance)
    made = fitted(network, parameters, best.pool)
    made.fit_report = FitReport(
        method=method.name,
        log_likelihood=best.statistics.log_likelihood,
        n_rows=table.n_rows,
        total_weight=table.total_weight,
        n_parameters=parameters.n_free(~kept & (given > 0)),
        converged=best.converged,
        iterations=len(best.history) - 1,
        message=best.message or ("" if best.converged else f"no convergence in {method.max_iterations} iterations"),
        history=tuple(best.history),
        restarts=tuple(r.history[-1] for r in runs),
        seconds=running.seconds,
        statistics=best.statistics,
    )
    return made


def _climb(
    method: Any,
    parameters: Parameters,
    observed: Observations,
    start: FloatArray,
    pseudo: FloatArray,
    kept: npt.NDArray[np.bool_],
    running: Running,
) -> _Run:
    """One run; what stops it before anything is known comes out as an exception.

    The tables returned are always ones whose likelihood is known: the last M step is followed by an E step.
    """
    pool, history = start, []
    last: tuple[FloatArray, SufficientStatistics] | None = None
    converged, message = False, ""
    counted = (pseudo > 0) & ~kept
    for step in range(method.max_iterations + 1):
        with np.errstate(divide="ignore"):
            log_pool = np.log(pool)
        try:
            found = observed.expect(log_pool)
            value = found.log_likelihood + float(np.dot(pseudo[counted], log_pool[counted]))
            history.append(value)
            last = pool, found
            running.check(value)
        except STOPS as stop:
            if last is None:
                raise
            message = str(stop) or "stopped by the keyboard"
            break
        if len(history) > 1 and history[-1] - history[-2] <= method.tolerance * abs(history[-1]):
            converged = True
            break
        if step == method.max_iterations:
            break
        pool = np.where(kept, start, parameters.normalised(found.counts + pseudo, pool))
    assert last is not None
    return _Run(*last, history, converged, message)
