"""Topological sorts and their number."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from markovfield.exceptions import ModelError
from markovfield.graphs import count_topological_sorts, topological, topological_sorts
from tests.graphs import independence_cases as cases
from tests.patience import patience


@given(cases.dags(7))
@settings(max_examples=100, deadline=None)
def test_the_count_is_the_number_of_sorts(dag):
    sorts = list(topological_sorts(dag))
    assert len({tuple(order) for order in sorts}) == len(sorts) == count_topological_sorts(dag)
    for order in sorts[:20]:
        place = {v: i for i, v in enumerate(order)}
        assert sorted(order) == sorted(dag) and all(place[u] < place[v] for u, v in dag.edges)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 24, 100])
def test_caetanos_exercises(n):
    # No independence at all: one sort. Everything independent: all n! orders.
    complete = nx.DiGraph((u, v) for v in range(n) for u in range(v))
    complete.add_nodes_from(range(n))
    assert count_topological_sorts(complete) == 1
    assert count_topological_sorts(nx.empty_graph(n, nx.DiGraph)) == math.factorial(n)
    assert next(topological_sorts(complete)) == list(range(n))


def test_known_counts():
    chains = nx.disjoint_union(nx.path_graph(10, nx.DiGraph), nx.path_graph(14, nx.DiGraph))
    assert count_topological_sorts(chains) == math.comb(24, 10)
    # Two rows of n, each above the other: the Catalan numbers.
    ladder = nx.DiGraph(
        [((r, i), (r, i + 1)) for r in (0, 1) for i in range(29)] + [((0, i), (1, i)) for i in range(30)]
    )
    assert count_topological_sorts(ladder) == math.comb(60, 30) // 31
    # A tree: n! over the product of the sizes of its subtrees (31, 2 of 15, 4 of 7, 8 of 3, 16 of 1).
    tree = nx.balanced_tree(2, 4, create_using=nx.DiGraph)
    assert count_topological_sorts(tree) == math.factorial(31) // (31 * 15**2 * 7**4 * 3**8)


def test_two_dozen_nodes_are_counted_in_seconds():
    with patience():
        for seed in range(3):
            count_topological_sorts(cases.random_dag(np.random.default_rng(seed), 24, 0.2))


def test_limits_and_errors(monkeypatch):
    with pytest.raises(ModelError, match="up to 200 nodes, got one of 201"):
        count_topological_sorts(nx.path_graph(201, nx.DiGraph))
    crown = nx.DiGraph((i, 100 + j) for i in range(20) for j in range(20) if i != j)
    monkeypatch.setattr(topological, "MAX_SETS", 1000)
    with pytest.raises(ModelError, match="gave up: the graph needs counts of over 1000 sets"):
        count_topological_sorts(crown)
    for function in (count_topological_sorts, topological_sorts):
        with pytest.raises(ModelError, match="without directed cycles, got the cycle 0 -> 1 -> 0"):
            function(nx.DiGraph([(0, 1), (1, 0)]))
        with pytest.raises(ModelError, match=f"{function.__name__} needs a directed graph"):
            function(nx.path_graph(3))
