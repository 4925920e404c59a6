"""Tests of a vector autoregression's arrows (Granger) and edges (correlated noise), and graphs of what they find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.arrays import BoolArray, FloatArray, Frozen
from markovfield.exceptions import ModelError
from markovfield.frames import OneRow, Tabular
from markovfield.graphs.mixed_graph import MixedGraph
from markovfield.names import VariableName
from markovfield.time_series.chain_graph import series_graph

if TYPE_CHECKING:
    from markovfield.time_series.vector_autoregression import VectorAutoregression

__all__ = [
    "CausalityTest",
    "CausalityTests",
    "contemporaneous_tests",
    "found_graph",
    "granger_test",
    "granger_tests",
    "rejected",
]


@dataclass(frozen=True)
class CausalityTest(OneRow):
    """One test: ``statistic`` with its degrees of freedom, and the probability of a larger one where nothing is there.

    The statistic is F for weights of the past, standard normal (Fisher's z, in absolute value) for noise.
    """

    causing: tuple[VariableName, ...]
    caused: tuple[VariableName, ...]
    statistic: float
    p_value: float
    degrees_of_freedom: tuple[int, int] | None = None

    _row = ("causing", "caused", "statistic", "p_value")


@dataclass(frozen=True, eq=False)
class CausalityTests(Frozen, Tabular):
    """Tests of all pairs."""

    tests: tuple[CausalityTest, ...]

    def __len__(self) -> int:
        return len(self.tests)

    def __iter__(self) -> Iterator[CausalityTest]:
        return iter(self.tests)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        shown = self.tests[:limit]
        return {
            "causing": [t.causing[0] for t in shown],
            "caused": [t.caused[0] for t in shown],
            "statistic": [t.statistic for t in shown],
            "p_value": [t.p_value for t in shown],
        }

    def __repr__(self) -> str:
        return f"CausalityTests({len(self)} pairs)"


def _fitted(model: VectorAutoregression, what: str) -> FloatArray:
    model.check_fitted()
    if model.design_ is None or model.fit_report is None:
        raise ModelError(f"{what} needs a model that was fitted to data in this session")
    if model.fit_report.method == "lasso":
        raise ModelError(f"{what} needs weights that were not shrunk by a penalty: refitted(data) gives such a model")
    return model.design_


def _covariance(model: VectorAutoregression, design: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Covariance of the free weights, where each stands in ``[k, m]`` (-1: not free), and degrees of freedom."""
    assert model.fit_report is not None
    k, n = model.n_variables, model.fit_report.n_rows
    constant = [np.ones((k, 1), np.bool_)] if model.intercept else []
    free = np.hstack([*constant, *model.free_])
    rows, columns = np.nonzero(free)
    place = np.full(free.shape, -1)
    place[rows, columns] = np.arange(len(rows))
    left = n - free.sum() / k
    precision = model.noise_precision_ * left / n
    information = precision[rows[:, None], rows] * design[columns[:, None], columns]
    scale = np.sqrt(np.diag(information))
    inverse = np.linalg.inv(information / np.outer(scale, scale)) / np.outer(scale, scale)
    return inverse, place, left


def _names(model: VectorAutoregression, given: Any, what: str) -> list[int]:
    listed = [given] if isinstance(given, str | int) else list(given)
    for v in listed:
        if v not in model.variables_:
            raise ModelError(f"{what}: there is no series {v!r} among {', '.join(map(repr, model.variables_[:8]))}")
    if not listed:
        raise ModelError(f"{what} names at least one series")
    return [model.variables_.index(v) for v in listed]


def granger_test(model: VectorAutoregression, causing: Any, caused: Any) -> CausalityTest:
    """F test of the weights of some series' past in others (Luetkepohl 2005, 3.6.1)."""
    design = _fitted(model, "granger_test")
    source, to = _names(model, causing, "granger_test(causing)"), _names(model, caused, "granger_test(caused)")
    if set(source) & set(to):
        raise ModelError("granger_test(causing, caused) needs two sets of series without common members")
    return _tested(model, _covariance(model, design), source, to)


def _tested(model: VectorAutoregression, estimate: Any, source: list[int], to: list[int]) -> CausalityTest:
    from scipy.special import fdtrc

    covariance, place, left = estimate
    k, skip = model.n_variables, int(model.intercept)
    cells = [(i, skip + lag * k + j, lag, j) for i in to for lag in range(model.order) for j in source]
    kept = [(place[i, column], model.coefficients_[lag, i, j]) for i, column, lag, j in cells if place[i, column] >= 0]
    names = tuple(model.variables_[j] for j in source), tuple(model.variables_[i] for i in to)
    if not kept:
        return CausalityTest(*names, 0.0, 1.0, (0, round(left * k)))
    at, weights = np.array([a for a, _ in kept]), np.array([w for _, w in kept])
    statistic = float(weights @ np.linalg.solve(covariance[np.ix_(at, at)], weights)) / len(at)
    freedom = (len(at), round(left * k))
    return CausalityTest(*names, statistic, float(fdtrc(freedom[0], left * k, statistic)), freedom)


def granger_tests(model: VectorAutoregression) -> CausalityTests:
    """Every ordered pair that has a free weight."""
    estimate = _covariance(model, _fitted(model, "granger_tests"))
    allowed = np.asarray(model.free_.any(axis=0))
    pairs = [(j, i) for j in range(model.n_variables) for i in range(model.n_variables) if i != j and allowed[i, j]]
    return CausalityTests(tuple(_tested(model, estimate, [j], [i]) for j, i in pairs))


def contemporaneous_tests(model: VectorAutoregression) -> CausalityTests:
    """Partial correlations of the noise, by Fisher's z; pairs that the graph has no edge for are not tested."""
    from scipy.special import ndtr

    _fitted(model, "contemporaneous_tests")
    assert model.fit_report is not None
    k = model.n_variables
    skip = int(model.intercept)
    left = model.fit_report.n_rows - (model.free_.sum() + skip * k) / k - (k - 2) - 3
    if left <= 0:
        raise ModelError(f"contemporaneous_tests needs more rows: {model.fit_report.n_rows} leave none for {k} series")
    precision = model.noise_precision_
    found = []
    for i in range(k):
        for j in range(i + 1, k):
            if model.joined_[i, j]:
                partial = -precision[i, j] / np.sqrt(precision[i, i] * precision[j, j])
                z = abs(float(np.arctanh(partial))) * np.sqrt(left)
                names = (model.variables_[i],), (model.variables_[j],)
                found.append(CausalityTest(*names, float(z), float(2 * ndtr(-z))))
    return CausalityTests(tuple(found))


def rejected(p_values: FloatArray, alpha: float, correction: str | None) -> BoolArray:
    """Which hypotheses fall at a level, corrected for their number.

    Examples
    --------
    >>> import numpy as np
    >>> rejected(np.array([0.01, 0.04, 0.03]), 0.05, "holm").tolist()
    [True, False, False]
    >>> rejected(np.array([0.01, 0.04, 0.03]), 0.05, "fdr").tolist()
    [True, True, True]
    """
    if correction not in ("holm", "fdr", None):
        raise ModelError(f"correction is 'holm', 'fdr' or None, got {correction!r}")
    if not 0 < alpha < 1:
        raise ModelError(f"alpha is a probability between 0 and 1, got {alpha!r}")
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")
    kept: BoolArray = np.zeros(n, np.bool_)
    if correction is None:
        kept[:] = p_values <= alpha
    elif correction == "holm":
        passes: BoolArray = np.asarray(p_values[order] <= alpha / (n - np.arange(n)))
        kept[order[: int(np.argmin(passes)) if not passes.all() else n]] = True
    else:
        below = np.flatnonzero(p_values[order] <= alpha * np.arange(1, n + 1) / max(n, 1))
        kept[order[: int(below[-1]) + 1 if len(below) else 0]] = True
    return kept


def found_graph(
    model: VectorAutoregression, alpha: float, correction: str | None, *, arrows: bool, edges: bool
) -> MixedGraph:
    """What the tests find, arrows and edges corrected each among themselves."""
    model.check_fitted()
    k = model.n_variables
    at = {v: i for i, v in enumerate(model.variables_)}
    cause, joined = np.zeros((k, k), np.bool_), np.zeros((k, k), np.bool_)
    for wanted, tests, table in ((arrows, granger_tests, cause), (edges, contemporaneous_tests, joined)):
        if wanted:
            made = tests(model)
            kept = rejected(np.array([t.p_value for t in made]), alpha, correction)
            for test, keep in zip(made, kept.tolist(), strict=True):
                a, b = at[test.causing[0]], at[test.caused[0]]
                table[b, a] |= keep
    return series_graph(model.variables_, cause, joined | joined.T)
