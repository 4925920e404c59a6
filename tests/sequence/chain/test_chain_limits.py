"""Chains at the edges: values of any size, training stopped at once, labels that are none, ragged probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.memm.memm import MEMM
from tests.sequence.chain.test_chain_crf import EDGES, X, Y, toy


def chunked(n: int, seed: int) -> tuple[list, list]:
    """Sequences with labels of chunks."""
    found, labels = toy(n, seed)
    return found, [[{"A": "B-X", "B": "I-X", "C": "O"}[label] for label in own] for own in labels]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [1e3, 1e14, 1e20, 1e26, 1e300])
def test_values_of_any_size(order: int, size: float):
    crf = ChainCRF(order=order).fit(X, Y)
    # A value so large settles its token whatever the rest says, as does a label that is fixed.
    tokens = [{"weight": size, "bias": 1.0}, {"shown": "1", "bias": 1.0}, {"weight": -size, "bias": 1.0}]
    table = crf.predict_proba([tokens])[0]
    sure = [crf.classes_[k] for k in (table[0].argmax(), table[2].argmax())]
    plain = [{"bias": 1.0}, {"shown": "1", "bias": 1.0}, {"bias": 1.0}]
    same = crf.predict_proba([plain], fixed=[[sure[0], None, sure[1]]])[0]
    np.testing.assert_allclose(table, same, atol=1e-9)
    assert table[1].min() > 0.0
    assert crf.entropy([tokens])[0] == pytest.approx(float(-(table[1] * np.log(table[1])).sum()), rel=1e-9)


def test_sums_of_edges_of_any_size():
    values = [[{"e": 1.0 + t % 2} for t in range(len(x))] for x in X]
    crf = ChainCRF().fit(X, Y, edges=values)
    x = next(x for x in X if len(x) > 2)[:2]
    table = crf.predict_proba([x], edges=[[{}, {"e": 1e22}]])[0]
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
    # The step decides both labels: nothing is left to doubt.
    assert crf.entropy([x], edges=[[{}, {"e": 1e22}]])[0] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(table.max(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "owlqn", "sgd", "perceptron"])
def test_stopped_at_once_keeps_the_start(solver: str, tmp_path: Path):
    crf = ChainCRF(solver=solver, step=0.1 if solver == "sgd" else None, rng=0).fit(X, Y, callback=lambda p: True)
    assert crf.report_.iterations == 0 and not crf.report_.converged
    assert crf.report_.message == "stopped by the callback"
    assert not crf.model_.weights.any()
    crf.save(tmp_path / "start.mf")
    again = mf.load(tmp_path / "start.mf")
    assert np.isnan(again.report_.objective) and again.predict(X) == crf.predict(X)
    crf.set_params(warm_start=True).fit(X, Y)
    assert crf.score(X, Y) > 0.6


@pytest.mark.parametrize("kind", [ChainCRF, MEMM])
def test_labels_that_are_nan_are_refused(kind: Any):
    for label in (float("nan"), np.nan, np.float32("nan")):
        with pytest.raises(mf.ModelError, match="a label is nan: give None where a label is not known"):
            kind().fit([[["a"], ["b"]]], [[1.0, label]])


def test_probabilities_join_into_a_vector_of_tables():
    crf = ChainCRF(max_iterations=5).fit(X, Y)
    tables = np.asarray(crf.predict_proba(X))
    assert tables.shape == (len(X),) and [table.shape for table in tables] == [(len(x), 3) for x in X]
    alike = np.asarray(crf.predict_proba([x[:1] for x in X]))  # of one length, and still a vector
    assert alike.shape == (len(X),)
    joined = np.concatenate([crf.predict_proba(X[:20]), crf.predict_proba(X[20:])])  # as folds are put together
    for one, other in zip(joined, tables, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"hidden_states": 2, "rng": 0}])
def test_labels_that_constraints_forbid_have_probability_zero(settings: dict):
    train = chunked(40, 0)
    crf = ChainCRF(constraints="iob2", max_iterations=5, **settings).fit(*train)
    x = [train[0][0][0]] * 3
    whole = crf.log_likelihood([x, x], [["I-X", "O", "O"], ["B-X", "O", "O"]])
    parts = crf.log_likelihood([x, x, x], [["I-X", None, "O"], ["B-X", None, "O"], [None, None, None]])
    assert whole[0] == parts[0] == -np.inf
    assert np.isfinite(whole[1]) and whole[1] < parts[1] < 0.0
    assert parts[2] == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(mf.ImpossibleEvidenceError, match="no labels that its constraints allow"):
        crf.predict_proba([x], fixed=[["I-X", None, None]])


def test_threads_and_kinds_of_rows_do_not_change_training():
    many, labels = toy(60, seed=3)
    one = ChainCRF(n_jobs=1, max_iterations=8).fit(many, labels)
    two = ChainCRF(n_jobs=2, max_iterations=8).fit(many, labels)
    np.testing.assert_array_equal(one.model_.weights, two.model_.weights)
    edged = ChainCRF(max_iterations=8).fit(X, Y, edges=EDGES)
    assert edged.report_.iterations == 8


X3, Y3 = [[["x"], ["y"]]] * 3, [["A", "B"]] * 3


def test_a_refit_that_fails_leaves_the_model_before_it():
    crf = mf.ChainCRF(l2=0.1).fit(X3, Y3)
    before = crf.predict(X3)
    with pytest.raises(mf.ModelError):
        crf.fit([[["y"], ["x"], ["z"]]], [["A", "B"]])
    with pytest.raises(TimeoutError):
        crf.fit([[["y"], ["x"]]], [["D", "C"]], time_limit=1e-9)
    assert crf.predict(X3) == before and crf.classes_ == ["A", "B"]
    warm = mf.ChainCRF(l2=0.1, warm_start=True).fit(X3, Y3)
    with pytest.raises(TimeoutError):
        warm.fit([[["new"], ["x"]]], [["D", "C"]], time_limit=1e-9)
    assert warm.predict(X3) == before and "new" not in warm.vectoriser_.attributes_


def test_warm_starts_keep_their_edges():
    edges = [[["e"], ["e"]]] * 3
    crf = mf.ChainCRF(warm_start=True).fit(X3, Y3, edges=edges)
    with pytest.raises(mf.ModelError, match="warm_start needs edges"):
        crf.fit(X3, Y3)
    assert crf.fit(X3, Y3, edges=edges).predict(X3, edges=edges) == Y3


def test_the_development_set_is_decoded_under_constraints():
    X = [[["b"], ["i", "j", "k"]], [["o"], ["o"]]] * 5
    y = [["B-X", "I-X"], ["O", "O"]] * 5
    X_dev, y_dev = [[["o"], ["i", "j", "k"]]], [["O", "I-X"]]
    crf = mf.ChainCRF(l2=0.01, constraints="iob2", max_iterations=10).fit(X, y, X_dev, y_dev)
    assert crf.report_.accuracies[-1] == crf.score(X_dev, y_dev) == 0.5
    assert crf.report_.f1_scores[-1] == 0.0


def test_what_cannot_work_is_said_before_training(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    with pytest.raises(mf.ModelError, match="iob3"):
        mf.ChainCRF(constraints="iob3", verbose=True).fit(X3, Y3)
    with pytest.raises(mf.ModelError, match="a folder that does not exist"):
        mf.ChainCRF(checkpoint=tmp_path / "no" / "x.mf", verbose=True).fit(X3, Y3)
    for bad in ({"rng": "x"}, {"rng": -1}, {"solver": ["lbfgs"]}, {"order": True}):
        with pytest.raises(mf.ModelError, match=next(iter(bad))):
            mf.ChainCRF(**bad).fit(X3, Y3)
    assert "iteration" not in capsys.readouterr().out


def test_numpy_scalars_and_class_weights_are_saved(tmp_path: Path):
    y = [list(np.array(["A", "B"]))] * 3
    crf = mf.ChainCRF(l2=np.float32(0.5), class_weight={"A": 10.0}).fit(X3, y)
    assert type(crf.report_.objective) is float
    crf.save(tmp_path / "m.mf")
    again = mf.load(tmp_path / "m.mf")
    assert again.class_weight == {"A": 10.0} and again.predict(X3) == Y3
    again.set_params(warm_start=True).fit(X3, Y3)
    assert again.report_.objective == pytest.approx(crf.report_.objective, rel=1e-3)


def test_training_that_never_moves_has_not_converged():
    X = [[{"a": 1e14}], [{"a": -1e14}]] * 20
    report = mf.ChainCRF().fit(X, [["A"], ["B"]] * 20).report_
    assert report.iterations > 0 or not report.converged
