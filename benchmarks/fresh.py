"""Jobs that need a process of their own: first-call latency, peak memory, import time.

``run("network", "alarm")`` starts ``python -m benchmarks.fresh network alarm`` and returns what it prints.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import memory

__all__ = ["peak_bytes", "run"]

ROOT = Path(__file__).resolve().parent.parent


def run(job: str, *arguments: Any, cache: str | None = None, limit: float = 900.0) -> dict[str, Any]:
    """Run a job in a new process; ``cache`` names another folder for compiled kernels."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, "-m", "benchmarks.fresh", job, *map(str, arguments)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"status": "timeout"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        return {"status": "failed", "error": last}
    answer: dict[str, Any] = {"status": "ok", **json.loads(done.stdout.splitlines()[-1])}
    return answer


def peak_bytes() -> int:
    """Most memory this process ever held (on Linux ``ru_maxrss`` would count the process that started it, too)."""
    return memory("VmHWM")


def held_bytes() -> int:
    """Memory this process holds now."""
    return memory("VmRSS")


def imports() -> dict[str, float]:
    """Seconds to import NumPy, then the package, then to touch the names of a first query."""
    start = time.perf_counter()
    import numpy  # noqa: F401

    with_numpy = time.perf_counter()
    import markovfield

    with_package = time.perf_counter()
    assert markovfield.marginals and markovfield.io.read_bif and markovfield.methods.JunctionTree
    return {
        "numpy": with_numpy - start,
        "markovfield": with_package - with_numpy,
        "names": time.perf_counter() - with_package,
    }


def network(name: str, memory_limit: str = "4GiB") -> dict[str, Any]:
    """The first query in a new process and the next one; peak memory of the process."""
    import markovfield as mf
    from benchmarks.data import bif_networks

    method = mf.methods.JunctionTree(memory_limit=memory_limit) if name in {"link", "munin1"} else "auto"
    graph = mf.io.read_bif(bif_networks([name])[0]).compile()
    before = held_bytes()
    start = time.perf_counter()
    answer = mf.marginals(graph, method=method)
    first = time.perf_counter() - start
    peak = peak_bytes()
    from benchmarks.own import forget_plans  # loads the engine, so not before the first query

    forget_plans(graph)
    start = time.perf_counter()
    mf.marginals(graph, method=method)
    second = time.perf_counter() - start
    return {"first": first, "second": second, "before": before, "peak": peak, "method": answer.method}


def chain(length: str, states: str) -> dict[str, Any]:
    """All marginals and log Z of a chain: seconds of each part, and memory from the building of the model on."""
    import markovfield as mf
    from benchmarks.own import model_seconds
    from markovfield.inference.core.evidence import Evidence
    from markovfield.inference.junction_tree.propagate import propagate

    mf.marginals(chain_graph(1000, int(states)), method="junction_tree")  # loads the kernels
    empty = held_bytes()
    start = time.perf_counter()
    graph = chain_graph(int(length), int(states))
    built = time.perf_counter() - start
    once = model_seconds(graph)
    engine = mf.methods.JunctionTree()
    start = time.perf_counter()
    problem = engine.prepare(graph, Evidence.parse(graph.structure, None))
    plan = engine.plan(problem)
    planned = time.perf_counter()
    result = propagate(plan, problem)
    done = time.perf_counter()
    return {
        "build": built,
        "model": once,
        "planning": planned - start,
        "execution": done - planned,
        "memory": peak_bytes() - empty,
        "value": result.value,
    }


def chain_graph(length: int, states: int) -> Any:
    """A chain with a vector for each variable and one table shared by all neighbours."""
    import numpy as np

    import markovfield as mf

    rng = np.random.default_rng(0)
    pairs = length - 1
    shared = states * length
    structure = mf.answers.Structure.from_arrays(
        np.full(length, states),
        np.concatenate([np.arange(length), length + 2 * np.arange(pairs + 1)]),
        np.concatenate([np.arange(length), np.stack([np.arange(pairs), np.arange(1, length)], 1).ravel()]),
        np.concatenate([states * np.arange(length), np.full(pairs, shared)]),
        n_cells=shared + states * states,
    )
    return mf.FactorGraph(structure, rng.normal(size=structure.n_cells))


JOBS: dict[str, Callable[..., dict[str, Any]]] = {"imports": imports, "network": network, "chain": chain}


if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
