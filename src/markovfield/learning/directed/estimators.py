"""Closed-form estimates of a Bayesian network's tables from complete data: counts, with or without a prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.report import FitReport
from markovfield.learning.directed.parameters import Parameters, Prior, fitted, prior_counts, template
from markovfield.learning.directed.statistics import Observations, SufficientStatistics
from markovfield.models import BayesianNetwork
from markovfield.names import VariableName

__all__ = ["DirichletEstimate", "estimate_tables"]


def estimate_tables(
    method: str,
    network: BayesianNetwork,
    table: DataTable,
    prior: Prior,
    equivalent_sample_size: float,
    fixed: tuple[VariableName, ...],
    running: Running,
) -> BayesianNetwork:
    """Tables proportional to counts plus pseudo-counts."""
    full, without = template(network)
    graph = full.compile()
    if table.has_missing:
        v = int(np.flatnonzero((table.codes < 0).any(axis=1))[0])
        raise ModelError(
            f"method {method!r} needs complete data, but variable {table.variables[v]!r} has missing values; "
            "use method 'expectation_maximization'"
        )
    if not graph.structure.is_plain:
        raise ModelError(
            f"method {method!r} fits plain tables; a noisy-or or noisy-max is fitted by 'expectation_maximization'"
        )
    parameters = Parameters.of(graph)
    observed = Observations(graph, table, running)
    counts = observed.fixed
    pool = parameters.normalised(counts + prior_counts(parameters, prior, equivalent_sample_size))
    kept = held(parameters, fixed, without)
    if fixed:
        pool = np.where(kept, np.exp(graph.log_tables), pool)
    with np.errstate(divide="ignore"):
        log_pool = np.log(pool)
    found = observed.expect(log_pool)
    made = fitted(network, parameters, pool)
    made.fit_report = FitReport(
        method=method,
        log_likelihood=found.log_likelihood,
        n_rows=table.n_rows,
        total_weight=table.total_weight,
        n_parameters=parameters.n_free(~kept),
        seconds=running.seconds,
        statistics=SufficientStatistics(graph, counts, found.log_likelihood, table.total_weight),
    )
    return made


def held(parameters: Parameters, fixed: tuple[VariableName, ...], without: list[VariableName]) -> Any:
    """Which cells keep the numbers they have; a variable that has none cannot keep them."""
    if isinstance(fixed, str):
        raise ModelError(f"fixed is a sequence of variable names; write ({fixed!r},)")
    positions = parameters.graph.names.positions(fixed)
    nothing = next((v for v in fixed if v in without), None)
    if nothing is not None:
        raise ModelError(f"variable {nothing!r} cannot be fixed: it has no conditional probability table")
    return parameters.cells_of(positions)


@dataclass(frozen=True)
class DirichletEstimate:
    """Posterior means under Dirichlet priors on the rows of the tables: counts plus pseudo-counts, normalised.

    Parameters
    ----------
    prior
        ``"bdeu"``: the equivalent sample size, spread evenly over the cells of each table. ``"k2"``: one for every
        cell. A number: that much for every cell. A mapping from variable to a number or to an array like its table.
    equivalent_sample_size
        How many rows the BDeu prior weighs as much as.
    fixed
        Variables whose tables are kept.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"rain": ["no", "yes"]})
    >>> fitted = mf.fit(net, {"rain": ["no", "no", "yes", "no"]}, method=mf.methods.DirichletEstimate(prior="k2"))
    >>> fitted.cpt("rain").round(4).tolist()
    [0.6667, 0.3333]
    """

    prior: Any = "bdeu"
    equivalent_sample_size: float = 10.0
    fixed: tuple[VariableName, ...] = ()

    name: ClassVar[str] = "dirichlet"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self, above={"equivalent_sample_size": 0})

    def fit(
        self, network: BayesianNetwork, table: DataTable, *, rng: np.random.Generator, running: Running
    ) -> BayesianNetwork:
        """A new network with the estimated tables."""
        return estimate_tables(self.name, network, table, self.prior, self.equivalent_sample_size, self.fixed, running)
