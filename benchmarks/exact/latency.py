"""Import time, and the first query of a process with kernels on disk and without."""

from __future__ import annotations

import statistics
import tempfile
from typing import Any

from benchmarks import fresh
from benchmarks.measure import Table

__all__ = ["run"]

IMPORT_LIMIT = 0.1
REPEATS = 7
# A network that NumPy enumerates, and one that needs the kernels.
ENUMERATED, COMPILED = "asia", "alarm"


def run(*, cold: bool = True) -> dict[str, Any]:
    """Import in new processes, then first queries; ``cold=False`` spares the compilation of every kernel."""
    fresh.run("imports")  # bytecode and disk cache
    imports = [fresh.run("imports") for _ in range(REPEATS)]
    seconds = {key: statistics.median(r[key] for r in imports) for key in ("numpy", "markovfield", "names")}
    table = Table("Import and first call in a new process, milliseconds", ("what", "first", "next"), first=58)
    table.row("import numpy", 1e3 * seconds["numpy"])
    table.row("import markovfield, on top", 1e3 * seconds["markovfield"])
    table.row("names of a first query (loads Numba)", 1e3 * seconds["names"])
    results: dict[str, Any] = {"imports": seconds}
    cases = [(ENUMERATED, "NumPy only", None), (COMPILED, "kernels on disk", None)]
    with tempfile.TemporaryDirectory() as empty:
        if cold:
            cases.append((COMPILED, "no kernel on disk: compiles them", empty))
        fresh.run("network", COMPILED)
        for name, how, cache in cases:
            found = fresh.run("network", name, cache=cache)
            results[f"{name}, {how}"] = found
            ok = found["status"] == "ok"
            table.row(
                f"marginals of {name} ({how})",
                1e3 * found["first"] if ok else found.get("error", found["status"]),
                1e3 * found["second"] if ok else None,
            )
    added = seconds["markovfield"]
    return results | {
        "targets": [
            {
                "claim": "import markovfield adds, s",
                "target": "< 0.1",
                "measured": added,
                "met": added < IMPORT_LIMIT,
            }
        ]
    }
