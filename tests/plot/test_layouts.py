"""Placement: nothing overlaps, order is kept, parents stand above their children."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.plot._layouts import layered, spread, tidy_forest

sizes = st.lists(st.floats(1, 100), min_size=1, max_size=8)


@given(st.data())
def test_spread_keeps_the_order_and_the_gaps(data: st.DataObject):
    widths = data.draw(sizes)
    wanted = data.draw(st.lists(st.floats(-200, 200), min_size=len(widths), max_size=len(widths)))
    found = spread(wanted, widths, 5.0)
    for i in range(len(widths) - 1):
        assert found[i + 1] - found[i] >= (widths[i] + widths[i + 1]) / 2 + 5.0 - 1e-9


def test_spread_leaves_what_fits():
    assert spread([0.0, 100.0], [10.0, 10.0], 5.0) == [0.0, 100.0]
    assert spread([], [], 5.0) == []


@st.composite
def directed_graphs(draw: st.DrawFn) -> dict[int, list[int]]:
    n = draw(st.integers(1, 9))
    return {v: [p for p in range(v) if draw(st.booleans())][:3] for v in range(n)}


@given(directed_graphs())
def test_layers_point_down_and_do_not_overlap(parents: dict[int, list[int]]):
    boxes = [(20.0 + 7 * v, 18.0) for v in parents]
    placed = layered(boxes, parents)
    for v, above in parents.items():
        for p in above:
            assert placed.centres[p][1] > placed.centres[v][1] + 18.0
            route = placed.routes[p, v]
            assert route[0][1] == pytest.approx(placed.centres[p][1] - 9.0)
            assert route[-1][1] == pytest.approx(placed.centres[v][1] + 9.0)
    for v in parents:
        x, y = placed.centres[v]
        assert x - boxes[v][0] / 2 >= -1e-6 and x + boxes[v][0] / 2 <= placed.width + 1e-6
        assert 0 <= y <= placed.height
        for w in range(v):
            dx, dy = abs(x - placed.centres[w][0]), abs(y - placed.centres[w][1])
            assert dx >= (boxes[v][0] + boxes[w][0]) / 2 - 1e-6 or dy >= 18.0 - 1e-6


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
