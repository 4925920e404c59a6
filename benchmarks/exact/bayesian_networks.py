"""Bayesian networks: reading, learning and asking, against pyAgrum and pgmpy in the same run.

Run as ``python -m benchmarks.exact.bayesian_networks``; ``--quick`` leaves out the peers' longest rows. Results go to
stdout and, as JSON, to ``benchmarks/results/``. The target of every row: faster than both peers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import bif_networks
from benchmarks.measure import Policy, Table, geometric_mean, machine, measure, save
from benchmarks.peers import Peers

__all__ = ["main"]

SECTIONS = ("parse", "parameters", "em", "query", "structure", "sample")
ROWS = 100_000
LEARNT = ("asia", "sachs", "child", "insurance", "alarm", "hepar2")
QUERIED = ("asia", "sachs", "child", "insurance", "alarm", "hepar2", "andes", "pigs", "water", "munin1")
CLIMBED = ("asia", "sachs", "child", "insurance", "alarm")
DRAWN = ("asia", "alarm", "hepar2", "andes")
QUERIES = 60
OBSERVED = 5
SEED = 7


class Bench:
    """The peers, the unpacked files, and the table rows so far."""

    def __init__(self, peers: Peers, folder: Path, policy: Policy, only: list[str] | None, cap: float) -> None:
        self.peers, self.folder, self.policy, self.only, self.cap = peers, folder, policy, only, cap
        self.rows: list[dict[str, Any]] = []
        self.files: dict[str, Path] = {}
        for packed in bif_networks(only):
            name = packed.name.removesuffix(".bif.gz")
            self.files[name] = folder / f"{name}.bif"
            self.files[name].write_bytes(gzip.decompress(packed.read_bytes()))

    def networks(self, names: Sequence[str]) -> list[tuple[str, mf.BayesianNetwork, str]]:
        """Those of some networks that there are, in that order, with a file that every peer can read.

        States are called s0, s1, ... in it: pyAgrum's reader refuses names such as ``<5``.
        """
        found = []
        for name in names:
            if name in self.files:
                given = mf.io.read_bif(self.files[name])
                net = mf.BayesianNetwork({v: [f"s{i}" for i in range(given.cardinality(v))] for v in given.variables})
                for v in given.variables:
                    net.add_cpt(v, given.parents(v), given.cpt(v))
                path = self.folder / f"{name}-plain.bif"
                mf.io.write_bif(net, path)
                found.append((name, net, str(path)))
        return found

    def ask(self, peer: str, task: str, **job: Any) -> dict[str, Any]:
        """One peer's answer to a task."""
        policy = {"repeats": self.policy.repeats, "least": self.policy.least, "most": self.policy.most}
        return self.peers.ask(peer, {"peer": peer, "task": task, "policy": policy, **job}, self.cap)

    def compare(
        self,
        table: Table,
        task: str,
        label: str,
        ours: dict[str, float],
        *extra: Any,
        column: str = "seconds",
        **job: Any,
    ) -> dict[str, Any]:
        """Print and keep one row: our seconds, each peer's, the ratios."""
        row: dict[str, Any] = {"task": task, "label": label, "ours": ours, "peers": {}}
        cells: list[Any] = [label, *extra, 1e3 * ours[column]]
        for peer in self.peers.names:
            found = self.ask(peer, task, **job)
            row["peers"][peer] = found
            if found["status"] == "ok":
                found["ratio"] = found[column] / ours[column]
                cells += [1e3 * found[column], found["ratio"]]
            elif found["status"] == "timeout":
                found["ratio"] = self.cap / ours[column]
                cells += [f">{1e3 * self.cap:,.0f}", f">{found['ratio']:,.0f}"]
            else:
                cells += [found["status"], None]
                if found.get("error"):
                    row.setdefault("notes", []).append(f"{peer} on {label}: {found['error']}")
        table.row(*cells)
        for note in row.get("notes", []):
            table.note(note)
        self.rows.append(row)
        return row

    def timed(self, columns: Sequence[str], once: Callable[[], Sequence[float]]) -> dict[str, float]:
        """Medians of our own runs; the first, which may load kernels, is not counted."""
        once()
        timing = measure(columns, once, self.policy)
        return {c: timing.median(c) for c in columns}


def _headers(bench: Bench, *before: str) -> tuple[str, ...]:
    return (*before, "ours", *(h for p in bench.peers.names for h in (p, "ratio")))


def _clock(task: Callable[[], Any]) -> tuple[float]:
    start = time.perf_counter()
    task()
    return (time.perf_counter() - start,)


def _parse(bench: Bench) -> None:
    table = Table("Reading BIF files (unpacked), milliseconds", _headers(bench, "network", "kB"))
    for name, path in bench.files.items():
        ours = bench.timed(("seconds",), lambda path=path: _clock(lambda: mf.io.read_bif(path)))
        bench.compare(table, "parse", name, ours, path.stat().st_size / 1e3, network=str(path))


def _texts(net: mf.BayesianNetwork, states: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Columns of state names; empty where missing."""
    columns = {}
    for i, v in enumerate(net.variables):
        names = np.array([*map(str, net.states(v)), ""], object)
        columns[str(v)] = names[states[:, i]]
    return columns


def _store(bench: Bench, label: str, columns: dict[str, np.ndarray[Any, Any]]) -> str:
    path = bench.folder / f"{label}.npz"
    np.savez(path, **{name: column.astype(str) for name, column in columns.items()})
    return str(path)


def _parameters(bench: Bench) -> None:
    title = f"Tables from {ROWS:,} complete rows, milliseconds"
    whole = Table(f"{title}: from columns of text", _headers(bench, "network", "variables"))
    kept = []
    for name, net, path in bench.networks(LEARNT):
        columns = _texts(net, mf.sample(net, ROWS, rng=SEED).states)
        data = _store(bench, name, columns)

        def once(net: Any = net, columns: Any = columns) -> Sequence[float]:
            start = time.perf_counter()
            table = mf.learning.encode(columns, net)
            ready = time.perf_counter()
            mf.fit(net, table)
            done = time.perf_counter()
            return done - start, done - ready

        ours = bench.timed(("seconds", "alone"), once)
        job = {"network": path, "data": data}
        kept.append((name, net.n_variables, bench.compare(whole, "parameters", name, ours, net.n_variables, **job)))
    alone = Table(f"{title}: counting alone, the data already read", _headers(bench, "network", "variables"))
    for name, variables, row in kept:
        cells: list[Any] = [name, variables, 1e3 * row["ours"]["alone"]]
        for peer in bench.peers.names:
            found = row["peers"][peer]
            if found["status"] == "ok":
                found["alone ratio"] = found["alone"] / row["ours"]["alone"]
                cells += [1e3 * found["alone"], found["alone ratio"]]
            else:
                cells += [found["status"], None]
        alone.row(*cells)


def _em(bench: Bench) -> None:
    table = Table("EM, milliseconds of one iteration", _headers(bench, "network", "rows", "unseen"))
    cases = [
        ("asia", 1000, 0.1, ()),
        ("child", 1000, 0.1, ()),
        ("alarm", 1000, 0.1, ()),
        ("alarm", ROWS, 0.1, ()),
        ("asia", 1000, 0.0, ("either",)),
        ("child", 1000, 0.0, ("Disease",)),
    ]
    known = {name: (net, path) for name, net, path in bench.networks(("asia", "child", "alarm"))}
    for name, n_rows, share, hidden in cases:
        if name not in known:
            continue
        net, path = known[name]
        states = mf.sample(net, n_rows, rng=SEED).states.copy()
        states[np.random.default_rng(SEED).random(states.shape) < share] = -1
        for h in hidden:
            states[:, list(net.variables).index(h)] = -1
        columns = _texts(net, states)
        data = _store(bench, f"{name}-{n_rows}-{len(hidden)}", columns)
        iterations = 3
        method = mf.methods.ExpectationMaximization(max_iterations=iterations, tolerance=0.0, prior="k2")
        observed = mf.learning.encode({v: np.where(c == "", None, c) for v, c in columns.items()}, net)

        def once(net: Any = net, observed: Any = observed, method: Any = method) -> Sequence[float]:
            with warnings.catch_warnings():
                # Three iterations are not meant to settle.
                warnings.filterwarnings("ignore", message=".*did not converge")
                start = time.perf_counter()
                report = mf.fit(net, observed, method=method, rng=SEED).fit_report
            return ((time.perf_counter() - start) / report.iterations,)

        ours = bench.timed(("seconds",), once)
        unseen = f"{hidden[0]} hidden" if hidden else f"{share:.0%} missing"
        job = {"network": path, "data": data, "iterations": iterations, "hidden": list(hidden)}
        bench.compare(table, "em", name, ours, n_rows, unseen, **job)


def _queries(net: mf.BayesianNetwork, rng: np.random.Generator) -> list[tuple[Any, dict[Any, Any]]]:
    """Random targets and evidence that is possible: states of one sample for some variables."""
    rows = mf.sample(net, QUERIES, rng=rng).states
    found = []
    for row in rows:
        chosen = rng.permutation(net.n_variables)[: min(OBSERVED, net.n_variables - 1) + 1].tolist()
        names = [net.variables[v] for v in chosen]
        evidence = {n: net.states(n)[row[v]] for n, v in zip(names[1:], chosen[1:], strict=True)}
        found.append((names[0], evidence))
    return found


def _query(bench: Bench) -> None:
    title = f"One query: a variable given {OBSERVED} observed ones, mean of {QUERIES}, milliseconds"
    table = Table(title, (*_headers(bench, "network"), "max |dp|"))
    for name, net, path in bench.networks(QUERIED):
        questions = _queries(net, np.random.default_rng(SEED))
        answers: list[Any] = []

        def once(net: Any = net, questions: Any = questions, answers: list[Any] = answers) -> Sequence[float]:
            start = time.perf_counter()
            answers[:] = [mf.query(net, target, evidence).values for target, evidence in questions]
            return ((time.perf_counter() - start) / len(questions),)

        ours = bench.timed(("seconds",), once)
        row = bench.compare(table, "query", name, ours, network=path, queries=questions)
        worst = 0.0
        for found in row["peers"].values():
            if found["status"] == "ok":
                values = found.pop("found")
                worst = max(worst, *(float(np.abs(a - b).max()) for a, b in zip(answers, values, strict=True)))
        row["difference"] = worst
        table.note(f"{name}: largest difference of a probability {worst:.1e}")


def _bic(net: mf.BayesianNetwork, table: mf.learning.DataTable, arcs: Sequence[Sequence[Any]]) -> float:
    """BIC of a structure by our own count, so that all are judged alike."""
    judged = mf.BayesianNetwork({v: net.states(v) for v in net.variables})
    for v in net.variables:
        judged.set_parents(v, [a for a, b in arcs if b == v])
    return float(mf.fit(judged, table).fit_report.bic)


def _structure(bench: Bench) -> None:
    title = f"Hill climbing by BIC on {ROWS:,} rows, milliseconds, from columns of text"
    table = Table(title, _headers(bench, "network"))
    for name, net, path in bench.networks(CLIMBED):
        columns = _texts(net, mf.sample(net, ROWS, rng=SEED).states)
        data = _store(bench, name, columns)
        learnt: list[Any] = []

        def once(net: Any = net, columns: Any = columns, learnt: list[Any] = learnt) -> Sequence[float]:
            start = time.perf_counter()
            observed = mf.learning.encode(columns, net)
            ready = time.perf_counter()
            learnt[:] = [mf.learn_structure(observed, method="hill_climbing")]
            done = time.perf_counter()
            return done - start, done - ready

        ours = bench.timed(("seconds", "alone"), once)
        row = bench.compare(table, "structure", name, ours, network=path, data=data)
        observed = mf.learning.encode(columns, net)
        scores = {
            "ours": _bic(net, observed, list(learnt[0].dag.edges)),
            "the network itself": _bic(net, observed, net.arcs),
        }
        for peer, found in row["peers"].items():
            if found["status"] == "ok":
                scores[peer] = _bic(net, observed, found["found"])
        row["bic"] = scores
        table.note(f"{name}: BIC " + ", ".join(f"{who} {value:,.0f}" for who, value in scores.items()))


def _sample(bench: Bench) -> None:
    table = Table(f"{ROWS:,} samples, milliseconds", _headers(bench, "network"))
    for name, net, path in bench.networks(DRAWN):
        ours = bench.timed(
            ("seconds",), lambda net=net: _clock(lambda: mf.sample(net, ROWS, method="ancestral", rng=SEED))
        )
        bench.compare(table, "sample", name, ours, network=path, size=ROWS)


def main() -> None:
    """Run the chosen sections and hold every row against both peers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exact.bayesian_networks", description=__doc__)
    parser.add_argument("--sections", default=",".join(SECTIONS), help="comma-separated, of: %(default)s")
    parser.add_argument("--only", help="comma-separated names of networks")
    parser.add_argument("--peers", default="pyagrum,pgmpy", help="comma-separated, of: %(default)s; '' for none")
    parser.add_argument("--seconds", type=float, default=5.0, help="most time to repeat one measurement for")
    parser.add_argument("--cap", type=float, default=240.0, help="most seconds a peer may take for one row")
    parser.add_argument("--quick", action="store_true", help="a cap of 30 seconds and two repeats")
    given = parser.parse_args()
    chosen = given.sections.split(",")
    for section in chosen:
        if section not in SECTIONS:
            parser.error(f"there is no section {section!r}; choose from {', '.join(SECTIONS)}")
    policy = Policy(repeats=2 if given.quick else 3, most=min(given.seconds, 2.0) if given.quick else given.seconds)
    about = machine()
    print(
        f"{about['processor']}, {about['cores']} cores, Python {about['python']}, {about['time']}, load {about['load']}"
    )
    names = [p for p in given.peers.split(",") if p]
    with Peers(names, "exact/network_worker.py") as peers, tempfile.TemporaryDirectory() as folder:
        for peer, text in peers.about.items():
            print(f"{peer}: {text}")
        only = given.only.split(",") if given.only else None
        bench = Bench(peers, Path(folder), policy, only, 30.0 if given.quick else given.cap)
        steps = {"parse": _parse, "parameters": _parameters, "em": _em, "query": _query, "structure": _structure}
        for section in SECTIONS:
            if section in chosen:
                {**steps, "sample": _sample}[section](bench)
        results = {"machine": about, "arguments": vars(given), "rows": json.loads(json.dumps(bench.rows, default=str))}
    _verdict(bench)
    print(f"\nresults in {save('bayesian_networks', results)}")


def _verdict(bench: Bench) -> None:
    table = Table("Target: faster than each peer on every row", ("task", "peer", "rows", "least ratio", "mean", "met"))
    for task in SECTIONS:
        for peer in bench.peers.names:
            found = [r["peers"][peer] for r in bench.rows if r["task"] == task]
            ratios = [f[k] for f in found for k in ("ratio", "alone ratio") if k in f]
            if ratios:
                met = "yes" if min(ratios) > 1 else "NO"
                table.row(task, peer, len(ratios), min(ratios), geometric_mean(ratios), met)
    slower = [
        f"{r['task']} {r['label']} against {p}: {f['ratio']:.2f}"
        for r in bench.rows
        for p, f in r["peers"].items()
        if f.get("ratio", math.inf) <= 1
    ]
    for text in slower:
        table.note(text)


if __name__ == "__main__":
    main()
