"""Taking leaves off a factor graph, against doing it by sets."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.inference.trws.passes_kernel import peel
from tests.kernels.arrays import flat, random_forest


def call(model) -> tuple:
    return peel(model.variable_offsets, model.variable_axes, model.owner, model.scope_offsets, model.scopes)


def core(n: int, scopes: list[set[int]]) -> set[int]:
    """Variables left when those in at most one factor that joins two have gone, again and again."""
    left = set(range(n))
    while True:
        live = [s & left for s in scopes if len(s & left) > 1]
        leaves = {v for v in left if sum(v in s for s in live) <= 1}
        if not leaves:
            return left
        left -= leaves


@pytest.mark.parametrize("seed", range(25))
def test_what_is_left_has_no_leaves(seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    scopes = (
        [rng.permutation(n)[: rng.integers(2, 4)].tolist() for _ in range(int(rng.integers(0, 10)))] if n > 1 else []
    )
    model = flat([2] * n, [(s, np.zeros([2] * len(s))) for s in scopes])
    order, taken, role = call(model)
    assert sorted(order.tolist()) == np.flatnonzero(taken).tolist()
    assert set(np.flatnonzero(~taken).tolist()) == core(n, [set(s) for s in scopes])
    # In its turn, each variable has at most one factor that joins it to others not yet taken.
    gone: set[int] = set()
    for v in order.tolist():
        assert sum(v in s and len(set(s) - gone) > 1 for s in scopes) <= 1
        gone.add(v)
    for axis, v in enumerate(model.scopes.tolist()):
        assert role[axis] in (0, 1, 2) and (role[axis] != 2 or taken[v])


@pytest.mark.parametrize("seed", range(6))
def test_forests_are_taken_whole(seed: int):
    model = flat(*random_forest(seed))
    order, taken, role = call(model)
    assert taken.all() and len(order) == len(model.cardinalities)
    for f, (scope, _) in enumerate(model.factors):
        own = role[model.scope_offsets[f] : model.scope_offsets[f + 1]].tolist()
        assert own.count(1) == 1 and own.count(2) == len(scope) - 1, "all but the last of a factor hang on it"


def test_a_tail_goes_and_the_cycle_it_hangs_on_stays():
    scopes = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)]
    order, taken, role = call(flat([2] * 5, [(s, np.zeros((2, 2))) for s in scopes]))
    assert order.tolist() == [4, 3] and taken.tolist() == [False] * 3 + [True] * 2
    assert role.tolist() == [0] * 6 + [1, 2] + [1, 2]
