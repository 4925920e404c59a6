from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from tests.learning.tables.naive import margin

CARDS = {"A": 2, "B": 2, "C": 3}


def data_of(counts):
    states = np.indices(counts.shape).reshape(counts.ndim, -1)
    return dict(zip("ABC", states, strict=True)) | {"n": counts.ravel()}


COUNTS = np.random.default_rng(0).poisson(6.0, (2, 2, 3)).astype(float)


def test_decomposable_posterior_is_hyper_dirichlet():
    net = mf.MarkovNetwork.from_generators(CARDS, "AB/BC")
    method = mf.methods.BayesianProportionalFitting(prior=12.0, draws=1500)
    posterior = mf.fit(net, data_of(COUNTS), method, weights="n", rng=1).fit_report.details.posterior
    drawn = posterior.joint()
    exact = mf.fit(net, data_of(COUNTS), mf.methods.ClosedForm(prior=12.0), weights="n")
    other = np.array([mf.learning.fitted_table(d) for d in exact.fit_report.details.posterior.draw(2000, rng=2)])
    error = drawn.std(axis=0) / np.sqrt(posterior.effective_sample_size)
    assert (np.abs(drawn.mean(axis=0) - mf.learning.fitted_table(exact)) < 6 * error).all()
    np.testing.assert_allclose(drawn.std(axis=0), other.std(axis=0), rtol=0.12)


@pytest.mark.parametrize("generators", ["AB/BC/AC", "A/B/C", "ABC"])
def test_expected_margins_are_those_of_data_and_prior(generators):
    """Diaconis and Ylvisaker: posterior expectations of the moments are linear in the data."""
    net = mf.MarkovNetwork.from_generators(CARDS, generators)
    method = mf.methods.BayesianProportionalFitting(prior=5.0, draws=1500)
    made = mf.fit(net, data_of(COUNTS), method, weights="n", rng=3)
    posterior = made.fit_report.details.posterior
    drawn = posterior.joint()
    assert made.fit_report.converged and posterior.r_hat < 1.05
    for scope in made.fit_report.details.tables.scopes:
        each = np.array([margin(d, scope) for d in drawn])
        wanted = (margin(COUNTS, scope) + 5.0 / each[0].size) / (COUNTS.sum() + 5.0)
        error = each.std(axis=0) / np.sqrt(min(posterior.effective_sample_size, len(drawn) / 4))
        assert (np.abs(each.mean(axis=0) - wanted) < 6 * error).all()


def test_walks_of_several_cliques_draw_each_margin_once():
    net = mf.MarkovNetwork.from_generators(dict.fromkeys("ABCDE", 2), "AB/BC/CD/DE/EA")
    rows = np.random.default_rng(4).integers(2, size=(200, 5))
    method = mf.methods.BayesianProportionalFitting(prior=2.0, draws=800)
    made = mf.fit(net, rows, method, rng=5)
    posterior = made.fit_report.details.posterior
    assert len(posterior.hull.cliques) > 1
    drawn = posterior.joint().sum(axis=(3, 4, 5))
    wanted = (margin(np.histogramdd(rows, bins=[2] * 5)[0], (0, 1)) + 0.5) / 202
    error = drawn.std(axis=0) / np.sqrt(posterior.effective_sample_size / 4)
    assert (np.abs(drawn.mean(axis=0) - wanted) < 6 * error).all()


def test_structural_zeros_stay_and_the_mean_sums_to_one():
    net = mf.MarkovNetwork({"A": 3, "B": 3})
    net.add_factor(["A", "B"], 1.0 - np.eye(3))
    counts = np.array([[0.0, 10, 4], [6, 0, 8], [3, 12, 0]])
    states = np.indices((3, 3)).reshape(2, -1)
    data = {"A": states[0], "B": states[1]}
    method = mf.methods.BayesianProportionalFitting(prior=6.0, draws=600)
    made = mf.fit(net, data, method, weights=counts.ravel(), rng=0)
    drawn = made.fit_report.details.posterior.joint()
    assert (drawn[:, np.arange(3), np.arange(3)] == 0).all()
    np.testing.assert_allclose(drawn.mean(axis=0), (counts + 1.0 - np.eye(3)) / 49, atol=0.02)
    assert mf.log_partition(made).log_partition == pytest.approx(0.0, abs=1e-9)
    assert mf.log_partition(made.fit_report.details.posterior.network(7)).log_partition == pytest.approx(0.0, abs=1e-9)


def test_same_seed_same_draws():
    net = mf.MarkovNetwork.from_generators(CARDS, "AB/BC/AC")
    method = mf.methods.BayesianProportionalFitting(draws=10, thinning=2)
    one, two = (mf.fit(net, data_of(COUNTS), method, weights="n", rng=9).fit_report for _ in range(2))
    np.testing.assert_array_equal(one.details.posterior.log_factors, two.details.posterior.log_factors)
    assert one.guarantee == "approximate" and len(one.details.posterior) == 40


def test_settings():
    with pytest.raises(mf.ModelError, match="prior"):
        mf.methods.BayesianProportionalFitting(prior=0.0)
