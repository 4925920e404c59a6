"""Trees: nothing overlaps, parents stand over the middle of their children."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.plot._trees import tidy_forest


@given(st.data())
def test_trees_do_not_overlap(data: st.DataObject):
    n = data.draw(st.integers(1, 12))
    parent = [-1] + [data.draw(st.integers(-1, v - 1)) for v in range(1, n)]
    breadth = {v: data.draw(st.floats(5, 60)) for v in range(n)}
    roots = [v for v in range(n) if parent[v] < 0]
    children = {v: [w for w in range(n) if parent[w] == v] for v in range(n)}
    place, depth, total = tidy_forest(roots, children, breadth, gap=4.0)
    assert set(place) == set(range(n))
    for v in range(n):
        assert depth[v] == (0 if parent[v] < 0 else depth[parent[v]] + 1)
        assert place[v] - breadth[v] / 2 >= -1e-6 and place[v] + breadth[v] / 2 <= total + 1e-6
        for w in range(v):
            if depth[w] == depth[v]:
                assert abs(place[v] - place[w]) >= (breadth[v] + breadth[w]) / 2 + 4.0 - 1e-6
        below = [place[w] for w in children[v]]
        if below:
            assert place[v] == pytest.approx((min(below) + max(below)) / 2)


def test_a_long_chain_needs_no_recursion():
    n = 1500
    place, depth, _ = tidy_forest([0], {v: [v + 1] for v in range(n - 1)}, dict.fromkeys(range(n), 1.0), gap=1.0)
    assert depth[n - 1] == n - 1
    assert np.ptp(list(place.values())) == 0
