"""The named structural SVMs: beside scikit-learn's, saved and cloned, with development sets, on trees and images."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import LinearSVC

import markovfield as mf
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe

TREES = """
(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat))))
(S (NP (NN rain)) (VP (VBD fell)))
(S (NP (DT a) (NN cat)) (VP (VBD fell) (PP (IN on) (NP (DT the) (NN dog)))))
"""


def rows(n=60, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ rng.normal(size=(4, classes)) + rng.normal(size=(n, classes))).argmax(axis=1)


def examples(kind, n=12):
    """A small data set for each estimator."""
    rng = np.random.default_rng(1)
    if kind == "multiclass":
        return rows(n)
    if kind == "multi_label":
        X = rng.normal(size=(n, 3))
        return X, (X + rng.normal(0, 0.3, X.shape) > 0).astype(int)
    if kind == "grid":
        Y = [(np.add.outer(np.arange(3), np.arange(n)) > n // 2).astype(int) for n in rng.integers(3, 5, n // 2)]
        return [y + rng.normal(0, 0.5, y.shape) for y in Y], Y
    Y = [rng.integers(0, 2, 3) for _ in range(n)]
    return [(np.eye(2)[y] + rng.normal(0, 0.5, (3, 2)), np.array([[0, 1], [1, 2]])) for y in Y], Y


ESTIMATORS = {
    "graph": mf.structured.GraphSSVM,
    "grid": mf.vision.GridSSVM,
    "multi_label": mf.structured.MultiLabelSSVM,
    "multiclass": mf.structured.MulticlassSSVM,
}


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_two_classes_are_the_machine_of_scikit_learn(C):
    X, y = rows(classes=2)
    ours = mf.structured.MulticlassSSVM(C, bias=False, solver=BlockFrankWolfe(gap=1e-6), rng=0).fit(X, y)
    # Two opposite vectors, each half as long: half of the objective of twice the cost.
    theirs = LinearSVC(loss="hinge", C=2 * C, fit_intercept=False, tol=1e-9, max_iter=1_000_000, random_state=0).fit(
        X, y
    )
    w = theirs.coef_[0]
    value = 0.5 * (0.5 * w @ w + 2 * C * np.maximum(0, 1 - (2 * y - 1) * (X @ w)).sum())
    assert ours.report_.primal == pytest.approx(value, rel=1e-4)
    assert ours.report_.dual <= value * (1 + 1e-9)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.95


@pytest.mark.parametrize("bias", [True, False])
def test_classes_are_those_of_crammer_and_singer(bias):
    X, y = rows()
    ours = mf.structured.MulticlassSSVM(0.2, bias=bias, solver=BlockFrankWolfe(gap=1e-6), rng=0).fit(X, y)
    given = np.hstack([X, np.ones((len(X), 1))]) if bias else X
    theirs = LinearSVC(
        multi_class="crammer_singer", C=0.2, fit_intercept=False, tol=1e-9, max_iter=1_000_000, random_state=0
    ).fit(given, y)
    scores = given @ theirs.coef_.T
    margins = scores + 1.0 - np.eye(3)[y]
    value = 0.5 * (theirs.coef_**2).sum() + 0.2 * (margins.max(axis=1) - scores[np.arange(len(y)), y]).sum()
    assert ours.report_.primal == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("settings", [{}, {"loss": "zero_one"}, {"rescaling": "slack"}, {"solver": "cutting_plane"}])
def test_every_estimator(kind, settings, tmp_path):
    X, y = examples(kind)
    svm = ESTIMATORS[kind](1.0, rng=0, **settings)
    assert clone(svm).get_params() == svm.get_params()
    assert svm.fit(X, y) is svm
    report = svm.report_
    assert not report.dual > report.primal
    assert report.gap < 0.02
    if kind != "grid" or not settings.get("loss"):  # no image is right as a whole
        assert svm.score(X, y) > 0.7
    assert report.C == 1.0
    svm.save(tmp_path / "svm.mfz")
    again = mf.load(tmp_path / "svm.mfz")
    assert type(again) is type(svm)
    assert again.C == 1.0
    for one, other in zip(svm.predict(X), again.predict(X), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_what_every_estimator_refuses(kind):
    X, y = examples(kind)
    make = ESTIMATORS[kind]
    for C in (0.0, -1.0, float("nan"), "many"):
        with pytest.raises(mf.ModelError, match=f"C of {make.__name__} must be a number greater than 0"):
            make(C).fit(X, y)
    with pytest.raises(mf.ModelError, match="must be finite"):
        make(float("inf")).fit(X, y)
    with pytest.raises(mf.ModelError, match="no examples"):
        make().fit(X[:0], y[:0])
    with pytest.raises(mf.ModelError, match="development set"):
        make(early_stopping=1).fit(X, y)
    with pytest.raises(mf.ModelError, match="both X_dev and y_dev"):
        make().fit(X, y, X_dev=X)
    with pytest.raises(mf.ModelError, match="loss must be one of"):
        make(loss="tea").fit(X, y)


def test_labels_never_seen():
    X, y = rows()
    svm = mf.structured.MulticlassSSVM(rng=0).fit(X, y)
    with pytest.raises(mf.ModelError, match="label 7 was not seen in training"):
        svm.score(X, np.full(len(y), 7))


def test_a_development_set_of_graphs():
    X, y = examples("graph", 30)
    svm = mf.structured.GraphSSVM(100.0, early_stopping=2, solver=BlockFrankWolfe(gap=1e-9, max_passes=40), rng=0)
    svm.fit(X[:15], y[:15], X_dev=X[15:], y_dev=y[15:])
    report = svm.report_
    assert 1 - svm.score(X[15:], y[15:]) == pytest.approx(min(report.development))
    assert len(report.development) <= report.iterations + 1
    w = svm.weights_
    assert report.primal >= 0.5 * w @ w
    assert report.dual <= report.primal


def test_labels_that_weigh_more():
    X, y = rows(80)
    heavy = mf.structured.MulticlassSSVM(0.1, loss=mf.structured.Hamming(weights={2: 20.0}), rng=0).fit(X, y)
    light = mf.structured.MulticlassSSVM(0.1, rng=0).fit(X, y)
    two = y == 2
    assert (heavy.predict(X)[two] == 2).mean() >= (light.predict(X)[two] == 2).mean()
    assert (heavy.predict(X) == 2).sum() > (light.predict(X) == 2).sum()


def test_trees(tmp_path):
    trees = mf.io.read_trees(TREES)
    parser = mf.grammar.GrammarSSVM(1.0, min_count=1, min_word_count=1, solver=BlockFrankWolfe(gap=1e-4), rng=0).fit(
        trees
    )
    assert parser.report_.converged
    assert parser.score(trees) == 1.0
    parser.save(tmp_path / "parser.mfz")
    assert mf.load(tmp_path / "parser.mfz").predict(trees) == parser.predict(trees)
    # The null label is no bracket: the loss of a tree of two words is that of its brackets alone.
    batch = parser.model_.encode([trees[1].pos], [trees[1]])
    assert batch.counted is not None
    assert not batch.counted[:: parser.model_.n_classes].any()
    for loss in ("zero_one", mf.structured.PartLoss(missing=2.0)):
        other = mf.grammar.GrammarSSVM(1.0, loss=loss, min_count=1, min_word_count=1, rng=0).fit(trees)
        assert other.score(trees) == 1.0


def test_the_composition():
    X, y = examples("graph")
    objective = mf.methods.Hinge(loss="hamming", rescaling="margin")
    one = mf.StructuredClassifier(mf.structured.GraphModel(), objective=objective, l2=2.0, rng=0).fit(X, y)
    other = mf.structured.GraphSSVM(0.5, rng=0).fit(X, y)
    np.testing.assert_allclose(one.weights_, other.weights_)
    assert one.report_.C == other.report_.C
