"""Marginal MAP by local search against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.strategies import Spec, specs_with_evidence


def marginal_score(spec: Spec, evidence: dict, states: dict[int, int]) -> float:
    """log of the sum over the other variables."""
    oracle = spec.oracle(evidence)
    table = oracle.joint(sorted(states))
    with np.errstate(divide="ignore"):
        return float(np.log(table[tuple(states[v] for v in sorted(states))]) + oracle.log_partition)


@settings(max_examples=30, deadline=None)
@given(specs_with_evidence(), st.integers(0, 99))
def test_a_local_optimum_with_its_true_score(case: tuple[Spec, dict], seed: int):
    spec, evidence = case
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.decode(spec.build(), spec.named(evidence), method="marginal_search", rng=0)
        return
    rng = np.random.default_rng(seed)
    sought = sorted(rng.permutation(spec.n_variables)[: rng.integers(1, spec.n_variables + 1)].tolist())[:4]
    names = [spec.labels[v] for v in sought]
    answer = mf.decode(spec.build(), spec.named(evidence), variables=names, method="marginal_search", rng=seed)
    found = {v: int(answer.assignment[spec.labels[v]]) for v in sought}
    score = marginal_score(spec, evidence, found)
    assert answer.score == pytest.approx(score, abs=1e-8 * (1 + abs(score))) and not answer.optimal
    for v in sought:
        for k in range(spec.cardinalities[v]):
            assert marginal_score(spec, evidence, {**found, v: k}) <= score + 1e-7 * (1 + abs(score))


def test_finds_the_best_where_it_is_known():
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(12), 2))
    for i in range(12):
        net.add_factor([i, (i + 1) % 12], log_table=rng.normal(size=(2, 2)))
        net.add_factor([i, (i + 3) % 12], log_table=rng.normal(size=(2, 2)))
    sought = [0, 2, 5, 7, 9]
    exact = mf.decode(net, variables=sought, method="junction_tree")
    found = mf.decode(net, variables=sought, method=mf.MarginalSearch(restarts=10), rng=1)
    assert found.score == pytest.approx(exact.score)
    scores = [
        float(mf.log_partition(net, dict(zip(sought, states, strict=True))))
        for states in itertools.product(range(2), repeat=5)
    ]
    assert max(scores) == pytest.approx(exact.score)


def test_refusals():
    net = mf.MarkovNetwork({0: 2})
    net.add_factor([0], [1.0, 2.0])
    with pytest.raises(mf.ModelError, match="the n best"):
        mf.decode(net, method="marginal_search", n_best=2)
    with pytest.raises(mf.ModelError, match="restarts must be at least 0"):
        mf.MarginalSearch(restarts=-1)
