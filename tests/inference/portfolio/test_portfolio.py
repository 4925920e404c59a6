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
from markovfield.inference.branch_and_bound.toulbar2 import installed
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.portfolio import portfolio
from markovfield.inference.portfolio.members import Beside, Buckets, Relaxation, Subgraphs
from markovfield.inference.portfolio.portfolio import Portfolio, _Asked, _Lane, _Race
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


def frustrated_lattice(side: int = 30, states: int = 4) -> Any:
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(side * side), states))
    for v in range(side * side):
        net.add_factor([v], log_table=rng.normal(size=states))
        if v % side < side - 1:
            net.add_factor([v, v + 1], log_table=rng.normal(size=(states, states)))
        if v + side < side * side:
            net.add_factor([v, v + side], log_table=rng.normal(size=(states, states)))
    return net.compile()


def test_auto_has_an_answer_when_the_time_is_up():
    graph = frustrated_lattice()
    answer = mf.decode(graph, time_limit=2.0, rng=0)
    assert answer.method == "portfolio" and not answer.optimal and 0 < answer.gap < 0.2 * answer.score
    assert answer.score == pytest.approx(graph.score(answer.states))
    assert answer.score >= mf.decode(graph, method="icm").score


def test_progress_has_score_and_bound_and_a_callback_stops():
    seen: list[mf.answers.Progress] = []
    stops: list[int] = []

    def watch(progress: mf.answers.Progress) -> bool:
        seen.append(progress)
        stop = progress.seconds > 1.0 and any(p.bound is not None and np.isfinite(p.bound) for p in seen)
        if stop:
            stops.append(len(seen))
        return stop

    answer = mf.decode(frustrated_lattice(), method="portfolio", time_limit=60, callback=watch, rng=0)
    assert stops == [len(seen)] and not answer.converged and np.isfinite(answer.score)
    scores = [p.value for p in seen if p.value is not None]
    assert scores == sorted(scores), "the score told never falls"
    assert any(p.bound is not None and p.bound >= answer.score for p in seen)


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_gives_the_best_so_far(jobs: int):
    graph, ready = frustrated_lattice(), threading.Event()

    def press() -> None:
        ready.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        answer = mf.decode(
            graph,
            method="portfolio",
            n_jobs=jobs,
            time_limit=600,
            rng=0,
            callback=lambda progress: ready.set() if progress.value is not None else None,
        )
    finally:
        ready.set()
        presser.join()
    assert np.isfinite(answer.score) and not answer.converged and answer.seconds < 500
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Gains:
    """A member that raises the best score while it has some gains left."""

    def __init__(self, name: str, gains: int, calls: list[str]) -> None:
        self.name, self.gains, self.calls, self.over = name, gains, calls, False

    def turn(self, shared: Any, running: Running) -> None:
        self.calls.append(self.name)
        if self.gains:
            self.gains -= 1
            shared.best.answer.score += 1.0

    def end(self) -> None:
        pass


def race_of(graph: mf.FactorGraph, limit: float = 60.0) -> _Race:
    known = Evidence.parse(graph.structure, None)
    return _Race(graph, known, None, limit, time.perf_counter() + limit)


def test_the_time_left_goes_to_who_gained():
    """Whoever gains is asked again; every sixth turn goes to who waited longest."""
    race, asked = race_of(frustrated_lattice(3, 2)), []
    race.best.answer = SimpleNamespace(score=1.0)  # type: ignore[assignment]
    members = [Gains("a", 3, asked), Gains("b", 0, asked)]
    lane = _Lane(race, [_Asked(member) for member in members], Running(), 1)
    for _ in range(8):
        chosen = lane.choose()
        assert chosen is not None
        lane.ask(chosen)
        race.busy.clear()
    assert asked == ["a", "b", "a", "a", "a", "b", "a", "a"]


def test_nobody_is_asked_twice_at_once():
    race = race_of(frustrated_lattice(3, 2))
    one = Gains("a", 0, [])
    lanes = [_Lane(race, [_Asked(one)], Running(), 1), _Lane(race, [_Asked(one)], None, 1)]
    assert lanes[0].choose() is not None and lanes[1].choose() is None
    race.busy.clear()
    assert lanes[1].choose() is not None


def test_one_job_is_one_thread_and_callbacks_come_from_the_caller():
    graph, seen, here = frustrated_lattice(14, 3), {1: set(), 2: set()}, threading.current_thread()
    for jobs, threads in seen.items():

        def watch(progress: mf.answers.Progress, threads: set = threads) -> bool:
            assert threading.current_thread() is here
            threads.update(t.name for t in threading.enumerate() if t.name == portfolio.THREAD)
            return progress.seconds > 1.0

        mf.decode(graph, method="portfolio", n_jobs=jobs, time_limit=60, callback=watch, rng=0)
    assert seen == {1: set(), 2: {portfolio.THREAD}}


def test_what_the_other_thread_dies_of_is_raised(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("of the other thread")

    monkeypatch.setattr(Relaxation, "turn", fail)
    with pytest.raises(ZeroDivisionError, match="of the other thread"):
        mf.decode(frustrated_lattice(), method="portfolio", n_jobs=2, time_limit=60, rng=0)


@pytest.mark.skipif(not installed(), reason="pytoulbar2 is not installed")
def test_toulbar2_rests_between_its_turns_and_is_ended():
    race, beside = race_of(frustrated_lattice()), Beside()
    beside.turn(race, Running(time_limit=0.3))
    assert beside.work is not None and beside.work.process is not None
    process = beside.work.process
    if hasattr(signal, "SIGSTOP"):
        # Returns when the process has been stopped; the alarm of pytest ends a wait in vain.
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
    assert not beside.over and process.poll() is None
    for _ in range(100):
        if race.best.answer is not None:
            break
        beside.turn(race, Running(time_limit=0.3))
    assert race.best.answer is not None and race.best.bound == np.inf, "what it has found so far is shared"
    beside.end()
    assert process.poll() is not None


@pytest.mark.skipif(not installed(), reason="pytoulbar2 is not installed")
def test_toulbar2_proves_what_was_found_elsewhere():
    graph = frustrated_lattice(6, 3)
    race = race_of(graph)
    race.take(mf.decode(graph, method="junction_tree"))
    race.best.bound = np.inf
    Beside().turn(race, Running())
    assert race.best.proven


def test_members_go_on_where_they_stopped():
    graph = frustrated_lattice(12, 2)
    exact = mf.decode(graph, method="junction_tree").score
    race = race_of(graph)
    for member in (Buckets(), Subgraphs(np.random.default_rng(0)), Relaxation(mf.methods.TRWS())):
        for turn in range(200):
            before = race.best.score, race.best.bound
            member.turn(race, Running(time_limit=0.05))
            assert race.best.score >= before[0] and race.best.bound <= before[1], "nothing is lost"
            assert race.best.score <= exact + 1e-6 and race.best.bound >= exact - 1e-6
            if member.over or turn > 5:
                break
        member.end()
    assert race.best.score == pytest.approx(exact)


def test_refusals():
    with pytest.raises(mf.ModelError, match="finds one assignment, not the 2 best"):
        mf.decode(frustrated_lattice(3), method="portfolio", n_best=2)
    with pytest.raises(mf.ModelError, match="seconds of Portfolio must be positive"):
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


def test_never_below_where_it_starts(monkeypatch: pytest.MonkeyPatch):
    """An assignment given as ``init`` counts, also where no member finds one as good in the time there is."""
    net = frustrated_lattice(12, 3)
    good = mf.decode(net, method="portfolio", time_limit=2.0, rng=0)
    monkeypatch.setattr(portfolio, "_run", lambda race, running, rng: False)
    again = mf.decode(net, method="portfolio", time_limit=0.01, rng=1, init=good)
    assert again.score == pytest.approx(good.score, abs=1e-9) and again.assignment == good.assignment
    # Where it contradicts the evidence it does not count.
    other = {net.variables[0]: (int(good.states[0]) + 1) % 3}
    with pytest.raises(mf.ModelError, match="no assignment free of hard zeros"):
        mf.decode(net, other, method="portfolio", time_limit=0.01, rng=1, init=good)
