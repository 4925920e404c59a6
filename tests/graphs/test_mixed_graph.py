"""Mixed graphs, m-separation and latent confounders."""

from __future__ import annotations

import copy
import pickle

import networkx as nx
import pytest
from hypothesis import given, settings

from markovfield.exceptions import ModelError
from markovfield.graphs import MixedGraph, as_mixed_graph, d_separated, m_separated, with_latent_confounders
from tests.graphs import independence_cases as cases


@given(cases.triples(cases.mixed_graphs()))
@settings(max_examples=300, deadline=None)
def test_walks_latent_parents_and_the_definition_agree(case):
    graph, a, b, c = case
    expected = cases.blocked_by_definition(graph, a, b, c)
    assert m_separated(graph, a, b, c, method="paths") == expected
    assert m_separated(graph, a, b, c, method="latent") == expected
    assert d_separated(with_latent_confounders(graph), a, b, c) == expected


@given(cases.triples(cases.dags()))
@settings(max_examples=50, deadline=None)
def test_without_bidirected_edges_it_is_d_separation(case):
    dag, a, b, c = case
    assert m_separated(dag, a, b, c) == d_separated(dag, a, b, c)


@given(cases.mixed_graphs(5), cases.seeds)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_m_separation_is_independence_in_a_faithful_distribution(graph, seed):
    cases.assert_faithful(graph, cases.draws(cases.mixed_joint, graph, seed), m_separated)


@pytest.mark.parametrize("method", ["paths", "latent"])
def test_a_covariance_graph_states_marginal_independence(method):
    # Murphy 19.4.4.1: nodes that are not joined are independent, and become dependent by what lies between.
    graph = MixedGraph(bidirected=[("Y1", "Y2"), ("Y2", "Y3"), ("Y3", "Y4")])
    assert m_separated(graph, "Y1", "Y3", method=method)
    assert not m_separated(graph, "Y1", "Y3", given="Y2", method=method)
    assert m_separated(graph, "Y1", ["Y3", "Y4"], method=method)
    assert not m_separated(graph, "Y1", "Y4", given=["Y2", "Y3"], method=method)


def test_latent_confounders_are_marked():
    dag = with_latent_confounders(MixedGraph(["A", "B", "C"], directed=[("A", "B")], bidirected=[("B", "C")]))
    assert [v for v, latent in dag.nodes(data="latent") if latent] == [("latent", "B", "C")]
    assert set(dag.edges) == {("A", "B"), (("latent", "B", "C"), "B"), (("latent", "B", "C"), "C")}


def test_the_three_kinds_of_edges_and_the_order_of_nodes():
    graph = MixedGraph("DCBA", directed=[("A", "B")], bidirected=[("A", "B"), ("B", "C")], undirected=[("D", "E")])
    assert graph.nodes == ["D", "C", "B", "A", "E"] and len(graph) == 5 and "E" in graph and "F" not in graph
    assert graph.parents("B") == ["A"] and graph.children("A") == ["B"]
    assert graph.siblings("B") == ["A", "C"] and graph.neighbours("E") == ["D"]
    assert graph.adjacent("C", "B") and graph.adjacent("B", "A") and not graph.adjacent("A", "E")
    assert sorted(map(sorted, graph.skeleton().edges)) == [["A", "B"], ["B", "C"], ["D", "E"]]
    assert repr(graph) == "MixedGraph(A -> B, C <-> B, B <-> A, D -- E)"
    assert graph.subgraph(["A", "B"]) == MixedGraph(directed=[("A", "B")], bidirected=[("A", "B")])
    assert repr(MixedGraph(["A"])) == "MixedGraph(A)"


def test_equality_is_of_nodes_and_edges():
    first = MixedGraph(["A", "B", "C"], undirected=[("A", "B")])
    assert first == MixedGraph(["C", "B", "A"], undirected=[("B", "A")])
    assert hash(first) == hash(MixedGraph(["C"], undirected=[("B", "A")]))
    assert first != MixedGraph(["A", "B"], undirected=[("A", "B")])
    assert first != MixedGraph(["A", "B", "C"], directed=[("A", "B")])
    assert pickle.loads(pickle.dumps(first)) == first == copy.deepcopy(first)


def test_it_cannot_be_changed_and_does_not_hold_on_to_its_arguments():
    dag = nx.DiGraph([("A", "B")])
    graph = MixedGraph(directed=dag)
    dag.add_edge("B", "C")
    assert "C" not in graph
    with pytest.raises(nx.NetworkXError, match="Frozen graph"):
        graph.directed.add_edge("B", "C")
    with pytest.raises(AttributeError, match="cannot be changed"):
        graph.directed = dag


def test_networkx_graphs_become_mixed_ones():
    assert as_mixed_graph(nx.Graph([(0, 1), (1, 1)])) == MixedGraph(undirected=[(0, 1)])
    assert as_mixed_graph(nx.DiGraph([(0, 1)])) == MixedGraph(directed=[(0, 1)])


def test_errors():
    with pytest.raises(ModelError, match=r"bidirected of MixedGraph must be a networkx\.Graph, got a DiGraph"):
        MixedGraph(bidirected=nx.DiGraph([(0, 1)]))
    with pytest.raises(ModelError, match=r"directed of MixedGraph joins pairs of different nodes, got \(1, 1\)"):
        MixedGraph(directed=[(1, 1)])
    with pytest.raises(ModelError, match="m_separated has no meaning for undirected edges"):
        m_separated(MixedGraph(undirected=[("A", "B")]), "A", "B")
    with pytest.raises(ModelError, match="method of m_separated must be 'paths' or 'latent', got 'moral'"):
        m_separated(MixedGraph("AB"), "A", "B", method="moral")
    with pytest.raises(ModelError, match="m_separated needs a graph without directed cycles"):
        m_separated(MixedGraph(directed=[("A", "B"), ("B", "A")]), "A", "B")
    taken = MixedGraph([("latent", "A", "B")], bidirected=[("A", "B")])
    with pytest.raises(ModelError, match="needs the name"):
        with_latent_confounders(taken)
