"""Latent structural SVMs by the concave-convex procedure (Murphy 19.7.5, algorithm 19.5; Yu and Joachims 2009)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from markovfield._validation import generator_of, number, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import STOPS, Running
from markovfield.structured.core.conditional import example_weights
from markovfield.structured.core.model import StructuredModel
from markovfield.structured.core.reading import example_count
from markovfield.structured.estimator import StructuredEstimator
from markovfield.structured.losses.hidden import HiddenLoss
from markovfield.structured.losses.loss import loss_of
from markovfield.structured.margin_estimator import MarginEstimator
from markovfield.structured.margin_fit import Development, fit_planes, hinges_at
from markovfield.structured.margin_report import MarginReport
from markovfield.structured.margin_training import SHARDS
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.models.latent import LatentModel
from markovfield.structured.objectives.hinge import Hinge
from markovfield.structured.prediction import best_outputs
from markovfield.structured.settings import TrainingSettings

__all__ = ["LatentSSVM", "concave_convex"]

# A round that lowers the objective by less than this share is the last.
ENOUGH = 1e-4


def concave_convex(
    completed: Callable[[FloatArray], list[Any]],
    objective: Hinge,
    weights: FloatArray,
    start: FloatArray,
    *,
    C: float,
    solver: Any,
    rounds: int,
    pace: float | None,
    rng: np.random.Generator,
    running: Running,
) -> tuple[FloatArray, MarginReport]:
    """Weights of a local minimum of ``1/2 |w|^2 + C sum_i [max_{y, h} (loss + score) - max_h score of the truth]``.

    A round fills in what is hidden by the best states at the weights so far, ``completed``, and minimises the convex
    bound that makes; the objective never rises, as the bound touches it there. With a ``pace`` the first round has only
    the half of examples with the lowest hinges, and each later one more of them by that factor (self-paced learning,
    Kumar, Packer and Koller 2010); from where all are in, the objective never rises.
    """
    w, report = start, None
    values: list[float] = []
    share = 1.0 if pace is None else 0.5
    message, calls, seconds = "as many rounds as were allowed", 0, 0.0
    try:
        for _ in range(rounds):
            batches = completed(w)
            hinges = hinges_at(objective, batches, w, running)
            value = 0.5 * float(w @ w) + C * float(weights @ hinges)
            if share >= 1.0:
                if values and value > (1.0 - ENOUGH) * values[-1]:
                    values.append(value)
                    message = f"a round lowered the objective by less than {100 * ENOUGH:g} % of it"
                    break
                values.append(value)
            given = weights
            if share < 1.0:
                easy = np.argsort(hinges, kind="stable")[: max(1, round(share * len(hinges)))]
                given = np.zeros(len(weights))
                given[easy] = weights[easy]
                if not given.any():
                    given = weights
            new, own = fit_planes(objective, batches, given, C=C, solver=solver, rng=rng, running=running)
            calls, seconds = calls + own.oracle_calls, seconds + own.oracle_seconds
            if share >= 1.0 and own.primal > value:
                # The solver ended above where it began, by its gap: what there is stays.
                message = "a round lowered the objective by less than the gap of the solver"
                report = own if report is None else report
                break
            w, report = new, own
            share = min(1.0, share * (pace or 1.0))
    except STOPS as stop:
        message = str(stop) or "stopped by the keyboard"
    if report is None:
        raise ModelError(f"there are no weights yet: training was stopped in its first round ({message})")
    batches = completed(w)
    value = 0.5 * float(w @ w) + C * float(weights @ hinges_at(objective, batches, w, running))
    if share >= 1.0 and (not values or value != values[-1]):
        values.append(value)
    return w, replace(
        report, primal=value, dual=float("nan"), rounds=tuple(values), message=message,
        converged=message.startswith("a round"), oracle_calls=calls, oracle_seconds=seconds, objective=value / C,
        iterations=len(values), seconds=running.seconds, n_rows=len(weights), total_weight=float(weights.sum()),
        history=tuple(-one / C for one in values), guarantee="approximate",
        solver_seconds=max(running.seconds - seconds, 0.0),
        notes=(*report.notes, "a local minimum: passes, planes and gap of each round are those of its convex bound"),
    )  # fmt: skip


@dataclass(eq=False, repr=False)
class LatentSSVM(TrainingSettings, StructuredEstimator, MarginEstimator):
    """A structural SVM whose labels stand for hidden states, by the concave-convex procedure (algorithm 19.5).

    Parameters
    ----------
    C, loss, rescaling, solver, decoding, batch_size, rng, n_jobs
        As those of `GraphSSVM`; the loss must add up over labels. The solver is that of each round.
    model
        What the hidden states are joined by: `GraphModel` when None; any model with one set of labels.
    n_hidden
        Hidden states of each label.
    spread
        Standard deviation of the weights that training starts from; the objective is not convex.
    rounds
        At most so many times what is hidden is filled in.
    pace
        None, or by what factor the examples that count become more from round to round, the easiest first (self-paced).
    n_starts
        The best of so many starts is kept.

    Attributes
    ----------
    report_ : MarginReport
        That of the last round; ``report_.rounds`` has the objective before each round, which never rises.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> X, y = np.array([[-1.0], [-0.9], [0.0], [0.1], [1.0], [0.9]]), ["out", "out", "in", "in", "out", "out"]
    >>> svm = LatentSSVM(100.0, model=mf.structured.MulticlassModel(), n_hidden=2, n_starts=5, rng=0).fit(X, y)
    >>> svm.predict(X).tolist()
    ['out', 'out', 'in', 'in', 'out', 'out']
    """

    early_stopping = None
    # Its scores are those of the best hidden states, and so are its predictions.
    sums_hidden = False

    C: float = 1.0
    _: KW_ONLY
    model: StructuredModel | None = None
    n_hidden: int = 2
    spread: float = 0.1
    rounds: int = 30
    pace: float | None = None
    n_starts: int = 1
    loss: Any = "hamming"
    rescaling: str = "margin"
    decoding: MethodLike = "auto"

    def _model(self) -> StructuredModel:
        return LatentModel(GraphModel() if self.model is None else self.model, self.n_hidden, self.spread)

    def _trained(
        self, model: Any, objective: Hinge, data: Any, *, C: float, l1: float, running: Running,
        development: Development | None,
    ) -> tuple[FloatArray, MarginReport]:  # fmt: skip
        if development is not None:
            raise ModelError("LatentSSVM takes no development set: leave X_dev and y_dev None")
        X, Y, sample_weight = data
        n, rng = example_count(X, Y), generator_of(self.rng)
        pace = None if self.pace is None else number(self.pace, "pace of LatentSSVM", above=1.0)
        rounds = whole_number(self.rounds, "rounds", 1)
        weights = np.ones(n) if sample_weight is None else example_weights(sample_weight, n)
        size = -(-n // SHARDS) if self.batch_size is None else whole_number(self.batch_size, "batch_size", 1)
        parts = [slice(a, a + size) for a in range(0, n, size)]
        batches = model.encode_parts(X, Y, parts)
        own = loss_of(self.loss).resolved(model.classes)
        objective = replace(objective, loss=HiddenLoss(own, self.n_hidden))

        def completed(w: FloatArray) -> list[Any]:
            return [
                replace(batch, labels=best_outputs(batch, w, self.decoding, running.quiet)[0], possible=None)
                for batch in batches
            ]

        best: Any = None
        for _ in range(whole_number(self.n_starts, "n_starts", 1)):
            found = concave_convex(
                completed, objective, weights, model.start(rng), C=C, solver=self.solver, rounds=rounds, pace=pace,
                rng=rng, running=running,
            )  # fmt: skip
            if best is None or found[1].primal < best[1].primal:
                best = found
            if not running.still:
                break
        w, report = best
        return w, replace(report, loss=own.name)
