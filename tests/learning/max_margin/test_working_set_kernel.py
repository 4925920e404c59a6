"""Ascent of the dual on planes: against a QP solved by SciPy, and what must hold after every step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from markovfield.learning.max_margin.problem import Planes
from markovfield.learning.max_margin.working_set import STEPS, WorkingSet
from markovfield.learning.max_margin.working_set_kernel import climb

steps = pytest.mark.parametrize("steps", STEPS)


def random_planes(rng, n_blocks, n_weights):
    """One plane for each block, sparse."""
    dense = rng.normal(size=(n_blocks, n_weights)) * (rng.random((n_blocks, n_weights)) < 0.6)
    rows, columns = np.nonzero(dense)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_blocks))])
    return Planes(np.arange(n_blocks), offsets, columns.astype(np.int64), dense[rows, columns], rng.random(n_blocks))


def kept_planes(kept):
    """Block, features, loss and mass of all that is kept, true outputs too."""
    found = []
    for block, (count, _, first, _) in enumerate(kept._layout.T):
        for slot in range(first, first + count):
            start, size = kept._slots[:2, slot]
            a = np.bincount(kept._columns[start : start + size], kept._values[start : start + size], len(kept.w))
            found.append((block, a, kept._losses[slot], kept.masses[slot]))
    return found


def smoothest(costs, kept):
    """The primal over the planes that are kept, as a QP with slacks, by SLSQP."""
    n_blocks, n = len(costs), len(kept.w)
    every = kept_planes(kept)
    A, b = np.zeros((len(every), n + n_blocks)), np.array([loss for _, _, loss, _ in every])
    for i, (block, a, _, _) in enumerate(every):
        A[i, :n], A[i, n + block] = a, 1.0
    found = minimize(
        lambda z: 0.5 * z[:n] @ z[:n] + costs @ z[n:],
        np.concatenate([np.zeros(n), np.ones(n_blocks)]),
        jac=lambda z: np.concatenate([z[:n], costs]),
        constraints={"type": "ineq", "fun": lambda z: A @ z - b, "jac": lambda z: A},
        bounds=[(None, None)] * n + [(0, None)] * n_blocks,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success
    return found.fun, found.x[:n]


def check_invariants(kept):
    """Masses add up to costs and make the weights and the dual; inner products are those of planes."""
    every = kept_planes(kept)
    sums, w, gain = np.zeros(len(kept.costs)), np.zeros(len(kept.w)), 0.0
    for block, a, loss, mass in every:
        assert mass >= 0
        sums[block] += mass
        w += mass * a
        gain += mass * loss
    np.testing.assert_allclose(sums, kept.costs)
    np.testing.assert_allclose(kept.w, w, atol=1e-12)
    assert kept.dual == pytest.approx(gain - 0.5 * w @ w, abs=1e-12)
    for block, (count, room, _, at) in enumerate(kept._layout.T):
        own = np.array([a for other, a, _, _ in every if other == block])
        gram = kept._gram[at : at + room**2].reshape(room, room)[:count, :count]
        np.testing.assert_allclose(gram, own @ own.T, atol=1e-12)


@steps
@pytest.mark.parametrize("seed", range(3))
def test_the_dual_over_what_is_kept_is_the_qp(seed, steps):
    rng = np.random.default_rng(seed)
    costs = rng.random(6) + 0.2
    kept = WorkingSet(costs, 5, steps)
    for _ in range(4):
        before = kept.dual
        kept.add(random_planes(rng, 6, 5), 3)
        assert kept.dual >= before
        assert kept.ascend(np.arange(6)) >= 0
    value, w = smoothest(costs, kept)
    sweeps, near = (20_000, 1e-4) if steps == "toward" else (3000, 1e-6)
    for _ in range(sweeps):
        kept.ascend(rng.permutation(6), 5)
    assert kept.dual == pytest.approx(value, abs=near)
    np.testing.assert_allclose(kept.w, w, atol=30 * near + 1e-3)
    kept.refresh()
    check_invariants(kept)


@steps
def test_masses_add_up_and_make_the_weights(steps):
    rng = np.random.default_rng(0)
    kept = WorkingSet(np.array([1.0, 0.5, 2.0, 0.0]), 4, steps)
    for i in range(12):
        kept.add(random_planes(rng, 4, 4), i % 3)
        kept.ascend(np.arange(4))
        check_invariants(kept)


def test_gaps_of_blocks_are_primal_less_dual():
    rng = np.random.default_rng(4)
    kept = WorkingSet(rng.random(5), 4)
    for _ in range(3):
        kept.add(random_planes(rng, 5, 4), 4)
    gaps, rise = kept.add(random_planes(rng, 5, 4))
    assert rise == 0
    hinges = np.zeros(5)
    for block, a, loss, _ in kept_planes(kept):
        hinges[block] = max(hinges[block], loss - kept.w @ a)
    assert gaps.sum() == pytest.approx(0.5 * kept.w @ kept.w + kept.costs @ hinges - kept.dual)


def test_forgetting_changes_nothing_but_what_is_kept():
    rng = np.random.default_rng(1)
    kept = WorkingSet(np.full(4, 0.3), 6)
    for _ in range(8):
        kept.add(random_planes(rng, 4, 6))
        kept.ascend(np.arange(4), 10)
    w, dual, n = kept.w.copy(), kept.dual, kept.n_planes
    active = sum(mass > 0 and a.any() for _, a, _, mass in kept_planes(kept))
    for _ in range(3):
        kept.forget(1)
    assert active <= kept.n_planes < n
    np.testing.assert_allclose(kept.w, w, atol=1e-13)
    assert kept.dual == pytest.approx(dual, abs=1e-13)
    check_invariants(kept)
    kept.add(random_planes(rng, 4, 6), 5)
    assert kept.ascend(np.arange(4), 10) >= 0
    check_invariants(kept)


def test_planes_that_are_no_higher_are_not_kept():
    rng = np.random.default_rng(2)
    kept = WorkingSet(np.ones(3), 4)
    planes = random_planes(rng, 3, 4)
    kept.add(planes)
    n = kept.n_planes
    kept.add(planes)
    assert kept.n_planes == n


@pytest.mark.parametrize(("kind", "near"), [(0, 1e-9), (1, 1e-9), (2, 1e-3)])
def test_one_block_by_inner_products(kind, near):
    rng = np.random.default_rng(3)
    A = np.vstack([np.zeros(4), rng.normal(size=(7, 4))])
    b = np.concatenate([[0.0], rng.random(7)])
    masses = np.zeros(8)
    masses[0] = 1.0
    heights = b.copy()
    rise = climb((A @ A.T).ravel(), 0, 8, 8, heights, masses, 1.0, 100_000, 0.0, near / 10, kind, np.empty(8))
    w = masses @ A
    dual = masses @ b - 0.5 * w @ w
    assert rise == pytest.approx(dual)
    np.testing.assert_allclose(heights, b - A @ w, atol=1e-10)
    # The primal over these planes at w is the dual: nothing is above.
    assert 0.5 * w @ w + (b - A @ w).max() == pytest.approx(dual, abs=near)
