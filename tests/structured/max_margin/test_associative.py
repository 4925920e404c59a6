"""Weights that must not be negative: neighbours attract each other, and graph cuts are exact; an l1; class weights."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane


def boards(n=4, seed=0):
    """Fields of a chessboard in noise: neighbours differ, whatever is asked of weights."""
    rng = np.random.default_rng(seed)
    labels = [(np.indices((5, 6)).sum(axis=0) + k) % 2 for k in range(n)]
    return [own + rng.normal(scale=0.8, size=own.shape) for own in labels], labels


def test_neighbours_attract_each_other_and_cuts_are_exact():
    images, labels = boards()
    settings = {"interaction": "equal", "edge_features": "contrast", "rng": 0}
    free = mf.GridSSVM(1.0, **settings).fit(images, labels)
    assert (free.coef_["edges"] < 0).any()
    for solver in (BlockFrankWolfe(gap=1e-4), CuttingPlane(gap=1e-3)):
        held = mf.GridSSVM(1.0, associative=True, solver=solver, **settings).fit(images, labels)
        assert held.report_.converged
        assert held.report_.guarantee == "exact"
        assert not held.report_.notes
        assert (held.coef_["edges"] >= 0).all()
        assert free.report_.dual <= held.report_.primal
    # By another oracle, the same optimum.
    hinge = mf.methods.Hinge(nonnegative=("edges",), decoding="junction_tree")
    model = mf.vision.GridModel(interaction="equal", edge_features="contrast")
    other = mf.StructuredClassifier(model, objective=hinge, solver=BlockFrankWolfe(gap=1e-4), l2=1.0, rng=0)
    assert other.fit(images, labels).report_.primal == pytest.approx(held.report_.primal, rel=2e-3)


def test_what_is_refused():
    images, labels = boards(2)
    for settings, message in (
        ({"associative": True}, "needs interaction='equal'"),
        ({"associative": True, "interaction": "equal", "solver": "perceptron"}, "knows no l1"),
        ({"l1": -1.0}, "l1 of GridSSVM"),
        ({"l1": np.inf}, "l1 of GridSSVM must be finite"),
        ({"l1": 1.0, "solver": "excessive_gap"}, "solver 'excessive_gap' knows no l1"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            mf.GridSSVM(**settings).fit(images, labels)
    graphs = [(np.eye(2), [[0, 1]], [[-1.0]])]
    with pytest.raises(mf.ModelError, match="needs features of edges that are not negative"):
        mf.GraphSSVM(interaction="equal", associative=True).fit(graphs, [[0, 1]])
    hinge = mf.methods.Hinge(nonnegative=("links",))
    with pytest.raises(mf.ModelError, match="nonnegative of Hinge names 'links'"):
        mf.StructuredClassifier(mf.structured.GraphModel(), objective=hinge).fit(graphs, [[0, 1]])
    with pytest.raises(mf.ModelError, match="nonnegative of Hinge must be names"):
        mf.methods.Hinge(nonnegative="edges")


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 8))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0.8, "rare", "usual")


def test_an_l1_leaves_weights_at_zero(tmp_path):
    X, y = rows()
    value = {}
    for l1 in (0.0, 0.5):
        svm = mf.structured.MulticlassSSVM(1.0, l1=l1, solver=BlockFrankWolfe(gap=1e-5), rng=0).fit(X, y)
        W = svm.weights_.reshape(-1, 2)
        scores = np.column_stack([np.ones(40), X]) @ W
        true = (y == "usual").astype(int)
        hinges = np.maximum(0.0, 1.0 - scores[np.arange(40), true] + scores[np.arange(40), 1 - true])
        value[l1] = 0.5 * (W**2).sum() + l1 * np.abs(W).sum() + hinges.sum()
        assert svm.report_.primal == pytest.approx(value[l1])
        assert (W == 0).any() == (l1 > 0)
    assert value[0.5] > value[0.0]
    svm.save(tmp_path / "sparse.mfz")
    assert mf.load(tmp_path / "sparse.mfz").l1 == 0.5
    tokens = [[[f"w={k % 5}", f"noise={(3 * k + i) % 7}"] for k in range(i, i + 4)] for i in range(8)]
    labels = [["A" if t[0] == "w=1" else "B" for t in x] for x in tokens]
    chain = mf.ChainSSVM(1.0, l1=1.0, rng=0).fit(tokens, labels)
    assert (chain.model_.weights == 0).any()
    assert chain.report_.dual <= chain.report_.primal
    with pytest.raises(mf.ModelError, match="hidden_states above 1 takes no l1"):
        mf.ChainSSVM(l1=0.3, hidden_states=2).fit(tokens, labels)


def test_labels_weigh_by_how_rare_they_are():
    X, y = rows()
    balanced = mf.structured.MulticlassSSVM(0.3, class_weight="balanced", rng=0).fit(X, y)
    weights = {label: 40 / (2 * (y == label).sum()) for label in ("rare", "usual")}
    named = mf.structured.MulticlassSSVM(0.3, loss=mf.structured.Hamming(weights=weights), rng=0).fit(X, y)
    assert balanced.report_.primal == pytest.approx(named.report_.primal)
    plain = mf.structured.MulticlassSSVM(0.3, rng=0).fit(X, y)
    assert (balanced.predict(X) == "rare").sum() >= (plain.predict(X) == "rare").sum()
    with pytest.raises(mf.ModelError, match="class_weight of MulticlassSSVM is for loss='hamming'"):
        mf.structured.MulticlassSSVM(class_weight="balanced", loss="zero_one").fit(X, y)
    with pytest.raises(mf.ModelError, match="'balanced' or a dict"):
        mf.structured.MulticlassSSVM(class_weight="even").fit(X, y)
    with pytest.raises(mf.ModelError, match="needs one number for each of 40 examples"):
        mf.structured.MulticlassSSVM().fit(X, y, sample_weight="heavy")
