"""The same random series for us and for the peers: an autoregression, and a state-space model with missing values."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["autoregression", "space"]


def autoregression(steps: int, k: int, seed: int = 0) -> Any:
    """``float64[steps, k]`` of a stable autoregression of order 2."""
    rng = np.random.default_rng(seed)
    first = 0.5 * np.eye(k) + 0.3 / k * rng.normal(size=(k, k))
    second = -0.2 * np.eye(k)
    values = np.zeros((steps + 50, k))
    noise = rng.normal(size=values.shape)
    for t in range(2, len(values)):
        values[t] = first @ values[t - 1] + second @ values[t - 2] + noise[t]
    return values[50:]


def space(steps: int, n: int = 4, m: int = 2, seed: int = 1) -> tuple[dict[str, Any], Any]:
    """Matrices of a state-space model, and a series of it of which a tenth is missing."""
    rng = np.random.default_rng(seed)
    parts = {
        "transition": 0.9 * np.eye(n) + 0.05 * rng.normal(size=(n, n)),
        "transition_noise": 0.5 * np.eye(n),
        "observation": rng.normal(size=(m, n)),
        "observation_noise": np.eye(m) + 0.3,
    }
    state = np.zeros(n)
    rows = np.empty((steps, m))
    for t in range(steps):
        state = parts["transition"] @ state + np.sqrt(0.5) * rng.normal(size=n)
        rows[t] = parts["observation"] @ state + np.linalg.cholesky(parts["observation_noise"]) @ rng.normal(size=m)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return parts, rows
