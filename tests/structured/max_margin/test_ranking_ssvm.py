"""Rankings by margins: the objective by enumeration of sets, orders, files, refusals."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe


def lists(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(rng.integers(3, 7)), 2)) for _ in range(n)]
    return X, [(x @ [1.0, -0.5] + rng.normal(0, 0.4, len(x)) > 0.3).astype(int) for x in X]


@pytest.mark.parametrize("k", [1, 2, 10])
def test_the_objective_by_enumeration(k, tmp_path):
    X, y = lists()
    svm = mf.structured.RankingSSVM(0.5, k=k, solver=BlockFrankWolfe(gap=1e-5), rng=0).fit(X, y)
    total = 0.5 * svm.weights_ @ svm.weights_
    for scores, relevance in zip(svm.decision_function(X), y, strict=True):
        size, most = min(k, len(scores)), min(k, len(scores), relevance.sum())
        truth = scores[relevance == 1].sum()
        values = [0.0]
        for chosen in combinations(range(len(scores)), size):
            own = list(chosen)
            loss = 1 - relevance[own].sum() / most if most else 0.0
            values.append(loss + scores[own].sum() - truth)
        total += 0.5 * max(values)
    assert svm.report_.primal == pytest.approx(total)
    assert svm.report_.gap <= 1e-5
    assert svm.score(X, y) > 0.8
    for order, scores in zip(svm.rank(X), svm.decision_function(X), strict=True):
        assert (np.diff(scores[order]) <= 0).all()
    svm.save(tmp_path / "rank.mfz")
    again = mf.load(tmp_path / "rank.mfz")
    assert again.score(X, y) == svm.score(X, y)


def test_other_losses_and_what_is_refused():
    X, y = lists()
    for loss in ("f1", "hamming"):
        assert mf.structured.RankingSSVM(1.0, loss=loss, rng=0).fit(X, y).score(X, y) > 0.7
    with pytest.raises(mf.ModelError, match="relevance must be 0 or 1, got 2"):
        mf.structured.RankingSSVM().fit(X, [np.where(one > 0, 2, 0) for one in y])
    with pytest.raises(mf.ModelError, match="k"):
        mf.structured.RankingSSVM(k=0).fit(X, y)
    with pytest.raises(mf.ModelError, match="C of RankingSSVM"):
        mf.structured.RankingSSVM(0.0).fit(X, y)
