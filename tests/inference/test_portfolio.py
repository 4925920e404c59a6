"""Decoding against the clock: the best of several methods, stopped in every way."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import markovfield as mf
from markovfield.inference.portfolio import Portfolio, _Best, _searches
from tests.strategies import Spec, specs_with_evidence


@settings(max_examples=25, deadline=None)
@given(specs_with_evidence())
def test_bounds_bracket_the_best(case: tuple[Spec, dict]):
    spec, evidence = case
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.decode(spec.build(), spec.named(evidence), method=Portfolio(), time_limit=5, rng=0)
        return
    answer = mf.decode(spec.build(), spec.named(evidence), method=Portfolio(), time_limit=5, rng=0)
    room = 1e-7 * (1 + abs(oracle.best_score))
    assert answer.score == pytest.approx(oracle.score(spec.states(answer.assignment)), abs=room)
    assert answer.upper_bound >= oracle.best_score - room and answer.method == "portfolio"
    if answer.optimal:
        assert answer.score == pytest.approx(oracle.best_score, abs=room)


def glass(side: int = 30, states: int = 4) -> Any:
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(side * side), states))
    for v in range(side * side):
        net.add_factor([v], log_table=rng.normal(size=states))
        if v % side < side - 1:
            net.add_factor([v, v + 1], log_table=rng.normal(size=(states, states)))
        if v + side < side * side:
            net.add_factor([v, v + side], log_table=rng.normal(size=(states, states)))
    return net.compile()


def test_auto_keeps_to_the_time():
    graph = glass()
    started = time.perf_counter()
    answer = mf.decode(graph, time_limit=2.0, rng=0)
    assert time.perf_counter() - started < 6.0
    assert answer.method == "portfolio" and not answer.optimal and 0 < answer.gap < 0.2 * answer.score
    assert answer.score == pytest.approx(graph.score(answer.states))
    assert answer.score >= mf.decode(graph, method="icm").score


def test_progress_has_score_and_bound_and_a_callback_stops():
    seen: list[mf.Progress] = []
    stops: list[int] = []

    def watch(progress: mf.Progress) -> bool:
        seen.append(progress)
        stop = progress.seconds > 1.0 and any(p.bound is not None and np.isfinite(p.bound) for p in seen)
        if stop:
            stops.append(len(seen))
        return stop

    answer = mf.decode(glass(), method="portfolio", time_limit=60, callback=watch, rng=0)
    assert stops == [len(seen)] and not answer.converged and np.isfinite(answer.score)
    scores = [p.value for p in seen if p.value is not None]
    assert scores == sorted(scores), "the score told never falls"
    assert any(p.bound is not None and p.bound >= answer.score for p in seen)


def test_ctrl_c_gives_the_best_so_far():
    mf.decode(glass(), method="portfolio", time_limit=1, rng=0)  # compiles what it needs first
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    started = time.perf_counter()
    try:
        answer = mf.decode(glass(), method="portfolio", time_limit=60, rng=0)
    finally:
        timer.cancel()
    assert time.perf_counter() - started < 20
    assert np.isfinite(answer.score) and not answer.converged
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_time_left_goes_to_who_gained():
    """Subgraphs gain whenever they are asked, tabu search never: it is asked once, and in turn when neither gains."""
    found: Any = SimpleNamespace(score=1.0)
    best, asked = _Best(found), []
    searches = _searches(best)
    for round_ in range(7):
        method, share = next(searches)
        asked.append(method.name)
        assert 0 < share < 1
        if method.name == "subgraph_search" and round_ < 4:
            found.score += 1.0
    subgraphs, tabu = "subgraph_search", "tabu_search"
    assert asked == [subgraphs, tabu, subgraphs, subgraphs, subgraphs, tabu, subgraphs]


def test_refusals():
    with pytest.raises(mf.ModelError, match="the n best"):
        mf.decode(glass(3), method="portfolio", n_best=2)
    with pytest.raises(mf.ModelError, match="seconds must be positive"):
        Portfolio(seconds=0)


def frustrated(shape: tuple[int, int]) -> mf.Ising:
    rng = np.random.default_rng(1)
    n, m = shape
    return mf.Ising(shape, (rng.normal(size=(n - 1, m)), rng.normal(size=(n, m - 1))), 0.1)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (lambda: mf.Ising((500,), 0.4, 0.1), "belief_propagation"),
        (lambda: frustrated((14, 15)), "junction_tree"),
        (lambda: mf.Ising((30, 30), 0.4, 0.1), "graph_cut"),
    ],
)
def test_what_auto_takes(model: Any, method: str):
    told, answer = mf.explain(model(), "decode"), mf.decode(model(), rng=0)
    assert told.method == answer.method == method and told.guarantee == "exact" and answer.optimal
