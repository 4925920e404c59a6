"""Vector autoregressions, filter and smoother beside statsmodels; growth with the length of the series."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from benchmarks.gaussian.series import autoregression, space
from benchmarks.measure import Table
from benchmarks.peers import Peers

__all__ = ["run"]

CLOCK = time.process_time


def _fit(steps: int, k: int) -> dict[str, float]:
    import markovfield as mf

    values = autoregression(steps, k)
    start = CLOCK()
    model = mf.VectorAutoregression(2).fit(values)
    fitted = CLOCK()
    model.forecast(12)
    model.impulse_responses(12)
    after = CLOCK()
    check = float(np.abs(model.coefficients_).sum() + model.noise_covariance_.sum())
    return {"fit": fitted - start, "ask": after - fitted, "check": check}


def _smooth(steps: int) -> dict[str, float]:
    import markovfield as mf

    parts, rows = space(steps)
    start = CLOCK()
    model = mf.time_series.LinearStateSpace(**parts)
    filtered = model.filter(rows)
    between = CLOCK()
    found = model.smooth(rows)
    after = CLOCK()
    check = filtered.log_likelihood + float(np.abs(found.mean).sum())
    return {"filter": between - start, "smooth": after - between, "check": check}


def run(quick: bool) -> dict[str, Any]:
    """All sizes; prints as it goes."""
    found: dict[str, Any] = {}
    lengths = (1_000, 10_000) if quick else (1_000, 10_000, 100_000)
    jobs = [("fit", {"steps": n, "k": k}) for k in (3, 20) for n in lengths] + [
        ("smooth", {"steps": n}) for n in lengths
    ]
    _smooth(5_000)  # compiles
    own = {"fit": _fit, "smooth": _smooth}
    with Peers(["statsmodels"], "gaussian/statsmodels_worker.py") as peers:
        table = Table("time series, seconds of the processor", ["what", "who", "fit/filter", "ask/smooth"], first=24)
        for what, size in jobs:
            runs: dict[str, list[dict[str, float]]] = {}
            for _ in range(3 if quick else 7):
                runs.setdefault("ours", []).append(own[what](**size))
                for name in peers.names:
                    answer = peers.ask(name, {"peer": name, "what": what, **size}, 300.0)
                    if answer.pop("status") == "ok":
                        runs.setdefault(name, []).append(answer)
            best = {
                name: {key: statistics.median(r[key] for r in each) for key in each[0]} for name, each in runs.items()
            }
            label = f"{what} {', '.join(f'{key} {value}' for key, value in size.items())}"
            found[label] = best
            for name, each in best.items():
                first, second = (key for key in each if key != "check")
                table.row(label, name, each[first], each[second])
                if name != "ours":
                    off = abs(each["check"] / best["ours"]["check"] - 1)
                    assert off < 1e-8, f"{label}: {name} has another answer, off by {off:.3g}"
                    ratios = ", ".join(
                        f"{key} {each[key] / max(best['ours'][key], 1e-9):.2f}" for key in (first, second)
                    )
                    table.note(f"{name} / ours: {ratios}; the same numbers to {off:.1e}")
        for what, extra in (("fit", ", k 20"), ("smooth", "")):
            small, large = (found[f"{what} steps {n}{extra}"]["ours"] for n in (lengths[-2], lengths[-1]))
            key = "fit" if what == "fit" else "smooth"
            grown = np.log(large[key] / small[key]) / np.log(lengths[-1] / lengths[-2])
            table.note(f"{what}{extra}: grows like length to the {grown:.2f}")
    return found
