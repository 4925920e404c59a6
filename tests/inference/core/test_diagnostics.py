"""Effective sample sizes, R-hat and standard errors, against formulas for chains whose memory is known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.answers import Samples
from markovfield.inference.core.diagnostics import (
    autocorrelation_time,
    diagnose,
    effective_sample_size,
    error_floor,
    split_r_hat,
    standard_error,
)


def autoregressive(rng: np.random.Generator, rho: float, chains: int, steps: int) -> np.ndarray:
    """x[t] = rho x[t-1] + noise, from its stationary distribution, of variance 1 / (1 - rho^2)."""
    noise = rng.normal(size=(chains, steps))
    x = np.empty((chains, steps))
    x[:, 0] = noise[:, 0] / np.sqrt(1 - rho**2)
    for t in range(1, steps):
        x[:, t] = rho * x[:, t - 1] + noise[:, t]
    return x


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.97, -0.5])
def test_autoregressive_chains_have_the_size_of_the_formula(rho: float):
    # The integrated autocorrelation time is (1 + rho) / (1 - rho). With 4 x 20,000 steps estimates scatter by some
    # percent, by 8 at rho = 0.97: ten percent off is beyond three standard deviations but there, where 25 is.
    x = autoregressive(np.random.default_rng(7), rho, 4, 20_000)
    tau = (1 + rho) / (1 - rho)
    room = 0.25 if rho > 0.95 else 0.1
    assert effective_sample_size(x) == pytest.approx(x.size / tau, rel=room)
    assert autocorrelation_time(x) == pytest.approx(tau, rel=room)
    assert standard_error(x) == pytest.approx(np.sqrt(tau / (1 - rho**2) / x.size), rel=room)
    assert split_r_hat(x) == pytest.approx(1.0, abs=0.01)


def test_standard_errors_are_calibrated():
    # z-scores of 400 means: their variance has a standard deviation of sqrt(2 / 400) = 0.07, and sums of noisy
    # autocovariances make errors up to a tenth too large. Three deviations beyond that on either side.
    rng = np.random.default_rng(11)
    z = []
    for _ in range(400):
        x = autoregressive(rng, 0.7, 4, 500)
        z.append(x.mean() / standard_error(x))
    assert 0.65 < np.var(z) < 1.22


def test_r_hat_follows_its_definition():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 100)) + np.array([[0.0], [0.5], [2.0]])
    halves = x.reshape(6, 50)
    within = halves.var(axis=1, ddof=1).mean()
    pooled = within * 49 / 50 + halves.mean(axis=1).var(ddof=1)
    assert split_r_hat(x) == pytest.approx(np.sqrt(pooled / within), rel=1e-12)
    drifting = np.linspace(0, 5, 200) + rng.normal(size=200)
    assert split_r_hat(drifting) > 1.5, "a chain that drifts disagrees with itself"


def test_constant_and_stuck_series():
    assert effective_sample_size(np.ones((2, 10))) == 20
    assert standard_error(np.ones((2, 10))) == 0
    assert np.isnan(split_r_hat(np.ones((2, 10))))
    stuck = np.repeat([[0.0], [1.0], [1.0], [0.0]], 1000, axis=1)
    assert split_r_hat(stuck) == np.inf
    assert effective_sample_size(stuck) < 10
    assert standard_error(stuck) > 0.2


@pytest.mark.parametrize(
    ("series", "match"),
    [
        (np.zeros((2, 3)), r"at least 4 steps, got \(2, 3\)"),
        (np.zeros((2, 3, 4)), "shape"),
        (np.array([0.0, np.nan, 1.0, 2.0]), "finite"),
    ],
)
def test_series_that_cannot_be_judged(series: np.ndarray, match: str):
    with pytest.raises(mf.ModelError, match=match):
        effective_sample_size(series)


def samples_of(states: np.ndarray, cards: list[int], **details) -> Samples:
    net = mf.MarkovNetwork({f"x{i}": c for i, c in enumerate(cards)})
    return Samples(graph=net.compile(), states=states.astype(np.int32), method="test", **details)


@pytest.mark.parametrize("size", [16, 23, 130, 1001])
def test_indicators_agree_with_series(size: int):
    """Bits against floats: every state of every variable, chains whose lengths differ by one."""
    rng = np.random.default_rng(size)
    cards = [2, 3, 1, 5]
    keep = rng.random((size, 4)) < 0.6
    states = np.stack([rng.integers(0, c, size) for c in cards], axis=1)
    for t in range(1, size):
        states[t, keep[t]] = states[t - 1, keep[t]]
    samples = samples_of(states, cards, n_chains=3)
    found = diagnose(samples)
    assert (found.n_samples, found.n_chains) == (size, 3)
    shortest = min(len(rows) for rows in samples.chains)
    sizes, came_and_went = found.effective_sample_sizes, ~np.isnan(found.r_hats)
    at = 0
    for v, card in enumerate(cards):
        for k in range(card):
            x = np.array([rows[:shortest, v] == k for rows in samples.chains], float)
            scale = size / x.size
            assert found.effective_sample_sizes[at] == pytest.approx(effective_sample_size(x) * scale, rel=0.05)
            np.testing.assert_allclose(found.r_hats[at], split_r_hat(x), rtol=1e-9)
            p, fewest = np.mean(states[:, v] == k), sizes[came_and_went].min()
            draws = min(sizes[at], size) if p * (1 - p) * fewest >= 9 else fewest
            expected = max(standard_error(x) / np.sqrt(scale), error_floor(draws) if card > 1 else 0.0)
            assert found.standard_errors[at] == pytest.approx(expected, rel=0.05)
            at += 1
    assert at == len(found.r_hats)


def test_independent_rows():
    rng = np.random.default_rng(1)
    states = rng.integers(0, 2, (500, 2))
    found = diagnose(samples_of(states, [2, 2]))
    p = states.mean(axis=0)
    np.testing.assert_allclose(found.standard_errors[1::2], np.sqrt(p * (1 - p) / 500))
    np.testing.assert_allclose(found.effective_sample_sizes, 500)
    assert np.isnan(found.r_hats).all()


def test_weighted_rows_agree_with_frequencies():
    rng = np.random.default_rng(2)
    samples = samples_of(rng.integers(0, 3, (200, 1)), [3], log_weights=rng.normal(size=200) * 2)
    found = diagnose(samples)
    p, errors = samples.frequencies("x0")
    np.testing.assert_allclose(found.standard_errors, errors)
    weighed = found.standard_errors > error_floor(samples.effective_sample_size)
    assert weighed.any()
    np.testing.assert_allclose(found.effective_sample_sizes[weighed], (p * (1 - p) / errors**2)[weighed])
    assert found.effective_sample_sizes.max() < 150


def test_nothing_and_too_little():
    none = diagnose(samples_of(np.zeros((0, 1)), [2], n_chains=4))
    assert none.effective_sample_sizes.tolist() == [0, 0]
    few = diagnose(samples_of(np.zeros((7, 1)), [2], n_chains=4))
    assert np.isnan(few.standard_errors).all()
    constant = diagnose(samples_of(np.zeros((40, 1)), [2], n_chains=4))
    assert constant.effective_sample_sizes.tolist() == [40, 40]
    assert constant.standard_errors.tolist() == [error_floor(40)] * 2
    assert diagnose(samples_of(np.zeros((40, 1)), [1], n_chains=4)).standard_errors.tolist() == [0]
    assert np.isnan(constant.r_hats).all()


def test_many_variables_are_cut_into_blocks():
    """More entries than one task takes: the same as variable by variable."""
    rng = np.random.default_rng(3)
    states = (rng.random((40_000, 60)) < rng.random(60)).astype(np.int32)
    samples = samples_of(states, [2] * 60, n_chains=4)
    found = diagnose(samples)
    for v in (0, 25, 26, 59):
        x = (states[:, v] == 1).astype(float).reshape(4, -1)
        assert found.effective_sample_sizes[2 * v + 1] == pytest.approx(effective_sample_size(x))
    assert samples.r_hat < 1.01
    assert all(a <= b * 1.5 for a, b in pairwise([20_000, samples.effective_sample_size]))
