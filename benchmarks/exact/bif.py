"""All single marginals and log Z of Bayesian networks, with and without evidence, against two peers."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import markovfield as mf
from benchmarks import fresh
from benchmarks.data import Network, bif_networks, random_evidence, read_network
from benchmarks.measure import Policy, Table, geometric_mean, milliseconds
from benchmarks.own import largest_difference, model_seconds, named_evidence, plan_of, time_marginals
from benchmarks.peers import Peers

__all__ = ["run"]

HEADERS = (
    "network", "evid", "log2 st.", "reduce", "order+lay", "execute", "total", "read", "warm-up", "peak MB",
    "pyAgrum", "+ log Z", "MB", "ratio", "+ log Z", "pgmpy", "ratio", "max |dp|",
)  # fmt: skip
SMALL = 10e-3
# Seconds one computation by a peer may take. Where that is not enough, the cap over our time bounds the ratio; so
# that the bound says something, it is at least this many times our time.
CAPS = {"pyagrum": 200.0, "pgmpy": 30.0}
CAP_RATIO = 60.0


def run(only: list[str] | None, peer_names: list[str], policy: Policy, max_log2: float) -> dict[str, Any]:
    """Measure every network of at most ``2**max_log2`` clique states; one row for each kind of evidence."""
    rows: list[dict[str, Any]] = []
    with Peers(peer_names) as peers, tempfile.TemporaryDirectory() as folder:
        table = Table("Bayesian networks: all single marginals and log Z, milliseconds", HEADERS, first=11, least=7)
        for path in bif_networks(only):
            network = read_network(path)
            if plan_of(network.graph, None).log2_states > max_log2:
                continue
            exported = network.export(Path(folder))
            once = model_seconds(network.graph)
            for evidence in ({}, random_evidence(network)):
                row = _ours(network, evidence, policy)
                row["model"] = once
                if not evidence:
                    row["fresh"] = fresh.run("network", network.name)
                _peers(row, network, peers, exported, evidence, policy)
                rows.append(row)
                _print(table, row)
        for name, about in peers.about.items():
            table.note(f"{name}: {about}")
    _notes(table, rows)
    for row in rows:
        del row["answer"]
    return {"rows": rows, "targets": _targets(rows)}


def _ours(network: Network, evidence: dict[int, int], policy: Policy) -> dict[str, Any]:
    graph = network.graph
    known = named_evidence(graph, evidence)
    # Outside the clock: loading compiled kernels is a column of its own, measured in a new process.
    mf.marginals(graph, known)
    timing, answer = time_marginals(graph, known, policy)
    plan = plan_of(graph, known)
    return {
        "network": network.name,
        "evidence": len(evidence),
        "method": answer.method,
        "log2_states": plan.log2_states,
        "bytes": plan.bytes,
        "log_partition": answer.log_partition,
        "seconds": timing.median("total"),
        "answer": answer,
        **timing.summary(),
    }


def _peers(
    row: dict[str, Any],
    network: Network,
    peers: Peers,
    exported: Path,
    evidence: dict[int, int],
    policy: Policy,
) -> None:
    for name in peers.names:
        cap = max(CAPS[name], CAP_RATIO * row["seconds"])
        found = peers.marginals(name, exported, evidence, policy, cap=cap)
        if found["status"] == "ok":
            found["ratio"] = found["seconds"] / row["seconds"]
            found["difference"] = largest_difference(row["answer"], found.pop("values"))
            if found["log_evidence"] is not None:
                found["with_log"] = (found["seconds"] + found["median"]["log evidence"]) / row["seconds"]
                found["log_difference"] = abs(found["log_evidence"] - row["log_partition"])
        elif found["status"] == "timeout":
            found |= {"cap": cap, "at_least": cap / row["seconds"]}
        row[name] = found


def _print(table: Table, row: dict[str, Any]) -> None:
    median = row["median"]
    first = row.get("fresh", {})
    ran = first.get("status") == "ok"
    gum, pgm = row.get("pyagrum", {}), row.get("pgmpy", {})
    differences = [p["difference"] for p in (gum, pgm) if "difference" in p]
    table.row(
        row["network"],
        row["evidence"] or "no",
        f"{row['log2_states']:.1f}",
        milliseconds(median["reduce"]),
        milliseconds(median["order and layout"]),
        milliseconds(median["execution"]),
        milliseconds(median["total"]),
        milliseconds(median["read"]),
        milliseconds(first["first"] - first["second"]) if ran else None,
        f"{first['peak'] / 1e6:.0f}" if ran else None,
        _seconds(gum),
        milliseconds(gum["median"]["log evidence"]) if row["evidence"] and "median" in gum else None,
        f"{gum['memory'] / 1e6:.0f}" if "memory" in gum else None,
        _ratio(gum),
        f"{gum['with_log']:.1f}" if row["evidence"] and "with_log" in gum else None,
        _seconds(pgm),
        _ratio(pgm),
        f"{max(differences):.0e}" if differences else None,
    )


def _seconds(peer: dict[str, Any]) -> str:
    if not peer:
        return "-"
    if peer["status"] == "ok":
        return milliseconds(peer["seconds"])
    return {"timeout": f">{peer.get('cap', 0):.0f} s", "out of memory": "no mem"}.get(peer["status"], peer["status"])


def _ratio(peer: dict[str, Any]) -> str:
    if "ratio" in peer:
        return f"{peer['ratio']:.1f}" if peer["ratio"] < 100 else f"{peer['ratio']:.0f}"
    return f">{peer['at_least']:.0f}" if "at_least" in peer else "-"


def _notes(table: Table, rows: list[dict[str, Any]]) -> None:
    table.note("ratios: peer's median over our 'total' (a whole mf.marginals call, all plans forgotten before it).")
    table.note(
        "reduce, order+lay and execute are of one tree of the whole network; without evidence the total goes sink by "
        "sink where that is predicted to cost less (link, munin1), and is then below their sum."
    )
    table.note("reduce + order+lay = planning; warm-up = first call in a new process less the second, kernels on disk.")
    table.note("peak MB = that process, interpreter and JIT included; MB = growth of the peer's process.")
    table.note(
        "pyAgrum's time is LazyPropagation + setEvidence + makeInference + every posterior; its "
        "evidenceProbability comes on top (+ log Z) and is not in the first ratio, though our total has log Z."
    )
    table.note(
        "pgmpy's time is the faster way's: elimination, variable by variable on the ancestors of each (without "
        "evidence these can be a small part of the network), or propagation on its junction tree."
    )
    for name in ("pyagrum", "pgmpy"):
        solved = [r for r in rows if r.get(name, {}).get("status") == "ok"]
        ratios = {f"{r['network']}{'+' * bool(r['evidence'])}": _by_minima(r, name) for r in solved}
        if ratios:
            worst = sorted(ratios, key=lambda key: ratios[key])[:8]
            shown = ", ".join(f"{key} {ratios[key]:.1f}" for key in worst)
            table.note(f"{name}, ratios of minima instead of medians (a busy machine), the lowest: {shown}")
    made = ", ".join(f"{r['network']} {milliseconds(r['model'])}" for r in rows if not r["evidence"])
    table.note(f"made once per model, outside the clock (linear tables, index of factors), ms: {made}.")


def _by_minima(row: dict[str, Any], peer: str) -> float:
    return float(row[peer]["min"]["total"] / row["min"]["total"])


def _targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    solved = [r for r in rows if r.get("pyagrum", {}).get("status") == "ok"]
    small = [r["pyagrum"]["ratio"] for r in solved if r["pyagrum"]["seconds"] < SMALL]
    large = [r["pyagrum"]["ratio"] for r in solved if r["pyagrum"]["seconds"] >= SMALL]
    targets = []
    if small:
        targets.append(("pyAgrum, solves under 10 ms: least ratio", ">= 5", min(small), min(small) >= 5))
    if large:
        mean = geometric_mean(large)
        targets.append(("pyAgrum, larger: geometric mean of ratios", ">= 20", mean, mean >= 20))
    if solved:
        least = min(small + large)
        targets.append(("pyAgrum: least ratio of all", ">= 1", least, least >= 1))
        worst = max(r["pyagrum"]["difference"] for r in solved)
        targets.append(("pyAgrum: largest difference of marginals", "< 1e-6", worst, worst < 1e-6))
        logs = [r["pyagrum"]["log_difference"] for r in solved if "log_difference" in r["pyagrum"]]
        if logs:
            targets.append(("pyAgrum: largest difference of log Z", "< 1e-6", max(logs), max(logs) < 1e-6))
    other = [p.get("ratio", p.get("at_least")) for r in rows if (p := r.get("pgmpy", {}))]
    bounds = [x for x in other if x is not None]
    if bounds:
        targets.append(("pgmpy: least ratio (caps counted as times)", ">= 50", min(bounds), min(bounds) >= 50))
    for row in rows:
        if row["network"] in {"link", "munin1"} and "fresh" in row:
            peak = row["fresh"].get("peak", math.inf) / 2**30
            targets.append((f"{row['network']}: exact, peak GiB", "< 4", peak, peak < 4))
    return [dict(zip(("claim", "target", "measured", "met"), t, strict=True)) for t in targets]
