"""log against NumPy's, relative to itself or to one."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from markovfield.kernels.logarithm import log_scalar


@numba.njit
def logs(values, out):
    for i in range(len(values)):
        out[i] = log_scalar(values[i])


@pytest.mark.parametrize(
    "x",
    [
        np.exp(np.random.default_rng(0).uniform(-700, 700, 20_000)),
        1.0 + np.random.default_rng(1).normal(size=5000) * 1e-3,
        np.random.default_rng(2).uniform(0.5, 2.0, 20_000),
        2.0 ** np.arange(-1022.0, 1023.0),
        np.array([np.finfo(float).tiny, np.finfo(float).max, np.sqrt(0.5), np.sqrt(2.0), np.nextafter(1.0, 0)]),
    ],
    ids=["wide", "near one", "one binade", "powers of two", "edges"],
)
def test_within_its_error(x: np.ndarray):
    out = np.empty_like(x)
    logs(x, out)
    true = np.log(x.astype(np.longdouble))
    assert (np.abs(out - true) <= 1e-15 * np.maximum(1.0, np.abs(true))).all()


def test_of_one_is_zero():
    assert log_scalar(1.0) == 0.0
