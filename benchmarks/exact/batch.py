"""Many questions to one compiled junction tree: new evidence one by one, and rows of evidence at once."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import EVIDENCE_SEED, EVIDENCE_SHARE, bif_networks, read_network
from benchmarks.measure import Policy, Table, measure
from benchmarks.own import named_evidence, plan_of

__all__ = ["run"]

TARGET_NETWORK = "alarm"
QUERY_LIMIT, ROW_LIMIT = 0.2e-3, 5e-6
QUERIES, ROWS, CHECKED = 200, 10_000, 20
# Larger networks take long for every row and show nothing new.
LARGEST_LOG2 = 20.0


def run(policy: Policy, only: list[str] | None = None) -> dict[str, Any]:
    """A second query and a batch on every network of moderate size."""
    table = Table(
        "Compiled junction trees, evidence on a tenth of the nodes, microseconds",
        ("network", "log2 st.", "compile ms", "next query", "per row, same nodes", "other nodes", "max |dp|"),
        first=11,
    )
    rows = []
    for path in bif_networks(only):
        network = read_network(path)
        log2_states = plan_of(network.graph, None).log2_states
        if log2_states > LARGEST_LOG2:
            continue
        row = {"network": network.name, "log2_states": log2_states, **_measure(network.graph, policy)}
        rows.append(row)
        table.row(
            row["network"], f"{log2_states:.1f}", 1e3 * row["compile"], 1e6 * row["query"], 1e6 * row["same"],
            1e6 * row["other"], f"{row['difference']:.0e}",
        )  # fmt: skip
    table.note(
        f"next query: .run(dict), new evidence every time; per row: .run_batch of {ROWS:,} rows, the observed "
        "nodes the same in all rows or drawn anew for each; differences from mf.marginals, row by row."
    )
    return {"rows": rows, "targets": _targets(rows)}


def _evidence_rows(graph: mf.FactorGraph, *, same: bool) -> Any:
    """Rows of evidence drawn from the model: state indices, -1 where nothing is observed."""
    rng = np.random.default_rng(EVIDENCE_SEED)
    states = mf.sample(graph, ROWS, rng=rng).states
    n = graph.n_variables
    order = rng.random((1 if same else ROWS, n)).argsort(axis=1)
    observed = np.broadcast_to(order < max(1, round(EVIDENCE_SHARE * n)), states.shape)
    return np.where(observed, states, -1).astype(np.int32)


def _measure(graph: mf.FactorGraph, policy: Policy) -> dict[str, Any]:
    start = time.perf_counter()
    compiled = mf.methods.JunctionTree.compile(graph)
    seconds = time.perf_counter() - start
    batches = {"same": _evidence_rows(graph, same=True), "other": _evidence_rows(graph, same=False)}
    questions = [_as_dict(graph, row) for row in batches["other"][:QUERIES]]
    turn = itertools.cycle(questions)
    compiled.run(next(turn))

    def query() -> tuple[float]:
        evidence = next(turn)
        start = time.perf_counter()
        compiled.run(evidence)
        return (time.perf_counter() - start,)

    result: dict[str, Any] = {"compile": seconds, "query": measure(["s"], query, policy).median("s")}
    for name, rows in batches.items():
        compiled.run_batch(rows[:2])

        def batch(rows: Any = rows) -> tuple[float]:
            start = time.perf_counter()
            compiled.run_batch(rows)
            return ((time.perf_counter() - start) / len(rows),)

        result[name] = measure(["s"], batch, policy).median("s")
    result["difference"] = _difference(graph, compiled, batches["other"][:CHECKED])
    return result


def _as_dict(graph: mf.FactorGraph, row: Any) -> dict[Any, Any]:
    return named_evidence(graph, {int(v): int(row[v]) for v in np.flatnonzero(row >= 0)})


def _difference(graph: mf.FactorGraph, compiled: Any, rows: Any) -> float:
    batch = compiled.run_batch(rows)
    worst = 0.0
    for i, row in enumerate(rows):
        evidence = _as_dict(graph, row)
        expected, single = mf.marginals(graph, evidence), compiled.run(evidence)
        worst = max(worst, float(np.abs(single.values - expected.values).max()))
        worst = max(worst, float(np.abs(batch.values[i] - expected.values).max()))
        worst = max(worst, abs(float(batch.log_partition[i]) - expected.log_partition))
    return worst


def _targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    targets = []
    for row in rows:
        if row["network"] == TARGET_NETWORK:
            for claim, key, limit, unit in (
                ("a second query, new evidence", "query", QUERY_LIMIT, 1e3),
                ("a row of a batch, same nodes observed", "same", ROW_LIMIT, 1e6),
                ("a row of a batch, other nodes in each row", "other", ROW_LIMIT, 1e6),
            ):
                targets.append(
                    {
                        "claim": f"{TARGET_NETWORK}: {claim}, {'ms' if unit == 1e3 else 'us'}",
                        "target": f"<= {unit * limit:g}",
                        "measured": unit * row[key],
                        "met": row[key] <= limit,
                    }
                )
    return targets
