"""Full conditionals each by itself: probabilities, orders of sampling, and how far they are from one distribution."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.structures.dependency_network import DependencyNetwork, FullConditionals
from tests.learning.structures.test_hill_climbing import drawn
from tests.learning.structures.test_regressions import correlated_spins, spin_table

SPIN = np.array([[1.0, -1.0], [-1.0, 1.0]])


def spins(couplings: dict, n: int = 2) -> FullConditionals:
    fields = {v: np.array([-0.1, 0.1]) for v in range(n)}
    tables = {pair: j * SPIN for pair, j in couplings.items()}
    return FullConditionals(
        variables=tuple(range(n)), states=((-1, 1),) * n, fields=fields, couplings=tables, penalty=1.0
    )


def test_conditionals_that_agree_are_those_of_their_distribution():
    pairs = {(0, 1): 0.4, (1, 2): -0.6, (0, 2): 0.3}
    both = pairs | {(b, a): j for (a, b), j in pairs.items()}
    conditionals = spins(both, 3)
    assert conditionals.inconsistency() == 0.0
    model = mf.Ising(list(pairs), coupling=pairs, field=0.1)
    joint = mf.marginals(model).joint([0, 1, 2])
    for order in itertools.permutations(range(3)):
        np.testing.assert_allclose(conditionals.stationary(order), joint, atol=1e-12)
    for v, a, b in itertools.product(range(3), (-1, 1), (-1, 1)):
        others = [u for u in range(3) if u != v]
        evidence = dict(zip(others, (a, b), strict=True))
        expected = mf.marginals(model, evidence)[v]
        np.testing.assert_allclose(conditionals.conditional(v, evidence), expected, atol=1e-12)


def test_conditionals_that_disagree_depend_on_the_order():
    conditionals = spins({(0, 1): 1.0, (1, 0): 0.2})
    assert conditionals.inconsistency() == pytest.approx(0.8 / np.sqrt(1.04))
    one, two = conditionals.stationary([0, 1]), conditionals.stationary([1, 0])
    assert np.abs(one - two).sum() > 0.1
    # The variable drawn last has its own conditional; the other one has not.
    np.testing.assert_allclose(one[1] / one[1].sum(), conditionals.conditional(1, {0: 1}), atol=1e-12)
    np.testing.assert_allclose(two[:, 1] / two[:, 1].sum(), conditionals.conditional(0, {1: 1}), atol=1e-12)
    assert np.abs(two[1] / two[1].sum() - conditionals.conditional(1, {0: 1})).max() > 0.05
    assert spins({(0, 1): 1.0}).inconsistency() == pytest.approx(1.0)
    assert spins({}).inconsistency() == 0.0


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_samples_are_of_the_order(order):
    conditionals = spins({(0, 1): 1.0, (1, 0): 0.2})
    table = conditionals.sample(20_000, order=order, sweeps=30, rng=1)
    counts = np.zeros((2, 2))
    np.add.at(counts, tuple(table.codes), 1.0)
    expected = conditionals.stationary(order)
    error = 5 * np.sqrt(expected * (1 - expected) / 20_000)
    assert (np.abs(counts / 20_000 - expected) < error).all()


def test_a_learned_network():
    table = drawn(8, n=5, rows=600, cards=(2, 3))
    learned = mf.learn_structure(table, DependencyNetwork(penalty=5.0))
    conditionals = learned.details
    assert learned.converged and 0 < conditionals.inconsistency() < 1
    assert {frozenset(p) for p in conditionals.couplings} == {frozenset(e) for e in learned.edges}
    row = {v: table.states[i][table.codes[i, 0]] for i, v in enumerate(table.variables)}
    for v in table.variables:
        p = conditionals.conditional(v, {u: s for u, s in row.items() if u != v})
        assert p.sum() == pytest.approx(1.0) and (p >= 0).all()
    assert conditionals.stationary().sum() == pytest.approx(1.0)
    drawn_again = conditionals.sample(500, sweeps=20, rng=0)
    assert drawn_again.variables == table.variables and drawn_again.n_rows == 500
    assert mf.learn_structure(drawn_again, "group_lasso").variables == table.variables


def test_more_rows_are_more_of_one_distribution():
    apart = []
    for rows in (300, 3000, 30_000):
        learned = mf.learn_structure(spin_table(correlated_spins(5, rows)), DependencyNetwork(penalty=1e-3 * rows))
        apart.append(learned.details.inconsistency())
    assert apart[0] > apart[1] > apart[2]


def test_constant_variables_stay():
    data = {"k": ["x"] * 60, "a": [0, 1, 1] * 20, "b": [0, 1, 0] * 20}
    conditionals = mf.learn_structure(data, DependencyNetwork(penalty=1.0)).details
    assert (conditionals.sample(50, rng=0).codes[0] == 0).all()
    np.testing.assert_array_equal(conditionals.conditional("k"), [1.0])


def test_questions_that_cannot_be_answered():
    conditionals = spins({(0, 1): 1.0, (1, 0): 0.2})
    with pytest.raises(mf.ModelError, match="the conditional of 0 depends on 1, whose state is not given"):
        conditionals.conditional(0)
    with pytest.raises(mf.ModelError, match="order must name every variable once"):
        conditionals.sample(3, order=[0])
    with pytest.raises(mf.ModelError, match="8192 joint states are more than the 4096"):
        spins({}, 13).stationary()
    with pytest.raises(mf.ModelError, match="sweeps must be an integer of at least 1"):
        conditionals.sample(3, sweeps=0)
