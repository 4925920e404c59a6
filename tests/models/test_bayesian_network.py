"""Writing a Bayesian network down: what is refused, and what the compiled graph holds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import markovfield as mf
from markovfield.factors.structure import Structure
from tests.strategies import Spec, specs


@pytest.fixture
def net() -> mf.BayesianNetwork:
    net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    net.add_cpt("rain", [], [0.8, 0.2])
    net.add_cpt("wet", ["rain"], [[0.9, 0.1], [0.0, 1.0]])
    return net


def test_compiled(net: mf.BayesianNetwork):
    graph = net.compile()
    assert net.compile() is graph
    assert graph.structure.child.tolist() == [0, 1]
    assert graph.structure.scope(1).tolist() == [0, 1]
    assert graph.table(1)[1, 0] == -np.inf
    assert graph.score({"rain": "yes", "wet": "yes"}) == pytest.approx(np.log(0.2))
    assert repr(net) == "BayesianNetwork(2 variables, 1 arc)"
    assert net.parents("wet") == ("rain",) and net.parents("rain") == ()


@given(specs("bayesian"))
def test_the_joint_is_the_product_of_the_tables(spec: Spec):
    oracle = spec.oracle()
    assert oracle.log_partition == pytest.approx(0.0, abs=1e-12)
    graph = spec.build().compile()
    assert graph.structure.child.tolist() == list(range(spec.n_variables))
    np.testing.assert_allclose(graph.score(oracle.states[:50]), oracle.scores[:50].astype(float), atol=1e-12)
    for f in range(graph.n_factors):
        assert graph.structure.scope(f)[-1] == f
        np.testing.assert_allclose(np.exp(graph.table(f)).sum(axis=-1), 1.0, atol=1e-14)


def test_replacing_a_table(net: mf.BayesianNetwork):
    before = net.compile()
    net.add_cpt("wet", [], [0.5, 0.5])
    assert net.compile() is not before
    assert net.compile().structure.scope(1).tolist() == [1]
    assert before.structure.scope(1).tolist() == [0, 1]


def test_rows_are_rescaled_and_copied(net: mf.BayesianNetwork):
    given_table = np.array([0.333, 0.666])
    net.add_cpt("rain", [], given_table)
    np.testing.assert_array_equal(given_table, [0.333, 0.666])
    assert net.cpt("rain").sum() == pytest.approx(1.0, abs=1e-15)
    net.cpt("rain")[:] = 0.0
    assert net.cpt("rain").sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    ("variable", "parents", "table", "message"),
    [
        ("snow", [], [1.0], "no variable 'snow'"),
        ("wett", ["rain"], [1.0], "did you mean 'wet'"),
        ("wet", ["snow"], [1.0], "no variable 'snow'"),
        ("wet", ["wet"], np.ones((2, 2)) / 2, "cannot be its own parent"),
        ("wet", ["rain", "rain"], np.ones((2, 2, 2)) / 2, "named twice"),
        ("wet", ["rain"], [0.5, 0.5], r"'wet' given \['rain'\] needs shape \(2, 2\), got \(2,\)"),
        ("wet", ["rain"], [[0.5, 0.5], [1.1, -0.1]], "has a negative .*: -0.1 for wet='yes', given rain='yes'"),
        ("wet", ["rain"], [[0.5, 0.5], [np.nan, 1.0]], "not a number: nan for wet='no', given rain='yes'"),
        ("wet", ["rain"], [[0.5, 0.5], [0.5, 0.6]], "the table of 'wet' sums to 1.1, not to one, given rain='yes'$"),
        ("rain", [], [0.5, 0.6], "a row of the table of 'rain' sums to 1.1, not to one$"),
        ("rain", [], [1.5, -0.5], "not a number: -0.5 for rain='yes'$"),
        ("wet", ["rain"], [[0.5, 0.5], [0.0, 0.0]], "sums to 0, not to one"),
        ("wet", ["rain"], [[0.5, 0.5], [np.inf, 0.0]], "sums to inf, not to one"),
        ("wet", "rain", [[0.5, 0.5], [0.5, 0.5]], r"sequence of variable names; write \['rain'\]"),
        ("wet", ["rain"], [[0.5, 0.5], [0.5]], "table of 'wet'"),
    ],
)
def test_tables_refused(net: mf.BayesianNetwork, variable, parents, table, message: str):
    before = net.compile()
    with pytest.raises(mf.ModelError, match=message):
        net.add_cpt(variable, parents, table)
    assert net.compile() is before


def test_variables_refused(net: mf.BayesianNetwork):
    with pytest.raises(mf.ModelError, match="already a variable 'rain'"):
        net.add_variable("rain", 2)
    with pytest.raises(mf.ModelError, match="needs at least one state"):
        net.add_variable("snow", 0)
    for name in (1.5, True, ("a",)):
        with pytest.raises(mf.ModelError, match="named by a str or an int"):
            net.add_variable(name, 2)


def test_a_missing_table(net: mf.BayesianNetwork):
    net.add_variable("snow", 2)
    with pytest.raises(mf.ModelError, match="variable 'snow' has no conditional probability table"):
        net.compile()
    with pytest.raises(mf.ModelError, match="variable 'snow' has no conditional probability table"):
        net.cpt("snow")


def test_cycles_are_named():
    net = mf.BayesianNetwork(dict.fromkeys("ABCD", 2))
    half = np.full((2, 2), 0.5)
    net.add_cpt("D", ["A"], half)
    net.add_cpt("A", ["C"], half)
    net.add_cpt("B", ["A"], half)
    net.add_cpt("C", ["B"], half)
    with pytest.raises(mf.ModelError, match="the network has a directed cycle: ") as caught:
        net.compile()
    # The arrows of the message are arcs of the network, from parent to child, and come back to the start.
    cycle = [name.strip("'") for name in str(caught.value).split(": ")[1].split(" -> ")]
    assert cycle[0] == cycle[-1] and set(cycle) == {"A", "B", "C"}
    for parent, child in pairwise(cycle):
        assert parent in net.parents(child)


def test_long_chains_do_not_meet_the_recursion_limit():
    n = 5000
    net = mf.BayesianNetwork(dict.fromkeys(range(n), 2))
    net.add_cpt(n - 1, [], [0.5, 0.5])
    for i in range(n - 1):
        net.add_cpt(i, [i + 1], [[0.9, 0.1], [0.2, 0.8]])
    assert net.compile().n_factors == n


@given(specs("bayesian"))
def test_from_factor_graph(spec: Spec):
    net = spec.build()
    again = mf.BayesianNetwork.from_factor_graph(net.compile())
    assert again.variables == net.variables
    for v in net.variables:
        assert again.parents(v) == net.parents(v)
        np.testing.assert_allclose(again.cpt(v), net.cpt(v), atol=1e-15)


def test_from_factor_graph_refusals():
    net = mf.MarkovNetwork({"A": 2})
    net.add_factor(["A"], [0.5, 0.5])
    with pytest.raises(mf.ModelError, match="exactly one conditional table for each variable"):
        mf.BayesianNetwork.from_factor_graph(net.compile())


def test_reading(net: mf.BayesianNetwork):
    net.add_variable("count", 3)
    net.add_cpt("count", ["wet", "rain"], np.full((2, 2, 3), 1 / 3))
    assert net.n_variables == 3 and net.cardinality("count") == 3
    assert net.states("rain") == ("no", "yes") and net.states("count") == (0, 1, 2)
    assert net.arcs == (("rain", "wet"), ("wet", "count"), ("rain", "count"))
    assert net.children("rain") == ("wet", "count") and net.children("count") == ()
    assert net.name is None and net.properties == {} and net.fit_report is None
    for read in (net.cardinality, net.states, net.children, net.parents):
        with pytest.raises(mf.ModelError, match="no variable 'snow'"):
            read("snow")


class TestStructureFirst:
    def test_parents_without_numbers(self, net: mf.BayesianNetwork):
        net.set_parents("wet", [])
        assert net.parents("wet") == () and net.arcs == ()
        with pytest.raises(mf.ModelError, match="variable 'wet' has no conditional probability table"):
            net.cpt("wet")
        with pytest.raises(mf.ModelError, match="variable 'wet' has no conditional probability table"):
            net.compile()
        net.add_cpt("wet", ["rain"], np.full((2, 2), 0.5))
        assert net.compile().n_factors == 2

    @pytest.mark.parametrize(
        ("parents", "message"),
        [("rain", "sequence of variable names"), (["wet"], "its own parent"), (["rain"] * 2, "named twice")],
    )
    def test_refused(self, net: mf.BayesianNetwork, parents, message: str):
        with pytest.raises(mf.ModelError, match=message):
            net.set_parents("wet", parents)
        assert net.cpt("wet").shape == (2, 2)

    def test_networkx(self, net: mf.BayesianNetwork):
        graph = net.to_networkx()
        assert list(graph.edges) == [("rain", "wet")] and graph.nodes["wet"]["states"] == ["no", "yes"]
        again = mf.BayesianNetwork.from_networkx(graph)
        assert again.variables == net.variables and again.states("wet") == ("no", "yes") and again.arcs == net.arcs
        with pytest.raises(mf.ModelError, match="no conditional probability table"):
            again.cpt("wet")
        other = mf.BayesianNetwork.from_networkx(nx.DiGraph([(3, 1), (2, 1)]), states={1: 4, 2: ["ab"]})
        assert [other.cardinality(v) for v in (1, 2, 3)] == [4, 1, 2] and other.parents(1) == (3, 2)
        with pytest.raises(mf.ModelError, match=r"needs a networkx.DiGraph, got Graph"):
            mf.BayesianNetwork.from_networkx(nx.Graph([(0, 1)]))
        with pytest.raises(mf.ModelError, match=r"directed cycle: .* -> "):
            mf.BayesianNetwork.from_networkx(nx.DiGraph([(0, 1), (1, 0)]))


@given(specs("bayesian"))
def test_from_tables(spec: Spec):
    net = spec.build()
    parents = [[net.variables.index(p) for p in net.parents(v)] for v in net.variables]
    again = mf.BayesianNetwork._from_tables(
        {v: net.cardinality(v) for v in net.variables},
        parents,
        [net.cpt(v) for v in net.variables],
        name="again",
        properties={None: ("a text",)},
    )
    assert again.name == "again" and again.properties == {None: ("a text",)}
    ours, theirs = again.compile(), net.compile()
    for field in ("cardinalities", "scope_offsets", "scopes", "table_offsets", "table_strides", "child", "kind"):
        array = getattr(ours.structure, field)
        np.testing.assert_array_equal(array, getattr(theirs.structure, field))
        assert array.dtype == getattr(theirs.structure, field).dtype and not array.flags.writeable
    np.testing.assert_array_equal(ours.log_tables, theirs.log_tables)


def test_the_structure_is_the_one_that_checking_would_give(net: mf.BayesianNetwork):
    net.add_variable("one", 1)
    net.add_cpt("one", ["wet"], [[1.0], [1.0]])
    net.add_variable("any", ["no", "yes"])
    net.add_noisy_or("any", ["rain", "wet"], [0.3, 0.4])
    s = net.compile().structure
    checked = Structure.from_arrays(
        s.cardinalities, s.scope_offsets, s.scopes, s.table_offsets, s.table_strides,
        n_cells=s.n_cells, child=s.child, kind=s.kind, names=s.names,
    )  # fmt: skip
    for field in ("cardinalities", "scope_offsets", "scopes", "table_offsets", "table_strides", "child", "kind"):
        assert getattr(checked, field).dtype == getattr(s, field).dtype
        np.testing.assert_array_equal(getattr(checked, field), getattr(s, field))
    tables_only = Structure.from_arrays(
        s.cardinalities[:3], s.scope_offsets[:4], s.scopes[:5], s.table_offsets[:3], n_cells=s.n_cells
    )
    np.testing.assert_array_equal(tables_only.table_strides, s.table_strides[:5])


def test_from_tables_looks_for_cycles():
    half = np.full((2, 2), 0.5)
    with pytest.raises(mf.ModelError, match=r"directed cycle: ('A' -> 'B' -> 'A'|'B' -> 'A' -> 'B')"):
        mf.BayesianNetwork._from_tables({"A": 2, "B": ("x", "y")}, [[1], [0]], [half, half])


def test_copies_are_apart(net: mf.BayesianNetwork):
    net.name, net.properties["wet"] = "weather", ("a text",)
    graph = net.compile()
    other = net.copy()
    assert other.name == "weather" and other.properties == net.properties and other.compile() is graph
    other.add_variable("snow", 2)
    other.add_cpt("snow", ["rain"], [[0.9, 0.1], [0.5, 0.5]])
    other.add_cpt("wet", [], [0.5, 0.5])
    other.properties["wet"] = ()
    assert net.variables == ("rain", "wet") and net.parents("wet") == ("rain",)
    assert net.properties["wet"] == ("a text",)


class TestDo:
    def chain(self) -> mf.BayesianNetwork:
        """A confounded pair: c -> a, c -> b, a -> b."""
        net = mf.BayesianNetwork({"c": 2, "a": ["off", "on"], "b": 2})
        net.add_cpt("c", [], [0.3, 0.7])
        net.add_cpt("a", ["c"], [[0.8, 0.2], [0.1, 0.9]])
        net.add_cpt("b", ["a", "c"], [[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]])
        return net

    def test_cuts_the_arcs_into_a_variable(self):
        net = self.chain()
        changed = net.do({"a": "on"})
        assert changed.parents("a") == () and changed.cpt("a").tolist() == [0.0, 1.0]
        assert net.parents("a") == ("c",)
        # Adjustment by the confounder, not conditioning.
        expected = 0.3 * 0.5 + 0.7 * 0.8
        assert mf.marginals(changed)["b"][1] == pytest.approx(expected)
        assert mf.marginals(net, {"a": "on"})["b"][1] != pytest.approx(expected)
        assert mf.marginals(changed)["c"][1] == pytest.approx(0.7)

    def test_a_distribution(self):
        net = self.chain()
        for given_ in ([0.25, 0.75], (0.25, 0.75), np.array([0.25, 0.75])):
            changed = net.do({"a": given_, "c": np.int64(1)})
            assert changed.cpt("a").tolist() == [0.25, 0.75]
            assert mf.marginals(changed)["b"][1] == pytest.approx(0.25 * 0.4 + 0.75 * 0.8)

    def test_state_names_that_are_tuples(self):
        net = mf.BayesianNetwork({"a": [(0, 1), (1, 0)]})
        net.add_cpt("a", [], [0.5, 0.5])
        assert net.do({"a": (1, 0)}).cpt("a").tolist() == [0.0, 1.0]

    @pytest.mark.parametrize(
        ("interventions", "message"),
        [
            ({"d": 0}, "no variable 'd'"),
            ({"a": "of"}, "no state 'of'"),
            ({"b": 2}, "outside 0 to 1"),
            ({"a": [0.5, 0.6]}, "sums to 1.1"),
            ({"a": [1.0]}, r"needs shape \(2,\)"),
        ],
    )
    def test_refused(self, interventions: dict, message: str):
        with pytest.raises(mf.ModelError, match=message):
            self.chain().do(interventions)


@given(specs("bayesian"))
def test_to_markov_network(spec: Spec):
    net = spec.build()
    assert net.to_factor_graph() is net.compile()
    markov = net.to_markov_network()
    assert isinstance(markov, mf.MarkovNetwork) and (markov.compile().structure.child == -1).all()
    np.testing.assert_array_equal(markov.compile().log_tables, net.compile().log_tables)
    moral = {frozenset(e) for e in markov.to_networkx().edges}
    families = [[*net.parents(v), v] for v in net.variables]
    assert moral == {frozenset((a, b)) for family in families for a in family for b in family if a != b}


class TestDeterministic:
    def test_by_state_names(self):
        net = mf.BayesianNetwork({"a": ["lo", "hi"], "b": 3, "same": ["no", "yes"]})
        net.add_deterministic("same", ["a", "b"], lambda a, b: "yes" if (a == "hi") == (b > 0) else "no")
        assert net.cpt("same")[..., 1].tolist() == [[1, 0, 0], [0, 1, 1]]
        net.add_deterministic("a", [], lambda: "hi")
        assert net.cpt("a").tolist() == [0.0, 1.0]

    def test_refused(self):
        net = mf.BayesianNetwork({**dict.fromkeys(range(24), 2), "y": 2})
        with pytest.raises(mf.ModelError, match=r"function of 'y' answers 2 to \(1, 1\): .*outside 0 to 1"):
            net.add_deterministic("y", [0, 1], lambda a, b: a + b)
        with pytest.raises(mf.ModelError, match="would have 33554432 cells, more than 16777216"):
            net.add_deterministic("y", range(24), max)
        with pytest.raises(ZeroDivisionError):
            net.add_deterministic("y", [0], lambda a: 1 // a)
        with pytest.raises(mf.ModelError, match="no conditional probability table"):
            net.cpt("y")


class TestNoisy:
    @pytest.fixture
    def net(self) -> mf.BayesianNetwork:
        return mf.BayesianNetwork({"flu": ["no", "yes"], "cold": 2, "level": 3, "cough": ["no", "yes"]})

    def test_or(self, net: mf.BayesianNetwork):
        net.add_noisy_or("cough", ["flu", "cold"], {"cold": 0.5, "flu": 0.9}, leak=0.1)
        expected = 1 - 0.9 * np.array([[1.0, 0.5], [0.1, 0.05]])
        np.testing.assert_allclose(net.cpt("cough")[..., 1], expected)
        assert net.parents("cough") == ("flu", "cold")
        net.add_noisy_or("cough", [], [], leak=0.25)
        np.testing.assert_allclose(net.cpt("cough"), [0.75, 0.25])

    def test_max(self, net: mf.BayesianNetwork):
        flu, cough = [[1, 0, 0], [0.2, 0.3, 0.5]], [[0.5, 0.5, 0], [0, 0, 1]]
        net.add_noisy_max("level", ["flu", "cough"], [flu, cough], leak=[0.9, 0.1, 0.0])
        first = net.cpt("level")[1, 0]
        np.testing.assert_allclose(first, [0.2 * 0.5 * 0.9, 0.5 * 1.0 * 1.0 - 0.2 * 0.5 * 0.9, 0.5])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("level", ["flu"], [0.5]), "two states, and 'level' has 3: take add_noisy_max"),
            (("cough", ["level"], [0.5]), "two states, and 'level' has 3"),
            (("cough", ["flu", "flu"], [0.5, 0.5]), "named twice"),
            (("cough", ["flu", "cold"], [0.5]), "noisy-or of 'cough' needs one entry for each of its 2 parents, got 1"),
            (("cough", ["flu", "cold"], {"flu": 0.5}), "got nothing for 'cold'"),
            (("cough", ["flu"], {"flu": 0.5, "cold": 0.1}), "got 'cold', which is no parent"),
            (
                ("cough", ["flu"], [1.5]),
                "what parent 'flu' gives the noisy-or of 'cough' must be a probability, got 1.5",
            ),
            (("cough", ["flu"], ["x"]), "must be a probability, got 'x'"),
            (("cough", ["flu"], [0.5], -0.1), "the leak of the noisy-or of 'cough' must be a probability, got -0.1"),
            (("cough", ["flu"], [0.5], float("nan")), "must be a probability, got nan"),
        ],
    )
    def test_or_refused(self, net: mf.BayesianNetwork, arguments: tuple, message: str):
        with pytest.raises(mf.ModelError, match=message):
            net.add_noisy_or(*arguments)
        assert net.arcs == ()

    @pytest.mark.parametrize(
        ("tables", "leak", "message"),
        [
            ([[[1, 0, 0]]], None, r"table of 'level' for parent 'flu' needs shape \(2, 3\), got \(1, 3\)"),
            ([[[1, 0, 0], [0.5, 0.6, 0]]], None, "'flu' sums to 1.1, not to one, given flu='yes'"),
            ([[[1, 0, 0], [0.5, 0.6, -0.1]]], None, "negative .*: -0.1 for level=2, given flu='yes'"),
            ([[[1, 0, 0], [1, 0]]], None, "rows of equal length"),
            ([np.full((2, 3), 1 / 3)], [0.5, 0.5], r"leak of the noisy-max of 'level' needs shape \(3,\)"),
            ([np.full((2, 3), 1 / 3)], [0.5, 0.5, 0.5], "leak of the noisy-max of 'level' sums to 1.5"),
            ([], None, "needs one entry for each of its 1 parents, got 0"),
        ],
    )
    def test_max_refused(self, net: mf.BayesianNetwork, tables, leak, message: str):
        with pytest.raises(mf.ModelError, match=message):
            net.add_noisy_max("level", ["flu"], tables, leak)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: mf.BayesianNetwork(["a"]), "a dict from name to states, got list"),
        (lambda net: mf.BayesianNetwork({"a": [[1], [2]]}), "cannot be a name"),
        (lambda net: net.add_cpt("b", None, [0.5, 0.5]), "sequence of variable names"),
        (lambda net: net.add_cpt("a", [], [0.0, 0.0], tolerance=1e9), "sums to 0, not to one"),
        (lambda net: net.do("b"), "do\\(\\) takes a dict"),
        (lambda net: net.add_noisy_or("b", ["a"], 0.5), "one entry for each of its 1 parents"),
        (lambda net: net.add_deterministic("b", ["a"], 3), "must be callable, got int"),
        (lambda net: net.add_deterministic("b", ["a"], lambda: 0), "the function of 'b' does not take"),
        (lambda net: mf.BayesianNetwork.from_networkx([(1, 2)]), r"networkx.DiGraph, got list"),
        (lambda net: mf.analysis.sensitivity(net, "a"), "are dicts from variable to state"),
        (lambda net: mf.analysis.value_of_information(net, "a", [["x", 3]]), "utility must be numbers"),
    ],
)
def test_what_is_no_model_is_named(call: Any, message: str):
    net = mf.BayesianNetwork({"a": 2, "b": 2})
    net.add_cpt("a", [], [0.5, 0.5])
    net.add_cpt("b", ["a"], [[0.5, 0.5], [0.1, 0.9]])
    with pytest.raises(mf.ModelError, match=message):
        call(net)


def test_truths_are_not_numbers():
    net = mf.BayesianNetwork({"e": [True, False], "f": [False, True]})
    net.add_cpt("e", [], [0.9, 0.1])
    net.add_cpt("f", [], [0.9, 0.1])
    assert mf.marginals(net, {"f": 1}).probability_of("f", True) == 1.0
    with pytest.raises(mf.ModelError, match="are True, False: write one of them, not 0"):
        mf.marginals(net, {"e": 0})


def test_states_of_from_networkx_must_be_nodes():
    import networkx as nx

    with pytest.raises(mf.ModelError, match="name 'typo', which is no node"):
        mf.BayesianNetwork.from_networkx(nx.DiGraph([("a", "b")]), states={"typo": 3})
