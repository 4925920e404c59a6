"""Piecewise training: an upper bound, exact on trees, factor by factor by hand."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.belief_propagation.forest import is_forest
from markovfield.inference.core.evidence import no_evidence
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from markovfield.structured.objectives.piecewise import Piecewise, pieces_of
from tests.structured.objectives.batches import cases, on, oracles, random_batch


@pytest.mark.parametrize(("seed", "weighted"), cases(6))
def test_factors_by_hand(seed: int, weighted: bool):
    batch, w = random_batch(seed, weighted)
    weights = np.ones(batch.n_examples) if batch.weights is None else batch.weights
    wanted = 0.0
    for weight, (oracle, labels) in zip(weights, oracles(batch, w), strict=True):
        read = set()
        for scope, table in oracle.factors:
            wanted += weight * float(np.logaddexp.reduce(table.ravel()) - table[tuple(labels[list(scope)])])
            read |= set(scope)
        # A variable that no factor reads is summed over all the same.
        lonely = [c for v, c in enumerate(oracle.cardinalities) if v not in read]
        wanted += weight * float(np.log(lonely).sum())
    assert on(Piecewise("factors"), batch)(w)[0] == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_bounds_that_get_tighter(seed: int):
    batch, w = random_batch(seed)
    likelihood = on(ConditionalLikelihood("junction_tree"), batch)(w)[0]
    trees, factors = (on(Piecewise(pieces), batch)(w)[0] for pieces in ("trees", "factors"))
    assert likelihood - 1e-9 <= trees <= factors + 1e-9
    assert factors > likelihood + 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_trees_are_exact(seed: int):
    batch, w = random_batch(seed, tree=True)
    wanted = on(ConditionalLikelihood("junction_tree"), batch)(w)
    value, gradient = on(Piecewise("trees"), batch)(w)
    assert value == pytest.approx(wanted[0], rel=1e-10)
    np.testing.assert_allclose(gradient, wanted[1], atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_pieces_are_forests_that_share_everything(seed: int):
    structure = random_batch(seed)[0].structure
    pieces = pieces_of(structure)
    assert is_forest(pieces.structure, no_evidence(pieces.structure).states)
    assert pieces_of(structure) is pieces
    pool = np.random.default_rng(seed).normal(size=structure.n_cells)
    # All copies in the states of their originals: the scores add up to that of the whole.
    states = np.random.default_rng(seed).integers(0, structure.cardinalities)
    whole = mf.FactorGraph(structure, pool).score(states)
    cut = mf.FactorGraph(pieces.structure, pieces.pool(pool)).score(states[pieces.variable])
    assert cut == pytest.approx(whole, rel=1e-12)
    # And counts go the other way as pools do.
    counts = np.random.default_rng(seed + 1).normal(size=pieces.structure.n_cells)
    assert pieces.counts(counts) @ pool == pytest.approx(counts @ pieces.pool(pool), rel=1e-12)


def test_what_pieces_there_are():
    with pytest.raises(mf.ModelError, match="pieces"):
        Piecewise("edges")
