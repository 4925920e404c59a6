"""Expansions and swaps against the oracle: they never worsen, and end where no single move helps."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.graph_cuts import move_networks
from markovfield.inference.graph_cuts.move_making import AlphaBetaSwap, AlphaExpansion
from markovfield.inference.graph_cuts.move_networks import Moves
from markovfield.inference.problem.pairs import PairProblem, pair_problem
from tests.oracle import Oracle

EXAMPLES = settings(max_examples=60, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
METHODS = pytest.mark.parametrize("method", [AlphaExpansion(), AlphaBetaSwap()], ids=lambda m: m.name)


def apart(n: int) -> np.ndarray:
    return np.abs(np.arange(n)[:, None] - np.arange(n))


def metric(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Potts or truncated linear costs: a metric."""
    return -float(rng.integers(1, 4)) * np.minimum(apart(max(shape)), rng.integers(1, 3))[: shape[0], : shape[1]]


def semi_metric(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Truncated quadratic costs: no triangle inequality."""
    return -float(rng.integers(1, 4)) * np.minimum(apart(max(shape)) ** 2, 5)[: shape[0], : shape[1]]


def anything(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    table = np.round(2 * rng.normal(size=shape), 1)
    return np.where(rng.random(shape) < 0.25, -np.inf, table) if rng.random() < 0.5 else table


def anything_finite(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return np.round(2 * rng.normal(size=shape), 1)


def model(rng: np.random.Generator, cards: list[int], table: Any, hard: bool = True) -> tuple[mf.MarkovNetwork, list]:
    n = len(cards)
    factors: list[tuple[tuple[int, ...], np.ndarray]] = []
    for v in range(n):
        own = np.round(1.5 * rng.normal(size=cards[v]), 1)
        factors.append(((v,), np.where(rng.random(cards[v]) < 0.15 * hard, -np.inf, own)))
    for _ in range(int(rng.integers(0, 2 * n)) if n > 1 else 0):
        i, j = rng.permutation(n)[:2].tolist()
        factors.append(((i, j), table(rng, (cards[i], cards[j]))))
    net = mf.MarkovNetwork(dict(enumerate(cards)))
    for scope, log_table in factors:
        net.add_factor(list(scope), log_table=log_table)
    return net, factors


def one_move_away(method: Any, oracle: Oracle, states: np.ndarray) -> np.ndarray:
    """Which assignments a single move reaches."""
    near = np.zeros(len(oracle.states), bool)
    for a in range(max(oracle.cardinalities)):
        if method.name == "alpha_expansion":
            near |= ((oracle.states == states) | (oracle.states == a)).all(axis=1)
            continue
        for b in range(a):
            free = np.isin(states, (a, b))
            near |= np.where(free, np.isin(oracle.states, (a, b)), oracle.states == states).all(axis=1)
    return near


def decode(net: Any, oracle: Oracle, method: Any, **settings: Any) -> tuple[Any, np.ndarray] | None:
    """The answer and its states, checked against the oracle; None where the method finds the evidence impossible."""
    try:
        answer = mf.decode(net, method=method, **settings)
    except mf.ImpossibleEvidenceError:
        assert oracle.impossible
        return None
    states = np.array([answer.assignment[v] for v in range(len(oracle.cardinalities))])
    assert answer.score == pytest.approx(oracle.score(states), abs=1e-9)
    assert answer.score > -np.inf and answer.gap == np.inf and answer.converged
    return answer, states


@METHODS
@EXAMPLES
@given(seed=SEEDS, n=st.integers(1, 6), kinds=st.sampled_from(["metric", "semi_metric"]))
def test_no_single_move_improves_the_answer(method: Any, seed: int, n: int, kinds: str):
    if kinds == "semi_metric" and method.name == "alpha_expansion":
        kinds = "metric"  # only then is every expansion a cut
    rng = np.random.default_rng(seed)
    net, factors = model(rng, [3] * n, {"metric": metric, "semi_metric": semi_metric}[kinds])
    known = {int(rng.integers(n)): int(rng.integers(3))} if rng.random() < 0.5 else {}
    oracle = Oracle([3] * n, factors, known)
    found = decode(net, oracle, method, evidence=known)
    if found is not None:
        answer, states = found
        assert oracle.scores[one_move_away(method, oracle, states)].max() <= answer.score + 1e-9


@METHODS
@EXAMPLES
@given(seed=SEEDS, cards=st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_moves_never_worsen_whatever_the_tables(method: Any, seed: int, cards: list[int]):
    rng = np.random.default_rng(seed)
    net, factors = model(rng, cards, anything)
    oracle = Oracle(cards, factors)
    found = decode(net, oracle, method)
    if found is None:
        return
    # From any start that is possible.
    start = oracle.states[rng.choice(np.flatnonzero(np.isfinite(oracle.scores.astype(float))))]
    init = dataclasses.replace(found[0], states=start.astype(np.int32))
    again = decode(net, oracle, method, init=init)
    assert again is not None and again[0].score >= oracle.score(start) - 1e-9


def lattice(
    side: int, n_states: int, table: np.ndarray, seed: int, order: np.ndarray | None = None
) -> mf.MarkovNetwork:
    """A rectangle with one table on all of its pairs; the variables may be declared in another order."""
    rng = np.random.default_rng(seed)
    own = np.round(3 * rng.normal(size=(side * side, n_states)), 2)
    names = np.arange(side * side) if order is None else order
    net = mf.MarkovNetwork(dict.fromkeys(names.tolist(), n_states))
    at = np.arange(side * side).reshape(side, side)
    pairs = [*zip(at[:, :-1].ravel(), at[:, 1:].ravel()), *zip(at[:-1].ravel(), at[1:].ravel())]  # noqa: B905
    net.add_factors([[int(a), int(b)] for a, b in pairs], log_table=table)
    for v in range(side * side):
        net.add_factor([v], log_table=own[v])
    return net


@METHODS
def test_lattices_and_other_graphs_end_alike(method: Any):
    table = -1.5 * np.minimum(apart(5), 2.0)
    plain = mf.decode(lattice(8, 5, table, 2), method=method)
    mixed = mf.decode(lattice(8, 5, table, 2, np.random.default_rng(0).permutation(64)), method=method)
    best = mf.decode(lattice(8, 5, table, 2), method="junction_tree").score
    # Continuous potentials: cuts are unique, so both kernels make the same moves.
    assert plain.assignment == {v: mixed.assignment[v] for v in plain.assignment}
    assert plain.score == pytest.approx(mixed.score) and plain.score <= best + 1e-9
    assert plain.score >= best - 0.01 * abs(best)


def test_lattices_with_holes_and_hard_zeros():
    table = np.where(apart(4) > 2, -np.inf, -apart(4).astype(float))
    net = lattice(6, 4, table, 2)
    known = {7: 0, 9: 3, 14: 3}
    answer = mf.decode(net, evidence=known, method=AlphaExpansion())
    exact = mf.decode(net, evidence=known, method="junction_tree")
    assert -np.inf < answer.score <= exact.score + 1e-9
    assert answer.score >= exact.score - 0.02 * abs(exact.score)
    assert {v: answer.assignment[v] for v in known} == known
    assert mf.decode(net, evidence=known, method=AlphaBetaSwap()).score <= exact.score + 1e-9


def test_distance_potentials_and_structured_factors():
    net = mf.MarkovNetwork(dict.fromkeys(range(5), 4))
    net.add_truncated([[i, i + 1] for i in range(4)], 0.7, 2.0)
    net.add_potts([[0, 4]], 0.5, 0.0)
    net.add_clause({0: 2, 3: 1}, weight=4.0)
    for v in range(5):
        net.add_factor([v], log_table=np.cos(np.arange(4) * (v + 1.0)))
    best = mf.decode(net, method="enumeration").score
    for method in (AlphaExpansion(), AlphaBetaSwap()):
        assert best - 0.6 <= mf.decode(net, method=method).score <= best + 1e-9


@METHODS
def test_time_limit_answers_with_the_best_so_far(method: Any):
    net = lattice(40, 12, -1.5 * np.minimum(apart(12), 3.0), 3)
    scores = []

    def stop(progress):
        scores.append(progress.value)
        return len(scores) > 9

    early = mf.decode(net, method=method, callback=stop)
    assert not early.converged
    assert scores == sorted(scores)
    assert early.score == pytest.approx(scores[-1])
    limited = mf.decode(net, method=method, time_limit=1e-9)
    assert not limited.converged and limited.score > -np.inf
    assert early.score <= mf.decode(net, method=method).score + 1e-9


def test_warns_when_cycles_run_out():
    net = lattice(12, 6, -2.0 * np.minimum(apart(6), 2.0), 4)
    with pytest.warns(UserWarning, match="alpha_expansion did not converge in 1 iterations"):
        answer = mf.decode(net, method=AlphaExpansion(max_iterations=1))
    assert not answer.converged
    assert mf.decode(net, method=AlphaExpansion()).score >= answer.score


@METHODS
def test_without_pairs(method: Any):
    net = mf.MarkovNetwork({"A": 3, "B": 2, "C": 1})
    net.add_factor(["A"], [1.0, 0.0, 3.0])
    assert mf.decode(net, method=method).assignment == {"A": 2, "B": 0, "C": 0}
    assert mf.decode(net, evidence={"A": 0}, method=method).assignment["A"] == 0
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.decode(net, evidence={"A": 1}, method=method)
    assert mf.decode(mf.MarkovNetwork(), method=method).assignment == {}


def test_what_they_refuse():
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 3))
    net.add_factor(["A", "B", "C"], np.arange(1.0, 28.0).reshape(3, 3, 3))
    for method in (AlphaExpansion(), AlphaBetaSwap()):
        with pytest.raises(mf.ModelError, match="takes factors of at most two free variables, and one joins 3"):
            mf.decode(net, method=method)
        with pytest.raises(mf.ModelError, match="must be an earlier decoding"):
            mf.decode(net, evidence={"A": 0}, method=method, init=3)
        with pytest.raises(mf.ModelError, match="finds one assignment, not the 3 best"):
            mf.decode(net, n_best=3, method=method)
    with pytest.raises(mf.ModelError, match="max_iterations of AlphaBetaSwap must be at least 1, got 0"):
        AlphaBetaSwap(max_iterations=0)


# ---- networks that are kept ----------------------------------------------------------------------------------------


def prepared(net: mf.MarkovNetwork) -> PairProblem:
    graph = net.compile()
    return pair_problem("alpha_expansion", graph, Evidence.parse(graph.structure, None), shrink=False)


@pytest.mark.parametrize("patient", [True, False], ids=["repaired", "solved"])
@EXAMPLES
@given(
    seed=SEEDS, kinds=st.sampled_from([metric, semi_metric, anything_finite]), mixed=st.booleans(), told=st.booleans()
)
def test_kept_networks_find_what_new_ones_find(seed: int, kinds: Any, mixed: bool, told: bool, patient: bool):
    rng = np.random.default_rng(seed)
    n_states = int(rng.integers(2, 5))
    table = kinds(rng, (n_states, n_states)) + 0.01 * np.eye(n_states)
    shuffled = rng.permutation(36) if mixed else None
    pairs = prepared(lattice(6, n_states, table, int(rng.integers(1000)), shuffled))
    few, changed = (1, 1) if patient else (10**6, 10**6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(move_networks, "FEW", few)
        patch.setattr(move_networks, "CHANGED", changed)
        moves = Moves(pairs, rng.integers(n_states, size=36), keep=True)
        if told:
            moves.foresee(Running())
        for _ in range(25):
            states, score = moves.states.copy(), moves.score
            alpha, beta = np.sort(rng.permutation(n_states)[:2]).tolist()
            new = Moves(pairs, states, keep=False)
            if rng.random() < 0.8:
                assert moves.expand(alpha, Running()) == new.expand(alpha, Running())
                assert ((moves.states == states) | (moves.states == alpha)).all()
            else:
                moves.swap(alpha, beta, Running())
                new.swap(alpha, beta, Running())
            assert moves.score == pytest.approx(new.score, abs=1e-8)
            assert moves.score == pytest.approx(pairs.score(moves.states), abs=1e-8)
            assert moves.score >= score
            if rng.random() < 0.3:
                # Something else changes: most of what is kept no longer holds.
                spoilt = rng.integers(36, size=3)
                moves._moved[spoilt] = rng.integers(n_states, size=3)
                moves._count += 1
                changed_now = spoilt[moves._moved[spoilt] != moves.states[spoilt]]
                moves._stamp[changed_now] = moves._count
                moves.states[changed_now] = moves._moved[changed_now]
                moves.score = pairs.score(moves.states)


@METHODS
@EXAMPLES
@given(seed=SEEDS, kinds=st.sampled_from([metric, semi_metric]))
def test_no_single_move_improves_a_lattice(method: Any, seed: int, kinds: Any):
    if method.name == "alpha_expansion":
        kinds = metric
    rng = np.random.default_rng(seed)
    at = np.arange(9).reshape(3, 3)
    both = [*zip(at[:, :-1].ravel(), at[:, 1:].ravel()), *zip(at[:-1].ravel(), at[1:].ravel())]  # noqa: B905
    table = kinds(rng, (3, 3))
    factors = [((int(a), int(b)), table) for a, b in both]
    factors += [((v,), np.round(2 * rng.normal(size=3), 1)) for v in range(9)]
    net = mf.MarkovNetwork(dict.fromkeys(range(9), 3))
    for scope, log_table in factors:
        net.add_factor(list(scope), log_table=log_table)
    oracle = Oracle([3] * 9, factors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(move_networks, "FEW", 1)
        patch.setattr(move_networks, "CHANGED", 1)
        answer, states = decode(net, oracle, method)
    assert oracle.scores[one_move_away(method, oracle, states)].max() <= answer.score + 1e-9


def test_messages_give_a_good_start_and_do_not_depend_on_the_steps(monkeypatch):
    pairs = prepared(lattice(12, 5, -2.0 * np.minimum(apart(5), 2.0), 6))
    moves = Moves(pairs, np.argmax(pairs.unary, axis=1), keep=True)
    before = moves.score
    moves.foresee(Running())
    assert moves.score == pytest.approx(pairs.score(moves.states)) and moves.score > before
    monkeypatch.setattr(move_networks, "CELLS", 1000)
    again = Moves(pairs, np.argmax(pairs.unary, axis=1), keep=True)
    again.foresee(Running())
    assert (again.states == moves.states).all() and (again.messages == moves.messages).all()


def test_without_memory_for_networks_the_answer_is_the_same(monkeypatch):
    net = lattice(10, 4, -1.5 * np.minimum(apart(4), 2.0), 7)
    best = mf.decode(net, method="junction_tree").score
    monkeypatch.setattr(move_networks, "MOST_MESSAGES", 1)
    kept = mf.decode(net, method=AlphaExpansion())
    monkeypatch.setattr(move_networks, "MOST_KEPT", 1)
    # Continuous potentials: cuts are unique, so both make the same moves.
    anew = mf.decode(net, method=AlphaExpansion())
    assert kept.assignment == anew.assignment and kept.converged and anew.converged
    assert anew.score <= best + 1e-9 and mf.decode(net, method=AlphaBetaSwap()).score <= best + 1e-9


@pytest.mark.parametrize("method", [AlphaExpansion(), AlphaBetaSwap()])
def test_likelihoods_of_zero_leave_a_way_to_start(method):
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A", "B"], [[1.0, 0.0], [0.0, 1.0]])
    net.add_factor(["A"], [3.0, 1.0])
    assert mf.decode(net, {"B": [0.0, 1.0]}, method=method).assignment == {"A": 1, "B": 1}
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.decode(net, {"B": [0.0, 1.0], "A": [1.0, 0.0]}, method=method)
