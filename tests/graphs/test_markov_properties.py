"""Statements of independence, and the lists of them the Markov properties give."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings

from markovfield.exceptions import ModelError
from markovfield.graphs import (
    Independence,
    MixedGraph,
    d_separated,
    global_independences,
    independent,
    local_independences,
    moralize,
    ordered_independences,
    pairwise_independences,
    separated,
)
from tests.graphs import independence_cases as cases
from tests.graphs.test_separation import FIGURE


def test_statements_print_compare_and_hash():
    statement = Independence([10, 9], {2}, (1, 3))
    assert str(statement) == repr(statement) == "9, 10 ⊥ 2 | 1, 3"
    assert str(Independence("rain", "sprinkler")) == "rain ⊥ sprinkler"
    assert str(Independence("A", ())) == "A ⊥ ∅"
    assert str(Independence([1, "B"], "A")) == "1, B ⊥ A"
    assert statement == Independence({2}, {9, 10}, {3, 1}) and len({statement, Independence(2, {9, 10}, {3, 1})}) == 1
    assert statement != Independence({2}, {9, 10}, {3}) and statement != "9, 10 ⊥ 2 | 1, 3"
    with pytest.raises(AttributeError):
        statement.a = frozenset()


def test_the_statements_murphy_derives():
    moral = moralize(FIGURE)
    assert Independence(1, 7, {2, 3, 4, 5, 6}) in pairwise_independences(moral)
    assert Independence(1, {4, 5, 6, 7}, {2, 3}) in local_independences(moral)
    stated = set(global_independences(moral))
    assert all(Independence(a, b, {3, 4, 5}) in stated for a in (1, 2) for b in (6, 7))
    assert Independence(4, {1, 3, 5, 6}, {2}) in local_independences(FIGURE)


@given(cases.undirected_graphs(6))
@settings(max_examples=60, deadline=None)
def test_the_lists_of_an_undirected_graph_are_what_separation_says(graph):
    stated = set(global_independences(graph))
    expected = {Independence({a}, {b}, c) for a, b, c in cases.statements(graph) if separated(graph, a, b, c)}
    assert stated == expected
    pairwise = pairwise_independences(graph)
    assert set(pairwise) <= stated and len(set(pairwise)) == len(pairwise)
    assert len(pairwise) == nx.complement(graph).number_of_edges()
    assert all(separated(graph, s.a, s.b, s.given) for s in local_independences(graph))
    assert all(s.a | s.b | s.given == set(graph) for s in (*pairwise, *local_independences(graph)))


@given(cases.dags(6))
@settings(max_examples=60, deadline=None)
def test_the_lists_of_a_dag_are_what_d_separation_says(dag):
    expected = {Independence({a}, {b}, c) for a, b, c in cases.statements(dag) if d_separated(dag, a, b, c)}
    assert set(global_independences(dag)) == expected
    assert set(pairwise_independences(dag)) <= expected
    for statement in (*local_independences(dag), *ordered_independences(dag)):
        assert d_separated(dag, statement.a, statement.b, statement.given)
    # Every missing edge is in some pairwise statement.
    apart = {s.a | s.b for s in pairwise_independences(dag)}
    assert apart == {frozenset(e) for e in nx.complement(dag.to_undirected()).edges}


@given(cases.chain_graphs())
@settings(max_examples=60, deadline=None)
def test_the_lists_of_a_chain_graph_hold_in_it(graph):
    for statement in (*local_independences(graph), *pairwise_independences(graph)):
        assert independent(graph, statement.a, statement.b, statement.given)


def test_a_mixed_graph_has_global_statements_only():
    graph = MixedGraph(bidirected=[("A", "B"), ("B", "C")])
    assert list(global_independences(graph)) == [Independence("A", "C")]
    with pytest.raises(ModelError, match="local_independences has no meaning for bidirected edges"):
        local_independences(graph)
    both = MixedGraph(bidirected=[("A", "B")], undirected=[("B", "C")])
    with pytest.raises(ModelError, match="global_independences has no meaning for undirected edges"):
        global_independences(both)


def test_the_size_of_the_given_sets_can_be_bounded():
    graph = nx.empty_graph(30)
    assert sum(1 for _ in global_independences(graph, max_given=0)) == 435
    with pytest.raises(
        ModelError, match=r"would try 116769423360 statements about 30 nodes, over 2\*\*20; set max_given"
    ):
        global_independences(graph)
    with pytest.raises(ModelError, match="max_given of global_independences must not be negative, got -1"):
        global_independences(graph, max_given=-1)
    path = list(global_independences(nx.path_graph(4), max_given=1))
    assert path == [Independence(0, 2, 1), Independence(0, 3, 1), Independence(0, 3, 2), Independence(1, 3, 2)]


def test_ordered_statements_follow_the_order():
    dag = nx.DiGraph([("A", "B"), ("A", "C")])
    assert ordered_independences(dag, ["A", "C", "B"]) == [Independence("B", "C", "A")]
    with pytest.raises(ModelError, match="order of ordered_independences has 'B' before its parent 'A'"):
        ordered_independences(dag, ["B", "A", "C"])
    with pytest.raises(ModelError, match="must name each of the 3 nodes once, got 2 names"):
        ordered_independences(dag, ["A", "B"])
