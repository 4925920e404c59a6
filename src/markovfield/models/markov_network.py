"""A Markov network as a user writes it down: variables with states, and factors over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.factor_graph import CLAUSE, TABLE, FactorGraph, Structure
from markovfield.names import Names, VariableName, check_name, normalise_states

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MarkovNetwork", "states_of_node"]


def states_of_node(data: Mapping[str, Any]) -> Any:
    """The ``states`` of a node's data: names, or a count where they are plain indices; two when it says nothing."""
    states = data.get("states", 2)
    if not isinstance(states, (int, np.integer)):
        # Equality alone would take [False, True] or [0.0, 1.0] for plain indices.
        plain = all(type(s) is int and s == i for i, s in enumerate(states))
        return len(states) if plain and len(states) else states
    return states


class MarkovNetwork:
    """Variables and factors, mutable while being written; `compile` freezes it into a `FactorGraph`.

    Parameters
    ----------
    variables
        Name to number of states, or to the sequence of state names.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": ["low", "mid", "high"]})
    >>> net.add_factor(["A", "B"], [[1, 2, 3], [3, 2, 1]])
    0
    >>> net
    MarkovNetwork(2 variables, 1 factor)
    >>> float(mf.marginals(net)["A"][0])
    0.5
    """

    def __init__(self, variables: Mapping[Any, int | Sequence[Any]] | None = None) -> None:
        self._position: dict[VariableName, int] = {}
        self._cardinalities: list[int] = []
        self._states: dict[int, tuple[Any, ...]] = {}
        self._scopes: list[list[int]] = []
        self._strides: list[list[int] | None] = []
        self._bases: list[int] = []
        self._kinds: list[int] = []
        self._tables: list[npt.NDArray[np.float64]] = []
        self._n_cells = 0
        self._compiled: FactorGraph | None = None
        self._names: Names | None = None
        for name, states in (variables or {}).items():
            self.add_variable(name, states)

    def __repr__(self) -> str:
        n, m = len(self._cardinalities), len(self._bases)
        return f"MarkovNetwork({n} variable{'s' * (n != 1)}, {m} factor{'s' * (m != 1)})"

    @property
    def variables(self) -> tuple[VariableName, ...]:
        """Variable names in the order they were added."""
        return tuple(self._position)

    def add_variable(self, name: VariableName, states: int | Sequence[Any]) -> None:
        """Add a variable with a number of states or with state names."""
        name = check_name(name)
        if name in self._position:
            raise ModelError(f"there is already a variable {name!r}")
        cardinality, state_names = normalise_states(name, states)
        position = self._position[name] = len(self._cardinalities)
        self._cardinalities.append(cardinality)
        if state_names is not None:
            self._states[position] = state_names
        self._compiled = None
        self._names = None

    def _current_names(self) -> Names:
        # Kept between calls: building it for every clause would make writing a large network quadratic.
        if self._names is None:
            self._names = Names(tuple(self._position), dict(self._states))
        return self._names

    def _scope(self, variables: Sequence[VariableName]) -> list[int]:
        if isinstance(variables, str):
            raise ModelError(f"a scope is a sequence of variable names; write [{variables!r}]")
        try:
            return [self._position[v] for v in variables]
        except (KeyError, TypeError):
            return [self._current_names().position(v) for v in variables]

    def _add_table(
        self, scope: list[int], table: npt.ArrayLike | None, log_table: npt.ArrayLike | None, where: str
    ) -> int:
        """Validate a table against a scope and append it to the pool; returns its base cell."""
        if (table is None) == (log_table is None):
            raise ModelError(f"{where} takes either a table of potentials or log_table, not both or neither")
        try:
            values = np.array(table if log_table is None else log_table, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{where} needs a table of numbers, rows of equal length: {error}") from error
        shape = tuple(self._cardinalities[v] for v in scope)
        size = int(np.prod([1, *shape], dtype=object))
        flat_ok = len(shape) > 64 and values.shape == (size,)
        if values.shape != shape and not flat_ok:
            raise ModelError(f"{where} needs a table of shape {shape}, got {values.shape}")
        if np.isnan(values).any():
            raise ModelError(f"{where} has a potential that is not a number")
        if log_table is None:
            if (values < 0).any():
                raise ModelError(
                    f"{where} has a negative potential, {values.min()}; pass log_table= for log-potentials"
                )
            with np.errstate(divide="ignore"):
                values = np.log(values)
        if (values == np.inf).any():
            raise ModelError(f"{where} has an infinite potential")
        base = self._n_cells
        self._tables.append(values.ravel())
        self._n_cells += values.size
        return base

    def _append(self, scope: list[int], strides: list[int] | None, base: int, kind: int) -> int:
        self._scopes.append(scope)
        self._strides.append(strides)
        self._bases.append(base)
        self._kinds.append(kind)
        self._compiled = None
        return len(self._bases) - 1

    def add_factor(
        self,
        variables: Sequence[VariableName],
        table: npt.ArrayLike | None = None,
        *,
        log_table: npt.ArrayLike | None = None,
    ) -> int:
        """Add a factor with potentials ``table`` (>= 0) or log-potentials ``log_table``; returns its index.

        Axis i of the table belongs to ``variables[i]``. With more than 64 axes the table is given flat, last axis
        fastest. A variable may occur twice: then only the diagonal of those axes counts.
        """
        scope = self._scope(variables)
        base = self._add_table(scope, table, log_table, f"the factor on {list(variables)!r}")
        return self._append(scope, None, base, TABLE)

    def add_factors(
        self,
        scopes: Iterable[Sequence[VariableName]],
        table: npt.ArrayLike | None = None,
        *,
        log_table: npt.ArrayLike | None = None,
    ) -> range:
        """Add one factor per scope, all sharing *one* table (tied parameters); returns their indices."""
        resolved = [self._scope(s) for s in scopes]
        start = len(self._bases)
        if not resolved:
            return range(start, start)
        shapes = {tuple(self._cardinalities[v] for v in scope) for scope in resolved}
        if len(shapes) > 1:
            raise ModelError(f"factors that share a table need equal shapes, got {sorted(shapes)[:2]}")
        base = self._add_table(resolved[0], table, log_table, "the shared factor")
        for scope in resolved:
            self._append(scope, None, base, TABLE)
        return range(start, len(self._bases))

    def add_clause(
        self,
        positive: Mapping[VariableName, Any] | None = None,
        negative: Mapping[VariableName, Any] | None = None,
        *,
        weight: float = np.inf,
    ) -> int:
        """Add a logical clause: satisfied when a variable has its ``positive`` state, or lacks its ``negative`` one.

        A satisfied clause adds ``weight`` to the score; ``weight=inf`` (the default) makes it hard: assignments that
        violate it have probability zero. Any number of literals costs memory linear in that number.
        """
        names = self._current_names()
        scope, literals = [], []
        for sign, part in ((True, positive or {}), (False, negative or {})):
            for name, state in part.items():
                v = names.position(name)
                s = names.state(v, state, self._cardinalities[v])
                scope.append(v)
                if sign and self._cardinalities[v] == 2:
                    literals.append(1 - s)
                else:
                    literals.append(-(s + 1) if sign else s)
        if np.isnan(weight) or weight == -np.inf:
            raise ModelError(f"a clause's weight is a number or +inf, got {weight}")
        cells = np.array([-np.inf, 0.0]) if weight == np.inf else np.array([0.0, float(weight)])
        base = self._n_cells
        self._tables.append(cells)
        self._n_cells += 2
        return self._append(scope, literals, base, CLAUSE)

    def compile(self) -> FactorGraph:
        """Freeze into a `FactorGraph`; kept until the network is changed."""
        if self._compiled is None:
            cards = np.array(self._cardinalities, np.int32)
            lengths = np.fromiter((len(s) for s in self._scopes), np.int64, len(self._scopes))
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
            scopes = np.fromiter((v for s in self._scopes for v in s), np.int32, int(offsets[-1]))
            from markovfield.factor_graph import c_order_strides

            strides = c_order_strides(cards, offsets, scopes)
            for f, given in enumerate(self._strides):
                if given is not None:
                    strides[offsets[f] : offsets[f + 1]] = given
            names = self._current_names()
            structure = Structure.from_arrays(
                cards,
                offsets,
                scopes,
                self._bases,
                strides,
                n_cells=self._n_cells,
                kind=self._kinds,
                names=names,
            )
            self._compiled = FactorGraph(structure, np.concatenate([np.zeros(0), *self._tables]))
        return self._compiled

    @classmethod
    def from_factor_graph(cls, graph: FactorGraph) -> MarkovNetwork:
        """A network with the variables and factors of a graph; shared tables and clauses stay as they are."""
        s = graph.structure
        states = s.names.states
        net = cls({v: states.get(i, int(s.cardinalities[i])) for i, v in enumerate(s.names.variables)})
        bounds = s.scope_offsets.tolist()
        scopes, strides = s.scopes.tolist(), s.table_strides.tolist()
        net._scopes = [scopes[a:b] for a, b in pairwise(bounds)]
        net._strides = [strides[a:b] for a, b in pairwise(bounds)]
        net._bases, net._kinds = s.table_offsets.tolist(), s.kind.tolist()
        net._tables, net._n_cells = [graph.log_tables], s.n_cells
        net._compiled = graph if (s.child < 0).all() else None
        return net

    def to_networkx(self) -> nx.Graph:
        """The primal graph: an edge wherever two variables share a factor; nodes carry ``states``."""
        import networkx as nx

        structure = self.compile().structure
        graph = nx.Graph()
        for name, position in self._position.items():
            graph.add_node(name, states=list(structure.names.state_names(position, self._cardinalities[position])))
        names = list(self._position)
        for scope in self._scopes:
            distinct = list(dict.fromkeys(scope))
            graph.add_edges_from((names[a], names[b]) for i, a in enumerate(distinct) for b in distinct[:i])
        return graph

    @classmethod
    def from_networkx(cls, graph: nx.Graph) -> MarkovNetwork:
        """Read a pairwise network, or the bipartite graph that `FactorGraph.to_networkx` makes.

        Pairwise: nodes carry ``states`` (a count or names; 2 when absent) and optionally ``table`` or ``log_table``;
        edges carry ``table`` or ``log_table`` with the axes in the order the edge lists its ends.
        """
        net = cls()
        factors = [(n, d) for n, d in graph.nodes(data=True) if d.get("bipartite") == 1]
        for name, data in graph.nodes(data=True):
            if data.get("bipartite") != 1:
                net.add_variable(name, states_of_node(data))
        for node, data in factors:
            net.add_factor(list(graph.neighbors(node)), log_table=data["log_table"])
        if not factors:
            for name, data in graph.nodes(data=True):
                if "table" in data or "log_table" in data:
                    net.add_factor([name], data.get("table"), log_table=data.get("log_table"))
            for a, b, data in graph.edges(data=True):
                if "table" not in data and "log_table" not in data:
                    raise ModelError(f"edge {a!r} - {b!r} has neither table nor log_table")
                net.add_factor([a, b], data.get("table"), log_table=data.get("log_table"))
        return net
