"""Exact inference: how fast, how much memory, against whom.

Run as ``python -m benchmarks.exact.inference``; ``--quick`` takes minutes, everything takes about an hour, most of
it the peers. Results go to stdout and, as JSON, to ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import importlib
import time
from typing import Any

from benchmarks.measure import Policy, Table, machine, save

__all__ = ["main"]

SECTIONS = ("import", "bif", "batch", "uai", "chains", "reductions", "bandwidth")
QUICK_LOG2, FULL_LOG2 = 22.0, 30.0
# Switching a step off can make a tree far larger: such rows are planned and not run.
REDUCTIONS_LOG2 = 26.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exact.inference", description=__doc__)
    parser.add_argument("--sections", default=",".join(SECTIONS), help="comma-separated, of: %(default)s")
    parser.add_argument("--quick", action="store_true", help="instances of at most 2^22 states, no cold compilation")
    parser.add_argument("--max-log2", type=float, help="run instances of at most 2^N clique states (default 30)")
    parser.add_argument("--only", help="comma-separated names of networks and instances")
    parser.add_argument("--peers", default="pyagrum,pgmpy", help="comma-separated, of: %(default)s; '' for none")
    parser.add_argument("--seconds", type=float, default=10.0, help="most time to repeat one measurement for")
    given = parser.parse_args()
    for section in given.sections.split(","):
        if section not in SECTIONS:
            parser.error(f"there is no section {section!r}; choose from {', '.join(SECTIONS)}")
    return given


def _section(name: str, given: argparse.Namespace) -> dict[str, Any]:
    only = given.only.split(",") if given.only else None
    max_log2 = given.max_log2 or (QUICK_LOG2 if given.quick else FULL_LOG2)
    policy = Policy(most=given.seconds)
    peers = [p for p in given.peers.split(",") if p]
    module = importlib.import_module(f"benchmarks.exact.{'latency' if name == 'import' else name}")
    arguments: dict[str, tuple[Any, ...]] = {
        "bif": (only, peers, policy, max_log2),
        "batch": (policy, only),
        "uai": (max_log2, only),
        "chains": (10**5 if given.quick else 10**6,),
        "reductions": (min(max_log2, REDUCTIONS_LOG2), only),
        "bandwidth": (max_log2, only),
    }
    if name == "import":
        return module.run(cold=not given.quick)  # type: ignore[no-any-return]
    return module.run(*arguments[name])  # type: ignore[no-any-return]


def main() -> None:
    """Run the chosen sections and hold their numbers against the targets."""
    given = _arguments()
    results: dict[str, Any] = {"machine": machine(), "arguments": vars(given)}
    about = results["machine"]
    load = ", ".join(f"{x:.1f}" for x in about["load"])
    print(f"{about['processor']}, {about['cores']} cores, Python {about['python']}, {about['time']}, load {load}")
    targets: list[dict[str, Any]] = []
    for name in SECTIONS:
        if name in given.sections.split(","):
            start = time.perf_counter()
            results[name] = _section(name, given)
            results[name]["seconds"] = time.perf_counter() - start
            targets += results[name]["targets"]
            save("exact_inference", results)
    table = Table("Targets", ("claim", "target", "measured", "met"), first=66)
    for row in targets:
        table.row(row["claim"], row["target"], row["measured"], "yes" if row["met"] else "NO")
    print(f"\nresults in {save('exact_inference', results)}")


if __name__ == "__main__":
    main()
