"""Kernels of single variables given all others, on arrays made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.kernels.random import streams
from markovfield.learning.undirected.sites_kernel import (
    FLOW,
    PSEUDO,
    RATIO,
    SiteLayout,
    count_cells,
    gibbs_sweeps,
    local_loss,
)

# Two variables of two and three states: a table of both in cells 0 to 5, one of the second alone in cells 6 to 8.
LAYOUT = SiteLayout(
    cardinalities=np.array([2, 3], np.int32),
    scope_offsets=np.array([0, 2, 3]),
    scopes=np.array([0, 1, 1], np.int32),
    kind=np.zeros(2, np.int8),
    caps=np.zeros(2, np.int64),
    table_offsets=np.array([0, 6]),
    table_strides=np.array([3, 1, 1]),
    incident_offsets=np.array([0, 1, 3]),
    incident=np.array([0, 0, 1], np.int32),
    own_strides=np.array([3, 1, 1]),
    other_offsets=np.array([0, 1, 2, 2]),
    others=np.array([1, 0], np.int32),
    other_strides=np.array([1, 3]),
)
POOL = np.array([0.1, -0.4, 0.3, 0.8, 0.2, -0.5, 0.6, -0.1, 0.0])
STATES = np.array([[0, 1, 1], [2, 0, 2]], np.int16)
JOINT = POOL[:6].reshape(2, 3) + POOL[6:]


def loss_of(kind: int, pool: np.ndarray, gradient: np.ndarray | None = None) -> float:
    """Of all three rows, each a case of its own."""
    weights = [np.eye(2)[STATES[0]].ravel(), np.eye(3)[STATES[1]].ravel()]
    out = np.zeros(9) if gradient is None else gradient
    offsets, rows = np.array([0, 3, 6]), np.array([0, 1, 2, 0, 1, 2])
    return local_loss(
        LAYOUT, True, pool, STATES, 0, 2, offsets, rows, np.array([0, 6, 15]), np.concatenate(weights), kind, out
    )


def test_pseudo_likelihood_by_hand():
    expected = 0.0
    for a, b in STATES.T:
        expected -= JOINT[a, b] - np.logaddexp.reduce(JOINT[:, b])
        expected -= JOINT[a, b] - np.logaddexp.reduce(JOINT[a])
    assert loss_of(PSEUDO, POOL) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", [PSEUDO, RATIO, FLOW])
def test_gradients_are_differences(kind):
    gradient = np.zeros(9)
    loss_of(kind, POOL, gradient)
    for i in range(9):
        step = np.zeros(9)
        step[i] = 1e-6
        assert gradient[i] == pytest.approx((loss_of(kind, POOL + step) - loss_of(kind, POOL - step)) / 2e-6, abs=1e-8)


def test_counts_of_cells():
    counts = np.zeros(9)
    count_cells(LAYOUT, STATES, np.array([1.0, 2.0, 4.0]), 0, 3, counts)
    assert counts.tolist() == [0, 0, 1, 2, 0, 4, 2, 0, 5]
    ones = np.zeros(9)
    count_cells(LAYOUT, STATES, np.zeros(0), 1, 3, ones)
    assert ones.tolist() == [0, 0, 0, 1, 0, 1, 1, 0, 1]


def test_sweeps_draw_from_the_joint_distribution():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2, (2, 40_000)).astype(np.int16)
    gibbs_sweeps(LAYOUT, True, POOL, states, np.array([0, 1]), 30, streams(rng, 40_000))
    seen = np.bincount(3 * states[0] + states[1], minlength=6) / 40_000
    exact = np.exp(JOINT).ravel() / np.exp(JOINT).sum()
    assert (np.abs(seen - exact) < 5 * np.sqrt(exact / 40_000)).all()


def test_sweeps_leave_others_alone_and_never_draw_what_cannot_be():
    pool = POOL.copy()
    pool[1] = pool[4] = -np.inf  # the second variable is never in state 1
    rng = np.random.default_rng(1)
    states = np.zeros((2, 500), np.int16)
    gibbs_sweeps(LAYOUT, True, pool, states, np.array([1]), 5, streams(rng, 500))
    assert (states[0] == 0).all() and set(states[1].tolist()) == {0, 2}
