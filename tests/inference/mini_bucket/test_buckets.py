"""The buckets behind the verbs: bounds of one kind by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.mini_bucket.bounds import Buckets, Tightened
from markovfield.inference.mini_bucket.mini_bucket import MiniBucket
from markovfield.inference.mini_bucket.search import Search
from markovfield.inference.problem.problem import prepare
from tests.inference.mini_bucket.dense_models import dense, slack
from tests.oracle import Oracle
from tests.strategies import Spec


def buckets_of(spec: Spec, evidence: dict[int, Any], i_bound: int) -> Buckets:
    """The mini-buckets behind the verbs, whose two lower bounds hide each other."""
    graph = spec.build().compile()
    problem = prepare(graph, Evidence.parse(graph.structure, spec.named(evidence)))
    return MiniBucket(i_bound=i_bound).best_buckets(problem, 1.0, Running())[0]


def per_bucket(buckets: Buckets, values: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, buckets.layout.bucket_offsets[:-1])


class TestBuckets:
    """Bounds of one kind by themselves."""

    @settings(max_examples=60)
    @given(dense(), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 3, 40]), st.sampled_from([1.0, 0.3, 0.01]))
    def test_of_positive_weights(self, case: tuple[Spec, dict], i_bound: int, iterations: int, temperature: float):
        """Weights that sum to a temperature bound the power sum at that temperature; to nothing, the best score."""
        oracle = case[0].oracle(case[1])
        try:
            buckets = buckets_of(*case, i_bound)
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        if oracle.impossible or not buckets.plan.n_split:
            return
        shares = buckets.shares()
        _, shifts = buckets.match(shares, temperature, Running())
        found = buckets.tighten(
            shifts,
            temperature * shares,
            sign=-1.0,
            max_iterations=iterations,
            tolerance=0.0,
            running=Running(),
        )
        np.testing.assert_allclose(per_bucket(buckets, found.weights), temperature, rtol=1e-12)
        scaled = (oracle.scores - oracle.best_score) / temperature
        truth = oracle.best_score + temperature * float(np.log(np.exp(scaled).sum()))
        assert found.bound >= truth - slack(truth)
        assert buckets.forward(found.shifts, 0.0 * shares, Running()) >= oracle.best_score - slack(truth)

    @settings(max_examples=60)
    @given(dense(), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 3, 40]))
    def test_of_negative_weights(self, case: tuple[Spec, dict], i_bound: int, iterations: int):
        oracle = case[0].oracle(case[1])
        try:
            buckets = buckets_of(*case, i_bound)
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        if not buckets.plan.n_split:
            return
        shares = buckets.shares()
        bound, shifts = buckets.match(shares, 1.0, Running())
        start = buckets.lower_start(Tightened(bound, shifts, shares, (), True))
        found = buckets.tighten(
            *start,
            sign=1.0,
            max_iterations=iterations,
            tolerance=0.0,
            running=Running(),
        )
        np.testing.assert_allclose(per_bucket(buckets, found.weights), 1.0, rtol=1e-12)
        split = np.diff(buckets.layout.bucket_offsets) > 1
        assert (per_bucket(buckets, (found.weights > 0).astype(np.int64)) == 1).all()
        assert (per_bucket(buckets, found.weights < 0)[split]).all()
        truth = oracle.log_partition
        assert not np.isnan(found.bound)
        assert found.bound <= truth + slack(truth)
        if not any(np.isneginf(t).any() for _, t in case[0].factors) and not case[1]:
            assert found.bound > -np.inf

    def test_states_that_are_impossible_are_left_out(self):
        """A square with a diagonal, cut so that two mini-buckets share two variables with a state pair excluded."""
        rng = np.random.default_rng(2)
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        first, second = rng.normal(size=(2, 2, 2)), rng.normal(size=(2, 2, 2))
        first[0, 1, :] = -np.inf
        net.add_factor(["A", "B", "C"], log_table=first)
        net.add_factor(["A", "B", "D"], log_table=second)
        graph = net.compile()
        problem = prepare(graph, Evidence.parse(graph.structure, None))
        method = MiniBucket(i_bound=2, order=tuple("ABCD"))
        buckets, upper = method.best_buckets(problem, 1.0, Running())
        bound, shifts = upper.bound, upper.shifts
        assert buckets.plan.n_split >= 1 and np.isneginf(shifts).any()
        start = buckets.lower_start(upper)
        assert np.isposinf(start[0]).any()
        truth = Oracle([2] * 4, [((0, 1, 2), first), ((0, 1, 3), second)]).log_partition
        for swap in (False, True):
            # Whichever of the two has the positive weight.
            weights = start[1].copy()
            shifts = start[0].copy()
            if swap:
                weights[:2] = weights[1::-1]
                shifts = np.where(np.isinf(shifts), -shifts, shifts)
            low = buckets.forward(shifts, weights, Running())
            assert -np.inf < low <= truth <= bound

    @settings(max_examples=40)
    @given(dense(), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 30]))
    def test_of_the_best_score(self, case: tuple[Spec, dict], i_bound: int, iterations: int):
        """By itself: small models are decoded so well that a bound below the best score would not show."""
        oracle = case[0].oracle(case[1])
        graph = case[0].build().compile()
        try:
            problem = prepare(graph, Evidence.parse(graph.structure, case[0].named(case[1])))
            search = Search(MiniBucket(i_bound=i_bound, max_iterations=iterations), problem, Running())
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        search.cool()
        assert search.bound >= oracle.best_score - slack(oracle.best_score) or oracle.impossible
