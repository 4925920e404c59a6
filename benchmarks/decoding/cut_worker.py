"""Runs inside a peer's environment: one job, a cut or moves on a lattice; answers with one JSON object.

``cut_worker.py PEER MODEL.npz STATES.npy``. The model has ``own``, ``int32[height, width, states]``, and either
``across`` and ``down``, the couplings of two-state neighbours, or ``table``, ``int32[states, states]``, the costs of
neighbours. Only NumPy and the peers are imported here.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np


def maxflow(arrays: dict[str, Any], repeats: int) -> dict[str, Any]:
    """PyMaxflow, with integer capacities: seconds of the flow alone, and with the graph being built."""
    import maxflow as peer

    own, best, build = arrays["own"], float("inf"), float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        graph = peer.GraphInt(own.shape[0] * own.shape[1], 2 * own.shape[0] * own.shape[1])
        nodes = graph.add_grid_nodes(own.shape[:2])
        for weights, structure in (
            (arrays["across"], [[0, 0, 0], [0, 0, 1], [0, 0, 0]]),
            (arrays["down"], [[0, 0, 0], [0, 0, 0], [0, 1, 0]]),
        ):
            graph.add_grid_edges(nodes, weights, structure=np.array(structure), symmetric=True)
        graph.add_grid_tedges(nodes, own[:, :, 0], own[:, :, 1])
        build = min(build, time.perf_counter() - started)
        started = time.perf_counter()
        graph.maxflow()
        best = min(best, time.perf_counter() - started)
    # A node on the sink's side pays what it is tied to the source with: the cost of state 0.
    states = ~graph.get_grid_segments(nodes)
    return {"seconds": best, "build": build, "states": states.astype(np.int64)}


def _gco(arrays: dict[str, Any], repeats: int, algorithm: str) -> dict[str, Any]:
    import gco as peer

    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        states = peer.cut_grid_graph_simple(arrays["own"], arrays["table"], n_iter=-1, connect=4, algorithm=algorithm)
        best = min(best, time.perf_counter() - started)
    return {"seconds": best, "states": states.reshape(arrays["own"].shape[:2]).astype(np.int64)}


def gco_expansion(arrays: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Expansions until none helps."""
    return _gco(arrays, repeats, "expansion")


def gco_swap(arrays: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Swaps until none helps."""
    return _gco(arrays, repeats, "swap")


def main() -> None:
    """Answer one job."""
    peer, model, out, repeats = sys.argv[1:]
    with np.load(model) as file:
        arrays = {name: file[name] for name in file.files}
    found = globals()[peer](arrays, int(repeats))
    np.save(out, found.pop("states"))
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
