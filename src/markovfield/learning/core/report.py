"""What a fitted model says of how it was fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from markovfield.frames import OneRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markovfield.names import VariableName

__all__ = ["FitReport"]


@dataclass(frozen=True, eq=False, kw_only=True)
class FitReport(OneRow):
    """How a model was fitted and how well it describes its data.

    Attributes
    ----------
    method
        Name of the method.
    log_likelihood
        Log-probability of the observed data under the fitted model (natural logarithm; weighted by the rows' weights).
    n_rows, total_weight
        Rows of data, and the sum of their weights.
    missing
        How many rows have no value for each variable, of those that any row has none for; as many as there are rows
        where a variable is hidden.
    n_parameters
        Free parameters: one less than the states for every row of every table.
    converged, iterations, message
        Whether the method came to its own end, after how many iterations, and a sentence about it.
    history
        What was maximised, after each iteration of the best run: the log-likelihood, plus the log-prior where there is
        one, or minus the objective. It never falls, but where chains or mini-batches are followed.
    restarts
        Where each run ended, the best one among them.
    statistics
        Expected sufficient statistics that the parameters were read off.
    objective, objective_name, gradient_norm, evaluations
        What was minimised, with its penalty, where the method minimises something: its last value, what it is called,
        the norm of its gradient there, and how often it was evaluated.
    guarantee
        Of the parameters: ``"exact"`` where they are the maximum (of the likelihood, or of the posterior with a
        penalty), up to the solver's tolerance; ``"approximate"`` where another objective took the likelihood's place.
    notes
        Sentences about what is exact, what is not, and what looks wrong with the data.
    planning_seconds
        What it took before the first iteration: reading the data, counting, planning.
    details
        What else a method has to show: a goodness of fit, a posterior, a trace.
    """

    method: str
    log_likelihood: float
    n_rows: int
    total_weight: float
    n_parameters: int
    converged: bool = True
    iterations: int = 1
    message: str = ""
    history: tuple[float, ...] = ()
    restarts: tuple[float, ...] = ()
    seconds: float = 0.0
    missing: Mapping[VariableName, int] = field(default_factory=dict)
    statistics: Any = field(default=None, repr=False)
    objective: float | None = None
    objective_name: str = ""
    gradient_norm: float | None = None
    evaluations: int = 0
    guarantee: str = "exact"
    notes: tuple[str, ...] = ()
    planning_seconds: float = 0.0
    details: Any = field(default=None, repr=False)

    @property
    def bic(self) -> float:
        """Bayesian information criterion, as a score to maximise: log-likelihood less half the parameters by log N."""
        return self.log_likelihood - 0.5 * self.n_parameters * math.log(max(self.total_weight, 1.0))

    @property
    def aic(self) -> float:
        """Akaike's criterion, as a score to maximise: log-likelihood less the number of parameters."""
        return self.log_likelihood - self.n_parameters

    _row = (
        "method", "n_rows", "n_parameters", "log_likelihood", "bic", "aic", "converged", "iterations", "seconds",
    )  # fmt: skip

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        steps = f", {self.iterations} iteration{'s' * (self.iterations != 1)}, {end}" if self.history else ""
        lacking = [f"{v!r} hidden" if n == self.n_rows else f"{n} of {v!r} missing" for v, n in self.missing.items()]
        told = f", {', '.join(lacking[:3])}{', ...' if len(lacking) > 3 else ''}" if lacking else ""
        said = f" ({self.message})" if self.message and not self.converged else ""
        return (
            f"FitReport: {self.method}, {self.n_rows} rows{told}, {self.n_parameters} parameters, "
            f"log-likelihood {self.log_likelihood:.8g}{steps}{said}, {self.seconds:.3g} s"
        )
