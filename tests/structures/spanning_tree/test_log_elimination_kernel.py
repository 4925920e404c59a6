"""Elimination with logs: equal to linear space where both are safe; draws where arcs are far apart."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.structures.spanning_tree.log_elimination_kernel import differentiate_logs, eliminate_logs


@pytest.mark.parametrize("single", [True, False])
def test_logs_and_linear_space_agree(single):
    rng = np.random.default_rng(1)
    scores = rng.normal(0, 2, (13, 13))
    scores[rng.random(scores.shape) < 0.4] = -np.inf
    scores[np.arange(12), np.arange(1, 13)] = 1.0
    w, slope, entering, order = np.empty((13, 13)), np.empty((13, 13)), np.empty(13), np.empty(13, np.int64)
    log_z = eliminate_logs(scores, 12, single, w, entering, order)
    answer = mf.marginals(mf.structures.SpanningTree(scores, single_root=single))
    assert log_z == pytest.approx(answer.log_partition, abs=1e-11)
    differentiate_logs(w, 12, single, entering, slope, np.empty(13))
    found = np.zeros((13, 13))
    found[np.ix_(order, order)] = np.exp(slope)
    found *= np.exp(np.where(np.eye(13) > 0, -np.inf, scores))
    np.testing.assert_allclose(found[:, 1:], answer["arcs"][:, 1:], atol=1e-12)


def test_a_word_that_only_the_root_governs():
    """With a single root it has to be eliminated last; two such words leave no tree."""
    scores = np.zeros((4, 4))
    scores[1:, 3] = -np.inf
    trees = mf.structures.SpanningTree(scores)
    assert trees.n_structures() == 3
    assert {tuple(tree) for tree in mf.sample(trees, 200, rng=0).structures} == {(3, 1, 0), (2, 3, 0), (3, 3, 0)}
    scores[1:, 2] = -np.inf
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.marginals(mf.structures.SpanningTree(scores))
    assert mf.structures.SpanningTree(scores, single_root=False).n_structures() == 3


def test_draws_do_not_wait_in_cycles():
    """A walk would leave this cycle after exp(2000) steps."""
    scores = np.full((4, 4), -1000.0)
    scores[1, 2] = scores[2, 3] = scores[3, 1] = 1000.0
    drawn = mf.sample(mf.structures.SpanningTree(scores), 3000, rng=0)
    for tree in ((0, 1, 2), (3, 0, 2), (3, 1, 0)):
        assert sum(tuple(found) == tree for found in drawn.structures) / 3000 == pytest.approx(1 / 3, abs=0.05)


@pytest.mark.parametrize("single", [True, False])
def test_draws_of_longer_sentences_have_the_marginals(single):
    trees = mf.structures.SpanningTree(np.random.default_rng(3).normal(0, 2, (16, 16)), single_root=single)
    p = mf.marginals(trees)["arcs"]
    error = np.abs(mf.sample(trees, 4000, rng=0)["arcs"] - p)
    assert (error <= 5.5 * np.sqrt(p * (1 - p) / 4000) + 3 / 4000).all()
