"""Parameters of state-space models by expectation maximisation (Shumway and Stoffer 1982)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield._validation import number, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.kernels.compilations import clock
from markovfield.learning.core.report import FitReport
from markovfield.time_series import kalman
from markovfield.time_series.archive import ARRAYS

if TYPE_CHECKING:
    from markovfield.time_series.state_space import LinearStateSpace

__all__ = ["expectation_maximization"]


def expectation_maximization(
    model: LinearStateSpace, rows: FloatArray, estimate: Sequence[str], tolerance: float, max_iterations: int
) -> LinearStateSpace:
    """Smooth, then regress states on states and observations on states, by expected moments."""
    started = clock()
    chosen = (estimate,) if isinstance(estimate, str) else tuple(estimate)
    unknown = [name for name in chosen if name not in ARRAYS]
    if unknown or not chosen:
        raise ModelError(f"fit(estimate=...) names some of {', '.join(ARRAYS)}, got {unknown or chosen}")
    number(tolerance, "tolerance", least=0)
    most = whole_number(max_iterations, "max_iterations", 1)
    if len(rows) < 2:
        raise ModelError(f"fit(data) needs at least two rows, got {len(rows)}")
    history: list[float] = []
    converged = False
    while True:
        states = kalman.smoothed(model, rows)
        history.append(states.log_likelihood)
        gained = history[-1] - history[-2] if len(history) > 1 else np.inf
        converged = gained <= tolerance * max(1.0, abs(history[-1]))
        if converged or len(history) > most:
            break
        model = model.with_parameters(**_maximised(model, rows, states, set(chosen)))
    model.fit_report = FitReport(
        method="expectation_maximization",
        log_likelihood=history[-1],
        n_rows=len(rows),
        total_weight=float(len(rows)),
        n_parameters=_count(model, chosen),
        converged=bool(converged),
        iterations=len(history) - 1,
        message="" if converged else f"{most} iterations did not converge",
        history=tuple(history),
        missing={v: int(c) for v, c in zip(model.variables, np.isnan(rows).sum(axis=0), strict=True) if c},
        seconds=clock() - started,
    )
    return model


def _count(model: LinearStateSpace, chosen: tuple[str, ...]) -> int:
    sizes = {name: getattr(model, name).shape for name in chosen}
    return sum(
        s[0] * (s[0] + 1) // 2 if name.endswith(("noise", "covariance")) else int(np.prod(s))
        for name, s in sizes.items()
    )


def _regressed(
    cross: FloatArray, square: FloatArray, slope: FloatArray, constant: FloatArray, free: tuple[bool, bool]
) -> tuple[FloatArray, FloatArray]:
    """Slope and constant of targets on (state, 1), either or both free, by sums of their products."""
    n = slope.shape[1]
    if free == (True, True):
        found = np.asarray(np.linalg.solve(square, cross.T), np.float64).T
        return found[:, :n], found[:, n]
    if free == (True, False):
        right = cross[:, :n] - np.outer(constant, square[n, :n])
        return np.asarray(np.linalg.solve(square[:n, :n], right.T), np.float64).T, constant
    if free == (False, True):
        return slope, (cross[:, n] - slope @ square[:n, n]) / square[n, n]
    return slope, constant


def _left(target: FloatArray, cross: FloatArray, square: FloatArray, both: FloatArray, count: float) -> FloatArray:
    """Mean square of what a regression leaves."""
    half = both @ cross.T
    found = (target - half - half.T + both @ square @ both.T) / count
    return np.asarray((found + found.T) / 2)


def _maximised(model: LinearStateSpace, rows: FloatArray, states: Any, chosen: set[str]) -> dict[str, FloatArray]:
    found: dict[str, FloatArray] = {}
    steps, n = states.mean.shape
    with_one = np.hstack([states.mean, np.ones((steps, 1))])
    squares = with_one[:, :, None] * with_one[:, None, :]
    squares[:, :n, :n] += states.covariance
    if chosen & {"transition", "transition_intercept", "transition_noise"}:
        cross = np.einsum("ta,tb->ab", states.mean[1:], with_one[:-1])
        cross[:, :n] += states.lag_covariance.sum(axis=0)
        square, target = squares[:-1].sum(axis=0), squares[1:, :n, :n].sum(axis=0)
        free = "transition" in chosen, "transition_intercept" in chosen
        slope, constant = _regressed(cross, square, model.transition, model.transition_intercept, free)
        found |= {"transition": slope, "transition_intercept": constant}
        if "transition_noise" in chosen:
            found["transition_noise"] = _left(target, cross, square, np.column_stack([slope, constant]), steps - 1)
    if chosen & {"observation", "observation_intercept", "observation_noise"}:
        target, cross = _observed(model, rows, states, with_one, squares)
        square = squares.sum(axis=0)
        free = "observation" in chosen, "observation_intercept" in chosen
        slope, constant = _regressed(cross, square, model.observation, model.observation_intercept, free)
        found |= {"observation": slope, "observation_intercept": constant}
        if "observation_noise" in chosen:
            found["observation_noise"] = _left(target, cross, square, np.column_stack([slope, constant]), steps)
    mean = states.mean[0] if "initial_mean" in chosen else model.initial_mean
    found["initial_mean"] = mean
    if "initial_covariance" in chosen:
        away = states.mean[0] - mean
        found["initial_covariance"] = states.covariance[0] + np.outer(away, away)
    return found


def _observed(
    model: LinearStateSpace, rows: FloatArray, states: Any, with_one: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Expected sums of products of observations, and with (state, 1); missing values by what the others tell."""
    present = ~np.isnan(rows)
    whole = present.all(axis=1)
    y = rows[whole]
    target: Any = y.T @ y
    cross: Any = y.T @ with_one[whole]
    both = np.column_stack([model.observation, model.observation_intercept])
    noise = model.observation_noise
    patterns, which = np.unique(present[~whole], axis=0, return_inverse=True)
    for p, pattern in enumerate(patterns):
        at = np.flatnonzero(~whole)[which.ravel() == p]
        seen, gone = np.flatnonzero(pattern), np.flatnonzero(~pattern)
        share: Any = np.zeros((len(gone), len(seen)))
        if len(seen):
            share = np.linalg.lstsq(noise[np.ix_(seen, seen)], noise[np.ix_(seen, gone)], rcond=None)[0].T
        # A missing value is a weighted sum of (state, 1) and noise, given the others and the state.
        weights = np.zeros((len(at), rows.shape[1], with_one.shape[1]))
        weights[:, gone] = both[gone] - share @ both[seen]
        weights[:, gone, -1] += rows[np.ix_(at, seen)] @ share.T
        weights[:, seen, -1] = rows[np.ix_(at, seen)]
        moments = weights @ squares[at]
        target += (moments @ weights.transpose(0, 2, 1)).sum(axis=0)
        target[np.ix_(gone, gone)] += len(at) * (noise[np.ix_(gone, gone)] - share @ noise[np.ix_(seen, gone)])
        cross += moments.sum(axis=0)
    return target, cross
