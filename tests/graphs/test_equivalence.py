"""Equivalence classes of DAGs, and orientation from separating sets."""

from __future__ import annotations

import itertools
from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovfield.exceptions import ModelError
from markovfield.graphs import (
    MixedGraph,
    cpdag,
    d_separated,
    dag_of_cpdag,
    global_independences,
    is_chain_graph,
    markov_equivalent,
    meek_closure,
    orient,
    same_independences,
    v_structures,
)
from tests.graphs import independence_cases as cases
from tests.patience import patience


@pytest.fixture(scope="module")
def classes() -> list[list[nx.DiGraph]]:
    """All DAGs on four nodes, grouped by the statements they make."""
    found = defaultdict(list)
    for dag in cases.all_dags(4):
        found[frozenset(global_independences(dag))].append(dag)
    return list(found.values())


def true_sets(dag):
    """A separating set of every pair that has one, smallest first."""
    sets = {}
    for a, b, c in cases.statements(dag):
        if frozenset((a, b)) not in sets and d_separated(dag, a, b, c):
            sets[frozenset((a, b))] = set(c)
    return sets


def test_classes_on_four_nodes_by_enumeration(classes):
    assert sum(map(len, classes)) == 543 and len(classes) == 185
    graphs = set()
    for members in classes:
        graph = cpdag(members[0])
        graphs.add(graph)
        common = set.intersection(*(set(dag.edges) for dag in members))
        assert set(graph.directed.edges) == common
        assert {frozenset(e) for e in graph.skeleton().edges} == {frozenset(e) for e in members[0].edges}
        assert all(cpdag(dag) == graph and markov_equivalent(dag, members[0]) for dag in members)
        assert is_chain_graph(graph) and same_independences(graph, members[0])
        extension = dag_of_cpdag(graph)
        assert any(set(extension.edges) == set(dag.edges) for dag in members)
    assert len(graphs) == len(classes)


def test_knowledge_of_an_arrow_compels_what_the_class_says(classes):
    for members in classes:
        graph = cpdag(members[0])
        for arrow in {edge for dag in members for edge in dag.edges}:
            common = set.intersection(*(set(dag.edges) for dag in members if dag.has_edge(*arrow)))
            loose = [edge for edge in graph.undirected.edges if set(edge) != set(arrow)]
            closed = meek_closure(MixedGraph(graph, directed=[*graph.directed.edges, arrow], undirected=loose))
            assert set(closed.directed.edges) == common


@pytest.mark.parametrize("arrows", list(itertools.permutations([("c", "d"), ("d", "z")])))
def test_the_fourth_rule(arrows):
    # x - z, x - c, x - d, c -> d -> z, with c and z not adjacent; whichever arrow is looked at first.
    graph = MixedGraph("xdcz", directed=arrows, undirected=[("x", "z"), ("x", "c"), ("x", "d")])
    assert set(meek_closure(graph).directed.edges) == {("c", "d"), ("d", "z"), ("x", "z")}


def test_the_fourth_rule_when_another_rule_makes_its_first_arrow():
    lines = ["xz", "xc", "xd", "xe", "cd"]
    closed = meek_closure(MixedGraph("dezcx", directed=["dz", "ec"], undirected=lines))
    assert closed == MixedGraph(directed=["dz", "ec", "cd", "xd", "xz"], undirected=["xc", "xe"])


def test_an_arrow_that_a_cycle_compels_is_found_though_the_graph_is_not_closed():
    dag = dag_of_cpdag(MixedGraph("vwu", directed=["vw", "wu"], undirected=["uv"]))
    assert set(dag.edges) == {("v", "w"), ("w", "u"), ("v", "u")}


@given(cases.seeds, st.sampled_from([0.8, 0.5, 0.3]))
@settings(max_examples=100, deadline=None)
def test_classes_on_five_nodes_by_reversing_covered_arrows(seed, density):
    # The class of a DAG is what reversing arrows between nodes with otherwise the same parents reaches.
    start = cases.random_dag(np.random.default_rng(seed), 5, density)
    members = {frozenset(start.edges)}
    stack = [start]
    while stack:
        dag = stack.pop()
        for u, v in dag.edges:
            if set(dag.pred[v]) == {*dag.pred[u], u}:
                other = nx.DiGraph(dag)
                other.remove_edge(u, v)
                other.add_edge(v, u)
                if frozenset(other.edges) not in members:
                    members.add(frozenset(other.edges))
                    stack.append(other)
    graph = cpdag(start)
    assert set(graph.directed.edges) == frozenset.intersection(*members)
    assert frozenset(dag_of_cpdag(graph).edges) in members
    # Some of the DAG's arrows known beforehand: common is what the members that have them share.
    rng = np.random.default_rng(seed)
    for share in (0.2, 0.4, 0.6):
        known = {edge for edge in start.edges if rng.random() < share}
        common = frozenset.intersection(*(edges for edges in members if known <= edges))
        arrows = {*graph.directed.edges, *known}
        loose = [edge for edge in graph.undirected.edges if not {edge, edge[::-1]} & arrows]
        closed = meek_closure(MixedGraph(graph, directed=arrows, undirected=loose))
        assert set(closed.directed.edges) == common


@given(cases.dags(6), cases.dags(6))
@settings(max_examples=100, deadline=None)
def test_equivalent_is_the_same_statements(first, second):
    if len(first) == len(second):
        same = set(global_independences(first)) == set(global_independences(second))
        assert markov_equivalent(first, second) == same == (cpdag(first) == cpdag(second))
    else:
        assert not markov_equivalent(first, second)


@given(cases.dags(7))
@settings(max_examples=100, deadline=None)
def test_true_separating_sets_give_the_class(dag):
    sets = true_sets(dag)
    assert orient(dag.to_undirected(), sets) == cpdag(dag)
    assert orient(dag.to_undirected(), {tuple(pair): sorted(c) for pair, c in sets.items()}) == cpdag(dag)


@given(cases.undirected_graphs(8), cases.seeds)
@settings(max_examples=300, deadline=None)
def test_contradicting_sets_never_make_a_cycle(skeleton, seed):
    rng = np.random.default_rng(seed)
    sets = {
        frozenset(pair): {v for v in skeleton if v not in pair and rng.random() < 0.4}
        for pair in itertools.combinations(skeleton, 2)
        if not skeleton.has_edge(*pair)
    }
    graph = orient(skeleton, sets)
    assert nx.is_directed_acyclic_graph(graph.directed)
    assert {frozenset(e) for e in graph.skeleton().edges} == {frozenset(e) for e in skeleton.edges}
    assert graph.directed.number_of_edges() + graph.undirected.number_of_edges() == skeleton.number_of_edges()
    dag = dag_of_cpdag(graph, strict=False)
    assert nx.is_directed_acyclic_graph(dag) and set(graph.directed.edges) <= set(dag.edges)
    assert {frozenset(e) for e in dag.edges} == {frozenset(e) for e in skeleton.edges}


@given(cases.dags(7), cases.seeds)
@settings(max_examples=300, deadline=None)
def test_graphs_with_some_arrows_left_out_are_extended_to_the_same_class(dag, seed):
    # Only arrows of v-structures must stay; which of the others are known is left to chance, closed or not.
    rng = np.random.default_rng(seed)
    kept = {edge for a, c, b in v_structures(dag) for edge in ((a, c), (b, c))}
    loose = [edge for edge in dag.edges if edge not in kept and rng.random() < 0.6]
    arrows = [edge for edge in dag.edges if edge not in loose]
    found = dag_of_cpdag(MixedGraph(dag, directed=arrows, undirected=loose))
    assert set(arrows) <= set(found.edges) and markov_equivalent(found, dag)


def test_the_first_of_two_contradicting_v_structures_wins():
    path = nx.path_graph(["A", "B", "C", "D"])
    graph = orient(path, {("A", "C"): set(), ("B", "D"): set(), ("A", "D"): set()})
    assert set(graph.directed.edges) == {("A", "B"), ("C", "B")} and set(graph.undirected.edges) == {("C", "D")}
    # A pair without a set tells nothing.
    assert orient(path, {}).directed.number_of_edges() == 0


def test_known_arrows_come_first():
    path = nx.path_graph(["A", "B", "C"])
    assert orient(path, {("A", "C"): {"B"}}, directed=[("A", "B")]) == MixedGraph(directed=[("A", "B"), ("B", "C")])
    assert orient(path, {("A", "C"): set()}, directed=[("B", "A")]) == MixedGraph(
        directed=[("B", "A")], undirected=[("B", "C")]
    )


def test_v_structures_of_the_graph_of_figure_19_2():
    dag = nx.DiGraph([(1, 2), (1, 3), (2, 4), (2, 5), (3, 5), (3, 6), (4, 7), (5, 7), (6, 7)])
    assert v_structures(dag) == [(2, 5, 3), (4, 7, 5), (4, 7, 6), (5, 7, 6)]


def test_thousands_of_nodes_take_seconds():
    rng = np.random.default_rng(1)
    dag = nx.DiGraph()
    dag.add_nodes_from(range(3000))
    dag.add_edges_from((int(rng.integers(v)), v) for v in range(1, 3000) for _ in range(2))
    tree = nx.DiGraph((int(rng.integers(v)), v) for v in range(1, 3000))
    with patience():
        for graph in (dag, tree):
            assert cpdag(dag_of_cpdag(cpdag(graph))) == cpdag(graph)
    assert cpdag(tree).directed.number_of_edges() == 0


def test_errors():
    path = nx.path_graph(["A", "B", "C"])
    with pytest.raises(ModelError, match="separating_sets of orient needs pairs of nodes as keys, got 'A'"):
        orient(path, {"A": set()})
    with pytest.raises(ModelError, match="the arrow 'A' -> 'C', which is not an edge of the skeleton"):
        orient(path, {}, directed=[("A", "C")])
    triangle = nx.complete_graph(3)
    with pytest.raises(ModelError, match="the arrow 2 -> 0, which closes a directed cycle"):
        orient(triangle, {}, directed=[(0, 1), (1, 2), (2, 0)])
    with pytest.raises(ModelError, match="orient needs an undirected graph"):
        orient(nx.DiGraph([(0, 1)]), {})
    square = MixedGraph(undirected=nx.cycle_graph(4))
    with pytest.raises(ModelError, match=r"found no DAG .*: the edge between 0 and 1 cannot be directed"):
        dag_of_cpdag(square)
    assert nx.is_directed_acyclic_graph(dag_of_cpdag(square, strict=False))
    with pytest.raises(ModelError, match="dag_of_cpdag needs a graph without directed cycles"):
        dag_of_cpdag(MixedGraph(directed=[(0, 1), (1, 0)]), strict=False)
    with pytest.raises(ModelError, match="meek_closure needs one edge between two nodes, got two between 0 and 1"):
        meek_closure(MixedGraph(directed=[(0, 1)], undirected=[(0, 1)]))
    with pytest.raises(ModelError, match="meek_closure has no meaning for bidirected edges"):
        meek_closure(MixedGraph(bidirected=[(0, 1)]))
    with pytest.raises(ModelError, match="cpdag needs a directed graph"):
        cpdag(triangle)
