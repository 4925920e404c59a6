"""Softmax margin, ramp and direct loss: against enumeration, as bounds of each other, and in training."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.objectives.hinge import Hinge
from markovfield.structured.objectives.ramp import DirectLoss, Ramp
from markovfield.structured.objectives.softmax_margin import SoftmaxMargin
from tests.structured.test_form_estimator import Spans, data

TABLE = [[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 2.0, 0.0]]
losses = pytest.mark.parametrize("loss", ["hamming", TABLE], ids=["hamming", "table"])


def graphs(seed=0, n=5):
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n):
        size = 3 if i % 2 else 4
        edges = np.array([[j, j + 1] for j in range(size - 1)] + ([[0, 2]] if i % 2 else []))
        X.append((rng.normal(size=(size, 2)), edges))
        Y.append(rng.integers(0, 3, size))
    Y[0][:3] = [0, 1, 2]
    return X, Y


def enumerated(batch, w, loss):
    """Scores less that of the truth and losses of all outputs of each example."""
    table = 1.0 - np.eye(3) if isinstance(loss, str) else np.array(loss)
    pool, found = batch.pool(w), []
    truth = batch.scores(pool)
    for i in range(batch.n_examples):
        first, last = batch.variable_offsets[i : i + 2]
        scores, costs = [], []
        for states in product(range(3), repeat=int(last - first)):
            full = batch.labels.copy()
            full[first:last] = states
            scores.append(batch.scores(pool, full)[i] - truth[i])
            costs.append(table[batch.labels[first:last], list(states)].sum())
        found.append((np.array(scores), np.array(costs)))
    return found


@losses
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_enumeration(loss, weighted):
    X, Y = graphs()
    model = GraphModel().shaped(X, Y)
    weights = np.arange(1.0, 6.0) if weighted else np.ones(5)
    batch = model.encode(X, Y, weights if weighted else None)
    w = np.random.default_rng(1).normal(size=model.n_weights)
    every = enumerated(batch, w, loss)

    def total(f):
        return pytest.approx(weights @ [f(s, c) for s, c in every], rel=1e-9)

    def value(objective):
        return objective.on(batch, running=Running())(w)[0]

    assert value(SoftmaxMargin(loss)) == total(lambda s, c: np.logaddexp.reduce(s + c))
    assert value(Ramp(loss)) == total(lambda s, c: (s + c).max() - s.max())
    assert value(Ramp(loss, below="hope")) == total(lambda s, c: (s + c).max() - (s - c).max())
    assert value(DirectLoss(loss, 0.3)) == total(lambda s, c: ((s + 0.3 * c).max() - s.max()) / 0.3)
    # With a small perturbation it is the loss of the prediction.
    assert value(DirectLoss(loss, 1e-7)) == pytest.approx(weights @ [c[s.argmax()] for s, c in every], abs=1e-4)


@losses
def test_one_bounds_the_other(loss):
    X, Y = graphs(1)
    model = GraphModel().shaped(X, Y)
    batch = model.encode(X, Y)
    for seed in range(5):
        w = np.random.default_rng(seed).normal(size=model.n_weights)
        rows, cost = Hinge(loss).on(batch, running=Running()).planes(w, losses=True)
        hinge = np.maximum(cost - rows.products(w), 0.0).sum()
        softmax, ramp, direct = (
            o.on(batch, running=Running())(w)[0] for o in (SoftmaxMargin(loss), Ramp(loss), DirectLoss(loss, 0.1))
        )
        prediction = DirectLoss(loss, 1e-9).on(batch, running=Running())(w)[0]
        assert softmax >= hinge - 1e-9
        assert hinge >= ramp - 1e-9
        assert ramp >= direct - 1e-9
        assert direct >= prediction - 1e-4


@pytest.mark.parametrize(
    "objective",
    [SoftmaxMargin(), Ramp(), Ramp(below="hope"), DirectLoss()],
    ids=lambda o: f"{o.name}-{getattr(o, 'below', '')}",
)
def test_slopes_on_structures_are_those_of_finite_differences(objective):
    X, Y = data(5)
    model = Spans(with_base=True).shaped(X, Y)
    batch = model.encode(X, Y, np.linspace(0.5, 2.0, 5))
    f = objective.on(batch, running=Running())
    rng = np.random.default_rng(2)
    w = rng.normal(size=model.n_weights)
    _, gradient = f(w)
    for direction in rng.normal(size=(4, len(w))):
        slope = (f(w + 1e-6 * direction)[0] - f(w - 1e-6 * direction)[0]) / 2e-6
        assert gradient @ direction == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_a_ramp_shrugs_off_outliers():
    """A few examples with any label at all: the hinge pays for each, the ramp no more than its loss."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    truth = (X @ [2.0, -1.0] > 0).astype(int)
    far = np.abs(X @ [2.0, -1.0]) > 0.5
    X, truth = X[far], truth[far]
    y = truth.copy()
    X[:6] *= 15.0
    y[:6] = 1 - y[:6]
    svm = mf.MulticlassCRF(objective="hinge", l2=0.1).fit(X, y)
    ramp = mf.MulticlassCRF(objective=Ramp(), l2=0.1, solver="adagrad", rng=0).fit(X, y, init=svm.weights_)
    clean = slice(6, None)
    assert (ramp.predict(X[clean]) == truth[clean]).mean() > (svm.predict(X[clean]) == truth[clean]).mean()
    assert (ramp.predict(X[clean]) == truth[clean]).mean() > 0.95


def test_training_by_softmax_margin():
    X, Y = graphs(3, 20)
    crf = mf.GraphCRF(objective="softmax_margin", l2=1.0).fit(X, Y)
    assert crf.report_.converged
    likely = mf.GraphCRF(l2=1.0).fit(X, Y)
    assert crf.report_.objective > likely.report_.objective
    costly = mf.GraphCRF(objective=SoftmaxMargin(TABLE), l2=1.0).fit(X, Y)
    assert np.abs(costly.weights_ - crf.weights_).max() > 1e-2


@pytest.mark.parametrize("objective", [Ramp(), Ramp(below="hope"), DirectLoss()])
@pytest.mark.parametrize("solver", ["auto", "adagrad"])
def test_objectives_that_are_not_convex_begin_with_one_that_is(objective, solver):
    rng = np.random.default_rng(4)
    X = [(rng.normal(size=(4, 2)), [[0, 1], [1, 2], [2, 3]]) for _ in range(20)]
    Y = [(x[:, 0] > 0).astype(int) for x, _ in X]
    crf = mf.GraphCRF(objective=objective, solver=solver, rng=0).fit(X, Y)
    assert "begun with the weights of softmax_margin" in crf.report_.notes
    smooth = mf.GraphCRF(objective=SoftmaxMargin()).fit(X, Y)
    other = mf.GraphCRF(objective=objective, solver=solver, rng=0).fit(X, Y, init=smooth.weights_)
    np.testing.assert_allclose(crf.weights_, other.weights_, atol=1e-12)
    assert crf.score(X, Y) > 0.9


def test_what_is_refused(tmp_path):
    X, Y = graphs()
    for name in ("softmax_margin", "ramp", "direct_loss"):
        with pytest.raises(ModelError, match="needs all labels"):
            mf.GraphCRF(objective=name).fit(X, [[None, *y[1:]] for y in Y])
    with pytest.raises(ModelError, match="softmax_margin needs a loss that adds up"):
        mf.GraphCRF(objective=SoftmaxMargin("zero_one")).fit(X, Y)
    with pytest.raises(ModelError, match="epsilon of DirectLoss must be positive"):
        DirectLoss(epsilon=0.0)
    with pytest.raises(ModelError, match="below of Ramp must be"):
        Ramp(below="truth")
    with pytest.raises(ModelError, match="loss must be one of"):
        SoftmaxMargin("f2")
    fitted = mf.GraphCRF(objective=SoftmaxMargin(TABLE), l2=1.0).fit(X, Y)
    fitted.save(tmp_path / "m.mf")
    assert np.array_equal(mf.load(tmp_path / "m.mf").weights_, fitted.weights_)
