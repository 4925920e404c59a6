"""Time series models as Gaussian fields: a variable for each series (or state) and time step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.time_series.chain_graph import step_name

if TYPE_CHECKING:
    from markovfield.time_series.state_space import LinearStateSpace
    from markovfield.time_series.vector_autoregression import VectorAutoregression

__all__ = ["unrolled_autoregression", "unrolled_state_space"]


def unrolled_autoregression(model: VectorAutoregression, steps: int, history: FloatArray | None) -> GaussianField:
    """Noise of each step is ``x[t] - A1 x[t-1] - ...``: with R these rows, the precision is ``R' (I x Omega) R``."""
    from scipy import sparse

    p, k = model.order, model.n_variables
    omega = model.noise_precision_
    if history is None:
        mean, stacked = model.stationary()
        first = min(p, steps)
        # Latest first in the model's own order: turned round into the order of time.
        blocks = np.arange(first * k).reshape(first, k)[::-1].ravel()
        initial = np.linalg.inv(stacked[: first * k, : first * k][np.ix_(blocks, blocks)])
        initial = (initial + initial.T) / 2
        known = np.zeros((0, k))
    else:
        mean, first, initial, known = np.zeros(k), 0, np.zeros((0, 0)), history
    rows = steps - first
    shift = sparse.csr_array(sparse.kron(sparse.eye_array(rows, steps, k=first), sparse.eye_array(k)))
    constant = np.tile(model.intercept_, (rows, 1))
    for lag in range(1, p + 1):
        weights = model.coefficients_[lag - 1]
        shift = shift - sparse.kron(sparse.eye_array(rows, steps, k=first - lag), sparse.csr_array(weights))
        for t in range(min(lag, rows) if len(known) else 0):
            constant[t] += weights @ known[p + t - lag]
    shift = sparse.csr_array(shift)
    whitened = sparse.csr_array(sparse.kron(sparse.eye_array(rows), sparse.csr_array(omega)) @ shift)
    precision = sparse.csc_array(shift.T @ whitened)
    information = whitened.T @ constant.ravel()
    if first:
        start = sparse.csc_array((steps * k, steps * k))
        start = sparse.block_diag([initial, sparse.csc_array((rows * k, rows * k))], format="csc")
        precision = sparse.csc_array(precision + start)
        information[: first * k] += initial @ np.tile(mean, first)
    names = [step_name(v, t) for t in range(steps) for v in model.variables_]
    precision = sparse.csc_array((precision + precision.T) / 2)
    return GaussianField(precision, information, names)


def unrolled_state_space(model: LinearStateSpace, steps: int) -> GaussianField:
    """States ``"name[t]"`` of all steps, then observations ``"name[t]"``: both have noise, and so a precision."""
    from scipy import sparse

    n, m = model.n_states, model.n_variables
    inverses = []
    for what, matrix in (
        ("transition_noise", model.transition_noise),
        ("observation_noise", model.observation_noise),
        ("initial_covariance", model.initial_covariance),
    ):
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise ModelError(
                f"unrolled(steps) needs a {what} that is positive definite: without noise there is no precision; "
                "filter and smooth take such a model"
            ) from None
        inverses.append(np.linalg.inv(matrix))
    q, r, start = inverses
    move = sparse.kron(sparse.eye_array(steps - 1, steps, k=1), sparse.eye_array(n)) - sparse.kron(
        sparse.eye_array(steps - 1, steps), sparse.csr_array(model.transition)
    )
    see = sparse.hstack(
        [
            -sparse.kron(sparse.eye_array(steps), sparse.csr_array(model.observation)),
            sparse.eye_array(steps * m),
        ],
        format="csr",
    )
    move = sparse.hstack([sparse.csr_array(move), sparse.csr_array(((steps - 1) * n, steps * m))], format="csr")
    noise = sparse.kron(sparse.eye_array(steps - 1), sparse.csr_array(q))
    seen = sparse.kron(sparse.eye_array(steps), sparse.csr_array(r))
    first = sparse.block_diag([start, sparse.csc_array((steps * (n + m) - n,) * 2)], format="csc")
    precision = move.T @ noise @ move + see.T @ seen @ see + first
    information = move.T @ (noise @ np.tile(model.transition_intercept, steps - 1))
    information = information + see.T @ (seen @ np.tile(model.observation_intercept, steps))
    information[:n] += start @ model.initial_mean
    names = [step_name(s, t) for t in range(steps) for s in model.states]
    names += [step_name(v, t) for t in range(steps) for v in model.variables]
    precision = sparse.csc_array((precision + precision.T) / 2)
    return GaussianField(precision, information, names)
