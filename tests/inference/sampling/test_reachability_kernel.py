"""Where moves of one variable lead, against a graph of all allowed assignments in networkx."""

from __future__ import annotations

from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from markovfield.inference.sampling.reachability_kernel import (
    FROZEN,
    MOVES,
    SPLIT,
    UNDECIDED,
    hard_components,
    reach,
)
from tests.kernels.arrays import Flat, flat


def call(model: Flat, joint: int, states: np.ndarray) -> int:
    members = np.arange(len(model.cardinalities))
    factors = np.arange(len(model.factors))
    return reach(
        members,
        factors,
        joint,
        model.cardinalities,
        model.scope_offsets,
        model.scopes,
        model.table_offsets,
        model.table_strides,
        model.log_tables,
        model.variable_offsets,
        model.variable_factors,
        states,
    )


def drawn(seed: int) -> tuple[Flat, list[tuple[int, ...]]]:
    """A model with hard zeros and its allowed assignments."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    cards = rng.integers(1, 4, n).tolist()
    factors = []
    for _ in range(4):
        scope = rng.permutation(n)[: rng.integers(1, 4)].tolist()
        factors.append((scope, np.where(rng.random([cards[v] for v in scope]) < 0.3, -np.inf, 0.0)))
    allowed = [x for x in product(*map(range, cards)) if all(t[tuple(x[v] for v in s)] > -np.inf for s, t in factors)]
    return flat(cards, factors), allowed


@pytest.mark.parametrize("seed", range(40))
def test_all_allowed_states_are_joined_or_not(seed: int):
    model, allowed = drawn(seed)
    if not allowed:
        return
    graph = nx.Graph()
    graph.add_nodes_from(allowed)
    for x, y in combinations(allowed, 2):
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1:
            graph.add_edge(x, y)
    states = np.array(allowed[seed % len(allowed)], np.int32)
    start = states.copy()
    expected = MOVES if nx.is_connected(graph) else SPLIT
    assert call(model, int(np.prod(model.cardinalities)), states) == expected
    np.testing.assert_array_equal(states, start)
    stuck = graph.degree(tuple(start.tolist())) == 0
    assert call(model, 0, states) == (FROZEN if stuck else UNDECIDED)
    np.testing.assert_array_equal(states, start)


def test_both_verdicts_were_met():
    verdicts = set()
    for seed in range(40):
        model, allowed = drawn(seed)
        if allowed:
            verdicts.add(call(model, int(np.prod(model.cardinalities)), np.array(allowed[0], np.int32)))
    assert verdicts == {MOVES, SPLIT}


def test_parts_are_joined_by_hard_factors_alone():
    model = flat([2] * 6, [((0, 3), np.zeros((2, 2))), ((5, 1), np.zeros((2, 2))), ((2, 4, 3), np.zeros((2, 2, 2)))])
    hard = np.array([False, True, True])
    found = hard_components(model.scope_offsets, model.scopes, hard, 6)
    assert found.tolist() == [0, 1, 2, 2, 2, 1]
