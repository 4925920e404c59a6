"""Structures learned from data: the answer of ``learn_structure``, and arcs by position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.frames import drawing
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.learned_graph import Learned, LearnedGraph
from markovfield.models import BayesianNetwork
from markovfield.names import VariableName

if TYPE_CHECKING:
    import networkx as nx

    from markovfield.graphs.mixed_graph import MixedGraph

__all__ = ["LearnedStructure", "Move", "arc_positions", "graph_of"]


@dataclass(frozen=True)
class Move:
    """One step of a search: ``kind`` is "add", "delete" or "reverse", of the arc from ``parent`` to ``child``."""

    kind: str
    parent: VariableName
    child: VariableName
    gain: float

    def __str__(self) -> str:
        return f"{self.kind} {self.parent} -> {self.child} ({self.gain:+.6g})"


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedStructure(Learned):
    """A structure learned from data.

    Attributes
    ----------
    dag
        ``networkx.DiGraph`` on the variables, in the order of the data. What PC finds is a class of DAGs; this is one
        of them.
    cpdag
        The class of all DAGs that encode the same independences.
    score
        What was maximised, or None for PC, which maximises nothing. ``score_name`` says which score it is.
    history
        The moves from the start to `dag`, with their gains.
    separating_sets
        For PC, the set that made each pair of variables independent.
    converged
        False when the search was stopped before its end, by a limit, the callback or Ctrl-C; `stopped` says by which.
    """

    dag: nx.DiGraph
    separating_sets: Mapping[frozenset[VariableName], frozenset[VariableName]] = field(default_factory=dict)
    _cpdag: MixedGraph | None = field(default=None, repr=False)

    @cached_property
    def cpdag(self) -> MixedGraph:
        """Arrows that all equivalent DAGs share, undirected edges for the rest."""
        if self._cpdag is not None:
            return self._cpdag
        from markovfield.graphs.equivalence import cpdag

        return cpdag(self.dag)

    @property
    def arcs(self) -> tuple[tuple[VariableName, VariableName], ...]:
        """Pairs (parent, child)."""
        return tuple(self.dag.edges())

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {"parent": [p for p, _ in self.arcs[:limit]], "child": [c for _, c in self.arcs[:limit]]}

    def _picture(self) -> str:
        return drawing(self.dag, len(self.variables))

    def to_graph(self) -> LearnedGraph:
        """The undirected structure: the moral graph, which of a tree (Chow-Liu's) is the tree without its arrows."""
        from markovfield.graphs.moral import moralize

        fields = {f: getattr(self, f) for f in ("score", "score_name", "iterations", "converged", "stopped", "seconds")}
        return LearnedGraph(
            variables=self.variables, states=self.states, graph=moralize(self.dag), method=self.method, **fields
        )

    def to_network(self) -> BayesianNetwork:
        """A `BayesianNetwork` with this structure and no numbers yet: `markovfield.fit` gives them."""
        net = BayesianNetwork(self._states())
        for v in self.variables:
            net.set_parents(v, sorted(self.dag.predecessors(v), key=self.variables.index))
        return net

    def __repr__(self) -> str:
        return self._line("arc", self.dag.number_of_edges())


def graph_of(table: DataTable, arcs: Iterable[tuple[int, int]]) -> nx.DiGraph:
    """The directed graph on a table's variables with arcs given by position."""
    import networkx as nx

    dag = nx.DiGraph()
    for v, states in zip(table.variables, table.states, strict=True):
        dag.add_node(v, states=states)
    dag.add_edges_from((table.variables[p], table.variables[c]) for p, c in sorted(arcs))
    return dag


def arc_positions(table: DataTable, arcs: Any, argument: str) -> list[tuple[int, int]]:
    """Arcs given by name, as pairs of positions; a directed graph or a network gives its own."""
    from markovfield.names import Names

    if isinstance(arcs, BayesianNetwork):
        pairs: Sequence[Any] = [(p, v) for v in arcs.variables for p in arcs.parents(v)]
    elif hasattr(arcs, "edges"):
        pairs = list(arcs.edges())
    else:
        pairs = list(arcs)
    names = Names(table.variables)
    found = []
    for pair in pairs:
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ModelError(f"{argument} must be pairs (parent, child), got {pair!r}")
        p, c = names.position(pair[0]), names.position(pair[1])
        if p == c:
            raise ModelError(f"{argument} has an arc from {pair[0]!r} to itself")
        found.append((p, c))
    return found
