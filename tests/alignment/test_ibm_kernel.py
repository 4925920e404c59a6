"""Positions of IBM model 2, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.alignment.ibm import Lengths
from markovfield.alignment.ibm_kernel import diagonal_moments, diagonal_table
from markovfield.alignment.translation import TranslationTable


def lengths_of(*sizes: tuple[int, int]) -> Lengths:
    pairs = [(["a"] * n, ["b"] * m) for n, m in sizes]
    return Lengths.of(TranslationTable.over(pairs)[1])


def test_pairs_of_lengths() -> None:
    known = lengths_of((2, 3), (1, 1), (2, 3), (3, 2))
    assert known.lengths.tolist() == [[1, 1], [2, 3], [3, 2]]
    assert known.starts.tolist() == [0, 1, 7, 13] and known.which.tolist() == [1, 0, 1, 2]
    np.testing.assert_allclose(known.uniform(), [1.0] + [0.5] * 6 + [1 / 3] * 6)


@pytest.mark.parametrize("tension", [0.0, 3.0, 40.0])
def test_positions_fall_off_from_the_diagonal(tension: float) -> None:
    known = lengths_of((2, 3), (4, 4))
    table = np.empty(int(known.starts[-1]))
    diagonal_table(known.lengths, known.starts, tension, table)
    counts = np.random.default_rng(0).random(len(table))
    seen = expected = variance = 0.0
    for k, (n, m) in enumerate(known.lengths.tolist()):
        own = slice(known.starts[k], known.starts[k + 1])
        distance = np.abs((np.arange(n) + 0.5) / n - (np.arange(m)[:, None] + 0.5) / m)
        weights = np.exp(-tension * distance)
        p = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(table[own].reshape(m, n), p)
        c = counts[own].reshape(m, n)
        seen += (c * distance).sum()
        mean = (p * distance).sum(axis=1)
        expected += (c.sum(axis=1) * mean).sum()
        variance += (c.sum(axis=1) * ((p * distance**2).sum(axis=1) - mean**2)).sum()
    found = diagonal_moments(known.lengths, known.starts, table, counts)
    np.testing.assert_allclose(found, [seen, expected, variance], atol=1e-12)
