"""Sweeps over the bonds of the random-cluster model against the weights of all its configurations."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest

from markovfield.inference.perfect_sampling.random_cluster_kernel import (
    BondGraph,
    colour_clusters,
    sweep_bonds,
    sweep_bonds_both,
)
from markovfield.kernels.random import draw_unit, streams
from tests.inference.chains import check_counts

PAIRS = [(0, 1), (1, 2), (2, 0), (2, 3)]


def bonds(q: int, p: np.ndarray, pairs: list[tuple[int, int]], n: int) -> BondGraph:
    halves = sorted([(a, b, e) for e, (a, b) in enumerate(pairs)] + [(b, a, e) for e, (a, b) in enumerate(pairs)])
    offsets = np.searchsorted([h[0] for h in halves], np.arange(n + 1))
    return BondGraph(
        q,
        np.array([a for a, _ in pairs], np.int32),
        np.array([b for _, b in pairs], np.int32),
        p,
        p / (p + q * (1 - p)),
        offsets.astype(np.int64),
        np.array([h[1] for h in halves], np.int32),
        np.array([h[2] for h in halves], np.int32),
        np.zeros(n + 1, np.int64),
        np.empty((2, n), np.int32),
    )


def clusters(opened) -> list[set[int]]:
    graph = nx.Graph()
    graph.add_nodes_from(range(4))
    graph.add_edges_from(pair for pair, is_open in zip(PAIRS, opened, strict=True) if is_open)
    return list(nx.connected_components(graph))


@pytest.mark.parametrize("q", [2, 3])
def test_configurations_come_as_often_as_they_should(q: int):
    p = np.array([0.3, 0.6, 0.5, 0.7])
    graph, stream = bonds(q, p, PAIRS, 4), streams(np.random.default_rng(q), 1)[0]
    weights = [
        np.prod([x if o else 1 - x for x, o in zip(p, opened, strict=True)]) * q ** len(clusters(opened))
        for opened in product((0, 1), repeat=4)
    ]
    opened, counts = np.zeros(4, np.bool_), np.zeros(16)
    for _ in range(4000):
        for _ in range(8):
            assert sweep_bonds(graph, opened, stream) >= 4
        counts[opened @ [8, 4, 2, 1]] += 1
    check_counts(counts, np.array(weights) / sum(weights))


def test_both_chains_use_the_draws_of_one_and_keep_their_order():
    graph = bonds(2, np.array([0.3, 0.6, 0.5, 0.7]), PAIRS, 4)
    one, other = np.array([5, 6, 7, 8], np.uint64), np.array([5, 6, 7, 8], np.uint64)
    top, bottom, alone = np.ones(4, np.bool_), np.zeros(4, np.bool_), np.ones(4, np.bool_)
    met = False
    for _ in range(300):
        different, _ = sweep_bonds_both(graph, top, bottom, one)
        sweep_bonds(graph, alone, other)
        np.testing.assert_array_equal(top, alone)
        np.testing.assert_array_equal(one, other)
        assert (top >= bottom).all() and different == (top != bottom).sum()
        met = met or not different
    assert met, "the chains meet"


def test_bonds_follow_the_rule_draw_by_draw():
    """Open where the draw is below p and the ends are joined otherwise, or below p / (p + q (1 - p))."""
    q, p = 3, np.array([0.5, 0.6, 0.7, 0.4])
    graph = bonds(q, p, PAIRS, 4)
    stream, copy = np.array([1, 2, 3, 4], np.uint64), np.array([1, 2, 3, 4], np.uint64)
    opened = np.zeros(4, np.bool_)
    expected = opened.copy()
    for _ in range(100):
        sweep_bonds(graph, opened, stream)
        for e, (a, b) in enumerate(PAIRS):
            u = draw_unit(copy)
            without = expected.copy()
            without[e] = False
            joined = any({a, b} <= part for part in clusters(without))
            expected[e] = u < (p[e] if joined else p[e] / (p[e] + q * (1 - p[e])))
        np.testing.assert_array_equal(opened, expected)


def test_clusters_are_coloured_as_one_and_evenly():
    graph = bonds(3, np.full(4, 0.5), PAIRS, 4)
    opened = np.array([True, False, False, True])
    stream, states = streams(np.random.default_rng(0), 1)[0], np.empty(4, np.int32)
    counts = np.zeros(9)
    for _ in range(3000):
        colour_clusters(graph, opened, stream, states)
        assert states[0] == states[1] and states[2] == states[3]
        counts[3 * states[0] + states[2]] += 1
    check_counts(counts, np.full(9, 1 / 9))


def test_what_hangs_on_the_ghost_has_state_zero():
    graph = bonds(3, np.full(3, 0.5), [(0, 1), (1, 3), (2, 3)], 4)
    stream, states = streams(np.random.default_rng(1), 1)[0], np.empty(3, np.int32)
    free = set()
    for _ in range(60):
        colour_clusters(graph, np.array([True, True, False]), stream, states)
        assert states[:2].tolist() == [0, 0]
        free.add(int(states[2]))
    assert free == {0, 1, 2}
