"""Exact probabilities of smokers in a circle of friends: ours beside ProbLog, which compiles programs to circuits.

A formula of weight w is said to ProbLog by a fact h of probability ``1 - exp(-w)`` and the evidence that h does not
meet a grounding that is false: worlds that violate the formula keep ``exp(-w)`` of their weight, as in Markov logic.
"""

from __future__ import annotations

import math
import time
from typing import Any

import markovfield as mf
from benchmarks.measure import Table
from benchmarks.peers import Peers

__all__ = ["run"]

CANCER, ALIKE = 1.5, 1.1
# People, and how many neighbours on one side are friends.
CASES = ((10, 1), (100, 1), (30, 2), (30, 4))
LIMIT = 120.0


def _friends(n: int, reach: int) -> list[tuple[int, int]]:
    return [(i, (i + k) % n) for i in range(n) for k in range(1, reach + 1)]


def _ours(n: int, reach: int) -> tuple[float, dict[str, float]]:
    started = time.process_time()
    kb = mf.MarkovLogic(
        f"*Friends(person, person)\nSmokes(person)\nCancer(person)\n{CANCER} Smokes(x) => Cancer(x)\n"
        f"{ALIKE} Friends(x, y) => (Smokes(x) <=> Smokes(y))\n"
    )
    facts = "".join(f"Friends(P{i}, P{j})\n" for i, j in _friends(n, reach))
    answer = mf.marginals(kb.ground(facts + "Smokes(P0)\n", query=["Smokes", "Cancer"]))
    found = {f"smokes(p{i})": float(answer[f"Smokes(P{i})"][1]) for i in range(1, n)}
    seconds = time.process_time() - started
    assert answer.guarantee == "exact"
    return seconds, found


def _problog(n: int, reach: int) -> str:
    lines = [f"0.5::smokes(p{i}).\n0.5::cancer(p{i})." for i in range(n)]
    rules = [(CANCER, [f"smokes(p{i}), \\+cancer(p{i})"]) for i in range(n)]
    for i, j in _friends(n, reach):
        rules.append((ALIKE, [f"smokes(p{i}), \\+smokes(p{j})", f"\\+smokes(p{i}), smokes(p{j})"]))
    for k, (weight, wrong) in enumerate(rules):
        lines.append(f"{1 - math.exp(-weight)!r}::h{k}.")
        lines += [f"bad{k} :- h{k}, {body}." for body in wrong]
        lines.append(f"evidence(bad{k}, false).")
    lines.append("evidence(smokes(p0), true).")
    return "\n".join([*lines, *(f"query(smokes(p{i}))." for i in range(1, n))])


def run() -> list[dict[str, Any]]:
    """All cases."""
    rows = []
    _ours(30, 2)  # imports and kernels
    with Peers(["problog"], "logic/problog_worker.py") as peers:
        table = Table(
            "exact probabilities, seconds of the processor", ["people", "friends", "ours", "problog", "ratio"]
        )
        for n, reach in CASES:
            seconds, found = _ours(n, reach)
            row: dict[str, Any] = {"people": n, "friends": 2 * reach, "ours": seconds}
            other: Any = "not run"
            if peers.names:
                answer = peers.ask("problog", {"peer": "problog", "text": _problog(n, reach)}, LIMIT)
                other = answer["status"]
                if answer["status"] == "ok":
                    off = max(abs(answer["probabilities"][name] - p) for name, p in found.items())
                    assert off < 1e-8, f"problog has another answer, off by {off:.3g}"
                    other = row["problog"] = answer["seconds"]
            ratio = other / seconds if isinstance(other, float) else ""
            table.row(n, 2 * reach, seconds, other, ratio)
            rows.append(row)
    return rows
