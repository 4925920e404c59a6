"""Writing a Markov network down: what is refused, and what the compiled graph holds."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import markovfield as mf
from tests.strategies import Spec, specs


@pytest.fixture
def net() -> mf.MarkovNetwork:
    return mf.MarkovNetwork({"A": 2, "B": ["low", "mid", "high"]})


def test_compile_is_kept_until_the_network_changes(net: mf.MarkovNetwork):
    net.add_factor(["A"], [1, 2])
    first = net.compile()
    assert net.compile() is first
    net.add_factor(["B"], [1, 2, 3])
    second = net.compile()
    assert second is not first and (first.n_factors, second.n_factors) == (1, 2)
    net.add_variable("C", 2)
    assert net.compile().n_variables == 3 and second.n_variables == 2
    assert net.compile().score({"A": 1, "B": "high", "C": 0}) == pytest.approx(np.log(2) + np.log(3))


def test_indices_and_repr(net: mf.MarkovNetwork):
    assert net.add_factor(["A"], [1, 2]) == 0
    assert net.add_factors([["B"], ["B"]], [1, 2, 3]) == range(1, 3)
    assert net.add_clause({"A": 1}) == 3
    assert net.add_factors([], [1, 2]) == range(4, 4)
    assert repr(net) == "MarkovNetwork(2 variables, 4 factors)"
    assert net.variables == ("A", "B")
    assert repr(mf.MarkovNetwork({"A": 2})) == "MarkovNetwork(1 variable, 0 factors)"


def test_potentials_and_log_potentials_agree(net: mf.MarkovNetwork):
    table = np.array([[1, 2, 3], [0, 5, 6]])
    net.add_factor(["A", "B"], table)
    with np.errstate(divide="ignore"):
        net.add_factor(["A", "B"], log_table=np.log(table))
    graph = net.compile()
    np.testing.assert_array_equal(graph.table(0), graph.table(1))
    assert graph.table(0)[1, 0] == -np.inf


def test_inputs_are_neither_kept_nor_changed(net: mf.MarkovNetwork):
    table = np.ones((2, 3))
    scope = ["A", "B"]
    net.add_factor(scope, table)
    log_table = np.zeros(2)
    net.add_factor(["A"], log_table=log_table)
    table[:] = 9.0
    log_table[:] = 9.0
    scope.reverse()
    assert not net.compile().log_tables.any()
    assert net.compile().structure.scope(0).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("scope", "arguments", "message"),
    [
        (["A"], {"table": [1, 2, 3]}, r"the factor on \['A'\] needs a table of shape \(2,\), got \(3,\)"),
        (["B", "A"], {"table": np.ones((2, 3))}, r"shape \(3, 2\), got \(2, 3\)"),
        (["A"], {"table": 1.0}, r"shape \(2,\), got \(\)"),
        ([], {"table": [1.0]}, r"shape \(\), got \(1,\)"),
        (["A"], {"table": [1, -1]}, "negative potential, -1.0; pass log_table="),
        (["A"], {"table": [1, np.nan]}, "not a number"),
        (["A"], {"log_table": [1, np.nan]}, "not a number"),
        (["A"], {"table": [1, np.inf]}, "infinite potential"),
        (["A"], {"log_table": [1, np.inf]}, "infinite potential"),
        (["A"], {}, "not both or neither"),
        (["A"], {"table": [1, 1], "log_table": [0, 0]}, "not both or neither"),
        ("AB", {"table": [1, 1]}, r"a scope is a sequence of variable names; write \['AB'\]"),
        (["a"], {"table": [1, 1]}, "no variable 'a' in the model"),
        (["A", "BB"], {"table": [1, 1]}, "no variable 'BB' in the model; did you mean 'B'"),
        ([["A"]], {"table": [1, 1]}, "no variable"),
        (["A", "B"], {"table": [[1, 2, 3], [4, 5]]}, r"the factor on \['A', 'B'\].* table"),
        (["A"], {"table": ["x", "y"]}, r"the factor on \['A'\].* table"),
    ],
)
def test_factors_refused(net: mf.MarkovNetwork, scope, arguments: dict, message: str):
    with pytest.raises(mf.ModelError, match=message):
        net.add_factor(scope, **arguments)
    assert net.compile().n_factors == 0 and net.compile().structure.n_cells == 0


def test_shared_tables_need_equal_shapes(net: mf.MarkovNetwork):
    with pytest.raises(mf.ModelError, match=r"need equal shapes, got \[\(2,\), \(3,\)\]"):
        net.add_factors([["A"], ["B"]], [1, 2])
    with pytest.raises(mf.ModelError, match="the shared factor needs a table of shape"):
        net.add_factors([["A"]], [1, 2, 3])


@pytest.mark.parametrize(
    ("name", "states", "message"),
    [
        ("A", 2, "already a variable 'A'"),
        (1.5, 2, "named by a str or an int, got 1.5"),
        (("A", 1), 2, "named by a str or an int"),
        (True, 2, "named by a str or an int, got True"),
        ("C", 0, "variable 'C' needs at least one state"),
        ("C", ["x", "x"], "not distinct"),
    ],
)
def test_variables_refused(net: mf.MarkovNetwork, name, states, message: str):
    with pytest.raises(mf.ModelError, match=message):
        net.add_variable(name, states)
    assert net.variables == ("A", "B")


def test_integer_names_may_be_numpy_integers():
    net = mf.MarkovNetwork({np.int64(3): 2, 4: 2})
    net.add_factor([3, np.int32(4)], np.ones((2, 2)))
    assert net.variables == (3, 4)
    with pytest.raises(mf.ModelError, match="already a variable 3"):
        net.add_variable(3, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"positive": {"C": 1}}, "no variable 'C'"),
        ({"positive": {"A": 2}}, "state index 2 of variable 'A' is outside 0 to 1"),
        ({"negative": {"B": "none"}}, "variable 'B' has no state 'none'"),
        ({"positive": {"A": 1}, "weight": np.nan}, "a number or \\+inf, got nan"),
        ({"positive": {"A": 1}, "weight": -np.inf}, "a number or \\+inf, got -inf"),
    ],
)
def test_clauses_refused(net: mf.MarkovNetwork, arguments: dict, message: str):
    with pytest.raises(mf.ModelError, match=message):
        net.add_clause(**arguments)
    assert net.compile().n_factors == 0


def test_clause_tables(net: mf.MarkovNetwork):
    net.add_clause({"B": "high"}, {"A": 1})  # A = 1 implies B = high
    net.add_clause({"A": 1}, weight=1.5)
    net.add_clause(weight=2.0)  # no literal: never satisfied
    graph = net.compile()
    np.testing.assert_array_equal(graph.table(0), np.where([[1, 1, 1], [0, 0, 1]], 0.0, -np.inf).T)
    np.testing.assert_array_equal(graph.table(1), [0.0, 1.5])
    assert graph.table(2) == 0.0


def test_primal_graph(net: mf.MarkovNetwork):
    net.add_variable("C", 2)
    net.add_variable("D", 2)
    net.add_factor(["A", "B", "C"], np.ones((2, 3, 2)))
    net.add_factor(["C", "C"], np.ones((2, 2)))
    graph = net.to_networkx()
    assert set(graph.nodes) == {"A", "B", "C", "D"}
    assert {frozenset(e) for e in graph.edges} == {frozenset("AB"), frozenset("AC"), frozenset("BC")}
    assert graph.nodes["B"]["states"] == ["low", "mid", "high"]


class TestFromNetworkx:
    def test_pairwise(self):
        graph = nx.Graph()
        graph.add_node("A", states=["no", "yes"], table=[1, 2])
        graph.add_node("B", states=3)
        graph.add_node("C")
        graph.add_edge("A", "B", table=[[1, 2, 3], [4, 5, 6]])
        graph.add_edge("B", "C", log_table=np.zeros((3, 2)))
        compiled = mf.MarkovNetwork.from_networkx(graph).compile()
        assert compiled.structure.cardinalities.tolist() == [2, 3, 2]
        assert compiled.score({"A": "yes", "B": 1, "C": 0}) == pytest.approx(np.log(2 * 5))

    def test_numpy_count_of_states(self):
        graph = nx.Graph()
        graph.add_node("A", states=np.int64(3))
        assert mf.MarkovNetwork.from_networkx(graph).compile().structure.cardinalities.tolist() == [3]

    @pytest.mark.parametrize("states", [["no", "yes"], [False, True], [0.0, 1.0], [5, 6]])
    def test_state_names_survive(self, states: list):
        net = mf.MarkovNetwork({"A": states})
        again = mf.MarkovNetwork.from_networkx(net.compile().to_networkx()).compile()
        kept = list(again.names.state_names(0, 2))
        assert kept == states and [type(s) for s in kept] == [type(s) for s in states]

    def test_tables_do_not_depend_on_the_order_of_nodes(self):
        """networkx lists the ends of an undirected edge in the order of its nodes, not as they were added."""
        table = np.array([[1.0, 2.0], [3.0, 4.0]])
        for nodes in ("AB", "BA"):
            graph = nx.Graph()
            graph.add_nodes_from(nodes)
            graph.add_edge("B", "A", table=table, scope=("B", "A"))
            found = mf.MarkovNetwork.from_networkx(graph).compile()
            assert found.score({"A": 0, "B": 1}) == pytest.approx(np.log(3.0))
            del graph.edges["A", "B"]["scope"]
            with pytest.raises(mf.ModelError, match=r"edge .* has a table of shape \(2, 2\) and no scope"):
                mf.MarkovNetwork.from_networkx(graph)
            graph.edges["A", "B"]["table"] = table + table.T  # reads the same both ways
            assert mf.MarkovNetwork.from_networkx(graph).compile().score({"A": 0, "B": 1}) == pytest.approx(np.log(5))
            graph.nodes["B"]["states"] = 3
            graph.edges["A", "B"]["table"] = np.arange(1.0, 7.0).reshape(3, 2)  # fits one way only
            assert mf.MarkovNetwork.from_networkx(graph).compile().score({"A": 1, "B": 2}) == pytest.approx(np.log(6))
        directed = nx.DiGraph()
        directed.add_nodes_from("AB")
        directed.add_edge("B", "A", table=table)
        assert mf.MarkovNetwork.from_networkx(directed).compile().score({"A": 0, "B": 1}) == pytest.approx(np.log(3))

    def test_the_scope_must_be_that_of_the_edge(self):
        graph = nx.Graph()
        graph.add_edge("A", "B", table=np.eye(2), scope=("A", "C"))
        with pytest.raises(mf.ModelError, match="the scope of edge 'A' - 'B' must list"):
            mf.MarkovNetwork.from_networkx(graph)

    @pytest.mark.parametrize("seed", range(5))
    def test_a_bipartite_graph_may_be_shuffled(self, seed: int):
        rng = np.random.default_rng(seed)
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        for scope in ("AB", "CBA", "DC", "BD"):
            net.add_factor(list(scope), log_table=rng.normal(size=(2,) * len(scope)))
        graph = net.compile()
        whole = graph.to_networkx()
        shuffled = nx.Graph()
        shuffled.add_nodes_from((n, whole.nodes[n]) for n in sorted(whole, key=lambda _: rng.random()))
        shuffled.add_edges_from(sorted(whole.edges, key=lambda _: rng.random()))
        again = mf.MarkovNetwork.from_networkx(shuffled).compile()
        for states in np.ndindex(2, 2, 2, 2):
            assignment = dict(zip("ABCD", states, strict=True))
            assert again.score(assignment) == pytest.approx(graph.score(assignment), abs=1e-12)

    def test_an_edge_without_a_table(self):
        with pytest.raises(mf.ModelError, match="edge 'A' - 'B' has neither table nor log_table"):
            mf.MarkovNetwork.from_networkx(nx.Graph([("A", "B")]))


class TestFromFactorGraph:
    @given(specs())
    @settings(max_examples=20)
    def test_the_same_model_to_write_on(self, spec: Spec):
        graph = spec.build().compile()
        net = mf.MarkovNetwork.from_factor_graph(graph)
        assert net.compile() is graph
        label = spec.labels[0]
        net.add_factor([label], log_table=np.arange(float(spec.cardinalities[0])))
        net.add_variable("a new one", 2)
        more = net.compile()
        assert more.structure.n_cells == graph.structure.n_cells + spec.cardinalities[0]
        assert graph.n_factors == len(spec.factors)
        rows = spec.oracle().states[:30]
        wider = np.hstack([rows, np.ones((len(rows), 1), int)])
        np.testing.assert_allclose(more.score(wider), graph.score(rows) + rows[:, 0])

    def test_names_and_ties_stay(self):
        net = mf.MarkovNetwork({"A": ["no", "yes"], "B": ["no", "yes"]})
        net.add_factors([["A"], ["B"]], [1, 2])
        again = mf.MarkovNetwork.from_factor_graph(net.compile())
        again.add_clause({"A": "yes"}, {"B": "yes"})
        graph = again.compile()
        assert graph.structure.n_cells == 4
        assert graph.score({"A": "no", "B": "yes"}) == -np.inf
        assert graph.score({"A": "yes", "B": "yes"}) == pytest.approx(2 * np.log(2))
