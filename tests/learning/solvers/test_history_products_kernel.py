"""Products and combinations of a history against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.learning.solvers.history_products_kernel import CHUNK, add_pair, combine


@pytest.mark.parametrize(("first", "last"), [(0, 5), (3, 40), (0, CHUNK), (7, 2 * CHUNK + 9)])
@pytest.mark.parametrize("pairs", [1, 3])
def test_a_pair_is_written_and_multiplied_with_all(first: int, last: int, pairs: int):
    rng = np.random.default_rng(last)
    n = last + 11
    vectors = rng.normal(size=(2 * pairs, n))
    new, old, new_gradient, old_gradient, slope = rng.normal(size=(5, n))
    at = pairs - 1
    expected = vectors.copy()
    inside = slice(first, last)
    expected[at, inside] = (new - old)[inside]
    expected[at + pairs, inside] = (new_gradient - old_gradient)[inside]
    products = np.full((3, 2 * pairs), np.nan)
    add_pair(vectors, at, new, old, new_gradient, old_gradient, slope, first, last, products)
    np.testing.assert_array_equal(vectors, expected, "outside its entries nothing is written")
    others = [expected[at, inside], expected[at + pairs, inside], slope[inside]]
    np.testing.assert_allclose(products, [expected[:, inside] @ other for other in others], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("first", "last"), [(0, 5), (3, 40), (5, CHUNK + 8)])
def test_combinations(first: int, last: int):
    rng = np.random.default_rng(last)
    vectors = rng.normal(size=(6, last + 4))
    mix, slope = rng.normal(size=6), rng.normal(size=last + 4)
    out = np.full(last + 4, 7.0)
    combine(vectors, mix, 0.25, slope, first, last, out)
    expected = np.full(last + 4, 7.0)
    expected[first:last] = -(mix @ vectors + 0.25 * slope)[first:last]
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-12)
