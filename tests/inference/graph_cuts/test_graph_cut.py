"""Graph cuts and roof duality against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.graph_cuts.graph_cut import GraphCut
from tests.oracle import Oracle

EXAMPLES = settings(max_examples=80, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def model(rng: np.random.Generator, n: int, table: Any, density: float = 1.5) -> tuple[mf.MarkovNetwork, list]:
    """A random model of pairs, some of them twice and in either order, with fields of some variables."""
    net, factors = mf.MarkovNetwork(dict.fromkeys(range(n), 2)), []
    for v in range(n):
        if rng.random() < 0.8:
            factors.append(((v,), np.round(rng.normal(size=2), 1)))
    for _ in range(int(density * n)):
        i, j = rng.permutation(n)[:2].tolist()
        factors.append(((i, j), table(rng)))
    for scope, log_table in factors:
        net.add_factor(list(scope), log_table=log_table)
    return net, factors


def evidence(rng: np.random.Generator, n: int) -> dict[int, Any]:
    known: dict[int, Any] = {}
    if rng.random() < 0.5:
        known[int(rng.integers(n))] = int(rng.integers(2))
    v = int(rng.integers(n))
    if rng.random() < 0.5 and v not in known:
        known[v] = np.where(np.arange(2) == rng.integers(5), 0.0, rng.random(2))  # a zero now and then
    return known


def attractive(rng: np.random.Generator) -> np.ndarray:
    table = np.round(rng.normal(size=(2, 2)), 1)
    short = max(0.0, table[0, 1] + table[1, 0] - table[0, 0] - table[1, 1])
    return table + np.diag([short, abs(round(rng.normal(), 1))])


def frustrated(rng: np.random.Generator) -> np.ndarray:
    return 3.0 * np.round(rng.normal(), 1) * np.array([[1.0, -1.0], [-1.0, 1.0]])


def hard(rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random((2, 2)) < 0.3, -np.inf, np.round(rng.normal(size=(2, 2)), 1))


def implication(rng: np.random.Generator) -> np.ndarray:
    """Attractive tables with hard zeros: one implies the other, or both are equal."""
    table = attractive(rng)
    for cell in ((0, 1), (1, 0)):
        if rng.random() < 0.4:
            table[cell] = -np.inf
    return table


def check(answer: mf.Decoding, oracle: Oracle, n: int) -> None:
    states = [int(answer.assignment[v]) for v in range(n)]
    assert answer.score == pytest.approx(oracle.score(states), abs=1e-9)
    assert oracle.best_score - 1e-9 <= answer.upper_bound
    assert answer.score <= oracle.best_score + 1e-9
    assert answer.gap >= 0
    if answer.optimal:
        assert answer.score == pytest.approx(oracle.best_score, abs=1e-8)
    proven = np.flatnonzero(answer.persistent)
    assert any(all(best[v] == states[v] for v in proven) for best in oracle.maximisers())


def run(net: Any, factors: list, n: int, known: dict[int, Any], method: GraphCut) -> mf.Decoding | None:
    """The answer, checked; None where the evidence is impossible and the method says so."""
    oracle = Oracle([2] * n, factors, known)
    try:
        answer = mf.decode(net, evidence=known, method=method)
    except mf.ImpossibleEvidenceError:
        assert oracle.impossible
        return None
    assert not oracle.impossible
    check(answer, oracle, n)
    return answer


@EXAMPLES
@given(SEEDS, st.integers(2, 8), st.sampled_from([attractive, implication]))
def test_submodular_models_are_solved(seed: int, n: int, table: Any):
    rng = np.random.default_rng(seed)
    net, factors = model(rng, n, table)
    known = evidence(rng, n)
    answer = run(net, factors, n, known, GraphCut(persistency=False))
    assert answer is None or (answer.optimal and answer.guarantee == "exact" and answer.persistent.all())


@EXAMPLES
@given(SEEDS, st.integers(2, 8), st.sampled_from([attractive, implication]))
def test_models_that_exchanging_states_makes_submodular_are_solved(seed: int, n: int, table: Any):
    rng = np.random.default_rng(seed)
    _, factors = model(rng, n, table)
    flip = rng.integers(0, 2, n)
    turned = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    factors = [(scope, log_table[np.ix_(*[[f, 1 - f] for f in flip[list(scope)]])]) for scope, log_table in factors]
    for scope, log_table in factors:
        turned.add_factor(list(scope), log_table=log_table)
    answer = run(turned, factors, n, {}, GraphCut(persistency=False))
    assert answer is None or answer.optimal


@EXAMPLES
@given(SEEDS, st.integers(3, 9), st.sampled_from([frustrated, hard]), st.sampled_from([0, 6]))
def test_roof_duality_bounds_and_persists(seed: int, n: int, table: Any, improve: int):
    rng = np.random.default_rng(seed)
    net, factors = model(rng, n, table, density=2.0)
    run(net, factors, n, evidence(rng, n), GraphCut(improve=improve))


def frustrated_grid(side: int, seed: int, field: float) -> tuple[mf.MarkovNetwork, list]:
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    factors = [((v,), field * rng.normal(size=2)) for v in range(side * side)]
    factors += [((int(i), int(j)), rng.normal() * np.array([[1.0, -1.0], [-1.0, 1.0]])) for i, j in pairs]
    net = mf.MarkovNetwork(dict.fromkeys(range(side * side), 2))
    for scope, log_table in factors:
        net.add_factor(list(scope), log_table=log_table)
    return net, factors


def test_some_variables_of_a_frustrated_grid_are_proven_and_the_others_improved():
    net, _ = frustrated_grid(10, seed=2, field=0.9)
    best = mf.decode(net, method="junction_tree")
    plain = mf.decode(net, method=GraphCut(improve=0))
    good = mf.decode(net, method=GraphCut(improve=12))
    assert 10 <= plain.persistent.sum() < 100
    proven = plain.persistent
    np.testing.assert_array_equal(plain.states[proven], best.states[proven])
    assert plain.score <= good.score <= best.score + 1e-9 <= plain.upper_bound + 2e-9
    assert not plain.optimal and plain.guarantee == "lower"
    assert best.score - good.score <= 0.25 * (best.score - plain.score)


def test_lattices_and_other_graphs_agree():
    net, factors = frustrated_grid(9, seed=3, field=1.0)
    order = np.random.default_rng(0).permutation(81)
    turned, mixed = mf.MarkovNetwork(dict.fromkeys(range(81), 2)), mf.MarkovNetwork(dict.fromkeys(order.tolist(), 2))
    for scope, log_table in factors:
        table = np.abs(log_table) * np.sign([[1, -1], [-1, 1]]) if len(scope) == 2 else log_table
        turned.add_factor(list(scope), log_table=table)
        mixed.add_factor(list(scope), log_table=table)
    known = dict.fromkeys(range(20, 30), 1)
    a, b = mf.decode(turned, evidence=known, method=GraphCut()), mf.decode(mixed, evidence=known, method=GraphCut())
    exact = mf.decode(turned, evidence=known, method="junction_tree")
    assert a.score == pytest.approx(exact.score) and b.score == pytest.approx(exact.score)
    assert a.optimal and b.optimal
    assert mf.decode(net, method=GraphCut()).upper_bound >= mf.decode(net, method="junction_tree").score - 1e-9


def test_hard_constraints():
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_clause({"B": 1}, {"A": 1})  # A implies B
    net.add_clause({"C": 1}, {"B": 1})  # B implies C
    net.add_factor(["A"], log_table=[0.0, 5.0])
    net.add_factor(["C"], log_table=[2.0, 0.0])
    answer = mf.decode(net, method=GraphCut())
    assert answer.assignment == {"A": 1, "B": 1, "C": 1} and answer.optimal and answer.score == pytest.approx(5.0)
    assert mf.decode(net, evidence={"C": 0}, method=GraphCut()).assignment == {"A": 0, "B": 0, "C": 0}
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.decode(net, evidence={"A": 1, "C": 0}, method=GraphCut())
    # Two factors on one pair that leave a single state only together, and others that contradict it.
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_factor(["A", "B"], [[1.0, 1.0], [0.0, 1.0]])
    net.add_factor(["A", "B"], [[1.0, 0.0], [1.0, 1.0]])
    net.add_factor(["B", "C"], [[0.0, 1.0], [1.0, 1.0]])
    net.add_factor(["B", "C"], [[1.0, 0.0], [1.0, 1.0]])
    assert mf.decode(net, method=GraphCut()).assignment["A"] == 1
    net.add_factor(["A"], [1.0, 0.0])
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.decode(net, method=GraphCut())
    # No two of three may be equal: roof duality cannot see it, a search does.
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_factors([["A", "B"], ["B", "C"], ["A", "C"]], [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.decode(net, method=GraphCut())


def test_without_pairs_and_in_components():
    net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 1, "D": 2})
    net.add_factor(["A"], [1.0, 3.0])
    answer = mf.decode(net, method=GraphCut())
    assert answer["A"] == 1 and answer.optimal and answer.score == pytest.approx(np.log(3.0))
    net.add_factor(["B", "D"], [[1.0, 4.0], [1.0, 1.0]])
    answer = mf.decode(net, method=GraphCut())
    assert answer.assignment == {"A": 1, "B": 0, "C": 0, "D": 1} and answer.optimal
    assert mf.decode(mf.MarkovNetwork(), method=GraphCut()).optimal


def test_stopped_on_the_way_it_answers_with_a_bound(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("markovfield.inference.graph_cuts.flow_networks.BUDGET", 50)
    net, factors = frustrated_grid(12, seed=4, field=1.0)
    attracted = mf.MarkovNetwork(dict.fromkeys(range(144), 2))
    for scope, log_table in factors:
        attracted.add_factor(list(scope), log_table=log_table if len(scope) == 1 else np.abs(log_table) * np.eye(2))
    for which in (net, attracted):
        best = mf.decode(which, method=GraphCut(improve=30)).score
        calls = []

        def stop(progress, calls=calls):
            calls.append(progress)
            return len(calls) > 6

        early = mf.decode(which, method=GraphCut(), callback=stop)
        assert not early.converged and not early.optimal and early.upper_bound < np.inf
        assert early.score <= best <= early.upper_bound


def test_starts_from_an_earlier_answer():
    net, _ = frustrated_grid(10, seed=2, field=0.3)
    good = mf.decode(net, method="junction_tree")
    again = mf.decode(net, method=GraphCut(improve=0), init=good)
    assert again.score == pytest.approx(good.score)
    with pytest.raises(mf.ModelError, match="init of graph_cut must be an earlier decoding"):
        mf.decode(net, method=GraphCut(), init="good")


def test_what_it_refuses():
    net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2, "D": 3})
    net.add_factor(["A", "B", "C"], np.arange(1.0, 9.0).reshape(2, 2, 2))
    with pytest.raises(mf.ModelError, match=r"at most two free variables, and one joins 3 \('A', 'B', 'C'\)"):
        mf.decode(net, method=GraphCut())
    with pytest.raises(mf.ModelError, match="takes variables of two states, and variable 'D' has 3"):
        mf.decode(net, evidence={"A": 0}, method=GraphCut())
    assert mf.decode(net, evidence={"A": 0, "D": 1}, method=GraphCut()).optimal
    triangle = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    triangle.add_factors([["A", "B"], ["B", "C"], ["A", "C"]], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(mf.ModelError, match="not submodular, whatever states are exchanged"):
        mf.decode(triangle, method=GraphCut(persistency=False))
    with pytest.raises(mf.ModelError, match="finds one assignment, not the 2 best"):
        mf.decode(triangle, n_best=2, method=GraphCut())
    with pytest.raises(mf.ModelError, match="decodes all 3 variables, not 1 of them"):
        mf.decode(triangle, variables=["A"], method=GraphCut())
    with pytest.raises(mf.ModelError, match="improve of GraphCut must be at least 0, got -1"):
        GraphCut(improve=-1)
    noisy = mf.BayesianNetwork({"A": 2, "B": 2})
    noisy.add_cpt("A", [], [0.5, 0.5])
    noisy.add_noisy_or("B", ["A"], [0.5])
    with pytest.raises(mf.ModelError, match="contributions of a noisy-max"):
        mf.decode(noisy, method=GraphCut())


def test_variables_of_one_state_take_no_part():
    """A pair with a variable of one state is a potential of the other alone; reading a second state would be wrong."""
    net = mf.MarkovNetwork({"v0": 2, "v1": 1, "v2": 2, "v3": 2})
    net.add_factor(["v0"], log_table=[-1.0, 1.0])
    net.add_potts([["v1", "v2"]], 5.0, -5.0)
    net.add_factor(["v0", "v3"], log_table=[[2.0, -3.0], [4.0, 2.0]])
    net.add_potts([["v1", "v0"]], -4.0, 0.0)
    net.add_factor(["v2"], log_table=[-2.0, 5.0])
    net.add_potts([["v3", "v2"]], -5.0, 2.0)
    best = mf.decode(net, method="enumeration").score
    for method in ("graph_cut", "portfolio", "alpha_expansion", "alpha_beta_swap", "trws", "branch_and_bound"):
        answer = mf.decode(net, method=method, rng=0)
        assert answer.states[1] == 0 and answer.score == pytest.approx(net.compile().score(answer.states))
        assert answer.upper_bound >= best - 1e-9
        if answer.optimal:
            assert answer.score == pytest.approx(best)
    net = mf.MarkovNetwork({"a": 2, "b": 1})
    net.add_factor(["a", "b"], [[1.0], [3.0]])
    answer = mf.decode(net, method="graph_cut")
    assert answer.assignment == {"a": 1, "b": 0} and answer.optimal
