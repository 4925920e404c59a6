"""How fast the big cliques run: against this machine's memory bandwidth, and against its caches.

Cliques are never stored: they are formed block by block in the first-level cache from the slots (factors,
messages, variables' vectors) they are products of. So memory carries the messages only, and the time goes into
multiplying slots into blocks and adding blocks to slots. Both are counted here from the layout, and the second is
compared with the speed of the same four operations alone, in cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

import markovfield as mf
from benchmarks.data import bif_networks, read_network, uai_families
from benchmarks.measure import Table
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.layout_kernel import BLOCK, FACTOR, GATHER, MESSAGE, SCALAR, VARIABLE
from markovfield.inference.junction_tree.propagate import propagate

__all__ = ["run"]

LEAST_LOG2 = 20.0
STREAM_DOUBLES = 2**24
# Passes over a message: collecting writes and reads it; distributing zeroes, reads and writes the parent's sum, then
# reads it and the message and writes the ratio, which the child reads.
MESSAGE_PASSES, COLLECT_PASSES = 8, 3
COLUMNS = (
    "instance", "log2 st.", "space", "execute s", "1 thread s", "ns/state", "slots", "memory GB", "GB/s",
    "of triad", "cache GB/s", "in-cache s", "gathers", "share",
)  # fmt: skip


@numba.njit(nogil=True)
def _triad(a: Any, b: Any, c: Any) -> None:
    for i in range(len(a)):
        a[i] = b[i] + 3.0 * c[i]


@numba.njit(nogil=True, fastmath={"reassoc", "contract"})
def _multiply_stretch(block: Any, source: Any, index: Any, rounds: int) -> None:
    for r in range(rounds):
        at = (r % 8) * len(block)
        stretch = source[at : at + len(block)]
        for j in range(len(block)):
            block[j] *= stretch[j]


@numba.njit(nogil=True, fastmath={"reassoc", "contract"})
def _multiply_gather(block: Any, source: Any, index: Any, rounds: int) -> None:
    for r in range(rounds):
        cells = source[(r % 8) * len(block) :]
        for j in range(len(block)):
            block[j] *= cells[index[j]]


@numba.njit(nogil=True, fastmath={"reassoc", "contract"})
def _add_stretch(block: Any, source: Any, index: Any, rounds: int) -> None:
    for r in range(rounds):
        at = (r % 8) * len(block)
        stretch = source[at : at + len(block)]
        for j in range(len(block)):
            stretch[j] += block[j]


@numba.njit(nogil=True, fastmath={"reassoc", "contract"})
def _add_gather(block: Any, source: Any, index: Any, rounds: int) -> None:
    for r in range(rounds):
        cells = source[(r % 8) * len(block) :]
        for j in range(len(block)):
            cells[index[j]] += block[j]


def triad_bandwidth(threads: int) -> float:
    """Bytes per second of ``a = b + 3 c`` on arrays far larger than the caches (24 a step, as STREAM counts)."""
    arrays = [np.ones(STREAM_DOUBLES) for _ in range(3)]
    parts = list(zip(*(np.array_split(a, threads) for a in arrays), strict=True))
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(8):
            start = time.perf_counter()
            list(pool.map(lambda part: _triad(*part), parts))
            best = max(best, 24 * STREAM_DOUBLES / (time.perf_counter() - start))
    return best


def cache_seconds() -> dict[str, float]:
    """Seconds per cell of the four operations that a pass is made of, one thread, everything in cache.

    Gathers follow runs of eight cells, about what separators look like.
    """
    block, source = np.ones(BLOCK), np.ones(16 * BLOCK)
    index = (np.arange(BLOCK) // 64 * 8 + np.arange(BLOCK) % 8).astype(np.uint32)
    rounds = 20_000
    found = {}
    operations: dict[str, Callable[..., None]] = {
        "multiply stretch": _multiply_stretch,
        "multiply gather": _multiply_gather,
        "add stretch": _add_stretch,
        "add gather": _add_gather,
    }
    for name, operation in operations.items():
        best = np.inf
        operation(block, source, index, 1)
        for _ in range(5):
            block[:], source[:] = 1.0, 1.0
            start = time.perf_counter()
            operation(block, source, index, rounds)
            best = min(best, time.perf_counter() - start)
        found[name] = best / (rounds * BLOCK)
    return found


def _work(result: Any) -> dict[str, float]:
    """Cells that each operation meets in both passes, and the bytes of messages that must go through memory."""
    lay, needed = result.plan.layout, result.needed
    clique = np.repeat(np.arange(len(lay.size)), np.diff(lay.input_offsets))
    size = lay.size.astype(np.float64)
    cells = size[clique]
    # Collecting visits the cliques whose message is not one by structure; distributing visits all.
    collected = needed & (lay.parent >= 0)
    visits = 1.0 + collected[clique]
    is_message = lay.input_kind == MESSAGE
    read = (lay.input_kind == FACTOR) | (is_message & needed[np.where(is_message, lay.input_ref, 0)])
    written = is_message | (lay.input_kind == VARIABLE)
    # Modes that meet a block in runs of cells go about as fast as one stretch.
    gather = lay.input_mode == GATHER
    stretch = (lay.input_mode != SCALAR) & ~gather
    messages = np.diff(lay.message_offset)
    return {
        # Collecting adds every block to the separator, distributing multiplies it by the separator's ratio.
        "multiply stretch": float((cells * visits)[read & stretch].sum() + size[lay.parent >= 0].sum()),
        "multiply gather": float((cells * visits)[read & gather].sum()),
        "add stretch": float(cells[written & stretch].sum() + size[collected].sum()),
        "add gather": float(cells[written & gather].sum()),
        "memory bytes": 8.0 * float(messages @ np.where(needed, MESSAGE_PASSES, MESSAGE_PASSES - COLLECT_PASSES)),
        "slots": float(cells.sum() / max(size.sum(), 1.0)),
    }


def run(max_log2: float, only: list[str] | None = None) -> dict[str, Any]:
    """Run the largest instances on one thread and on all, and put both beside what the machine can do."""
    threads = numba.config.NUMBA_DEFAULT_NUM_THREADS
    triad = {n: triad_bandwidth(n) for n in sorted({1, threads})}
    cell = cache_seconds()
    table = Table("The big cliques against memory bandwidth and caches", COLUMNS, first=19)
    table.note("triad: " + ", ".join(f"{n} thread{'s' * (n > 1)} {b / 1e9:.1f} GB/s" for n, b in triad.items()))
    table.note("in cache, ns a cell: " + ", ".join(f"{k} {1e9 * v:.2f}" for k, v in cell.items()))
    rows = []
    for name, graph, evidence in _instances(only):
        row = _measure(name, graph, evidence, max_log2)
        if row is None:
            continue
        ideal = {k: row["work"][k] * cell[k] for k in cell}
        traffic = row["work"]["memory bytes"]
        touched = 8.0 * sum(row["work"][k] * (2 if "stretch" in k else 2.5) for k in cell)
        alone, rate = row["one thread"], traffic / row["execution"]
        row |= {
            "ideal": sum(ideal.values()),
            "bytes per second": rate,
            "share of triad": rate / triad[threads],
        }
        rows.append(row)
        gathers = (ideal["multiply gather"] + ideal["add gather"]) / sum(ideal.values())
        table.row(
            name, f"{row['log2_states']:.1f}", row["space"], row["execution"], alone,
            1e9 * row["execution"] / 2 ** row["log2_states"], row["work"]["slots"], traffic / 1e9, rate / 1e9,
            f"{100 * row['share of triad']:.0f}%", touched / row["execution"] / 1e9, row["ideal"],
            f"{100 * gathers:.0f}%", f"{100 * row['ideal'] / alone:.0f}%" if row["space"] == "linear" else None,
        )  # fmt: skip
    table.note(
        "memory GB: messages only, up to 8 passes over each; cache GB/s: every operand of every multiply and add."
    )
    table.note(
        "in-cache s: the same cells at the in-cache speeds above, one thread; gathers: their part of it; "
        "share: in-cache s over the one-thread run. The rest is loop control per block (short blocks), messages "
        "and tables that come from the second and third level, conflicts of scattered adds, and memory."
    )
    return {"triad": triad, "cell seconds": cell, "rows": rows, "targets": []}


def _instances(only: list[str] | None) -> Iterator[tuple[str, mf.FactorGraph, Any]]:
    for path in bif_networks(only):
        network = read_network(path)
        yield network.name, network.graph, None
    for instance in uai_families() if only is None else ():
        yield instance.name, mf.io.read_uai(instance.model), mf.io.read_uai_evidence(instance.evidence)


def _measure(name: str, graph: mf.FactorGraph, evidence: Any, max_log2: float) -> dict[str, Any] | None:
    engine = mf.methods.JunctionTree(memory_limit="8GB")
    problem = engine.prepare(graph, Evidence.parse(graph.structure, evidence))
    try:
        plan = engine.plan(problem)
    except MemoryError:
        return None
    if not LEAST_LOG2 <= plan.log2_states <= max_log2:
        return None
    seconds = {}
    for label, jobs in (("execution", None), ("one thread", 1)):
        runs = []
        while len(runs) < 2 or (sum(runs) < 1.0 and len(runs) < 5):
            start = time.perf_counter()
            result = propagate(plan, problem, running=Running(n_jobs=jobs))
            runs.append(time.perf_counter() - start)
        seconds[label] = min(runs)
    space = "log" if result.log_space else "linear"
    return {"instance": name, "log2_states": plan.log2_states, "space": space, "work": _work(result), **seconds}
