"""CTC: closed forms, long inputs, bad input."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.alignment.ctc import collapsed
from markovfield.structures.alignment.ctc_family import CTCPaths


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
    assert sums.log_partition.tolist() == [-np.inf, 0.0]
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
