"""Words of bits against integers of Python."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from scipy.stats import chi2

from markovfield.kernels import bitsets
from markovfield.kernels.bitsets import FIXED, bit, log2_fixed, random_below, random_seed, random_word

WORDS = [1, 2, 3, 2**63, 2**64 - 1, 2**32, 2**32 - 1, 0x8000_0000_0000_0001, 0x5555_5555_5555_5555]


@numba.njit
def counted(words, out):
    for i in range(len(words)):
        out[i, 0] = bitsets.popcount(words[i])
        out[i, 1] = bitsets.lowest_bit(words[i])
        out[i, 2] = bitsets.bit_length(words[i])


def test_counts_of_bits():
    drawn = np.random.default_rng(0).integers(1, 2**64, 300, dtype=np.uint64).tolist()
    words = [*WORDS, *drawn]
    out = np.empty((len(words), 3), np.int64)
    counted(np.array(words, np.uint64), out)
    assert out.tolist() == [[w.bit_count(), (w & -w).bit_length() - 1, w.bit_length()] for w in words]


def test_zero_has_no_bits():
    out = np.empty((1, 3), np.int64)
    counted(np.zeros(1, np.uint64), out)
    assert out[0, 0] == 0 and out[0, 2] == 0


def test_the_bit_of_an_index_is_in_its_own_word():
    assert [int(bit(i)) for i in (0, 1, 63, 64, 130)] == [1, 2, 1 << 63, 1, 4]


def test_logarithms_are_exact_at_powers_of_two_and_near_between():
    assert [log2_fixed(1 << k) for k in range(47)] == [k * FIXED for k in range(47)]
    found = np.array([log2_fixed(x) for x in range(1, 5000)])
    assert (np.diff(found) >= 0).all()
    error = np.array([math.log2(x) for x in range(1, 5000)]) - found / FIXED
    assert error.min() > -1e-12 and error.max() < 0.0861, "a chord lies at most 0.0861 below log2"


def test_words_are_those_of_xorshift():
    state = np.array([88172645463325252], np.uint64)
    x = 88172645463325252
    for _ in range(100):
        x ^= x << 13 & 2**64 - 1
        x ^= x >> 7
        x ^= x << 17 & 2**64 - 1
        assert int(random_word(state)) == x
    assert int(state[0]) == x


@pytest.mark.parametrize("seed", [0, 1, -1, 2**62, 0x1E3779B97F4A7C15])
def test_seeds_never_give_a_dead_state(seed: int):
    state = random_seed(seed)
    assert state[0] != 0
    np.testing.assert_array_equal(state, random_seed(seed))


def test_near_seeds_give_unlike_streams():
    first = {int(random_word(random_seed(seed))) for seed in range(200)}
    assert len(first) == 200


@pytest.mark.parametrize("n", [1, 2, 10, 513])
def test_numbers_below_are_even(n: int):
    state = random_seed(n)
    counts = np.bincount([random_below(state, n) for _ in range(30 * n)], minlength=n)
    assert len(counts) == n
    if n > 1:
        assert chi2.sf(((counts - 30) ** 2 / 30).sum(), n - 1) > 1e-6
