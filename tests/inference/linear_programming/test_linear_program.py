"""Linear and integer programs over the local polytope against the oracle and known optima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.linear_programming.linear_program import IntegerProgram, LinearProgram
from tests.data import data_path
from tests.inference.relaxations import StopAfter, check, decoded, frustrated_lattice
from tests.oracle import Oracle
from tests.strategies import specs_with_evidence

EXAMPLES = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
@EXAMPLES
@given(data=st.data())
def test_brackets_the_best_score(kind: str, data: st.DataObject) -> None:
    spec, evidence = data.draw(specs_with_evidence(kind))
    loose = decoded(spec, evidence, LinearProgram(cycles=0))
    tight = decoded(spec, evidence, LinearProgram())
    if loose is None or tight is None:
        return
    assert tight.upper_bound <= loose.upper_bound + 1e-9
    assert loose.optimal or kind != "forest"


@pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
@EXAMPLES
@given(data=st.data())
def test_the_integer_program_is_exact(kind: str, data: st.DataObject) -> None:
    spec, evidence = data.draw(specs_with_evidence(kind))
    answer = decoded(spec, evidence, IntegerProgram())
    if answer is not None:
        assert answer.optimal
        assert answer.score == pytest.approx(spec.oracle(evidence).best_score, abs=1e-6)


@pytest.mark.parametrize("n_states", [2, 3])
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_cycles_tighten(n_states: int, seed: int) -> None:
    net, factors = frustrated_lattice(np.random.default_rng(seed), 3, 3, n_states, field=0.1)
    oracle = Oracle([n_states] * 9, factors)
    loose, tight = (mf.decode(net, method=LinearProgram(cycles=c)) for c in (0, 50))
    for answer in (loose, tight):
        check(answer, oracle, [answer.assignment[v] for v in range(9)])
    # Cycle inequalities describe planar binary models completely, but for fields; these are small.
    assert tight.gap <= loose.gap + 1e-9
    if n_states == 2:
        assert tight.gap <= 0.1 * loose.gap + 1e-6


def test_planar_spin_glasses_without_fields_are_exact() -> None:
    rng = np.random.default_rng(0)
    closed = 0
    for _ in range(5):
        n, net = 4, mf.MarkovNetwork(dict.fromkeys(range(16), 2))
        for i in range(n * n):
            for j in ([i + 1] if i % n < n - 1 else []) + ([i + n] if i + n < n * n else []):
                coupling = rng.normal()
                net.add_factor([i, j], log_table=[[coupling, -coupling], [-coupling, coupling]])
        best = mf.decode(net, method="junction_tree").score
        loose = mf.decode(net, method=LinearProgram(cycles=0))
        tight = mf.decode(net, method=LinearProgram(cycles=50))
        assert tight.upper_bound == pytest.approx(best, abs=1e-5)
        closed += loose.upper_bound > best + 0.1
    assert closed  # the local polytope alone was not enough


def test_three_colours_of_a_frustrated_wheel() -> None:
    # Six variables around a hub, all wanting to differ: three colours suffice, two do not.
    net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
    edges = [(i, i % 5 + 1) for i in range(1, 6)] + [(0, i) for i in range(1, 6)]
    net.add_factors(edges, log_table=[[0.0, 1.0], [1.0, 0.0]])
    assert mf.decode(net, method=LinearProgram(cycles=0)).upper_bound == pytest.approx(10.0, abs=1e-6)
    tight = mf.decode(net, method=LinearProgram())
    assert tight.optimal and tight.score == mf.decode(net, method="junction_tree").score
    assert mf.decode(net, method=IntegerProgram()).score == tight.score


def test_higher_arities_share_their_pairs_with_cycles() -> None:
    # A factor of three and a pair close a cycle: its own pairs take part in the inequalities.
    table = np.zeros((2, 2, 2))
    for a, b, c in np.ndindex(2, 2, 2):
        table[a, b, c] = (a != b) + (b != c)
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_factor(["A", "B", "C"], log_table=table)
    net.add_factor(["A", "C"], log_table=[[0.0, 1.0], [1.0, 0.0]])
    loose, tight = (mf.decode(net, method=LinearProgram(cycles=c)) for c in (0, 20))
    assert loose.upper_bound > tight.upper_bound + 0.5
    assert tight.optimal and tight.score == 2.0


@pytest.mark.parametrize(("name", "best"), [("grid10x10.f2.wrap", 70.606964), ("grid4x4", 44.324972)])
def test_reference_instances(name: str, best: float) -> None:
    # The best scores, in powers of ten, are those of the index of the reference data.
    model = mf.io.read_uai(data_path("uai_small", f"{name}.uai"))
    answer = mf.decode(model, method=IntegerProgram())
    assert answer.optimal and answer.score / np.log(10) == pytest.approx(best, abs=1e-5)


def test_stopped_answers_with_what_there_is() -> None:
    net, _ = frustrated_lattice(np.random.default_rng(2), 6, 6, 3)
    full = mf.decode(net, method=LinearProgram(cycles=0))
    assert not full.optimal  # so that there are cycles to look for
    for interrupt in (False, True):
        answer = mf.decode(net, method=LinearProgram(), callback=StopAfter(2, interrupt=interrupt))
        assert not answer.converged
        assert answer.upper_bound == pytest.approx(full.upper_bound)
        answer = mf.decode(net, method=IntegerProgram(), callback=StopAfter(1, interrupt=interrupt))
        assert not answer.converged and answer.score <= full.upper_bound <= answer.upper_bound < np.inf


def test_the_integer_program_keeps_to_its_time_limit() -> None:
    net, _ = frustrated_lattice(np.random.default_rng(1), 14, 14, 4)
    try:
        answer = mf.decode(net, method=IntegerProgram(), time_limit=0.6)
    except TimeoutError as stop:
        assert "HiGHS found no assignment" in str(stop)  # noqa: PT017
    else:
        assert answer.score <= answer.upper_bound and (answer.optimal or not answer.converged)


def test_impossible_models() -> None:
    bad = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    bad.add_factors([("A", "B"), ("B", "C"), ("C", "A")], np.ones((2, 2)) - np.eye(2))
    for method in (LinearProgram(cycles=0), LinearProgram(), IntegerProgram()):
        with pytest.raises(mf.ImpossibleEvidenceError, match="probability zero to every assignment"):
            mf.decode(bad, method=method)


def test_small_models() -> None:
    for method in (LinearProgram(), IntegerProgram()):
        single = mf.MarkovNetwork({"A": 3, "B": 1})
        single.add_factor(["A"], log_table=[0.0, 2.0, 1.0])
        answer = mf.decode(single, method=method)
        assert (answer.assignment["A"], answer.score, answer.optimal) == (1, 2.0, True)
        empty = mf.decode(mf.MarkovNetwork({}), method=method)
        assert (empty.assignment, empty.score, empty.optimal) == ({}, 0.0, True)


def test_what_they_refuse() -> None:
    net, _ = frustrated_lattice(np.random.default_rng(2), 5, 5, 3)
    with pytest.raises(mf.ModelError, match=r"linear program of linear_program would have 435 columns.*use trws"):
        mf.decode(net, method=LinearProgram(max_columns=400))
    with pytest.raises(mf.ModelError, match="integer_program would have 435 columns, and at most 100 are allowed"):
        mf.decode(net, method=IntegerProgram(max_columns=100))
    with pytest.raises(mf.ModelError, match="cycles of LinearProgram must be at least 0"):
        LinearProgram(cycles=-1)
    with pytest.raises(mf.ModelError, match="relative_gap of IntegerProgram must be at least 0"):
        IntegerProgram(relative_gap=-1.0)
    with pytest.raises(mf.ModelError, match="linear_program finds one assignment, not the 2 best"):
        mf.decode(net, method=LinearProgram(), n_best=2)


def test_a_wide_relative_gap_is_no_proof():
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(10), 3))
    for i in range(10):
        for j in range(i):
            net.add_factor([j, i], log_table=rng.normal(size=(3, 3)))
    best = mf.decode(net, method="branch_and_bound")
    loose = mf.decode(net, method=IntegerProgram(relative_gap=5.0))
    assert loose.upper_bound >= best.score - 1e-6 and (not loose.optimal or loose.score >= best.score - 1e-6)
    assert loose.optimal == (loose.guarantee == "exact")
    assert loose.gap > 1.0 and not loose.optimal
