"""Time and memory of exact inference are linear in the length of a chain."""

from __future__ import annotations

from typing import Any

from benchmarks import fresh
from benchmarks.measure import Table

__all__ = ["run"]

LENGTHS = (10**3, 10**4, 10**5, 10**6)
STATES = (2, 10)
# Cost per variable may rise this much from 10^5 to 10^6 variables: caches, not complexity.
LINEAR = 2.0


def run(longest: int = 10**6) -> dict[str, Any]:
    """Chains of growing length, each in a process of its own."""
    table = Table(
        "Chains: all marginals and log Z, milliseconds",
        ("variables", "states", "build", "model", "planning", "execute", "MB", "us/var", "bytes/var"),
        first=9,
    )
    rows: list[dict[str, Any]] = []
    for states in STATES:
        for length in LENGTHS:
            if length > longest:
                continue
            row = {"variables": length, "states": states, **fresh.run("chain", length, states)}
            rows.append(row)
            if row["status"] != "ok":
                table.row(f"{length:,}", states, row.get("error", row["status"]))
                continue
            row["us"] = 1e6 * (row["planning"] + row["execution"]) / length
            table.row(
                f"{length:,}", states, 1e3 * row["build"], 1e3 * row["model"], 1e3 * row["planning"],
                1e3 * row["execution"], row["memory"] / 1e6, row["us"], f"{row['memory'] / length:,.0f}",
            )  # fmt: skip
    table.note("us/var = planning + execution; MB = peak of the process less what it held before the model was built")
    table.note(
        "(kernels loaded, interpreter), so it includes the model; model = linear tables and index, once a model."
    )
    return {"rows": rows, "targets": _targets(rows)}


def _targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    targets = []
    for states in STATES:
        good = [r for r in rows if r["status"] == "ok" and r["states"] == states]
        if len(good) < 2:
            continue
        shorter, longer = good[-2], good[-1]
        for what, grew in (
            ("time", longer["us"] / shorter["us"]),
            ("memory", longer["memory"] / shorter["memory"] * shorter["variables"] / longer["variables"]),
        ):
            lengths = f"{shorter['variables']:.0e} to {longer['variables']:.0e}"
            claim = f"chains, {states} states: {what} per variable, {lengths}"
            targets.append({"claim": claim, "target": f"<= x{LINEAR:g}", "measured": grew, "met": grew <= LINEAR})
    return targets
