from __future__ import annotations

import numpy as np
import pytest

from markovfield.learning.tables.projection_kernel import multiply_by, project_pairs, sum_onto


@pytest.mark.parametrize("seed", range(6))
def test_sums_and_products_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    cards = rng.integers(1, 4, n).astype(np.int32)
    cards.flags.writeable = False
    kept = np.flatnonzero(rng.random(n) < 0.5)
    sets = [list(range(n)), kept.tolist()]
    offsets = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    members = np.array([v for s in sets for v in s], np.int32)
    where, index = project_pairs(cards, offsets, members, np.array([[0, 1], [0, 0]], np.int64))
    table = rng.random(cards.tolist())
    out = np.empty(int(np.prod(cards[kept])))
    sum_onto(table.ravel(), where[0], index, out)
    lost = tuple(v for v in range(n) if v not in kept)
    expected = table.sum(axis=lost, keepdims=True)
    np.testing.assert_allclose(out, expected.ravel(), rtol=1e-12)
    scaled = table.ravel().copy()
    multiply_by(scaled, where[0], index, expected.ravel().copy())
    np.testing.assert_allclose(scaled.reshape(table.shape), table * expected, rtol=1e-12)
    same = np.empty(table.size)
    sum_onto(table.ravel(), where[1], index, same)
    np.testing.assert_array_equal(same, table.ravel())
