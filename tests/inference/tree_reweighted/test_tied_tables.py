"""Bounds of tree-reweighted propagation where domains shrink and tables are shared."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf


class TestTiedTablesAndZeroLikelihoods:
    """Likelihoods of zero shrink domains, so that edges of one table read it in different shapes."""

    @pytest.mark.parametrize("evidence", [{}, {2: [1, 1, 0]}, {1: [1, 1, 0]}, {0: [0, 1, 1], 2: [1, 0, 1]}])
    def test_the_bound_of_a_triangle_holds(self, evidence: dict):
        net = mf.MarkovNetwork(dict.fromkeys(range(3), 3))
        net.add_factors([(0, 1), (1, 2), (0, 2)], log_table=[[0, 0, 0], [0, 0, 0], [5, 5, 5]])
        exact = float(mf.log_partition(net, evidence, method="enumeration"))
        for method in ("tree_reweighted", "sandwich"):
            assert mf.log_partition(net, evidence, method=method).log_partition_bounds[1] >= exact - 1e-9

    @pytest.mark.parametrize("seed", range(60))
    def test_random_lattices(self, seed: int):
        rng = np.random.default_rng(seed)
        k, rows, columns = int(rng.integers(3, 5)), 2, 3
        net = mf.MarkovNetwork(dict.fromkeys(range(rows * columns), k))
        site = np.arange(rows * columns).reshape(rows, columns)
        pairs = [
            *zip(site[:, :-1].ravel(), site[:, 1:].ravel(), strict=True),
            *zip(site[:-1].ravel(), site[1:].ravel(), strict=True),
        ]
        net.add_factors([[int(a), int(b)] for a, b in pairs], log_table=rng.normal(scale=2.0, size=(k, k)))
        evidence = {}
        for v in range(rows * columns):
            if rng.random() < 0.5:
                likelihood = rng.random(k) * (rng.random(k) < 0.6)
                evidence[v] = likelihood if likelihood.any() else np.eye(k)[0]
        exact = float(mf.log_partition(net, evidence, method="enumeration"))
        answer = mf.log_partition(net, evidence, method="tree_reweighted")
        assert answer.log_partition_bounds[1] >= exact - 1e-9
        best = mf.decode(net, evidence, method="enumeration").score
        assert mf.decode(net, evidence, method="tree_reweighted").upper_bound >= best - 1e-9
