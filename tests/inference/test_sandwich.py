"""The sandwich: bounds of several methods, the best of each kind, within a time."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.automatic import candidates
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.mini_bucket.bounds import Buckets, Tightened
from markovfield.inference.sandwich import Sandwich
from tests.strategies import Spec, specs_with_evidence


@dataclass(frozen=True)
class Bounding:
    """The true answer with a bound at some distance from it; a stand-in that is proven to hold."""

    side: str = "upper"
    distance: float = 1.0
    seconds: float = 0.0
    raises: Any = None

    name: ClassVar[str] = "stand_in"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def _wait(self, running: Running) -> None:
        if self.raises is not None:
            raise self.raises
        until = time.perf_counter() + self.seconds
        while time.perf_counter() < until:
            time.sleep(0.005)
            running.check()

    def _value(self, exact: float) -> float:
        return exact + (self.distance if self.side == "upper" else -self.distance)

    def log_partition(self, graph: mf.FactorGraph, evidence: Evidence, *, running: Running) -> mf.LogPartition:
        self._wait(running)
        exact = JunctionTree().log_partition(graph, evidence, running=Running())
        warnings.warn("stand_in did not converge in 1 iterations", stacklevel=2)
        return mf.LogPartition(
            log_partition=self._value(exact.log_partition), guarantee=self.side, method=self.name, converged=False
        )

    def marginals(
        self, graph: mf.FactorGraph, evidence: Evidence, *, targets: Any = (), running: Running
    ) -> mf.Marginals:
        self._wait(running)
        exact = JunctionTree().marginals(graph, evidence, running=Running())
        return mf.Marginals(
            graph=graph,
            values=exact.values,
            log_partition=self._value(exact.log_partition),
            guarantee=self.side,
            method=self.name,
        )


@dataclass(frozen=True)
class Growing(Bounding):
    """Bounds on both sides that close as ``i_bound`` grows."""

    i_bound: int = 1
    full: int = 6

    def log_partition(self, graph: mf.FactorGraph, evidence: Evidence, *, running: Running) -> mf.LogPartition:
        exact = JunctionTree().log_partition(graph, evidence, running=Running()).log_partition
        gap = 1.0 / self.i_bound if self.i_bound < self.full else 0.0
        return mf.LogPartition(
            log_partition=exact + gap,
            guarantee="upper" if gap else "exact",
            bounds=(exact - 2 * gap, exact + gap),
            method=self.name,
        )


def grid(n: int, seed: int = 0) -> mf.MarkovNetwork:
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork(dict.fromkeys(range(n * n), 2))
    for v in range(n * n):
        if v % n:
            net.add_factor([v - 1, v], log_table=rng.normal(size=(2, 2)))
        if v >= n:
            net.add_factor([v - n, v], log_table=rng.normal(size=(2, 2)))
    return net


def test_the_best_bound_of_each_kind():
    net = grid(4)
    exact = float(mf.log_partition(net, method="junction_tree"))
    methods = (Bounding("upper", 2.0), Bounding("lower", 0.5), Bounding("upper", 1.0), Bounding("lower", 3.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what the methods say of their convergence stays inside
        answer = mf.log_partition(net, method=Sandwich(methods=methods))
    assert answer.log_partition_bounds == pytest.approx((exact - 0.5, exact + 1.0))
    assert answer.log_partition == pytest.approx(exact + 0.25)
    assert answer.guarantee == "approximate" and answer.method == "sandwich" and not answer.converged
    assert [s.outcome for s in answer.details] == ["bounded"] * 4
    lows, highs = zip(*(s.best for s in answer.details), strict=True)
    assert list(lows) == sorted(lows) and list(highs) == sorted(highs, reverse=True)


def test_one_sided_bounds_keep_their_side():
    net = grid(3)
    exact = float(mf.log_partition(net))
    for side, sign in (("upper", 1.0), ("lower", -1.0)):
        answer = mf.log_partition(net, method=Sandwich(methods=(Bounding(side, 1.0),)))
        assert answer.guarantee == side and float(answer) == pytest.approx(exact + sign)


def test_bounds_that_meet_are_exact():
    net = grid(3)
    answer = mf.log_partition(net, method=Sandwich(methods=(Bounding("upper", 1e-13), Bounding("lower", 1e-13))))
    assert answer.guarantee == "exact" and answer.log_partition == pytest.approx(float(mf.log_partition(net)))
    # They prove log Z; marginals they only bring near.
    methods = (Bounding("upper", 1e-13), Bounding("lower", 1e-13), Bounding("upper", 0.5))
    assert mf.marginals(net, method=Sandwich(methods=methods)).guarantee == "approximate"


def test_a_junction_tree_that_fits_ends_the_search():
    net = grid(5)
    exact = mf.marginals(net, method="junction_tree")
    answer = mf.marginals(net, method=Sandwich(methods=("junction_tree", Bounding())))
    assert answer.guarantee == "exact" and len(answer.details) == 1 and answer.details[0].outcome == "exact"
    np.testing.assert_array_equal(answer.values, exact.values)
    np.testing.assert_array_equal(answer.joint([0, 7]), exact.joint([0, 7]))
    np.testing.assert_allclose(answer.expected_counts, exact.expected_counts)


def test_a_junction_tree_that_does_not_fit_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    net = grid(12)
    methods = (JunctionTree(memory_limit=1000), Bounding("upper", 1.0))
    answer = mf.log_partition(net, method=Sandwich(methods=methods))
    assert [s.outcome for s in answer.details] == ["too large", "bounded"]
    assert "memory" in answer.details[0].why
    monkeypatch.setattr("markovfield.inference.sandwich.OPERATIONS_PER_SECOND", 1.0)
    answer = mf.log_partition(net, method=Sandwich(methods=("junction_tree", Bounding())))
    assert answer.details[0].outcome == "too slow" and "predicted to take" in answer.details[0].why


def test_a_method_that_is_out_of_time_is_passed_over():
    net = grid(4)
    methods = (Bounding(seconds=20.0), Bounding("lower", 1.0))
    answer = mf.log_partition(net, method=Sandwich(time_limit=0.3, methods=methods))
    assert [s.outcome for s in answer.details] == ["out of time", "bounded"]
    assert answer.guarantee == "lower"
    # The verb's own limit counts when it is shorter.
    with pytest.raises(TimeoutError):
        mf.log_partition(net, method=Sandwich(methods=(Bounding(seconds=20.0),)), time_limit=0.1)


def test_when_every_method_fails_the_first_reason_is_told():
    refused = Bounding(raises=mf.MemoryLimitError("far too large"))
    with pytest.raises(mf.MemoryLimitError, match="far too large"):
        mf.log_partition(grid(3), method=Sandwich(methods=(refused, Bounding(raises=mf.ModelError("no")))))


def test_impossible_evidence_is_certain():
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A", "B"], [[1, 0], [0, 1]])
    with pytest.raises(mf.ImpossibleEvidenceError, match="A"):
        mf.log_partition(net, evidence={"A": 0, "B": 1}, method=Sandwich())


def test_mini_buckets_grow_until_they_are_exact():
    net = grid(4)
    answer = mf.log_partition(net, method=Sandwich(methods=(Growing(),)))
    assert [s.method for s in answer.details] == ["stand_in(2)", "stand_in(4)", "stand_in(6)"]
    assert answer.guarantee == "exact"
    answer = mf.log_partition(net, method=Sandwich(methods=(Growing(full=1000),)))
    assert answer.details[-1].method == "stand_in(16)"  # no more variables than there are
    assert answer.guarantee == "approximate"
    low, high = answer.log_partition_bounds
    assert high - low == pytest.approx(3.0 / 16)


def test_a_callback_stops_it():
    net = grid(4)
    methods = (Bounding("upper", 1.0), Bounding("lower", 1.0, seconds=5.0), Bounding("lower", 0.5))
    answer = mf.log_partition(net, method=Sandwich(methods=methods), callback=lambda progress: True)
    assert [s.outcome for s in answer.details] == ["bounded", "out of time"]


@settings(max_examples=25)
@given(specs_with_evidence("graph"), st.floats(0.0, 2.0))
def test_bounds_hold(case: tuple[Spec, dict[int, Any]], distance: float):
    spec, evidence = case
    oracle = spec.oracle(evidence)
    method = Sandwich(methods=(Bounding("lower", distance), Bounding("upper", 0.5 * distance)))
    ask = lambda: mf.marginals(spec.build(), evidence=spec.named(evidence), method=method)  # noqa: E731
    if oracle.impossible:
        with pytest.raises(mf.ImpossibleEvidenceError):
            ask()
        return
    low, high = ask().log_partition_bounds
    assert low <= oracle.log_partition + 1e-9 and high >= oracle.log_partition - 1e-9
    assert high - low == pytest.approx(1.5 * distance, abs=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_the_default_methods(seed: int):
    """The bounds hold with the junction tree left out."""
    net = grid(6, seed)
    exact = mf.marginals(net, method="junction_tree")
    assert mf.marginals(net, method=Sandwich()).log_partition == pytest.approx(exact.log_partition)
    methods = tuple(m for m in Sandwich().methods if m != "junction_tree")
    answer = mf.marginals(net, method=Sandwich(time_limit=2.0, methods=methods))
    low, high = answer.log_partition_bounds
    assert low - 1e-9 <= exact.log_partition <= high + 1e-9
    assert np.abs(answer.values - exact.values).max() < 0.5


def test_settings_are_checked():
    for bad, message in (
        ({"time_limit": 0.0}, "time_limit of Sandwich must be positive"),
        ({"methods": ()}, "methods of Sandwich must be a tuple"),
        ({"methods": "mean_field"}, "methods of Sandwich must be a tuple"),
        ({"tolerance": -1.0}, "tolerance of Sandwich must be at least 0, got -1"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            Sandwich(**bad)
    with pytest.raises(mf.ModelError, match="no method 'mean_feeld'"):
        mf.log_partition(grid(3), method=Sandwich(methods=("mean_feeld",)))


def test_bounds_come_even_where_planning_takes_all_the_time():
    rng = np.random.default_rng(0)
    side = 40
    net = mf.MarkovNetwork(dict.fromkeys(range(side * side), 3))
    for v in range(side * side):
        for other in ([v + 1] if v % side < side - 1 else []) + ([v + side] if v + side < side * side else []):
            net.add_factor([v, other], log_table=rng.normal(size=(3, 3)))
    low, high = mf.log_partition(net, method=Sandwich(time_limit=0.05)).log_partition_bounds
    assert np.isfinite(low) or np.isfinite(high)


# ---- without a clock, and with estimates ------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimating(Bounding):
    """The true marginals, or others, with a log Z at some distance from the true one; nothing is proven of either."""

    wrong: float = 0.0
    has_converged: bool = True

    name: ClassVar[str] = "estimate"

    def marginals(
        self, graph: mf.FactorGraph, evidence: Evidence, *, targets: Any = (), running: Running
    ) -> mf.Marginals:
        exact = JunctionTree().marginals(graph, evidence, running=Running())
        return mf.Marginals(
            graph=graph,
            values=(1.0 - self.wrong) * exact.values + self.wrong * np.tile([1.0, 0.0], len(exact.values) // 2),
            log_partition=exact.log_partition + self.distance,
            guarantee="approximate",
            method=self.name,
            converged=self.has_converged,
        )


BUCKETS = mf.methods.MiniBucket(i_bound=3, max_iterations=10)


def test_an_estimate_is_taken_where_the_bounds_allow_it_and_mini_buckets_come_near_it():
    net = grid(6)
    exact = mf.marginals(net, method="junction_tree")

    def ask(**settings: Any) -> mf.Marginals:
        methods = (BUCKETS, Estimating(**{"distance": 1e-6} | settings))
        return mf.marginals(net, method=Sandwich(time_limit=None, methods=methods))

    answer = ask()
    assert answer.log_partition == pytest.approx(exact.log_partition + 1e-6, abs=1e-9)
    np.testing.assert_allclose(answer.values, exact.values)
    assert answer.guarantee == "approximate"
    assert "estimated" in [step.outcome for step in answer.details]
    low, high = answer.log_partition_bounds
    alone = mf.marginals(net, method=Sandwich(time_limit=None, methods=(BUCKETS,)))
    # Not converged, outside the bounds, or far from what mini-buckets come to: theirs are taken.
    for changed in ({"has_converged": False}, {"distance": 2.0 * (high - exact.log_partition) + 2.0}, {"wrong": 1.0}):
        answer = ask(**changed)
        np.testing.assert_array_equal(answer.values, alone.values)
        assert answer.log_partition_bounds == (low, high)


def test_an_estimate_alone():
    net = grid(3)
    answer = mf.marginals(net, method=Sandwich(methods=(Estimating(has_converged=False),)))
    assert answer.guarantee == "approximate"
    assert answer.log_partition_bounds == (-np.inf, np.inf)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_no_looser_than_mini_buckets_alone():
    """Without a clock they are run to the end, whatever else is."""
    for seed in range(3):
        net = grid(9, seed)
        methods = ("mean_field", mf.methods.MiniBucket(i_bound=5, max_iterations=15), "belief_propagation")
        low, high = mf.log_partition(net, method=Sandwich(time_limit=None, methods=methods)).log_partition_bounds
        alone = mf.log_partition(net, method=methods[1]).log_partition_bounds
        assert low >= alone[0] and high <= alone[1]


def test_work_is_counted_and_not_timed():
    net = grid(9)
    methods = (mf.methods.MiniBucket(i_bound=8, max_iterations=5),)
    sizes = {}
    for work in (2.0**17, 2.0**21, 2.0**40):
        answer = mf.log_partition(net, method=Sandwich(time_limit=None, methods=methods, work_limit=work))
        sizes[work] = [step.method for step in answer.details]
        again = mf.log_partition(net, method=Sandwich(time_limit=None, methods=methods, work_limit=work))
        assert again.log_partition_bounds == answer.log_partition_bounds
    assert sizes[2.0**40] == ["mini_bucket(2)", "mini_bucket(8)"]
    assert sizes[2.0**17] == ["mini_bucket(2)"]
    assert sizes[2.0**21][0] == "mini_bucket(2)" and sizes[2.0**21] != sizes[2.0**40]


def test_auto_starts_no_tree_that_cannot_end_in_time():
    graph = grid(12).compile()
    known = Evidence.parse(graph.structure, None)
    for verb in ("marginals", "log_partition"):
        unlimited, short = (candidates("auto", verb, graph, known, time_limit=limit) for limit in (None, 1.0))
        assert [m.name for m in short] == ["junction_tree", "sandwich", "belief_propagation"]
        assert short[0].work_limit < unlimited[0].work_limit and short[0].search == 0
        # Without a limit nothing depends on the clock.
        assert unlimited[1].time_limit is None and unlimited[1].work_limit < np.inf


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_auto_is_the_same_every_time_where_exact_sums_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("markovfield.inference.automatic.AUTO_WORK_LIMIT", 2.0**6)
    monkeypatch.setattr("markovfield.inference.automatic.BUCKET_WORK", 2.0**23)
    graph = mf.MarkovNetwork.from_factor_graph(grid(9, 4).compile()).compile()
    exact = float(mf.log_partition(graph, method="junction_tree"))
    first, second = mf.marginals(graph), mf.marginals(graph)
    assert first.method == "sandwich"
    np.testing.assert_array_equal(first.values, second.values)
    assert first.log_partition_bounds == second.log_partition_bounds
    low, high = first.log_partition_bounds
    assert low - 1e-9 <= exact <= high + 1e-9
    assert low <= first.log_partition <= high


def test_the_lower_bound_of_mini_buckets_has_time_of_its_own(monkeypatch: pytest.MonkeyPatch):
    """An upper bound that could go on being tightened for ever leaves time for the lower one."""
    limits: list[float | None] = []
    tighten = Buckets.tighten

    def noted(self: Buckets, *args: Any, running: Running, **changed: Any) -> Tightened:
        limits.append(running.time_limit)
        return tighten(self, *args, running=running, **changed)

    monkeypatch.setattr(Buckets, "tighten", noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = mf.methods.MiniBucket(i_bound=2, max_iterations=12, tolerance=0.0)
        mf.log_partition(grid(6), method=method, time_limit=1000.0)
    # Probes, then the upper bound for a share of the time, then the lower one for the rest.
    assert limits[-2:] == [600.0, 1000.0]


def test_near_enough_to_stop_is_not_exact():
    net = mf.MarkovNetwork({0: 2, 1: 2})
    net.add_factor([0, 1], log_table=[[0.0, 0.0], [0.0, 4.0]])
    net.add_factor([1], log_table=[0.0, 4.0])
    method = mf.methods.Sandwich(methods=("mean_field", "tree_reweighted"), tolerance=0.001)
    answer = mf.log_partition(net, method=method, rng=241)
    low, high = answer.log_partition_bounds
    assert 0 < high - low <= 0.001 * high
    assert answer.guarantee == "approximate" and low <= answer.log_partition <= high
