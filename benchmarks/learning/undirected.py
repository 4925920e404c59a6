"""Undirected learning: likelihood, pseudo-likelihood and belief propagation on lattices and sparse graphs, with peers.

``python -m benchmarks.learning.undirected [--quick]``. Peers in the same run: scikit-learn's LogisticRegression, node
by node, for pseudo-likelihood (without its symmetry); mbi, in the interpreter that ``MARKOVFIELD_PEERS`` names, for the
likelihood. Tables, Boltzmann machines and structures have benchmarks of their own: `tables`, `boltzmann`,
`undirected_structures`.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.learning.tables import peer
from benchmarks.measure import Table, machine, save
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import encode
from markovfield.learning.core.rows import as_rows
from markovfield.learning.undirected.local_objective import LocalObjective
from markovfield.learning.undirected.problem import Problem, cell_counts
from markovfield.learning.undirected.sites_kernel import PSEUDO


def timed(run: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """CPU seconds of the quickest of some runs, and the last answer; the first, which may compile, does not count."""
    run()
    best, answer = math.inf, None
    for _ in range(repeats):
        start = time.process_time()
        answer = run()
        best = min(best, time.process_time() - start)
    return best, answer


def nodewise(model: mf.Ising, rows: np.ndarray) -> float:
    """CPU seconds of one unpenalised logistic regression for each site on its neighbours."""
    from sklearn.linear_model import LogisticRegression

    spins = 2.0 * rows - 1.0
    near: list[list[int]] = [[] for _ in range(model.n_variables)]
    for a, b in model.edges.tolist():
        near[a].append(b)
        near[b].append(a)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for site, others in enumerate(near):
            LogisticRegression(C=np.inf, tol=1e-6).fit(spins[:, others], rows[:, site])
    return time.process_time() - start


def lattice_rows(model: mf.Ising, n: int, seed: int = 0) -> np.ndarray:
    """Configurations of a lattice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(mf.sample(model, n, method=mf.methods.Gibbs(burn_in=300), rng=seed).states)


def report_row(table: Table, what: str, seconds: float, fitted: Any, other: str, ratio: str) -> None:
    """One line."""
    told = fitted.fit_report
    table.row(
        what, f"{seconds:.3f}", f"{told.iterations} / {told.evaluations}", f"{told.planning_seconds * 1e3:.1f}",
        f"{(told.seconds - told.planning_seconds) * 1e3 / max(1, told.evaluations):.2f}", told.guarantee, other, ratio,
    )  # fmt: skip


def sparse_network(n: int, seed: int) -> mf.MarkovNetwork:
    """A random graph of n two-state variables with a small junction tree: a partial 3-tree."""
    rng = np.random.default_rng(seed)
    edges = set()
    for v in range(1, n):
        for u in rng.choice(np.arange(max(0, v - 5), v), min(v, 2, v - max(0, v - 5)), replace=False):
            edges.add((int(u), v))
    return mf.MarkovNetwork.from_edges(dict.fromkeys(range(n), 2), sorted(edges))


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(machine())
    columns = (
        "work",
        "CPU s",
        "iterations / evaluations",
        "planning ms",
        "ms an evaluation",
        "guarantee",
        "peer",
        "ratio",
    )
    table = Table("undirected learning", columns, first=60)
    side, n = 32, 1000
    truth = mf.Ising((side, side), coupling=np.full(2 * side * (side - 1), 0.3))
    rows = lattice_rows(truth, n)
    start = truth.with_parameters(np.zeros(len(truth.edges)))
    seconds, fitted = timed(lambda: mf.fit(start, rows, method="pl"), 2)
    other = nodewise(truth, rows)
    report_row(table, f"PL, {side} x {side} Ising, 1984 couplings, {n} rows", seconds, fitted,
               f"scikit-learn nodewise {other:.2f} s", f"{other / seconds:.1f}")  # fmt: skip
    planar = mf.methods.MaximumLikelihood(inference="planar")
    seconds, fitted = timed(lambda: mf.fit(start, rows, method=planar), 1)
    report_row(table, "exact ML by planar inference, the same", seconds, fitted, "none", "-")
    net = sparse_network(100, 1)
    drawn = mf.LogLinear.of(net)
    drawn = drawn.with_parameters(np.random.default_rng(2).normal(0, 0.5, len(drawn.parameters)))
    data = mf.sample(drawn, 5000, rng=3)
    for name, method in (("ML", "ml"), ("IPF", "ipf"), ("PL", "pl")):
        seconds, fitted = timed(lambda method=method: mf.fit(net, data, method=method))
        said, ratio = "-", "-"
        if name == "ML" and not quick:
            counts = cell_counts(net.compile().structure, encode(data, net), Running())
            graph = net.compile()
            scopes = [graph.structure.scope(f).tolist() for f in range(graph.n_factors)]
            margins = [counts[graph.cells(f)] for f in range(graph.n_factors)]
            found = peer("mbi", [2] * 100, scopes, margins, None, 600)
            if "seconds" in found:
                said = f"mbi {found['seconds']:.2f} s, moments off by {found['deviation']:.1e}"
                ratio = f"{found['seconds'] / seconds:.0f}"
            else:
                said = found["skip"]
        report_row(table, f"{name}, 100 variables, {net.compile().n_factors - 100} edges, 5000 rows",
                   seconds, fitted, said, ratio)  # fmt: skip
    big = mf.Ising((100, 100), coupling=0.25, field=0.1)
    rows = lattice_rows(big, 20, 1)
    bethe = mf.methods.MaximumLikelihood(inference="belief_propagation")
    seconds, fitted = timed(lambda: mf.fit(big.with_parameters([0.0, 1e-3]), rows, method=bethe), 1)
    report_row(table, "ML by BP, 100 x 100 lattice, 2 parameters, 20 rows", seconds, fitted, "none", "-")
    free = mf.Ising((100, 100), coupling=np.zeros(len(big.edges)), field=np.zeros((100, 100)))
    many = lattice_rows(big, 500, 2)
    strong = mf.methods.MaximumLikelihood(inference="belief_propagation", l2=5.0)
    seconds, fitted = timed(lambda: mf.fit(free, many, method=strong), 1)
    report_row(table, "ML by BP, 100 x 100 lattice, 29,800 parameters, 500 rows", seconds, fitted, "none", "-")
    growth = Table(
        "growth of pseudo-likelihood", ("n x n sites", "rows", "configurations", "planning ms", "ms an evaluation")
    )
    for size in (8, 16, 32) if not quick else (8, 16):
        model = mf.Ising((size, size), coupling=np.full(2 * size * (size - 1), 0.3))
        rows = lattice_rows(model, 16_000 if size < 32 else 4000)
        for n in (1000, 4000, 16_000):
            if n > len(rows):
                continue
            begun = time.process_time()
            problem = Problem(model.log_linear(), encode(as_rows(model, rows[:n]), model), Running())
            objective = LocalObjective(problem, PSEUDO)
            planned = time.process_time() - begun
            theta = np.array(problem.model.parameters)
            seconds, _ = timed(lambda objective=objective, theta=theta: objective(theta), 5)
            growth.row(size, n, int(objective.cases.offsets[-1]), f"{planned * 1e3:.0f}", f"{seconds * 1e3:.2f}")
    save("undirected", {})


if __name__ == "__main__":
    main()
