"""Ising models on a torus: against the oracle, the junction tree and Kaufman's formula."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.graphs.planar import planar_rotation, torus_drawing
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.planar_ising import planar
from markovfield.inference.planar_ising.planar import PlanarIsing, is_planar_ising
from markovfield.lattice.onsager import critical_coupling, torus_energy, torus_log_partition
from tests.inference.planar_ising.test_planar import close_logs, frustrated, ising, tables
from tests.oracle import Oracle

PLANAR = PlanarIsing()
CANCELS = r"loses its digits on this torus with couplings as strong as .*: with those across a row or column turned"


def torus(rows: int, columns: int) -> list[tuple[int, int]]:
    """Pairs along the rows first, each row from its first site; then along the columns."""
    at = np.arange(rows * columns).reshape(rows, columns)
    return [
        tuple(sorted(pair))
        for axis in (1, 0)
        for pair in zip(at.ravel().tolist(), np.roll(at, -1, axis).ravel().tolist(), strict=True)
    ]


def turned(rows: int, columns: int, couplings: np.ndarray, row: bool, column: bool) -> np.ndarray:
    """The couplings that close the rows, those that close the columns, or both, with the other sign."""
    out = couplings.reshape(2, rows, columns).copy()
    out[0, :, -1] *= -1 if row else 1
    out[1, -1, :] *= -1 if column else 1
    return out.reshape(-1)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    shape=st.sampled_from([(3, 3), (3, 4), (4, 3)]),
    scale=st.sampled_from([0.2, 1.0, 3.0]),
    observed=st.booleans(),
)
def test_small_tori_agree_with_the_oracle(seed, shape, scale, observed):
    rng = np.random.default_rng(seed)
    pairs, n = torus(*shape), shape[0] * shape[1]
    couplings = frustrated(len(pairs), scale, rng)
    evidence = {int(rng.integers(n)): int(rng.integers(2))} if observed else {}
    factors = tables(pairs, couplings, [])
    oracle, net = Oracle([2] * n, factors, evidence), ising(n, pairs, couplings)
    exact = Oracle([2] * n, factors).log_partition
    others = [
        Oracle([2] * n, tables(pairs, turned(*shape, couplings, *which), [])).log_partition
        for which in ((True, False), (False, True), (True, True))
    ]
    # Digits may be lost only where another model, with couplings turned, is e^8 times as large.
    with contextlib.suppress(*[mf.ModelError] * (max(others) - exact > 8.0)):
        answer = mf.marginals(net, evidence=evidence, method=PLANAR)
        close_logs(answer.log_partition, oracle.log_partition)
        for v in range(n):
            np.testing.assert_allclose(answer[v], oracle.marginal(v), rtol=0, atol=1e-9)
        counts = np.concatenate([oracle.counts(f).ravel() for f in range(len(factors))])
        np.testing.assert_allclose(answer.expected_counts, counts, rtol=0, atol=1e-9)
        some = rng.permutation(n)[:3].tolist()
        np.testing.assert_allclose(answer.joint(some), oracle.joint(some), rtol=0, atol=1e-9)


def test_four_by_four_agrees_with_the_oracle():
    rng = np.random.default_rng(4)
    pairs = torus(4, 4)
    couplings = rng.choice([-1.0, 1.0], 32) * rng.uniform(0.2, 1.0, 32)
    answer, oracle = (
        mf.marginals(ising(16, pairs, couplings), method=PLANAR),
        Oracle([2] * 16, tables(pairs, couplings, [])),
    )
    close_logs(answer.log_partition, oracle.log_partition)
    np.testing.assert_allclose(answer.joint([0, 5, 10, 15]), oracle.joint([0, 5, 10, 15]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("kind", ["normal", "signs"])
def test_frustrated_tori_agree_with_the_junction_tree(kind, scale):
    rng = np.random.default_rng(8)
    pairs = torus(8, 8)
    couplings = scale * (rng.normal(size=128) if kind == "normal" else rng.choice([-1.0, 1.0], 128))
    net = ising(64, pairs, couplings)
    ours, theirs = mf.marginals(net, method=PLANAR), mf.marginals(net, method="junction_tree")
    close_logs(ours.log_partition, theirs.log_partition)
    np.testing.assert_allclose(ours.expected_counts, theirs.expected_counts, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", [(8, 8), (7, 12), (32, 31), (64, 64)])
@pytest.mark.parametrize("coupling", [0.2, "critical", (0.3, 0.6), 0.7, 2.0])
def test_log_partition_is_kaufmans(shape, coupling):
    """Below, at and above the critical coupling; couplings of the other sign change nothing along even lengths."""
    value = critical_coupling() if coupling == "critical" else coupling
    pair = np.broadcast_to(value, 2)
    expected = torus_log_partition(shape, value)
    for signs in ([1, 1], [-1 if shape[0] % 2 == 0 else 1, -1 if shape[1] % 2 == 0 else 1]):
        model = mf.Ising(shape, (pair * signs).tolist(), periodic=True)
        assert float(mf.log_partition(model, method=PLANAR)) == pytest.approx(expected, rel=1e-13, abs=1e-9)


@pytest.mark.parametrize(
    ("shape", "coupling"), [((7, 12), -0.2), ((7, 12), -0.7), ((9, 9), -0.6), ((9, 9), (0.7, -0.4))]
)
def test_odd_lengths_frustrated(shape, coupling):
    graph = mf.Ising(shape, coupling, periodic=True).compile()
    ours, theirs = mf.marginals(graph, method=PLANAR), mf.marginals(graph, method="junction_tree")
    close_logs(ours.log_partition, theirs.log_partition)
    np.testing.assert_allclose(ours.expected_counts, theirs.expected_counts, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("shape", "coupling"), [((15, 15), -1.0), ((31, 32), -0.7), ((7, 12), -2.0), ((5, 5), -30.0)])
def test_terms_that_cancel_are_an_error(shape, coupling):
    """A wall across the torus costs e^(2 coupling) for each edge, and without the frustration there would be none."""
    with pytest.raises(mf.ModelError, match=CANCELS):
        mf.log_partition(mf.Ising(shape, coupling, periodic=True), method=PLANAR)


@pytest.mark.parametrize("coupling", [0.3, "critical", 0.6])
def test_expected_score_is_kaufmans(coupling):
    value = critical_coupling() if coupling == "critical" else coupling
    graph = mf.Ising((24, 24), value, periodic=True).compile()
    answer = mf.marginals(graph, method=PLANAR)
    score = float(graph.log_tables @ answer.expected_counts)
    assert score == pytest.approx(-576 * torus_energy((24, 24), value), rel=1e-10)


@pytest.mark.parametrize("shape", [(6, 6), (5, 8)])
@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-8, 1e-5])
def test_correlations_at_the_critical_coupling(shape, off):
    """One of the four matrices is singular there, and has its part in every probability nonetheless."""
    n = shape[0] * shape[1]
    net = ising(n, torus(*shape), np.full(2 * n, critical_coupling() * (1 + off)))
    ours, theirs = mf.marginals(net, method=PLANAR), mf.marginals(net, method="junction_tree")
    np.testing.assert_allclose(ours.expected_counts, theirs.expected_counts, rtol=0, atol=1e-9)
    for some in ([0, 1, 7], [0, 21], [3, 10, 20, 35], [2, 3, 17, 18]):
        np.testing.assert_allclose(ours.joint(some), theirs.joint(some), rtol=0, atol=1e-9)


def test_one_observed_site_gives_the_correlations_with_it():
    graph = mf.Ising((12, 12), 0.42, periodic=True).compile()
    here = 5 * 12 + 7
    answer = mf.marginals(graph, evidence={here: 1}, method=PLANAR)
    alone = mf.marginals(graph, method=PLANAR)
    up = np.array([answer[v][1] for v in range(144)]).reshape(12, 12)
    assert answer.log_partition == pytest.approx(alone.log_partition - np.log(2), abs=1e-9)
    # The torus looks the same from all sides.
    around = np.roll(up, (-5, -7), (0, 1))
    np.testing.assert_allclose(around, around.T, rtol=0, atol=1e-9)
    np.testing.assert_allclose(around[1:], around[:0:-1], rtol=0, atol=1e-9)
    for v in (0, 70, 143):
        np.testing.assert_allclose(answer[v][1], 2 * alone.joint([here, v])[1, 1], rtol=0, atol=1e-9)
    assert around[6, 6] > 0.55


def test_counts_are_the_gradient_of_log_z():
    rng = np.random.default_rng(7)
    pairs = torus(16, 16)
    couplings = 0.8 * rng.normal(size=512)
    answer = mf.marginals(ising(256, pairs, couplings), method=PLANAR)
    counts = answer.expected_counts.reshape(-1, 4)
    for e in [15, 511, *rng.integers(0, 512, 3).tolist()]:
        ends = []
        for step in (-1e-4, 1e-4):
            moved = couplings.copy()
            moved[e] += step
            ends.append(float(mf.log_partition(ising(256, pairs, moved), method=PLANAR)))
        # Every table is (j, -j, -j, j).
        assert (ends[1] - ends[0]) / 2e-4 == pytest.approx(counts[e] @ [1, -1, -1, 1], abs=1e-7)


def test_edges_may_be_missing():
    rng = np.random.default_rng(5)
    there = rng.random(98) < 0.8
    there[[6, 48]] = True
    pairs = [p for p, kept in zip(torus(7, 7), there, strict=True) if kept]
    assert planar_rotation(*np.array(sorted(pairs)).T) is None
    net = ising(49, pairs, rng.normal(size=len(pairs)))
    ours, theirs = mf.marginals(net, method=PLANAR), mf.marginals(net, method="junction_tree")
    close_logs(ours.log_partition, theirs.log_partition)
    np.testing.assert_allclose(ours.expected_counts, theirs.expected_counts, rtol=0, atol=1e-9)


@pytest.mark.parametrize("periodic", [(True, False), (False, True)])
def test_cylinders_need_one_pfaffian(periodic):
    rng = np.random.default_rng(6)
    shape = (7, 6)
    couplings = [rng.normal(size=(7 - (not periodic[0]), 6)), rng.normal(size=(7, 6 - (not periodic[1])))]
    graph = mf.Ising(shape, couplings, periodic=periodic).compile()
    ours, theirs = mf.marginals(graph, method=PLANAR), mf.marginals(graph, method="junction_tree")
    close_logs(ours.log_partition, theirs.log_partition)
    np.testing.assert_allclose(ours.expected_counts, theirs.expected_counts, rtol=0, atol=1e-9)
    (plan,) = planar._PLANS.of(graph.structure).values()
    assert len(plan.signs) == 1


def faces(around: np.ndarray) -> int:
    after, left, count = around[np.arange(len(around)) ^ 1], set(range(len(around))), 0
    while left:
        dart, count = left.pop(), count + 1
        x = int(after[dart])
        while x != dart:
            left.remove(x)
            x = int(after[x])
    return count


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 7), (7, 3), (4, 4), (5, 6)])
def test_tori_and_cylinders_are_drawn_without_crossings(rows, columns):
    """Euler's formula: vertices - edges + faces is 0 on a torus and 2 in the plane; loops close around the torus."""
    n, pairs = rows * columns, torus(rows, columns)
    drawing = torus_drawing(n, *np.array(pairs).T)
    assert drawing is not None
    tails = np.stack([drawing.first, drawing.second], axis=1).reshape(-1)
    assert (tails.reshape(-1, 2) == pairs).all() and (tails[drawing.around] == tails).all()
    assert faces(drawing.around) == len(pairs) - n
    for loop, length in zip(drawing.loops, (columns, rows), strict=True):
        assert len(loop) == length
        assert (np.bincount(tails.reshape(-1, 2)[loop].reshape(-1)) % 2 == 0).all()
    for closing in (lambda u, v: v - u == n - columns, lambda u, v: u % columns == 0 and v - u == columns - 1):
        some = np.array([(u, v) for u, v in pairs if not closing(u, v)])
        around = planar_rotation(*some.T)
        assert around is not None and faces(around) == len(some) - n + 2


def test_what_is_not_taken_on_a_torus_is_refused():
    pairs = torus(5, 6)
    field = ising(30, pairs, np.ones(60), [0.0] * 29 + [0.5])
    with pytest.raises(mf.ModelError, match=r"no potentials on single variables of a lattice .* and 1 spins here"):
        mf.log_partition(field, method=PLANAR)
    net = ising(30, pairs, np.ones(60))
    with pytest.raises(mf.ModelError, match="nor evidence on more than one, and 6 spins here"):
        mf.marginals(net, evidence={0: 1, 7: 1}, method=PLANAR)
    order = np.random.default_rng(0).permutation(30)
    mixed = [tuple(sorted((int(order[u]), int(order[v])))) for u, v in pairs]
    with pytest.raises(mf.ModelError, match="without crossings, and the pairs of this model of 30 spins and 60 pairs"):
        mf.log_partition(ising(30, mixed, np.ones(60)), method=PLANAR)


def test_it_can_be_asked_whether_a_torus_is_taken():
    pairs = torus(5, 6)
    for fields, evidence, expected in [
        ([], {}, True),
        ([], {13: 1}, True),
        ([], {13: 1, 14: 1}, False),
        ([], {13: np.array([0.3, 0.7])}, False),
        ([0.1] * 30, {}, False),
    ]:
        graph = ising(30, pairs, np.ones(60), fields).compile()
        assert is_planar_ising(graph, Evidence.parse(graph.structure, evidence)) is expected
    crossed = ising(30, [*pairs, (0, 14)], np.ones(61)).compile()
    assert not is_planar_ising(crossed, Evidence.parse(crossed.structure, None))


def test_large_tori_are_left_to_it():
    model = mf.Ising((40, 40), np.random.default_rng(0).choice([-0.5, 0.5], 3200).tolist(), periodic=True)
    assert mf.log_partition(model).method == "planar"
