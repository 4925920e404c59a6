"""Expected sufficient statistics of directed models: how often each cell is read, given what was observed.

A network of tables is an exponential family whose natural parameters are the log-probabilities and whose sufficient
statistics are the counts of each table's cells (Caetano, lecture 6). Where values are missing, the counts are replaced
by their expectations under the current parameters: one batched call for the distinct rows (`core.counts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Tabular
from markovfield.inference.core.counts import resolve_counts
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.row_counts import counts_of
from markovfield.inference.core.running import Running
from markovfield.learning.core.counting import family_counts
from markovfield.learning.core.data import DataTable, encode
from markovfield.models import BayesianNetwork
from markovfield.names import VariableName

__all__ = ["Observations", "SufficientStatistics", "log_likelihood", "sufficient_statistics"]


@dataclass(frozen=True, eq=False)
class SufficientStatistics(Tabular):
    """Expected counts of every cell of a network's tables, summed over the rows of some data.

    Attributes
    ----------
    counts
        ``float64[cells]`` in the pool of `graph`; ``statistics["X"]`` is X's part, shaped like its table.
    log_likelihood
        Log-probability of what was observed, under the parameters the expectations were taken with.
    total_weight
        Sum of the rows' weights.
    """

    graph: FactorGraph
    counts: FloatArray
    log_likelihood: float
    total_weight: float

    def __getitem__(self, variable: VariableName) -> FloatArray:
        """Expected counts of a variable's table: parents' axes first, its own last."""
        s = self.graph.structure
        v = s.names.position(variable)
        f = int(np.flatnonzero(s.child == v)[0])
        scope = s.scope(f).tolist()
        return np.moveaxis(self.counts[self.graph.cells(f)], scope.index(v), -1)

    @property
    def mean(self) -> FloatArray:
        """``float64[cells]``: counts over the total weight, the mean parameters of the exponential family."""
        return self.counts / self.total_weight if self.total_weight else self.counts

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        s, rows = self.graph.structure, []
        for f in range(s.n_factors):
            scope, counts = s.scope(f).tolist(), self.counts[self.graph.cells(f)]
            kinds = [s.names.state_names(v, int(s.cardinalities[v])) for v in scope]
            names = [str(s.names.variables[v]) for v in scope]
            for cell in np.ndindex(counts.shape):
                told = (f"{name}={kind[k]}" for name, kind, k in zip(names, kinds, cell, strict=True))
                rows.append((", ".join(told), float(counts[cell])))
            if limit is not None and len(rows) >= limit:
                break
        return {"cell": [cell for cell, _ in rows[:limit]], "count": [count for _, count in rows[:limit]]}

    def __repr__(self) -> str:
        return (
            f"SufficientStatistics({len(self.counts)} cells, total weight {self.total_weight:g}, "
            f"log-likelihood {self.log_likelihood:.8g})"
        )


class Observations:
    """Data made ready to be asked for expected counts again and again, under changing parameters.

    Rows that observe everything are counted once and for all; of the others, each distinct one is run once, with its
    weight. Structured factors have contributions nobody observes, so with them every row is run.
    """

    def __init__(
        self, graph: FactorGraph, table: DataTable, running: Running, method: MethodLike = "junction_tree"
    ) -> None:
        self.graph, self.table, self.running = graph, table, running
        self.method = resolve_counts(method)
        s = graph.structure
        self.fixed = np.zeros(s.n_cells)
        hidden = np.zeros(table.n_rows, np.bool_)
        if not s.is_plain:
            hidden[:] = True
        elif table.has_missing:
            for v in range(table.n_variables):
                hidden |= table.codes[v] < 0
        if not hidden.all():
            whole = table.complete_rows()
            families = [s.scope(f).tolist() for f in range(s.n_factors)]
            for f, counts in enumerate(family_counts(whole, families, n_jobs=running.n_jobs)):
                self.fixed[graph.cells(f)] += counts
        self.rows = np.zeros((0, s.n_variables), np.int32)
        self.weights = np.zeros(0)
        if hidden.any():
            once = table.rows(hidden).distinct()
            self.rows = np.ascontiguousarray(once.codes.T, np.int32)
            self.weights = np.ones(once.n_rows) if once.weights is None else once.weights

    def expect(self, log_tables: FloatArray) -> SufficientStatistics:
        """Expected counts and log-likelihood under these log-probabilities; an impossible row is an error."""
        counts, value = self.fixed.copy(), 0.0
        used = self.fixed > 0
        if used.any():
            value = float(np.dot(self.fixed[used], log_tables[used]))
        if len(self.rows):
            graph = self.graph.with_tables(log_tables)
            found, expected = counts_of(
                self.method, graph, self.rows, self.weights, n_samples=2000, rng=0, running=self.running
            )
            dead = np.flatnonzero((found == -np.inf) & (self.weights > 0))
            if len(dead):
                row = Evidence(self.rows[dead[0]])
                raise ImpossibleEvidenceError(
                    f"the network gives probability zero to a row of the data: {row.describe(self.graph.structure)}; "
                    "start from tables without zeros there"
                )
            counts += expected
            counted = self.weights > 0
            value += float(np.dot(self.weights[counted], found[counted]))
        return SufficientStatistics(self.graph, counts, value, self.table.total_weight)


def sufficient_statistics(
    network: BayesianNetwork, data: Any, *, weights: Any = None, n_jobs: int | None = None
) -> SufficientStatistics:
    """Expected sufficient statistics of data under a network: plain counts where nothing is missing.

    Parameters
    ----------
    network
        A Bayesian network with all its tables.
    data
        A dict of columns, a data frame, a structured array or state indices ``int[rows, variables]``; see `fit`.
    weights
        One weight for each row, or the name of the column that holds them.

    Returns
    -------
    SufficientStatistics
        Counts by variable, and the log-likelihood of the data. Time is linear in the distinct incomplete rows times
        the states of the junction tree.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"A": 2, "B": 2})
    >>> net.add_cpt("A", [], [0.5, 0.5])
    >>> net.add_cpt("B", ["A"], [[0.9, 0.1], [0.2, 0.8]])
    >>> found = mf.learning.sufficient_statistics(net, {"A": [0, -1], "B": [1, 1]})
    >>> found["A"].round(3).tolist()
    [1.111, 0.889]
    """
    graph = network.compile()
    observed = Observations(graph, encode(data, network, weights=weights), Running(n_jobs))
    return observed.expect(graph.log_tables)


def log_likelihood(network: BayesianNetwork, data: Any, *, weights: Any = None, n_jobs: int | None = None) -> float:
    """Log-probability of data under a Bayesian network, missing values summed out; -inf when a row is impossible.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"A": ["no", "yes"]})
    >>> net.add_cpt("A", [], [0.25, 0.75])
    >>> round(mf.learning.log_likelihood(net, {"A": ["yes", "no", None]}), 4)
    -1.674
    """
    try:
        return sufficient_statistics(network, data, weights=weights, n_jobs=n_jobs).log_likelihood
    except ImpossibleEvidenceError:
        return float("-inf")
