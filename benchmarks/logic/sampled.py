"""Probabilities by MC-SAT: samples a second on a thousand people, and the time beside pracmln's on a handful."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.logic.best_worlds import smokers
from benchmarks.measure import Table
from benchmarks.peers import Peers

__all__ = ["run"]

LIMIT = 90.0
STEPS = 500
# Formulas with ?x are pracmln's; names of both are the same.
DECLARED = ["Smokes(person)", "Cancer(person)", "Friends(person, person)"]
RULES = ["1.5 Smokes(?x) => Cancer(?x)", "1.1 Friends(?x, ?y) => (Smokes(?x) <=> Smokes(?y))"]
# People in a circle of friends, and whether who is whose friend is known.
CASES = ((5, True), (3, False))


def _facts(n: int, known: bool) -> list[str]:
    if not known:
        return [*(f"!Friends(P{i}, P{i})" for i in range(n)), "Smokes(P0)"]
    circle = [f"{'' if (i + 1) % n == j else '!'}Friends(P{i}, P{j})" for i in range(n) for j in range(n)]
    return [*circle, "Smokes(P0)"]


def _ours(n: int, known: bool, method: Any) -> tuple[float, Any]:
    """Seconds of the processor from the text of the program to probabilities."""
    start = time.process_time()
    kb = mf.MarkovLogic("\n".join([*DECLARED, *RULES]) + "\n")
    query = ["Smokes", "Cancer", *(() if known else ("Friends",))]
    world = kb.ground("\n".join(_facts(n, known)) + "\n", query=query)
    answer = mf.marginals(world, method=method, rng=0, n_jobs=1)
    return time.process_time() - start, answer


def _against_pracmln() -> list[dict[str, Any]]:
    sampler = mf.methods.MCSAT(n_chains=1, sweeps=STEPS)
    for known in (True, False):
        _ours(3, known, sampler)  # imports and kernels
    rows: list[dict[str, Any]] = []
    headers = ["people", "friends", "ours", "pracmln", "ratio", "off, ours", "off, pracmln"]
    with Peers(["pracmln"], "logic/pracmln_worker.py") as peers:
        table = Table(f"MC-SAT of {STEPS} steps: seconds of the processor, largest error of a probability", headers)
        for n, known in CASES:
            seconds, answer = _ours(n, known, sampler)
            exact = _ours(n, known, "auto")[1]
            assert exact.guarantee == "exact"
            free = list(exact.graph.names.variables)
            off = max(abs(answer[name][1] - exact[name][1]) for name in free)
            row: dict[str, Any] = {"people": n, "known": known, "ours": seconds, "off": off}
            other: Any = "not run"
            other_off: Any = ""
            if peers.names:
                query = ["Smokes", "Cancer", *(() if known else ("Friends",))]
                job = {"peer": "pracmln", "lines": [*DECLARED, *RULES], "facts": _facts(n, known), "query": query}
                found = peers.ask("pracmln", {**job, "steps": STEPS}, LIMIT)
                other = found["status"]
                if other == "ok":
                    other = row["pracmln"] = found["seconds"]
                    told = {name.replace(" ", ""): p for name, p in found["probabilities"].items()}
                    other_off = max(abs(told[name.replace(" ", "")] - exact[name][1]) for name in free)
                elif other == "timeout":
                    other = f"> {LIMIT:g}"
            ratio = other / seconds if isinstance(other, float) else ""
            table.row(n, "known" if known else "open", seconds, other, ratio, off, other_off)
            rows.append(row)
    return rows


def _many_people(n: int, samples: int) -> dict[str, Any]:
    task = smokers(n)
    kb = task.program()
    world = kb.ground(task.evidence(kb), query=list(task.query), closed=task.closed)
    graph = world.compile()
    mf.marginals(graph, method=mf.methods.MCSAT(n_chains=1, sweeps=2), rng=0, n_jobs=1)  # kernels
    start = time.process_time()
    answer = mf.marginals(graph, method=mf.methods.MCSAT(n_chains=1, sweeps=samples), rng=0, n_jobs=1)
    seconds = time.process_time() - start
    errors = np.array([answer.standard_error(name)[1] for name in graph.names.variables])
    row = {
        "people": n, "atoms": graph.structure.n_variables, "formulas": graph.structure.n_factors, "samples": samples,
        "seconds": seconds, "error": float(np.median(errors)), "doubts": list(answer.monte_carlo.doubts),
    }  # fmt: skip
    return row


def run() -> list[dict[str, Any]]:
    """Against pracmln, and many people."""
    warnings.simplefilter("ignore")
    rows = _against_pracmln()
    headers = ["people", "atoms", "formulas", "samples", "CPU s", "samples/s", "standard error"]
    table = Table("MC-SAT, one chain, smokers with ten friends each", headers)
    for n in (1000, 10_000):
        row = _many_people(n, 1000)
        table.row(
            f"{n:,}", f"{row['atoms']:,}", f"{row['formulas']:,}", row["samples"], row["seconds"],
            row["samples"] / row["seconds"], row["error"],
        )  # fmt: skip
        for doubt in row["doubts"]:
            table.note(doubt)
        rows.append(row)
    return rows


if __name__ == "__main__":
    run()
