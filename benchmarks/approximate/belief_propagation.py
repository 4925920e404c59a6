"""Loopy belief propagation: time of a sweep against the peers, linearity, and a graph of ten million edges.

``python -m benchmarks.approximate.belief_propagation [--quick]``. PGMax gets an environment of its own,
``.venv-peers-pgmax``; ``MARKOVFIELD_PGMAX`` may name an interpreter that has it. OpenGM cannot be installed by pip: its
column shows figures measured with OpenGM 2.3 on a machine like this one.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.measure import Table, machine, memory, reset_peak, save
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure

ROOT = Path(__file__).resolve().parents[2]
# Milliseconds a sweep, figures measured with OpenGM 2.3, by side and states.
OPENGM = {(300, 2): 68.0, (100, 16): 60.0}
# What at least to be faster by, on the general path and on the lattice path.
TARGETS = {(300, 2): (10.0, 25.0), (100, 16): (8.0, None)}
PGMAX = ["jax==0.4.38", "jaxlib==0.4.38", "numba", "scikit-learn", "tqdm", "cvxpy", "numpy<2.3", "scipy<1.16"]
MEMORY = 12 * 2**30
FEW = 5
# Seconds a long run should take.
LONG = 0.5
SAME_SWEEPS = 10
# Seconds that a peer may take for a model.
PATIENCE = 300.0


def grid(side: int, states: int, *, tied: bool, seed: int = 0) -> tuple[FactorGraph, dict[str, Any]]:
    """A lattice of random tables, one for all edges or one for each, as our graph and as plain arrays."""
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    tables = 0.3 * rng.normal(size=(1 if tied else len(pairs), states, states))
    return _graph(pairs, tables, rng.normal(size=(side * side, states)), "pairs", "pair_tables")


def triples(factors: int, states: int = 2, seed: int = 0) -> tuple[FactorGraph, dict[str, Any]]:
    """A random sparse graph of factors of three variables, three of them on a variable on average."""
    rng = np.random.default_rng(seed)
    scopes = rng.integers(0, factors, (factors, 3))
    while True:
        again = (scopes[:, 0] == scopes[:, 1]) | (scopes[:, 1] == scopes[:, 2]) | (scopes[:, 0] == scopes[:, 2])
        if not again.any():
            break
        scopes[again] = rng.integers(0, factors, (int(again.sum()), 3))
    tables = 0.3 * rng.normal(size=(factors, states, states, states))
    return _graph(scopes, tables, rng.normal(size=(factors, states)), "triples", "triple_tables")


def _graph(
    scopes: Any, tables: Any, unary: Any, scope_name: str, table_name: str
) -> tuple[FactorGraph, dict[str, Any]]:
    m, arity = scopes.shape
    n, states = unary.shape
    cells = states**arity
    structure = Structure.from_arrays(
        np.full(n, states, np.int32),
        np.concatenate([arity * np.arange(m + 1), arity * m + 1 + np.arange(n)]),
        np.concatenate([scopes.ravel(), np.arange(n)]),
        np.concatenate(
            [np.zeros(m, np.int64) if len(tables) == 1 else cells * np.arange(m), tables.size + states * np.arange(n)]
        ),
        n_cells=tables.size + unary.size,
    )
    arrays = {"cardinalities": np.full(n, states), scope_name: scopes, table_name: tables, "unary": unary}
    return FactorGraph(structure, np.concatenate([tables.ravel(), unary.ravel()])), arrays


@contextmanager
def general_path() -> Iterator[None]:
    """Take a lattice for any other graph."""
    from markovfield.inference.belief_propagation import lattice as lattice_propagation

    usual = lattice_propagation.find_lattice
    lattice_propagation.find_lattice = lambda *_: None
    try:
        yield
    finally:
        lattice_propagation.find_lattice = usual


def run(graph: FactorGraph, schedule: str, sweeps: int, n_jobs: int | None = None) -> tuple[float, mf.Marginals]:
    """Seconds of a run of just so many sweeps, and its answer."""
    method = mf.methods.BeliefPropagation(schedule, max_iterations=sweeps, tolerance=1e-300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        answer = mf.marginals(graph, method=method, n_jobs=n_jobs)
    return time.perf_counter() - started, answer


def sweep_seconds(graph: FactorGraph, schedule: str, repeats: int = 3) -> float:
    """Seconds a sweep: a long less a short run, the best of a few each, over the difference of their sweeps."""
    run(graph, schedule, 2)
    once, _ = run(graph, schedule, FEW)
    many = FEW + max(20, min(1000, round(LONG / once * FEW)))
    short = min(run(graph, schedule, FEW)[0] for _ in range(repeats))
    runs = [run(graph, schedule, many) for _ in range(repeats)]
    # Messages may stop to change at all before that many sweeps.
    sweeps = runs[0][1].iterations
    return (min(seconds for seconds, _ in runs) - short) / (sweeps - FEW)


# ---- peers -------------------------------------------------------------------------------------------------


def pgmax_python() -> Path | None:
    """An interpreter with PGMax, in an environment made here when there is none; None where it cannot be had."""
    if "MARKOVFIELD_PGMAX" in os.environ:
        return Path(os.environ["MARKOVFIELD_PGMAX"])
    python = ROOT / ".venv-peers-pgmax" / "bin" / "python"
    if python.exists():
        return python
    print("making .venv-peers-pgmax for PGMax, which takes minutes ...", flush=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", str(python.parent.parent)],
        [*pip, *PGMAX],
        [*pip, "--no-deps", "pgmax==0.6.1"],
    ):
        if subprocess.run(command, capture_output=True, check=False).returncode:
            print("skipping peer pgmax: it cannot be installed")
            return None
    return python


def peers() -> dict[str, Path]:
    """Interpreters by peer."""
    from benchmarks.peers import environment

    found: dict[str, Path] = {}
    python = pgmax_python()
    if python is not None:
        found["pgmax"] = python
    python, names = environment(["pyagrum", "pgmpy"])
    if python is not None:
        found |= dict.fromkeys(names, python)
    return found


def ask(python: Path, peer: str, arrays: dict[str, Any], limit: float) -> dict[str, Any]:
    """One job in a worker of its own, killed past the limit; its values come back as an array."""
    with tempfile.TemporaryDirectory(prefix="markovfield-peers-") as folder:
        model, out = Path(folder) / "model.npz", Path(folder) / "values.npy"
        np.savez(model, **arrays)
        command = [str(python), str(Path(__file__).parent / "propagation_worker.py"), str(MEMORY)]
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(json.dumps({"peer": peer, "model": str(model), "out": str(out)}) + "\n")
        worker.stdin.flush()
        ready, _, _ = select.select([worker.stdout], [], [], limit)
        line = worker.stdout.readline() if ready else ""
        worker.kill()
        worker.wait()
        if not line:
            return {"status": f"no answer in {limit:.0f} s" if not ready else "worker ended"}
        found: dict[str, Any] = json.loads(line)
        if out.exists():
            found["values"] = np.load(out)
        return found


# ---- what is measured --------------------------------------------------------------------------------------


def grids(found: dict[str, Path], quick: bool) -> list[dict[str, Any]]:
    """Sweeps on lattices and on a random graph of factors of three."""
    table = Table(
        "Sweeps, milliseconds (every message once)",
        (
            "graph",
            "states",
            "tables",
            "lattice",
            "general",
            "sequential",
            "OpenGM",
            "ratio",
            "PGMax",
            "ratio",
            "differ",
        ),
        first=16,
    )
    cases = [(300, 2, False), (300, 2, True), (100, 16, False), (300, 16, True), (300, 64, True)]
    rows = []
    for side, states, tied in cases[: 3 if quick else None]:
        graph, arrays = grid(side, states, tied=tied)
        row: dict[str, Any] = {"graph": f"{side} x {side}", "states": states, "tied": tied}
        row["lattice"] = sweep_seconds(graph, "synchronous") if states == 2 else None
        with general_path():
            row["general"] = sweep_seconds(graph, "synchronous")
            row["sequential"] = sweep_seconds(graph, "sequential", 1)
            _, ours = run(graph, "synchronous", SAME_SWEEPS)
        row["opengm"] = OPENGM.get((side, states))
        row |= _pgmax(found, arrays, ours) if not tied else {}
        _show(table, row)
        rows.append(row)
    graph, arrays = triples(100_000)
    row = {"graph": "random, arity 3", "states": 2, "tied": False, "general": sweep_seconds(graph, "synchronous")}
    row["sequential"] = sweep_seconds(graph, "sequential", 1)
    row |= _pgmax(found, arrays, run(graph, "synchronous", SAME_SWEEPS)[1])
    _show(table, row)
    rows.append(row)
    table.note(
        "general = any factor graph; OpenGM: figures measured with OpenGM 2.3; ratios: theirs over ours, general path;"
    )
    table.note(f"differ = largest difference of a marginal after {SAME_SWEEPS} sweeps (PGMax works in float32)")
    for peer in ("pgmpy",):
        if peer in found:
            answer = ask(found[peer], peer, {"cardinalities": np.array([2])}, 120.0)
            table.note(f"{peer}: {answer.get('error', answer['status'])}")
    return rows


def _pgmax(found: dict[str, Path], arrays: dict[str, Any], ours: mf.Marginals) -> dict[str, Any]:
    if "pgmax" not in found:
        return {}
    answer = ask(found["pgmax"], "pgmax", arrays, PATIENCE)
    if answer["status"] != "ok":
        return {"pgmax_status": answer.get("error", answer["status"])}
    return {"pgmax": answer["seconds"], "differ": float(np.abs(answer["values"] - ours.values).max())}


def _show(table: Table, row: dict[str, Any]) -> None:
    def ms(name: str) -> float | None:
        return None if row.get(name) is None else 1e3 * row[name]

    general = 1e3 * row["general"]
    table.row(
        row["graph"], row["states"], "one" if row["tied"] else "each", ms("lattice"), general, ms("sequential"),
        row.get("opengm"), row["opengm"] / general if row.get("opengm") else None,
        ms("pgmax") or row.get("pgmax_status"), ms("pgmax") / general if row.get("pgmax") else None,
        row.get("differ"),
    )  # fmt: skip


def directed(found: dict[str, Path]) -> list[dict[str, Any]]:
    """A Bayesian network of two parents each against pyAgrum's loopy propagation."""
    rng = np.random.default_rng(0)
    side = 40
    n = side * side
    parents = np.full((n, 2), -1)
    cpts = np.zeros((n, 8))
    net = mf.BayesianNetwork(dict.fromkeys(range(n), 2))
    for v in range(n):
        given = [u for u in (v - 1 if v % side else -1, v - side) if u >= 0]
        cpt = rng.dirichlet([2.0, 2.0], size=2 ** len(given))
        parents[v, : len(given)] = given
        cpts[v, : cpt.size] = cpt.ravel()
        net.add_cpt(v, given, cpt.reshape([2] * (len(given) + 1)))
    graph = net.compile()
    evidence = np.where(rng.random(n) < 0.1, rng.integers(0, 2, n), -1)
    known = {v: int(x) for v, x in enumerate(evidence.tolist()) if x >= 0}
    method = mf.methods.BeliefPropagation(tolerance=1e-10)
    ours = min((mf.marginals(graph, known, method=method) for _ in range(3)), key=lambda answer: answer.seconds)
    row: dict[str, Any] = {"graph": f"Bayesian network of {n} variables", "ours": ours.seconds}
    table = Table(
        "Until settled, evidence on a tenth, milliseconds", ("graph", "ours", "pyAgrum", "ratio", "differ"), first=36
    )
    if "pyagrum" in found:
        arrays = {"cardinalities": np.full(n, 2), "parents": parents, "cpts": cpts, "evidence": evidence}
        answer = ask(found["pyagrum"], "pyagrum", arrays, PATIENCE)
        if answer["status"] == "ok":
            row |= {"pyagrum": answer["seconds"], "differ": float(np.abs(answer["values"] - ours.values).max())}
        else:
            table.note(f"pyagrum: {answer.get('error', answer['status'])}")
    theirs = row.get("pyagrum")
    table.row(
        row["graph"], 1e3 * row["ours"], None if theirs is None else 1e3 * theirs,
        None if theirs is None else theirs / row["ours"], row.get("differ"),
    )  # fmt: skip
    return [row]


def large(edges: int) -> dict[str, Any]:
    """Pairs drawn at random with one table, two for each variable: time and memory, in this process."""
    n = edges // 2
    before = reset_peak()
    rng = np.random.default_rng(0)
    first = rng.integers(0, n, edges, dtype=np.int32)
    second = ((first.astype(np.int64) + rng.integers(1, n, edges)) % n).astype(np.int32)
    scopes = np.stack([first, second], axis=1).ravel()
    del first, second
    structure = Structure.from_arrays(
        np.full(n, 2, np.int32), np.arange(0, 2 * edges + 1, 2), scopes, np.zeros(edges, np.int64), n_cells=4
    )
    graph = FactorGraph(structure, np.log([1.2, 1.0, 1.0, 1.3]))
    run(grid(10, 2, tied=True)[0], "synchronous", 2)
    first_run = run(graph, "synchronous", 2)[0]
    # One answer at a time: each keeps its messages.
    short = run(graph, "synchronous", 2)[0]
    long, answer = run(graph, "synchronous", 7)
    return {
        "edges": edges,
        "first": first_run,
        "sweep": (long - short) / 5,
        "memory": memory("VmHWM") - before,
        "log_partition": answer.log_partition,
    }


def linearity(largest: int) -> list[dict[str, Any]]:
    """Random pairwise graphs of growing size, each in a process of its own."""
    table = Table(
        "Random pairs, one table: growth", ("edges", "first run s", "sweep ms", "ns/message", "peak GB"), first=12
    )
    rows = []
    edges = 10**4
    while edges <= largest:
        command = [sys.executable, "-m", "benchmarks.approximate.belief_propagation", "--large", str(edges)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode:
            table.row(f"{edges:,}", "failed")
            break
        row = json.loads(done.stdout.strip().splitlines()[-1])
        table.row(f"{edges:,}", row["first"], 1e3 * row["sweep"], 1e9 * row["sweep"] / (2 * edges), row["memory"] / 1e9)
        rows.append(row)
        edges *= 10
    table.note("first run = layout, two sweeps, beliefs, Bethe value; beyond the cache every edge is a few misses")
    return rows


def structured(side: int = 30, sizes: tuple[int, ...] = (16, 64, 256, 1024)) -> list[dict[str, Any]]:
    """Sweeps with structured pairs as the number of states grows, sums and maxima; a table would grow as its square."""
    title = f"{side} x {side}, synchronous sweeps of structured pairs, nanoseconds a message and state"
    table = Table(title, ("factor", "verb", *(f"K = {k}" for k in sizes), "largest / smallest"), first=22)
    kinds = {
        "Potts": lambda net, pairs, k: net.add_potts(pairs, 0.5),
        "truncated linear": lambda net, pairs, k: net.add_truncated(pairs, 0.3, k / 4),
        "truncated quadratic": lambda net, pairs, k: net.add_truncated(pairs, 0.05, 64.0, power=2),
    }
    rng, rows = np.random.default_rng(0), []
    edges = 2 * side * (side - 1)
    for name, add in kinds.items():
        for verb in ("marginals", "decode"):
            found = []
            for k in sizes:
                net = mf.MarkovNetwork({(i * side + j): k for i in range(side) for j in range(side)})
                for v in net.variables:
                    net.add_factor([v], log_table=0.3 * rng.normal(size=k))
                right = [(i * side + j, i * side + j + 1) for i in range(side) for j in range(side - 1)]
                down = [(i * side + j, (i + 1) * side + j) for i in range(side - 1) for j in range(side)]
                add(net, [*right, *down], k)
                found.append(_structured_sweep(net.compile(), verb) / (2 * edges * k))
            table.row(name, verb, *(1e9 * x for x in found), found[-1] / found[0])
            rows.append({"factor": name, "verb": verb, "sizes": sizes, "seconds per message and state": found})
    return rows


def _structured_sweep(graph: FactorGraph, verb: str) -> float:
    """Seconds a sweep: twelve less two."""

    def seconds(sweeps: int) -> float:
        method = mf.methods.BeliefPropagation("synchronous", max_iterations=sweeps, tolerance=1e-300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            started = time.perf_counter()
            getattr(mf, verb)(graph, method=method)
        return time.perf_counter() - started

    seconds(2)
    return (min(seconds(12) for _ in range(3)) - min(seconds(2) for _ in range(3))) / 10


def main() -> None:
    """Everything, or with ``--quick`` what takes a minute."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no peers, smaller graphs")
    parser.add_argument("--large", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.large:
        print(json.dumps(large(options.large)))
        return
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, load {about['load'][0]:.1f}")
    found = {} if options.quick else peers()
    rows = grids(found, options.quick)
    results = {"machine": about, "grids": rows, "directed": directed(found)}
    results["structured"] = structured(sizes=(16, 64, 256) if options.quick else (16, 64, 256, 1024))
    results["linearity"] = linearity(10**5 if options.quick else 10**7)
    for row in rows:
        for (side, states), (general, lattice) in TARGETS.items():
            if row["graph"] == f"{side} x {side}" and row["states"] == states and not row["tied"]:
                for path, wanted in (("general", general), ("lattice", lattice)):
                    if wanted is not None:
                        ratio = OPENGM[side, states] / (1e3 * row[path])
                        verdict = f"target {wanted:g}: {'met' if ratio >= wanted else 'MISSED'}"
                        print(f"{row['graph']}, {states} states, {path}: {ratio:.1f} times OpenGM, {verdict}")
    print(f"written to {save('belief_propagation', results)}")


if __name__ == "__main__":
    main()
