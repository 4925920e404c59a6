"""Products of matrices against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.structures.chart.products_kernel import add_dots, add_product, add_turned_product


@pytest.mark.parametrize(("rows", "depth", "width"), [(1, 1, 1), (3, 5, 7), (8, 4, 16)])
def test_products(rows, depth, width):
    rng = np.random.default_rng(5)
    left, right = rng.normal(size=(rows, depth)), rng.normal(size=(depth, width))
    for multiply, one, two, sizes in (
        (add_product, left, right, (rows, depth, width)),
        (add_turned_product, left.T.copy(), right, (rows, depth, width)),
        (add_dots, left, right.T.copy(), (rows, width, depth)),
    ):
        out = np.ones((rows, width))
        multiply(out, one, two, *sizes)
        np.testing.assert_allclose(out, 1.0 + left @ right)
