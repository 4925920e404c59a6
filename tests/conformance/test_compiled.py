"""A compiled junction tree, batches of evidence and expected counts against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.conformance.asking import (
    EXAMPLES,
    check_impossible,
    check_marginals,
    close,
    close_logs,
    close_probabilities,
)
from tests.oracle import Oracle
from tests.strategies import (
    Spec,
    random_spec,
    specs,
    specs_with_evidence,
)


class TestCompiled:
    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence())
    def test_run(self, case: tuple[Spec, dict]):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:  # where even no evidence is possible, compiling says so already
            check_impossible(lambda: mf.methods.JunctionTree.compile(spec.build()).run(spec.named(evidence)))
            return
        tree = mf.methods.JunctionTree.compile(spec.build())
        check_marginals(tree.run(spec.named(evidence)), spec, oracle)
        check_marginals(tree.run(), spec, spec.oracle())
        check_marginals(tree.run(spec.named(evidence)), spec, oracle)

    @pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
    @settings(max_examples=12)
    @given(data=st.data(), seed=st.integers(0, 2**16))
    def test_a_batch_is_its_rows(self, kind: str, data: Any, seed: int):
        spec = data.draw(specs(kind))
        oracle = spec.oracle()
        if oracle.impossible:
            return
        rng = np.random.default_rng(seed)
        # Rows that can happen: possible assignments with most entries hidden.
        rows = oracle.states[rng.choice(len(oracle.states), 9, p=oracle.probabilities.astype(float))]
        rows = np.where(rng.random(rows.shape) < 0.7, -1, rows)
        kept = rows.copy()
        tree = mf.methods.JunctionTree.compile(spec.build())
        batch = tree.run_batch(rows)
        np.testing.assert_array_equal(rows, kept)
        assert batch.log_partition.shape == (9,)
        for i, row in enumerate(rows.tolist()):
            each = spec.oracle({v: s for v, s in enumerate(row) if s >= 0})
            close_logs(batch.log_partition[i], each.log_partition)
            for v, label in enumerate(spec.labels):
                assert batch[label].shape == (9, spec.cardinalities[v])
                close_probabilities(batch[label][i], each.marginal(v))

    @settings(max_examples=EXAMPLES)
    @given(specs_with_evidence(virtual=False))
    def test_expected_counts(self, case: tuple[Spec, dict]):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        graph = spec.build().compile()
        clamps = np.full(spec.n_variables, -1)
        for v, state in evidence.items():
            clamps[v] = state
        if oracle.impossible:
            check_impossible(lambda: mf.expected_counts(graph.structure, graph.log_tables, clamps))
            return
        kept = clamps.copy()
        log_partition, counts = mf.expected_counts(graph.structure, graph.log_tables, clamps)
        close_logs(log_partition, oracle.log_partition)
        assert counts.shape == (spec.n_cells,) and counts.dtype == np.float64
        close(counts, spec.pool_counts(oracle))
        np.testing.assert_array_equal(clamps, kept)

    def test_expected_counts_are_the_gradient_of_log_partition(self):
        spec = random_spec(11, hard=False, clauses=True)
        graph = spec.build().compile()
        _, counts = mf.expected_counts(graph.structure, graph.log_tables)
        step = 1e-5
        for cell in range(0, spec.n_cells, max(1, spec.n_cells // 12)):
            moved = []
            for sign in (1, -1):
                tables = graph.log_tables.copy()
                tables[cell] += sign * step
                moved.append(mf.expected_counts(graph.structure, tables)[0])
            assert (moved[0] - moved[1]) / (2 * step) == pytest.approx(counts[cell], abs=1e-7)

    def test_other_tables_on_the_same_structure(self):
        spec = random_spec(5, hard=False)
        graph = spec.build().compile()
        rng = np.random.default_rng(0)
        for _ in range(3):
            tables = rng.normal(size=spec.n_cells)
            oracle = Oracle(
                spec.cardinalities,
                [(s, t) for (s, _), t in zip(spec.factors, spec.from_pool(tables), strict=True)],
            )
            ours, counts = mf.expected_counts(graph.structure, tables)
            close_logs(ours, oracle.log_partition)
            close(counts, spec.pool_counts(oracle))
            answer = mf.marginals(graph.with_tables(tables), method="junction_tree")
            close_logs(answer.log_partition, oracle.log_partition)
