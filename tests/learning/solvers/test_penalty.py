"""Penalties against their definitions, proximal steps and subgradients against what they minimise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from markovfield.exceptions import ModelError
from markovfield.learning.solvers.penalty import Penalty

GROUPS = np.array([0, 0, -1, 2, 2, 2, -1, 0])
seeds = st.integers(0, 10_000)


def drawn(seed: int) -> tuple[np.random.Generator, Penalty]:
    rng = np.random.default_rng(seed)
    l1 = rng.uniform(0, 1, 8) * (rng.uniform(size=8) < 0.7)
    l2, scale, mean = rng.uniform(0, 2, 8), rng.uniform(0.5, 2, 8), rng.normal(size=8)
    return rng, Penalty(l2=l2, l1=l1, groups=GROUPS, group_l1=rng.uniform(0, 1), scale=scale, mean=mean)


def by_definition(p: Penalty, w: np.ndarray) -> float:
    total = np.sum(p.l2 / 2 * ((w - p.mean) / p.scale) ** 2) + np.sum(p.l1 * np.abs(w))
    for group in (0, 2):
        inside = w[group == p.groups]
        total += p.group_l1 * np.sqrt(len(inside)) * np.linalg.norm(inside)
    return float(total)


@given(seeds)
def test_value_and_gradient_of_the_definition(seed: int):
    rng, p = drawn(seed)
    w = rng.normal(size=8)
    w[GROUPS == 2] *= rng.integers(2)
    assert p.value(w) == pytest.approx(by_definition(p, w))
    assert p.kinked(w) == pytest.approx(by_definition(p, w) - p.smooth(w)[0])
    h = 1e-6
    slopes = [(p.smooth(w + h * e)[0] - p.smooth(w - h * e)[0]) / (2 * h) for e in np.eye(8)]
    np.testing.assert_allclose(p.smooth(w)[1], slopes, atol=1e-6)


@given(seeds, st.booleans())
def test_no_step_from_a_proximal_point_is_lower(seed: int, each: bool):
    rng, p = drawn(seed)
    w = rng.normal(size=8) * 2
    step = rng.uniform(0.05, 3.0, 8) if each else float(rng.uniform(0.05, 3.0))
    found = p.prox(w, step)

    def cost(v: np.ndarray) -> float:
        return float(np.sum((v - w) ** 2 / (2 * np.asarray(step)))) + p.kinked(v)

    best = cost(found)
    # The cost is strongly convex: no lower value near by, also in single groups, is a proof up to its size.
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(20):
            away = rng.normal(size=8) * rng.integers(2, size=8)
            assert cost(found + size * away) >= best - 1e-12
    # The subgradient of the cost at its minimum vanishes.
    assert p.optimality(found, (found - w) / step) < 1e-8


def test_equal_steps_for_each_are_one_step():
    rng, p = drawn(3)
    w = rng.normal(size=8) * 3
    np.testing.assert_allclose(p.prox(w, np.full(8, 0.4)), p.prox(w, 0.4), atol=1e-12)
    assert (p.prox(w, 100.0) == 0)[(GROUPS >= 0)].all()


@given(seeds)
def test_the_shortest_subgradient(seed: int):
    """Its negative is the direction of steepest descent: minus its norm is the smallest slope of any unit direction."""
    rng, p = drawn(seed)
    w = rng.normal(size=8) * rng.integers(2, size=8)
    gradient = rng.normal(size=8) * 2
    found = p.subgradient(w, gradient)
    norm, h = float(np.linalg.norm(found)), 1e-7

    def slope(d: np.ndarray) -> float:
        return float(gradient @ d) + (p.kinked(w + h * d) - p.kinked(w)) / h

    for _ in range(50):
        d = rng.normal(size=8)
        assert slope(d / np.linalg.norm(d)) >= -norm - 1e-5
    if norm > 1e-3:
        assert slope(-found / norm) == pytest.approx(-norm, abs=1e-5)


def test_the_largest_penalty_that_matters():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(20, 8))
    goal = rng.normal(size=20)

    def solved(group_l1: float) -> np.ndarray:
        penalty = Penalty(l1=0.5, groups=GROUPS, group_l1=group_l1)
        w, step = np.zeros(8), 1 / np.linalg.norm(root, 2) ** 2
        for _ in range(4000):
            w = penalty.prox(w - step * root.T @ (root @ w - goal), step)
        return w

    free = GROUPS < 0

    def lasso(v: np.ndarray) -> float:
        return float(0.5 * np.sum((root[:, free] @ v - goal) ** 2) + 0.5 * np.abs(v).sum())

    rest = np.zeros(8)
    rest[free] = minimize(lasso, np.ones(2), method="Nelder-Mead", options={"xatol": 1e-12, "fatol": 1e-14}).x
    largest = Penalty(l1=0.5, groups=GROUPS).max_group_penalty(root.T @ (root @ rest - goal))
    assert largest > 0
    assert not solved(largest * 1.0001)[~free].any()
    assert solved(largest * 0.99)[~free].any()
    assert Penalty().max_group_penalty(np.ones(3)) == 0.0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"l1": -1.0}, "l1 of Penalty must be at least 0, got -1"),
        ({"l2": np.array([1.0, np.nan])}, "l2 of Penalty must be a finite number"),
        ({"scale": 0.0}, "scale of Penalty must be positive, got 0"),
        ({"group_l1": 1.0}, "group_l1 of Penalty needs groups"),
        ({"group_l1": np.inf, "groups": GROUPS}, "group_l1 of Penalty must be finite"),
        ({"groups": np.array([-2, 0])}, "integers of at least -1"),
        ({"groups": np.array([0.5])}, "integers of at least -1"),
    ],
)
def test_what_is_refused(settings: dict[str, object], said: str):
    with pytest.raises(ModelError, match=said):
        Penalty(**settings)


def test_parts_for_another_number_of_weights():
    with pytest.raises(ModelError, match="groups of Penalty has 8 entries, and there are 3 weights"):
        Penalty(groups=GROUPS).check(3)
    with pytest.raises(ModelError, match="l1 of Penalty has 2 entries"):
        Penalty(l1=np.ones(2)).check(3)
