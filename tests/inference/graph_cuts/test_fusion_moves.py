"""Fusion of two assignments is the best mixture of both; moves and messages bracket the best and never worsen."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.automatic import candidates
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.graph_cuts import fusion_moves
from markovfield.inference.graph_cuts.fusion import fused
from markovfield.inference.graph_cuts.fusion_moves import FusionMoves, is_picture
from markovfield.inference.portfolio.portfolio import Portfolio
from markovfield.inference.problem.pairs import pair_problem
from tests.inference.graph_cuts.test_move_making import anything, anything_finite, metric, model, semi_metric
from tests.oracle import Oracle

EXAMPLES = settings(max_examples=60, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
TABLES = st.sampled_from([metric, semi_metric, anything, anything_finite])


def possible(oracle: Oracle, rng: np.random.Generator, size: int) -> np.ndarray:
    """Assignments free of hard zeros."""
    return oracle.states[rng.choice(np.flatnonzero(np.isfinite(oracle.scores.astype(float))), size)]


@EXAMPLES
@given(seed=SEEDS, cards=st.lists(st.integers(1, 4), min_size=1, max_size=6), table=TABLES)
def test_a_fusion_is_the_best_mixture_or_no_worse(seed: int, cards: list[int], table: Any):
    rng = np.random.default_rng(seed)
    net, factors = model(rng, cards, table)
    oracle = Oracle(cards, factors)
    if oracle.impossible:
        return
    graph = net.compile()
    pairs = pair_problem("fusion_moves", graph, Evidence.parse(graph.structure, None), shrink=False)
    one, two = possible(oracle, rng, 2)
    found = fused(pairs, one, two, Running())
    assert ((found == one) | (found == two)).all()
    assert oracle.score(found) >= oracle.score(one) - 1e-9
    mixtures = ((oracle.states == one) | (oracle.states == two)).all(axis=1)
    best = float(oracle.scores[mixtures].max())
    if all(moves_together(factors, one, two, i, j) for i in range(len(cards)) for j in range(i)):
        assert oracle.score(found) == pytest.approx(best, abs=1e-9)


def moves_together(factors: list, one: np.ndarray, two: np.ndarray, i: int, j: int) -> bool:
    """Whether two variables' choice between two assignments is submodular: it is no better that just one moves."""

    def score(first: np.ndarray, second: np.ndarray) -> float:
        at = {i: int(first[i]), j: int(second[j])}
        return float(sum(table[tuple(at[v] for v in scope)] for scope, table in factors if set(scope) == {i, j}))

    return score(one, two) + score(two, one) <= score(one, one) + score(two, two) + 1e-12


@EXAMPLES
@given(
    seed=SEEDS,
    cards=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    table=TABLES,
    given_states=st.booleans(),
    likelihood=st.booleans(),
    start=st.booleans(),
    iterations=st.sampled_from([1, 7, 1000]),
)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_score_and_bound_bracket_the_best(
    seed: int, cards: list[int], table: Any, given_states: bool, likelihood: bool, start: bool, iterations: int
):
    rng = np.random.default_rng(seed)
    net, factors = model(rng, cards, table)
    evidence: dict[int, Any] = {}
    if given_states:
        evidence[0] = int(rng.integers(cards[0]))
    if likelihood:
        evidence[len(cards) - 1] = rng.integers(0, 3, size=cards[-1]).astype(float)
    oracle = Oracle(cards, factors, evidence)
    settings: dict[str, Any] = {}
    if oracle.impossible:
        with pytest.raises((mf.ImpossibleEvidenceError, mf.ModelError)):
            mf.decode(net, evidence, method=FusionMoves())
        return
    if start:
        before = possible(oracle, rng, 1)[0]
        first = mf.decode(net, evidence, method=FusionMoves())
        settings["init"] = dataclasses.replace(first, states=before.astype(np.int32))
    answer = mf.decode(net, evidence, method=FusionMoves(max_iterations=iterations), **settings)
    states = np.array([answer.assignment[v] for v in range(len(cards))])
    assert answer.score == pytest.approx(oracle.score(states), abs=1e-9)
    assert answer.score <= oracle.best_score + 1e-9 <= answer.upper_bound + 2e-9
    assert answer.gap < np.inf
    if answer.optimal:
        assert answer.score == pytest.approx(oracle.best_score, abs=1e-6)
    if start:
        assert answer.score >= oracle.score(before) - 1e-9


def lattice(rng: np.random.Generator, shape: tuple[int, int], table: np.ndarray) -> tuple[mf.MarkovNetwork, list]:
    """A rectangle with one table on all pairs of neighbours."""
    n, k = shape[0] * shape[1], len(table)
    at = np.arange(n).reshape(shape)
    pairs = [*zip(at[:, :-1].ravel(), at[:, 1:].ravel()), *zip(at[:-1].ravel(), at[1:].ravel())]  # noqa: B905
    factors = [((int(a), int(b)), table) for a, b in pairs]
    factors += [((v,), np.round(2 * rng.normal(size=k), 1)) for v in range(n)]
    net = mf.MarkovNetwork(dict.fromkeys(range(n), k))
    net.add_factors([list(scope) for scope, _ in factors[: len(pairs)]], log_table=table)
    for scope, own in factors[len(pairs) :]:
        net.add_factor(list(scope), log_table=own)
    return net, factors


@settings(max_examples=25, deadline=None)
@given(
    seed=SEEDS,
    kinds=st.sampled_from([metric, semi_metric]),
    known=st.integers(0, 3),
    likelihood=st.booleans(),
    ruled_out=st.booleans(),
    start=st.booleans(),
    limit=st.sampled_from([None, 1e-9, 5.0]),
)
def test_auto_on_small_pictures(
    seed: int, kinds: Any, known: int, likelihood: bool, ruled_out: bool, start: bool, limit: float | None
):
    """What large pictures get, on lattices that the oracle can see all of."""
    rng = np.random.default_rng(seed)
    net, factors = lattice(rng, (3, 3), kinds(rng, (3, 3)))
    if ruled_out:
        factors.append(((4,), np.array([0.0, -np.inf, 0.0])))
        net.add_factor([4], log_table=factors[-1][1])
    evidence: dict[int, Any] = {int(v): int(rng.integers(3)) for v in rng.permutation(9)[:known] if v != 4}
    if likelihood:
        evidence[4] = np.array([0.5, 1.0, 0.2])
    oracle = Oracle([3] * 9, factors, evidence)
    more: dict[str, Any] = {}
    if start:
        more["init"] = dict(enumerate(possible(oracle, rng, 1)[0].tolist()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion_moves, "LARGE", 1)
        assert is_picture(net.compile())
        answer = mf.decode(net, evidence, method=Portfolio(), time_limit=limit, rng=0, **more)
    states = np.array([answer.assignment[v] for v in range(9)])
    assert answer.score == pytest.approx(oracle.score(states), abs=1e-9)
    assert answer.score <= oracle.best_score + 1e-9 <= answer.upper_bound + 2e-9
    if limit != 1e-9:
        assert answer.gap < np.inf
        assert answer.score == pytest.approx(oracle.best_score, rel=0.1, abs=0.5)
    if start:
        assert answer.score >= oracle.score(list(more["init"].values())) - 1e-9


def noisy(shape: tuple[int, int], n_states: int, seed: int = 0) -> Any:
    """A picture of a few regions, with noise."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices(shape)
    truth = (3 * rows // shape[0] + 2 * columns // shape[1]) % n_states
    return mf.Potts(
        shape, n_states, coupling=1.0, field=1.5 * np.eye(n_states)[truth] + rng.normal(size=(*shape, n_states))
    )


def test_auto_on_a_picture_has_a_bound_and_is_no_worse_than_its_parts():
    graph = noisy((70, 75), 4).compile()
    answer = mf.decode(graph)
    parts = [mf.decode(graph, method=method) for method in ("alpha_expansion", "trws")]
    assert answer.gap <= 1e-3 * abs(parts[1].upper_bound) and answer.method == "portfolio"
    assert all(answer.score >= part.score - 1e-3 * abs(part.score) for part in parts)
    again = mf.decode(graph)
    np.testing.assert_array_equal(answer.states, again.states)
    whole = mf.decode(graph, method="fusion_moves")
    assert whole.converged and whole.score >= max(part.score for part in parts) - 1e-6
    assert whole.upper_bound <= answer.upper_bound + 1e-9


@pytest.mark.parametrize("table", [metric, semi_metric])
def test_messages_of_a_lattice_foretell_the_flows_of_moves(table: Any):
    """Both say the same, whether the messages are sent by the lattice's passes or by the moves' own."""
    rng = np.random.default_rng(1)
    net, _ = lattice(rng, (12, 9), table(rng, (4, 4)))
    graph = net.compile()
    found = mf.decode(graph, method="fusion_moves")
    best = mf.decode(graph, method="junction_tree")
    assert found.score <= best.score + 1e-9 <= found.upper_bound + 2e-9
    assert found.score >= mf.decode(graph, method="alpha_expansion").score - 1e-9


def test_what_is_a_picture():
    shape = (70, 70)
    assert is_picture(mf.Potts(shape, 3, coupling=0.5).compile())
    assert not is_picture(mf.Potts(shape, 2, coupling=0.5).compile())
    assert not is_picture(mf.Potts(shape, 3, coupling=-0.5).compile())
    assert not is_picture(mf.Potts((20, 20), 3, coupling=0.5).compile())
    couplings = np.full(70 * 69 * 2, 0.5)
    couplings[77] = -0.1
    edges = mf.Potts(shape, 3, coupling=0.5).compile().structure
    pairs = edges.scopes[: 2 * len(couplings)].reshape(-1, 2)
    assert not is_picture(mf.Potts(pairs, 3, couplings).compile())
    net = mf.MarkovNetwork(dict.fromkeys(range(5000), 3))
    net.add_truncated(np.stack([np.arange(4999), np.arange(1, 5000)], axis=1), 0.5, 4.0, power=2)
    assert is_picture(net.compile())
    net.add_factor([0, 1, 2], np.ones((3, 3, 3)))
    assert not is_picture(net.compile())


def test_wide_pictures_are_not_planned_and_narrow_ones_are_exact():
    def first(model: Any, known: dict[int, int] | None = None) -> str:
        graph = model.compile()
        return str(candidates("auto", "decode", graph, Evidence.parse(graph.structure, known))[0].name)

    assert first(noisy((70, 75), 3)) == "portfolio"
    assert first(noisy((4, 1200), 3)) == "junction_tree"
    mostly = {v: 0 for v in range(70 * 75) if v % 75 % 5}
    assert first(noisy((70, 75), 3), mostly) == "junction_tree"
    at = np.arange(70 * 75).reshape(70, 75)
    edges = [(at[:-1], at[1:]), (at[:, :-1], at[:, 1:]), (at[:-1, :-1], at[1:, 1:]), (at[:-1, 1:], at[1:, :-1])]
    eight = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in edges])
    assert first(mf.Potts(eight, 3, 0.5)) == "portfolio"


def test_stopped_by_the_callback_it_has_what_there_was():
    graph = noisy((70, 75), 4).compile()
    for calls in (1, 4, 20):
        told: list[Any] = []
        answer = mf.decode(graph, method="fusion_moves", callback=lambda p, t=told, n=calls: t.append(p) or len(t) >= n)
        assert len(told) == calls and not answer.converged
        assert answer.score == pytest.approx(float(graph.score(answer.states)))
    assert answer.gap < np.inf


def test_what_it_refuses():
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 3))
    net.add_factor(["A", "B", "C"], np.arange(1.0, 28.0).reshape(3, 3, 3))
    with pytest.raises(mf.ModelError, match="fusion_moves takes factors of at most two free variables"):
        mf.decode(net, method="fusion_moves")
    with pytest.raises(mf.ModelError, match="fusion_moves finds one assignment, not the 3 best"):
        mf.decode(net, n_best=3, method="fusion_moves")
    with pytest.raises(mf.ModelError, match="relative_gap of FusionMoves must be at least 0, got -1"):
        FusionMoves(relative_gap=-1)
