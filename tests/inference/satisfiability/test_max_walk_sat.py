"""MaxWalkSAT: the lists of what is not satisfied, proofs, hard formulas, components, stopping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.local_search.local_search import LocalSearch
from markovfield.inference.satisfiability.max_walk_sat import MaxWalkSAT, _Walk, parts_of
from markovfield.inference.satisfiability.walk_kernel import walk
from tests.strategies import Spec, specs_with_evidence


def formulas(seed: int, n: int = 12, many: int = 30, card: int = 2, hard: float = 0.0) -> mf.MarkovNetwork:
    """Random clauses, conjunctions, parities, counts and tables, of positive and negative weight."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork({f"x{i}": card for i in range(n)})
    for _ in range(many):
        chosen = [f"x{i}" for i in rng.choice(n, int(rng.integers(1, 5)), replace=False)]
        literals = {name: int(rng.integers(0, card)) for name in chosen}
        positive = {k: v for k, v in literals.items() if rng.random() < 0.5}
        negative = {k: v for k, v in literals.items() if k not in positive}
        weight = float(np.round(rng.normal(), 2)) if rng.random() >= hard else np.inf
        what = rng.integers(0, 4)
        if what == 0 or weight == np.inf:
            net.add_clause(positive, negative, weight=weight)
        elif what == 1:
            net.add_and(positive, negative, weight=weight)
        elif what == 2:
            net.add_parity(positive, negative, weight=weight)
        else:
            net.add_factor(chosen, log_table=np.round(rng.normal(size=(card,) * len(chosen)), 2))
    return net


def reads(graph: Any, states: np.ndarray) -> np.ndarray:
    """What each factor reads, by its table."""
    s = graph.structure
    return np.array([graph.table(f)[tuple(states[s.scope(f)])] for f in range(s.n_factors)])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("card", [2, 3])
def test_lists_say_what_is_not_satisfied_after_any_number_of_steps(seed: int, card: int):
    graph = formulas(seed, card=card, hard=0.2).compile()
    known = {"x0": 0} if seed % 2 else {}
    evidence = Evidence.parse(graph.structure, known)
    found = LocalSearch(graph, evidence, np.zeros(graph.n_variables, np.int64))
    parts = parts_of(found)
    free = evidence.states < 0
    for f in range(graph.n_factors):
        scope = graph.structure.scope(f)
        index = tuple(slice(None) if free[v] else int(evidence.states[v]) for v in scope)
        assert parts.top[f] == graph.table(f)[index].max()
    own = _Walk(found, parts, np.random.default_rng(seed))
    lists = own.lists
    before, count = graph.score(found.states), len(parts.variable_offsets) - 1
    started = reads(graph, found.states)
    left = np.full(count, -37)
    walk(found.factors, parts, lists, 0, count, left, False, 0.3, 2, 10**9, own.streams[0], *found.gains)
    value = reads(graph, found.states)
    listed, broken = set(), set()
    for c in range(count):
        a, b = parts.factor_offsets[c], parts.factor_offsets[c + 1]
        hard, short = lists.sizes[c]
        broken |= set(lists.listed[a : a + hard].tolist())
        listed |= set(lists.listed[b - short : b].tolist())
        assert left[c] == 0
    in_part = set(parts.factors.tolist())
    assert listed == {f for f in in_part if np.isfinite(value[f]) and value[f] < parts.top[f]}
    assert broken == {f for f in in_part if value[f] == -np.inf and parts.top[f] > -np.inf}
    finite = value[np.isfinite(value)].sum() - started[np.isfinite(started)].sum()
    assert lists.record[:, 3].sum() == pytest.approx(finite)
    assert lists.record[:, 2].sum() == np.isinf(value).sum() - np.isinf(started).sum()
    best = reads(graph, lists.best)
    assert np.isinf(best).sum() - np.isinf(started).sum() == lists.record[:, 0].sum()
    assert best[np.isfinite(best)].sum() - started[np.isfinite(started)].sum() == pytest.approx(
        lists.record[:, 1].sum()
    )
    assert before <= graph.score(lists.best) or np.isinf(before)


METHODS = [
    MaxWalkSAT(),
    MaxWalkSAT(shaken=0, restarts=3),
    MaxWalkSAT(noise=1.0, steps=40),
    MaxWalkSAT(noise=0, tenure=0),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
@settings(max_examples=25, deadline=None)
@given(case=specs_with_evidence(), seed=st.integers(0, 99))
def test_scores_and_gaps_are_true(method: Any, case: tuple[Spec, dict], seed: int):
    spec, evidence = case
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        return
    try:
        answer = mf.decode(spec.build(), spec.named(evidence), method=method, rng=seed)
    except mf.ModelError:  # no assignment free of hard zeros was found
        assert np.isneginf(oracle.scores).any()
        return
    score, best = float(oracle.score(spec.states(answer.assignment))), float(oracle.scores.max())
    room = 1e-7 * (1 + abs(best))
    assert answer.score == pytest.approx(score, abs=room) and answer.score + answer.gap >= best - room
    assert answer.guarantee == ("exact" if answer.optimal else "lower")
    if answer.optimal:
        assert score >= best - room


@pytest.mark.parametrize("hard", [0.0, 0.3])
def test_the_best_of_random_formulas_is_found(hard: float):
    found = 0
    for seed in range(12):
        net = formulas(seed, hard=hard)
        try:
            best = mf.decode(net, method="junction_tree").score
        except mf.ImpossibleEvidenceError:
            with pytest.raises(mf.ImpossibleEvidenceError):
                mf.decode(net, method="max_walk_sat", rng=0)
            continue
        answer = mf.decode(net, method="walksat", rng=seed)
        assert answer.score == pytest.approx(best), seed
        found += 1
    assert found >= 6


def random_3_sat(n: int, clauses: int, seed: int) -> mf.MarkovNetwork:
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 2, n)
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    while clauses:
        chosen, states = rng.choice(n, 3, replace=False), rng.integers(0, 2, 3)
        if (states == hidden[chosen]).any():
            net.add_clause(dict(zip(chosen.tolist(), states.tolist(), strict=True)), weight=1.0)
            clauses -= 1
    return net


def test_a_walk_alone_satisfies_planted_clauses_and_proves_it():
    """Planted at a ratio of four clauses a variable: climbing gets stuck, the walk does not."""
    net = random_3_sat(150, 600, 3)
    answer = mf.decode(net, method=MaxWalkSAT(shaken=0, restarts=0, steps=200_000), rng=0)
    assert answer.score == 600.0 and answer.optimal and answer.gap == 0.0 and answer.guarantee == "exact"
    assert mf.decode(net, method="icm", rng=0).score < 600.0


def test_components_keep_the_best_of_each():
    """A hundred parts, each with the best in one of sixteen states: all best at once is what one walk never sees."""
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork({10 * c + i: 2 for c in range(100) for i in range(4)})
    best = 0.0
    for c in range(100):
        table = rng.normal(size=(2, 2, 2, 2))
        net.add_factor([10 * c + i for i in range(4)], log_table=table)
        for i in range(4):
            net.add_factor([10 * c + i], log_table=[0.0, -0.5])
        ones = np.indices(table.shape).sum(axis=0)
        best += float((table - 0.5 * ones).max())
    answer = mf.decode(net, method=MaxWalkSAT(shaken=0, restarts=0), rng=1)
    assert answer.score == pytest.approx(best)


def test_threads_and_seeds():
    net = formulas(5, n=60, many=150)
    first = mf.decode(net, method=MaxWalkSAT(steps=500), rng=3, n_jobs=1)
    again = mf.decode(net, method=MaxWalkSAT(steps=500), rng=3, n_jobs=2)
    np.testing.assert_array_equal(first.states, again.states)


def test_stopped_and_resumed():
    net = random_3_sat(200, 860, 1)
    calls: list[float] = []

    def stop(progress: Any) -> bool:
        calls.append(progress.value)
        return len(calls) == 2

    first = mf.decode(net, method=MaxWalkSAT(steps=10**7, noise=0.9), rng=0, callback=stop)
    assert not first.converged and len(calls) == 2
    again = mf.decode(net, method=MaxWalkSAT(steps=1000), init=first, rng=0)
    assert again.score >= first.score


def test_empty_and_observed_models():
    assert mf.decode(mf.MarkovNetwork({}), method="max_walk_sat").optimal
    net = formulas(0)
    everything = dict.fromkeys(net.variables, 1)
    answer = mf.decode(net, everything, method="max_walk_sat", rng=0)
    assert answer.assignment == everything and answer.optimal


@pytest.mark.parametrize(("setting", "value"), [("noise", 1.5), ("tenure", -1), ("steps", 0), ("restarts", -1)])
def test_settings_are_checked(setting: str, value: float):
    with pytest.raises(mf.ModelError, match=setting):
        MaxWalkSAT(**{setting: value})
