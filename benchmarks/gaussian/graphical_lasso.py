"""The graphical lasso against scikit-learn's, and GGLasso's where it is installed, in the same run.

A section of ``python -m benchmarks.gaussian``. Rows of a Gaussian on a random graph of about three neighbours, 1000 of
them; correlation matrices; penalty 0.1, not on the diagonal (as scikit-learn's and GGLasso's; R's glasso has it there).
The duality gap of every answer is computed by the same function from its precision and covariance, and ours is asked to
be no larger than that of the peer it runs in turn with (1e-2 at the most). Seconds are of the processor, one thread,
medians; where a peer takes over ten seconds, of one run. ``goal`` is that of the project; R's glasso and huge and QUIC
are not run here.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import Table
from markovfield.learning.gaussian.lasso_solver import cholesky, inverse_of, minimise, objective_and_gap

__all__ = ["run"]

PENALTY, ROWS, NEIGHBOURS = 0.1, 1000, 3
GOALS = {100: 0.005, 500: 0.15, 1000: 1.0}
LONG = 10.0


def correlations(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Of rows whose precision is diagonally dominant on a random graph."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(n, size=(2, n * NEIGHBOURS // 2))
    precision = np.zeros((n, n))
    precision[first, second] = rng.uniform(0.3, 0.8, len(first)) * rng.choice([-1, 1], len(first))
    precision = np.triu(precision, 1) + np.triu(precision, 1).T
    precision += np.diag(np.abs(precision).sum(axis=1) + 0.3)
    rows = np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal((n, ROWS)))
    return np.ascontiguousarray(np.corrcoef(rows))


def gap_of(s: np.ndarray[Any, Any], precision: np.ndarray[Any, Any]) -> float:
    """How far above the least value a precision is at the most, its own inverse being the way to the dual problem."""
    x = np.ascontiguousarray((precision + precision.T) / 2)
    factor = cholesky(x)
    if factor is None:
        return float("inf")
    log_det = 2 * float(np.log(np.diag(factor)).sum())
    return objective_and_gap(s, x, inverse_of(factor), log_det, PENALTY)[1]


def peers(s: np.ndarray[Any, Any]) -> dict[str, Callable[[], np.ndarray[Any, Any]]]:
    """Those that are installed."""
    from sklearn.covariance import graphical_lasso

    found: dict[str, Callable[[], np.ndarray[Any, Any]]] = {"scikit-learn": lambda: graphical_lasso(s, PENALTY)[1]}
    try:
        from gglasso.solver.single_admm_solver import block_SGL
    except ImportError:
        return found
    start = np.eye(len(s))
    found["gglasso"] = lambda: block_SGL(s, PENALTY, start, tol=1e-7, rtol=1e-6)["Theta"]
    return found


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and the answer."""
    started = time.process_time()
    answer = function()
    return time.process_time() - started, answer


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Every size: ours to 1e-6, then to the peers' own gap in turns with each."""
    minimise(correlations(60), PENALTY)  # compiled before it is timed
    table = Table(
        f"graphical lasso, penalty {PENALTY}, {ROWS} rows",
        ["n", "who", "seconds", "gap", "edges", "ours", "ratio", "goal"],
        second=14,
    )
    results = []
    for n in (100, 200) if quick else (100, 500, 1000):
        s = correlations(n)
        own = [timed(lambda s=s: minimise(s, PENALTY, tolerance=1e-6)) for _ in range(5)]
        best = own[-1][1]
        seconds = median(t for t, _ in own)
        edges = (best.precision.nnz - n) // 2
        table.row(n, "ours", seconds, best.gap, edges, None, None, GOALS.get(n))
        results.append({"n": n, "who": "ours", "seconds": seconds, "gap": best.gap, "edges": edges})
        for name, solve in peers(s).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                took = [timed(solve)]
                theirs = gap_of(s, took[0][1])
                tolerance = min(max(theirs, 1e-9), 1e-2)
                ours = [timed(lambda s=s, t=tolerance: minimise(s, PENALTY, tolerance=t))]
                while took[0][0] < LONG and len(took) < 3:
                    took.append(timed(solve))
                    ours.append(timed(lambda s=s, t=tolerance: minimise(s, PENALTY, tolerance=t)))
            mine, other = (median(t for t, _ in runs) for runs in (ours, took))
            count = (np.count_nonzero(took[0][1]) - n) // 2
            table.row(n, name, other, theirs, count, mine, other / mine, None)
            results.append({"n": n, "who": name, "seconds": other, "gap": theirs, "edges": count, "ours": mine})
    return results


if __name__ == "__main__":
    run()
