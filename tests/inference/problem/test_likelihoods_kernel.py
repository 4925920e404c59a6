"""Likelihoods of states: entering observations and going to linear space, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.inference.problem.potentials_kernel import enter_states, scale_likelihoods

OFFSETS = np.array([0, 2, 5, 6, 9])


def test_observed_states_rule_the_others_out():
    likelihood = np.array([0.0, 0.0, -1.0, -2.0, -3.0, 0.0, 0.0, -np.inf, 0.0])
    active = np.array([False, True, False, False])
    assert enter_states(np.array([1, -1, -1, 2], np.int32), OFFSETS, likelihood, active)
    inf = np.inf
    np.testing.assert_array_equal(likelihood, [-inf, 0.0, -1.0, -2.0, -3.0, 0.0, -inf, -inf, 0.0])
    assert active.tolist() == [True, True, False, True]


@pytest.mark.parametrize("states", [[-1, -1, -1, 1], [-2, -1, -1, -1]])
def test_a_variable_without_any_state_left_is_told(states: list[int]):
    """State 1 of the last is ruled out already; -2 is a state that is none."""
    likelihood = np.zeros(9)
    likelihood[7] = -np.inf
    active = np.zeros(4, np.bool_)
    assert not enter_states(np.array(states, np.int32), OFFSETS, likelihood, active)


def test_linear_likelihoods():
    likelihood = np.array([3.0, 2.0, -5.0, -np.inf, -6.0, 9.0, 1.0, 1.0, 1.0])
    active = np.array([True, True, False, True])
    linear, low = np.full(9, 7.0), np.full(4, 7.0)
    taken, safe = scale_likelihoods(likelihood, OFFSETS, active, linear, low)
    e = np.exp(-1.0)
    np.testing.assert_allclose(linear, [1, e, 1, 0, e, 1, 1, 1, 1], rtol=1e-12)
    np.testing.assert_allclose(low, [-1 / np.log(2), -1 / np.log(2), 7.0, 0.0], atol=1e-12)
    assert taken == pytest.approx(3.0 - 5.0 + 1.0) and safe


def test_what_linear_space_loses_is_told():
    likelihood = np.zeros(9)
    likelihood[1] = -651.0
    active = np.array([True, False, False, False])
    assert not scale_likelihoods(likelihood, OFFSETS, active, np.empty(9), np.empty(4))[1]
    likelihood[:2] = -np.inf
    assert scale_likelihoods(likelihood, OFFSETS, active, np.empty(9), np.empty(4))[0] == -np.inf
