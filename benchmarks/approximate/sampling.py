"""Gibbs sampling on general graphs: Bayesian networks, against pyAgrum and pgmpy in the same run.

Run as ``python -m benchmarks.approximate.sampling``. One chain on one thread for us and for them, unless a row says
otherwise. Results go to stdout and, as JSON, to ``benchmarks/results/``. The target: sweeps of alarm ten times faster
than both.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import bif_networks
from benchmarks.measure import Policy, Table, machine, measure, save
from benchmarks.peers import Peers
from markovfield.inference.core.diagnostics import effective_sample_size
from markovfield.inference.gibbs.gibbs import Gibbs

__all__ = ["main"]

NETWORKS = ("asia", "alarm", "child", "insurance", "hepar2")
OBSERVED = 3
SEED = 5
TARGET = 10.0
SWEEPS = 20_000


class Bench:
    """Networks in a form that every peer reads, and the rows so far."""

    def __init__(self, peers: Peers, folder: Path, policy: Policy, seconds: float, only: list[str]) -> None:
        self.peers, self.policy, self.seconds = peers, policy, seconds
        self.rows: list[dict[str, Any]] = []
        self.networks: dict[str, tuple[mf.BayesianNetwork, str]] = {}
        for packed in bif_networks(only):
            name = packed.name.removesuffix(".bif.gz")
            raw = folder / f"{name}.bif"
            raw.write_bytes(gzip.decompress(packed.read_bytes()))
            given = mf.io.read_bif(raw)
            # States are called s0, s1, ...: pyAgrum's reader refuses names such as "<5".
            net = mf.BayesianNetwork({v: [f"s{i}" for i in range(given.cardinality(v))] for v in given.variables})
            for v in given.variables:
                net.add_cpt(v, given.parents(v), given.cpt(v))
            path = folder / f"{name}-plain.bif"
            mf.io.write_bif(net, path)
            self.networks[name] = net, str(path)

    def ask(self, peer: str, task: str, **job: Any) -> dict[str, Any]:
        """One peer's answer to a task."""
        policy = {"repeats": self.policy.repeats, "least": self.policy.least, "most": self.policy.most}
        return self.peers.ask(peer, {"peer": peer, "task": task, "policy": policy, **job}, 120.0)

    def seconds_of(self, task: Any) -> float:
        """The least seconds of our own runs; the first, which may load kernels, is not counted."""
        task()

        def once() -> tuple[float]:
            start = time.perf_counter()
            task()
            return (time.perf_counter() - start,)

        return measure(("seconds",), once, self.policy).least("seconds")


def _evidence(net: mf.BayesianNetwork, some: bool) -> dict[str, str]:
    """A few leaves at a likely outcome, so that the question is possible."""
    if not some:
        return {}
    row = mf.sample(net, 1, rng=SEED).states[0]
    parents = {p for v in net.variables for p in net.parents(v)}
    leaves = [i for i, v in enumerate(net.variables) if v not in parents][:OBSERVED]
    return {str(net.variables[i]): f"s{row[i]}" for i in leaves}


def _sweeps(bench: Bench) -> None:
    """Microseconds of one sweep over all variables."""
    table = Table(
        "One sweep over all variables, microseconds (one chain, one thread)",
        (
            "network",
            "evidence",
            "ours",
            "averaging",
            "updates/us",
            "pyagrum",
            "ratio",
            "pgmpy",
            "ratio",
            "helped",
            "ratio",
        ),
    )
    for name, (net, path) in bench.networks.items():
        for some in (False, True):
            known = _evidence(net, some)
            n = len(net.variables) - len(known)
            try:
                drawn = bench.seconds_of(
                    lambda net=net, known=known: mf.sample(
                        net, SWEEPS, known, Gibbs(n_chains=1, burn_in=0), rng=0, n_jobs=1
                    )
                )
            except mf.ModelError as refusal:
                table.row(name, len(known), "refused")
                table.note(str(refusal))
                continue
            averaged = bench.seconds_of(
                lambda net=net, known=known: mf.marginals(
                    net, known, method=Gibbs(n_chains=1, burn_in=0, sweeps=SWEEPS), rng=0, n_jobs=1
                )
            )
            row: dict[str, Any] = {
                "task": "sweeps", "network": name, "evidence": len(known), "ours": drawn / SWEEPS,
                "averaging": averaged / SWEEPS, "peers": {},
            }  # fmt: skip
            cells: list[Any] = [name, len(known), 1e6 * row["ours"], 1e6 * row["averaging"], n * SWEEPS / drawn / 1e6]
            start = mf.sample(net, 1, rng=SEED).states[0].tolist()
            job = {"network": path, "evidence": known, "start": dict(zip(net.variables, start, strict=True))}
            asked = {
                "pyagrum": ("pyagrum", {"seconds": 1.0}, "averaging"),
                "pgmpy": ("pgmpy", {"helped": False, "size": 300}, "ours"),
                "pgmpy, helped": ("pgmpy", {"helped": True, "size": 300}, "ours"),
            }
            for label, (peer, more, against) in asked.items():
                if peer not in bench.peers.names:
                    cells += [None, None]
                    continue
                found = bench.ask(peer, "sweeps", **job, **more)
                if found["status"] == "ok":
                    found["ratio"] = found["seconds"] / row[against]
                    cells += [1e6 * found["seconds"], found["ratio"]]
                else:
                    cells += [found["status"], None]
                found.pop("found", None)
                row["peers"][label] = found
            table.row(*cells)
            bench.rows.append(row)
    table.note("ours: samples kept; averaging: marginals averaged, which is what pyAgrum does and is compared with.")
    table.note("pgmpy tabulates joint states of all variables; helped: it is given the tables it would have made.")


def _errors(bench: Bench) -> None:
    """The worst and the mean error of marginals after the same time."""
    table = Table(
        f"Errors of all marginals after {bench.seconds:g} s (root mean square; worst)",
        ("network", "evidence", "ours", "worst", "two cores", "pyagrum", "worst", "speed"),
    )
    for name, (net, path) in bench.networks.items():
        known = _evidence(net, True)
        exact = mf.marginals(net, known, method="junction_tree").values
        row: dict[str, Any] = {"task": "errors", "network": name, "evidence": len(known)}

        def error(values: Any, exact: Any = exact) -> tuple[float, float]:
            off = np.abs(np.asarray(values) - exact)
            return float(np.sqrt(np.mean(off**2))), float(off.max())

        def ours(n_chains: int, n_jobs: int | None, net: Any = net, known: Any = known) -> Any:
            method = Gibbs(n_chains=n_chains, burn_in=100, sweeps=10**9)
            return mf.marginals(net, known, method=method, rng=0, n_jobs=n_jobs, time_limit=bench.seconds)

        try:
            one = error(ours(1, 1).values)
        except mf.ModelError:
            table.row(name, len(known), "refused")
            continue
        several = error(ours(4, None).values)
        row |= {"ours": one, "several chains": several}
        cells: list[Any] = [name, len(known), *(f"{x:.1e}" for x in (*one, several[0]))]
        if "pyagrum" in bench.peers.names:
            variables = [str(v) for v in net.variables]
            job = {"network": path, "evidence": known, "seconds": bench.seconds, "variables": variables}
            found = bench.peers.ask(
                "pyagrum",
                {"peer": "pyagrum", "task": "marginals", "policy": {"repeats": 1, "least": 0.0, "most": 0.0}, **job},
                60.0 + bench.seconds,
            )
            if found["status"] == "ok":
                theirs = error(np.concatenate([np.asarray(x) for x in found["found"]["values"]]))
                row["pyagrum"] = theirs
                cells += [*(f"{x:.1e}" for x in theirs), (theirs[0] / one[0]) ** 2]
            else:
                cells.append(found["status"])
        table.row(*cells)
        bench.rows.append(row)
    table.note(
        "speed: the square of the ratio of errors, how many times longer the peer would need; a single draw of it."
    )


def _effective(bench: Bench) -> None:
    """Effective samples a second of the variable that mixes worst and of the median one."""
    table = Table(
        "Effective samples a second (one chain, one thread): least over the states, median, and pgmpy's",
        ("network", "scan", "least", "median", "pgmpy", "ratio"),
    )
    for name, (net, path) in bench.networks.items():
        theirs: float | None = None
        for scan in ("systematic", "random", "coloured", "trees"):
            method = Gibbs(scan, n_chains=1, burn_in=1000)
            size = 2_000 if scan == "trees" else 20_000
            try:
                seconds = bench.seconds_of(
                    lambda net=net, method=method, size=size: mf.sample(net, size, method=method, rng=0, n_jobs=1)
                )
                found = mf.sample(net, size, method=method, rng=0, n_jobs=1).monte_carlo
            except mf.ModelError:
                table.row(name, scan, "refused")
                continue
            varying = found.standard_errors > 0
            rates = found.effective_sample_sizes[varying] / seconds
            row: dict[str, Any] = {
                "task": "effective",
                "network": name,
                "scan": scan,
                "median": float(np.median(rates)),
            }
            cells: list[Any] = [name, scan, float(rates.min()), row["median"]]
            if scan == "systematic" and "pgmpy" in bench.peers.names:
                start = mf.sample(net, 1, rng=SEED).states[0].tolist()
                job = {"network": path, "evidence": {}, "start": dict(zip(net.variables, start, strict=True))}
                answer = bench.ask("pgmpy", "sweeps", **job, helped=True, size=300)
                if answer["status"] == "ok":
                    columns = answer["found"]["samples"].values()
                    series = [np.array(c) == k for c in columns for k in set(c) if len(set(c)) > 1]
                    sizes = [effective_sample_size(x.astype(float)) for x in series]
                    theirs = float(np.median(sizes)) / (300 * answer["seconds"])
            if theirs is not None:
                row["pgmpy"] = theirs
                cells += [theirs, row["median"] / theirs]
            table.row(*cells)
            bench.rows.append(row)


def main() -> None:
    """Run all sections and hold alarm's sweeps against both peers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.approximate.sampling", description=__doc__)
    parser.add_argument("--only", default=",".join(NETWORKS), help="comma-separated, of: %(default)s")
    parser.add_argument("--peers", default="pyagrum,pgmpy", help="comma-separated, of: %(default)s; '' for none")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for the comparison of errors")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    given = parser.parse_args()
    about = machine()
    print(
        f"{about['processor']}, {about['cores']} cores, Python {about['python']}, {about['time']}, load {about['load']}"
    )
    names = [p for p in given.peers.split(",") if p]
    policy = Policy(repeats=2 if given.quick else 5, most=4.0 if given.quick else 10.0)
    with Peers(names, "approximate/sampling_worker.py") as peers, tempfile.TemporaryDirectory() as folder:
        for peer, text in peers.about.items():
            print(f"{peer}: {text}")
        bench = Bench(peers, Path(folder), policy, given.seconds, given.only.split(","))
        _sweeps(bench)
        _errors(bench)
        _effective(bench)
        results = {"machine": about, "arguments": vars(given), "rows": bench.rows}
    _verdict(bench)
    print(f"\nresults in {save('sampling', results)}")


def _verdict(bench: Bench) -> None:
    table = Table(f"Target: sweeps of alarm {TARGET:g} times faster", ("peer", "least ratio", "met"))
    for label in ("pyagrum", "pgmpy", "pgmpy, helped"):
        found = [r["peers"].get(label, {}) for r in bench.rows if r["task"] == "sweeps" and r["network"] == "alarm"]
        ratios = [f["ratio"] for f in found if "ratio" in f]
        if ratios:
            table.row(label, min(ratios), "yes" if min(ratios) >= TARGET else "NO")
        elif found:
            table.row(label, found[0].get("status", "not asked"), "")


if __name__ == "__main__":
    main()
