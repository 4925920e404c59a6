"""Writing a Bayesian network down: what is refused, and what the compiled graph holds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

import markovfield as mf
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
        ("wet", ["rain"], [[0.5, 0.5], [1.1, -0.1]], "table of 'wet' has a negative probability"),
        ("wet", ["rain"], [[0.5, 0.5], [np.nan, 1.0]], "not a number"),
        ("wet", ["rain"], [[0.5, 0.5], [0.5, 0.6]], "a row of the table of 'wet' sums to 1.1, not to one"),
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
