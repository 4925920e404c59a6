"""Sums, posteriors and best paths of hidden Markov models against every sequence of states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from markovfield.kernels.simd import BLOCK
from markovfield.sequence.hmm.hidden_markov_kernel import (
    gaussian_moments,
    gaussian_scores,
    hidden_paths,
    hidden_posteriors,
    hidden_sums,
    scale_rows,
)

LENGTHS = [4, 0, 1, 5]


class Chain:
    """Random probabilities, padded with zeros to a multiple of a block; tokens share rows of the table."""

    def __init__(self, seed: int, k: int, given: bool) -> None:
        rng = np.random.default_rng(seed)
        self.k, self.width = k, -(-k // BLOCK) * BLOCK
        self.start, self.moves = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), k)
        self.moves[rng.random((k, k)) < 0.2] = 0.0
        self.moves[:, 0] += 0.1
        self.shown = rng.random((6, k)) + 0.05
        self.offsets = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
        self.rows = rng.integers(0, 6, self.offsets[-1]).astype(np.int32)
        self.known = np.where(rng.random(len(self.rows)) < 0.3, rng.integers(0, k, len(self.rows)), -1).astype(np.int32)
        self.known = self.known if given else np.zeros(0, np.int32)

    def padded(self, table: np.ndarray, value: float = 0.0) -> np.ndarray:
        room = [(0, 0 if table.shape[axis] == 6 else self.width - self.k) for axis in range(table.ndim)]
        return np.ascontiguousarray(np.pad(table, room, constant_values=value)).ravel()

    def arguments(self) -> tuple:
        return (
            self.rows,
            self.known,
            self.offsets,
            0,
            len(LENGTHS),
            self.k,
            self.width,
            self.padded(self.shown),
            self.padded(self.start),
            self.padded(self.moves),
            self.padded(self.moves.T),
        )

    def joint(self, s: int) -> dict[tuple[int, ...], float]:
        """The probability of each sequence of states with what sequence s shows."""
        a, b = self.offsets[s], self.offsets[s + 1]
        values = {}
        for path in product(range(self.k), repeat=int(b - a)):
            p = 1.0
            for i, state in enumerate(path):
                p *= (self.start if i == 0 else self.moves[path[i - 1]])[state] * self.shown[self.rows[a + i], state]
                if len(self.known) and self.known[a + i] not in (-1, state):
                    p = 0.0
            values[path] = p
        return values


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_sums_counts_and_posteriors(k: int, given: bool):
    chain = Chain(k, k, given)
    width, many = chain.width, len(LENGTHS)
    forward, sums = np.empty(5 * width), np.full(many, np.nan)
    start, moves, rows = np.zeros(width), np.zeros(width * width), np.zeros(6 * width)
    hidden_sums(*chain.arguments(), True, forward, sums, start, moves, rows)
    posteriors, again = np.zeros(len(chain.rows) * k), np.full(many, np.nan)
    hidden_posteriors(*chain.arguments(), forward, again, posteriors)
    wanted_start, wanted_moves, wanted_rows = np.zeros(k), np.zeros((k, k)), np.zeros((6, k))
    expected = np.zeros((len(chain.rows), k))
    for s in range(many):
        joint = chain.joint(s)
        total = sum(joint.values())
        if total == 0.0:
            assert np.isnan(sums[s]) and np.isnan(again[s])
            continue
        assert sums[s] == pytest.approx(np.log(total), abs=1e-12) and again[s] == pytest.approx(sums[s], abs=1e-12)
        for path, p in joint.items():
            for i, state in enumerate(path):
                expected[chain.offsets[s] + i, state] += p / total
                wanted_rows[chain.rows[chain.offsets[s] + i], state] += p / total
                if i == 0:
                    wanted_start[state] += p / total
                else:
                    wanted_moves[path[i - 1], state] += p / total
    np.testing.assert_allclose(posteriors.reshape(-1, k), expected, atol=1e-12)
    np.testing.assert_allclose(start[:k], wanted_start, atol=1e-12)
    counts = moves.reshape(width, width)[:k, :k] * chain.moves
    np.testing.assert_allclose(counts, wanted_moves, atol=1e-12)
    np.testing.assert_allclose(rows.reshape(6, width)[:, :k], wanted_rows, atol=1e-12)


def test_one_way_nothing_is_counted():
    chain = Chain(1, 3, False)
    sums, none = np.empty(len(LENGTHS)), np.zeros(0)
    start, moves = np.zeros(chain.width), np.zeros(chain.width**2)
    hidden_sums(*chain.arguments(), False, np.empty(5 * chain.width), sums, start, moves, none)
    assert sums[3] == pytest.approx(np.log(sum(chain.joint(3).values()))) and not start.any() and not moves.any()


def test_sums_that_leave_the_safe_range_are_nan():
    chain = Chain(2, 3, False)
    chain.shown[:] = 1e-90
    sums = np.empty(len(LENGTHS))
    width = chain.width
    hidden_sums(
        *chain.arguments(), True, np.empty(5 * width), sums, np.zeros(width), np.zeros(width**2), np.zeros(6 * width)
    )
    assert np.isnan(sums[[0, 2, 3]]).all() and sums[1] == 0.0


@pytest.mark.parametrize("given", [False, True])
def test_best_paths(given: bool):
    chain = Chain(7, 4, given)
    width = chain.width
    paths, values = np.full(len(chain.rows), -1, np.int32), np.empty(len(LENGTHS))
    with np.errstate(divide="ignore"):
        logs = [np.log(t) for t in (chain.shown, chain.start, chain.moves)]
    hidden_paths(
        *chain.arguments()[:7],
        *(chain.padded(t, -np.inf) for t in logs),
        np.empty(5 * width),
        np.empty(5 * width, np.int32),
        paths,
        values,
    )
    for s in (0, 2, 3):
        joint = chain.joint(s)
        if max(joint.values()) == 0.0:
            assert values[s] == -np.inf
            continue
        assert values[s] == pytest.approx(np.log(max(joint.values())), abs=1e-12)
        path = tuple(paths[chain.offsets[s] : chain.offsets[s + 1]].tolist())
        assert joint[path] == pytest.approx(max(joint.values()), rel=1e-12)


def test_rows_are_scaled_by_their_largest():
    scores = np.array([[-800.0, -801.0, -np.inf], [-np.inf] * 3, [3.0, 3.0, 2.0]])
    shifts, own = np.empty(3), scores.copy().ravel()
    scale_rows(own, 3, 3, shifts)
    assert shifts.tolist() == [-800.0, -np.inf, 3.0]
    e = np.exp(-1.0)
    np.testing.assert_allclose(own.reshape(3, 3), [[1, e, 0], [0, 0, 0], [1, 1, e]], rtol=1e-12)


@pytest.mark.parametrize("d", [1, 3])
def test_gaussian_densities(d: int):
    rng = np.random.default_rng(d)
    k, width, n = 3, BLOCK, 7
    means, root = rng.normal(size=(k, d)), rng.normal(size=(k, d, d))
    covariances = root @ root.transpose(0, 2, 1) + np.eye(d)
    values = rng.normal(size=(n, d))
    whitening, centres = np.zeros((d, d, width)), np.zeros((d, width))
    constants = np.full(width, -np.inf)
    for state in range(k):
        white = np.linalg.inv(np.linalg.cholesky(covariances[state]))
        whitening[:, :, state], centres[:, state] = white, white @ means[state]
        constants[state] = np.log(np.diag(white)).sum() - 0.5 * d * np.log(2 * np.pi)
    scores = np.empty((n, width))
    gaussian_scores(values.ravel(), 0, n, d, width, whitening.ravel(), centres.ravel(), constants, scores.reshape(-1))
    expected = [multivariate_normal(m, c).logpdf(values) for m, c in zip(means, covariances, strict=True)]
    np.testing.assert_allclose(scores[:, :k].T, expected, rtol=1e-10)
    assert np.isneginf(scores[:, k:]).all()


@pytest.mark.parametrize("full", [False, True])
def test_gaussian_moments(full: bool):
    rng = np.random.default_rng(0)
    d, width, n = 2, BLOCK, 150
    values, posteriors = rng.normal(size=(n, d)), rng.random((n, width))
    pairs = [(i, j) for i in range(d) for j in range(i + 1)] if full else [(i, i) for i in range(d)]
    moments = np.ones((1 + d + len(pairs)) * width)
    gaussian_moments(values.ravel(), posteriors.ravel(), 10, n, d, width, full, moments)
    columns = [np.ones(n), *values.T, *(values[:, i] * values[:, j] for i, j in pairs)]
    expected = 1.0 + np.array([column[10:] @ posteriors[10:] for column in columns])
    np.testing.assert_allclose(moments.reshape(-1, width), expected, rtol=1e-11)
