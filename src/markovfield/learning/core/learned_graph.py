"""Undirected structures learned from data: the other answer of ``learn_structure``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.frames import Tabular, drawing
from markovfield.learning.core.data import DataTable
from markovfield.models import MarkovNetwork
from markovfield.names import VariableName

if TYPE_CHECKING:
    from collections.abc import Iterable

    import networkx as nx

    from markovfield.arrays import FloatArray
    from markovfield.gaussian.gaussian_field import GaussianField

__all__ = ["EdgeMove", "Learned", "LearnedGraph", "undirected_graph"]


@dataclass(frozen=True)
class EdgeMove:
    """One step of a search: ``kind`` is "add" or "delete", of the edge between ``first`` and ``second``."""

    kind: str
    first: VariableName
    second: VariableName
    gain: float

    def __str__(self) -> str:
        return f"{self.kind} {self.first} - {self.second} ({self.gain:+.6g})"


@dataclass(frozen=True, eq=False, kw_only=True)
class Learned(Tabular):
    """What every structure learned from data says of itself: over which variables, by whom, how well and how long."""

    variables: tuple[VariableName, ...]
    states: tuple[tuple[Any, ...], ...]
    method: str
    score: float | None = None
    score_name: str | None = None
    history: tuple[Any, ...] = ()
    iterations: int = 1
    converged: bool = True
    stopped: str | None = None
    seconds: float = 0.0

    def _states(self) -> dict[VariableName, Any]:
        """For each variable its states, or how many there are where they are named by their numbers."""
        return {
            v: len(s) if s == tuple(range(len(s))) and not any(isinstance(x, bool) for x in s) else s
            for v, s in zip(self.variables, self.states, strict=True)
        }

    def _line(self, joins: str, count: int) -> str:
        """One line, with so many edges or arcs."""
        n = len(self.variables)
        parts = [f"{n} variable{'s' * (n != 1)}, {count} {joins}{'s' * (count != 1)}"]
        if self.score is not None:
            parts.append(f"{self.score_name} {self.score:.8g}")
        parts.append(f"{self.method}, {self.seconds:.3g} s")
        if not self.converged:
            parts.append(f"stopped by {self.stopped}")
        return f"{type(self).__name__}({'; '.join(parts)})"


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedGraph(Learned):
    """An undirected structure learned from data.

    Attributes
    ----------
    graph
        ``networkx.Graph`` on the variables, in the order of the data; edges have a ``weight`` where the method gives
        them one.
    generators
        Sets of variables that interact, where that says more than the edges: the generators of a hierarchical
        log-linear model. None: the edges.
    score, score_name
        What was maximised, and its name; None where nothing was.
    history
        The steps from the start to `graph`, with their gains.
    converged
        False when the search was stopped before its end; `stopped` says by what.
    gaussian
        The `GaussianField` that was estimated with the graph, where variables are real-valued; None otherwise.
    details
        What else a method has to show: a path of penalties, frequencies of edges, a goodness of fit.
    """

    graph: nx.Graph
    generators: tuple[tuple[VariableName, ...], ...] | None = None
    notes: tuple[str, ...] = ()
    gaussian: GaussianField | None = field(default=None, repr=False)
    details: Any = field(default=None, repr=False)

    @property
    def edges(self) -> tuple[tuple[VariableName, VariableName], ...]:
        """Pairs of neighbours."""
        return tuple(self.graph.edges())

    @property
    def precision(self) -> Any:
        """The estimated precision matrix of real-valued variables, a SciPy CSC array in the order of `variables`."""
        return self._field().precision

    @property
    def covariance(self) -> FloatArray:
        """``float64[n, n]``, the inverse of `precision`."""
        return self._field().covariance

    def _field(self) -> GaussianField:
        if self.gaussian is None:
            raise ModelError(f"method {self.method!r} learns a graph without numbers: fit a model on it")
        return self.gaussian

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        edges = self.edges[:limit]
        columns: dict[Any, Any] = {"first": [a for a, _ in edges], "second": [b for _, b in edges]}
        weights = [self.graph.edges[e].get("weight") for e in edges]
        return columns if None in weights else columns | {"weight": weights}

    def _picture(self) -> str:
        return drawing(self.graph, len(self.variables))

    def to_network(self) -> Any:
        """A model with this structure and no numbers yet: `markovfield.fit` gives them.

        A `MarkovNetwork`, or a `GaussianMarkovField` where variables are real-valued.
        """
        if not self.states:
            from markovfield.models.gaussian.markov_field import GaussianMarkovField

            return GaussianMarkovField(self.graph)
        net = MarkovNetwork(self._states())
        scopes = self.generators
        if scopes is None:
            scopes = (*((v,) for v in self.variables), *self.edges)
        for scope in scopes:
            net.add_unknown(scope)
        return net

    def __repr__(self) -> str:
        return self._line("edge", self.graph.number_of_edges())


def undirected_graph(table: DataTable, edges: Iterable[tuple[int, int]], weights: Iterable[float] = ()) -> nx.Graph:
    """The graph on a table's variables with edges given by position, and their weights, if there are any."""
    import networkx as nx

    graph = nx.Graph()
    for v, states in zip(table.variables, table.states, strict=True):
        graph.add_node(v, states=states)
    weighed = list(weights)
    for i, (a, b) in enumerate(edges):
        graph.add_edge(table.variables[a], table.variables[b], **({"weight": weighed[i]} if weighed else {}))
    return graph
