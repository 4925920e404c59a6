"""Hopfield networks: patterns come back, energies fall, and the pseudo-likelihood is what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.learning.undirected.dense_spins import DensePseudoLikelihood, hopfield_weights
from markovfield.models.hopfield import Hopfield
from tests.oracle import Oracle

SPINS = np.array([-1.0, 1.0])


def random_patterns(p: int, n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice([-1, 1], (p, n))


def stable(memory: Hopfield) -> float:
    """The share of stored patterns that are fixed points."""
    rows = memory.patterns.reshape(len(memory.patterns), -1).astype(float)
    return float(((rows @ memory.weights + memory.biases) * rows > 0).all(axis=1).mean())


def small(seed: int, n: int = 6) -> Hopfield:
    """A network with random weights and biases."""
    rng = np.random.default_rng(seed)
    memory = Hopfield(n)
    half = rng.normal(size=(n, n))
    memory.weights = half + half.T
    np.fill_diagonal(memory.weights, 0.0)
    memory.biases = rng.normal(size=n)
    return memory


@given(st.integers(0, 2**32))
def test_it_is_an_ising_model(seed: int):
    memory = small(seed)
    n = memory.n_units
    factors: list[Any] = [
        ((a, b), memory.weights[a, b] * np.outer(SPINS, SPINS)) for a in range(n) for b in range(a + 1, n)
    ]
    factors += [((a,), memory.biases[a] * SPINS) for a in range(n)]
    truth = Oracle([2] * n, factors)
    graph = memory.compile()
    np.testing.assert_allclose(graph.score(truth.states), truth.scores.astype(float), atol=1e-9)
    np.testing.assert_allclose(memory.energy(2 * truth.states - 1), -truth.scores.astype(float), atol=1e-9)
    assert mf.decode(memory).score == pytest.approx(float(truth.scores.max()))
    conditional = memory.full_conditional(2 * truth.states - 1)
    for s in range(n):
        up = truth.states.copy()
        up[:, s] = 1
        index = up @ (2 ** np.arange(n)[::-1])
        odds = (truth.scores[index] - truth.scores[index - 2 ** (n - 1 - s)]).astype(float)
        np.testing.assert_allclose(conditional[:, s], 1 / (1 + np.exp(-odds)), atol=1e-12)


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from(["random", "sequential"]))
def test_completion_ends_where_no_free_unit_wants_to_change(seed: int, all_free: bool, order: str):
    memory = small(seed, 12)
    rng = np.random.default_rng(seed)
    partial = rng.choice([-1.0, 1.0, np.nan], 12)
    known = np.zeros(12, bool) if all_free else ~np.isnan(partial)
    found = memory.complete(partial, known, order=order, rng=rng)
    assert found.converged
    np.testing.assert_array_equal(found.state[known], partial[known])
    assert found.energy == pytest.approx(float(memory.energy(found.state)))
    for s in np.flatnonzero(~known):
        other = found.state.copy()
        other[s] *= -1
        assert memory.energy(other) >= found.energy - 1e-9


def test_energies_fall_along_the_way():
    memory = small(11, 40)
    start = random_patterns(1, 40, 3)[0]
    # One neuron at a time: forty moments in the first sweep.
    moments = [i / 40 for i in range(41)]
    found = memory.complete(start, np.zeros(40, bool), record=moments, rng=5)
    energies = [float(memory.energy(state)) for state in found.history]
    assert (np.diff(energies) <= 1e-9).all() and energies[-1] < energies[0]
    assert all((a != b).sum() <= 1 for a, b in zip(found.history[:-1], found.history[1:], strict=True))


def test_moments_come_back_in_the_order_asked():
    memory = Hopfield((5, 4)).store(random_patterns(1, 20, 0))
    seen = np.full((5, 4), np.nan)
    seen[0] = memory.patterns[0, 0]
    late, early, end = memory.complete(seen, record=[1.0, 0.5, 50.0], rng=0).history
    assert late.shape == (5, 4)
    assert np.count_nonzero(early == 0) == 8 and np.count_nonzero(late == 0) == 0
    np.testing.assert_array_equal(end, memory.patterns[0])


def test_outer_products_store_below_capacity():
    n, p = 400, 20  # 0.05 n, far below 0.138 n
    memory = Hopfield(n).store(random_patterns(p, n, 1))
    np.testing.assert_allclose(memory.weights, memory.weights.T)
    assert not np.diagonal(memory.weights).any()
    assert memory.weights[0, 1] == pytest.approx((memory.patterns[:, 0] * memory.patterns[:, 1]).sum() / n)
    assert stable(memory) == 1.0
    for k in range(5):
        seen = np.where(np.arange(n) < n // 2, memory.patterns[k], np.nan)
        np.testing.assert_array_equal(memory.complete(seen, rng=0).state, memory.patterns[k])
        noisy = memory.patterns[k] * np.where(np.random.default_rng(k).random(n) < 0.1, -1, 1)
        np.testing.assert_array_equal(memory.complete(noisy, np.zeros(n, bool), rng=0).state, memory.patterns[k])


def test_pseudo_likelihood_stores_more():
    n = 80
    patterns = random_patterns(40, n, 2)  # 0.5 n, far above 0.138 n
    assert stable(Hopfield(n).store(patterns)) < 0.1
    memory = Hopfield(n).store(patterns, "pseudo_likelihood")
    assert stable(memory) == 1.0
    np.testing.assert_allclose(memory.weights, memory.weights.T, atol=1e-12)
    assert not np.diagonal(memory.weights).any()
    # Patterns that resemble each other: 80 % of the neurons agree with one prototype.
    flips = np.where(np.random.default_rng(3).random((8, n)) < 0.2, -1, 1)
    alike = flips * patterns[0]
    assert stable(Hopfield(n).store(alike)) < 0.5
    assert stable(Hopfield(n).store(alike, "pseudo_likelihood", biases=True)) == 1.0


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("biases", [False, True])
def test_the_gradient_of_the_pseudo_likelihood(few: bool, biases: bool):
    rng = np.random.default_rng(4)
    patterns = np.unique(random_patterns(4, 7, 5), axis=0).astype(float)
    loss = DensePseudoLikelihood(patterns, rng.integers(1, 4, len(patterns)).astype(float), 0.3, biases=biases, few=few)
    x = 0.2 * rng.normal(size=loss.n_parameters)
    assert np.linalg.norm(loss(x)[1]) > 1.0
    step = 1e-5 * np.eye(len(x))
    slopes = [(loss(x + h)[0] - loss(x - h)[0]) / 2e-5 for h in step]
    np.testing.assert_allclose(loss(x)[1], slopes, rtol=1e-7, atol=1e-7)


def test_the_loss_is_minus_the_log_pseudo_likelihood():
    rng = np.random.default_rng(6)
    patterns = np.unique(random_patterns(5, 6, 7), axis=0).astype(float)
    for few in (False, True):
        loss = DensePseudoLikelihood(patterns, np.ones(len(patterns)), 0.5, biases=True, few=few)
        x = 0.3 * rng.normal(size=loss.n_parameters)
        memory = Hopfield(6)
        memory.weights, memory.biases = loss.weights(x), loss.bias(x)
        up = memory.full_conditional(patterns)
        expected = -np.log(np.where(patterns > 0, up, 1 - up)).sum()
        squares = (memory.weights**2).sum() / 2 + (memory.biases**2).sum()
        assert loss(x)[0] == pytest.approx(expected + 0.25 * squares)


def test_both_kinds_of_parameters_have_one_minimum():
    from scipy.optimize import minimize

    patterns = np.unique(random_patterns(3, 30, 8), axis=0).astype(float)
    found = []
    for few in (False, True):
        loss = DensePseudoLikelihood(patterns, np.ones(3), 0.1, biases=True, few=few)
        end = minimize(loss, np.zeros(loss.n_parameters), jac=True, method="L-BFGS-B", options={"gtol": 1e-9})
        found.append((float(end.fun), loss.weights(end.x)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-3)


def test_repeated_patterns_count():
    patterns = random_patterns(3, 10, 9)
    twice = np.concatenate([patterns, patterns])
    one, two = hopfield_weights(patterns, 0.5, False, 500, 1e-8), hopfield_weights(twice, 1.0, False, 500, 1e-8)
    np.testing.assert_allclose(one[0], two[0], atol=1e-5)


def test_storing_one_after_the_other():
    patterns = random_patterns(4, 50, 10)
    together = Hopfield((5, 10)).store(patterns)
    turns = Hopfield((5, 10)).store(patterns[:3]).store(patterns[3].reshape(5, 10) > 0)
    np.testing.assert_allclose(turns.weights, together.weights)
    assert turns.patterns.shape == (4, 5, 10)
    assert repr(turns) == "Hopfield(5 x 10 neurons, 4 patterns)"


def test_a_unit_that_nothing_pulls_becomes_down():
    found = Hopfield(3).complete([1.0, np.nan, np.nan], order="sequential")
    assert found.state.tolist() == [1, -1, -1] and found.converged


def test_what_is_refused():
    for shape in (0, (), (3, -1), "ab"):
        with pytest.raises(mf.ModelError, match="number of neurons or an image's lengths"):
            Hopfield(shape)  # type: ignore[arg-type]
    memory = Hopfield((2, 3))
    with pytest.raises(mf.ModelError, match=r"patterns of shape \(2, 3\), got shape \(3, 2\)"):
        memory.store(np.ones((3, 2)))
    with pytest.raises(mf.ModelError, match=r"spins -1 and \+1 \(or bools\), got 0"):
        memory.store(np.zeros((2, 3)))
    with pytest.raises(mf.ModelError, match="at least one pattern"):
        memory.store(np.zeros((0, 6)))
    with pytest.raises(mf.ModelError, match="'outer' or 'pseudo_likelihood', got 'hebb'"):
        memory.store(np.ones((2, 3)), "hebb")
    with pytest.raises(mf.ModelError, match="must be at least zero, got -1"):
        memory.store(np.ones((2, 3)), l2=-1)
    with pytest.raises(mf.ModelError, match=r"-1, \+1 or nan for the unknown, got 2"):
        memory.complete(2 * np.ones((2, 3)))
    with pytest.raises(mf.ModelError, match=r"takes one pattern of shape \(2, 3\)"):
        memory.complete(np.ones((4, 2, 3)))
    with pytest.raises(mf.ModelError, match="bools of shape"):
        memory.complete(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(mf.ModelError, match="known that is nan"):
        memory.complete(np.full((2, 3), np.nan), np.ones((2, 3), bool))
    with pytest.raises(mf.ModelError, match="'random' or 'sequential', got 'all'"):
        memory.complete(np.ones((2, 3)), order="all")
    with pytest.raises(mf.ModelError, match="moments from 0 to max_sweeps, here 3"):
        memory.complete(np.ones((2, 3)), max_sweeps=3, record=[4])
