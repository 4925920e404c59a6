"""The free parameters of a directed model: rows of probabilities in the pool, normalised together.

Plain tables have one row for each configuration of the parents; a noisy-max has one for each state of each parent,
and one for its leak. Both are read off the graph of tables, whose tables over the model's own cells are just those
rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.models import BayesianNetwork
from markovfield.names import VariableName

__all__ = ["Parameters", "fitted", "prior_counts", "template"]

Prior = str | float | Mapping[Any, Any] | None


def template(network: BayesianNetwork) -> tuple[BayesianNetwork, list[VariableName]]:
    """The network with uniform tables where it has none, and the variables that had none."""
    missing = [v for v in network.variables if not network.has_cpt(v)]
    filled = network.copy()
    for v in missing:
        parents = network.parents(v)
        shape = [network.cardinality(p) for p in parents] + [network.cardinality(v)]
        cells = int(np.prod(shape, dtype=object))
        if cells > 2**28 or len(shape) > 64:
            raise ModelError(f"the table of {v!r} given its {len(parents)} parents would have {cells:.3g} cells")
        filled.add_cpt(v, list(parents), np.full(shape, 1.0 / shape[-1]))
    return filled, missing


@dataclass(frozen=True, eq=False)
class Parameters:
    """Which cells of the pool are normalised together.

    Attributes
    ----------
    graph
        The compiled network.
    row
        ``int64[cells]``: the row each cell belongs to.
    length
        ``int64[rows]``: cells of each row.
    variable
        ``int64[rows]``: position of the variable whose table a row belongs to.
    table_rows
        ``int64[rows]``: how many rows the row's own table has.
    """

    graph: FactorGraph
    row: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    variable: npt.NDArray[np.int64]
    table_rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, graph: FactorGraph) -> Parameters:
        """Find the rows of a compiled Bayesian network."""
        return _PARAMETERS.get(graph.structure, None, lambda: cls._find(graph))

    @classmethod
    def _find(cls, graph: FactorGraph) -> Parameters:
        s, as_tables = graph.structure, graph.to_tables()
        low = as_tables.structure
        row = np.full(s.n_cells, -1, np.int64)
        length: list[npt.NDArray[np.int64]] = []
        owner: list[npt.NDArray[np.int64]] = []
        tables: list[npt.NDArray[np.int64]] = []
        # A table that reads own cells belongs to the variable whose factor has those cells.
        order = np.argsort(s.table_offsets, kind="stable")
        starts, count = s.table_offsets[order], 0
        for f in range(low.n_factors):
            base = int(low.table_offsets[f])
            if base >= s.n_cells:
                continue
            axis = low.scope(f).tolist().index(int(low.child[f]))
            cells = np.moveaxis(as_tables.cells(f), axis, -1)
            cells = cells.reshape(-1, cells.shape[-1])
            if row[cells[0, 0]] >= 0:  # a tied block
                continue
            n = len(cells)
            row[cells] = np.arange(count, count + n)[:, None]
            count += n
            factor = int(order[np.searchsorted(starts, base, side="right") - 1])
            length.append(np.full(n, cells.shape[1]))
            owner.append(np.full(n, int(s.child[factor])))
            tables.append(np.full(n, n))
        empty = [np.zeros(0, np.int64)]
        return cls(graph, row, *(np.concatenate(empty + part) for part in (length, owner, tables)))

    def n_free(self, movable: npt.NDArray[np.bool_]) -> int:
        """Free parameters: each row has one less than the cells of it that can move."""
        cells = np.bincount(self.row, weights=movable, minlength=len(self.length))
        return int(np.maximum(cells - 1, 0).sum())

    def normalised(self, counts: FloatArray, otherwise: FloatArray | None = None) -> FloatArray:
        """Every row over its sum; a row of zeros is uniform, or as in ``otherwise``."""
        total = np.bincount(self.row, weights=counts, minlength=len(self.length))
        seen = total > 0
        divisor = np.where(seen, total, 1.0)[self.row]
        fill = 1.0 / self.length[self.row] if otherwise is None else otherwise
        return np.where(seen[self.row], counts / divisor, fill)

    def random(self, rng: np.random.Generator, like: FloatArray) -> FloatArray:
        """Random rows, uniform on the simplex; cells that are zero in ``like`` stay zero."""
        return self.normalised(np.where(like > 0, rng.standard_exponential(len(like)), 0.0))

    def cells_of(self, variables: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Which cells belong to the tables of some variables."""
        chosen = np.zeros(self.graph.n_variables, np.bool_)
        chosen[list(variables)] = True
        return chosen[self.variable][self.row]


def prior_counts(parameters: Parameters, prior: Prior, equivalent_sample_size: float) -> FloatArray:
    """Pseudo-counts of every cell.

    ``"bdeu"`` spreads the equivalent sample size evenly over each table; ``"k2"`` counts one for every cell; a number
    counts that much for every cell; a mapping gives variables a number or an array like their table (zero for others).
    """
    size = len(parameters.row)
    if prior is None:
        return np.zeros(size)
    if isinstance(prior, str):
        if prior == "k2":
            return np.ones(size)
        if prior == "bdeu":
            if not equivalent_sample_size > 0:
                raise ModelError(f"equivalent_sample_size must be positive, got {equivalent_sample_size}")
            return (equivalent_sample_size / (parameters.length * parameters.table_rows))[parameters.row]
        raise ModelError(f"prior must be 'bdeu', 'k2', a number or a mapping from variable to counts, got {prior!r}")
    if isinstance(prior, Mapping):
        return _given_counts(parameters, prior)
    if not isinstance(prior, int | float | np.number) or not 0 <= prior < np.inf:
        raise ModelError(f"a prior's pseudo-count must be a finite number and not negative, got {prior!r}")
    return np.full(size, float(prior))


def _given_counts(parameters: Parameters, prior: Mapping[Any, Any]) -> FloatArray:
    graph = parameters.graph
    s = graph.structure
    result = np.zeros(len(parameters.row))
    for name, value in prior.items():
        v = s.names.position(name)
        mask = parameters.cells_of([v])
        counts = np.asarray(value, np.float64)
        if not ((counts >= 0) & (counts < np.inf)).all():
            raise ModelError(f"the prior counts of {name!r} must be finite and not negative")
        if counts.ndim == 0:
            result[mask] = counts
            continue
        f = int(np.flatnonzero(s.child == v)[0])
        if s.kind[f]:
            raise ModelError(f"the prior of {name!r}, which is no plain table, must be a number")
        scope = s.scope(f).tolist()
        cells = np.moveaxis(graph.cells(f), scope.index(v), -1)
        if counts.shape != cells.shape:
            raise ModelError(f"the prior counts of {name!r} need shape {cells.shape}, got {counts.shape}")
        result[cells] = counts
    return result


def fitted(network: BayesianNetwork, parameters: Parameters, pool: FloatArray) -> BayesianNetwork:
    """A new network like ``network`` with the probabilities of ``pool``."""
    s = parameters.graph.structure
    if not s.is_plain:
        with np.errstate(divide="ignore"):
            made = BayesianNetwork.from_factor_graph(parameters.graph.with_tables(np.log(pool)))
        made.name, made.properties = network.name, dict(network.properties)
        return made
    tables: list[FloatArray] = []
    parents: list[list[int]] = []
    factor = np.argsort(s.child, kind="stable").tolist()
    for v in range(s.n_variables):
        scope = s.scope(factor[v]).tolist()
        parents.append([u for u in scope if u != v])
        tables.append(np.ascontiguousarray(np.moveaxis(pool[parameters.graph.cells(factor[v])], scope.index(v), -1)))
    states = {name: s.names.states.get(i, int(s.cardinalities[i])) for i, name in enumerate(s.names.variables)}
    return BayesianNetwork._from_tables(states, parents, tables, name=network.name, properties=dict(network.properties))


_PARAMETERS: Shelf[Parameters] = Shelf(1)
