"""Lanes of random numbers against one stream at a time."""

from __future__ import annotations

import numpy as np
from scipy.stats import kstest

from markovfield.kernels.random import draw_bits
from markovfield.kernels.random_lanes import LANES, draw_words, lanes


def test_each_lane_is_a_stream_of_xoshiro():
    state = lanes(np.random.default_rng(3))
    single = np.ascontiguousarray(state.T)
    out = np.zeros(3 * LANES, np.uint64)
    draw_words(state, out, 3 * LANES)
    expected = [[int(draw_bits(stream)) for _ in range(3)] for stream in single]
    assert out.reshape(3, LANES).T.tolist() == expected
    assert np.array_equal(state, single.T)


def test_whole_lanes_are_drawn_as_far_as_asked():
    state = lanes(np.random.default_rng(4))
    out = np.zeros(3 * LANES, np.uint64)
    draw_words(state, out, LANES + 1)
    assert out[: 2 * LANES].all()
    assert not out[2 * LANES :].any()


def test_halves_are_uniform():
    state = lanes(np.random.default_rng(5))
    out = np.zeros(1000 * LANES, np.uint64)
    draw_words(state, out, len(out))
    assert kstest(out.view(np.uint32) / 2.0**32, "uniform").pvalue > 1e-6
