"""Mutual information, value of information and sensitivity, each against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.strategies import specs_with_evidence


def information(joint: np.ndarray) -> float:
    total = 0.0
    a, b = joint.sum(axis=1), joint.sum(axis=0)
    for i, j in itertools.product(range(len(a)), range(len(b))):
        if joint[i, j] > 0:
            total += joint[i, j] * np.log(joint[i, j] / (a[i] * b[j]))
    return total


@settings(max_examples=30, deadline=None)
@given(case=specs_with_evidence("bayesian"), seed=st.integers(0, 2**31))
def test_mutual_information_agrees_with_the_oracle(case, seed: int):
    spec, evidence = case
    oracle = spec.oracle(evidence)
    free = [v for v in range(spec.n_variables) if not (v in evidence and np.ndim(evidence[v]) == 0)]
    if oracle.impossible or len(free) < 2:
        return
    target = free[seed % len(free)]
    ranking = mf.analysis.mutual_information(spec.build(), spec.labels[target], evidence=spec.named(evidence))
    assert set(ranking.values) == {spec.labels[v] for v in free if v != target}
    for name, value in ranking:
        joint = oracle.joint([target, spec.labels.index(name)])
        assert value == pytest.approx(information(joint), abs=1e-8)
    values = [value for _, value in ranking]
    assert values == sorted(values, reverse=True)


@settings(max_examples=30, deadline=None)
@given(case=specs_with_evidence("bayesian"), seed=st.integers(0, 2**31))
def test_value_of_information_agrees_with_the_oracle(case, seed: int):
    spec, evidence = case
    oracle = spec.oracle(evidence)
    free = [v for v in range(spec.n_variables) if not (v in evidence and np.ndim(evidence[v]) == 0)]
    if oracle.impossible or len(free) < 2:
        return
    rng = np.random.default_rng(seed)
    target, other = rng.permutation(free)[:2].tolist()
    utility = rng.normal(size=(3, spec.cardinalities[target]))
    ranking = mf.analysis.value_of_information(
        spec.build(), spec.labels[target], utility, [spec.labels[other]], spec.named(evidence)
    )
    joint = oracle.joint([target, other])
    now = max(float(u @ joint.sum(axis=1)) for u in utility)
    later = sum(max(float(u @ column) for u in utility) for column in joint.T)
    assert ranking[spec.labels[other]] == pytest.approx(later - now, abs=1e-8)
    assert later - now >= -1e-12


def moved(table: np.ndarray, at: tuple[int, ...], value: float) -> np.ndarray:
    """The table with one entry set and the rest of its row in proportion."""
    result = table.copy()
    row = at[:-1]
    rest = 1.0 - table[at]
    if rest > 0:
        result[row] = table[row] * (1.0 - value) / rest
    else:
        result[row] = (1.0 - value) / (table.shape[-1] - 1)
    result[at] = value
    return result


@settings(max_examples=40, deadline=None)
@given(case=specs_with_evidence("bayesian", virtual=False), seed=st.integers(0, 2**31))
def test_sensitivity_is_what_changing_the_table_does(case, seed: int):
    spec, evidence = case
    free = [v for v in range(spec.n_variables) if v not in evidence]
    if spec.oracle(evidence).impossible or not free:
        return
    rng = np.random.default_rng(seed)
    target = int(rng.choice(free))
    state = int(rng.integers(spec.cardinalities[target]))
    net = spec.build()
    found = mf.analysis.sensitivity(net, spec.named({target: state}), spec.named(evidence))
    assert found.probability == pytest.approx(spec.oracle(evidence).marginal(target)[state], abs=1e-9)
    v = int(rng.integers(spec.n_variables))
    name = spec.labels[v]
    if spec.cardinalities[v] < 2:
        return
    table = net.cpt(name)
    at = tuple(int(rng.integers(n)) for n in table.shape)
    parents = net.parents(name)
    curve = found.curve(name, at[-1], dict(zip(parents, at[:-1], strict=True)))
    assert curve.value == pytest.approx(table[at], abs=1e-12)
    for value in (0.15, 0.6, 0.93):
        changed = net.copy()
        changed.add_cpt(name, list(parents), moved(table, at, value))
        try:
            expected = mf.query(changed, spec.labels[target], spec.named(evidence), method="enumeration")
        except mf.ImpossibleEvidenceError:
            continue
        assert float(curve(value)) == pytest.approx(expected.values[state], abs=1e-7)
    # The derivative is the slope of the curve where the table stands.
    if 1e-3 < table[at] < 1 - 1e-3:
        step = 1e-5
        slope = float(curve(table[at] + step) - curve(table[at] - step)) / (2 * step)
        assert found.derivatives[name][at] == pytest.approx(slope, rel=1e-3, abs=1e-5)


def test_the_most_telling_entries_come_first():
    net = mf.datasets.diagnosis_network()
    target = net.variables[0]
    found = mf.analysis.sensitivity(net, {target: net.states(target)[0]})
    top = found.top(5)
    sizes = [abs(entry.derivative) for entry in top]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == pytest.approx(max(np.abs(d).max() for d in found.derivatives.values()))
    assert set(top[0].given) == set(net.parents(top[0].variable))


def test_an_event_that_cannot_happen_yet_can_be_made_possible():
    net = mf.BayesianNetwork({"a": 2, "b": 2})
    net.add_cpt("a", [], [1.0, 0.0])
    net.add_cpt("b", ["a"], [[1.0, 0.0], [0.0, 1.0]])
    found = mf.analysis.sensitivity(net, {"b": 1})
    assert found.probability == 0.0
    assert found.derivatives["a"][1] == pytest.approx(1.0)
    assert found.curve("a", 1)(0.25) == pytest.approx(0.25)


def test_beside_a_noisy_or_the_tables_still_answer():
    net = mf.BayesianNetwork({"a": 2, "b": 2, "c": 2})
    net.add_cpt("a", [], [0.7, 0.3])
    net.add_cpt("b", [], [0.6, 0.4])
    net.add_noisy_or("c", ["a", "b"], [0.8, 0.5], leak=0.1)
    plain = net.copy()
    plain.add_cpt("c", ["a", "b"], net.cpt("c"))
    found, expected = (mf.analysis.sensitivity(n, {"a": 1}, {"c": 1}) for n in (net, plain))
    assert set(found.derivatives) == {"a", "b"}
    for v in ("a", "b"):
        np.testing.assert_allclose(found.derivatives[v], expected.derivatives[v], atol=1e-9)
    with pytest.raises(mf.ModelError, match="'c' has no table of entries"):
        found.curve("c", 0, {"a": 0, "b": 0})


def test_bad_questions():
    net = mf.BayesianNetwork({"a": 2, "b": 2})
    net.add_cpt("a", [], [0.5, 0.5])
    net.add_cpt("b", ["a"], [[0.5, 0.5], [0.1, 0.9]])
    with pytest.raises(mf.ModelError, match="is observed"):
        mf.analysis.mutual_information(net, "a", evidence={"a": 0})
    with pytest.raises(mf.ModelError, match="among the variables"):
        mf.analysis.mutual_information(net, "a", ["a"])
    with pytest.raises(mf.ModelError, match="not in the ranking"):
        mf.analysis.mutual_information(net, "a")["a"]
    with pytest.raises(mf.ModelError, match=r"\[actions, 2\]"):
        mf.analysis.value_of_information(net, "a", [1.0, 2.0])
    with pytest.raises(mf.ModelError, match="needs an event"):
        mf.analysis.sensitivity(net, {})
    with pytest.raises(mf.ModelError, match="in the event and in the evidence"):
        mf.analysis.sensitivity(net, {"a": 0}, {"a": 1})
    with pytest.raises(mf.ModelError, match="state for each of its parents"):
        mf.analysis.sensitivity(net, {"a": 0}).curve("b", 0)
    with pytest.raises(mf.ModelError, match="from 0 to 1"):
        mf.analysis.sensitivity(net, {"a": 0}).curve("a", 0)(1.5)
    markov = mf.MarkovNetwork({"a": 2})
    markov.add_factor(["a"], [1.0, 2.0])
    with pytest.raises(mf.ModelError, match="needs a Bayesian network"):
        mf.analysis.sensitivity(markov, {"a": 0})
