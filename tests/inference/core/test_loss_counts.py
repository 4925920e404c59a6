"""Counts weighted by a loss: exact ones by brute force, all of them as derivatives of the expected loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.analysis import loss_counts
from tests.oracle import Oracle

# Tied tables, a factor of three variables, one state ruled out.
CARDS = [2, 3, 2, 2]
PAIR = np.array([[0.3, -0.8], [0.1, 0.9]])
TRIPLE = np.log(np.arange(1.0, 13.0).reshape(2, 3, 2))
UNARY = np.array([0.2, -np.inf, 0.7])
FACTORS = [((0, 2), PAIR), ((2, 3), PAIR), ((0, 1, 2), TRIPLE), ((1,), UNARY)]
LOSSES = {
    "hamming": [0, 1, 1, 0, 1, 0, 1, 1, 0],
    "some": [0, 0, 3, 0, 1, 0, 0, 0, 2.5],
    "of either sign": [-2, 1, 0.5, 7, -1, 0, 0, -3, 0],
    "none": [0] * 9,
    "the same everywhere": [1, 1, 2, 2, 2, 3, 3, -4, -4],
}


def graph_of(pair: np.ndarray = PAIR) -> Any:
    net = mf.MarkovNetwork(dict(enumerate(CARDS)))
    net.add_factors([(0, 2), (2, 3)], log_table=pair)
    net.add_factor([0, 1, 2], log_table=TRIPLE)
    net.add_factor([1], log_table=UNARY)
    return net.compile()


def by_hand(losses: list[float], clamps: list[int]) -> tuple[float, np.ndarray, np.ndarray]:
    """The expected loss, expected counts, and counts weighted by the loss."""
    oracle = Oracle(CARDS, FACTORS, {v: s for v, s in enumerate(clamps) if s >= 0})
    starts = np.concatenate([[0], np.cumsum(CARDS)[:-1]])
    loss = np.array(losses)[starts + oracle.states].sum(axis=1)
    p = np.asarray(oracle.probabilities, np.float64)
    counts, weighted = np.zeros(19), np.zeros(19)
    for (scope, table), first in zip(FACTORS, [0, 0, 4, 16], strict=True):
        cell = first + np.ravel_multi_index(tuple(oracle.states[:, v] for v in scope), table.shape)
        np.add.at(counts, cell, p)
        np.add.at(weighted, cell, p * loss)
    return float(p @ loss), counts, weighted


@pytest.mark.parametrize("method", [None, "junction_tree", "enumeration"])
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("clamps", [[-1, -1, -1, -1], [1, -1, -1, 0], [0, 2, 1, 1]])
def test_exact_by_brute_force(method: Any, kind: str, clamps: list[int]):
    graph = graph_of()
    found = loss_counts(graph.structure, graph.log_tables, LOSSES[kind], clamps, method)
    expected, counts, weighted = by_hand(LOSSES[kind], clamps)
    assert found.guarantee == "exact"
    assert found.expected_loss == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(found.counts, counts, atol=1e-12)
    np.testing.assert_allclose(found.weighted, weighted, atol=1e-12)
    np.testing.assert_allclose(found.covariance, weighted - expected * counts, atol=1e-12)
    log_partition, again = mf.expected_counts(graph.structure, graph.log_tables, clamps)
    assert found.log_partition == pytest.approx(log_partition, rel=1e-12)
    np.testing.assert_allclose(found.counts, again, atol=1e-12)
    assert next(iter(found)) == found.log_partition


@pytest.mark.parametrize("method", ["belief_propagation", "tree_reweighted", "mean_field", "variable_elimination"])
def test_other_methods_take_differences(method: str):
    settings = {"tolerance": 1e-12, "max_iterations": 5000}
    chosen: Any = method
    if method != "variable_elimination":
        name = {"belief_propagation": "BeliefPropagation", "tree_reweighted": "TreeReweighted"}.get(method, "MeanField")
        chosen = getattr(mf.methods, name)(**settings)
    model = mf.Ising((2, 3), 0.2, np.arange(6.0).reshape(2, 3) / 10).compile()
    losses, step = np.arange(12.0) % 5, 1e-4

    def risk(tables: np.ndarray) -> float:
        values = mf.marginals(model.with_tables(tables), method=chosen).values
        return float(values @ losses)

    found = loss_counts(model.structure, model.log_tables, losses, method=chosen)
    assert found.expected_loss == pytest.approx(risk(model.log_tables), rel=1e-8)
    for cell in (0, 1, 5, 9):
        moved = [model.log_tables.copy() for _ in range(2)]
        moved[0][cell] += step
        moved[1][cell] -= step
        slope = (risk(moved[0]) - risk(moved[1])) / (2 * step)
        assert found.covariance[cell] == pytest.approx(slope, abs=2e-5)


def test_rows_of_clamps_are_added_up():
    graph, loss = graph_of(), LOSSES["some"]
    clamps = [[-1, -1, -1, -1], [-1, 1, -1, -1], [1, -1, -1, 0]]  # the second is impossible
    found = loss_counts(graph.structure, graph.log_tables, loss, clamps, weights=[2.0, 5.0, 0.5])
    alone = [loss_counts(graph.structure, graph.log_tables, loss, clamps[i]) for i in (0, 2)]
    assert found.log_partition[1] == -np.inf and np.isnan(found.expected_loss[1])
    np.testing.assert_allclose(found.expected_loss[[0, 2]], [a.expected_loss for a in alone])
    np.testing.assert_allclose(found.weighted, 2.0 * alone[0].weighted + 0.5 * alone[1].weighted)
    np.testing.assert_allclose(found.covariance, 2.0 * alone[0].covariance + 0.5 * alone[1].covariance)


def test_small_probabilities_are_exact():
    """The tilted model knows a probability of 1e-200 as well as any other."""
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_factor(["A", "B"], log_table=[[0.0, -460.0], [-461.0, -462.0]])
    net.add_factor(["B", "C"], log_table=[[0.0, -1.0], [0.5, 0.0]])
    graph = net.compile()
    found = loss_counts(graph.structure, graph.log_tables, [0, 1, 0, 0, 0, 0])
    counts = mf.expected_counts(graph.structure, graph.log_tables).counts
    np.testing.assert_allclose(found.weighted[2:4], counts[2:4], rtol=1e-12, atol=0.0)
    assert found.expected_loss == pytest.approx(counts[2] + counts[3], rel=1e-12)


def test_wide_and_structured_models():
    """A loop of clauses and a counter: auxiliary variables of both kinds side by side."""
    net = mf.MarkovNetwork(dict.fromkeys(range(8), 2))
    for v in range(8):
        net.add_factor([v], log_table=[0.0, 0.1 * v])
        net.add_factor([v, (v + 1) % 8], log_table=[[0.4, 0.0], [0.0, 0.4]])
    net.add_clause({0: 1, 3: 0}, {6: 1}, weight=1.5)
    graph = net.compile()
    loss = np.arange(16.0) % 3
    tree, table = (loss_counts(graph.structure, graph.log_tables, loss, method=m) for m in (None, "enumeration"))
    assert tree.expected_loss == pytest.approx(table.expected_loss, rel=1e-12)
    np.testing.assert_allclose(tree.weighted, table.weighted, atol=1e-12)


def test_what_is_refused():
    graph = graph_of()
    with pytest.raises(mf.ModelError, match="loss needs a finite number for each of 9 states of all variables"):
        loss_counts(graph.structure, graph.log_tables, [1.0, 2.0])
    with pytest.raises(mf.ModelError, match="needs a finite weight for each of 1 rows"):
        loss_counts(graph.structure, graph.log_tables, LOSSES["some"], weights=[1.0, 2.0])
    with pytest.raises(mf.ModelError, match="gibbs samples, and a difference of two sampled expectations is noise"):
        loss_counts(graph.structure, graph.log_tables, LOSSES["some"], method="gibbs")
    with pytest.raises(mf.ImpossibleEvidenceError, match="probability zero"):
        loss_counts(graph.structure, graph.log_tables, LOSSES["some"], [-1, 1, -1, -1])
