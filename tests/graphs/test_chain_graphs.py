"""Chain graphs: recognition, components and separation."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings

from markovfield.exceptions import ModelError
from markovfield.graphs import (
    MixedGraph,
    ancestral_graph,
    chain_components,
    chain_separated,
    cpdag,
    d_separated,
    is_chain_graph,
    moralize,
    separated,
)
from tests.graphs import independence_cases as cases


@given(cases.chain_graphs(), cases.seeds)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_chain_separation_is_independence_in_a_faithful_distribution(graph, seed):
    cases.assert_faithful(graph, cases.draws(cases.chain_joint, graph, seed), chain_separated)


@given(cases.triples(cases.chain_graphs()))
@settings(max_examples=200, deadline=None)
def test_it_is_separation_in_the_moral_ancestral_graph(case):
    graph, a, b, c = case
    assert chain_separated(graph, a, b, c) == separated(moralize(ancestral_graph(graph, a | b | c)), a, b, c)


@given(cases.triples(cases.dags()))
@settings(max_examples=100, deadline=None)
def test_of_a_dag_it_is_d_separation(case):
    dag, a, b, c = case
    assert is_chain_graph(dag)
    assert chain_separated(dag, a, b, c) == d_separated(dag, a, b, c) == chain_separated(cpdag(dag), a, b, c)


@given(cases.triples(cases.undirected_graphs()))
@settings(max_examples=100, deadline=None)
def test_of_an_undirected_graph_it_is_separation(case):
    graph, a, b, c = case
    assert is_chain_graph(graph) and chain_separated(graph, a, b, c) == separated(graph, a, b, c)


@given(cases.chain_graphs())
@settings(max_examples=100, deadline=None)
def test_components_follow_the_arrows(graph):
    assert is_chain_graph(graph)
    components = chain_components(graph)
    assert sorted(v for component in components for v in component) == sorted(graph)
    place = {v: i for i, component in enumerate(components) for v in component}
    assert all(place[u] < place[v] for u, v in graph.directed.edges)
    assert all(place[u] == place[v] for u, v in graph.undirected.edges)


def test_a_second_order_vector_autoregression():
    # Murphy figure 19.10, first components: arrows by (19.30), undirected edges by the precision in (19.31).
    first = {(1, 1), (3, 1), (2, 2), (4, 2), (1, 3), (2, 3), (3, 3), (4, 4), (5, 4), (3, 5), (5, 5)}
    second = {(3, 1), (3, 4), (5, 4), (5, 5)}
    within = [(1, 2), (1, 3), (2, 3)]
    arrows = [((i, t - 1), (j, t)) for t in (1, 2) for i, j in first] + [((i, 0), (j, 2)) for i, j in second]
    lines = [((i, t), (j, t)) for t in range(3) for i, j in within]
    graph = MixedGraph([(i, t) for t in range(3) for i in range(1, 6)], directed=arrows, undirected=lines)
    assert [len(component) for component in chain_components(graph)] == [3, 1, 1, 3, 1, 1, 3, 1, 1]
    before = [(i, t) for t in (0, 1) for i in range(1, 6)]
    # Components 4 and 5 do not interact within a slice given the past; 1 and 2 do.
    assert chain_separated(graph, (4, 2), (5, 2), given=before)
    assert not chain_separated(graph, (1, 2), (2, 2), given=before)
    # Y_1 at time 2 has no arrow from Y_4 at time 1, given all else before it and its neighbours.
    rest = [v for v in before if v != (4, 1)] + [(2, 2), (3, 2)]
    assert chain_separated(graph, (1, 2), (4, 1), given=rest)


def test_what_is_no_chain_graph():
    cycle = MixedGraph(directed=[("A", "B")], undirected=[("B", "C"), ("C", "A")])
    assert not is_chain_graph(cycle)
    assert not is_chain_graph(MixedGraph(directed=[("A", "B"), ("C", "D")], undirected=[("B", "C"), ("D", "A")]))
    assert not is_chain_graph(MixedGraph(bidirected=[("A", "B")]))
    assert not is_chain_graph(nx.DiGraph([(0, 1), (1, 0)]))
    with pytest.raises(ModelError, match="needs a chain graph, but the arrow 'A' -> 'B' is on a cycle"):
        chain_separated(cycle, "A", "C")
    with pytest.raises(ModelError, match="chain_components has no meaning for bidirected edges"):
        chain_components(MixedGraph(bidirected=[("A", "B")]))
    with pytest.raises(ModelError, match="b of chain_separated names 'X'"):
        chain_separated(MixedGraph("AB"), "A", "X")
