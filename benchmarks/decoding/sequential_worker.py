"""toulbar2's TRW-S, run as a process of its own; it prints its bounds after each iteration.

``python benchmarks/decoding/sequential_worker.py MODEL.npz ITERATIONS``, where the file has whole costs ``own[n, K]``,
``pairs[m, 2]`` and one ``table[K, K]`` for all pairs. The caller puts the clock to the lines.
"""

from __future__ import annotations

import sys

import numpy as np


def main() -> None:
    """Build the cost network, run TRW-S as preprocessing; the search after it is left to be killed."""
    import pytoulbar2

    with np.load(sys.argv[1]) as data:
        own, pairs, table = data["own"], data["pairs"], data["table"]
    top = float(own.max(axis=1).sum() + table.max() * len(pairs) + 1)
    solver = pytoulbar2.CFN(ubinit=top, resolution=0, verbose=0)
    solver.Option.trwsAccuracy = 1e-12
    solver.Option.trwsNIter = int(sys.argv[2])
    solver.Option.trwsNIterNoChange = int(sys.argv[2])
    solver.Option.trwsNIterComputeUb = 10
    for v, costs in enumerate(own.tolist()):
        solver.AddVariable(f"x{v}", range(own.shape[1]))
        solver.AddFunction([v], costs)
    cells = table.ravel().tolist()
    for pair in pairs.tolist():
        solver.AddFunction(pair, cells)
    print("ready", flush=True)
    solver.Solve(timeLimit=10**6)


if __name__ == "__main__":
    main()
