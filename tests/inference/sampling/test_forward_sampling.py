"""Samplers of directed models: what they draw, weigh and refuse. Conformance tests compare them with the oracle too."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.sampling.forward import AncestralSampling, LikelihoodWeighting, RejectionSampling
from tests.data import data_path
from tests.strategies import random_evidence, random_spec

METHODS = [AncestralSampling(), RejectionSampling(), LikelihoodWeighting()]


@pytest.fixture
def net() -> mf.BayesianNetwork:
    net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"], "cold": 3})
    net.add_cpt("wet", ["rain", "cold"], np.array([[[9, 1], [8, 2], [7, 3]], [[2, 8], [1, 9], [0, 10]]]) / 10)
    net.add_cpt("rain", [], [0.8, 0.2])
    net.add_cpt("cold", ["rain"], [[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    return net


def agrees(answer: mf.Samples, exact: mf.Marginals) -> None:
    """Every estimated probability lies within five standard errors."""
    for variable in exact:
        found, errors = answer.frequencies(variable)
        assert (np.abs(found - exact[variable]) <= 5 * errors + 1e-12).all(), variable


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_without_evidence(net: mf.BayesianNetwork, method):
    answer = mf.sample(net, 50_000, method=method, rng=3)
    agrees(answer, mf.marginals(net))
    assert answer.method == method.name and len(answer) == 50_000
    # States of probability zero are never drawn.
    assert not ((answer["rain"] == "no") & (answer["cold"] == 2)).any()


@pytest.mark.parametrize("evidence", [{"wet": "yes"}, {"wet": "yes", "cold": [0.1, 0.0, 0.6]}, {"rain": "yes"}])
@pytest.mark.parametrize("method", METHODS[1:], ids=lambda m: m.name)
def test_with_evidence(net: mf.BayesianNetwork, method, evidence: dict):
    agrees(mf.sample(net, 50_000, evidence, method=method, rng=5), mf.marginals(net, evidence))


def test_weights_are_the_probability_of_the_evidence_given_its_parents(net: mf.BayesianNetwork):
    answer = mf.sample(net, 200, {"wet": "yes", "cold": [0.5, 1.0, 0.25]}, method=LikelihoodWeighting(), rng=1)
    rain, cold = answer.states[:, 0], answer.states[:, 2]
    np.testing.assert_allclose(
        np.exp(answer.log_weights), net.cpt("wet")[rain, cold, 1] * np.array([0.5, 1.0, 0.25])[cold]
    )
    np.testing.assert_allclose(answer.weights, np.exp(answer.log_weights) / np.exp(answer.log_weights).sum())
    assert answer.guarantee == "approximate"
    assert answer.effective_sample_size == pytest.approx(1 / (answer.weights**2).sum())
    assert 1 <= answer.effective_sample_size < 200


@pytest.mark.parametrize("seed", range(12))
def test_the_mean_weight_estimates_the_probability_of_the_evidence(seed: int):
    spec = random_spec(seed + 300, "bayesian")
    evidence = random_evidence(seed, spec)
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        with pytest.raises(mf.ModelError, match="agrees with the evidence"):
            mf.sample(spec.build(), 500, spec.named(evidence), method=LikelihoodWeighting(), rng=0)
        return
    answer = mf.sample(spec.build(), 20_000, spec.named(evidence), method=LikelihoodWeighting(), rng=0)
    weights = np.exp(answer.log_weights)
    error = weights.std() / np.sqrt(len(weights))
    assert weights.mean() == pytest.approx(np.exp(oracle.log_partition), abs=5 * error + 1e-12)


def test_unweighted_frequencies(net: mf.BayesianNetwork):
    answer = mf.sample(net, 1000, method=AncestralSampling(), rng=0)
    assert answer.log_weights is None and answer.effective_sample_size == pytest.approx(1000)
    found, errors = answer.frequencies("cold")
    np.testing.assert_allclose(found, np.bincount(answer.states[:, 2], minlength=3) / 1000)
    np.testing.assert_allclose(errors, np.sqrt(found * (1 - found) / 1000))
    nothing = mf.sample(net, 0, method=LikelihoodWeighting(), rng=0)
    assert nothing.effective_sample_size == 0 and nothing.weights.shape == (0,)
    with pytest.raises(mf.ModelError, match="no samples to estimate the probabilities of 'cold'"):
        nothing.frequencies("cold")


def test_what_is_refused(net: mf.BayesianNetwork):
    with pytest.raises(
        mf.ModelError, match=r"takes no evidence: take rejection, likelihood_weighting or junction_tree"
    ):
        mf.sample(net, 10, {"wet": "yes"}, method=AncestralSampling())
    other = mf.MarkovNetwork({"A": 2, "B": 2})
    other.add_factor(["A", "B"], [[3, 1], [1, 3]])
    for method in METHODS:
        with pytest.raises(mf.ModelError, match=r"needs a directed model, .*take junction_tree"):
            mf.sample(other, 10, method=method)
    with pytest.raises(mf.ModelError, match="max_tries of RejectionSampling must be at least 1, got 0"):
        RejectionSampling(max_tries=0)


def test_marks_that_are_not_those_of_a_directed_model():
    from markovfield.factors.structure import Structure

    two = Structure.from_arrays([2, 2], [0, 2, 4], [0, 1, 0, 1], [0, 0], n_cells=4, child=[0, 1])
    with pytest.raises(mf.ModelError, match="no cycle"):
        mf.sample(mf.FactorGraph(two, np.log(np.full(4, 0.5))), 10, method=AncestralSampling())
    one = Structure.from_arrays([2], [0, 1], [0], [0], n_cells=2, child=[0])
    with pytest.raises(mf.ModelError, match="rows that sum to one"):
        mf.sample(mf.FactorGraph(one, np.log([1.0, 2.0])), 10, method=AncestralSampling())


def test_improbable_evidence(net: mf.BayesianNetwork):
    net.add_cpt("rain", [], [1 - 1e-5, 1e-5])
    with pytest.raises(
        mf.ModelError, match=r"kept \d of 20000 draws, a rate of .*, and 100 were asked for: the evidence"
    ):
        mf.sample(net, 100, {"rain": "yes"}, method=RejectionSampling(max_tries=20_000), rng=0)
    impossible = {"rain": "no", "cold": 2}
    with pytest.raises(mf.ModelError, match="kept 0 of 5000 draws"):
        mf.sample(net, 1, impossible, method=RejectionSampling(max_tries=5000), rng=0)
    with pytest.raises(mf.ModelError, match="none of the 50 samples of likelihood weighting agrees with the evidence"):
        mf.sample(net, 50, impossible, method=LikelihoodWeighting(), rng=0)
    assert len(mf.sample(net, 5, {"rain": "yes"}, method=LikelihoodWeighting(), rng=0)) == 5


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_the_number_of_threads_changes_nothing(net: mf.BayesianNetwork, method):
    evidence = {} if method.name == "ancestral" else {"wet": "yes"}
    one, four = (mf.sample(net, 20_000, evidence, method=method, rng=11, n_jobs=jobs) for jobs in (1, 4))
    np.testing.assert_array_equal(one.states, four.states)
    other = mf.sample(net, 20_000, evidence, method=method, rng=12)
    assert (other.states != one.states).any()
    # No shard repeats another.
    assert (one.states[:4096] != one.states[4096:8192]).any()


@pytest.mark.parametrize("cardinality", [17, 18, 40])
def test_variables_of_many_states(cardinality: int):
    """Long rows are searched by halves."""
    table = np.random.default_rng(cardinality).dirichlet(np.full(cardinality, 0.3), 2)
    table[:, [0, 5, -1]] = 0.0
    net = mf.BayesianNetwork({"a": 2, "b": cardinality})
    net.add_cpt("a", [], [0.4, 0.6])
    net.add_cpt("b", ["a"], table / table.sum(axis=1, keepdims=True))
    answer = mf.sample(net, 30_000, method=AncestralSampling(), rng=2)
    agrees(answer, mf.marginals(net))
    assert not np.isin(answer["b"], [0, 5, cardinality - 1]).any()


@pytest.mark.parametrize("evidence", [None, {"y": 2}, {"y": 1, "x1": 1}, {"y": [0.2, 0.5, 1.0]}])
def test_noisy_max(evidence: dict | None):
    rng = np.random.default_rng(4)
    net = mf.BayesianNetwork({**{f"x{i}": 2 + i % 2 for i in range(4)}, "y": 3, "z": 2})
    for i in range(4):
        net.add_cpt(f"x{i}", [], rng.dirichlet(np.ones(2 + i % 2)))
    net.add_noisy_max("y", [f"x{i}" for i in range(4)], [rng.dirichlet(np.ones(3), 2 + i % 2) for i in range(4)])
    net.add_cpt("z", ["y"], rng.dirichlet(np.ones(2), 3))
    exact = mf.marginals(net, evidence)
    for method in METHODS if evidence is None else METHODS[1:]:
        agrees(mf.sample(net, 40_000, evidence, method=method, rng=6), exact)


def test_an_observed_noisy_or_weighs_by_its_own_probability():
    """Contributions drawn at random would nearly never agree with a rare child; the closed form always does."""
    net = mf.BayesianNetwork({**dict.fromkeys(range(30), 2), "child": 2})
    for i in range(30):
        net.add_cpt(i, [], [0.5, 0.5])
    net.add_noisy_or("child", range(30), [1e-7] * 30)
    answer = mf.sample(net, 1000, {"child": 1}, method=LikelihoodWeighting(), rng=0)
    on = answer.states[:, :30].sum(axis=1)
    np.testing.assert_allclose(answer.log_weights, np.log(-np.expm1(on * np.log1p(-1e-7))), rtol=1e-9)


def test_alarm():
    net = mf.io.read_bif(data_path("bif", "alarm.bif.gz"))
    answer = mf.sample(net, 100_000, method=AncestralSampling(), rng=0)
    exact = mf.marginals(net)
    z = []
    for v in net.variables:
        found, errors = answer.frequencies(v)
        z += ((found - exact[v]) / errors).tolist()
    assert np.abs(z).max() < 5 and np.std(z) < 1.6


def alarm(probability: float) -> mf.BayesianNetwork:
    """An observation that only a rare cause explains."""
    net = mf.BayesianNetwork({"cause": 2, "sign": 2})
    net.add_cpt("cause", [], [1 - probability, probability])
    net.add_cpt("sign", ["cause"], [[1 - 1e-6, 1e-6], [0.1, 0.9]])
    return net


def test_weights_that_miss_a_rare_cause_are_not_trusted():
    """No row has the cause, so all weigh the same and nothing scatters; the search finds it."""
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match=r"likelihood_weighting has not converged: .*'cause' = 1"):
        drawn = mf.sample(alarm(1e-4), 400, {"sign": 1}, method=mf.methods.LikelihoodWeighting(), rng=0)
    assert not drawn["cause"].any() and not drawn.converged and drawn.monte_carlo.doubts
    with pytest.warns(ConvergenceWarning, match=r"its 3000 samples are worth \d of equal weight|worth [1-9]\.\d+ of"):
        drawn = mf.sample(alarm(1e-3), 3000, {"sign": 1}, method=mf.methods.LikelihoodWeighting(), rng=0)
    assert not drawn.converged
