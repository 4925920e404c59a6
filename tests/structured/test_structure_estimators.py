"""Estimators of structures with arguments that make no sense: one sentence each, whatever the estimator."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf

TREES = mf.io.read_trees("(S (NP (DT the) (NN dog)) (VP (VBD ran)))\n(S (VP (VB go)))")
WORDS = [[("the", "DT"), ("dog", "NN")], [("go", "VB")]]
FRAMES = [np.eye(2), np.eye(2)[::-1]]
ESTIMATORS = {
    "trees": (lambda: mf.GrammarCRF(min_count=1, rng=0), [tree.pos for tree in TREES], TREES),
    "spans": (lambda: mf.grammar.SpanParser(min_count=1, rng=0), [tree.pos for tree in TREES], TREES),
    "heads": (lambda: mf.DependencyParser(min_count=1, rng=0), WORDS, [[2, 0], [0]]),
    "segments": (mf.SemiMarkovCRF, [[["w=a"], ["w=b"]], [["w=a"]]], [["B-X", "O"], ["O"]]),
    "links": (mf.AlignmentCRF, [(["a"], ["b"]), (["c"], ["d"])], [[(0, 0)], [(0, 0)]]),
    "strings": (mf.sequence.EditModel, ["ab", "cd"], ["abc", "cd"]),
    "frames": (mf.sequence.CTCLabeller, FRAMES, ["ab", "ba"]),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_arguments_that_make_no_sense(kind):
    make, X, y = ESTIMATORS[kind]
    fitted = make().fit(X, y)
    for wrong in (5, None, [None], [5], "ab"):
        with pytest.raises(mf.ModelError, match=r"."):
            fitted.predict(wrong)
    if kind not in ("trees", "spans"):  # these take trees alone
        with pytest.raises(mf.ModelError, match="got None"):
            make().fit(X, None)
    for wrong in ([None, None], [5, 5], y[:1]):
        with pytest.raises(mf.ModelError, match=r"."):
            make().fit(X, wrong)
        with pytest.raises(mf.ModelError, match=r"."):
            fitted.log_likelihood(X, wrong)
    for n in (0, -1, "a", 1.5):
        with pytest.raises(mf.ModelError, match="n must be an integer of at least 1"):
            fitted.predict_n_best(X, n)
    assert len(fitted.predict_n_best(X, 2)) == len(fitted.sample(X, 2, rng=0)) == 2
