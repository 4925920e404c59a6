"""Simulations of Ising and Potts models on lattices: states that move on, with energy and magnetisation as they go."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.running import Progress, Running
from markovfield.kernels.compilations import clock
from markovfield.lattice.averages import lattice_average
from markovfield.lattice.bits import BitEngine
from markovfield.lattice.clusters_kernel import label_regions
from markovfield.lattice.engines import (
    Engine,
    PottsEngine,
    SpinEngine,
    SwendsenWangEngine,
    TypewriterEngine,
    WolffEngine,
)
from markovfield.lattice.lattice_model import LatticeModel, lattice_model, suited_method
from markovfield.progress import shows_progress

__all__ = ["LatticeRecord", "LatticeSimulation"]

METHODS = ("auto", "gibbs", "metropolis", "swendsen_wang", "wolff")
SCANS = ("checkerboard", "typewriter")
SERIES = ("sweep", "score", "energy", "magnetisation")
# Sweeps of one step, so that stopping, time limits and callbacks come soon after they are asked for.
STEP_SECONDS = 0.1
# Numbers a step may measure, counted with all layers and states.
STEP_NUMBERS = 2**21


@cache
def _coordinator(process: int) -> ThreadPoolExecutor:
    """A thread that steps run on: Ctrl-C interrupts the main thread only, so a step is made wholly or not at all."""
    return ThreadPoolExecutor(1, thread_name_prefix="markovfield-simulation")


@dataclass(frozen=True, eq=False)
class LatticeRecord(Tabular):
    """What a simulation measured; entry t of every array is of the same moment.

    Attributes
    ----------
    sweep
        ``int64[t]``: sweeps made since the simulation began.
    score
        ``float64[t]``: the sum of log-potentials, as everywhere in the library.
    energy
        ``float64[t]``: minus the score, for each site. The couplings have the temperature in them, so this is the
        physicists' energy over temperature.
    magnetisation
        ``float64[t]``: of Ising models the mean spin; of Potts models (K f - 1) / (K - 1), f being the share of the
        commonest state: zero where all are equally common, one where there is one only.
    complete
        Whether all sweeps that were asked for were made.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.models.ising import Ising
    >>> record = LatticeSimulation(Ising((16, 16), 0.3, periodic=True), rng=0).run(400)
    >>> len(record), bool(record.standard_error("energy") < 0.02)
    (400, True)
    """

    sweep: npt.NDArray[np.int64]
    score: FloatArray
    energy: FloatArray
    magnetisation: FloatArray
    complete: bool = True

    def __len__(self) -> int:
        return len(self.sweep)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {name: getattr(self, name)[:limit] for name in ("sweep", "energy", "magnetisation")}

    def __repr__(self) -> str:
        return f"LatticeRecord({len(self)} measurements)"

    def mean(self, what: str = "energy") -> float:
        """Mean of one of the series; nan where nothing was measured."""
        series = self._series(what)
        return float(series.mean()) if len(series) else float("nan")

    def standard_error(self, what: str = "energy") -> float:
        """Standard error of that mean, by the series' autocorrelation time, and by its drift where there is any.

        Where energy and magnetisation have not both converged, it is by the longest time that any of them shows. One
        run cannot tell all the same whether it rests where it should not: near a critical point compare a random start
        with a cold one, as `mf.lattice.measure` and the command line do.
        """
        found = lattice_average([self._series(what)])
        others = [lattice_average([x]) for x in (self.energy, np.abs(self.magnetisation))]
        if all(other.converged for other in others):
            return found.standard_error
        fewest = min(other.effective_sample_size for other in others)
        return found.standard_error * max(1.0, found.effective_sample_size / fewest) ** 0.5

    def after(self, sweep: int) -> LatticeRecord:
        """What was measured after so many sweeps: the record without its burn-in."""
        kept = self.sweep > sweep
        return replace(self, **{name: getattr(self, name)[kept] for name in SERIES})

    def _series(self, what: str) -> FloatArray:
        if what not in SERIES:
            raise ModelError(f"a LatticeRecord has the series {', '.join(SERIES)}, got {what!r}")
        return np.asarray(getattr(self, what), np.float64)


class LatticeSimulation(Tabular):
    """An Ising or Potts model on a lattice, moved on sweep by sweep.

    Parameters
    ----------
    model
        An `Ising` or `Potts` model given by a lattice's shape; at most 255 states.
    method
        ``"auto"`` moves clusters from near the critical coupling on, where single sites take far too long to forget
        how they started, and is ``"gibbs"`` otherwise, on lattices of more than four million sites, and where signs of
        couplings or fields differ between sites. ``"gibbs"`` (heat-bath) and ``"metropolis"`` (which makes a move that
        costs nothing with probability 15/16) update single sites: name one of them to watch its dynamics.
        ``"swendsen_wang"`` moves all clusters in a sweep and ``"wolff"`` one (or ``wolff_clusters``).
    scan
        Order of single-site updates. ``"checkerboard"`` needs periodic axes of even length; ``"typewriter"`` (row
        order) takes any, on one thread and more slowly.
    wolff_clusters
        Clusters of a sweep.
    rng
        A seed, a generator or None.
    n_jobs
        Threads; None is all cores. Results do not depend on it: random streams belong to layers of the lattice.
    start
        ``"random"``, ``"cold"`` (all spins up, or all states zero), or an array of the lattice's shape to go on from.

    Notes
    -----
    Two-dimensional Ising models of uniform coupling and field run on packed bits, 64 spins to a word, at more than ten
    updates a nanosecond on two cores; see `BitEngine` for which. Other Ising models take a byte to a spin, and Potts
    models a byte to a site. A sweep of Swendsen-Wang costs some tens of nanoseconds a site. Memory: one bit, or a
    byte and, where couplings differ by edge or fields by site, eight bytes for each number; streams are 2 KiB for each
    layer.

    Ctrl-C stops between steps of about 0.1 s: the state is then that of a whole number of sweeps, `sweeps` says of
    which, and `record` has everything measured until then.

    Examples
    --------
    >>> from markovfield.models.ising import Ising
    >>> simulation = LatticeSimulation(Ising((64, 64), coupling=0.5, periodic=True), rng=0, start="cold")
    >>> record = simulation.run(200)
    >>> bool(abs(record.mean("energy") - (-0.8728)) < 0.02), simulation.state.shape, simulation.sweeps
    (True, (64, 64), 200)
    """

    def __init__(
        self,
        model: Any,
        *,
        method: str = "auto",
        scan: str = "checkerboard",
        wolff_clusters: int = 1,
        rng: int | np.random.Generator | None = None,
        n_jobs: int | None = None,
        start: str | npt.ArrayLike = "random",
    ) -> None:
        if method not in METHODS:
            raise ModelError(f"LatticeSimulation(method=...) must be one of {', '.join(METHODS)}, got {method!r}")
        if scan not in SCANS:
            raise ModelError(f"LatticeSimulation(scan=...) must be 'checkerboard' or 'typewriter', got {scan!r}")
        wolff_clusters = whole_number(wolff_clusters, "LatticeSimulation(wolff_clusters=...)", 1)
        self._jobs = Running(n_jobs).n_jobs or os.cpu_count() or 1
        self._lattice = lattice_model(model)
        if method == "auto":
            method = "gibbs" if scan == "typewriter" else suited_method(self._lattice)
        self.model, self.method, self.scan = model, method, scan
        generator = generator_of(rng)
        states = _start(self._lattice, start, generator)
        self._engine = _engine(self._lattice, states, generator, method, scan, wolff_clusters)
        self.sweeps = 0
        self._since = 0
        self._every = 0
        self._step = 1
        self._parts: list[tuple[npt.NDArray[np.int64], FloatArray, FloatArray]] = []

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return self.record._columns(limit)

    def __repr__(self) -> str:
        size = " x ".join(str(n) for n in self._lattice.shape)
        return f"LatticeSimulation({size} sites, {self._lattice.n_states} states, {self.method}, {self.sweeps} sweeps)"

    @property
    def engine(self) -> str:
        """What does the work: ``"BitEngine"`` where spins are packed 64 to a word."""
        return type(self._engine).__name__

    @property
    def state(self) -> npt.NDArray[Any]:
        """The configuration in the lattice's shape: spins (``int8``) or states from zero (``int32``)."""
        states = self._engine.states().reshape(self._lattice.shape)
        if self._lattice.spins is None:
            return states.astype(np.int32)
        return np.array(self._lattice.spins, np.int8)[states]

    @property
    def record(self) -> LatticeRecord:
        """Everything measured so far, over all runs."""
        return self._record(0)

    @shows_progress
    def run(
        self,
        sweeps: int,
        *,
        burn_in: int = 0,
        measure_every: int = 1,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        progress: bool = False,
    ) -> LatticeRecord:
        """Make sweeps, measuring after every so many.

        Parameters
        ----------
        sweeps
            How many.
        burn_in
            Sweeps to make before these without measuring.
        measure_every
            Sweeps between measurements, the first of which is after as many.
        time_limit
            Seconds, after which it stops with what it has.
        callback
            Called between steps of about 0.1 s with a `Progress` (sweeps made, seconds, last energy); a true answer
            stops.
        progress
            Show a line that tells how it goes, in a terminal or a notebook.

        Returns
        -------
        LatticeRecord
            What this run measured; `record` has all runs.
        """
        sweeps = whole_number(sweeps, "run(sweeps)", 0)
        burn_in = whole_number(burn_in, "run(burn_in=...)", 0)
        measure_every = whole_number(measure_every, "run(measure_every=...)", 1)
        running = Running(time_limit=time_limit, callback=callback)
        first, starts = len(self._parts), self.sweeps + burn_in
        goal = starts + sweeps
        # Nothing is measured before as many sweeps as a burn-in has.
        self._since, self._every = 0, burn_in + 1 if burn_in else measure_every
        while self.sweeps < goal:
            if self.sweeps == starts:
                self._since, self._every = 0, measure_every
            self._make_step(min(self._step, (starts if self.sweeps < starts else goal) - self.sweeps))
            if not running.still:
                break
            last = self._parts[-1][1] if self._parts else np.zeros(0)
            value = -float(last[-1]) / self._lattice.n_sites if len(last) else None
            if callback is not None and callback(Progress(self.sweeps, clock() - running.started, value)):
                break
        return self._record(first, self.sweeps == goal)

    def frames(self, n: int, every: int = 1) -> Iterator[npt.NDArray[Any]]:
        """The state now and after every so many sweeps, n in all: the frames of an animation.

        Examples
        --------
        >>> from markovfield.models.potts import Potts
        >>> simulation = LatticeSimulation(Potts((8, 8), 3, 1.0), rng=0)
        >>> [frame.shape for frame in simulation.frames(2, every=5)], simulation.sweeps
        ([(8, 8), (8, 8)], 5)
        """
        n, every = whole_number(n, "frames(n)", 0), whole_number(every, "frames(every=...)", 1)
        for t in range(n):
            if t:
                self.run(every, measure_every=every)
            yield self.state

    def clusters(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Connected regions of equal states: the number of each site's region, and how many sites each has.

        Regions are numbered from zero in the order of their first sites; ``sizes[labels]`` colours by size (Murphy
        figure 19.8).

        Examples
        --------
        >>> from markovfield.models.ising import Ising
        >>> start = [[1, 1, -1], [-1, -1, -1]]
        >>> labels, sizes = LatticeSimulation(Ising((2, 3), 1.0), start=start).clusters()
        >>> labels.tolist(), sizes.tolist()
        ([[0, 0, 1], [1, 1, 1]], [2, 4])
        """
        roots = np.empty(self._lattice.n_sites, np.int32)
        label_regions(self._engine.states(), np.array(self._lattice.box), self._lattice.ring, roots)
        _, labels, sizes = np.unique(roots, return_inverse=True, return_counts=True)
        return labels.reshape(self._lattice.shape).astype(np.int32), sizes.astype(np.int64)

    # ---- steps ----------------------------------------------------------------------------------------------

    def _make_step(self, sweeps: int) -> None:
        """Sweeps and their measurements, all or none: an interrupt is put off until they are made."""
        made: Future[None] = _coordinator(os.getpid()).submit(partial(self._advance, sweeps))
        interrupted = False
        while not made.done():
            try:
                wait([made])
            except KeyboardInterrupt:
                interrupted = True
        made.result()
        if interrupted:
            raise KeyboardInterrupt

    def _advance(self, sweeps: int) -> None:
        started = clock()
        before = self._every - self._since
        scores, tallies = self._engine.advance(sweeps, self._every, self._since, self._jobs)
        when = self.sweeps + before + self._every * np.arange(len(scores))
        self._parts.append((when, scores + self._lattice.offset, _magnetisation(self._lattice, tallies)))
        self.sweeps += sweeps
        self._since = (self._since + sweeps) % self._every
        seconds = max(clock() - started, 1e-9)
        # Steps grow to what fits the time: at most twofold, since the first ones may have compiled.
        wanted = int(sweeps * min(STEP_SECONDS / seconds, 2.0 if sweeps >= self._step else 1.0))
        most = max(1, STEP_NUMBERS // (self._lattice.box[0] * self._lattice.n_states)) * self._every
        self._step = max(1, min(max(wanted, self._step if sweeps < self._step else 1), most))

    def _record(self, first: int, complete: bool = True) -> LatticeRecord:
        parts = self._parts[first:]
        if not parts:
            return LatticeRecord(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), complete)
        sweep, score, magnetisation = (np.concatenate(column) for column in zip(*parts, strict=True))
        return LatticeRecord(sweep, score, -score / self._lattice.n_sites, magnetisation, complete)


def _magnetisation(lattice: LatticeModel, tallies: npt.NDArray[np.int64]) -> FloatArray:
    if lattice.spins is not None:
        return np.asarray(tallies @ np.array(lattice.spins, np.float64) / lattice.n_sites)
    share = tallies.max(axis=1, initial=0) / lattice.n_sites
    return np.asarray((lattice.n_states * share - 1) / (lattice.n_states - 1))


def _start(lattice: LatticeModel, start: str | npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """The first configuration as states."""
    if isinstance(start, str):
        if start == "random":
            return rng.integers(0, lattice.n_states, size=lattice.shape, dtype=np.uint8)
        if start == "cold":
            return np.full(lattice.shape, 0 if lattice.spins is None else 1, np.uint8)
        raise ModelError(f"LatticeSimulation(start=...) must be 'random', 'cold' or an array, got {start!r}")
    given = np.asarray(start)
    if given.shape != lattice.shape:
        raise ModelError(f"LatticeSimulation(start=...) needs the shape {lattice.shape}, got {given.shape}")
    known = np.arange(lattice.n_states) if lattice.spins is None else np.array(lattice.spins)
    strange = ~np.isin(given, known)
    if strange.any():
        told = f"spins {known[0]} and {known[1]}" if lattice.spins else f"states 0 to {lattice.n_states - 1}"
        raise ModelError(f"LatticeSimulation(start=...) needs {told}, got {given[strange].flat[0]}")
    return np.searchsorted(known, given).astype(np.uint8)


def _engine(
    lattice: LatticeModel,
    states: npt.NDArray[np.uint8],
    rng: np.random.Generator,
    method: str,
    scan: str,
    clusters: int,
) -> Engine:
    if method == "swendsen_wang":
        return SwendsenWangEngine(lattice, states, rng)
    if method == "wolff":
        return WolffEngine(lattice, states, rng, clusters=clusters)
    metropolis = method == "metropolis"
    if scan == "typewriter":
        return TypewriterEngine(lattice, states, rng, metropolis=metropolis)
    for axis, (length, periodic) in enumerate(zip(lattice.shape, lattice.periodic, strict=True)):
        if periodic and length % 2:
            raise ModelError(
                f"a checkerboard needs periodic axes of even length, but axis {axis} has {length} sites: take an even "
                "length, a free boundary, scan='typewriter' or method='swendsen_wang'"
            )
    if BitEngine.takes(lattice, metropolis=metropolis):
        return BitEngine(lattice, states, rng, metropolis=metropolis)
    if lattice.n_states == 2:
        return SpinEngine(lattice, states, rng, metropolis=metropolis)
    return PottsEngine(lattice, states, rng, metropolis=metropolis)
