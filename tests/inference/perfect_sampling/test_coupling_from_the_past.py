"""Perfect samples really are: whole assignments against the oracle, and a wrong way of coupling that is found out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ImpossibleEvidenceError, ModelError, StoppedError
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.perfect_sampling.coupling_from_the_past import SAMPLES_IN_A_TASK, CouplingFromThePast
from markovfield.inference.perfect_sampling.monotone import MonotoneModel
from markovfield.inference.perfect_sampling.random_cluster_kernel import sweep_bonds, sweep_bonds_both
from tests.inference.joint_counts import APART, CYCLE, FALSE_ALARM, GRID, p_value, pairs_spec
from tests.strategies import Spec, Table

EVERY = ("spins", "bonds", "auto")
SPINS = ("spins", "auto")
BONDS = ("bonds", "auto")
CASES: dict[str, tuple[Spec, dict[int, Any], tuple[str, ...]]] = {
    "ferromagnet": (pairs_spec(1, 5, CYCLE, coupling=(0.5, 2.0), field=0.0), {}, EVERY),
    "ferromagnet in fields": (pairs_spec(2, 5, CYCLE, coupling=(0.5, 2.0)), {}, SPINS),
    "antiferromagnet": (pairs_spec(3, 6, GRID, coupling=(-2.0, -0.5), field=0.0), {}, EVERY),
    "antiferromagnet in fields": (pairs_spec(4, 6, GRID, coupling=(-2.0, -0.5)), {}, SPINS),
    "mixed signs on a tree": (pairs_spec(5, 6, GRID[:5], coupling=(-1.5, 1.5)), {}, SPINS),
    "evidence": (pairs_spec(6, 6, GRID, field=0.0), {1: 1, 5: np.array([0.3, 0.9])}, EVERY),
    "evidence that breaks frustration": (pairs_spec(7, 5, CYCLE, coupling=(-1.5, -0.5), field=0.0), {0: 0}, SPINS),
    "in components": (pairs_spec(8, 6, APART, coupling=(-1.0, 1.5), field=0.3), {}, SPINS),
    "no pairs": (pairs_spec(9, 4, [], field=0.7), {}, SPINS),
    "three states": (pairs_spec(10, 5, CYCLE, states=3, field=0.0), {}, BONDS),
    "three states, evidence": (
        pairs_spec(11, 6, GRID, states=3, field=0.0),
        {0: 1, 5: np.array([0.1, 0.6, 0.1]), 4: np.array([0.0, 0.6, 0.0])},
        BONDS,
    ),
    "three states in components": (
        pairs_spec(12, 6, APART, states=3, field=0.0),
        {0: 1, 4: np.array([0.1, 0.1, 0.6]), 5: np.array([0.1, 0.2, 0.7])},
        BONDS,
    ),
}


@pytest.mark.parametrize(("case", "moves"), [(case, moves) for case, (_, _, all_) in CASES.items() for moves in all_])
def test_assignments_come_as_often_as_they_should(case, moves):
    spec, evidence, _ = CASES[case]
    drawn = mf.sample(spec.build(), 20_000, spec.named(evidence), method=CouplingFromThePast(moves=moves), rng=1)
    assert (drawn.guarantee, drawn.n_chains) == ("exact", 0)
    assert p_value(spec.oracle(evidence), drawn.states) > FALSE_ALARM


def test_rows_are_independent():
    spec, evidence, _ = CASES["ferromagnet in fields"]
    drawn = mf.sample(spec.build(), 20_000, spec.named(evidence), method=CouplingFromThePast(), rng=2).states
    # Neighbouring rows as one assignment of twice as many variables: of each, the first three.
    pairs = np.concatenate([drawn[:-1:2, :3], drawn[1::2, :3]], axis=1)
    one = spec.oracle().joint([0, 1, 2])
    both = Spec((2,) * 6, (Table(((0, 1, 2), (3, 4, 5)), np.log(one.astype(np.float64))),), tuple("abcdef")).oracle()
    assert p_value(both, pairs) > FALSE_ALARM


def coupled_to_the_future(spec: Spec, size: int, rng: np.random.Generator) -> np.ndarray:
    """What coupling from the past is not: both chains run on from now, and the state where they meet is taken."""
    factors, n = spec.factors, spec.n_variables
    drawn = np.empty((size, n), np.int64)
    for row in drawn:
        top, bottom = np.ones(n, np.int64), np.zeros(n, np.int64)
        while (top != bottom).any():
            for v in range(n):
                u = rng.random()
                for states in (top, bottom):
                    odds = 0.0
                    for scope, table in factors:
                        if v in scope:
                            for x, sign in ((1, 1), (0, -1)):
                                states[v] = x
                                odds += sign * table[tuple(states[list(scope)])]
                    states[v] = u < 1 / (1 + np.exp(-odds))
        row[:] = top
    return drawn


def test_coupling_to_the_future_would_be_found_out():
    """The same test and model with the classic mistake: it must fail, or the test above proves nothing."""
    spec = pairs_spec(1, 3, [(0, 1), (1, 2)], coupling=(1.5, 2.0), field=0.8)
    rng = np.random.default_rng(0)
    assert p_value(spec.oracle(), coupled_to_the_future(spec, 3000, rng)) < 1e-12
    drawn = mf.sample(spec.build(), 3000, method=CouplingFromThePast(moves="spins"), rng=0)
    assert p_value(spec.oracle(), drawn.states) > FALSE_ALARM


def large(length: int, coupling: float) -> mf.MarkovNetwork:
    net = mf.MarkovNetwork(dict.fromkeys(range(length * length), 2))
    across = [(i, i + 1) for i in range(length * length) if (i + 1) % length]
    down = [(i, i + length) for i in range(length * (length - 1))]
    net.add_factors(across + down, log_table=coupling * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    return net


def test_spins_and_bonds_agree_with_the_junction_tree_on_a_grid():
    net = large(8, 0.4)
    exact = mf.marginals(net, targets=[(0, 63), (27, 36)])
    for moves in ("spins", "bonds"):
        drawn = mf.sample(net, 4000, method=CouplingFromThePast(moves=moves), rng=3)
        for pair in ((0, 63), (27, 36)):
            same = float(np.trace(exact.joint(pair)))
            rate = float((drawn.states[:, pair[0]] == drawn.states[:, pair[1]]).mean())
            # One of four standard errors is a false alarm of 1 in 15,000.
            assert abs(rate - same) < 4 * np.sqrt(same * (1 - same) / 4000)


def test_bonds_work_where_spins_would_take_for_ever():
    drawn = mf.sample(large(24, 0.7), 4, method=CouplingFromThePast(), rng=0)
    assert np.abs(2 * drawn.states.mean(axis=1) - 1).min() > 0.9
    with pytest.raises(
        ModelError, match=r"have not met within 2\^8 sweeps.*raise max_doublings, or use junction_tree or swen"
    ):
        mf.sample(large(24, 0.7), 4, method=CouplingFromThePast(moves="spins", max_doublings=8), rng=0)
    with pytest.raises(ModelError, match=r"have not met within 2\^0 sweeps"):
        mf.sample(large(24, 0.7), 4, method=CouplingFromThePast(max_doublings=0), rng=0)


def test_chains_of_bonds_keep_their_order():
    graph = large(6, 0.4).compile()
    monotone = MonotoneModel.of(graph, Evidence.parse(graph.structure, {0: 1}), "coupling_from_the_past")
    _, bonds = monotone.graphs(True)
    rng = np.random.default_rng(0)
    seeds = rng.integers(1, 2**63, (40, 4)).astype(np.uint64)
    n = len(bonds.first)
    top, bottom, between = np.ones(n, np.int8), np.zeros(n, np.int8), rng.integers(0, 2, n).astype(np.int8)
    apart = []
    for seed in seeds:
        different, _ = sweep_bonds_both(bonds, top, bottom, seed.copy())
        sweep_bonds(bonds, between, seed.copy())
        assert (bottom <= between).all()
        assert (between <= top).all()
        assert different == (top != bottom).sum()
        apart.append(different)
    assert apart[0] > 0
    assert apart[-1] == 0


@pytest.mark.parametrize("length", [3, 6])
@pytest.mark.parametrize("moves", EVERY)
def test_neither_threads_nor_how_samples_are_grouped_make_a_difference(moves, length, monkeypatch):
    graph = large(length, 0.4).compile()
    method = CouplingFromThePast(moves=moves)
    size = 2 * SAMPLES_IN_A_TASK + 5
    one = mf.sample(graph, size, {0: 1}, method=method, rng=5, n_jobs=1)
    two = mf.sample(graph, size, {0: 1}, method=method, rng=5, n_jobs=2)
    assert np.array_equal(one.states, two.states)
    # Cut into calls of one sweep each, and begun so that most samples start at other levels: the same samples come only
    # if all starts that are far enough back end in the same state, which is what makes it right to stop there.
    module = "markovfield.inference.perfect_sampling.coupling_from_the_past"
    monkeypatch.setattr(f"{module}.SAMPLES_IN_A_TASK", 1)
    monkeypatch.setattr(f"{module}.BUDGET", 1)
    few = mf.sample(graph, size, {0: 1}, method=method, rng=5)
    assert np.array_equal(few.states, one.states)
    assert few.iterations != one.iterations


def test_nothing_left_to_draw():
    net = CASES["ferromagnet"][0].build()
    everything = {f"x{v}": v % 2 for v in range(5)}
    method = CouplingFromThePast()
    assert mf.sample(net, 7, everything, method=method, rng=0).states.tolist() == [[0, 1, 0, 1, 0]] * 7
    assert mf.sample(net, 0, method=method, rng=0).states.shape == (0, 5)
    assert mf.sample(mf.MarkovNetwork({}), 3, method=method, rng=0).states.shape == (3, 0)


def test_models_that_are_not_monotone_are_refused():
    method = CouplingFromThePast()
    triangle = pairs_spec(1, 3, [(0, 1), (1, 2), (2, 0)], coupling=(-1.0, -0.5), field=0.0)
    with pytest.raises(ModelError, match=r"a cycle that 'x0' is joined to has an odd number of negative ones"):
        mf.sample(triangle.build(), 5, method=method, rng=0)
    linear = Spec((3, 3), (Table(((0, 1),), -np.abs(np.subtract.outer(range(3), range(3))) * 1.0),), ("A", "B"))
    with pytest.raises(ModelError, match=r"takes Ising models .* neither: use gibbs"):
        mf.sample(linear.build(), 5, method=method, rng=0)
    pulled = pairs_spec(2, 4, [(0, 1), (1, 2), (2, 3)], states=3, field=0.0).build()
    with pytest.raises(
        ModelError, match="where all fields and evidence within a connected component favour the same state"
    ):
        mf.sample(pulled, 5, {"x0": 1, "x3": 2}, method=method, rng=0)
    with pytest.raises(ModelError, match=r"moves spins of two-state variables only: use moves='bonds'"):
        mf.sample(pulled, 5, method=CouplingFromThePast(moves="spins"), rng=0)
    with pytest.raises(ModelError, match=r"favour the same state: use moves='spins'"):
        mf.sample(CASES["ferromagnet in fields"][0].build(), 5, method=CouplingFromThePast(moves="bonds"), rng=0)
    with pytest.raises(ImpossibleEvidenceError, match="x0~"):
        mf.sample(
            Spec((2,), (Table(((0,),), np.array([0.0, -np.inf])),), ("x0",)).build(),
            5,
            {"x0": [0.0, 1.0]},
            method=method,
        )


def test_settings_are_checked():
    with pytest.raises(ModelError, match="moves of CouplingFromThePast must be 'auto', 'spins' or 'bonds', got 'x'"):
        CouplingFromThePast(moves="x")
    with pytest.raises(
        ModelError, match="max_doublings of CouplingFromThePast must be an integer from 0 to 60, got -1"
    ):
        CouplingFromThePast(max_doublings=-1)


def test_to_stop_early_answers_nothing():
    """Samples that are done first are not like the others."""
    with pytest.raises(StoppedError):
        mf.sample(large(24, 0.5), 200, method=CouplingFromThePast(), rng=0, callback=lambda progress: progress.step > 2)
    with pytest.raises(TimeoutError):
        mf.sample(large(32, 0.7), 9, method=CouplingFromThePast(moves="spins", max_doublings=40), rng=0, time_limit=0.1)
