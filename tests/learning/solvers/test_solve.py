"""Solvers against one another, against slow references, and on objectives that are no good."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovfield.exceptions import FormatError, ModelError, StoppedError
from markovfield.inference.core.running import Progress, Running
from markovfield.learning.solvers.checkpoint import Checkpoint
from markovfield.learning.solvers.lbfgs import LBFGS
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.proximal_gradient import ProximalGradient
from markovfield.learning.solvers.solve import solve
from markovfield.learning.solvers.steepest_descent import SteepestDescent

TIGHT = {"tolerance": 0.0, "gradient_tolerance": 1e-7}
SMOOTH = [
    LBFGS(**TIGHT),
    LBFGS(memory=2, **TIGHT),
    SteepestDescent(gradient_tolerance=1e-7),
    SteepestDescent(line_search="backtracking", gradient_tolerance=1e-7),
    ProximalGradient(**TIGHT),
    ProximalGradient(accelerated=False, max_iterations=50_000, **TIGHT),
]
seeds = st.integers(0, 10_000)


def quadratic(rng: np.random.Generator, d: int):
    root = rng.normal(size=(d, d))
    hessian = root @ root.T + np.eye(d)
    goal = rng.normal(size=d)
    return (lambda w: (0.5 * float((w - goal) @ hessian @ (w - goal)), hessian @ (w - goal))), hessian, goal


def logistic(rng: np.random.Generator, n: int, d: int):
    x = rng.normal(size=(n, d))
    y = np.where(x @ rng.normal(size=d) + 2 * rng.normal(size=n) > 0, 1.0, -1.0)

    def f(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = y * (x @ w)
        return float(np.logaddexp(0, -margin).sum()), -x.T @ (y * np.exp(-np.logaddexp(0, margin)))

    return f


def reference(f, penalty: Penalty, d: int, lipschitz: float) -> np.ndarray:
    """Proximal gradient steps of a safe length, very many."""
    w, step = np.zeros(d), 1 / lipschitz
    for _ in range(50_000):
        gradient = f(w)[1] + penalty.smooth(w)[1]
        new = penalty.prox(w - step * gradient, step)
        if np.abs(new - w).max() < 1e-13:
            break
        w = new
    return w


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(1, 8))
@pytest.mark.parametrize("solver", SMOOTH, ids=lambda s: s.name)
def test_all_find_the_minimum_of_a_quadratic(solver, seed: int, d: int):
    rng = np.random.default_rng(seed)
    f, hessian, goal = quadratic(rng, d)
    l2, mean, scale = rng.uniform(0, 2, d), rng.normal(size=d), rng.uniform(0.5, 2, d)
    found = solve(f, rng.normal(size=d), solver=solver, penalty=Penalty(l2=l2, mean=mean, scale=scale))
    ridge = np.diag(l2 / scale**2)
    np.testing.assert_allclose(
        found.weights, np.linalg.solve(hessian + ridge, hessian @ goal + ridge @ mean), atol=1e-5
    )
    assert found.converged and found.gradient_norm < 1e-6
    assert found.value == pytest.approx(f(found.weights)[0] + Penalty(l2, mean=mean, scale=scale).value(found.weights))
    assert all(b <= a + 2e-15 * abs(a) for a, b in itertools.pairwise(found.history))


@settings(max_examples=10, deadline=None)
@given(seeds, st.booleans())
@pytest.mark.parametrize("accelerated", [True, False])
def test_l1_and_groups_against_many_plain_steps(accelerated: bool, seed: int, smooth_too: bool):
    rng = np.random.default_rng(seed)
    d = 9
    f = logistic(rng, 60, d)
    groups = rng.integers(-1, 3, d)
    penalty = Penalty(
        l2=rng.uniform(0.5, 2.0, d) if smooth_too else 0.5,
        l1=rng.uniform(0, 4, d),
        groups=groups,
        group_l1=rng.uniform(0, 3),
    )
    solver = ProximalGradient(accelerated=accelerated, tolerance=0.0, gradient_tolerance=1e-9)
    found = solve(f, np.zeros(d), solver=solver, penalty=penalty)
    expected = reference(f, penalty, d, 60 * d)
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)
    assert found.value == pytest.approx(f(expected)[0] + penalty.value(expected), rel=1e-12)
    assert (found.weights == 0).tolist() == (expected == 0).tolist()


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_owl_qn_and_proximal_steps_agree(seed: int):
    rng = np.random.default_rng(seed)
    f = logistic(rng, 50, 8)
    penalty = Penalty(l1=3.0, l2=np.r_[0.0, np.ones(7)])
    one, two = (solve(f, np.ones(8), solver=s, penalty=penalty) for s in (LBFGS(**TIGHT), ProximalGradient(**TIGHT)))
    assert one.value == pytest.approx(two.value, rel=1e-9)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-4)


def test_the_rate_of_accelerated_steps():
    """Twice the steepness by the squared distance over the squared iterations (Beck and Teboulle, theorem 4.4)."""
    scale = np.geomspace(1, 1e4, 30)

    def f(w: np.ndarray) -> tuple[float, np.ndarray]:
        return 0.5 * float(scale @ (w - 1) ** 2), scale * (w - 1)

    found = solve(f, np.zeros(30), solver=ProximalGradient(**TIGHT))
    k = np.arange(len(found.history))
    # Halving steps can make them half as long as they could be.
    assert (np.array(found.history) <= 2 * 2e4 * 30 / (k + 2) ** 2).all()
    assert found.converged and found.iterations < 2000


def test_an_exact_line_search_makes_orthogonal_steps():
    f, _, _ = quadratic(np.random.default_rng(5), 4)
    seen: list[np.ndarray] = [np.zeros(4)]
    solve(f, seen[0], solver=SteepestDescent(max_iterations=6), callback=lambda i, v, w: seen.append(w))
    steps = np.diff(seen, axis=0)
    for a, b in itertools.pairwise(steps):
        assert abs(a @ b) < 2e-4 * np.linalg.norm(a) * np.linalg.norm(b) * 10


@pytest.mark.parametrize("solver", ["lbfgs", "steepest_descent", "proximal_gradient"])
class TestObjectivesThatAreNoGood:
    def test_not_finite_at_the_start(self, solver: str):
        for value, slope in ((np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0)):
            found = solve(lambda w, v=value, s=slope: (v, np.full(2, s)), np.ones(2), solver=solver)
            assert not found.converged and "not finite at the start" in found.message
            assert found.weights.tolist() == [1, 1]

    def test_not_finite_farther_on(self, solver: str):
        def f(w: np.ndarray) -> tuple[float, np.ndarray]:
            if w[0] > 0.5:
                return np.nan, np.full(1, np.nan)
            return float((w[0] - 1) ** 2), 2 * (w - 1)

        found = solve(f, np.zeros(1), solver=solver)
        assert np.isfinite(found.weights).all() and np.isfinite(found.value) and 0 < found.weights[0] <= 0.5

    def test_a_gradient_of_another_function(self, solver: str):
        found = solve(lambda w: (float(w @ w), -2 * w), np.ones(3), solver=solver)
        assert not found.converged and "lowers the objective" in found.message
        assert found.weights.tolist() == [1, 1, 1]

    def test_unbounded_below(self, solver: str):
        found = solve(lambda w: (float(-w.sum()), -np.ones(2)), np.zeros(2), solver=solver)
        assert not found.converged and ("run away" in found.message or "no minimum" in found.message)
        assert np.isfinite(found.weights).all()

    def test_separable_data(self, solver: str):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(40, 3))
        y = np.where(x[:, 0] > 0, 1.0, -1.0)
        x[:, 0] += 0.5 * y

        def f(w: np.ndarray) -> tuple[float, np.ndarray]:
            margin = y * (x @ w)
            return float(np.logaddexp(0, -margin).sum()), -x.T @ (y * np.exp(-np.logaddexp(0, margin)))

        found = solve(f, np.zeros(3), solver=solver)
        assert not found.converged and ("run away" in found.message or "no minimum" in found.message)
        assert np.isfinite(found.weights).all()
        kept = solve(f, np.zeros(3), solver=solver, penalty=Penalty(l2=0.1))
        assert kept.converged, kept.message

    def test_it_stops_with_what_it_has(self, solver: str):
        f = logistic(np.random.default_rng(1), 50, 5)
        told: list[Progress] = []

        def stop(progress: Progress) -> bool:
            told.append(progress)
            return len(told) == 4

        found = solve(f, np.zeros(5), solver=solver, running=Running(1, callback=stop))
        assert "stopped by the callback" in found.message and not found.converged
        assert found.value < f(np.zeros(5))[0] and found.value == pytest.approx(f(found.weights)[0])
        assert all(p.value is not None for p in told[-1:])
        found = solve(f, np.zeros(5), solver=solver, callback=lambda i, value, w: i == 2)
        assert found.iterations == 2 and len(found.history) == 2
        calls = [0]

        def impatient(w: np.ndarray) -> tuple[float, np.ndarray]:
            calls[0] += 1
            if calls[0] > 7:
                raise StoppedError("enough")
            return f(w)

        found = solve(impatient, np.zeros(5), solver=solver)
        assert found.message == "enough" and found.iterations > 0

    def test_it_goes_on_exactly_where_it_was(self, solver: str, tmp_path: Path):
        f = logistic(np.random.default_rng(2), 80, 12)
        whole = solve(f, np.zeros(12), solver=solver, penalty=Penalty(l2=0.1))
        checkpoint = Checkpoint(tmp_path / "state", seconds=0.0)
        assert whole.iterations > 8
        for stop in (3, 7, 10**9):
            part = solve(
                f,
                np.zeros(12),
                solver=solver,
                penalty=Penalty(l2=0.1),
                checkpoint=checkpoint,
                callback=lambda i, value, w, stop=stop: i == stop,
            )
        np.testing.assert_array_equal(part.weights, whole.weights)
        assert part.history == whole.history and part.iterations == whole.iterations
        assert [p.name for p in tmp_path.iterdir()] == ["state"]
        with pytest.raises(ModelError, match="belongs to another objective"):
            solve(f, np.zeros(12), solver=solver, checkpoint=checkpoint)
        with pytest.raises(ModelError, match="has 12 weights, and there are 3"):
            solve(f, np.zeros(3), solver=solver, checkpoint=checkpoint)

    def test_nothing_to_do(self, solver: str):
        assert solve(lambda w: (1.0, np.zeros(0)), np.zeros(0), solver=solver).converged


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(1, 40), st.sampled_from(["lbfgs", "proximal_gradient", "steepest_descent"]))
def test_a_minimum_that_is_far_away_is_one(seed: int, iterations: int, solver: str):
    rng = np.random.default_rng(seed)
    f, _, _ = quadratic(rng, 6)
    far = {"lbfgs": LBFGS, "proximal_gradient": ProximalGradient, "steepest_descent": SteepestDescent}[solver]

    def scaled(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = f(w / 1e3)
        return value, gradient / 1e3

    found = solve(scaled, np.zeros(6), solver=far(max_iterations=iterations))
    assert "no minimum" not in found.message and "run away" not in found.message


def test_a_checkpoint_of_another_solver_and_a_damaged_one(tmp_path: Path):
    f, _, _ = quadratic(np.random.default_rng(0), 3)
    solve(f, np.zeros(3), checkpoint=Checkpoint(tmp_path / "a"))
    with pytest.raises(ModelError, match="no checkpoint of proximal_gradient but of 'lbfgs'"):
        solve(f, np.zeros(3), solver="fista", checkpoint=Checkpoint(tmp_path / "a"))
    (tmp_path / "a").write_bytes(b"PK what is this")
    with pytest.raises(FormatError, match="cannot be loaded"):
        solve(f, np.zeros(3), checkpoint=Checkpoint(tmp_path / "a"))


def test_what_is_refused():
    f, _, _ = quadratic(np.random.default_rng(0), 3)
    grouped = Penalty(groups=np.zeros(3, int), group_l1=1.0)
    with pytest.raises(ModelError, match="LBFGS cannot penalise norms of groups; use ProximalGradient"):
        solve(f, np.zeros(3), penalty=grouped)
    with pytest.raises(ModelError, match="SteepestDescent needs a smooth objective; use ProximalGradient"):
        solve(f, np.zeros(3), solver="steepest_descent", penalty=grouped)
    with pytest.raises(ModelError, match="solver must be one of 'lbfgs'"):
        solve(f, np.zeros(3), solver="newton")
    with pytest.raises(ModelError, match="start must be a vector of finite numbers"):
        solve(f, [np.nan, 0.0, 0.0])
    with pytest.raises(ModelError, match="l1 of Penalty has 2 entries, and there are 3 weights"):
        solve(f, np.zeros(3), penalty=Penalty(l1=np.ones(2)))
    with pytest.raises(ModelError, match="line_search of SteepestDescent must be 'exact' or 'backtracking'"):
        SteepestDescent(line_search="wolfe")
