"""Placement in rows: nothing overlaps, order is kept, parents stand above their children, edges avoid boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.plot._layered import Layered, layered, spread
from tests.data import data_path

widths_of_boxes = st.lists(st.floats(1, 100), min_size=1, max_size=8)


@given(st.data())
def test_spread_keeps_the_order_and_the_gaps(data: st.DataObject):
    widths = data.draw(widths_of_boxes)
    n = len(widths)
    wanted = data.draw(st.lists(st.floats(-200, 200), min_size=n, max_size=n))
    weights = data.draw(st.lists(st.floats(0.1, 9), min_size=n, max_size=n))
    for found in (spread(wanted, widths, 5.0), spread(wanted, widths, 5.0, weights)):
        for i in range(n - 1):
            assert found[i + 1] - found[i] >= (widths[i] + widths[i + 1]) / 2 + 5.0 - 1e-9


def test_spread_leaves_what_fits():
    assert spread([0.0, 100.0], [10.0, 10.0], 5.0) == [0.0, 100.0]
    assert spread([], [], 5.0) == []
    assert spread([0.0, 0.0], [10.0, 10.0], 5.0, [3.0, 1.0]) == [-3.75, 11.25]


@st.composite
def directed_graphs(draw: st.DrawFn) -> dict[int, list[int]]:
    n = draw(st.integers(1, 9))
    return {v: [p for p in range(v) if draw(st.booleans())][:3] for v in range(n)}


def along(curve: list[tuple[float, float]]) -> np.ndarray:
    """Points of a Bezier curve, close together."""
    t = np.linspace(0, 1, 24)[:, None]
    weights = np.hstack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    points = np.array(curve)
    return np.vstack([weights @ points[i : i + 4] for i in range(0, len(points) - 1, 3)])


def assert_tidy(placed: Layered, boxes: list[tuple[float, float]], parents: dict[int, list[int]]) -> None:
    centres = np.array([placed.centres[v] for v in range(len(boxes))])
    half = np.array(boxes) / 2
    assert (centres - half >= -1e-4).all()
    assert (centres + half <= np.array([placed.width, placed.height]) + 1e-4).all()
    for v in range(len(boxes)):
        apart = np.abs(centres[:v] - centres[v]) - (half[:v] + half[v])
        assert (apart.max(axis=1) >= -1e-4).all()
    for v, above in parents.items():
        for p in above:
            assert centres[p, 1] - half[p, 1] > centres[v, 1] + half[v, 1]
            curve = placed.curves[p, v]
            assert len(curve) % 3 == 1
            assert curve[0][1] == pytest.approx(centres[p, 1] - half[p, 1])
            assert curve[-1][1] == pytest.approx(centres[v, 1] + half[v, 1])
            assert abs(curve[0][0] - centres[p, 0]) <= half[p, 0] and abs(curve[-1][0] - centres[v, 0]) <= half[v, 0]
            points = along(curve)
            assert (np.diff(points[:, 1]) < 1e-9).all()
            for w in set(range(len(boxes))) - {p, v}:
                assert not (np.abs(points - centres[w]) < half[w] - 0.5).all(axis=1).any()


@given(directed_graphs())
@settings(deadline=None)
def test_layers_point_down_and_nothing_overlaps(parents: dict[int, list[int]]):
    boxes = [(20.0 + 7 * v, 18.0 + 13 * (v % 3)) for v in parents]
    assert_tidy(layered(boxes, parents), boxes, parents)


def test_a_textbook_network_has_few_crossings_and_fits_a_page():
    net = mf.io.read_bif(data_path("bif", "alarm.bif.gz"))
    at = {v: i for i, v in enumerate(net.variables)}
    parents = {at[v]: [at[p] for p in net.parents(v)] for v in net.variables}
    boxes = [(80.0, 22.0)] * len(at)
    placed = layered(boxes, parents)
    assert_tidy(placed, boxes, parents)
    # In points: about A3. Rows that keep to the longest path from a root take half as much again.
    assert placed.width < 1000 and placed.height < 800
    lines = [along(c)[::4] for c in placed.curves.values()]
    assert sum(crosses(a, b) for i, a in enumerate(lines) for b in lines[:i]) <= 10


def crosses(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two broken lines cross."""

    def side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])

    a, b = one[:-1, None], one[1:, None]
    c, d = other[None, :-1], other[None, 1:]
    return bool(((side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0)).any())


def test_a_tree_is_drawn_without_a_crossing():
    parents = {v: [(v - 1) // 3] for v in range(1, 40)}
    placed = layered([(30.0, 20.0)] * 40, parents)
    lines = [along(c)[::4] for c in placed.curves.values()]
    assert not any(crosses(a, b) for i, a in enumerate(lines) for b in lines[:i])


def test_a_star_is_cut_into_rows():
    # 60 leaves of one root would make a row of 60 boxes.
    placed = layered([(60.0, 20.0)] * 61, {v: [0] for v in range(1, 61)})
    assert len({y for _, y in placed.centres.values()}) > 2
    assert placed.width < 60 * 80 / 2


def test_a_long_edge_is_straight():
    # 0 -> 1 -> 2 -> 3 -> 4 and 0 -> 4: between the rows next to its ends, the long edge keeps its place.
    placed = layered([(40.0, 20.0)] * 5, {1: [0], 2: [1], 3: [2], 4: [3, 0]})
    inner = [x for x, _ in placed.curves[0, 4][4:-4]]
    assert np.ptp(inner) < 1e-3


def test_components_and_single_nodes():
    placed = layered([(30.0, 20.0)] * 5, {1: [0], 3: [2]})
    assert_tidy(placed, [(30.0, 20.0)] * 5, {1: [0], 3: [2]})
    assert placed.centres[0][1] == placed.centres[2][1] == placed.centres[4][1]
    assert layered([], {}).width == 0


@pytest.mark.parametrize("limit", ["MOST_ARCS", "MOST_PIECES"])
def test_the_cheaper_rules_for_large_graphs(monkeypatch: pytest.MonkeyPatch, limit: str):
    from markovfield.plot import _layered

    monkeypatch.setattr(_layered, limit, 0)
    rng = np.random.default_rng(0)
    parents = {v: sorted({int(p) for p in rng.integers(0, v, 2)}) for v in range(1, 25)}
    boxes = [(30.0, 20.0)] * 25
    assert_tidy(layered(boxes, parents), boxes, parents)
