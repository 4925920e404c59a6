"""One update against NumPy, written out; and what an update is on average."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.inference.core.running import Running
from markovfield.kernels.random_lanes import LANES, draw_words, lanes
from markovfield.learning.boltzmann.updates import Training, train_rbm


def squash(x):
    return 1 / (1 + np.exp(-x))


class Reference:
    """Updates in float64, from the same random bits."""

    def __init__(self, w, a, c, rng, n_chains):
        self.w, self.a, self.c = w.copy(), a.copy(), c.copy()
        self.velocity = [np.zeros_like(x) for x in (w, a, c)]
        self.mean = [np.zeros_like(x) for x in (w, a, c)]
        self.averaged = 0
        self.state = lanes(rng)
        self.h = np.zeros((n_chains, len(c)))

    def draw(self, p):
        rows, width = p.shape[0], p.shape[1] + 1  # kernels draw for the unit that is always one, too
        n = rows * width
        words = np.zeros(-(-n // (2 * LANES)) * LANES, np.uint64)
        draw_words(self.state, words, (n + 1) // 2)
        whole = (words.view(np.uint32)[:n] >> np.uint32(1)).reshape(rows, width)[:, :-1]
        return (whole < p * 2.0**31).astype(float)

    def update(self, v, weights, rate, *, k, persistent, momentum, decay, average):
        p = squash(v @ self.w + self.c)
        if not persistent:
            self.h = self.draw(p)
        for step in range(k):
            if step:
                self.h = self.draw(q)  # noqa: F821  (the step before has set it)
            x = self.draw(squash(self.h @ self.w.T + self.a))
            q = squash(x @ self.w + self.c)
        if persistent:
            self.h = self.draw(q)
        s = weights[:, None] / len(v)
        m = len(x)
        gradients = [
            v.T @ (s * p) - x.T @ q / m - decay * self.w,
            (s * v).sum(0) - x.mean(0),
            (s * p).sum(0) - q.mean(0),
        ]
        for parameter, velocity, gradient in zip((self.w, self.a, self.c), self.velocity, gradients, strict=True):
            velocity *= momentum
            velocity += rate * gradient
            parameter += velocity
        if average:
            self.averaged += 1
            for mean, parameter in zip(self.mean, (self.w, self.a, self.c), strict=True):
                mean += (parameter - mean) / self.averaged


@pytest.mark.parametrize("kind", ["cd", "pcd"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("momentum", "l2", "averaging"), [(0.0, 0.0, 0.0), (0.7, 3.0, 0.5)])
def test_updates_are_those_of_the_reference(kind, k, momentum, l2, averaging):
    rng = np.random.default_rng(k)
    n, batch, n_chains = 11, 4, 5 if kind == "pcd" else 4
    w, a, c = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=3)
    rows, weights = rng.random((n, 7)), rng.random(n) + 0.5
    training = Training(
        kind=kind, k=k, learning_rate=0.3, batch_size=batch, epochs=4, momentum=momentum, l2=l2, tau=2.0,
        averaging=averaging, n_chains=n_chains if kind == "pcd" else None, dtype="float64",
    )  # fmt: skip
    got = train_rbm(w, a, c, rows, training, rng=np.random.default_rng(9), running=Running(), row_weights=weights)
    other = np.random.default_rng(9)
    reference = Reference(w, a, c, other, n_chains)
    t = 0
    for _ in range(4):
        order = other.permutation(n)
        for first in range(0, n, batch):
            chosen = order[first : first + batch]
            reference.update(
                rows[chosen], weights[chosen] * n / weights.sum(), 0.3 / (1 + t / (2.0 * 3)), k=k,
                persistent=kind == "pcd", momentum=momentum, decay=l2 / weights.sum(),
                average=averaging > 0 and t >= 6,
            )  # fmt: skip
            t += 1
    expected = reference.mean if averaging else [reference.w, reference.a, reference.c]
    for mine, other_one in zip((got.weights, got.visible_biases, got.hidden_biases), expected, strict=True):
        assert np.abs(mine - other_one).max() < 1e-10
    if kind == "pcd":
        assert np.array_equal(got.chains, reference.h)
    assert got.updates == t


def test_an_update_is_on_average_the_gradient_of_the_likelihood():
    """Chains that are drawn from the machine itself stay so: the update is unbiased, and its scatter known."""
    rng = np.random.default_rng(0)
    w, a, c = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
    states = (np.arange(2**7)[:, None] >> np.arange(7)) & 1
    v, h = states[:, :4].astype(float), states[:, 4:].astype(float)
    p = np.exp(((v @ w) * h).sum(1) + v @ a + h @ c)
    p /= p.sum()
    rows = (rng.random((50, 4)) < 0.5).astype(float)
    exact = rows.T @ squash(rows @ w + c) / 50 - np.einsum("s,si,sj->ij", p, v, h)
    n = 40_000
    chains = h[rng.choice(len(p), n, p=p)]
    training = Training(
        kind="pcd", learning_rate=1e-3, batch_size=None, epochs=1, schedule="constant", averaging=0.0, n_chains=n,
        dtype="float64",
    )  # fmt: skip
    got = train_rbm(w, a, c, rows, training, rng=rng, running=Running(), chains=chains)
    assert np.abs((got.weights - w) / 1e-3 - exact).max() < 5 * 0.5 / np.sqrt(n)
    moved = (got.visible_biases - a) / 1e-3
    assert np.abs(moved - (rows.mean(0) - p @ v)).max() < 5 * 0.5 / np.sqrt(n)
