"""Boltzmann machines whose units are all joined, some of them hidden, by stochastic maximum likelihood (Murphy 19.48).

Two sets of Markov chains: in one the visible units are clamped to rows of the data, in the other all units are free.
Each unit is drawn given all others, for all chains at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.convergence import warn_caller
from markovfield.inference.core.running import Running
from markovfield.kernels.random_lanes import LANES, lanes
from markovfield.learning.boltzmann.dense_kernel import Units, train_dense
from markovfield.learning.boltzmann.rows import Rows, rows_of
from markovfield.learning.boltzmann.updates import Run, Trained, Training
from markovfield.learning.core.report import FitReport
from markovfield.models.boltzmann import BoltzmannMachine

__all__ = ["fit_boltzmann", "marginal_log_likelihood", "train_boltzmann"]

# The log-likelihood is exact for so many units: 2^16 states.
ENUMERATED = 16
SCATTER = 0.01


def train_boltzmann(
    weights: npt.ArrayLike,
    biases: npt.ArrayLike,
    rows: npt.NDArray[Any],
    training: Training,
    *,
    rng: np.random.Generator,
    running: Running,
    row_weights: FloatArray | None = None,
) -> Trained:
    """Train from the parameters given, which stay as they are; ``visible_biases`` of the answer are all biases.

    An update costs ``k`` sweeps over the hidden units of a mini-batch and over all units of the free chains, each unit
    a product of its weights with the states of all chains.

    Parameters
    ----------
    weights, biases
        ``[n, n]``, symmetric with zeros on the diagonal, and ``[n]``; visible units first.
    rows
        ``[n_rows, n_visible]`` of 0 and 1.

    Examples
    --------
    >>> rows = np.repeat([[1, 1, 0], [0, 0, 1]], 50, axis=0)
    >>> start = np.zeros((4, 4)), np.zeros(4)
    >>> trained = train_boltzmann(*start, rows, Training(epochs=20), rng=np.random.default_rng(0), running=Running())
    >>> bool(np.array_equal(trained.weights, trained.weights.T)), trained.updates
    (True, 100)
    """
    if training.kind != "pcd":
        raise ModelError(f"a BoltzmannMachine is trained with kind='pcd', got {training.kind!r}")
    run = Run(weights, biases, biases, rows, training, row_weights, rng, running, None, 1)
    (n_rows, n_visible), n = run.rows.shape, len(run.machine.parameters) - 1
    m = training.n_chains or run.batch
    most = max(m, run.batch)
    seen = (rng.random((n + 1, n_rows)) < 0.5).astype(run.dtype)
    seen[:n_visible], seen[n] = run.rows.T, 1.0
    free = np.ascontiguousarray(seen[:, rng.integers(0, n_rows, m)])
    units = Units(
        seen=seen,
        free=free,
        field=np.zeros(most, run.dtype),
        words=np.zeros(-(-n * most // (2 * LANES)) * LANES, np.uint64),
        state=lanes(rng),
    )
    shift = 8 if run.dtype == np.float32 else 1
    scalars = np.array([0, 0, 0, 2.0 ** (32 - shift)], run.dtype)
    product = np.zeros_like(run.machine.parameters)

    def step(order: npt.NDArray[Any]) -> None:
        train_dense(
            units, run.scaled_weights, order, run.batch, n_visible, run.machine, product, run.steering, scalars,
            training.k, np.uint32(shift),
        )  # fmt: skip

    run.step, run.work = step, n * n * (2 + 2 * training.k)
    run.chains = free[:-1].T
    return run.go(shuffle=True)


def marginal_log_likelihood(model: BoltzmannMachine, rows: npt.ArrayLike) -> FloatArray:
    """Exact log-probability of visible states, the hidden units summed out: for up to 16 units.

    Examples
    --------
    >>> marginal_log_likelihood(BoltzmannMachine(2, 3), [[0, 1]]).round(4).tolist()
    [-1.3863]
    """
    n, v = model.n_units, model.n_visible
    if n > ENUMERATED:
        raise ModelError(f"the exact log-likelihood is for {ENUMERATED} units or fewer, got {n}")
    states = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)
    # Visible units are the low bits: a column for each of their states.
    scores = -model.energy(states).reshape(2 ** (n - v), 2**v)
    top = scores.max()
    visible = np.log(np.exp(scores - top).sum(axis=0))
    total = np.log(np.exp(visible).sum())
    which = np.asarray(rows, np.int64) @ (1 << np.arange(v))
    return np.asarray(visible[which] - total)


def fit_boltzmann(
    model: BoltzmannMachine,
    data: Any,
    *,
    rng: int | np.random.Generator | None = None,
    running: Running | None = None,
    weights: Any = None,
    **settings: Any,
) -> BoltzmannMachine:
    """A new machine fitted to rows of its visible units; the one given is what training starts from.

    Parameters
    ----------
    data
        ``[n_rows, n_visible]`` of 0 and 1, or columns v0, v1, ....
    weights
        How often each row counts.
    **settings
        As in `Training`, with ``kind="pcd"``.

    Examples
    --------
    >>> rows = np.repeat([[1, 1, 0], [0, 0, 1]], 50, axis=0)
    >>> fitted = fit_boltzmann(BoltzmannMachine(3, 1), rows, epochs=400, rng=0)
    >>> bool(fitted.fit_report.log_likelihood / 100 > -1.2)  # independent units have -2.08, the best is -0.69
    True
    """
    if not isinstance(model, BoltzmannMachine):
        raise ModelError(f"fit_boltzmann takes a BoltzmannMachine, got {type(model).__name__}")
    training = Training(**settings)
    generator, running = generator_of(rng), running or Running()
    rows = rows_of(data, model.n_visible, weights)
    if not rows.binary:
        raise ModelError("a BoltzmannMachine is fitted to rows of 0 and 1: round the data, or draw rows from them")
    start = _started(model, rows, generator)
    trained = train_boltzmann(*start, rows.values, training, rng=generator, running=running, row_weights=rows.weights)
    made = BoltzmannMachine(model.n_visible, model.n_hidden, trained.weights, trained.visible_biases)
    if trained.blown_up:
        warn_caller(f"training of the Boltzmann machine failed: {trained.message}")
    exact = model.n_units <= ENUMERATED
    value = float(rows.weights @ marginal_log_likelihood(made, rows.values)) if exact else float("nan")
    notes = ["stochastic maximum likelihood: up to the noise of its Markov chains"]
    if model.n_hidden:
        notes.append("with hidden units the likelihood has several maxima")
    if not exact:
        notes.append(f"the log-likelihood is not known: it is exact for {ENUMERATED} units or fewer")
    made.fit_report = FitReport(
        method="stochastic_maximum_likelihood",
        log_likelihood=value,
        n_rows=len(rows.values),
        total_weight=float(rows.weights.sum()),
        n_parameters=model.n_units * (model.n_units + 1) // 2,
        converged=trained.converged,
        iterations=trained.epochs,
        message=trained.message,
        seconds=running.seconds,
        guarantee="approximate",
        notes=tuple(notes),
    )
    return made


def _started(model: BoltzmannMachine, rows: Rows, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The model's parameters, or where all are zero, small random weights and the means of the data."""
    if model.weights.any() or model.biases.any():
        return model.weights, model.biases
    drawn = np.triu(rng.normal(0.0, SCATTER, model.weights.shape), 1)
    means = rows.means
    biases = np.zeros(model.n_units)
    biases[: model.n_visible] = np.log(means) - np.log1p(-means)
    return drawn + drawn.T, biases
