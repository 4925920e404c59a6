"""Every registered approximate method keeps its word: bounds hold, answers are distributions, scores are scores.

A new method is tested by being registered. What it promises is in its answer: the guarantee, the bounds, the gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.registry import methods
from tests.oracle import Oracle
from tests.strategies import Spec, specs_with_evidence

KINDS = pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
EXAMPLES = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SLACK = 1e-7


def approximate(verb: str) -> list[str]:
    """Methods that are not exact and take any model; what draws is in tests/test_monte_carlo.py."""
    return sorted(
        name
        for name, method in methods(verb).items()
        if not method.exact and not hasattr(method, "needs") and "sample" not in method.verbs
    )


def ask(verb: str, method: str, spec: Spec, evidence: Mapping[int, Any], kind: str, **settings: Any) -> Any:
    """The answer, or None where the method says that it does not take the model (never for a forest)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge.*")
        try:
            return getattr(mf, verb)(spec.build(), evidence=spec.named(evidence), method=method, **settings)
        except mf.ModelError:
            if kind == "forest":
                raise
            return None


def slack(oracle: Oracle) -> float:
    return SLACK * (1.0 + abs(oracle.log_partition))


def check_partition(answer: Any, oracle: Oracle) -> None:
    low, high = answer.log_partition_bounds
    true, room = oracle.log_partition, slack(oracle)
    assert low <= true + room and high >= true - room, (low, true, high)
    assert not np.isnan(answer.log_partition)
    if answer.guarantee == "exact":
        assert answer.log_partition == pytest.approx(true, abs=room)
    elif answer.guarantee == "upper":
        assert answer.log_partition >= true - room
    elif answer.guarantee == "lower":
        assert answer.log_partition <= true + room
    else:
        assert answer.guarantee == "approximate"


@KINDS
@pytest.mark.parametrize("method", approximate("log_partition"))
@EXAMPLES
@given(data=st.data())
def test_bounds_of_log_z_hold(method: str, kind: str, data: st.DataObject):
    spec, evidence = data.draw(specs_with_evidence(kind))
    oracle = spec.oracle(evidence)
    try:
        answer = ask("log_partition", method, spec, evidence, kind)
    except mf.ImpossibleEvidenceError:
        assert oracle.impossible
        return
    if answer is None:
        return
    if oracle.impossible:
        assert answer.log_partition_bounds[0] == -np.inf
    else:
        check_partition(answer, oracle)


@KINDS
@pytest.mark.parametrize("method", approximate("marginals"))
@EXAMPLES
@given(data=st.data())
def test_marginals_are_distributions(method: str, kind: str, data: st.DataObject):
    spec, evidence = data.draw(specs_with_evidence(kind))
    oracle = spec.oracle(evidence)
    try:
        answer = ask("marginals", method, spec, evidence, kind)
    except mf.ImpossibleEvidenceError:
        assert oracle.impossible
        return
    if answer is None or oracle.impossible:
        return
    check_partition(answer, oracle)
    assert answer.method == method and isinstance(answer.converged, bool) and answer.iterations >= 0
    for v, label in enumerate(spec.labels):
        p = answer[label]
        assert (p >= 0).all() and p.sum() == pytest.approx(1.0, abs=1e-9)
        if answer.guarantee == "exact":
            np.testing.assert_allclose(p, oracle.marginal(v), atol=1e-7)
        given_state = evidence.get(v)
        if given_state is not None and np.ndim(given_state) == 0:
            assert p[given_state] == pytest.approx(1.0)


@KINDS
@pytest.mark.parametrize("method", approximate("decode"))
@EXAMPLES
@given(data=st.data())
def test_decodings_are_scored_and_bounded(method: str, kind: str, data: st.DataObject):
    spec, evidence = data.draw(specs_with_evidence(kind))
    oracle = spec.oracle(evidence)
    try:
        answer = ask("decode", method, spec, evidence, kind)
    except mf.ImpossibleEvidenceError:
        assert oracle.impossible
        return
    if answer is None or oracle.impossible:
        return
    score = oracle.score(spec.states(answer.assignment))
    if np.isfinite(score) or np.isfinite(answer.score):
        assert answer.score == pytest.approx(score, abs=slack(oracle))
    assert answer.upper_bound >= oracle.best_score - slack(oracle)
    if answer.optimal:
        assert answer.score == pytest.approx(oracle.best_score, abs=slack(oracle))


@pytest.mark.parametrize("method", approximate("marginals"))
def test_same_seed_same_answer_and_nothing_is_changed(method: str):
    spec_graph = mf.MarkovNetwork(dict.fromkeys(range(9), 3))
    rng = np.random.default_rng(3)
    for a in range(9):
        for b in range(a + 1, 9):
            if rng.random() < 0.4:
                spec_graph.add_factor([a, b], log_table=rng.normal(size=(3, 3)))
    graph = spec_graph.compile()
    before = graph.log_tables.copy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge.*")
        answers = [mf.marginals(graph, {0: 1}, method=method, rng=4, n_jobs=n) for n in (1, 2, 2)]
    np.testing.assert_array_equal(answers[1].values, answers[2].values)
    np.testing.assert_array_equal(answers[0].values, answers[1].values)
    assert answers[0].log_partition == answers[1].log_partition
    np.testing.assert_array_equal(graph.log_tables, before)
