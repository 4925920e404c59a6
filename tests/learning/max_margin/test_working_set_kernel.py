"""Ascent of the dual on planes: against a QP solved by SciPy, and what must hold after every step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from markovfield.learning.max_margin.problem import Planes
from markovfield.learning.max_margin.working_set import WorkingSet
from markovfield.learning.max_margin.working_set_kernel import ascend_gram


def random_planes(rng, n_blocks, n_weights):
    """One plane for each block, sparse."""
    dense = rng.normal(size=(n_blocks, n_weights)) * (rng.random((n_blocks, n_weights)) < 0.6)
    rows, columns = np.nonzero(dense)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_blocks))])
    return Planes(np.arange(n_blocks), offsets, columns.astype(np.int64), dense[rows, columns], rng.random(n_blocks))


def smoothest(costs, kept):
    """The primal over the planes that are kept, as a QP with slacks, by SLSQP."""
    n_blocks, n, m = len(costs), len(kept.w), kept.n_planes
    A = np.zeros((m, n + n_blocks))
    for i in range(m):
        part = slice(kept._offsets[i], kept._offsets[i + 1])
        A[i, kept._columns[part]] = kept._values[part]
        A[i, n + kept._block[i]] = 1.0
    b = kept._losses[:m]
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


@pytest.mark.parametrize("seed", range(4))
def test_the_dual_over_what_is_kept_is_the_qp(seed):
    rng = np.random.default_rng(seed)
    costs = rng.random(6) + 0.2
    kept = WorkingSet(costs, 5)
    for _ in range(4):
        kept.add(random_planes(rng, 6, 5))
        before = kept.dual
        assert kept.ascend(np.arange(6)) >= 0
        assert kept.dual >= before
    for _ in range(3000):
        kept.ascend(rng.permutation(6), 5)
    value, w = smoothest(costs, kept)
    assert kept.dual == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(kept.w, w, atol=1e-3)


def test_masses_add_up_and_make_the_weights():
    rng = np.random.default_rng(0)
    costs = np.array([1.0, 0.5, 2.0])
    kept = WorkingSet(costs, 4)
    for _ in range(5):
        kept.add(random_planes(rng, 3, 4))
        kept.ascend(np.arange(3))
    n = kept.n_planes
    sums = np.bincount(kept._block[:n], kept.masses[:n], 3) + kept.true_masses
    np.testing.assert_allclose(sums, costs)
    assert (kept.masses[:n] >= 0).all()
    w, dual = np.zeros(4), 0.0
    for i in range(n):
        part = slice(kept._offsets[i], kept._offsets[i + 1])
        np.add.at(w, kept._columns[part], kept.masses[i] * kept._values[part])
        dual += kept.masses[i] * kept._losses[i]
    np.testing.assert_allclose(kept.w, w, atol=1e-12)
    assert kept.dual == pytest.approx(dual - 0.5 * w @ w)


def test_forgetting_changes_nothing_but_what_is_kept():
    rng = np.random.default_rng(1)
    kept = WorkingSet(np.full(4, 0.3), 6)
    for _ in range(8):
        kept.add(random_planes(rng, 4, 6))
        kept.ascend(np.arange(4), 10)
    w, dual, n = kept.w.copy(), kept.dual, kept.n_planes
    active = int((kept.masses[:n] > 0).sum())
    for _ in range(3):
        kept.forget(1)
    assert active <= kept.n_planes < n
    np.testing.assert_array_equal(kept.w, w)
    assert kept.dual == dual
    # Lists still lead through every plane of a block.
    for block in range(4):
        plane, found = kept._heads[block], []
        while plane >= 0:
            found.append(plane)
            plane = kept._following[plane]
        assert sorted(found) == np.flatnonzero(kept._block[: kept.n_planes] == block).tolist()
    assert kept.ascend(np.arange(4), 10) >= 0


def test_planes_that_are_no_higher_are_not_kept():
    rng = np.random.default_rng(2)
    kept = WorkingSet(np.ones(3), 4)
    planes = random_planes(rng, 3, 4)
    kept.add(planes)
    n = kept.n_planes
    kept.add(planes)
    assert kept.n_planes == n


def test_one_block_by_inner_products():
    rng = np.random.default_rng(3)
    A = np.vstack([np.zeros(4), rng.normal(size=(7, 4))])
    b = np.concatenate([[0.0], rng.random(7)])
    masses = np.zeros(8)
    masses[0] = 1.0
    rise = ascend_gram(A @ A.T, b, masses, 100_000, 1e-12)
    w = masses @ A
    dual = masses @ b - 0.5 * w @ w
    assert rise == pytest.approx(dual)
    # The primal over these planes at w is the dual: nothing is above.
    assert 0.5 * w @ w + (b - A @ w).max() == pytest.approx(dual, abs=1e-9)
