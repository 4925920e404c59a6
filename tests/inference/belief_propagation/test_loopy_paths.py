"""Loopy belief propagation on its special paths: batches of evidence, lattices in planes, structured factors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.inference.belief_propagation import lattice as lattice_propagation
from tests.inference.belief_propagation.test_loopy_propagation import bp, cyclic, grid


class TestBatches:
    @settings(max_examples=12, deadline=None)
    @given(seed=st.integers(0, 2**16), zeros=st.sampled_from([0.0, 0.15]))
    def test_a_batch_is_its_rows(self, seed: int, zeros: float):
        rng = np.random.default_rng(seed)
        spec = cyclic(rng, zeros=zeros)
        graph = spec.build().compile()
        rows = np.array(
            [[rng.integers(-1, c) if rng.random() < 0.4 else -1 for c in spec.cardinalities] for _ in range(37)]
        )
        method = mf.BeliefPropagation("synchronous", tolerance=1e-11, damping=0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            batch = method.compile(graph).run_batch(rows, impossible="nan")
            assert batch.values.shape == (37, sum(spec.cardinalities))
            for row, values, log_partition, settled in zip(
                rows, batch.values, batch.log_partition, batch.converged, strict=True
            ):
                known = {v: int(x) for v, x in enumerate(row) if x >= 0}
                try:
                    answer = mf.marginals(graph, spec.named(known), method=method)
                except mf.ImpossibleEvidenceError:
                    assert log_partition == -np.inf and np.isnan(values).all()
                    continue
                assert settled == answer.converged
                if settled:
                    np.testing.assert_allclose(values, answer.values, rtol=0, atol=1e-8)
                    assert log_partition == pytest.approx(answer.log_partition, abs=1e-8)

    def test_threads_and_clauses(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
        rng = np.random.default_rng(0)
        for v in range(6):
            net.add_factor([v], log_table=rng.normal(size=2))
            net.add_factor([v, (v + 1) % 6], log_table=0.3 * rng.normal(size=(2, 2)))
        net.add_clause({0: 1, 2: 1, 4: 0}, weight=1.5)
        rows = rng.integers(-1, 2, (100, 6))
        compiled = mf.BeliefPropagation(tolerance=1e-12).compile(net)
        one, two = compiled.run_batch(rows, n_jobs=1), compiled.run_batch(rows, n_jobs=3)
        np.testing.assert_array_equal(one.values, two.values)
        for i in (0, 17, 99):
            known = {v: int(x) for v, x in enumerate(rows[i]) if x >= 0}
            answer = mf.marginals(net, known, method=mf.BeliefPropagation("synchronous", tolerance=1e-12))
            np.testing.assert_allclose(one.values[i], answer.values, atol=1e-9)
            assert one.log_partition[i] == pytest.approx(answer.log_partition, abs=1e-9)

    def test_impossible_rows(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], log_table=[[0.0, -np.inf], [-np.inf, 0.0]])
        compiled = mf.BeliefPropagation.compile(net)
        with pytest.raises(mf.ImpossibleEvidenceError, match=r"row 1: A=0, C=1"):
            compiled.run_batch([[0, -1, -1], [0, -1, 1]])
        batch = compiled.run_batch([[0, -1, -1], [0, -1, 1]], impossible="nan")
        assert batch.log_partition[1] == -np.inf and np.isnan(batch["B"][1]).all()
        assert batch["B"][0].tolist() == [1.0, 0.0]
        with pytest.raises(mf.ModelError, match=r"takes schedules .* got 'residual'"):
            mf.BeliefPropagation("residual").compile(net)
        with pytest.raises(mf.ModelError, match="must be 'raise' or 'nan', got 'no'"):
            compiled.run_batch([[0, -1, -1]], impossible="no")


class TestLattices:
    @pytest.mark.parametrize("schedule", ["synchronous", "sequential"])
    @pytest.mark.parametrize("damping", [0.0, 0.3])
    @pytest.mark.parametrize("tied", [True, False])
    def test_planes_find_the_fixed_point_of_the_general_path(
        self, schedule: str, damping: float, tied: bool, monkeypatch: pytest.MonkeyPatch
    ):
        graph = grid(9, 13, 2, tied=tied)
        evidence = {7: 1, 20: [0.3, 0.7], 55: [0.0, 1.0]}
        # Max-product settles only where neighbours say less than the variable itself.
        weak = graph.log_tables.copy()
        weak[: len(weak) - 2 * 117] *= 0.2
        for verb in (mf.marginals, mf.decode):
            graph = graph if verb is mf.marginals else graph.with_tables(weak)
            with monkeypatch.context() as patched:
                planes = verb(graph, evidence, method=bp(schedule, damping=damping))
                assert graph.structure.cache["lattice"] is not None
                patched.setattr(lattice_propagation, "find_lattice", lambda *_: None)
                general = verb(graph, evidence, method=bp(schedule, damping=damping))
            assert planes.converged and general.converged
            if verb is mf.marginals:
                np.testing.assert_allclose(planes.values, general.values, rtol=0, atol=1e-11)
                assert planes.log_partition == pytest.approx(general.log_partition, abs=1e-10)
            else:
                assert planes.assignment == general.assignment
            if schedule == "synchronous":
                np.testing.assert_allclose(planes.residuals[:10], general.residuals[:10], rtol=1e-6, atol=1e-14)

    def test_factors_either_way_round_and_holes(self, monkeypatch: pytest.MonkeyPatch):
        rng = np.random.default_rng(1)
        net = mf.MarkovNetwork(dict.fromkeys(range(80), 2))
        for v in range(80):
            net.add_factor([v], log_table=rng.normal(size=2))
            for u in (v + 1,) * (v % 10 < 9) + (v + 10,) * (v < 70):
                if rng.random() < 0.9:
                    net.add_factor([v, u] if rng.random() < 0.5 else [u, v], log_table=0.5 * rng.normal(size=(2, 2)))
        planes = mf.marginals(net, method=bp("sequential"))
        assert net.compile().structure.cache["lattice"].width == 10
        monkeypatch.setattr(lattice_propagation, "find_lattice", lambda *_: None)
        np.testing.assert_allclose(planes.values, mf.marginals(net, method=bp("sequential")).values, atol=1e-11)

    def test_what_is_no_lattice(self):
        for graph in (grid(9, 9, 3), grid(1, 90, 2), grid(5, 5, 2)):
            mf.marginals(graph, method=bp("synchronous"))
            assert graph.structure.cache["lattice"] is None
        zeros = grid(9, 9, 2)
        tables = zeros.log_tables.copy()
        tables[3] = -np.inf
        tables[8:10] = 60.0, -60.0
        answer = mf.marginals(zeros.with_tables(tables), method=bp("synchronous"))
        assert answer.converged and answer.joint([0, 1])[1, 1] == 0.0


class TestStructured:
    def test_clauses_run_as_they_are(self):
        """Natively and as chains of auxiliary variables: one fixed point, one Bethe value."""
        rng = np.random.default_rng(4)
        net = mf.MarkovNetwork(dict.fromkeys(range(8), 2))
        for v in range(8):
            net.add_factor([v], log_table=rng.normal(size=2))
        net.add_clause({0: 1, 1: 1, 2: 0}, {3: 1}, weight=1.2)
        net.add_clause({2: 1, 3: 0, 5: 1, 6: 1}, weight=np.inf)
        net.add_clause({7: 1, 0: 0}, weight=0.7)
        net.add_factor([4, 7, 1], log_table=0.4 * rng.normal(size=(2, 2, 2)))
        evidence = {6: [0.7, 0.3]}
        native = mf.marginals(net, evidence, method=bp("synchronous"))
        as_tables = mf.marginals(net, evidence, method=bp("sequential"))
        assert native.converged and as_tables.converged
        np.testing.assert_allclose(native.values, as_tables.values, atol=1e-10)
        assert native.log_partition == pytest.approx(as_tables.log_partition, abs=1e-9)
        np.testing.assert_allclose(native.expected_counts, as_tables.expected_counts, atol=1e-9)
        best = mf.decode(net, evidence, method=bp("synchronous", damping=0.2))
        assert best.score == pytest.approx(float(mf.decode(net, evidence, method="junction_tree").score))

    def test_a_clause_of_a_thousand_variables_is_one_factor(self):
        n = 1000
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        net.add_clause(dict.fromkeys(range(n), 1), weight=np.inf)
        for v in range(n):
            net.add_factor([v], log_table=[0.0, -6.0])
        exact = mf.marginals(net, method="bp")
        answer = mf.marginals(net, method=bp("synchronous"))
        assert exact.guarantee == "exact" and answer.iterations <= 3
        np.testing.assert_allclose(answer.values, exact.values, atol=1e-10)
        assert answer.log_partition == pytest.approx(exact.log_partition, abs=1e-9)

    def test_noisy_or_sums_but_does_not_maximise(self):
        net = mf.BayesianNetwork(dict.fromkeys("ABC", 2))
        for v in "AB":
            net.add_cpt(v, [], [0.7, 0.3])
        net.add_noisy_or("C", ["A", "B"], [0.8, 0.6], leak=0.1)
        exact = mf.marginals(net, {"C": 1}, method="junction_tree")
        answer = mf.marginals(net, {"C": 1}, method=bp("synchronous"))
        np.testing.assert_allclose(answer.values, exact.values, atol=1e-10)
        assert answer.log_partition == pytest.approx(exact.log_partition, abs=1e-10)
        np.testing.assert_allclose(answer.expected_counts, exact.expected_counts, atol=1e-10)
        with pytest.raises(mf.ModelError, match="would maximise the contributions of a noisy-max"):
            mf.decode(net, {"C": 1}, method=bp("synchronous"))


KINDS = ("or", "and", "parity", "at most one", "exactly", "cardinality", "potts", "linear", "quadratic")


def add(net: mf.MarkovNetwork, kind: str, scope: list[int], weight: float) -> None:
    """One structured factor of a kind on a scope; the distances join the first two."""
    literals = dict.fromkeys(scope, 1)
    if kind == "or":
        net.add_or(literals, weight=weight)
    elif kind == "and":
        net.add_and(literals, weight=weight)
    elif kind == "parity":
        net.add_parity(literals, weight=weight)
    elif kind == "at most one":
        net.add_at_most_one(literals, weight=weight)
    elif kind == "exactly":
        net.add_exactly(2, literals, weight=weight)
    elif kind == "cardinality":
        net.add_cardinality([0.0, 0.7, -0.4], literals)
    elif kind == "potts":
        net.add_potts([scope[:2]], log_equal=0.8)
    else:
        net.add_truncated([scope[:2]], weight=0.5, truncation=2, power=1 if kind == "linear" else 2)


class TestKinds:
    @pytest.mark.parametrize("weight", [0.9, np.inf])
    @pytest.mark.parametrize("kind", KINDS)
    def test_on_a_tree_every_kind_is_exact(self, kind: str, weight: float):
        """A structured factor with tables hanging off it, sums and maxima, iterated as on a cyclic graph."""
        rng = np.random.default_rng(len(kind))
        net = mf.MarkovNetwork(dict.fromkeys(range(6), 3))
        for v in range(6):
            net.add_factor([v], log_table=rng.normal(size=3))
        add(net, kind, [0, 1, 2, 3], weight)
        net.add_factor([1, 4], log_table=rng.normal(size=(3, 3)))
        net.add_factor([5, 3], log_table=rng.normal(size=(3, 3)))
        for evidence in ({}, {4: 2, 0: [0.2, 0.5, 0.3]}):
            exact = mf.marginals(net, evidence, method="enumeration")
            answer = mf.marginals(net, evidence, method=bp("synchronous"))
            np.testing.assert_allclose(answer.values, exact.values, rtol=0, atol=1e-10)
            assert answer.log_partition == pytest.approx(exact.log_partition, abs=1e-10)
            np.testing.assert_allclose(answer.expected_counts, exact.expected_counts, rtol=0, atol=1e-10)
            best = mf.decode(net, evidence, method=bp("synchronous"))
            assert best.score == pytest.approx(mf.decode(net, evidence, method="enumeration").score)

    @pytest.mark.parametrize("kind", KINDS)
    def test_on_cycles_a_kind_and_its_lowered_tables_agree(self, kind: str):
        rng = np.random.default_rng(len(kind))
        net = mf.MarkovNetwork(dict.fromkeys(range(6), 3))
        for v in range(6):
            net.add_factor([v], log_table=rng.normal(size=3))
            net.add_factor([v, (v + 1) % 6], log_table=0.3 * rng.normal(size=(3, 3)))
        add(net, kind, [0, 2, 3], 0.9)
        add(net, kind, [1, 5, 4], 0.5)
        native = mf.marginals(net, {3: 1}, method=bp("synchronous"))
        as_tables = mf.marginals(net, {3: 1}, method=bp("sequential"))
        assert native.converged and as_tables.converged
        np.testing.assert_allclose(native.values, as_tables.values, rtol=0, atol=1e-9)
        assert native.log_partition == pytest.approx(as_tables.log_partition, abs=1e-9)
        np.testing.assert_allclose(native.expected_counts, as_tables.expected_counts, rtol=0, atol=1e-9)
