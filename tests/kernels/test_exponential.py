"""exp against NumPy's, in units of relative error."""

from __future__ import annotations

import numpy as np

from markovfield.kernels.exponential import exp_scalar, fill_exp


def test_within_its_relative_error():
    x = np.concatenate(
        [np.linspace(-700, 699, 20_011), np.random.default_rng(0).normal(size=5000), [0.0, -0.0, 1e-300]]
    )
    out = np.empty_like(x)
    fill_exp(out, x, 0.0)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-13)
    assert exp_scalar(0.0) == 1.0


def test_what_is_below_the_smallest_normal_number_is_zero():
    assert [exp_scalar(x) for x in (-708.5, -745.0, -1e300, -np.inf)] == [0.0] * 4
    assert exp_scalar(-707.9) > 0.0


def test_it_never_falls():
    x = np.linspace(-3.0, 3.0, 100_001)
    out = np.empty_like(x)
    fill_exp(out, x, 0.0)
    assert (np.diff(out) > 0).all()


def test_the_shift_is_taken_first():
    values = np.array([1000.0, 999.0, -np.inf])
    out = np.full(3, 7.0)
    fill_exp(out, values, 1000.0)
    np.testing.assert_allclose(out, [1.0, np.exp(-1.0), 0.0], rtol=1e-13)
    np.testing.assert_array_equal(values, [1000.0, 999.0, -np.inf])
