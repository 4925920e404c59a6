"""Many rows of clamps in few calls: what each row has by itself, whatever rows it is asked with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.counts import row_by_row
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.row_counts import UNION_NODES
from markovfield.inference.core.running import Running
from markovfield.methods import BeliefPropagation, JunctionTree, MeanField, TreeReweighted

JOINING: list[Any] = [
    BeliefPropagation(tolerance=1e-12),
    BeliefPropagation("sequential", tolerance=1e-12),
    BeliefPropagation("synchronous", damping=0.2, tolerance=1e-12),
    TreeReweighted(tolerance=1e-12, max_iterations=1000),
    TreeReweighted(n_trees=7, tolerance=1e-12, max_iterations=1000),
    MeanField(tolerance=1e-12, max_iterations=2000),
    MeanField(structure="chains", tolerance=1e-12, max_iterations=2000),
    MeanField(structure="trees", tolerance=1e-12, max_iterations=2000),
]
APART: list[Any] = [
    BeliefPropagation("residual"),
    TreeReweighted(trees="optimised", frank_wolfe_iterations=2),
    MeanField(restarts=3),
    mf.methods.MiniBucket(),
]


def model(seed: int, n: int = 7) -> mf.FactorGraph:
    """Unary, paired and triple factors, the pairs of one table; variables of two and three states."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork({v: 2 + (v % 3 == 2) for v in range(n)})
    two = [v for v in range(n) if v % 3 != 2]
    net.add_factors([(two[i], two[(i + 1) % len(two)]) for i in range(len(two))], log_table=rng.normal(size=(2, 2)) / 2)
    net.add_factor([0, 1, 2], log_table=rng.normal(size=(2, 2, 3)) / 2)
    for v in range(n):
        net.add_factor([v], log_table=rng.normal(size=2 + (v % 3 == 2)) / 2)
    return net.compile()


def some_rows(graph: mf.FactorGraph, n_rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    cards = graph.structure.cardinalities
    states = (rng.random((n_rows, len(cards))) * cards).astype(np.int32)
    return np.where(rng.random(states.shape) < 0.4, states, -1).astype(np.int32)


def alone(method: Any, graph: mf.FactorGraph, clamps: np.ndarray, weights: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return row_by_row(method, graph, clamps, weights, 1, np.random.default_rng(0), Running())


def together(method: Any, graph: mf.FactorGraph, clamps: np.ndarray, weights: Any = None, **words: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mf.expected_counts(graph.structure, graph.log_tables, clamps, method, weights=weights, **words)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", JOINING, ids=repr)
def test_rows_have_what_they_have_alone(method: Any, weighted: bool, seed: int):
    graph = model(seed, 5 + seed)
    clamps = some_rows(graph, 40, seed)
    weights = np.random.default_rng(seed).integers(0, 4, 40) * 0.5 if weighted else np.ones(40)
    apart, found = alone(method, graph, clamps, weights), together(method, graph, clamps, weights)
    np.testing.assert_allclose(found.log_partition, apart.log_partition, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.counts, apart.counts, rtol=1e-7, atol=1e-8)
    assert (found.guarantee, found.converged, found.method) == (apart.guarantee, apart.converged, apart.method)


@pytest.mark.parametrize("method", APART, ids=repr)
def test_methods_and_settings_whose_rows_disturb_each_other_are_asked_row_by_row(method: Any):
    graph = model(1)
    clamps = some_rows(graph, 6, 1)
    apart, found = alone(method, graph, clamps, np.ones(6)), together(method, graph, clamps, rng=0)
    np.testing.assert_array_equal(found.log_partition, apart.log_partition)
    np.testing.assert_array_equal(found.counts, apart.counts)


@pytest.mark.parametrize("name", ["belief_propagation", "tree_reweighted", "mean_field"])
def test_rows_go_together_in_few_calls(name: str, monkeypatch):
    graph, asked = model(2), []
    plain = type(resolve(name, "marginals")).marginals

    def counting(self: Any, graph: Any, evidence: Any, **words: Any) -> Any:
        asked.append(len(evidence.states))
        return plain(self, graph, evidence, **words)

    monkeypatch.setattr(type(resolve(name, "marginals")), "marginals", counting)
    together(name, graph, some_rows(graph, 500, 2))
    assert sum(asked) == 500 * graph.n_variables
    assert len(asked) <= 3 + 500 * (graph.n_variables + 1) // UNION_NODES
    assert max(asked) <= UNION_NODES


@pytest.mark.parametrize("name", ["belief_propagation", "tree_reweighted", "mean_field"])
def test_impossible_rows_do_not_spoil_the_others(name: str):
    net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    net.add_factors([("A", "B"), ("B", "C"), ("A", "C")], [[2.0, 1.0], [0.0, 3.0]])
    graph = net.compile()
    clamps = np.array([[-1, -1, -1], [1, 0, -1], [0, -1, 1], [1, -1, -1]])
    exact = mf.expected_counts(graph.structure, graph.log_tables, clamps)
    found = together(name, graph, clamps)
    assert exact.log_partition[1] == found.log_partition[1] == -np.inf
    assert np.isfinite(np.delete(found.log_partition, 1)).all()
    assert found.counts.sum() == pytest.approx(exact.counts.sum())


@pytest.mark.parametrize("name", ["belief_propagation", "tree_reweighted"])
def test_forests_are_exact_in_any_number(name: str):
    net = mf.MarkovNetwork(dict.fromkeys("ABCD", 3))
    rng = np.random.default_rng(4)
    net.add_factors([("A", "B"), ("B", "C"), ("B", "D")], log_table=rng.normal(size=(3, 3)))
    graph = net.compile()
    clamps, weights = some_rows(graph, 30, 4), rng.random(30)
    exact = together(JunctionTree(), graph, clamps, weights)
    found = together(name, graph, clamps, weights)
    np.testing.assert_allclose(found.log_partition, exact.log_partition, rtol=1e-9)
    np.testing.assert_allclose(found.counts, exact.counts, rtol=1e-6, atol=1e-8)
    assert found.guarantee == ("exact" if name == "belief_propagation" else "upper")


def test_noisy_max_rows_are_the_same():
    net = mf.BayesianNetwork(dict.fromkeys("ABC", 2))
    for cause in "AB":
        net.add_cpt(cause, [], [0.6, 0.4])
    net.add_noisy_or("C", ["A", "B"], [0.8, 0.5], leak=0.1)
    graph = net.compile()
    clamps = some_rows(graph, 12, 5)
    method = BeliefPropagation()
    apart, found = alone(method, graph, clamps, np.ones(12)), together(method, graph, clamps)
    np.testing.assert_allclose(found.log_partition, apart.log_partition, rtol=1e-9)
    np.testing.assert_allclose(found.counts, apart.counts, rtol=1e-7, atol=1e-9)


def test_a_callback_stops_rows_that_go_together():
    graph = model(0)
    with pytest.raises(mf.StoppedError):
        together("belief_propagation", graph, some_rows(graph, 2000, 0), callback=lambda _: True)
