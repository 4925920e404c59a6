"""Averages of what lattices measure, with errors that count drift and how far runs from different starts differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.frames import OneRow
from markovfield.inference.core.diagnostics import LEAST_STEPS, summarise

__all__ = ["LatticeAverage", "lattice_average", "lattice_quantities"]

# What an average needs to have converged: effective draws, and the split R-hat that so many may show by chance.
LEAST_EFFECTIVE, R_HAT_LIMIT = 30.0, 1.05
# How improbable a scatter of halves of runs may be, given their errors, before it is drift and not chance.
DRIFT = 1e-4


@dataclass(frozen=True)
class LatticeAverage(OneRow):
    """A mean over simulations of the same lattice, or what was worked out from several.

    Attributes
    ----------
    mean, standard_error
        Over all measurements, and what it may be off.
    effective_sample_size, r_hat
        How many independent measurements would be as good; split R-hat over all runs.
    converged
        Whether the runs agree with each other and with themselves (R-hat of at most 1.05, and their halves scatter no
        more than the error explains), and are worth thirty independent measurements.

    Examples
    --------
    >>> LatticeAverage(-0.617712, 0.00021, 200.0, 1.0, True)
    -0.61771 +- 0.00021
    """

    mean: float
    standard_error: float
    effective_sample_size: float
    r_hat: float
    converged: bool

    _row = ("mean", "standard_error", "effective_sample_size", "r_hat", "converged")

    def __repr__(self) -> str:
        if not (math.isfinite(self.standard_error) and self.standard_error > 0):
            return f"{self.mean:.6g} +- {self.standard_error:.2g}"
        digits = max(0, 1 - math.floor(math.log10(self.standard_error)))
        return f"{self.mean:.{digits}f} +- {self.standard_error:.{digits}f}"


def lattice_average(series: Sequence[npt.ArrayLike]) -> LatticeAverage:
    """Mean and standard error of a quantity measured by several runs, or by one.

    The error is that of `standard_error`, by the autocorrelation time (Geyer's initial monotone sequence over half
    runs), and larger by as much as the means of half runs scatter more than it explains. A run that is still on its way
    to equilibrium has none that means anything: where it has not converged, half of what runs from different starts
    differ by is added in squares, and the most that the halves of one run do. A ferromagnet approaches its energy from
    above when started at random and from below when started cold, so two such runs have the truth between them. One run
    alone may rest where it should not, and say nothing of it: compare two.

    Parameters
    ----------
    series
        Measurements of each run, ``float64[t]`` with at least four; longer ones are cut to the shortest, at the front.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = lattice_average(rng.normal(size=(2, 1000)))
    >>> found.converged, 0.015 < found.standard_error < 0.035
    (True, True)
    >>> lattice_average([rng.normal(size=500), rng.normal(size=500) + 1]).standard_error > 0.5
    True
    """
    x = _runs(series)
    steps = x.shape[1]
    size, r_hat, variance = summarise(x[:, :, None])[0].tolist()
    half = steps // 2
    halves = np.stack([x[:, :half].mean(axis=1), x[:, -half:].mean(axis=1)])
    scatter, freedom = float(np.square(halves - halves.mean()).sum()), halves.size - 1
    # The mean of a half has so many times the squared error of the mean of all.
    expected = variance * halves.size
    ratio = scatter / expected if expected > 0 else 0.0
    agree = bool(np.isnan(r_hat) or r_hat <= R_HAT_LIMIT) and _chance(ratio, freedom) > DRIFT
    converged = agree and size >= LEAST_EFFECTIVE
    variance *= max(1.0, ratio / freedom)
    if not converged:
        variance += (float(np.ptp(x.mean(axis=1))) / 2) ** 2 + float(np.abs(halves[0] - halves[1]).max()) ** 2
    return LatticeAverage(float(x.mean()), float(np.sqrt(variance)), size, r_hat, converged)


def _chance(squares: float, freedom: int) -> float:
    """How probable a sum of squared standard normal numbers as large as this is, or larger."""
    from scipy.special import chdtrc

    return float(chdtrc(freedom, squares))


def _runs(series: Sequence[npt.ArrayLike]) -> FloatArray:
    """Series as ``float64[runs, steps]``."""
    rule = f"lattice_average needs at least {LEAST_STEPS} measurements of each run"
    try:
        given = [np.asarray(one, np.float64) for one in series]
    except (TypeError, ValueError):
        raise ModelError(f"{rule}, all of them numbers, got {series!r:.60}") from None
    if any(one.ndim != 1 for one in given):
        raise ModelError(f"{rule}, a series of numbers for each, got shapes {[one.shape for one in given]}")
    steps = min((len(one) for one in given), default=0)
    if steps < LEAST_STEPS:
        raise ModelError(f"{rule}, got {steps}")
    x = np.array([one[len(one) - steps :] for one in given])
    if not np.isfinite(x).all():
        raise ModelError(f"{rule}, all of them finite, got {x[~np.isfinite(x)][0]}")
    return x


def lattice_quantities(records: Sequence[Any], n_sites: int) -> dict[str, LatticeAverage]:
    """What `LatticeMeasurement` tells, from the records of runs of one lattice of so many sites.

    Specific heat, susceptibility and Binder's cumulant are functions of means. Their errors are those of the series
    which such a function is near its means (its gradient times what each measurement is off), so they know of
    autocorrelation and of drift as other errors do (Wolff 2004, "Monte Carlo errors with less errors").

    Examples
    --------
    >>> from markovfield.lattice.simulation import LatticeSimulation
    >>> from markovfield.models.ising import Ising
    >>> record = LatticeSimulation(Ising((16, 16), 0.0), rng=0).run(1000)
    >>> found = lattice_quantities([record], 256)  # spins by themselves: no energy, cumulant near 0
    >>> found["specific_heat"].mean, abs(found["binder_cumulant"].mean) < 0.2
    (0.0, True)
    """
    energies = _runs([record.energy for record in records])
    sizes = _runs([np.abs(record.magnetisation) for record in records])
    energy, size = float(energies.mean()), float(sizes.mean())
    second, fourth = (float((sizes**power).mean()) for power in (2, 4))
    heats = (energies - energy) ** 2
    spreads = (sizes - size) ** 2
    series = {
        "energy": energies,
        "magnetisation": sizes,
        "specific_heat": n_sites * heats,
        "susceptibility": n_sites * spreads,
        "binder_cumulant": 1 - (sizes**4 / second**2 - 2 * fourth / second**3 * (sizes**2 - second)) / 3
        if second > 0
        else np.zeros_like(sizes),
    }
    return {name: lattice_average(list(x)) for name, x in series.items()}
