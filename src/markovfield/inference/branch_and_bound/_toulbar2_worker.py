"""The other process of `Toulbar2`: run as a script, so that it starts without the rest of the library."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

__all__ = ["work"]

# Seconds on toulbar2's own clock, which counts only what it computes; the caller has the real one.
_FOREVER = 10**7


def work(folder: str) -> None:
    """Read the problem, solve it, leave the result in the folder."""
    import pytoulbar2

    # The solver prints from C++; nobody reads it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with np.load(os.path.join(folder, "problem.npz"), allow_pickle=False) as data:
        cards, arity, scopes, costs = (data[key] for key in ("cards", "arity", "scopes", "costs"))
        top, vac = data["settings"].tolist()
    solver = pytoulbar2.CFN(ubinit=float(top), resolution=0, vac=vac, verbose=-1)
    for v, card in enumerate(cards.tolist()):
        solver.AddVariable(f"x{v}", range(card))
    scope_at = cost_at = 0
    for k in arity.tolist():
        scope = scopes[scope_at : scope_at + k]
        size = int(np.prod(cards[scope].astype(np.int64)))
        table = costs[cost_at : cost_at + size].astype(float)
        solver.AddFunction(scope.tolist(), np.where(table < 0, float(top), table).tolist())
        scope_at, cost_at = scope_at + k, cost_at + size
    found = solver.Solve(timeLimit=_FOREVER, showSolutions=1, writeSolution=os.path.join(folder, "solution"))
    bound = solver.GetDDualBound()
    result: dict[str, Any] = {"status": "found", "states": None, "bound": bound, "cost": bound}
    result["nodes"] = solver.GetNbNodes()
    if found is not None:
        result["states"], result["cost"] = [int(state) for state in found[0]], found[1]
    elif bound >= top:
        result["status"] = "none"
    unfinished = os.path.join(folder, "result.part")
    with open(unfinished, "w") as stream:
        json.dump(result, stream)
    os.replace(unfinished, os.path.join(folder, "result.json"))


if __name__ == "__main__":
    work(sys.argv[1])
