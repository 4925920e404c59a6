"""Sums of logs against NumPy's."""

from __future__ import annotations

import numpy as np

from markovfield.kernels.log_space import log_add, log_sum


def test_sums_of_two():
    a, b = np.random.default_rng(0).normal(scale=30.0, size=(2, 1000))
    found = np.array([log_add(x, y) for x, y in zip(a, b, strict=True)])
    np.testing.assert_allclose(found, np.logaddexp(a, b), rtol=1e-14, atol=1e-14)
    assert [log_add(-np.inf, 2.0), log_add(2.0, -np.inf), log_add(-np.inf, -np.inf)] == [2.0, 2.0, -np.inf]


def test_sums_of_a_stretch():
    values = np.random.default_rng(1).normal(scale=300.0, size=200)
    values[::7] = -np.inf
    for begin, end in ((0, 200), (3, 4), (10, 63)):
        assert abs(log_sum(values, begin, end) - np.logaddexp.reduce(values[begin:end])) < 1e-12
    assert log_sum(values, 5, 5) == log_sum(values, 7, 8) == -np.inf
