"""Separation, d-separation and the paths that stay open."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from markovfield.exceptions import ModelError
from markovfield.graphs import (
    MixedGraph,
    active_path,
    as_mixed_graph,
    d_separated,
    dependence,
    elimination_order,
    moralize,
    separated,
)
from tests.graphs import independence_cases as cases
from tests.patience import patience

# Murphy figure 19.2(a).
FIGURE = nx.DiGraph([(1, 2), (1, 3), (2, 4), (2, 5), (3, 5), (3, 6), (4, 7), (5, 7), (6, 7)])


@given(cases.triples(cases.dags()))
@settings(max_examples=500, deadline=None)
def test_both_methods_networkx_and_the_definition_agree(case):
    dag, a, b, c = case
    expected = nx.is_d_separator(dag, a, b, c)
    assert d_separated(dag, a, b, c, method="paths") == expected
    assert d_separated(dag, a, b, c, method="moral") == expected
    assert d_separated(dag, b, a, c) == expected
    assert cases.blocked_by_definition(as_mixed_graph(dag), a, b, c) == expected


@given(cases.triples(cases.undirected_graphs()))
@settings(max_examples=500, deadline=None)
def test_separation_is_removal(case):
    graph, a, b, c = case
    rest = graph.subgraph(set(graph) - c)
    expected = not any(nx.has_path(rest, u, v) for u in a for v in b)
    assert separated(graph, a, b, c) == expected == separated(graph, b, a, c)


@given(cases.dags(6), cases.seeds)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_d_separation_is_independence_in_a_faithful_distribution(dag, seed):
    cases.assert_faithful(dag, cases.draws(cases.dag_joint, dag, seed), d_separated)


@given(cases.triples(cases.dags(6)), cases.seeds)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_d_separation_of_sets_is_independence(case, seed):
    dag, a, b, c = case
    joints = cases.draws(cases.dag_joint, dag, seed)
    found = cases.greatest_dependence(joints, a, b, c)
    assert d_separated(dag, a, b, c) == (found < cases.NO_DEPENDENCE)
    assert max(dependence(joint, a, b, c) for joint in joints) == pytest.approx(found, abs=1e-14)


@given(cases.undirected_graphs(6), cases.seeds)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_separation_is_independence_in_a_faithful_distribution(graph, seed):
    cases.assert_faithful(graph, cases.draws(cases.undirected_joint, graph, seed), separated)


@pytest.mark.parametrize("method", ["paths", "moral"])
def test_statements_murphy_makes_of_figure_19_2(method):
    assert d_separated(FIGURE, 4, 5, given=2, method=method)
    assert not d_separated(FIGURE, 4, 5, given=[2, 7], method=method)
    moral = moralize(FIGURE)
    assert not separated(moral, 4, 5, given=2)
    assert separated(moral, {1, 2}, {6, 7}, given={3, 4, 5})
    assert separated(moral, 1, 7, given={2, 3, 4, 5, 6})
    assert separated(moral, 1, {4, 5, 6, 7}, given=[2, 3])


@pytest.mark.parametrize("method", ["paths", "moral"])
def test_the_three_kinds_of_node_on_a_path(method):
    head_to_tail = nx.DiGraph([("a", "c"), ("c", "b")])
    tail_to_tail = nx.DiGraph([("c", "a"), ("c", "b")])
    head_to_head = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    for dag in (head_to_tail, tail_to_tail):
        assert not d_separated(dag, "a", "b", method=method)
        assert d_separated(dag, "a", "b", "c", method=method)
    assert d_separated(head_to_head, "a", "b", method=method)
    assert not d_separated(head_to_head, "a", "b", "c", method=method)
    assert not d_separated(head_to_head, "a", "b", "d", method=method)
    assert active_path(head_to_head, "a", "b", "d") == ["a", "c", "b"]


@given(cases.triples(cases.mixed_graphs()))
@settings(max_examples=500, deadline=None)
def test_an_active_path_is_one_path_that_is_open(case):
    graph, a, b, c = case
    path = active_path(graph, a, b, c)
    assert (path is None) == cases.blocked_by_definition(graph, a, b, c)
    if path is not None:
        assert path[0] in a and path[-1] in b and len(set(path)) == len(path)
        descendants = {v: {v} | nx.descendants(graph.directed, v) for v in graph}
        assert any(cases._open(graph, edges, c, descendants) for edges in cases._edge_choices(graph, path))


@given(cases.triples(cases.undirected_graphs()))
@settings(max_examples=100, deadline=None)
def test_an_active_path_of_an_undirected_graph_avoids_the_given(case):
    graph, a, b, c = case
    path = active_path(graph, a, b, c)
    assert (path is None) == separated(graph, a, b, c)
    if path is not None:
        assert path[0] in a and path[-1] in b and c.isdisjoint(path)
        assert all(graph.has_edge(u, v) for u, v in itertools.pairwise(path))


def test_a_node_may_be_a_tuple_and_text_is_not_taken_apart():
    grid = nx.grid_2d_graph(3, 3)
    assert separated(grid, (0, 0), (2, 2), given=[(0, 1), (1, 0)])
    assert not separated(grid, (0, 0), [(2, 2), (2, 1)], given=(0, 1))
    assert separated(nx.Graph([("AB", "B"), ("B", "A")]), "AB", "A", given="B")
    sets = nx.Graph([(frozenset("ab"), "c")])
    assert not separated(sets, frozenset("ab"), "c")
    with pytest.raises(ModelError, match="a of separated names 'AB', which is not a node of the graph"):
        separated(nx.path_graph(["A", "B"]), "AB", "B")


def test_empty_sets_are_separated_and_self_loops_mean_nothing():
    graph = nx.Graph([("A", "B"), ("A", "A")])
    assert separated(graph, [], "B") and separated(graph, "A", ())
    assert active_path(graph, "A", "B") == ["A", "B"]
    assert d_separated(nx.DiGraph([("A", "B")]), [], "B", method="moral")


def test_what_is_not_a_graph_or_not_a_node_is_named():
    dag = nx.DiGraph([("A", "B"), ("B", "C")])
    with pytest.raises(ModelError, match=r"needs a graph of networkx, got dict; a model's to_networkx\(\) makes one"):
        elimination_order({"a": 2})
    with pytest.raises(ModelError, match=r"separated needs an undirected graph .* got a directed one"):
        separated(dag, "A", "C")
    with pytest.raises(ModelError, match=r"d_separated needs a directed graph .* got an undirected one"):
        d_separated(nx.path_graph(3), 0, 2)
    with pytest.raises(ModelError, match="d_separated needs a networkx graph or a MixedGraph, got dict"):
        d_separated({"A": ["B"]}, "A", "B")
    with pytest.raises(ModelError, match="given of d_separated names 'X', which is not a node of the graph"):
        d_separated(dag, "A", "C", given=["B", "X"])
    with pytest.raises(ModelError, match="b of d_separated names 7"):
        d_separated(dag, "A", 7)
    with pytest.raises(ModelError, match=r"b of d_separated names \['C'\]"):
        d_separated(dag, "A", [["C"]])
    with pytest.raises(ModelError, match="disjoint sets, but 'B' is in both a and given"):
        d_separated(dag, ["A", "B"], "C", given="B")
    with pytest.raises(ModelError, match="disjoint sets, but 'A' is in both a and b"):
        separated(dag.to_undirected(), "A", ["A", "B"])
    with pytest.raises(ModelError, match="method of d_separated must be 'paths' or 'moral', got 'ball'"):
        d_separated(dag, "A", "C", method="ball")
    with pytest.raises(ModelError, match="active_path has no meaning for undirected edges, got one between"):
        active_path(MixedGraph(directed=[("A", "B")], undirected=[("B", "C")]), "A", "C")


def test_a_cycle_is_printed():
    with pytest.raises(ModelError, match="without directed cycles, got the cycle 'A' -> 'B' -> 'C' -> 'A'"):
        d_separated(nx.DiGraph([("A", "B"), ("B", "C"), ("C", "A")]), "A", "B")


@pytest.mark.parametrize("method", ["paths", "moral"])
def test_ten_thousand_nodes_take_well_under_a_second(method):
    rng = np.random.default_rng(0)
    dag = nx.DiGraph()
    dag.add_nodes_from(range(10_000))
    dag.add_edges_from((int(rng.integers(v)), v) for v in range(1, 10_000) for _ in range(3))
    # One child of all the others: marrying its parents would make 50 million edges.
    dag.add_edges_from((v, "last") for v in range(10_000))
    with patience():
        assert d_separated(dag, 9_998, 9_999, given=list(dag.pred[9_999]), method=method)
        assert not d_separated(dag, 9_998, 9_999, given=[*dag.pred[9_999], "last"], method=method)
