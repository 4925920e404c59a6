"""Factors parted into forests: every part is one, and every factor is in one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from markovfield.structured.objectives.forests_kernel import grow_part


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_forests(seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    scopes = [rng.permutation(n)[: rng.integers(1, min(4, n) + 1)] for _ in range(rng.integers(0, 15))]
    offsets = np.cumsum([0] + [len(s) for s in scopes]).astype(np.int64)
    flat = np.concatenate([np.zeros(0, np.int32), *scopes]).astype(np.int32)
    part = np.full(len(scopes), -1, np.int64)
    large = [f for f, s in enumerate(scopes) if len(s) > 1]
    left, number = len(large), 0
    while left:
        before = left
        left = grow_part(offsets, flat, n, part, number)
        assert left < before
        number += 1
    assert all((part[f] >= 0) == (f in large) for f in range(len(scopes)))
    for p in range(number):
        graph = nx.Graph()
        own = np.flatnonzero(part == p)
        graph.add_edges_from((("factor", f), v) for f in own for v in scopes[f].tolist())
        assert len(own) and nx.is_forest(graph)


def test_a_cycle_takes_two_parts():
    part = np.full(3, -1, np.int64)
    scopes = np.array([0, 1, 1, 2, 2, 0], np.int32)
    assert grow_part(np.arange(0, 7, 2), scopes, 3, part, 0) == 1
    assert grow_part(np.arange(0, 7, 2), scopes, 3, part, 1) == 0
    assert part.tolist() == [0, 0, 1]
