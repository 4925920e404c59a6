"""Forests of factors: order, log Z and draws against brute force."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from markovfield.kernels.forest import forest_beliefs, forest_draw, forest_order, spanning_factors
from markovfield.kernels.random import streams
from tests.inference.chains import check_counts
from tests.kernels.arrays import Flat, flat, random_forest


def ordered(model: Flat) -> tuple[np.ndarray, np.ndarray]:
    taken = np.ones(len(model.factors), np.bool_)
    return forest_order(
        model.scope_offsets,
        model.scopes,
        model.variable_offsets,
        model.variable_axes,
        model.variable_factors,
        taken,
    )


def arguments(model: Flat, floors: np.ndarray, uppers: np.ndarray, roots: np.ndarray, beliefs: np.ndarray) -> tuple:
    return (
        model.cardinalities,
        model.value_offsets,
        model.scope_offsets,
        model.scopes,
        model.table_offsets,
        model.table_strides,
        model.log_tables,
        model.owner,
        floors,
        uppers,
        roots,
        beliefs,
    )


def incidence(model: Flat, factors: list[int]) -> nx.Graph:
    """Variables and factors, joined where a factor has a variable."""
    graph = nx.Graph()
    graph.add_nodes_from(("v", v) for v in range(len(model.cardinalities)))
    graph.add_edges_from((("f", f), ("v", v)) for f in factors for v in model.factors[f][0])
    return graph


@pytest.mark.parametrize("seed", range(12))
def test_factors_taken_close_no_cycle_and_none_is_missed(seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    scopes = [rng.permutation(n)[: rng.integers(1, 4)].tolist() for _ in range(int(rng.integers(0, 10)))]
    model = flat([2] * n, [(s, np.zeros([2] * len(s))) for s in scopes])
    order = rng.permutation(len(scopes)).astype(np.int64)
    taken = spanning_factors(n, model.scope_offsets, model.scopes, order)
    kept: list[int] = []
    for f in order.tolist():
        closes = not nx.is_forest(incidence(model, [*kept, f]))
        assert taken[f] == (not closes)
        kept += [] if closes else [f]


@pytest.mark.parametrize("seed", range(10))
def test_every_factor_is_met_from_above(seed: int):
    model = flat(*random_forest(seed))
    uppers, roots = ordered(model)
    assert sorted(model.owner[uppers].tolist()) == list(range(len(model.factors)))
    whole = incidence(model, list(range(len(model.factors))))
    assert int(roots.sum()) == nx.number_connected_components(whole)
    known = set(np.flatnonzero(roots).tolist())
    for upper in uppers.tolist():
        scope = set(model.factors[int(model.owner[upper])][0])
        assert known & scope == {int(model.scopes[upper])}, "the upper variable alone was met before"
        known |= scope
    assert known == set(range(len(model.cardinalities)))


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(10))
def test_log_partition(seed: int, zeros: float):
    cards, factors = random_forest(seed, zeros=zeros)
    rng = np.random.default_rng(seed)
    own = [rng.normal(size=card) for card in cards]
    model = flat(cards, factors)
    beliefs = np.concatenate(own)
    found = forest_beliefs(*arguments(model, np.full(len(factors), -np.inf), *ordered(model), beliefs))
    oracle = flat(cards, [*factors, *(((v,), own[v]) for v in range(len(cards)))]).oracle
    if oracle.impossible:
        assert found == -np.inf
    else:
        assert found == pytest.approx(oracle.log_partition, abs=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_floors_stand_for_zeros(seed: int):
    cards, factors = random_forest(seed, zeros=0.4)
    floors = np.random.default_rng(seed).normal(size=len(factors)) - 5.0
    raised = [(s, np.where(np.isneginf(t), floors[f], t)) for f, (s, t) in enumerate(factors)]
    model = flat(cards, factors)
    found = forest_beliefs(*arguments(model, floors, *ordered(model), np.zeros(sum(cards))))
    assert found == pytest.approx(flat(cards, raised).oracle.log_partition, abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_draws(seed: int):
    cards, factors = random_forest(seed + 20, n=5, zeros=0.1)
    model = flat(cards, factors)
    oracle = model.oracle
    uppers, roots = ordered(model)
    beliefs = np.zeros(sum(cards))
    given = arguments(model, np.full(len(factors), -np.inf), uppers, roots, beliefs)
    if forest_beliefs(*given) == -np.inf:
        assert oracle.impossible
        return
    states = np.full((4000, len(cards)), -1, np.int32)
    forest_draw(*given, states, streams(np.random.default_rng(seed), 4000))
    cells = np.ravel_multi_index(states.T, cards)
    chance = np.asarray(oracle.probabilities, float)
    counts = np.bincount(cells, minlength=len(chance))
    assert not counts[chance == 0].any()
    if (chance > 0).sum() > 1:
        check_counts(counts, chance)
