"""Training a linear chain: which solver, when to stop, what to report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.inference.running import Running
from markovfield.learning.quasi_newton import minimise
from markovfield.structured.chain_features import ChainFeatures
from markovfield.structured.chain_model import ChainModel, Encoded
from markovfield.structured.chain_objective import ChainObjective

__all__ = ["SOLVERS", "TrainingReport", "train"]

FloatArray = npt.NDArray[np.float64]
Watched = tuple[Encoded, npt.NDArray[np.int32]] | None


@dataclass(frozen=True)
class TrainingReport:
    """How training went.

    Attributes
    ----------
    objective
        What was minimised, at the end.
    history
        The same after each iteration.
    accuracies
        Share of right labels on the development set after each iteration, where there is one.
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

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {**asdict(self), "history": list(self.history), "accuracies": list(self.accuracies)}

    def __str__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return (
            f"{self.solver}: objective {self.objective:.8g} after {self.iterations} iterations in {self.seconds:.3g} s "
            f"({end}: {self.message}); {self.n_active} of {self.n_features} weights are not zero"
        )


class Watch:
    """Looks at the development set after each iteration, keeps the best weights, and says when to stop."""

    def __init__(self, features: ChainFeatures, watched: Watched, patience: int | None, verbose: bool) -> None:
        self.features, self.watched, self.patience, self.verbose = features, watched, patience, verbose
        self.accuracies: list[float] = []
        self.best: FloatArray | None = None
        self.started = time.perf_counter()

    def __call__(self, iteration: int, value: float, weights: FloatArray) -> bool:
        said = ""
        if self.watched is not None:
            data, labels = self.watched
            paths, _ = ChainModel(self.features, weights).decode(data)
            self.accuracies.append(float((paths == labels).mean()) if len(labels) else 0.0)
            said = f"  accuracy {self.accuracies[-1]:.5f}"
            if self.patience is not None and self.accuracies[-1] >= max(self.accuracies):
                self.best = weights.copy()
        if self.verbose:
            seconds = time.perf_counter() - self.started
            sys.stdout.write(f"iteration {iteration:4d}  objective {value:.6f}{said}  {seconds:.1f} s\n")
        if self.patience is None:
            return False
        since = len(self.accuracies) - 1 - int(np.argmax(self.accuracies))
        return since >= self.patience


def _batch(
    objective: ChainObjective, start: FloatArray, watch: Watch, settings: dict[str, Any]
) -> tuple[FloatArray, dict[str, Any]]:
    """L-BFGS, or OWL-QN where there is an l1 penalty."""
    found = minimise(
        objective,
        start,
        l1=settings["l1"],
        max_iterations=settings["max_iterations"] or 1000,
        tolerance=settings["tolerance"],
        period=settings["period"],
        callback=watch,
    )
    return found.weights, {
        "objective": found.value,
        "iterations": found.iterations,
        "converged": found.converged,
        "message": found.message,
        "history": found.history,
    }


SOLVERS: dict[str, Callable[..., tuple[FloatArray, dict[str, Any]]]] = {"lbfgs": _batch, "owlqn": _batch}


def train(
    features: ChainFeatures,
    data: Encoded,
    labels: npt.NDArray[np.int32],
    counts: FloatArray,
    start: FloatArray,
    *,
    weights: FloatArray | None,
    watched: Watched,
    running: Running,
    **settings: Any,
) -> tuple[FloatArray, TrainingReport]:
    """Weights that fit labelled sequences, and how they were found."""
    started = time.perf_counter()
    watch = Watch(features, watched, settings["early_stopping"], settings["verbose"])
    objective = ChainObjective(
        features, data.tokens, data.offsets, counts, l2=settings["l2"], weights=weights, running=running
    )
    found, said = SOLVERS[settings["solver"]](objective, start, watch, settings)
    if watch.best is not None:
        found = watch.best
    report = TrainingReport(
        solver=settings["solver"],
        seconds=time.perf_counter() - started,
        n_sequences=data.n_sequences,
        n_tokens=int(data.offsets[-1]),
        n_features=features.n_features,
        n_active=int(np.count_nonzero(found)),
        accuracies=tuple(watch.accuracies),
        **said,
    )
    return found, report
