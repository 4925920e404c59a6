"""Maximum likelihood of decomposable models without iteration (Murphy 19.61, with the division by separators)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.graphs.decomposable import chordless_cycle
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.report import FitReport
from markovfield.learning.tables.fitting import sorted_axes
from markovfield.learning.tables.hull import Hull
from markovfield.learning.tables.hyper_dirichlet import HyperDirichlet, clique_factors
from markovfield.learning.tables.model_tables import ModelTables
from markovfield.learning.tables.proportional import TableDetails

__all__ = ["ClosedForm"]


@dataclass(frozen=True)
class ClosedForm:
    """The product of the cliques' margins over those of the separators: exact for decomposable models only.

    A model is decomposable when its graph is chordal and every clique of it is a factor's scope; others are refused
    with a cycle that has no chord. With a prior, the tables are posterior means under a hyper-Dirichlet distribution,
    and ``fit_report.details.posterior`` has the marginal likelihood and draws.

    Parameters
    ----------
    prior
        Equivalent sample size of the conjugate prior: so many rows, spread evenly over the joint table. None is maximum
        likelihood.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork.from_generators({"A": 2, "B": 2, "C": 2}, "AB/BC")
    >>> data = {"A": [0, 0, 1, 1], "B": [0, 0, 0, 1], "C": [1, 0, 1, 1]}
    >>> fitted = mf.fit(net, data, mf.methods.ClosedForm())
    >>> mf.learning.fitted_table(fitted, total=4).round(4)[0].tolist()
    [[0.6667, 1.3333], [0.0, 0.0]]
    >>> posterior = mf.fit(net, data, mf.methods.ClosedForm(prior=1.0)).fit_report.details.posterior
    >>> round(posterior.log_marginal_likelihood, 4)
    -10.985
    """

    prior: float | None = None

    name: ClassVar[str] = "closed_form"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self, above={"prior": 0})

    @classmethod
    def applies(cls, model: Any) -> bool:
        """Whether a model is decomposable and has no structural zeros."""
        try:
            _decomposable(ModelTables(model, cls.name))
        except ModelError:
            return False
        return True

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new network with the fitted tables."""
        tables = ModelTables(model, self.name)
        hull = _decomposable(tables)
        margins = tables.counts(table, self.name, running)
        posterior = HyperDirichlet(hull, _clique_counts(tables, hull, margins), self.prior or 0.0, tables)
        found = posterior.mean() if self.prior else posterior.conditionals(posterior.counts)
        log_factors = clique_factors(tables, hull, found)
        made: Any = tables.fitted(log_factors)
        log_likelihood = tables.log_likelihood(log_factors, margins)
        empty = sum(int((m == 0).sum()) for m in margins) if not self.prior else 0
        notes = [f"{empty} cell{'s' * (empty != 1)} of the margins were never observed and are fitted by zero"]
        if self.prior:
            evidence = posterior.log_marginal_likelihood
            notes = [
                f"posterior means under a hyper-Dirichlet prior worth {self.prior:g} rows; log marginal likelihood "
                f"{evidence:.8g}"
            ]
        made.fit_report = FitReport(
            method=self.name,
            log_likelihood=log_likelihood,
            n_rows=table.n_rows,
            total_weight=table.total_weight,
            n_parameters=tables.n_parameters,
            message="decomposable: margins of cliques over those of separators",
            seconds=running.seconds,
            notes=tuple(notes) if self.prior or empty else (),
            details=TableDetails(
                tables, made.compile().log_tables, table, hull, posterior=posterior if self.prior else None
            ),
        )
        return made


def _decomposable(tables: ModelTables) -> Hull:
    """The hull of a decomposable model; an error that says why it is not one."""
    if tables.base or any(z is not None for z in tables.zeros):
        raise ModelError(
            "method 'closed_form' fits no structural zeros (log-potentials of -inf) and no base measure; use method "
            "'iterative_proportional_fitting'"
        )
    hull = tables.hull
    if hull.decomposable:
        return hull
    import networkx as nx

    names = tables.graph.variables
    graph = nx.Graph()
    for scope in hull.generators:
        graph.add_nodes_from(names[v] for v in scope)
        graph.add_edges_from((names[a], names[b]) for i, a in enumerate(scope) for b in scope[:i])
    cycle = chordless_cycle(graph)
    if cycle is not None:
        why = f"the cycle {' - '.join(map(str, [*cycle, cycle[0]]))} has no chord"
    else:
        clique = next(c for c in hull.cliques if c not in set(hull.generators))
        why = f"{[names[v] for v in clique]!r} is a clique of its graph and no factor's scope"
    raise ModelError(
        f"method 'closed_form' needs a decomposable model, but {why}; use method 'iterative_proportional_fitting'"
    )


def _clique_counts(tables: ModelTables, hull: Hull, margins: list[FloatArray]) -> tuple[FloatArray, ...]:
    """Counts of each clique, axes rising by position, without variables of one state."""
    by_set = {}
    for scope, generator, margin in zip(tables.scopes, hull.generators, margins, strict=True):
        shape = [tables.cardinalities[v] for v in generator]
        by_set[generator] = sorted_axes(margin, scope, tables.cardinalities).reshape(shape)
    return tuple(by_set[clique] for clique in hull.cliques)
