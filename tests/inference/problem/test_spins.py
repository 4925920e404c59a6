"""Ising and Potts models recognised from their tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.inference.problem.spins import potts_model, spin_model


def problem_of(net: Any, evidence: dict | None = None) -> tuple[Any, Problem]:
    graph = net.compile()
    return graph, prepare(graph, Evidence.parse(graph.structure, evidence))


def pairs(rng: np.random.Generator, n: int, card: int, table: Any) -> mf.MarkovNetwork:
    net = mf.MarkovNetwork(dict.fromkeys(range(n), card))
    for v in range(n):
        net.add_factor([v], log_table=rng.normal(size=card))
    for _ in range(2 * n):  # some pairs come twice, and in either order
        i, j = rng.permutation(n)[:2].tolist()
        net.add_factor([i, j], log_table=table(rng))
    return net


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**16), st.integers(2, 7))
def test_spins_score_as_the_model_does(seed: int, n: int):
    rng = np.random.default_rng(seed)
    net = pairs(rng, n, 2, lambda r: r.normal(size=(2, 2)) * 3)
    known = {0: int(rng.integers(2)), 1: rng.random(2)} if seed % 2 else None
    graph, problem = problem_of(net, known)
    found = spin_model(problem)
    assert found is not None
    assert (found.first < found.second).all()
    keys = found.first * n + found.second
    assert len(np.unique(keys)) == len(keys)
    for _ in range(8):
        states = rng.integers(2, size=n)
        extra = 0.0
        if known:
            states[0] = known[0]
            extra = np.log(known[1][states[1]])
        spins = 2.0 * states[found.variables] - 1
        score = found.constant + (found.coupling * spins[found.first] * spins[found.second]).sum()
        score += (found.field * spins).sum()
        assert score == pytest.approx(graph.score(states) + extra, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**16), st.integers(2, 6), st.integers(2, 4))
def test_potts_scores_as_the_model_does(seed: int, n: int, card: int):
    rng = np.random.default_rng(seed)
    net = pairs(rng, n, card, lambda r: r.normal() + r.normal() * np.eye(card))
    net.add_potts([[0, 1]], 0.7, 0.1)
    graph, problem = problem_of(net)
    found = potts_model(problem)
    assert found is not None and found.n_states == card
    for _ in range(8):
        states = rng.integers(card, size=n)
        y = states[found.variables]
        score = found.constant + (found.coupling * (y[found.first] == y[found.second])).sum()
        score += found.unary[np.arange(n), y].sum()
        assert score == pytest.approx(graph.score(states), abs=1e-9)


def test_what_is_no_such_model():
    net = mf.MarkovNetwork({0: 2, 1: 3})
    net.add_factor([0, 1], np.ones((2, 3)))
    assert spin_model(problem_of(net)[1]) is None and potts_model(problem_of(net)[1]) is None
    net = mf.MarkovNetwork({0: 2, 1: 2, 2: 2})
    net.add_factor([0, 1, 2], np.arange(1.0, 9).reshape(2, 2, 2))
    assert spin_model(problem_of(net)[1]) is None and potts_model(problem_of(net)[1]) is None
    net = mf.MarkovNetwork({0: 3, 1: 3})
    net.add_factor([0, 1], np.arange(1.0, 10).reshape(3, 3))
    assert potts_model(problem_of(net)[1]) is None
    net = mf.MarkovNetwork({0: 2, 1: 2})
    net.add_factor([0, 1], [[1.0, 0.0], [1.0, 1.0]])
    assert spin_model(problem_of(net)[1]) is None


def test_variables_of_one_state_are_no_spins():
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork({"a": 2, "one": 1, "b": 2, "c": 2})
    net.add_factor(["a", "one", "b"], log_table=rng.normal(size=(2, 1, 2)))
    net.add_factor(["one", "c"], log_table=rng.normal(size=(1, 2)))
    net.add_factor(["one"], log_table=[0.7])
    graph, problem = problem_of(net)
    found = spin_model(problem)
    assert found is not None and found.variables.tolist() == [0, 2, 3]
    for states in np.ndindex(2, 1, 2, 2):
        spins = 2.0 * np.array(states)[found.variables] - 1
        score = found.constant + (found.coupling * spins[found.first] * spins[found.second]).sum()
        assert score + (found.field * spins).sum() == pytest.approx(graph.score(states))
    assert potts_model(problem) is None
