"""The oracle: Gaussians on subspaces by dense algebra that shares no code with the library."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

LOG_2PI = float(np.log(2 * np.pi))


class Truth(NamedTuple):
    mean: np.ndarray
    covariance: np.ndarray
    log_partition: float


def truth(
    precision: np.ndarray,
    information: np.ndarray,
    hard: dict[int, float] | None = None,
    noisy: dict[int, tuple[float, float]] | None = None,
    constraints: np.ndarray | None = None,
    values: np.ndarray | None = None,
) -> Truth:
    """Mean, covariance and log Z of all variables, what is known among them, by a basis of the subspace."""
    n = len(information)
    q, b, constant = precision.copy(), information.copy(), 0.0
    for v, (y, s) in (noisy or {}).items():
        q[v, v] += 1 / s
        b[v] += y / s
        constant += -0.5 * (y**2 / s + LOG_2PI + np.log(s))
    rows = [np.eye(n)[v] for v in hard or {}]
    sides = list((hard or {}).values())
    if constraints is not None:
        rows += list(constraints)
        sides += list(np.zeros(len(constraints)) if values is None else values)
    a = np.array(rows).reshape(-1, n)
    start = np.linalg.lstsq(a, np.array(sides), rcond=None)[0] if len(a) else np.zeros(n)
    basis = linalg.null_space(a) if len(a) else np.eye(n)
    inner = basis.T @ q @ basis
    spread = basis @ np.linalg.inv(inner) @ basis.T
    mean = start + spread @ (b - q @ start)
    log_z = constant + b @ mean - 0.5 * mean @ q @ mean
    log_z += 0.5 * (basis.shape[1] * LOG_2PI - np.linalg.slogdet(inner)[1])
    if len(a):
        log_z -= 0.5 * np.linalg.slogdet(a @ a.T)[1]
    return Truth(mean, spread, float(log_z))
