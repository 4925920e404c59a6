"""Decomposable graphs and their decompositions."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings

from markovfield.exceptions import ModelError
from markovfield.graphs import (
    decomposition,
    induced_width,
    is_decomposable,
    maximal_cliques,
    perfect_order,
    perfect_sequence,
    same_independences,
    separated,
    triangulate,
)
from tests.graphs import independence_cases as cases


def is_complete(graph):
    return all(graph.has_edge(u, v) for u, v in itertools.combinations(graph, 2))


def decomposable_by_definition(graph):
    """Caetano's recursive definition, trying all ways to cut the nodes into three."""
    if is_complete(graph):
        return True
    for parts in itertools.product(range(3), repeat=len(graph)):
        a, b, c = ([v for v, part in zip(graph, parts, strict=True) if part == k] for k in range(3))
        proper = a and c and is_complete(graph.subgraph(b)) and not any(graph.has_edge(u, v) for u in a for v in c)
        if proper and all(decomposable_by_definition(graph.subgraph(part + b)) for part in (a, c)):
            return True
    return False


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_definition_names_the_chordal_graphs(n):
    for graph in cases.all_undirected(n):
        assert is_decomposable(graph) == decomposable_by_definition(graph)


def test_a_few_graphs_of_five_nodes_by_the_definition():
    house = nx.house_graph()
    assert not is_decomposable(house) and not decomposable_by_definition(house)
    assert is_decomposable(nx.house_x_graph()) == decomposable_by_definition(nx.house_x_graph())
    assert is_decomposable(nx.wheel_graph(4)) and not is_decomposable(nx.wheel_graph(5))


@given(cases.undirected_graphs(9))
@settings(max_examples=150, deadline=None)
def test_decompositions_follow_the_definition(graph):
    chordal = triangulate(graph)
    parts = decomposition(chordal)
    assert (parts is None) == is_complete(chordal)
    if parts is not None:
        a, separator, b = parts
        assert a and b and a | separator | b == set(chordal) and len(a) + len(separator) + len(b) == len(chordal)
        assert is_complete(chordal.subgraph(separator)) and separated(chordal, a, b, separator)
        assert is_decomposable(chordal.subgraph(a | separator)) and is_decomposable(chordal.subgraph(b | separator))


@given(cases.undirected_graphs(9))
@settings(max_examples=150, deadline=None)
def test_perfect_sequences_have_running_intersection(graph):
    chordal = triangulate(graph)
    steps = perfect_sequence(chordal)
    assert len(steps) == len({step.clique for step in steps})
    assert (
        {step.clique for step in steps}
        == set(maximal_cliques(chordal))
        == set(map(frozenset, nx.find_cliques(chordal)))
    )
    before: set = set()
    for i, step in enumerate(steps):
        assert step.separator == step.clique & before and step.residual == step.clique - before and step.residual
        assert i == 0 or any(step.separator <= other.clique for other in steps[:i])
        before |= step.clique


@given(cases.undirected_graphs(7))
@settings(max_examples=100, deadline=None)
def test_perfect_orders_make_no_fill_and_an_equivalent_dag(graph):
    chordal = triangulate(graph)
    order = perfect_order(chordal)
    assert triangulate(chordal, order).number_of_edges() == chordal.number_of_edges()
    assert induced_width(chordal, order) == max(map(len, nx.find_cliques(chordal))) - 1
    place = {v: i for i, v in enumerate(order)}
    dag = nx.DiGraph()
    dag.add_nodes_from(chordal)
    dag.add_edges_from((u, v) if place[u] > place[v] else (v, u) for u, v in chordal.edges)
    assert same_independences(dag, chordal)


def test_edge_cases_and_errors():
    assert decomposition(nx.complete_graph(3)) is None and decomposition(nx.empty_graph(1)) is None
    assert perfect_sequence(nx.Graph()) == [] and perfect_order(nx.Graph()) == []
    parts = decomposition(nx.empty_graph(2))
    assert parts is not None and parts.separator == frozenset()
    square = nx.cycle_graph(4)
    for function in (perfect_order, perfect_sequence, decomposition):
        with pytest.raises(ModelError, match=rf"{function.__name__} needs a decomposable \(chordal\) graph"):
            function(square)
    with pytest.raises(ModelError, match="is_decomposable needs an undirected graph"):
        is_decomposable(nx.DiGraph([(0, 1)]))
