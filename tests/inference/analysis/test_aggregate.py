"""Sums over semirings where rounding matters; the conformance tests have the rest."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf


@pytest.mark.parametrize("method", ["variable_elimination", "junction_tree"])
def test_the_entropy_of_large_scores_does_not_cancel(method: str) -> None:
    """Of scores in the thousands all weight is on one assignment of x, and x5 is free: log 3."""
    names = [f"x{i}" for i in range(6)]
    net = mf.MarkovNetwork(dict.fromkeys(names, 3))
    pairs = [("x0", "x1"), ("x3", "x4"), ("x0", "x3"), ("x1", "x4"), ("x2", "x4")]
    net.add_potts(pairs, 655.11, 0.0)
    for name, field in zip(names[:5], (574.05, 679.61, 303.2, 343.0, 330.0), strict=True):
        net.add_factor([name], log_table=[field, 0.0, 0.0])
    found = mf.analysis.aggregate(net, "entropy", evidence={"x2": [2.0, 0.0, 1.0]}, method=method)
    assert abs(found - np.log(3.0)) < 1e-12


RINGS = ["sum_product", "max_sum", "max_product", "min_sum", "counting", "entropy", mf.semirings.KBest(2)]


@pytest.mark.parametrize("ring", RINGS, ids=str)
def test_every_semiring_tells_how_it_goes_and_can_be_stopped(ring: object) -> None:
    net = mf.MarkovNetwork(dict.fromkeys(range(60), 2))
    net.add_factors([(i, i + 1) for i in range(59)], [[1.0, 2.0], [0.5, 1.0]])
    told: list[mf.answers.Progress] = []
    expected = mf.analysis.aggregate(net, ring)
    assert mf.analysis.aggregate(net, ring, progress=True, callback=told.append, n_jobs=1, time_limit=600) == expected
    assert told
    with pytest.raises(mf.StoppedError, match="stopped by the callback"):
        mf.analysis.aggregate(net, ring, callback=lambda _: True)


def test_counts_beyond_floats_can_be_stopped() -> None:
    net = mf.MarkovNetwork(dict.fromkeys(range(70), 3))
    net.add_factors([(i, i + 1) for i in range(69)], 1.0 - np.eye(3))
    seen: list[mf.answers.Progress] = []
    assert mf.analysis.aggregate(net, "counting", callback=seen.append) == 3 * 2**69
    for after in (1, len(seen) - 1):
        steps: list[mf.answers.Progress] = []
        with pytest.raises(mf.StoppedError, match="stopped by the callback"):
            mf.analysis.aggregate(
                net, "counting", callback=lambda p, s=steps, n=after: bool(s.append(p)) or len(s) >= n
            )
