"""Moral graphs, ancestral graphs and Markov blankets."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings

from markovfield.exceptions import ModelError
from markovfield.graphs import (
    MixedGraph,
    ancestral_graph,
    as_mixed_graph,
    chain_separated,
    independent,
    m_separated,
    markov_blanket,
    minimal_undirected_imap,
    moralize,
    separated,
)
from tests.graphs import independence_cases as cases
from tests.graphs.test_separation import FIGURE


def edges(graph):
    return sorted(tuple(sorted(edge)) for edge in graph.edges)


def test_murphys_example_of_moralisation():
    moral = moralize(FIGURE)
    added = [(2, 3), (4, 5), (4, 6), (5, 6)]
    assert edges(moral) == sorted([*FIGURE.edges, *added])
    assert markov_blanket(moral, 5) == {2, 3, 4, 6, 7}
    # The text's mb(5) leaves out 7, which by its own account is a child of 5: a slip.
    assert markov_blanket(FIGURE, 5) == {2, 3, 4, 6, 7}


def test_murphys_ancestral_graph():
    ancestral = ancestral_graph(FIGURE, {2, 4, 5})
    assert sorted(ancestral) == [1, 2, 3, 4, 5]
    assert edges(ancestral) == [(1, 2), (1, 3), (2, 4), (2, 5), (3, 5)]
    assert edges(moralize(ancestral)) == [(1, 2), (1, 3), (2, 3), (2, 4), (2, 5), (3, 5)]
    assert separated(moralize(ancestral), 4, 5, given=2)


def test_attributes_are_kept_and_the_argument_is_not_touched():
    dag = nx.DiGraph([("A", "C"), ("B", "C")])
    dag.nodes["A"]["states"] = ["no", "yes"]
    moral = moralize(dag)
    moral.add_node("new")
    assert moral.nodes["A"]["states"] == ["no", "yes"]
    assert set(dag) == {"A", "B", "C"} and dag.number_of_edges() == 2
    line = nx.Graph([("A", "B")])
    line.nodes["A"]["x"] = 1
    assert moralize(line).nodes["A"]["x"] == 1 and edges(moralize(line)) == [("A", "B")]
    part = ancestral_graph(dag, "A")
    part.add_node("new")
    assert "new" not in dag


@given(cases.chain_graphs())
@settings(max_examples=100, deadline=None)
def test_the_moral_graph_is_the_minimal_undirected_imap(graph):
    assert edges(moralize(graph)) == edges(minimal_undirected_imap(graph))


@given(cases.dags())
@settings(max_examples=100, deadline=None)
def test_a_dag_is_moralised_alike_as_a_chain_graph(dag):
    assert edges(moralize(dag)) == edges(moralize(as_mixed_graph(dag))) == edges(nx.moral_graph(dag))


def smallest_blanket(graph, node):
    """The only smallest set that separates a node from all others, by trying all."""
    rest = [v for v in graph if v != node]
    for k in range(len(rest) + 1):
        found = [
            set(given)
            for given in itertools.combinations(rest, k)
            if independent(graph, node, [v for v in rest if v not in given], given)
        ]
        if found:
            assert len(found) == 1
            return found[0]
    raise AssertionError


@given(cases.dags(6))
@settings(max_examples=50, deadline=None)
def test_blankets_of_dags_are_the_smallest(dag):
    for v in dag:
        assert markov_blanket(dag, v) == smallest_blanket(dag, v)


@given(cases.undirected_graphs(6))
@settings(max_examples=50, deadline=None)
def test_blankets_of_undirected_graphs_are_the_smallest(graph):
    for v in graph:
        assert markov_blanket(graph, v) == smallest_blanket(graph, v)


@given(cases.mixed_graphs())
@settings(max_examples=50, deadline=None)
def test_blankets_of_mixed_graphs_are_the_smallest(graph):
    for v in graph:
        assert markov_blanket(graph, v) == smallest_blanket(graph, v)


@given(cases.chain_graphs())
@settings(max_examples=50, deadline=None)
def test_blankets_of_chain_graphs_are_the_smallest(graph):
    for v in graph:
        assert markov_blanket(graph, v) == smallest_blanket(graph, v)


def test_ancestral_sets_of_mixed_and_undirected_graphs():
    chain = MixedGraph(directed=[("A", "B"), ("D", "E")], undirected=[("B", "C"), ("C", "D")])
    assert set(ancestral_graph(chain, "C")) == {"A", "B", "C", "D"}
    mixed = MixedGraph(directed=[("A", "B")], bidirected=[("B", "C")])
    assert ancestral_graph(mixed, "B") == MixedGraph(directed=[("A", "B")])
    assert set(ancestral_graph(nx.Graph([(0, 1), (2, 3)]), 0)) == {0, 1}
    assert chain_separated(chain, "A", "E", given="D") and m_separated(mixed, "A", "C")


def test_errors():
    with pytest.raises(ModelError, match="moralize needs a graph without directed cycles"):
        moralize(nx.DiGraph([(0, 1), (1, 0)]))
    with pytest.raises(ModelError, match="moralize has no meaning for bidirected edges"):
        moralize(MixedGraph(bidirected=[("A", "B")]))
    with pytest.raises(ModelError, match="node of markov_blanket names 'X'"):
        markov_blanket(nx.path_graph(3), "X")
    with pytest.raises(ModelError, match=r"markov_blanket needs one node, got \[0, 1\]"):
        markov_blanket(nx.path_graph(3), [0, 1])
    with pytest.raises(ModelError, match="markov_blanket has no meaning for undirected edges"):
        markov_blanket(MixedGraph(bidirected=[("A", "B")], undirected=[("B", "C")]), "A")
    with pytest.raises(ModelError, match="nodes of ancestral_graph names 9"):
        ancestral_graph(nx.path_graph(3), [1, 9])
