"""Reduction against brute force: nothing of positive probability is lost, and the way back is right."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import prepare
from markovfield.inference.problem.reduction import Reduced, reduce, zeros_in_factors
from tests.oracle import Oracle
from tests.strategies import specs, specs_with_evidence


def read_table(s: Structure, log_tables: np.ndarray, f: int) -> tuple[tuple[int, ...], np.ndarray]:
    """Scope and dense table of a factor, read cell by cell from its offset and strides."""
    scope = tuple(int(v) for v in s.scopes[s.scope_offsets[f] : s.scope_offsets[f + 1]])
    strides = [int(t) for t in s.table_strides[s.scope_offsets[f] : s.scope_offsets[f + 1]]]
    shape = tuple(int(s.cardinalities[v]) for v in scope)
    table = np.empty(shape)
    for states in np.ndindex(*shape):
        cell = int(s.table_offsets[f]) + sum(t * x for t, x in zip(strides, states, strict=True))
        assert 0 <= cell < len(log_tables)
        table[states] = log_tables[cell]
    return scope, table


def brute(s: Structure, log_tables: np.ndarray, evidence: dict[int, int] | None = None) -> Oracle:
    factors = [read_table(s, log_tables, f) for f in range(len(s.table_offsets))]
    return Oracle(s.cardinalities.tolist(), factors, evidence)


def states_of(reduced: Reduced, v: int) -> list[int]:
    return reduced.states[reduced.state_offsets[v] : reduced.state_offsets[v + 1]].tolist()


def clamps(n: int, evidence: dict[int, Any]) -> np.ndarray:
    states = np.full(n, -1, np.int32)
    for v, state in evidence.items():
        states[v] = state
    return states


def check_arrays(reduced: Reduced, s: Structure, log_tables: np.ndarray) -> None:
    """Everything that must hold of a reduced problem whatever the model."""
    r = reduced.structure
    assert r.names is s.names
    assert len(r.cardinalities) == s.n_variables
    assert r.n_cells == len(reduced.log_tables)
    assert len(reduced.cell_origin) == len(reduced.log_tables) - len(log_tables)
    assert np.array_equal(reduced.log_tables[: len(log_tables)], log_tables)
    assert np.array_equal(reduced.log_tables[len(log_tables) :], log_tables[reduced.cell_origin])
    if not len(reduced.cell_origin):
        assert reduced.log_tables is log_tables
    assert len(reduced.factors) == r.n_factors == len(r.child) == len(r.kind)
    dtypes = [
        (r.cardinalities, np.int32),
        (r.scope_offsets, np.int64),
        (r.scopes, np.int32),
        (r.table_offsets, np.int64),
        (r.table_strides, np.int64),
        (r.child, np.int32),
        (r.kind, np.int8),
        (reduced.log_tables, np.float64),
        (reduced.state_offsets, np.int64),
        (reduced.states, np.int32),
        (reduced.cell_origin, np.int64),
        (reduced.factors, np.int32),
        (reduced.barren, np.bool_),
    ]
    for array, dtype in dtypes:
        assert array.dtype == dtype
        assert not array.flags.writeable and array.flags.c_contiguous
    for v in range(s.n_variables):
        states = states_of(reduced, v)
        assert len(states) == r.cardinalities[v] >= 1
        assert states == sorted(set(states)) and states[0] >= 0 and states[-1] < s.cardinalities[v]
    if r is not s:
        assert not np.any(r.cardinalities[r.scopes] == 1)
    for g, f in enumerate(reduced.factors.tolist()):
        before, after = s.scope(f).tolist(), r.scope(g).tolist()
        kept = [v for v in before if v in after]
        assert kept == after
        scope, table = read_table(r, reduced.log_tables, g)
        whole_scope, whole = read_table(s, log_tables, f)
        assert np.array_equal(table.ravel(), whole[np.ix_(*[states_of(reduced, v) for v in whole_scope])].ravel())
        child = int(r.child[g])
        assert child in (-1, int(s.child[f]))
        if child >= 0:
            np.testing.assert_allclose(np.exp(table).sum(axis=scope.index(child)), 1.0, atol=1e-8)


def compiled(spec: Any) -> mf.FactorGraph:
    return spec.build().compile().to_tables()


@given(specs_with_evidence("graph", virtual=False), st.booleans(), st.booleans())
def test_partition_and_domains_of_any_graph(pair, propagate, known):
    spec, evidence = pair
    graph = compiled(spec)
    s, tables = graph.structure, graph.log_tables
    before = [np.array(a) for a in (s.cardinalities, s.scopes, s.table_offsets, s.table_strides, s.child, tables)]
    given_states = clamps(s.n_variables, evidence)
    has_zeros = zeros_in_factors(s, tables) if known else None
    reduced = reduce(s, tables, given_states, propagate_zeros=propagate, has_zeros=has_zeros)
    after = [s.cardinalities, s.scopes, s.table_offsets, s.table_strides, s.child, tables]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert given_states.flags.writeable
    assert np.array_equal(given_states, clamps(s.n_variables, evidence))
    check_arrays(reduced, s, tables)
    oracle = spec.oracle(evidence)
    if reduced.impossible:
        assert propagate
        assert oracle.impossible
        assert reduced.structure is s
        return
    small = brute(reduced.structure, reduced.log_tables)
    assert small.impossible == oracle.impossible
    for v, state in evidence.items():
        assert states_of(reduced, v) == [state]
    if not oracle.impossible:
        assert small.log_partition == pytest.approx(oracle.log_partition, abs=1e-9)
        for v in range(spec.n_variables):
            full = np.zeros(spec.cardinalities[v])
            full[states_of(reduced, v)] = small.marginal(v)
            np.testing.assert_allclose(full, oracle.marginal(v), atol=1e-9)
    if not propagate:
        for v in range(s.n_variables):
            assert v in evidence or states_of(reduced, v) == list(range(int(s.cardinalities[v])))


@given(specs_with_evidence("forest", virtual=False))
def test_domains_are_exact_on_forests(pair):
    spec, evidence = pair
    graph = compiled(spec)
    reduced = reduce(graph.structure, graph.log_tables, clamps(spec.n_variables, evidence))
    oracle = spec.oracle(evidence)
    assert reduced.impossible == oracle.impossible
    if not oracle.impossible:
        for v in range(spec.n_variables):
            assert states_of(reduced, v) == np.flatnonzero(np.isfinite(oracle.max_marginal(v))).tolist()


@given(specs_with_evidence("bayesian", virtual=False), st.data())
def test_barren_variables_change_nothing_that_is_asked(pair, data):
    spec, evidence = pair
    graph = compiled(spec)
    s, tables = graph.structure, graph.log_tables
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=s.n_variables, max_size=s.n_variables)))
    propagate = data.draw(st.booleans())
    states = clamps(s.n_variables, evidence)
    reduced = reduce(s, tables, states, drop_barren=True, keep=keep, propagate_zeros=propagate)
    oracle = spec.oracle(evidence)
    if reduced.impossible:
        assert oracle.impossible
        return
    check_arrays(reduced, s, tables)
    assert not np.any(reduced.barren & (keep | (states >= 0)))
    # What is left is what has an observed or a kept variable among itself and its descendants.
    needed = keep | (states >= 0)
    for _ in range(s.n_variables):
        for f in range(s.n_factors):
            if needed[s.child[f]]:
                needed[s.scope(f)] = True
    assert np.array_equal(reduced.barren, ~needed)
    assert reduced.factors.tolist() == [f for f in range(s.n_factors) if needed[s.child[f]]]
    for v in np.flatnonzero(reduced.barren):
        assert states_of(reduced, v) == [0]
        assert v not in reduced.structure.scopes
    small = brute(reduced.structure, reduced.log_tables)
    assert small.impossible == oracle.impossible
    if oracle.impossible:
        return
    assert small.log_partition == pytest.approx(oracle.log_partition, abs=1e-9)
    for v in np.flatnonzero(keep):
        full = np.zeros(spec.cardinalities[v])
        full[states_of(reduced, v)] = small.marginal(v)
        np.testing.assert_allclose(full, oracle.marginal(v), atol=1e-9)


def naive_consistency(s: Structure, log_tables: np.ndarray, states: np.ndarray) -> list[list[int]] | None:
    """Arc consistency by its definition: shrink until nothing shrinks; None when a domain is empty."""
    domains = [list(range(c)) if e < 0 else [int(e)] for c, e in zip(s.cardinalities.tolist(), states, strict=True)]
    tables = [read_table(s, log_tables, f) for f in range(s.n_factors)]
    while True:
        before = [list(d) for d in domains]
        for scope, table in tables:
            above = table[np.ix_(*[domains[v] for v in scope])] > -np.inf
            for axis, v in enumerate(scope):
                others = tuple(a for a in range(len(scope)) if a != axis)
                found = above.any(axis=others)
                above = np.compress(found, above, axis=axis)
                domains[v] = [x for x, yes in zip(domains[v], found, strict=True) if yes]
            if not above.any():
                return None
        if domains == before:
            return domains


def sparse_model(seed: int) -> tuple[Structure, np.ndarray, np.ndarray]:
    """Mostly zeros, one solution hidden in most of them; tied tables, odd strides, large domains."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    cards = rng.integers(1, 8, n)
    hidden = rng.integers(0, cards)
    offsets, scopes, bases, strides, pool = [0], [], [], [], 0
    cells = []
    for _ in range(int(rng.integers(1, 9))):
        scope = rng.permutation(n)[: rng.integers(0, min(n, 4) + 1)]
        if rng.random() < 0.2 and bases:
            scope = np.array(scopes[offsets[-2] :], int)  # tied: the same cells again
            bases.append(bases[-1])
            strides += strides[offsets[-2] :]
        else:
            order = rng.permutation(len(scope))
            step = np.ones(len(scope), int)
            for before, axis in pairwise(order):
                step[axis] = step[before] * cards[scope[before]]
            bases.append(pool)
            strides += step.tolist()
            pool += int(np.prod(cards[scope]))
            if rng.random() < 0.95:
                cells.append(bases[-1] + int((step * hidden[scope]).sum()))
        scopes += scope.tolist()
        offsets.append(len(scopes))
    tables = np.where(rng.random(pool) < rng.choice([0.05, 0.2, 0.5]), rng.normal(size=pool), -np.inf)
    tables[cells] = 0.0
    tables.setflags(write=False)
    states = np.where(rng.random(n) < 0.15, hidden, -1).astype(np.int32)
    return Structure.from_arrays(cards, offsets, scopes, bases, strides, n_cells=pool), tables, states


def test_domains_are_those_of_the_definition():
    outcomes = {"impossible": 0, "copied": 0, "shrunk": 0}
    for seed in range(300):
        s, tables, states = sparse_model(seed)
        reduced = reduce(s, tables, states, has_zeros=zeros_in_factors(s, tables) if seed % 2 else None)
        check_arrays(reduced, s, tables)
        expected = naive_consistency(s, tables, states)
        assert reduced.impossible == (expected is None), seed
        if expected is not None:
            assert [states_of(reduced, v) for v in range(s.n_variables)] == expected, seed
            assert len(reduced.factors) == s.n_factors
            outcomes["copied"] += len(reduced.cell_origin) > 0
            outcomes["shrunk"] += reduced.structure is not s
        outcomes["impossible"] += reduced.impossible
    assert min(outcomes.values()) > 20, outcomes


@given(specs("graph"))
def test_zeros_in_factors(spec):
    graph = compiled(spec)
    s = graph.structure
    expected = [bool(np.isneginf(read_table(s, graph.log_tables, f)[1]).any()) for f in range(s.n_factors)]
    assert zeros_in_factors(s, graph.log_tables).tolist() == expected


@given(specs("graph", hard=False))
def test_nothing_to_do_returns_the_same_objects(spec):
    graph = compiled(spec)
    s = graph.structure
    # In plain tables, clauses have hard zeros, which may shrink the auxiliary variables.
    if np.isneginf(graph.log_tables).any():
        return
    reduced = reduce(s, graph.log_tables, np.full(s.n_variables, -1, np.int32), drop_barren=True)
    assert reduced.structure is s
    assert reduced.log_tables is graph.log_tables
    assert not reduced.impossible and not len(reduced.cell_origin) and not reduced.barren.any()
    check_arrays(reduced, s, graph.log_tables)


def test_zeros_that_exclude_no_state_return_the_same_objects():
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A", "B"], np.eye(2))
    graph = net.compile()
    reduced = reduce(graph.structure, graph.log_tables, np.array([-1, -1], np.int32))
    assert reduced.structure is graph.structure
    assert reduced.log_tables is graph.log_tables


def shrunk_by_unary(allowed: list[float], tied: int = 1) -> tuple[mf.FactorGraph, Reduced]:
    net = mf.MarkovNetwork({"A": len(allowed), "B": 2, "C": 2, "D": 2})
    net.add_factor(["A"], allowed)
    net.add_factors(
        [["A", "B"], ["A", "C"], ["A", "D"]][:tied],
        log_table=np.arange(2.0 * len(allowed)).reshape(len(allowed), 2),
    )
    net.add_factor(["B", "C"], [[1.0, 2.0], [3.0, 4.0]])
    graph = net.compile()
    return graph, reduce(graph.structure, graph.log_tables, np.full(4, -1, np.int32))


@pytest.mark.parametrize("allowed", [[0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [0, 0, 1, 1, 1]])
def test_evenly_spaced_domains_keep_the_pool_and_the_ties(allowed):
    graph, reduced = shrunk_by_unary([float(a) for a in allowed], tied=3)
    assert states_of(reduced, 0) == np.flatnonzero(allowed).tolist()
    assert reduced.log_tables is graph.log_tables
    r = reduced.structure
    assert len(set(r.table_offsets[1:4].tolist())) == 1
    check_arrays(reduced, graph.structure, graph.log_tables)


def test_other_domains_get_compact_copies_of_their_own_factors_only():
    graph, reduced = shrunk_by_unary([1.0, 1.0, 0.0, 1.0], tied=2)
    s, r = graph.structure, reduced.structure
    assert states_of(reduced, 0) == [0, 1, 3]
    # The unary factor, then two tables of 3 x 2, last axis fastest.
    pair = [4, 5, 6, 7, 10, 11]
    assert reduced.cell_origin.tolist() == [0, 1, 3, *pair, *pair]
    assert r.table_offsets.tolist() == [s.n_cells, s.n_cells + 3, s.n_cells + 9, int(s.table_offsets[3])]
    assert r.strides(1).tolist() == [2, 1]
    check_arrays(reduced, s, graph.log_tables)


def test_copies_of_strided_and_broadcast_axes():
    # Axes against C order, and one of stride zero, as shared and sliced tables have them.
    structure = Structure.from_arrays([4, 3, 2, 4], [0, 3, 4], [0, 1, 2, 0], [5, 0], [1, 4, 0, 1], n_cells=17)
    tables = np.arange(17.0)
    tables[2] = -np.inf
    tables.setflags(write=False)
    reduced = reduce(structure, tables, np.full(4, -1, np.int32))
    assert states_of(reduced, 0) == [0, 1, 3]
    assert len(reduced.cell_origin) == 9 + 3
    check_arrays(reduced, structure, tables)
    assert brute(reduced.structure, reduced.log_tables).log_partition == pytest.approx(
        brute(structure, tables).log_partition
    )


def test_evidence_needs_no_copy_and_leaves_constants():
    net = mf.MarkovNetwork({"A": 3, "B": 2})
    net.add_factor(["A", "B"], np.arange(1.0, 7.0).reshape(3, 2))
    net.add_factor(["A"], [1.0, 2.0, 3.0])
    graph = net.compile()
    reduced = reduce(graph.structure, graph.log_tables, np.array([2, -1], np.int32))
    assert reduced.log_tables is graph.log_tables
    assert np.diff(reduced.structure.scope_offsets).tolist() == [1, 0]
    assert graph.log_tables[reduced.structure.table_offsets[1]] == pytest.approx(np.log(3.0))


def test_zeros_travel_along_a_chain_both_ways():
    n, k = 60, 5
    net = mf.MarkovNetwork(dict.fromkeys(range(n), k))
    shift = np.eye(k, k=1)  # each variable is one below the next
    net.add_factors([[i, i + 1] for i in range(0, 4)], shift)
    net.add_factors([[i, i + 1] for i in range(4, n - 1)], np.eye(k))
    graph = net.compile()
    reduced = reduce(graph.structure, graph.log_tables, np.full(n, -1, np.int32))
    assert reduced.states.tolist() == [0, 1, 2, 3, *[4] * (n - 4)]
    assert len(reduced.structure.scopes) == 0
    states = np.full(n, -1, np.int32)
    states[n - 1] = 3
    assert reduce(graph.structure, graph.log_tables, states).impossible


@pytest.mark.parametrize("count", [0, 3, 12, 21])
def test_wide_factors_cost_little_more_than_their_cells(count):
    # Twenty-one bits that must sum to a number: a pool of 22 cells, two million configurations.
    n = 21
    structure = Structure.from_arrays([2] * n, [0, n], range(n), [0], [1] * n, n_cells=n + 1)
    tables = np.full(n + 1, -np.inf)
    tables[count] = 0.0
    tables.setflags(write=False)
    reduced = reduce(structure, tables, np.full(n, -1, np.int32))
    assert not reduced.impossible
    assert reduced.states.tolist() == {0: [0] * n, n: [1] * n}.get(count, [0, 1] * n)


def test_impossible_constant_and_impossible_pair():
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A", "B"], np.eye(2))
    graph = net.compile()
    states = np.array([0, 1], np.int32)
    reduced = reduce(graph.structure, graph.log_tables, states)
    assert reduced.impossible
    assert reduced.structure is graph.structure
    assert not reduce(graph.structure, graph.log_tables, states, propagate_zeros=False).impossible
    net = mf.MarkovNetwork({"A": 2})
    net.add_factor([], 0.0)
    graph = net.compile()
    assert reduce(graph.structure, graph.log_tables, np.array([-1], np.int32)).impossible


def test_child_flags():
    net = mf.BayesianNetwork({"P": 2, "C": 3, "D": 2})
    net.add_cpt("P", [], [0.5, 0.5])
    net.add_cpt("C", ["P"], [[0.2, 0.8, 0.0], [0.1, 0.4, 0.5]])
    net.add_cpt("D", ["C"], [[0.5, 0.5], [0.3, 0.7], [0.0, 1.0]])
    graph = net.compile()

    def child(*states: int) -> list[int]:
        return reduce(graph.structure, graph.log_tables, np.array(states, np.int32)).structure.child.tolist()

    assert child(-1, -1, -1) == [0, 1, 2]
    # P=0 rules out C=2, which had no probability there: still a distribution. D only lost parent states.
    assert child(0, -1, -1) == [-1, 1, 2]
    # D=0 rules out C=2 while P=1 gave it some: no longer a distribution.
    assert child(-1, -1, 0) == [0, -1, -1]
    assert child(-1, 1, -1) == [0, -1, 2]


def test_barren_without_keep_drops_a_whole_network():
    net = mf.BayesianNetwork({"A": 2, "B": 3, "C": 2})
    net.add_cpt("A", [], [0.4, 0.6])
    net.add_cpt("B", ["A"], [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    net.add_cpt("C", ["A", "B"], np.full((2, 3, 2), 0.5))
    graph = net.compile()
    reduced = reduce(graph.structure, graph.log_tables, np.full(3, -1, np.int32), drop_barren=True)
    assert reduced.barren.all()
    assert reduced.structure.n_factors == 0
    reduced = reduce(graph.structure, graph.log_tables, np.array([-1, 2, -1], np.int32), drop_barren=True)
    assert reduced.barren.tolist() == [False, False, True]
    assert reduced.factors.tolist() == [0, 1]


def test_no_variables_and_no_factors():
    for cards in ([], [2, 3]):
        structure = Structure.from_arrays(cards, [0], [], [], n_cells=0)
        tables = np.zeros(0)
        tables.setflags(write=False)
        reduced = reduce(structure, tables, np.full(len(cards), -1, np.int32), drop_barren=True)
        assert reduced.structure is structure
    reduced = reduce(structure, tables, np.array([1, -1], np.int32))
    assert reduced.structure.cardinalities.tolist() == [1, 3]
    assert reduced.states.tolist() == [1, 0, 1, 2]


def test_a_state_out_of_range_is_named():
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A", "B"], np.ones((2, 2)))
    graph = net.compile()
    with pytest.raises(ModelError, match="evidence on variable 'B' is state 2, outside 0 to 1"):
        reduce(graph.structure, graph.log_tables, np.array([0, 2], np.int32))


def test_arrays_of_another_model_are_refused():
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_factor(["A", "B"], np.ones((2, 2)))
    graph = net.compile()
    s, none = graph.structure, np.full(2, -1, np.int32)
    with pytest.raises(ModelError, match=r"evidence_states must have shape \(2,\), got \(3,\)"):
        reduce(s, graph.log_tables, np.full(3, -1, np.int32))
    with pytest.raises(ModelError, match=r"log_tables must have shape \(4,\), got \(5,\)"):
        reduce(s, np.zeros(5), none)
    with pytest.raises(ModelError, match=r"keep must have shape \(2,\), got \(0,\)"):
        reduce(s, graph.log_tables, none, keep=np.zeros(0, bool))
    with pytest.raises(ModelError, match=r"has_zeros must have shape \(1,\), got \(2,\)"):
        reduce(s, graph.log_tables, none, has_zeros=np.zeros(2, bool))


def test_structured_factors_must_be_tables_first():
    net = mf.MarkovNetwork({"A": 2, "B": 2})
    net.add_clause({"A": 1, "B": 1}, weight=1.0)
    graph = net.compile()
    with pytest.raises(AssertionError, match=r"call to_tables\(\) first"):
        reduce(graph.structure, graph.log_tables, np.array([-1, -1], np.int32))


def test_a_parsed_evidence_feeds_straight_in():
    net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    net.add_cpt("rain", [], [0.8, 0.2])
    net.add_cpt("wet", ["rain"], [[1.0, 0.0], [0.2, 0.8]])
    graph = net.compile()
    evidence = Evidence.parse(graph.structure, {"wet": "yes"})
    reduced = reduce(graph.structure, graph.log_tables, evidence.states)
    assert reduced.states.tolist() == [1, 1]
    total = reduced.log_tables[reduced.structure.table_offsets].sum()
    assert total == pytest.approx(np.log(0.2 * 0.8))


@given(specs_with_evidence("forest"))
def test_likelihoods_of_zero_shrink_domains_like_any_zero(pair):
    spec, evidence = pair
    graph = compiled(spec)
    oracle = spec.oracle(evidence)
    known = Evidence.parse(graph.structure, spec.named(evidence))
    if oracle.impossible:
        with pytest.raises(mf.ImpossibleEvidenceError):
            prepare(graph, known)
        return
    problem = prepare(graph, known)
    for v in range(spec.n_variables):
        left = np.arange(spec.cardinalities[v])
        if problem.reduced is not None:
            left = np.array(states_of(problem.reduced, v))
        assert left.tolist() == np.flatnonzero(np.isfinite(oracle.max_marginal(v))).tolist()
    # On a forest nothing is left that a search could run into: any wish leads to a possible assignment.
    wishes = np.arange(float(problem.structure.cardinalities.sum()))
    found = Feasible.of(problem).assignment(wishes)
    assert np.isfinite(oracle.score(problem.states(found)))
