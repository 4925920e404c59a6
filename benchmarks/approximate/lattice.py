"""Spin updates per nanosecond on lattices: packed bits, bytes, Potts states and clusters, with the bounds beside them.

``python -m benchmarks.approximate.lattice`` (``--quick`` for half a minute). Every number is the fastest of repeated
runs: the kernels are bound by arithmetic, and what is slower was shared with something else. One thread is timed by its
own processor time, several by the clock on the wall. The peer is what one would write with NumPy: a checkerboard update
of whole arrays.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.exact.bandwidth import triad_bandwidth
from benchmarks.measure import Policy, Table, machine, measure, save
from markovfield.lattice.bits import BitEngine
from markovfield.lattice.bits_kernel import BITS, WORDS
from markovfield.lattice.engines import PottsEngine, SpinEngine, SwendsenWangEngine, WolffEngine
from markovfield.lattice.lattice_model import lattice_model
from markovfield.lattice.onsager import critical_coupling
from markovfield.lattice.random_kernel import next_word
from markovfield.models.ising import Ising
from markovfield.models.potts import Potts

TARGET = 5.0
RUN_SECONDS = 0.005
GENERATOR = "xoshiro256++"
# Bytes that a word of 64 spins moves in an update if nothing is left in the caches: its stream is read and written
# (four words), so are its own spins, and the other colour is read.
WORD_BYTES = 8 * (2 * 4 + 2 + 1)


@numba.njit(nogil=True, error_model="numpy")
def _draw_only(streams: Any, out: Any, layers: int) -> None:
    """As many random words as an update of these layers draws, and nothing else."""
    for g in range(layers):
        s = streams[4 * WORDS * g : 4 * WORDS * (g + 1)]
        for w in range(WORDS):
            a, b, c, d = s[w], s[WORDS + w], s[2 * WORDS + w], s[3 * WORDS + w]
            x = np.uint64(0)
            for _ in range(BITS):
                r, a, b, c, d = next_word(a, b, c, d)
                x ^= r
            s[w], s[WORDS + w], s[2 * WORDS + w], s[3 * WORDS + w] = a, b, c, d
            out[w] = x


def _fastest(task: Callable[[], Any], policy: Policy, clock: Callable[[], float] = time.thread_time) -> float:
    """Seconds of the fastest run; on one thread by its own processor time, which others on the machine do not enter."""

    def once() -> tuple[float]:
        started = clock()
        task()
        return (clock() - started,)

    once()
    return measure(("seconds",), once, policy).least("seconds")


def _rate(engine: Any, sites: int, threads: int, policy: Policy, *, measured: bool = False) -> float:
    """Updates per nanosecond. A run takes some milliseconds, so that a shared machine leaves some undisturbed."""
    engine.advance(2, 1, 0, threads)
    first = time.perf_counter()
    engine.advance(2, 3, 0, threads)
    sweeps = max(2, int(RUN_SECONDS / max(time.perf_counter() - first, 1e-6)) * 2)
    every = 1 if measured else sweeps + 1
    clock = time.thread_time if threads == 1 else time.perf_counter
    return sweeps * sites / _fastest(lambda: engine.advance(sweeps, every, 0, threads), policy, clock) / 1e9


def _states(lattice: Any, rng: np.random.Generator) -> Any:
    return rng.integers(0, lattice.n_states, size=lattice.shape, dtype=np.uint8)


def packed(sides: tuple[int, ...], threads: int, policy: Policy) -> list[dict[str, Any]]:
    """Packed bits at the critical coupling, on one thread and on all."""
    title = f"Packed 2-d Ising, heat-bath: updates per ns on 1 and {threads} threads"
    headers = ("lattice", "model", "1 thread", f"{threads} thr.", "measured", "draws", "bound", "of bound", "target")
    table = Table(title, headers, first=12, second=22)
    rng, critical, rows = np.random.default_rng(0), critical_coupling(), []
    triad = triad_bandwidth(threads)
    for side in sides:
        models = {
            "periodic": Ising((side, side), critical, periodic=True),
            "free": Ising((side, side), critical),
            "periodic, field": Ising((side, side), critical, 0.1, periodic=True),
            "periodic, two couplings": Ising((side, side), (0.5, 0.4), periodic=True),
        }
        draws = _generator_seconds(side, policy)
        for name, model in models.items():
            lattice = lattice_model(model)
            engine = BitEngine(lattice, _states(lattice, rng), rng, metropolis=False)
            one, all_threads = (_rate(engine, side * side, n, policy) for n in (1, threads))
            with_record = _rate(engine, side * side, threads, policy, measured=True)
            bound = triad / WORD_BYTES * 64 / 1e9
            row = {
                "side": side, "model": name, "one": one, "all": all_threads, "measured": with_record,
                "generator share": draws * one, "bandwidth bound": bound, "met": all_threads >= TARGET,
            }  # fmt: skip
            rows.append(row)
            table.row(
                f"{side} x {side}", name, one, all_threads, with_record, f"{100 * row['generator share']:.0f}%", bound,
                f"{100 * all_threads / bound:.0f}%", "met" if row["met"] else "MISSED",
            )  # fmt: skip
    table.note(f"draws: {GENERATOR}, {BITS} words for 64 spins: their time alone over that of a sweep on one thread.")
    table.note(
        f"bound: triad ({triad / 1e9:.1f} GB/s) over {WORD_BYTES / 64:.2f} bytes an update, were nothing in the "
        f"caches; measured: with energy and magnetisation of every sweep. Target: {TARGET:g} on two threads."
    )
    return rows


def _generator_seconds(side: int, policy: Policy) -> float:
    """Nanoseconds for each update that drawing takes by itself."""
    layers = side * side // 2 // 64 // WORDS
    streams = np.random.default_rng(0).integers(0, 2**64, size=4 * WORDS * layers, dtype=np.uint64)
    out = np.zeros(WORDS, np.uint64)
    return 1e9 * _fastest(lambda: _draw_only(streams, out, layers), policy) / (layers * WORDS * 64)


def _numpy_sweep(spins: Any, white: Any, chances: Any, rng: np.random.Generator) -> None:
    """The obvious peer: both colours of a periodic lattice as whole arrays."""
    for colour in (white, ~white):
        around = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
        up = rng.random(spins.shape, np.float32) < chances[around + 4]
        np.copyto(spins, np.where(up, np.int8(1), np.int8(-1)), where=colour)


def others(side: int, threads: int, policy: Policy) -> list[dict[str, Any]]:
    """Bytes to a spin, Potts states, clusters, and NumPy."""
    title = f"Other models on {side} x {side}, periodic, critical: updates per ns"
    table = Table(title, ("model", "1 thread", f"{threads} threads", "ms a sweep"), first=44)
    rng, critical = np.random.default_rng(0), critical_coupling()
    ising, potts = (
        Ising((side, side), critical, periodic=True),
        Potts((side, side), 10, critical_coupling(10), periodic=True),
    )
    lattices = {"ising": lattice_model(ising), "potts": lattice_model(potts)}
    cube = round(side ** (2 / 3) / 2) * 2
    lattices["cube"] = lattice_model(Ising((cube, cube, cube), 0.2216544, periodic=True))
    lattices["field"] = lattice_model(
        Potts((side, side), 10, critical_coupling(10), np.arange(10) / 100, periodic=True)
    )

    def made(kind: Any, name: str, **settings: Any) -> Any:
        return kind(lattices[name], _states(lattices[name], rng), rng, **settings)

    engines = {
        "Ising, packed bits, heat-bath": made(BitEngine, "ising", metropolis=False),
        "Ising, packed bits, Metropolis": made(BitEngine, "ising", metropolis=True),
        "Ising, bytes, heat-bath": made(SpinEngine, "ising", metropolis=False),
        f"Ising, bytes, heat-bath, {cube}^3": made(SpinEngine, "cube", metropolis=False),
        "Ising, Swendsen-Wang": made(SwendsenWangEngine, "ising"),
        "Potts K = 10, heat-bath": made(PottsEngine, "potts", metropolis=False),
        "Potts K = 10 with a field, heat-bath": made(PottsEngine, "field", metropolis=False),
        "Potts K = 10, Metropolis": made(PottsEngine, "potts", metropolis=True),
        "Potts K = 10, Swendsen-Wang": made(SwendsenWangEngine, "potts"),
    }
    rows = []
    for name, engine in engines.items():
        sites = engine.lattice.n_sites
        one, all_threads = (_rate(engine, sites, n, policy) for n in (1, threads))
        table.row(name, one, all_threads, 1e-6 * sites / all_threads)
        rows.append({"model": name, "sites": sites, "one": one, "all": all_threads})
    spins = (2 * _states(lattices["ising"], rng).astype(np.int8) - 1).reshape(side, side)
    white = np.add.outer(np.arange(side), np.arange(side)) % 2 == 0
    chances = (1 / (1 + np.exp(-2 * critical * np.arange(-4, 5)))).astype(np.float32)
    peer = side * side / _fastest(lambda: _numpy_sweep(spins, white, chances, rng), policy) / 1e9
    table.row("Ising, NumPy checkerboard (the peer)", peer, None, 1e-6 * side * side / peer)
    packed_rate = rows[0]["one"]
    faster = packed_rate / peer, rows[2]["one"] / peer
    table.note(f"packed bits are {faster[0]:,.0f} times as fast as NumPy on one thread, bytes {faster[1]:.0f} times.")
    settled = made(SwendsenWangEngine, "ising")
    settled.advance(100, 1000, 0, threads)
    wolff = WolffEngine(lattices["ising"], settled.states(), rng, clusters=1)
    wolff.advance(10, 1000, 0, 1)
    before = time.thread_time()
    wolff.advance(200, 1000, 0, 1)
    seconds = (time.thread_time() - before) / 200
    table.note(f"Wolff: {1e3 * seconds:.2f} ms a cluster at the critical coupling")
    rows.append({"model": "NumPy", "sites": side * side, "one": peer})
    return rows


def main() -> None:
    """Everything, or with ``--quick`` the smaller lattice only."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1024 x 1024 only, fewer runs")
    options = parser.parse_args()
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, load {about['load'][0]:.1f}")
    policy = Policy(repeats=5, least=0.3, most=3.0) if options.quick else Policy(repeats=10, least=1.0, most=10.0)
    threads = min(2, numba.config.NUMBA_DEFAULT_NUM_THREADS)
    sides = (1024,) if options.quick else (1024, 4096)
    results = {"machine": about, "packed": packed(sides, threads, policy), "others": others(1024, threads, policy)}
    print(f"written to {save('lattice', results)}")


if __name__ == "__main__":
    main()
