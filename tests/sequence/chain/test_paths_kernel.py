"""Best, n best and drawn label sequences of one chain against all of them; the same in log space."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from markovfield.kernels.random import streams
from markovfield.kernels.simd import BLOCK
from markovfield.sequence.chain.logs_kernel import log_draws, log_posteriors
from markovfield.sequence.chain.paths_kernel import best_path, draw_paths, n_best_paths
from tests.inference.chains import check_counts

WIDTH = BLOCK


class Chain:
    """Scores of tokens and steps, one table of steps or one for each."""

    def __init__(self, seed: int, n: int, k: int, same: bool, zeros: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.k, self.stride = n, k, 0 if same else WIDTH * WIDTH
        self.scores = np.full((n, WIDTH), -np.inf)
        self.scores[:, :k] = rng.normal(size=(n, k))
        self.steps = np.full((1 if same else max(n - 1, 1), WIDTH, WIDTH), -np.inf)
        own = rng.normal(size=(len(self.steps), k, k))
        self.steps[:, :k, :k] = np.where(rng.random(own.shape) < zeros, -np.inf, own)
        self.all = sorted(((self.score(p), p) for p in product(range(k), repeat=n)), reverse=True)

    def step(self, i: int) -> int:
        return i if self.stride else 0

    def score(self, path: tuple[int, ...]) -> float:
        steps = [self.steps[self.step(i), x, y] for i, (x, y) in enumerate(pairwise(path))]
        return float(sum(self.scores[i, x] for i, x in enumerate(path)) + sum(steps))

    @property
    def log_partition(self) -> float:
        return float(np.logaddexp.reduce([score for score, _ in self.all]))

    @property
    def chances(self) -> np.ndarray:
        """Of every sequence, in the order of its labels read as a number."""
        return np.exp([self.score(p) for p in product(range(self.k), repeat=self.n)] - np.array(self.log_partition))


CHAINS = pytest.mark.parametrize(("n", "k", "same"), [(1, 3, True), (4, 2, False), (5, 3, True), (4, 4, False)])


@CHAINS
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_best_path(n: int, k: int, same: bool, zeros: float):
    chain = Chain(n + k, n, k, same, zeros)
    path, best, origin = np.full(n + 2, -7, np.int32), np.empty(WIDTH), np.empty(n * WIDTH, np.int32)
    value = best_path(chain.scores.ravel().copy(), n, k, WIDTH, chain.steps.ravel(), chain.stride, best, origin, path)
    assert value == pytest.approx(chain.all[0][0], abs=1e-12)
    if value > -np.inf:
        assert chain.score(tuple(path[:n].tolist())) == pytest.approx(value, abs=1e-12)
    assert path[n:].tolist() == [-7, -7]


@CHAINS
@pytest.mark.parametrize("limit", [1, 4, 300])
def test_n_best_paths(n: int, k: int, same: bool, limit: int):
    chain = Chain(n + k, n, k, same, 0.3)
    paths, values = np.full((limit, n), -1, np.int32), np.full(limit, np.nan)
    found = n_best_paths(chain.scores.ravel(), n, k, WIDTH, chain.steps.ravel(), chain.stride, limit, paths, values)
    expected = [score for score, _ in chain.all if score > -np.inf][:limit]
    assert found == len(expected)
    np.testing.assert_allclose(values[:found], expected, atol=1e-12)
    rows = [tuple(row) for row in paths[:found].tolist()]
    assert len(set(rows)) == found
    np.testing.assert_allclose([chain.score(row) for row in rows], expected, atol=1e-12)


@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_draws(same: bool, logs: bool):
    chain = Chain(3, 3, 3, same, 0.2)
    paths = np.full((5000, 3), -1, np.int32)
    stream = streams(np.random.default_rng(0), 1)[0]
    if logs:
        assert log_draws(chain.scores, chain.steps, 3, stream, paths)
    else:
        steps, forward = np.exp(chain.steps).ravel(), np.empty(3 * WIDTH)
        assert draw_paths(chain.scores.ravel().copy(), 3, 3, WIDTH, steps, chain.stride, stream, forward, paths)
    counts = np.bincount(paths @ [9, 3, 1], minlength=27)
    assert not counts[chain.chances == 0].any()
    check_counts(counts, chain.chances)


@CHAINS
def test_posteriors_in_log_space(n: int, k: int, same: bool):
    chain = Chain(n + k, n, k, same, 0.2)
    posteriors, expected = np.empty((n, k)), np.zeros_like(chain.steps)
    log_partition, entropy = log_posteriors(chain.scores, chain.steps, k, posteriors, expected)
    assert log_partition == pytest.approx(chain.log_partition, abs=1e-12)
    chances = chain.chances
    assert entropy == pytest.approx(-(chances[chances > 0] * np.log(chances[chances > 0])).sum(), abs=1e-10)
    wanted, pairs = np.zeros((n, k)), np.zeros_like(chain.steps)
    for p, path in zip(chances, product(range(k), repeat=n), strict=True):
        for i, x in enumerate(path):
            wanted[i, x] += p
            if i:
                pairs[chain.step(i - 1), path[i - 1], x] += p
    np.testing.assert_allclose(posteriors, wanted, atol=1e-12)
    np.testing.assert_allclose(expected, pairs, atol=1e-12)


def test_a_chain_that_allows_nothing():
    chain = Chain(0, 3, 2, True, 1.1)
    assert log_posteriors(chain.scores, chain.steps, 2, np.empty((3, 2)), np.zeros_like(chain.steps)) == (-np.inf, 0.0)
    stream, paths = np.array([1, 2, 3, 4], np.uint64), np.empty((1, 3), np.int32)
    assert not log_draws(chain.scores, chain.steps, 2, stream, paths)
    steps = np.exp(chain.steps).ravel()
    assert not draw_paths(
        chain.scores.ravel().copy(), 3, 2, WIDTH, steps, chain.stride, stream, np.empty(3 * WIDTH), paths
    )
