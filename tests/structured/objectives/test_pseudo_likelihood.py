"""Pseudo-likelihood of batches, by enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import markovfield as mf
from markovfield.structured.core.batch import Batch, Factors
from markovfield.structured.core.operators import LinearTerms, TensorProduct
from markovfield.structured.objectives.pseudo_likelihood import PseudoLikelihood
from tests.structured.objectives.batches import cases, conditional, on, oracles, random_batch


@pytest.mark.parametrize(("seed", "weighted"), cases(6))
def test_by_enumeration(seed: int, weighted: bool):
    batch, w = random_batch(seed, weighted)
    weights = np.ones(batch.n_examples) if batch.weights is None else batch.weights
    wanted = -sum(u * conditional(o, y) for u, (o, y) in zip(weights, oracles(batch, w), strict=True))
    assert on(PseudoLikelihood(), batch)(w)[0] == pytest.approx(wanted, rel=1e-10)


def test_threads_and_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch):
    # A chain of one shared table: much work for few cells.
    n, rng = 400, np.random.default_rng(0)
    pairs = Factors(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), TensorProduct(1, 4), 0, np.zeros(n - 1, int))
    batch, w = Batch.of(np.full(n, 2), [0, n], [pairs], 4, rng.integers(0, 2, n)), rng.normal(size=4)
    value, gradient = on(PseudoLikelihood(), batch)(w)
    monkeypatch.setattr("markovfield.learning.undirected.local_objective.PIECE_WORK", 16)
    function = on(PseudoLikelihood(), batch)
    assert len(function.loss.borders) > 4
    again = function(w)
    assert again[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(again[1], gradient, atol=1e-12)
    monkeypatch.setattr("markovfield.learning.undirected.local_objective.MOST_CELLS", 1)
    assert len(on(PseudoLikelihood(), batch).loss.borders) == 2


def test_a_fixed_part_and_hard_zeros_elsewhere():
    batch, w = random_batch(2)
    base = np.random.default_rng(0).normal(size=batch.structure.n_cells)
    read = batch.cells_read(batch.labels)
    free = np.setdiff1d(np.arange(batch.structure.n_cells), read)
    base[free[:3]] = -np.inf
    moved = replace(batch, base=base)
    wanted = -sum(conditional(o, y) for o, y in oracles(moved, w))
    value, gradient = on(PseudoLikelihood(), moved)(w)
    assert value == pytest.approx(wanted, rel=1e-10)
    assert np.isfinite(gradient).all()


def test_too_many_states():
    batch = Batch.of([40_000], [0, 1], [Factors(np.array([[0]]), LinearTerms(np.zeros((40_000, 1))), 0)], 1, [0])
    with pytest.raises(mf.ModelError, match="at most 32767 states, not 40000"):
        on(PseudoLikelihood(), batch)
