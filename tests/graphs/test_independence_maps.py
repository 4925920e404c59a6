"""Joint tables, independence in distributions, and graphs as maps of it."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.graphs import (
    JointTable,
    MixedGraph,
    cpdag,
    dependence,
    equivalent_to_directed,
    equivalent_to_undirected,
    global_independences,
    independent,
    is_dmap,
    is_imap,
    is_perfect_map,
    local_independences,
    markov_equivalent,
    minimal_imap,
    minimal_undirected_imap,
    moralize,
    pairwise_independences,
    same_independences,
    separated,
)
from tests.graphs import independence_cases as cases

SQUARE = nx.cycle_graph(4)
COLLIDER = nx.DiGraph([(0, 2), (1, 2)])


def graphs(n):
    """Graphs of every kind on nodes 0 to n - 1."""
    makers = [
        lambda rng: cases.random_dag(rng, n, 0.5),
        lambda rng: cases.random_undirected(rng, n, 0.5),
        lambda rng: cases.random_chain_graph(rng, n, 0.6),
        lambda rng: cases.random_mixed(rng, n, 0.3, 2),
    ]
    return st.builds(lambda make, seed: make(np.random.default_rng(seed)), st.sampled_from(makers), cases.seeds)


def copies():
    """Three bits that are always equal: pairwise independent given the third, and dependent."""
    table = np.zeros((2, 2, 2))
    table[0, 0, 0] = table[1, 1, 1] = 0.5
    return JointTable(table, ["A", "B", "C"])


def local_but_not_global():
    """Bits U = W and Y = Z, independent of each other, and X = W and Y: Markov to the chain node by node only."""
    table = np.zeros((2,) * 5)
    for w in range(2):
        for y in range(2):
            table[w, w, w & y, y, y] = 0.25
    return JointTable(table, list("UWXYZ"))


@given(graphs(5), graphs(5))
@settings(max_examples=200, deadline=None)
def test_maps_between_graphs_compare_all_their_statements(first, second):
    stated, held = set(global_independences(first)), set(global_independences(second))
    assert is_imap(first, second) == (stated <= held)
    assert is_dmap(first, second) == (stated >= held)
    assert is_perfect_map(first, second) == same_independences(first, second) == (stated == held)


@given(cases.dags(5), cases.dags(5), cases.seeds)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_maps_of_a_distribution_are_maps_of_its_graph(true, other, seed):
    if len(true) == len(other):
        # The draw with the least dependence among its dependent pairs is the one furthest from a cancellation.
        joint = max(
            cases.draws(cases.dag_joint, true, seed),
            key=lambda j: min(
                (
                    cases.measured_dependence(j, {a}, {b}, set(c))
                    for a, b, c in cases.statements(true)
                    if not independent(true, a, b, c)
                ),
                default=1.0,
            ),
        )
        assert is_perfect_map(true, joint, tolerance=1e-11)
        assert is_imap(other, joint, tolerance=1e-11) == is_imap(other, true)
        assert is_dmap(other, joint, tolerance=1e-11) == is_dmap(other, true)
        moral = moralize(true)
        assert is_imap(moral, joint)
        assert is_perfect_map(moral, joint, tolerance=1e-11) == equivalent_to_undirected(true)


@given(cases.dags(6), st.data())
@settings(max_examples=60, deadline=None)
def test_minimal_imaps_of_a_graph_lose_no_arrow(dag, data):
    order = data.draw(st.permutations(list(dag)))
    found = minimal_imap(dag, order)
    place = {v: i for i, v in enumerate(order)}
    assert all(place[u] < place[v] for u, v in found.edges) and is_imap(found, dag)
    for arrow in list(found.edges):
        fewer = nx.DiGraph(found)
        fewer.remove_edge(*arrow)
        assert not is_imap(fewer, dag)


@given(cases.dags(5), cases.seeds, st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_minimal_imaps_of_a_distribution_are_those_of_its_graph(dag, seed, data):
    joint = cases.dag_joint(dag, np.random.default_rng(seed))
    order = data.draw(st.permutations(list(dag)))
    assert set(minimal_imap(joint, order, tolerance=1e-11).edges) == set(minimal_imap(dag, order).edges)
    sort = list(nx.topological_sort(dag))
    assert set(minimal_imap(joint, sort, tolerance=1e-11).edges) == set(dag.edges)
    moral = moralize(dag)
    assert nx.utils.graphs_equal(minimal_undirected_imap(joint, tolerance=1e-11), moral)


def test_no_dag_is_a_perfect_map_of_the_square():
    # Murphy 19.2.3, figure 19.6.
    perfect = [dag for dag in cases.all_dags(4) if is_perfect_map(dag, SQUARE)]
    assert not perfect and not equivalent_to_directed(SQUARE)
    first_attempt = nx.DiGraph([("D", "A"), ("A", "B"), ("D", "C"), ("B", "C")])
    square = nx.cycle_graph(["A", "B", "C", "D"])
    assert independent(first_attempt, "A", "C", given=["B", "D"])
    assert independent(first_attempt, "B", "D", given="A") and not separated(square, "B", "D", given="A")
    second_attempt = nx.DiGraph([("B", "A"), ("D", "A"), ("B", "C"), ("D", "C")])
    assert independent(second_attempt, "A", "C", given=["B", "D"])
    assert independent(second_attempt, "B", "D") and not separated(square, "B", "D")
    assert not is_imap(first_attempt, square) and not is_imap(second_attempt, square)


def test_no_undirected_graph_is_a_perfect_map_of_a_v_structure():
    assert not any(is_perfect_map(graph, COLLIDER) for graph in cases.all_undirected(3))
    assert not equivalent_to_undirected(COLLIDER)
    # Caetano's exercise: A and B independent, C dependent on both, is a DAG; undirected, C would have to be between.
    assert is_perfect_map(COLLIDER, cases.dag_joint(COLLIDER, np.random.default_rng(0)))


@pytest.mark.parametrize("n", [3, 4])
def test_which_dags_and_undirected_graphs_are_equivalent(n):
    undirected = {frozenset(global_independences(graph)): graph for graph in cases.all_undirected(n)}
    with_dag = set()
    for dag in cases.all_dags(n):
        stated = frozenset(global_independences(dag))
        assert equivalent_to_undirected(dag) == (stated in undirected)
        if stated in undirected:
            with_dag.add(stated)
            assert same_independences(dag, undirected[stated]) and same_independences(cpdag(dag), undirected[stated])
            assert nx.utils.graphs_equal(undirected[stated], nx.Graph(dag.to_undirected()))
    for stated, graph in undirected.items():
        assert equivalent_to_directed(graph) == (stated in with_dag)


def test_without_positivity_pairwise_does_not_give_local_nor_global():
    joint = copies()
    empty = nx.empty_graph(["A", "B", "C"])
    assert all(independent(joint, s.a, s.b, s.given) for s in pairwise_independences(empty))
    assert not any(independent(joint, s.a, s.b, s.given) for s in local_independences(empty))
    assert not independent(joint, "A", "B")
    assert not is_imap(empty, joint)
    # The chain is one, and so is the chain in any other order: there is no single minimal one.
    assert is_imap(nx.path_graph(["A", "B", "C"]), joint) and is_imap(nx.path_graph(["B", "A", "C"]), joint)
    with pytest.raises(ModelError, match="minimal_undirected_imap needs a positive distribution"):
        minimal_undirected_imap(joint)


def test_without_positivity_local_does_not_give_global():
    joint = local_but_not_global()
    chain = nx.path_graph(list("UWXYZ"))
    assert all(independent(joint, s.a, s.b, s.given) for s in local_independences(chain))
    assert separated(chain, "W", "Y", given="X") and not independent(joint, "W", "Y", given="X")
    assert not is_imap(chain, joint)


def test_minimal_imaps_of_a_distribution_with_zeros():
    assert sorted(minimal_imap(copies(), "ABC").edges) in ([("A", "B"), ("A", "C")], [("A", "B"), ("B", "C")])
    xor = np.zeros((2, 2, 2))
    for a in range(2):
        for b in range(2):
            xor[a, b, a ^ b] = 0.25
    joint = JointTable(xor, "ABC")
    dag = minimal_imap(joint, "ABC")
    assert set(dag.edges) == {("A", "C"), ("B", "C")} and is_imap(dag, joint) and not is_dmap(dag, joint)


def test_models_are_read_as_their_joint_tables():
    net = mf.BayesianNetwork({"rain": ["no", "yes"], "sprinkler": 2, "wet": 3})
    net.add_cpt("rain", [], [0.8, 0.2])
    net.add_cpt("sprinkler", [], [0.6, 0.4])
    net.add_cpt(
        "wet", ["sprinkler", "rain"], [[[0.9, 0.05, 0.05], [0.2, 0.3, 0.5]], [[0.1, 0.6, 0.3], [0.1, 0.1, 0.8]]]
    )
    joint = JointTable.of(net)
    assert joint.variables == ("rain", "sprinkler", "wet") and joint.probabilities.shape == (2, 2, 3)
    assert joint.probabilities[1, 0, 2] == pytest.approx(0.2 * 0.6 * 0.5)
    dag = nx.DiGraph([("rain", "wet"), ("sprinkler", "wet")])
    assert is_perfect_map(dag, net) and independent(net, "rain", "sprinkler")
    assert dependence(net, "rain", "sprinkler", given="wet") > 0.01


def test_clauses_and_shared_scopes_are_in_the_joint_table():
    net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    net.add_clause({"A": 1}, {"C": 1}, weight=np.inf)
    net.add_factor(["C", "A"], [[1.0, 2.0], [3.0, 4.0]])
    joint = JointTable.of(net)
    # C = 1 with A = 0 breaks the clause; B is free.
    expected = np.array([[1.0, 0.0], [2.0, 4.0]])[:, None, :] * np.ones((1, 2, 1)) / 14
    np.testing.assert_allclose(joint.probabilities, expected, rtol=1e-14)
    assert not joint.is_positive


def test_joint_tables_are_normalised_and_frozen():
    joint = JointTable([[1, 2], [3, 4]], ["A", "B"])
    np.testing.assert_allclose(joint.probabilities, [[0.1, 0.2], [0.3, 0.4]])
    assert repr(joint) == "JointTable(A: 2, B: 2)" and list(joint) == ["A", "B"] and "A" in joint and len(joint) == 2
    with pytest.raises(ValueError, match="read-only"):
        joint.probabilities[0, 0] = 1
    with pytest.raises(AttributeError, match="cannot be changed"):
        joint.variables = ("X", "Y")
    again = pickle.loads(pickle.dumps(joint))
    assert again.variables == joint.variables and np.array_equal(again.probabilities, joint.probabilities)
    np.testing.assert_allclose(joint.grouped("B", "A"), [[0.1, 0.3], [0.2, 0.4]])


def test_dependence_skips_what_cannot_happen():
    table = np.zeros((2, 2, 2))
    table[:, :, 0] = np.outer([0.3, 0.7], [0.6, 0.4])
    joint = JointTable(table, "ABC")
    assert dependence(joint, "A", "B", given="C") < 1e-15 and independent(joint, "A", ["B", "C"])


def test_errors_of_distributions():
    with pytest.raises(ModelError, match="one axis per variable, got 2 axes for 1 variables"):
        JointTable([[0.5, 0.5]], ["A"])
    with pytest.raises(ModelError, match=r"variables of JointTable must be different, got \['A', 'A'\]"):
        JointTable([[0.5, 0.5]], ["A", "A"])
    for bad in ([-0.5, 1.5], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], []):
        with pytest.raises(ModelError, match="finite numbers, none negative and not all zero"):
            JointTable(bad, ["A"])
    large = mf.MarkovNetwork(dict.fromkeys(range(21), 2))
    with pytest.raises(ModelError, match=r"up to 2\*\*20 joint states and 64 variables, got 2\*\*21.0 states of 21"):
        independent(large, 0, 1)
    many = mf.MarkovNetwork(dict.fromkeys(range(65), 1))
    with pytest.raises(ModelError, match="of 65 variables"):
        JointTable.of(many)
    never = mf.MarkovNetwork({"A": 2})
    never.add_factor(["A"], [0.0, 0.0])
    with pytest.raises(ModelError, match="some configuration is possible"):
        JointTable.of(never)
    with pytest.raises(ModelError, match="dependence needs a JointTable or a model with compile"):
        dependence(np.ones((2, 2)), 0, 1)
    joint = copies()
    with pytest.raises(ModelError, match="b of independent names 'X', which is not a variable of the distribution"):
        independent(joint, "A", "X")
    with pytest.raises(ModelError, match="tolerance of independent must not be negative, got -1"):
        independent(joint, "A", "B", tolerance=-1)


def test_errors_of_maps():
    joint = copies()
    with pytest.raises(ModelError, match="is_imap needs the same nodes on both sides, but 'D' is on one side only"):
        is_imap(nx.path_graph(["A", "B", "C", "D"]), joint)
    with pytest.raises(ModelError, match="is_dmap needs a networkx graph or a MixedGraph, got JointTable"):
        is_dmap(joint, nx.path_graph(["A", "B", "C"]))
    with pytest.raises(ModelError, match="same_independences compares two graphs, got a JointTable"):
        same_independences(nx.path_graph(["A", "B", "C"]), joint)
    with pytest.raises(ModelError, match="order of minimal_imap must name each of the 3 variables once"):
        minimal_imap(joint, ["A", "B"])
    wide = mf.MarkovNetwork(dict.fromkeys(range(13), 2))
    with pytest.raises(ModelError, match=r"is_dmap would test 159744 statements about 13 variables .* over 2\*\*17"):
        is_dmap(nx.empty_graph(13), wide)
    confounded = MixedGraph(range(13), bidirected=[(0, 1)])
    with pytest.raises(ModelError, match="is_imap would test 159744 statements"):
        is_imap(confounded, wide)
    # The local and pairwise properties have no such limit.
    assert is_imap(nx.empty_graph(13), wide) and is_imap(nx.empty_graph(13, nx.DiGraph), wide)
    assert markov_equivalent(nx.empty_graph(13, nx.DiGraph), minimal_imap(wide, range(13)))
