"""Streams of random numbers against the generator written in integers of Python, and against chi-square."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from markovfield.kernels.random import draw_bits, draw_from_logs, draw_index, draw_unit, streams

WORD = 2**64 - 1
# The first words from state 1, 2, 3, 4, as the authors' C code gives them.
FIRST = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205, 9973669472204895162]
FALSE_ALARM = 1e-6


def turned(x: int, k: int) -> int:
    return (x << k | x >> (64 - k)) & WORD


def xoshiro(state: list[int]) -> int:
    """One step of xoshiro256++ (Blackman and Vigna 2021)."""
    result = (turned((state[0] + state[3]) & WORD, 23) + state[0]) & WORD
    t = (state[1] << 17) & WORD
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= t
    state[3] = turned(state[3], 45)
    return result


def test_the_published_words():
    stream = np.array([1, 2, 3, 4], np.uint64)
    assert [int(draw_bits(stream)) for _ in FIRST] == FIRST


def test_words_and_states_are_those_of_the_generator():
    stream = streams(np.random.default_rng(1), 1)[0]
    state = [int(x) for x in stream]
    for _ in range(200):
        assert int(draw_bits(stream)) == xoshiro(state)
    assert [int(x) for x in stream] == state


def test_units_are_the_upper_bits():
    stream = streams(np.random.default_rng(2), 1)[0]
    state = [int(x) for x in stream]
    drawn = np.array([draw_unit(stream) for _ in range(4000)])
    np.testing.assert_array_equal(drawn, [(xoshiro(state) >> 11) * 2.0**-53 for _ in range(4000)])
    assert drawn.max() < 1.0 and kstest(drawn, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_indices_are_even(n: int):
    stream = streams(np.random.default_rng(n), 1)[0]
    counts = np.bincount([draw_index(stream, n) for _ in range(20 * n)], minlength=n)
    assert len(counts) == n
    if n > 1:
        assert chi2.sf(((counts - 20) ** 2 / 20).sum(), n - 1) > FALSE_ALARM


def test_draws_from_logs_come_as_often_as_they_should():
    stream = streams(np.random.default_rng(5), 1)[0]
    logs = np.array([9.0, -np.inf, 700.0, 701.0, -np.inf, 699.0, 5.0])
    chance = np.exp(logs[1:6] - 701.0)
    chance /= chance.sum()
    counts = np.zeros(5)
    for _ in range(6000):
        own = logs.copy()
        counts[draw_from_logs(stream, own, 1, 5)] += 1
        assert own[0] == 9.0 and own[6] == 5.0, "only its own entries are overwritten"
    assert not counts[chance == 0].any()
    expected = 6000 * chance[chance > 0]
    assert chi2.sf(((counts[chance > 0] - expected) ** 2 / expected).sum(), 2) > FALSE_ALARM


def test_nothing_to_draw_from_is_said():
    stream = np.array([1, 2, 3, 4], np.uint64)
    assert draw_from_logs(stream, np.full(3, -np.inf), 0, 3) == -1
    assert draw_from_logs(stream, np.array([-np.inf, -5.0, -np.inf]), 0, 3) == 1


def test_streams_are_seeded_apart_and_never_all_zeros():
    many = streams(np.random.default_rng(0), 500)
    assert many.dtype == np.uint64 and len(np.unique(many, axis=0)) == 500
    assert (many[:, 0] & np.uint64(1) == 1).all()
    np.testing.assert_array_equal(many, streams(np.random.default_rng(0), 500))
