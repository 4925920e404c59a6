"""A Markov network as a user writes it down: variables with states, and factors over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import offsets_of
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import CARDINALITY, CLAUSE, DISTANCE, PARITY, TABLE
from markovfield.factors.structure import Structure
from markovfield.frames import Drawn
from markovfield.models._networkx import factors_of, states_of_node
from markovfield.models.generators import read_generators
from markovfield.names import Names, VariableName, check_name, normalise_states

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MarkovNetwork"]


Literals = Mapping[VariableName, Any] | None


def _satisfied(allowed: npt.NDArray[np.bool_], weight: float, where: str) -> npt.NDArray[np.float64]:
    """Log-potentials of what holds and what does not: the weight and zero, or zero and -inf where it is hard."""
    if np.isnan(weight) or weight == -np.inf:
        raise ModelError(f"{where} takes a weight that is a number or +inf, got {weight}")
    return np.where(allowed, 0.0, -np.inf) if weight == np.inf else np.where(allowed, float(weight), 0.0)


class MarkovNetwork(Drawn):
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
        if variables is not None and not isinstance(variables, Mapping):
            raise ModelError(f"variables are a dict from name to states, got {type(variables).__name__}")
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

    def _count_states(self, position: int) -> int:
        return self._cardinalities[position]

    def _current_names(self) -> Names:
        # Kept between calls: building it for every clause would make writing a large network quadratic.
        if self._names is None:
            self._names = Names(tuple(self._position), dict(self._states))
        return self._names

    def _scope(self, variables: Sequence[VariableName]) -> list[int]:
        if isinstance(variables, (str, int)):
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

    def add_unknown(self, variables: Sequence[VariableName]) -> int:
        """Add a factor whose numbers are not known yet, all one, for `markovfield.fit` to find; returns its index."""
        scope = self._scope(variables)
        return self.add_factor(variables, log_table=np.zeros([self._cardinalities[v] for v in scope]))

    @classmethod
    def from_edges(
        cls, variables: Mapping[Any, int | Sequence[Any]], edges: Iterable[Sequence[VariableName]]
    ) -> MarkovNetwork:
        """A pairwise network with a factor for every variable and edge, whose numbers `markovfield.fit` finds.

        Examples
        --------
        >>> import markovfield as mf
        >>> mf.MarkovNetwork.from_edges({"A": 2, "B": 3, "C": 2}, [("A", "B"), ("B", "C")])
        MarkovNetwork(3 variables, 5 factors)
        """
        net = cls(variables)
        for v in net.variables:
            net.add_unknown([v])
        known: set[frozenset[VariableName]] = set()
        for edge in edges:
            ends = frozenset() if isinstance(edge, int) else frozenset(edge)
            if len(ends) != 2 or len(edge) != 2:
                raise ModelError(f"from_edges needs pairs of different variables, got {edge!r}")
            if ends in known:
                raise ModelError(f"from_edges has the edge {edge!r} twice")
            known.add(ends)
            net.add_unknown(tuple(edge))
        return net

    @classmethod
    def from_generators(cls, variables: Mapping[Any, int | Sequence[Any]], generators: Any) -> MarkovNetwork:
        """A hierarchical log-linear model, such as ``"AB/BC"``, whose numbers `markovfield.fit` finds: one factor for
        each generator, in any notation of `markovfield.models.generators.read_generators`."""
        net = cls(variables)
        for scope in read_generators(generators, net.variables):
            net.add_unknown(scope)
        return net

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

    def _literals(
        self, positive: Literals, negative: Literals, where: str, *, opposite: bool = False
    ) -> tuple[list[int], list[int]]:
        """Variables and literals: true in a ``positive`` state or outside a ``negative`` one, or the opposite ones."""
        names = self._current_names()
        scope, literals = [], []
        for sign, part in ((not opposite, positive or {}), (opposite, negative or {})):
            if not isinstance(part, Mapping):
                raise ModelError(f"{where} takes mappings of variables to states, got {type(part).__name__}")
            for name, state in part.items():
                v = names.position(name)
                s = names.state(v, state, self._cardinalities[v])
                scope.append(v)
                if sign and self._cardinalities[v] == 2:
                    literals.append(1 - s)
                else:
                    literals.append(-(s + 1) if sign else s)
        return scope, literals

    def _add_cells(self, cells: npt.NDArray[np.float64], where: str) -> int:
        """Append the cells of a structured factor to the pool; returns the first."""
        if np.isnan(cells).any() or (cells == np.inf).any():
            raise ModelError(f"{where} has a log-potential that is not a number below +inf")
        base = self._n_cells
        self._tables.append(cells)
        self._n_cells += len(cells)
        return base

    def _append_counted(
        self, scope: list[int], literals: list[int], cells: npt.NDArray[np.float64], where: str, kind: int
    ) -> int:
        """A parity or a cardinality potential with these cells."""
        if len(set(scope)) < len(scope):
            twice = next(v for i, v in enumerate(scope) if v in scope[:i])
            raise ModelError(f"{where} names the variable {self.variables[twice]!r} twice")
        if kind == CARDINALITY:
            cells = cells[: len(scope) + 1]
            literals = [((len(cells) - 1) << 32) + literal for literal in literals]
        return self._append(scope, literals, self._add_cells(cells, where), kind)

    def add_clause(self, positive: Literals = None, negative: Literals = None, *, weight: float = np.inf) -> int:
        """Add a logical clause: satisfied when a variable has its ``positive`` state, or lacks its ``negative`` one.

        A satisfied clause adds ``weight`` to the score; ``weight=inf`` (the default) makes it hard: assignments that
        violate it have probability zero. Any number of literals costs memory linear in that number.
        """
        cells = _satisfied(np.array([False, True]), weight, "a clause")
        scope, literals = self._literals(positive, negative, "a clause")
        return self._append(scope, literals, self._add_cells(cells, "a clause"), CLAUSE)

    def add_or(self, positive: Literals = None, negative: Literals = None, *, weight: float = np.inf) -> int:
        """Add "at least one of these holds"; another name of `add_clause`."""
        return self.add_clause(positive, negative, weight=weight)

    def add_and(self, positive: Literals = None, negative: Literals = None, *, weight: float = np.inf) -> int:
        """Add "all of these hold": every variable has its ``positive`` state and lacks its ``negative`` one.

        Its cells are, in this order, for "all hold" and for "one does not"; weights as in `add_clause`.
        """
        cells = _satisfied(np.array([True, False]), weight, "a conjunction")
        scope, literals = self._literals(positive, negative, "a conjunction", opposite=True)
        return self._append(scope, literals, self._add_cells(cells, "a conjunction"), CLAUSE)

    def add_parity(
        self, positive: Literals = None, negative: Literals = None, *, odd: bool = True, weight: float = np.inf
    ) -> int:
        """Add "an odd number of these holds" (exclusive or), or an even number; weights as in `add_clause`.

        Any number of literals: memory and messages are linear in it.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        >>> net.add_parity({"A": 1, "B": 1, "C": 1}, odd=False)
        0
        >>> mf.marginals(net, {"A": 1, "B": 0})["C"].tolist()
        [0.0, 1.0]
        """
        cells = _satisfied(np.array([not odd, odd]), weight, "a parity")
        return self._append_counted(*self._literals(positive, negative, "a parity"), cells, "a parity", PARITY)

    def add_at_most_one(self, positive: Literals = None, negative: Literals = None, *, weight: float = np.inf) -> int:
        """Add "at most one of these holds"; weights as in `add_clause`, messages linear in the number of literals."""
        where = "an at-most-one"
        cells = _satisfied(np.array([True, True, False]), weight, where)
        return self._append_counted(*self._literals(positive, negative, where), cells, where, CARDINALITY)

    def add_exactly(
        self, k: int, positive: Literals = None, negative: Literals = None, *, weight: float = np.inf
    ) -> int:
        """Add "exactly ``k`` of these hold"; weights as in `add_clause`.

        Sum messages take O(n k) for n literals, or O(n (n - k)) where that is less: then those that do not hold are
        counted.
        """
        where = "an exactly-k"
        scope, literals = self._literals(positive, negative, where)
        n = len(scope)
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 0 <= k <= n:
            raise ModelError(f"of {n} literals exactly 0 to {n} can hold, got {k!r}")
        few = int(min(k, n - k))
        if few < k:
            scope, literals = self._literals(positive, negative, where, opposite=True)
        cells = _satisfied(np.arange(few + 2) == few, weight, where)
        return self._append_counted(scope, literals, cells, where, CARDINALITY)

    def add_cardinality(
        self, log_potentials: npt.ArrayLike, positive: Literals = None, negative: Literals = None
    ) -> int:
        """Add a potential of *how many* of these hold: ``log_potentials[c]`` when c do, the last also when more do.

        With a cap of c (one less than the log-potentials), sum messages take O(n c), max messages at most
        O(n log n).
        """
        where = "a cardinality potential"
        scope, literals = self._literals(positive, negative, where)
        try:
            cells = np.array(log_potentials, np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{where} needs a vector of numbers: {error}") from error
        least, most = min(2, len(scope) + 1), len(scope) + 1
        if cells.ndim != 1 or not least <= len(cells) <= most:
            raise ModelError(
                f"{where} on {len(scope)} literals needs a vector of {least} to {most} log-potentials, "
                f"got shape {cells.shape}"
            )
        return self._append_counted(scope, literals, cells, where, CARDINALITY)

    def _add_distance(
        self, scopes: Iterable[Sequence[VariableName]], cells: npt.NDArray[np.float64], where: str
    ) -> range:
        """Distance potentials on pairs, all with the same cells."""
        resolved = [self._scope(s) for s in scopes]
        for scope in resolved:
            if len(scope) != 2:
                raise ModelError(f"{where} joins two variables, got a scope of {len(scope)}")
        start = len(self._bases)
        if resolved:
            # Distances that no pair has need no cell.
            longest = max(self._cardinalities[v] for scope in resolved for v in scope)
            cells = cells[: max(longest, 2)]
            base, strides = self._add_cells(cells, where), [len(cells) - 1] * 2
            for scope in resolved:
                self._append(scope, strides, base, DISTANCE)
        return range(start, len(self._bases))

    def add_potts(
        self, scopes: Iterable[Sequence[VariableName]], log_equal: float, log_different: float = 0.0
    ) -> range:
        """Add one Potts factor per pair in ``scopes``, all tied: a log-potential for equal states, one for different.

        However many pairs there are, they share two cells: equal, then different. Messages take O(K) for K states.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 3))
        >>> net.add_potts([["A", "B"], ["B", "C"]], log_equal=1.0)
        range(0, 2)
        >>> net.compile()
        FactorGraph(3 variables, 2 factors, 2 cells)
        """
        return self._add_distance(scopes, np.array([log_equal, log_different], np.float64), "a Potts factor")

    def add_truncated(
        self,
        scopes: Iterable[Sequence[VariableName]],
        weight: float,
        truncation: float = np.inf,
        *,
        power: int = 1,
    ) -> range:
        """Add ``-weight * min(|x - y|^power, truncation)`` for each pair of state indices, ``power`` one or two.

        All pairs share one cell for each distance, up to the first that is truncated. Messages take O(K) for K states;
        sum messages of ``power=2`` take that times the number of distances that are not truncated.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.MarkovNetwork({"A": 5, "B": 5})
        >>> _ = net.add_truncated([["A", "B"]], weight=0.5, truncation=3, power=2)
        >>> net.compile().table(0)[0].tolist()
        [0.0, -0.5, -1.5, -1.5, -1.5]
        """
        where = "a truncated factor"
        if power not in (1, 2):
            raise ModelError(f"{where} has a power of 1 or 2, got {power!r}")
        if not np.isfinite(weight):
            raise ModelError(f"{where} needs a finite weight, got {weight}")
        if not truncation > 0:
            raise ModelError(f"{where} needs a truncation above zero, got {truncation}")
        longest = max(self._cardinalities, default=1)
        distances = np.arange(max(longest, 2), dtype=np.float64) ** power
        first = int(np.argmax(distances >= truncation)) or len(distances) - 1
        cells = 0.0 - weight * np.minimum(distances, truncation)[: first + 1]
        return self._add_distance(scopes, cells, where)

    def compile(self) -> FactorGraph:
        """Freeze into a `FactorGraph`; kept until the network is changed."""
        if self._compiled is None:
            cards = np.array(self._cardinalities, np.int32)
            lengths = np.fromiter((len(s) for s in self._scopes), np.int64, len(self._scopes))
            offsets = offsets_of(lengths)
            scopes = np.fromiter((v for s in self._scopes for v in s), np.int32, int(offsets[-1]))
            from markovfield.factors.structure import c_order_strides

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
        edges carry ``table`` or ``log_table``, and ``scope``, the two ends in the order of its axes: an undirected edge
        of networkx has no first end. The scope may be left out where the table reads the same both ways, or fits one
        way only, and in a directed graph, whose edges have a first end.
        """
        net = cls()
        for name, data in graph.nodes(data=True):
            if data.get("bipartite") != 1:
                net.add_variable(name, states_of_node(data))
        for scope, data in factors_of(graph, dict(zip(net._position, net._cardinalities, strict=True))):
            net.add_factor(scope, data.get("table"), log_table=data.get("log_table"))
        return net
