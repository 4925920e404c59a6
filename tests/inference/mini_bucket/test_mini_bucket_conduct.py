"""Mini-buckets: threads, limits, warnings, and what is refused."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.mini_bucket import mini_bucket
from markovfield.inference.mini_bucket import plan as mini_bucket_plan
from markovfield.inference.mini_bucket.mini_bucket import MiniBucket
from tests.inference.mini_bucket.dense_models import TOLERANCE, dense_spec


class TestConduct:
    def test_the_same_call_gives_the_same_bits(self):
        spec = dense_spec(3, 9, 1.0, 0.2)
        for verb in (mf.marginals, mf.log_partition, mf.decode):
            one, two = (verb(spec.build(), method=MiniBucket(i_bound=2)) for _ in range(2))
            assert one.residuals == two.residuals
            if verb is mf.marginals:
                np.testing.assert_array_equal(one.values, two.values)
            if verb is mf.decode:
                assert (one.assignment, one.score, one.gap) == (two.assignment, two.score, two.gap)
            else:
                assert one.log_partition_bounds == two.log_partition_bounds

    def test_pieces_do_not_change_the_answer(self, monkeypatch: pytest.MonkeyPatch):
        spec = dense_spec(3, 9, 1.0, 0.2)
        whole = mf.marginals(spec.build(), method=MiniBucket(i_bound=3))
        monkeypatch.setattr(mini_bucket_plan, "GRAIN", 200.0)
        steps: list[int] = []
        cut = mf.marginals(spec.build(), method=MiniBucket(i_bound=3), callback=lambda p: steps.append(p.step))
        assert len(steps) > 100
        np.testing.assert_allclose(whole.values, cut.values, rtol=0, atol=1e-6)

    def test_plans_are_kept_and_moved_to_other_evidence(self):
        spec = dense_spec(4, 8, 1.0, 0.0)
        graph = spec.build().compile()
        method = MiniBucket(i_bound=3)
        for states in ({0: 0}, {0: 1}):
            low, high = mf.log_partition(graph, spec.named(states), method=method).log_partition_bounds
            assert low <= spec.oracle(states).log_partition <= high
        assert len(mini_bucket._PLANS.of(graph.structure)) == 1

    def test_starting_from_an_earlier_answer(self):
        spec = dense_spec(5, 9, 1.0, 0.1)
        graph = spec.build().compile()
        method = MiniBucket(i_bound=2, max_iterations=5, tolerance=0.0)
        first = mf.marginals(graph, method=method)
        second = mf.marginals(graph, method=method, init=first)
        assert second.log_partition < first.log_partition
        assert second.log_partition >= spec.oracle().log_partition

    def test_starting_where_hard_zeros_were(self):
        """What an earlier answer found impossible need not be so for other tables on the same structure."""
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        tables = np.random.default_rng(2).normal(size=(2, 2, 2, 2))
        tables[0, 0, 1, :] = -np.inf
        for scope, table in zip((["A", "B", "C"], ["A", "B", "D"]), tables, strict=True):
            net.add_factor(scope, log_table=table)
        graph = net.compile()
        method = MiniBucket(i_bound=2, order=tuple("ABCD"))
        first = mf.marginals(graph, method=method)
        assert np.isneginf(first._state[1]).any()
        free = np.where(np.isneginf(graph.log_tables), 3.0, graph.log_tables)
        moved = mf.log_partition(graph.with_tables(free), method=method, init=first)
        assert moved.log_partition >= float(mf.log_partition(graph.with_tables(free))) - TOLERANCE

    def test_stopped_early_it_answers_with_what_it_has(self):
        spec = dense_spec(6, 9, 1.0, 0.0)
        truth = spec.oracle().log_partition
        for steps in (3, 10, 60):
            method = MiniBucket(i_bound=2, tolerance=0.0)
            answer = mf.marginals(spec.build(), method=method, callback=lambda p, steps=steps: p.step > steps)
            assert not answer.converged
            assert answer.log_partition_bounds[0] <= truth <= answer.log_partition_bounds[1]
            best = mf.decode(spec.build(), method=method, callback=lambda p, steps=steps: p.step > steps)
            assert best.upper_bound >= spec.oracle().best_score - TOLERANCE
        with pytest.raises(mf.StoppedError):
            mf.marginals(spec.build(), method=MiniBucket(), callback=lambda p: True)

    def test_an_end_before_convergence_is_told(self):
        from sklearn.exceptions import ConvergenceWarning

        model = dense_spec(6, 9, 1.0, 0.0).build()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ConvergenceWarning, match=r"mini_bucket did not converge in 2 iterations"):
                mf.log_partition(model, method=MiniBucket(i_bound=2, max_iterations=2))

    def test_inputs_are_never_changed(self):
        graph = dense_spec(7, 8, 1.0, 0.2).build().compile()
        before = graph.log_tables.copy()
        mf.marginals(graph, method=MiniBucket(i_bound=2))
        np.testing.assert_array_equal(graph.log_tables, before)


class TestRefusals:
    def net(self) -> mf.MarkovNetwork:
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        net.add_factors(combinations("ABCD", 2), [[2.0, 1.0], [1.0, 3.0]])
        return net

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"i_bound": 0}, r"i_bound of MiniBucket must be at least 1, got 0"),
            ({"i_bound": 2.5}, r"i_bound of MiniBucket must be an integer, got 2\.5"),
            ({"max_iterations": -1}, r"max_iterations of MiniBucket must be at least 0, got -1"),
            ({"max_states": 0}, r"max_states of MiniBucket must be at least 1, got 0"),
            ({"tolerance": -1.0}, r"tolerance of MiniBucket must be at least 0, got -1\.0"),
        ],
    )
    def test_settings(self, settings: dict[str, Any], message: str):
        with pytest.raises(mf.ModelError, match=message):
            MiniBucket(**settings)

    def test_n_best_and_marginal_map(self):
        with pytest.raises(mf.ModelError, match=r"one assignment, not the 3 best: use junction_tree"):
            mf.decode(self.net(), n_best=3, method=MiniBucket())
        with pytest.raises(mf.ModelError, match=r"not 1 of them .* use junction_tree"):
            mf.decode(self.net(), variables=["A"], method=MiniBucket())
        named = mf.decode(self.net(), variables=list("DCBA"), method=MiniBucket())
        assert list(named.assignment) == list("DCBA")

    def test_a_noisy_max(self):
        net = mf.BayesianNetwork({"A": 2, "B": 2, "C": 2})
        net.add_cpt("A", [], [0.3, 0.7])
        net.add_cpt("B", [], [0.6, 0.4])
        net.add_noisy_or("C", ["A", "B"], [0.8, 0.5], leak=0.1)
        with pytest.raises(mf.ModelError, match=r"contributions of a noisy-max, which must be summed"):
            mf.decode(net, method=MiniBucket())
        exact = mf.marginals(net, {"C": 1}, method="enumeration")
        np.testing.assert_allclose(mf.marginals(net, {"C": 1}, method=MiniBucket())["A"], exact["A"], atol=TOLERANCE)

    def test_an_incomplete_order(self):
        with pytest.raises(mf.ModelError, match=r"order names 2 of 4 variables"):
            mf.log_partition(self.net(), method=MiniBucket(order=("A", "B")))

    def test_memory(self):
        with pytest.raises(mf.MemoryLimitError, match=r"at most 4 variables need about .* lower i_bound"):
            mf.log_partition(self.net(), method=MiniBucket(i_bound=3, memory_limit=1000))

    def test_joints_outside_mini_buckets(self):
        answer = mf.marginals(self.net(), method=MiniBucket(i_bound=1))
        assert answer.joint(["A"]).sum() == pytest.approx(1.0)
        with pytest.raises(mf.ModelError, match=r"no mini-bucket holds 'A', 'B', 'C' together"):
            answer.joint(["A", "B", "C"])

    def test_a_start_from_elsewhere(self):
        with pytest.raises(mf.ModelError, match=r"must be an answer of mf\.marginals by mini_bucket"):
            mf.marginals(self.net(), method=MiniBucket(), init=mf.marginals(self.net()))
        with pytest.raises(mf.ModelError, match=r"decodes from the start and takes no init"):
            mf.decode(self.net(), method=MiniBucket(), init=mf.marginals(self.net(), method=MiniBucket()))
        other = mf.marginals(self.net(), method=MiniBucket(i_bound=1))
        with pytest.raises(mf.ModelError, match=r"other mini-buckets"):
            mf.marginals(self.net(), method=MiniBucket(i_bound=3), init=other)
