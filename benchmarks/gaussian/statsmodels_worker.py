"""Runs inside the peers' environment: statsmodels' VAR and Kalman smoother, one job a line.

Seconds are of the processor, on one thread. Only the standard library, NumPy and the peer are imported here.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script: for what all benchmarks share
from gaussian.series import autoregression, space

CLOCK = time.process_time


def _fit(steps: int, k: int) -> dict[str, float]:
    from statsmodels.tsa.api import VAR

    values = autoregression(steps, k)
    start = CLOCK()
    found = VAR(values).fit(2)
    sums = float(np.abs(found.coefs).sum())  # estimates are made when they are first looked at
    noise = found.sigma_u_mle
    fitted = CLOCK()
    found.forecast_interval(values[-2:], 12)
    found.irf(12)
    after = CLOCK()
    return {"fit": fitted - start, "ask": after - fitted, "check": sums + float(noise.sum())}


def _smooth(steps: int) -> dict[str, float]:
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    parts, rows = space(steps)
    n, m = len(parts["transition"]), rows.shape[1]
    start = CLOCK()
    model = KalmanSmoother(k_endog=m, k_states=n)
    model.bind(rows.copy())
    model["transition"], model["state_cov"], model["selection"] = (
        parts["transition"],
        parts["transition_noise"],
        np.eye(n),
    )
    model["design"], model["obs_cov"] = parts["observation"], parts["observation_noise"]
    model.initialize_known(np.zeros(n), np.eye(n))
    filtered = model.filter()
    between = CLOCK()
    found = model.smooth()
    after = CLOCK()
    check = float(filtered.llf_obs.sum() + np.abs(found.smoothed_state).sum())
    return {"filter": between - start, "smooth": after - between, "check": check}


def main() -> None:
    """Answer jobs until the pipe closes."""
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        job = json.loads(line)
        try:
            if job.get("what") == "fit":
                answer: dict[str, Any] = dict(_fit(job["steps"], job["k"]))
            elif job.get("what") == "smooth":
                answer = dict(_smooth(job["steps"]))
            else:
                import statsmodels

                answer = {"about": f"statsmodels {statsmodels.__version__}"}
            answer["status"] = "ok"
        except Exception as error:
            answer = {"status": "error", "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
