"""Exact results for square lattices, against enumeration and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ellipk

from markovfield.exceptions import ModelError
from markovfield.lattice.onsager import (
    critical_coupling,
    ising_energy,
    ising_log_partition_density,
    ising_magnetisation,
    torus_energy,
    torus_log_partition,
    torus_specific_heat,
)

CRITICAL = critical_coupling()
CATALAN = 0.915965594177219015


def enumerated(shape: tuple[int, int], first: float, second: float) -> tuple[float, float]:
    """log Z of a torus and minus the mean score for each site, over all configurations."""
    n = shape[0] * shape[1]
    spins = (2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1).reshape(-1, *shape)
    scores = first * (spins * np.roll(spins, -1, 1)).sum((1, 2)) + second * (spins * np.roll(spins, -1, 2)).sum((1, 2))
    log_z = float(np.logaddexp.reduce(scores))
    return log_z, -float(scores @ np.exp(scores - log_z)) / n


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (3, 3), (2, 3), (1, 4), (3, 1)])
@pytest.mark.parametrize(
    "coupling",
    [
        (0.3, 0.3),
        (CRITICAL, CRITICAL),
        (1.0, 1.0),
        (-0.4, 0.3),
        (0.4, -0.7),
        (0.0, 0.5),
        (0.5, 0.0),
        (-0.6, -0.6),
        (0, 0),
    ],
)
def test_torus_is_enumeration(shape, coupling):
    log_z, energy = enumerated(shape, *coupling)
    assert torus_log_partition(shape, coupling) == pytest.approx(log_z, abs=1e-10)
    assert torus_energy(shape, coupling) == pytest.approx(energy, abs=1e-10)


@given(st.tuples(st.integers(1, 4), st.integers(1, 3)), st.floats(-1.5, 1.5), st.floats(-1.5, 1.5))
def test_torus_is_enumeration_for_any_couplings(shape, first, second):
    log_z, energy = enumerated(shape, first, second)
    assert torus_log_partition(shape, (first, second)) == pytest.approx(log_z, abs=1e-9)
    assert torus_energy(shape, (first, second)) == pytest.approx(energy, abs=1e-9)


@pytest.mark.parametrize("coupling", [0.2, 0.43, CRITICAL, 0.45, 0.8])
def test_torus_grows_to_onsager(coupling):
    infinite = ising_log_partition_density(coupling)
    apart = [abs(torus_log_partition((n, n), coupling) / n**2 - infinite) for n in (8, 32, 512)]
    assert apart[2] <= apart[1] <= apart[0] and apart[2] < 1e-5
    assert ising_energy(coupling) == pytest.approx(torus_energy((2048, 2048), coupling), abs=1e-3)


@pytest.mark.parametrize("coupling", [0.1, 0.3, 0.44, 0.45, 0.6, 1.0])
def test_energy_is_onsagers_elliptic_form(coupling):
    modulus = 2 * math.sinh(2 * coupling) / math.cosh(2 * coupling) ** 2
    bracket = 1 + 2 / math.pi * (2 * math.tanh(2 * coupling) ** 2 - 1) * ellipk(modulus**2)
    assert ising_energy(coupling) == pytest.approx(-coupling / math.tanh(2 * coupling) * bracket, abs=1e-9)


def test_known_values():
    assert ising_log_partition_density(CRITICAL) == pytest.approx(math.log(2) / 2 + 2 * CATALAN / math.pi, abs=1e-12)
    assert ising_energy(CRITICAL) == pytest.approx(-math.sqrt(2) * CRITICAL, abs=1e-6)
    assert ising_log_partition_density(0.0) == pytest.approx(math.log(2), abs=1e-12)
    assert ising_log_partition_density((0.7, 0.0)) == pytest.approx(math.log(2 * math.cosh(0.7)), abs=1e-12)
    assert math.sinh(2 * CRITICAL) == pytest.approx(1.0, abs=1e-15)
    assert critical_coupling(2) == pytest.approx(2 * CRITICAL, abs=1e-15)  # Potts couplings are twice as large
    assert ising_magnetisation(CRITICAL) == 0.0
    assert ising_magnetisation((0.5, 0.5)) == pytest.approx((1 - math.sinh(1.0) ** -4) ** 0.125, abs=1e-15)
    assert ising_magnetisation((0.2, 0.9)) == ising_magnetisation((0.9, 0.2)) > 0


def test_large_tori_do_not_overflow():
    assert torus_log_partition((4096, 4096), 0.0) == pytest.approx(4096**2 * math.log(2), rel=1e-12)
    assert torus_log_partition((2000, 1500), (20.0, 0.0)) == pytest.approx(
        1500 * (2000 * 20.0 + math.log1p(math.tanh(20.0) ** 2000)), rel=1e-9
    )
    assert torus_energy((256, 256), 100.0) == pytest.approx(-200.0, rel=1e-12)


def test_wrong_arguments():
    with pytest.raises(ModelError, match=r"one for each of its two axes, got \(1, 2, 3\)"):
        torus_log_partition((4, 4), (1, 2, 3))
    with pytest.raises(ModelError, match=r"two lengths of at least one, got \(0, 4\)"):
        torus_energy((0, 4), 0.3)
    with pytest.raises(ModelError, match="an integer of at least 2, got 1"):
        critical_coupling(1)
    with pytest.raises(ModelError, match="at most 150 in size"):
        ising_energy(1000.0)


def test_terms_that_cancel_are_an_error():
    """An antiferromagnet on odd lengths: what is left of the four terms would be rounding."""
    with pytest.raises(ModelError, match="four terms of Kaufman's formula cancel"):
        torus_log_partition((31, 32), -2.0)
    with pytest.raises(ModelError, match="cancel"):
        torus_energy((9, 8), -2.0)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
@pytest.mark.parametrize("coupling", [0.3, (0.2, 0.6), (-0.4, 0.5)])
def test_specific_heat_is_the_variance_of_the_score(shape, coupling):
    """By enumerating all 4,096 configurations."""
    spins = 2 * (np.arange(2**12)[:, None] >> np.arange(12) & 1).reshape(-1, *shape) - 1
    first, second = np.broadcast_to(np.asarray(coupling, float), 2)
    scores = (first * spins * np.roll(spins, 1, 1) + second * spins * np.roll(spins, 1, 2)).sum(axis=(1, 2))
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    variance = weights @ scores**2 - (weights @ scores) ** 2
    assert torus_specific_heat(shape, coupling) == pytest.approx(variance / 12, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: critical_coupling("x"), "must be an integer of at least 2, got 'x'"),
        (lambda: critical_coupling(2.5), "must be an integer of at least 2, got 2.5"),
        (lambda: torus_energy(5, 0.4), "two lengths of at least one, got 5"),
        (lambda: torus_energy("ab", 0.4), "two lengths of at least one, got 'ab'"),
        (lambda: torus_energy((4.5, 4), 0.4), r"two lengths of at least one, got \(4.5, 4\)"),
        (lambda: torus_energy((4, 4), "x"), "one finite coupling.*got 'x'"),
        (lambda: ising_energy([[1], [2, 3]]), r"one finite coupling.*got \[\[1\], \[2, 3\]\]"),
    ],
)
def test_what_is_no_number_is_said_so(make, match):
    with pytest.raises(ModelError, match=match):
        make()
