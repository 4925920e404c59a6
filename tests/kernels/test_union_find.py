"""Disjoint sets against SciPy's connected components."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from markovfield.kernels.union_find import find, flatten, unite


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("share", [0.2, 0.8, 2.0])
def test_sets_are_the_components(seed: int, share: float):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    pairs = rng.integers(0, n, (int(share * n), 2))
    parent = np.arange(n, dtype=np.int32)
    joined = sum(bool(unite(parent, int(a), int(b))) for a, b in pairs)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (n, n))
    count, label = connected_components(graph, directed=False)
    assert joined == n - count, "as many unions as sets were lost"
    assert (parent <= np.arange(n)).all(), "no element points to a larger one"
    first = np.array([np.flatnonzero(label == label[v])[0] for v in range(n)])
    assert [find(parent.copy(), v) for v in range(n)] == first.tolist()
    assert flatten(parent) == count
    np.testing.assert_array_equal(parent, first)


def test_what_is_one_set_already_is_said_so():
    parent = np.arange(4, dtype=np.int32)
    assert [bool(unite(parent, *pair)) for pair in ((0, 1), (2, 3), (1, 3), (0, 2), (2, 2))] == [True] * 3 + [False] * 2


def test_find_halves_the_path():
    parent = np.array([0, 0, 1, 2, 3, 4], np.int32)
    assert find(parent, 5) == 0
    assert parent.tolist() == [0, 0, 1, 1, 3, 3]
