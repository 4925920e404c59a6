"""Potentials in linear space and their spread, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.inference.problem.potentials_kernel import factor_ranges, linear_pool, same_table
from tests.kernels.arrays import Flat, fixed, flat


@pytest.mark.parametrize(
    ("low", "high", "shift", "safe"),
    [(-1.0, 2.0, 0.0, True), (-29.0, 29.0, 0.0, True), (5.0, 700.0, 700.0, False), (-80.0, -31.0, -31.0, True)],
)
def test_a_pool_is_shifted_only_where_it_must_be(low: float, high: float, shift: float, safe: bool):
    logs = np.array([low, high, -np.inf, (low + high) / 2])
    out = np.empty(4)
    assert linear_pool(logs, out) == (shift, safe)
    np.testing.assert_allclose(out, np.exp(logs - shift), rtol=1e-12)


def test_a_pool_of_nothing_but_zeros():
    out = np.ones(2)
    assert linear_pool(np.full(2, -np.inf), out)[0] == 0.0
    assert not out.any()


def ranges(model: Flat) -> tuple[np.ndarray, np.ndarray]:
    return factor_ranges(
        model.cardinalities,
        model.scope_offsets,
        model.scopes,
        model.table_offsets,
        model.table_strides,
        fixed(np.exp(model.log_tables), np.float64),
    )


@pytest.mark.parametrize("seed", range(6))
def test_ranges(seed: int):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, 6).tolist()
    factors = []
    for _ in range(7):
        scope = rng.permutation(6)[: rng.integers(0, 4)].tolist()
        table = 3 * rng.normal(size=[cards[v] for v in scope])
        factors.append((scope, np.where(rng.random(table.shape) < 0.2, -np.inf, table)))
    low, high = ranges(flat(cards, factors))
    for f, (_, table) in enumerate(factors):
        finite = table[np.isfinite(table)]
        expected = (finite.min() / np.log(2), finite.max() / np.log(2)) if finite.size else (0.0, 0.0)
        np.testing.assert_allclose((low[f], high[f]), expected, atol=1e-12)


def test_axes_of_stride_zero_read_the_same_cells():
    """A table of two cells along the first axis alone, whatever the others are."""
    low, high = factor_ranges(
        fixed([2, 5], np.int32),
        fixed([0, 2], np.int64),
        fixed([0, 1], np.int32),
        fixed([1], np.int64),
        fixed([1, 0], np.int64),
        fixed([1e9, 0.25, 8.0, 1e9], np.float64),
    )
    assert (low[0], high[0]) == (-2.0, 3.0)


def test_tied_tables_are_recognised():
    cards = np.array([2, 3, 2, 3, 3], np.int32)
    scope_offsets = np.array([0, 2, 4, 6, 8])
    scopes = np.array([0, 1, 2, 3, 0, 1, 3, 4], np.int32)
    strides = np.array([3, 1, 3, 1, 3, 1, 3, 1])
    offsets = np.array([0, 0, 6, 6])
    # The second reads the cells of the first; the third others; the fourth has another shape.
    same = [bool(same_table(f, scope_offsets, scopes, cards, offsets, strides)) for f in (1, 2, 3)]
    assert same == [True, False, False]
    strides[2:4] = [1, 3]
    assert not same_table(1, scope_offsets, scopes, cards, offsets, strides), "transposed"
