"""Effective sample sizes and split R-hat against the formulas of Vehtari and others (2021) in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.inference.core.autocovariance_kernel import summarise_indicators, summarise_series


def halves_of(x: np.ndarray) -> np.ndarray:
    half = x.shape[1] // 2
    return np.concatenate([np.stack([row[:half], row[len(row) - half :]]) for row in x])


def summary(x: np.ndarray) -> list[float]:
    """Effective sample size, split R-hat and squared standard error of ``x[chains, steps]``."""
    y = halves_of(x)
    m, n = y.shape
    count = x.size
    if y.min() == y.max():
        return [count, np.nan, 0.0]
    within = y.var(axis=1, ddof=1).mean()
    pooled = within * (n - 1) / n + y.mean(axis=1).var(ddof=1)
    centred = y - y.mean(axis=1, keepdims=True)
    covariance = [(centred[:, : n - t] * centred[:, t:]).sum() / (m * n) for t in range(n)]
    rho = [1.0, *(1.0 - (within - covariance[t]) / pooled for t in range(1, n))]
    pairs = [rho[t] + rho[t + 1] for t in range(0, n - 1, 2)]
    positive = next((i for i, p in enumerate(pairs) if i and not p > 0), len(pairs))
    tau = -1.0 + 2.0 * np.minimum.accumulate(pairs[:positive]).sum()
    if within == 0:
        tau = 2.0 * n
    tau = max(tau, 1.0 / max(1.0, np.log10(count)))
    return [count / tau, np.sqrt(pooled / within) if within > 0 else np.inf, pooled * tau / count]


def autoregressive(seed: int, chains: int, steps: int, memory: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(chains, steps))
    for t in range(1, steps):
        x[:, t] += memory * x[:, t - 1]
    return x


@pytest.mark.parametrize("shape", [(1, 4), (2, 5), (4, 101), (3, 400)])
@pytest.mark.parametrize("memory", [0.0, 0.9, -0.7])
def test_series(shape: tuple[int, int], memory: float):
    x = np.stack([autoregressive(seed, *shape, memory) + seed for seed in range(3)], axis=-1)
    out = np.full((3, 3), -7.0)
    summarise_series(x, out)
    np.testing.assert_allclose(out, [summary(x[:, :, k]) for k in range(3)], rtol=1e-9)


def test_a_series_that_never_changes():
    out = np.empty((1, 3))
    summarise_series(np.full((2, 10, 1), 3.5), out)
    np.testing.assert_array_equal(out, [[20.0, np.nan, 0.0]])


def test_chains_stuck_apart_are_worth_one_draw_each():
    x = np.zeros((3, 40, 1))
    x[1], x[2] = 1.0, 5.0
    out = np.empty((1, 3))
    summarise_series(x, out)
    assert out[0, 0] == pytest.approx(120 / 40) and out[0, 1] == np.inf


def test_chains_apart_are_told_from_chains_together():
    x = autoregressive(0, 4, 300, 0.3)[:, :, None]
    together, apart = np.empty((1, 3)), np.empty((1, 3))
    summarise_series(x, together)
    summarise_series(x + 3.0 * np.arange(4)[:, None, None], apart)
    assert together[0, 1] < 1.05 and apart[0, 1] > 1.5 and apart[0, 0] < together[0, 0] / 10


@pytest.mark.parametrize(("chains", "steps"), [(1, 8), (2, 131), (3, 128), (4, 517)])
def test_indicators_are_series_of_zeros_and_ones(chains: int, steps: int):
    rng = np.random.default_rng(steps)
    cards = [2, 3, 1, 4]
    states = np.array([rng.integers(0, card, (chains, steps)) for card in cards])
    for t in range(1, steps):
        stay = rng.random((len(cards), chains)) < 0.8
        states[:, :, t] = np.where(stay, states[:, :, t - 1], states[:, :, t])
    half = steps // 2
    starts = np.array([c * steps + s for c in range(chains) for s in (0, steps - half)], np.int64)
    out = np.full((sum(cards), 3), -7.0)
    columns = states.reshape(len(cards), -1).astype(np.int32)
    summarise_indicators(columns, starts, half, np.array(cards, np.int32), float(chains * steps), out)
    expected = [summary((states[v] == k).astype(float)) for v, card in enumerate(cards) for k in range(card)]
    np.testing.assert_allclose(out, expected, rtol=1e-7)
