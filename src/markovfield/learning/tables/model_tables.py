"""A network of plain tables as a hierarchical log-linear model: its generators, its structural zeros, its counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.factors.structure import Structure, c_order_strides
from markovfield.inference.core.running import Running
from markovfield.learning.core.counting import family_counts
from markovfield.learning.core.data import DataTable
from markovfield.learning.tables.hull import Hull, plan_hull
from markovfield.models import LogLinear, MarkovNetwork
from markovfield.models.generators import generator_text, maximal_sets

__all__ = ["ModelTables", "model_dimension"]


def model_dimension(cardinalities: Sequence[int], generators: Sequence[Sequence[int]]) -> int:
    """How many parameters a hierarchical model has, the constant among them: its interactions, counted once each.

    Examples
    --------
    >>> model_dimension([2, 2, 3], [(0, 1), (1, 2)])
    8
    """
    cards = [int(c) for c in cardinalities]

    def size(mask: int) -> int:
        result = 1
        while mask:
            result *= cards[(mask & -mask).bit_length() - 1]
            mask &= mask - 1
        return result

    def count(masks: list[int]) -> int:
        kept: list[int] = []
        for m in sorted(set(masks), key=int.bit_count, reverse=True):
            if not any(m & k == m for k in kept):
                kept.append(m)
        # A generator more brings its own cells, less what its faces had already.
        return sum(size(m) - (count([m & k for k in kept[:i]]) if i else 0) for i, m in enumerate(kept))

    masks = [sum(1 << v for v in set(s)) for s in generators]
    return count(masks) if masks else 1


class _Plan(NamedTuple):
    """What depends on a structure and on which of its factors are fixed."""

    factor_of: list[int]
    scopes: list[tuple[int, ...]]
    dimension: int
    hull: Hull


_PLANS: Shelf[_Plan] = Shelf(4)


def _plan(structure: Structure, fixed: tuple[int, ...]) -> _Plan:
    """Generators, the scopes of factors that are in no other one (the first of each), and the tree that holds them."""
    by_set: dict[frozenset[int], int] = {}
    for f in range(structure.n_factors):
        if f not in fixed:
            by_set.setdefault(frozenset(structure.scope(f).tolist()), f)
    factor_of = [by_set[frozenset(g)] for g in maximal_sets(by_set)]
    scopes = [tuple(structure.scope(f).tolist()) for f in factor_of]
    held = [tuple(structure.scope(f).tolist()) for f in fixed]
    wanted = [True] * len(scopes) + [False] * len(held)
    hull = plan_hull(structure.cardinalities, [*scopes, *held], wanted)
    return _Plan(factor_of, scopes, model_dimension(structure.cardinalities.tolist(), scopes), hull)


def _fixed_factors(model: Any, method: str) -> tuple[int, ...]:
    """Factors of a log-linear model that have no parameter: its base. All others must have one for every cell."""
    graph = model.base_graph
    entries = model.operator.tocoo()
    k = len(model.parameters)
    single = len(entries.data) == k and len(np.unique(entries.row)) == k and (entries.data == 1).all()
    free = np.zeros(graph.structure.n_cells, bool)
    free[entries.row] = True
    fixed = []
    for f in range(graph.n_factors if single else 0):
        cells = graph.cells(f).ravel()
        if not free[cells].any():
            fixed.append(f)
        elif (graph.log_tables[cells][~free[cells]] > -np.inf).any():
            single = False
    if not single:
        raise ModelError(f"method {method!r} fits tables, and this model has features; use method 'iterative_scaling'")
    return tuple(fixed)


class ModelTables:
    """What is read off a network before its tables are fitted.

    Attributes
    ----------
    graph
        The compiled network.
    scopes
        Positions of each generator: the factors' scopes that are in no other.
    factor_of
        For each generator the factor that its numbers go to; the others keep their zeros and are one elsewhere.
    base
        Scopes and log-potentials of fixed factors, the base measure of a `LogLinear` model.
    """

    def __init__(self, model: Any, method: str) -> None:
        if not isinstance(model, MarkovNetwork | FactorGraph | LogLinear):
            raise ModelError(
                f"method {method!r} fits tables, and a {type(model).__name__} has couplings; use method "
                "'maximum_likelihood'"
            )
        graph: FactorGraph = model.compile()
        s = graph.structure
        sizes = [math.prod(s.cardinalities[s.scope(f)].tolist()) for f in range(s.n_factors)]
        if not s.is_plain:
            raise ModelError(f"method {method!r} fits plain tables, and this model has structured factors")
        if sum(sizes) != s.n_cells or len(np.unique(s.table_offsets)) != s.n_factors:
            raise ModelError(
                f"method {method!r} fits tables of their own, and factors of this model share parameters; "
                "use method 'maximum_likelihood'"
            )
        self.fixed = _fixed_factors(model, method) if isinstance(model, LogLinear) else ()
        self.graph, self.model = graph, model
        self.cardinalities = [int(c) for c in s.cardinalities]
        if len(self.fixed) == s.n_factors:
            raise ModelError(f"method {method!r} needs a model with at least one factor that has parameters")
        plan = _PLANS.get(s, self.fixed, lambda: _plan(s, self.fixed))
        self.factor_of, self.scopes, dimension, self.hull = plan
        self.n_parameters = dimension - 1
        self.base = [(tuple(s.scope(f).tolist()), graph.table(f)) for f in self.fixed]

    @property
    def names(self) -> list[tuple[Any, ...]]:
        """The generators by name."""
        variables = self.graph.variables
        return [tuple(variables[v] for v in scope) for scope in self.scopes]

    def __str__(self) -> str:
        return generator_text(self.names)

    @cached_property
    def zeros(self) -> list[FloatArray | None]:
        """For each generator a table of ones and structural zeros (log-potentials of -inf), or None without any."""
        found: list[FloatArray | None] = [None] * len(self.scopes)
        s = self.graph.structure
        if not np.isneginf(self.graph.log_tables).any():
            return found
        for f in range(s.n_factors):
            allowed = self.graph.table(f) > -np.inf
            if allowed.all() or f in self.fixed:
                continue
            scope = s.scope(f).tolist()
            g = next(i for i, other in enumerate(self.scopes) if set(scope) <= set(other))
            order = [v for v in self.scopes[g] if v in scope]
            shape = [self.cardinalities[v] if v in scope else 1 for v in self.scopes[g]]
            spread = allowed.transpose([scope.index(v) for v in order]).reshape(shape)
            before = found[g]
            full = np.ones([self.cardinalities[v] for v in self.scopes[g]]) if before is None else before
            found[g] = full * spread
        return found

    def counts(self, table: DataTable, method: str, running: Running) -> list[FloatArray]:
        """The margins of complete data; an error where values are missing or a structural zero was observed."""
        if table.has_missing:
            v = int(np.flatnonzero((table.codes < 0).any(axis=1))[0])
            raise ModelError(
                f"method {method!r} needs complete data, but variable {table.variables[v]!r} has missing values; "
                "use method 'maximum_likelihood'"
            )
        margins = family_counts(table, [*self.scopes, *(scope for scope, _ in self.base)], running=running)
        hard = [*self.zeros, *(np.exp(log_table) for _, log_table in self.base)]
        names = [*self.names, *(tuple(self.graph.variables[v] for v in scope) for scope, _ in self.base)]
        for scope, margin, allowed in zip(names, margins, hard, strict=True):
            if allowed is not None and (margin[allowed == 0] > 0).any():
                cell = tuple(int(i[0]) for i in np.nonzero((allowed == 0) & (margin > 0)))
                states = ", ".join(f"{v}={self._state(v, i)!r}" for v, i in zip(scope, cell, strict=True))
                raise ModelError(f"the model rules out {states}, which the data has {margin[cell]:g} times")
        self._base_score = math.fsum(
            float(margin[margin > 0] @ log_table[margin > 0])
            for (_, log_table), margin in zip(self.base, margins[len(self.scopes) :], strict=True)
        )
        return margins[: len(self.scopes)]

    def _state(self, variable: Any, index: int) -> Any:
        names = self.graph.names
        v = names.position(variable)
        return names.state_names(v, self.cardinalities[v])[index]

    @property
    def log_free_states(self) -> float:
        """Log of the number of joint states of variables that have no factor."""
        named = {v for s in (*self.scopes, *(scope for scope, _ in self.base)) for v in s}
        return math.fsum(math.log(c) for v, c in enumerate(self.cardinalities) if v not in named)

    def log_likelihood(self, log_factors: Sequence[FloatArray | None], margins: Sequence[FloatArray]) -> float:
        """Of counts, where the product of the factors sums to one; variables without a factor are uniform."""
        total = self._base_score
        for log_factor, margin in zip(log_factors, margins, strict=True):
            assert log_factor is not None
            seen = margin > 0
            total += float(margin[seen] @ log_factor[seen])
        return total - float(margins[0].sum()) * self.log_free_states

    def fitted(self, log_factors: Sequence[FloatArray | None]) -> Any:
        """The model with these numbers in the generators' factors: a network, or again a `LogLinear` model."""
        graph = self.graph
        pool = np.where(np.isneginf(graph.log_tables), -np.inf, 0.0)
        s = graph.structure
        in_order = np.array_equal(s.table_strides, c_order_strides(s.cardinalities, s.scope_offsets, s.scopes))
        for f, log_factor in zip(self.factor_of, log_factors, strict=True):
            flat = np.asarray(log_factor).ravel()
            start = int(s.table_offsets[f])
            cells: Any = slice(start, start + len(flat)) if in_order else graph.cells(f).ravel()
            pool[cells] += flat
        if isinstance(self.model, LogLinear):
            entries = self.model.operator.tocoo()
            parameters = np.empty(len(self.model.parameters))
            parameters[entries.col] = pool[entries.row]
            if np.isneginf(parameters).any():
                name = self.model.parameter_names[int(np.flatnonzero(np.isneginf(parameters))[0])]
                raise ModelError(
                    f"{name} was never observed, and a LogLinear model has no infinite parameters: fit a "
                    "MarkovNetwork, or use method 'maximum_likelihood' with a penalty"
                )
            return self.model.with_parameters(parameters)
        return MarkovNetwork.from_factor_graph(graph.with_tables(pool))
