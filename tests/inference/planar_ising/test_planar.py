"""Planar Ising models: against the oracle and the junction tree, on graphs of all sorts and couplings of all sizes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.spatial import Delaunay

import markovfield as mf
from markovfield.graphs.planar import planar_rotation
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.planar_ising import planar
from markovfield.inference.planar_ising.planar import PlanarIsing, is_planar_ising
from tests.oracle import Oracle

PLANAR = PlanarIsing()
SCALES = [0.3, 1.0, 5.0, 20.0]


def lattice(rows: int, columns: int) -> list[tuple[int, int]]:
    at = np.arange(rows * columns).reshape(rows, columns)
    return [
        *zip(at[:, :-1].ravel().tolist(), at[:, 1:].ravel().tolist(), strict=True),
        *zip(at[:-1].ravel().tolist(), at[1:].ravel().tolist(), strict=True),
    ]


def triangulation(n: int, rng: np.random.Generator, keep: float = 1.0) -> tuple[list[tuple[int, int]], list[int]]:
    """A random plane graph and the vertices on its outer face."""
    if n < 4:
        return [p for p in combinations(range(n), 2) if rng.random() < keep], list(range(n))
    found = Delaunay(rng.random((n, 2)))
    pairs = {tuple(sorted((int(t[a]), int(t[b])))) for t in found.simplices for a, b in combinations(range(3), 2)}
    border = sorted({int(v) for v in found.convex_hull.ravel()})
    return [p for p in sorted(pairs) if rng.random() < keep], border


def outerplanar(n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """A cycle with chords that do not cross."""
    pairs = {(i, i + 1) for i in range(n - 1)} | {(0, n - 1)}

    def chords(low: int, high: int) -> None:
        if high - low > 1:
            middle = int(rng.integers(low + 1, high))
            pairs.update(p for p in [(low, middle), (middle, high)] if rng.random() < 0.7)
            chords(low, middle)
            chords(middle, high)

    chords(0, n - 1)
    return sorted(pairs)


def tables(pairs, couplings, fields) -> list:
    """Factors as the oracle takes them; some pairs with the spins the other way round, some with a field inside."""
    out = [((u, v), np.array([[j, -j], [-j, j]])) for (u, v), j in zip(pairs, couplings, strict=True)]
    return out + [((i,), np.array([-h, h])) for i, h in enumerate(fields) if h]


def network(n: int, factors) -> mf.MarkovNetwork:
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    for scope, table in factors:
        net.add_factor(list(scope), log_table=table)
    return net


def ising(n: int, pairs, couplings, fields=()) -> mf.MarkovNetwork:
    return network(n, tables(pairs, couplings, fields))


def close_logs(ours: float, theirs: float) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-9)


def frustrated(m: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Couplings of both signs: normal, or all of one size, or of many sizes, some of them zero."""
    kind = rng.integers(3)
    if kind == 0:
        return scale * rng.normal(size=m)
    if kind == 1:
        return scale * rng.choice([-1.0, 1.0], m)
    return scale * rng.normal(size=m) * 10.0 ** rng.uniform(-3, 0, m) * (rng.random(m) < 0.9)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 9),
    kind=st.sampled_from(["triangulation", "sparse", "outerplanar", "grid", "tree"]),
    scale=st.sampled_from(SCALES),
    where=st.sampled_from(["nowhere", "border", "evidence", "likelihood"]),
)
def test_small_models_agree_with_the_oracle(seed, n, kind, scale, where):
    rng = np.random.default_rng(seed)
    border = list(range(n))
    if kind == "grid":
        n = 9
        pairs, border = lattice(3, 3), [0, 1, 2, 3, 5, 6, 7, 8]
    elif kind == "outerplanar" and n > 2:
        pairs = outerplanar(n, rng)
    elif kind == "tree":
        pairs = [(int(rng.integers(v)), v) for v in range(1, n)]
    else:
        pairs, border = triangulation(n, rng, 1.0 if kind == "triangulation" else 0.5)
    couplings = frustrated(len(pairs), scale, rng)
    fields, evidence = np.zeros(n), {}
    if where == "border":
        chosen = [v for v in border if rng.random() < 0.6]
        fields[chosen] = scale * rng.normal(size=len(chosen))
    elif where == "evidence":
        evidence = {int(rng.integers(n)): int(rng.integers(2))}
    elif where == "likelihood":
        evidence = {int(rng.integers(n)): np.array([0.2, 0.7])}
    factors = tables(pairs, couplings, fields)
    # Parallel factors, one of them the other way round.
    if pairs and rng.random() < 0.5:
        factors.append((pairs[0][::-1], rng.normal() * np.array([[1.0, -1.0], [-1.0, 1.0]])))
    net, oracle = network(n, factors), Oracle([2] * n, factors, evidence)
    answer = mf.marginals(net, evidence=evidence, method=PLANAR)
    assert answer.guarantee == "exact" and answer.method == "planar" and answer.width == -1
    close_logs(answer.log_partition, oracle.log_partition)
    close_logs(float(mf.log_partition(net, evidence=evidence, method=PLANAR)), oracle.log_partition)
    for v in range(n):
        np.testing.assert_allclose(answer[v], oracle.marginal(v), rtol=0, atol=1e-9)
    counts = np.concatenate([[], *(oracle.counts(f).ravel() for f in range(len(factors)))])
    np.testing.assert_allclose(answer.expected_counts, counts, rtol=0, atol=1e-9)
    for size in range(1, min(n, 4) + 1):
        some = rng.permutation(n)[:size].tolist()
        np.testing.assert_allclose(answer.joint(some), oracle.joint(some), rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 5.0, 25.0])
@pytest.mark.parametrize("kind", ["grid", "triangulation", "sparse"])
def test_frustrated_models_agree_with_the_junction_tree(kind, scale):
    rng = np.random.default_rng(int(scale))
    n, pairs = 100, lattice(10, 10)
    if kind != "grid":
        n = 70
        pairs, _ = triangulation(n, rng, 1.0 if kind == "triangulation" else 0.6)
    for _ in range(3):
        net = ising(n, pairs, frustrated(len(pairs), scale, rng))
        ours, theirs = mf.marginals(net, method=PLANAR), mf.marginals(net, method="junction_tree")
        close_logs(ours.log_partition, theirs.log_partition)
        np.testing.assert_allclose(ours.expected_counts, theirs.expected_counts, rtol=0, atol=1e-9)
        far = rng.permutation(n)[:2].tolist()
        np.testing.assert_allclose(ours.joint(far), theirs.joint(far), rtol=0, atol=1e-9)


def test_a_larger_lattice_agrees_with_the_junction_tree():
    rng = np.random.default_rng(16)
    pairs = lattice(16, 16)
    net = ising(256, pairs, rng.normal(size=len(pairs)))
    close_logs(
        float(mf.log_partition(net, method=PLANAR)),
        float(mf.log_partition(net, method=mf.methods.JunctionTree(search=0))),
    )


def test_fields_on_the_border_reach_the_middle():
    rng = np.random.default_rng(3)
    pairs, fields = lattice(7, 8), np.zeros(56)
    fields[:8] = rng.normal(size=8)
    net = ising(56, pairs, rng.normal(size=len(pairs)), fields)
    ours, theirs = mf.marginals(net, method=PLANAR), mf.marginals(net, method="junction_tree")
    close_logs(ours.log_partition, theirs.log_partition)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=0, atol=1e-9)
    assert np.abs(ours.values[16:] - 0.5).max() > 0.01


def test_cylinders_are_planar_and_crossings_are_refused():
    rng = np.random.default_rng(0)
    pairs = lattice(5, 6)
    around = [(6 * r, 6 * r + 5) for r in range(5)]
    net = ising(30, pairs + around, rng.normal(size=len(pairs) + 5))
    close_logs(float(mf.log_partition(net, method=PLANAR)), float(mf.log_partition(net, method="junction_tree")))
    crossed = pairs + around + [(c, 29 - c) for c in range(6)]
    with pytest.raises(mf.ModelError, match="without crossings, and the pairs of this model of 30 spins and 60 pairs"):
        mf.log_partition(ising(30, crossed, np.ones(60)), method=PLANAR)


def test_what_is_not_a_planar_ising_model_is_refused():
    three = mf.MarkovNetwork({"A": 3, "B": 2})
    three.add_factor(["A", "B"], np.ones((3, 2)) + np.arange(2))
    with pytest.raises(
        mf.ModelError, match=r"variables of two states .* junction_tree, generalized_bp and mini_bucket"
    ):
        mf.marginals(three, method=PLANAR)
    pairs = lattice(3, 3)
    everywhere = ising(9, pairs, np.ones(len(pairs)), np.ones(9))
    with pytest.raises(mf.ModelError, match="around one face of the graph, and the 9 here do not"):
        mf.marginals(everywhere, method=PLANAR)
    answer = mf.marginals(ising(20, lattice(4, 5), np.ones(31)), method=PLANAR)
    with pytest.raises(mf.ModelError, match="up to 12 variables, and 13 were asked for"):
        answer.joint(list(range(13)))
    with pytest.raises(mf.ModelError, match="no max-marginals"):
        _ = answer.max_marginals


def test_it_can_be_asked_whether_a_model_is_planar():
    pairs = lattice(3, 3)
    for fields, evidence, expected in [
        (np.zeros(9), {}, True),
        (np.ones(9), {}, False),
        (np.ones(9), {4: 1}, True),
        (np.zeros(9), {0: 1, 8: 0}, True),
    ]:
        graph = ising(9, pairs, np.ones(len(pairs)), fields).compile()
        assert is_planar_ising(graph, Evidence.parse(graph.structure, evidence)) is expected
    complete = list(combinations(range(5), 2))
    graph = ising(5, complete, np.ones(10)).compile()
    assert not is_planar_ising(graph, Evidence.parse(graph.structure, None))


def test_pairs_of_coupling_zero_may_cross():
    """Five spins all joined are not planar, four of them and a pair of no coupling are; that pair still has a count."""
    pairs = list(combinations(range(5), 2))
    couplings = np.random.default_rng(1).normal(size=10)
    couplings[[3, 5]] = 0.0
    factors = tables(pairs, couplings, [])
    answer, oracle = mf.marginals(network(5, factors), method=PLANAR), Oracle([2] * 5, factors)
    counts = np.concatenate([oracle.counts(f).ravel() for f in range(10)])
    np.testing.assert_allclose(answer.expected_counts, counts, rtol=0, atol=1e-9)


def test_small_and_empty_models():
    assert float(mf.log_partition(ising(1, [], []), method=PLANAR)) == pytest.approx(np.log(2))
    assert float(mf.log_partition(ising(3, [], []), method=PLANAR)) == pytest.approx(3 * np.log(2))
    observed = ising(2, [(0, 1)], [0.5], [0.25, 0.0])
    assert float(mf.log_partition(observed, evidence={0: 1, 1: 0}, method=PLANAR)) == pytest.approx(0.25 - 0.5)
    answer = mf.marginals(observed, evidence={0: 1, 1: 0}, method=PLANAR)
    assert answer.values.tolist() == [0.0, 1.0, 1.0, 0.0] and not answer.values.flags.writeable
    alone = mf.marginals(ising(2, [], [], [0.3, 0.0]), method=PLANAR)
    np.testing.assert_allclose(alone[0], np.exp([-0.3, 0.3]) / (2 * np.cosh(0.3)), atol=1e-14)
    np.testing.assert_allclose(alone.joint([1, 0]), 0.5 * np.stack([alone[0]] * 2), atol=1e-14)


@pytest.mark.parametrize("size", [1e-8, 60.0, 150.0])
def test_extreme_couplings(size):
    """A tree has log Z = n log 2 + sum log cosh; an odd ring with one frustrated edge has 2 n ground states."""
    n = 7
    chain = [(i, i + 1) for i in range(n - 1)]
    cosh = size + np.log1p(np.exp(-2 * size)) - np.log(2)
    couplings = size * np.array([1, -1, 1, 1, -1, 1])
    close_logs(float(mf.log_partition(ising(n, chain, couplings), method=PLANAR)), n * np.log(2) + (n - 1) * cosh)
    ring = ising(n, [*chain, (0, n - 1)], np.append(size * np.ones(n - 1), -size))
    answer = mf.marginals(ring, method=PLANAR)
    expected = (
        n * np.log(2) + n * cosh + np.log1p(-(np.tanh(size) ** n)) if size < 1 else np.log(2 * n) + (n - 2) * size
    )
    close_logs(answer.log_partition, expected)
    if size > 1:
        np.testing.assert_allclose(answer.joint([0, 1])[0, 1], 0.5 / n, atol=1e-12)


def test_couplings_too_strong_for_its_digits_are_an_error():
    rng = np.random.default_rng(0)
    pairs = lattice(64, 64)
    net = ising(4096, pairs, 12.0 * rng.choice([-1.0, 1.0], len(pairs)))
    with pytest.raises(mf.ModelError, match=r"loses its digits on couplings as strong as 12 \(its check is off by"):
        mf.log_partition(net, method=PLANAR)


def onsager(coupling: float) -> float:
    """log Z for each site of the infinite square lattice (Onsager 1944)."""
    k = 2 * np.sinh(2 * coupling) / np.cosh(2 * coupling) ** 2

    def inner(theta: float) -> float:
        return float(np.log((1 + np.sqrt(max(0.0, 1 - (k * np.sin(theta)) ** 2))) / 2))

    return float(np.log(2 * np.cosh(2 * coupling)) + quad(inner, 0, np.pi, limit=200)[0] / (2 * np.pi))


@pytest.mark.parametrize("coupling", [0.3, 0.6])
def test_free_energy_approaches_onsagers(coupling):
    """With free borders, log Z / L^2 = f + a / L + b / L^2 + ..., away from the critical coupling: two sizes give a."""
    sizes = [8, 16, 32, 64]
    values = []
    for size in sizes:
        pairs = lattice(size, size)
        net = ising(size * size, pairs, np.full(len(pairs), coupling))
        values.append(float(mf.log_partition(net, method=PLANAR)) / size**2)
    errors = np.abs(np.array(values) - onsager(coupling))
    # Halved with every doubling, up to the next order, which is halved too.
    assert (np.abs(errors[:-1] / errors[1:] - 2.0) < 3.0 / np.array(sizes[:-1])).all()
    # Three sizes take out the border and the corners.
    a, b, c = values[1:]
    assert (a - 6 * b + 8 * c) / 3 == pytest.approx(onsager(coupling), abs=2e-6)


def test_counts_are_the_gradient_of_log_z():
    rng = np.random.default_rng(7)
    pairs = lattice(64, 64)
    graph = ising(4096, pairs, rng.normal(size=len(pairs))).compile()
    answer = mf.marginals(graph, method=PLANAR)
    for cell in rng.integers(0, 4 * len(pairs), 3):
        ends = []
        for step in (-1e-4, 1e-4):
            moved = graph.log_tables.copy()
            moved[cell] += step
            # Moving one cell makes fields on two neighbours, which stay planar.
            ends.append(float(mf.log_partition(graph.with_tables(moved), method=PLANAR)))
        slope = (ends[1] - ends[0]) / 2e-4
        assert slope == pytest.approx(answer.expected_counts[cell], abs=1e-7)


def test_plans_are_kept_with_the_structure():
    pairs = lattice(6, 6)
    graph = ising(36, pairs, np.ones(len(pairs))).compile()
    mf.log_partition(graph, method=PLANAR)
    kept = planar._PLANS.of(graph.structure)
    before = list(kept.values())
    assert len(before) == 1
    mf.log_partition(graph.with_tables(2 * graph.log_tables), method=PLANAR)
    assert list(kept.values()) == before
    for state in range(2):
        for v in range(36):
            mf.log_partition(graph, evidence={v: state}, method=PLANAR)
    assert len(kept) <= 16


def test_asking_twice_gives_the_same_bits_and_time_limits_hold():
    rng = np.random.default_rng(2)
    pairs = lattice(12, 12)
    net = ising(144, pairs, 3 * rng.normal(size=len(pairs)))
    one, two = (mf.marginals(net, method=PLANAR, n_jobs=jobs) for jobs in (1, 2))
    assert one.log_partition == two.log_partition
    assert (one.expected_counts == two.expected_counts).all()
    with pytest.raises(TimeoutError):
        mf.marginals(net, method=PLANAR, time_limit=1e-9)
    with pytest.raises(mf.StoppedError):
        mf.marginals(net, method=PLANAR, callback=lambda progress: True)


@pytest.mark.parametrize("columns", [3, 4, 7])
@pytest.mark.parametrize("diagonal", [0, 1, -1])
def test_lattices_are_drawn_as_networkx_would_have_them(columns, diagonal):
    """Euler's formula: a connected plane graph of n vertices and m edges has m - n + 2 faces."""
    at = np.arange(4 * columns).reshape(4, columns)
    pairs = lattice(4, columns)
    if diagonal:
        low, high = (at[:-1, :-1], at[1:, 1:]) if diagonal > 0 else (at[:-1, 1:], at[1:, :-1])
        pairs = pairs + list(zip(low.ravel().tolist(), high.ravel().tolist(), strict=True))
    first, second = np.array(pairs).T
    around = planar_rotation(first, second)
    assert around is not None
    tails = np.array(pairs).reshape(-1)
    assert (tails[around] == tails).all() and sorted(around) == list(range(2 * len(pairs)))
    after, left, faces = around[np.arange(2 * len(pairs)) ^ 1], set(range(2 * len(pairs))), 0
    while left:
        dart, faces = left.pop(), faces + 1
        x = after[dart]
        while x != dart:
            left.remove(int(x))
            x = after[x]
    assert faces == len(pairs) - 4 * columns + 2
