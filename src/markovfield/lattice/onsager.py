"""Exact results for the Ising model on square lattices, to hold simulations against.

Couplings are those of `Ising`: log p = sum of coupling * y_s * y_t - log Z, with the temperature in the coupling, and
energies are minus the score for each site, as `LatticeRecord` has them. Sources: Onsager (1944) for the infinite
lattice, Kaufman (1949) for the torus, Yang (1952) for the magnetisation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import whole_number
from markovfield.exceptions import ModelError

__all__ = [
    "critical_coupling",
    "ising_energy",
    "ising_log_partition_density",
    "ising_magnetisation",
    "torus_energy",
    "torus_log_partition",
    "torus_specific_heat",
]

# What may be left of the four terms of a torus; rounding then costs no more than nine digits.
LEAST_LEFT = 1e-6

# Hyperbolic functions of larger ones overflow.
MOST_COUPLING = 150.0
# Relative step of the second derivative, of which the first comes without cancellation.
STEP = 1e-4
ComplexArray = npt.NDArray[np.complex128]


def _pair(coupling: float | Sequence[float]) -> tuple[float, float]:
    """Couplings along the first and the second axis."""
    try:
        values = np.atleast_1d(np.asarray(coupling, np.float64))
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if values.shape not in ((1,), (2,)) or not np.isfinite(values).all():
        raise ModelError(f"a square lattice has one finite coupling, or one for each of its two axes, got {coupling!r}")
    if np.abs(values).max() > MOST_COUPLING:
        raise ModelError(
            f"couplings must be at most {MOST_COUPLING:g} in size, beyond which nothing changes, got {coupling!r}"
        )
    return float(values[0]), float(values[-1])


def critical_coupling(n_states: int | None = None) -> float:
    """Where order sets in on the infinite square lattice.

    Parameters
    ----------
    n_states
        None for the `Ising` model, log(1 + sqrt 2) / 2; for a `Potts` model of K states, log(1 + sqrt K).

    Examples
    --------
    >>> round(critical_coupling(), 4), round(critical_coupling(10), 4)
    (0.4407, 1.4261)
    """
    if n_states is None:
        return math.log1p(math.sqrt(2.0)) / 2
    return math.log1p(math.sqrt(whole_number(n_states, "critical_coupling(n_states)", 2)))


def ising_log_partition_density(coupling: float | Sequence[float]) -> float:
    """log Z for each site of the infinite square lattice without field (Onsager).

    Minus the free energy over temperature. ``coupling`` is one number or one for each axis.

    Examples
    --------
    >>> round(ising_log_partition_density(critical_coupling()), 6)  # log(2)/2 + 2 * Catalan / pi
    0.929695
    """
    return _integral(coupling, derivative=False)


def ising_energy(coupling: float | Sequence[float]) -> float:
    """Minus the expected score for each site of the infinite square lattice without field (Onsager).

    Examples
    --------
    >>> round(ising_energy(critical_coupling()) / critical_coupling(), 6)  # -sqrt(2) for a coupling of one
    -1.414214
    """
    return -_integral(coupling, derivative=True)


def _integral(coupling: float | Sequence[float], *, derivative: bool) -> float:
    """The average over angles of log(2 (a + sqrt(a^2 - b^2))) / 2, or its derivative as all couplings grow alike."""
    from scipy.integrate import quad

    first, second = _pair(coupling)
    # Signs of couplings make no difference on the infinite lattice, which is a checkerboard.
    first, second = abs(first), abs(second)

    def value(angle: float) -> float:
        step = 1e-30j if derivative else 0j
        a, _, root = _terms(np.array([angle]), first * (1 + step), second * (1 + step))
        half = 0.5 * np.log(2 * (a + root))
        return float(half[0].imag / 1e-30 if derivative else half[0].real)

    # Near the critical coupling the integrand bends sharply next to an angle of zero.
    edges = (0.0, 1e-6, 1e-3, 0.1, math.pi)
    parts = [quad(value, a, b, epsabs=1e-12, epsrel=1e-12, limit=200)[0] for a, b in itertools.pairwise(edges)]
    return math.fsum(parts) / math.pi


def _terms(
    angles: npt.NDArray[np.float64], first: complex, second: complex
) -> tuple[ComplexArray, complex, ComplexArray]:
    """a = cosh 2J1 cosh 2J2 - sinh 2J2 cos(angle), b = sinh 2J1, and the root of a^2 - b^2."""
    b, other = np.sinh(2 * first), np.sinh(2 * second)
    product = np.cosh(2 * first) * np.cosh(2 * second)
    a = np.asarray(product - other * np.cos(angles), np.complex128)
    # a - b vanishes at angle 0 and the critical coupling: there it is better had as a sum of two small terms.
    rest = 1 - b * other
    apart = rest / (product + b + other) * rest + 2 * other * np.sin(angles / 2) ** 2 if b.real > 0 else a - b
    return a, b, np.sqrt(apart) * np.sqrt(a + b)


def ising_magnetisation(coupling: float | Sequence[float]) -> float:
    """Spontaneous magnetisation of the infinite square lattice (Yang); zero up to the critical coupling.

    Examples
    --------
    >>> round(ising_magnetisation(0.5), 4), ising_magnetisation(0.44)
    (0.9113, 0.0)
    """
    first, second = _pair(coupling)
    strength = math.sinh(2 * abs(first)) * math.sinh(2 * abs(second))
    return 0.0 if strength <= 1 else float((1 - strength**-2) ** 0.125)


def torus_log_partition(shape: tuple[int, int], coupling: float | Sequence[float]) -> float:
    """log Z of the Ising model on a torus without field (Kaufman), exact for any two lengths and couplings.

    O(length of the shorter axis). Couplings may be negative, also where that frustrates an odd length, as long as the
    formula's four terms do not cancel to less than a millionth, which is an error; an axis of length two counts both of
    its edges between two sites.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.models.ising import Ising
    >>> exact = float(mf.log_partition(Ising((3, 4), (0.3, -0.5), periodic=True)))
    >>> abs(exact - torus_log_partition((3, 4), (0.3, -0.5))) < 1e-9
    True
    """
    return float(_torus(shape, coupling, 0j).real)


def torus_energy(shape: tuple[int, int], coupling: float | Sequence[float]) -> float:
    """Minus the expected score for each site of a torus: the derivative of `torus_log_partition` as couplings grow.

    Examples
    --------
    >>> round(torus_energy((64, 64), critical_coupling()) / critical_coupling(), 4)
    -1.4239
    """
    step = 1e-30
    return -float(_torus(shape, coupling, step * 1j).imag) / step / (shape[0] * shape[1])


def torus_specific_heat(shape: tuple[int, int], coupling: float | Sequence[float]) -> float:
    """Variance of the score, for each site of a torus: the second derivative of log Z as couplings grow.

    That is the specific heat over Boltzmann's constant. By differences of `torus_energy`, good to some seven digits.

    Examples
    --------
    >>> round(torus_specific_heat((32, 32), critical_coupling()), 4)
    1.8468
    """
    pair = np.array(_pair(coupling))
    # The energy holds the derivative times the couplings; without the latter it is that by their common factor.
    above, below = (-torus_energy(shape, (pair * s).tolist()) / s for s in (1 + STEP, 1 - STEP))
    return (above - below) / (2 * STEP)


def _lengths(shape: Any) -> tuple[int, int]:
    """Two whole numbers."""
    if not isinstance(shape, (tuple, list, np.ndarray)) or len(shape) != 2 or not all(_is_length(n) for n in shape):
        raise ModelError(f"a torus needs two lengths of at least one, got {shape!r}")
    return int(shape[0]), int(shape[1])


def _is_length(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)


def _torus(shape: tuple[int, int], coupling: float | Sequence[float], step: complex) -> Any:
    """log Z with couplings times (1 + step); an imaginary step gives the derivative without cancellation."""
    (n, m), (first, second) = _lengths(shape), _pair(coupling)
    if n < m:
        (n, m), (first, second) = (m, n), (second, first)
    along, across = first * (1 + step), second * (1 + step)
    logs, factors = [], []
    for offset in (1, 0):  # antiperiodic and periodic sums over the m modes
        for plus in (True, False):
            log, factor = _modes(n, 2 * np.arange(m) + offset, m, along, across, plus)
            logs.append(log)
            factors.append(factor)
    top = max(log.real for log in logs)
    terms = [factor * np.exp(log - top) for log, factor in zip(logs, factors, strict=True)]
    total = sum(terms)
    if abs(total) < LEAST_LEFT * sum(map(abs, terms)):
        raise ModelError(
            f"the four terms of Kaufman's formula cancel on a torus of {shape[0]} x {shape[1]} at coupling {coupling}, "
            "which frustrates an odd length: use junction_tree on a small lattice"
        )
    return top + np.log(total / 2)


def _modes(
    n: int, numbers: npt.NDArray[np.int64], m: int, along: complex, across: complex, plus: bool
) -> tuple[complex, complex]:
    """Log, and a further factor, of the product over modes of (2 (a + r))^(n/2) plus or minus (2 (a - r))^(n/2)."""
    a, b, root = _terms(np.pi * numbers / m, along, across)
    zero = numbers == 0
    # At angles 0 and pi the root has a sign, which changes where order sets in.
    mixed, own = np.sinh(2 * across) * np.cosh(2 * along), np.cosh(2 * across)
    root = np.where(zero, mixed - own, np.where(numbers == m, mixed + own, root))
    first_is_big = root.real >= 0
    big = np.where(first_is_big, a + root, a - root)
    # The product of both is b squared, so the smaller one comes without cancellation. Followed from a positive to a
    # negative coupling along the lines, one of the two square roots changes its sign: the one that vanishes between.
    negative = b.real < 0 and n % 2 == 1
    ratio = ((-b if b.real < 0 else b) / big) ** n
    sign_big = np.where(negative & (first_is_big == zero), -1.0, 1.0)
    small = ratio * (-1.0 if negative == plus else 1.0)
    # Where the root has a sign, the difference may vanish or nearly so, and has no log that would keep its digits.
    signed = zero | (numbers == m)
    with np.errstate(divide="ignore"):  # a difference of zero is one of less than any digit shows
        log = (n * np.log(2 * big) / 2).sum() + np.log1p(small[~signed]).sum()
    signs = sign_big if plus else sign_big * np.where(first_is_big, 1.0, -1.0)
    return log, complex(np.prod(signs) * np.prod(1 + small[signed]))
