"""Ising models against enumeration: lattices, graphs, both conventions, and what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem.problem import prepare
from markovfield.inference.problem.spins import spin_model
from markovfield.models.ising import Ising
from tests.oracle import Oracle, all_states

VALUES = {"-1/+1": (-1.0, 1.0), "0/1": (0.0, 1.0)}


def neighbours(
    shape: tuple[int, ...], periodic: tuple[bool, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Pairs of neighbouring sites and their axis, site by site."""
    found = []
    for site in product(*(range(length) for length in shape)):
        for axis, length in enumerate(shape):
            other = list(site)
            other[axis] += 1
            if other[axis] == length:
                if not periodic[axis]:
                    continue
                other[axis] = 0
            found.append((site, tuple(other), axis))
    return found


def oracle(n: int, pairs: dict[tuple[int, int], float], field: np.ndarray, spins: str) -> Oracle:
    """The definition, written out: w y_s y_t and b y_s."""
    y = np.array(VALUES[spins])
    factors: list[Any] = [((a, b), w * np.outer(y, y)) for (a, b), w in pairs.items()]
    factors += [((s,), field[s] * y) for s in range(n)]
    return Oracle([2] * n, factors)


@st.composite
def lattices(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[bool, ...], str, str, np.random.Generator]:
    shape = draw(st.sampled_from([(7,), (3,), (2, 4), (3, 3), (4, 3), (1, 5), (2, 2, 3), (3, 1, 3)]))
    periodic = tuple(draw(st.booleans()) and length >= 3 for length in shape)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return (
        shape,
        periodic,
        draw(st.sampled_from(sorted(VALUES))),
        draw(st.sampled_from(["one", "axis", "edge", "dict"])),
        rng,
    )


@given(lattices())
def test_a_lattice_is_its_definition(drawn: Any):
    shape, periodic, spins, how, rng = drawn
    n = int(np.prod(shape))
    field = rng.normal(size=shape)
    site = np.arange(n).reshape(shape)
    listed = neighbours(shape, periodic)
    by_axis = rng.normal(size=len(shape))
    weights = {(a, b): by_axis[axis] if how == "axis" else rng.normal() for a, b, axis in listed}
    coupling: Any = by_axis
    if how == "one":
        weights, coupling = dict.fromkeys(weights, by_axis[0]), by_axis[0]
    elif how == "dict":
        coupling = weights
    elif how == "edge":
        coupling = []
        for axis in range(len(shape)):
            reach = tuple(k - (a == axis and not periodic[axis]) for a, k in enumerate(shape))
            block = np.zeros(reach)
            for a, b, along in listed:
                if along == axis:
                    block[a] = weights[a, b]
            coupling.append(block)
    model = Ising(shape, coupling, field, periodic=periodic, spins=spins)
    truth = oracle(n, {(int(site[a]), int(site[b])): w for (a, b), w in weights.items()}, field.ravel(), spins)
    graph = model.compile()
    assert model.shape == shape and model.periodic == periodic and model.n_variables == n
    assert len(model.edges) == len(listed) == len(model.edge_couplings)
    rows = rng.integers(0, 2, (5, n))
    index = rows @ (2 ** np.arange(n)[::-1])
    np.testing.assert_allclose(graph.score(rows), truth.scores[index].astype(float), atol=1e-12)
    y = model.to_spins(rows)
    assert y.shape == (5, *shape)
    np.testing.assert_allclose(model.energy(y), -truth.scores[index].astype(float), atol=1e-12)
    assert float(mf.log_partition(model)) == pytest.approx(truth.log_partition, abs=1e-9)
    # The full conditional of a site is the ratio of two joint probabilities.
    for row, p in zip(rows, model.full_conditional(y), strict=True):
        for s in range(n):
            up, down = row.copy(), row.copy()
            up[s], down[s] = 1, 0
            power = 2 ** np.arange(n)[::-1]
            odds = float(truth.scores[up @ power] - truth.scores[down @ power])
            assert p.ravel()[s] == pytest.approx(1 / (1 + np.exp(-odds)), abs=1e-12)


@given(lattices())
def test_the_other_convention_is_the_same_distribution(drawn: Any):
    shape, periodic, spins, _, rng = drawn
    model = Ising(shape, rng.normal(size=len(shape)), rng.normal(size=shape), periodic=periodic, spins=spins)
    other = model.with_spins("0/1" if spins == "-1/+1" else "-1/+1")
    assert other.spins != model.spins
    states = all_states([2] * model.n_variables)
    one, two = model.compile().score(states), other.compile().score(states)
    np.testing.assert_allclose(one - two, (one - two)[0], atol=1e-9)
    back = other.with_spins(spins)
    np.testing.assert_allclose(back.edge_couplings, model.edge_couplings, atol=1e-12)
    np.testing.assert_allclose(back.field, model.field, atol=1e-12)
    assert isinstance(back.coupling, tuple) and back.coupling == pytest.approx(model.coupling)
    np.testing.assert_array_equal(model.with_spins(spins).field, model.field)


def test_scalars_stay_scalars():
    model = Ising((4, 5), 0.4, periodic=(True, False))
    assert (model.coupling, model.field, model.n_states) == (0.4, 0.0, 2)
    assert isinstance(model.coupling, float) and isinstance(model.field, float)
    assert Ising((4, 5), [0.4, 0.5]).coupling == (0.4, 0.5)
    assert model.with_spins("0/1").coupling == pytest.approx(1.6)
    assert Ising(4).shape == (4,)


def test_equal_couplings_share_a_table():
    graph = Ising((20, 30), 0.4, field=0.1, periodic=True).compile()
    assert (graph.n_factors, graph.structure.n_cells) == (1200 + 600, 4 + 2)
    assert Ising((20, 30), 0.4).compile().n_factors == 19 * 30 + 20 * 29
    assert Ising((20, 30), [0.4, -0.4]).compile().structure.n_cells == 8
    model = Ising((3, 3), 0.4)
    assert model.compile() is model.compile()


def test_states_are_named_by_their_spins():
    model = Ising((2, 2), 1.0, field=-0.5)
    assert set(mf.decode(model).assignment.values()) == {-1}
    assert mf.decode(model, {model.site(1, 1): 1}).assignment[3] == 1
    with pytest.raises(mf.ModelError, match="has no state 0; its states are -1, 1"):
        mf.marginals(model, {0: 0})
    drawn = mf.sample(model, 6, rng=0)
    assert model.to_spins(drawn).shape == (6, 2, 2)
    assert set(np.unique(drawn[0])) <= {-1, 1}
    assert model.to_spins(mf.decode(model)).tolist() == [[-1, -1], [-1, -1]]
    assert Ising(2, spins="0/1").to_spins([[0, 1], [1, 1]]).tolist() == [[0, 1], [1, 1]]


def test_the_spin_model_finds_the_parameters_again():
    rng = np.random.default_rng(3)
    model = Ising((3, 4), rng.normal(size=17), rng.normal(size=(3, 4)))
    graph = model.compile()
    as_spins = spin_model(prepare(graph, Evidence.parse(graph.structure, None)))
    assert as_spins is not None
    found = {
        (a, b): w for a, b, w in zip(as_spins.first.tolist(), as_spins.second.tolist(), as_spins.coupling, strict=True)
    }
    for (a, b), w in zip(model.edges.tolist(), model.edge_couplings, strict=True):
        assert found[min(a, b), max(a, b)] == pytest.approx(w)
    np.testing.assert_allclose(as_spins.field, model.field.ravel(), atol=1e-12)


def test_graphs_and_pairs():
    rng = np.random.default_rng(5)
    graph = nx.petersen_graph()
    for u, v in graph.edges:
        graph.edges[u, v]["J"] = rng.normal()
    graph.nodes[4]["b"] = 0.7
    model = Ising(graph, "J", "b")
    field = np.where(np.arange(10) == 4, 0.7, 0.0)
    truth = oracle(10, {(u, v): graph.edges[u, v]["J"] for u, v in graph.edges}, field, "-1/+1")
    assert float(mf.log_partition(model)) == pytest.approx(truth.log_partition, abs=1e-9)
    assert (model.shape, model.periodic) == (None, ())
    pairs = Ising(list(graph.edges), {(v, u): d["J"] for u, v, d in graph.edges(data=True)}, {4: 0.7})
    np.testing.assert_array_equal(pairs.compile().log_tables, model.compile().log_tables)
    array = Ising(np.array(graph.edges), [graph.edges[e]["J"] for e in graph.edges], field)
    np.testing.assert_allclose(array.energy(np.ones(10)), model.energy(np.ones(10)))
    assert Ising([("A", "B"), ("B", "C")]).variables == ["A", "B", "C"]
    # Numbers below the largest are sites too.
    assert Ising([(0, 5)]).n_variables == 6
    assert repr(Ising([(0, 5)])) == "Ising(6 sites, 1 edges)"


def test_magnetisation_and_axes_before_the_sites():
    model = Ising((2, 3))
    y = np.ones((4, 5, 2, 3), np.int8)
    y[1, 2, 0] = -1
    assert model.magnetisation(y).shape == (4, 5)
    assert model.magnetisation(y)[1, 2] == 0.0 and model.magnetisation(y)[0, 0] == 1.0
    assert model.energy(y.reshape(4, 5, 6)).shape == (4, 5)
    assert model.full_conditional(y).shape == y.shape
    assert model.full_conditional(y.reshape(20, 6)).shape == (20, 6)
    assert model.full_conditional(np.zeros((0, 6))).shape == (0, 6)


def test_a_lattice_of_a_hundred_thousand_sites():
    model = Ising((300, 400), 0.3, periodic=True)
    graph = model.compile()
    assert (graph.n_variables, graph.n_factors) == (120_000, 240_000)
    # Every site has four neighbours, and all spins up have energy -J for each edge.
    assert np.bincount(model.edges.ravel()).tolist() == [4] * 120_000
    assert model.energy(np.ones(model.shape)) == pytest.approx(-0.3 * 240_000)
    assert graph.score(np.ones(120_000, int)) == pytest.approx(0.3 * 240_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((2, 2, 2, 2),), r"shape of one to 3 positive lengths, got \(2, 2, 2, 2\)"),
        (((3, 0),), r"positive lengths, got \(3, 0\)"),
        (("grid",), "shape of a lattice, a networkx graph or a list of pairs, got str"),
        (([(0, 1, 2)],), r"needs pairs of sites, got \(0, 1, 2\)"),
        ((np.zeros((4, 3), int),), r"needs pairs of sites, got an array of shape \(4, 3\)"),
        (([(0, 0)],), "edge from 0 to itself"),
        (([(0, 1), (1, 0)],), "edge 1 - 0 twice: add up"),
        (([],), "at least one pair"),
        (([("A", 1.5)],), "named by a str or an int, got 1.5"),
        ((nx.DiGraph([(0, 1)]),), "undirected graph"),
        ((nx.MultiGraph([(0, 1)]),), "at most one edge"),
        ((nx.grid_graph((2, 2)),), r"named by a str or an int, got \(0, 0\)"),
        (
            ((3, 3), [1.0, 2.0, 3.0]),
            r"one number, one for each of 2 axes, or one for each of 12 edges, got shape \(3,\)",
        ),
        (([(0, 1)], [1.0, 2.0]), "one number, or one for each of 1 edges"),
        (((3, 3), [np.ones((3, 3)), np.ones((3, 2))]), r"needs the shapes \[\(2, 3\), \(3, 2\)\]"),
        (((3,), np.nan), "must be finite numbers, got nan"),
        (((3,), "strong"), "names the edge attribute 'strong', but there is no networkx graph"),
        ((nx.path_graph(3), "J"), "the edge 0 - 1 has no attribute 'J'"),
        (((3,), {(0, 1): 1.0}), "says nothing of the edge 1 - 2"),
        (((3,), {(0, 1): 1.0, (1, 2): 1.0, (0, 2): 1.0}), "there is no edge 0 - 2"),
        (((3,), {(0, 1): 1.0, (1, 0): 2.0}), "twice"),
        (((3,), {0: 1.0}), "pairs of sites as keys, got 0"),
        (((2, 2), {((0, 0), (0, 2)): 1.0}), r"no site \(0, 2\): its shape is \(2, 2\)"),
        (((3,), 1.0, [1.0, 2.0]), r"needs shape \(\) or \(3,\), got \(2,\)"),
        (((3,), 1.0, {0: [1.0]}), r"needs shape \(\) for the site 0, got \(1,\)"),
        (((3,), 1.0, "b"), "names the node attribute 'b', but there is no networkx graph"),
        (((3,), 1.0, {7: 1.0}), "there is no variable 7"),
    ],
)
def test_what_is_refused(arguments: Any, message: str):
    with pytest.raises(mf.ModelError, match=message):
        Ising(*arguments)


def test_settings_that_are_refused():
    with pytest.raises(mf.ModelError, match="axis of length 2: the ends of fewer than three"):
        Ising((4, 2), periodic=True)
    with pytest.raises(mf.ModelError, match=r"a bool or one for each axis of \(4, 4\), got \(True,\)"):
        Ising((4, 4), periodic=(True,))
    with pytest.raises(mf.ModelError, match="speaks of a lattice's axes"):
        Ising([(0, 1)], periodic=True)
    with pytest.raises(mf.ModelError, match="must be '-1/\\+1' or '0/1', got 'up/down'"):
        Ising(3, spins="up/down")
    model = Ising((2, 3))
    with pytest.raises(mf.ModelError, match="'-1/\\+1' or '0/1'"):
        model.with_spins("up")
    with pytest.raises(mf.ModelError, match=r"needs spins -1 and 1, got 0\.0; to_spins makes them"):
        model.energy(np.zeros((2, 3)))
    with pytest.raises(
        mf.ModelError, match=r"arrays of shape \(2, 3\) or of 6 numbers for the sites, got shape \(3, 2\)"
    ):
        model.full_conditional(np.ones((3, 2)))
    with pytest.raises(mf.ModelError, match="state indices 0 and 1, got -1"):
        model.to_spins(-np.ones((2, 3), int))
    with pytest.raises(mf.ModelError, match=r"no site \(2, 0\)"):
        model.site(2, 0)
    with pytest.raises(mf.ModelError, match="this Ising is on a graph"):
        Ising([(0, 1)]).site(0)
