"""The strong junction tree against enumeration of all discrete states with a dense Gaussian for each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.inference.strong_junction_tree.mixed_oracle import components, conditioned, random_network


def random_evidence(rng, net):
    found = {v: int(rng.integers(net.cardinality(v))) for v in net.discrete if rng.random() < 0.3}
    return found | {v: float(rng.normal()) for v in net.continuous if rng.random() < 0.4}


def weights_of(parts):
    logs = np.array([p[1] for p in parts])
    top = logs.max()
    return np.exp(logs - top) / np.exp(logs - top).sum(), top + np.log(np.exp(logs - top).sum())


@given(st.integers(0, 100_000), st.integers(0, 3), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_probabilities_moments_and_log_z(seed, n_discrete, n_real):
    rng = np.random.default_rng(seed)
    net = random_network(rng, n_discrete, n_real)
    evidence = random_evidence(rng, net)
    parts = list(conditioned(net, evidence))
    weights, log_z = weights_of(parts)
    answer = mf.marginals(net, evidence)
    assert answer.log_partition == pytest.approx(log_z, abs=1e-9)
    assert float(mf.log_partition(net, evidence)) == pytest.approx(log_z, abs=1e-9)
    for v in net.discrete:
        p = np.zeros(net.cardinality(v))
        np.add.at(p, [part[0][v] for part in parts], weights)
        np.testing.assert_allclose(answer[v], p, atol=1e-9)
    rest = [net.continuous[i] for i in parts[0][4]]
    mean = weights @ np.array([p[2] for p in parts])
    spread = sum(w * (p[3] + np.outer(p[2] - mean, p[2] - mean)) for w, p in zip(weights, parts, strict=True))
    for i, v in enumerate(rest):
        assert answer[v].mean == pytest.approx(mean[i], abs=1e-8)
        assert answer[v].variance == pytest.approx(spread[i, i], abs=1e-8)
    if rest:
        joint = answer.joint(rest)
        np.testing.assert_allclose(joint.covariance, spread, atol=1e-8)
    free = [v for v in net.discrete if v not in evidence]
    if free and rest:
        both = answer.joint([free[0], rest[-1]])
        for state in range(net.cardinality(free[0])):
            share = np.where([p[0][free[0]] == state for p in parts], weights, 0.0)
            assert both.probability[state] == pytest.approx(share.sum(), abs=1e-9)
            middle = share @ np.array([p[2][-1] for p in parts]) / share.sum()
            assert both.mean[state, 0] == pytest.approx(middle, abs=1e-7)
            square = share @ np.array([p[3][-1, -1] + p[2][-1] ** 2 for p in parts]) / share.sum()
            assert both.covariance[state, 0, 0] == pytest.approx(square - middle**2, abs=1e-7)


@given(st.integers(0, 100_000))
@settings(max_examples=20, deadline=None)
def test_mixtures_are_the_densities_themselves(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    evidence = random_evidence(rng, net)
    parts = list(conditioned(net, evidence))
    weights, _ = weights_of(parts)
    answer = mf.marginals(net, evidence)
    grid = np.linspace(-4, 4, 9)
    for i, v in enumerate([net.continuous[i] for i in parts[0][4]]):
        means, variances = np.array([p[2][i] for p in parts]), np.array([p[3][i, i] for p in parts])
        density = np.exp(-0.5 * (grid[:, None] - means) ** 2 / variances) / np.sqrt(2 * np.pi * variances) @ weights
        mixture = answer.mixture(v)
        np.testing.assert_allclose(mixture.density(grid), density, rtol=1e-7, atol=1e-12)
        spread = np.ptp(means) + np.ptp(variances)
        # What is called Gaussian is one; a mixture of equal components may be called a mixture.
        assert answer[v].mixture or spread < 1e-7 or len(parts) == 1
        assert mixture.cumulative(40.0) == pytest.approx(1.0)


@given(st.integers(0, 100_000))
@settings(max_examples=20, deadline=None)
def test_decoding(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    evidence = random_evidence(rng, net)
    parts = list(conditioned(net, evidence))
    # The mode of each Gaussian is its mean: minus half the log-determinant of its covariance remains.
    scores = [
        p[1] - 0.5 * (np.linalg.slogdet(p[3])[1] + len(p[2]) * np.log(2 * np.pi) if len(p[2]) else 0.0) for p in parts
    ]
    best = int(np.argmax(scores))
    found = mf.decode(net, evidence)
    assert found.score == pytest.approx(scores[best], abs=1e-8) and found.optimal and found.gap == 0
    assert all(found[v] == parts[best][0][v] for v in net.discrete)
    for i, v in enumerate([net.continuous[i] for i in parts[0][4]]):
        assert found[v] == pytest.approx(parts[best][2][i], abs=1e-7)
    weights, log_z = weights_of(parts)
    wanted = [v for v in net.discrete if v not in evidence][:2]
    if wanted:
        total: dict[tuple, float] = {}
        for w, p in zip(weights, parts, strict=True):
            key = tuple(p[0][v] for v in wanted)
            total[key] = total.get(key, 0.0) + w
        marginal = mf.decode(net, evidence, variables=wanted)
        key = max(total, key=total.get)
        assert tuple(marginal[v] for v in wanted) == key
        assert marginal.score == pytest.approx(log_z + np.log(total[key]), abs=1e-8)


def test_draws_have_the_moments_and_the_states():
    net = random_network(np.random.default_rng(5))
    evidence = {"x2": 0.5}
    answer, drawn = mf.marginals(net, evidence), mf.sample(net, 20_000, evidence, rng=0)
    assert drawn.guarantee == "exact" and (drawn["x2"] == 0.5).all() and len(drawn.to_frame()) == 20_000
    for v in net.discrete:
        share = np.bincount(drawn[v], minlength=net.cardinality(v)) / len(drawn)
        np.testing.assert_allclose(share, answer[v], atol=5 * np.sqrt(0.25 / 20_000))
    for v in ("x0", "x1"):
        error = np.sqrt(answer[v].variance / 20_000)
        assert abs(drawn[v].mean() - answer[v].mean) < 5 * error
        assert drawn[v].var() == pytest.approx(answer[v].variance, rel=0.15)


def test_likelihoods_and_noise():
    net = random_network(np.random.default_rng(6))
    # A likelihood is an observed child; noise around a number is one too.
    longer = net.copy()
    longer.add_variable("seen", 2)
    longer.add_cpt("seen", ["d0"], np.array([[0.3, 0.7], [0.8, 0.2], [0.5, 0.5]])[: net.cardinality("d0")])
    longer.add_variable("read")
    longer.add_cpd("read", ["x1"], [1.0], variance=0.5)
    expected = mf.marginals(longer, {"seen": 0, "read": 1.5})
    for given_, noise in (({"x1": (1.5, 0.5)}, None), ({"x1": 1.5}, 0.5), ({"x1": 1.5}, {"x1": 0.5})):
        evidence = {"d0": [0.3, 0.8, 0.5][: net.cardinality("d0")], **given_}
        answer = mf.marginals(net, evidence, noise=noise)
        assert answer.log_partition == pytest.approx(expected.log_partition)
        np.testing.assert_allclose(answer["d1"], expected["d1"])
        assert answer["x0"] == pytest.approx(expected["x0"])


def test_probability_of_an_event():
    net = random_network(np.random.default_rng(7), most_states=3)
    evidence = {"x0": 0.3}
    joint = mf.marginals(net, evidence).joint(["d0", "d1"]).probability
    assert mf.probability(net, {"d0": 1, "d1": [0, 1]}, evidence) == pytest.approx(joint[1, :2].sum())
    assert mf.probability(net, {"d0": 1}, {"d0": 0}) == 0.0


def test_a_chain_of_switching_regressions_is_linear_in_its_length():
    """Discrete variables that meet no real-valued ones in common stay apart: the tree is no wider than a pair."""
    net = mf.ConditionalGaussianNetwork({f"s{i}": 2 for i in range(60)})
    for i in range(60):
        net.add_cpt(f"s{i}", [f"s{i - 1}"] if i else [], [[0.9, 0.1], [0.2, 0.8]] if i else [0.5, 0.5])
        net.add_variable(f"y{i}")
        net.add_cpd(f"y{i}", [f"s{i}"], bias=[-1.0, 1.0], variance=1.0)
    rng = np.random.default_rng(0)
    values = rng.normal(size=60)
    answer = mf.marginals(net, {f"y{i}": float(v) for i, v in enumerate(values)})
    forward = np.full(2, 0.5)
    total = 0.0
    for i, v in enumerate(values):
        forward = (forward @ [[0.9, 0.1], [0.2, 0.8]] if i else forward) * np.exp(-0.5 * (v - np.array([-1, 1])) ** 2)
        total += np.log(forward.sum() / np.sqrt(2 * np.pi))
        forward /= forward.sum()
    assert answer.log_partition == pytest.approx(total) and answer.width <= 1
    np.testing.assert_allclose(answer["s59"], forward)


def test_impossible_states_stay_impossible():
    net = mf.ConditionalGaussianNetwork({"a": ["off", "on"], "b": 2, "x": None})
    net.add_cpt("a", [], [0.5, 0.5])
    net.add_cpt("b", ["a"], [[1.0, 0.0], [0.3, 0.7]])
    net.add_cpd("x", ["a", "b"], bias=[[0.0, 100.0], [1.0, 2.0]])
    answer = mf.marginals(net, {"a": "off"})
    assert answer["b"].tolist() == [1.0, 0.0] and answer["x"][:2] == pytest.approx((0.0, 1.0))
    assert answer.probability_of("a", "off") == 1.0 and len(answer.mixture("x")) == 1
    with pytest.raises(mf.ImpossibleEvidenceError, match="'a', 'b' cannot be together"):
        mf.marginals(net, {"a": "off", "b": 1})


def test_what_is_refused():
    net = random_network(np.random.default_rng(8))
    wide = mf.ConditionalGaussianNetwork({f"d{i}": 4 for i in range(20)} | {"x": None})
    for i in range(20):
        wide.add_cpt(f"d{i}", [], np.full(4, 0.25))
        wide.add_variable(f"x{i}")
        wide.add_cpd(f"x{i}", [f"d{i}", *([f"x{i - 1}"] if i else [])], [0.5] * bool(i))
    wide.add_cpd("x", ["x19"], [1.0])
    for call, message in ((lambda: mf.marginals(wide), "above the memory limit: its largest clique has 21 variables"),):
        with pytest.raises(mf.MemoryLimitError, match=message):
            call()
    for call, message in (
        (lambda: mf.marginals(net, {"x0": "high"}), "'x0' must be a finite number, got 'high'"),
        (lambda: mf.marginals(net, {"d0": [1.0]}), "likelihood of variable 'd0' needs"),
        (lambda: mf.marginals(net, {"x0": (1.0, 2.0, 3.0)}), "a pair of number and variance"),
        (lambda: mf.marginals(net, {"x0": (1.0, -2.0)}), "variance of the evidence of 'x0'"),
        (lambda: mf.decode(net, n_best=2), "neither loss nor n_best"),
        (lambda: mf.decode(net, variables=["x0"]), "'x0' is real-valued: its density given the rest"),
        (lambda: mf.marginals(net, init=3), "takes no init"),
        (lambda: mf.marginals(net, method="junction_tree"), "junction_tree"),
        (lambda: mf.marginals(net).mixture("d0"), "'d0' is discrete"),
        (lambda: mf.marginals(net, {"x0": 1.0}).mixture("x0"), "'x0' is known"),
        (lambda: mf.marginals(net, {"x0": 1.0}).joint(["x0", "x1"]), "'x0' is known"),
        (lambda: mf.marginals(net).probability_of("x0", 1), "'x0' is real-valued"),
        (lambda: mf.probability(net, {"x0": 1}), "'x0' is real-valued"),
        (lambda: mf.expected_counts(net, []), "."),
    ):  # fmt: skip
        with pytest.raises((mf.ModelError, AttributeError), match=message):
            call()


def test_explain_tells_the_tree_before_it_is_built():
    net = random_network(np.random.default_rng(10))
    told = mf.explain(net, "marginals", {"x0": 1.0})
    assert told.method == "strong_junction_tree" and told.fits and told.n_free == 5 and told.guarantee == "exact"
    assert told.width == mf.marginals(net, {"x0": 1.0}).width and "real-valued" in repr(told)
    small = mf.explain(net, method=mf.methods.StrongJunctionTree(memory_limit=8))
    assert not small.fits and small.log2_bytes > 3


def test_the_oracle_adds_up():
    net = random_network(np.random.default_rng(9))
    assert np.exp([c[1] for c in components(net)]).sum() == pytest.approx(1.0)
