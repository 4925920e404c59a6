"""Cluster moves against the brute-force oracle: the distribution, the error bars, threads, resuming, refusals."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.inference.cluster_sampling.swendsen_wang import ClusterModel, SwendsenWang
from markovfield.inference.cluster_sampling.wolff import Wolff
from markovfield.inference.core.diagnostics import autocorrelation_time, standard_error
from markovfield.inference.core.evidence import Evidence
from markovfield.kernels.union_find import find, flatten, unite
from tests.inference.joint_counts import APART, CYCLE, FALSE_ALARM, GRID, p_value, pairs_spec
from tests.strategies import Spec, Table

METHODS = pytest.mark.parametrize("make", [SwendsenWang, Wolff])
CASES: dict[str, tuple[Spec, dict[int, Any]]] = {
    "ferromagnet": (pairs_spec(1, 5, CYCLE, field=0.0), {}),
    "ferromagnet in fields": (pairs_spec(2, 5, CYCLE), {}),
    "frustrated in fields": (pairs_spec(3, 5, CYCLE, coupling=(-1.5, 1.0)), {}),
    "antiferromagnet": (pairs_spec(4, 6, GRID, coupling=(-2.0, -0.5), field=0.0), {}),
    "strong fields of both signs": (pairs_spec(5, 6, GRID, coupling=(1.0, 2.0), field=2.0), {}),
    "evidence": (pairs_spec(6, 6, GRID, coupling=(-1.0, 1.5), field=0.0), {1: 1, 3: np.array([0.2, 0.9])}),
    "a likelihood of zero": (pairs_spec(7, 5, CYCLE), {2: np.array([0.0, 0.3])}),
    "in components": (pairs_spec(8, 6, APART, coupling=(-1.0, 1.5), field=0.3), {}),
    "no pairs": (pairs_spec(9, 4, [], field=0.7), {}),
    "no pairs, no fields": (pairs_spec(9, 4, [], field=0.0), {}),
    "a variable of one state": (
        Spec(
            (1, 2, 2, 2),
            (
                Table(((0,),), np.array([0.7])),
                Table(((0, 1), (0, 2)), np.array([[0.2, 1.0]])),
                Table(((1, 2), (2, 3), (3, 1)), np.array([[1.0, 0.3], [-0.4, 0.9]])),
            ),
            tuple("ABCD"),
        ),
        {},
    ),
    "three states": (pairs_spec(10, 5, CYCLE, states=3, field=0.0), {}),
    "three states in fields": (pairs_spec(11, 5, CYCLE, states=3), {}),
    "four states, some ruled out": (pairs_spec(12, 4, CYCLE[:3], states=4, ruled_out={0: [1], 2: [0, 3]}), {}),
    # The ruled-out state leaves domains of different sizes, so the domains are left as they are.
    "three states, one ruled out, and a variable of one state": (
        Spec(
            (1, 3, 3, 3),
            (
                Table(((1, 0, 2),), 0.8 * np.eye(3).reshape(3, 1, 3)),
                Table(((2, 3),), 1.1 * np.eye(3)),
                Table(((1,),), np.array([0.0, -np.inf, 0.5])),
            ),
            tuple("ABCD"),
        ),
        {},
    ),
    "three states, evidence": (pairs_spec(13, 5, CYCLE, states=3), {0: 2, 3: np.array([0.0, 0.5, 1.0])}),
}


@METHODS
@pytest.mark.parametrize("case", CASES)
def test_assignments_come_as_often_as_they_should(make, case):
    spec, evidence = CASES[case]
    # Sweeps far enough apart that rows are as good as independent.
    method = make(thinning=12)
    drawn = mf.sample(spec.build(), 12_000, spec.named(evidence), method=method, rng=1)
    assert drawn.guarantee == "approximate"
    assert p_value(spec.oracle(evidence), drawn.states) > FALSE_ALARM


@METHODS
@pytest.mark.parametrize("case", ["frustrated in fields", "three states in fields", "evidence"])
def test_cluster_moves_are_exact_by_themselves(make, case):
    spec, evidence = CASES[case]
    drawn = mf.sample(spec.build(), 12_000, spec.named(evidence), method=make(thinning=25, local_sweeps=0), rng=2)
    assert p_value(spec.oracle(evidence), drawn.states) > FALSE_ALARM


@METHODS
@pytest.mark.parametrize(
    "case", ["ferromagnet in fields", "frustrated in fields", "evidence", "three states in fields"]
)
def test_marginals_are_within_their_errors(make, case):
    spec, evidence = CASES[case]
    truth = np.concatenate(spec.oracle(evidence).marginals)
    answer = mf.marginals(spec.build(), spec.named(evidence), method=make(sweeps=4000), rng=3)
    errors = answer.monte_carlo.standard_errors
    free = (truth > 0) & (truth < 1)
    assert np.array_equal(answer.values[~free], truth[~free])
    # Some sixty states of four cases and two methods: one of 4.5 standard errors is a false alarm of 1 in 2000.
    assert (errors[free] > 0).all()
    assert (np.abs(answer.values - truth)[free] < 4.5 * errors[free]).all()
    assert errors.max() < 0.03
    assert answer.converged
    assert np.isnan(answer.log_partition)


def test_probabilities_given_the_clusters_beat_counts():
    spec, _ = CASES["ferromagnet in fields"]
    net = spec.build()
    averaged = mf.marginals(net, method=SwendsenWang(sweeps=4000), rng=0)
    counted = mf.sample(net, 16_000, method=SwendsenWang(burn_in=2000), rng=0)
    ours, theirs = averaged.monte_carlo.standard_errors, counted.monte_carlo.standard_errors
    assert ours.mean() < 0.8 * theirs.mean()


def test_without_fields_marginals_are_even():
    answer = mf.marginals(CASES["three states"][0].build(), method=SwendsenWang(sweeps=200), rng=0)
    assert np.allclose(answer.values, 1 / 3, rtol=1e-12)


@METHODS
def test_threads_make_no_difference_and_chains_resume(make):
    spec, evidence = CASES["frustrated in fields"]
    net, known = spec.build(), spec.named(evidence)
    one = mf.sample(net, 200, known, method=make(), rng=5, n_jobs=1)
    two = mf.sample(net, 200, known, method=make(), rng=5, n_jobs=2)
    assert np.array_equal(one.states, two.states)
    means = [mf.marginals(net, known, method=make(sweeps=50), rng=5, n_jobs=k).values for k in (1, 2)]
    assert np.array_equal(means[0], means[1])
    method = make(burn_in=50)
    first = mf.sample(net, 100, known, method=method, rng=5)
    rest = mf.sample(net, 100, known, method=method, rng=6, init=first)
    whole = mf.sample(net, 200, known, method=method, rng=5)
    joined = [np.concatenate([a, b]) for a, b in zip(first.chains, rest.chains, strict=True)]
    assert np.array_equal(np.concatenate(joined), whole.states)


@METHODS
def test_nothing_left_to_draw(make):
    net = CASES["ferromagnet"][0].build()
    everything = {f"x{v}": v % 2 for v in range(5)}
    assert mf.sample(net, 7, everything, method=make(), rng=0).states.tolist() == [[0, 1, 0, 1, 0]] * 7
    answer = mf.marginals(net, everything, method=make(sweeps=20), rng=0)
    assert answer["x1"].tolist() == [0.0, 1.0]
    assert mf.sample(net, 0, method=make(), rng=0).states.shape == (0, 5)
    assert mf.sample(mf.MarkovNetwork({}), 3, method=make(), rng=0).states.shape == (3, 0)


@METHODS
def test_what_is_no_ising_and_no_potts_model_is_refused(make):
    threes = Spec((2, 2, 2), (Table(((0, 1, 2),), np.arange(8.0).reshape(2, 2, 2)),), ("A", "B", "C"))
    mixed = Spec((2, 3), (Table(((0, 1),), np.arange(6.0).reshape(2, 3)),), ("A", "B"))
    linear = Spec((3, 3), (Table(((0, 1),), -np.abs(np.subtract.outer(range(3), range(3))) * 1.0),), ("A", "B"))
    hard = Spec((2, 2), (Table(((0, 1),), np.array([[0.0, 0.0], [0.0, -np.inf]])),), ("A", "B"))
    for spec in (threes, mixed, linear, hard):
        with pytest.raises(ModelError, match=r"takes Ising models .* and this model is neither: use gibbs"):
            mf.sample(spec.build(), 5, method=make(), rng=0)
    apart = Spec((3, 3), (Table(((0, 1),), -0.5 * np.eye(3)),), ("A", "B"))
    with pytest.raises(ModelError, match=r"that of 'A' and 'B' is -0.5: use gibbs"):
        mf.marginals(apart.build(), method=make(), rng=0)


@METHODS
def test_impossible_evidence(make):
    spec, _ = CASES["four states, some ruled out"]
    with pytest.raises(ImpossibleEvidenceError, match="x0="):
        mf.sample(spec.build(), 5, {"x0": 1}, method=make(), rng=0)
    with pytest.raises(ImpossibleEvidenceError, match="x2~"):
        mf.marginals(spec.build(), {"x2": [1.0, 0.0, 0.0, 1.0]}, method=make(), rng=0)


@METHODS
def test_settings_are_checked(make):
    name = make.__name__
    with pytest.raises(ModelError, match=f"n_chains of {name} must be"):
        make(n_chains=0)
    with pytest.raises(ModelError, match=f"local_sweeps of {name} must be at least 0, got -1"):
        make(local_sweeps=-1)
    with pytest.raises(ModelError, match="clusters of Wolff must be at least 1, got 0"):
        Wolff(clusters=0)
    drawn = mf.sample(CASES["ferromagnet"][0].build(), 8, method=make(), rng=0)
    with pytest.raises(ModelError, match="resumes samples only"):
        mf.marginals(CASES["ferromagnet"][0].build(), method=make(), rng=0, init=drawn)


def lattice(length: int, coupling: float) -> mf.MarkovNetwork:
    graph = nx.grid_2d_graph(length, length, periodic=True)
    number = {site: i for i, site in enumerate(graph)}
    net = mf.MarkovNetwork(dict.fromkeys(range(length * length), 2))
    edges = [(number[a], number[b]) for a, b in graph.edges]
    net.add_factors(edges, log_table=coupling * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    return net


def periodic_log_partition(length: int, coupling: float) -> float:
    """Kaufman's (1949) formula for a periodic square lattice without field."""
    angles = np.pi * np.arange(2 * length) / length
    gammas = np.arccosh(np.cosh(2 * coupling) / np.tanh(2 * coupling) - np.cos(angles))
    gammas[0] = 2 * coupling + np.log(np.tanh(coupling))
    half = length * gammas / 2
    terms = []
    for part in (half[1::2], half[0::2]):
        terms.append(np.prod(2 * np.cosh(part)))
        terms.append(np.prod(2 * np.sinh(part)))
    return float(length**2 / 2 * np.log(2 * np.sinh(2 * coupling)) + np.log(sum(terms) / 2))


@METHODS
def test_chains_forget_quickly_at_the_critical_coupling(make):
    critical, length = float(np.log(1 + np.sqrt(2)) / 2), 24
    graph = lattice(length, critical).compile()
    drawn = mf.sample(graph, 4000, method=make(n_chains=4), rng=0)
    spins = 2.0 * drawn.states - 1
    magnetisation = np.abs(spins.mean(axis=1)).reshape(4, -1)
    # Moves of single spins remember it for hundreds of sweeps: length^2.17, but for a factor near one.
    assert autocorrelation_time(magnetisation) < 15
    pairs = graph.structure.scopes.reshape(-1, 2)
    energy = (spins[:, pairs[:, 0]] * spins[:, pairs[:, 1]]).sum(axis=1).reshape(4, -1)
    low, high = (periodic_log_partition(length, critical + step) for step in (-1e-4, 1e-4))
    # One of four standard errors is a false alarm of 1 in 15,000.
    assert abs(energy.mean() - (high - low) / 2e-4) < 4 * standard_error(energy)


def test_wolff_counts_its_clusters_the_same_way_every_time():
    graph = lattice(12, 0.3).compile()
    model = ClusterModel.of(graph, Evidence.parse(graph.structure, None), "wolff")
    one, two = (Wolff().transition(model) for _ in range(2))
    starts = model.starts(1, np.random.default_rng(0))
    ends = []
    for transition in (one, two):
        states, stream = starts[0].copy(), np.arange(1, 5, dtype=np.uint64)
        transition.advance(states, stream, 10)
        ends.append((states.tolist(), stream.tolist()))
    assert ends[0] == ends[1]


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60))
def test_union_find_finds_the_components(n, pairs):
    pairs = [(i % n, j % n) for i, j in pairs]
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    parent = np.arange(n, dtype=np.int32)
    for i, j in pairs:
        apart = not nx.has_path(graph, i, j)
        graph.add_edge(i, j)
        assert unite(parent, i, j) == apart
        assert (parent <= np.arange(n)).all()
    components = list(nx.connected_components(graph))
    assert {find(parent.copy(), i) for i in range(n)} == {min(c) for c in components}
    assert flatten(parent) == len(components)
    assert all(parent[i] == min(c) for c in components for i in c)
