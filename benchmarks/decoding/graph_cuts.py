"""Graph cuts and move making: seconds and costs against PyMaxflow and gco, on the same whole-number costs.

``python -m benchmarks.decoding.graph_cuts [--quick] [--parts cuts moves] [--lattices NAME]``. ``MARKOVFIELD_CUT_PEERS``
names an interpreter that has PyMaxflow and gco-wrapper (the first is GPL: it is only ever run next to ours); without it
only our own columns are shown. The flow alone is compared, and the whole way from a compiled graph to an answer is
shown beside it. Results of all lattices are saved.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.measure import Table, machine, save
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.graph_cuts.graph_cut import GraphCut
from markovfield.inference.graph_cuts.move_making import AlphaBetaSwap, AlphaExpansion
from markovfield.inference.graph_cuts.penalties import penalties_of
from markovfield.inference.problem.pairs import pair_problem

PATIENCE = 300.0
# What at least to be faster by, and how much dearer an answer of moves may be.
CUT_TARGET, MOVES_TARGET = 2.0, 1.0


def lattice(own: Any, across: Any, down: Any, tables: Any) -> FactorGraph:
    """A lattice of costs; ``tables[across[y, x]]`` is that of a node and the one to its right."""
    height, width, states = own.shape
    at = np.arange(height * width).reshape(height, width)
    beside = np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2)
    below = np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)
    pairs = np.concatenate([beside, below])
    m, n = len(pairs), height * width
    which = np.concatenate([across.ravel(), down.ravel()])
    structure = Structure.from_arrays(
        np.full(n, states, np.int32),
        np.concatenate([2 * np.arange(m + 1), 2 * m + 1 + np.arange(n)]),
        np.concatenate([pairs.ravel(), np.arange(n)]),
        np.concatenate([states * states * which, tables.size + states * np.arange(n)]),
        n_cells=tables.size + own.size,
    )
    return FactorGraph(structure, -np.concatenate([tables.ravel(), own.ravel()]).astype(np.float64))


def cost(states: Any, own: Any, across: Any, down: Any, tables: Any) -> float:
    """What an assignment costs."""
    total = np.take_along_axis(own, states[:, :, None], axis=2).sum()
    total += tables[across, states[:, :-1], states[:, 1:]].sum() + tables[down, states[:-1], states[1:]].sum()
    return float(total)


def image(name: str, view: str) -> Any:
    """An image of the stereo sets as ``float64[height, width, 3]``; None where they are not there."""
    path = data_folder() / "stereo" / name / f"{view}.png"
    if not path.exists():
        return None
    from PIL import Image

    return np.asarray(Image.open(path).convert("RGB"), np.float64)


def ask(peer: str, repeats: int, **arrays: Any) -> dict[str, Any]:
    """One job in the peers' interpreter; empty where there is none or it gives no answer."""
    if "MARKOVFIELD_CUT_PEERS" not in os.environ:
        return {}
    with tempfile.TemporaryDirectory(prefix="markovfield-peers-") as folder:
        model, out = Path(folder) / "model.npz", Path(folder) / "states.npy"
        np.savez(model, **arrays)
        worker = str(Path(__file__).parent / "cut_worker.py")
        command = [os.environ["MARKOVFIELD_CUT_PEERS"], worker, peer, str(model), str(out), str(repeats)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return {}
        if done.returncode or not out.exists():
            return {}
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found | {"states": np.load(out)}


# ---- cuts --------------------------------------------------------------------------------------------------


def random_binary(side: int, coupling: int) -> tuple[Any, Any, Any]:
    """Random ties to both terminals, constant couplings: costs and couplings."""
    rng = np.random.default_rng(side)
    own = rng.integers(0, 100, (side, side, 2)).astype(np.int32)
    return own, np.full((side, side), coupling, np.int32), np.full((side, side), coupling, np.int32)


def segmentation(name: str, times: int, strength: float) -> tuple[Any, Any, Any] | None:
    """An enlarged photograph: bright or dark, with couplings that give way at edges."""
    photo = image(name, "im2")
    if photo is None:
        return None
    grey = photo.mean(axis=2)
    grey = np.kron(grey, np.ones((times, times)))
    grey += np.random.default_rng(0).normal(0.0, 10.0, grey.shape)
    middle = np.median(grey)
    own = np.stack([np.maximum(grey - middle, 0), np.maximum(middle - grey, 0)], axis=2)
    across, down = np.zeros(grey.shape), np.zeros(grey.shape)
    across[:, :-1] = strength * np.exp(-np.square(np.diff(grey, axis=1)) / 800.0)
    down[:-1] = strength * np.exp(-np.square(np.diff(grey, axis=0)) / 800.0)
    return own.astype(np.int32), across.astype(np.int32), down.astype(np.int32)


def flow_seconds(graph: FactorGraph, repeats: int) -> tuple[float, float]:
    """Seconds of the flow alone, the best of a few, on all cores and on one thread."""
    pairs = pair_problem("graph_cut", graph, Evidence.parse(graph.structure, None), shrink=True)
    penalties = penalties_of(pairs)
    best = {None: np.inf, 1: np.inf}
    for n_jobs in list(best) * repeats:
        network = penalties.network()
        started = time.perf_counter()
        network.run(Running(n_jobs))
        best[n_jobs] = min(best[n_jobs], time.perf_counter() - started)
    return best[None], best[1]


def cuts(quick: bool, only: str = "") -> list[dict[str, Any]]:
    """Binary lattices: random ones of several sizes and couplings, and photographs."""
    headers = ("lattice", "coupling", "flow", "1 thread", "PyMaxflow", "ratio", "whole", "build", "costs")
    table = Table("Smallest cuts, seconds", headers, first=20)
    jobs: list[tuple[str, Any, Any]] = []
    for side in (100, 300) if quick else (100, 300, 512, 1000):
        jobs += [(f"random {side} x {side}", c, random_binary(side, c)) for c in (5, 20, 50, 80, 120)]
    for name, times in (("tsukuba", 1),) if quick else (("tsukuba", 1), ("tsukuba", 3), ("teddy", 3)):
        jobs += [(f"{name} x {times}", s, segmentation(name, times, s)) for s in (10.0, 60.0)]
    rows = []
    for name, strength, model in jobs:
        if model is None or only not in name:
            continue
        own, across, down = model
        weights, which = np.unique(np.concatenate([across[:, :-1].ravel(), down[:-1].ravel()]), return_inverse=True)
        tables = weights[:, None, None] * (1 - np.eye(2, dtype=np.int64))
        beside = which[: across[:, :-1].size].reshape(across[:, :-1].shape)
        below = which[across[:, :-1].size :].reshape(down[:-1].shape)
        graph = lattice(own, beside, below, tables)
        repeats = 3
        seconds, alone = flow_seconds(graph, repeats)
        started = time.perf_counter()
        answer = mf.decode(graph, method=GraphCut())
        row = {"lattice": name, "coupling": strength, "flow": seconds, "one_thread": alone}
        row["whole"] = time.perf_counter() - started
        row["cost"] = cost(answer.states.reshape(own.shape[:2]).astype(np.int64), own, beside, below, tables)
        assert answer.optimal and abs(row["cost"] + answer.score) <= answer.tolerance
        theirs = ask("maxflow", repeats, own=own, across=across, down=down)
        if theirs:
            row |= {"peer": theirs["seconds"], "build": theirs["build"]}
            row["same"] = cost(theirs["states"], own, beside, below, tables) == row["cost"]
        ratio = row["peer"] / seconds if theirs else None
        same = {True: "equal", False: "DIFFER", None: None}[row.get("same")]
        table.row(name, strength, seconds, alone, row.get("peer"), ratio, row["whole"], row.get("build"), same)
        rows.append(row)
    table.note(
        f"flow = ours alone, on all cores; ratio = PyMaxflow's flow over ours, target {CUT_TARGET:g} at 1000 x 1000;"
    )
    table.note("whole = mf.decode of a compiled graph, names included; build = PyMaxflow's graph")
    return rows


# ---- moves -------------------------------------------------------------------------------------------------


def distance(states: int, kind: str, weight: int, most: int) -> Any:
    """Costs of the distance of two states."""
    apart = np.abs(np.arange(states)[:, None] - np.arange(states))
    apart = {"linear": apart, "quadratic": apart**2, "potts": np.minimum(apart, 1)}[kind]
    return (weight * np.minimum(apart, most)).astype(np.int32)


def noisy_picture(side: int, states: int) -> Any:
    """Costs of the states of a smooth picture with steps, under noise."""
    rng = np.random.default_rng(side)
    y, x = np.mgrid[:side, :side] / side
    picture = 0.5 + 0.25 * np.sin(7 * x) + 0.25 * np.sign(np.sin(9 * y + 3 * x))
    picture = (states - 1) * picture + rng.normal(0.0, 2.0, (side, side))
    return np.round(10 * np.minimum(np.abs(picture[:, :, None] - np.arange(states)), 4)).astype(np.int32)


def stereo(name: str, states: int) -> Any:
    """Costs of disparities: absolute differences of the two views, averaged over colours and cut off at 20."""
    left, right = image(name, "im2"), image(name, "im6")
    if left is None or right is None:
        return None
    costs = np.full((*left.shape[:2], states), 20.0)
    for d in range(states):
        there = np.abs(left[:, d:] - right[:, : left.shape[1] - d]).mean(axis=2)
        costs[:, d:, d] = np.minimum(there, 20.0)
    return np.round(costs).astype(np.int32)


def moves(quick: bool) -> list[dict[str, Any]]:
    """Expansions and swaps on lattices of many states."""
    headers = ("model", "pairs", "method", "own", "gco", "ratio", "cost", "gco's", "over")
    table = Table("Moves, seconds and costs", headers, second=10, least=9)
    side, rng = (100 if quick else 300), np.random.default_rng(0)
    random = rng.integers(0, 100, (side, side, 16)).astype(np.int32)
    jobs = []
    for name, own in ((f"random {side}", random), (f"picture {side}", noisy_picture(side, 16))):
        jobs += [(name, own, *p) for p in (("linear", 20, 3), ("potts", 30, 1), ("quadratic", 5, 10))]
    for name, states in (("tsukuba", 16),) if quick else (("tsukuba", 16), ("venus", 20)):
        jobs += [(name, stereo(name, states), *p) for p in (("linear", 6, 2), ("potts", 8, 1), ("quadratic", 3, 7))]
    rows = []
    for name, own, kind, weight, most in jobs:
        if own is None:
            continue
        height, width, states = own.shape
        costs = distance(states, kind, weight, most)
        beside, below = np.zeros((height, width - 1), np.int64), np.zeros((height - 1, width), np.int64)
        graph = lattice(own, beside, below, costs[None])
        for method in (AlphaExpansion(), AlphaBetaSwap()):
            best = np.inf
            for _ in range(2):
                started = time.perf_counter()
                answer = mf.decode(graph, method=method)
                best = min(best, time.perf_counter() - started)
            row: dict[str, Any] = {"model": name, "pairs": kind, "method": method.name, "own": best}
            row["cost"] = cost(answer.states.reshape(height, width).astype(np.int64), own, beside, below, costs[None])
            peer = {"alpha_expansion": "gco_expansion", "alpha_beta_swap": "gco_swap"}[method.name]
            # gco gives up where an expansion is not a cut.
            theirs = ask(peer, 2, own=own, table=costs) if (kind, peer) != ("quadratic", "gco_expansion") else {}
            if theirs:
                row |= {"gco": theirs["seconds"], "gco_cost": cost(theirs["states"], own, beside, below, costs[None])}
            over = 100 * (row["cost"] / row["gco_cost"] - 1) if theirs else None
            ratio = row["gco"] / best if theirs else None
            theirs_cost = f"{row['gco_cost']:.0f}" if theirs else None
            shown = f"{over:+.3f}%" if over is not None else None
            what = method.name.split("_")[-1]
            table.row(name, kind, what, best, row.get("gco"), ratio, f"{row['cost']:.0f}", theirs_cost, shown)
            rows.append(row)
    table.note(f"ratio = gco's seconds over ours, target {MOVES_TARGET:g}; over = how much dearer our answer is")
    return rows


def main() -> None:
    """Run and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small lattices only")
    parser.add_argument("--parts", nargs="+", choices=("cuts", "moves"), default=("cuts", "moves"))
    parser.add_argument("--lattices", default="", help="cuts of lattices whose name has this only")
    given = parser.parse_args()
    tiny = lattice(np.ones((3, 3, 2)), np.zeros((3, 2), int), np.zeros((2, 3), int), 1.0 - np.eye(2)[None])
    for method in (GraphCut(), AlphaExpansion(), AlphaBetaSwap()):
        mf.decode(tiny, method=method)  # compiles
    results: dict[str, Any] = {"machine": machine()}
    if "cuts" in given.parts:
        results["cuts"] = cuts(given.quick, given.lattices)
    if "moves" in given.parts:
        results["moves"] = moves(given.quick)
    if not given.lattices:
        print(f"\nsaved to {save('graph_cuts', results)}")


if __name__ == "__main__":
    main()
