"""A restricted Boltzmann machine fitted to data: a model in, a new model with its report out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.convergence import warn_caller
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.annealed import log_partition
from markovfield.learning.boltzmann.rows import Rows, rows_of
from markovfield.learning.boltzmann.updates import Trained, Training, train_rbm
from markovfield.learning.core.report import FitReport
from markovfield.models._sites import softplus_sum
from markovfield.models.boltzmann import RestrictedBoltzmannMachine

__all__ = ["BoltzmannDetails", "Trained", "Training", "fit_rbm", "mean_log_likelihood", "started", "train_rbm"]

METHODS = {
    "cd": "contrastive_divergence",
    "pcd": "stochastic_maximum_likelihood",
    "mpf": "minimum_probability_flow",
}
# Standard deviation of weights that training starts from, where a model has none.
SCATTER = 0.01


@dataclass(frozen=True, eq=False)
class BoltzmannDetails:
    """What the report of a Boltzmann machine has beside the usual.

    Attributes
    ----------
    log_partition
        log Z of the fitted machine, exact or with a standard error; None where it was not asked for.
    log_likelihood_error
        Standard error of the report's log-likelihood: that of log Z times the rows; zero where it is exact.
    history_every
        The report's history has the mean log-likelihood of a row after every so many epochs.
    updates
        Steps of the ascent.
    chains
        ``int8[n_chains, n_hidden]``: hidden units of the persistent Markov chains.
    """

    log_partition: LogPartition | None
    log_likelihood_error: float
    history_every: int
    updates: int
    chains: Any


def fit_rbm(
    model: RestrictedBoltzmannMachine,
    data: Any,
    *,
    kind: str = "pcd",
    rng: int | np.random.Generator | None = None,
    running: Running | None = None,
    weights: Any = None,
    likelihood: str | None = "auto",
    history_every: int = 0,
    **settings: Any,
) -> RestrictedBoltzmannMachine:
    """A new machine fitted to rows of visible units; the one given stays as it is, and is what training starts from.

    A machine that is all zeros starts from small random weights, and from visible biases that give every unit its mean
    in the data.

    Parameters
    ----------
    data
        ``[n_rows, n_visible]`` of 0 and 1, or columns v0, v1, .... Values between stand for probabilities: the
        log-likelihood reported, and what is ascended on, is then a lower bound on the expected one of rows drawn with
        them. Minimum probability flow needs 0 and 1.
    kind, **settings
        As in `Training`: ``k``, ``learning_rate``, ``batch_size``, ``epochs``, ``momentum``, ``l2``, ``schedule``,
        ``tau``, ``averaging``, ``n_chains``, ``dtype``.
    weights
        How often each row counts.
    likelihood
        How the report's log-likelihood is had: ``"exact"``, ``"annealed"`` (annealed importance sampling, with a
        standard error), ``"auto"`` for the former where the smaller layer has 18 units or fewer, or None for not at
        all: it is nan then.
    history_every
        Epochs between entries of the report's history, each as expensive as the log-likelihood; 0 for none.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 50, axis=0)
    >>> fitted = fit_rbm(RestrictedBoltzmannMachine(4, 2), rows, epochs=1000, rng=0)
    >>> fitted.fit_report.method, fitted.fit_report.iterations
    ('stochastic_maximum_likelihood', 1000)
    >>> bool(fitted.fit_report.log_likelihood / 100 > -1.5)  # independent units have -2.77, the best is -0.69
    True
    """
    if not isinstance(model, RestrictedBoltzmannMachine):
        raise ModelError(f"fit_rbm takes a RestrictedBoltzmannMachine, got {type(model).__name__}")
    training = Training(kind=kind, **settings)
    generator, running = generator_of(rng), running or Running()
    history_every = whole_number(history_every, "history_every", 0)
    if likelihood not in (None, "auto", "exact", "annealed"):
        raise ModelError(f"likelihood must be 'auto', 'exact', 'annealed' or None, got {likelihood!r}")
    rows = rows_of(data, model.n_visible, weights)
    if kind == "mpf" and not rows.binary:
        raise ModelError("minimum probability flow needs rows of 0 and 1: round the data, or draw rows from them")
    planning = running.seconds

    def record(*parts: FloatArray) -> float:
        made = RestrictedBoltzmannMachine(model.n_visible, model.n_hidden, *parts)
        return mean_log_likelihood(made, rows, likelihood or "auto", generator, running)[0]

    trained = train_rbm(
        *started(model, rows, generator),
        rows.values,
        training,
        rng=generator,
        running=running,
        row_weights=rows.weights,
        record=record if history_every else None,
        record_every=max(history_every, 1),
    )
    made = RestrictedBoltzmannMachine(
        model.n_visible, model.n_hidden, trained.weights, trained.visible_biases, trained.hidden_biases
    )
    if trained.blown_up:
        warn_caller(f"training of the Boltzmann machine failed: {trained.message}")
    mean, partition = float("nan"), None
    if likelihood is not None:
        # A run that was stopped still tells what it has: the clock starts anew for this.
        mean, partition = mean_log_likelihood(made, rows, likelihood, generator, Running(running.n_jobs))
    made.fit_report = _report(made, trained, training, rows, mean, partition, history_every, running, planning)
    return made


def started(model: RestrictedBoltzmannMachine, rows: Rows, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """The model's parameters, or where all are zero, small random weights and the means of the data."""
    if model.weights.any() or model.visible_biases.any() or model.hidden_biases.any():
        return model.weights, model.visible_biases, model.hidden_biases
    means = rows.means
    return rng.normal(0.0, SCATTER, model.weights.shape), np.log(means) - np.log1p(-means), model.hidden_biases


def mean_log_likelihood(
    model: RestrictedBoltzmannMachine, rows: Rows, method: str, rng: np.random.Generator, running: Running
) -> tuple[float, LogPartition]:
    """Mean over rows, as they weigh, and the log Z that it was had with."""
    partition = log_partition(model, method, base_rates=rows.means, rng=rng, running=running)
    v = rows.values
    scores = v @ model.visible_biases + softplus_sum(v @ model.weights + model.hidden_biases)
    return float(rows.weights @ scores / rows.weights.sum()) - partition.log_partition, partition


def _report(
    model: RestrictedBoltzmannMachine,
    trained: Trained,
    training: Training,
    rows: Rows,
    mean: float,
    partition: LogPartition | None,
    history_every: int,
    running: Running,
    planning: float,
) -> FitReport:
    total = float(rows.weights.sum())
    error = total * (partition.standard_error or 0.0) if partition is not None else float("nan")
    return FitReport(
        method=METHODS[training.kind],
        log_likelihood=mean * total,
        n_rows=len(rows.values),
        total_weight=total,
        n_parameters=model.weights.size + model.n_visible + model.n_hidden,
        converged=trained.converged,
        iterations=trained.epochs,
        message=trained.message,
        history=trained.history,
        seconds=running.seconds,
        objective=trained.objective,
        objective_name="probability flow" if trained.objective is not None else "",
        gradient_norm=trained.gradient_norm,
        guarantee="approximate",
        notes=_notes(trained, training, rows, partition, error, model),
        planning_seconds=planning,
        details=BoltzmannDetails(partition, error, history_every, trained.updates, trained.chains),
    )


def _notes(
    trained: Trained,
    training: Training,
    rows: Rows,
    partition: LogPartition | None,
    error: float,
    model: RestrictedBoltzmannMachine,
) -> tuple[str, ...]:
    said = {
        "cd": "contrastive divergence is not the gradient of the likelihood: modes far from the data are left alone",
        "pcd": "stochastic maximum likelihood ascends on the likelihood, which has several maxima, up to the noise of "
        "its Markov chains",
        "mpf": "minimum probability flow has another objective than the likelihood, with the same optimum where the "
        "machine can express the distribution of the data",
    }
    notes = [said[training.kind]]
    if partition is None:
        notes.append("the log-likelihood was not asked for")
    elif partition.standard_error is None:
        notes.append("the log-likelihood is exact")
    else:
        trust = "" if partition.converged else "; a few Markov chains carry all the weight, so it cannot be trusted"
        notes.append(f"the log-likelihood is an estimate with a standard error of {error:.3g}{trust}")
    if not rows.binary:
        notes.append(
            "values between 0 and 1 were taken for probabilities: the log-likelihood is a lower bound on the expected "
            "one of rows drawn with them"
        )
    idle = int((np.abs(model.weights).max(axis=0) < 2 * SCATTER).sum())
    if idle:
        notes.append(f"{idle} of {model.n_hidden} hidden units have learnt nothing yet")
    if trained.message:
        notes.append(trained.message)
    return tuple(notes)
