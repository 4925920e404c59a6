"""Likeliest worlds: what they cost against time, by MaxWalkSAT on the ground network and by cutting planes without it.

The cost of a world is what open ground formulas lose: weights of those that are false, less those of negative weight
that are true. Cutting planes say a lower bound as well; the gap is to that. Limits are of the clock, seconds shown of
the processor. Tuffy's `rc1000` is not here: with the query's predicate open its hard formulas contradict each other.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.measure import Table

__all__ = ["largest", "run", "smokers"]

STEPS = (10**5, 10**6, 10**7)
LIMITS = (1.0, 5.0, 25.0, 100.0)
TRANSITIVE = """
person = {{1, ..., {n}}}
Friends(person, person)
Smokes(person)
1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))
0.5 !Friends(x, y) v !Friends(y, z) v Friends(x, z)
-0.4 Friends(x, y)
0.2 !Smokes(x)
"""
SMOKERS = """
*Friends(person, person)
Smokes(person)
Cancer(person)
1.5 Smokes(x) => Cancer(x)
1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))
0.3 !Cancer(x)
"""


@dataclass(frozen=True)
class Task:
    """A program, its evidence and what is asked for."""

    name: str
    program: Callable[[], mf.MarkovLogic]
    evidence: Callable[[mf.MarkovLogic], Any]
    query: tuple[str, ...]
    closed: tuple[str, ...] | None = None


def tuffy(name: str) -> Task:
    """A program of Tuffy with its evidence and query."""
    folder = data_folder() / "mln" / "tuffy" / name
    query = (folder / "query.db").read_text().partition("//")[0].strip()
    return Task(
        name,
        lambda: mf.logic.read(folder / "prog.mln"),
        lambda kb: kb.facts(next(folder.glob("evidence.db*"))),
        (query,),
    )


def smokers(n: int, friends: int = 10) -> Task:
    """n people with so many friends each, one in ten known to smoke, or not to."""
    rng = np.random.default_rng(n)
    near = (np.arange(n)[:, None] + 1 + rng.geometric(0.05, (n, friends))) % n
    known = rng.choice(n, n // 10, replace=False)
    lines = [f"Friends(P{i}, P{j})" for i, row in enumerate(near.tolist()) for j in row]
    lines += [f"{'!' if rng.random() < 0.6 else ''}Smokes(P{i})" for i in known.tolist()]
    return Task(
        f"smokers, {n:,} people", lambda: mf.MarkovLogic(SMOKERS), lambda kb: kb.facts("\n".join(lines) + "\n"),
        ("Smokes", "Cancer"),
    )  # fmt: skip


def transitive(n: int) -> Task:
    """n people, a fifth of all friendships known."""
    rng = np.random.default_rng(n)
    lines = [
        f"{'' if rng.random() < 0.3 else '!'}Friends({i}, {j})"
        for i in range(1, n + 1)
        for j in range(1, n + 1)
        if rng.random() < 0.2
    ]
    lines += [f"{'' if rng.random() < 0.5 else '!'}Smokes({i})" for i in range(1, n + 1, 5)]
    return Task(
        f"transitive friends, {n} people", lambda: mf.MarkovLogic(TRANSITIVE.format(n=n)),
        lambda kb: kb.facts("\n".join(lines) + "\n"), ("Friends", "Smokes"), (),
    )  # fmt: skip


def _measure(task: Task, quick: bool, table: Table) -> list[dict[str, Any]]:
    kb = task.program()
    facts = task.evidence(kb)
    world = kb.ground(facts, query=list(task.query), closed=task.closed)
    graph = world.compile()
    top = largest(graph)
    rows: list[dict[str, Any]] = []

    def show(method: str, budget: str, started: float, cost: float, bound: float, n: int) -> None:
        row = {
            "task": task.name, "method": method, "budget": budget, "seconds": time.process_time() - started,
            "cost": cost, "bound": bound, "ground": n,
        }  # fmt: skip
        rows.append(row)
        gap = cost - bound
        table.row(
            task.name, method, budget, row["seconds"], f"{cost:,.2f}", f"{bound:,.2f}",
            "proven" if gap <= 1e-6 * max(1.0, abs(cost)) else f"{gap / max(abs(cost), 1e-9):.2%}", f"{n:,}",
        )  # fmt: skip

    most = 10.0 if quick else 60.0
    mf.decode(graph, method=mf.methods.MaxWalkSAT(steps=1), rng=0, n_jobs=1)  # kernels
    for steps in STEPS[: 2 if quick else None]:
        started = time.process_time()
        found = mf.decode(graph, method=mf.methods.MaxWalkSAT(steps=steps), rng=0, n_jobs=1, time_limit=most)
        cost = top - found.score
        show("MaxWalkSAT", f"{steps:.0e}", started, cost, max(top - found.upper_bound, 0.0), graph.structure.n_factors)
        if found.optimal:
            break
    lazy = kb.lazy(facts, query=list(task.query), closed=task.closed)
    for limit in LIMITS[:2] if quick else LIMITS:
        started = time.process_time()
        best = mf.decode(lazy, time_limit=limit, rng=0, n_jobs=1)
        show("cutting planes", f"{limit:g} s", started, -best.score, -best.upper_bound, best.graph.n_factors)
        if best.optimal:
            break
    return rows


def largest(graph: mf.FactorGraph) -> float:
    """The sum of the largest log-potentials of all factors, which have the cells from one offset to the next."""
    starts, of = np.unique(graph.structure.table_offsets, return_inverse=True)
    return float(np.maximum.reduceat(graph.log_tables, starts)[of].sum()) if len(starts) else 0.0


def run(*, quick: bool = False) -> list[dict[str, Any]]:
    """All tasks."""
    warnings.simplefilter("ignore")
    tasks = [tuffy(name) for name in ("smoke", "cse", "class")]
    tasks += [smokers(10_000), transitive(46)]
    if not quick:
        tasks += [smokers(100_000), transitive(100)]
    table = Table(
        "likeliest worlds: seconds of the processor, what they cost, and a lower bound",
        ["task", "method", "budget", "seconds", "cost", "bound", "gap", "ground formulas"], first=30, second=14,
    )  # fmt: skip
    return [row for task in tasks for row in _measure(task, quick, table)]


if __name__ == "__main__":
    run(quick=True)
