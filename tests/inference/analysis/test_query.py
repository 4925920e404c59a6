"""Queries: joint and conditional posteriors against the oracle, and the pruning behind them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from tests.strategies import specs_with_evidence

METHODS = ["auto", "enumeration", "junction_tree", "variable_elimination"]


def sprinkler() -> mf.BayesianNetwork:
    net = mf.BayesianNetwork({"rain": ["no", "yes"], "sprinkler": 2, "wet": ["dry", "damp", "soaked"], "slip": 2})
    net.add_cpt("rain", [], [0.8, 0.2])
    net.add_cpt("sprinkler", ["rain"], [[0.6, 0.4], [0.99, 0.01]])
    table = [[[0.9, 0.1, 0.0], [0.2, 0.5, 0.3]], [[0.1, 0.4, 0.5], [0.0, 0.1, 0.9]]]
    net.add_cpt("wet", ["rain", "sprinkler"], table)
    net.add_cpt("slip", ["wet"], [[0.99, 0.01], [0.8, 0.2], [0.4, 0.6]])
    return net


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["bayesian", "graph"])
@settings(max_examples=25, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**31))
def test_joints_agree_with_the_oracle(method: str, kind: str, data: st.DataObject, seed: int):
    spec, evidence = data.draw(specs_with_evidence(kind))
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        return
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(spec.n_variables)[: rng.integers(1, 4)].tolist()
    answer = mf.query(spec.build(), [spec.labels[v] for v in chosen], spec.named(evidence), method=method)
    np.testing.assert_allclose(answer.values, oracle.joint(chosen), atol=1e-9)
    assert answer.guarantee == "exact"
    assert answer.variables == tuple(spec.labels[v] for v in chosen)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**31))
def test_conditionals_agree_with_the_oracle(method: str, data: st.DataObject, seed: int):
    spec, evidence = data.draw(specs_with_evidence("bayesian"))
    oracle = spec.oracle(evidence)
    if oracle.impossible or spec.n_variables < 2:
        return
    above, below = np.random.default_rng(seed).permutation(spec.n_variables)[:2].tolist()
    answer = mf.query(spec.build(), spec.labels[below], spec.named(evidence), given=spec.labels[above], method=method)
    joint = oracle.joint([above, below])
    total = joint.sum(axis=1, keepdims=True)
    possible = total[:, 0] > 0
    np.testing.assert_allclose(answer.values[possible], (joint / np.where(total > 0, total, 1))[possible], atol=1e-8)
    assert np.isnan(answer.values[~possible]).all()


def test_only_what_matters_is_kept():
    """Between two observed neighbours of a long chain, three variables are left of ten thousand."""
    n = 10_000
    net = mf.BayesianNetwork(dict.fromkeys(range(n), 2))
    net.add_cpt(0, [], [0.5, 0.5])
    for i in range(1, n):
        net.add_cpt(i, [i - 1], [[0.9, 0.1], [0.3, 0.7]])
    graph = net.compile()
    known = Evidence.parse(graph.structure, {4999: 0, 5001: 1})
    keep = np.zeros(n, bool)
    keep[5000] = True
    problem = JunctionTree().prepare(graph, known, drop_barren=True, drop_separated=True, keep=keep)
    assert np.flatnonzero(problem.structure.cardinalities > 1).tolist() == [5000]
    assert problem.structure.n_factors == 2
    found = mf.query(net, 5000, {4999: 0, 5001: 1}).values
    expected = np.array([0.9 * 0.1, 0.1 * 0.7])
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)


def test_what_is_pruned_is_d_separated():
    """The reduction keeps exactly the unobserved variables that d-separation calls dependent (or ancestors between)."""
    net = sprinkler()
    graph = net.compile()
    known = Evidence.parse(graph.structure, {"wet": "damp"})
    keep = np.array([False, False, False, True])
    problem = JunctionTree().prepare(graph, known, drop_barren=True, drop_separated=True, keep=keep)
    assert np.flatnonzero(problem.structure.cardinalities > 1).tolist() == [3]


def test_virtual_evidence_and_structured_factors():
    net = mf.BayesianNetwork({f"cause {i}": 2 for i in range(30)} | {"effect": 2})
    for i in range(30):
        net.add_cpt(f"cause {i}", [], [0.9, 0.1])
    net.add_noisy_or("effect", [f"cause {i}" for i in range(30)], [0.3] * 30, leak=0.01)
    found = mf.query(net, "cause 3", {"effect": 0}).values
    off = np.array([0.9, 0.1 * 0.7])
    np.testing.assert_allclose(found, off / off.sum(), rtol=1e-12)
    soft = mf.query(net, "cause 3", {"cause 3": [1.0, 4.0]}).values
    np.testing.assert_allclose(soft, [0.9 / 1.3, 0.4 / 1.3], rtol=1e-12)


def test_the_answer_reads_well():
    answer = mf.query(sprinkler(), ["wet"], {"slip": 1}, given=["rain"])
    text = repr(answer)
    assert text.startswith("P(wet | rain), exact")
    assert "yes   soaked" in text
    assert answer.probability({"rain": "yes", "wet": "dry"}) == pytest.approx(answer.values[1, 0])
    assert "<table>" in answer._repr_html_()
    assert mf.query(sprinkler(), "wet").mode == {"wet": "dry"}
    assert mf.query(sprinkler(), "rain").entropy == pytest.approx(-(0.8 * np.log(0.8) + 0.2 * np.log(0.2)))
    assert dict(mf.query(sprinkler(), "rain").items()) == {("no",): pytest.approx(0.8), ("yes",): pytest.approx(0.2)}
    with pytest.raises(mf.ModelError, match="depends on what is given"):
        _ = answer.mode


def test_bad_queries():
    net = sprinkler()
    with pytest.raises(mf.ModelError, match="did you mean 'rain'"):
        mf.query(net, "rian")
    with pytest.raises(mf.ModelError, match="named twice"):
        mf.query(net, ["rain", "rain"])
    with pytest.raises(mf.ModelError, match="at least one target"):
        mf.query(net, [])
    with pytest.raises(mf.ModelError, match="has no state 'wet'"):
        mf.query(net, "rain", {"wet": "wet"})
    with pytest.raises(mf.ImpossibleEvidenceError, match="probability zero"):
        mf.query(net, "rain", {"wet": "soaked", "sprinkler": 0, "rain": "no"})
    with pytest.raises(mf.ModelError, match="needs a state for each"):
        mf.query(net, ["rain", "slip"]).probability({"rain": "no"})
