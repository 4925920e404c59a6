"""Linear-chain CRFs against python-crfsuite: training, tagging, memory, growth; and every solver of ours.

``python -m benchmarks.sequence.chain_crf [--quick] [--parts training tagging names growth ...] [--rows NAME ...]``;
each part takes one to three minutes, and what was saved of other parts stays. ``MARKOVFIELD_CRF_PEERS`` names an
interpreter that has python-crfsuite; without it, only our own rows are made. Each row is a process of its own. The
corpus is CoNLL-2000 chunking with the usual nineteen templates; penalties are the same (their c2 is half of our l2), as
are features and stopping: the objective falls by less than 1e-5 of itself in ten iterations.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import data_folder
from benchmarks.measure import RESULTS, Table, machine, save
from benchmarks.sequence.tagging_corpora import NAMES
from markovfield.sequence.text.entities import entity_report

WORKER = Path(__file__).with_name("chain_crf_worker.py")
MIB = 2.0**20
SAME = {"c1": 0.0, "c2": 1.0, "period": 10, "delta": 1e-5, "feature.minfreq": 0}
ONLINE: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {"solver": "sgd", "l2": 2.0, "rng": 0, "max_iterations": 50}),
    ("adagrad", {"solver": "adagrad", "l2": 2.0, "rng": 0, "max_iterations": 30}),
    ("perceptron", {"solver": "perceptron", "rng": 0, "max_iterations": 20}),
    ("pa", {"solver": "pa", "rng": 0, "max_iterations": 20}),
    ("pa2", {"solver": "pa2", "rng": 0, "max_iterations": 20}),
    ("arow", {"solver": "arow", "rng": 0, "max_iterations": 20}),
]
# Name, settings, whether steps have attributes: their tags.
SHAPES: list[tuple[str, dict[str, Any], bool]] = [
    ("lbfgs", {"l2": 2.0}, False),
    ("owlqn l1=1", {"l1": 1.0, "l2": 0.0}, False),
    ("edges", {"l2": 2.0}, True),
    ("latent, 2 states", {"l2": 2.0, "hidden_states": 2, "rng": 0, "max_iterations": 200}, False),
    ("second order", {"l2": 2.0, "order": 2, "max_iterations": 200}, False),
]
THEIRS: list[tuple[str, dict[str, Any]]] = [
    ("l2sgd", {"c2": 1.0, "max_iterations": 50}),
    ("ap", {"max_iterations": 20}),
    ("pa", {"max_iterations": 20}),
    ("arow", {"max_iterations": 20}),
]


def run(job: dict[str, Any], limit: float = 3600.0) -> dict[str, Any] | None:
    """One job in its own process; None where the peer is not there."""
    python = sys.executable if job["who"] == "ours" else os.environ.get("MARKOVFIELD_CRF_PEERS")
    if not python:
        return None
    job = {"folder": str(data_folder()), **job}
    done = subprocess.run(
        [python, str(WORKER)], input=json.dumps(job), capture_output=True, text=True, timeout=limit, check=False
    )
    if done.returncode:
        print(f"   {job['who']} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return None
    answer: dict[str, Any] = json.loads(done.stdout)
    if job.get("labels") is None:
        answer["f1"] = 100 * entity_report(answer["true"], answer["labels"]).f1
    del answer["true"], answer["labels"]
    answer["each"] = answer["train"] / max(answer["iterations"], 1)
    return answer


def our_job(settings: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"who": "ours", "settings": settings, **rest}


def their_job(params: dict[str, Any], algorithm: str = "lbfgs", **rest: Any) -> dict[str, Any]:
    return {"who": "pycrfsuite", "algorithm": algorithm, "params": params, **rest}


def compare(iterations: int | None) -> dict[str, Any]:
    """The same objective trained by both."""
    more = {} if iterations is None else {"max_iterations": iterations}
    found = {
        "ours": run(our_job({"l2": 2.0, **more})),
        "ours, one thread": run(our_job({"l2": 2.0, "n_jobs": 1, **more})),
        "python-crfsuite": run(their_job({**SAME, **more})),
    }
    table = Table(
        "CoNLL-2000, l2 = 2, L-BFGS",
        [
            "",
            "iterations",
            "ms each",
            "cpu ms",
            "convert s",
            "fit s",
            "objective",
            "F1",
            "tokens/s",
            "from lists",
            "MiB",
        ],
        first=18,
    )
    for name, row in found.items():
        if row is None:
            continue
        table.row(
            name,
            row["iterations"],
            1e3 * row["each"],
            1e3 * row["cpu"] / row["iterations"],
            row["convert"],
            row["fit"],
            f"{row['objective']:.3f}",
            f"{row['f1']:.2f}",
            f"{row['tokens'] / row['tag']:,.0f}",
            f"{row['tokens'] / row['tag_lists']:,.0f}",
            (row["peak"] - row["base"]) / MIB,
        )
    mine, theirs = found["ours"], found["python-crfsuite"]
    if mine and theirs:
        table.note(
            f"per iteration {theirs['each'] / mine['each']:.1f} times as fast, whole fit "
            f"{theirs['fit'] / mine['fit']:.1f}, tagging {theirs['tag'] / mine['tag']:.1f} (from lists "
            f"{theirs['tag_lists'] / mine['tag_lists']:.1f}); objectives differ by "
            f"{abs(mine['objective'] / theirs['objective'] - 1):.1e}; cpu ms are the whole fit's by iteration, without "
            "conversion; memory is above that of the corpus"
        )
    return found


def names(corpora: Sequence[str]) -> dict[str, Any]:
    """Tagging from Python lists of texts, where looking them up is most of the work."""
    table = Table(
        "Tagging from lists, tokens/s of processor time",
        ["", "", "all", "new texts", "one by one"],
        first=12,
        second=16,
    )
    found: dict[str, Any] = {}
    ways = ("cpu_lists", "cpu_fresh", "cpu_single")
    for name in corpora:
        jobs = {
            "ours": our_job({"l2": 2.0, "max_iterations": 30}, corpus=name),
            "python-crfsuite": their_job({**SAME, "max_iterations": 30}, corpus=name),
        }
        found[name] = {who: run(job) for who, job in jobs.items()}
        for who, row in found[name].items():
            if row is not None:
                table.row(name, who, *(f"{row['tokens'] / row[way]:,.0f}" for way in ways))
        mine, theirs = found[name].values()
        if mine and theirs:
            table.row(name, "ratio", *(f"{theirs[way] / mine[way]:.2f}" for way in ways))
    return found


def defaults(corpora: Sequence[tuple[str, float]], seeds: int) -> dict[str, Any]:
    """F1 of solvers where nothing is set but their name: means over some orders of the sequences."""
    headers = ["", "algorithm", "ours", "least", "most", "theirs", "least", "most"]
    table = Table("F1 at defaults", headers, first=12, second=10)
    found: dict[str, Any] = {}
    for name, share in corpora:
        for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
            given = {"algorithm": algorithm, "c2": 1.0} if algorithm in ("lbfgs", "l2sgd") else {"algorithm": algorithm}
            n = 1 if algorithm == "lbfgs" else seeds
            runs = [run(our_job({**given, "rng": s}, corpus=name, share=share)) for s in range(n)]
            peers = [run(their_job({}, algorithm, corpus=name, share=share, seed=s)) for s in range(n)]
            scores = [[row["f1"] for row in rows if row is not None] for rows in (runs, peers)]
            found[f"{name} {algorithm}"] = dict(zip(("ours", "theirs"), scores, strict=True))
            shown = [(sum(some) / len(some), min(some), max(some)) if some else [None] * 3 for some in scores]
            table.row(name, algorithm, *(None if v is None else f"{v:.2f}" for three in shown for v in three))
    return found


Job = tuple[str, dict[str, Any]]


def online(share: float) -> list[Job]:
    """Online solvers, and the peer's."""
    jobs = [(name, our_job(settings, share=share)) for name, settings in ONLINE]
    return jobs + [(f"python-crfsuite {name}", their_job(params, name, share=share)) for name, params in THEIRS]


def shapes(share: float) -> list[Job]:
    """What else a chain can be, and sparse weights."""
    jobs = [(name, our_job(settings, edges=edges, share=share)) for name, settings, edges in SHAPES]
    sparse = {**SAME, "c1": 1.0, "c2": 0.0}
    return [*jobs, ("python-crfsuite c1=1", their_job(sparse, share=share))]


def each_of(title: str, jobs: list[Job], rows: list[str] | None) -> dict[str, Any]:
    """A row for each job, or for those that are named."""
    table = Table(title, ["", "passes", "ms each", "fit s", "F1", "features", "MiB"], first=26)
    found: dict[str, Any] = {}
    for name, job in jobs:
        if rows is not None and name not in rows:
            continue
        row = found[name] = run(job)
        if row is not None:
            used = (row["peak"] - row["base"]) / MIB
            each = 1e3 * row["each"]
            table.row(name, row["iterations"], each, row["fit"], f"{row['f1']:.2f}", row["features"], used)
    return found


def growth(name: str, points: list[dict[str, Any]], iterations: int) -> dict[str, Any]:
    """Time of an iteration as the data grow."""
    table = Table(f"Growth with {name}", [name, "ours ms", "theirs ms", "ratio", "ours MiB", "theirs MiB"])
    found: dict[str, Any] = {}
    for point in points:
        mine = run(our_job({"l2": 2.0, "max_iterations": iterations, "tolerance": 0.0}, **point))
        theirs = run(their_job({**SAME, "delta": 0.0, "max_iterations": iterations}, **point))
        shown = point.get("labels") or point["share"]
        found[str(shown)] = {"ours": mine, "python-crfsuite": theirs}
        if mine is None:
            continue
        table.row(
            shown,
            1e3 * mine["each"],
            None if theirs is None else 1e3 * theirs["each"],
            None if theirs is None else theirs["each"] / mine["each"],
            (mine["peak"] - mine["base"]) / MIB,
            None if theirs is None else (theirs["peak"] - theirs["base"]) / MIB,
        )
    return found


def parts(quick: bool, rows: list[str] | None) -> dict[str, Callable[[], dict[str, Any]]]:
    """What can be measured, by name."""
    share = 0.125 if quick else 1.0
    shares = [0.125] if quick else [0.125, 0.25, 0.5, 1.0]
    sizes = [(10, 2000)] if quick else [(10, 4000), (45, 4000), (200, 2000)]
    return {
        "training": lambda: compare(15 if quick else None),
        "tagging": lambda: compare(15),
        "names": lambda: names(("rare",) if quick else NAMES),
        "defaults": lambda: defaults(
            [("rare", 1.0)] if quick else [("rare", 1.0), ("conll2002", 0.25)], 1 if quick else 3
        ),
        "growth": lambda: growth("share of sentences", [{"share": s} for s in shares], 20),
        "labels": lambda: growth("labels", [{"labels": k, "sequences": n} for k, n in sizes], 10),
        "online": lambda: each_of("Online solvers on CoNLL-2000", online(share), rows),
        "shapes": lambda: each_of("Shapes on CoNLL-2000", shapes(share), rows),
    }


def main() -> None:
    """Run some parts and save what they found beside what was saved of the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few iterations on an eighth of the data")
    parser.add_argument("--parts", nargs="+", choices=list(parts(True, None)), help="which parts; all where not given")
    parser.add_argument("--rows", nargs="+", help="which rows of online and shapes; all where not given")
    chosen = parser.parse_args()
    available = parts(chosen.quick, chosen.rows)
    saved = RESULTS / "chain_crf.json"
    before = json.loads(saved.read_text()) if saved.exists() else {}
    results: dict[str, Any] = {name: before[name] for name in available if name in before}
    for name in chosen.parts or available:
        found = {"machine": machine(), **available[name]()}
        results[name] = {**results.get(name, {}), **found} if chosen.rows else found
    print(f"\nsaved to {save('chain_crf', results)}")


if __name__ == "__main__":
    main()
