"""What named structural SVMs share: C in place of penalties, a loss, a development set."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.kernel_expansion import InputKernel
from markovfield.progress import shows_progress
from markovfield.structured.conditional_estimator import ConditionalEstimator
from markovfield.structured.core.reading import example_count
from markovfield.structured.kernel_fit import check_kernel, kernel_solver, train_by_kernel
from markovfield.structured.losses.labels import weighted_hamming
from markovfield.structured.margin_fit import Development, checked_cost, checked_l1, train_by_margin
from markovfield.structured.margin_report import MarginReport
from markovfield.structured.models.graph import interaction_states
from markovfield.structured.objectives.hinge import Hinge

__all__ = ["MarginEstimator"]


class MarginEstimator(ConditionalEstimator):
    """A structural SVM of any conditional model: ``1/2 |w|^2 + C sum of hinges`` is minimised; see `GraphSSVM`."""

    C: float
    loss: Any
    rescaling: str
    class_weight: Any = None
    l1: float = 0.0
    associative: bool = False
    kernel: Any = "linear"
    gamma: Any = "scale"
    decoding: MethodLike = "auto"
    # Marginals take scores for log-potentials.
    inference: MethodLike = "auto"
    early_stopping: int | None
    report_: MarginReport

    @shows_progress
    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        X_dev: Any = None,
        y_dev: Any = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> Any:
        """Learn weights from inputs and outputs.

        Parameters
        ----------
        X, y
            A list of inputs, and as many outputs, all of them known.
        sample_weight
            What each example weighs; one when None.
        X_dev, y_dev
            Examples to watch one less the `score` on.
        time_limit, callback, progress
            When to stop with the weights so far, who is told of every call of the oracle, and whether a line shows how
            it goes.
        """
        running, C = Running(self.n_jobs, time_limit, callback), checked_cost(self.C, type(self).__name__)
        patience = None if self.early_stopping is None else whole_number(self.early_stopping, "early_stopping", 1)
        if (X_dev is None) != (y_dev is None):
            raise ModelError("a development set needs both X_dev and y_dev")
        if patience is not None and X_dev is None:
            raise ModelError("early_stopping needs a development set: pass X_dev and y_dev to fit")
        l1 = checked_l1(self.l1, type(self).__name__)
        kernel = check_kernel(self, {"l1": 0.0, "associative": False, "early_stopping": None}, type(self).__name__)
        if kernel and X_dev is not None:
            raise ModelError(
                f"{type(self).__name__} with a kernel takes no development set: leave X_dev and y_dev None"
            )
        objective = Hinge(self._loss(), self.rescaling, self.decoding)
        example_count(X, y)
        model: Any = self._model().shaped(X, y)
        if self.class_weight is not None:
            labels = model.visible_labels(y, model.inputs(X))
            counts = np.bincount(labels[labels >= 0], minlength=len(model.classes))
            objective = replace(
                objective, loss=weighted_hamming(self.loss, self.class_weight, counts, type(self).__name__)
            )
        if self.associative:
            objective = replace(objective, **_associative(model, X, self.decoding, type(self).__name__))
        if kernel:
            self.model_, self.weights_, self.report_ = self._by_kernel(
                model, objective, (X, y, sample_weight), C=C, running=running
            )
            return self
        development = None
        if X_dev is not None:
            watched = copy(self)
            watched.model_ = model

            def share_wrong(w: FloatArray) -> float:
                watched.weights_ = w
                return 1.0 - float(watched.score(X_dev, y_dev))  # type: ignore[attr-defined]

            development = Development(share_wrong, patience)
        weights, report = self._trained(
            model, objective, (X, y, sample_weight), C=C, l1=l1, running=running, development=development
        )
        self.model_, self.weights_, self.report_ = model, weights, report
        return self

    def _loss(self) -> Any:
        """What mistakes cost."""
        return self.loss

    def _by_kernel(
        self, model: Any, objective: Hinge, data: Any, *, C: float, running: Running
    ) -> tuple[Any, FloatArray, MarginReport]:
        who = type(self).__name__
        return train_by_kernel(
            model, objective, data, lambda rows, constant: InputKernel.of(self.kernel, self.gamma, rows, constant, who),
            C=C, solver=kernel_solver(self.solver, who), rng=generator_of(self.rng), running=running,
            batch_size=None if self.batch_size is None else whole_number(self.batch_size, "batch_size", 1),
        )  # fmt: skip

    def _trained(
        self, model: Any, objective: Hinge, data: Any, *, C: float, l1: float, running: Running,
        development: Development | None,
    ) -> tuple[FloatArray, MarginReport]:  # fmt: skip
        return train_by_margin(
            model, objective, data, C=C, solver=self.solver, batch_size=self.batch_size, rng=generator_of(self.rng),
            running=running, development=development, l1=np.full(model.n_weights, l1),
        )  # fmt: skip


def _associative(model: Any, X: Any, decoding: MethodLike, who: str) -> dict[str, Any]:
    """What a hinge is told where neighbours must attract each other; errors where they then need not."""
    single = ("nodes", "pixels", "scores")
    joined = tuple(name for name in model.layout if name not in single)
    equal: Any = interaction_states("equal", len(model.classes))
    for template in model.templates():
        states = template.states
        if template.name in joined and (states is None or not np.array_equal(states, equal)):
            raise ModelError(f"associative=True of {who} needs interaction='equal'")
    for name, placed in model.inputs(X).placed.items():
        if name in joined and placed.features is not None and placed.features.min() < 0:
            raise ModelError(f"associative=True of {who} needs features of {name} that are not negative")
    cuts = decoding == "auto" and len(model.classes) == 2
    return {"nonnegative": joined, **({"decoding": "graph_cut"} if cuts else {})}
