"""Training a linear chain: which solver, when to stop, what to report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running
from markovfield.learning.quasi_newton import minimise
from markovfield.sequence.chain.features import ChainFeatures, Encoded
from markovfield.sequence.chain.model import chain_model
from markovfield.sequence.chain.objective import ChainObjective, Clamped
from markovfield.sequence.chain.online import ONLINE_SOLVERS, PASSES, Online
from markovfield.sequence.text.entities import entity_report
from markovfield.sequence.text.labels import LabelEncoder

__all__ = ["MARGIN_SOLVERS", "METRICS", "SOLVERS", "TrainingReport", "Watch", "train"]

Watched = tuple[Encoded, npt.NDArray[np.int32]]
SOLVERS = ("lbfgs", "owlqn", *ONLINE_SOLVERS)
# What early stopping may go by.
METRICS = ("accuracy", "f1")
# Solvers that minimise mistakes, and have no penalties.
MARGIN_SOLVERS = ("perceptron", "pa", "pa2", "arow")


@dataclass(frozen=True)
class TrainingReport:
    """How training went.

    Attributes
    ----------
    objective
        What was minimised, at the end. Online solvers add up losses as they go, so theirs is that of a moving target.
    history
        The same after each iteration.
    accuracies
        Share of right labels on the development set after each iteration, where there is one.
    f1_scores
        F1 of its chunks, where early stopping goes by that.
    message
        Why it ended.
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

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        listed = {name: list(getattr(self, name)) for name in ("history", "accuracies", "f1_scores")}
        return {**asdict(self), **listed}

    def __str__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return (
            f"{self.solver}: objective {self.objective:.8g} after {self.iterations} iterations in {self.seconds:.3g} s "
            f"({end}: {self.message}); {self.n_active} of {self.n_features} weights are not zero"
        )


class Watch:
    """Looks at the development set after each iteration, keeps the best weights, and says when to stop.

    ``keep`` is called with the weights of every so many iterations: a checkpoint. ``hidden`` states stand for each
    label, and no path takes a ``forbidden`` step. With ``chunks``, an encoder of labels and the true ones, the best
    weights are those of the best F1.
    """

    def __init__(
        self,
        features: ChainFeatures,
        watched: Watched | None,
        *,
        patience: int | None,
        chunks: tuple[LabelEncoder, list[list[Any]]] | None,
        verbose: bool,
        hidden: int,
        forbidden: npt.NDArray[np.bool_] | None,
        keep: Callable[[FloatArray], None] | None,
        every: int,
    ) -> None:
        self.features, self.watched, self.patience, self.verbose = features, watched, patience, verbose
        self.hidden, self.keep, self.every, self.chunks = hidden, keep, every, chunks
        self.forbidden = forbidden
        self.accuracies: list[float] = []
        self.f1_scores: list[float] = []
        self.best: FloatArray | None = None
        self.started = time.perf_counter()

    def __call__(self, iteration: int, value: float, weights: FloatArray) -> bool:
        said = ""
        if self.watched is not None:
            data, labels = self.watched
            paths, _ = chain_model(self.features, weights, self.forbidden).decode(data)
            found = paths // self.hidden
            self.accuracies.append(float((found == labels).mean()) if len(labels) else 0.0)
            said = f"  accuracy {self.accuracies[-1]:.5f}"
            if self.chunks is not None:
                encoder, true = self.chunks
                self.f1_scores.append(entity_report(true, encoder.inverse_transform(found, data.offsets)).f1)
                said += f"  F1 {self.f1_scores[-1]:.5f}"
            if self.patience is not None and self.scores[-1] >= max(self.scores):
                self.best = weights.copy()
        if self.verbose:
            seconds = time.perf_counter() - self.started
            sys.stdout.write(f"iteration {iteration:4d}  objective {value:.6f}{said}  {seconds:.1f} s\n")
        if self.keep is not None and iteration % self.every == 0:
            self.keep(weights)
        if self.patience is None:
            return False
        since = len(self.scores) - 1 - int(np.argmax(self.scores))
        return since >= self.patience

    @property
    def scores(self) -> list[float]:
        """What is to be high."""
        return self.accuracies if self.chunks is None else self.f1_scores


def train(
    features: ChainFeatures,
    data: Encoded,
    labels: npt.NDArray[np.int32],
    counts: FloatArray,
    start: FloatArray,
    *,
    weights: FloatArray | None,
    clamped: Clamped | None,
    watch: Watch,
    running: Running,
    settings: dict[str, Any],
) -> tuple[FloatArray, TrainingReport]:
    """Weights that fit labelled sequences, and how they were found."""
    started = time.perf_counter()
    solver = settings["solver"]
    if solver in ONLINE_SOLVERS:
        online = Online(
            features=features,
            data=data,
            labels=labels,
            weights=np.zeros(0) if weights is None else np.ascontiguousarray(weights, np.float64),
            l2=0.0 if solver in MARGIN_SOLVERS else settings["l2"],
            step=settings["step"],
            rng=settings["rng"],
            running=running,
            max_iterations=settings["max_iterations"] or PASSES[solver],
            tolerance=settings["tolerance"],
            period=settings["period"],
            callback=watch,
        )
        found, said = ONLINE_SOLVERS[solver](online, start)
    else:
        objective = ChainObjective(
            features, data, counts, l2=settings["l2"], weights=weights, clamped=clamped, running=running
        )
        # Between evaluations, threads of a matrix library would wait for more work and keep ours from theirs.
        with threadpool_limits(1, user_api="blas"):
            answer = minimise(
                objective,
                start,
                l1=settings["l1"],
                max_iterations=settings["max_iterations"] or 1000,
                tolerance=settings["tolerance"],
                period=settings["period"],
                callback=watch,
                n_jobs=running.n_jobs,
            )
        names = ("iterations", "converged", "message", "history")
        found, said = answer.weights, {"objective": answer.value, **{name: getattr(answer, name) for name in names}}
    if watch.best is not None:
        found = watch.best
    report = TrainingReport(
        solver=solver,
        seconds=time.perf_counter() - started,
        n_sequences=data.n_sequences,
        n_tokens=data.n_tokens,
        n_features=features.n_features,
        n_active=int(np.count_nonzero(found)),
        accuracies=tuple(watch.accuracies),
        f1_scores=tuple(watch.f1_scores),
        **said,
    )
    return found, report
