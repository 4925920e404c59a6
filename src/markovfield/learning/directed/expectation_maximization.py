"""EM: tables of a Bayesian network from data with missing values and hidden variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
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
from markovfield.names import VariableName

__all__ = ["ExpectationMaximization"]


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
    them. The likelihood never falls, and ends in a local maximum: with hidden variables, restart. Tables that do not
    tell the states of a hidden variable apart, such as uniform ones, are a saddle it does not leave: give such
    variables no tables (`BayesianNetwork.set_parents`), and they start at random.

    Parameters
    ----------
    max_iterations
        The most M steps of one run.
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
    >>> fitted = mf.fit(net, data, method=mf.methods.ExpectationMaximization(), rng=0)
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
        least = {"max_iterations": 1, "restarts": 1, "tolerance": 0}
        check_method(self, least=least, above={"equivalent_sample_size": 0})

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
            try:
                run = self._climb(parameters, observed, start, pseudo, kept, running)
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
            warn_not_converged(self.name, self.max_iterations, gain, self.tolerance)
        made = fitted(network, parameters, best.pool)
        made.fit_report = FitReport(
            method=self.name,
            log_likelihood=best.statistics.log_likelihood,
            n_rows=table.n_rows,
            total_weight=table.total_weight,
            n_parameters=parameters.n_free(~kept & (given > 0)),
            converged=best.converged,
            iterations=len(best.history) - 1,
            message=best.message or ("" if best.converged else f"no convergence in {self.max_iterations} iterations"),
            history=tuple(best.history),
            restarts=tuple(r.history[-1] for r in runs),
            seconds=running.seconds,
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
    ) -> _Run:
        """One run; what stops it before anything is known comes out as an exception.

        The tables returned are always ones whose likelihood is known: the last M step is followed by an E step.
        """
        pool, history = start, []
        last: tuple[FloatArray, SufficientStatistics] | None = None
        converged, message = False, ""
        counted = (pseudo > 0) & ~kept
        for step in range(self.max_iterations + 1):
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
            if len(history) > 1 and history[-1] - history[-2] <= self.tolerance * abs(history[-1]):
                converged = True
                break
            if step == self.max_iterations:
                break
            pool = np.where(kept, start, parameters.normalised(found.counts + pseudo, pool))
        assert last is not None
        return _Run(*last, history, converged, message)
