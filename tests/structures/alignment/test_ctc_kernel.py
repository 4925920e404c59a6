"""CTC: closed forms, long inputs, bad input."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.alignment.ctc_family import CTCPaths
from markovfield.structures.alignment.reading import collapsed, read_labels


@pytest.mark.parametrize(("frames", "n"), [(4, 1), (9, 3), (12, 5), (6, 0)])
def test_numbers_of_paths(frames, n):
    # L labels, neighbours different: C(T + L, 2 L); each repetition needs a blank of its own.
    labels = [1 + k % 2 for k in range(n)]
    assert mf.structures.CTC(np.zeros((frames, 3)), labels).n_structures() == comb(frames + n, 2 * n)


def test_all_labellings_together_have_probability_one():
    rng = np.random.default_rng(0)
    log_probs = rng.normal(size=(4, 3))
    log_probs -= np.logaddexp.reduce(log_probs, axis=1, keepdims=True)
    readings = {tuple(collapsed([(code // 3**t) % 3 for t in range(4)])) for code in range(81)}
    total = sum(np.exp(float(mf.log_partition(mf.structures.CTC(log_probs, list(r))))) for r in readings)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_long_inputs_stay_finite():
    rng = np.random.default_rng(1)
    family = CTCPaths.of(np.array([700, 3]), 6, [rng.integers(1, 6, 300), []])
    pool = rng.normal(0, 60, family.n_cells)
    sums = family.sums(pool, counts=True, weights=np.array([2.0, 1.0]), running=Running())
    np.testing.assert_allclose(sums.counts[:4200].reshape(700, 6).sum(axis=1), 2.0, atol=1e-9)
    assert (sums.log_partition >= family.maxima(pool, running=Running()).scores(pool) - 1e-9).all()


def test_too_few_frames_are_impossible_in_a_batch():
    family = CTCPaths.of(np.array([2, 3]), 3, [[1, 1], [1, 1]])
    sums = family.sums(np.zeros(family.n_cells), counts=True, running=Running())
    assert sums.log_partition.tolist() == [-np.inf, pytest.approx(0.0, abs=1e-14)]
    assert sums.counts.reshape(-1, 3).sum(axis=1).tolist() == [0, 0, 1, 1, 1]


def test_bad_input_gets_a_sentence():
    scores = np.zeros((4, 3))
    for log_probs, labels, settings, message in (
        (np.zeros((0, 3)), [], {}, "a frame and a symbol"),
        (scores, [3], {}, "from 0 to 2"),
        (scores, [0], {}, "not blank"),
        (scores, [1, 1, 1], {}, "need 5 frames"),
        (scores, [0.5], {}, "whole numbers"),
        (scores, [1], {"blank": 3}, "below 3"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            mf.structures.CTC(log_probs, labels, **settings)
    with pytest.raises(mf.ModelError, match=r"reads as \[1, 2\]"):
        mf.structures.CTC(scores, [1]).score([1, 1, 2, 2])


@pytest.mark.parametrize("blank", [0, 2])
def test_labels_are_read_whatever_the_path(blank):
    rng = np.random.default_rng(3)
    scores = np.log(rng.dirichlet(np.ones(3), size=5))
    totals: dict[tuple[int, ...], float] = {}
    for path in product(range(3), repeat=5):
        labels = tuple(collapsed(path, blank))
        totals[labels] = totals.get(labels, 0.0) + float(np.exp(scores[range(5), path].sum()))
    found = read_labels(scores, blank=blank, beam=10**4)
    assert {tuple(labels): pytest.approx(np.exp(score)) for labels, score in found} == totals
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    for labels, score in found[:5]:
        form = mf.structures.CTC(scores, labels, blank=blank)
        assert float(mf.log_partition(form)) == pytest.approx(score)
    # A narrow beam gives lower bounds.
    narrow = read_labels(scores, blank=blank, beam=2)
    assert len(narrow) == 2
    assert all(np.exp(score) <= totals[tuple(labels)] + 1e-12 for labels, score in narrow)
    assert mf.structures.CTC(scores, None, blank=blank).read(beam=100)[0] == found[0]
    with pytest.raises(mf.ModelError, match="beam must be an integer of at least 1"):
        read_labels(scores, beam=0)


def test_paths_of_any_labels():
    form = mf.structures.CTC(np.zeros((4, 3)), None)
    assert form.labels is None
    assert form.n_structures() == 81
    assert "any labels" in repr(form)
    with pytest.raises(mf.ModelError, match="a path has 4 symbols, one for each frame, got 3"):
        form.score([0, 1, 2])
