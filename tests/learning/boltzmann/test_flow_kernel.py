"""Minimum probability flow against its definition over free energies, and its gradient against differences."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.learning.boltzmann.flow import probability_flow
from markovfield.models.boltzmann import RestrictedBoltzmannMachine


def machine(parameters):
    w = parameters[:-1, :-1]
    return RestrictedBoltzmannMachine(*w.shape, w, parameters[:-1, -1], parameters[-1, :-1])


def by_definition(parameters, rows, weights):
    model = machine(parameters)
    total = 0.0
    for row, weight in zip(rows, weights, strict=True):
        for i in range(len(row)):
            flipped = row.copy()
            flipped[i] = 1 - flipped[i]
            total += weight * np.exp(0.5 * (model.free_energy(row) - model.free_energy(flipped)))
    return total


def problem(seed, n_visible=5, n_hidden=20, scale=1.0):
    rng = np.random.default_rng(seed)
    parameters = scale * rng.normal(size=(n_visible + 1, n_hidden + 1))
    parameters[-1, -1] = 0.0
    return parameters, (rng.random((6, n_visible)) < 0.5).astype(float), rng.random(6)


@pytest.mark.parametrize("n_hidden", [1, 3, 16, 40])
def test_value(n_hidden):
    parameters, rows, weights = problem(n_hidden, n_hidden=n_hidden)
    value, _ = probability_flow(parameters, rows, weights)
    assert value == pytest.approx(by_definition(parameters, rows, weights), rel=1e-12)


def test_strong_weights_do_not_overflow_on_the_way():
    parameters, rows, weights = problem(5, n_visible=3, n_hidden=200, scale=1.0)
    parameters[:-1, :-1] = np.repeat([6.0, -6.0], 100)  # half of the factors alone multiply to e^530
    value, gradient = probability_flow(parameters, rows, weights)
    assert value == pytest.approx(by_definition(parameters, rows, weights), rel=1e-9)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("seed", range(3))
def test_gradient(seed):
    parameters, rows, weights = problem(seed, n_hidden=4)
    value, gradient = probability_flow(parameters, rows, weights)
    step = 1e-6
    for i in range(parameters.shape[0]):
        for j in range(parameters.shape[1]):
            if (i, j) == (parameters.shape[0] - 1, parameters.shape[1] - 1):
                assert gradient[i, j] == 0.0
                continue
            up, down = parameters.copy(), parameters.copy()
            up[i, j] += step
            down[i, j] -= step
            slope = (by_definition(up, rows, weights) - by_definition(down, rows, weights)) / (2 * step)
            assert gradient[i, j] == pytest.approx(slope, abs=1e-7 * max(1.0, value))


def test_some_rows_in_an_order():
    parameters, rows, weights = problem(7)
    some = np.array([4, 1])
    value, gradient = probability_flow(parameters, rows, weights, order=some)
    again, slope = probability_flow(parameters, rows[some], weights[some])
    assert value == pytest.approx(again, rel=1e-14)
    assert np.abs(gradient - slope).max() < 1e-13
