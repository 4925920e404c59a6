"""What holds of every objective: finite differences, weights as repetition, batches as sums of single examples."""

from __future__ import annotations

import gc
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.factors.factor_graph import FactorGraph
from markovfield.structured.objectives.expected_loss import ExpectedLoss, MarginalLikelihood
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from markovfield.structured.objectives.piecewise import Piecewise
from markovfield.structured.objectives.pseudo_likelihood import PseudoLikelihood
from tests.structured.objectives.batches import N_WEIGHTS, Example, batch_of, cases, check_gradient, on, random_batch

OBJECTIVES = {
    "pseudo_likelihood": PseudoLikelihood(),
    "piecewise factors": Piecewise("factors"),
    "piecewise trees": Piecewise("trees"),
    "expected loss": ExpectedLoss(inference="junction_tree"),
    "risk": ExpectedLoss(log=False, inference="junction_tree"),
    "marginal_likelihood": MarginalLikelihood(inference="junction_tree"),
}
every = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)


@every
@pytest.mark.parametrize(("seed", "weighted"), cases(3))
def test_gradients(objective: Any, seed: int, weighted: bool):
    batch, w = random_batch(seed, weighted)
    check_gradient(on(objective, batch), w)


@every
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_repetitions(objective: Any, seed: int):
    examples = [Example(50 * seed + i) for i in range(3)]
    w = np.random.default_rng(seed).normal(size=N_WEIGHTS)
    one = on(objective, batch_of(examples, [2, 0, 3]))(w)
    other = on(objective, batch_of([examples[0]] * 2 + [examples[2]] * 3))(w)
    assert one[0] == pytest.approx(other[0], rel=1e-10)
    np.testing.assert_allclose(one[1], other[1], atol=1e-6 * max(1.0, float(np.abs(other[1]).max())))


@every
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_is_the_sum_of_its_examples(objective: Any, seed: int):
    examples = [Example(70 * seed + i) for i in range(4)]
    w = np.random.default_rng(seed).normal(size=N_WEIGHTS)
    whole = on(objective, batch_of(examples))(w)
    single = [on(objective, batch_of([e]))(w) for e in examples]
    assert whole[0] == pytest.approx(sum(value for value, _ in single), rel=1e-10)
    total = np.sum([gradient for _, gradient in single], axis=0)
    np.testing.assert_allclose(whole[1], total, atol=1e-6 * max(1.0, float(np.abs(total).max())))


@pytest.mark.parametrize("objective", [*OBJECTIVES.values(), MarginalLikelihood("tree_reweighted")])
@pytest.mark.parametrize("weighted", [False, True])
def test_evaluations_leave_no_graphs_behind(objective: Any, weighted: bool):
    """Not even until Python looks for circles: a graph of a million pixels would fill the memory before."""
    batch, w = random_batch(1, weighted)
    function = on(objective, batch)
    alive = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(w)
            alive.append(sum(type(x) is FactorGraph for x in gc.get_objects()))
    finally:
        gc.enable()
    assert alive[-1] == alive[1]


@pytest.mark.parametrize("name", ["pseudo_likelihood", "piecewise factors", "piecewise trees", "marginal_likelihood"])
@pytest.mark.parametrize("seed", range(3))
def test_with_one_variable_in_each_example_all_likelihoods_are_one(name: str, seed: int):
    batch, w = random_batch(seed, n=6, single=True)
    wanted = on(ConditionalLikelihood("junction_tree"), batch)(w)
    if name == "piecewise factors":  # one factor a variable
        assert np.bincount(batch.structure.scopes, minlength=1).max() == 1
    value, gradient = on(OBJECTIVES[name], batch)(w)
    assert value == pytest.approx(wanted[0], rel=1e-10)
    np.testing.assert_allclose(gradient, wanted[1], atol=1e-6 * max(1.0, float(np.abs(wanted[1]).max())))


@pytest.mark.parametrize("name", ["pseudo_likelihood", "piecewise factors", "piecewise trees"])
@pytest.mark.parametrize("seed", range(5))
def test_convex(name: str, seed: int):
    batch, w = random_batch(seed)
    other = w + 3.0 * np.random.default_rng(seed + 1).normal(size=N_WEIGHTS)
    f = on(OBJECTIVES[name], batch)
    ends, middle = [f(w)[0], f(other)[0]], f(0.5 * (w + other))[0]
    assert middle <= 0.5 * sum(ends) + 1e-9 * max(map(abs, ends))


@pytest.mark.parametrize("name", ["pseudo_likelihood", "piecewise factors", "piecewise trees"])
def test_labels_that_are_not_known_are_refused(name: str):
    batch = batch_of([Example(0), Example(1)])
    labels = batch.labels.copy()
    labels[-1] = -1
    last = len(Example(1).cards) - 1
    with pytest.raises(mf.ModelError, match=f"example 1: label {last} is not known, and .* needs all labels"):
        on(OBJECTIVES[name], replace(batch, labels=labels))


@pytest.mark.parametrize("name", ["pseudo_likelihood", "piecewise factors"])
def test_labels_that_the_model_rules_out(name: str):

    batch = batch_of([Example(3), Example(4)])
    base = np.zeros(batch.structure.n_cells)
    last = int(np.flatnonzero(batch.example_of_factor == 1)[0])
    base[batch.cells_read(batch.labels)[last]] = -np.inf
    with pytest.raises(mf.ModelError, match="example 1: the model rules its labels out"):
        on(OBJECTIVES[name], replace(batch, base=base))
