"""Mini-buckets: bounds, exactness, decodings."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.mini_bucket.mini_bucket import MiniBucket
from markovfield.inference.problem.problem import prepare
from tests.inference.mini_bucket.dense_models import TOLERANCE, check_bounds, dense, dense_spec, slack
from tests.oracle import Oracle
from tests.strategies import Spec, specs_with_evidence


class TestBounds:
    @settings(max_examples=60)
    @given(dense(), st.sampled_from([1, 2, 3, 4]), st.sampled_from([0, 1, 2, 5, 60]))
    def test_hold_on_frustrated_models_at_every_iteration(self, case: tuple[Spec, dict], i_bound: int, iterations: int):
        check_bounds(*case, i_bound=i_bound, max_iterations=iterations, tolerance=0.0)

    @pytest.mark.parametrize("kind", ["graph", "bayesian"])
    @settings(max_examples=30)
    @given(data=st.data(), i_bound=st.sampled_from([1, 2, 3]), iterations=st.sampled_from([0, 1, 30]))
    def test_hold_on_models_of_all_kinds(self, kind: str, data: Any, i_bound: int, iterations: int):
        """Ties, tied tables, clauses, repeated variables, variables of one state, virtual evidence."""
        check_bounds(*data.draw(specs_with_evidence(kind)), i_bound=i_bound, max_iterations=iterations)

    @settings(max_examples=15)
    @given(specs_with_evidence(scale=1000.0), st.sampled_from([1, 2]))
    def test_hold_at_extreme_potentials(self, case: tuple[Spec, dict], i_bound: int):
        check_bounds(*case, i_bound=i_bound, max_iterations=20)

    @settings(max_examples=15)
    @given(dense(), st.sampled_from([6, 12, 40, 200]))
    def test_hold_where_states_are_limited(self, case: tuple[Spec, dict], max_states: int):
        check_bounds(*case, i_bound=8, max_states=max_states, max_iterations=10)

    @pytest.mark.parametrize("seed", range(6))
    def test_each_iteration_tightens(self, seed: int):
        model = dense_spec(seed, 9, 1.0, 0.0).build()
        widths = []
        for iterations in (0, 1, 2, 4, 8, 32):
            method = MiniBucket(i_bound=2, max_iterations=iterations, tolerance=0.0)
            answer = mf.log_partition(model, method=method)
            assert answer.iterations == len(answer.residuals) <= iterations
            assert all(gain >= 0.0 for gain in answer.residuals)
            widths.append(answer.log_partition_bounds[1])
        assert all(after <= before + 1e-12 for before, after in pairwise(widths))
        assert widths[-1] < widths[0]

    def test_both_kinds_of_lower_bound_are_needed_and_finite(self):
        """Positive models: negative weights do better at high temperature, fixing variables at low temperature."""
        for scale, zeros in ((0.2, 0.0), (6.0, 0.4)):
            spec = dense_spec(1, 9, scale, zeros)
            low, high = mf.log_partition(spec.build(), method=MiniBucket(i_bound=3)).log_partition_bounds
            assert -np.inf < low <= spec.oracle().log_partition <= high
            assert high - low < 12.0

    def test_a_larger_bound_is_tighter_in_the_mean(self):
        """Cuts differ from one bound to the next, so a single model may do worse; the mean over twenty must not."""
        gaps = np.zeros((20, 4))
        for seed in range(20):
            spec = dense_spec(seed, 9, 1.0, 0.1 * (seed % 3))
            model, truth = spec.build(), spec.oracle().log_partition
            for column, i_bound in enumerate((1, 2, 4, 6)):
                low, high = mf.log_partition(model, method=MiniBucket(i_bound=i_bound)).log_partition_bounds
                gaps[seed, column] = (high - truth) + min(truth - low, 50.0)
        mean = gaps.mean(axis=0)
        assert (np.diff(mean) < 0).all()
        assert mean[-1] < 0.5 * mean[0]


class TestExact:
    """Nothing is cut once the bound reaches the width of the order."""

    @settings(max_examples=40)
    @given(dense())
    def test_dense(self, case: tuple[Spec, dict]):
        self.check(*case)

    @pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
    @settings(max_examples=20)
    @given(data=st.data())
    def test_all_kinds(self, kind: str, data: Any):
        self.check(*data.draw(specs_with_evidence(kind)))

    @staticmethod
    def check(spec: Spec, evidence: dict[int, Any]) -> None:
        oracle = spec.oracle(evidence)
        model, known, method = spec.build(), spec.named(evidence), MiniBucket(i_bound=spec.n_variables + 30)
        if oracle.impossible:
            for verb in (mf.log_partition, mf.marginals, mf.decode):
                with pytest.raises(mf.ImpossibleEvidenceError):
                    verb(model, known, method=method)
            return
        answer = mf.marginals(model, known, method=method)
        truth = oracle.log_partition
        for found in (answer, mf.log_partition(model, known, method=method)):
            assert found.guarantee == "exact" and found.converged and found.iterations == 0
            np.testing.assert_allclose(found.log_partition_bounds, [truth, truth], rtol=0, atol=slack(truth))
        for v, label in enumerate(spec.labels):
            np.testing.assert_allclose(answer[label], oracle.marginal(v), rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(answer.expected_counts, spec.pool_counts(oracle), rtol=0, atol=TOLERANCE)
        for f, (scope, _) in enumerate(spec.factors):
            once = list(dict.fromkeys(scope))[::-1]
            if answer.graph.structure.kind[f] == 0 and 0 < len(once) <= 3:
                joint = answer.joint([spec.labels[v] for v in once])
                np.testing.assert_allclose(joint, oracle.joint(once), rtol=0, atol=TOLERANCE)
        best = mf.decode(model, known, method=method)
        assert best.optimal and best.guarantee == "exact"
        assert best.score == pytest.approx(oracle.best_score, abs=slack(truth))
        assert oracle.score(spec.states(best.assignment)) == pytest.approx(oracle.best_score, abs=slack(truth))

    def test_nothing_at_all(self):
        net = mf.MarkovNetwork({})
        assert float(mf.log_partition(net, method=MiniBucket())) == 0.0
        net = mf.MarkovNetwork({"A": 3, "B": 1})
        assert float(mf.log_partition(net, method=MiniBucket())) == pytest.approx(np.log(3.0))
        assert mf.decode(net, method=MiniBucket()).score == 0.0


class TestDecode:
    def test_a_tree_cut_in_two_is_still_solved(self):
        """The linear relaxation of a forest is tight: tightening must close the gap that the cut opened."""
        rng = np.random.default_rng(5)
        net = mf.MarkovNetwork(dict.fromkeys(range(8), 3))
        edges = [(0, 1), (0, 2), (0, 3), (0, 4), (4, 5), (4, 6), (6, 7)]
        tables = [rng.normal(size=(3, 3)) for _ in edges]
        for edge, table in zip(edges, tables, strict=True):
            net.add_factor(edge, log_table=table)
        method = MiniBucket(i_bound=1, order=tuple(range(8)), max_iterations=400, tolerance=1e-9)
        best = mf.decode(net, method=method)
        assert best.width == 1 and best.gap < 1e-3
        assert best.score == pytest.approx(Oracle([3] * 8, list(zip(edges, tables, strict=True))).best_score)

    def test_hard_zeros_are_met(self):
        """Reading states off one by one would break the constraint; the fixed set and the exact rest do not."""
        rng = np.random.default_rng(0)
        net = mf.MarkovNetwork(dict.fromkeys(range(12), 3))
        different = np.where(np.eye(3) > 0, -np.inf, 0.0)
        edges = [(i, (i + k) % 12) for i in range(12) for k in (1, 2)]
        for edge in edges:
            net.add_factor(edge, log_table=different + 0.1 * rng.normal(size=(3, 3)))
        best = mf.decode(net, method=MiniBucket(i_bound=2))
        assert -np.inf < best.score <= mf.decode(net, method="junction_tree").score + TOLERANCE
        low, high = mf.log_partition(net, method=MiniBucket(i_bound=2)).log_partition_bounds
        assert -np.inf < low <= float(mf.log_partition(net)) <= high


class TestCutset:
    @pytest.mark.parametrize(("seed", "zeros"), [(0, 0.0), (1, 0.3), (2, 0.5)])
    def test_leaves_small_cliques_and_bounds_from_below(self, seed: int, zeros: float):
        spec = dense_spec(seed, 10, 1.0, zeros)
        graph = spec.build().compile()
        problem = prepare(graph, Evidence.parse(graph.structure, None))
        method = MiniBucket(i_bound=2)
        buckets, upper = method.best_buckets(problem, 1.0, Running())
        cutset = method.cutset(buckets, upper.shifts, upper.weights, Running())
        assert cutset.evidence is not None
        fixed = np.flatnonzero(cutset.evidence.states >= 0)
        assert 0 < len(fixed) < 10
        assert mf.methods.JunctionTree().tree(prepare(graph, cutset.evidence)).width <= 2
        among = spec.oracle({int(v): int(cutset.evidence.states[v]) for v in fixed})
        assert cutset.bound() == pytest.approx(among.log_partition)
        best = cutset.decode()
        assert best is not None
        assert best[1] == pytest.approx(among.best_score)
        assert spec.oracle().score(best[0].tolist()) == pytest.approx(among.best_score)
