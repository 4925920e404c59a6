"""Multiclass SVMs by ascent of the dual: projections, and the same optimum as planes, scikit-learn and kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.multiclass import ClassAscent, Classes, GramBlocks
from markovfield.learning.max_margin.multiclass_kernel import hinges, onto_simplex
from tests.learning.max_margin.problems import Listed

TABLE = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [1.0, 3.0, 0.0]])


def data(seed=0, n=40, d=5, k=3, table=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    y = (X @ rng.normal(size=(d, k)) + 0.7 * rng.normal(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    X[3] = 0.0
    losses = 1.0 - np.eye(k) if table is None else table
    costs = rng.random(n) * 0.5
    costs[5] = 0.0
    return X, Classes(y, losses, costs)


def primal(X, classes, W):
    scores = X @ W
    found = np.empty(len(X))
    hinges(scores, classes.labels, classes.losses, found)
    expected = (classes.losses[classes.labels] + scores).max(axis=1) - scores[np.arange(len(X)), classes.labels]
    np.testing.assert_allclose(found, expected)
    return 0.5 * (W**2).sum() + classes.costs @ found


def as_planes(X, classes):
    """The same problem with all planes listed."""
    features, losses = [], []
    k = len(classes.losses)
    for x, y in zip(X, classes.labels, strict=True):
        rows = np.zeros((k - 1, X.shape[1], k))
        others = [c for c in range(k) if c != y]
        for i, c in enumerate(others):
            rows[i, :, y], rows[i, :, c] = x, -x
        features.append(rows.reshape(k - 1, -1))
        losses.append(classes.losses[y, others])
    return Listed(features, losses, classes.costs)


def run(X, classes, gap=1e-7, **settings):
    return ClassAscent(gap=gap, max_passes=20_000, **settings).run(
        X, classes, rng=np.random.default_rng(0), running=Running()
    )


def products(X, size=7, **settings):
    return GramBlocks(lambda part: X[part] @ X.T, len(X), size, **settings)


@pytest.mark.parametrize("seed", range(6))
def test_projections_onto_a_simplex(seed):
    rng = np.random.default_rng(seed)
    values, size = rng.normal(size=5) * 3, rng.random() * 2
    found = values.copy()
    onto_simplex(found, size, np.empty(5))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(size)
    best = minimize(
        lambda v: ((v - values) ** 2).sum(), np.full(5, size / 5), bounds=[(0, None)] * 5,
        constraints={"type": "eq", "fun": lambda v: v.sum() - size}, method="SLSQP", options={"ftol": 1e-14},
    )  # fmt: skip
    np.testing.assert_allclose(found, best.x, atol=1e-6)


@pytest.mark.parametrize("table", [None, TABLE], ids=["ones", "table"])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_the_qp_over_planes(seed, table):
    X, classes = data(seed, table=table)
    best, w = as_planes(X, classes).optimum()
    found = run(X, classes)
    W = found.weights.reshape(X.shape[1], -1)
    assert found.converged
    assert found.primal == pytest.approx(primal(X, classes, W))
    assert found.primal == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(found.weights, w, atol=2e-3)
    duals = np.array([one.dual for one in found.history])
    assert (np.diff(duals) >= -1e-10).all()
    assert all(one.primal >= duals.max() - 1e-9 for one in found.history)


@pytest.mark.parametrize("table", [None, TABLE], ids=["ones", "table"])
def test_sparse_dense_and_the_linear_kernel_agree(table):
    X, classes = data(4, table=table)
    dense, sparse = run(X, classes), run(csr_matrix(X), classes)
    assert sparse.primal == pytest.approx(dense.primal, rel=1e-6)
    np.testing.assert_allclose(sparse.weights, dense.weights, atol=1e-3)
    for gram in (products(X), products(X, size=40), products(X, max_bytes=0)):
        found = ClassAscent(gap=1e-7, max_passes=20_000).run_kernel(
            gram, classes, rng=np.random.default_rng(1), running=Running()
        )
        assert found.converged
        assert found.primal == pytest.approx(dense.primal, rel=1e-6)
        W = X.T @ found.weights.reshape(len(X), -1)
        assert primal(X, classes, W) == pytest.approx(found.primal)


def test_it_is_the_objective_of_scikit_learn():
    X, classes = data(1, n=90)
    classes = classes._replace(costs=np.full(90, 0.2))
    svm = LinearSVC(
        multi_class="crammer_singer", C=0.2, fit_intercept=False, tol=1e-8, max_iter=100_000, random_state=0
    )
    svm.fit(X, classes.labels)
    assert run(X, classes).primal == pytest.approx(primal(X, classes, svm.coef_.T), rel=1e-6)


def test_blocks_that_do_not_fit_are_made_again():
    X, classes = data(2)
    asked = []
    gram = GramBlocks(lambda part: asked.append(part) or X[part] @ X.T, 40, 10, max_bytes=2 * 10 * 40 * 8)
    solver = ClassAscent(gap=1e-4)
    solver.run_kernel(gram, classes, rng=np.random.default_rng(0), running=Running())
    assert len(gram._kept) == 2
    assert asked.count(slice(0, 10)) == 1
    assert asked.count(slice(30, 40)) > 2


def test_stops_leave_weights_and_kernels_are_checked():
    X, classes = data()
    for running in (Running(time_limit=1e-9), Running(callback=lambda p: p.step > 3)):
        found = ClassAscent(gap=0.0).run(X, classes, rng=np.random.default_rng(0), running=running)
        assert not found.converged
        assert found.weights.shape == (15,)
        assert np.isfinite(found.weights).all()
    for rows, message in (
        (lambda part: np.ones((1, 1)), "finite numbers of shape"),
        (lambda part: -np.ones((part.stop - part.start, 40)), "negative product"),
    ):
        with pytest.raises(ModelError, match=message):
            ClassAscent().run_kernel(GramBlocks(rows, 40), classes, rng=np.random.default_rng(0), running=Running())
    with pytest.raises(ModelError, match="gap of ClassAscent"):
        ClassAscent(gap=-1.0)
