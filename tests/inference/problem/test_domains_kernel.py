"""Shrinking domains against brute force: arc consistency, barren variables, factors with zeros."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from markovfield.inference.problem.domains_kernel import (
    CHANGED,
    IMPOSSIBLE,
    UNCHANGED,
    PlainTables,
    factors_of_variables,
    factors_with_zeros,
    shrink_domains,
)
from tests.kernels.arrays import Flat, fixed, flat


def random_model(seed: int, zeros: float) -> Flat:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    cards = rng.integers(1, 4, n).tolist()
    factors = []
    for _ in range(int(rng.integers(0, 7))):
        scope = rng.permutation(n)[: rng.integers(0, 4)].tolist()
        factors.append((scope, np.where(rng.random([cards[v] for v in scope]) < zeros, -np.inf, 0.5)))
    return flat(cards, factors)


def plain_tables(model: Flat, child=None) -> PlainTables:
    widths = [int(sum(model.cardinalities[v] for v in scope)) for scope, _ in model.factors]
    return PlainTables(
        model.cardinalities,
        model.scope_offsets,
        model.scopes,
        model.table_offsets,
        model.table_strides,
        fixed([-1] * len(model.factors) if child is None else child, np.int32),
        fixed(model.variable_offsets, np.int64),
        fixed(model.variable_factors, np.int32),
        model.value_offsets,
        max([1, *(len(scope) for scope, _ in model.factors)]),
        max([1, *widths]),
    )


def shrink(model: Flat, evidence: list[int], *, child=None, keep=(), propagate=True, drop=False, possible=()) -> tuple:
    return shrink_domains(
        plain_tables(model, child),
        model.log_tables,
        fixed(evidence, np.int32),
        fixed(possible, np.bool_),
        fixed([], np.bool_),
        fixed(keep, np.bool_),
        propagate,
        drop,
    )


def consistent(model: Flat, evidence: list[int]) -> list[set[int]] | None:
    """Generalised arc consistency by its definition, pass after pass; None where a domain becomes empty."""
    domains = [set(range(c)) if e < 0 else {e} for c, e in zip(model.cardinalities.tolist(), evidence, strict=True)]
    while True:
        before = [set(d) for d in domains]
        for scope, table in model.factors:
            rows = [s for s in product(*(sorted(domains[v]) for v in scope)) if table[s] > -np.inf]
            if not rows:
                return None
            for axis, v in enumerate(scope):
                domains[v] &= {row[axis] for row in rows}
        if domains == before:
            return domains


@pytest.mark.parametrize("zeros", [0.2, 0.5])
@pytest.mark.parametrize("seed", range(30))
def test_domains_are_arc_consistent(seed: int, zeros: float):
    model = random_model(seed, zeros)
    rng = np.random.default_rng(seed)
    evidence = [int(rng.integers(0, c)) if rng.random() < 0.2 else -1 for c in model.cardinalities]
    status, sizes, domains, alive, barren = shrink(model, evidence)
    expected = consistent(model, evidence)
    assert alive.all() and not barren.any()
    if expected is None:
        assert status == IMPOSSIBLE
        return
    at = model.value_offsets
    found = [domains[at[v] : at[v] + sizes[v]].tolist() for v in range(len(sizes))]
    assert found == [sorted(d) for d in expected]
    whole = [list(range(c)) for c in model.cardinalities]
    assert status == (UNCHANGED if found == whole and max(evidence) < 0 else CHANGED)


def test_without_propagation_only_evidence_counts():
    model = flat([2, 2], [((0, 1), np.array([[0.0, -np.inf], [-np.inf, 0.0]]))])
    status, sizes, domains, _, _ = shrink(model, [1, -1], propagate=False)
    assert status == CHANGED and sizes.tolist() == [1, 2] and domains.tolist()[:1] == [1]


def test_states_that_likelihoods_rule_out():
    model = flat([3, 2], [((0, 1), np.zeros((3, 2)))])
    status, sizes, domains, _, _ = shrink(model, [-1, -1], possible=[False, True, True, True, True])
    assert status == CHANGED and sizes.tolist() == [2, 2] and domains[:2].tolist() == [1, 2]
    assert shrink(model, [-1, -1], possible=[True, True, True, False, False])[0] == IMPOSSIBLE


def test_evidence_that_is_no_state_is_named():
    assert shrink(flat([2, 3], []), [-1, 3])[0] == -2


def test_barren_leaves_fall_one_after_the_other():
    """0 -> 1 -> 2, 0 -> 3: without evidence below, 2 goes and then 1; 3 is observed and stays."""
    half = np.log(np.full((2, 2), 0.5))
    factors = [((0,), half[0]), ((0, 1), half), ((1, 2), half), ((0, 3), half)]
    model = flat([2] * 4, factors)
    given = {"child": [0, 1, 2, 3], "drop": True}
    _, _, _, alive, barren = shrink(model, [-1, -1, -1, 0], **given)
    assert barren.tolist() == [False, True, True, False] and alive.tolist() == [True, False, False, True]
    _, _, _, _, barren = shrink(model, [-1, -1, -1, 0], keep=[False, True, False, False], **given)
    assert barren.tolist() == [False, False, True, False]


@pytest.mark.parametrize("seed", range(10))
def test_factors_by_variable_and_with_zeros(seed: int):
    model = random_model(seed, 0.15)
    offsets, factors = factors_of_variables(len(model.cardinalities), model.scope_offsets, model.scopes)
    for v in range(len(model.cardinalities)):
        own = [f for f, (scope, _) in enumerate(model.factors) if v in scope]
        assert factors[offsets[v] : offsets[v + 1]].tolist() == own
    found = factors_with_zeros(plain_tables(model), model.log_tables)
    assert found.tolist() == [bool(np.isneginf(table).any()) for _, table in model.factors]


def test_what_one_factor_removes_is_passed_on():
    """Equal neighbours in a row, the factors listed from the far end: each is looked at again."""
    equal = np.where(np.eye(3) > 0, 0.0, -np.inf)
    model = flat([3] * 4, [((2, 3), equal), ((1, 2), equal), ((0, 1), equal)])
    status, sizes, domains, _, _ = shrink(model, [2, -1, -1, -1])
    assert status == CHANGED and sizes.tolist() == [1] * 4 and domains[::3].tolist() == [2] * 4
