"""Averages of what lattices measure, with errors that count drift and how far runs from different starts differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.inference.core.diagnostics import LEAST_STEPS, summarise

__all__ = ["LatticeAverage", "lattice_average"]

# What an average needs to have converged: effective draws, and the split R-hat that so many may show by chance.
LEAST_EFFECTIVE, R_HAT_LIMIT = 100.0, 1.05


@dataclass(frozen=True)
class LatticeAverage:
    """A mean over simulations of the same lattice.

    Attributes
    ----------
    mean, standard_error
        Over all measurements, and what it may be off.
    effective_sample_size, r_hat
        How many independent measurements would be as good; split R-hat over all runs.
    converged
        Whether the runs agree with each other and with themselves (R-hat of at most 1.05), and are worth a hundred
        independent measurements.
    """

    mean: float
    standard_error: float
    effective_sample_size: float
    r_hat: float
    converged: bool


def lattice_average(series: Sequence[npt.ArrayLike]) -> LatticeAverage:
    """Mean and standard error of a quantity measured by several runs, or by one.

    The error is that of `standard_error`, by the autocorrelation time (Geyer's initial monotone sequence over half
    runs). A run that is still on its way to equilibrium has none that means anything: where it has not converged, half
    of what runs from different starts differ by is added in squares, and the most that the halves of one run do. A
    ferromagnet approaches its energy from above when started at random and from below when started cold, so two such
    runs have the truth between them. One run alone may rest where it should not, and say nothing of it: compare two.

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
    given = [np.asarray(one, np.float64) for one in series]
    steps = min((len(one) for one in given), default=0)
    if steps < LEAST_STEPS:
        raise ModelError(f"lattice_average needs at least {LEAST_STEPS} measurements of each run, got {steps}")
    x = np.array([one[len(one) - steps :] for one in given])
    size, r_hat, variance = summarise(x[:, :, None])[0].tolist()
    converged = bool(size >= LEAST_EFFECTIVE and (np.isnan(r_hat) or r_hat <= R_HAT_LIMIT))
    if not converged:
        half = steps // 2
        means = x.mean(axis=1)
        drift = float(np.abs(x[:, :half].mean(axis=1) - x[:, -half:].mean(axis=1)).max())
        variance += (float(np.ptp(means)) / 2) ** 2 + drift**2
    return LatticeAverage(float(x.mean()), float(np.sqrt(variance)), size, r_hat, converged)
