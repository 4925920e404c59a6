"""One type for graphs with more than one kind of edge: mixed graphs, chain graphs, equivalence classes of DAGs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.frames import Tabular, drawing
from markovfield.graphs._nodes import kind_of, node_set

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MixedGraph", "as_mixed_graph"]

# Edges and lone nodes that the text of a graph names.
SHOWN = 16


class MixedGraph(Tabular):
    """A graph whose edges are arrows, bidirected edges and undirected edges; it cannot be changed.

    Arrows and bidirected edges make a directed mixed graph (read by `m_separated`); arrows and undirected edges make a
    chain graph (read by `chain_separated`), of which the equivalence class of a DAG (`cpdag`) is one. Two nodes may be
    joined by edges of different kinds.

    Parameters
    ----------
    nodes
        Nodes, in the order wanted; those of the edges are added after them.
    directed
        Arrows: pairs (from, to), or a networkx.DiGraph.
    bidirected, undirected
        Edges: pairs, or a networkx.Graph.

    Attributes
    ----------
    directed, bidirected, undirected
        A frozen networkx graph each, on all nodes.

    Examples
    --------
    >>> graph = MixedGraph(directed=[("A", "B")], bidirected=[("B", "C")])
    >>> graph
    MixedGraph(A -> B, B <-> C)
    >>> list(graph), graph.parents("B"), graph.siblings("B")
    (['A', 'B', 'C'], ['A'], ['C'])
    """

    directed: nx.DiGraph
    bidirected: nx.Graph
    undirected: nx.Graph
    __slots__ = ("bidirected", "directed", "undirected")

    def __init__(
        self,
        nodes: Iterable[Any] = (),
        *,
        directed: nx.DiGraph | Iterable[tuple[Any, Any]] = (),
        bidirected: nx.Graph | Iterable[tuple[Any, Any]] = (),
        undirected: nx.Graph | Iterable[tuple[Any, Any]] = (),
    ) -> None:
        import networkx as nx

        parts: dict[str, Any] = {"directed": nx.DiGraph(), "bidirected": nx.Graph(), "undirected": nx.Graph()}
        order = dict.fromkeys(nodes)
        sources: dict[str, Any] = {"directed": directed, "bidirected": bidirected, "undirected": undirected}
        for name, source in sources.items():
            if hasattr(source, "is_directed"):
                if source.is_directed() != (name == "directed"):
                    wanted = "networkx.DiGraph" if name == "directed" else "networkx.Graph"
                    raise ModelError(f"{name} of MixedGraph must be a {wanted}, got a {type(source).__name__}")
                order.update(dict.fromkeys(source))
                pairs = list(source.edges())
            else:
                pairs = [tuple(pair) for pair in source]
            for pair in pairs:
                if len(pair) != 2 or pair[0] == pair[1]:
                    raise ModelError(f"{name} of MixedGraph joins pairs of different nodes, got {pair!r}")
                order.update(dict.fromkeys(pair))
            parts[name].add_edges_from(pairs)
        for name, part in parts.items():
            whole = part.__class__()
            whole.add_nodes_from(order)
            whole.add_edges_from(part.edges())
            object.__setattr__(self, name, nx.freeze(whole))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a MixedGraph cannot be changed; make a new one instead of setting {name}")

    def __reduce__(self) -> Any:
        parts = [list(part.edges()) for part in (self.directed, self.bidirected, self.undirected)]
        return _rebuilt, (list(self), *parts)

    @property
    def nodes(self) -> list[Any]:
        """The nodes, in order."""
        return list(self.directed)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        parts = {"->": self.directed, "<->": self.bidirected, "--": self.undirected}
        edges = [(a, kind, b) for kind, part in parts.items() for a, b in part.edges()][:limit]
        return {name: [edge[i] for edge in edges] for i, name in enumerate(("from", "edge", "to"))}

    def _picture(self) -> str:
        return drawing(self, len(self))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.directed)

    def __len__(self) -> int:
        return len(self.directed)

    def __contains__(self, node: object) -> bool:
        return node in self.directed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MixedGraph) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[frozenset[Any], ...]:
        return (
            frozenset(self),
            frozenset(self.directed.edges()),
            frozenset(map(frozenset, self.bidirected.edges())),
            frozenset(map(frozenset, self.undirected.edges())),
        )

    def __repr__(self) -> str:
        kinds = ((self.directed, "->"), (self.bidirected, "<->"), (self.undirected, "--"))
        shown = [f"{u} {arrow} {v}" for part, arrow in kinds for u, v in part.edges()]
        joined = {v for part, _ in kinds for edge in part.edges() for v in edge}
        shown += [str(v) for v in self if v not in joined]
        return f"MixedGraph({', '.join(shown[:SHOWN])}{', ...' if len(shown) > SHOWN else ''})"

    def parents(self, node: Any) -> list[Any]:
        """Nodes with an arrow to the node."""
        return list(self.directed.pred[node])

    def children(self, node: Any) -> list[Any]:
        """Nodes with an arrow from the node."""
        return list(self.directed.succ[node])

    def siblings(self, node: Any) -> list[Any]:
        """Nodes joined to the node by a bidirected edge."""
        return list(self.bidirected.adj[node])

    def neighbours(self, node: Any) -> list[Any]:
        """Nodes joined to the node by an undirected edge."""
        return list(self.undirected.adj[node])

    def adjacent(self, u: Any, v: Any) -> bool:
        """Whether an edge of any kind joins two nodes."""
        return bool(
            self.directed.has_edge(u, v)
            or self.directed.has_edge(v, u)
            or self.bidirected.has_edge(u, v)
            or self.undirected.has_edge(u, v)
        )

    def skeleton(self) -> nx.Graph:
        """The undirected graph of all adjacencies."""
        import networkx as nx

        skeleton = nx.Graph()
        skeleton.add_nodes_from(self)
        for part in (self.directed, self.bidirected, self.undirected):
            skeleton.add_edges_from(part.edges())
        return skeleton

    def subgraph(self, nodes: Any) -> MixedGraph:
        """The graph induced on a node or a collection of nodes."""
        kept = node_set(self, nodes, "subgraph", "nodes")
        return MixedGraph(
            (v for v in self if v in kept),
            directed=self.directed.subgraph(kept).edges(),
            bidirected=self.bidirected.subgraph(kept).edges(),
            undirected=self.undirected.subgraph(kept).edges(),
        )


def _rebuilt(nodes: Any, directed: Any, bidirected: Any, undirected: Any) -> MixedGraph:
    return MixedGraph(nodes, directed=directed, bidirected=bidirected, undirected=undirected)


def as_mixed_graph(graph: Any, caller: str = "as_mixed_graph") -> MixedGraph:
    """A networkx graph as a mixed one: arrows for a DiGraph, undirected edges for a Graph; self-loops of the latter go.

    Examples
    --------
    >>> import networkx as nx
    >>> as_mixed_graph(nx.path_graph(3))
    MixedGraph(0 -- 1, 1 -- 2)
    """
    kind = kind_of(graph, caller)
    if kind == "mixed":
        mixed: MixedGraph = graph
        return mixed
    if kind == "directed":
        return MixedGraph(graph, directed=graph.edges())
    return MixedGraph(graph, undirected=[(u, v) for u, v in graph.edges() if u != v])
