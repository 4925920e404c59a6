"""Counts of families against a loop over rows."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.learning.core.counting_kernel import BLOCK, SMALL, count_families


def counted(codes, weights, cards, families, first, last) -> np.ndarray:
    """One row after the other."""
    tables = []
    for family in families:
        table = np.zeros([cards[v] for v in family])
        for row in range(first, last):
            states = tuple(codes[v, row] for v in family)
            if min(states, default=0) >= 0:
                table[states] += weights[row] if len(weights) else 1.0
        tables.append(table.ravel())
    return np.concatenate(tables)


def call(codes, weights, cards, families, first, last, out) -> None:
    sizes = [int(np.prod([cards[v] for v in family])) for family in families]
    count_families(
        codes,
        weights,
        np.array(cards, np.int32),
        np.concatenate([[0], np.cumsum([len(f) for f in families])]).astype(np.int64),
        np.array([v for f in families for v in f], np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        first,
        last,
        out,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.002, 0.3])
@pytest.mark.parametrize("n_rows", [1, 7, BLOCK, BLOCK + 3])
def test_families(n_rows: int, missing: float, weighted: bool):
    rng = np.random.default_rng(n_rows)
    cards = [2, 3, 4, 1]
    codes = np.array([rng.integers(0, card, n_rows) for card in cards], np.int16)
    codes[rng.random(codes.shape) < missing] = -1
    weights = rng.random(n_rows) if weighted else np.zeros(0)
    families = [[0], [2, 1], [0, 1, 2, 3], [3]]
    out = np.zeros(2 + 12 + 24 + 1)
    call(codes, weights, cards, families, 0, n_rows, out)
    np.testing.assert_allclose(out, counted(codes, weights, cards, families, 0, n_rows), rtol=1e-12)


def test_a_table_too_large_for_copies():
    rng = np.random.default_rng(0)
    cards = [70, 70]
    assert cards[0] * cards[1] > SMALL
    codes = rng.integers(0, 70, (2, 3000)).astype(np.int16)
    out = np.zeros(4900)
    call(codes, np.zeros(0), cards, [[1, 0]], 0, 3000, out)
    np.testing.assert_array_equal(out, counted(codes, np.zeros(0), cards, [[1, 0]], 0, 3000))


def test_counts_are_added_and_only_of_the_rows_asked_for():
    codes = np.array([[0, 1, 1, 0, 1]], np.int16)
    out = np.array([10.0, 20.0])
    call(codes, np.zeros(0), [2], [[0]], 1, 4, out)
    np.testing.assert_array_equal(out, [11.0, 22.0])
