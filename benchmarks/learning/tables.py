"""Contingency tables: proportional fitting and stepwise selection against R, statsmodels and mbi, in one run.

``python -m benchmarks.learning.tables [--quick]``; some minutes, nearly all of them the peers'. Ours is the whole call
of the array-level function with its planning, and beside it the whole of ``mf.fit`` from rows. R's ``loglin`` is run at
its own tolerance (0.1 of a count) and at ours; ``MARKOVFIELD_R`` names an ``Rscript``. statsmodels and mbi are asked in
the interpreter that ``MARKOVFIELD_PEERS`` names; a peer that cannot be had is a line that says so.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.measure import Table, machine, milliseconds, save
from markovfield.learning.core.data import encode
from markovfield.learning.tables.fitting import fit_margins
from markovfield.models.generators import generator_text

WORKER = Path(__file__).parent / "tables_worker.py"
TOLERANCE = 1e-8


def best_of(run: Callable[[], Any], repeats: int = 15, most: float = 3.0) -> tuple[float, Any]:
    """The least seconds of some runs, and the last answer."""
    seconds, answer, started = math.inf, None, time.perf_counter()
    for _ in range(repeats):
        start = time.perf_counter()
        answer = run()
        seconds = min(seconds, time.perf_counter() - start)
        if time.perf_counter() - started > most:
            break
    return seconds, answer


def drawn(cards: list[int], scopes: list[tuple[int, ...]], n: int = 20_000) -> np.ndarray:
    """Rows of a model with these pairs, drawn by Gibbs sampling: what is fitted has something to find."""
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict(enumerate(cards)))
    for scope in scopes:
        net.add_factor(scope, log_table=rng.normal(0, 0.5, [cards[v] for v in scope]))
    return np.asarray(mf.sample(net, n, method="junction_tree", rng=1).states)


def grid(n: int) -> list[tuple[int, ...]]:
    """Edges of a square lattice."""
    right = [(n * i + j, n * i + j + 1) for i in range(n) for j in range(n - 1)]
    return right + [(n * i + j, n * (i + 1) + j) for i in range(n - 1) for j in range(n)]


CASES: dict[str, tuple[list[int], list[tuple[int, ...]], float | None]] = {
    "10 binary, all 2-way": ([2] * 10, list(combinations(range(10), 2)), 3.0),
    "10 binary, all 3-way": ([2] * 10, list(combinations(range(10), 3)), 22.0),
    "10 ternary, all 2-way": ([3] * 10, list(combinations(range(10), 2)), 200.0),
    "ring of 20 binary": ([2] * 20, [(v, (v + 1) % 20) for v in range(20)], 2.0),
    "ring of 100 binary": ([2] * 100, [(v, (v + 1) % 100) for v in range(100)], 10.0),
    "7 x 7 grid, binary": ([2] * 49, grid(7), 200.0),
    "40 binary, 2^40 cells": ([2] * 40, [(v, v + 2) for v in range(38)] + [(v, v + 1) for v in range(0, 40, 2)], None),
}


def peer(name: str, cards: Any, scopes: Any, margins: Any, counts: Any, limit: float) -> dict[str, Any]:
    """Seconds and deviation of a Python peer, or why there are none."""
    python = os.environ.get("MARKOVFIELD_PEERS")
    if not python:
        return {"skip": "MARKOVFIELD_PEERS names no interpreter"}
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(
            {
                "peer": name,
                "cards": cards,
                "scopes": scopes,
                "margins": [m.tolist() for m in margins],
                "counts": None if counts is None else counts.tolist(),
            },
            file,
        )
    try:
        done = subprocess.run(
            [python, str(WORKER), file.name], capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return {"skip": f"over {limit:.0f} s"}
    finally:
        os.unlink(file.name)
    if done.returncode:
        return {"skip": (done.stderr.strip().splitlines() or ["failed"])[-1][:60]}
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def r_script(text: str, limit: float) -> str | None:
    """What a script of R prints; None where there is no R."""
    program = os.environ.get("MARKOVFIELD_R") or shutil.which("Rscript")
    if not program:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".R", delete=False) as file:
        file.write(text)
    try:
        done = subprocess.run([program, file.name], capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        os.unlink(file.name)
    return done.stdout if done.returncode == 0 else None


def loglin(counts: np.ndarray, scopes: Any) -> list[float] | None:
    """Seconds of R's loglin at its own tolerance and at ours, and its deviance at ours."""
    margins = ", ".join(f"c({', '.join(str(v + 1) for v in s)})" for s in scopes)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        # R's first axis is the fastest.
        file.write("\n".join(map(str, counts.ravel(order="F").astype(int))))
    text = f"""
x <- array(scan("{file.name}", quiet = TRUE), c({", ".join(map(str, counts.shape))}))
m <- list({margins})
best <- function(f) min(sapply(1:3, function(i) system.time(f())["elapsed"]))
n <- max(1, floor(20000 / length(x)))
a <- best(function() for (i in 1:n) loglin(x, m, print = FALSE, fit = TRUE)) / n
e <- {TOLERANCE} * sum(x)
b <- best(function() for (i in 1:n) loglin(x, m, print = FALSE, fit = TRUE, eps = e, iter = 10000)) / n
cat(a, b, loglin(x, m, print = FALSE, eps = e, iter = 10000)$lrt, "\\n")
"""
    out = r_script(text, 300.0)
    os.unlink(file.name)
    return None if out is None else [float(v) for v in out.split()]


def fitting(quick: bool) -> list[dict[str, Any]]:
    """Every case, ours and the peers."""
    table = Table(
        f"proportional fitting to {TOLERANCE:g} of the total, milliseconds",
        ["table", "sweeps", "ours", "planning", "mf.fit", "goal", "loglin", "at ours", "statsmodels", "mbi", "ratio"],
        first=24,
    )
    results = []
    for name, (cards, scopes, goal) in CASES.items():
        rows = drawn(cards, scopes if len(scopes[0]) == 2 else list(combinations(range(len(cards)), 2)))
        cells = math.prod(cards)
        counts = None
        if cells <= 2**20:
            counts = np.bincount(np.ravel_multi_index(tuple(rows.T), cards), minlength=cells).astype(float)
            counts = counts.reshape(cards)
        margins = []
        for s in scopes:
            margin = np.zeros([cards[v] for v in s])
            np.add.at(margin, tuple(rows[:, v] for v in s), 1.0)
            margins.append(margin)
        seconds, fit = best_of(lambda c=cards, s=scopes, m=margins: fit_margins(c, s, m, tolerance=TOLERANCE))
        hull = fit.hull
        rest, _ = best_of(
            lambda c=cards, s=scopes, m=margins, h=hull: fit_margins(c, s, m, tolerance=TOLERANCE, hull=h)
        )
        net = mf.MarkovNetwork(dict(enumerate(cards)))
        for s in scopes:
            net.add_unknown(s)
        data = encode(rows, net)
        whole, made = best_of(lambda n=net, d=data: mf.fit(n, d, "ipf"))
        r = loglin(counts, scopes) if counts is not None else None
        glm = {"skip": "design too large"}
        if counts is not None and cells <= 2**10 and not quick:
            glm = peer("statsmodels", cards, scopes, margins, counts, 120.0)
        tree = {"skip": "quick"} if quick else peer("mbi", cards, scopes, margins, None, 200.0)
        others = [x for x in (r[1] if r else None, glm.get("seconds"), tree.get("seconds")) if x]
        shown = [milliseconds(x) for x in (seconds, seconds - rest, whole)]
        table.row(
            name, len(fit.deviations), *shown, goal, *(milliseconds(r[i] if r else None) for i in (0, 1)),
            milliseconds(glm.get("seconds")), milliseconds(tree.get("seconds")),
            f"{min(others) / seconds:.0f}x" if others else None,
        )  # fmt: skip
        if r and cells <= 2**16:
            deviance = made.fit_report.details.goodness_of_fit.deviance
            table.note(f"deviance {deviance:.6f}, R's {r[2]:.6f}")
        for who, said in (("statsmodels", glm), ("mbi", tree)):
            if "skip" in said:
                table.note(f"skipping {who}: {said['skip']}")
            else:
                table.note(
                    f"{who}'s margins are off by {said['deviation']:.1g} of the total, ours by {fit.deviations[-1]:.1g}"
                )
        results.append({"case": name, "ours": seconds, "fit": whole, "loglin": r, "statsmodels": glm, "mbi": tree})
    return results


def stepwise() -> list[dict[str, Any]]:
    """Backward selection by BIC on the table of Reinis, against MASS's stepAIC."""
    path = data_folder() / "tables" / "reinis.csv"
    table = Table(
        "stepwise selection, reinis, BIC backward, milliseconds", ["start", "ours", "goal", "R MASS", "ratio"], first=18
    )
    if not path.exists():
        table.note("skipping: no reference data")
        return []
    with path.open() as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])[:-1]
    data = {c: [r[k] for r in rows] for c, k in zip("ABCDEF", names, strict=True)}
    counts = [float(r["Freq"]) for r in rows]
    results = []
    for start, power in (("all 2-way", 2), ("saturated", 6)):
        method = mf.methods.StepwiseSelection(start=start)
        seconds, found = best_of(lambda m=method: mf.learn_structure(data, method=m, weights=counts))
        out = r_script(
            f"""
library(MASS)
d <- read.csv("{path}"); names(d) <- c("A", "B", "C", "D", "E", "F", "Freq")
x <- xtabs(Freq ~ ., d)
t <- system.time(s <- stepAIC(loglm(~ (A + B + C + D + E + F)^{power}, x), direction = "backward", k = log(sum(x)),
  trace = 0))["elapsed"]
cat(t, s$lrt, s$df, "\\n")
""",
            300.0,
        )
        r = [float(v) for v in out.split()] if out else None
        fit = found.details.goodness_of_fit
        table.row(
            start, milliseconds(seconds), 20, milliseconds(r[0] if r else None), f"{r[0] / seconds:.0f}x" if r else None
        )
        said = f"; R's {r[1]:.2f} on {r[2]:.0f}" if r else "; skipping R: not found"
        table.note(f"{generator_text(found.generators)}: {fit.deviance:.2f} on {fit.degrees_of_freedom} degrees{said}")
        results.append({"start": start, "ours": seconds, "r": r})
    return results


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the peers in Python")
    quick = parser.parse_args().quick
    results = {"machine": machine(), "fitting": fitting(quick), "stepwise": stepwise()}
    print(f"\nwritten to {save('learning_tables', results)}")


if __name__ == "__main__":
    main()
