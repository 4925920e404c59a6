"""Structures: log Z and expected counts against torch-struct, supar, pytorch-crf and torch on the CPU; growth, memory.

``python -m benchmarks.structured.structures [--quick] [--parts peers growth memory] [--structures spans chart ...]``.
``MARKOVFIELD_PEERS`` names an interpreter that has the peers (``pip install torch==2.13.0 torch-struct supar
pytorch-crf``); without it, only ours is timed. What the peers do is in ``structures_worker.py``. Scores are the same on
both sides, float64 for us and float32 for the peers, and log Z is compared. Both have one thread, and the least of
several CPU times counts, as others may use the machine. torch-struct's own alignments need a CUDA extension; CTC, which
torch has in C++, stands for them.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.measure import Policy, Table, geometric_mean, machine, measure, memory, milliseconds, reset_peak, save
from benchmarks.peers import Peers
from markovfield.inference.core.running import Running

PEERS = ["torch_struct", "supar", "torchcrf", "torch"]
# Seconds that a peer may take for a case.
PATIENCE = 60.0
MEMORY = 8 * 2**30
MAX_LENGTH = 8  # of segments
GOALS = {"spans": 20.0, "chart": 20.0}
OTHER_GOAL = 5.0

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A structure: how random scores are made, and the form of one instance from them."""

    make: Callable[[np.random.Generator, int, int, int], Arrays]
    form: Callable[[Arrays, int], Any]
    sizes: tuple[int, ...]
    symbols: tuple[int, ...] = (1,)


def _arcs(rng: np.random.Generator, b: int, n: int, _: int) -> Arrays:
    return {"arcs": rng.normal(size=(b, n + 1, n + 1))}


def _grammar(rng: np.random.Generator, b: int, n: int, symbols: int) -> Arrays:
    """Two fifths of the symbols are nonterminals; every rule is there."""
    nonterminals = max(2 * symbols // 5, 1)
    terminals = symbols - nonterminals
    rules = rng.normal(size=(nonterminals, symbols, symbols))
    return {"terms": rng.normal(size=(b, n, terminals)), "rules": rules, "roots": rng.normal(size=nonterminals)}


def _segments(rng: np.random.Generator, b: int, n: int, k: int) -> Arrays:
    return {"segments": rng.normal(size=(b, n, MAX_LENGTH, k)), "transitions": rng.normal(size=(k, k))}


def _chain(rng: np.random.Generator, b: int, n: int, k: int) -> Arrays:
    return {"tokens": rng.normal(size=(b, n, k)), "transitions": rng.normal(size=(k, k))}


def _ctc(rng: np.random.Generator, b: int, n: int, k: int) -> Arrays:
    """Half as many labels as frames, the same for all instances."""
    frames = np.log(rng.dirichlet(np.ones(k), size=(b, n)))
    labels = np.arange(n // 2) % (k - 1) + 1
    return {"frames": frames, "targets": np.repeat(labels[None], b, 0)}


KINDS = {
    "spans": Kind(
        lambda rng, b, n, k: {"spans": rng.normal(size=(b, n, n, k))},
        lambda a, i: mf.structures.SpanTree(a["spans"][i]), (10, 20, 40, 100), (5, 30, 100),
    ),
    "chart": Kind(
        _grammar, lambda a, i: mf.structures.Chart.dense(a["rules"], a["terms"][i], a["roots"]),
        (10, 20, 40, 100), (5, 30, 75, 100),
    ),
    "projective": Kind(
        _arcs, lambda a, i: mf.structures.ProjectiveTree(a["arcs"][i], single_root=False), (10, 20, 40, 100)
    ),
    "spanning": Kind(
        _arcs, lambda a, i: mf.structures.SpanningTree(a["arcs"][i], single_root=False), (10, 20, 40, 100)
    ),
    "segments": Kind(
        _segments,
        # Any label stands before the first in torch-struct.
        lambda a, i: mf.structures.SemiMarkov(
            a["segments"][i], a["transitions"], start=np.logaddexp.reduce(a["transitions"], axis=0)
        ),
        (10, 25, 50, 100), (5, 20, 100),
    ),
    "chain": Kind(
        _chain, lambda a, i: mf.structures.SemiMarkov(a["tokens"][i][:, None], a["transitions"]),
        (10, 25, 100), (5, 22, 100),
    ),
    "ctc": Kind(_ctc, lambda a, i: mf.structures.CTC(a["frames"][i], a["targets"][i]), (10, 40, 100), (5, 30, 100)),
}  # fmt: skip


def batched(kind: Kind, arrays: Arrays, batch: int) -> tuple[Any, Any]:
    """The family of all instances, and their scores in one pool."""
    forms = [kind.form(arrays, i) for i in range(batch)]
    family, where = forms[0].family.select(np.zeros(batch, np.int64))
    shared = int(family.cell_offsets[0])
    pool = np.concatenate([forms[0].pool[:shared], *(form.pool[shared:] for form in forms)])
    assert len(pool) == len(where)
    return family, pool


def timed(family: Any, pool: Any, policy: Policy) -> tuple[float, Any]:
    """CPU seconds for log Z and counts on one thread, and log Z."""
    sums = family.sums(pool, counts=True, running=Running(1))  # loads kernels

    def once() -> tuple[float]:
        started = process_time()
        family.sums(pool, counts=True, running=Running(1))
        return (process_time() - started,)

    return measure(("cpu",), once, policy).least("cpu"), sums.log_partition


def against_peers(names: list[str], quick: bool, policy: Policy) -> list[dict[str, Any]]:
    """Every structure, size and batch: ours and the peers."""
    rows: list[dict[str, Any]] = []
    asked = PEERS if "MARKOVFIELD_PEERS" in os.environ else []
    with Peers(asked, "structured/structures_worker.py", MEMORY) as peers, tempfile.TemporaryDirectory() as folder:
        for about in peers.about.values():
            print(about)
        for name in names:
            kind = KINDS[name]
            table = Table(
                f"{name}: log Z and counts, CPU milliseconds of one thread; ratios to ours",
                ("n, symbols, batch", "ours", *(f"{peer} ratio" for peer in peers.names), "differ"),
                first=20,
            )
            dead: set[tuple[str, int]] = set()
            for batch in (1, 32):
                for k in kind.symbols[: 2 if quick else None]:
                    for n in kind.sizes[: 3 if quick else None]:
                        arrays = kind.make(np.random.default_rng(0), batch, n, k)
                        family, pool = batched(kind, arrays, batch)
                        ours, log_z = timed(family, pool, policy)
                        row: dict[str, Any] = {"structure": name, "n": n, "symbols": k, "batch": batch, "ours": ours}
                        path = Path(folder) / "model.npz"
                        np.savez(path, **arrays)
                        cells, apart = [], 0.0
                        for peer in peers.names:
                            found = ask(peers, peer, name, path, policy, (peer, k) in dead)
                            if found["status"] == "ok":
                                row[peer] = found
                                cells.append(f"{found['seconds'] / ours:.1f}")
                                theirs = np.array(found["log_partition"])
                                apart = max(apart, float(np.abs(theirs - log_z).max() / np.abs(log_z).max()))
                            else:
                                # What took too long, or too much, does so at larger sizes.
                                if found["status"] not in ("not offered", "skipped"):
                                    dead.add((peer, k))
                                    row[peer] = found
                                cells.append({"not offered": "-", "skipped": "."}.get(found["status"], "none"))
                        table.row(f"{n}, {k}, {batch}", milliseconds(ours), *cells, f"{apart:.0e}")
                        rows.append(row)
            dead.clear()
        summary(rows, peers.names)
    return rows


def ask(peers: Peers, peer: str, structure: str, path: Path, policy: Policy, skip: bool) -> dict[str, Any]:
    """One case of one peer."""
    if skip:
        return {"status": "skipped"}
    asked = {"repeats": policy.repeats, "least": policy.least, "most": policy.most}
    return peers.ask(peer, {"peer": peer, "structure": structure, "model": str(path), "policy": asked}, PATIENCE)


def summary(rows: list[dict[str, Any]], names: list[str]) -> None:
    """Ratios to each peer: the mean, the worst, and where the goal is missed."""
    table = Table("Ratios to ours", ("structure", "peer", "cases", "mean", "worst", "goal", "missed at"), second=12)
    for structure in dict.fromkeys(row["structure"] for row in rows):
        for peer in names:
            found = [r for r in rows if r["structure"] == structure and r.get(peer, {}).get("status") == "ok"]
            if not found:
                continue
            ratios = [r[peer]["seconds"] / r["ours"] for r in found]
            goal = GOALS.get(structure, OTHER_GOAL)
            missed = [f"({r['n']},{r['symbols']},{r['batch']})" for r, x in zip(found, ratios, strict=True) if x < goal]
            table.row(
                structure, peer, len(found), geometric_mean(ratios), min(ratios), f"{goal:.0f}",
                " ".join(missed[:6]) + (f" +{len(missed) - 6}" if len(missed) > 6 else ""),
            )  # fmt: skip


def growth(names: list[str], quick: bool, policy: Policy) -> list[dict[str, Any]]:
    """Slopes of log time over log n, and over log symbols."""
    sizes, symbols = (40, 80, 160), (10, 20, 40)
    table = Table(
        "Growth: milliseconds of one instance; slope of log time over log n (10 symbols), over log symbols (n = 40)",
        ("structure", *(f"n {n}" for n in sizes), "slope", *(f"k {k}" for k in symbols), "slope"),
    )
    rows = []
    for name in names:
        kind = KINDS[name]
        found: dict[str, Any] = {"structure": name}
        cells: list[Any] = []
        for what, values in (("n", sizes), ("symbols", symbols)):
            if what == "symbols" and kind.symbols == (1,):
                cells += [None] * (len(symbols) + 1)
                continue
            seconds = []
            for value in values:
                n, k = (value, 10) if what == "n" else (40, value)
                arrays = kind.make(np.random.default_rng(0), 1, n, k)
                seconds.append(timed(*batched(kind, arrays, 1), policy)[0])
            slope = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
            found[what] = {"values": values, "seconds": seconds, "slope": slope}
            cells += [*map(milliseconds, seconds), f"{slope:.2f}"]
        table.row(name, *cells)
        rows.append(found)
    return rows


def peaks(names: list[str], quick: bool) -> list[dict[str, Any]]:
    """Bytes that sums with counts take at most beside the scores, for each number of scores."""
    table = Table(
        "Memory: peak beside the scores of one instance", ("structure", "n", "symbols", "MiB", "times scores")
    )
    rows = []
    for name in names:
        kind = KINDS[name]
        for n, k in ((200, 10), (400, 10), (400, 20)):
            if kind.symbols == (1,) and k > 10:
                continue
            arrays = kind.make(np.random.default_rng(0), 1, n, k)
            family, pool = batched(kind, arrays, 1)
            small = kind.make(np.random.default_rng(0), 1, 10, k)
            timed(*batched(kind, small, 1), Policy(1, 0.0, 0.0))  # loads what stays
            del arrays, small
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)  # or what was freed would be taken again, unseen
            before = reset_peak()
            sums = family.sums(pool, counts=True, running=Running())
            used = memory("VmHWM") - before
            del sums
            table.row(name, n, k, used / 2**20, used / pool.nbytes)
            rows.append({"structure": name, "n": n, "symbols": k, "bytes": used, "scores": pool.nbytes})
    return rows


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", nargs="+", default=["peers", "growth", "memory"])
    parser.add_argument("--structures", nargs="+", default=list(KINDS))
    arguments = parser.parse_args()
    policy = Policy(3, 0.05, 2.0) if arguments.quick else Policy(5, 0.2, 5.0)
    results: dict[str, Any] = {"machine": machine()}
    print(results["machine"])
    if "peers" in arguments.parts:
        results["peers"] = against_peers(arguments.structures, arguments.quick, policy)
    if "growth" in arguments.parts:
        results["growth"] = growth(arguments.structures, arguments.quick, policy)
    if "memory" in arguments.parts:
        results["memory"] = peaks(arguments.structures, arguments.quick)
    print(save("structures", results))


if __name__ == "__main__":
    main()
