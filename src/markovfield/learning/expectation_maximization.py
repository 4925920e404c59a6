"""EM: tables of a Bayesian network from data with missing values and hidden variables."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError, StoppedError
from markovfield.inference.running import Running
from markovfield.learning.data import DataTable
from markovfield.learning.estimators import held
from markovfield.learning.parameters import Parameters, fitted, prior_counts, template
from markovfield.learning.report import FitReport
from markovfield.learning.statistics import Observations, SufficientStatistics
from markovfield.models import BayesianNetwork
from markovfield.names import VariableName

__all__ = ["ExpectationMaximization"]

FloatArray = npt.NDArray[np.float64]


class _Run(NamedTuple):
    """Where one run of EM ended."""

    pool: FloatArray
    statistics: SufficientStatistics
    history: list[float]
    converged: bool
    message: str


@dataclass(frozen=True)
class ExpectationMaximization:
    """Coordinate ascent on the bound of the observed data's likelihood (Caetano, lecture 6).

    The E step takes expected counts by a batched junction tree, once for every distinct row; the M step normalises
    them. The likelihood never falls, and ends in a local maximum: with hidden variables, restart.

    Parameters
    ----------
    max_iterations
        The most E steps of one run.
    tolerance
        A run has converged when an iteration gains less than this fraction of the objective.
    restarts
        Runs in all. The first starts from the network's own tables (random ones where it has none), the others from
        random tables; the best is kept.
    prior, equivalent_sample_size
        Pseudo-counts added in every M step, as in `DirichletEstimate`; None adds none. With them EM climbs to a mode
        of the posterior.
    fixed
        Variables whose tables are kept.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"A": 2, "B": 2})
    >>> net.set_parents("B", ["A"])
    >>> data = {"A": [0, 0, 1, 1, 1, -1], "B": [0, 0, 1, 1, -1, 1]}
    >>> fitted = mf.fit(net, data, method=mf.ExpectationMaximization(), rng=0)
    >>> fitted.cpt("A").round(2).tolist(), fitted.fit_report.converged
    ([0.33, 0.67], True)
    """

    max_iterations: int = 200
    tolerance: float = 1e-7
    restarts: int = 1
    prior: Any = None
    equivalent_sample_size: float = 10.0
    fixed: tuple[VariableName, ...] = ()

    name: ClassVar[str] = "expectation_maximization"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for setting in ("max_iterations", "restarts"):
            if getattr(self, setting) < 1:
                raise ModelError(f"{setting} must be at least 1, got {getattr(self, setting)}")
        if not self.tolerance >= 0:
            raise ModelError(f"tolerance must not be negative, got {self.tolerance}")

    def fit(
        self, network: BayesianNetwork, table: DataTable, *, rng: np.random.Generator, running: Running
    ) -> BayesianNetwork:
        """A new network with the tables of the best run; when stopped early, with what there was."""
        full, without = template(network)
        graph = full.compile()
        parameters = Parameters.of(graph)
        pseudo = prior_counts(parameters, self.prior, self.equivalent_sample_size)
        given = np.exp(graph.log_tables)
        kept = held(parameters, self.fixed, without)
        fresh = parameters.cells_of(graph.names.positions(without))
        observed = Observations(graph, table, running)
        runs: list[_Run] = []
        for i in range(self.restarts):
            drawn = parameters.random(rng, given) if i or fresh.any() else given
            start = np.where(kept, given, np.where(fresh, drawn, drawn if i else given))
            run = self._climb(parameters, observed, start, pseudo, kept, running)
            if run is not None:
                runs.append(run)
            if run is None or run.message:
                break
        if not runs:
            raise TimeoutError("expectation_maximization was stopped before its first iteration ended")
        best = max(runs, key=lambda r: r.history[-1])
        made = fitted(network, parameters, best.pool)
        made.fit_report = FitReport(
            method=self.name,
            log_likelihood=best.statistics.log_likelihood,
            n_rows=table.n_rows,
            total_weight=table.total_weight,
            n_parameters=parameters.n_free,
            converged=best.converged,
            iterations=len(best.history),
            message=best.message or ("" if best.converged else f"no convergence in {self.max_iterations} iterations"),
            history=tuple(best.history),
            restarts=tuple(r.history[-1] for r in runs),
            seconds=time.perf_counter() - running.started,
            statistics=best.statistics,
        )
        return made

    def _climb(
        self,
        parameters: Parameters,
        observed: Observations,
        start: FloatArray,
        pseudo: FloatArray,
        kept: npt.NDArray[np.bool_],
        running: Running,
    ) -> _Run | None:
        """One run; None when it was stopped before anything was known."""
        pool, history = start, []
        last: tuple[FloatArray, SufficientStatistics] | None = None
        converged, message = False, ""
        counted = (pseudo > 0) & ~kept
        for _ in range(self.max_iterations):
            with np.errstate(divide="ignore"):
                log_pool = np.log(pool)
            try:
                found = observed.expect(log_pool)
                value = found.log_likelihood + float(np.dot(pseudo[counted], log_pool[counted]))
                history.append(value)
                last = pool, found
                running.check(value)
            except (StoppedError, TimeoutError, KeyboardInterrupt) as stop:
                message = str(stop) or "stopped by the keyboard"
                break
            if len(history) > 1 and history[-1] - history[-2] <= self.tolerance * abs(history[-1]):
                converged = True
                break
            pool = np.where(kept, start, parameters.normalised(found.counts + pseudo, pool))
        if last is None:
            return None
        return _Run(*last, history, converged, message)
