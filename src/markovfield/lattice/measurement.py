"""Measurements of lattices: runs from opposed starts, a burn-in that is checked, and errors that count both."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield._validation import generator_of, whole_number
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.diagnostics import LEAST_STEPS
from markovfield.inference.core.running import Progress, Running
from markovfield.kernels.compilations import clock
from markovfield.lattice.averages import LatticeAverage, lattice_quantities
from markovfield.lattice.simulation import LatticeRecord, LatticeSimulation
from markovfield.progress import shows_progress

__all__ = ["LatticeMeasurement", "default_sweeps", "measure"]

STARTS = ("random", "cold")
# Turns that runs take, so that all have measured as much when the time is up.
TURNS = 10
# Sweeps by default: as many as these site updates make, between a least and a most.
CLUSTER_UPDATES, CLUSTER_SWEEPS = 2**27, (100, 1000)
SINGLE_UPDATES, SINGLE_SWEEPS = 2**29, (1000, 10_000)
# Shares of a run that may be its burn-in, the later ones where runs have not come together by the first.
BURN_INS = (5, 2)
CLUSTERS = ("swendsen_wang", "wolff")
# What says whether runs have forgotten their starts.
WATCHED = {"energy": "the energy", "magnetisation": "the magnetisation"}


@dataclass(frozen=True, eq=False, repr=False)
class LatticeMeasurement(Tabular):
    """What runs of one lattice have measured, each quantity with its standard error.

    Attributes
    ----------
    energy
        Minus the score, for each site: the physicists' energy over temperature.
    magnetisation
        Its absolute value; see `LatticeRecord`.
    specific_heat
        For each site: n (<e^2> - <e>^2) with e the energy above, which is that over Boltzmann's constant.
    susceptibility
        n (<m^2> - <abs m>^2), per unit of the field as it stands in the log-potentials (divide by the temperature for
        that of a field over temperature).
    binder_cumulant
        1 - <m^4> / (3 <m^2>^2): 2/3 in an ordered lattice, near 0 in a large disordered one.
    converged, doubts
        Whether runs from different starts agree and have measured enough, and sentences on what is wrong if not.
    method, sweeps, burn_in
        How sites were moved, sweeps of each run with its burn-in, and sweeps that were thrown away at its start.
    complete
        Whether all sweeps that were asked for were made.
    simulations, records
        The runs, which may go on, and what each has measured after its burn-in.
    """

    energy: LatticeAverage
    magnetisation: LatticeAverage
    specific_heat: LatticeAverage
    susceptibility: LatticeAverage
    binder_cumulant: LatticeAverage
    converged: bool
    doubts: tuple[str, ...]
    method: str
    sweeps: int
    burn_in: int
    complete: bool
    simulations: tuple[LatticeSimulation, ...]
    records: tuple[LatticeRecord, ...]

    @property
    def quantities(self) -> dict[str, LatticeAverage]:
        """All that was measured, by name."""
        names = ("energy", "magnetisation", "specific_heat", "susceptibility", "binder_cumulant")
        return {name: getattr(self, name) for name in names}

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        shown = dict(list(self.quantities.items())[:limit])
        columns = {name: [getattr(a, name) for a in shown.values()] for name in LatticeAverage._row}
        return {"quantity": list(shown), **columns}

    def __repr__(self) -> str:
        told = f"{len(self.records)} runs of {self.sweeps} sweeps of {self.method}, {self.burn_in} of them burn-in"
        lines = [f"  {name:<16} {average!r}" for name, average in self.quantities.items()]
        return "\n".join([f"LatticeMeasurement({told})", *lines, *(f"  in doubt: {doubt}" for doubt in self.doubts)])


def default_sweeps(method: str, n_sites: int) -> int:
    """Sweeps of each run where none are asked for: some seconds' worth at most, by the number of sites alone.

    Examples
    --------
    >>> default_sweeps("swendsen_wang", 64 * 64), default_sweeps("swendsen_wang", 512 * 512)
    (1000, 512)
    """
    clusters = method in CLUSTERS
    updates, (least, most) = (CLUSTER_UPDATES, CLUSTER_SWEEPS) if clusters else (SINGLE_UPDATES, SINGLE_SWEEPS)
    return max(least, min(most, updates // n_sites))


@shows_progress
def measure(
    model: Any,
    *,
    method: str = "auto",
    sweeps: int | None = None,
    burn_in: int | None = None,
    starts: Sequence[Any] = STARTS,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: bool = False,
) -> LatticeMeasurement:
    """Energy, magnetisation, specific heat, susceptibility and Binder's cumulant of a lattice, with standard errors.

    Runs from opposed starts have to come together: where they have not, errors count what they differ by, a
    ``ConvergenceWarning`` is issued and `LatticeMeasurement.doubts` say what is wrong.

    Parameters
    ----------
    model
        An `Ising` or `Potts` model given by a lattice's shape.
    method
        As for `LatticeSimulation`: ``"auto"`` moves clusters from near the critical coupling on.
    sweeps
        Sweeps of each run, burn-in included; None is a number by the size of the lattice that takes some seconds at
        most (`default_sweeps`).
    burn_in
        Sweeps thrown away at the start of each run. None is a fifth, or a half where runs have not come together by
        then.
    starts
        One run for each: ``"random"``, ``"cold"``, or an array.
    rng, n_jobs
        As for `LatticeSimulation`.
    time_limit, callback
        Seconds for all runs, and a function of a `Progress` whose true answer stops; what was measured until then is
        the answer. Ctrl-C does the same to the command line; here it is raised.
    progress
        Show a line that tells how it goes, in a terminal or a notebook.

    Examples
    --------
    >>> import markovfield as mf
    >>> found = mf.lattice.measure(mf.Ising((32, 32), mf.lattice.critical_coupling(), periodic=True), rng=0)
    >>> exact = mf.lattice.torus_energy((32, 32), mf.lattice.critical_coupling())
    >>> found.method, found.converged, abs(found.energy.mean - exact) < 5 * found.energy.standard_error
    ('swendsen_wang', True, True)
    """
    if isinstance(starts, str) or not isinstance(starts, Sequence) or not len(starts):
        raise ModelError(f"measure(starts=...) must be a list of starts, like ['random', 'cold'], got {starts!r}")
    generator, running = generator_of(rng), Running(n_jobs, time_limit, callback)
    runs = [LatticeSimulation(model, method=method, rng=generator, n_jobs=n_jobs, start=start) for start in starts]
    n_sites, method = runs[0].state.size, runs[0].method
    sweeps = default_sweeps(method, n_sites) if sweeps is None else whole_number(sweeps, "measure(sweeps=...)", 5)
    if burn_in is not None and whole_number(burn_in, "measure(burn_in=...)", 0) > sweeps - LEAST_STEPS:
        raise ModelError(f"measure(burn_in=...) of {burn_in} leaves less than {LEAST_STEPS} of {sweeps} sweeps")
    advance(runs, sweeps, running)
    found = summary(runs, burn_in, complete=all(run.sweeps == sweeps for run in runs))
    if not found.converged:
        warn(found)
    return found


def advance(runs: Sequence[LatticeSimulation], sweeps: int, running: Running) -> None:
    """Make sweeps of each run, in turns, until time is up or the callback says so."""
    stopped = False

    def told(progress: Progress) -> bool | None:
        nonlocal stopped
        stopped = running.callback is not None and bool(running.callback(progress))
        return stopped

    for n in np.diff(np.linspace(0, sweeps, TURNS + 1).astype(int)).tolist():
        for run in runs:
            if stopped or not running.still:
                return
            limit = running.time_limit
            left = None if limit is None else max(1e-3, limit - (clock() - running.started))
            run.run(n, time_limit=left, callback=told)


def summary(runs: Sequence[LatticeSimulation], burn_in: int | None, *, complete: bool = True) -> LatticeMeasurement:
    """What runs have measured, without a burn-in of so many sweeps, or one that is found to do."""
    records = [run.record for run in runs]
    # Stopped early, one of them may have measured nothing yet.
    records = [record for record in records if len(record) > LEAST_STEPS] or records[:1]
    sweeps = min(len(record) for record in records)
    if sweeps < LEAST_STEPS:
        raise ModelError(f"a measurement needs at least {LEAST_STEPS} sweeps, and stopped after {sweeps}")
    for wanted in [sweeps // share for share in BURN_INS] if burn_in is None else [burn_in]:
        thrown_away = min(wanted, sweeps - LEAST_STEPS)
        kept = [record.after(thrown_away) for record in records]
        found = lattice_quantities(kept, runs[0].state.size)
        if all(found[name].converged for name in WATCHED):
            break
    doubts = _doubts(found, runs[0].method)
    return LatticeMeasurement(
        **found,
        converged=not doubts,
        doubts=doubts,
        method=runs[0].method,
        sweeps=sweeps,
        burn_in=thrown_away,
        complete=complete,
        simulations=tuple(runs),
        records=tuple(kept),
    )


def _doubts(found: dict[str, LatticeAverage], method: str) -> tuple[str, ...]:
    """What keeps a measurement from having converged, in sentences, the last of which says what to do."""
    told = [
        f"{WATCHED[name]} has R-hat {average.r_hat:.3g} and is worth {average.effective_sample_size:.0f} independent "
        "measurements"
        for name, average in found.items()
        if name in WATCHED and not average.converged
    ]
    other = "" if method in CLUSTERS else ", or method='swendsen_wang'"
    return (*told, f"errors are rough: take more sweeps{other}") if told else ()


def warn(found: LatticeMeasurement) -> None:
    """Issue scikit-learn's ``ConvergenceWarning`` with the doubts."""
    from sklearn.exceptions import ConvergenceWarning

    told = "; ".join(found.doubts)
    warnings.warn(f"the lattice may not have forgotten how it started: {told}", ConvergenceWarning, stacklevel=3)
