"""Flows against SciPy's maximum flow; two colours against trying them all."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from markovfield.inference.graph_cuts.max_flow_kernel import (
    BUCKET,
    CLOSED,
    ENDLESS,
    GRAPH_ROWS,
    LABEL,
    balance,
    clear_graph,
    grow_graph,
    lay_arcs,
    plant_graph,
)


class Network:
    """Pairs of opposite arcs between nodes, and what each node has from the source (or, negative, for the sink)."""

    def __init__(self, n: int, pairs: np.ndarray, there: np.ndarray, back: np.ndarray, excess: np.ndarray) -> None:
        self.n, self.pairs, self.there, self.back = n, pairs, there, back
        m = len(pairs)
        self.first = np.empty(n + 1, np.int64)
        self.head, self.sister, arcs = np.empty(2 * m, np.int32), np.empty(2 * m, np.int32), np.empty(2 * m, np.int32)
        tails, heads = (np.ascontiguousarray(pairs[:, i]).astype(np.int32) for i in range(2))
        lay_arcs(n, tails, heads, self.first, self.head, self.sister, arcs)
        self.arcs = arcs
        self.capacity = np.empty(2 * m)
        self.capacity[arcs[::2]], self.capacity[arcs[1::2]] = there, back
        self.given, self.excess = excess.copy(), excess.astype(float)
        self.work = np.zeros((GRAPH_ROWS, n), np.int32)
        self.work[BUCKET] = -1
        self.state = np.zeros(8, np.int64)

    def run(self, budget: int = 10**9) -> float:
        plant_graph(np.arange(self.n, dtype=np.int32), self.excess, self.work, self.state)
        flow = 0.0
        for _ in range(100_000):
            flow += grow_graph(
                self.first, self.head, self.sister, self.capacity, self.excess, self.work, self.state, budget
            )
            if self.state[CLOSED]:
                return flow
        raise AssertionError("never done")

    @property
    def source_side(self) -> np.ndarray:
        labels = self.work[LABEL]
        return labels > 0 if self.state[CLOSED] == 1 else labels >= 0

    def cut(self, side: np.ndarray) -> float:
        """The value of a cut, from what was given."""
        value = self.given[(self.given > 0) & ~side].sum() - self.given[(self.given < 0) & side].sum()
        for (a, b), x, y in zip(self.pairs, self.there, self.back, strict=True):
            value += x * (side[a] and not side[b]) + y * (side[b] and not side[a])
        return float(value)

    def scipy(self) -> int:
        s, t = self.n, self.n + 1
        dense = np.zeros((self.n + 2, self.n + 2), np.int32)
        for (a, b), x, y in zip(self.pairs, self.there, self.back, strict=True):
            dense[a, b] += int(x)
            dense[b, a] += int(y)
        dense[s, : self.n] = np.maximum(self.given, 0)
        dense[: self.n, t] = np.maximum(-self.given, 0)
        return int(maximum_flow(csr_array(dense), s, t).flow_value)


def drawn(seed: int) -> Network:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    m = int(rng.integers(1, 4 * n))
    pairs = np.array([rng.permutation(n)[:2] for _ in range(m)])
    there, back = rng.integers(0, 9, (2, m)) * (rng.random((2, m)) < 0.8)
    excess = rng.integers(-15, 16, n) * (rng.random(n) < 0.6)
    return Network(n, pairs, there, back, excess)


def test_arcs_are_laid_in_pairs():
    net = drawn(3)
    arcs = net.arcs.reshape(-1, 2)
    np.testing.assert_array_equal(net.sister[net.sister], np.arange(len(net.head)))
    tail = np.repeat(np.arange(net.n), np.diff(net.first))
    np.testing.assert_array_equal(tail[arcs[:, 0]], net.pairs[:, 0])
    np.testing.assert_array_equal(net.head[arcs[:, 0]], net.pairs[:, 1])
    np.testing.assert_array_equal(net.sister[arcs[:, 0]], arcs[:, 1])
    np.testing.assert_array_equal(tail, net.head[net.sister])


@pytest.mark.parametrize("budget", [1, 40, 10**9])
@pytest.mark.parametrize("seed", range(25))
def test_the_flow_is_the_largest_and_the_cut_its_proof(seed: int, budget: int):
    net = drawn(seed)
    flow = net.run(budget)
    assert flow == net.scipy()
    assert net.cut(net.source_side) == flow
    assert (net.capacity >= 0).all()
    total = net.there + net.back
    np.testing.assert_array_equal(net.capacity[net.arcs[::2]] + net.capacity[net.arcs[1::2]], total)


def test_what_a_node_has_left_is_what_it_did_not_send():
    net = drawn(7)
    flow = net.run()
    assert net.given[net.given > 0].sum() - net.excess[net.given > 0].sum() == flow


def test_a_path_without_any_bound_ends_the_work():
    endless = np.array([np.inf, np.inf])
    net = Network(3, np.array([[0, 1], [1, 2]]), endless, np.zeros(2), np.array([np.inf, 0.0, -np.inf]))
    assert net.run() == np.inf and net.state[CLOSED] == ENDLESS


def test_infinite_arcs_are_never_cut():
    net = Network(3, np.array([[0, 1], [1, 2]]), np.array([np.inf, 4.0]), np.zeros(2), np.array([9.0, 0.0, -np.inf]))
    assert net.run() == 4.0
    assert net.source_side.tolist() == [True, True, False]


def test_cleared_nodes_have_nothing_left():
    net = drawn(11)
    net.run()
    nodes = np.arange(net.n, dtype=np.int32)
    clear_graph(nodes, net.first, net.capacity, net.excess, net.work)
    assert not net.capacity.any() and not net.excess.any() and not net.work[LABEL].any()


@pytest.mark.parametrize("seed", range(20))
def test_colours_that_balance(seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    pairs = np.array([rng.permutation(n)[:2] for _ in range(int(rng.integers(0, 7)) if n > 1 else 0)]).reshape(-1, 2)
    net = Network(n, pairs, np.zeros(len(pairs)), np.zeros(len(pairs)), np.zeros(n))
    signs = rng.integers(-1, 2, len(pairs))
    sign = np.empty(2 * len(pairs), np.int8)
    sign[net.arcs[::2]] = sign[net.arcs[1::2]] = signs
    colour = np.empty(n, np.int8)
    found = balance(net.first, net.head, sign, colour, np.empty(n, np.int32))

    def fits(colours) -> bool:
        return all(
            s == 0 or (colours[a] == colours[b]) == (s > 0) for (a, b), s in zip(pairs.tolist(), signs, strict=True)
        )

    assert found == any(fits(c) for c in product((0, 1), repeat=n))
    if found:
        assert fits(colour) and set(colour.tolist()) <= {0, 1}
