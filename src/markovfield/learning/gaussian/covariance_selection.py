"""Covariance selection as a method of `fit`: Gaussian models with zeros in the precision where a graph has no edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock
from markovfield.kernels.interpreter import CELL, small
from markovfield.learning.core.report import FitReport
from markovfield.learning.gaussian.goodness import goodness
from markovfield.learning.gaussian.graph_maximum import GraphMaximum, maximum_on_graph, positions_of
from markovfield.learning.gaussian.incomplete import em
from markovfield.learning.gaussian.moments import (
    GaussianMoments,
    NumberTable,
    guard_dense,
    read_numbers,
)
from markovfield.learning.structures.regressions import one_blas_thread

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["CovarianceSelection", "read_data", "with_numbers"]


def read_data(
    variables: Sequence[Any], data: Any, weights: Any, what: str, memory_limit: Any, copies: int = 6
) -> tuple[GaussianMoments | None, NumberTable | None]:
    """Moments of the model's variables, or rows of them that have holes."""
    guard_dense(len(variables), what, copies, memory_limit)
    if isinstance(data, GaussianMoments):
        if weights is not None:
            raise ModelError("weights are of rows, and GaussianMoments have none")
        return data.among(tuple(variables)), None
    table = read_numbers(data, variables=tuple(variables), weights=weights, what=what)
    return (None, table) if table.has_missing else (table.moments(what), None)


def with_numbers(model: Any, precision: FloatArray, mean: FloatArray, report: FitReport) -> Any:
    """The model with a precision and a mean, and the report."""
    from scipy import sparse

    matrix = sparse.csc_array(precision)
    made = model.with_precision(matrix, np.asarray(matrix @ mean))
    made.fit_report = report
    return made


@dataclass(frozen=True)
class CovarianceSelection:
    """Maximum likelihood of a `GaussianMarkovField`: a precision with zeros where the graph has no edge.

    Known as covariance selection since Dempster (1972).

    The maximum is unique: its covariance is the data's on the edges and the diagonal. It exists where the rows are more
    than the largest clique of some chordal graph on the same edges. Missing values are filled by expectation
    maximisation. ``fit_report.details`` has the deviance from the complete graph, its degrees of freedom (the missing
    edges) and p-value; see `GaussianGoodness`.

    Parameters
    ----------
    algorithm
        ``"closed_form"``, for decomposable (chordal) graphs: inverses of the cliques' covariances less those of their
        separators' (Murphy 19.62). ``"newton"``: steps by conjugate gradients on the free entries, quadratically
        convergent. ``"ipf"``: iterative proportional fitting, clique by clique (Murphy 19.5.7.3; Speed and Kiiveri
        1986). ``"regression"``: coordinate descent, each variable regressed on its neighbours with the model's
        covariance of these (Hastie, Tibshirani and Friedman 2009, algorithm 17.1). ``"auto"``: the first for
        decomposable graphs, the second for others. All give the same.
    shrinkage
        Part of every covariance that is taken off, at least 0 and below 1: a stated regularisation that makes few rows
        enough. The deviance is from the shrunk covariance then.
    tolerance
        On the correlations fitted; for missing values the log-likelihood that an iteration of EM gains, by row.
    max_iterations
        Of one algorithm, and of EM.
    memory_limit
        For dense matrices: about six of n by n numbers are kept.

    Examples
    --------
    >>> import markovfield as mf
    >>> field = mf.GaussianMarkovField([("x", "y"), ("y", "z")])
    >>> rows = {"x": [1.0, 2.0, 0.5, 3.0, 2.5], "y": [1.5, 2.0, 1.0, 2.5, 0.5], "z": [0.0, 1.0, 1.5, 1.0, 2.0]}
    >>> fitted = mf.fit(field, rows)
    >>> fitted.fit_report.details
    GaussianGoodness(deviance 2.35704, df 1, p 0.1247)
    >>> float(fitted.precision[0, 2])
    0.0
    """

    name: ClassVar[str] = "covariance_selection"
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = True

    algorithm: Literal["auto", "closed_form", "newton", "ipf", "regression"] = "auto"
    shrinkage: float = 0.0
    tolerance: float = 1e-9
    max_iterations: int = 1000
    memory_limit: str | float | None = None

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"shrinkage": 0, "max_iterations": 1},
            above={"tolerance": 0},
            below={"shrinkage": 1},
            choices={"algorithm": ("auto", "closed_form", "newton", "ipf", "regression")},
        )
        memory_limit_bytes(self.memory_limit)

    def fit(self, model: Any, data: Any, *, weights: Any = None, running: Running | None = None) -> Any:
        """A new model with the estimated precision and the mean of the data."""
        started = clock()
        run = running or Running()
        moments, table = read_data(model.variables, data, weights, self.name, self.memory_limit)
        graph = positions_of(model.to_networkx(), model.variables)
        work = CELL * len(model.variables) ** 2 * 50.0 + 1e9 * (table is not None)
        with small(work), one_blas_thread():
            if moments is not None:
                found = self._maximum(moments, graph, run)
                report = self._report(moments, found.precision, graph, found, started)
                return with_numbers(model, found.precision, moments.mean, report)
            assert table is not None
            return self._fit_incomplete(model, table, graph, run, started)

    def _maximum(self, moments: GaussianMoments, graph: nx.Graph, running: Running) -> GraphMaximum:
        found = maximum_on_graph(
            moments.shrunk(self.shrinkage),
            graph,
            algorithm=self.algorithm,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            running=running,
        )
        if not found.converged and not self.shrinkage and found.algorithm == "newton":
            raise ModelError(
                f"the likelihood of this graph has no maximum for {moments.n_rows:g} rows, or a very flat one: after "
                f"{found.iterations} steps it still rises; take fewer edges, or give shrinkage"
            )
        return found

    def _report(
        self, moments: GaussianMoments, precision: FloatArray, graph: nx.Graph, found: GraphMaximum, started: float
    ) -> FitReport:
        fit = goodness(moments.shrunk(self.shrinkage), precision, graph.number_of_edges())
        notes = [f"the {found.algorithm.replace('_', ' ')} was taken"] if self.algorithm == "auto" else []
        if self.shrinkage:
            notes.append(
                f"{self.shrinkage:g} of every covariance was taken off: likelihood and deviance are of the rest"
            )
        return FitReport(
            method=self.name,
            log_likelihood=fit.log_likelihood,
            n_rows=round(moments.n_rows),
            total_weight=moments.n_rows,
            n_parameters=fit.n_parameters,
            converged=found.converged,
            iterations=found.iterations,
            message="" if found.converged else "max_iterations ended it",
            history=tuple(moments.n_rows * h for h in found.history),
            seconds=clock() - started,
            statistics=moments,
            notes=tuple(notes),
            details=fit,
        )

    def _fit_incomplete(self, model: Any, table: NumberTable, graph: nx.Graph, running: Running, started: float) -> Any:
        """Expectation maximisation, the M step a covariance selection."""
        moments, precision, history, converged = em(
            table,
            lambda expected: self._maximum(expected, graph, running.quiet).precision,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            running=running,
        )
        n, edges = len(model.variables), graph.number_of_edges()
        report = FitReport(
            method=self.name,
            log_likelihood=history[-1],
            n_rows=table.n_rows,
            total_weight=float(table.weights.sum()),
            n_parameters=2 * n + edges,
            converged=converged,
            iterations=len(history),
            message="" if converged else "max_iterations ended EM",
            history=tuple(history),
            seconds=clock() - started,
            missing=table.missing,
            statistics=moments,
            notes=("missing values were filled by EM: no deviance, as the complete graph was not fitted",),
        )
        return with_numbers(model, precision, moments.mean, report)
