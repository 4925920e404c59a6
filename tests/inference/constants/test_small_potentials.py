"""Potentials of any order of magnitude: a bound is a bound, and what is called optimal is best, not only nearly so."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.branch_and_bound.toulbar2 import installed
from markovfield.inference.core.registry import methods
from tests.inference.relaxations import frustrated_lattice

NAMES = methods("decode")


def scaled(n_states: int, scale: float) -> tuple[mf.FactorGraph, float]:
    """A lattice of random tables times a number, and its best score, by looking at all assignments."""
    _, factors = frustrated_lattice(np.random.default_rng(n_states), 3, 3, n_states)
    net = mf.MarkovNetwork(dict.fromkeys(range(9), n_states))
    for scope, table in factors:
        net.add_factor(list(scope), log_table=scale * table)
    graph = net.compile()
    return graph, float(graph.score(np.array(list(itertools.product(range(n_states), repeat=9)))).max())


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e-15, 1e-12, 1e-9, 1e12])
@pytest.mark.parametrize("name", NAMES)
def test_bounds_and_optimality(name: str, scale: float) -> None:
    if name == "toulbar2" and not installed():
        pytest.skip("pytoulbar2 is not installed")
    for n_states in (2, 3):
        if name == "graph_cut" and n_states > 2:
            continue
        graph, best = scaled(n_states, scale)
        # Those that end by themselves have all the time there is, however busy the machine.
        answer = mf.decode(graph, method=name, rng=0, time_limit=600 if methods("decode")[name].exact else 20)
        # Sums of 21 numbers, rounded in any order; toulbar2 is handed integers, 2^50 of them at most.
        rounding = 1e-12 * best
        assert answer.score == pytest.approx(graph.score(answer.assignment), rel=1e-12)
        assert answer.score <= best + rounding
        assert answer.upper_bound >= best - rounding
        if answer.optimal:
            assert answer.score >= best - rounding
        if methods("decode")[name].exact:
            assert answer.optimal


@pytest.mark.parametrize("name", ["graph_cut", "portfolio"])
def test_frustrated_pairs(name: str) -> None:
    """Roof duality leaves most of these open, and what it does not prove is not called best."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        net = mf.MarkovNetwork(dict.fromkeys(range(8), 2))
        for i, j in itertools.combinations(range(8), 2):
            net.add_factor([i, j], log_table=1e-11 * rng.normal(size=(2, 2)))
        graph = net.compile()
        scores = graph.score(np.array(list(itertools.product(range(2), repeat=8))))
        answer = mf.decode(graph, method=name, rng=0, time_limit=5)
        assert answer.upper_bound >= scores.max() * (1 - 1e-9)
        if answer.optimal:
            assert answer.score == pytest.approx(scores.max(), rel=1e-9)


@pytest.mark.parametrize("size", [1e-13, 1e-30, 1e-200])
def test_a_climb_ends_in_a_local_optimum_whatever_the_size(size: float) -> None:
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(6), 3))
    for v in range(5):
        net.add_factor([v, v + 1], log_table=size * rng.normal(size=(3, 3)))
    graph = net.compile()
    answer = mf.decode(graph, method="icm")
    for v in range(6):
        for state in range(3):
            other = answer.states.copy()
            other[v] = state
            assert graph.score(other) <= answer.score * (1 + 1e-12) + 1e-11 * size


@pytest.mark.parametrize("name", ["mini_bucket", "trws", "dual_decomposition", "tree_reweighted"])
def test_what_no_factor_reads_does_not_widen_the_tolerance(name: str) -> None:
    """A clause over a variable of one state is decided, and its other cell, of 1.25, is read by nobody."""
    net = mf.MarkovNetwork(dict.fromkeys(range(4), 2) | {"single": 1})
    rng = np.random.default_rng(0)
    for v in range(3):
        net.add_factor([v, v + 1], log_table=1e-12 * rng.normal(size=(2, 2)))
    net.add_clause({}, {"single": 0}, weight=1.25)
    answer = mf.decode(net, method=name)
    assert answer.tolerance < 1e-20
    assert answer.score == pytest.approx(mf.decode(net, method="enumeration").score, rel=1e-9)
