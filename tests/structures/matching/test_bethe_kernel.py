"""Bethe's sums over matchings: below exact ones, derivatives of themselves, and bounds above."""

from __future__ import annotations

from math import lgamma

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.matching.family import Matchings

SHAPES = [(5, 5, None), (6, 6, "some"), (4, 7, "some"), (5, 8, None), (7, 3, "some"), (6, 4, "columns")]


def pool_of(rng, m, n, unmatched, scale):
    links = rng.normal(0, scale, (m, n))
    links[rng.random((m, n)) < 0.15] = -np.inf
    np.fill_diagonal(links, rng.normal(size=min(m, n)))
    rows, columns = rng.normal(size=m), rng.normal(size=n)
    if unmatched is None:
        rows[:], columns[:] = -np.inf, -np.inf if m == n else 0.0
    elif unmatched == "columns":
        columns[:] = -np.inf
    return np.concatenate([links.ravel(), rows, columns])


@pytest.mark.parametrize(("m", "n", "unmatched"), SHAPES)
@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
def test_bounds_hold(m, n, unmatched, scale):
    rng = np.random.default_rng(int(scale) + m)
    for _ in range(5):
        pool = pool_of(rng, m, n, unmatched, scale)
        exact = Matchings.of([m], [n]).sums(pool, running=Running())
        bethe = Matchings.of([m], [n], exact_limit=0).sums(pool, counts=True, running=Running())
        (low, high), true = bethe.bounds[0], exact.log_partition[0]
        room = 1e-7 * (1 + abs(true))
        assert bethe.guarantee == "lower"
        assert low == bethe.log_partition[0]
        assert low <= true + room and true <= high + room, (low, true, high)
        links, rows, columns, _ = Matchings.of([m], [n]).split(0, bethe.counts)
        np.testing.assert_allclose(links.sum(axis=1) + rows, 1.0, atol=1e-6)
        np.testing.assert_allclose(links.sum(axis=0) + columns, 1.0, atol=1e-6)
        assert not bethe.counts[np.isneginf(pool)].any()


def test_counts_are_derivatives_of_the_bound():
    rng = np.random.default_rng(3)
    family = Matchings.of([4], [5], exact_limit=0)
    pool = pool_of(rng, 4, 5, "some", 1.0)
    counts = family.sums(pool, counts=True, running=Running()).counts
    for cell in rng.choice(np.flatnonzero(np.isfinite(pool)), 10, replace=False):
        moved = []
        for step in (1e-5, -1e-5):
            other = pool.copy()
            other[cell] += step
            moved.append(family.sums(other, running=Running()).log_partition[0])
        assert counts[cell] == pytest.approx((moved[0] - moved[1]) / 2e-5, abs=1e-6)


def test_forty_by_forty_has_bounds_around_the_factorial():
    answer = mf.log_partition(mf.structures.Matching(np.zeros((40, 40))))
    low, high = answer.log_partition_bounds
    assert answer.guarantee == "lower"
    assert low <= lgamma(41) <= high
    assert high - low <= 20 * np.log(2.0) + 1e-9


def test_impossible_ones_are_said_so():
    links = np.full((30, 30), -np.inf)
    links[:, :29] = 0.0
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.log_partition(mf.structures.Matching(links))
