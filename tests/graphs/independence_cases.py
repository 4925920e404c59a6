"""Graphs of every kind, distributions faithful to them, and separation read off its definition by listing paths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from markovfield.graphs import JointTable, MixedGraph

NO_DEPENDENCE = 1e-12
"""Above any rounding in the dependence of independent variables."""
SOME_DEPENDENCE = 1e-7
"""Below any dependence of dependent variables among the distributions drawn here."""

seeds = st.integers(0, 2**32 - 1)


def sizes(largest: int) -> st.SearchStrategy[int]:
    """Numbers of nodes, the largest first: hypothesis tries the first of a list most, and two nodes tell little."""
    return st.sampled_from(range(largest, 1, -1))


def random_dag(rng: np.random.Generator, n: int, density: float) -> nx.DiGraph:
    """Arrows along a random order, on nodes 0 to n - 1."""
    order = rng.permutation(n).tolist()
    dag = nx.DiGraph()
    dag.add_nodes_from(range(n))
    dag.add_edges_from(pair for pair in itertools.combinations(order, 2) if rng.random() < density)
    return dag


def random_undirected(rng: np.random.Generator, n: int, density: float) -> nx.Graph:
    graph = nx.empty_graph(n)
    graph.add_edges_from(pair for pair in itertools.combinations(range(n), 2) if rng.random() < density)
    return graph


def random_mixed(rng: np.random.Generator, n: int, density: float, n_bidirected: int) -> MixedGraph:
    """Arrows without a cycle and a few bidirected edges, also beside arrows."""
    dag = random_dag(rng, n, density)
    pairs = list(itertools.combinations(range(n), 2))
    chosen = rng.choice(len(pairs), size=min(n_bidirected, len(pairs)), replace=False).tolist()
    return MixedGraph(range(n), directed=dag, bidirected=[pairs[i] for i in chosen])


def random_chain_graph(rng: np.random.Generator, n: int, density: float) -> MixedGraph:
    """Nodes in random blocks: undirected edges within a block, arrows from earlier blocks to later ones."""
    block = rng.integers(0, 4, size=n).tolist()
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < density]
    lines = [(u, v) for u, v in pairs if block[u] == block[v]]
    arrows = [(u, v) if block[u] < block[v] else (v, u) for u, v in pairs if block[u] != block[v]]
    return MixedGraph(range(n), directed=arrows, undirected=lines)


@st.composite
def dags(draw: Any, max_nodes: int = 7) -> nx.DiGraph:
    rng = np.random.default_rng(draw(seeds))
    return random_dag(rng, draw(sizes(max_nodes)), draw(st.sampled_from([0.4, 0.2, 0.7])))


@st.composite
def undirected_graphs(draw: Any, max_nodes: int = 7) -> nx.Graph:
    rng = np.random.default_rng(draw(seeds))
    return random_undirected(rng, draw(sizes(max_nodes)), draw(st.sampled_from([0.4, 0.2, 0.7])))


@st.composite
def mixed_graphs(draw: Any, max_nodes: int = 6) -> MixedGraph:
    rng = np.random.default_rng(draw(seeds))
    n = draw(sizes(max_nodes))
    return random_mixed(rng, n, draw(st.sampled_from([0.4, 0.2])), draw(st.sampled_from([2, 4, 3, 5, 1, 0])))


@st.composite
def chain_graphs(draw: Any, max_nodes: int = 6) -> MixedGraph:
    rng = np.random.default_rng(draw(seeds))
    return random_chain_graph(rng, draw(sizes(max_nodes)), draw(st.sampled_from([0.5, 0.3, 0.8])))


@st.composite
def triples(draw: Any, graphs: Any) -> tuple[Any, set[Any], set[Any], set[Any]]:
    """A graph and three disjoint sets of its nodes: one or two each in the first two, any others in the third."""
    graph = draw(graphs)
    rng = np.random.default_rng(draw(seeds))
    nodes = rng.permutation(list(graph)).tolist()
    a = {nodes.pop() for _ in range(1 + (len(nodes) > 3 and rng.random() < 0.3))}
    b = {nodes.pop() for _ in range(1 + (len(nodes) > 2 and rng.random() < 0.3))}
    share = rng.choice([0.2, 0.5, 0.8])
    return graph, a, b, {v for v in nodes if rng.random() < share}


def statements(nodes: Any) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Every pair of nodes with every set of others."""
    for a, b in itertools.combinations(list(nodes), 2):
        rest = [v for v in nodes if v not in (a, b)]
        for k in range(len(rest) + 1):
            for given in itertools.combinations(rest, k):
                yield a, b, given


def all_dags(n: int) -> Iterator[nx.DiGraph]:
    """Every labelled DAG on nodes 0 to n - 1."""
    pairs = list(itertools.combinations(range(n), 2))
    for choice in itertools.product(range(3), repeat=len(pairs)):
        dag = nx.DiGraph()
        dag.add_nodes_from(range(n))
        dag.add_edges_from(pair if k == 1 else pair[::-1] for pair, k in zip(pairs, choice, strict=True) if k)
        if nx.is_directed_acyclic_graph(dag):
            yield dag


def all_undirected(n: int) -> Iterator[nx.Graph]:
    """Every labelled undirected graph on nodes 0 to n - 1."""
    pairs = list(itertools.combinations(range(n), 2))
    for choice in itertools.product([False, True], repeat=len(pairs)):
        graph = nx.empty_graph(n)
        graph.add_edges_from(pair for pair, there in zip(pairs, choice, strict=True) if there)
        yield graph


# Distributions. The probability of state 1 stays within 0.1 and 0.9, and depends visibly on each parent.


def dag_joint(dag: nx.DiGraph, rng: np.random.Generator) -> JointTable:
    """A product of random conditional tables of binary variables."""
    nodes = list(dag)
    joint = np.ones((2,) * len(nodes))
    for v in nodes:
        family = [nodes.index(u) for u in dag.pred[v]]
        one = rng.uniform(0.1, 0.9, size=(2,) * len(family))
        table = np.stack([1 - one, one], axis=-1)
        joint = joint * spread(table, [*family, nodes.index(v)], len(nodes))
    return JointTable(joint, nodes)


def undirected_joint(graph: nx.Graph, rng: np.random.Generator) -> JointTable:
    """A product of random potentials on the maximal cliques."""
    nodes = list(graph)
    joint = np.ones((2,) * len(nodes))
    for clique in nx.find_cliques(graph):
        table = np.exp(rng.uniform(-1.5, 1.5, size=(2,) * len(clique)))
        joint = joint * spread(table, [nodes.index(v) for v in clique], len(nodes))
    return JointTable(joint, nodes)


def chain_joint(graph: MixedGraph, rng: np.random.Generator) -> JointTable:
    """For every chain component a random Markov network given its parents, normalised for each of their states."""
    nodes = graph.nodes
    joint = np.ones((2,) * len(nodes))
    for component in nx.connected_components(graph.undirected):
        parents = {u for v in component for u in graph.parents(v)}
        local = graph.skeleton().subgraph(component | parents).copy()
        local.add_edges_from(itertools.combinations(parents, 2))
        factor = np.ones((2,) * len(nodes))
        for clique in nx.find_cliques(local):
            table = np.exp(rng.uniform(-1.5, 1.5, size=(2,) * len(clique)))
            factor = factor * spread(table, [nodes.index(v) for v in clique], len(nodes))
        inside = tuple(nodes.index(v) for v in component)
        joint = joint * factor / factor.sum(axis=inside, keepdims=True)
    return JointTable(joint, nodes)


def mixed_joint(graph: MixedGraph, rng: np.random.Generator) -> JointTable:
    """A DAG with a hidden binary parent for each bidirected edge, summed over the hidden ones."""
    dag = nx.DiGraph(graph.directed)
    for i, (u, v) in enumerate(graph.bidirected.edges()):
        dag.add_edges_from([(f"hidden {i}", u), (f"hidden {i}", v)])
    whole = dag_joint(dag, rng)
    hidden = tuple(i for i, v in enumerate(whole.variables) if v not in graph)
    return JointTable(whole.probabilities.sum(axis=hidden), [v for v in whole.variables if v in graph])


def spread(table: np.ndarray, axes: list[int], n: int) -> np.ndarray:
    """A table with its axes put at their places among n, the others of length one."""
    ordered = table.transpose(np.argsort(axes))
    return ordered.reshape([table.shape[axes.index(i)] if i in axes else 1 for i in range(n)])


def measured_dependence(joint: JointTable, a: set[Any], b: set[Any], given: set[Any]) -> float:
    """Largest difference between p(a, b | c) and p(a | c) p(b | c), state by state."""
    axes = {v: i for i, v in enumerate(joint.variables)}
    keep = sorted(axes[v] for v in (*a, *b, *given))
    table = joint.probabilities.sum(axis=tuple(i for i in range(len(axes)) if i not in keep))
    at = {axis: k for k, axis in enumerate(keep)}
    a_axes, b_axes = tuple(at[axes[v]] for v in a), tuple(at[axes[v]] for v in b)
    conditional = table / table.sum(axis=a_axes + b_axes, keepdims=True)
    product = conditional.sum(axis=b_axes, keepdims=True) * conditional.sum(axis=a_axes, keepdims=True)
    return float(np.abs(conditional - product).max())


def greatest_dependence(joints: list[JointTable], a: set[Any], b: set[Any], given: set[Any]) -> float:
    """Largest dependence in several distributions of one graph.

    A single draw can come near a cancellation; three do not at the same statement. Nothing may fall in the gap.
    """
    found = max(measured_dependence(joint, a, b, given) for joint in joints)
    assert not NO_DEPENDENCE <= found <= SOME_DEPENDENCE
    return found


def draws(make: Any, graph: Any, seed: int) -> list[JointTable]:
    """Three random distributions that factorise by a graph."""
    rng = np.random.default_rng(seed)
    return [make(graph, rng) for _ in range(3)]


def assert_faithful(graph: Any, joints: list[JointTable], test: Any) -> None:
    """Every statement about a pair of nodes holds in all the distributions exactly when the graph makes it."""
    for a, b, given in statements(graph):
        found = greatest_dependence(joints, {a}, {b}, set(given))
        assert test(graph, a, b, given) == (found < NO_DEPENDENCE), (a, b, given, found)


# Separation by its definition: every simple path is listed and looked at node by node.


def blocked_by_definition(graph: MixedGraph, a: set[Any], b: set[Any], given: set[Any]) -> bool:
    """Whether every path between two sets is blocked, where arrows and bidirected edges are arrowheads."""
    descendants = {v: {v} | nx.descendants(graph.directed, v) for v in graph}
    for u, v in itertools.product(a, b):
        for path in nx.all_simple_paths(graph.skeleton(), u, v):
            if any(_open(graph, edges, given, descendants) for edges in _edge_choices(graph, path)):
                return False
    return True


def _edge_choices(graph: MixedGraph, path: list[Any]) -> Iterator[tuple[tuple[Any, bool, bool, Any], ...]]:
    """The path with each choice among parallel edges: (from, head at from, head at to, to)."""
    options = []
    for u, v in itertools.pairwise(path):
        here = []
        if graph.directed.has_edge(u, v):
            here.append((u, False, True, v))
        if graph.directed.has_edge(v, u):
            here.append((u, True, False, v))
        if graph.bidirected.has_edge(u, v):
            here.append((u, True, True, v))
        options.append(here)
    return itertools.product(*options)


def _open(graph: MixedGraph, edges: Any, given: set[Any], descendants: dict[Any, set[Any]]) -> bool:
    for before, after in itertools.pairwise(edges):
        node = after[0]
        collider = before[2] and after[1]
        if collider and not (descendants[node] & given):
            return False
        if not collider and node in given:
            return False
    return True
