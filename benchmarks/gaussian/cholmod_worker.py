"""Runs inside the peers' environment: CHOLMOD as CVXOPT (its wheel has it) or scikit-sparse calls it, one job a line.

Seconds are of the processor, on one thread. Only the standard library, NumPy, SciPy and the peers are imported here.
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
from gaussian.matrices import lattice
from measure import memory

CLOCK = time.process_time


def _cvxopt(matrix: Any, columns: int) -> dict[str, float]:
    """Order and factor, one draw, some columns of the inverse."""
    from cvxopt import cholmod, spmatrix
    from cvxopt import matrix as dense

    n = matrix.shape[0]
    lower = matrix.tocoo()
    kept = lower.row >= lower.col
    stored = spmatrix(lower.data[kept].tolist(), lower.row[kept].tolist(), lower.col[kept].tolist(), (n, n))
    cholmod.options["supernodal"] = 2
    start = CLOCK()
    factor = cholmod.symbolic(stored)
    cholmod.numeric(stored, factor)
    made = CLOCK()
    white = dense(np.random.default_rng(0).standard_normal(n).reshape(-1, 1))
    cholmod.solve(factor, white, sys=5)  # L' x = z
    cholmod.solve(factor, white, sys=8)  # P' x
    drawn = CLOCK()
    unit = dense(np.eye(n, columns))
    before = CLOCK()
    cholmod.solve(factor, unit)
    after = CLOCK()
    logs = np.log(np.array(cholmod.diag(factor))).sum()
    return {
        "factor": made - start,
        "sample": drawn - made,
        "variances": (after - before) * n / columns,
        "log_determinant": 2.0 * float(logs),
    }


def _sksparse(matrix: Any, columns: int) -> dict[str, float]:
    from sksparse.cholmod import cholesky

    n = matrix.shape[0]
    start = CLOCK()
    factor = cholesky(matrix, mode="supernodal")
    made = CLOCK()
    white = np.random.default_rng(0).standard_normal(n)
    factor.apply_Pt(factor.solve_Lt(white, use_LDLt_decomposition=False))
    drawn = CLOCK()
    factor(np.eye(n, columns))
    after = CLOCK()
    return {
        "factor": made - start,
        "sample": drawn - made,
        "variances": (after - drawn) * n / columns,
        "log_determinant": float(factor.logdet()),
    }


RUN = {"cvxopt": _cvxopt, "sksparse": _sksparse}


def _about(name: str) -> str:
    module = __import__(name)
    return f"CHOLMOD by {name} {module.__version__}"


def main() -> None:
    """Answer jobs until the pipe closes."""
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        job = json.loads(line)
        try:
            if "side" in job:
                answer: dict[str, Any] = dict(RUN[job["peer"]](lattice(job["side"], job["kind"]), job["columns"]))
                answer["memory"] = memory("VmHWM")
            else:
                answer = {"about": _about(job["peer"])}
            answer["status"] = "ok"
        except MemoryError:
            answer = {"status": "out of memory"}
        except Exception as error:
            answer = {"status": "error", "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
