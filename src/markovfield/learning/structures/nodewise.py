"""Neighbourhoods by a penalised regression for each variable (Ravikumar, Wainwright and Lafferty 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.learned_graph import LearnedGraph
from markovfield.learning.structures.dependency_network import fit_conditionals, joined

__all__ = ["NodewiseLogistic"]


@dataclass(frozen=True)
class NodewiseLogistic:
    """The neighbours of each variable by an l1-penalised regression on all others; the neighbourhoods joined.

    Minimised, for each variable: minus the log-probability of its states given the others, summed over rows, plus
    ``penalty`` times the sum over the others of |coupling| (of tables with more states the norm of `GroupLasso`).

    The guarantee of Ravikumar et al. is for binary variables drawn from an Ising model: with high probability the graph
    is found when the penalty is of the order of sqrt(rows * log(variables)), no other variable is too well predicted by
    a variable's neighbours (incoherence: the l-infinity norm of H_others,neighbours times the inverse of H_neighbours
    is below 1 - alpha, H the Hessian at the true couplings), the neighbours' Hessian has eigenvalues bounded away from
    zero, the smallest coupling is at least of the order of sqrt(d) penalty / rows, and rows grow as d^3 log(variables)
    for neighbourhoods of at most d. None of this can be seen from data: for a given table, the graph found is an
    estimate without a guarantee, and dense or strongly coupled models (beyond the critical point of a lattice, say)
    break incoherence.

    Parameters
    ----------
    penalty
        Of the sum over all rows; None: ``scale * sqrt(rows * log(variables))``.
    scale
        See there. At 2, independent fair spins have less than one edge in all, on average.
    rule
        ``"and"``: edges where each is among the other's neighbours; ``"or"``: where one is.
    l2
        Of variables' own terms, as for `GroupLasso`.
    tolerance, max_iterations
        As for `GroupLasso`.

    Examples
    --------
    >>> import markovfield as mf
    >>> ring = mf.Ising([(i, (i + 1) % 6) for i in range(6)], coupling=0.3)
    >>> learned = mf.learn_structure(mf.sample(ring, 2000, rng=0), method="nodewise")
    >>> sorted(learned.edges)
    [(0, 1), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)]
    """

    name: ClassVar[str] = "nodewise"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    penalty: float | None = None
    scale: float = 2.0
    rule: Literal["and", "or"] = "and"
    l2: float = 0.0
    tolerance: float = 1e-7
    max_iterations: int = 100

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"l2": 0, "max_iterations": 1},
            above={"penalty": 0, "scale": 0, "tolerance": 0},
            choices={"rule": ("and", "or")},
        )

    def learn(self, table: DataTable, *, running: Running, rng: np.random.Generator) -> LearnedGraph:
        """Fit all regressions, join the neighbourhoods."""
        settings = {"l2": self.l2, "tolerance": self.tolerance, "max_iterations": self.max_iterations}
        return joined(
            *fit_conditionals(table, self.name, self.penalty, self.scale, running, **settings), self.rule, self.name
        )
