"""Sparse graphs of spins along a path of penalties, against scikit-learn's logistic regressions in the same run.

Run as ``python -m benchmarks.learning.undirected_structures``. Spins are drawn from an Ising model on a random
3-regular graph. Nodewise regressions of both minimise the same objective, which is compared; the group lasso ties the
two directions of a pair, which scikit-learn cannot. scikit-learn runs every regression by itself, as its users do, with
liblinear (its quickest solver here; the intercept is scaled so that its penalty does not matter) or saga. Both seconds
of the clock and of the processor are shown. Results go to stdout and, as JSON, to ``benchmarks/results/``."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

import markovfield as mf
from benchmarks.measure import Table, machine, save
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.structures.coded_rows import CodedRows
from markovfield.learning.structures.group_lasso import GroupLasso
from markovfield.learning.structures.penalty_path import follow
from markovfield.learning.structures.regressions import Regressions, one_blas_thread

__all__ = ["main"]


def drawn(n: int, rows: int, seed: int = 0) -> tuple[DataTable, np.ndarray[Any, Any], nx.Graph]:
    """Spins of a random 3-regular graph with couplings -0.4 and +0.4, by many sweeps of Gibbs sampling."""
    graph = nx.random_regular_graph(3, n, seed=seed)
    rng = np.random.default_rng(seed)
    weights = np.zeros((n, n))
    for a, b in graph.edges:
        weights[a, b] = weights[b, a] = rng.choice([-0.4, 0.4])
    spins = rng.choice([-1.0, 1.0], (rows, n))
    for _ in range(50):
        for s in range(n):
            spins[:, s] = np.where(rng.random(rows) < 1 / (1 + np.exp(-2 * spins @ weights[s])), 1.0, -1.0)
    return DataTable(tuple(range(n)), ((-1, 1),) * n, ((spins.T + 1) / 2).astype(np.int16)), spins, graph


def timed(task: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a task gives, its seconds by the clock and by the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    found = task()
    return found, time.perf_counter() - clock, time.process_time() - processor


def of_scikit_learn(spins: Any, penalties: Any, solver: str, nodes: list[int], tolerance: float) -> list[float]:
    """The objectives of all penalties, summed over some nodes."""
    from sklearn.linear_model import LogisticRegression

    totals = [0.0] * len(penalties)
    scaling = {"intercept_scaling": 100.0} if solver == "liblinear" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for s in nodes:
            x, y = np.delete(spins, s, axis=1), spins[:, s]
            for i, penalty in enumerate(penalties):
                # Log-odds are 2 J times a spin, so a penalty on J is half of one on the coefficients.
                peer = LogisticRegression(
                    solver=solver, l1_ratio=1.0, C=2 / penalty, tol=tolerance, max_iter=1000, **scaling
                ).fit(x, y)
                margins = y * (x @ peer.coef_[0] + peer.intercept_[0])
                totals[i] += float(np.logaddexp(0, -margins).sum() + 0.5 * penalty * np.abs(peer.coef_).sum())
    return totals


def compare(given: argparse.Namespace) -> dict[str, Any]:
    """Ours and theirs on the same penalties."""
    table, spins, graph = drawn(given.variables, given.rows)
    rows = CodedRows.of(table, "benchmark")
    n, nodes = given.variables, list(range(min(given.nodes or given.variables, given.variables)))
    largest = Regressions(rows, tied=False).largest_penalty
    penalties = np.geomspace(largest, 2 * np.sqrt(given.rows), given.penalties)
    follow(Regressions(CodedRows.of(table, "benchmark"), tied=False), penalties[:2])  # compiles
    shown = Table(
        f"{n} spins, {given.rows} rows, path of {given.penalties} penalties: seconds",
        ("", "clock", "processor", "ratio", "ratio (processor)", "edges", "objective above ours"),
        first=34,
    )

    def path(tied: bool, jobs: int | None, scale: float = 1.0) -> Any:
        with one_blas_thread():
            fit = Regressions(CodedRows.of(table, "benchmark"), tied=tied, running=Running(jobs))
            return follow(fit, scale * penalties)[0]

    found: dict[str, Any] = {"penalties": penalties}
    share = n / len(nodes)
    note = "" if share == 1 else f", {len(nodes)} of {n} regressions scaled up"
    theirs = {}
    for solver in given.solvers.split(","):
        objectives, clock, processor = timed(lambda w=solver: of_scikit_learn(spins, penalties, w, nodes, given.tol))
        theirs[solver] = (objectives, share * clock, share * processor)
        found[solver] = {"objectives": objectives, "seconds": share * clock, "processor": share * processor}
    best = min((t[1], t[2]) for t in theirs.values())
    ours: Any = None
    for name, tied, jobs in (
        ("nodewise, 1 thread", False, 1),
        ("nodewise", False, None),
        ("group lasso, 1 thread", True, 1),
        ("group lasso", True, None),
    ):
        # Twice the penalty for the group lasso: both conditionals of a pair weigh against it.
        steps, clock, processor = timed(lambda t=tied, j=jobs: path(t, j, 2.0 if t else 1.0))
        if not tied:
            ours = [step.objective for step in steps]
        found[name] = {"seconds": clock, "processor": processor, "objectives": [step.objective for step in steps]}
        shown.row(name, clock, processor, best[0] / clock, best[1] / processor, len(steps[-1].pairs))
    for solver, (objectives, clock, processor) in theirs.items():
        above = None
        if share == 1:
            above = f"{max(t / o - 1 for t, o in zip(objectives, ours, strict=True)):.1e}"
        shown.row(f"scikit-learn, {solver}{note}", clock, processor, 1.0, 1.0, None, above)
    learned, clock, processor = timed(lambda: mf.learn_structure(table, GroupLasso()))
    wrong = {frozenset(e) for e in learned.edges} ^ {frozenset(e) for e in graph.edges}
    shown.row("learn_structure, 30 penalties, EBIC", clock, processor, None, None, len(learned.edges))
    shown.note(f"{len(wrong)} of {graph.number_of_edges()} edges wrong. ratio: scikit-learn's quickest by ours.")
    return found


def growth() -> list[dict[str, Any]]:
    """The group lasso's path of 30 penalties for several sizes."""
    shown = Table(
        "growth, path of 30 penalties, 1 thread", ("spins", "rows", "clock", "processor", "Newton steps", "edges")
    )
    results = []
    for n, rows in ((100, 2500), (100, 10_000), (100, 40_000), (50, 10_000), (200, 10_000), (400, 10_000)):
        table = drawn(n, rows)[0]
        learned, clock, processor = timed(lambda t=table: mf.learn_structure(t, GroupLasso(), n_jobs=1))
        shown.row(str(n), rows, clock, processor, learned.iterations, int(learned.details.n_edges.max()))
        results.append({"spins": n, "rows": rows, "seconds": clock, "processor": processor})
    return results


def main() -> None:
    """The comparison, then growth."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning.undirected_structures", description=__doc__)
    parser.add_argument("--variables", type=int, default=100)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--penalties", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=0, help="regressions scikit-learn is asked for; all by default")
    parser.add_argument("--solvers", default="liblinear", help="of scikit-learn, comma-separated; %(default)s")
    parser.add_argument("--tol", type=float, default=1e-5, help="scikit-learn's tolerance; %(default)s")
    parser.add_argument("--no-growth", action="store_true")
    given = parser.parse_args()
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, Python {about['python']}, load {about['load']}")
    results = {"machine": about, "comparison": compare(given), "growth": [] if given.no_growth else growth()}
    print(save("undirected_structures", results))


if __name__ == "__main__":
    main()
