"""Orders, triangulation and junction trees of networkx graphs."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.graphs import (
    elimination_order,
    has_running_intersection,
    induced_width,
    is_chordal,
    junction_tree,
    maximal_cliques,
    triangulate,
)
from tests.graphs import reference

METHODS = ["auto", "min_fill", "min_weight", "min_degree"]


@st.composite
def graphs(draw):
    """Graphs with string nodes, some without edges."""
    n = draw(st.integers(0, 12))
    graph = nx.gnp_random_graph(n, draw(st.sampled_from([0.1, 0.25, 0.5])), seed=draw(st.integers(0, 10_000)))
    return nx.relabel_nodes(graph, {v: f"x{v}" for v in graph})


@given(graphs(), st.sampled_from(METHODS))
@settings(max_examples=60, deadline=None)
def test_orders_name_every_node_once(graph, method):
    assert sorted(elimination_order(graph, method=method)) == sorted(graph)


def test_cotengra_orders_name_every_node_once():
    pytest.importorskip("cotengra")
    graph = nx.grid_2d_graph(4, 4)
    graph.add_edge("leaf", (0, 0))
    graph.add_node("alone")
    order = elimination_order(graph, method="cotengra", rng=0)
    assert set(order) == set(graph) and len(order) == len(graph)
    assert induced_width(graph, order) <= 6
    assert elimination_order(nx.empty_graph(3), method="cotengra") == [0, 1, 2]


def test_cotengra_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cotengra", None)
    with pytest.raises(ImportError, match="needs cotengra, which is not installed"):
        elimination_order(nx.path_graph(3), method="cotengra")


def test_cardinalities_steer_the_order():
    """Of a cycle's two diagonals, the one between small nodes is added."""
    square = nx.cycle_graph(4)
    cards = {0: 2, 1: 50, 2: 2, 3: 50}
    assert elimination_order(square, cards)[0] in (1, 3)
    assert elimination_order(square, {**cards, 1: 1})[0] == 1


def test_effort_and_rng():
    graph = nx.random_regular_graph(4, 60, seed=2)
    plain = induced_width(graph, elimination_order(graph))
    order = elimination_order(graph, effort=1e7, rng=1)
    assert order == elimination_order(graph, effort=1e7, rng=np.random.default_rng(1))
    assert induced_width(graph, order) <= plain


@given(graphs(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_triangulation_width_cliques_and_tree_of_an_order(graph, random):
    order = sorted(graph)
    random.shuffle(order)
    position = {v: i for i, v in enumerate(order)}
    plain = {position[v]: {position[u] for u in graph[v]} for v in graph}
    higher = reference.eliminate(plain, range(len(order)))
    expected = {frozenset(order[i] for i in c) for c in reference.maximal_cliques(range(len(order)), higher)}
    chordal = triangulate(graph, order)
    assert set(chordal) == set(graph) and all(chordal.has_edge(*e) for e in graph.edges)
    assert chordal.number_of_edges() == sum(map(len, higher))
    assert not len(chordal) or is_chordal(chordal)
    assert induced_width(graph, order) == max(map(len, higher), default=0)
    cliques = maximal_cliques(chordal)
    assert len(cliques) == len(set(cliques)) and set(cliques) == expected
    assert_junction_tree(junction_tree(graph, order), graph, expected)


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_junction_tree_without_an_order(graph):
    tree = junction_tree(graph)
    assert_junction_tree(tree, graph, set(tree))
    if len(graph) and is_chordal(graph):
        assert set(tree) == set(maximal_cliques(graph))


def assert_junction_tree(tree, graph, cliques):
    assert set(tree) == cliques
    assert has_running_intersection(tree)
    assert all(separator == a & b for a, b, separator in tree.edges(data="separator"))
    assert all(any({u, v} <= clique for clique in tree) for u, v in graph.edges)
    assert nx.number_connected_components(tree) == nx.number_connected_components(graph)
    # It is a maximum spanning tree of all cliques by the sizes of their intersections.
    joined = nx.Graph()
    joined.add_nodes_from(cliques)
    joined.add_edges_from((a, b, {"weight": len(a & b)}) for a in cliques for b in cliques if a != b and a & b)
    heaviest = nx.maximum_spanning_tree(joined)
    assert sum(len(s) for _, _, s in tree.edges(data="separator")) == heaviest.size(weight="weight")


def test_chordal_graphs_are_left_as_they_are():
    for seed in range(10):
        chordal = triangulate(nx.gnp_random_graph(15, 0.2, seed=seed))
        assert nx.utils.graphs_equal(triangulate(chordal), chordal)


def test_attributes_survive_and_the_argument_does_not_change():
    graph = nx.cycle_graph(5)
    graph.nodes[0]["colour"] = "red"
    chordal = triangulate(graph)
    assert chordal.nodes[0]["colour"] == "red" and chordal.number_of_edges() == 7
    assert graph.number_of_edges() == 5


def test_running_intersection():
    a, b, c = frozenset("ab"), frozenset("bc"), frozenset("abd")
    assert has_running_intersection(nx.Graph())
    assert has_running_intersection(nx.Graph([(a, c), (c, b)]))
    assert not has_running_intersection(nx.Graph([(a, b), (b, c)]))
    assert not has_running_intersection(nx.Graph([(a, b), (b, c), (c, a)]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: elimination_order(g, method="best"), "method of elimination_order must be one of 'auto'"),
        (lambda g: elimination_order(g, effort=-1), "effort of elimination_order must not be negative"),
        (lambda g: elimination_order(g.to_directed()), "elimination_order needs an undirected graph"),
        (lambda g: elimination_order(g, {0: 2}), "says nothing of node 1"),
        (lambda g: elimination_order(g, {0: 2, 1: 0, 2: 3}), "must be at least 1, got 0 for node 1"),
        (lambda g: induced_width(g, [0, 1]), "order of induced_width must name each of the 3 nodes once, got 2"),
        (lambda g: induced_width(g, [0, 1, 1]), "must name each of the 3 nodes once"),
        (lambda g: junction_tree(g, [0, 1, "z"]), "order of junction_tree names 'z', which is not a node"),
        (lambda g: maximal_cliques(nx.cycle_graph(4)), "maximal_cliques needs a chordal graph"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ModelError, match=message):
        call(nx.path_graph(3))


def test_a_search_given_up_is_an_error(monkeypatch):
    from markovfield.graphs.elimination import orders_kernel as orders

    nothing = np.empty(0, np.int32)
    monkeypatch.setattr(orders, "search_order_balanced", lambda *_: (nothing, np.zeros(1, np.int64), nothing, np.inf))
    for call in (elimination_order, junction_tree):
        with pytest.raises(MemoryLimitError, match=f"{call.__name__} gave up"):
            call(nx.path_graph(3))


def test_importing_loads_neither_networkx_nor_numba():
    code = "import sys, markovfield.graphs; print([m for m in ('numba', 'networkx') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
