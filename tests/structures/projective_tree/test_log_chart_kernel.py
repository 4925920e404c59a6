"""Eisner's chart with logs: equal to linear space, its maximum that of the best tree it gives."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.structures.projective_tree.log_chart_kernel import fill_log_chart, log_outside


@pytest.mark.parametrize("single", [True, False])
def test_logs_and_linear_space_agree(single):
    rng = np.random.default_rng(1)
    scores = rng.normal(0, 2, (13, 13))
    scores[rng.random(scores.shape) < 0.3] = -np.inf
    scores[np.arange(12), np.arange(1, 13)] = 1.0
    trees = mf.structures.ProjectiveTree(scores, single_root=single)
    arc, span, turned = np.empty((3, 13, 13))
    fill_log_chart(scores, 12, single, False, arc, span, turned)
    answer = mf.marginals(trees)
    assert span[0, 12] == pytest.approx(answer.log_partition, abs=1e-11)
    found = np.zeros((13, 13))
    log_outside(scores, 12, single, arc, span, turned, found, np.empty((13, 13)))
    np.testing.assert_allclose(found, answer["arcs"], atol=1e-12)
    fill_log_chart(scores, 12, single, True, arc, span, turned)
    assert span[0, 12] == pytest.approx(mf.decode(trees).score)


@pytest.mark.parametrize("single", [True, False])
def test_draws_of_longer_sentences_have_the_marginals(single):
    trees = mf.structures.ProjectiveTree(np.random.default_rng(3).normal(0, 2, (16, 16)), single_root=single)
    p = mf.marginals(trees)["arcs"]
    error = np.abs(mf.sample(trees, 4000, rng=0)["arcs"] - p)
    assert (error <= 5.5 * np.sqrt(p * (1 - p) / 4000) + 3 / 4000).all()
