"""Decoding: scores, bounds and seconds of our methods and of peers, on lattices, stereo pairs and public instances.

``python -m benchmarks.decoding.decode [--quick] [--limit 10] [--only binary|potts|stereo|proofs|uai ...]``. As in
`benchmarks.decoding.graph_cuts`, ``MARKOVFIELD_CUT_PEERS`` names an interpreter that has PyMaxflow and gco-wrapper;
without it their columns are empty. toulbar2 takes part where pytoulbar2 is installed. HiGHS is in
`benchmarks.decoding.proofs`, flows alone are in `benchmarks.decoding.graph_cuts`: here a time is that of the whole
call. Costs of lattices are minus scores.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.decoding.graph_cuts import ask, cost, distance, lattice, noisy_picture, random_binary, stereo
from benchmarks.decoding.proofs import instances
from benchmarks.measure import Table, geometric_mean, machine, save
from markovfield.datasets.stereo import stereo_pair
from markovfield.inference.branch_and_bound.toulbar2 import Toulbar2
from markovfield.inference.graph_cuts.graph_cut import GraphCut
from markovfield.inference.graph_cuts.move_making import AlphaBetaSwap, AlphaExpansion
from markovfield.inference.local_search.icm import ICM
from markovfield.inference.trws.trws import TRWS
from markovfield.vision.stereo import disparity_error

# A score this near to the best known one, relative to it, counts as the same: references have six or so digits.
SAME = 1e-6
METHODS: dict[str, Any] = {
    "icm": ICM(),
    "belief_propagation": mf.methods.BeliefPropagation("synchronous", max_iterations=50, damping=0.3),
    "alpha_expansion": AlphaExpansion(),
    "alpha_beta_swap": AlphaBetaSwap(),
    "trws": TRWS(max_iterations=50),
}
PEERS = {"alpha_expansion": "gco_expansion", "alpha_beta_swap": "gco_swap"}


def timed(graph: mf.FactorGraph, method: Any, **settings: Any) -> dict[str, Any]:
    """Score, bound and seconds of one decoding."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "rng" in getattr(method, "abilities", ()) or isinstance(method, str):
            settings["rng"] = 0
        answer = mf.decode(graph, method=method, **settings)
    return {
        "seconds": time.perf_counter() - started,
        "score": answer.score,
        "bound": answer.upper_bound,
        "proven": bool(answer.optimal),
        "method": answer.method,
        "states": answer.states,
    }


# ---- lattices ----------------------------------------------------------------------------------------------


def binary(quick: bool, limit: float) -> list[dict[str, Any]]:
    """Lattices of two states: from a compiled graph to a proven answer, against PyMaxflow from arrays to one."""
    table = Table(
        "Binary Potts lattices, seconds", ("lattice", "coupling", "ours", "PyMaxflow", "ratio", "auto", "costs")
    )
    rows = []
    for side in (100, 300) if quick else (100, 300, 1000):
        for coupling in (20, 50, 120):
            own, across, down = random_binary(side, coupling)
            where = (np.zeros((side, side - 1), int), np.zeros((side - 1, side), int))
            costs = coupling * (1.0 - np.eye(2))[None]
            graph = lattice(own, *where, costs)
            runs = [timed(graph, GraphCut()) for _ in range(2)]
            ours = min(runs, key=lambda run: float(run["seconds"]))
            auto = timed(graph, "auto", time_limit=limit)
            row: dict[str, Any] = {"side": side, "coupling": coupling, "ours": ours["seconds"], "auto": auto["seconds"]}
            row["cost"], row["auto_method"] = -ours["score"], auto["method"]
            theirs = ask("maxflow", 2, own=own, across=across, down=down)
            verdict = "equal" if abs(auto["score"] - ours["score"]) < 1e-6 else "DIFFER"
            if theirs:
                row["peer"] = theirs["seconds"] + theirs["build"]
                row["peer_cost"] = cost(theirs["states"], own, *where, costs)
                verdict = verdict if abs(row["peer_cost"] - row["cost"]) < 1e-6 else "DIFFER"
            ratio = row["peer"] / row["ours"] if theirs else None
            shown = (row["ours"], row.get("peer"), ratio, row["auto"], verdict)
            table.row(f"{side} x {side}", coupling, *shown)
            rows.append(row)
    table.note("ratio = PyMaxflow's build and flow over our whole call; auto = mf.decode without a method")
    return rows


def compare(
    table: Table, name: str, own: Any, costs: Any, methods: dict[str, Any], judge: Callable[[Any], str | None]
) -> list[dict[str, Any]]:
    """One lattice with the same costs on all edges, by several methods and, where it has them too, by gco."""
    height, width = own.shape[:2]
    where = (np.zeros((height, width - 1), int), np.zeros((height - 1, width), int))
    graph = lattice(own, *where, costs[None])
    found = {method: timed(graph, settings) for method, settings in methods.items()}
    bound = min(run["bound"] for run in found.values())
    rows = []
    for method, run in found.items():
        row: dict[str, Any] = {"model": name, "method": method, "seconds": run["seconds"], "cost": -run["score"]}
        row["bound"] = -run["bound"]
        row["judged"] = judge(run["states"].reshape(height, width))
        # gco gives up where an expansion is not a cut, as with squares.
        metric = (costs[:, None, :] <= costs[:, :, None] + costs[None]).all()
        theirs = ask(PEERS[method], 1, own=own, table=costs) if method in PEERS and (metric or "swap" in method) else {}
        if theirs:
            row |= {"peer": theirs["seconds"], "peer_cost": cost(theirs["states"], own, *where, costs[None])}
        over = 100 * (row["cost"] / -bound - 1) if np.isfinite(bound) else None
        dearer = 100 * (row["cost"] / row["peer_cost"] - 1) if theirs else None
        table.row(
            name,
            method,
            row["seconds"],
            row.get("peer"),
            row["peer"] / row["seconds"] if theirs else None,
            f"{row['cost']:.0f}",
            f"{over:+.2f}%" if over is not None else None,
            f"{dearer:+.3f}%" if dearer is not None else None,
            row["judged"],
        )
        rows.append(row)
    return rows


HEADERS = ("model", "method", "ours", "gco", "ratio", "cost", "over bound", "over gco", "bad pixels")


def potts(quick: bool, limit: float) -> list[dict[str, Any]]:
    """Noisy pictures of several states with Potts costs."""
    table = Table("Potts lattices of many states, seconds and costs", HEADERS, first=18, second=18)
    rows = []
    for side in (100,) if quick else (100, 300, 500):
        for states in (4, 16):
            own, costs = noisy_picture(side, states), distance(states, "potts", 30, 1)
            rows += compare(table, f"{side} x {side}, K={states}", own, costs, METHODS, lambda _: None)
    table.note("ratio = gco's seconds over ours; over bound = above the best lower bound on costs (that of trws)")
    return rows


def stereo_pairs(quick: bool, limit: float) -> list[dict[str, Any]]:
    """Stereo pairs with truncated linear and quadratic costs; bad pixels are those off by more than one."""
    table = Table("Stereo pairs, seconds and costs", HEADERS, first=18, second=18)
    rows = []
    for name, states in (("tsukuba", 16),) if quick else (("tsukuba", 16), ("venus", 21), ("teddy", 54)):
        own = stereo(name, states)
        if own is None:
            table.note(f"{name} is not in the reference data")
            continue
        truth = stereo_pair(name).disparity

        def judge(found: Any, truth: Any = truth) -> str:
            return f"{100 * disparity_error(found, truth):.2f}%"

        for kind, weight, most in (("linear", 6, 2), ("quadratic", 3, 7)):
            rows += compare(table, f"{name}, {kind}", own, distance(states, kind, weight, most), METHODS, judge)
    return rows


# ---- public instances --------------------------------------------------------------------------------------


def optimum(name: str, graph: mf.FactorGraph) -> float | None:
    """The best score of a cost function network or protein, from the files beside it; None where there is none."""
    if name == "alarm":
        # toulbar2, whose value the file has, adds the least costs of functions of four and more variables twice: by the
        # costs in the file, the very assignment that it finds costs less.
        return None
    for folder in ("wcsp/validation", "wcsp/enum"):
        path = data_folder() / folder / f"{name}.ub"
        if path.exists():
            return -float(path.read_text(encoding="ascii"))
    path = data_folder() / "protein_sidechain" / f"{name}.uai.MAP"
    if path.exists():
        numbers = [int(x) for x in path.read_text(encoding="ascii").split() if x.isdigit()]
        return float(graph.score(np.array(numbers[-graph.n_variables :])))
    return None


def judged(score: float, best: float | None, proven: bool) -> str:
    """How a score compares with the best known one."""
    if best is None:
        return "proven" if proven else "-"
    room = SAME * max(1.0, abs(best))
    if score > best + room:
        return "BETTER"
    below = f"-{best - score:.4g}" if score < best - room else "best"
    # A proof of something worse than what is known would be wrong.
    return f"WRONG {below}" if proven and below != "best" else below


def attempt(graph: mf.FactorGraph, method: Any, limit: float, evidence: Any, unit: float) -> dict[str, Any]:
    """One decoding within a limit, its score and bound in ``unit``; minus infinity where there is no answer."""
    try:
        run = timed(graph, method, evidence=evidence, time_limit=limit)
    except (TimeoutError, MemoryError, RuntimeError, mf.ModelError) as error:
        run = {"error": str(error), "seconds": limit, "score": -np.inf, "bound": np.inf, "proven": False, "method": "-"}
    run.pop("states", None)
    return run | {"score": run["score"] / unit, "bound": run["bound"] / unit}


def run_public(
    table: Table,
    name: str,
    graph: mf.FactorGraph,
    best: float | None,
    limit: float,
    evidence: Any = None,
    unit: float = 1.0,
) -> dict[str, Any]:
    """One instance by ``auto`` and, where it is installed, by toulbar2."""
    row: dict[str, Any] = {"instance": name, "variables": graph.n_variables, "best": best}
    run = row["auto"] = attempt(graph, "auto", limit, evidence, unit)
    gap = "proven" if run["proven"] else f"{run['bound'] - run['score']:.4g}"
    shown: tuple[Any, ...] = (None, None)
    if find_spec("pytoulbar2") is not None:
        peer = row["toulbar2"] = attempt(graph, Toulbar2(), limit, evidence, unit)
        shown = (peer["seconds"], judged(peer["score"], best, peer["proven"]))
    verdict = judged(run["score"], best, run["proven"])
    table.row(name, graph.n_variables, run["method"], run["seconds"], f"{run['score']:.8g}", gap, verdict, *shown)
    return row


def summary(table: Table, rows: list[dict[str, Any]]) -> None:
    """How many reach the best known score, and how many are proven."""
    for solver in ("auto", "toulbar2"):
        runs = [(row[solver], row["best"]) for row in rows if solver in row and row["best"] is not None]
        if not runs:
            continue
        verdicts = [judged(run["score"], best, run["proven"]) for run, best in runs]
        mean = geometric_mean(max(run["seconds"], 1e-3) for run, _ in runs)
        table.note(
            f"{solver}: of {len(runs)} instances with a best known score {verdicts.count('best')} reach it, "
            f"{verdicts.count('BETTER')} are better, {sum(run['proven'] for run, _ in runs)} are proven; "
            f"{mean:.2f} s each (geometric mean)"
        )
    table.note("against best = how far below the best known score; toulbar2 starts in a process of its own")


PUBLIC = ("instance", "variables", "method", "seconds", "score", "gap", "against best", "toulbar2", "its score")


def proofs(quick: bool, limit: float) -> list[dict[str, Any]]:
    """Cost function networks and proteins, by ``auto``."""
    table = Table(f"Cost function networks and proteins, {limit:g} s each", PUBLIC, first=26)
    rows = [run_public(table, name, graph, optimum(name, graph), limit) for name, graph in instances(quick, [])]
    summary(table, rows)
    return rows


def uai(quick: bool, limit: float) -> list[dict[str, Any]]:
    """The instances of UAI-2014's MAP task, against the best values known; scores are logs to base ten."""
    folder = data_folder() / "uai2014"
    table = Table(f"UAI-2014 MAP, {limit:g} s each, log10", PUBLIC, first=22)
    if not (folder / "TABLE_MAP.tsv").exists():
        table.note("the instances are not in the reference data")
        return []
    rows, seen = [], set()
    with open(folder / "TABLE_MAP.tsv", encoding="utf-8", newline="") as lines:
        for entry in csv.DictReader(lines, delimiter="\t"):
            name, family = entry["name"], entry["name"].rsplit("_", 1)[0]
            path = folder / "MAP" / f"{name}.uai.gz"
            # One of each family is enough for a quick look.
            if not path.exists() or (quick and family in seen):
                continue
            seen.add(family)
            evidence = _evidence(path.with_name(f"{name}.uai.evid"))
            graph = mf.io.read_uai(path)
            known = entry["best_known_log10"]
            best = float(known) if known else None
            rows.append(run_public(table, name, graph, best, limit, evidence, unit=float(np.log(10))))
    summary(table, rows)
    return rows


def _evidence(path: Path) -> dict[int, int] | None:
    return (mf.io.read_uai_evidence(path) or None) if path.exists() else None


FAMILIES: dict[str, Callable[[bool, float], list[dict[str, Any]]]] = {
    "binary": binary,
    "potts": potts,
    "stereo": stereo_pairs,
    "proofs": proofs,
    "uai": uai,
}


def main() -> None:
    """Run the families asked for, and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="small lattices, one pair, small files, one of each family"
    )
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for each public instance")
    parser.add_argument("--only", nargs="*", default=list(FAMILIES), choices=list(FAMILIES), help="families to run")
    options = parser.parse_args()
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, load {about['load'][0]:.1f}")
    if "MARKOVFIELD_CUT_PEERS" not in os.environ:
        print("without PyMaxflow and gco: set MARKOVFIELD_CUT_PEERS to an interpreter that has them")
    if find_spec("pytoulbar2") is None:
        print("without toulbar2: pytoulbar2 is not installed")
    for states in (2, 3):
        tiny = lattice(
            np.ones((12, 12, states)), np.zeros((12, 11), int), np.zeros((11, 12), int), 1.0 - np.eye(states)[None]
        )
        for method in ([GraphCut()] if states == 2 else []) + list(METHODS.values()):
            timed(tiny, method)  # compiles
    results = {"machine": about} | {name: FAMILIES[name](options.quick, options.limit) for name in options.only}
    name = "decode" if options.only == list(FAMILIES) else f"decode_{'_'.join(options.only)}"
    print(f"\nsaved to {save(name, results)}")


if __name__ == "__main__":
    main()
