"""The graphical lasso on arrays: optimality conditions, scikit-learn, an independent dual bound, screening."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovfield.learning.gaussian.lasso_kernel import components, descend, pattern, scan
from markovfield.learning.gaussian.lasso_solver import blocks_of, minimise, objective_and_gap


def covariance(n, seed, rows=60):
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((rows, n)) @ (np.eye(n) + 0.4 * rng.standard_normal((n, n)))
    return np.cov(mixed.T, bias=True).reshape(n, n)


def broken_conditions(s, x, bound):
    """How far a precision is from the conditions of the minimum: S - W + bound * sign(X) = 0, |S - W| <= bound."""
    g = s - np.linalg.inv(x)
    there = x != 0
    return max(
        np.abs(g + bound * np.sign(x))[there].max(initial=0.0), (np.abs(g) - bound)[~there].max(initial=0.0), 0.0
    )


@given(st.integers(1, 9), st.integers(0, 10**6), st.floats(0.01, 1.5), st.booleans(), st.booleans())
def test_the_conditions_of_the_minimum_hold(n, seed, penalty, diagonal, weighted):
    s = covariance(n, seed)
    weights = np.ones((1, 1))
    if weighted:
        weights = np.random.default_rng(seed).uniform(0.2, 2.0, (n, n))
        weights = weights + weights.T
    found = minimise(s, penalty, weights, diagonal=float(diagonal), tolerance=1e-12)
    x = found.precision.toarray()
    bound = penalty * np.broadcast_to(weights, s.shape).copy()
    if not diagonal:
        np.fill_diagonal(bound, 0.0)
    assert found.converged
    assert found.gap <= 1e-12 * max(1.0, abs(found.objective))
    assert broken_conditions(s, x, bound) <= 1e-5 * np.diag(s).max()
    value = -np.linalg.slogdet(x)[1] + (s * x).sum() + (bound * np.abs(x)).sum()
    assert np.isclose(value, found.objective, rtol=1e-10, atol=1e-10)


@given(st.integers(2, 8), st.integers(0, 10**6), st.floats(0.02, 0.5))
def test_the_gap_bounds_how_far_any_precision_is_from_the_least(n, seed, penalty):
    s = covariance(n, seed)
    best = minimise(s, penalty, tolerance=1e-12).objective
    rough = minimise(s, penalty, tolerance=1e3, max_iterations=1)
    assert best - 1e-9 <= rough.objective <= best + rough.gap + 1e-9
    x = np.diag(1 / np.diag(s))
    value, gap = objective_and_gap(s, x, np.diag(np.diag(s)), -np.log(np.diag(s)).sum(), penalty)
    assert best <= value + 1e-9
    assert value <= best + gap + 1e-9


def test_scikit_learn_finds_the_same():
    from sklearn.covariance import graphical_lasso

    s = covariance(12, 3, rows=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, theirs = graphical_lasso(s, 0.3, tol=1e-12, enet_tol=1e-12, max_iter=500)
    ours = minimise(s, 0.3, tolerance=1e-12).precision.toarray()
    assert 12 < np.count_nonzero(ours) < 144
    assert np.abs(ours - theirs).max() <= 1e-6


def test_components_are_those_of_the_covariances_above_the_penalty():
    import networkx as nx

    s = covariance(30, 5, rows=40)
    for penalty in np.quantile(np.abs(s), [0.5, 0.9, 0.97]):
        graph = nx.Graph(np.argwhere((np.abs(s) > penalty) | np.eye(30, dtype=bool)).tolist())
        wanted = sorted(sorted(c) for c in nx.connected_components(graph))
        assert sorted(b.tolist() for b in blocks_of(s, penalty)) == wanted
        found = minimise(s, penalty, tolerance=1e-9)
        whole = minimise(s, penalty, np.where(np.eye(30) > 0, 1.0, 1.0 - 1e-12), tolerance=1e-9)
        assert np.abs((found.precision - whole.precision).toarray()).max() <= 1e-4


def test_a_warm_start_changes_the_way_but_not_the_end():
    s = covariance(15, 8)
    cold = minimise(s, 0.2, tolerance=1e-11)
    warm = minimise(s, 0.2, start=minimise(s, 0.25).precision, tolerance=1e-11)
    again = minimise(s, 0.2, start=cold.precision, tolerance=1e-11)
    assert np.abs((cold.precision - warm.precision).toarray()).max() <= 1e-5
    assert again.iterations <= 1


def test_more_variables_than_rows_have_a_minimum_all_the_same():
    s = covariance(20, 2, rows=8)
    assert np.linalg.matrix_rank(s) == 7
    found = minimise(s, 0.1, tolerance=1e-8)
    assert found.converged
    assert np.linalg.eigvalsh(found.precision.toarray())[0] > 0


def test_kernels_leave_no_row_out_whatever_the_number_of_rows():
    for n in (1, 7, 8, 9, 17):
        s = covariance(n, n)
        x, w = np.diag(1 / np.diag(s)), np.diag(np.diag(s))
        rows, columns = np.empty(n * (n + 1) // 2, np.int32), np.empty(n * (n + 1) // 2, np.int32)
        one = np.ones((1, 1))
        found, _, _ = scan(s, w, x, 0.0, one, 0.0, rows, columns)
        assert found == n * (n + 1) // 2
        starts, every, twins = np.empty(n + 1, np.int64), np.empty(n * n, np.int64), np.empty(n * n, np.int64)
        pattern(rows, columns, found, starts, every, twins)
        assert np.array_equal(starts, np.arange(n + 1) * n)
        assert np.array_equal(every, np.tile(np.arange(n), n))
        assert np.array_equal(twins, np.arange(n * n).reshape(n, n).T.ravel())
        d = np.zeros(n * n)
        descend(s, w, x, 0.0, one, 0.0, starts, every, twins, d, 500, 1e-12)
        # Without a penalty the quadratic model has its minimum where W D W = W - S.
        assert np.allclose(w @ d.reshape(n, n) @ w, w - s, atol=1e-9)
        label = np.empty(n, np.int64)
        assert components(s, -1.0, one, label) == n * (n - 1) // 2


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(scale):
    s = covariance(10, 11)
    units = np.where(np.arange(10) % 2, scale, 1.0)
    weights = np.outer(units, units)
    plain = minimise(s, 0.2, tolerance=1e-10).precision.toarray()
    scaled = minimise(s * weights, 0.2, weights, tolerance=1e-10).precision.toarray()
    assert np.abs(scaled * weights - plain).max() <= 1e-4
