"""Maximum flows against SciPy's, and cuts that pay exactly what flows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from markovfield.exceptions import StoppedError
from markovfield.inference.core.running import Running
from markovfield.inference.graph_cuts.flow_networks import FlowGraph, FlowGrid, Network
from markovfield.inference.problem.pairwise import lattice_width

EXAMPLES = settings(max_examples=60, deadline=None)


def largest_flow(n: int, tails: np.ndarray, heads: np.ndarray, there: np.ndarray, back: np.ndarray, excess: np.ndarray):
    matrix = np.zeros((n + 2, n + 2), np.int32)
    np.add.at(matrix, (tails, heads), there)
    np.add.at(matrix, (heads, tails), back)
    matrix[n, :n], matrix[:n, n + 1] = np.maximum(excess, 0), np.maximum(-excess, 0)
    return maximum_flow(csr_array(matrix), n, n + 1).flow_value


def cut(
    side: np.ndarray, tails: np.ndarray, heads: np.ndarray, there: np.ndarray, back: np.ndarray, excess: np.ndarray
):
    own = np.where(side, np.maximum(-excess, 0), np.maximum(excess, 0)).sum()
    a, b = side[tails], side[heads]
    return own + there[a & ~b].sum() + back[b & ~a].sum()


def filled_grid(
    h: int, w: int, tails: np.ndarray, heads: np.ndarray, there: np.ndarray, back: np.ndarray, excess, slabs=None
) -> FlowGrid:
    grid = FlowGrid(h, w, slabs)
    grid.excess_plane[:] = excess.reshape(h, w)
    for a, b, f, r in zip(tails, heads, there, back, strict=True):
        d = 0 if b - a == 1 and w > 1 else 2
        grid.planes[a // w, a % w, d] += f
        grid.planes[b // w, b % w, d + 1] += r
    return grid


def numbers(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # Small integers: ties, zeros, and sums that float64 adds up exactly.
    excess = rng.integers(-15, 16, n) * (rng.random(n) < rng.random())
    return rng.integers(0, 10, m), rng.integers(0, 10, m), excess


@EXAMPLES
@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_graphs_flow_as_in_scipy(seed: int, n: int):
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, n, (2, int(rng.integers(0, 4 * n))))
    tails, heads = tails[tails != heads], heads[tails != heads]
    there, back, excess = numbers(rng, n, len(tails))
    net = FlowGraph(n, tails, heads)
    net.capacity[net.arcs] = np.stack([there, back], axis=1).ravel()
    net.excess[:] = excess
    expected = largest_flow(n, tails, heads, there, back, excess)
    assert net.run() == expected
    assert cut(net.source_side(), tails, heads, there, back, excess) == expected


@EXAMPLES
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 9),
    st.sampled_from([None, (2, 1), (4, 1), (8, 4, 2, 1)]),
    # Integers, quarters, and numbers beyond 32 bits.
    st.sampled_from([1.0, 0.25, 2.0**31]),
)
def test_grids_flow_as_in_scipy(seed: int, h: int, w: int, slabs: tuple[int, ...] | None, scale: float):
    rng = np.random.default_rng(seed)
    at = np.arange(h * w).reshape(h, w)
    tails = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    heads = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    there, back, excess = numbers(rng, h * w, len(tails))
    grid = filled_grid(h, w, tails, heads, scale * there, scale * back, scale * excess, slabs)
    expected = largest_flow(h * w, tails, heads, there, back, excess)
    assert grid.run() == scale * expected
    assert cut(grid.source_side(), tails, heads, there, back, excess) == expected
    # Capacities stay as they were given: the same again.
    assert grid.run() == scale * expected


def strong_grid(side: int, seed: int, slabs=None, coupling: int = 60) -> tuple[FlowGrid, FlowGraph]:
    """Couplings that make flow travel far; the same network in both forms."""
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    tails = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    heads = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    excess = rng.integers(-100, 101, side * side)
    weight = np.full(len(tails), coupling)
    graph = FlowGraph(side * side, tails, heads)
    graph.capacity[:] = coupling
    graph.excess[:] = excess
    return filled_grid(side, side, tails, heads, weight, weight, excess, slabs), graph


def test_both_forms_agree_where_flow_travels_far():
    grid, graph = strong_grid(60, seed=5)
    assert grid.run() == graph.run() > 0
    # Real numbers: the flow and the cut it proves agree to rounding.
    grid, _ = strong_grid(60, seed=6)
    grid.planes[:] *= np.pi
    grid.excess_plane[:] *= np.e
    planes, own = grid.planes.copy(), grid.excess_plane.copy()
    flow = grid.run()
    side = grid.source_side().reshape(60, 60)
    paid = np.where(side, np.maximum(-own, 0), np.maximum(own, 0)).sum()
    paid += planes[:, :-1, 0][side[:, :-1] & ~side[:, 1:]].sum() + planes[:, 1:, 1][side[:, 1:] & ~side[:, :-1]].sum()
    paid += planes[:-1, :, 2][side[:-1] & ~side[1:]].sum() + planes[1:, :, 3][side[1:] & ~side[:-1]].sum()
    assert flow == pytest.approx(paid, rel=1e-12)


@pytest.mark.parametrize(("coupling", "joined"), [(8, True), (60, False)])
def test_slabs_are_joined_or_planted_anew_on_any_number_of_threads(coupling: int, joined: bool):
    expected = strong_grid(160, seed=8, slabs=(1,), coupling=coupling)[0].run()
    found = []
    for n_jobs in (1, 2, 3):
        grid, _ = strong_grid(160, seed=8, slabs=(4, 2, 1), coupling=coupling)
        assert grid.run(Running(n_jobs)) == expected
        assert (grid.stage == 0) == joined
        found.append(grid.labels())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_only_large_rectangles_have_slabs():
    assert FlowGrid(100, 100).slabs == FlowGrid(15, 5000).slabs == (1,)
    assert FlowGrid(300, 300).slabs == (8, 2, 1)
    assert FlowGrid(40, 2000).slabs == (2, 1)


@pytest.mark.parametrize(("which", "slabs"), [(0, None), (0, (4, 2, 1)), (1, None)])
def test_work_in_pieces_is_the_same_work(which: int, slabs, monkeypatch: pytest.MonkeyPatch):
    whole: Network = strong_grid(30, seed=7, slabs=slabs)[which]
    pieces: Network = strong_grid(30, seed=7, slabs=slabs)[which]
    whole.run()
    monkeypatch.setattr("markovfield.inference.graph_cuts.flow_networks.BUDGET", 50)
    calls = 0

    def stop(progress):
        nonlocal calls
        calls += 1
        assert pieces.flow <= whole.flow
        return calls > 20

    with pytest.raises(StoppedError):
        pieces.run(Running(callback=stop))
    assert not pieces.done and 0 < pieces.flow < whole.flow
    while not pieces.done:
        pieces.flow += pieces.step()
    assert pieces.flow == whole.flow
    np.testing.assert_array_equal(pieces.labels(), whole.labels())


def test_capacities_without_limit():
    chain = FlowGraph(3, np.array([0, 1]), np.array([1, 2]))
    chain.capacity[chain.arcs[0::2]] = np.inf
    chain.excess[:] = 4.0, 0.0, -9.0
    assert chain.run() == 4.0 and not chain.endless
    chain.excess[:] = np.inf, 0.0, -np.inf
    chain.run()
    assert chain.endless


def test_nothing_to_do():
    empty = np.zeros(0, np.int64)
    assert FlowGraph(0, empty, empty).run() == 0.0
    assert FlowGraph(3, empty, empty).run() == 0.0
    assert FlowGrid(2, 2).run() == 0.0


def test_which_pairs_make_a_rectangle():
    at = np.arange(12).reshape(3, 4)
    low = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    high = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    assert lattice_width(12, low, high) == 4
    assert lattice_width(12, low[::2], high[::2]) == 4  # gaps are no harm
    assert lattice_width(12, np.append(low, 3), np.append(high, 4)) == 0  # from one row's end to the next one's start
    assert lattice_width(12, np.append(low, 0), np.append(high, 5)) == 0
    assert lattice_width(13, low, high) == 0
    assert lattice_width(12, low[:0], high[:0]) == 0
    assert lattice_width(3, np.array([0, 1]), np.array([1, 2])) == 0
