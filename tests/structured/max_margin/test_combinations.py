"""Options of structural SVMs where they meet: the same optimum, duals below primals, or one clear error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import markovfield as mf
from markovfield.learning import BlockFrankWolfe, CuttingPlane, StructuredPerceptron, Subgradient

CLOSE = BlockFrankWolfe(gap=1e-5, max_passes=3000)


def data(kind):
    rng = np.random.default_rng(0)
    if kind == "chain":
        X = [[[f"w={rng.integers(4)}"] for _ in range(rng.integers(1, 5))] for _ in range(8)]
        return X, [["B" if t[0] in ("w=1", "w=2") else "O" for t in x] for x in X]
    if kind == "graph":
        X = [(rng.normal(size=(3, 2)), [[0, 1], [1, 2], [2, 0]], np.ones((3, 1))) for _ in range(8)]
        return X, [(x[0][:, 0] + 0.5 * rng.normal(size=3) > 0).astype(int) for x in X]
    X = rng.normal(size=(16, 3))
    if kind == "classes":
        return X, (X[:, 0] > 0).astype(int)
    return X, (X + 0.5 * rng.normal(size=(16, 3)) > 0).astype(int)


KINDS = {
    "chain": mf.ChainSSVM,
    "graph": mf.GraphSSVM,
    "classes": mf.structured.MulticlassSSVM,
    "labels": mf.structured.MultiLabelSSVM,
}
AXES = {
    "loss": ["hamming", "zero_one", "f1", mf.structured.Hamming(normalised=True), [[0, 1], [3, 0]]],
    "rescaling": ["margin", "slack"],
    "solver": [
        "auto", CLOSE, BlockFrankWolfe(steps="away", sampling="gap"), CuttingPlane(), CuttingPlane("one"),
        Subgradient(20), StructuredPerceptron(3, margin_infused=True), "frank_wolfe", "excessive_gap",
        "exponentiated_gradient", "max_margin_network", "dual_loss",
    ],
    "l1": [0.0, 0.1],
    "class_weight": [None, "balanced"],
    "early_stopping": [None, 2],
    "batch_size": [None, 3],
    "C": [0.1, 2.0],
    "interaction": ["symmetric", "equal"],
    "associative": [False, True],
    "hidden_states": [1, 1, 2],
}  # fmt: skip


def drawn(kind, seed):
    """Settings of an estimator, each of its options by chance, half of the time as they are by default."""
    rng = np.random.default_rng([seed, len(kind)])
    known = set(KINDS[kind]().get_params())
    return {
        name: values[0] if rng.random() < 0.5 else values[rng.integers(len(values))]
        for name, values in AXES.items()
        if name in known
    }


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_holds_or_one_clear_error(kind):
    X, y = data(kind)
    answered = 0
    for seed in range(10):
        settings = drawn(kind, seed)
        rng = np.random.default_rng(seed)
        watched = {"X_dev": X, "y_dev": y} if settings.get("early_stopping") or rng.random() < 0.3 else {}
        weights = rng.integers(0, 3, len(X)).astype(float) + (np.arange(len(X)) == 0) if rng.random() < 0.5 else None
        about = {"sample_weight": weights, **watched}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                svm = KINDS[kind](**settings, rng=0).fit(X, y, **about)
                found = svm.predict(X)
        except mf.ModelError:
            continue
        answered += 1
        report = svm.report_
        assert len(found) == len(X), settings
        assert bool(report.development) == bool(watched), settings
        assert not report.dual > report.primal * (1 + 1e-7) + 1e-9, settings
        if report.rounds or watched or report.gap_is_estimate or not np.isfinite(report.primal):
            continue
        # Whatever the solver, its primal and dual enclose the optimum that one solver finds.
        best = KINDS[kind](**{**settings, "solver": CLOSE}, rng=0).fit(X, y, sample_weight=weights).report_
        if not best.gap_is_estimate:
            assert report.primal >= best.dual * (1 - 1e-6), settings
            assert not report.dual > best.primal * (1 + 1e-6), settings
    assert answered >= 4
