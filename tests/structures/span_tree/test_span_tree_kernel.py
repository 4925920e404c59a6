"""Trees of spans: closed forms, long sentences, and bad input."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.span_tree.family import SpanTrees


@pytest.mark.parametrize("n", [1, 2, 5, 12, 20])
def test_numbers_of_trees_are_those_of_catalan(n):
    assert mf.structures.SpanTree(np.zeros((n, n))).n_structures() == comb(2 * n - 2, n - 1) // n


def test_labels_multiply():
    assert mf.structures.SpanTree(np.zeros((4, 4, 3))).n_structures() == 5 * 3**7


def test_long_sentences_stay_finite():
    rng = np.random.default_rng(0)
    family = SpanTrees.of(np.array([200]), 2)
    pool = rng.normal(0, 30, family.n_cells)
    sums = family.sums(pool, counts=True, running=Running())
    spans = sums.counts.reshape(-1, 2).sum(axis=1)
    i, j = np.triu_indices(200)
    assert spans.sum() == pytest.approx(399)
    np.testing.assert_allclose(spans[i == j], 1.0)
    assert sums.log_partition[0] >= pool[family.maxima(pool, running=Running()).of(0)].sum()


def test_bad_input_gets_a_sentence():
    for scores, message in (
        (np.zeros((2, 3)), "square"),
        (np.zeros((0, 0, 2)), "a word and a label at least"),
        (np.zeros(3), "3 axes"),
        ([["a", "b"], ["c", "d"]], "numbers"),
        (np.array([[np.nan]]), "nan"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            mf.structures.SpanTree(scores)
    trees = mf.structures.SpanTree(np.zeros((3, 3)))
    with pytest.raises(mf.ModelError, match="5 different spans"):
        trees.score([(0, 2, 0)])
    with pytest.raises(mf.ModelError, match="5 different spans"):
        trees.score([(0, 2), (0, 1), (1, 2), (0, 0), (1, 1)])
    with pytest.raises(mf.ModelError, match="a span is"):
        mf.decode(trees, {"spans": {(2, 1): True}})
