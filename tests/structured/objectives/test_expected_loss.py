"""Objectives of marginals, by enumeration; their gradients by differences of messages too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.structured.objectives.expected_loss import ExpectedLoss, MarginalLikelihood
from tests.structured.objectives.batches import Example, batch_of, cases, check_gradient, on, oracles, random_batch

BINARY = np.array([[0.0, 1.0], [5.0, 0.5]])


def loss_of(kind: str, oracle: Any, labels: np.ndarray) -> np.ndarray:
    """The loss of every assignment."""
    known = labels >= 0
    wrong = (oracle.states != labels) & known
    if kind == "hamming":
        return wrong.sum(axis=1).astype(float)
    if kind == "classes":
        return (wrong * np.array([1.0, 4.0])[np.maximum(labels, 0)]).sum(axis=1)
    return (BINARY[np.maximum(labels, 0), oracle.states] * known).sum(axis=1)


def binary(seed: int, n: int = 3, hidden: bool = False, weights: Any = None) -> tuple[Any, np.ndarray]:
    """Examples of binary variables only."""
    examples = [e for i in range(200) if (e := Example(1000 * seed + i)) and (e.cards == 2).all() and len(e.cards) > 1]
    return batch_of(examples[:n], weights, hidden), np.random.default_rng(seed).normal(size=12)


@pytest.mark.parametrize("kind", ["hamming", "classes", "table"])
@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize(("hidden", "weights"), [(False, None), (True, None), (False, [2.0, 0.5, 0.0])])
def test_expected_loss_by_enumeration(kind: str, log: bool, hidden: bool, weights: Any):
    batch, w = binary(1, hidden=hidden, weights=weights)
    loss: Any = {"hamming": "hamming", "classes": [1.0, 4.0], "table": BINARY}[kind]
    wanted = 0.0
    for i, (oracle, labels) in enumerate(oracles(batch, w)):
        chances = np.exp(oracle.scores - oracle.log_partition)
        expected = float(chances @ loss_of(kind, oracle, labels))
        wanted += (1.0 if weights is None else weights[i]) * (np.log(expected) if log else expected)
    function = on(ExpectedLoss(loss, log=log, inference="junction_tree"), batch)
    assert function(w)[0] == pytest.approx(wanted, rel=1e-9)
    check_gradient(function, w)


@pytest.mark.parametrize(("seed", "weighted"), cases(3))
def test_marginal_likelihood_by_enumeration(seed: int, weighted: bool):
    batch, w = random_batch(seed, weighted)
    weights = np.ones(batch.n_examples) if batch.weights is None else batch.weights
    wanted = 0.0
    for weight, (oracle, labels) in zip(weights, oracles(batch, w), strict=True):
        wanted -= weight * sum(float(np.log(oracle.marginal(v)[y])) for v, y in enumerate(labels))
    assert on(MarginalLikelihood("junction_tree"), batch)(w)[0] == pytest.approx(wanted, rel=1e-9)


def test_hidden_labels_are_summed_over():
    batch, w = random_batch(3)
    labels = batch.labels.copy()
    labels[::2] = -1
    function = on(MarginalLikelihood("junction_tree"), replace(batch, labels=labels))
    wanted = 0.0
    for oracle, own in oracles(replace(batch, labels=labels), w):
        wanted -= sum(float(np.log(oracle.marginal(v)[y])) for v, y in enumerate(own) if y >= 0)
    assert function(w)[0] == pytest.approx(wanted, rel=1e-9)
    check_gradient(function, w)


def test_nothing_known_is_no_loss():
    batch, w = random_batch(3)
    nothing = replace(batch, labels=np.full(len(batch.labels), -1, np.int32))
    for objective in (ExpectedLoss(inference="junction_tree"), MarginalLikelihood("junction_tree")):
        value, gradient = on(objective, nothing)(w)
        assert value == 0.0 and not gradient.any()


@pytest.mark.parametrize("inference", ["belief_propagation", "tree_reweighted", "mean_field"])
@pytest.mark.parametrize("objective", [ExpectedLoss, MarginalLikelihood])
def test_gradients_of_messages(inference: str, objective: Any):
    """Differences of messages that have converged; on a graph with cycles, of whatever log Z the method has."""
    method = {
        "belief_propagation": mf.methods.BeliefPropagation(tolerance=1e-11),
        "tree_reweighted": mf.methods.TreeReweighted(tolerance=1e-11, max_iterations=2000),
        "mean_field": mf.methods.MeanField(tolerance=1e-11, max_iterations=2000),
    }[inference]
    batch, w = binary(4)
    check_gradient(on(objective(inference=method), batch), 0.5 * w, tolerance=1e-4, step=1e-3)


def test_forests_by_messages_are_as_exact_as_by_a_junction_tree():
    batch, w = random_batch(5, tree=True)
    value, gradient = on(MarginalLikelihood(), batch)(w)
    wanted = on(MarginalLikelihood("junction_tree"), batch)(w)
    assert value == pytest.approx(wanted[0], rel=1e-10)
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-6, atol=1e-8)


def test_a_label_that_is_all_but_ruled_out():
    """Its slope is a million times that of others; a difference is then good to a power of 2/3 of rounding over it."""
    batch, w = random_batch(2, n=6)
    w[:3] *= 12.0
    slopes = []
    for oracle, labels in oracles(batch, w):
        slopes += [1.0 / oracle.marginal(v)[y] for v, y in enumerate(labels)]
    assert max(slopes) > 1e6
    check_gradient(on(MarginalLikelihood("junction_tree"), batch), w, tolerance=(1e-16 * max(slopes)) ** (2.0 / 3.0))


def test_a_certain_model_does_not_overflow():
    batch, w = random_batch(5, single=True)
    for objective in (ExpectedLoss(inference="junction_tree"), MarginalLikelihood("junction_tree")):
        value, gradient = on(objective, batch)(1e5 * w)
        assert np.isfinite(value) and np.isfinite(gradient).all()


def test_what_is_refused():
    with pytest.raises(mf.ModelError, match=r"got shape \(2, 3\)"):
        ExpectedLoss(np.zeros((2, 3)))
    with pytest.raises(mf.ModelError, match="loss"):
        ExpectedLoss("zero_one")
    batch, _ = random_batch(0, n=6)
    with pytest.raises(mf.ModelError, match=r"example \d+: a variable has 3 states, .* a table of 2 classes"):
        on(ExpectedLoss([1.0, 2.0]), batch)
    with pytest.raises(mf.ModelError, match="gibbs samples"):
        on(MarginalLikelihood("gibbs"), batch)


def test_settings_can_be_compared():
    assert ExpectedLoss([1.0, 2.0]) == ExpectedLoss([[0.0, 1.0], [2.0, 0.0]])
    assert hash(ExpectedLoss([1.0, 2.0])) == hash(ExpectedLoss(np.array([1.0, 2.0])))
