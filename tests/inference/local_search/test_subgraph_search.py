"""Moves of subgraphs: never worse, exact where everything fits, hard constraints kept, seeds, stopping."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.local_search.subgraph_search import SubgraphMoves, SubgraphSearch
from tests.strategies import Spec, specs_with_evidence

NARROW = SubgraphSearch(steps=30, width=2)


@pytest.mark.parametrize("method", [NARROW, SubgraphSearch(steps=20, width=20)], ids=repr)
@settings(max_examples=40, deadline=None)
@given(case=specs_with_evidence(), seed=st.integers(0, 99))
def test_scores_are_scores_and_claims_are_true(method: SubgraphSearch, case: tuple[Spec, dict], seed: int):
    spec, evidence = case
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        return
    try:
        answer = mf.decode(spec.build(), spec.named(evidence), method=method, rng=seed)
    except mf.ModelError:  # no assignment free of hard zeros was found: only where width keeps it from looking
        assert np.isneginf(oracle.scores).any() and method is NARROW
        return
    room = 1e-7 * (1 + abs(oracle.best_score))
    score = oracle.score(spec.states(answer.assignment))
    assert answer.score == pytest.approx(score, abs=room) and np.isfinite(score)
    assert answer.upper_bound >= oracle.best_score - room
    if method.width == 20:  # wider than these models: one move is the whole of it
        assert answer.optimal and answer.iterations <= 20
    if answer.optimal:
        assert score == pytest.approx(oracle.best_score, abs=room)
    else:
        assert answer.gap == np.inf and answer.guarantee == "lower"


def lattice(side: int, seed: int, states: int = 2, hard: float = 0.0) -> Any:
    """Random pairs, a share ``hard`` of whose cells is ruled out, never that of the assignment of zeros."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork(dict.fromkeys(range(side * side), states))
    for v in range(side * side):
        net.add_factor([v], log_table=0.3 * rng.normal(size=states))
        for u in ([v + 1] if v % side < side - 1 else []) + ([v + side] if v + side < side * side else []):
            table = rng.normal(size=(states, states))
            table[rng.random((states, states)) < hard] = -np.inf
            table[0, 0] = -1.0
            net.add_factor([v, u], log_table=table)
    return net.compile()


@pytest.mark.parametrize(("states", "hard"), [(2, 0.0), (3, 0.0), (3, 0.3)])
def test_a_step_never_worsens_and_zeros_are_kept(states: int, hard: float):
    graph = lattice(12, 5, states, hard)
    evidence = Evidence.parse(graph.structure, {7: 0})
    zeros = np.zeros(144, np.int64)
    moves = SubgraphMoves(graph, evidence, zeros, SubgraphSearch(width=6), np.random.default_rng(0))
    scores = [moves.best_score]
    assert scores[0] == pytest.approx(graph.score(zeros))
    for _ in range(40):
        moves.run(1, Running())
        scores.append(moves.best_score)
        assert moves.best_score == pytest.approx(graph.score(moves.best)) and moves.best[7] == 0
    assert scores == sorted(scores) and scores[-1] > scores[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_frustrated_lattices_is_found(seed: int):
    """Tables of 64 cells where exact elimination needs 2^14, and the best all the same."""
    graph = lattice(14, seed)
    best = mf.decode(graph, method="junction_tree")
    answer = mf.decode(graph, method=SubgraphSearch(steps=1500, width=6), rng=seed)
    assert answer.score == pytest.approx(best.score) and not answer.optimal
    assert mf.decode(graph, method=SubgraphSearch(steps=3), init=best, rng=0).score == pytest.approx(best.score)


def test_a_start_that_breaks_constraints_is_repaired():
    """A colouring of a lattice from one colour everywhere, and all different on five variables."""
    net = mf.MarkovNetwork(dict.fromkeys(range(100), 3))
    apart = np.where(np.eye(3, dtype=bool), -np.inf, 0.0)
    for v in range(100):
        net.add_factor([v], log_table=[0.5, 0.0, 0.0])
        if v % 10 < 9:
            net.add_factor([v, v + 1], log_table=apart)
        if v < 90:
            net.add_factor([v, v + 10], log_table=apart)
    start = dict.fromkeys(range(100), 0)
    answer = mf.decode(net, method=SubgraphSearch(steps=200, width=5), init=start, rng=0)
    assert answer.score == pytest.approx(25.0)


def test_structured_factors():
    """At most three of twelve are on; the auxiliary variables are found from the start."""
    rng = np.random.default_rng(2)
    net = mf.MarkovNetwork(dict.fromkeys(range(12), 2))
    for v in range(12):
        net.add_factor([v], log_table=rng.normal(size=2))
        net.add_factor([v, (v + 1) % 12], log_table=rng.normal(size=(2, 2)))
    net.add_cardinality([0.0] * 4 + [-np.inf] * 9, dict.fromkeys(range(12), 1))
    graph = net.compile()
    best = mf.decode(graph, method="junction_tree")
    start = mf.decode(graph, method="icm", init=dict.fromkeys(range(12), 0))
    for method in (SubgraphSearch(steps=100, width=3), SubgraphSearch(width=14)):
        answers = [mf.decode(graph, method=method, init=start, rng=seed) for seed in range(4)]
        assert max(answer.score for answer in answers) == pytest.approx(best.score)
        for answer in answers:
            assert answer.score == pytest.approx(graph.score(answer.states)) and answer.score >= start.score
            assert answer.optimal == (method.width == 14)


def test_same_seed_same_answer():
    graph = lattice(20, 1, 3)
    first, again, other = (mf.decode(graph, method=SubgraphSearch(steps=20, width=4), rng=s) for s in (5, 5, 6))
    np.testing.assert_array_equal(first.states, again.states)
    assert first.score == again.score and (first.states != other.states).any()
    assert first.iterations == 20 and first.converged and first.method == "subgraph_search"


def test_stopping_gives_the_best_so_far():
    graph = lattice(40, 3, 4)
    start = mf.decode(graph, method="icm")
    endless = SubgraphSearch(steps=10**9)
    stopped = mf.decode(graph, method=endless, rng=0, time_limit=0.3)
    assert not stopped.converged and stopped.score > start.score
    stopped = mf.decode(graph, method=endless, rng=0, callback=lambda p: p.step > 3)
    assert not stopped.converged and np.isfinite(stopped.score)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        stopped = mf.decode(graph, method=endless, rng=0)
    finally:
        timer.cancel()
    assert not stopped.converged and stopped.score > start.score


def test_variables_of_many_states_and_of_one():
    """Two variables of 90 states fit in a table whatever the width; nothing is left to do where all is observed."""
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork({"A": 90, "B": 90, "C": 1, "D": 2})
    for pair, shape in ((["A", "B"], (90, 90)), (["B", "C"], (90, 1)), (["B", "D"], (90, 2))):
        net.add_factor(pair, log_table=rng.normal(size=shape))
    best = mf.decode(net, method="junction_tree").score
    assert mf.decode(net, method=SubgraphSearch(width=1), rng=0).score == pytest.approx(best)
    answer = mf.decode(net, {"A": 3, "B": 4, "D": 1}, method=SubgraphSearch(), rng=0)
    assert answer.optimal and answer.assignment == {"A": 3, "B": 4, "C": 0, "D": 1}


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: SubgraphSearch(steps=0), "steps of SubgraphSearch must be at least 1"),
        (lambda: SubgraphSearch(largest=0), "largest of SubgraphSearch must be at least 1"),
        (lambda: SubgraphSearch(width=0), "width must be from 1 to 20"),
        (lambda: SubgraphSearch(rounds=-1), "rounds of SubgraphSearch must be at least 0"),
    ],
)
def test_bad_settings(make: Any, match: str):
    with pytest.raises(mf.ModelError, match=match):
        make()


def test_what_it_does_not_answer():
    graph = lattice(3, 0)
    with pytest.raises(mf.ModelError, match="finds one assignment, not the 2 best"):
        mf.decode(graph, method=SubgraphSearch(), n_best=2)
    with pytest.raises(mf.ModelError, match="summed out: use junction_tree, or marginal_search"):
        mf.decode(graph, method=SubgraphSearch(), variables=[0])
