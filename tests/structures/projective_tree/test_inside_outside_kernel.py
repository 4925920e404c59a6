"""Projective trees in linear space: closed forms, long sentences, scores far apart, bad input."""

from __future__ import annotations

from math import comb, log

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.projective_tree.family import ProjectiveTrees


@pytest.mark.parametrize("n", [1, 2, 3, 4, 10])
def test_numbers_of_trees(n):
    scores = np.zeros((n + 1, n + 1))
    assert mf.structures.ProjectiveTree(scores).n_structures() == comb(3 * n - 2, n - 1) // n
    assert mf.structures.ProjectiveTree(scores, single_root=False).n_structures() == comb(3 * n, n) // (2 * n + 1)


@pytest.mark.parametrize("single", [True, False])
def test_long_sentences(single):
    """Long enough that linear space is left: both ends are compared with the closed form."""
    for n in (100, 260):
        sums = ProjectiveTrees.of([n], single_root=single).sums(np.zeros((n + 1) ** 2), counts=True, running=Running())
        number = comb(3 * n - 2, n - 1) // n if single else comb(3 * n, n) // (2 * n + 1)
        assert sums.log_partition[0] == pytest.approx(log(number), rel=1e-12)
        np.testing.assert_allclose(sums.counts.reshape(n + 1, -1)[:, 1:].sum(axis=0), 1.0)


def test_scores_far_apart_and_empty_sentences():
    rng = np.random.default_rng(0)
    family = ProjectiveTrees.of([40, 0, 40])
    pool = rng.normal(0, 300, family.n_cells)
    pool[: 41**2] /= 300
    sums = family.sums(pool, counts=True, running=Running())
    assert sums.log_partition[1] == 0
    for first in (0, 41**2 + 1):
        counts = sums.counts[first : first + 41**2].reshape(41, 41)
        np.testing.assert_allclose(counts[:, 1:].sum(axis=0), 1.0)
        assert counts[0].sum() == pytest.approx(1)
    best = pool[family.maxima(pool, running=Running()).of(2)].sum()
    assert best <= sums.log_partition[2] <= best + log(comb(118, 39) // 40)


def test_crossing_arcs_are_said_so():
    trees = mf.structures.ProjectiveTree(np.zeros((5, 5)))
    with pytest.raises(mf.ModelError, match="do not cross"):
        trees.score([3, 0, 2, 1])
    with pytest.raises(mf.ModelError, match="square"):
        mf.structures.ProjectiveTree(np.zeros((2, 3)))
