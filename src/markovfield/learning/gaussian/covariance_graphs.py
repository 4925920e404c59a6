"""Covariance graphs as a method of `fit`: Gaussian models with zeros in the covariance where a graph has no edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock
from markovfield.learning.core.report import FitReport
from markovfield.learning.gaussian.covariance_graph_maximum import covariance_graph_maximum
from markovfield.learning.gaussian.covariance_selection import read_data, with_numbers
from markovfield.learning.gaussian.goodness import goodness, log_determinant
from markovfield.learning.gaussian.graph_maximum import positions_of
from markovfield.learning.gaussian.moments import not_definite
from markovfield.learning.structures.regressions import one_blas_thread

__all__ = ["IterativeConditionalFitting"]


@dataclass(frozen=True)
class IterativeConditionalFitting:
    """Maximum likelihood with zeros in the covariance: the graph is read as bidirected (Murphy 19.4.4.1).

    Variables that are not joined are independent; two that are joined may be thought to have a hidden common cause.
    Each variable in turn is regressed on what its siblings are beyond the others, which never lowers the likelihood
    (Chaudhuri, Drton and Richardson 2007). Unlike that of `CovarianceSelection` the likelihood may have several maxima,
    and what is found is one of them; where the data fit, it is the only one with any likelihood to speak of. The
    precision of the answer has entries where the graph has no edge.

    Parameters
    ----------
    tolerance
        A sweep that moves no correlation by more ends it.
    max_iterations
        Sweeps over all variables.
    memory_limit
        As for `CovarianceSelection`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> rng = np.random.default_rng(0)
    >>> u, v, noise = rng.standard_normal((2, 500)), rng.standard_normal((2, 500)), rng.standard_normal((3, 500))
    >>> rows = {"a": u[0] + noise[0], "b": u[0] + v[0] + noise[1], "c": v[0] + noise[2]}
    >>> field = mf.GaussianMarkovField([("a", "b"), ("b", "c")])
    >>> fitted = mf.fit(field, rows, method=mf.methods.IterativeConditionalFitting())
    >>> bool(abs(fitted.compile().covariance[0, 2]) < 1e-12), fitted.fit_report.details.degrees_of_freedom
    (True, 1)
    """

    name: ClassVar[str] = "iterative_conditional_fitting"
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    tolerance: float = 1e-9
    max_iterations: int = 5000
    memory_limit: str | float | None = None

    def __post_init__(self) -> None:
        check_method(self, least={"max_iterations": 1}, above={"tolerance": 0})
        memory_limit_bytes(self.memory_limit)

    def fit(self, model: Any, data: Any, *, weights: Any = None, running: Running | None = None) -> Any:
        """A new model whose covariance has the zeros; ``fit_report.details`` has deviance and degrees of freedom."""
        started = clock()
        moments, table = read_data(model.variables, data, weights, self.name, self.memory_limit)
        if moments is None:
            assert table is not None
            moments = table.moments(self.name)
        if log_determinant(moments.covariance) == -np.inf:
            few = f": {moments.n_rows:g} rows of {moments.n_variables} variables" * (
                moments.n_rows <= moments.n_variables
            )
            raise ModelError(
                f"{not_definite(moments.covariance, moments.variables, 'the covariance of the data')}{few}"
            )
        graph = positions_of(model.to_networkx(), model.variables)
        with one_blas_thread():
            covariance, history, converged = covariance_graph_maximum(
                moments, graph, tolerance=self.tolerance, max_iterations=self.max_iterations, running=running
            )
        precision = np.linalg.inv(covariance)
        precision = (precision + precision.T) / 2
        fit = goodness(moments, precision, graph.number_of_edges())
        report = FitReport(
            method=self.name,
            log_likelihood=fit.log_likelihood,
            n_rows=round(moments.n_rows),
            total_weight=moments.n_rows,
            n_parameters=fit.n_parameters,
            converged=converged,
            iterations=len(history),
            message="" if converged else "max_iterations ended it",
            history=tuple(moments.n_rows * h for h in history),
            seconds=clock() - started,
            statistics=moments,
            guarantee="approximate",
            notes=("edges are of the covariance; the likelihood of such a graph may have several maxima",),
            details=fit,
        )
        return with_numbers(model, precision, moments.mean, report)
