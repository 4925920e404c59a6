"""Unit after unit takes its likelier state: against the sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.models.hopfield_kernel import update_units


@pytest.mark.parametrize("seed", range(5))
def test_units_follow_their_fields(seed: int):
    rng = np.random.default_rng(seed)
    n = 12
    weights = rng.integers(-3, 4, (n, n)).astype(float)
    weights = weights + weights.T
    np.fill_diagonal(weights, 0.0)
    biases = rng.integers(-1, 2, n).astype(float)
    states = rng.choice([-1.0, 0.0, 1.0], n)
    order = rng.permutation(n).astype(np.int64)
    fields = weights @ states + biases
    expected, changes = states.copy(), 0
    for unit in order[2:11]:
        pull = weights[unit] @ expected + biases[unit]
        new = np.sign(pull) if pull else (expected[unit] or -1.0)
        changes += new != expected[unit]
        expected[unit] = new
    assert update_units(weights, fields, states, order, 2, 11) == changes
    np.testing.assert_array_equal(states, expected)
    np.testing.assert_allclose(fields, weights @ states + biases, atol=1e-12)


def test_a_field_of_zero_leaves_a_state_but_not_an_empty_one():
    states = np.array([1.0, -1.0, 0.0])
    assert update_units(np.zeros((3, 3)), np.zeros(3), states, np.arange(3), 0, 3) == 1
    assert states.tolist() == [1.0, -1.0, -1.0]
