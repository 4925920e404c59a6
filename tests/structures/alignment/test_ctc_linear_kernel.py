"""Sums of CTC by numbers against those by logs, and when they are left to logs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from markovfield.inference.core.running import Running
from markovfield.structures.alignment.ctc_family import CTCPaths
from markovfield.structures.alignment.ctc_kernel import _in_log_space
from markovfield.structures.alignment.ctc_linear_kernel import linear_sums, linear_width


def both(scores, labels, blank=0, weight=0.7):
    """log Z and counts by both kernels."""
    frames, symbols = scores.shape
    family = CTCPaths.of(np.array([frames]), symbols, [labels], blank)
    pool, counts = scores.ravel().copy(), [np.zeros(scores.size), np.zeros(scores.size)]
    n = len(labels)
    width = linear_width(n)
    may = np.append(np.where(family.skips[1::2] == 0, 1.0, 0.0), 0.0)
    room = np.empty((frames, width)), np.empty((3, width)), np.empty(n + 1)
    own = np.asarray(labels, np.int64)
    one = linear_sums(pool, 0, frames, symbols, own, may, blank, weight, True, *room, counts[0])
    two = _in_log_space(pool, 0, frames, symbols, family.states, family.skips, weight, True, counts[1])
    sums = family.sums(pool, counts=True, weights=np.array([weight]), running=Running(1))
    assert sums.log_partition[0] == pytest.approx(two, rel=1e-12)
    np.testing.assert_allclose(sums.counts, counts[1], atol=1e-9)
    return one, two, counts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("frames", "n", "blank"), [(1, 0, 0), (1, 1, 2), (7, 3, 0), (30, 12, 1), (40, 40, 0), (25, 0, 0)]
)
def test_same_as_logs(frames, n, blank, seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 3, (frames, 4))
    symbols = [symbol for symbol in range(4) if symbol != blank]
    # Neighbours differ where there is no frame to spare.
    labels = [symbols[k % 3] for k in range(n)] if n == frames else rng.choice(symbols, n).tolist()
    if n + sum(a == b for a, b in pairwise(labels)) > frames:
        labels = [symbols[k % 3] for k in range(n)]
    one, two, counts = both(scores, np.array(labels, np.int64), blank)
    assert one == pytest.approx(two, rel=1e-12)
    np.testing.assert_allclose(counts[0], counts[1], atol=1e-11)


def test_symbols_that_are_ruled_out():
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(12, 4))
    scores[rng.random(scores.shape) < 0.3] = -np.inf
    scores[:, 0] = 0.0
    scores[[2, 5, 8], [1, 2, 2]] = 0.4
    one, two, counts = both(scores, np.array([1, 2, 2]))
    assert one == pytest.approx(two, rel=1e-12)
    np.testing.assert_allclose(counts[0], counts[1], atol=1e-12)


def test_what_is_lost_to_small_numbers_is_found_with_logs():
    # The only path that ends well is one that all others leave behind by e^-1200 at first.
    scores = np.zeros((6, 3))
    scores[:3, 1], scores[:3, 2] = -400.0, -400.0
    scores[3:, 0] = -np.inf
    one, two, _ = both(scores, np.array([1, 2]))
    assert np.isnan(one) or one == pytest.approx(two)
    scores[:3, 0] = -np.inf
    scores[:3, 1] = -400.0
    scores[0, 1], scores[1, 1] = -900.0, 0.0
    one, two, _ = both(scores, np.array([1, 2]))
    assert np.isfinite(two)
    assert np.isnan(one) or one == pytest.approx(two)


@pytest.mark.parametrize("scale", [100.0, 1000.0])
def test_extreme_scores(scale):
    rng = np.random.default_rng(6)
    for _ in range(20):
        scores = rng.normal(0, scale, (20, 5))
        labels = rng.integers(1, 5, 6)
        one, two, counts = both(scores, labels)
        if not np.isnan(one):
            assert one == pytest.approx(two, rel=1e-12)
            np.testing.assert_allclose(counts[0], counts[1], atol=1e-9)
        else:
            assert not counts[0].any()


def test_nothing_possible():
    scores = np.zeros((4, 3))
    scores[:, 1] = -np.inf
    one, two, counts = both(scores, np.array([1]))
    assert np.isnan(one)
    assert two == -np.inf
    assert not counts[0].any()
