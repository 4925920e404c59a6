"""Hyper-inverse-Wishart posteriors and decomposable search: predictive densities, all graphs, draws."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.learning.gaussian.decomposable_search import DecomposableSearch
from markovfield.learning.gaussian.hyper_wishart import hyper_inverse_wishart
from markovfield.learning.gaussian.moments import read_moments
from tests.data import data_path
from tests.learning.gaussian.test_graph_maximum import BUTTERFLY


@pytest.fixture(scope="module")
def marks():
    return pd.read_csv(data_path("tables", "mathmark.csv"))


def evidence_of_complete(values, degrees, scale):
    """Of rows under an inverse Wishart prior and a flat mean: one predictive t density after the other."""
    total, p = 0.0, values.shape[1]
    for r in range(1, len(values)):
        before = values[:r]
        mean = before.mean(axis=0)
        s = scale + (before - mean).T @ (before - mean)
        freedom = degrees + r - 1
        shape = s * (1 + 1 / r) / freedom
        total += stats.multivariate_t(mean, shape, df=freedom).logpdf(values[r])
    # The first row has density one under the flat mean.
    assert p == len(scale)
    return total


@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_marginal_likelihood_of_a_complete_graph_is_a_product_of_t_densities(p):
    rng = np.random.default_rng(p)
    values = rng.standard_normal((7, p))
    scale = np.eye(p) * 1.5 + 0.3
    posterior = hyper_inverse_wishart(nx.complete_graph(p), values, degrees=2.5, scale=scale)
    assert posterior.log_marginal_likelihood == pytest.approx(evidence_of_complete(values, 2.5, scale))


def test_a_decomposable_graph_is_its_cliques_by_its_separators(marks):
    values = marks[["mechanics", "algebra", "statistics"]]
    chain = hyper_inverse_wishart([("mechanics", "algebra"), ("algebra", "statistics")], values, scale=100.0)
    parts = [
        evidence_of_complete(values[names].to_numpy(float), 3.0, 100.0 * np.eye(len(names)))
        for names in (["mechanics", "algebra"], ["algebra", "statistics"], ["algebra"])
    ]
    assert chain.log_marginal_likelihood == pytest.approx(parts[0] + parts[1] - parts[2])


def test_draws_have_the_zeros_and_the_mean(marks):
    posterior = hyper_inverse_wishart(nx.Graph(BUTTERFLY), marks)
    mean = posterior.mean_precision()
    drawn = np.stack([f.precision.toarray() for f in posterior.draw(3000, rng=0)])
    names = posterior.moments.variables
    at = names.index("mechanics"), names.index("statistics")
    assert mean[at] == 0.0
    scale = np.sqrt(np.outer(np.diag(mean), np.diag(mean)))
    assert (np.abs(drawn[:, *at]) <= 1e-12 * scale[at]).all()
    error = drawn.std(axis=0) / math.sqrt(3000)
    assert (np.abs(drawn.mean(axis=0) - mean) <= 4.5 * error + 1e-12 * scale).all()
    # The posterior mean comes near the maximum as rows grow.
    many = hyper_inverse_wishart(nx.Graph(BUTTERFLY), pd.concat([marks] * 200))
    fitted = mf.fit(mf.GaussianMarkovField(nx.Graph(BUTTERFLY)), marks)
    order = [fitted.variables.index(v) for v in many.moments.variables]
    wanted = fitted.precision.toarray()[np.ix_(order, order)]
    assert np.abs(many.mean_precision() - wanted).max() <= 1e-3 * np.abs(wanted).max()


def test_the_prior_alone_has_the_mean_covariance_asked_for():
    # Of one variable with next to no data, precision is gamma: mean degrees / scale.
    values = np.array([[0.0], [1e-9]])
    posterior = hyper_inverse_wishart(nx.empty_graph(1), values, degrees=5.0, scale=3.0)
    assert posterior.mean_precision()[0, 0] == pytest.approx((5.0 + 1) / 3.0)
    drawn = [f.precision.toarray()[0, 0] for f in posterior.draw(4000, rng=0)]
    assert np.mean(drawn) == pytest.approx(2.0, abs=5 * np.std(drawn) / math.sqrt(4000))


def chordal_graphs(names):
    pairs = list(itertools.combinations(names, 2))
    for chosen in itertools.product([False, True], repeat=len(pairs)):
        graph = nx.Graph()
        graph.add_nodes_from(names)
        graph.add_edges_from(e for e, c in zip(pairs, chosen, strict=True) if c)
        if nx.is_chordal(graph):
            yield graph


def test_the_search_ends_in_a_good_graph_and_the_walk_has_the_posterior_of_edges(marks):
    values = marks[["mechanics", "vectors", "algebra", "statistics"]]
    graphs = list(chordal_graphs(list(values)))
    scores = np.array([hyper_inverse_wishart(g, values).log_marginal_likelihood for g in graphs])
    best = graphs[int(np.argmax(scores))]
    learned = mf.learn_structure(values, method="decomposable_search")
    assert {frozenset(e) for e in learned.edges} == {frozenset(e) for e in best.edges}
    assert learned.score == pytest.approx(scores.max())
    start = hyper_inverse_wishart(nx.empty_graph(list(values)), values).log_marginal_likelihood
    assert start + sum(move.gain for move in learned.history) == pytest.approx(learned.score)
    weights = np.exp(scores - scores.max())
    exact = sum(
        w * nx.to_numpy_array(g, nodelist=list(values)) for w, g in zip(weights / weights.sum(), graphs, strict=True)
    )
    walked = mf.learn_structure(values, method=DecomposableSearch(samples=30_000), rng=0)
    assert np.abs(walked.details["frequencies"] - exact).max() <= 0.06
    assert 0 < walked.details["accepted"] < 1
    assert walked.score == pytest.approx(scores.max())


def test_the_butterfly_is_found_by_all_scores(marks):
    for method in (DecomposableSearch(), DecomposableSearch(score="bic")):
        learned = mf.learn_structure(marks, method=method)
        assert {frozenset(e) for e in learned.edges} == {frozenset(e) for e in BUTTERFLY}
    fitted = mf.fit(learned.to_network(), marks)
    # BIC of the fitted model, means counted as parameters by both.
    assert learned.score == pytest.approx(fitted.fit_report.bic)
    few = mf.learn_structure(marks, method=DecomposableSearch(max_order=2))
    assert nx.is_forest(few.graph)
    none = mf.learn_structure(marks, method=DecomposableSearch(edge_probability=1e-30))
    assert not none.edges


def test_more_variables_than_rows_have_a_posterior():
    values = np.random.default_rng(0).standard_normal((5, 8))
    learned = mf.learn_structure(values, method="decomposable_search")
    assert np.linalg.eigvalsh(learned.precision.toarray())[0] > 0
    x, y = np.random.default_rng(1).standard_normal((2, 30))
    with pytest.raises(ModelError, match=r"covariance of a clique is not positive definite.*give max_order"):
        mf.learn_structure({"x": x, "y": y, "both": x + y}, method=DecomposableSearch(score="bic"))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"degrees": 0.0}, "degrees of the inverse Wishart distribution must be a number greater than 0"),
        ({"scale": -1.0}, "scale of the inverse Wishart distribution must be a number greater than 0"),
        ({"scale": np.eye(2)}, r"symmetric matrix \(5, 5\), got shape \(2, 2\)"),
        ({"scale": np.ones((5, 5))}, "scale of the inverse Wishart distribution is not positive definite"),
    ],
)
def test_what_is_wrong_is_said(marks, settings, match):
    with pytest.raises(ModelError, match=match):
        hyper_inverse_wishart(nx.Graph(BUTTERFLY), marks, **settings)


def test_graphs_must_be_chordal(marks):
    with pytest.raises(ModelError, match=r"hyper_inverse_wishart needs a decomposable \(chordal\) graph"):
        hyper_inverse_wishart(nx.cycle_graph(list(marks)), read_moments(marks))
    with pytest.raises(ModelError, match="edge_probability of DecomposableSearch must be below 1"):
        DecomposableSearch(edge_probability=1.0)
