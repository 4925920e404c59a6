"""Max-margin weights of undirected models (Taskar et al. 2003; Huynh and Mooney 2009 for Markov logic)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.discriminative.assignment_hinge import AssignmentHinge
from markovfield.learning.discriminative.truth import rows_of
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.learning.max_margin.frank_wolfe import FrankWolfe
from markovfield.learning.max_margin.subgradient import Subgradient
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.undirected.fitting import reported
from markovfield.learning.undirected.problem import Problem
from markovfield.models import LogLinear

__all__ = ["MaxMargin"]

SOLVERS: dict[str, Any] = {
    "block_frank_wolfe": BlockFrankWolfe,
    "bcfw": BlockFrankWolfe,
    "cutting_plane": CuttingPlane,
    "frank_wolfe": FrankWolfe,
    "subgradient": Subgradient,
}


@dataclass(frozen=True)
class MaxMargin:
    """Weights by which the data score higher than any other assignment, by a margin as large as what that gets wrong.

    Minimised is ``max over x of [loss(x) + score(x) - score(data)] + l1 |w|_1 + (l2/2) |w|^2``, summed over rows and
    connected components; the loss of x is the number of variables that differ. The solvers are those of structural
    SVMs, with a proven gap where every decoding is exact. Nothing is summed over: one decoding for each row and step.

    Parameters
    ----------
    l2, l1
        Penalties; l2 must be positive, as it is what margins are measured by.
    solver
        ``"block_frank_wolfe"``, ``"cutting_plane"``, ``"frank_wolfe"``, ``"subgradient"``, or such an object.
    decoder
        ``"auto"``, or a method of `markovfield.decode`, which finds the assignments that violate margins most.
    loss
        What a variable costs that has another state than in the data.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.LogLinear({"A": 2, "B": 2}, [["A", "B"]])
    >>> fitted = mf.fit(model, [[1, 1]], method=mf.methods.MaxMargin(l2=0.1))
    >>> mf.decode(fitted).states.tolist(), fitted.fit_report.converged
    ([1, 1], True)
    """

    l2: float = 1.0
    l1: float = 0.0
    solver: Any = "block_frank_wolfe"
    decoder: MethodLike = "auto"
    loss: float = 1.0

    name: ClassVar[str] = "max_margin"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self, least={"l1": 0, "loss": 0}, above={"l2": 0})
        self._solver()

    def _solver(self) -> Any:
        chosen = SOLVERS.get(self.solver) if isinstance(self.solver, str) else self.solver
        if isinstance(chosen, type):
            chosen = chosen()
        if chosen is None or getattr(chosen, "name", None) not in SOLVERS or not hasattr(chosen, "run"):
            raise ModelError(
                f"solver of MaxMargin must be one of {', '.join(SOLVERS)}, or such an object, got {self.solver!r}"
            )
        return chosen

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated parameters; when stopped early, with the best so far."""
        problem = Problem(LogLinear.of(model), table, running)
        rows = rows_of(problem, self.name)
        hinge = AssignmentHinge(problem, rows, self.l2, self.l1, self.decoder, self.loss, rng)
        found = self._solver().run(hinge, rng=rng, running=running)
        scale = self.l2 / problem.total
        notes = ["weights that separate: no estimate of probabilities"]
        if not found.exact:
            notes.append("some decodings were not proven to be the best: the gap is an estimate")
        if np.isfinite(found.dual):
            notes.append(f"the objective is at most {max(found.gap, 0.0):.2g} of itself above the least there is")
        minimum = Minimum(
            found.weights, found.primal * scale, float("nan"), found.passes, found.oracle_calls, found.converged,
            found.message, tuple(p.primal * scale for p in found.history if np.isfinite(p.primal)), found.seconds,
        )  # fmt: skip
        return reported(
            self, model, problem, minimum,
            log_likelihood=float("nan"),
            objective_name="hinges with penalties",
            guarantee="approximate",
            notes=tuple(notes),
        )  # fmt: skip
