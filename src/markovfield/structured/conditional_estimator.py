"""What estimators of all conditional models share: training, weights, saving."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike
from markovfield.inference.core.running import Running
from markovfield.learning.core.report import FitReport
from markovfield.progress import shows_progress
from markovfield.structured.archive import from_archive, load_structured, save_structured
from markovfield.structured.core.conditional import ConditionalModel
from markovfield.structured.core.reading import example_count
from markovfield.structured.objectives.registry import MARGINS, objective_of
from markovfield.structured.training import penalty_of, train

__all__ = ["ConditionalEstimator"]


class ConditionalEstimator(BaseEstimator):
    """A model, an objective and a solver, trained and saved as one; see `StructuredClassifier` for the settings."""

    objective: Any
    solver: Any
    l2: float | Mapping[str, float]
    l1: float | Mapping[str, float]
    batch_size: int | None
    rng: Any
    n_jobs: int | None
    model_: Any
    weights_: FloatArray
    report_: FitReport

    @abstractmethod
    def _model(self) -> ConditionalModel:
        """The model with its settings, before it has seen data."""

    @shows_progress
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        init: FloatArray | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> Any:
        """Learn weights from inputs and outputs.

        Parameters
        ----------
        X, y
            A list of inputs, and as many outputs. A label that is not known is None; objectives that sum over what is
            hidden take it (``"likelihood"``).
        sample_weight
            What each example weighs; one when None.
        init
            Weights to start from, as ``weights_`` of an earlier fit.
        time_limit, callback, progress
            When to stop with the weights so far, who is told of every iteration, and whether a line shows how it goes.
        """
        objective = objective_of(self._chosen_objective(), getattr(self, "inference", "auto"))
        if objective.name in MARGINS and objective.decoding == "auto":
            objective = replace(objective, decoding=getattr(self, "decoding", "auto"))
        running = Running(self.n_jobs, time_limit, callback)
        if y is None:
            raise ModelError("y must be a list with an entry for each example, got None")
        example_count(X, y)
        model = self._model().shaped(X, y)
        weights, report, wide_inference = train(
            model,
            objective,
            (X, y, sample_weight),
            solver=self._chosen_solver(objective),
            penalty=penalty_of(model, self.l2, self.l1, getattr(self, "group_l1", 0.0)),
            batch_size=self.batch_size,
            init=init,
            rng=generator_of(self.rng),
            running=running,
        )
        self.model_ = model.with_shape(replace(model.known, wide_inference=wide_inference))
        self.weights_, self.report_ = weights, report
        return self

    def _chosen_objective(self) -> Any:
        """The objective; estimators for whose outputs a name means something of its own change this."""
        return self.objective

    def _chosen_solver(self, objective: Any) -> Any:
        """The solver of an objective; estimators with a default of their own change this."""
        return self.solver

    @property
    def classes_(self) -> list[Any]:
        """The labels, sorted."""
        check_is_fitted(self, "model_")
        return list(self.model_.classes)

    @property
    def coef_(self) -> dict[str, FloatArray]:
        """The weights by kind of factor: features (or tables) by features of states."""
        check_is_fitted(self, "model_")
        return self.model_.named_weights(self.weights_)

    def save(self, path: PathLike) -> None:
        """Save the estimator; `markovfield.load` reads it. An interrupted save leaves the file that was there."""
        check_is_fitted(self, "model_")
        save_structured(self, path)

    @classmethod
    def load(cls, path: PathLike) -> Any:
        """Load an estimator that `save` wrote; nothing in the file is ever executed."""
        found = load_structured(path)
        if not isinstance(found, cls):
            raise FormatError(f"{path}: this archive holds a {type(found).__name__}, not a {cls.__name__}")
        return found

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, Any]) -> Any:
        """The estimator that an archive describes."""
        return from_archive(about, arrays)
