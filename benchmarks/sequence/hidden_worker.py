"""Runs inside the peers' environment: hmmlearn on the arrays of a file, one JSON job a line.

Only the standard library, NumPy and hmmlearn are imported here.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script: for what all benchmarks share
from measure import Policy, measure


def model(hmm: Any, job: dict[str, Any], arrays: Any) -> Any:
    """A model with the parameters of a job, that fits for one iteration."""
    k = len(arrays["start"])
    common = {"init_params": "", "implementation": job["implementation"], "n_iter": 1, "tol": -np.inf}
    if job["emissions"] == "categorical":
        made = hmm.CategoricalHMM(k, **common)
        made.emissionprob_, made.n_features = arrays["probabilities"], arrays["probabilities"].shape[1]
    else:
        made = hmm.GaussianHMM(k, "full", **common)
        made.means_, made.covars_ = arrays["means"], arrays["covariances"]
    made.startprob_, made.transmat_ = arrays["start"], arrays["transitions"]
    return made


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Least seconds of one task as often as its policy says, and the log-likelihood for comparison."""
    import hmmlearn
    from hmmlearn import hmm

    if "task" not in job:
        return {"status": "ok", "about": f"hmmlearn {hmmlearn.__version__}"}
    arrays = np.load(job["path"])
    X, lengths = arrays["X"], arrays["lengths"].tolist()
    tasks = {
        "log-likelihood": lambda: model(hmm, job, arrays).score(X, lengths),
        "EM iteration": lambda: model(hmm, job, arrays).fit(X, lengths),
        "Viterbi": lambda: model(hmm, job, arrays).predict(X, lengths),
    }

    def once() -> Sequence[float]:
        start = time.perf_counter()
        tasks[job["task"]]()
        return (time.perf_counter() - start,)

    timing = measure(("seconds",), once, Policy(**job["policy"]))
    value = float(model(hmm, job, arrays).score(X, lengths)) if job["task"] == "log-likelihood" else None
    return {"status": "ok", "seconds": timing.least("seconds"), "value": value}


def main() -> None:
    """Serve jobs until stdin closes."""
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    logging.disable(logging.CRITICAL)
    # Libraries print to stdout: answers go to the real one, the rest to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            found = answer(json.loads(line))
        except Exception as error:  # a peer's failure is a result, whatever its type
            found = {"status": "failed", "error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
