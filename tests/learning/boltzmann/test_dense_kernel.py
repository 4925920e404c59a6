"""Sweeps and updates of machines whose units are all joined, against NumPy written out."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.inference.core.running import Running
from markovfield.kernels.random_lanes import LANES, draw_words, lanes
from markovfield.learning.boltzmann.dense import train_boltzmann
from markovfield.learning.boltzmann.dense_kernel import sweep_units
from markovfield.learning.boltzmann.updates import Training


def symmetric(rng, n):
    upper = np.triu(rng.normal(size=(n, n)), 1)
    return upper + upper.T


def swept(parameters, states, first, last, state):
    """One unit after the other, from the same random bits."""
    states = states.copy()
    chains = states.shape[1]
    n = (last - first) * chains
    words = np.zeros(-(-n // (2 * LANES)) * LANES, np.uint64)
    draw_words(state, words, (n + 1) // 2)
    whole = (words.view(np.uint32)[:n] >> np.uint32(1)).reshape(last - first, chains)
    for s in range(first, last):
        p = 1 / (1 + np.exp(-parameters[s] @ states))
        states[s] = whole[s - first] < p * 2.0**31
    return states


@pytest.mark.parametrize(("first", "last"), [(0, 6), (4, 6), (2, 2)])
def test_a_sweep(first, last):
    rng = np.random.default_rng(0)
    parameters = symmetric(rng, 7)
    states = (rng.random((7, 5)) < 0.5).astype(float)
    states[6] = 1.0
    expected = swept(parameters, states, first, last, lanes(np.random.default_rng(1)))
    words, field = np.zeros(LANES, np.uint64), np.zeros(5)
    state = lanes(np.random.default_rng(1))
    sweep_units(parameters, states, field, first, last, words, state, np.uint32(1), 2.0**31)
    assert np.array_equal(states, expected)


@pytest.mark.parametrize("sweeps", [1, 2])
def test_updates_are_those_of_the_reference(sweeps):
    rng = np.random.default_rng(3)
    n, n_visible, n_rows, batch, m = 6, 4, 7, 3, 5
    weights, biases = symmetric(rng, n), rng.normal(size=n)
    rows, row_weights = (rng.random((n_rows, n_visible)) < 0.5).astype(float), rng.random(n_rows) + 0.5
    training = Training(
        k=sweeps, epochs=3, batch_size=batch, n_chains=m, learning_rate=0.2, schedule="constant", momentum=0.5, l2=2.0,
        averaging=0.0, dtype="float64",
    )  # fmt: skip
    got = train_boltzmann(
        weights, biases, rows, training, rng=np.random.default_rng(8), running=Running(), row_weights=row_weights
    )
    rng = np.random.default_rng(8)
    parameters = np.zeros((n + 1, n + 1))
    parameters[:n, :n], parameters[:n, n], parameters[n, :n] = weights, biases, biases
    seen = (rng.random((n + 1, n_rows)) < 0.5).astype(float)
    seen[:n_visible], seen[n] = rows.T, 1.0
    free = seen[:, rng.integers(0, n_rows, m)]
    state = lanes(rng)
    velocity = np.zeros_like(parameters)
    scaled = row_weights * n_rows / row_weights.sum()
    for _ in range(3):
        order = rng.permutation(n_rows)
        for first in range(0, n_rows, batch):
            chosen = order[first : first + batch]
            clamped = seen[:, chosen]
            for _ in range(sweeps):
                clamped = swept(parameters, clamped, n_visible, n, state)
                free = swept(parameters, free, 0, n, state)
            seen[:, chosen] = clamped
            gradient = (clamped * scaled[chosen]) @ clamped.T / len(chosen) - free @ free.T / m
            gradient[:n, :n] -= 2.0 / row_weights.sum() * parameters[:n, :n]
            np.fill_diagonal(gradient, 0.0)
            velocity = 0.5 * velocity + 0.2 * gradient
            parameters += velocity
    assert np.abs(got.weights - parameters[:n, :n]).max() < 1e-12
    assert np.abs(got.visible_biases - parameters[:n, n]).max() < 1e-12
    assert np.array_equal(got.chains, free[:n].T)
    assert np.array_equal(got.weights, got.weights.T)
