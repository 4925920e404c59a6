"""Solvers on one logistic loss, ours, SciPy's L-BFGS-B and scikit-learn's SAGA, each until the same objective.

``python -m benchmarks.learning.solvers [--quick]``; about two minutes. The objective is within 1e-6 of the best,
relative to it. SAGA's passes are doubled until it is there, and only the last run is counted. Evaluations are calls of
the objective with its gradient, or passes over the rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from benchmarks.measure import Table, machine, save
from markovfield.learning.solvers.lbfgs import LBFGS
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.proximal_gradient import ProximalGradient
from markovfield.learning.solvers.solve import Solver, solve
from markovfield.learning.solvers.steepest_descent import SteepestDescent
from markovfield.learning.solvers.stochastic import AdaGrad, Adam, StochasticGradient

# Relative to the best objective found.
ENOUGH = 1e-6
SHARDS = 50


class Loss:
    """A logistic loss of rows with labels -1 and 1, whole and in shards."""

    def __init__(self, n: int, d: int) -> None:
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(n, d)) * np.geomspace(0.2, 2.0, d)
        weights = rng.normal(size=d) * (rng.random(d) < 0.3)
        self.y = np.where(self.x @ weights + 3 * rng.normal(size=n) > 0, 1.0, -1.0)
        self.n_shards = SHARDS
        self.parts = np.array_split(rng.permutation(n), SHARDS)

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = self.y * (self.x @ w)
        pull = self.y * np.exp(-np.logaddexp(0, margin))
        return float(np.logaddexp(0, -margin).sum()), -(pull @ self.x)

    def value(self, w: np.ndarray) -> float:
        return float(np.logaddexp(0, -self.y * (self.x @ w)).sum())

    def gradient(self, w: np.ndarray, shard: int, rng: np.random.Generator) -> np.ndarray:
        rows = self.parts[shard]
        x, y = self.x[rows], self.y[rows]
        return -SHARDS * ((y * np.exp(-np.logaddexp(0, y * (x @ w)))) @ x)


def ours(loss: Loss, solver: Solver, penalty: Penalty, target: float) -> list[Any]:
    """Iterations, evaluations, milliseconds and how far above the target it ended, of one of ours."""
    start = time.perf_counter()
    found = solve(
        loss, np.zeros(loss.x.shape[1]), solver=solver, penalty=penalty, rng=0,
        callback=lambda i, value, w: value <= target,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    passes = found.evaluations / SHARDS if solver.name in {"sgd", "adagrad", "adam"} else found.evaluations
    return [found.iterations, int(passes), 1e3 * seconds, found.value / target - 1]


def scipys(loss: Loss, penalty: Penalty, target: float) -> list[Any]:
    """The same of SciPy's L-BFGS-B."""
    calls, steps = [0], [0]

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        calls[0] += 1
        value, gradient = loss(w)
        more, slope = penalty.smooth(w)
        return value + more, gradient + slope

    def told(intermediate_result: Any) -> None:
        steps[0] += 1
        if intermediate_result.fun <= target:
            raise StopIteration

    start = time.perf_counter()
    done = minimize(
        objective, np.zeros(loss.x.shape[1]), jac=True, method="L-BFGS-B", callback=told,
        options={"ftol": 0.0, "gtol": 1e-12, "maxcor": 10, "maxiter": 5000},
    )  # fmt: skip
    return [steps[0], calls[0], 1e3 * (time.perf_counter() - start), done.fun / target - 1]


def sagas(loss: Loss, penalty: Penalty, target: float) -> list[Any]:
    """The same of scikit-learn's SAGA."""
    passes, seconds, above = 5, 0.0, np.inf
    strength = penalty.l1 or penalty.l2
    while above > 0 and passes < 2000:
        passes *= 2
        model = LogisticRegression(
            C=1 / float(strength), l1_ratio=1.0 if penalty.has_l1 else 0.0, solver="saga", fit_intercept=False,
            max_iter=passes, tol=1e-14, random_state=0,
        )  # fmt: skip
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(loss.x, loss.y)
        seconds = time.perf_counter() - start
        w = model.coef_[0]
        above = (loss.value(w) + penalty.value(w)) / target - 1
    return [passes, passes, 1e3 * seconds, above]


def rows(loss: Loss, penalty: Penalty) -> dict[str, list[Any]]:
    """Every solver that can, until the same objective."""
    exact = LBFGS(tolerance=0.0, gradient_tolerance=1e-10, max_iterations=5000)
    best = solve(loss, np.zeros(loss.x.shape[1]), solver=exact, penalty=penalty).value
    target = best + ENOUGH * abs(best)
    full = {"tolerance": 0.0, "gradient_tolerance": 0.0}
    solvers: dict[str, Solver] = {
        "OWL-QN" if penalty.has_l1 else "L-BFGS": LBFGS(**full),
        "proximal": ProximalGradient(accelerated=False, **full),
        "proximal, accelerated": ProximalGradient(**full),
        "SGD, averaged": StochasticGradient(passes=200),
        "AdaGrad": AdaGrad(passes=200),
        "Adam": Adam(passes=200),
    }
    if not penalty.has_l1:
        solvers["steepest descent"] = SteepestDescent(gradient_tolerance=0.0, max_iterations=2000)
    found: dict[str, list[Any]] = {}
    peers: dict[str, Callable[[], list[Any]]] = {"scikit-learn SAGA": lambda: sagas(loss, penalty, target)}
    if not penalty.has_l1:
        peers["SciPy L-BFGS-B"] = lambda: scipys(loss, penalty, target)
    for name, solver in solvers.items():
        found[name] = ours(loss, solver, penalty, target)
    for name, peer in peers.items():
        found[name] = peer()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    n = 2_000 if parser.parse_args().quick else 20_000
    loss = Loss(n, 200)
    results: dict[str, Any] = {"machine": machine(), "rows": n}
    for name, penalty in (("l2=1", Penalty(l2=1.0)), ("l1=20", Penalty(l1=20.0))):
        headers = ("solver", "iterations", "evaluations", "ms", "above")
        table = Table(f"logistic loss, {n:,} rows by 200, {name}", headers, first=22)
        results[name] = rows(loss, penalty)
        for solver, (iterations, evaluations, ms, above) in results[name].items():
            table.row(solver, iterations, evaluations, ms, "there" if above <= 0 else f"{above:.0e}")
    save("solvers", results)


if __name__ == "__main__":
    main()
