"""Boltzmann machines against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.models.boltzmann import BoltzmannMachine, RestrictedBoltzmannMachine
from tests.oracle import Oracle, all_states

ON = np.array([0.0, 1.0])


def machine(seed: int, visible: int = 3, hidden: int = 3) -> BoltzmannMachine:
    rng = np.random.default_rng(seed)
    n = visible + hidden
    weights = np.triu(rng.normal(size=(n, n)), 1)
    return BoltzmannMachine(visible, hidden, weights + weights.T, rng.normal(size=n))


def restricted(seed: int, visible: int, hidden: int) -> RestrictedBoltzmannMachine:
    rng = np.random.default_rng(seed)
    w, a, c = rng.normal(size=(visible, hidden)), rng.normal(size=visible), rng.normal(size=hidden)
    return RestrictedBoltzmannMachine(visible, hidden, w, a, c)


def log_sum(scores: np.ndarray) -> float:
    top = scores.max()
    return float(top + np.log(np.exp(scores - top).sum()))


@given(st.integers(0, 2**32))
def test_a_machine_is_its_definition(seed: int):
    model = machine(seed)
    n = model.n_units
    factors: list[Any] = [((a, b), model.weights[a, b] * np.outer(ON, ON)) for a in range(n) for b in range(a + 1, n)]
    factors += [((a,), model.biases[a] * ON) for a in range(n)]
    truth = Oracle([2] * n, factors)
    scores = truth.scores.astype(float)
    graph = model.compile()
    assert list(graph.variables) == ["v0", "v1", "v2", "h0", "h1", "h2"]
    np.testing.assert_allclose(graph.score(truth.states), scores, atol=1e-12)
    np.testing.assert_allclose(model.energy(truth.states), -scores, atol=1e-12)
    assert float(mf.log_partition(model)) == pytest.approx(truth.log_partition, abs=1e-9)
    conditional = model.full_conditional(truth.states)
    for s in range(n):
        up = truth.states.copy()
        up[:, s] = 1
        index = up @ (2 ** np.arange(n)[::-1])
        odds = scores[index] - scores[index - 2 ** (n - 1 - s)]
        np.testing.assert_allclose(conditional[:, s], 1 / (1 + np.exp(-odds)), atol=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 5))
def test_the_free_energy_sums_the_hidden_units_out(seed: int, visible: int, hidden: int):
    model = restricted(seed, visible, hidden)
    v, h = all_states([2] * visible), all_states([2] * hidden)
    scores = -np.array([[float(model.energy(x, y)) for y in h] for x in v])
    free = model.free_energy(v)
    np.testing.assert_allclose(free, [-log_sum(row) for row in scores], atol=1e-10)
    assert model.log_partition_exact() == pytest.approx(log_sum(scores.ravel()), abs=1e-10)
    graph = model.compile()
    both = np.array([[*x, *y] for x in v for y in h])
    np.testing.assert_allclose(graph.score(both), scores.ravel(), atol=1e-12)
    np.testing.assert_allclose(np.exp(model.log_likelihood(v)).sum(), 1.0, atol=1e-10)
    posterior = np.exp(scores + free[:, None])
    np.testing.assert_allclose(model.hidden_probabilities(v), posterior @ h, atol=1e-10)
    other = np.exp(scores - np.array([log_sum(column) for column in scores.T]))
    np.testing.assert_allclose(model.visible_probabilities(h), other.T @ v, atol=1e-10)


def test_log_partition_in_chunks_and_of_either_layer():
    one = restricted(0, 14, 16)
    swapped = RestrictedBoltzmannMachine(16, 14, one.weights.T, one.hidden_biases, one.visible_biases)
    v = all_states([2] * 14)
    expected = log_sum(-one.free_energy(v))
    assert one.log_partition_exact() == pytest.approx(expected, abs=1e-9)
    assert swapped.log_partition_exact() == pytest.approx(expected, abs=1e-9)


def test_statistics_are_the_gradient_of_the_free_energy():
    model = restricted(1, 4, 3)
    rng = np.random.default_rng(2)
    v = rng.integers(0, 2, (6, 4))
    found = model.statistics(v)
    step = 1e-6
    for i in range(4):
        for j in range(3):
            weights = model.weights.copy()
            weights[i, j] += step
            moved = RestrictedBoltzmannMachine(4, 3, weights, model.visible_biases, model.hidden_biases)
            slope = -(moved.free_energy(v) - model.free_energy(v)).mean() / step
            assert found.weights[i, j] == pytest.approx(slope, abs=1e-5)
    np.testing.assert_allclose(found.visible, v.mean(axis=0))
    np.testing.assert_allclose(found.hidden, model.hidden_probabilities(v).mean(axis=0))


def test_block_gibbs_draws_from_the_model():
    model = restricted(3, 3, 2)
    chains = 20_000
    v, h = model.gibbs(np.zeros((chains, 3), int), steps=60, rng=4)
    assert v.dtype == h.dtype == np.int8
    states = all_states([2] * 5)
    expected = np.exp(-model.energy(states[:, :3], states[:, 3:]) - model.log_partition_exact()) * chains
    counts = np.bincount(np.concatenate([v, h], axis=1) @ (2 ** np.arange(5)[::-1]), minlength=32)
    # Chi-square with 31 degrees of freedom exceeds 69.1 with probability 1e-4.
    assert ((counts - expected) ** 2 / expected).sum() < 69.1
    again = model.gibbs(np.zeros((chains, 3), int), steps=60, rng=4)
    np.testing.assert_array_equal(again[0], v)
    assert model.gibbs([1, 0, 1], steps=0, rng=0)[0].tolist() == [1, 0, 1]
    assert model.sample_visible(np.zeros((2, 3, 2)), rng=0).shape == (2, 3, 3)


def test_zero_by_default():
    model = RestrictedBoltzmannMachine(5, 4)
    assert model.log_partition_exact() == pytest.approx(9 * np.log(2))
    assert float(mf.log_partition(BoltzmannMachine(4, 1))) == pytest.approx(5 * np.log(2))
    assert repr(model) == "RestrictedBoltzmannMachine(5 visible, 4 hidden units)"
    assert repr(BoltzmannMachine(4)) == "BoltzmannMachine(4 visible, 0 hidden units)"


def test_what_is_refused():
    with pytest.raises(mf.ModelError, match=r"n_visible=...\) must be an integer of at least 1, got 0"):
        BoltzmannMachine(0)
    with pytest.raises(mf.ModelError, match=r"n_hidden=...\) must be an integer of at least 1, got 1.5"):
        RestrictedBoltzmannMachine(2, 1.5)  # type: ignore[arg-type]
    with pytest.raises(mf.ModelError, match=r"weights=...\) must have shape \(3, 3\), got \(2, 2\)"):
        BoltzmannMachine(2, 1, np.zeros((2, 2)))
    with pytest.raises(mf.ModelError, match="symmetric with zeros on the diagonal"):
        BoltzmannMachine(2, 0, [[0, 1], [2, 0]])
    with pytest.raises(mf.ModelError, match="symmetric with zeros on the diagonal"):
        BoltzmannMachine(2, 0, np.eye(2))
    with pytest.raises(mf.ModelError, match=r"weights=...\) must have shape \(2, 3\), got \(3, 2\)"):
        RestrictedBoltzmannMachine(2, 3, np.zeros((3, 2)))
    with pytest.raises(mf.ModelError, match=r"hidden_biases=...\) must be finite"):
        RestrictedBoltzmannMachine(2, 1, hidden_biases=[np.inf])
    model = RestrictedBoltzmannMachine(30, 25)
    with pytest.raises(mf.ModelError, match="units of 0 and 1, got -1"):
        model.free_energy(-np.ones(30))
    with pytest.raises(mf.ModelError, match=r"last axis of 30 units, got shape \(25,\)"):
        model.sample_hidden(np.zeros(25))
    with pytest.raises(mf.ModelError, match=r"the 2\^25 states .* stops at 24 units; estimate log Z by annealed"):
        model.log_partition_exact()
    with pytest.raises(mf.ModelError, match="at least one row"):
        model.statistics(np.zeros((0, 30)))
    with pytest.raises(mf.ModelError, match=r"gibbs\(steps=...\)"):
        model.gibbs(np.zeros(30), steps=-1)
