"""Neighbourhoods by regressions: the rules that join them, default penalties, recovery."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.structures.nodewise import NodewiseLogistic
from tests.learning.structures.test_hill_climbing import drawn
from tests.learning.structures.test_regressions import correlated_spins, spin_table


@pytest.mark.parametrize("method", ["nodewise", "ravikumar", NodewiseLogistic(rule="or")])
def test_a_sparse_graph_is_found(method):
    graph = nx.random_regular_graph(3, 20, seed=2)
    model = mf.Ising(list(graph.edges), coupling=0.3)
    learned = mf.learn_structure(mf.sample(model, 10_000, rng=0), method)
    assert isinstance(learned, mf.learning.LearnedGraph) and learned.converged
    assert {frozenset(e) for e in learned.edges} == {frozenset(e) for e in graph.edges}
    assert all(0 < w < 0.3 for *_, w in learned.graph.edges(data="weight"))


@pytest.mark.parametrize("cards", [(2, 2), (2, 4)])
def test_and_is_within_or(cards):
    table = drawn(3, n=8, rows=300, cards=cards)
    both, either = (mf.learn_structure(table, NodewiseLogistic(penalty=8.0, rule=r)) for r in ("and", "or"))
    assert set(both.edges) < set(either.edges) and both.score == either.score
    ordered = set(either.details.couplings)
    for a, b in either.edges:
        assert ((a, b) in both.edges) == ({(a, b), (b, a)} <= ordered)
    for pair in ordered:
        first, second = either.details.couplings[pair], either.details.couplings.get(pair[::-1])
        weight = either.graph.edges[pair]["weight"]
        if first.shape == (2, 2):
            back = 0.0 if second is None else second[1, 1]
            assert weight == pytest.approx((first[1, 1] + back) / 2)


def test_the_default_penalty_grows_with_rows_and_variables():
    learned = mf.learn_structure(spin_table(correlated_spins(5, 400)), NodewiseLogistic(scale=1.5))
    assert learned.details.penalty == pytest.approx(1.5 * np.sqrt(400 * np.log(5)))
    noise = np.random.default_rng(0).choice([-1, 1], (2000, 25))
    assert not mf.learn_structure(spin_table(noise), "nodewise").edges


def test_threads_and_stops():
    table = spin_table(correlated_spins(8, 3000))
    one, two = (mf.learn_structure(table, "nodewise", n_jobs=jobs) for jobs in (1, 3))
    assert one.score == two.score and one.edges == two.edges
    with pytest.raises(mf.StoppedError):
        mf.learn_structure(table, "nodewise", callback=lambda progress: progress.step > 20)
    few = mf.learn_structure(table, NodewiseLogistic(max_iterations=1, penalty=1.0))
    assert not few.converged and few.stopped == "max_iterations"


def test_settings_are_checked():
    with pytest.raises(mf.ModelError, match="rule of NodewiseLogistic must be"):
        NodewiseLogistic(rule="xor")
    with pytest.raises(mf.ModelError, match="scale of NodewiseLogistic must be positive"):
        NodewiseLogistic(scale=0.0)
