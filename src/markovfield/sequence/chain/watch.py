"""Training watched on a development set: which weights are best there, and when no better ones are to be expected."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.kernels.compilations import clock
from markovfield.sequence.chain.features import ChainFeatures, Encoded
from markovfield.sequence.chain.model import chain_model
from markovfield.sequence.text.entities import entity_report
from markovfield.sequence.text.labels import LabelEncoder

__all__ = ["EARLY", "METRICS", "SETTLED", "SETTLED_ONLINE", "Watch"]

Watched = tuple[Encoded, npt.NDArray[np.int32]]
Kept = tuple[FloatArray, int]
# What early stopping may go by; "auto" is the F1 of chunks where labels mark some, and accuracy elsewhere.
METRICS = ("auto", "accuracy", "f1")
# Early stopping begins when an iteration lowers the objective by less than the first number times itself, or times a
# share of its first value, the second number: before, scores go up and down by more than they have yet to gain, and the
# best of them is best by chance. A pass of an online solver moves more. Chosen by replaying curves of F1 on parts of
# the corpora of benchmarks/sequence/early_stopping.py: three times the first number of batch solvers ended up to 0.02
# below the converged run, half of it a few iterations later and no better.
SETTLED, SETTLED_ONLINE = (1e-3, 1e-2), (1e-2, 1e-1)
EARLY = "early stopping"


class Watch:
    """Looks at the development set after each iteration, keeps the best weights, and says when to stop.

    Scores count once they have moved, for a model that still says the same label everywhere has not begun, and once the
    objective has ``settled``, see `SETTLED`. Then it stops after ``patience`` iterations without a better score. One
    before that is kept only where it was better by more than two standard errors, as the best of many is by chance.

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
        settled: tuple[float, float],
    ) -> None:
        self.features, self.watched, self.patience, self.verbose = features, watched, patience, verbose
        self.hidden, self.keep, self.every, self.chunks = hidden, keep, every, chunks
        self.forbidden, self.settled = forbidden, settled
        self.accuracies: list[float] = []
        self.f1_scores: list[float] = []
        self.values: list[float] = []
        self.peak: Kept | None = None
        self.best: Kept | None = None
        self.begun = False
        self.waited = 0
        self.started = clock()

    def __call__(self, iteration: int, value: float, weights: FloatArray) -> bool:
        said = ""
        self.values.append(value)
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
            if self.patience is not None:
                self._weigh(iteration, weights)
        if self.verbose:
            seconds = clock() - self.started
            sys.stdout.write(f"iteration {iteration:4d}  objective {value:.6f}{said}  {seconds:.1f} s\n")
        if self.keep is not None and iteration % self.every == 0:
            self.keep(weights)
        return self.stopped

    @property
    def scores(self) -> list[float]:
        """What is to be high."""
        return self.accuracies if self.chunks is None else self.f1_scores

    @property
    def stopped(self) -> bool:
        """Whether patience is over."""
        return self.patience is not None and self.waited >= self.patience

    def _weigh(self, iteration: int, weights: FloatArray) -> None:
        """Remember the weights where none were better, and see how long that has not been so."""
        scores, falling = self.scores, self._falling()
        if self.peak is None or scores[-1] >= scores[self.peak[1] - 1]:
            self.peak = (weights.copy(), iteration)
        moved = any(score != scores[0] for score in scores)
        self.begun = self.begun or (moved and not falling)
        if not self.begun:
            return
        before = -np.inf if self.best is None else scores[self.best[1] - 1]
        if scores[-1] >= before:
            self.best = self.peak if self.peak[1] == iteration else (weights.copy(), iteration)
        if scores[-1] > before:
            self.waited = 0
        elif not falling:
            self.waited += 1

    def _falling(self) -> bool:
        """Whether the last iteration lowered the objective by much."""
        if len(self.values) < 2:
            return True
        share, lowest = self.settled
        return self.values[-2] - self.values[-1] > share * max(abs(self.values[-1]), lowest * abs(self.values[0]))

    def chosen(self, last: FloatArray) -> Kept:
        """The weights to keep and their iteration, given the last ones; iteration 0 without early stopping."""
        if self.peak is None:
            return last, 0
        kept = self.best or (last, len(self.scores))
        score, peak = self.scores[kept[1] - 1], self.scores[self.peak[1] - 1]
        error = np.sqrt(score * (1.0 - score) / max(self._n_scored(), 1))
        return self.peak if peak > score + 2 * error else kept

    def _n_scored(self) -> int:
        """How many chunks, or tokens, a score is the share of."""
        if self.chunks is None:
            return 0 if self.watched is None else len(self.watched[1])
        return entity_report(self.chunks[1], self.chunks[1]).n_true

    def ending(self, kept: int) -> str:
        """Why it said so, for the report."""
        name = "accuracy" if self.chunks is None else "F1"
        return (
            f"{EARLY} after {len(self.scores)} iterations: kept the weights of iteration {kept}, with {name} "
            f"{self.scores[kept - 1]:.4f} on the development set"
        )
