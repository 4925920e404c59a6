"""Counts of families: against a plain count, with gaps, weights, threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.learning.core.counting import family_counts
from markovfield.learning.core.data import DataTable


def random_table(rng, cards, rows, *, missing=0.0, weighted=False) -> DataTable:
    codes = np.array([rng.integers(c, size=rows) for c in cards]).reshape(len(cards), rows)
    codes[rng.random(codes.shape) < missing] = -1
    weights = rng.random(rows) if weighted else None
    return DataTable(tuple(range(len(cards))), tuple(tuple(range(c)) for c in cards), codes, weights)


def counted_slowly(table: DataTable, family) -> np.ndarray:
    counts = np.zeros([len(table.states[v]) for v in family])
    for row in range(table.n_rows):
        states = tuple(int(table.codes[v, row]) for v in family)
        if min(states, default=0) >= 0:
            counts[states] += 1 if table.weights is None else table.weights[row]
    return counts


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.integers(0, 60),
    st.sampled_from([0.0, 0.2]),
    st.booleans(),
)
def test_counts_are_counts(seed, cards, rows, missing, weighted):
    rng = np.random.default_rng(seed)
    table = random_table(rng, cards, rows, missing=missing, weighted=weighted)
    families = [rng.permutation(len(cards))[: rng.integers(len(cards) + 1)].tolist() for _ in range(4)]
    for family, counts in zip(families, family_counts(table, families), strict=True):
        np.testing.assert_allclose(counts, counted_slowly(table, family), rtol=0, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 1e-4])
def test_long_tables_and_threads(weighted, missing):
    # More rows than a block and than a step, tables both smaller and larger than what is counted in lanes.
    rng = np.random.default_rng(3)
    table = random_table(rng, [2, 3, 40, 50, 4], 2**20 + 777, missing=missing, weighted=weighted)
    families = [[0], [1, 0], [2, 3, 4], [4, 1, 0], [2, 3], []]
    one = family_counts(table, families, n_jobs=1)
    for counts, family in zip(one, families, strict=True):
        rows = (table.codes[family] >= 0).all(axis=0)
        weights = None if table.weights is None else table.weights[rows]
        shape = [len(table.states[v]) for v in family]
        cells = np.ravel_multi_index(tuple(table.codes[family][:, rows].astype(int)), shape) if family else None
        plain = np.bincount(np.zeros(table.n_rows, int) if cells is None else cells, weights, counts.size)
        np.testing.assert_allclose(counts.ravel(), plain, rtol=1e-12)
    for jobs in (2, 3):
        for a, b in zip(one, family_counts(table, families, n_jobs=jobs), strict=True):
            np.testing.assert_array_equal(a, b)


def test_no_rows_no_families():
    table = random_table(np.random.default_rng(0), [2, 3], 0)
    assert [c.tolist() for c in family_counts(table, [[0, 1]])] == [[[0, 0, 0], [0, 0, 0]]]
    assert family_counts(table, []) == []


@pytest.mark.parametrize("family", [[0, 0], [2], [-1]])
def test_families_are_checked(family):
    table = random_table(np.random.default_rng(0), [2, 3], 5)
    with pytest.raises(mf.ModelError, match="a family is distinct positions from 0 to 1"):
        family_counts(table, [family])


def test_tables_too_large_are_refused():
    table = random_table(np.random.default_rng(0), [100] * 8, 5)
    with pytest.raises(mf.MemoryLimitError, match=r"the joint counts of .* need .*PiB"):
        family_counts(table, [range(8)])
