"""Moments of features: those of data, and those a model expects (Murphy 19.42)."""

from __future__ import annotations

from typing import Any

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.inference.verbs import expected_counts
from markovfield.learning.core.data import encode
from markovfield.learning.core.rows import as_rows
from markovfield.learning.undirected.problem import Problem
from markovfield.models import LogLinear

__all__ = ["empirical_moments", "expected_moments"]


def empirical_moments(model: Any, data: Any, *, weights: Any = None) -> FloatArray:
    """The mean of each feature over rows of complete data; at a maximum of the likelihood the model expects the same.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.LogLinear({"A": 2, "B": 2}, [mf.Feature({"A": 1, "B": 1})])
    >>> mf.learning.empirical_moments(model, [[1, 1], [0, 1], [1, 0], [1, 1]]).tolist()
    [0.5]
    >>> mf.learning.expected_moments(model).tolist()
    [0.25]
    """
    problem = Problem(LogLinear.of(model), encode(as_rows(model, data), model, weights=weights), Running())
    if not problem.n_rows:
        raise ModelError("empirical_moments(model, data) needs at least one row of data, got none")
    problem.need_complete("empirical_moments", "complete rows")
    return problem.moments / problem.total


def expected_moments(model: Any, method: Any = None, **settings: Any) -> FloatArray:
    """The expectation of each feature under the model, by any method of `markovfield.expected_counts`."""
    form = LogLinear.of(model)
    answer = expected_counts(form.base_graph.structure, form.log_tables(form.parameters), method=method, **settings)
    return form.moments(answer.counts)
