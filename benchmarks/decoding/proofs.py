"""Proofs of optimality: our branch and bound, toulbar2 and HiGHS on public instances, with score, bound and time.

``python -m benchmarks.decoding.proofs [--quick] [--limit 60] [--only NAME ...]``. Every solver has the same wall-clock
limit. HiGHS gets the integer program over the local polytope, and only where that has at most ``MOST_COLUMNS`` columns.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.measure import Table, machine, save
from markovfield.inference.branch_and_bound.branch_and_bound import BranchAndBound
from markovfield.inference.branch_and_bound.toulbar2 import Toulbar2
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.io.wcsp import read_wcsp

MOST_COLUMNS = 60_000
QUICK_BYTES = 10_000


def instances(quick: bool, only: list[str]) -> Iterator[tuple[str, mf.FactorGraph]]:
    """Cost function networks and proteins, smallest file first."""
    folder = data_folder()
    files = [p for p in folder.glob("wcsp/*/*") if re.search(r"\.(wcsp|cfn|uai)(\.[gx]z)?$", p.name)]
    files += folder.glob("protein_sidechain/*.uai.gz")
    for path in sorted(files, key=lambda p: p.stat().st_size):
        name = re.sub(r"\.(wcsp|cfn|uai)(\.[gx]z)?$", "", path.name)
        if (only and name not in only) or (quick and path.stat().st_size > QUICK_BYTES):
            continue
        try:
            yield name, (mf.io.read_uai(path) if ".uai" in path.name else read_wcsp(path).compile())
        except mf.FormatError as error:
            print(f"{name}: {error}")


def ours(graph: mf.FactorGraph, limit: float, work: float) -> dict[str, Any]:
    """Our search; ``work`` 0 keeps the junction tree out of it."""
    return decoded(graph, BranchAndBound(max_work=work), limit)


def decoded(graph: mf.FactorGraph, method: Any, limit: float) -> dict[str, Any]:
    """Score, bound, seconds and proof of one decoding."""
    started = time.perf_counter()
    try:
        answer = mf.decode(graph, method=method, time_limit=limit)
    except (TimeoutError, mf.ModelError, RuntimeError) as error:
        return {"error": str(error), "seconds": time.perf_counter() - started, "proven": False}
    return {
        "score": answer.score,
        "bound": answer.upper_bound,
        "seconds": time.perf_counter() - started,
        "proven": bool(answer.optimal),
        "nodes": answer.iterations,
    }


def highs(graph: mf.FactorGraph, limit: float) -> dict[str, Any] | None:
    """The integer program over the local polytope, by scipy's HiGHS; None where it would be too large."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    started = time.perf_counter()
    problem = prepare(graph, Evidence.parse(graph.structure, None))
    gains, rows, columns, values, right, upper, constant = polytope(problem)
    if len(gains) > MOST_COLUMNS:
        return None
    if not len(gains):
        return {"score": constant, "bound": constant, "seconds": time.perf_counter() - started, "proven": True}
    matrix = coo_array((values, (rows, columns)), shape=(len(right), len(gains))).tocsr()
    whole = np.zeros(len(gains))
    whole[: int(problem.structure.value_offsets[-1])] = 1
    found = milp(
        -gains,
        constraints=LinearConstraint(matrix, right, right),
        integrality=whole,
        bounds=Bounds(0, upper),
        options={"time_limit": max(0.1, limit - (time.perf_counter() - started)), "mip_rel_gap": 0.0},
    )
    score = constant - found.fun if found.x is not None else -np.inf
    bound = constant - found.mip_dual_bound if found.mip_dual_bound is not None else np.inf
    return {
        "score": score,
        "bound": bound,
        "seconds": time.perf_counter() - started,
        "proven": found.status == 0 and bound - score <= 1e-6 * (1 + abs(score)),
    }


def polytope(problem: Problem) -> tuple[Any, ...]:
    """Columns for states and for the cells of factors of two or more; a cell's states sum to the variable's."""
    s, pool = problem.structure, problem.potentials.log_tables
    offsets = s.value_offsets
    gains = [np.zeros(int(offsets[-1]))]
    upper = [np.ones(int(offsets[-1]))]
    rows: list[Any] = []
    columns: list[Any] = []
    values: list[Any] = []
    right: list[float] = []
    at, constant = int(offsets[-1]), 0.0
    for v in range(s.n_variables):
        rows.append(np.full(offsets[v + 1] - offsets[v], len(right)))
        columns.append(np.arange(offsets[v], offsets[v + 1]))
        values.append(np.ones(offsets[v + 1] - offsets[v]))
        right.append(1.0)
    for f in range(s.n_factors):
        scope = s.scope(f).tolist()
        index = np.full((1,), s.table_offsets[f])
        for v, stride in zip(scope, s.strides(f).tolist(), strict=True):
            index = (index[:, None] + stride * np.arange(s.cardinalities[v])[None, :]).ravel()
        logs = pool[index]
        hard = np.isneginf(logs)
        own = np.where(hard, 0.0, logs)
        if not scope:
            constant += float(own[0])
            continue
        if len(scope) == 1:
            where = slice(int(offsets[scope[0]]), int(offsets[scope[0] + 1]))
            gains[0][where] += own
            upper[0][where] = np.where(hard, 0.0, upper[0][where])
            continue
        gains.append(own)
        upper.append(np.where(hard, 0.0, 1.0))
        states = np.indices([int(s.cardinalities[v]) for v in scope]).reshape(len(scope), -1)
        for axis, v in enumerate(scope):
            card = int(s.cardinalities[v])
            rows += [len(right) + states[axis], len(right) + np.arange(card)]
            columns += [at + np.arange(len(own)), offsets[v] + np.arange(card)]
            values += [np.ones(len(own)), -np.ones(card)]
            right += [0.0] * card
        at += len(own)
        if at > MOST_COLUMNS:
            break
    flat = [np.concatenate(part) if part else np.zeros(0) for part in (gains, rows, columns, values)]
    return flat[0], flat[1], flat[2], flat[3], np.array(right), np.concatenate(upper), constant


def main() -> None:
    """Every instance, or with ``--quick`` the small files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small files only")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each solver and instance")
    parser.add_argument("--only", nargs="*", default=[], help="names of instances")
    parser.add_argument("--no-highs", action="store_true", help="leave the integer program out")
    options = parser.parse_args()
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, load {about['load'][0]:.1f}")
    warm = mf.MarkovNetwork(dict.fromkeys(range(4), 2))
    warm.add_factors([[a, b] for a in range(4) for b in range(a)], log_table=[[-1.0, 0.0], [0.0, -1.0]])
    warm.add_factor([0, 1, 2], log_table=np.arange(8.0).reshape(2, 2, 2))
    solvers: dict[str, Callable[[mf.FactorGraph], dict[str, Any] | None]] = {
        "search": lambda graph: ours(graph, options.limit, 0),
        "default": lambda graph: ours(graph, options.limit, BranchAndBound().max_work),
    }
    if find_spec("pytoulbar2") is not None:
        solvers["toulbar2"] = lambda graph: decoded(graph, Toulbar2(), options.limit)
    if not options.no_highs:
        solvers["HiGHS"] = lambda graph: highs(graph, options.limit)
    for solve in solvers.values():
        solve(warm.compile())
    table = Table(
        f"seconds to a proof, or score and bound after {options.limit:g} s",
        ("instance", "variables", "states", *solvers, "score"),
        first=28,
    )
    rows = []
    for name, graph in instances(options.quick, options.only):
        row: dict[str, Any] = {
            "instance": name,
            "variables": graph.n_variables,
            "states": int(graph.structure.cardinalities.max(initial=0)),
        }
        for solver, solve in solvers.items():
            row[solver] = solve(graph)
        rows.append(row)
        best = max((row[s]["score"] for s in solvers if row[s] and "score" in row[s]), default=-np.inf)
        table.row(name, row["variables"], row["states"], *(shown(row[s]) for s in solvers), f"{best:.8g}")
    for solver in solvers:
        proven = sum(bool(row[solver] and row[solver]["proven"]) for row in rows)
        tried = sum(row[solver] is not None for row in rows)
        print(f"{solver}: {proven} of {tried} proven")
    print(f"written to {save('proofs', {'machine': about, 'limit': options.limit, 'rows': rows})}")


def shown(result: dict[str, Any] | None) -> str:
    """Seconds where proven; otherwise how far the bound is."""
    if result is None:
        return "-"
    if result["proven"]:
        return f"{result['seconds']:.3f}"
    return f"gap {result['bound'] - result['score']:.4g}" if "score" in result else "none"


if __name__ == "__main__":
    main()
