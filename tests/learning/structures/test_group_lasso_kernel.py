"""Losses of full conditionals against softmaxes by hand, and coordinate descent against optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from markovfield.learning.structures.coded_rows import contrasts_of
from markovfield.learning.structures.group_lasso_kernel import descend, group_norms, group_slopes, node_terms


def loss_by_hand(theta, features, columns, codes, weights, contrasts) -> float:
    read = np.vstack([np.ones(len(codes)), features[columns]])
    log_p = log_softmax(contrasts @ theta.T @ read, axis=0)
    return float(-(weights * log_p[codes, np.arange(len(codes))]).sum())


@pytest.mark.parametrize("rows", [1, 256, 700])
@pytest.mark.parametrize("states", [2, 3, 5])
@pytest.mark.parametrize("read", [0, 1, 7])
def test_terms_of_a_node(states: int, rows: int, read: int):
    rng = np.random.default_rng(states + rows)
    contrasts = contrasts_of(states)
    a = states - 1
    features = rng.normal(size=(9, rows))
    columns = rng.permutation(9)[:read]
    codes = rng.integers(states, size=rows).astype(np.int16)
    weights = rng.random(rows)
    theta = rng.normal(size=(read + 1, a))
    residuals, slope, hessian = np.empty((a, rows)), np.empty_like(theta), np.empty((read + 1, a, read + 1, a))
    given = features, columns, theta, codes, weights, contrasts
    value = node_terms(*given, residuals, slope, hessian)
    assert value == pytest.approx(loss_by_hand(theta, *given[:2], *given[3:]), rel=1e-12)
    step = 1e-5
    for at in np.ndindex(theta.shape):
        up, down = theta.copy(), theta.copy()
        up[at] += step
        down[at] -= step
        slopes = []
        for moved in (up, down):
            there = np.empty_like(theta)
            node_terms(features, columns, moved, *given[3:], residuals.copy(), there, np.empty_like(hessian))
            slopes.append(there)
        by_hand = [loss_by_hand(moved, *given[:2], *given[3:]) for moved in (up, down)]
        assert slope[at] == pytest.approx((by_hand[0] - by_hand[1]) / (2 * step), rel=1e-6, abs=1e-6 * weights.sum())
        np.testing.assert_allclose(
            hessian[at], (slopes[0] - slopes[1]) / (2 * step), rtol=1e-6, atol=1e-7 * weights.sum()
        )
    read_rows = np.vstack([np.ones(rows), features[columns]])
    np.testing.assert_allclose(-read_rows @ residuals.T, slope, rtol=1e-10, atol=1e-10)


def test_scores_beyond_the_range_of_exp():
    scores = np.array([[-900.0, 900.0, 3.0]])
    codes, weights = np.array([1, 1, 0], np.int16), np.ones(3)
    residuals, slope, hessian = np.empty((1, 3)), np.empty((2, 1)), np.empty((2, 1, 2, 1))
    theta = np.array([[0.0], [1.0]])
    value = node_terms(
        scores, np.array([0]), theta, codes, weights, contrasts_of(2), residuals, slope, hessian
    )  # fmt: skip
    root = np.sqrt(2)
    assert value == pytest.approx(900 * root + np.logaddexp(0, 3 * root), rel=1e-12)
    assert np.isfinite(slope).all() and np.isfinite(hessian).all()


def quadratic(tied: bool):
    """Three nodes of two, three and two states, all pairs groups, random convex models."""
    rng = np.random.default_rng(3)
    widths = np.array([1, 2, 1])
    pairs = [(0, 1), (0, 2), (1, 2)] if tied else [(0, 1), (1, 0), (2, 0), (1, 2)]
    rows, groups = [1, 1, 1], []
    place: dict = {}
    for s, t in pairs + ([(t, s) for s, t in pairs] if tied else []):
        place[s, t] = rows[s]
        rows[s] += widths[t]
    groups = np.array([(s, t, place[s, t], place[t, s] if tied else -1) for s, t in pairs])
    sizes = np.array(rows) * widths
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places = np.concatenate([[0], np.cumsum(sizes**2)])
    blocks = []
    for size in sizes:
        root = rng.normal(size=(size, size))
        blocks.append(root @ root.T + 0.1 * np.eye(size))
    slope = rng.normal(size=starts[-1]) * 3
    return widths, groups, sizes, starts, places, blocks, slope


@pytest.mark.parametrize("penalty", [0.0, 0.7, 3.0, 100.0])
@pytest.mark.parametrize("tied", [True, False])
def test_coordinate_descent_reaches_the_minimum(tied: bool, penalty: float):
    widths, groups, sizes, starts, places, blocks, slope = quadratic(tied)
    penalties, ridges = np.full(len(groups), penalty), np.array([0.0, 0.5, 2.0])
    theta, model = np.zeros(starts[-1]), slope.copy()
    hessian = np.concatenate([b.ravel() for b in blocks])
    descend(theta, model, hessian, starts, sizes, places, widths, groups, penalties, ridges, 1e-11, 100_000)
    own = np.concatenate([blocks[s] @ theta[starts[s] : starts[s + 1]] for s in range(3)]) + slope
    np.testing.assert_allclose(model, own, atol=1e-9)
    norms = np.empty(len(groups))
    group_norms(theta, starts, widths, groups, norms)
    for s in range(3):
        at = slice(starts[s], starts[s] + widths[s])
        np.testing.assert_allclose(own[at] + ridges[s] * theta[at], 0, atol=1e-8)
    for g, (s, t, first, second) in enumerate(groups):
        a, b = widths[s], widths[t]
        block = theta[starts[s] + first * a :][: a * b].reshape(b, a)
        pull = own[starts[s] + first * a :][: a * b].reshape(b, a)
        if tied:
            np.testing.assert_array_equal(block.T, theta[starts[t] + second * b :][: a * b].reshape(a, b))
            pull = pull + own[starts[t] + second * b :][: a * b].reshape(a, b).T
        assert norms[g] == pytest.approx(np.linalg.norm(block))
        if norms[g]:
            np.testing.assert_allclose(pull + penalty * block / norms[g], 0, atol=1e-8)
        else:
            assert np.linalg.norm(pull) <= penalty + 1e-8
    assert group_slopes(theta, own, starts, widths, groups, penalties, ridges) < 1e-8
    assert (norms == 0).all() == (penalty == 100.0) and ((norms > 0).all() or penalty > 0)
    moved = theta.copy()
    moved[starts[1]] += 0.1
    assert group_slopes(moved, own, starts, widths, groups, penalties, ridges) == pytest.approx(0.05, abs=1e-6)
