"""Local search: local optima, hard constraints, starts, stopping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.local_search.annealing import SimulatedAnnealing
from markovfield.inference.local_search.icm import ICM
from markovfield.inference.local_search.tabu import TabuSearch
from tests.strategies import Spec, specs_with_evidence

METHODS = [ICM(), ICM(restarts=3), SimulatedAnnealing(sweeps=40), TabuSearch(steps=60), TabuSearch(steps=60, largest=0)]


@pytest.mark.parametrize("method", METHODS, ids=repr)
@settings(max_examples=25, deadline=None)
@given(case=specs_with_evidence(), seed=st.integers(0, 99))
def test_no_single_change_is_better(method: Any, case: tuple[Spec, dict], seed: int):
    spec, evidence = case
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        return
    try:
        answer = mf.decode(spec.build(), spec.named(evidence), method=method, rng=seed)
    except mf.ModelError:  # no assignment free of hard zeros was found
        assert np.isneginf(oracle.scores).any()
        return
    states = spec.states(answer.assignment)
    score = oracle.score(states)
    assert answer.score == pytest.approx(score, abs=1e-7 * (1 + abs(score))) and np.isfinite(score)
    assert answer.gap == np.inf and not answer.optimal
    for v, card in enumerate(spec.cardinalities):
        for k in range(card):
            other = [*states[:v], k, *states[v + 1 :]]
            assert oracle.score(other) <= score + 1e-7 * (1 + abs(score))


def frustrated(seed: int, n: int = 40) -> Any:
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 3))
    for i in range(n):
        net.add_factor([i], log_table=rng.normal(size=3))
        for j in (i + 1, i + 2):
            if j < n:
                net.add_factor([i, j], log_table=2 * rng.normal(size=(3, 3)))
    return net.compile()


@pytest.mark.parametrize(
    "method", [ICM(restarts=300), SimulatedAnnealing(), TabuSearch(), TabuSearch(largest=0)], ids=repr
)
def test_the_best_of_a_narrow_model_is_found(method: Any):
    """Width two: the junction tree knows the best; each of these finds it from one of three seeds."""
    graph = frustrated(1)
    best = mf.decode(graph, method="junction_tree").score
    assert max(mf.decode(graph, method=method, rng=seed).score for seed in range(3)) == pytest.approx(best)


def test_search_goes_through_what_is_ruled_out():
    """All different on five variables of five states: no single change of a solution is a solution."""
    net = mf.MarkovNetwork(dict.fromkeys(range(5), 5))
    rng = np.random.default_rng(0)
    apart = np.where(np.eye(5, dtype=bool), -np.inf, 0.0)
    for i in range(5):
        net.add_factor([i], log_table=rng.normal(size=5))
        for j in range(i):
            net.add_factor([i, j], log_table=apart)
    best = mf.decode(net, method="junction_tree").score
    for method in (SimulatedAnnealing(sweeps=400, runs=8, start=3.0), TabuSearch(steps=5000)):
        answer = mf.decode(net, method=method, rng=0)
        assert sorted(answer.assignment.values()) == list(range(5))
        assert answer.score == pytest.approx(best), method


def test_starts_and_seeds():
    graph = frustrated(2)
    best = mf.decode(graph, method="junction_tree")
    assert mf.decode(graph, method="icm", init=best).score == pytest.approx(best.score)
    assert mf.decode(graph, method="icm", init=best.assignment).score == pytest.approx(best.score)
    first, again = (mf.decode(graph, method=SimulatedAnnealing(sweeps=20), rng=5) for _ in range(2))
    np.testing.assert_array_equal(first.states, again.states)
    with pytest.raises(mf.ModelError, match="earlier Decoding or a dict"):
        mf.decode(graph, method="icm", init=3)


def test_stopping_gives_the_best_so_far():
    graph = frustrated(3, 400)
    stopped = mf.decode(graph, method=TabuSearch(steps=10**7), rng=0, time_limit=0.2)
    assert not stopped.converged and np.isfinite(stopped.score)
    stopped = mf.decode(graph, method=SimulatedAnnealing(sweeps=10**6), rng=0, callback=lambda p: p.step > 3)
    assert not stopped.converged and np.isfinite(stopped.score)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ICM(restarts=-1), "restarts of ICM must be at least 0"),
        (lambda: SimulatedAnnealing(sweeps=0), "sweeps of SimulatedAnnealing must be at least 1"),
        (lambda: SimulatedAnnealing(start=-1.0), "start of SimulatedAnnealing must be positive"),
        (lambda: TabuSearch(tenure=0), "tenure of TabuSearch must be at least 1"),
    ],
)
def test_bad_settings(make: Any, match: str):
    with pytest.raises(mf.ModelError, match=match):
        make()


def test_what_local_search_does_not_answer():
    graph = frustrated(4, 5)
    with pytest.raises(mf.ModelError, match="finds one assignment, not the 2 best"):
        mf.decode(graph, method="icm", n_best=2)
    with pytest.raises(mf.ModelError, match="summed out: use junction_tree, or marginal_search"):
        mf.decode(graph, method="icm", variables=[0])


def test_climbs_of_many_pieces_come_to_an_end(monkeypatch: pytest.MonkeyPatch):
    """More variables than one call of the kernel looks at."""
    rng = np.random.default_rng(3)
    model = mf.Ising((30, 30), coupling=0.5, field=rng.normal(size=(30, 30)))
    whole = mf.decode(model, method=ICM())
    monkeypatch.setattr("markovfield.inference.local_search.local_search.CHUNK", 100)
    pieces = mf.decode(model, method=ICM())
    assert whole.converged and pieces.converged
    np.testing.assert_array_equal(whole.states, pieces.states)
    calls: list[float] = []

    def stop(progress: mf.answers.Progress) -> bool:
        calls.append(progress.seconds)
        return len(calls) == 5

    stopped = mf.decode(model, method=ICM(), callback=stop)
    start = mf.decode(model, method=ICM(), callback=lambda progress: True)
    assert not stopped.converged and start.score < stopped.score < whole.score
