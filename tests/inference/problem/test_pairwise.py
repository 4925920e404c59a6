"""The pairwise view: the lattice as models tell it and as it is found, and pairs without what is fixed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.factors.lattice import lattice_of
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem import problem
from markovfield.inference.problem.pairs import pair_problem
from markovfield.inference.problem.pairwise import of_free, pairwise
from markovfield.inference.problem.problem import prepare

MODELS = {
    "ising": mf.Ising((4, 5), 0.3),
    "potts": mf.Potts((3, 4), 3, [0.5, 0.7], np.arange(36.0).reshape(3, 4, 3)),
    "distances": mf.Potts((4, 3), 20),
    "two rows": mf.Ising((2, 6)),
    "two columns": mf.Ising((6, 2)),
    "a row": mf.Ising((1, 6)),
    "flat": mf.Ising((1, 3, 4)),
    "layers": mf.Ising((2, 3, 4)),
    "ring": mf.Ising((7,), periodic=True),
    "cylinder": mf.Ising((4, 5), periodic=[True, False]),
    "torus": mf.Ising((3, 4), periodic=True),
}


def untold(s: Structure) -> Structure:
    """The same structure, of which nobody has said anything."""
    return replace(s)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("known", ["nothing", "one", "many"])
def test_a_lattice_that_is_told_is_the_one_that_is_found(name: str, known: str):
    graph = MODELS[name].compile()
    clamps = np.full(graph.n_variables, -1)
    clamps[{"nothing": slice(0), "one": slice(3, 4), "many": slice(0, None, 2)}[known]] = 1
    s = prepare(graph, Evidence.from_clamps(graph.structure, clamps)).structure
    assert lattice_of(s) is not None
    told, found = pairwise(s), pairwise(untold(s))
    assert lattice_of(found.structure) is None
    assert told.width == found.width
    assert told.shorter_side == found.shorter_side


def test_the_lattice_goes_with_every_rewriting():
    for model in (MODELS["distances"], MODELS["potts"]):
        graph = model.compile()
        assert lattice_of(graph.to_tables().structure) == lattice_of(graph.structure)
        problem = pair_problem("graph_cut", graph, Evidence.from_clamps(graph.structure, None), shrink=True).problem
        assert lattice_of(problem.structure) == lattice_of(graph.structure)
    other = mf.Ising([(0, 1), (1, 2)]).compile().structure
    assert lattice_of(other) is None


def test_pairs_joined_are_told_once():
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    for scope in ("BA", "AB", "CB"):
        net.add_factor(list(scope), np.ones((2, 2)))
    view = pairwise(net.compile().structure)
    assert [end.tolist() for end in view.joined] == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("edges", "fixed", "shape"),
    [
        ("", "", "independent"),
        ("AB", "A", "independent"),
        ("AB BC", "", "chain"),
        ("AB CD", "", "chain"),
        ("AB AC AD", "", "forest"),
        ("AB BC CA", "", "general, pairwise"),
        ("AB BC CA", "A", "chain"),
        ("ABC", "", "general"),
        ("ABC CD", "A", "chain"),
    ],
)
def test_explanations_tell_the_shape_of_what_is_free(edges: str, fixed: str, shape: str):
    net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    for scope in edges.split():
        net.add_factor(list(scope), np.ones((2,) * len(scope)) + np.arange(2))
    told = mf.explain(net, "marginals", evidence=dict.fromkeys(fixed, 1))
    assert told.structure.split(";")[0] == f"{shape}, binary"


def test_nothing_is_rewritten_where_all_is_free():
    s: Any = MODELS["ising"].compile().structure
    assert of_free(s, s.cardinalities > 1) is s


@pytest.mark.parametrize("size", [(12, 9), (60, 60)])
@pytest.mark.parametrize("method", ["auto", "fusion_moves", "alpha_expansion", "trws"])
def test_decoding_a_potts_lattice_prepares_it_once(method: str, size: tuple[int, int], monkeypatch):
    rng, prepared = np.random.default_rng(0), []
    plain = problem._prepare

    def counting(graph: Any, *rest: Any) -> Any:
        prepared.append(graph)
        return plain(graph, *rest)

    monkeypatch.setattr(problem, "_prepare", counting)
    graph = mf.Potts(size, 4, 0.6, rng.normal(size=(*size, 4))).compile()
    # One thread: members of a portfolio that begin side by side may both find that nothing is prepared.
    mf.decode(graph, evidence={5: 1}, method=method, n_jobs=1, time_limit=5)
    assert prepared == [graph]


@pytest.mark.parametrize("seed", range(20))
def test_without_zeros_propagation_changes_nothing(seed: int):
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, 6)
    net = mf.MarkovNetwork(dict(enumerate(cards.tolist())))
    for _ in range(8):
        scope = rng.choice(6, int(rng.integers(1, 4)), replace=False).tolist()
        net.add_factor(scope, log_table=rng.normal(size=cards[scope]))
    graph = net.compile()
    known = Evidence.from_clamps(graph.structure, np.where(rng.random(6) < 0.3, 0, -1))
    plainly = problem._prepare(graph, known, False, False, False, None)
    thoroughly = problem._prepare(graph, known, True, False, False, None)
    assert prepare(graph, known, propagate_zeros=False) is prepare(graph, known)
    for name in ("cardinalities", "scope_offsets", "scopes", "table_offsets", "table_strides"):
        np.testing.assert_array_equal(getattr(plainly.structure, name), getattr(thoroughly.structure, name))
    np.testing.assert_array_equal(plainly.potentials.log_tables, thoroughly.potentials.log_tables)


def test_virtual_evidence_and_single_states_may_be_propagated():
    net = mf.MarkovNetwork({"A": 2, "B": 1})
    net.add_factor(["A", "B"], [[1.0], [2.0]])
    graph = net.compile()
    known = Evidence.parse(graph.structure, None)
    assert prepare(graph, known, propagate_zeros=False) is not prepare(graph, known)
    graph = mf.Ising((2, 2)).compile()
    known = Evidence.parse(graph.structure, {0: [0.0, 1.0]})
    assert prepare(graph, known, propagate_zeros=False) is not prepare(graph, known)
