"""Marginal MAP: what is claimed of score, bound and optimality, against brute force, however much is left to search."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.factors.to_tables import noisy_max_table
from markovfield.inference.automatic import candidates
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.marginal_map import bounds as marginal_bounds
from markovfield.inference.marginal_map import marginal_search
from markovfield.inference.marginal_map import scores as marginal_scores
from tests.inference.relaxations import StopAfter, frustrated_lattice
from tests.oracle import Oracle
from tests.strategies import Seeded, Spec, build_graph, specs_with_evidence

# How the search is cut short: nothing; no sum becomes a table; and no part of what is left is summed exactly either.
CUTS = ("whole", "nothing summed", "bounds only")


@pytest.fixture(params=CUTS)
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    shorten(monkeypatch, request.param)
    return str(request.param)


def shorten(monkeypatch: pytest.MonkeyPatch, cut: str) -> None:
    """Make the limits so small that tiny models go the ways of large ones."""
    if cut == "whole":
        return
    monkeypatch.setattr(marginal_search, "LARGEST_TABLE", 1.0)
    monkeypatch.setattr(marginal_search, "BUCKETS", (((1,), 1.0), ((1, 2, 3), 64.0)))
    monkeypatch.setattr(marginal_search, "LISTED", (1, 3))
    monkeypatch.setattr(marginal_search, "SECONDS", 0.05)
    monkeypatch.setattr(marginal_bounds, "LEAST_STATES", 4.0)
    if cut == "bounds only":
        monkeypatch.setattr(marginal_scores, "WORK_LIMIT", 1.5)
        monkeypatch.setattr(marginal_scores, "SMALL", 1.0)
        monkeypatch.setattr(
            marginal_scores, "MiniBucket", lambda **_: mf.methods.MiniBucket(i_bound=1, max_states=4, max_iterations=1)
        )


def check(answer: mf.Decoding, oracle: Oracle, sought: list[int], labels: Any = None) -> None:
    """The score is that of the assignment, or below it where that is said; the bound holds; optimal is best."""
    best, _ = oracle.marginal_map(sought)
    states = [int(answer.assignment[v if labels is None else labels[v]]) for v in sought]
    with np.errstate(divide="ignore"):
        own = float(np.log(oracle.joint(sought)[tuple(states)])) + oracle.log_partition
    room = 1e-8 * max(1.0, abs(best))
    assert answer.states.tolist() == [
        states[sought.index(v)] if v in sought else -1 for v in range(len(oracle.cardinalities))
    ]
    assert answer.score_guarantee in ("exact", "lower")
    if answer.score_guarantee == "exact":
        assert answer.score == pytest.approx(own, abs=room)
    else:
        assert answer.score <= own + room
    assert answer.score <= best + room
    assert answer.upper_bound >= best - room
    if answer.optimal:
        assert answer.score >= best - max(room, answer.tolerance)
        assert answer.tolerance <= 1e-8 * max(1.0, abs(best))
    assert (answer.guarantee == "exact") == answer.optimal


def ask(spec: Spec, evidence: dict[int, Any], sought: list[int], method: Any, **keywords: Any) -> mf.Decoding | None:
    """The answer, checked; None where nothing is possible, and the method must say so, or that it was stopped."""
    oracle = spec.oracle(evidence)
    names = [spec.labels[v] for v in sought]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge.*")
        try:
            answer = mf.decode(spec.build(), spec.named(evidence), variables=names, method=method, rng=0, **keywords)
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return None
        except mf.StoppedError:
            # No quick search may find its way round hard constraints.
            assert "callback" in keywords
            return None
    assert not oracle.impossible
    check(answer, oracle, sought, spec.labels)
    return answer


def some(n: int, seed: int) -> list[int]:
    """None, one, some or all of n variables."""
    rng = np.random.default_rng(seed)
    count = (0, 1, n, *rng.integers(0, n + 1, 3))[seed % 6]
    return sorted(rng.permutation(n)[: min(count, n)].tolist())


@settings(max_examples=60, deadline=None)
@given(specs_with_evidence(), st.integers(0, 99))
def test_small_models_are_solved(case: tuple[Spec, dict], seed: int) -> None:
    spec, evidence = case
    answer = ask(spec, evidence, some(spec.n_variables, seed), "marginal_search")
    if answer is not None:
        assert answer.optimal
        assert answer.score_guarantee == "exact"


@pytest.mark.parametrize("seed", range(25))
def test_claims_hold(cut: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    spec = build_graph(Seeded(rng))
    for sought in (some(spec.n_variables, k) for k in range(6)):
        evidence: dict[int, Any] = {}
        for v in rng.permutation(spec.n_variables)[: rng.integers(0, 3)].tolist():
            card = spec.cardinalities[v]
            soft = rng.random(card) * (rng.random(card) < 0.7)
            evidence[v] = soft if rng.random() < 0.5 and soft.any() else int(rng.integers(card))
        ask(spec, evidence, sought, "marginal_search")


@pytest.mark.parametrize("interrupt", [False, True])
@pytest.mark.parametrize("calls", [1, 2, 4, 9, 20])
def test_stopped_after_some_steps(cut: str, calls: int, interrupt: bool) -> None:
    for seed in range(6):
        _, factors = frustrated_lattice(np.random.default_rng(seed), 3, 4, 2)
        net = mf.MarkovNetwork(dict.fromkeys(range(12), 2))
        for scope, table in factors:
            net.add_factor(list(scope), log_table=table)
        sought = [0, 3, 4, 7, 8, 11, 5][: 2 + seed]
        for method in ("marginal_search", "auto"):
            callback = StopAfter(calls, interrupt=interrupt)
            answer = mf.decode(net, variables=sought, method=method, rng=0, callback=callback)
            check(answer, Oracle([2] * 12, factors), sought)


def test_no_time_at_all(cut: str) -> None:
    net, factors = frustrated_lattice(np.random.default_rng(1), 3, 4, 2)
    for sought in ([0, 5], [3], list(range(0, 12, 2))):
        answer = mf.decode(net, variables=sought, method="marginal_search", rng=0, time_limit=1e-6)
        check(answer, Oracle([2] * 12, factors), sought)


def test_hard_constraints_when_stopped() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        spec = build_graph(Seeded(rng))
        for calls in (1, 3):
            ask(spec, {}, some(spec.n_variables, 3), "marginal_search", callback=StopAfter(calls))


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e100])
def test_any_order_of_magnitude(scale: float) -> None:
    _, factors = frustrated_lattice(np.random.default_rng(7), 3, 3, 2)
    scaled = [(scope, scale * table) for scope, table in factors]
    net = mf.MarkovNetwork(dict.fromkeys(range(9), 2))
    for scope, table in scaled:
        net.add_factor(list(scope), log_table=table)
    for sought in ([0, 4, 8], [2], list(range(9))):
        answer = mf.decode(net, variables=sought, method="marginal_search", rng=0)
        oracle = Oracle([2] * 9, scaled)
        best = oracle.marginal_map(sought)[0]
        assert answer.score == pytest.approx(best, rel=1e-9)
        assert answer.upper_bound >= best * (1 - 1e-9 * np.sign(best))
        assert answer.optimal
    with_all = mf.decode(net, variables=list(range(9)), method="marginal_search", rng=0)
    assert with_all.score == pytest.approx(oracle.best_score, rel=1e-12)


@pytest.mark.parametrize("largest", [2.0**18, 1.0])
def test_noisy_max(largest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its contributions are summed even where all variables are maximised."""
    monkeypatch.setattr(marginal_search, "LARGEST_TABLE", largest)
    monkeypatch.setattr(marginal_search, "SECONDS", 0.5)
    rng = np.random.default_rng(0)
    net = mf.BayesianNetwork(dict.fromkeys(range(5), 2))
    factors = []
    for v in range(3):
        p = rng.dirichlet(np.ones(2))
        net.add_cpt(v, [], p)
        factors.append(((v,), np.log(p)))
    for v in (3, 4):
        blocks, leak = [rng.dirichlet(np.ones(2), 2) for _ in range(3)], rng.dirichlet(np.ones(2))
        net.add_noisy_max(v, [0, 1, 2], blocks, leak)
        factors.append(((0, 1, 2, v), noisy_max_table([np.log(b) for b in blocks], np.log(leak))))
    for evidence in ({}, {4: 1}, {3: np.array([0.2, 0.9])}):
        oracle = Oracle([2] * 5, factors, evidence)
        for sought in ([0, 1, 2, 3, 4], [0, 2], [3, 4], []):
            answer = mf.decode(net, evidence, variables=sought, method="marginal_search", rng=0)
            check(answer, oracle, sought)
            assert answer.optimal


def test_auto_takes_the_search_where_summing_first_is_too_wide() -> None:
    rng = np.random.default_rng(3)
    n = 60
    net = mf.MarkovNetwork(dict.fromkeys(range(2 * n), 2))
    # Every summed variable meets two maximised ones, which are all joined: plain MAP of sixty variables.
    for i in range(n):
        net.add_factor([i, n + i], log_table=rng.normal(size=(2, 2)))
        net.add_factor([(7 * i + 3) % n, n + i], log_table=rng.normal(size=(2, 2)))
    for i, j in itertools.combinations(range(n), 2):
        net.add_factor([i, j], log_table=0.1 * rng.normal(size=(2, 2)))
    graph = net.compile()
    known = Evidence.parse(graph.structure, None)
    names = [m.name for m in candidates("auto", "decode", graph, known, variables=list(range(n)))]
    assert names == ["junction_tree", "marginal_search"]
    answer = mf.decode(graph, variables=list(range(n)), rng=0, time_limit=4)
    assert answer.method == "marginal_search"
    assert answer.score_guarantee == "exact"
    exact = float(mf.log_partition(graph, answer.assignment, method="junction_tree"))
    assert answer.score == pytest.approx(exact, abs=1e-8)
    assert answer.upper_bound >= answer.score
    assert explained(graph, list(range(n)))


def explained(graph: mf.FactorGraph, variables: list[int]) -> bool:
    found = mf.explain(graph, "decode", variables=variables)
    return found.method == "marginal_search" and "a search with bounds instead" in found.reason


def test_a_wide_sum_below_few_maximised_variables_is_bracketed() -> None:
    """A lattice too wide for the limits: components are bounded from below, and the answer says so."""
    net, _ = frustrated_lattice(np.random.default_rng(2), 9, 9, 2, field=1.0)
    graph = net.compile()
    sought = [0, 40, 80]
    best = mf.decode(graph, variables=sought, method="junction_tree")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginal_search, "LARGEST_TABLE", 2.0**4)
        patch.setattr(marginal_scores, "WORK_LIMIT", 2.0**6)
        patch.setattr(marginal_scores, "MiniBucket", lambda **_: mf.methods.MiniBucket(i_bound=4, max_iterations=20))
        patch.setattr(marginal_search, "BUCKETS", (((2,), 1.0), ((3, 4), 2.0**12)))
        answer = mf.decode(graph, variables=sought, method="marginal_search", rng=0)
    assert answer.score_guarantee == "lower"
    assert not answer.optimal
    own = float(mf.log_partition(graph, answer.assignment, method="junction_tree"))
    assert answer.score <= own + 1e-9
    assert best.score - 1e-9 <= answer.upper_bound < best.score + 10.0
    whole = mf.decode(graph, variables=sought, method="marginal_search", rng=0)
    assert whole.optimal
    assert whole.score == pytest.approx(best.score)


def test_refusals() -> None:
    net = mf.MarkovNetwork({0: 2})
    net.add_factor([0], [1.0, 2.0])
    with pytest.raises(mf.ModelError, match="finds one assignment, not the 2 best"):
        mf.decode(net, method="marginal_search", n_best=2)
    with pytest.raises(mf.ModelError, match="restarts of MarginalSearch must be at least 0"):
        mf.methods.MarginalSearch(restarts=-1)
