"""Maximum likelihood of networks of tables by iterative proportional fitting (Murphy 19.5.7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.report import FitReport
from markovfield.learning.tables.fitting import fit_margins
from markovfield.learning.tables.goodness_of_fit import GoodnessOfFit, fit_of_tables
from markovfield.learning.tables.hull import Hull
from markovfield.learning.tables.model_tables import ModelTables

__all__ = ["IterativeProportionalFitting", "TableDetails"]


@dataclass(frozen=True, eq=False)
class TableDetails:
    """What fitting tables has to show beside the numbers of its report.

    Attributes
    ----------
    deviations
        The largest difference between a fitted and an observed margin in each sweep, as a share of the total.
    hull
        The tree of cliques that was walked.
    posterior
        The distribution of the tables given the data, where there was a prior.
    """

    tables: ModelTables = field(repr=False)
    log_tables: FloatArray = field(repr=False)
    data: DataTable = field(repr=False)
    hull: Hull | None = field(default=None, repr=False)
    deviations: FloatArray = field(default_factory=lambda: np.zeros(0))
    posterior: Any = None

    @property
    def generators(self) -> tuple[tuple[Any, ...], ...]:
        """The sets of variables that interact."""
        return tuple(self.tables.names)

    @cached_property
    def goodness_of_fit(self) -> GoodnessOfFit:
        """Deviance, Pearson's statistic, degrees of freedom; computed when first asked for."""
        return fit_of_tables(self.tables, self.log_tables, self.tables.log_free_states, self.data)


@dataclass(frozen=True)
class IterativeProportionalFitting:
    """Multiply each factor by the ratio of the observed to the fitted margin, in turn, until they agree (19.60).

    The fitted table is never written down: it is a tree of cliques of the model's hull, walked so that each step passes
    one message (Jirousek and Preucil 1995). A decomposable model is fitted by one sweep. Log-potentials of ``-inf`` are
    structural zeros and stay; those that are not, whatever they are, are found anew. A margin that was never observed
    is fitted by zero. The ``base`` of a `LogLinear` model of tables is what the fit begins with: a mask of zeros in it
    makes quasi-independence.

    Parameters
    ----------
    tolerance
        Largest difference between a fitted and an observed margin, as a share of the total.
    max_iterations
        Most sweeps over all margins.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork.from_generators({"sex": ["male", "female"], "hand": ["right", "left"]}, "sex/hand")
    >>> data = {"sex": ["male", "male", "female", "female"], "hand": ["right", "left"] * 2, "n": [43, 9, 44, 4]}
    >>> fitted = mf.fit(net, data, "iterative_proportional_fitting", weights="n")
    >>> mf.learning.fitted_table(fitted, total=100).round(2).tolist()
    [[45.24, 6.76], [41.76, 6.24]]
    """

    tolerance: float = 1e-8
    max_iterations: int = 10_000

    name: ClassVar[str] = "iterative_proportional_fitting"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self, least={"tolerance": 0, "max_iterations": 1})

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new network with the fitted tables."""
        tables = ModelTables(model, self.name)
        margins = tables.counts(table, self.name, running)
        hull = tables.hull
        planned = running.seconds
        found = fit_margins(
            tables.cardinalities,
            [*tables.scopes, *(scope for scope, _ in tables.base)],
            [*margins, *([None] * len(tables.base))],
            starts=[*tables.zeros, *(np.exp(log_table) for _, log_table in tables.base)],
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            hull=hull,
            running=running,
        )
        log_factors = found.log_factors[: len(margins)]
        made: Any = tables.fitted(log_factors)
        last = float(found.deviations[-1]) if len(found.deviations) else 0.0
        exact = hull.decomposable and all(z is None for z in tables.zeros)
        message = "decomposable: one sweep" if exact else f"margins agree to {last:.3g} of the total"
        if found.stopped is not None:
            message = f"stopped ({found.stopped}); {message}"
        made.fit_report = FitReport(
            method=self.name,
            log_likelihood=tables.log_likelihood(log_factors, margins),
            n_rows=table.n_rows,
            total_weight=table.total_weight,
            n_parameters=tables.n_parameters,
            converged=found.converged,
            iterations=max(len(found.deviations), 1),
            message=message,
            seconds=running.seconds,
            planning_seconds=planned,
            guarantee="exact" if found.converged else "approximate",
            notes=_notes(tables, margins),
            details=TableDetails(tables, made.compile().log_tables, table, hull, found.deviations),
        )
        return made


def _notes(tables: ModelTables, margins: list[FloatArray]) -> tuple[str, ...]:
    """Where the likelihood has no finite maximum."""
    counts = np.concatenate([m.ravel() for m in margins])
    allowed = [np.ones(m.size) if z is None else z.ravel() for m, z in zip(margins, tables.zeros, strict=True)]
    empty = int(((counts == 0) & (np.concatenate(allowed) > 0)).sum())
    if not empty:
        return ()
    return (f"{empty} cell{'s' * (empty != 1)} of the margins were never observed and are fitted by zero",)
