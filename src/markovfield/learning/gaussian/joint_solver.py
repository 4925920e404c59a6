"""Several graphical lassos with a penalty that ties their graphs, on arrays: Newton steps and a duality gap.

Minimised over positive definite X_k: the sum over classes of ``share_k (-log det X_k + tr(S_k X_k))``, plus over pairs
i != j ``penalty sum_k |X_k,ij| + group sqrt(sum_k X_k,ij^2)`` (Danaher, Wang and Witten 2014).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running
from markovfield.learning.gaussian.joint_kernel import descend_jointly
from markovfield.learning.gaussian.lasso_kernel import pattern
from markovfield.learning.gaussian.lasso_solver import ROUNDING, SHARE, SHORTEST, SUFFICIENT, cholesky, inverse_of

__all__ = ["JointMinimum", "minimise_jointly"]


@dataclass(frozen=True, eq=False)
class JointMinimum:
    """``precisions`` is ``float64[classes, n, n]``; the objective is at most ``gap`` above the least there is."""

    precisions: FloatArray
    objective: float
    gap: float
    iterations: int
    converged: bool


def _beyond(e: FloatArray, penalty: float, group: float) -> tuple[FloatArray, FloatArray]:
    """What of ``e[classes, n, n]`` the penalties do not allow, and its length by pairs; nothing on the diagonal."""
    u = np.sign(e) * np.maximum(np.abs(e) - penalty, 0.0)
    length = np.sqrt((u**2).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(length > group, 1 - group / length, 0.0)
    return u * left, length


def _penalties(x: FloatArray, penalty: float, group: float) -> float:
    off = x * ~np.eye(x.shape[1], dtype=np.bool_)
    return penalty * float(np.abs(off).sum()) + group * float(np.sqrt((off**2).sum(axis=0)).sum())


def _factors(x: FloatArray) -> tuple[list[FloatArray], FloatArray] | None:
    """Cholesky factors and log-determinants, or None where one is not positive definite."""
    found = [cholesky(part) for part in x]
    factors = [f for f in found if f is not None]
    if len(factors) < len(found):
        return None
    return factors, np.array([2 * float(np.log(np.diag(f)).sum()) for f in factors])


def minimise_jointly(
    s: FloatArray,
    shares: FloatArray,
    penalty: float,
    group: float,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 200,
    running: Running | None = None,
) -> JointMinimum:
    """The minimum for covariances ``float64[classes, n, n]``.

    Variables that no pair ties in any class are solved for by themselves, as their pairs never come up. An iteration
    takes two factorisations for each class, and about n (entries) operations for each sweep and class.
    """
    n = s.shape[1]
    own = np.arange(n)
    x = np.zeros_like(s)
    x[:, own, own] = 1 / s[:, own, own]
    made = _factors(x)
    assert made is not None
    factors, dets = made
    gap, objective = math.inf, math.inf
    for turn in range(max_iterations + 1):
        w = np.stack([inverse_of(f) for f in factors])
        if running is not None:
            running.check()
        g = shares[:, None, None] * (s - w)
        g[:, own, own] = 0.0
        more, length = _beyond(g, penalty, group)
        objective = float(shares @ ((s * x).sum(axis=(1, 2)) - dets)) + _penalties(x, penalty, group)
        allowed = -(g - more) / shares[:, None, None]
        allowed[:, own, own] = 0.0
        dual = _factors(np.ascontiguousarray(s + allowed))
        gap = math.inf if dual is None else objective - float(shares @ (dual[1] + n))
        if gap <= tolerance or turn == max_iterations:
            break
        there = np.triu((x != 0).any(axis=0) | (length > group))
        there[own, own] = True
        moved = _step(s, w, x, shares, penalty, group, there, dets, 5 + 2 * turn)
        if moved is None:
            break
        factors, dets = moved
    good = gap <= max(tolerance, ROUNDING * max(1.0, abs(objective)) * n)
    return JointMinimum(x, objective, gap, turn, good)


def _step(
    s: FloatArray,
    w: FloatArray,
    x: FloatArray,
    shares: FloatArray,
    penalty: float,
    group: float,
    there: Any,
    dets: FloatArray,
    sweeps: int,
) -> tuple[list[FloatArray], FloatArray] | None:
    """A Newton step on the entries that are ``there``, shortened until the objective falls; x is changed in place."""
    n = s.shape[1]
    rows, columns = (axis.astype(np.int32) for axis in np.nonzero(there))
    size = 2 * len(rows) - n
    starts, every, twins = np.empty(n + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    pattern(rows, columns, len(rows), starts, every, twins)
    d = np.zeros((len(s), size))
    descend_jointly(s, w, x, shares, penalty, group, starts, every, twins, d, sweeps, SHARE)
    at = np.repeat(np.arange(n), np.diff(starts)), every
    old = x[:, at[0], at[1]]
    fit = float(shares @ ((s * x).sum(axis=(1, 2)) - dets))
    tied = _penalties(x, penalty, group)
    whole = x.copy()
    whole[:, at[0], at[1]] = old + d
    slope = float((shares[:, None] * (s - w)[:, at[0], at[1]] * d).sum()) + _penalties(whole, penalty, group) - tied
    length = 1.0
    while length >= SHORTEST:
        x[:, at[0], at[1]] = old + length * d
        made = _factors(x)
        if made is not None:
            value = float(shares @ ((s * x).sum(axis=(1, 2)) - made[1])) + _penalties(x, penalty, group)
            if value <= fit + tied + SUFFICIENT * length * slope + ROUNDING * max(1.0, abs(fit + tied)):
                return made
        length /= 2
    x[:, at[0], at[1]] = old
    return None
