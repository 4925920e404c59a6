"""MC-SAT: slices by hand, draws among solutions, exact marginals, hard formulas, starts, stopping."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.gibbs.single_site import prepare_chains
from markovfield.inference.satisfiability.mc_sat import MCSAT, satisfying_states
from markovfield.inference.satisfiability.slice_kernel import _draw_block, begin_slice, draw_slice
from markovfield.inference.satisfiability.slices import Slices
from markovfield.inference.satisfiability.solutions_kernel import (
    ACTIVE,
    BEGIN,
    CLAUSE,
    CONJUNCTION,
    END,
    HEIGHT,
    IS_OPEN,
    KIND,
    LOOSE,
    OPEN,
    ORDER,
    STATE,
    STRIDE,
    TABLE,
    TRAIL,
    TRUE,
    VARIABLE,
    draw_solution,
)
from markovfield.kernels.random import streams
from tests.inference.satisfiability.test_max_walk_sat import formulas


def problem_of(net: Any, known: Any = None) -> Any:
    graph = net.compile()
    return prepare_chains(graph, Evidence.parse(graph.structure, known))


def test_factors_are_told_apart():
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_clause({"A": 1}, {"B": 1, "C": 1}, weight=2.0)
    net.add_clause({"A": 1}, {"B": 1}, weight=-1.0)
    net.add_factor(["A", "B", "C"], log_table=np.arange(8.0).reshape(2, 2, 2))
    net.add_clause({"B": 1, "C": 1})
    net.add_factor(["A", "C"], log_table=np.full((2, 2), 3.0))
    net.add_factor(["C"], log_table=[0.0, 0.5])
    found = Slices.of(problem_of(net), 8).slice
    assert found.factors[:, KIND].tolist() == [CLAUSE, CONJUNCTION, TABLE, CLAUSE, TABLE]
    np.testing.assert_allclose(found.heights[:, LOOSE], [np.exp(-2), np.exp(-1), np.exp(-7), 0.0, 1.0])
    cell = found.axes[found.factors[0, BEGIN] : found.factors[0, END]]
    assert dict(cell[:, [VARIABLE, STATE]].tolist()) == {0: 0, 1: 1, 2: 1}  # what violates the clause
    cell = found.axes[found.factors[1, BEGIN] : found.factors[1, END]]
    assert dict(cell[:, [VARIABLE, STATE]].tolist()) == {0: 0, 1: 1}  # the one way to fail a disjunction
    assert found.unary.tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 0.5]


def allowed(s: Any, states: np.ndarray) -> bool:
    """Whether an assignment satisfies all constraints of a slice, read naively."""
    for f, row in enumerate(s.factors):
        axes = s.axes[row[BEGIN] : row[END]]
        if not row[ACTIVE]:
            continue
        own = states[axes[:, VARIABLE]]
        if row[KIND] == CLAUSE and (own == axes[:, STATE]).all():
            return False
        if row[KIND] == CONJUNCTION and (own != axes[:, STATE]).any():
            return False
        if row[KIND] == TABLE and s.log_tables[row[1] + (own * axes[:, STRIDE]).sum()] < s.heights[f, HEIGHT]:
            return False
    return True


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("card", [2, 3])
def test_domains_of_a_slice_keep_every_solution_and_come_back_after_draws(seed: int, card: int):
    problem = problem_of(formulas(seed, n=6, many=10, card=card))
    s = Slices.of(problem, 8).slice
    rng = np.random.default_rng(seed)
    stream = streams(rng, 1)[0]
    cards = problem.structure.cardinalities
    states = rng.integers(0, cards).astype(np.int32)
    for _ in range(20):
        begin_slice(s, stream, states)
        assert allowed(s, states)
        solutions = np.array([x for x in itertools.product(*map(range, cards)) if allowed(s, np.array(x))])
        inside = np.zeros(int(cards.sum()), bool)
        inside[(problem.structure.value_offsets[:-1] + solutions).ravel()] = True
        is_open = s.places[:, IS_OPEN].astype(bool)
        assert is_open[inside].all()  # propagation rules out no solution
        before = [s.places.copy(), s.variables[:, OPEN].copy(), s.factors[:, [TRUE, ACTIVE]].copy(), s.numbers[TRAIL]]
        drawn = np.empty((300, len(cards)), np.int64)
        n = len(cards)
        s.chosen[ORDER, :n] = np.arange(n)
        for row in drawn:
            assert draw_solution(s, 0, n, 10**6, 10**9, stream, states)
            row[:] = states
        after = [s.places, s.variables[:, OPEN], s.factors[:, [TRUE, ACTIVE]], s.numbers[TRAIL]]
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)
        assert all(allowed(s, x) for x in drawn[:40])
        weight = np.exp(s.unary[problem.structure.value_offsets[:-1] + solutions].sum(axis=1))
        expected = (weight[:, None] * solutions).sum(axis=0) / weight.sum()
        spread = (weight[:, None] * solutions**2).sum(axis=0) / weight.sum() - expected**2
        off = np.abs(drawn.mean(axis=0) - expected)
        assert (off <= 6 * np.sqrt(np.maximum(spread, 0) / 300) + 2 * card / 300).all()
        _draw_block(s, 0, 2, 10**6, 10**9, stream, states)
        assert allowed(s, states)
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)
        begin_slice(s, stream, states)
        draw_slice(s, 4, stream, states)
        assert allowed(s, states)


@pytest.mark.parametrize("leaves", [512, 1])
@pytest.mark.parametrize("seed", range(8))
def test_marginals_are_within_their_errors(seed: int, leaves: int):
    """Hard, soft and negative weights, soft evidence; with and without components that are drawn block by block."""
    net = formulas(seed, n=9, many=14, hard=0.2)
    known: dict[str, Any] = {"x0": 1} if seed % 2 else {}
    if seed % 3 == 0:
        known["x1"] = [0.3, 0.7]
    try:
        exact = mf.marginals(net, known, method="enumeration")
    except mf.ImpossibleEvidenceError:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.marginals(net, known, method="mc_sat", rng=0)
        return
    answer = mf.marginals(net, known, method=MCSAT(sweeps=4000, leaves=leaves), rng=seed)
    if not answer.converged:
        assert leaves == 1 and answer.monte_carlo.doubts
        return
    for v in net.variables:
        error = np.maximum(answer.standard_error(v), np.sqrt(exact[v] * (1 - exact[v]) / answer.monte_carlo.n_samples))
        assert (np.abs(answer[v] - exact[v]) <= 6 * error + 20 / answer.monte_carlo.n_samples).all(), (seed, v)


def test_a_markov_logic_network_with_evidence_and_tied_weights():
    kb = mf.MarkovLogic("""
        person = {A, B, C, D}
        Friends(person, person)
        Smokes(person)
        Cancer(person)
        1.5 Smokes(x) => Cancer(x)
        1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))
        -0.7 Friends(x, y) ^ Cancer(y)
        Smokes(x) v Cancer(x).
        0.8 Friends(x, x)
    """)
    world = kb.ground(evidence="Friends(A, B) !Friends(C, D) Smokes(A) 0.3 Cancer(D)", closed=[])
    exact = mf.marginals(world, method="junction_tree")
    answer = mf.marginals(world, method=MCSAT(sweeps=3000), rng=1)
    assert answer.converged
    for v in world.variables:
        assert np.abs(answer[v] - exact[v]).max() <= 6 * max(answer.standard_error(v).max(), 0.005), v


def test_no_barrier_where_single_changes_are_stuck():
    """Two modes, e^50 apart for single changes: each slice holds all or nothing, and chooses between the modes."""
    n = 30
    kb = mf.MarkovLogic(f"t = {{1, ..., {n}}}\nNext(t, t)\nOn(t)\n50 Next(x, y) => (On(x) <=> On(y))\n0.02 On(x)\n")
    world = kb.ground(evidence=" ".join(f"Next({i}, {i + 1})" for i in range(1, n)), query=["On"])
    exact = mf.marginals(world, method="junction_tree")
    answer = mf.marginals(world, method=MCSAT(sweeps=2000, n_chains=2), rng=0)
    assert answer.converged and abs(answer["On(1)"][1] - exact["On(1)"][1]) < 6 * answer.standard_error("On(1)")[1]
    drawn = mf.sample(world, 400, method=MCSAT(n_chains=1, burn_in=10), rng=0).states[:, 0]
    stuck = mf.sample(world, 400, method=mf.methods.Gibbs(n_chains=1, burn_in=10), rng=0).states[:, 0]
    # Between single changes only the ends of runs move, by the way.
    assert (np.diff(drawn) != 0).sum() > 100 and (np.diff(stuck) != 0).sum() < 20


def test_hard_formulas_hold_in_every_sample():
    kb = mf.MarkovLogic("""
        p = {1, ..., 8}
        c = {Red, Green, Blue, Grey}
        Next(p, p)
        Colour(p, c!)
        !Next(x, y) v !Colour(x, k) v !Colour(y, k).
        0.5 Colour(x, Red)
    """)
    text = " ".join(f"Next({i}, {i % 8 + 1})" for i in range(1, 9))
    world = kb.ground(evidence=text, query=["Colour"])
    drawn = mf.sample(world, 200, method=MCSAT(burn_in=20), rng=0)
    graph = world.compile()
    assert all(np.isfinite(graph.score(row)) for row in drawn.states)
    exact = mf.marginals(world, method="junction_tree")
    found = drawn.frequencies("Colour(1, Red)")
    assert abs(found[0][1] - exact["Colour(1, Red)"][1]) < 6 * max(found[1][1], 0.02)


def test_threads_cuts_and_seeds_give_the_same_states():
    net = formulas(3, n=40, many=90)
    method = MCSAT(sweeps=64, burn_in=10)
    first = mf.marginals(net, method=method, rng=3, n_jobs=1)
    again = mf.marginals(net, method=method, rng=3, n_jobs=2)
    np.testing.assert_array_equal(first.values, again.values)
    problem = problem_of(net)
    chain = Slices.of(problem, 8)
    states = np.zeros((2, 40), np.int32)
    stream = np.stack([streams(np.random.default_rng(0), 1)[0]] * 2)
    chain.advance(states[0], stream[0], 9)
    for count in (4, 5):
        chain.advance(states[1], stream[1], count)
    np.testing.assert_array_equal(states[0], states[1])


def test_samples_go_on_from_where_they_stopped():
    net = formulas(4, n=20, many=40)
    method = MCSAT(burn_in=5)
    whole = mf.sample(net, 40, method=method, rng=0)
    first = mf.sample(net, 16, method=method, rng=0)
    rest = mf.sample(net, 24, method=method, init=first)
    parts = [np.array_split(x.states, 4) for x in (first, rest)]
    for chain, (a, b) in zip(np.array_split(whole.states, 4), zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(chain, np.concatenate([a, b]))


def test_starts_satisfy_hard_formulas_where_the_search_gives_up(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(2)
    hidden = rng.integers(0, 2, 60)
    net = mf.MarkovNetwork(dict.fromkeys(range(60), 2))
    while net.compile().n_factors < 180:
        chosen, states = rng.choice(60, 3, replace=False), rng.integers(0, 2, 3)
        if (states == hidden[chosen]).any():
            net.add_clause(dict(zip(chosen.tolist(), states.tolist(), strict=True)))
    problem = problem_of(net)

    def gives_up(*_: Any) -> Any:
        raise mf.ModelError("no start")

    monkeypatch.setattr("markovfield.inference.satisfiability.mc_sat.dispersed_states", gives_up)
    rows = satisfying_states(problem, 3, np.random.default_rng(0), Running())
    graph = net.compile()
    assert rows.shape == (3, 60) and all(np.isfinite(graph.score(problem.states(row))) for row in rows)
    # A pigeonhole: nothing satisfies it, and a walk cannot know.
    holes = mf.MarkovNetwork({f"{i}{j}": 2 for i in range(9) for j in range(8)})
    for i in range(9):
        holes.add_clause({f"{i}{j}": 1 for j in range(8)})
        for j in range(8):
            for k in range(i):
                holes.add_clause(None, {f"{i}{j}": 1, f"{k}{j}": 1})
    with pytest.raises(mf.ModelError, match="mc_sat begins where all hard formulas hold"):
        mf.sample(holes, 5, method="mc_sat", rng=0)


@pytest.mark.parametrize(("setting", "value"), [("leaves", 0), ("sweeps", 0), ("n_chains", 0)])
def test_settings_are_checked(setting: str, value: int):
    with pytest.raises(mf.ModelError, match=setting):
        MCSAT(**{setting: value})
