"""Engines of lattice simulations: each holds a configuration and random streams, and advances them sweep by sweep.

Checkerboard engines cut the lattice into layers, each with its own streams. On threads, blocks of layers advance by
many half-sweeps at once: a block shrinks by a layer at each end with every half-sweep, since the next needs neighbours
that other blocks have not made yet; then the wedges in between are filled in. Which layers are done together changes
no result.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.kernels.random import streams
from markovfield.lattice.clusters_kernel import (
    advance_wolff,
    apply_shifts,
    draw_shifts,
    join_border,
    join_slab,
    sum_fields,
)
from markovfield.lattice.lattice_model import LatticeModel
from markovfield.lattice.potts_kernel import (
    EXCESS,
    LOGS,
    METROPOLIS,
    WEIGHTS,
    advance_potts,
    measure_layers,
    measure_uniform,
    typewriter_potts,
)
from markovfield.lattice.spins_kernel import advance_spins

__all__ = [
    "Engine",
    "PottsEngine",
    "SpinEngine",
    "SwendsenWangEngine",
    "TypewriterEngine",
    "WolffEngine",
    "advance_layers",
    "together",
]

States = npt.NDArray[np.uint8]
# Threads are used where a sweep has at least this many sites: below, handing out the work costs more than it saves.
THREADED_SITES = 2**16
MOST_LANES = 64
# Products of seven exponentials of this neither overflow nor vanish.
MOST_EXPONENT = 90.0
# Bytes of summed fields that Swendsen-Wang may take.
MOST_SUMS = 2**31


class Engine(Protocol):
    """A configuration that moves on."""

    def advance(self, sweeps: int, every: int, done: int, jobs: int) -> tuple[FloatArray, IntArray]:
        """Make sweeps and measure after every so many of them, ``done`` having been made since the last time.

        Answers the scores ``float64[m]``, less what does not depend on the configuration, and ``int64[m, n_states]``,
        how many sites were in each state.
        """
        ...

    def states(self) -> States:
        """The configuration, ``uint8[n]``; not to be written to."""
        ...


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Threads that stay; a forked process needs its own."""
    return ThreadPoolExecutor(max(1, os.cpu_count() or 1), thread_name_prefix="markovfield-lattice")


def together(tasks: Sequence[Callable[[], Any]], jobs: int) -> None:
    """Run tasks on threads, or one after the other where there is one job; all are finished when this answers."""
    if jobs == 1 or len(tasks) == 1:
        for task in tasks:
            task()
        return
    for future in [_pool(os.getpid()).submit(task) for task in tasks]:
        future.result()


def _phases(layers: int, jobs: int, sweeps: int, done: int) -> Iterator[list[IntArray]]:
    """What to do side by side, step by step, to advance all layers; see `advance_bits` for a span."""
    blocks = min(jobs, layers // 8)
    if blocks < 2:
        yield [np.array([0, layers, 0, 0, 2 * sweeps, done])]
        return
    borders = [layers * b // blocks for b in range(blocks + 1)]
    depth = min(b - a for a, b in itertools.pairwise(borders)) // 4
    while sweeps:
        at_once = min(depth, sweeps)
        ends = itertools.pairwise(borders)
        yield [np.array([a, b, 1, -1, 2 * at_once, done]) for a, b in ends]
        yield [np.array([a, a, -1, 1, 2 * at_once, done]) for a in borders[:-1]]
        sweeps, done = sweeps - at_once, done + at_once


def advance_layers(call: Callable[[IntArray], Any], layers: int, jobs: int, sweeps: int, done: int) -> None:
    """Advance all layers by calls for spans of them."""
    for spans in _phases(layers, jobs, sweeps, done):
        together([partial(call, span) for span in spans], jobs)


def _bundles(rng: np.random.Generator, layers: int, row: int) -> npt.NDArray[np.uint64]:
    """Streams for each layer, ``uint64[layers, 4, lanes]``: as many side by side as a row can use."""
    lanes = min(MOST_LANES, 8 * -(-row // 8))
    return rng.integers(0, 2**64, size=(layers, 4, lanes), dtype=np.uint64)


class SpinEngine:
    """Two states, any couplings and fields, a byte to a spin: checkerboard heat-bath or Metropolis."""

    def __init__(self, lattice: LatticeModel, states: States, rng: np.random.Generator, *, metropolis: bool) -> None:
        self.lattice = lattice
        self._box = np.array(lattice.box)
        self._couplings = lattice.each_coupling() / 2
        middle = lattice.field.mean(axis=1)
        own = (lattice.field[:, 1] - lattice.field[:, 0]) / 2
        self._field = np.ascontiguousarray(np.broadcast_to(own, lattice.n_sites))
        self._constant = float(self._couplings.sum() + np.broadcast_to(middle, lattice.n_sites).sum())
        self._metropolis = np.bool_(metropolis)
        self._streams = _bundles(rng, lattice.box[0], (lattice.box[2] + 1) // 2)
        self._spins = (2 * states.astype(np.int8) - 1).ravel()

    def advance(self, sweeps: int, every: int, done: int, jobs: int) -> tuple[FloatArray, IntArray]:
        layers, measured = self.lattice.box[0], (done + sweeps) // every
        scores, nets = np.zeros((measured, layers)), np.zeros((measured, layers), np.int64)

        def call(span: IntArray) -> None:
            advance_spins(
                self._spins, self._box, self._couplings, self._field, self._streams, self._metropolis, span, every,
                scores, nets,
            )  # fmt: skip

        advance_layers(call, layers, jobs if self.lattice.n_sites >= THREADED_SITES else 1, sweeps, done)
        ups = (self.lattice.n_sites + nets.sum(axis=1)) // 2
        return scores.sum(axis=1) + self._constant, np.stack([self.lattice.n_sites - ups, ups], axis=1)

    def states(self) -> States:
        return (self._spins > 0).astype(np.uint8)


class PottsEngine:
    """Any number of states: checkerboard heat-bath or Metropolis."""

    def __init__(self, lattice: LatticeModel, states: States, rng: np.random.Generator, *, metropolis: bool) -> None:
        self.lattice = lattice
        self._box = np.array(lattice.box)
        self._states = states.ravel().copy()
        self._mode = METROPOLIS if metropolis else LOGS
        self._base, self._factors = np.ones(lattice.n_states), np.ones(3)
        if (
            not metropolis
            and lattice.uniform
            and max(np.abs(lattice.couplings).max(), np.ptp(lattice.field)) < MOST_EXPONENT
        ):
            plain = not lattice.field.any() and (lattice.couplings >= 0).all()
            self._mode = EXCESS if plain else WEIGHTS
            self._base, self._factors = np.exp(lattice.field[0] - lattice.field.max()), np.exp(lattice.couplings[:, 0])
        row = lattice.box[2] if metropolis else (lattice.box[2] + 1) // 2
        self._streams = _bundles(rng, lattice.box[0], row)

    def advance(self, sweeps: int, every: int, done: int, jobs: int) -> tuple[FloatArray, IntArray]:
        lattice, measured = self.lattice, (done + sweeps) // every
        scores = np.zeros((measured, lattice.box[0]))
        tallies = np.zeros((measured, lattice.box[0], lattice.n_states), np.int64)

        def call(span: IntArray) -> None:
            advance_potts(
                self._states, self._box, lattice.ring, lattice.couplings, lattice.field, self._base, self._factors,
                self._streams, self._mode, span, every, scores, tallies,
            )  # fmt: skip

        advance_layers(call, lattice.box[0], jobs if lattice.n_sites >= THREADED_SITES else 1, sweeps, done)
        return scores.sum(axis=1), tallies.sum(axis=1)

    def states(self) -> States:
        return self._states


class _Measured(ABC):
    """Engines that measure a whole configuration between sweeps."""

    def __init__(self, lattice: LatticeModel, states: States) -> None:
        self.lattice = lattice
        self._box = np.array(lattice.box)
        self._states = states.ravel().copy()

    def states(self) -> States:
        return self._states

    def advance(self, sweeps: int, every: int, done: int, jobs: int) -> tuple[FloatArray, IntArray]:
        lattice, measured = self.lattice, (done + sweeps) // every
        jobs = jobs if lattice.n_sites >= THREADED_SITES else 1
        layers = lattice.box[0]
        scores, tallies = np.zeros((measured, layers)), np.zeros((measured, layers, lattice.n_states), np.int64)
        for at in range(measured):
            steps = every - done if at == 0 else every
            self._sweep(steps, jobs)
            sweeps -= steps
            common = (self._states, self._box, lattice.ring, lattice.couplings, lattice.field)
            measure = measure_uniform if lattice.uniform else measure_layers
            together([partial(measure, *common, a, b, at, scores, tallies) for a, b in self._slabs(jobs)], jobs)
        if sweeps:
            self._sweep(sweeps, jobs)
        return scores.sum(axis=1), tallies.sum(axis=1)

    def _slabs(self, jobs: int) -> list[tuple[int, int]]:
        layers = self.lattice.box[0]
        parts = min(jobs, layers)
        return [(layers * p // parts, layers * (p + 1) // parts) for p in range(parts)]

    @abstractmethod
    def _sweep(self, sweeps: int, jobs: int) -> None:
        """So many sweeps, on so many threads."""


class TypewriterEngine(_Measured):
    """Site after site in row order, on one thread: for lattices that no checkerboard fits."""

    def __init__(self, lattice: LatticeModel, states: States, rng: np.random.Generator, *, metropolis: bool) -> None:
        super().__init__(lattice, states)
        self._mode = METROPOLIS if metropolis else LOGS
        self._streams = _bundles(rng, lattice.box[0], 2 * lattice.box[2])

    def _sweep(self, sweeps: int, jobs: int) -> None:
        lattice = self.lattice
        typewriter_potts(
            self._states, self._box, lattice.ring, lattice.couplings, lattice.field, self._streams, self._mode, sweeps
        )


def _bond_thresholds(lattice: LatticeModel) -> npt.NDArray[np.uint64]:
    """The probabilities 1 - exp(-|coupling|) of bonds, times 2^64."""
    if lattice.n_states > 2 and (lattice.couplings < 0).any():
        raise ModelError(
            f"cluster moves need couplings that are not negative where there are more than two states, "
            f"got {lattice.couplings.min():g}: take method='gibbs'"
        )
    scaled = np.minimum(-np.expm1(-np.abs(lattice.couplings)), 1 - 2.0**-53)
    return (scaled * 2.0**64).astype(np.uint64)


class SwendsenWangEngine(_Measured):
    """All clusters of bonds, each moved by itself (Swendsen and Wang 1987)."""

    def __init__(self, lattice: LatticeModel, states: States, rng: np.random.Generator) -> None:
        super().__init__(lattice, states)
        self._thresholds = _bond_thresholds(lattice)
        self._streams = _bundles(rng, lattice.box[0], lattice.box[2])
        n, k = lattice.n_sites, lattice.n_states
        if lattice.field.any() and 8 * n * k > MOST_SUMS:
            raise ModelError(
                f"Swendsen-Wang with a field needs {8 * n * k / 2**30:.1f} GiB for {n} sites of {k} states: "
                "take method='gibbs'"
            )
        self._parent, self._bonds = np.empty(n, np.int32), np.empty(n, np.uint8)
        self._shift = np.empty(n, np.int16)
        self._sums = np.zeros((n, k) if lattice.field.any() else (0, k))

    def _sweep(self, sweeps: int, jobs: int) -> None:
        lattice, slabs = self.lattice, self._slabs(jobs)
        states, box, parent, k = self._states, self._box, self._parent, lattice.n_states
        for _ in range(sweeps):
            drawn = (states, box, lattice.ring, lattice.couplings, self._thresholds, self._streams)
            together([partial(join_slab, *drawn, a, b, parent, self._bonds) for a, b in slabs], jobs)
            for _, b in slabs:
                join_border(box, b - 1, parent, self._bonds)
            if len(self._sums):
                sum_fields(states, parent, lattice.field, self._sums)
            moved = (parent, self._sums, self._streams)
            together([partial(draw_shifts, box, k, *moved, a, b, self._shift) for a, b in slabs], jobs)
            together([partial(apply_shifts, states, box, k, parent, self._shift, a, b) for a, b in slabs], jobs)


class WolffEngine(_Measured):
    """One cluster at a time, grown from a random site (Wolff 1989), on one thread."""

    def __init__(self, lattice: LatticeModel, states: States, rng: np.random.Generator, *, clusters: int) -> None:
        super().__init__(lattice, states)
        self._thresholds = _bond_thresholds(lattice)
        self._clusters = clusters
        self._stream = streams(rng, 1)[0]
        self._mark, self._stack = np.zeros(lattice.n_sites + 1, np.int32), np.empty(lattice.n_sites, np.int32)

    def _sweep(self, sweeps: int, jobs: int) -> None:
        lattice = self.lattice
        for _ in range(sweeps):
            if self._mark[-1] > 2**31 - 2 - self._clusters:
                self._mark[:] = 0
            advance_wolff(
                self._states, self._box, lattice.ring, lattice.couplings, self._thresholds, lattice.field, self._stream,
                self._clusters, self._mark, self._stack,
            )  # fmt: skip
