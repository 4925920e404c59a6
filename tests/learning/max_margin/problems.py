"""Structural SVMs of which all planes are known: the oracle looks at every one, and a QP finds the optimum."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from markovfield.learning.max_margin.problem import Planes


@dataclass
class Listed:
    """Planes of each block as matrices and losses; the true output is not among them."""

    features: list[np.ndarray]
    losses: list[np.ndarray]
    costs: np.ndarray
    size: int = 2
    exact: bool = True
    restraint: object = None
    calls: int = 0
    interrupt: int | None = None
    shards: list[np.ndarray] = field(init=False)

    def __post_init__(self):
        self.n_weights = self.features[0].shape[1]
        n = len(self.costs)
        self.shards = [np.arange(a, min(a + self.size, n)) for a in range(0, n, self.size)]

    def planes(self, w, shard, *, losses=True):
        self.calls += 1
        if self.calls == self.interrupt:
            raise KeyboardInterrupt
        rows, costs = [], []
        for block in self.shards[shard]:
            heights = losses * self.losses[block] - self.features[block] @ w
            k = int(heights.argmax())
            # The true output wins where nothing is above it, but for scores that are equal.
            wrong = heights[k] > 0 or (not losses and heights[k] >= 0)
            rows.append(wrong * self.features[block][k])
            costs.append(wrong * self.losses[block][k])
        found, columns = np.nonzero(np.array(rows))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(found, minlength=len(rows)))])
        return Planes(self.shards[shard], offsets, columns, np.array(rows)[found, columns], np.array(costs))

    def primal(self, w):
        hinges = [max(0.0, (b - a @ w).max()) for a, b in zip(self.features, self.losses, strict=True)]
        asked = 0.0 if self.restraint is None else self.restraint.l1 @ np.abs(w)
        return 0.5 * w @ w + asked + self.costs @ hinges

    def optimum(self):
        """By clarabel, from the definition."""
        clarabel = pytest.importorskip("clarabel", reason="the check needs the extra qp")
        from scipy.sparse import csc_matrix, diags

        n, m = self.n_weights, len(self.costs)
        rows = [np.hstack([-a, -np.eye(m)[[i] * len(a)]]) for i, a in enumerate(self.features)]
        A = np.vstack([*rows, np.hstack([np.zeros((m, n)), -np.eye(m)])])
        b = np.concatenate([*(-own for own in self.losses), np.zeros(m)])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        P = diags(np.concatenate([np.ones(n), np.zeros(m)])).tocsc()
        q = np.concatenate([np.zeros(n), self.costs])
        solved = clarabel.DefaultSolver(P, q, csc_matrix(A), b, [clarabel.NonnegativeConeT(len(b))], settings).solve()
        assert str(solved.status) == "Solved"
        return solved.obj_val, np.array(solved.x[:n])


def listed(seed, n=9, n_weights=6, **settings):
    """Random planes, sparse, so that some outputs look alike; one block has cost 0 and one a single plane."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, n)
    features = [rng.normal(size=(k, n_weights)) * (rng.random((k, n_weights)) < 0.7) for k in sizes]
    costs = rng.random(n) * 0.8 + 0.1
    costs[0] = 0.0
    return Listed(features, [rng.random(k) + 0.1 for k in sizes], costs, **settings)


def separable(seed, n=30, n_classes=3, margin=0.4):
    """Classes that weights of length 1 tell apart by a margin, as planes; and the margin."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n_classes, 3))
    truth /= np.linalg.norm(truth)
    features, losses = [], []
    while len(features) < n:
        x = rng.normal(size=3)
        scores = truth @ x
        y = int(scores.argmax())
        others = [k for k in range(n_classes) if k != y]
        if (scores[y] - scores[others]).min() < margin:
            continue
        rows = np.zeros((len(others), n_classes, 3))
        for i, k in enumerate(others):
            rows[i, y], rows[i, k] = x, -x
        features.append(rows.reshape(len(others), -1))
        losses.append(np.ones(len(others)))
    return Listed(features, losses, np.ones(n), size=1), margin
