"""Relaxations: scores, bounds and seconds of TRW-S, dual decomposition and linear programs.

``python -m benchmarks.decoding.relaxations [--quick] [--only PART ...]``. Where pytoulbar2 is installed, its TRW-S
(there a preparation for search) runs beside ours on the same whole costs, part ``sequential``, and toulbar2 itself
under the time limit of our methods, part ``instances``; linear programs are solved by HiGHS through scipy. Scores are
sums of natural logs and are maximised; a bound is proven by the method of its row. All rows are one thread.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
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
from markovfield.inference.dual_decomposition.dual_decomposition import DualDecomposition
from markovfield.inference.linear_programming.linear_program import IntegerProgram, LinearProgram
from markovfield.inference.local_search.incumbent import Incumbent
from markovfield.inference.mini_bucket.mini_bucket import MiniBucket
from markovfield.inference.problem.merged_pairs import prepare_merged
from markovfield.inference.trws.lattice import LatticeMessages
from markovfield.inference.trws.plan import sequential_plan
from markovfield.inference.trws.trws import TRWS, SequentialMessages

__all__ = ["main"]

SEED = 11
FAMILIES = ("Segmentation", "Grids", "ProteinFolding", "ObjectDetection", "ImageAlignment")
# Cost of disparities in the stereo model: truncated linear on both sides (Murphy 19.69 with absolute differences).
WEIGHT, TRUNCATION, DATA_TRUNCATION = 20.0, 2.0, 20.0
TEN = float(np.log(10))


def lattice(own: Any, table: Any) -> FactorGraph:
    """A lattice of scores ``own[y, x, state]`` with one table for all edges."""
    height, width, states = own.shape
    at = np.arange(height * width).reshape(height, width)
    pairs = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    m, n = len(pairs), height * width
    structure = Structure.from_arrays(
        np.full(n, states, np.int32),
        np.concatenate([2 * np.arange(m + 1), 2 * m + 1 + np.arange(n)]),
        np.concatenate([pairs.ravel(), np.arange(n)]),
        np.concatenate([np.zeros(m, np.int64), table.size + states * np.arange(n)]),
        n_cells=table.size + own.size,
    )
    return FactorGraph(structure, np.concatenate([table.ravel(), own.ravel()]))


def potts_table(states: int, weight: float = 1.0) -> Any:
    """Zero where two states are the same."""
    return -weight * (1.0 - np.eye(states))


def steps_table(states: int, weight: float, truncation: float) -> Any:
    """Truncated linear."""
    return -weight * np.minimum(np.abs(np.arange(states)[:, None] - np.arange(states)), truncation)


def stereo(name: str, states: int) -> FactorGraph:
    """Absolute differences of colours, truncated, and truncated linear differences of disparities."""
    import matplotlib.image

    folder = data_folder() / "stereo" / name
    left, right = (255.0 * matplotlib.image.imread(folder / f"{side}.png")[:, :, :3] for side in ("im2", "im6"))
    own = np.full((*left.shape[:2], states), -DATA_TRUNCATION)
    for d in range(states):
        apart = np.abs(left[:, d:] - right[:, : right.shape[1] - d]).mean(axis=2)
        own[:, d:, d] = -np.minimum(apart, DATA_TRUNCATION)
    return lattice(own, steps_table(states, WEIGHT, TRUNCATION))


def timed(model: Any, method: Any, limit: float | None = None, **keywords: Any) -> tuple[mf.Decoding | None, float]:
    """An answer and its seconds; None where the method refuses or has nothing in time."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = mf.decode(model, method=method, time_limit=limit, **keywords)
        except (mf.ModelError, mf.MemoryLimitError, TimeoutError):
            answer = None
    return answer, time.perf_counter() - started


# Units of the whole costs that both TRW-S get.
UNITS = 10_000


def peer_bounds(own: Any, table: Any, iterations: int, patience: float) -> list[tuple[int, float, float, float]]:
    """Iterations, seconds since TRW-S began, bound and lowest cost of toulbar2's TRW-S; empty where it is missing."""
    if find_spec("pytoulbar2") is None:
        return []
    height, width, states = own.shape
    at = np.arange(height * width).reshape(height, width)
    pairs = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    found: list[tuple[int, float, float, float]] = []
    with tempfile.TemporaryDirectory(prefix="markovfield-peers-") as folder:
        model = Path(folder) / "model.npz"
        np.savez(model, own=own.reshape(-1, states), pairs=pairs, table=table)
        command = [sys.executable, str(Path(__file__).parent / "sequential_worker.py"), str(model), str(iterations)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
            assert worker.stdout is not None
            began = before = time.perf_counter()
            for line in worker.stdout:
                now = time.perf_counter()
                said = re.match(r"TRW-S bounds: \[(\d+), (\d+)\].*iter:(\d+)", line)
                if said:
                    # The clock starts with the line before the first iteration.
                    began = before if not found else began
                    found.append((int(said[3]), now - began, float(said[1]), float(said[2])))
                    if found[-1][0] == iterations or now - began > patience:
                        break
                before = now
            worker.kill()
    return found


class Bench:
    """The rows so far."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self.rows: list[dict[str, Any]] = []

    def row(self, table: Table, part: str, name: str, method: str, answer: Any, seconds: float, **more: Any) -> None:
        """Print and keep a row."""
        score, bound = (None, None) if answer is None else (answer.score, answer.upper_bound)
        gap = None if answer is None or not np.isfinite(answer.gap) else answer.gap / max(1.0, abs(answer.score))
        self.rows.append(
            {"part": part, "name": name, "method": method, "score": score, "bound": bound, "seconds": seconds, **more}
        )
        shown = [f"{x:.2f}" if x is not None and np.isfinite(x) else "-" for x in (score, bound)]
        table.row(
            name,
            method,
            *shown,
            f"{gap:.1e}" if gap is not None else "-",
            str(answer.iterations) if answer is not None else "-",
            seconds,
            *(f"{x:.2f}" for x in more.values()),
        )

    def messages(self) -> None:
        """Nanoseconds for each state of each message, general and by diagonals."""
        table = Table("Messages", ["edges", "states", "by diagonals", "in general"], first=18)
        rng = np.random.default_rng(SEED)
        for name, states, cells in (
            ("Potts", 2, potts_table(2)),
            ("Potts", 16, potts_table(16)),
            ("truncated linear", 16, steps_table(16, 1.0, 2.0)),
            ("truncated linear", 64, steps_table(64, 1.0, 8.0)),
            ("any", 16, rng.normal(size=(16, 16))),
        ):
            side = 60 if self.quick or states > 16 else 200
            graph = lattice(rng.normal(size=(side, side, states)), cells)
            problem = prepare_merged(graph, Evidence.parse(graph.structure, None))
            plan = sequential_plan(problem.structure)
            found = []
            with plan.tables(problem.potentials.log_tables) as tables:
                for run in (LatticeMessages.fit(problem, plan, tables), SequentialMessages(problem, plan, tables)):
                    assert run is not None
                    seconds = []
                    for _ in range(10):
                        started = time.perf_counter()
                        run.run(Running(), Incumbent(problem))
                        seconds.append(time.perf_counter() - started)
                    found.append(min(seconds) / (2 * side * (side - 1) * states) * 1e9)
            self.rows.append({"part": "messages", "name": name, "states": states, "nanoseconds": found})
            table.row(name, str(states), *found)

    def compare(self, part: str, title: str, models: dict[str, Callable[[], FactorGraph]], limit: float) -> None:
        """TRW-S after some numbers of iterations against what else takes a large lattice."""
        headers = ["model", "method", "score", "bound", "gap", "iterations", "seconds"]
        table = Table(title, headers, first=22, second=22, least=11)
        for name, make in models.items():
            model = make()
            timed(model, TRWS(max_iterations=1))  # kernels and the plan
            for iterations in (10, 50, 200):
                answer, seconds = timed(model, TRWS(max_iterations=iterations), limit)
                self.row(table, part, name, f"trws {iterations}", answer, seconds)
            for method in ("belief_propagation", "icm"):
                answer, seconds = timed(model, method, limit)
                self.row(table, part, name, method, answer, seconds)

    def lattices(self) -> None:
        """Potts models with normal fields."""

        def make(side: int, states: int) -> Callable[[], FactorGraph]:
            rng = np.random.default_rng(SEED + side + states)
            return lambda: lattice(rng.normal(size=(side, side, states)), potts_table(states))

        sizes = [(50, 4)] if self.quick else [(100, 4), (100, 16), (300, 4), (500, 4), (500, 16)]
        models = {f"Potts {side} x {side} x {k}": make(side, k) for side, k in sizes}
        self.compare("lattices", "Lattices", models, 30.0)

    def stereo(self) -> None:
        """Disparities, truncated linear."""
        sizes = {"tsukuba": 16} if self.quick else {"tsukuba": 16, "venus": 20}
        models: dict[str, Callable[[], FactorGraph]] = {
            name: (lambda name=name, k=k: stereo(name, k)) for name, k in sizes.items()
        }
        self.compare("stereo", "Stereo", models, 30.0)

    def sequential(self) -> None:
        """TRW-S against that of toulbar2: the same whole costs, the same iterations, bounds and costs in units."""
        rng = np.random.default_rng(SEED)
        models: dict[str, tuple[Any, Any]] = {}
        for side, k in [(50, 4)] if self.quick else [(100, 4), (100, 16), (300, 4)]:
            models[f"Potts {side} x {side} x {k}"] = (rng.normal(size=(side, side, k)), potts_table(k))
        if (data_folder() / "stereo").exists():
            graph = stereo("tsukuba", 16)
            shape, cells = (288, 384, 16), graph.log_tables
            models["tsukuba x 16"] = (cells[256:].reshape(shape), cells[:256].reshape(16, 16))
        headers = [
            "model",
            "iterations",
            "bound",
            "cost",
            "seconds",
            "peer bound",
            "peer cost",
            "peer seconds",
            "ratio",
        ]
        table = Table("TRW-S and toulbar2's TRW-S", headers, first=22, least=12)
        for name, (scores, pair) in models.items():
            own = np.round(UNITS * (scores.max(axis=2, keepdims=True) - scores)).astype(np.int64)
            cells = np.round(-UNITS * pair).astype(np.int64)
            graph = lattice(-own.astype(np.float64), -cells.astype(np.float64))
            timed(graph, TRWS(max_iterations=1))
            peer = {line[0]: line for line in peer_bounds(own, cells, 200, 60.0)}
            for iterations in (10, 50, 200):
                answer, seconds = timed(graph, TRWS(max_iterations=iterations, tolerance=0.0))
                assert answer is not None
                ours = (-answer.upper_bound, -answer.score, seconds)
                its = peer.get(iterations, (iterations, None, None, None))
                ratio = its[1] / seconds if its[1] is not None else None
                self.rows.append(
                    {"part": "sequential", "name": name, "iterations": iterations, "ours": ours, "peer": its}
                )
                shown = [None if x is None else f"{x:,.0f}" for x in (ours[0], ours[1], its[2], its[3])]
                table.row(name, str(iterations), shown[0], shown[1], seconds, shown[2], shown[3], its[1], ratio)

    def instances(self) -> None:
        """Instances of the UAI 2014 competition against the best values known."""
        limit = 2.0 if self.quick else 10.0
        headers = ["instance", "method", "score", "bound", "gap", "iterations", "seconds", "best known"]
        table = Table(f"UAI 2014, {limit:g} s each", headers, first=18, second=22, least=11)
        with (data_folder() / "uai2014" / "TABLE_MAP.tsv").open(encoding="utf-8") as lines:
            known = {row["name"]: float(row["best_known_log10"]) * TEN for row in csv.DictReader(lines, delimiter="\t")}
        for family in FAMILIES:
            for name in sorted(n for n in known if n.startswith(family))[: 1 if self.quick else 4]:
                path = data_folder() / "uai2014" / "MAP" / f"{name}.uai.gz"
                if not path.exists():
                    continue
                model = mf.io.read_uai(path)
                evidence = mf.io.read_uai_evidence(path.with_suffix("").with_suffix(".uai.evid"))
                for title, method in self._methods(limit).items():
                    answer, seconds = timed(model, method, limit, evidence=evidence)
                    self.row(table, "instances", name, title, answer, seconds, best=known[name])

    @staticmethod
    def _methods(limit: float) -> dict[str, Any]:
        many = 10**6
        methods: dict[str, Any] = {
            "trws": TRWS(max_iterations=many),
            "ad3": DualDecomposition(max_iterations=many),
            "subgradient, trees": DualDecomposition(algorithm="subgradient", subproblems="trees", max_iterations=many),
            "belief_propagation": "belief_propagation",
            "mini_bucket": MiniBucket(),
        }
        try:
            from markovfield.inference.branch_and_bound.toulbar2 import Toulbar2

            methods["toulbar2"] = Toulbar2()
        except ImportError:
            pass
        return methods

    def programs(self) -> None:
        """Small models, where linear programs can be written out: the same optimum three ways."""
        headers = ["model", "method", "score", "bound", "gap", "iterations", "seconds"]
        table = Table("Linear programs", headers, first=24, second=22, least=11)
        rng = np.random.default_rng(SEED)
        models: dict[str, Any] = {}
        for side, states in ((10, 2), (10, 4)) if self.quick else ((10, 2), (20, 2), (10, 4), (20, 4)):
            net = mf.MarkovNetwork(dict.fromkeys(range(side * side), states))
            for i in range(side * side):
                net.add_factor([i], log_table=0.3 * rng.normal(size=states))
                for j in ([i + 1] if i % side < side - 1 else []) + ([i + side] if i + side < side * side else []):
                    net.add_factor([i, j], log_table=rng.normal(size=(states, states)))
            models[f"glass {side} x {side} x {states}"] = net.compile()
        for path in sorted((data_folder() / "protein_sidechain").glob("*.uai*"))[: 1 if self.quick else 8]:
            if path.name.endswith((".uai", ".uai.gz", ".uai.xz")):
                models[path.name.split(".")[0]] = mf.io.read_uai(path)
        limit = 10.0 if self.quick else 60.0
        for name, model in models.items():
            for title, method in {
                "trws": TRWS(),
                "ad3": DualDecomposition(),
                "linear_program": LinearProgram(cycles=0),
                "linear_program, cycles": LinearProgram(),
                "integer_program": IntegerProgram(),
            }.items():
                answer, seconds = timed(model, method, limit)
                self.row(table, "programs", name, title, answer, seconds)


def main() -> None:
    """Run the parts asked for."""
    parts = ("messages", "lattices", "stereo", "sequential", "instances", "programs")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, a few instances")
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    arguments = parser.parse_args()
    bench = Bench(arguments.quick)
    for part in arguments.only:
        getattr(bench, part)()
    save("relaxations", {"machine": machine(), "rows": bench.rows})


if __name__ == "__main__":
    main()
