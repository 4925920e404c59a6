"""Degrees, fill and weights kept through eliminations, and safe eliminations, against networkx."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from markovfield.graphs.elimination.greedy_kernel import (
    CARDINALITY,
    DEGREE,
    FILL,
    OWN_WEIGHT,
    STAGE,
    WEIGHT,
    eliminate_vertex,
    initial_state,
)
from markovfield.graphs.elimination.reduce_kernel import reduce_graph
from markovfield.kernels.bitsets import FIXED


def laid(graph: nx.Graph, cards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of bits and the state of a graph on 0, 1, ..., with counts made by the kernel."""
    n = len(graph)
    rows = np.zeros((n, (n + 63) // 64), np.uint64)
    for a, b in graph.edges:
        rows[a, b >> 6] |= np.uint64(1) << np.uint64(b & 63)
        rows[b, a >> 6] |= np.uint64(1) << np.uint64(a & 63)
    state = np.zeros((9, n), np.int64)
    state[CARDINALITY], state[OWN_WEIGHT] = cards, np.round(FIXED * np.log2(cards))
    initial_state(rows, state, n)
    return rows, state


def fill_of(graph: nx.Graph, v: int) -> int:
    return sum(not graph.has_edge(a, b) for a, b in combinations(graph[v], 2))


def check(graph: nx.Graph, state: np.ndarray) -> None:
    for v in graph:
        assert state[DEGREE, v] == graph.degree(v)
        assert state[FILL, v] == fill_of(graph, v)
        assert state[WEIGHT, v] == state[OWN_WEIGHT, v] + sum(state[OWN_WEIGHT, u] for u in graph[v])


def eliminated(graph: nx.Graph, v: int) -> int:
    """Join the neighbours of a vertex and take it out; the size of its clique."""
    graph.add_edges_from(combinations(list(graph[v]), 2))
    size = graph.degree(v) + 1
    graph.remove_node(v)
    return size


@pytest.mark.parametrize(("n", "share"), [(1, 0.0), (12, 0.3), (70, 0.08), (130, 0.03)])
def test_counts_stay_exact(n: int, share: float):
    rng = np.random.default_rng(n)
    graph = nx.gnp_random_graph(n, share, seed=n)
    rows, state = laid(graph, rng.choice([2, 3, 4], n))
    check(graph, state)
    neighbours, touched = np.empty(n, np.int64), np.empty(rows.shape[1], np.uint64)
    for v in rng.permutation(n).tolist()[: n - n // 3]:
        eliminate_vertex(rows, state, v, n, neighbours, touched, 0)
        eliminated(graph, v)
        check(graph, state)


def treewidth(graph: nx.Graph) -> int:
    """By trying, for every set of vertices that go first, the best of its last ones (Bodlaender and others 2012)."""
    n = len(graph)
    best = {0: 0}
    for chosen in range(1, 1 << n):
        values = []
        for v in range(n):
            if chosen >> v & 1:
                before = chosen ^ (1 << v)
                inside = [u for u in range(n) if before >> u & 1]
                part = nx.node_connected_component(graph.subgraph([*inside, v]), v)
                ends = {u for w in part for u in graph[w]} - part
                values.append(max(best[before], len(ends)))
        best[chosen] = min(values)
    return best[(1 << n) - 1]


@pytest.mark.parametrize("seed", range(8))
def test_chordal_graphs_are_taken_whole_without_fill(seed: int):
    rng = np.random.default_rng(seed)
    graph, _ = nx.complete_to_chordal_graph(nx.gnp_random_graph(14, 0.25, seed=seed))
    edges = graph.number_of_edges()
    rows, state = laid(graph, rng.choice([2, 3], 14))
    order = np.full(14, -1, np.int64)
    assert reduce_graph(rows, state, 1, 0, order) == 14
    left, added = graph.copy(), 0
    for v in order.tolist():
        added += fill_of(left, v)
        eliminated(left, v)
    assert added == 0 and graph.number_of_edges() == edges


@pytest.mark.parametrize("seed", range(10))
def test_safe_eliminations_keep_the_width(seed: int):
    graph = nx.gnp_random_graph(8, 0.35, seed=seed)
    rows, state = laid(graph, np.full(8, 2))
    order = np.full(8, -1, np.int64)
    width = treewidth(graph)
    # With two states each, a clique of k vertices weighs k; the width is a bound on the heaviest.
    done = reduce_graph(rows, state, 3, (width + 1) * FIXED, order)
    left, widest = graph.copy(), 0
    for v in order[:done].tolist():
        widest = max(widest, eliminated(left, v) - 1)
    rest = nx.convert_node_labels_to_integers(left)
    assert max(widest, treewidth(rest) if len(rest) else 0) == width
    assert (state[STAGE, order[:done]] == -1).all() and sorted(left) == np.flatnonzero(state[STAGE] == 0).tolist()


def test_lower_stages_go_first():
    graph = nx.path_graph(4)
    rows, state = laid(graph, np.full(4, 2))
    state[STAGE] = [1, 0, 1, 0]
    order = np.full(4, -1, np.int64)
    assert reduce_graph(rows, state, 1, 0, order) == 1 and order[0] == 3
