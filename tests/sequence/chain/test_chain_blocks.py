"""Rows of labels: the compiled operations against what they mean."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from markovfield.sequence.chain import blocks_kernel as chain_blocks
from markovfield.sequence.chain.blocks_kernel import (
    aligned,
    dots_row,
    scale_row,
    shift_row,
    times_dots_row,
    top_of_row,
)


@numba.njit
def run(out, factor, vector, matrix, width, n, low):
    """Each operation once, on rows that do not start at zero."""
    products = times_dots_row(out, width, factor, 8, vector, 1, matrix, 16, width, n)
    sums = dots_row(out, 2 * width, factor, 8, vector, 1, matrix, 16, width, n)
    tiny = scale_row(out, width, width, 0.5, factor, 8, low)
    top = top_of_row(out, 2 * width, width)
    lost = shift_row(out, 2 * width, width, top, -low)
    return products, sums, tiny, top, lost


@pytest.mark.parametrize("width", [8, 16, 24, 32, 48, 56])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_rows_of_every_number_of_blocks(width: int, n: int):
    rng = np.random.default_rng(width + n)
    factor, vector, matrix = aligned(rng.random(width + 8)), rng.random(n + 1), aligned(rng.normal(size=16 + n * width))
    out = aligned(3 * width)
    found = run(out, factor, vector, matrix, width, n, 0.2)
    own = factor[8 : 8 + width]
    expected = vector[1:] @ matrix[16:].reshape(n, width)
    assert found[0] == pytest.approx(float(expected @ own), abs=1e-12)
    assert found[1] == pytest.approx(float(expected @ own), abs=1e-12)
    np.testing.assert_allclose(out[width : 2 * width], 0.5 * own * expected, atol=1e-12)
    assert found[2] == bool((0.5 * own * expected < 0.2).any())
    assert found[3] == pytest.approx(expected.max(), abs=1e-12)
    np.testing.assert_allclose(out[2 * width :], expected - expected.max(), atol=1e-12)
    assert found[4] == bool((expected - expected.max() < -0.2).any())
    assert not out[:width].any()


def test_what_is_impossible_is_not_tiny():
    low, impossible = aligned(np.full(8, 1e-3)), aligned(np.array([0.0, -np.inf] * 4))

    @numba.njit
    def ask(values, factor, scores):
        return scale_row(values, 0, 8, 1.0, factor, 0, 0.1), shift_row(scores, 0, 8, 0.0, -5.0)

    assert ask(low.copy(), aligned(8), impossible.copy()) == (False, False)
    impossible[3] = -6.0
    assert ask(low.copy(), aligned(np.eye(8)[2]), impossible.copy()) == (True, True)


def test_aligned_arrays_start_at_a_cache_line():
    for n in (1, 24, 1000):
        made = aligned(n)
        assert made.ctypes.data % chain_blocks.LINE == 0 and made.shape == (n,) and not made.any()
    table = np.arange(12.0).reshape(3, 4).T
    np.testing.assert_array_equal(aligned(table), table.ravel())
