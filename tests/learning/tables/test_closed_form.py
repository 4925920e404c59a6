from __future__ import annotations

import math

import numpy as np
import pytest

import markovfield as mf

CARDS = {"A": 2, "B": 3, "C": 2, "D": 2}
ROWS = np.random.default_rng(0).integers(0, [2, 3, 2, 2], (60, 4))
DATA = dict(zip("ABCD", ROWS.T, strict=True))


@pytest.mark.parametrize("generators", ["AB/BC/CD", "ABC/BCD", "A/B/C/D", "CBA/D", "ABCD", "AB/D"])
def test_equals_proportional_fitting(generators):
    net = mf.MarkovNetwork.from_generators(CARDS, generators)
    one, other = mf.fit(net, DATA, "closed_form"), mf.fit(net, DATA, "ipf")
    np.testing.assert_allclose(mf.learning.fitted_table(one), mf.learning.fitted_table(other), atol=1e-12)
    assert one.fit_report.log_likelihood == pytest.approx(other.fit_report.log_likelihood)
    assert one.fit_report.n_parameters == other.fit_report.n_parameters
    assert one.fit_report.details.goodness_of_fit.deviance == pytest.approx(
        other.fit_report.details.goodness_of_fit.deviance, abs=1e-8
    )


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        ("AB/BC/CD/DA", "the cycle A - B - C - D - A has no chord"),
        ("AB/BC/CA/D", r"\['A', 'B', 'C'\] is a clique of its graph and no factor's scope"),
    ],
)
def test_others_are_refused(generators, message):
    net = mf.MarkovNetwork.from_generators(CARDS, generators)
    assert not mf.methods.ClosedForm.applies(net)
    with pytest.raises(mf.ModelError, match=message):
        mf.fit(net, DATA, "closed_form")


def test_structural_zeros_are_refused():
    net = mf.MarkovNetwork({"A": 2, "B": 3})
    net.add_factor(["A", "B"], [[1.0, 0, 1], [1, 1, 1]])
    with pytest.raises(mf.ModelError, match="structural zeros"):
        mf.fit(net, {"A": [0], "B": [0]}, "closed_form")


def test_prior_must_be_positive():
    with pytest.raises(mf.ModelError, match="prior of ClosedForm must be positive"):
        mf.methods.ClosedForm(prior=0.0)


def test_marginal_likelihood_is_a_product_of_predictions():
    """The chain rule: each row is predicted by the posterior mean after those before it."""
    net = mf.MarkovNetwork.from_generators(CARDS, "AB/BC/D")
    method = mf.methods.ClosedForm(prior=3.0)
    told = mf.fit(net, DATA, method).fit_report.details.posterior.log_marginal_likelihood
    total = -math.log(24.0)  # before any row, all cells are alike
    for i in range(1, 12):
        rows = {v: c[:i] for v, c in DATA.items()}
        total += float(np.log(mf.learning.fitted_table(mf.fit(net, rows, method))[tuple(ROWS[i])]))
    first = {v: c[:12] for v, c in DATA.items()}
    assert mf.fit(net, first, method).fit_report.details.posterior.log_marginal_likelihood == pytest.approx(total)
    assert told < total


def test_a_variable_in_no_generator_is_uniform_in_the_marginal_likelihood():
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 4}, "A")
    made = mf.fit(net, {"A": [0, 1], "B": [0, 1]}, mf.methods.ClosedForm(prior=2.0))
    assert made.fit_report.details.posterior.log_marginal_likelihood == pytest.approx(math.log(1 / 6) - 2 * math.log(4))


def test_draws_have_the_mean_and_the_spread_of_the_posterior():
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 3}, "AB")
    made = mf.fit(net, {v: DATA[v] for v in "AB"}, mf.methods.ClosedForm(prior=6.0))
    posterior = made.fit_report.details.posterior
    drawn = np.array([mf.learning.fitted_table(d) for d in posterior.draw(2000, rng=1)])
    mean = mf.learning.fitted_table(made)
    spread = np.sqrt(mean * (1 - mean) / 67.0)  # of a Dirichlet distribution of weight 66
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * spread.max() / math.sqrt(2000))
    np.testing.assert_allclose(drawn.std(axis=0), spread, rtol=0.12)
    assert "hyper-Dirichlet prior worth 6 rows" in made.fit_report.notes[0]


def test_draws_of_several_cliques_sum_to_one():
    net = mf.MarkovNetwork.from_generators(CARDS, "AB/BC/CD")
    posterior = mf.fit(net, DATA, mf.methods.ClosedForm(prior=1.0)).fit_report.details.posterior
    for drawn in posterior.draw(3, rng=0):
        assert mf.log_partition(drawn).log_partition == pytest.approx(0.0, abs=1e-12)
