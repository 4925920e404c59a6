"""Potts models against enumeration, as tables and as distance potentials."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.factors.kinds_kernel import DISTANCE, TABLE
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem.problem import prepare
from markovfield.inference.problem.spins import potts_model
from markovfield.models import potts
from markovfield.models.ising import Ising
from markovfield.models.potts import Potts
from tests.oracle import Oracle


@st.composite
def models(draw: st.DrawFn) -> Potts:
    shape = draw(st.sampled_from([(4,), (2, 2), (3, 2), (2, 1, 3)]))
    k = draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    periodic = tuple(draw(st.booleans()) and length >= 3 for length in shape)
    field = draw(st.sampled_from([None, (k,), (*shape, k)]))
    coupling = rng.normal(size=draw(st.sampled_from([(), (len(shape),)])))
    return Potts(shape, k, coupling, None if field is None else rng.normal(size=field), periodic=periodic)


def oracle(model: Potts) -> Oracle:
    """The definition, written out."""
    n, k = model.n_variables, model.n_states
    pairs = zip(model.edges.tolist(), model.edge_couplings, strict=True)
    factors: list[Any] = [((a, b), w * np.eye(k)) for (a, b), w in pairs]
    if model.field is not None:
        own = np.broadcast_to(model.field.reshape(-1, k), (n, k))
        factors += [((s,), own[s]) for s in range(n)]
    return Oracle([k] * n, factors)


@pytest.mark.parametrize("distance", [False, True])
@given(model=models(), seed=st.integers(0, 2**32))
def test_a_lattice_is_its_definition(distance: bool, model: Potts, seed: int):
    most = potts.MOST_STATES
    potts.MOST_STATES = 0 if distance else most
    try:
        graph = model.compile()
    finally:
        potts.MOST_STATES = most
    assert set(graph.structure.kind[: len(model.edges)]) <= {DISTANCE if distance else TABLE}
    truth = oracle(model)
    n, k = model.n_variables, model.n_states
    power = k ** np.arange(n)[::-1]
    rows = np.random.default_rng(seed).integers(0, k, (4, n))
    scores = truth.scores[rows @ power].astype(float)
    np.testing.assert_allclose(graph.score(rows), scores, atol=1e-12)
    np.testing.assert_allclose(model.energy(rows), -scores, atol=1e-12)
    assert float(mf.log_partition(model)) == pytest.approx(truth.log_partition, abs=1e-9)
    y = model.to_states(rows)
    conditional = model.full_conditional(y)
    assert y.shape == (4, *model.shape) and conditional.shape == (*y.shape, k)
    for row, p in zip(rows, conditional.reshape(4, n, k), strict=True):
        for s in range(n):
            others = np.repeat(row[None], k, axis=0)
            others[:, s] = np.arange(k)
            weights = np.exp(truth.scores[others @ power].astype(float))
            np.testing.assert_allclose(p[s], weights / weights.sum(), atol=1e-12)


def test_two_states_are_an_ising_model_of_half_the_coupling():
    one = Potts((3, 4), 2, 0.9, periodic=(True, False))
    two = Ising((3, 4), 0.45, periodic=(True, False))
    edges = len(two.edges)
    assert float(mf.log_partition(one)) == pytest.approx(float(mf.log_partition(two)) + 0.45 * edges)


def test_which_form_a_pair_takes():
    tied = Potts((50, 60), 10, 1.4, periodic=True).compile()
    assert tied.structure.n_cells == 100 and tied.structure.is_plain
    many = Potts((5, 5), potts.MOST_STATES + 1, 1.0).compile()
    assert many.structure.n_cells == 2
    rng = np.random.default_rng(0)
    different = Potts((130, 130), 12, rng.normal(size=2 * 129 * 130)).compile()
    assert different.structure.n_cells == 2 * 2 * 129 * 130


@pytest.mark.parametrize("k", [3, potts.MOST_STATES + 1])
def test_the_potts_model_finds_the_parameters_again(k: int):
    rng = np.random.default_rng(1)
    model = Potts((3, 2), k, rng.normal(size=7), rng.normal(size=(3, 2, k)))
    graph = model.compile()
    as_potts = potts_model(prepare(graph, Evidence.parse(graph.structure, None)))
    assert as_potts is not None
    order = np.lexsort((model.edges[:, 1], model.edges[:, 0]))
    np.testing.assert_allclose(as_potts.coupling, model.edge_couplings[order], atol=1e-12)
    np.testing.assert_allclose(as_potts.unary, model.field.reshape(-1, k), atol=1e-12)


def test_graphs_and_fields_by_site():
    graph = nx.path_graph(["a", "b", "c"])
    graph.nodes["b"]["own"] = [0.0, 1.0, -1.0]
    model = Potts(graph, 3, 0.5, "own")
    assert repr(model) == "Potts(3 sites, 2 edges, 3 states)"
    assert model.field.tolist() == [[0, 0, 0], [0.0, 1.0, -1.0], [0, 0, 0]]
    assert float(mf.log_partition(model)) == pytest.approx(oracle(model).log_partition)
    np.testing.assert_array_equal(Potts(graph, 3, 0.5, {"b": [0.0, 1.0, -1.0]}).field, model.field)
    assert mf.decode(model).assignment == {"a": 1, "b": 1, "c": 1}
    assert model.to_states(mf.decode(model)).tolist() == [1, 1, 1]


def test_what_is_refused():
    with pytest.raises(mf.ModelError, match="integer of at least 2, got 1"):
        Potts((2, 2), 1)
    with pytest.raises(mf.ModelError, match=r"needs shape \(3,\) or \(2, 2, 3\), got \(2, 2\)"):
        Potts((2, 2), 3, 1.0, np.zeros((2, 2)))
    with pytest.raises(mf.ModelError, match=r"needs shape \(3,\) for the site 0, got \(\)"):
        Potts((2, 2), 3, 1.0, {0: 1.0})
    model = Potts((2, 2), 3)
    with pytest.raises(mf.ModelError, match="states 0 to 2, got 3"):
        model.energy([[0, 1], [2, 3]])
    with pytest.raises(mf.ModelError, match=r"states 0 to 2, got 0\.5"):
        model.full_conditional([[0, 1], [2, 0.5]])
    with pytest.raises(mf.ModelError, match=r"arrays of shape \(2, 2\) or of 4 numbers"):
        model.energy([0, 1, 2])
    with pytest.raises(mf.ModelError, match="this Potts is on a graph"):
        Potts([(0, 1)], 3).site(1)
