"""Largest and smallest potentials of factors, and constants taken out of cells, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.inference.constants.extremes_kernel import largest_finite, table_extremes, take_out
from tests.kernels.arrays import Flat, flat


def drawn(seed: int) -> Flat:
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, 5).tolist()
    factors = []
    for _ in range(7):
        scope = rng.permutation(5)[: rng.integers(0, 4)].tolist()
        table = rng.normal(size=[cards[v] for v in scope])
        factors.append((scope, np.where(rng.random(table.shape) < 0.25, -np.inf, table)))
    return flat(cards, factors)


def where(model: Flat) -> tuple:
    return model.cardinalities, model.scope_offsets, model.scopes, model.table_offsets, model.table_strides


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_extremes(seed: int, every: int):
    model = drawn(seed)
    own = np.zeros(7, np.int64)
    own[3] = -1
    top, low = np.full(7, 99.0), np.full(7, 99.0)
    table_extremes(*where(model), own, every, model.log_tables, top, low)
    for place, f in enumerate(range(0, 7, every)):
        finite = model.factors[f][1][np.isfinite(model.factors[f][1])]
        if f == 3:
            expected = (99.0, 99.0)
        else:
            expected = (finite.max(), finite.min()) if finite.size else (-np.inf, np.inf)
        assert (top[place], low[place]) == expected


def test_structured_factors_read_so_many_cells():
    model = flat([2, 2], [((0, 1), np.array([[1.0, 5.0], [9.0, 20.0]]))])
    top, low = np.empty(1), np.empty(1)
    table_extremes(*where(model), np.array([3]), 1, model.log_tables, top, low)
    assert (top[0], low[0]) == (9.0, 1.0)


@pytest.mark.parametrize("pool", [[1.0, -7.0, 3.0], [-np.inf, 2.0], [-np.inf], [], [-0.5, -np.inf]])
def test_largest_finite(pool: list[float]):
    finite = [abs(x) for x in pool if np.isfinite(x)]
    assert largest_finite(np.array(pool)) == max(finite, default=0.0)


def test_constants_go_to_the_cells_that_factors_read():
    model = drawn(1)
    constants = np.arange(7.0)
    shift = np.full(len(model.log_tables), np.nan)
    assert take_out(*where(model), np.zeros(7, np.int64), constants, shift)
    np.testing.assert_array_equal(shift, np.repeat(constants, [t.size for _, t in model.factors]))


def test_cells_that_two_factors_share_must_agree():
    """One table on the pairs (0, 1) and (1, 0): the same cells, the other way round."""
    given = (
        np.array([2, 2], np.int32),
        np.array([0, 2, 4]),
        np.array([0, 1, 1, 0], np.int32),
        np.array([0, 0]),
        np.array([2, 1, 1, 2]),
    )
    own = np.zeros(2, np.int64)
    assert take_out(*given, own, np.array([3.0, 3.0]), np.full(4, np.nan))
    assert not take_out(*given, own, np.array([3.0, 4.0]), np.full(4, np.nan))
    shift = np.full(4, np.nan)
    assert take_out(*given, np.array([0, -1]), np.array([3.0, 4.0]), shift) and (shift == 3.0).all()
