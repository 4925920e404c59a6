"""Labels of frames by CTC: the likelihood by enumeration, gradients, what is learned, files, bad input."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np
import pytest
from sklearn.base import clone

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.sequence.strings.frame_labels import FrameLabels, _edit_distance
from markovfield.structured.objectives.form_likelihood import FormLikelihood
from tests.data import data_path


def written(rng, n, letters="abc"):
    """Strings, and frames in which each letter is there for some time, with noise, and silence between them."""
    X, Y = [], []
    for _ in range(n):
        text = "".join(rng.choice(list(letters), int(rng.integers(1, 4))))
        frames = []
        for letter in text:
            row = np.eye(len(letters) + 1)[1 + letters.index(letter)]
            frames += [row] * int(rng.integers(1, 4)) + [np.eye(len(letters) + 1)[0]] * int(rng.integers(1, 3))
        X.append(np.array(frames) + rng.normal(0, 0.2, (len(frames), len(letters) + 1)))
        Y.append(text)
    return X, Y


@pytest.mark.parametrize("window", [0, 1])
def test_the_likelihood_by_enumeration_and_its_gradient(window):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in (4, 3, 5)]
    Y = ["ab", "b", "aa"]
    model = FrameLabels(window).shaped(X, Y)
    weights = np.array([0.5, 2.0, 1.0])
    objective = FormLikelihood(model.encode(X, Y, weights), Running(1))
    w = rng.normal(size=model.n_weights)
    value, gradient = objective(w)
    table, total = w.reshape(-1, 3), 0.0
    for x, y, weight in zip(X, Y, weights, strict=True):
        padded = np.pad(x, ((window, window), (0, 0)))
        rows = [np.append(padded[t : t + 2 * window + 1].ravel(), 1.0) @ table for t in range(len(x))]
        logs = np.array([row - np.logaddexp.reduce(row) for row in rows])
        p = sum(
            np.exp(sum(logs[t, s] for t, s in enumerate(path)))
            for path in product(range(3), repeat=len(x))
            if "".join("_ab"[s] for s, _ in groupby(path) if s) == y
        )
        total -= weight * np.log(p)
    assert value == pytest.approx(total)
    for k in range(len(w)):
        step = 1e-5 * np.eye(len(w))[k]
        slope = (objective(w + step)[0] - objective(w - step)[0]) / 2e-5
        assert gradient[k] == pytest.approx(slope, abs=1e-6)


def test_it_learns_to_read():
    rng = np.random.default_rng(1)
    X, Y = written(rng, 80)
    labeller = mf.sequence.CTCLabeller(window=1, l2=0.1).fit(X[:50], Y[:50])
    assert labeller.score(X[50:], Y[50:]) > 0.95
    assert labeller.classes_ == ["a", "b", "c"]
    assert labeller.report_.guarantee == "exact"
    wanted = labeller.log_likelihood(X[:50], Y[:50])
    assert labeller.report_.log_likelihood == pytest.approx(wanted.sum(), rel=1e-6)
    (best, *_), *_ = labeller.predict_n_best(X[50:51], 3)
    assert best[0] == labeller.predict(X[50:51])[0]
    assert best[1] == pytest.approx(labeller.log_likelihood(X[50:51], [best[0]])[0], abs=1e-3)
    assert labeller.model_.accuracy(Y, labeller.predict(X, decision="map")) > 0.9
    marginals = labeller.predict_marginals(X[:1])[0]["symbols"]
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
    assert mf.decode(labeller.form(X[0])).score == pytest.approx(float(labeller.decode(X[:1]).scores[0]))
    assert len(labeller.sample(X[:2], 3, rng=0)[1]) == 3


def test_labels_need_not_be_letters(tmp_path):
    rng = np.random.default_rng(2)
    X, Y = written(rng, 40)
    named = [[10 * "abc".index(letter) for letter in text] for text in Y]
    labeller = mf.sequence.CTCLabeller(l2=0.1).fit(X, named)
    assert labeller.predict(X) == [[10 * "abc".index(k) for k in t] for t in clone(labeller).fit(X, Y).predict(X)]
    path = tmp_path / "ctc.mf"
    labeller.save(path)
    for again in (mf.sequence.CTCLabeller.load(path), mf.load(path)):
        assert again.predict(X) == labeller.predict(X)
        np.testing.assert_array_equal(again.weights_, labeller.weights_)


def test_handwriting():
    data_path("letters", "letters.npz")
    data = mf.datasets.handwritten_words()
    chosen = [i for i in range(len(data.words)) if len(data.words[i]) <= 4][:60]
    X = [np.concatenate(list(data.images[i]), axis=1).T for i in chosen]
    Y = [data.words[i] for i in chosen]
    labeller = mf.sequence.CTCLabeller(window=3, l2=0.1, solver=mf.learning.LBFGS(max_iterations=60)).fit(X, Y)
    assert labeller.score(X, Y) > 0.9  # of the words it was trained on: it can tell which columns are whose


def test_edit_distance():
    assert _edit_distance("kitten", "sitting") == 3
    assert _edit_distance("", "abc") == _edit_distance([1, 2, 3], []) == 3
    assert _edit_distance([1, 2], [1, 2]) == 0


def test_what_is_wrong_is_said():
    labeller = mf.sequence.CTCLabeller
    frames = np.zeros((3, 2))
    with pytest.raises(mf.ModelError, match="example 1: 2 labels need 3 frames at least, got 2"):
        labeller().fit([frames, frames[:2]], ["ab", "aa"])
    with pytest.raises(mf.ModelError, match="example 1: frames must have 2 columns as in training, got 3"):
        labeller().fit([frames, np.zeros((3, 3))], ["a", "b"])
    with pytest.raises(mf.ModelError, match="example 0: frames must be finite"):
        labeller().fit([np.full((3, 2), np.nan)], ["a"])
    with pytest.raises(mf.ModelError, match="example 1 has no frames"):
        labeller().fit([frames, frames[:0]], ["a", ""])
    with pytest.raises(mf.ModelError, match="all outputs are empty"):
        labeller().fit([frames], [""])
    with pytest.raises(mf.ModelError, match="example 0: an output must be a string or a list of labels, got 3"):
        labeller().fit([frames], [3])
    with pytest.raises(mf.ModelError, match="window"):
        labeller(window=-1).fit([frames], ["a"])
    fitted = labeller().fit([frames], ["a"])
    with pytest.raises(mf.ModelError, match="example 0: label 'z' was not seen in training"):
        fitted.log_likelihood([frames], ["z"])
