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
