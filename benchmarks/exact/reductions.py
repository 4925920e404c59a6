"""What each preprocessing step is worth: every switch of `mf.methods.JunctionTree` on and off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import markovfield as mf
from benchmarks.data import bif_networks, random_evidence, read_network, uai_families
from benchmarks.measure import Policy, Table, geometric_mean, measure
from benchmarks.own import forget_plans, named_evidence
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.propagate import propagate

__all__ = ["run"]

LEAST_LOG2 = 14.0
POLICY = Policy(repeats=3, least=0.0, most=4.0)


def switches() -> list[str]:
    """Names of the on/off settings of the junction tree."""
    return [f.name for f in fields(mf.methods.JunctionTree) if isinstance(f.default, bool)]


def run(max_log2: float, only: list[str] | None = None) -> dict[str, Any]:
    """One row per instance and switch, everything else left on."""
    table = Table(
        "Preprocessing, each step on and off (evidence on a tenth of the nodes; log Z for drop_barren), milliseconds",
        ("instance", "step", "log2 on", "log2 off", "plan on", "plan off", "run on", "run off", "off/on"),
        first=19,
        second=max(len(s) for s in switches()),
    )
    rows = []
    for name, graph, evidence in _instances(only):
        on: dict[bool, dict[str, Any]] = {}
        for switch in switches():
            only_partition = switch == "drop_barren"
            if only_partition not in on:
                on[only_partition] = _measure(graph, evidence, mf.methods.JunctionTree(), only_partition, max_log2)
            base = on[only_partition]
            if base["log2_states"] < LEAST_LOG2 or "run" not in base:
                continue
            off = _measure(graph, evidence, mf.methods.JunctionTree(**{switch: False}), only_partition, max_log2)
            row = {"instance": name, "step": switch, "on": base, "off": off}
            if "run" in off:
                row["ratio"] = (off["plan"] + off["run"]) / (base["plan"] + base["run"])
            rows.append(row)
            table.row(
                name, switch, f"{base['log2_states']:.1f}", f"{off['log2_states']:.1f}", 1e3 * base["plan"],
                1e3 * off["plan"], 1e3 * base["run"], 1e3 * off["run"] if "run" in off else "too large",
                row.get("ratio"),
            )  # fmt: skip
    for switch in switches():
        of_step = [r for r in rows if r["step"] == switch]
        refused = sum("ratio" not in r for r in of_step)
        mean = geometric_mean(r["ratio"] for r in of_step if "ratio" in r)
        smaller = sum(r["off"]["log2_states"] > r["on"]["log2_states"] + 0.01 for r in of_step)
        text = f"{switch}: off/on {mean:.2f} (geometric mean), fewer states in {smaller} of {len(of_step)}"
        table.note(text + (f", and {refused} more cannot be run without it" if refused else ""))
    return {"rows": rows, "targets": []}


def _instances(only: list[str] | None) -> Iterator[tuple[str, mf.FactorGraph, Any]]:
    for path in bif_networks(only):
        network = read_network(path)
        yield network.name, network.graph, named_evidence(network.graph, random_evidence(network))
    for instance in uai_families() if only is None else ():
        yield instance.name, mf.io.read_uai(instance.model), mf.io.read_uai_evidence(instance.evidence)


def _measure(
    graph: mf.FactorGraph, evidence: Any, engine: mf.methods.JunctionTree, only_partition: bool, max_log2: float
) -> dict[str, Any]:
    known = Evidence.parse(graph.structure, evidence)
    problem = engine.prepare(graph, known, drop_barren=only_partition)
    try:
        plan = engine.plan(problem)
    except MemoryError:
        return {"log2_states": float("inf"), "plan": float("nan")}
    result: dict[str, Any] = {"log2_states": plan.log2_states}
    run_it = plan.log2_states <= max_log2

    def once() -> tuple[float, float]:
        forget_plans(graph)
        start = time.perf_counter()
        problem = engine.prepare(graph, known, drop_barren=only_partition)
        plan = engine.plan(problem)
        planned = time.perf_counter()
        if run_it:
            propagate(plan, problem, downward=not only_partition, running=Running())
        return planned - start, time.perf_counter() - planned

    timing = measure(("plan", "run"), once, POLICY)
    result["plan"] = timing.median("plan")
    if run_it:
        result["run"] = timing.median("run")
    return result
