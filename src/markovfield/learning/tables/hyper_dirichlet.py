"""The hyper-Dirichlet distribution: the conjugate prior and posterior of decomposable models (Dawid and Lauritzen).

The cliques' margins have Dirichlet distributions that agree on the separators. The margin of the first clique and the
conditional distributions of the others given their separators are independent, so means, draws and the marginal
likelihood are products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray
from markovfield.frames import Tabular
from markovfield.learning.tables.hull import Hull
from markovfield.models import MarkovNetwork

if TYPE_CHECKING:
    from markovfield.learning.tables.model_tables import ModelTables

__all__ = ["HyperDirichlet"]


@dataclass(frozen=True, eq=False)
class HyperDirichlet(Tabular):
    """The distribution of a decomposable model's tables given data.

    Attributes
    ----------
    counts
        For each clique of `hull` a table of its observed counts, axes rising by position.
    equivalent_sample_size
        What the prior weighs, spread evenly over the cells of the joint table; so every clique has it evenly too.
    """

    hull: Hull = field(repr=False)
    counts: tuple[FloatArray, ...] = field(repr=False)
    equivalent_sample_size: float
    tables: ModelTables = field(repr=False)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        names = self.tables.graph.variables
        rows = [
            (
                ", ".join(str(names[v]) for v in clique),
                cell,
                float(table[cell]),
                float(table[cell] + self._prior(table)),
            )
            for clique, table in zip(self.hull.cliques, self.counts, strict=True)
            for cell in np.ndindex(table.shape)
        ][:limit]
        return {name: [row[i] for row in rows] for i, name in enumerate(("clique", "cell", "count", "posterior"))}

    def _prior(self, table: FloatArray) -> float:
        return self.equivalent_sample_size / table.size

    def _separator(self, k: int, table: FloatArray) -> FloatArray:
        """A clique's table summed onto its separator, which stays as axes of length one elsewhere."""
        kept = self.hull.separator(k)
        axes = tuple(i for i, v in enumerate(self.hull.cliques[k]) if v not in kept)
        return np.asarray(table.sum(axis=axes, keepdims=True))

    @property
    def log_marginal_likelihood(self) -> float:
        """Log-probability of the data, row by row, with the tables integrated out."""
        from scipy.special import gammaln

        def evidence(counts: FloatArray) -> float:
            prior = self._prior(counts)
            ratio = math.lgamma(self.equivalent_sample_size) - math.lgamma(self.equivalent_sample_size + counts.sum())
            return ratio + float((gammaln(prior + counts) - math.lgamma(prior)).sum())

        total = 0.0
        for k, counts in enumerate(self.counts):
            total += evidence(counts) - (evidence(self._separator(k, counts)) if self.hull.parents[k] >= 0 else 0.0)
        return total - float(self.counts[0].sum() if self.counts else 0.0) * self.tables.log_free_states

    def conditionals(self, weights: tuple[FloatArray, ...]) -> list[FloatArray]:
        """Logs of each clique's distribution given its separator, from weights of its cells."""
        found = []
        with np.errstate(divide="ignore", invalid="ignore"):
            for k, table in enumerate(weights):
                found.append(np.where(table > 0, np.log(table) - np.log(self._separator(k, table)), -np.inf))
        return found

    def mean(self) -> list[FloatArray]:
        """Logs of the posterior mean of each clique's distribution given its separator."""
        return self.conditionals(tuple(c + self._prior(c) for c in self.counts))

    def draw(self, size: int, rng: int | np.random.Generator | None = None) -> list[MarkovNetwork]:
        """Networks drawn from the posterior distribution, independently.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.MarkovNetwork.from_generators({"A": 2, "B": 2}, "A/B")
        >>> fitted = mf.fit(net, {"A": [0, 0, 1], "B": [0, 1, 1]}, mf.methods.ClosedForm(prior=1.0))
        >>> len(fitted.fit_report.details.posterior.draw(5, rng=0))
        5
        """
        generator = generator_of(rng)
        drawn = []
        for _ in range(size):
            # Rows of gamma variates, divided by their sums, are Dirichlet and independent of each other.
            gammas = tuple(generator.standard_gamma(c + self._prior(c)) for c in self.counts)
            drawn.append(self.network(self.conditionals(gammas)))
        return drawn

    def network(self, log_conditionals: list[FloatArray]) -> MarkovNetwork:
        """A network whose factors are these distributions."""
        return self.tables.fitted(clique_factors(self.tables, self.hull, log_conditionals))


def clique_factors(tables: ModelTables, hull: Hull, values: list[FloatArray]) -> list[FloatArray]:
    """Tables of cliques as factors of the generators, which are the same sets with axes in their own order."""
    from markovfield.learning.tables.fitting import own_axes

    by_set = dict(zip(hull.cliques, values, strict=True))
    return [
        own_axes(by_set[generator].ravel() if generator else np.zeros(1), scope, tables.cardinalities)
        for scope, generator in zip(tables.scopes, hull.generators, strict=True)
    ]
