"""The logistic function and exp in both precisions, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.kernels.compiler import kernel
from markovfield.kernels.sigmoid import exp_of, sigmoid


@kernel
def _fill(x, exps, sigmoids):
    for i in range(len(x)):
        exps[i] = exp_of(x[i])
        sigmoids[i] = sigmoid(x[i])


@pytest.mark.parametrize(("dtype", "reach", "floor"), [(np.float64, 690.0, 1e-14), (np.float32, 86.0, 2e-7)])
def test_both_precisions(dtype, reach, floor):
    """What the polynomial leaves, and the rounding of x itself, which exp makes a relative error."""
    x = np.concatenate([np.linspace(-reach, reach, 4001), np.linspace(-2, 2, 4001)]).astype(dtype)
    exps, sigmoids = np.empty_like(x), np.empty_like(x)
    _fill(x, exps, sigmoids)
    wide = x.astype(np.float64)
    allowed = floor + (np.abs(wide) + 4) * np.finfo(dtype).eps
    assert (np.abs(exps / np.exp(wide) - 1) < allowed).all()
    assert (np.abs(sigmoids * (1 + np.exp(-wide)) - 1) < 2 * allowed).all()
    assert exps.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_far_out_nothing_overflows(dtype):
    x = np.array([-np.inf, -1e5, 1e5, np.inf, 0.0], dtype)
    exps, sigmoids = np.empty_like(x), np.empty_like(x)
    _fill(x, exps, sigmoids)
    assert np.isfinite(exps).all()
    assert sigmoids[:2].max() < 1e-37
    assert sigmoids[2:].tolist() == [1.0, 1.0, 0.5]


def test_called_from_python():
    assert sigmoid(0.0) == 0.5
    assert isinstance(exp_of(np.float32(1.0)), np.float32 | float)
    assert abs(exp_of(1.0) - np.e) < 1e-13
