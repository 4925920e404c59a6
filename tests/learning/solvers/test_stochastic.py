"""Stochastic solvers: the same minimum, the same bits when they go on from a file, and honest ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovfield.exceptions import ModelError, StoppedError
from markovfield.inference.core.running import Running
from markovfield.learning.solvers.checkpoint import Checkpoint
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.proximal_gradient import ProximalGradient
from markovfield.learning.solvers.solve import solve
from markovfield.learning.solvers.stochastic import AdaGrad, Adam, StochasticGradient

ALL = [StochasticGradient, AdaGrad, Adam]


class Logistic:
    """Rows in shards; a shard's gradient is times the number of shards."""

    def __init__(self, rng: np.random.Generator, n: int = 200, d: int = 5, n_shards: int = 10) -> None:
        self.x = rng.normal(size=(n, d))
        self.y = np.where(self.x @ rng.normal(size=d) + 2 * rng.normal(size=n) > 0, 1.0, -1.0)
        self.n_shards = n_shards
        self.seen: list[int] = []
        self.draws = np.zeros(0)
        self.parts = np.array_split(np.arange(n), n_shards)

    def gradient(self, w: np.ndarray, shard: int, rng: np.random.Generator) -> np.ndarray:
        self.seen.append(shard)
        rows = self.parts[shard]
        self.draws = np.append(self.draws, rng.random())[-3:]
        x, y = self.x[rows], self.y[rows]
        return -len(self.parts) * x.T @ (y * np.exp(-np.logaddexp(0, y * (x @ w))))

    def value(self, w: np.ndarray) -> float:
        return float(np.logaddexp(0, -self.y * (self.x @ w)).sum())

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = self.y * (self.x @ w)
        return self.value(w), -self.x.T @ (self.y * np.exp(-np.logaddexp(0, margin)))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000), st.booleans())
@pytest.mark.parametrize("kind", ALL)
def test_they_reach_the_minimum_of_the_others(kind, seed: int, kinked: bool):
    f = Logistic(np.random.default_rng(seed))
    groups = np.array([0, 0, 1, 1, -1])
    penalty = Penalty(l2=1.0, l1=2.0, groups=groups, group_l1=2.0) if kinked else Penalty(l2=1.0)
    exact = solve(f, np.zeros(5), solver=ProximalGradient(tolerance=0.0, gradient_tolerance=1e-8), penalty=penalty)
    found = solve(f, np.zeros(5), solver=kind(passes=400), penalty=penalty, rng=seed)
    assert exact.value - 1e-9 <= found.value < exact.value + 0.02
    np.testing.assert_allclose(found.weights, exact.weights, atol=0.05)
    assert found.value == pytest.approx(f.value(found.weights) + penalty.value(found.weights))


def test_the_averages_error_falls_with_the_root_of_the_steps():
    """Of a quadratic with unit noise, the average of n weights has the variance 1/n of the best estimate."""

    def noisy(w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return w - 1 + rng.normal(size=50)

    for n in (500, 8000):
        solver = StochasticGradient(eta0=0.5, tau=10, power=0.6, passes=n, average=0.5)
        found = solve(noisy, np.zeros(50), solver=solver, rng=n)
        variance = float(np.mean((found.weights - 1) ** 2)) * n / 2
        # A chi-squared of 50 degrees over 50, and what is left of the start.
        assert 0.4 < variance < 2.2
    assert np.isnan(found.value) and found.iterations == 8000 and found.evaluations == 8000


@pytest.mark.parametrize("kind", ALL)
def test_a_seed_is_an_answer(kind):
    f = Logistic(np.random.default_rng(0))
    one, two, other = (solve(f, np.zeros(5), solver=kind(passes=5), rng=seed).weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_the_order_of_shards():
    f = Logistic(np.random.default_rng(0), n_shards=4)
    solve(f, np.zeros(5), solver=StochasticGradient(passes=3, order="fixed"), rng=0)
    assert f.seen == [0, 1, 2, 3] * 3
    f.seen.clear()
    solve(f, np.zeros(5), solver=StochasticGradient(passes=6), rng=0)
    passes = np.reshape(f.seen, (6, 4))
    assert (np.sort(passes) == np.arange(4)).all() and len({tuple(p) for p in passes}) > 1


class Chain(Logistic):
    """An objective that remembers something, whose gradients depend on it and on the generator."""

    def gradient(self, w: np.ndarray, shard: int, rng: np.random.Generator) -> np.ndarray:
        return super().gradient(w, shard, rng) + self.draws.sum()

    def state(self) -> dict[str, np.ndarray]:
        return {"draws": self.draws}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.draws = state["draws"].copy()


@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
@pytest.mark.parametrize("kind", ALL)
def test_interrupted_and_gone_on_is_bit_for_bit_the_same(kind, generator, tmp_path: Path, monkeypatch):
    # Every step looks at the clock.
    monkeypatch.setattr("markovfield.learning.solvers.stochastic.BETWEEN", -1.0)
    penalty = Penalty(l1=0.5, l2=0.5)

    def chain() -> Chain:
        return Chain(np.random.default_rng(0))

    def rng() -> np.random.Generator:
        return np.random.Generator(generator(7))

    whole = solve(chain(), np.zeros(5), solver=kind(passes=8), penalty=penalty, rng=rng())
    checkpoint = Checkpoint(tmp_path / "state", seconds=1e9)
    for stop in (13, 40, 1, 10**9):
        # In the middle of a pass, between two steps.
        running = Running(1, callback=lambda progress, stop=stop: progress.step == stop)
        part = solve(
            chain(), np.zeros(5), solver=kind(passes=8), penalty=penalty, rng=rng(), running=running,
            checkpoint=checkpoint,
        )  # fmt: skip
    np.testing.assert_array_equal(part.weights, whole.weights)
    np.testing.assert_array_equal(part.history, whole.history)
    assert part.gradient_norm == whole.gradient_norm and part.evaluations == whole.evaluations == 80


def test_interrupted_within_a_step_goes_on_from_the_last_file(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("markovfield.learning.solvers.stochastic.BETWEEN", -1.0)
    whole = solve(Chain(np.random.default_rng(0)), np.zeros(5), solver=Adam(passes=4), rng=3)

    class Impatient(Chain):
        def gradient(self, w: np.ndarray, shard: int, rng: np.random.Generator) -> np.ndarray:
            gradient = super().gradient(w, shard, rng)
            if len(self.seen) == 15:
                raise KeyboardInterrupt
            return gradient

    checkpoint = Checkpoint(tmp_path / "state", seconds=0.0)
    part = solve(Impatient(np.random.default_rng(0)), np.zeros(5), solver=Adam(passes=4), rng=3, checkpoint=checkpoint)
    assert part.message == "interrupted" and part.evaluations == 14
    done = solve(Chain(np.random.default_rng(0)), np.zeros(5), solver=Adam(passes=4), rng=3, checkpoint=checkpoint)
    np.testing.assert_array_equal(done.weights, whole.weights)


@pytest.mark.parametrize("kind", ALL)
def test_gradients_that_are_no_good(kind):
    def late(w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.full(2, np.nan) if w[0] != 0 else np.ones(2)

    found = solve(late, np.zeros(2), solver=kind(passes=10), rng=0)
    assert "a gradient is not finite after 1 steps" in found.message and np.isfinite(found.weights).all()
    assert not found.converged


def test_steps_that_are_too_long():
    found = solve(lambda w, rng: 1e3 * w, np.ones(2), solver=StochasticGradient(eta0=1.0, power=0.0), rng=0)
    assert "the weights run away: steps are too long" in found.message and np.isfinite(found.weights).all()


def test_a_small_move_is_an_end():
    found = solve(
        lambda w, rng: w - 1, np.zeros(2), solver=StochasticGradient(eta0=0.5, power=0.0, average=0, tolerance=1e-6)
    )
    assert found.converged and "moved by less than 1e-06" in found.message
    np.testing.assert_allclose(found.weights, 1, atol=1e-5)


def test_it_stops_when_told():
    f = Logistic(np.random.default_rng(0))
    found = solve(f, np.zeros(5), solver="sgd", rng=0, callback=lambda i, value, w: i == 3)
    assert found.iterations == 3 and found.message == "stopped by the callback" and len(found.history) == 3

    def stop(w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        raise StoppedError("enough")

    assert solve(stop, np.zeros(5), solver="adam", rng=0).message == "enough"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"power": 1.5}, "power of Adam must be at most 1, got 1.5"),
        ({"average": 2.0}, "average of Adam must be at most 1, got 2.0"),
        ({"eta0": 0.0}, "eta0 of Adam must be positive, got 0.0"),
        ({"beta1": 1.0}, "beta1 of Adam must be below 1, got 1.0"),
        ({"order": "sorted"}, "order of Adam must be 'shuffled' or 'fixed', got 'sorted'"),
    ],
)
def test_what_is_refused(settings: dict[str, object], said: str):
    with pytest.raises(ModelError, match=said):
        Adam(**settings)
