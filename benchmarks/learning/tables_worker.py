"""Peers of `benchmarks.learning.tables`: statsmodels' Poisson regression and mbi, in an environment of their own.

Reads a job from the file named by its argument and prints one line of JSON: seconds of the second of two runs, and the
largest difference of a margin as a share of the total. Imports nothing of the library.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np


def statsmodels_fit(cards: list[int], scopes: list[list[int]], margins: list[np.ndarray], counts: np.ndarray) -> Any:
    """A generalised linear model with one column for each free parameter."""
    import statsmodels.api as sm

    states = np.indices(cards).reshape(len(cards), -1)
    columns: dict[tuple[Any, ...], np.ndarray] = {(): np.ones(counts.size)}
    for scope in scopes:
        for bits in range(1, 2 ** len(scope)):
            part = tuple(v for i, v in enumerate(scope) if bits >> i & 1)
            for levels in np.ndindex(*[cards[v] - 1 for v in part]):
                key = tuple(zip(part, levels, strict=True))
                if key not in columns:
                    columns[key] = np.prod([states[v] == s + 1 for v, s in key], axis=0).astype(float)
    design = np.column_stack(list(columns.values()))

    def run() -> np.ndarray:
        fit = sm.GLM(counts.ravel(), design, family=sm.families.Poisson()).fit()
        return np.asarray(fit.fittedvalues).reshape(cards)

    return run


def mbi_fit(cards: list[int], scopes: list[list[int]], margins: list[np.ndarray], counts: Any) -> Any:
    """Mirror descent on a junction tree, as its documentation does it, in double precision."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi

    domain = mbi.Domain([str(v) for v in range(len(cards))], cards)
    total = float(margins[0].sum())
    measured = [
        mbi.LinearMeasurement(m.ravel(), tuple(str(v) for v in s), 1.0) for s, m in zip(scopes, margins, strict=True)
    ]

    def run() -> list[np.ndarray]:
        model = mbi.estimation.MirrorDescent().estimate(domain, measured, known_total=total)
        return [np.asarray(model.project(tuple(str(v) for v in s)).datavector()).reshape(m.shape)
                for s, m in zip(scopes, margins, strict=True)]  # fmt: skip

    return run


def main() -> None:
    """One job."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    cards, scopes = job["cards"], job["scopes"]
    margins = [np.array(m, float) for m in job["margins"]]
    counts = np.array(job["counts"], float) if job["counts"] is not None else None
    run = {"statsmodels": statsmodels_fit, "mbi": mbi_fit}[job["peer"]](cards, scopes, margins, counts)
    for _ in range(2):
        started = time.perf_counter()
        found = run()
        seconds = time.perf_counter() - started
    if isinstance(found, np.ndarray):
        found = [
            found.sum(axis=tuple(v for v in range(len(cards)) if v not in s)).transpose(np.argsort(np.argsort(s)))
            for s in scopes
        ]
    error = max(float(np.abs(f - m).max()) for f, m in zip(found, margins, strict=True)) / float(margins[0].sum())
    print(json.dumps({"seconds": seconds, "deviation": error}))


if __name__ == "__main__":
    main()
