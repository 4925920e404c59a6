"""Which plans may tally counts of several subtrees in one array: those whose subtrees read no cell in common."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import no_evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree


def chains(n: int, shared: bool) -> Structure:
    """So many chains of 20 variables of 12 states, the tables of all pairs shared or not."""
    pairs = np.concatenate([20 * i + np.stack([np.arange(19), np.arange(1, 20)], axis=1) for i in range(n)])
    m, k = len(pairs), 144
    return Structure.from_arrays(
        np.full(20 * n, 12),
        np.arange(m + 1) * 2,
        pairs.ravel(),
        np.zeros(m, int) if shared else np.arange(m)[::-1] * k,
        n_cells=k if shared else m * k,
    )


@pytest.mark.parametrize("shared", [False, True])
def test_counts_of_many_trees_side_by_side(shared: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("markovfield.inference.junction_tree.plan.PARALLEL_OPERATIONS", 1e5)
    s = chains(40, shared)
    method = JunctionTree()
    graph = FactorGraph(s, np.random.default_rng(0).normal(size=s.n_cells))
    plan = method.plan(method.prepare(graph, no_evidence(s)))
    assert len(plan.parts(upward=False)[0]) > 1
    assert plan.parts_read_apart is not shared
    clamps = np.full((1, s.n_variables), -1, np.int32)
    clamps.flags.writeable = False
    found = [method.counts(graph, clamps, np.ones(1), running=Running(n_jobs=jobs)).counts for jobs in (1, 2)]
    np.testing.assert_array_equal(*found)
    # One chain by itself has the same counts.
    one = chains(1, shared)
    for i in range(0 if shared else 3):
        own = graph.log_tables[(40 - i - 1) * 19 * 144 : (40 - i) * 19 * 144]
        alone = method.counts(FactorGraph(one, own), clamps[:, :20], np.ones(1), running=Running()).counts
        np.testing.assert_allclose(found[0][(40 - i - 1) * 19 * 144 : (40 - i) * 19 * 144], alone, atol=1e-12)
    if shared:
        alone = method.counts(FactorGraph(one, graph.log_tables), clamps[:, :20], np.ones(1), running=Running()).counts
        np.testing.assert_allclose(found[0], 40 * alone, rtol=1e-10)


def test_a_small_plan_is_one_part():
    s = chains(1, shared=False)
    method = JunctionTree()
    assert method.plan(method.prepare(FactorGraph(s, np.zeros(s.n_cells)), no_evidence(s))).parts_read_apart
