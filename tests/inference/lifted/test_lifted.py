"""Lifted inference: the same answers as on the whole graph, from what is alike only once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.lifted.colours import refined
from markovfield.methods import BeliefPropagation, JunctionTree, LiftedBeliefPropagation, LiftedComponents


def repeated(seed, copies=4):
    """A model in which the same pieces occur several times, some of them joined, tables shared."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork()
    tables = [rng.normal(size=(2, 3)), rng.normal(size=(3, 3)), rng.normal(size=(2, 3, 2))]
    scopes = [[], [], []]
    for i in range(copies):
        cards = rng.permutation([2, 3, 3, 2]) if i == copies - 1 else [2, 3, 3, 2]
        for j, card in enumerate(cards):
            net.add_variable(4 * i + j, int(card))
        two, three = ([4 * i + j for j in range(4) if cards[j] == card] for card in (2, 3))
        scopes[0] += [(two[0], three[0]), (two[1], three[1])]
        scopes[1] += [(three[0], three[1])]
        if rng.random() < 0.5:
            scopes[2] += [(two[0], three[1], two[1])]
    if rng.random() < 0.5:
        scopes[1].append((1, 5))
    for own, table in zip(scopes, tables, strict=True):
        if own:
            net.add_factors(own, log_table=table)
    return net, rng


@pytest.mark.parametrize("seed", range(40))
def test_components_that_are_alike(seed):
    """Exact: as a junction tree has it, for all verbs and evidence of both sorts."""
    net, rng = repeated(seed)
    graph = net.compile()
    cards = dict(zip(net.variables, graph.structure.cardinalities.tolist(), strict=True))
    evidence = {v: int(rng.integers(c)) for v, c in cards.items() if rng.random() < 0.2}
    evidence |= {v: rng.random(c) + 0.1 for v, c in cards.items() if v not in evidence and rng.random() < 0.1}
    one = mf.marginals(net, evidence, method=LiftedComponents())
    other = mf.marginals(net, evidence, method=JunctionTree())
    assert one.log_partition == pytest.approx(other.log_partition, abs=1e-10) and one.guarantee == "exact"
    np.testing.assert_allclose(one.values, other.values, atol=1e-12)
    assert float(mf.log_partition(net, evidence, method="lifted_components")) == pytest.approx(other.log_partition)
    assert one.joint([0, 2]) == pytest.approx(other.joint([0, 2]))
    assert one.expected_counts == pytest.approx(other.expected_counts)
    assert one.max_marginals[3] == pytest.approx(other.max_marginals[3])
    best = mf.decode(net, evidence, method=LiftedComponents())
    assert best.optimal and best.score == pytest.approx(mf.decode(net, evidence, method=JunctionTree()).score)


@pytest.mark.parametrize("seed", range(40))
def test_messages_between_colours(seed):
    """The fixed point, the Bethe value and the number of sweeps of messages on the whole graph."""
    net, rng = repeated(seed)
    cards = dict(zip(net.variables, net.compile().structure.cardinalities.tolist(), strict=True))
    evidence = {v: int(rng.integers(c)) for v, c in cards.items() if rng.random() < 0.1}
    evidence |= {v: rng.random(c) + 0.1 for v, c in cards.items() if v not in evidence and rng.random() < 0.1}
    one = mf.marginals(net, evidence, method=LiftedBeliefPropagation(tolerance=1e-11))
    other = mf.marginals(net, evidence, method=BeliefPropagation("synchronous", tolerance=1e-11))
    np.testing.assert_allclose(one.values, other.values, atol=1e-8)
    assert one.log_partition == pytest.approx(other.log_partition, abs=1e-7)
    assert one.converged and abs(one.iterations - other.iterations) <= 2
    assert float(mf.log_partition(net, evidence, method="lifted_bp")) == pytest.approx(one.log_partition, abs=1e-6)


def test_before_they_converge():
    """Sweep for sweep the messages are the same, damped or not."""
    net, _ = repeated(3)
    for sweeps in (1, 2, 3):
        for damping in (0.0, 0.3):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                one = mf.marginals(net, method=LiftedBeliefPropagation(damping, sweeps))
                other = mf.marginals(net, method=BeliefPropagation("synchronous", damping, sweeps))
            if damping == 0.0:
                np.testing.assert_allclose(one.values, other.values, atol=1e-9)
            assert not one.converged and one.iterations == sweeps


def test_hard_factors_and_clauses():
    net = mf.MarkovNetwork(dict.fromkeys("ABCDEF", 2))
    for a, b in ("AB", "BC", "DE", "EF"):
        net.add_clause({a: 1, b: 0})
    net.add_factors([("A",), ("D",)], [1.0, 3.0])
    assert mf.marginals(net, method="lifted_components")["A"] == pytest.approx(mf.marginals(net)["A"])
    one, other = (mf.marginals(net, {"B": 1}, method=m) for m in ("lifted_bp", BeliefPropagation("synchronous")))
    for v in "ABCDEF":
        assert one[v] == pytest.approx(other[v], abs=1e-7)
    net.add_factor(("A", "B"), [[0.0, 1.0], [1.0, 0.0]])
    for method in ("lifted_components", "lifted_bp"):
        with pytest.raises(mf.ImpossibleEvidenceError, match=r"A.*B"):
            mf.marginals(net, {"A": 0, "B": 0}, method=method)


def test_colours_are_stable():
    """All variables of a colour have as many factors of each colour by each axis."""
    for seed in range(20):
        net, _ = repeated(seed)
        s = net.compile().structure
        found = refined(s, Evidence.parse(s, None))
        seen = {}
        for v in range(s.n_variables):
            edges = [
                (int(found.factors[f]), axis)
                for f in range(s.n_factors)
                for axis, u in enumerate(s.scope(f).tolist())
                if u == v
            ]
            assert seen.setdefault(int(found.variables[v]), sorted(edges)) == sorted(edges)


SMOKERS = """
Friends(person, person)
Smokes(person)
Cancer(person)
1.5 Smokes(x) => Cancer(x)
0.001 Friends(x, y) ^ Smokes(x) => Smokes(y)
-1 Smokes(x)
-3 Friends(x, y)
"""


def test_smokers_of_whom_few_are_known():
    """Many people of whom nothing is known have a handful of colours, whatever their number."""
    colours = []
    for n in (30, 60):
        kb = mf.MarkovLogic(SMOKERS)
        world = kb.ground(
            f"person = {{{', '.join(f'P{i}' for i in range(n))}}}\nSmokes(P0)\nFriends(P1, P2)\n", closed=[]
        )
        answer = mf.marginals(world, method=LiftedBeliefPropagation())
        colours.append(answer.n_colours)
        assert answer["Smokes(P7)"] == pytest.approx(answer["Smokes(P9)"])
        if n == 30:
            whole = mf.marginals(world, method=BeliefPropagation("synchronous"))
            np.testing.assert_allclose(answer.values, whole.values, atol=1e-7)
            assert answer.log_partition == pytest.approx(whole.log_partition, abs=1e-5)
    assert colours[0] == colours[1] and colours[0][0] < 30
