"""How max-margin training went: primal, dual and gap, calls of the oracle, and where the time went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.learning.core.report import FitReport
from markovfield.learning.max_margin.problem import MarginMinimum, MarginPass

__all__ = ["MarginReport"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MarginReport(FitReport):
    """How max-margin training went.

    Minimised is ``1/2 |w|^2 + C sum of hinges``. In the notation of a mean of hinges, ``lambda/2 |w|^2 + mean``, it is
    the same with ``lambda = 1 / (C n)``, and n C times as large.

    Attributes
    ----------
    solver, loss, rescaling, C
        What was run.
    primal, dual, gap
        The objective at the weights, the bound below the optimum (nan where a solver has none), and their difference as
        a share of the primal.
    gap_is_estimate
        Whether the oracle was not exact and the check at the end could not prove the primal: it could then be higher.
    primal_bound
        Where the oracle was not exact: what the primal is proven not to exceed (infinite where nothing is proven).
    oracle_calls, oracle_seconds, solver_seconds
        Calls of the oracle, one for each example, the time they took, and the time that the solver took beside.
    n_planes
        Planes of the working set at the end.
    n_worse
        How often the oracle gave an output that is worse than the truth, which was then taken in its place.
    passes
        Where the solver was after each pass.
    mistakes
        Of a perceptron: outputs that were wrong, pass by pass.
    development
        The loss of the development set after each pass, where there is one.
    rounds
        Of a latent structural SVM: the objective before each round, and at the end; it never rises.
    """

    solver: str = ""
    loss: str = ""
    rescaling: str = "margin"
    C: float = 1.0
    primal: float = float("nan")
    dual: float = float("nan")
    gap_is_estimate: bool = False
    primal_bound: float = float("nan")
    oracle_calls: int = 0
    oracle_seconds: float = 0.0
    solver_seconds: float = 0.0
    n_planes: int = 0
    n_worse: int = 0
    passes: tuple[MarginPass, ...] = ()
    mistakes: tuple[int, ...] = ()
    development: tuple[float, ...] = ()
    rounds: tuple[float, ...] = ()

    @classmethod
    def of(cls, found: MarginMinimum, *, scale: float, **about: Any) -> MarginReport:
        """The report of where a solver ended; ``scale`` is 1 / C."""
        return cls(
            method="hinge",
            log_likelihood=float("nan"),
            converged=found.converged,
            iterations=found.passes,
            evaluations=found.oracle_calls,
            message=found.message,
            history=tuple(-scale * one.primal for one in found.history if np.isfinite(one.primal)),
            objective_name="hinge",
            gradient_norm=float("nan"),
            C=1.0 / scale,
            oracle_calls=found.oracle_calls,
            oracle_seconds=found.oracle_seconds,
            n_planes=found.n_planes,
            passes=found.history,
            mistakes=found.mistakes,
            dual=found.dual,
            **about,
        )

    @property
    def gap(self) -> float:
        """Primal less dual, as a share of the primal."""
        return (self.primal - self.dual) / max(abs(self.primal), 1e-300)

    @property
    def regularisation(self) -> float:
        """``lambda = 1 / (C n)`` of ``lambda/2 |w|^2 + mean of hinges``, n being the weight of all examples."""
        return 1.0 / (self.C * self.total_weight)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite are None."""
        names = (
            "solver", "loss", "rescaling", "C", "primal", "dual", "gap", "gap_is_estimate", "converged", "message",
            "iterations", "oracle_calls", "oracle_seconds", "solver_seconds", "seconds", "n_planes", "n_worse",
            "n_rows", "n_parameters", "guarantee",
        )  # fmt: skip
        found = {name: getattr(self, name) for name in names}
        for name, value in found.items():
            if isinstance(value, float) and not np.isfinite(value):
                found[name] = None
        return {**found, "notes": list(self.notes), "development": list(self.development)}

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        passes = self.passes[:limit]
        columns: dict[Any, Any] = {"pass": list(range(1, len(passes) + 1))}
        for name in ("oracle_calls", "seconds", "primal", "dual"):
            columns[name] = [getattr(one, name) for one in passes]
        return columns

    def __repr__(self) -> str:
        end = "converged" if self.converged else f"not converged ({self.message})"
        bounded = np.isfinite(self.dual)
        estimate = ", an estimate" if self.gap_is_estimate else ""
        gap = f", dual {self.dual:.6g}, gap {100 * self.gap:.3g} %{estimate}" if bounded else ""
        lines = [
            f"MarginReport: {self.solver}, loss {self.loss} ({self.rescaling} rescaling), C = {self.C:g}: {end}",
            f"  primal {self.primal:.6g}{gap} after {self.iterations} pass{'es' * (self.iterations != 1)}",
            f"  {self.oracle_calls} oracle calls in {self.oracle_seconds:.3g} s, solver {self.solver_seconds:.3g} s, "
            f"{self.n_planes} planes kept; {self.n_rows} examples, {self.n_parameters} weights",
        ]
        if self.rounds:
            lines[1] = f"  objective {self.rounds[0]:.6g} to {self.primal:.6g} in {len(self.rounds)} rounds"
        if self.development:
            lines.append(f"  development loss {min(self.development):.4g} after pass "
                         f"{int(np.argmin(self.development)) + 1} of {len(self.development)}")  # fmt: skip
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])
