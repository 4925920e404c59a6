"""Training a linear chain: which solver, when to stop, what to report."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from markovfield.arrays import FloatArray
from markovfield.frames import OneRow
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.quasi_newton import minimise
from markovfield.sequence.chain.batch import ChainBatch, ChainLikelihood
from markovfield.sequence.chain.online import ONLINE_SOLVERS, PASSES, Calibration, Online
from markovfield.sequence.chain.watch import EARLY, Watch

__all__ = ["MARGIN_SOLVERS", "SOLVERS", "TrainingReport", "minimised", "penalised", "train"]

SOLVERS = ("lbfgs", "owlqn", *ONLINE_SOLVERS)
# Solvers that minimise mistakes, and have no penalties.
MARGIN_SOLVERS = ("perceptron", "pa", "pa2", "arow")


@dataclass(frozen=True)
class TrainingReport(OneRow):
    """How training went.

    Attributes
    ----------
    objective
        What was minimised, at the weights that were kept. Online solvers add up losses as they go, so theirs is that of
        a moving target.
    history
        The same after each iteration.
    accuracies
        Share of right labels on the development set after each iteration, where there is one.
    f1_scores
        F1 of its chunks, where early stopping goes by that, or would.
    message
        Why it ended.
    kept
        The iteration whose weights early stopping kept; zero without it, when they are those of the last one.
    """

    solver: str
    objective: float
    iterations: int
    converged: bool
    message: str
    seconds: float
    n_sequences: int
    n_tokens: int
    n_features: int
    n_active: int
    history: tuple[float, ...] = ()
    accuracies: tuple[float, ...] = ()
    f1_scores: tuple[float, ...] = ()
    kept: int = 0

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        listed = {name: list(getattr(self, name)) for name in ("history", "accuracies", "f1_scores")}
        return {**asdict(self), **listed}

    @property
    def ending(self) -> str:
        """Whether it converged, or was meant to end before, and why."""
        if self.message.startswith(EARLY):
            return self.message
        return f"{'converged' if self.converged else 'not converged'}: {self.message}"

    _row = ("solver", "objective", "iterations", "converged", "n_sequences", "n_tokens", "n_active", "seconds")

    def __repr__(self) -> str:
        return f"TrainingReport: {self}"

    def __str__(self) -> str:
        return (
            f"{self.solver}: objective {self.objective:.8g} after {self.kept or self.iterations} iterations in "
            f"{self.seconds:.3g} s ({self.ending}); {self.n_active} of {self.n_features} weights are not zero"
        )


def _given(settings: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Settings that were given, under other names."""
    return {ours: settings[theirs] for ours, theirs in names.items() if settings[theirs] is not None}


def _online_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """What sklearn-crfsuite's names say of online solvers."""
    names = {"enough": "epsilon", "margin": "error_sensitive", "averaged": "averaging", "variance": "variance"}
    calibration = {"trials": "calibration_max_trials"} | {
        name: f"calibration_{name}" for name in ("eta", "rate", "samples", "candidates")
    }
    return {**_given(settings, names), "calibration": Calibration(**_given(settings, calibration))}


def penalised(value: Any, l2: float) -> Any:
    """A function of weights that gives a value and a gradient, with the squares of weights added."""
    if not l2:
        return value

    def with_squares(w: FloatArray) -> tuple[float, FloatArray]:
        found, gradient = value(w)
        gradient += l2 * w
        return found + 0.5 * l2 * float(w @ w), gradient

    return with_squares


def minimised(value: Any, start: FloatArray, *, l2: float, **settings: Any) -> Minimum:
    """The weights of least ``value`` and penalties; settings are those of `minimise`."""
    # Between evaluations, threads of a matrix library would wait for more work and keep ours from theirs.
    with threadpool_limits(1, user_api="blas"):
        return minimise(penalised(value, l2), start, **settings)


def train(
    batch: ChainBatch,
    start: FloatArray,
    *,
    watch: Watch,
    running: Running,
    settings: dict[str, Any],
    size: tuple[int, int],
) -> tuple[FloatArray, TrainingReport]:
    """Weights that fit labelled sequences, so many of so many tokens, and how they were found."""
    started = clock()
    solver = settings["solver"]
    if solver in ONLINE_SOLVERS:
        online = Online(
            features=batch.features,
            data=batch.data,
            labels=batch.labels,
            weights=np.zeros(0) if batch.weights is None else np.ascontiguousarray(batch.weights, np.float64),
            l2=0.0 if solver in MARGIN_SOLVERS else settings["l2"],
            step=settings["step"],
            rng=settings["rng"],
            running=running,
            max_iterations=settings["max_iterations"] or PASSES[solver],
            tolerance=settings["tolerance"],
            period=settings["period"],
            callback=watch,
            **_online_settings(settings),
        )
        found, said = ONLINE_SOLVERS[solver](online, start)
    else:
        objective = settings["objective"]
        value: Any
        if isinstance(objective, ChainLikelihood):
            value = objective.on(batch, running=running)
        else:
            evaluated = objective.on(batch.as_batch(), running=running.quiet, rng=settings["rng"])

            def value(w: FloatArray) -> tuple[float, FloatArray]:
                running.check()
                found: tuple[float, FloatArray] = evaluated(w)
                return found

        def told(iteration: int, value: float, weights: FloatArray) -> bool:
            running.check(value)
            return watch(iteration, value, weights)

        answer = minimised(
            value,
            start,
            l2=settings["l2"],
            l1=settings["l1"],
            max_iterations=settings["max_iterations"] or 1000,
            tolerance=settings["tolerance"],
            period=settings["period"],
            callback=told,
            n_jobs=running.n_jobs,
            **_given(
                settings,
                {"memory": "num_memories", "gradient_tolerance": "epsilon", "most_steps": "max_linesearch"},
            ),
        )
        names = ("iterations", "converged", "message", "history")
        found, said = answer.weights, {"objective": answer.value, **{name: getattr(answer, name) for name in names}}
    found, kept = watch.chosen(found)
    if kept:
        said["objective"], said["kept"] = said["history"][kept - 1], kept
    if watch.stopped:
        said["message"] = watch.ending(kept)
    if watch.patience is not None and len(watch.scores) > 1 and not any(watch.scores):
        warnings.warn(
            f"nothing on the development set was right in any of {len(watch.scores)} iterations of training, so that "
            "early stopping had nothing to go by",
            ConvergenceWarning,
            stacklevel=4,
        )
    report = TrainingReport(
        solver=solver,
        seconds=clock() - started,
        n_sequences=size[0],
        n_tokens=size[1],
        n_features=batch.n_weights,
        n_active=int(np.count_nonzero(found)),
        accuracies=tuple(watch.accuracies),
        f1_scores=tuple(watch.f1_scores),
        **said,
    )
    return found, report
