"""Early stopping: what counts as patience, which weights are kept, and what the report says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.chain.watch import Watch
from markovfield.sequence.text.entities import entity_report
from tests.sequence.chain.test_chain_crf import X, Y, toy
from tests.sequence.chain.test_chain_limits import chunked


def ended(scores: list[float], values: list[float], patience: int, size: int = 1) -> tuple[int, int]:
    """After which iteration a watch stops that sees these scores and objectives, and whose weights it keeps."""
    unused: Any = None
    watch = Watch(unused, (unused, np.zeros(size, np.int32)), patience=patience, chunks=None, verbose=False, hidden=1,
                  forbidden=None, keep=None, every=1, settled=(0.1, 0.01))  # fmt: skip
    for i, (score, value) in enumerate(zip(scores, values, strict=True)):
        watch.values.append(value)
        watch.accuracies.append(score)
        watch._weigh(i + 1, np.array([float(i + 1)]))
        if watch.stopped:
            break
    weights, kept = watch.chosen(np.array([float(i + 1)]))
    assert weights[0] == kept
    return i + 1, kept


def test_scores_count_when_they_have_moved():
    def flat(scores: list[float], patience: int) -> tuple[int, int]:
        return ended([0.0, *scores], [100.0] * (len(scores) + 1), patience)

    assert flat([0.0] * 6 + [0.1, 0.2, 0.2, 0.1], 2) == (11, 10)
    assert flat([0.0] * 9, 2) == (10, 10)
    # Of equal scores the last weights are kept, and they are no better.
    assert flat([0.5, 0.6, 0.6, 0.6, 0.9], 2) == (5, 5)
    assert flat([0.5, 0.6, 0.5, 0.7, 0.5, 0.6], 2) == (7, 5)
    # Moved downwards, they count from there on.
    assert ended([0.9, 0.9, 0.8, 0.8, 0.7, 0.9], [100.0] * 6, 2) == (5, 4)


def test_scores_count_when_the_objective_has_settled():
    scores = [0.0, 0.5, 0.4, 0.4, 0.6, 0.5, 0.5, 0.5]
    assert ended(scores, [100.0, 80.0, 60.0, 50.0, 49.0, 48.0, 47.0, 46.0], 2) == (7, 5)
    assert ended(scores, [100.0, 80.0, 60.0, 50.0, 40.0, 39.0, 38.0, 37.0], 1) == (7, 7)
    assert ended(scores, [100.0, 99.0, 98.0, 97.0, 96.0, 95.0, 94.0, 93.0], 2) == (4, 2)
    # An iteration that lowers it by much again is not one of patience.
    assert ended(scores, [100.0, 99.0, 60.0, 30.0, 20.0, 19.0, 10.0, 9.0], 2) == (8, 5)
    # Far below its first value even halving it is little: without penalties it would fall for ever.
    assert ended(scores, [100.0, 4e-2, 2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4], 1) == (4, 4)


def test_an_early_peak_is_kept_where_it_is_no_chance():
    scores, values = [0.5, 0.7, 0.6, 0.6, 0.6], [100.0, 50.0, 20.0, 20.0, 20.0]
    assert ended(scores, values, 1, size=20) == (5, 5)  # two standard errors are 0.22
    assert ended(scores, values, 1, size=2000) == (5, 2)  # and 0.022
    falling = [100.0, 50.0, 20.0, 10.0, 5.0]  # never settled: the last, unless the peak is no chance
    assert ended(scores, falling, 1, size=20) == (5, 5) and ended(scores, falling, 1, size=2000) == (5, 2)


def rare(n: int, seed: int) -> tuple[list, list]:
    """Sequences where three tokens in a hundred are names, and most of these look like one."""
    rng = np.random.default_rng(seed)
    found, labels = [], []
    for _ in range(n):
        named = rng.random(12) < 0.03
        upper = np.where(named, rng.random(12) < 0.8, rng.random(12) < 0.01)
        words = rng.integers(0, 80, 12)
        found.append([[f"w{w}", *(["upper"] if u else [])] for w, u in zip(words, upper, strict=True)])
        labels.append(["B-N" if name else "O" for name in named])
    return found, labels


@pytest.mark.parametrize("settings", [{}, {"l1": 0.5, "l2": 0.0}, {"order": 2}, {"hidden_states": 2, "rng": 0}])
@pytest.mark.parametrize("patience", [1, 3])
def test_labels_that_are_mostly_outside(patience: int, settings: dict):
    train, dev = rare(300, 0), rare(150, 1)
    whole = ChainCRF(**settings).fit(*train)
    crf = ChainCRF(early_stopping=patience, **settings).fit(*train, *dev)
    report = crf.report_
    f1 = entity_report(dev[1], crf.predict(dev[0])).f1
    assert report.f1_scores[0] == 0.0 and f1 == report.f1_scores[report.kept - 1] > 0.3
    assert f1 >= entity_report(dev[1], whole.predict(dev[0])).f1 - 0.01


def test_the_report_is_of_the_weights_that_were_kept():
    dev, own = toy(30, seed=9)
    crf = ChainCRF(l2=1e-6, early_stopping=3).fit(X, Y, dev, own)
    report = crf.report_
    assert len(report.accuracies) == report.iterations == len(report.history) and not report.f1_scores
    assert crf.score(dev, own) == pytest.approx(report.accuracies[report.kept - 1])
    assert report.iterations >= report.kept > 0 and not report.converged
    assert report.objective == report.history[report.kept - 1]
    weights = crf.model_.weights
    value = -crf.log_likelihood(X, Y).sum() + 0.5e-6 * weights @ weights
    assert report.objective == pytest.approx(value, rel=1e-9)
    assert report.message == (
        f"early stopping after {report.iterations} iterations: kept the weights of iteration {report.kept}, with "
        f"accuracy {report.accuracies[report.kept - 1]:.4f} on the development set"
    )
    assert report.ending == report.message and "callback" not in str(report)
    assert f"after {report.kept} iterations in" in str(report)
    # Labels of the development set that training has not seen count as wrong.
    unseen = ChainCRF(max_iterations=3).fit(X, Y, [X[0]], [["Q"] * len(X[0])]).report_
    assert unseen.accuracies == (0.0,) * 3 and unseen.kept == 0 and unseen.ending == "not converged: 3 iterations"


def test_chunks_are_scored_by_default():
    train, dev = chunked(40, 0), chunked(30, 9)
    crf = ChainCRF(l2=1e-6, early_stopping=3).fit(*train, *dev)
    scores = crf.report_.f1_scores
    assert len(scores) == len(crf.report_.accuracies) == crf.report_.iterations
    assert entity_report(dev[1], crf.predict(dev[0])).f1 == scores[crf.report_.kept - 1]
    assert crf.report_.message.startswith("early stopping") and "F1" in crf.report_.message
    assert not ChainCRF(early_stopping=3, early_stopping_metric="accuracy").fit(*train, *dev).report_.f1_scores
    assert not ChainCRF(l2=1e-6, early_stopping=3).fit(X, Y, X, Y).report_.f1_scores  # labels that are no chunks
    with pytest.raises(mf.ModelError, match="early_stopping_metric must be one of auto, accuracy, f1, got 'recall'"):
        ChainCRF(early_stopping_metric="recall").fit(*train)


def test_a_score_that_stays_zero_is_a_warning():
    train = chunked(40, 0)
    dev = [train[0][0]], [["B-Q"] * len(train[0][0])]
    with pytest.warns(ConvergenceWarning, match="nothing on the development set was right in any of"):
        crf = ChainCRF(early_stopping=2).fit(*train, *dev)
    assert crf.report_.converged and crf.report_.kept == crf.report_.iterations


def test_saved_reports_say_what_was_kept(tmp_path: Any):
    dev, own = toy(30, seed=9)
    crf = ChainCRF(l2=1e-6, early_stopping=3).fit(X, Y, dev, own)
    crf.save(tmp_path / "m.mf")
    assert mf.load(tmp_path / "m.mf").report_ == crf.report_
