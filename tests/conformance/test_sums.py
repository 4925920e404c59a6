"""Probabilities of events and sums over semirings against the oracle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.conformance.asking import (
    EXAMPLES,
    check_impossible,
    close,
    close_logs,
    subset,
)
from tests.strategies import (
    Spec,
    specs_with_evidence,
)


class TestProbability:
    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(), st.integers(0, 2**16))
    def test_agrees_with_the_oracle(self, case: tuple[Spec, dict], seed: int):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        rng = np.random.default_rng(seed)
        event: dict[int, Any] = {}
        for v in subset(rng, spec.n_variables, 3):
            card = spec.cardinalities[v]
            states = rng.permutation(card)[: rng.integers(1, card + 1)].tolist()
            event[v] = states if rng.random() < 0.6 else states[0]
        wanted = {v: (s if isinstance(s, list) else [s]) for v, s in event.items()}

        def call() -> float:
            return mf.probability(spec.build(), spec.named(event), evidence=spec.named(evidence))

        if oracle.impossible:
            check_impossible(call)
            return
        close(float(call()), oracle.probability(wanted))

    def test_of_an_event_the_evidence_rules_out(self):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        net.add_factor(["A", "B"], [[1, 0], [0, 1]])
        assert mf.probability(net, {"A": 0}, evidence={"B": 1}) == 0.0
        assert mf.probability(net, {"A": [0, 1]}, evidence={"B": 1}) == 1.0


class TestAggregate:
    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(virtual=False), st.integers(1, 6))
    def test_semirings(self, case: tuple[Spec, dict], k: int):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return

        def aggregate(semiring: Any) -> Any:
            return mf.analysis.aggregate(spec.build(), semiring, evidence=spec.named(evidence))

        close_logs(aggregate("sum_product"), oracle.log_partition)
        close_logs(aggregate("max_sum"), oracle.best_score)
        np.testing.assert_allclose(aggregate("max_product"), math.exp(oracle.best_score), rtol=1e-9)
        count = aggregate("counting")
        assert isinstance(count, int) and count == oracle.count
        close(aggregate("entropy"), oracle.entropy)
        close_logs(aggregate(mf.semirings.KBest(k)), oracle.n_best(k))

    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(virtual=False, hard=False))
    def test_lowest_score(self, case: tuple[Spec, dict]):
        spec, evidence = case
        lowest = mf.analysis.aggregate(spec.build(), "min_sum", evidence=spec.named(evidence))
        close_logs(lowest, spec.oracle(evidence).lowest_score)

    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(), st.integers(0, 2**16))
    def test_expectation(self, case: tuple[Spec, dict], seed: int):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return
        values = np.random.default_rng(seed).normal(size=spec.n_cells)
        ours = mf.analysis.aggregate(spec.build(), mf.semirings.Expectation(values), evidence=spec.named(evidence))
        close(ours, oracle.expectation(spec.from_pool(values)))

    @pytest.mark.parametrize(("n", "card"), [(12, 2), (33, 3), (22, 5), (53, 2)])
    def test_counts_below_two_to_the_53_are_exact(self, n: int, card: int):
        net = mf.MarkovNetwork(dict.fromkeys(range(n), card))
        net.add_factors([(i, i + 1) for i in range(0, n - 1, 2)], np.ones((card, card)))
        assert mf.analysis.aggregate(net, "counting") == card**n

    def test_counts_that_floats_hold_exactly(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(200), 3))
        net.add_factors([(i, i + 1) for i in range(199)], 1 - np.eye(3))
        assert mf.analysis.aggregate(net, "counting") == 3 * 2**199  # proper colourings of a path

    def test_counting_nothing(self):
        net = mf.MarkovNetwork({"A": 2})
        net.add_factor(["A"], [0, 1])
        assert mf.analysis.aggregate(net, "counting", evidence={"A": 0}) == 0
