"""Coming from sklearn-crfsuite: its settings mean what they say or are refused, and its attributes are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import markovfield as mf
from markovfield.sequence.chain.crf import ChainCRF
from tests.sequence.chain.test_chain_crf import X, Y
from tests.sequence.chain.test_chain_limits import chunked


def weights(**settings: Any) -> np.ndarray:
    return ChainCRF(**{"rng": 0, "max_iterations": 7, **settings}).fit(X, Y).model_.weights


# Its settings, and the same in our words.
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"c1": 0.3, "c2": 0.2}, {"l1": 0.3, "l2": 0.4}),
    ({"algorithm": "lbfgs", "num_memories": 6, "epsilon": 1e-5, "max_linesearch": 20}, {}),
    ({"linesearch": "MoreThuente", "keep_tempfiles": False, "trainer_cls": None}, {}),
    ({"delta": 0.5, "period": 2}, {"tolerance": 0.5, "period": 2}),
    ({"min_freq": 3.0}, {"min_count": 3}),
    ({"all_possible_states": True, "all_possible_transitions": True}, {"all_states": True, "all_transitions": True}),
    ({"algorithm": "l2sgd"}, {"solver": "sgd"}),
    ({"algorithm": "l2sgd", "calibration_eta": 0.1, "calibration_rate": 2.0}, {"solver": "sgd"}),
    ({"algorithm": "l2sgd", "calibration_samples": 1000, "calibration_max_trials": 20}, {"solver": "sgd"}),
    ({"algorithm": "ap", "epsilon": 0.0}, {"solver": "perceptron"}),
    ({"algorithm": "pa", "error_sensitive": True, "averaging": True}, {"solver": "pa"}),
    ({"algorithm": "pa", "pa_type": 1, "c": 0.01}, {"solver": "pa", "step": 0.01}),
    ({"algorithm": "pa", "pa_type": 2, "c": 0.01}, {"solver": "pa2", "step": 0.01}),
    ({"algorithm": "pa", "pa_type": 0}, {"solver": "pa", "step": 1e12}),
    ({"algorithm": "arow", "gamma": 4.0, "variance": 1.0}, {"solver": "arow", "step": 0.25}),
]


@pytest.mark.parametrize(("theirs", "ours"), SAME)
def test_names_of_the_same(theirs: dict[str, Any], ours: dict[str, Any]):
    np.testing.assert_array_equal(weights(**theirs), weights(**ours))
    assert clone(ChainCRF(**theirs)).get_params() == ChainCRF(**theirs).get_params()


# Settings that change something, with what they change.
@pytest.mark.parametrize(
    "settings",
    [
        {"num_memories": 1},
        {"max_linesearch": 1},
        {"algorithm": "l2sgd", "calibration_eta": 1e-4, "calibration_max_trials": 1},
        {"algorithm": "l2sgd", "calibration_eta": 1e-3, "calibration_rate": 7.0},
        {"algorithm": "l2sgd", "calibration_samples": 2},
        {"algorithm": "l2sgd", "calibration_eta": 1e-3, "calibration_candidates": 1},
        {"algorithm": "pa", "error_sensitive": False},
        {"algorithm": "pa", "averaging": False},
        {"algorithm": "arow", "variance": 0.1},
    ],
)
def test_settings_that_are_honoured(settings: dict[str, Any]):
    usual = {
        name: settings[name] for name in ("algorithm", "calibration_eta") if name in settings and len(settings) > 1
    }
    usual.pop("calibration_eta" if "calibration_max_trials" in settings else "", None)
    assert not np.array_equal(weights(**settings), weights(**usual))


def test_when_to_end():
    usual = ChainCRF().fit(X, Y).report_
    assert ChainCRF(epsilon=0.1).fit(X, Y).report_.iterations < usual.iterations
    assert ChainCRF(epsilon=0.1).fit(X, Y).report_.message == "the gradient vanishes"
    report = ChainCRF(algorithm="ap", epsilon=5.0, rng=0).fit(X, Y).report_
    assert report.message == "a loss of at most 5 each" and report.iterations == 1 and report.converged


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"l2": 0.5, "c2": 0.1}, "l2=0.5 and c2=0.1 name the same setting: give one"),
        ({"l1": 0.5, "c1": 0.1}, "l1=0.5 and c1=0.1 name the same setting"),
        ({"solver": "sgd", "algorithm": "ap"}, "solver='sgd' and algorithm='ap' name the same setting"),
        ({"tolerance": 1e-3, "delta": 1e-3}, "tolerance=0.001 and delta=0.001"),
        ({"c2": -1.0}, "c2 must be a number from 0 on, got -1.0"),
        ({"min_freq": "2"}, "min_freq must be a number from 0 on, got '2'"),
        ({"linesearch": "Backtracking"}, "linesearch must be 'MoreThuente', got 'Backtracking'"),
        ({"keep_tempfiles": True}, "makes no temporary files to keep: give model_filename"),
        ({"trainer_cls": object}, "has no trainer class: give fit a callback"),
        ({"num_memories": 0}, "num_memories must be an integer from 1 on, got 0"),
        ({"c": 1.0}, "c is a setting of pa, pa2, not of solver 'lbfgs'"),
        ({"algorithm": "ap", "delta": 1e-3}, "delta is a setting of lbfgs, owlqn, sgd, not of solver 'perceptron'"),
        ({"algorithm": "pa", "pa_type": 3}, "pa_type must be 0, 1 or 2, got 3"),
        ({"algorithm": "pa", "c": 0.0}, "c must be above 0, got 0.0"),
        ({"algorithm": "pa", "c": 1.0, "step": 1.0}, "step=1.0 and c=1.0 say the same"),
        ({"algorithm": "pa", "averaging": 3}, "averaging must be True or False, got 3"),
        ({"algorithm": "l2sgd", "calibration_rate": 1.0}, "calibration_rate must be a number above 1"),
        ({"model_filename": "/no/such/folder/m.mf"}, "model_filename .* is in a folder that does not exist"),
    ],
)
def test_what_cannot_be_had_is_one_sentence(settings: dict[str, Any], message: str):
    with pytest.raises(mf.ModelError, match=message):
        ChainCRF(**settings).fit(X, Y)


def test_a_model_filename_is_where_the_model_is_saved(tmp_path: Path):
    path = tmp_path / "m.mf"
    crf = ChainCRF(c2=0.1, model_filename=path).fit(X, Y)
    again = mf.load(path)
    assert again.predict(X) == crf.predict(X) and again.model_filename is None


def test_attributes_of_a_fitted_model(tmp_path: Path):
    crf = ChainCRF(c2=0.1, all_possible_transitions=True).fit(X, Y)
    tagger, x = crf.tagger_, X[1]
    assert tagger.labels() == crf.classes_ and tagger.tag(x) == crf.predict_single(x)
    assert tagger.probability(Y[1]) == pytest.approx(float(np.exp(crf.log_likelihood([x], [Y[1]])[0])))
    assert tagger.marginal("A", 0) == crf.predict_marginals([x])[0][0]["A"]
    tagger.set(X[2])
    assert tagger.tag() == crf.predict_single(X[2])
    with pytest.raises(mf.ModelError, match="the tagger has no sequence"):
        crf.tagger_.tag()
    info = tagger.info()
    assert info.transitions == crf.transition_features_ and info.state_features == crf.state_features_
    assert list(info.attributes) == crf.attributes_ and len(crf.attributes_) == crf.num_attributes_
    assert {name for name, _ in crf.state_features_} <= set(crf.attributes_)
    crf.save(tmp_path / "m.mf")
    # The file is compressed by no more than this, and has a head.
    assert crf.size_ > crf.model_.weights.nbytes
    assert crf.sparsify().size_ > 0


def test_a_scorer_for_grid_search():
    found = GridSearchCV(
        ChainCRF(max_iterations=20), {"c2": [0.01, 100.0]}, scoring=mf.sequence.entity_f1_scorer, cv=3
    ).fit(*chunked(60, 0))
    assert found.best_params_ == {"c2": 0.01}
    train = chunked(60, 0)
    best = found.best_estimator_
    assert mf.sequence.entity_f1_scorer(best, *train) == mf.sequence.entity_report(train[1], best.predict(train[0])).f1
