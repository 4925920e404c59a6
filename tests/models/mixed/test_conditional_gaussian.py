"""Conditional Gaussian networks as they are written, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf

Network = mf.ConditionalGaussianNetwork


def small():
    net = Network({"d": ["low", "high"], "x": None, "y": None})
    net.add_cpt("d", [], [0.4, 0.6])
    net.add_cpd("x", ["d"], bias=[0.0, 1.0])
    net.add_cpd("y", ["x", "d"], [[1.0], [2.0]], variance=[1.0, 4.0])
    return net


def test_what_it_says_of_itself():
    net = small()
    assert list(net) == ["d", "x", "y"] and net.discrete == ("d",) and net.continuous == ("x", "y")
    assert net.arcs == (("d", "x"), ("x", "y"), ("d", "y")) and net.parents("y") == ("x", "d")
    assert repr(net) == "ConditionalGaussianNetwork(1 discrete, 2 real-valued, 3 arcs)"
    assert net.order() == ["d", "x", "y"] and net.states("d") == ("low", "high") and net.states("x") == ()
    assert net.cpd("y").weights.tolist() == [[1.0], [2.0]] and net.cpd("y").bias.tolist() == [0.0, 0.0]
    assert repr(net.compile()) == "MixedField(1 discrete and 2 real-valued variables)"
    assert net.compile().is_discrete("d") and net.compile().states("d") == ("low", "high")
    assert net.to_networkx().nodes["d"]["states"] == ["low", "high"]
    assert len(net.to_frame()) == 3
    twin = net.copy()
    twin.add_variable("z")
    assert "z" not in net and "z" in twin


def test_a_network_without_states_is_a_linear_gaussian_one():
    linear, mixed = mf.LinearGaussianNetwork(), Network({"a": None, "b": None, "c": None})
    for name, parents, weights in (("a", [], []), ("b", ["a"], [0.7]), ("c", ["b", "a"], [0.2, -1.0])):
        linear.add_variable(name, parents, weights, bias=0.5, variance=2.0)
        mixed.add_cpd(name, parents, weights, bias=0.5, variance=2.0)
    first, second = mf.marginals(linear, {"c": 1.0}), mf.marginals(mixed, {"c": 1.0})
    assert second["a"][:2] == pytest.approx(first["a"]) and not second["a"].mixture
    discrete, table = mf.BayesianNetwork({"a": 2, "b": 3}), np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    both = Network({"a": 2, "b": 3})
    for net in (discrete, both):
        net.add_cpt("a", [], [0.3, 0.7])
        net.add_cpt("b", ["a"], table)
    np.testing.assert_allclose(mf.marginals(both, {"b": 1})["a"], mf.marginals(discrete, {"b": 1})["a"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda n: n.set_parents("d", ["x"]), "'d' is discrete and 'x' real-valued: a discrete child"),
        (lambda n: n.add_cpt("x", [], [1.0]), "'x' is real-valued: add_cpd"),
        (lambda n: n.add_cpd("d"), "'d' is discrete: add_cpt"),
        (lambda n: n.add_cpt("d", [], [0.5, 0.2]), "sums to 0.7"),
        (lambda n: n.add_cpt("d", [], [0.5, 0.2, 0.3]), "needs shape \\(2,\\), got \\(3,\\)"),
        (lambda n: n.add_cpd("y", ["x", "d"], [1.0, 2.0]), "weights of 'y' given .* need shape \\(2, 1\\)"),
        (lambda n: n.add_cpd("x", ["d"], variance=[1.0, 0.0]), "variance of 'x' must be positive, got 0"),
        (lambda n: n.add_cpd("x", ["d"], bias=[1.0, np.inf]), "bias of 'x' must be finite"),
        (lambda n: n.add_cpd("x", "d"), "write \\['d'\\]"),
        (lambda n: n.add_cpd("x", ["q"]), "no variable 'q'"),
        (lambda n: n.add_cpd("x", ["x"], [1.0]), "cannot be its own parent"),
        (lambda n: n.add_cpd("x", ["d", "d"]), "named twice"),
        (lambda n: n.add_variable("d", 2), "already a variable 'd'"),
        (lambda n: (n.set_parents("x", ["y"]), n.order()), "directed cycle: 'x' -> 'y' -> 'x'|'y' -> 'x' -> 'y'"),
        (lambda n: (n.set_parents("x", ["d"]), n.compile()), "'x' has no distribution: add_cpd gives it one"),
        (lambda n: n.cpt("x"), "'x' is real-valued"),
        (lambda n: n.compile().states("x"), "'x' is real-valued and has no states"),
        (lambda n: Network(["a"]), "is a dict from name to states"),
    ],
)  # fmt: skip
def test_mistakes(make, message):
    with pytest.raises(mf.ModelError, match=message):
        make(small())
