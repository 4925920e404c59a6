"""Unions of many components are swept some components at a time: the same messages as all at once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.belief_propagation import loopy


def union(rng: np.random.Generator, hard: bool) -> FactorGraph:
    """Small cycles; of some the potentials span hundreds of powers of ten, so that they run in log space."""
    parts = []
    for i in range(12):
        n, k = 3 + i % 3, 2 + i % 2
        net = mf.MarkovNetwork(dict.fromkeys(range(n), k))
        scale = 400.0 if hard and i % 4 == 0 else 1.0
        for v in range(n):
            net.add_factor([v], log_table=rng.normal(size=k))
            net.add_factor([v, (v + 1) % n], log_table=scale * rng.normal(size=(k, k)))
        parts.append(net.compile())
    return FactorGraph.union(parts)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_change_no_bit(hard: bool, damping: float, n_jobs: int, monkeypatch: Any) -> None:
    graph = union(np.random.default_rng(5), hard)
    method = mf.methods.BeliefPropagation("sequential", damping=damping, max_iterations=60)
    found = []
    for block in (2**40, 20, 60):
        monkeypatch.setattr(loopy, "BLOCK", block)
        fresh = FactorGraph(graph.structure.from_arrays(
            graph.structure.cardinalities, graph.structure.scope_offsets, graph.structure.scopes,
            graph.structure.table_offsets, graph.structure.table_strides, n_cells=graph.structure.n_cells,
        ), graph.log_tables)  # fmt: skip
        assert (len(loopy.sweep_blocks(fresh.structure)[1]) > 1) == (block < 2**40)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = mf.marginals(fresh, method=method, n_jobs=n_jobs)
            decoded = mf.decode(fresh, method=method, n_jobs=n_jobs)
        found.append((answer, decoded))
    whole, best = found[0]
    for answer, decoded in found[1:]:
        assert np.array_equal(answer.values, whole.values)
        assert answer.log_partition == whole.log_partition
        assert answer.components is not None
        assert whole.components is not None
        assert np.array_equal(answer.components.iterations, whole.components.iterations)
        assert np.array_equal(answer.components.converged, whole.components.converged)
        assert np.array_equal(decoded.states, best.states)


def test_blocks_hold_whole_components() -> None:
    structure = union(np.random.default_rng(1), False).structure
    order, cuts = loopy.sweep_blocks(structure)
    assert sorted(order.tolist()) == list(range(structure.n_variables))
    assert cuts[0][0] == 0
    assert cuts[-1][1] == structure.n_variables
