"""Gaussian fields fitted to data on a graph by the verb: algorithms, missing values, shrinkage, covariance graphs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import markovfield as mf
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.learning.gaussian.covariance_graphs import IterativeConditionalFitting
from markovfield.learning.gaussian.covariance_selection import CovarianceSelection
from markovfield.learning.gaussian.moments import GaussianMoments
from tests.data import data_path
from tests.learning.gaussian.test_graph_maximum import BUTTERFLY


@pytest.fixture(scope="module")
def marks():
    return pd.read_csv(data_path("tables", "mathmark.csv"))


def test_a_field_is_fitted_and_answers(marks):
    graph = nx.Graph([("vectors", "statistics"), ("mechanics", "analysis"), *BUTTERFLY])
    fitted = {
        a: mf.fit(mf.GaussianMarkovField(graph), marks, CovarianceSelection(a)) for a in ("newton", "ipf", "auto")
    }
    x = fitted["newton"].precision.toarray()
    for other in fitted.values():
        assert np.allclose(other.precision.toarray(), x, rtol=1e-6, atol=1e-9)
    field = fitted["auto"]
    assert field.fit_report.notes == ("the newton was taken",)
    assert field.fit_report.n_parameters == 5 + 5 + 8
    assert field.fit_report.details.degrees_of_freedom == 2
    means = mf.marginals(field).means
    assert np.allclose(means, marks[list(field.variables)].mean())
    density = mf.GaussianField(x, x @ means).log_density(marks[list(field.variables)].to_numpy()).sum()
    assert field.fit_report.log_likelihood == pytest.approx(density)
    assert len(fitted["ipf"].fit_report.history) == fitted["ipf"].fit_report.iterations > 2
    assert "deviance" in repr(field.fit_report.details)
    assert field.fit_report.details.to_frame().shape == (1, 6)


def test_what_was_learned_is_fitted(marks):
    learned = mf.learn_structure(marks, method="graphical_lasso")
    assert {frozenset(e) for e in learned.edges} == {frozenset(e) for e in BUTTERFLY}
    fitted = mf.fit(learned.to_network(), marks)
    assert fitted.fit_report.details.deviance == pytest.approx(0.8957, abs=5e-5)
    assert fitted.fit_report.notes == ("the closed form was taken",)


def test_moments_weights_and_rows_agree(marks):
    model = mf.GaussianMarkovField(nx.Graph(BUTTERFLY))
    one = mf.fit(model, marks)
    moments = GaussianMoments(np.cov(marks.T, bias=True), 88, marks.mean(), list(marks))
    assert np.allclose(mf.fit(model, moments).precision.toarray(), one.precision.toarray())
    twice = mf.fit(model, marks, weights=np.full(88, 2.0))
    assert np.allclose(twice.precision.toarray(), one.precision.toarray())
    assert twice.fit_report.details.deviance == pytest.approx(2 * one.fit_report.details.deviance)
    with pytest.raises(ModelError, match="weights are of rows"):
        mf.fit(model, moments, weights=[1.0])


def test_missing_values_are_filled_by_expectation_maximisation(marks):
    holes = marks.astype(float).mask(np.random.default_rng(0).random(marks.shape) < 0.15)
    fitted = mf.fit(mf.GaussianMarkovField(nx.Graph(BUTTERFLY)), holes)
    report = fitted.fit_report
    assert report.converged
    assert report.missing == {v: int(holes[v].isna().sum()) for v in marks}
    assert (np.diff(report.history) >= -1e-8).all()
    complete = mf.fit(mf.GaussianMarkovField(nx.Graph(BUTTERFLY)), marks)
    ours, theirs = (np.linalg.inv(f.precision.toarray()) for f in (fitted, complete))
    assert np.abs(ours - theirs).max() < 0.25 * np.abs(theirs).max()
    assert float(fitted.precision[fitted.variables.index("mechanics"), fitted.variables.index("statistics")]) == 0.0


def test_shrinkage_makes_few_rows_enough_and_is_stated(marks):
    model = mf.GaussianMarkovField(nx.complete_graph(list(marks)))
    with pytest.raises(ModelError, match=r"eigenvalue.*clique of 5 variables needs more rows than the 4 given"):
        mf.fit(model, marks[:4])
    fitted = mf.fit(model, marks[:4], CovarianceSelection(shrinkage=0.2))
    assert "0.2 of every covariance was taken off" in fitted.fit_report.notes[-1]
    few = marks[:4][list(fitted.variables)].to_numpy()
    covariance = np.cov(few.T, bias=True)
    wanted = 0.8 * covariance + 0.2 * np.diag(np.diag(covariance))
    assert np.allclose(np.linalg.inv(fitted.precision.toarray()), wanted, rtol=1e-5, atol=1e-6)


def test_a_likelihood_without_a_maximum_is_told_of():
    # Ten variables of three rows around a cycle, each joined with the next two: chordal covers have larger cliques.
    values = np.random.default_rng(0).standard_normal((4, 10))
    graph = nx.circulant_graph(10, [1, 2, 5])
    with pytest.raises(ModelError, match=r"has no maximum for 4 rows|covariance of a clique"):
        mf.fit(mf.GaussianMarkovField(graph), values, CovarianceSelection(max_iterations=60))


def test_zeros_of_the_covariance_are_fitted_too(marks):
    graph = nx.complete_graph(list(marks))
    graph.remove_edge("mechanics", "statistics")
    fitted = mf.fit(mf.GaussianMarkovField(graph), marks, IterativeConditionalFitting())
    sigma = mf.marginals(fitted).joint(list(marks)).covariance
    at = list(marks).index("mechanics"), list(marks).index("statistics")
    assert abs(sigma[at]) <= 1e-9 * np.sqrt(sigma[at[0], at[0]] * sigma[at[1], at[1]])
    report = fitted.fit_report
    assert (report.guarantee, report.details.degrees_of_freedom) == ("approximate", 1)
    # A correlation of 0.39 in 88 rows.
    assert report.details.p_value < 1e-3
    complete = mf.fit(mf.GaussianMarkovField(nx.complete_graph(list(marks))), marks, "icf")
    assert complete.fit_report.details.deviance == pytest.approx(0.0, abs=1e-7)
    with pytest.raises(ModelError, match=r"covariance of the data is not positive definite.*: 4 rows of 5 variables"):
        mf.fit(mf.GaussianMarkovField(graph), marks[:4], "icf")


@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (lambda m, d: mf.fit(m, d[["algebra"]]), ModelError, "no column for variable"),
        (lambda m, d: mf.fit(m, d, "pseudo_likelihood"), ModelError, "choose from auto, covariance_selection"),
        (lambda m, d: mf.fit(m, d, CovarianceSelection("closed_form")), ModelError, "needs a decomposable"),
        (lambda m, d: mf.fit(m, d.assign(algebra=1.0)), ModelError, "'algebra' is the same in every row"),
        (lambda m, d: mf.fit(m, d, CovarianceSelection(memory_limit=10)), MemoryLimitError, "above the limit of"),
        (lambda m, d: mf.fit(m, d.assign(algebra=np.nan)), ModelError, "'algebra' has no values at all"),
        (lambda m, d: CovarianceSelection("em"), ModelError, "algorithm of CovarianceSelection must be"),
        (lambda m, d: CovarianceSelection(shrinkage=1.0), ModelError, "shrinkage of CovarianceSelection must be below"),
        (lambda m, d: IterativeConditionalFitting(tolerance=0.0), ModelError, "must be positive"),
    ],
)
def test_what_is_wrong_is_said(marks, act, error, match):
    model = mf.GaussianMarkovField(nx.cycle_graph(list(marks)))
    with pytest.raises(error, match=match):
        act(model, marks)
