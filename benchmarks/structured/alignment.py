"""Word alignment of the Hansards: seconds of EM and alignment error rates, ours and eflomal's.

``python -m benchmarks.structured.alignment [--pairs 60000] [--iterations 5] [--splits 5] [--no-peers]``. Models learn
from the training part, which has no links. Error rates are those of the test part where it is there, with the CRF
trained on the validation part; otherwise of the validation part, with the CRF cross-validated in five parts, several
times. eflomal (Ostling and Tiedemann 2016) aligns what it learns from, so the linked sentences stand at the end of its
corpus; ours have not seen them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.measure import Table, machine, save
from benchmarks.peers import environment
from markovfield.alignment.links import SYMMETRISATIONS
from markovfield.inference.core.running import Running

FOLDS = 5
CRFS = {
    "CRF, likelihood": {},
    "CRF, hinge": {"objective": "hinge"},
    "CRF, likelihood, possible links hidden": {"possible": "hidden"},
}


def learn(corpus: list[Any], iterations: int, table: Table) -> dict[str, Any]:
    """Both directions of each model, with what an iteration takes."""
    models = {
        "IBM 1": mf.alignment.IBM1(iterations),
        "IBM 2, diagonal": mf.alignment.IBM2(iterations),
        "IBM 2, table": mf.alignment.IBM2(iterations, positions="table"),
        "HMM": mf.alignment.HMMAligner(iterations),
    }
    found = {}
    for name, model in models.items():
        busy = [time.process_time()]

        def callback(progress: Any, busy: list[float] = busy) -> None:
            busy.append(time.process_time())

        started = time.perf_counter()
        both = mf.alignment.SymmetricAligner(model).fit(corpus, callback=callback)
        spent, last = time.perf_counter() - started, both.forward_.report_.details["seconds_per_iteration"]
        # The last passes are those of the model itself, not of the one that it starts from.
        each = float(np.median(np.diff(busy)[-iterations:]))
        table.row(name, f"{last:.3f}", f"{each:.3f}", f"{spent:.1f}", f"{busy[-1] - busy[0]:.1f}")
        found[name] = {
            "model": both,
            "seconds": spent,
            "cpu": busy[-1] - busy[0],
            "iteration": last,
            "cpu_iteration": each,
        }
    return found


def peer(corpus: list[Any], asked: list[Any], table: Table) -> dict[str, list[Any]] | None:
    """Links of eflomal in both directions, by its default settings."""
    python, had = environment(["eflomal"])
    if python is None or "eflomal" not in had:
        return None
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in ("source", "target", "forward", "backward")}
        pairs = [*corpus, *asked]
        for side, name in enumerate(("source", "target")):
            paths[name].write_text("".join(" ".join(pair[side]) + "\n" for pair in pairs), encoding="utf-8")
        command = [str(python), str(python.with_name("eflomal-align")), "-s", paths["source"], "-t", paths["target"]]
        command += ["-f", paths["forward"], "-r", paths["backward"]]
        started, used = time.perf_counter(), _children()
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        spent = time.perf_counter() - started
        if done.returncode:
            print(f"skipping peer eflomal: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}")
            return None
        table.row("eflomal", "-", "-", f"{spent:.1f}", f"{_children() - used:.1f}")
        links = {}
        for name in ("forward", "backward"):
            own = mf.io.read_links(paths[name], format="pharaoh", n_pairs=len(pairs))
            links[name] = [sorted(one.sure) for one in own[len(corpus) :]]
        return links


def _children() -> float:
    """Processor seconds of programs that have ended."""
    found = os.times()
    return found.children_user + found.children_system


def directions(name: str, forward: list[Any], backward: list[Any]) -> dict[str, list[Any]]:
    """Links of both directions and what is made of them."""
    found = {f"{name}, forward": forward, f"{name}, backward": backward}
    for how in SYMMETRISATIONS:
        both = zip(forward, backward, strict=True)
        found[f"{name}, {how}"] = [mf.alignment.symmetrised(one, other, how) for one, other in both]
    return found


def cross_validated(data: Any, statistics: Any, settings: dict[str, Any], seed: int) -> list[Any]:
    """Links of every pair by a CRF that was trained on other pairs."""
    n = len(data.pairs)
    part = np.random.default_rng(seed).permutation(n) % FOLDS
    found: list[Any] = [None] * n
    for fold in range(FOLDS):
        kept, asked = np.flatnonzero(part != fold).tolist(), np.flatnonzero(part == fold).tolist()
        crf = mf.AlignmentCRF(**settings, rng=seed)
        crf.fit([data.pairs[k] for k in kept], [data.links[k] for k in kept], corpus=statistics)
        for k, links in zip(asked, crf.predict([data.pairs[k] for k in asked]), strict=True):
            found[k] = links
    return found


def main() -> None:
    """Learn, align, score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60000)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true")
    arguments = parser.parse_args()
    corpus = mf.datasets.hansards("training", arguments.pairs).pairs
    train = mf.datasets.hansards("validation")
    try:
        data, tested = mf.datasets.hansards("test"), "test"
    except FileNotFoundError:
        data, tested = train, "validation"
    words = [sum(len(pair[side]) for pair in corpus) for side in (0, 1)]
    headers = ("model", "s/iteration", "cpu s/it.", "both ways s", "cpu s")
    table = Table(f"{len(corpus)} pairs, {words[0]} English and {words[1]} French words", headers, first=16)
    learnt = learn(corpus, arguments.iterations, table)
    links = {}
    for name, own in learnt.items():
        forward = own["model"].forward_.predict(data.pairs)
        turned = own["model"].backward_.predict([(target, source) for source, target in data.pairs])
        links |= directions(name, forward, [[(i, j) for j, i in one] for one in turned])
        for threshold in (0.3, 0.5):
            links[f"{name}, posterior {threshold}"] = own["model"].predict(data.pairs, threshold=threshold)
    if not arguments.no_peers and (theirs := peer(corpus, data.pairs, table)) is not None:
        links |= directions("eflomal", theirs["forward"], theirs["backward"])
    scores = Table(
        f"error rates, {tested} part, {len(data.pairs)} pairs", ("links", "AER", "precision", "recall"), first=40
    )
    rows: list[dict[str, Any]] = []

    def tell(name: str, reports: list[Any]) -> None:
        mean = [100 * float(np.mean([getattr(r, x) for r in reports])) for x in ("error_rate", "precision", "recall")]
        scores.row(name, *(f"{x:.2f}" for x in mean))
        rows.append({"links": name, "aer": [r.error_rate for r in reports], "precision": mean[1], "recall": mean[2]})

    for name, found in links.items():
        tell(name, [mf.alignment.alignment_report(data.links, found)])
    statistics = mf.alignment.CorpusStatistics.learned(corpus, Running())
    for name, settings in CRFS.items():
        started = time.perf_counter()
        if tested == "test":
            crf = mf.AlignmentCRF(**settings, rng=0).fit(train.pairs, train.links, corpus=statistics)
            reports = [mf.alignment.alignment_report(data.links, crf.predict(data.pairs))]
        else:
            seeds = range(arguments.splits)
            found_by = [cross_validated(data, statistics, settings, seed) for seed in seeds]
            reports = [mf.alignment.alignment_report(data.links, found) for found in found_by]
        tell(name, reports)
        rows[-1]["seconds"] = (time.perf_counter() - started) / len(reports)
    times = {name: {k: v for k, v in own.items() if k != "model"} for name, own in learnt.items()}
    print(save("alignment", {"machine": machine(), "pairs": len(corpus), "times": times, "rows": rows}))


if __name__ == "__main__":
    main()
