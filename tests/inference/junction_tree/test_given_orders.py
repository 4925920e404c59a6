"""Elimination orders that a user gives: any order, every question, the same answer."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.strategies import Spec, specs_with_evidence

METHODS = [mf.methods.VariableElimination, mf.methods.JunctionTree]
Case = tuple[Spec, dict]


@pytest.fixture
def net() -> mf.MarkovNetwork:
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_factor(["A", "B"], [[1, 2], [3, 4]])
    net.add_factor(["B", "C"], [[5, 1], [1, 2]])
    return net


@pytest.mark.parametrize("order", list(permutations("ABC")))
@pytest.mark.parametrize("method", METHODS)
def test_every_order_of_a_chain(net: mf.MarkovNetwork, method: type, order: tuple[str, ...]):
    chosen = method(order=order)
    answer = mf.marginals(net, method=chosen)
    np.testing.assert_allclose(answer["A"], [2 / 7, 5 / 7], atol=1e-12)
    assert answer.guarantee == "exact"
    table = mf.query(net, ["A", "C"], method=chosen)
    np.testing.assert_allclose(table.values, mf.query(net, ["A", "C"], method="enumeration").values, atol=1e-12)
    best = mf.decode(net, variables=["B"], method=chosen)
    assert best.optimal and best.score == pytest.approx(np.log(24), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(specs_with_evidence(), st.integers(0, 2**16))
def test_random_orders_and_questions(method: type, case: Case, seed: int):
    spec, evidence = case
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        return
    rng = np.random.default_rng(seed)
    order = tuple(spec.labels[v] for v in rng.permutation(spec.n_variables))
    some = rng.permutation(spec.n_variables)[: rng.integers(1, spec.n_variables + 1)].tolist()
    chosen, known, model = method(order=order), spec.named(evidence), spec.build()
    answer = mf.marginals(model, known, method=chosen)
    for v, label in enumerate(spec.labels):
        np.testing.assert_allclose(answer[label], oracle.marginal(v), atol=1e-9)
    names = [spec.labels[v] for v in some]
    np.testing.assert_allclose(answer.joint(names[:3]), oracle.joint(some[:3]), atol=1e-9)
    best = mf.decode(model, known, variables=names, method=chosen)
    totals = np.log(oracle.joint(some).astype(np.longdouble).max()) + oracle.log_partition
    assert best.optimal and best.score == pytest.approx(float(totals), rel=1e-11, abs=1e-9)
