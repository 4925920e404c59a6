"""The voted perceptron with averaged weights (Collins 2002; Singla and Domingos 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.verbs import decode
from markovfield.learning.core.data import DataTable
from markovfield.learning.discriminative.truth import rows_of
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.undirected.fitting import penalty_of, reported
from markovfield.learning.undirected.problem import Problem, cell_counts
from markovfield.models import LogLinear

__all__ = ["VotedPerceptron"]


@dataclass(frozen=True)
class VotedPerceptron:
    """Climb along the features of the data less those of the best assignment, and average the weights on the way.

    Minimised is ``max over x of score(x) - score(data) + l1 |w|_1 + (l2/2) |w|^2``, summed over rows, by subgradients
    whose steps shrink: one decoding a step, no expectations. The best assignment stands for all others, which is right
    where the distribution is peaked at it; the weights say what wins, and are no estimate of a probability.

    Parameters
    ----------
    decoder
        ``"auto"``, or a method of `markovfield.decode`, such as ``"max_walk_sat"``.
    n_steps
        Steps.
    learning_rate
        Step t is ``learning_rate / sqrt(t)``, in units of one over what ``scaled`` says.
    scaled
        Whether each weight's steps are divided by its features in the data (at least one): weights of formulas with
        many true groundings would swing otherwise.
    averaged
        Whether the weights are the average over all steps.
    l2, l1, penalty
        As for `MaximumLikelihood`.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.LogLinear({"A": 2, "B": 2}, [["A", "B"]])
    >>> fitted = mf.fit(model, [[1, 1]], method=mf.methods.VotedPerceptron(n_steps=20))
    >>> mf.decode(fitted).states.tolist()
    [1, 1]
    """

    decoder: MethodLike = "auto"
    n_steps: int = 100
    learning_rate: float = 1.0
    scaled: bool = True
    averaged: bool = True
    l2: float = 0.0
    l1: float = 0.0
    penalty: Penalty | None = None

    name: ClassVar[str] = "voted_perceptron"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False
    group_l1: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_method(self, least={"n_steps": 1, "l2": 0, "l1": 0}, above={"learning_rate": 0})

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the averaged weights; when stopped early, with those so far."""
        problem = Problem(LogLinear.of(model), table, running)
        form = problem.model
        penalty = penalty_of(form, self, 1.0)
        rows = rows_of(problem, self.name)
        full = DataTable(problem.table.variables, problem.table.states, rows.states.T.astype(np.int16), rows.weights)
        truth = form.moments(cell_counts(problem.structure, full, running.quiet))
        rate = self.learning_rate / (np.maximum(np.abs(truth), 1.0) if self.scaled else max(problem.total, 1.0))
        w = np.array(form.parameters)
        total, seen, exact, mistakes = np.zeros(len(w)), 0, True, 0
        value, message = np.nan, f"{self.n_steps} steps"
        history: list[float] = []
        try:
            for t in range(1, self.n_steps + 1):
                with without_warnings():
                    best = decode(form.with_parameters(w), method=self.decoder, rng=rng, n_jobs=running.n_jobs)
                exact = exact and best.optimal
                one = DataTable(
                    problem.table.variables, problem.table.states, best.states[:, None].astype(np.int16),
                    np.array([problem.total]),
                )  # fmt: skip
                slope = form.moments(cell_counts(problem.structure, one, running.quiet)) - truth
                mistakes += bool(slope.any())
                value = float(w @ slope) + penalty.value(w)
                history.append(-value / problem.total)
                step = rate / np.sqrt(t)
                # Squares shrink implicitly: no step is too long for them.
                curvature = penalty.smooth(np.ones(len(w)))[1] - penalty.smooth(np.zeros(len(w)))[1]
                pull = penalty.smooth(np.zeros(len(w)))[1]
                away = (w - step * (slope + pull)) / (1.0 + step * curvature)
                w = penalty.prox(away, step / (1.0 + step * curvature))
                total, seen = total + w, seen + 1
                running.check(-value)
                if not slope.any() and not (penalty.has_l2 or penalty.has_l1) and not self.averaged:
                    message = "the data are the best assignment"
                    break
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        chosen = total / seen if self.averaged and seen else w
        notes = [f"the best assignment was not that of the data in {mistakes} of {seen} steps"]
        if not exact:
            notes.append("some decodings were not proven to be the best")
        notes.append("weights that make the data win: no estimate of probabilities")
        found = Minimum(
            chosen, value / problem.total, float("nan"), seen, seen, seen == self.n_steps or "best" in message, message,
            tuple(-v for v in history), running.seconds,
        )  # fmt: skip
        return reported(
            self, model, problem, found,
            log_likelihood=float("nan"),
            objective_name="the best score less that of the data, with penalties, at the last step",
            guarantee="approximate",
            notes=tuple(notes),
        )  # fmt: skip
