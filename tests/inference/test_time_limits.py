"""Time limits are kept, whatever is asked of whom; measured by steps, by a clock of the test's own, or by processor
time, which a busy machine does not change."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.graphs.elimination.orders_kernel import search_order
from markovfield.inference.automatic import EXACT_SHARE, first_that_answers, work_within
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.registry import methods
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree import plan as planning
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.junction_tree.plan import find_order, search_ceiling
from markovfield.inference.local_search.subgraph_search import SubgraphMoves, SubgraphSearch
from markovfield.inference.local_search.subgraph_search_kernel import AT_ONCE, MOVES, OPEN
from tests.inference.relaxations import StopAfter, frustrated_lattice

pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")

# Processor seconds between two looks at the clock. Steps are meant to take up to 0.2 s.
PATIENCE = 2.0
VERBS: dict[str, Any] = {
    "decode": mf.decode,
    "marginals": mf.marginals,
    "log_partition": mf.log_partition,
    "sample": lambda model, **settings: mf.sample(model, 20, **settings),
}
# These are in other processes most of the time, refuse models of this size, or plan within a search of their own.
ELSEWHERE = ("toulbar2", "integer_program", "linear_program", "enumeration")


@cache
def lattice(side: int, states: int) -> mf.FactorGraph:
    return frustrated_lattice(np.random.default_rng(side), side, side, states)[0].compile()


class Watch:
    """A callback that stops after some processor time, and knows the longest time between two calls."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.longest = seconds, 0.0
        self.started = self.last = time.thread_time()

    def look(self) -> None:
        now = time.thread_time()
        self.longest, self.last = max(self.longest, now - self.last), now

    def __call__(self, _: mf.answers.Progress) -> bool:
        self.look()
        return self.last - self.started > self.seconds


@pytest.mark.parametrize(
    ("verb", "name"),
    [(verb, name) for verb in VERBS for name in ("auto", *methods(verb)) if name not in ELSEWHERE],
)
def test_steps_are_short(verb: str, name: str) -> None:
    refused = (mf.ModelError, mf.MemoryLimitError, mf.StoppedError, TimeoutError)
    for graph in (lattice(40, 2), lattice(14, 8)):
        # The first times compile what is needed, and each may come further than the one before.
        for _ in range(5):
            watch = Watch(0.2)
            with suppress(*refused):
                VERBS[verb](graph, method=name, rng=0, n_jobs=1, callback=watch)
            watch.look()
            if watch.longest < PATIENCE:
                break
        assert watch.longest < PATIENCE


def test_a_region_of_many_moves_is_left_unfinished() -> None:
    graph = lattice(40, 2)
    known, rng = Evidence.parse(graph.structure, None), np.random.default_rng(0)
    moves = SubgraphMoves(
        graph, known, np.zeros(graph.n_variables, np.int64), SubgraphSearch(rounds=10**5, width=3), rng
    )
    with pytest.raises(mf.StoppedError):
        moves.run(10, Running(callback=StopAfter(3)))
    assert moves.done == 0 and moves.tally[OPEN] > 0, "no region was finished"
    assert 0 < moves.tally[MOVES] <= 4 * AT_ONCE


def test_moves_do_not_depend_on_where_calls_end() -> None:
    graph = lattice(12, 2)
    scores = set()
    for at_once in (1, 50):
        known, rng = Evidence.parse(graph.structure, None), np.random.default_rng(0)
        method = SubgraphSearch(rounds=3 * AT_ONCE, width=3)
        moves = SubgraphMoves(graph, known, np.zeros(graph.n_variables, np.int64), method, rng)
        while moves.done < 50:
            moves.run(min(at_once, 50 - moves.done), Running())
        scores.add((moves.best_score, moves.tally.tobytes()))
    assert len(scores) == 1


# ---- planning ---------------------------------------------------------------------------------------------------


def random_scopes(n: int, pairs: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    scopes = np.stack([rng.permutation(n)[:2] for _ in range(pairs)]).astype(np.int32)
    return 2 * np.arange(pairs + 1, dtype=np.int64), scopes.ravel()


def test_orders_of_cliques_beyond_what_a_float_counts() -> None:
    """2^1024 states overflow; they read as a rule that was given up, and nobody had written an order."""
    n = 400
    offsets, scopes = random_scopes(n, 4 * n)
    cards, stage = np.full(n, 1000, np.int32), np.zeros(n, np.int8)
    order, _, _, log2_states = search_order(cards, offsets, scopes, stage, 0.0, 0, 3)
    assert sorted(order.tolist()) == list(range(n))
    assert 1024 < log2_states < np.inf
    stage[::3] = 1
    staged = search_order(cards, offsets, scopes, stage, 0.0, 0, 3)[0]
    assert sorted(staged.tolist()) == list(range(n))
    assert (np.diff(stage[staged]) >= 0).all(), "lower stages first"


def test_no_search_for_what_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: Any, **__: Any) -> Any:
        raise AssertionError("a search of seconds for a tree that nobody can run")

    structure = lattice(80, 2).structure
    monkeypatch.setattr(planning, "search_order_balanced", search)
    found = find_order(structure, stage=np.zeros(structure.n_variables, np.int8))
    assert found[3] > planning.SEARCH_UNTIL


def test_a_short_limit_is_a_short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    usual = planning.search_order_balanced

    def search(cards: Any, offsets: Any, scopes: Any, stage: Any, effort: float, *rest: Any, **more: Any) -> Any:
        seen.append(effort)
        return usual(cards, offsets, scopes, stage, 1e6, *rest, **more)

    monkeypatch.setattr(planning, "search_order_balanced", search)
    graph = lattice(26, 2)
    for limit in (0.1, 3.0, None):
        method = JunctionTree(seed=7, work_limit=1.0)
        with pytest.raises((mf.MemoryLimitError, TimeoutError)):
            mf.log_partition(graph, method=method, time_limit=limit)
    assert len(seen) == 3 and seen[0] <= 0.2e8 and seen[0] < seen[1] <= 0.6e9 < seen[2]
    assert search_ceiling(None) == seen[2]


# ---- a clock that goes on by being looked at --------------------------------------------------------------------


class Clock:
    """Every look takes ``step`` seconds."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_late_methods_leave_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(0.001)
    monkeypatch.setattr(time, "perf_counter", clock)
    running = Running(time_limit=10.0)
    spent: dict[str, float] = {}

    class Late:
        def __init__(self, name: str, exact: bool) -> None:
            self.name, self.exact = name, exact

    def run(chosen: Any, running: Running) -> str:
        started = clock.now
        try:
            for _ in count():
                running.check()
        except TimeoutError:
            spent[chosen.name] = clock.now - started
            if chosen.name != "last":
                raise
        return str(chosen.name)

    line = [Late("exact", True), Late("other", False), Late("last", False)]
    assert first_that_answers(line, run, running) == "last"
    assert spent["exact"] == pytest.approx(10.0 * EXACT_SHARE, rel=0.02)
    assert spent["last"] > 0.5 and sum(spent.values()) == pytest.approx(10.0, rel=0.02)


def test_auto_does_not_walk_over_more_states_than_there_is_time_for() -> None:
    assert work_within(None) == work_within(1e9)
    assert work_within(1.0) == pytest.approx(EXACT_SHARE * 1e9 / planning.NANOSECONDS_PER_STATE)
    answer = mf.log_partition(lattice(40, 2), time_limit=1.0, n_jobs=1)
    assert answer.method != "junction_tree" and np.isfinite(float(answer))


@pytest.mark.parametrize("late", [0.0, 0.99, 5.0])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_portfolio_ends_in_time(monkeypatch: pytest.MonkeyPatch, late: float, jobs: int) -> None:
    """Even where what came before has used up the time."""
    graph = lattice(14, 3)
    mf.decode(graph, method="portfolio", n_jobs=jobs, callback=StopAfter(40), rng=0)
    limit = 100.0
    # Ten thousand looks are a hundred seconds.
    clock = Clock(0.01)
    monkeypatch.setattr(time, "perf_counter", clock)
    running = Running(jobs, limit, started=-late * limit)
    method, known = mf.methods.Portfolio(), Evidence.parse(graph.structure, None)
    answer = method.decode(graph, known, running=running, rng=np.random.default_rng(0))
    assert np.isfinite(answer.score)
    assert answer.seconds <= max(1.1 * limit, (late + 0.1) * limit)
