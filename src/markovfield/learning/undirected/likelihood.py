"""Minus the log-likelihood of a log-linear model and its gradient (Murphy 19.38 to 19.41; 19.45 to 19.48 where hidden).

The gradient is the expected features of the model less those of the data; with missing values, the latter are
expectations with what is seen clamped. Expectations come from any inference method that has counts: the junction tree
(exact), messages (their own log Z and its gradient), or samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.counts import CountsMethod
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.row_counts import counts_of
from markovfield.learning.undirected.problem import Problem

__all__ = ["Likelihood"]


class Likelihood:
    """Minus the log-likelihood for each row, and its gradient.

    Parameters
    ----------
    inference
        A method object of `marginals` or `sample`.
    n_samples, rng
        Of each expectation, for methods that sample.

    Attributes
    ----------
    guarantee, converged
        Of the last log Z: of the free one, and whether all inference so far came to its end.
    """

    def __init__(self, problem: Problem, inference: Any, *, n_samples: int = 2000, rng: Any = None) -> None:
        self.problem, self.inference, self.n_samples, self.rng = problem, inference, n_samples, rng
        self.guarantee, self.converged = "exact", True
        self._last: Any = None
        self._empty = Evidence.parse(problem.structure, None)
        self._warm = not isinstance(inference, CountsMethod) and "init" in inference.abilities
        self._rows = np.ascontiguousarray(problem.incomplete.codes.T, np.int32)

    def free(self, graph: FactorGraph) -> tuple[float, FloatArray]:
        """log Z and expected counts of cells; messages start from where they ended last time."""
        running = self.problem.running.quiet
        if self._warm:
            found = self.inference.marginals(graph, self._empty, running=running, init=self._last)
            self._last = found
            self.guarantee = found.guarantee
            self.converged = self.converged and found.converged
            return float(found.log_partition), found.expected_counts
        answer = counts_of(self.inference, graph, None, None, n_samples=self.n_samples, rng=self.rng, running=running)
        self.guarantee, self.converged = answer.guarantee, self.converged and answer.converged
        return float(answer.log_partition), answer.counts

    def clamped(self, graph: FactorGraph) -> tuple[float, FloatArray]:
        """Score of what is seen, summed over rows, and expected counts given it."""
        problem = self.problem
        value, counts = problem.base_score, problem.counts
        if not len(self._rows):
            return value, counts
        weights = problem.incomplete.weights
        answer = counts_of(
            self.inference, graph, self._rows, weights,
            n_samples=self.n_samples, rng=self.rng, running=problem.running.quiet,
        )  # fmt: skip
        log_sums = np.asarray(answer.log_partition)
        if (log_sums == -np.inf).any():
            row = int(np.flatnonzero(log_sums == -np.inf)[0])
            raise ModelError(f"the model gives probability zero to row {row} of the distinct incomplete rows")
        assert weights is not None
        self.converged = self.converged and answer.converged
        return value + float(weights @ log_sums), counts + answer.counts

    def expectations(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The log-likelihood, and the counts of cells: clamped, and free for all rows together."""
        problem, model = self.problem, self.problem.model
        graph = FactorGraph(problem.structure, model.log_tables(parameters), marks_hold=True)
        log_partition, expected = self.free(graph)
        score, seen = self.clamped(graph)
        score += float(parameters @ problem.moments)
        return score - problem.total * log_partition, seen, problem.total * expected

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood and its gradient, for each row."""
        value, seen, expected = self.expectations(parameters)
        total = self.problem.total
        return -value / total, self.problem.model.moments(expected - seen) / total
