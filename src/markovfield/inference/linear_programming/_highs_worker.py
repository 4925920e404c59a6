"""The other process of `highs.solve`: run as a script, so that it starts without the rest of the library."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

__all__ = ["run_highs", "work"]


def run_highs(program: Any, time_limit: float | None, *, log: bool = False) -> dict[str, Any]:
    """Minimise by ``scipy.optimize``, and take what is needed of its answer, as arrays."""
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp

    options: dict[str, Any] = {"disp": log}
    if time_limit is not None:
        options["time_limit"] = time_limit

    def matrix(name: str) -> Any:
        parts = (program[f"{name}_data"], program[f"{name}_indices"], program[f"{name}_indptr"])
        return sparse.csr_array(parts, shape=(len(parts[2]) - 1, len(program["costs"])))

    equal, right = matrix("equal"), program["equal_right"]
    if program["whole"].any():
        answer = milp(
            program["costs"],
            integrality=program["whole"],
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(equal, right, right),
            options=options | {"mip_rel_gap": float(program["relative_gap"])},
        )
    else:
        limits = {"A_ub": matrix("below"), "b_ub": program["below_right"]} if len(program["below_right"]) else {}
        answer = linprog(
            program["costs"], A_eq=equal, b_eq=right, bounds=(0, None), method="highs", options=options, **limits
        )
    found: dict[str, Any] = {"status": np.int64(answer.status), "message": np.str_(answer.message)}
    if answer.x is not None:
        found["x"] = np.asarray(answer.x)
    bound = answer.get("mip_dual_bound")
    if bound is not None:
        found["bound"] = np.float64(bound)
    if answer.x is not None and not program["whole"].any():
        found["equal_prices"] = np.asarray(answer.eqlin.marginals)
        found["below_prices"] = np.asarray(answer.ineqlin.marginals)
    return found


def work(folder: str, time_limit: float | None, started: float) -> None:
    """Read the program, solve it, leave the result in the folder; what HiGHS prints goes to where stdout goes.

    The limit counts from ``started``, by the wall clock.
    """
    with np.load(os.path.join(folder, "program.npz"), allow_pickle=False) as data:
        program = dict(data)
    if time_limit is not None:
        time_limit = max(0.01, time_limit - (time.time() - started))
    found = run_highs(program, time_limit, log=True)
    unfinished = os.path.join(folder, "part.npz")
    np.savez(unfinished, **found)
    os.replace(unfinished, os.path.join(folder, "result.npz"))


if __name__ == "__main__":
    given = [float(word) for word in sys.argv[2:]]
    work(sys.argv[1], given[0] if given else None, given[1] if given else 0.0)
