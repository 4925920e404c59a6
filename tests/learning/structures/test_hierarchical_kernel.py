from __future__ import annotations

import numpy as np

from markovfield.learning.structures.hierarchical_kernel import fit_model, fit_neighbours, holds
from tests.learning.tables.naive import fitted, margin


def kept(cards, counts):
    sizes = [1]
    for c in cards:
        sizes = [*sizes, *(s * c for s in sizes)]
    at = np.cumsum([0, *sizes]).astype(np.int64)
    n = len(cards)
    index = np.empty((2**n, counts.size), np.int32)
    margins = np.zeros(int(at[-1]))
    return (np.array(cards, np.int64), counts.ravel(), np.zeros(2**n, np.bool_), index, at, margins, 1e-12, 2000)


def test_fits_and_neighbours_are_those_of_the_naive_table():
    cards = [2, 3, 2]
    counts = np.random.default_rng(0).integers(1, 20, cards).astype(float)
    arrays = kept(cards, counts)
    generators = np.array([0b011, 0b110, 0b101], np.int64)
    table = np.full(12, counts.sum() / 12)
    assert fit_model(generators, 3, *arrays, np.empty(12), table)
    scopes = [(0, 1), (1, 2), (0, 2)]
    expected = fitted(np.ones(cards), scopes, [margin(counts, s) for s in scopes], 1000)
    np.testing.assert_allclose(table.reshape(cards), expected, rtol=1e-6)
    out = np.empty(2)
    terms, deleted = np.array([0b110, 0b111], np.int64), np.array([True, False])
    fit_neighbours(generators, 3, terms, deleted, *arrays, table, out)
    less = fitted(np.ones(cards), [(0, 1), (0, 2)], [margin(counts, s) for s in ((0, 1), (0, 2))], 1000)
    total = counts.sum()
    np.testing.assert_allclose(out[0], (counts * np.log(less / total)).sum(), rtol=1e-9)
    np.testing.assert_allclose(out[1], (counts * np.log(counts / total)).sum(), rtol=1e-9)


def test_holds():
    generators = np.array([0b011, 0b100], np.int64)
    assert holds(generators, 2, 0b010) and not holds(generators, 2, 0b101) and not holds(generators, 1, 0b100)
