"""Losses and their oracles on graphs and structures against enumeration; slack rescaling; decoding of least loss."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.structured.losses.counts import F1, PrecisionAtK
from markovfield.structured.losses.hidden import HiddenLoss
from markovfield.structured.losses.labels import Hamming, TableLoss, ZeroOne
from markovfield.structured.losses.loss import LOSSES, TrueParts, Truth, loss_of
from markovfield.structured.losses.parts import PartLoss
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.models.multi_label import MultiLabelModel
from markovfield.structured.models.multiclass import MulticlassModel
from markovfield.structured.objectives.hinge import Hinge
from tests.structured.test_form_estimator import SpanCRF, Spans, data


def graphs(seed=0, n=6, labels=3):
    """Chains, triangles, a node by itself."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    shapes = [[[0, 1], [1, 2]], [[0, 1], [1, 2], [0, 2]], [], [[0, 1], [2, 3]]]
    for i in range(n):
        edges = shapes[i % 4]
        size = max([1, *(max(edge) + 1 for edge in edges)])
        Y.append(rng.integers(0, labels, size))
        X.append((rng.normal(size=(size, 2)), np.array(edges, int).reshape(-1, 2)))
    return X, Y


def table_of(loss, k):
    return 1 - np.eye(k) if isinstance(loss, ZeroOne) else loss.table(k)


def loss_value(loss, truth, states, k):
    if isinstance(loss, ZeroOne):
        return float((truth != states).any())
    if isinstance(loss, F1 | PrecisionAtK):
        true, predicted = truth != loss.negative, states != loss.negative
        right = (true & predicted).sum()
        if isinstance(loss, F1):
            return 1 - 2 * right / (true.sum() + predicted.sum()) if true.any() or predicted.any() else 0.0
        most = min(loss.k, len(truth), true.sum())
        if predicted.sum() != min(loss.k, len(truth)):
            return -np.inf
        return 1 - right / most if most else 0.0
    value = loss.table(k)[truth, states].sum()
    return value / len(truth) if getattr(loss, "normalised", False) else value


ADDITIVE = [
    Hamming(),
    Hamming(normalised=True),
    Hamming(weights=(1.0, 2.0, 0.5)),
    TableLoss([[0, 1, 3], [2, 0, 1], [0.3, 1, 0]]),
]
ids = {"ids": lambda value: repr(value)[:40]}


def heights_of(model, X, Y, hinge, w):
    oracle = hinge.on(model.encode(X, Y), running=Running())
    rows, cost = oracle.planes(w, losses=True)
    return oracle, cost - rows.products(w)


def every_output(model, x, y, w, k):
    """States, and scores less that of the truth."""
    batch = model.encode([x], [y])
    pool = batch.pool(w)
    truth = batch.scores(pool)[0]
    for states in product(range(k), repeat=len(batch.labels)):
        states = np.array(states, np.int32)
        yield batch.labels, states, batch.scores(pool, states)[0] - truth


@pytest.mark.parametrize("loss", [*ADDITIVE, ZeroOne()], **ids)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_worst_labels_of_graphs(loss, seed):
    X, Y = graphs(seed)
    model = GraphModel().shaped(X, Y)
    w = np.random.default_rng(seed + 5).normal(size=model.n_weights) * 2
    oracle, heights = heights_of(model, X, Y, Hinge(loss), w)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        found = [
            loss_value(loss, truth, states, 3) + score
            for truth, states, score in every_output(model, x, y, w, 3)
            if not isinstance(loss, ZeroOne) or (truth != states).any()
        ]
        assert heights[i] == pytest.approx(max(found))
    assert oracle.exact


@pytest.mark.parametrize("loss", [Hamming(), ZeroOne(), F1(negative=0), PrecisionAtK(negative=0, k=2)], **ids)
@pytest.mark.parametrize("dependence", ["independent", "tree"])
def test_the_worst_sets_of_labels(loss, dependence):
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(8, 2)), rng.integers(0, 2, (8, 5))
    model = MultiLabelModel(dependence).shaped(X, Y)
    w = rng.normal(size=model.n_weights)
    if dependence == "tree" and isinstance(loss, F1 | PrecisionAtK):
        with pytest.raises(mf.ModelError, match="do not depend on each other"):
            Hinge(loss).on(model.encode(X, Y), running=Running())
        return
    _, heights = heights_of(model, X, Y, Hinge(loss), w)
    for i in range(8):
        found = [
            loss_value(loss, truth, states, 2) + score
            for truth, states, score in every_output(model, X[i], Y[i], w, 2)
            if not isinstance(loss, ZeroOne) or (truth != states).any()
        ]
        assert heights[i] == pytest.approx(max(found))


@pytest.mark.parametrize("loss", [PartLoss(), PartLoss(missing=0.0), PartLoss(0.5, 2.0, True), ZeroOne()], **ids)
def test_the_worst_structures(loss):
    X, Y = data(6)
    model = Spans(with_base=True).shaped(X, Y)
    w = np.random.default_rng(3).normal(size=model.n_weights)
    _, heights = heights_of(model, X, Y, Hinge(loss), w)
    inputs = model.inputs(X)
    pool = model.encode_inputs(inputs).pool(w)
    checked = 0
    for i, y in enumerate(Y):
        form, truth = model.form(inputs, i, pool), set(y)
        every = mf.decode(form, n_best=3000).n_best
        if len(every) == 3000:
            continue
        found = []
        for one in every:
            other = set(one.structure)
            if isinstance(loss, ZeroOne):
                if other == truth:
                    continue
                cost = 1.0
            else:
                cost = loss.missing * len(truth - other) + loss.wrong * len(other - truth)
                cost /= len(truth) if loss.normalised else 1
            found.append(one.score + cost - form.score(y))
        assert heights[i] == pytest.approx(max(found))
        checked += 1
    assert checked > 1


@pytest.mark.parametrize("loss", ADDITIVE, **ids)
@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_slack_rescaling_is_a_bound_and_exact_where_it_says_so(loss, scale):
    proven = 0
    for seed in range(6):
        X, Y = graphs(seed, n=4)
        model = GraphModel().shaped([*X, *graphs(0)[0]], [*Y, *graphs(0)[1]])
        w = scale * np.random.default_rng(seed).normal(size=model.n_weights)
        for x, y in zip(X, Y, strict=True):
            oracle, heights = heights_of(model, [x], [y], Hinge(loss, "slack"), w)
            best = max(
                loss_value(loss, truth, states, 3) * (1 + score)
                for truth, states, score in every_output(model, x, y, w, 3)
            )
            assert heights[0] <= best + 1e-9
            assert heights[0] + oracle.gap >= best - 1e-9
            if oracle.exact:
                proven += 1
                assert max(heights[0], 0.0) == pytest.approx(best, abs=1e-9)
    assert proven >= 12


def test_slack_and_margin_of_zero_one_are_the_same():
    X, Y = graphs()
    model = GraphModel().shaped(X, Y)
    w = np.random.default_rng(0).normal(size=model.n_weights)
    one, other = (heights_of(model, X, Y, Hinge("zero_one", how), w)[1] for how in ("margin", "slack"))
    np.testing.assert_allclose(one, other)


def test_training_with_slack_rescaling():
    X, Y = graphs(3, n=12)
    svm = mf.structured.GraphSSVM(0.5, rescaling="slack", solver=CuttingPlane(gap=1e-4), rng=0).fit(X, Y)
    report = svm.report_
    assert report.rescaling == "slack"
    _, heights = heights_of(svm.model_, X, Y, Hinge(rescaling="slack"), svm.weights_)
    assert report.primal == pytest.approx(0.5 * svm.weights_ @ svm.weights_ + 0.5 * np.maximum(heights, 0).sum())
    assert report.dual <= report.primal


def test_losses_by_name_and_what_they_refuse():
    for name in LOSSES:
        assert loss_of(name) == loss_of(loss_of(name))
    assert loss_of("arcs") == PartLoss(missing=0.0)
    X, Y = graphs()
    model = GraphModel().shaped(X, Y)
    batch = model.encode(X, Y)
    spans, trees = data(6)
    structures = Spans().shaped(spans, trees).encode(spans, trees)
    for hinge, on, message in (
        (Hinge("spans"), batch, "is for parts of structures"),
        (Hinge(F1(negative=0)), batch, "exact loss-augmented decoding for linear chains"),
        (Hinge(F1(negative=0)), structures, "is for labels of variables"),
        (Hinge([[0, 1], [1, 0]]), structures, "is for labels of variables"),
        (Hinge(Hamming(weights=(1.0, 2.0))), batch, "2 numbers, and there are 3 labels"),
        (Hinge(Hamming(weights={"a": 1.0})), batch, "need the labels"),
        (Hinge(Hamming(weights=(1.0,))), structures, "PartLoss"),
        (Hinge(HiddenLoss(ZeroOne(), 1)), batch, "adds up over labels"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            hinge.on(on, running=Running())
    with pytest.raises(mf.ModelError, match="no label of the training data"):
        Hinge(Hamming(weights={"q": 1.0})).resolved(["a", "b"])
    with pytest.raises(mf.ModelError, match="negative="):
        Hinge("f1").resolved(["a", "b"])
    with pytest.raises(mf.ModelError, match="k"):
        PrecisionAtK(k=0)
    assert Hinge("f1").resolved(["A", "O"]).loss.negative == 1
    assert Hinge(F1(negative="A")).resolved(["A", "O"]).loss.negative == 0
    assert Hamming(weights={"b": 3.0}).resolved(["a", "b"]).weights == (1.0, 3.0)


def test_costs_of_losses():
    truth = Truth(np.array([1, 0, 2]), np.array([3, 2, 3]), np.array([0, 0, 1]), 2)
    assert Hamming().state_costs(truth).tolist() == [1, 0, 1, 0, 1, 1, 1, 0]
    assert Hamming(normalised=True).state_costs(truth).tolist() == [0.5, 0, 0.5, 0, 0.5, 1, 1, 0]
    parts = TrueParts(np.array([2, 4]), np.array([0, 0, 0, 1, 1]), np.array([False, True, True, True, True]), 2)
    added, before = PartLoss(2.0, 3.0).part_costs(parts)
    assert added.tolist() == [0, 3, -2, 3, -2]
    assert before.tolist() == [2, 2]
    hidden = HiddenLoss(Hamming(), 2).state_costs(Truth(np.array([3]), np.array([4]), np.array([0]), 1))
    assert hidden.tolist() == [1, 1, 0, 0]


def test_decoding_of_least_expected_loss_takes_the_same_losses():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    crf = mf.MulticlassCRF(l2=1.0).fit(X, y)
    p = crf.predict_proba(X)
    for loss in ([[0, 1, 5], [1, 0, 1], [2, 2, 0]], Hamming(weights={0: 9.0}), "hamming"):
        table = loss_of(loss).resolved([0, 1, 2]).table(3)
        assert (crf.predict(X, decision="mpm", loss=loss) == (p @ table).argmin(axis=1)).all()
    with pytest.raises(mf.ModelError, match="decision='map'"):
        crf.predict(X, decision="mpm", loss="zero_one")
    with pytest.raises(mf.ModelError, match="does not add up"):
        crf.predict(X, decision="mpm", loss=F1(negative=0))
    assert MulticlassModel().name == "multiclass"


def test_structures_of_least_expected_loss():
    X, Y = data(6)
    crf = SpanCRF().fit(X, Y)
    forms = [crf.form(x) for x in X]
    for loss in (PartLoss(), PartLoss(missing=3.0), PartLoss(missing=0.5, wrong=2.0)):
        found = crf.decode(X, decision="mbr", loss=loss).labels
        for form, own in zip(forms, found, strict=True):
            every = mf.decode(form, n_best=3000).n_best
            if len(every) == 3000:
                continue
            scores = np.array([one.score for one in every])
            p = np.exp(scores - mf.log_partition(form).log_partition)
            sets = [set(one.structure) for one in every]

            def risk(mine, sets=sets, p=p, loss=loss):
                return sum(
                    q * (loss.missing * len(s - mine) + loss.wrong * len(mine - s))
                    for q, s in zip(p, sets, strict=True)
                )

            assert risk(set(own)) == pytest.approx(min(map(risk, sets)))
    with pytest.raises(mf.ModelError, match="decision='mbr'"):
        crf.decode(X, loss=PartLoss())
    with pytest.raises(mf.ModelError, match="PartLoss"):
        crf.decode(X, decision="mbr", loss="zero_one")
