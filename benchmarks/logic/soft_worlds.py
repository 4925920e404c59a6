"""The likeliest world of smokers beside PSL: a proven best one of ours, and the relaxation that PSL solves.

With linear rules PSL minimises the same cost over soft truth values, so that its optimum is a lower bound; rounded,
it is a world whose cost is seen in ours.
"""

from __future__ import annotations

import shutil
import time
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.logic.best_worlds import largest, smokers
from benchmarks.measure import Table
from benchmarks.peers import Peers

__all__ = ["run"]

LIMIT = 300.0
# Those of `best_worlds.SMOKERS`: an equivalence is two implications, of which one at most is false.
RULES = [
    "1.5: Smokes(X) -> Cancer(X)",
    "1.1: Friends(X, Y) & Smokes(X) -> Smokes(Y)",
    "1.1: Friends(X, Y) & Smokes(Y) -> Smokes(X)",
    "0.3: !Cancer(X)",
]
PREDICATES = {"Friends": 2, "Smokes": 1, "Cancer": 1}


def _job(facts: Any, graph: mf.FactorGraph) -> dict[str, Any]:
    """What is known and what is asked, as PSL takes it."""
    known: dict[str, Any] = {name: [] for name in PREDICATES}
    asked: dict[str, Any] = {name: [] for name in PREDICATES}
    for name, atoms in facts.atoms.items():
        known[name] += [[*args, float(truth)] for args, truth in atoms.items()]
    for atom in graph.names.variables:
        name, _, args = atom.rstrip(")").partition("(")
        asked[name].append([part.strip() for part in args.split(",")])
    return {"rules": RULES, "predicates": PREDICATES, "facts": known, "asked": asked}


def run() -> list[dict[str, Any]]:
    """A thousand people, and ten thousand."""
    peers_wanted = ["pslpython"] if shutil.which("java") else []
    if not peers_wanted:
        print("skipping peer pslpython: no Java virtual machine is there")
    rows = []
    with Peers(peers_wanted, "logic/psl_worker.py") as peers:
        headers = ["people", "ours, CPU s", "cost", "proven", "PSL, CPU s", "wall s", "rounded", "ratio"]
        table = Table("likeliest world: ours without grounding it all, and PSL's soft one rounded", headers)
        for n in (1000, 10_000):
            task = smokers(n)
            kb = task.program()
            facts = task.evidence(kb)
            lazy = kb.lazy(facts, query=list(task.query))
            start = time.process_time()
            best = mf.decode(lazy, rng=0, n_jobs=1, time_limit=LIMIT)
            seconds = time.process_time() - start
            row: dict[str, Any] = {"people": n, "ours": seconds, "cost": -best.score, "optimal": best.optimal}
            graph = kb.ground(facts, query=list(task.query)).compile()
            cells: list[Any] = ["not run"]
            if peers.names:
                found = peers.ask("pslpython", {"peer": "pslpython", **_job(facts, graph)}, LIMIT)
                cells = [found.get("error", found["status"])]
                if found["status"] == "ok":
                    truth = {
                        f"{name}({','.join(r[:-1])})".upper(): r[-1] for name, rs in found["truth"].items() for r in rs
                    }
                    states = np.array([truth[atom.replace(" ", "").upper()] > 0.5 for atom in graph.names.variables])
                    cost = largest(graph) - graph.score(states.astype(np.int32))
                    row |= {"psl": found["seconds"], "psl_cost": cost, "machine": found["machine"]}
                    cells = [found["seconds"], found["wall"], f"{cost:,.1f}", found["seconds"] / seconds]
            table.row(f"{n:,}", seconds, f"{-best.score:,.1f}", "yes" if best.optimal else "no", *cells)
            rows.append(row)
    return rows


if __name__ == "__main__":
    run()
