"""Sparse Cholesky on lattices: order and factor, one draw, all variances, memory, growth with the number of sites.

Ours against SciPy's SuperLU and CHOLMOD (by CVXOPT's wheel, or scikit-sparse where it can be built). Neither has a
selected inverse: their variances are columns of the inverse, timed for a few and multiplied.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gaussian.matrices import lattice
from benchmarks.measure import Table, memory, reset_peak
from benchmarks.peers import Peers

__all__ = ["run"]

CLOCK = time.process_time
COLUMNS = 16
# log det and mean variance on 300 x 300, as CHOLMOD and selinv have them.
KNOWN = {"car": (105110.550693, 0.657894437145), "spde": (218691.307016, 0.858921873060)}


def _ours(matrix: Any) -> dict[str, float]:
    from markovfield.gaussian.sparse_cholesky import CholeskyPlan

    n = matrix.shape[0]
    held = reset_peak()
    start = CLOCK()
    plan = CholeskyPlan(matrix, None, None)
    planned = CLOCK()
    factor = plan.factorise(matrix.data)
    made = CLOCK()
    factor.upper_solve(np.random.default_rng(0).standard_normal(n))
    drawn = CLOCK()
    inverse = factor.selected_inverse()
    after = CLOCK()
    return {
        "plan": planned - start,
        "factor": made - start,
        "sample": drawn - made,
        "variances": after - drawn,
        "log_determinant": factor.log_determinant,
        "mean_variance": float(inverse.diagonal.mean()),
        "memory": memory("VmHWM") - held,
        "flops": plan.flops,
        "fill": plan.fill,
    }


def _scipy(matrix: Any) -> dict[str, float]:
    from scipy.sparse.linalg import splu

    n = matrix.shape[0]
    held = reset_peak()
    start = CLOCK()
    factor = splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    made = CLOCK()
    factor.solve(np.random.default_rng(0).standard_normal(n))  # a draw would be half of it, which SciPy cannot do alone
    drawn = CLOCK()
    factor.solve(np.eye(n, COLUMNS))
    after = CLOCK()
    return {
        "factor": made - start,
        "sample": drawn - made,
        "variances": (after - drawn) * n / COLUMNS,
        "log_determinant": float(np.log(np.abs(factor.U.diagonal())).sum()),
        "memory": memory("VmHWM") - held,
    }


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(r[name] for r in runs) for name in runs[0]}


def run(quick: bool) -> dict[str, Any]:
    """All sizes; prints as it goes."""
    sides = (100, 300) if quick else (100, 300, 1000)
    found: dict[str, Any] = {}
    _ours(lattice(160, "car"))  # compiles
    with Peers(["cvxopt", "sksparse"], "gaussian/cholmod_worker.py") as peers:
        title = "lattices, seconds of the processor (SciPy and CHOLMOD: variances by columns, extrapolated)"
        table = Table(title, ["side", "who", "factor", "sample", "variances", "log det", "mean var", "GB"], second=9)
        for kind in ("car", "spde"):
            for side in sides:
                matrix = lattice(side, kind)
                repeats = 1 if quick or side > 300 else 5
                ways: dict[str, Callable[[], dict[str, float]]] = {"ours": lambda m=matrix: _ours(m)}
                asked = side <= 300 or kind == "car"  # the other takes the peers minutes and too much memory
                if asked:
                    ways["splu"] = lambda m=matrix: _scipy(m)
                runs: dict[str, list[dict[str, float]]] = {}
                for _ in range(repeats):
                    for name, once in ways.items():
                        runs.setdefault(name, []).append(once())
                    for name in peers.names if asked else ():
                        job = {"peer": name, "side": side, "kind": kind, "columns": COLUMNS}
                        answer = peers.ask(name, job, 600.0)
                        if answer["status"] == "ok":
                            runs.setdefault(name, []).append(answer)
                        else:
                            table.note(f"{name}: {answer.get('error', answer['status'])}")
                best = {
                    name: _medians([{k: v for k, v in r.items() if k != "status"} for r in each])
                    for name, each in runs.items()
                }
                found[f"{kind} {side}"] = best
                for name, each in best.items():
                    table.row(
                        f"{kind} {side}", name, each["factor"], each["sample"], each["variances"],
                        f"{each['log_determinant']:.6f}",
                        f"{each['mean_variance']:.12f}" if "mean_variance" in each else None, each["memory"] / 1e9,
                    )  # fmt: skip
                if side == 300:
                    off = abs(best["ours"]["log_determinant"] - KNOWN[kind][0])
                    assert off < 1e-6 and abs(best["ours"]["mean_variance"] - KNOWN[kind][1]) < 1e-11
                for name, each in best.items():
                    if name != "ours":
                        ratio = {k: each[k] / best["ours"][k] for k in ("factor", "sample", "variances")}
                        table.note(f"{name} / ours: " + ", ".join(f"{k} {v:.3g}" for k, v in ratio.items()))
        for kind in ("car", "spde"):
            _growth(table, kind, sides, found)
    return found


def _growth(table: Table, kind: str, sides: tuple[int, ...], found: dict[str, Any]) -> None:
    """Exponents in the number of sites: 1.5 is what a factorisation must have in the end, 1 what fill nearly has."""
    small, large = (found[f"{kind} {side}"]["ours"] for side in (sides[0], sides[-1]))
    ratio = 2 * np.log(sides[-1] / sides[0])
    grown = {name: np.log(large[name] / small[name]) / ratio for name in ("factor", "variances", "fill", "flops")}
    table.note(f"{kind}: grows like n to the " + ", ".join(f"{name} {value:.2f}" for name, value in grown.items()))
