"""Moments that a log-linear model expects, and their curvature: by differences of gradients, or from samples."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import cell_reader
from markovfield.inference.core.answers import Samples
from markovfield.inference.core.counts import is_sampler
from markovfield.inference.core.evidence import Evidence
from markovfield.learning.undirected.likelihood import Likelihood
from markovfield.learning.undirected.problem import Problem

__all__ = ["Expectations", "expectations_of", "moments_of_samples"]

# Length of a step in weights that differences of gradients are taken over.
STEP = 1e-4


class Expectations(Protocol):
    """What a Newton method knows of minus the log-likelihood of all rows.

    Attributes
    ----------
    evaluations
        How often the model was asked.
    """

    evaluations: int

    def at(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood (nan where nobody knows log Z) and its gradient."""
        ...

    def variances(self, w: FloatArray) -> FloatArray:
        """The diagonal of the Hessian: how much each moment varies under the model."""
        ...

    def along(self, w: FloatArray, d: FloatArray) -> float:
        """The second derivative along d: how much the moments vary in this direction."""
        ...


def expectations_of(problem: Problem, inference: Any, n_samples: int, rng: np.random.Generator) -> Expectations:
    """By samples where the method of inference draws them, otherwise by differences."""
    likelihood = Likelihood(problem, inference, n_samples=n_samples, rng=rng)
    return _BySamples(likelihood) if is_sampler(inference) else _ByDifferences(likelihood)


class _ByDifferences:
    """Expected counts of an inference method; curvature from expected counts a short step further."""

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood, self.evaluations = likelihood, 0

    def _free(self, w: FloatArray) -> FloatArray:
        problem = self.likelihood.problem
        graph = FactorGraph(problem.structure, problem.model.log_tables(w), marks_hold=True)
        self.evaluations += 1
        return problem.model.moments(self.likelihood.free(graph)[1])

    def at(self, w: FloatArray) -> tuple[float, FloatArray]:
        self.evaluations += 1
        value, gradient = self.likelihood(w)
        return value * self.likelihood.problem.total, gradient * self.likelihood.problem.total

    def variances(self, w: FloatArray) -> FloatArray:
        found = np.empty(len(w))
        for i in range(len(w)):
            step = np.zeros(len(w))
            step[i] = STEP
            found[i] = (self._free(w + step)[i] - self._free(w - step)[i]) / (2.0 * STEP)
            self.likelihood.problem.running.check()
        return np.maximum(found, 0.0) * self.likelihood.problem.total

    def along(self, w: FloatArray, d: FloatArray) -> float:
        length = float(np.abs(d).max())
        if not length:
            return 0.0
        step = STEP / length
        rise = self._free(w + step * d) - self._free(w - step * d)
        return max(float(d @ rise) / (2.0 * step), 0.0) * self.likelihood.problem.total


class _BySamples:
    """Averages over samples of the model at the weights that were asked for last."""

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood, self.evaluations = likelihood, 0
        self._last: Samples | None = None
        self._apart, self._weights = np.zeros((0, 0)), np.zeros(0)

    def at(self, w: FloatArray) -> tuple[float, FloatArray]:
        asked, problem = self.likelihood, self.likelihood.problem
        graph = FactorGraph(problem.structure, problem.model.log_tables(w), marks_hold=True)
        more: dict[str, Any] = {}
        if self._last is not None and "init" in asked.inference.abilities:
            more["init"] = self._last
        nothing = Evidence.parse(problem.structure, None)
        drawn = asked.inference.sample(
            graph, asked.n_samples, nothing, rng=asked.rng, running=problem.running.quiet, **more
        )
        self._last = drawn
        self.evaluations += 1
        moments = moments_of_samples(problem, drawn)
        self._weights = np.asarray(drawn.weights / drawn.weights.sum())
        mean = self._weights @ moments
        self._apart = moments - mean
        _, seen = asked.clamped(graph)
        return np.nan, problem.total * mean - problem.model.moments(seen)

    def variances(self, w: FloatArray) -> FloatArray:
        return np.asarray(self.likelihood.problem.total * (self._weights @ np.square(self._apart)))

    def along(self, w: FloatArray, d: FloatArray) -> float:
        return float(self.likelihood.problem.total * (self._weights @ np.square(self._apart @ d)))


def moments_of_samples(problem: Problem, drawn: Samples) -> FloatArray:
    """``float64[samples, k]``: the features of each sample."""
    read, n_cells = cell_reader(problem.structure), problem.structure.n_cells
    found = np.empty((len(drawn), len(problem.model.parameters)))
    for i, row in enumerate(drawn.states):
        found[i] = problem.model.moments(np.bincount(read(row.astype(np.int64)), minlength=n_cells).astype(np.float64))
    return found
