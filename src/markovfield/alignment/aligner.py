"""What the generative models of alignments share: expectation-maximisation, links, posteriors, saving."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import number, whole_number
from markovfield.alignment.links import links_above
from markovfield.alignment.sentences import EncodedPairs, checked_pairs
from markovfield.alignment.translation import TranslationTable
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike, read_archive, write_archive
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.report import FitReport
from markovfield.progress import shows_progress
from markovfield.structures.core.family import shard_borders

__all__ = ["Aligner", "Links"]

VERSION = 1
Links = list[tuple[int, int]]
NONE = np.zeros(0)
# Shards of the E step, each with counts of its own, so that sums do not depend on threads; small corpora have one.
SHARDS = 4
SMALL = 2e6


class Aligner(BaseEstimator):
    """A model of target sentences given source sentences, whose alignments are hidden; learnt by EM.

    Subclasses say how positions are chosen. Pairs are ``(source words, target words)``, links ``(i, j)`` are positions
    of a source and of a target word, from 0, and every target word has one link at most.
    """

    iterations: int
    null_probability: float | str
    smoothing: float
    n_jobs: int | None
    table_: TranslationTable
    positions_: Any
    report_: FitReport
    _learns_positions: ClassVar[bool] = True

    @abstractmethod
    def _start(self, pairs: EncodedPairs) -> Any:
        """Parameters of positions to begin with."""

    @abstractmethod
    def _plan(self, pairs: EncodedPairs, positions: Any) -> tuple[FloatArray, IntArray]:
        """Positions as kernels read them: probabilities, and where those of a sentence (or length) begin."""

    @abstractmethod
    def _updated(self, pairs: EncodedPairs, positions: Any, plan: tuple[FloatArray, IntArray], counts: Any) -> Any:
        """Parameters of positions that fit expected counts."""

    @property
    @abstractmethod
    def _kernels(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """What computes expectations, and what finds the best alignment."""

    @abstractmethod
    def _positions_described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Parameters of positions for an archive: plain values, and vectors."""

    @abstractmethod
    def _positions_restored(self, about: dict[str, Any], arrays: dict[str, Any]) -> Any:
        """Parameters of positions from an archive."""

    def _null(self) -> float:
        """The probability of none; -1 where it is that of every source word."""
        if isinstance(self.null_probability, str):
            if self.null_probability != "uniform":
                raise ModelError(f"null_probability must be a number or 'uniform', got {self.null_probability!r}")
            return -1.0
        if not number(self.null_probability, "null_probability", least=0.0) < 1.0:
            raise ModelError(f"null_probability must be below 1, got {self.null_probability}")
        return float(self.null_probability)

    @shows_progress
    def fit(
        self,
        pairs: Any,
        y: Any = None,
        *,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> Any:
        """Learn from sentence pairs; y is not looked at.

        Parameters
        ----------
        pairs
            A list of ``(source words, target words)``.
        time_limit, callback, progress
            When to stop with the model so far, who is told of every iteration (with the objective), and whether a line
            shows how it goes.
        """
        running = Running(self.n_jobs, time_limit, callback)
        given = checked_pairs(pairs)
        self._check()
        table, encoded, _ = TranslationTable.over(given)
        return self._learn(table, encoded, running)

    def _check(self) -> None:
        """Check settings."""
        whole_number(self.iterations, "iterations", 1)
        number(self.smoothing, "smoothing", least=0.0)
        self._null()

    def _learn(self, table: TranslationTable, encoded: EncodedPairs, running: Running) -> Any:
        """EM from a table."""
        planned = running.seconds
        positions = self._start(encoded)
        history: list[float] = []
        message = "all iterations done"
        likelihood = float("nan")
        done = 0
        try:
            for step in range(self.iterations + 1):
                plan = self._plan(encoded, positions)
                # The last pass is for the likelihood of what was learnt.
                counts, log_likelihoods = self._expected(encoded, table, plan, running, step < self.iterations)
                likelihood = float(log_likelihoods.sum())
                history.append(likelihood + table.log_prior(self.smoothing))
                running.check(history[-1])
                if step == self.iterations:
                    break
                table = table.updated(counts[0], counts[1], self.smoothing)
                positions = self._updated(encoded, positions, plan, counts[2])
                done = step + 1
        except STOPS as stop:
            if isinstance(stop, KeyboardInterrupt):
                raise
            # A model that starts from this one stops as well.
            running.remember(stop)
            message = str(stop)
        self.table_, self.positions_ = table, positions
        seconds = running.seconds
        self.report_ = FitReport(
            method="em",
            log_likelihood=likelihood,
            n_rows=len(encoded),
            total_weight=float(len(encoded)),
            n_parameters=len(table.values) + len(table.null_values),
            converged=done == self.iterations,
            iterations=done,
            message=message,
            history=tuple(history),
            seconds=seconds,
            planning_seconds=planned,
            details={"n_cells": len(encoded.arrays.cells), "seconds_per_iteration": (seconds - planned) / max(done, 1)},
        )
        return self

    def _expected(
        self,
        pairs: EncodedPairs,
        table: TranslationTable,
        plan: tuple[FloatArray, IntArray],
        running: Running,
        counted: bool,
        posteriors: FloatArray = NONE,
    ) -> tuple[list[FloatArray], FloatArray]:
        """Expected counts (none unless ``counted``) and the log-likelihood of each pair."""
        work = np.diff(pairs.arrays.cell_offsets).astype(np.float64)
        borders = shard_borders(work, max(work.sum() / SHARDS, SMALL) + 1.0)
        shards = list(pairwise(borders))
        log_likelihoods, null = np.empty(len(pairs)), self._null()
        sizes = (len(table.values), len(table.target), len(plan[0]) * self._learns_positions)
        sizes = sizes if counted else (0, 0, 0)
        found = [tuple(np.zeros(size) for size in sizes) for _ in shards]
        arrays, expectations = tuple(pairs.arrays), self._kernels[0]

        def task(k: int) -> int:
            expectations(arrays, table.arrays, *plan, null, *shards[k], found[k], posteriors, log_likelihoods)
            return 0

        running.quiet.side_by_side([lambda k=k: task(k) for k in range(len(shards))])  # type: ignore[misc]
        total = [own[0] if len(own) == 1 else np.sum(own, axis=0) for own in zip(*found, strict=True)]
        return total, log_likelihoods

    def _asked(self, pairs: Any) -> tuple[EncodedPairs, tuple[FloatArray, IntArray]]:
        check_is_fitted(self, "table_")
        encoded = self.table_.encoded(checked_pairs(pairs))
        return encoded, self._plan(encoded, self.positions_)

    def predict(self, pairs: Any, *, threshold: float | None = None) -> list[Links]:
        """The links of each pair.

        Parameters
        ----------
        pairs
            Sentence pairs; words and pairs of words that training never had are as likely as smoothing makes them.
        threshold
            None: the likeliest alignment as a whole. Otherwise all links of at least such a posterior probability.
        """
        if threshold is not None:
            return links_above(self.predict_marginals(pairs), threshold)
        encoded, plan = self._asked(pairs)
        best = np.empty(len(encoded.arrays.targets), np.int64)
        self._kernels[1](tuple(encoded.arrays), self.table_.arrays, *plan, self._null(), 0, len(encoded), best)
        offsets = encoded.arrays.target_offsets.tolist()
        chosen = best.tolist()
        return [sorted((i, j) for j, i in enumerate(chosen[a:b]) if i >= 0) for a, b in pairwise(offsets)]

    def predict_marginals(self, pairs: Any) -> list[FloatArray]:
        """For each pair ``float64[source words, target words]``: the posterior probability of each link."""
        encoded, plan = self._asked(pairs)
        posteriors = np.empty(len(encoded.arrays.cells))
        self._expected(encoded, self.table_, plan, Running(self.n_jobs), False, posteriors)
        return encoded.matrices(posteriors)

    def log_likelihood(self, pairs: Any) -> FloatArray:
        """``float64[n]``: log p(target words | source words, number of target words), alignments summed out."""
        encoded, plan = self._asked(pairs)
        return self._expected(encoded, self.table_, plan, Running(self.n_jobs), False)[1]

    def score(self, pairs: Any, links: Any) -> float:
        """1 less the alignment error rate of `predict`."""
        from markovfield.alignment.scoring import alignment_error_rate

        return 1.0 - alignment_error_rate(links, self.predict(pairs))

    def translations(self, word: str, n: int = 10) -> list[tuple[str, float]]:
        """The likeliest target words of a source word, with their probabilities."""
        check_is_fitted(self, "table_")
        return self.table_.translations(word, n)

    def save(self, path: PathLike) -> None:
        """Save the model; `markovfield.load` reads it. An interrupted save leaves the file that was there."""
        write_archive(path, VERSION, *self.described())

    def described(self, prefix: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
        """The fitted model as an archive holds it: plain values, and vectors."""
        check_is_fitted(self, "table_")
        about, arrays = self._positions_described()
        own = {"class": type(self).__name__, "settings": self.get_params(deep=False), "positions": about}
        return own, {**self.table_.described(prefix), **{f"{prefix}{name}": array for name, array in arrays.items()}}

    @classmethod
    def load(cls, path: PathLike) -> Any:
        """Load a model that `save` wrote; nothing in the file is ever executed."""
        return read_archive(path, VERSION, cls.from_archive)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, Any], prefix: str = "") -> Any:
        """The model that an archive describes."""
        settings, positions = about.get("settings"), about.get("positions")
        if about.get("class") != cls.__name__ or not isinstance(settings, dict) or not isinstance(positions, dict):
            raise FormatError(f"it holds a {about.get('class')!r}, not a {cls.__name__} with its settings")
        try:
            found = cls(**settings)
            found._check()
        except (TypeError, ModelError) as error:
            raise FormatError(f"its settings do not fit: {error}") from None
        found.table_ = TranslationTable.restored(arrays, prefix)
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        found.positions_ = found._positions_restored(positions, own)
        return found
