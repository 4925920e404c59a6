"""L-BFGS and OWL-QN against problems with known answers and against scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from markovfield.exceptions import StoppedError
from markovfield.inference.core.running import Running
from markovfield.learning.solvers.quasi_newton import PART, _History, minimise


def logistic(rng: np.random.Generator, n: int = 200, d: int = 30) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, d))
    return x, np.where(x @ rng.normal(size=d) + rng.normal(size=n) > 0, 1.0, -1.0)


def objective(x: np.ndarray, y: np.ndarray, l2: float):
    def f(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = y * (x @ w)
        return (
            float(np.logaddexp(0, -margin).sum() + l2 / 2 * w @ w),
            -x.T @ (y / (1 + np.exp(margin))) + l2 * w,
        )

    return f


@pytest.mark.parametrize("memory", [1, 3, 10])
def test_as_low_as_scipy(memory: int):
    f = objective(*logistic(np.random.default_rng(0)), 0.5)
    ours = minimise(f, np.zeros(30), memory=memory, tolerance=1e-14, gradient_tolerance=1e-9)
    theirs = minimize(f, np.zeros(30), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    assert ours.converged and ours.value == pytest.approx(theirs.fun, rel=1e-10)
    np.testing.assert_allclose(ours.weights, theirs.x, atol=1e-5)
    assert all(a >= b for a, b in zip(ours.history, ours.history[1:], strict=False))


def test_a_valley_that_bends():
    def rosenbrock(w: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = w
        return (1 - a) ** 2 + 100 * (b - a * a) ** 2, np.array(
            [-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)]
        )

    found = minimise(rosenbrock, np.array([-1.2, 1.0]), tolerance=1e-30, gradient_tolerance=1e-9)
    np.testing.assert_allclose(found.weights, [1, 1], atol=1e-7)


def test_l1_satisfies_its_optimality_conditions():
    x, y = logistic(np.random.default_rng(1), 100, 40)
    l1 = np.full(40, 8.0)
    l1[0] = 0.0  # an unpenalised weight among the others
    f = objective(x, y, 0.1)
    found = minimise(f, np.zeros(40), l1=l1, tolerance=1e-15, gradient_tolerance=1e-8, max_iterations=5000)
    gradient = f(found.weights)[1]
    zero = found.weights == 0
    assert 5 < zero.sum() < 39
    assert (np.abs(gradient[zero]) <= l1[zero] + 1e-6).all()
    np.testing.assert_allclose(gradient[~zero], -l1[~zero] * np.sign(found.weights[~zero]), atol=1e-5)
    assert found.value == pytest.approx(f(found.weights)[0] + l1 @ np.abs(found.weights))


def test_stops_when_told_and_keeps_what_it_has():
    f = objective(*logistic(np.random.default_rng(2)), 0.5)
    stopped = minimise(f, np.zeros(30), callback=lambda i, value, w: i == 3)
    assert stopped.iterations == 3 and not stopped.converged and "callback" in stopped.message
    calls = [0]

    def impatient(w: np.ndarray) -> tuple[float, np.ndarray]:
        calls[0] += 1
        if calls[0] > 5:
            raise KeyboardInterrupt
        return f(w)

    kept = minimise(impatient, np.zeros(30))
    assert not kept.converged and kept.value == pytest.approx(f(kept.weights)[0])


def test_already_there_and_nothing_to_do():
    found = minimise(lambda w: (float(w @ w), 2 * w), np.zeros(4))
    assert found.converged and found.iterations == 0
    assert minimise(lambda w: (1.0, np.zeros(0)), np.zeros(0)).converged


def test_long_vectors_go_in_parts_on_any_number_of_threads():
    n = 2 * PART + 17
    rng = np.random.default_rng(3)
    scale, goal = rng.uniform(0.5, 5.0, n), rng.normal(size=n)

    def bowl(w: np.ndarray) -> tuple[float, np.ndarray]:
        return float(0.5 * (scale * (w - goal) ** 2).sum()), scale * (w - goal)

    exact = {"tolerance": 1e-14, "gradient_tolerance": 1e-9}
    found = [minimise(bowl, np.zeros(n), n_jobs=jobs, **exact) for jobs in (1, 2, None)]
    assert found[0].converged and found[0].iterations > 3
    np.testing.assert_allclose(found[0].weights, goal, atol=1e-4)
    for other in found[1:]:
        np.testing.assert_array_equal(other.weights, found[0].weights)


def test_the_history_gives_the_direction_of_the_two_loops():
    rng = np.random.default_rng(4)
    d, memory = 12, 3
    root = rng.normal(size=(d, d))
    hessian = root @ root.T + np.eye(d)
    history, pairs = _History(d, memory, Running(1)), []
    points = rng.normal(size=(6, d))
    for old, new in itertools.pairwise(points):
        history.add(new, old, (hessian @ new, hessian @ old), slope := rng.normal(size=d))
        pairs = [*pairs, (new - old, hessian @ (new - old))][-memory:]
        q, alphas = slope.copy(), []
        for s, y in reversed(pairs):
            alphas.append(s @ q / (s @ y))
            q -= alphas[-1] * y
        s, y = pairs[-1]
        q *= s @ y / (y @ y)
        for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
            q += (alpha - y @ q / (s @ y)) * s
        np.testing.assert_allclose(history.direction(slope), -q, rtol=1e-9, atol=1e-12)
    # A pair that bends the wrong way is not used.
    known = history.length
    history.add(points[0], points[1], (points[1], points[0]), slope)
    assert history.length == known - 1
    assert history.direction(slope) @ slope < 0


def test_stopped_before_anything_is_known():
    def stop(w: np.ndarray) -> tuple[float, np.ndarray]:
        raise StoppedError("enough")

    found = minimise(stop, np.ones(3))
    assert found.iterations == 0 and found.message == "enough" and np.isnan(found.value)
    assert found.weights.tolist() == [1.0, 1.0, 1.0]
    calls = []

    def later(w: np.ndarray) -> tuple[float, np.ndarray]:
        calls.append(w)
        if len(calls) > 1:
            raise StoppedError("enough")
        return float(w @ w), 2 * w

    kept = minimise(later, np.ones(3))
    assert kept.iterations == 0 and kept.value == 3.0 and kept.weights.tolist() == [1.0, 1.0, 1.0]
