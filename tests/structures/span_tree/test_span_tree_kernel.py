"""Trees of spans: closed forms, long sentences, and bad input."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.span_tree.family import SpanTrees
from markovfield.structures.span_tree.span_tree_kernel import _linear_flow, _linear_inside, _log_flow, _splits


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


@pytest.mark.parametrize("n", [1, 2, 3, 9, 40])
@pytest.mark.parametrize("scale", [1.0, 20.0, 300.0])
def test_numbers_and_logs_agree(n, scale):
    rng = np.random.default_rng(n)
    own, terms = rng.normal(0, scale, n * n), np.empty(n)
    numbers, logs = [np.empty(n * n) for _ in range(2)], [own.copy(), np.empty(n * n)]
    totals, scales = np.empty(n * n), np.empty(n)
    top = own.max()
    log_z = _linear_inside(n, np.exp(own - top), top, *numbers, totals, scales, terms)
    _splits(n, False, *logs, terms)
    if np.isnan(log_z):
        assert scale > 1.0  # left to logs
        return
    assert log_z == pytest.approx(logs[0][n - 1], rel=1e-12)
    flows = []
    for flow, words in ((_linear_flow, (*numbers, totals, scales, terms)), (_log_flow, (*logs, terms))):
        masses = np.zeros(n * n), np.zeros(n * n)
        masses[0][n - 1] = 0.7
        flow(n, *words, *masses)
        flows.append(masses)
    np.testing.assert_allclose(flows[0], flows[1], atol=1e-12)


def test_what_is_ruled_out_is_left_to_logs():
    own = np.ones(9)
    own[1] = 0.0
    room = [np.empty(9) for _ in range(3)]
    assert np.isnan(_linear_inside(3, own, 0.0, *room, np.empty(3), np.empty(3)))
    family = SpanTrees.of(np.array([3, 40, 2]), 2)
    pool = np.random.default_rng(0).normal(0, 3, family.n_cells)
    pool[3] = -np.inf
    pool[family.cell_offsets[2] :] = -np.inf
    with_counts = family.sums(pool, counts=True, running=Running())
    np.testing.assert_allclose(
        with_counts.log_partition, family.sums(pool, running=Running()).log_partition, rtol=1e-12
    )
    assert not with_counts.counts[family.cell_offsets[2] :].any()
