"""Markov logic: ``python -m benchmarks.logic [--quick]``.

* Grounding: processor seconds, ground formulas a second and peak memory at 10^4 to 10^7 ground formulas, each size in a
  process of its own; the growth exponent; the programs of Tuffy.
* UW-CSE, Cora and WebKB: each database predicted by weights learned on the others (pseudo-likelihood, probabilities by
  loopy belief propagation): average precision of each fold, their mean and pooled, ROC, conditional log-likelihood, and
  what others report. All methods of learning on one fold.
* Small programs that ProbLog can say the same way: exact probabilities, time against ours.
* MC-SAT: samples a second on smokers with 1,000 people and 10,000; the time of pracmln's beside ours on a handful.
* Likeliest worlds: cost against time for MaxWalkSAT and cutting planes with their bound, on Tuffy's programs and on
  networks of 10^5 to 10^6 ground formulas; PSL's soft world of the same smokers.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.logic import best_worlds, exact_probabilities, sampled, soft_worlds
from benchmarks.logic.evaluation import compare_methods, evaluate
from benchmarks.measure import machine, save

FRIENDS = """
person = {{1, ..., {n}}}
Friends(person, person)
Smokes(person)
1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))
0.5 !Friends(x, y) v !Friends(y, z) v Friends(x, z)
"""
SIZES = (22, 46, 100, 216)


def ground_friends(n: int) -> dict[str, float]:
    """Ground the transitive friends of n people, in this process."""
    kb = mf.MarkovLogic(FRIENDS.format(n=n))
    mf.MarkovLogic(FRIENDS.format(n=3)).ground()  # imports
    started, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    world = kb.ground()
    cpu = time.process_time() - started
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    s = world.compile().structure
    return {"n": n, "formulas": s.n_factors, "cpu": cpu, "bytes": 1024 * (after - before), "kept": world.n_bytes}


def grounding(quick: bool) -> list[dict[str, float]]:
    """All sizes, each in a fresh process."""
    rows = []
    print(f"{'people':>8}{'formulas':>14}{'CPU s':>9}{'formulas/s':>13}{'peak B each':>13}{'kept B each':>13}")
    for n in SIZES[: 3 if quick else None]:
        command = [sys.executable, "-m", "benchmarks.logic", "--one", str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        each = row["bytes"] / row["formulas"], row["kept"] / row["formulas"]
        speed = row["formulas"] / row["cpu"]
        print(f"{n:8d}{row['formulas']:14,}{row['cpu']:9.2f}{speed:13,.0f}{each[0]:13.0f}{each[1]:13.0f}", flush=True)
    large = rows[1:]
    slope = np.polyfit(np.log([r["formulas"] for r in large]), np.log([r["cpu"] for r in large]), 1)[0]
    print(f"growth: formulas^{slope:.2f} from {large[0]['formulas']:,} on")
    return rows


def programs() -> list[dict[str, object]]:
    """The programs of Tuffy with their evidence."""
    rows = []
    for name in ("smoke", "cse", "class", "rc1000"):
        folder = data_folder() / "mln" / "tuffy" / name
        started = time.process_time()
        kb = mf.logic.read(folder / "prog.mln")
        facts = kb.facts(next(folder.glob("evidence.db*")))
        read = time.process_time() - started
        query = (folder / "query.db").read_text().partition("//")[0].strip()
        started = time.process_time()
        world = kb.ground(facts, query=[query])
        cpu = time.process_time() - started
        s = world.compile().structure
        rows.append({"program": name, "read": read, "ground": cpu, "atoms": s.n_variables, "formulas": s.n_factors})
        print(f"{name:8} read {read:.2f} s, grounded {cpu:.2f} s: {s.n_factors:,} formulas of {s.n_variables:,} atoms")
    return rows


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.logic", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no more than 10^6 formulas, two folds")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(ground_friends(given.one)))
        return
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"machine": machine(), "grounding": grounding(given.quick), "programs": programs()}
    results["exact"] = exact_probabilities.run()
    results["sampled"] = sampled.run()
    results["soft_worlds"] = soft_worlds.run()
    results["best_worlds"] = best_worlds.run(quick=given.quick)
    folds = [0, 2] if given.quick else None
    results["evaluation"] = {name: evaluate(name, folds) for name in ("uwcse", "cora", "webkb")}
    results["methods"] = {"webkb": compare_methods("webkb", 3)}
    if not given.quick:
        results["methods"]["uwcse"] = compare_methods("uwcse", 2)
    save("logic", results)


if __name__ == "__main__":
    main()
