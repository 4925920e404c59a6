"""Measurements of lattices: stated errors against exact values, and what is said where runs do not come together.

Statistical tests have fixed seeds, and limits that another seed passes too.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from markovfield.exceptions import ModelError
from markovfield.lattice.averages import LatticeAverage, lattice_average
from markovfield.lattice.lattice_model import lattice_model, suited_method
from markovfield.lattice.measurement import default_sweeps, measure
from markovfield.lattice.onsager import critical_coupling, torus_energy, torus_specific_heat
from markovfield.lattice.simulation import LatticeSimulation
from markovfield.models.ising import Ising
from markovfield.models.potts import Potts

CRITICAL = critical_coupling()
QUANTITIES = ("energy", "magnetisation", "specific_heat", "susceptibility", "binder_cumulant")


@pytest.mark.parametrize("coupling", [0.3, CRITICAL, 0.5])
@pytest.mark.parametrize("size", [16, 32, pytest.param(48, marks=pytest.mark.slow)])
def test_default_settings_hold_the_exact_energy(size, coupling):
    """Twenty seeds: 19 within three stated errors, which normal ones would miss less than once in a thousand tests."""
    model, shape = Ising((size, size), coupling, periodic=True), (size, size)
    energies, heats = [], []
    for seed in range(20):
        found = measure(model, rng=seed)
        assert found.converged and not found.doubts and found.complete
        energies.append((found.energy.mean - torus_energy(shape, coupling)) / found.energy.standard_error)
        heat = found.specific_heat
        heats.append((heat.mean - torus_specific_heat(shape, coupling)) / heat.standard_error)
    assert (np.abs(energies) <= 3).sum() >= 19, energies
    assert (np.abs(heats) <= 3).sum() >= 19, heats
    # Nor are errors so large that they say nothing.
    assert np.mean(np.square(energies)) > 0.15


def exact_quantities(model, n_states: int) -> dict[str, float]:
    """By enumerating all configurations."""
    n = int(np.prod(model.shape))
    states = np.arange(n_states**n)[:, None] // n_states ** np.arange(n) % n_states
    shown = model.to_spins(states) if isinstance(model, Ising) else states
    scores = -np.asarray(model.energy(shown.reshape(-1, *model.shape)))
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    if isinstance(model, Ising):
        sizes = np.abs(shown.reshape(-1, n).mean(axis=1))
    else:
        shares = np.stack([(states == k).mean(axis=1) for k in range(n_states)]).max(axis=0)
        sizes = (n_states * shares - 1) / (n_states - 1)
    energy, size, second, fourth = (weights @ x for x in (-scores / n, sizes, sizes**2, sizes**4))
    return {
        "energy": energy,
        "magnetisation": size,
        "specific_heat": n * (weights @ (scores / n) ** 2 - energy**2),
        "susceptibility": n * (second - size**2),
        "binder_cumulant": 1 - fourth / (3 * second**2),
    }


@pytest.mark.parametrize("method", ["auto", "metropolis", "wolff"])
@pytest.mark.parametrize("model", [Ising((4, 3), 0.4), Ising((3, 4), 0.3, 0.2), Potts((2, 4), 3, 0.9)], ids=repr)
def test_every_quantity_against_enumeration(model, method):
    found = measure(model, method=method, sweeps=20_000, rng=3)
    exact = exact_quantities(model, model.n_states)
    assert tuple(found.quantities) == QUANTITIES
    for name, average in found.quantities.items():
        # Five errors: false alarm 6e-7 each.
        assert abs(average.mean - exact[name]) < 5 * average.standard_error < 0.1, name


def test_errors_are_what_repeated_measurements_scatter_by():
    model = Ising((16, 16), CRITICAL, periodic=True)
    found = [measure(model, rng=seed, sweeps=800) for seed in range(40)]
    for name in QUANTITIES:
        means = [f.quantities[name].mean for f in found]
        stated = np.mean([f.quantities[name].standard_error for f in found])
        # The scatter of forty is itself known to about an eighth.
        assert 0.6 < np.std(means) / stated < 1.5, name


def test_runs_that_have_not_forgotten_their_start_are_said_to():
    model = Ising((64, 64), CRITICAL, periodic=True)
    with pytest.warns(ConvergenceWarning, match=r"not have forgotten how it started.*R-hat.*method='swendsen_wang'"):
        found = measure(model, method="gibbs", sweeps=200, rng=0)
    assert not found.converged and found.burn_in == 100 and "in doubt" in repr(found)
    assert abs(found.energy.mean - torus_energy((64, 64), CRITICAL)) < 3 * found.energy.standard_error
    with pytest.warns(ConvergenceWarning, match="take more sweeps$"):
        measure(model, sweeps=30, rng=0)


@pytest.mark.parametrize("start", ["random", "cold"])
def test_one_run_of_single_sites_is_no_surer_than_its_slowest_series(start):
    """One run that is far too short: energies look settled before magnetisations do. Sixty seeds."""
    model, scores, alone = Ising((64, 64), CRITICAL, periodic=True), [], []
    for seed in range(60):
        record = LatticeSimulation(model, method="gibbs", rng=seed, start=start).run(1000)
        deviation = record.mean("energy") - torus_energy((64, 64), CRITICAL)
        scores.append(deviation / record.standard_error("energy"))
        alone.append(deviation / lattice_average([record.energy]).standard_error)
    assert np.mean(np.square(scores)) < 2.5 < np.mean(np.square(alone)), (scores, alone)


def test_runs_that_differ_by_less_than_single_draws_do_are_apart_all_the_same():
    """R-hat looks at the spread of single draws: what is a tenth of it is eight errors of a mean over 4,000."""
    noise = np.random.default_rng(0).normal(size=(2, 4000))
    found = lattice_average([noise[0] + 0.1, noise[1] - 0.1])
    assert found.r_hat < 1.05 and not found.converged
    assert found.standard_error > 0.1
    calm = lattice_average(noise)
    assert calm.converged and calm.standard_error < 0.03


def test_clusters_are_moved_from_near_the_critical_coupling_on():
    def suited(model):
        return suited_method(lattice_model(model))

    assert [suited(Ising((32, 32), c)) for c in (0.0, 0.35, 0.42, 0.9, -0.42)] == ["gibbs"] * 2 + ["swendsen_wang"] * 3
    assert [suited(Potts((32, 32), 10, c)) for c in (1.0, critical_coupling(10))] == ["gibbs", "swendsen_wang"]
    assert [suited(Ising((8, 8, 8), c)) for c in (0.15, 0.2216)] == ["gibbs", "swendsen_wang"]
    assert [suited(Ising(9, c)) for c in (0.3, 2.0)] == ["gibbs", "swendsen_wang"]
    rng = np.random.default_rng(0)
    assert suited(Ising((8, 8), rng.normal(size=112))) == "gibbs"
    assert suited(Ising((8, 8), np.full(112, 0.5))) == "swendsen_wang"
    assert suited(Ising((8, 8), 0.5, 0.1)) == "swendsen_wang"
    assert suited(Ising((8, 8), 0.5, rng.normal(size=(8, 8)))) == "gibbs"
    assert suited(Potts((8, 8), 3, -1.0)) == "gibbs"
    assert suited(Ising((9, 9), 0.1, periodic=True)) == "swendsen_wang"
    assert suited(Ising((4096, 4096), 0.5)) == "gibbs"
    assert suited(Ising((1,), 0.5)) == suited(Ising((1, 5), 0.5)) == "gibbs"
    assert LatticeSimulation(Ising((8, 8), 0.5), scan="typewriter").method == "gibbs"


def test_settings_of_a_measurement():
    model = Ising((16, 16), 0.2, periodic=True)
    found = measure(model, sweeps=100, burn_in=30, starts=["cold", "random", "cold"], rng=0)
    assert (found.burn_in, len(found.records), len(found.records[0]), found.method) == (30, 3, 70, "gibbs")
    assert found.records[0].sweep[0] == 31 and found.simulations[0].sweeps == 100
    same = measure(model, sweeps=100, burn_in=30, starts=["cold", "random", "cold"], rng=0, n_jobs=1)
    assert same.energy == found.energy
    assert measure(model, rng=0).sweeps == default_sweeps("gibbs", 256) == 10_000
    start = np.ones((16, 16), int)
    assert measure(model, sweeps=200, starts=[start, -start], rng=0).converged


def test_a_measurement_that_is_stopped_tells_what_it_has():
    model = Ising((256, 256), 0.2, periodic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = measure(model, sweeps=10**7, time_limit=0.5, rng=0)
        assert not found.complete and 0 < found.sweeps < 10**7
        told = []
        found = measure(model, sweeps=10**7, callback=lambda p: told.append(p) or len(told) == 6, rng=0)
    assert not found.complete and len(told) == 6
    with pytest.raises(ModelError, match="at least 4 sweeps, and stopped after 1"):
        measure(model, sweeps=10**7, callback=lambda p: True, rng=0)


def test_temperature_divides_couplings_and_fields():
    warm = Ising((4, 4), 1.0, 0.5, temperature=2.0)
    assert (warm.coupling, warm.field) == (0.5, 0.25) and (warm.edge_couplings == 0.5).all()
    assert Ising((4, 4), (1.0, 0.5), temperature=0.5).coupling == (2.0, 1.0)
    edges = Ising((2, 2), [1.0, 2.0, 3.0, 4.0], np.ones((2, 2)), temperature=2)
    assert edges.edge_couplings.tolist() == [0.5, 1.0, 1.5, 2.0] and edges.field.tolist() == [[0.5] * 2] * 2
    potts = Potts((4, 4), 3, 1.0, [0.0, 1.0, 2.0], temperature=4.0)
    assert potts.coupling == 0.25 and potts.field.tolist() == [0.0, 0.25, 0.5]
    assert Potts((4, 4), 3, temperature=4.0).field is None
    for wrong in (0, -1.0, "x", None, float("nan"), True):
        with pytest.raises(ModelError, match=r"temperature=...\) must be a number greater than 0, got"):
            Ising((4, 4), temperature=wrong)
    with pytest.raises(ModelError, match="of 1e-320 makes couplings or fields infinite"):
        Potts((4, 4), 3, temperature=1e-320)


def test_averages_are_shown_to_the_digits_they_have():
    assert repr(LatticeAverage(-0.6177123, 0.00021, 50.0, 1.0, True)) == "-0.61771 +- 0.00021"
    assert repr(LatticeAverage(5225.123, 580.4, 50.0, 1.0, True)) == "5225 +- 580"
    assert repr(LatticeAverage(0.0, 0.0, 50.0, np.nan, True)) == "0 +- 0"


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"starts": "cold"}, r"like \['random', 'cold'\], got 'cold'"),
        ({"starts": []}, r"like \['random', 'cold'\], got \[\]"),
        ({"starts": ["hot"]}, "'random', 'cold' or an array, got 'hot'"),
        ({"sweeps": 2}, r"measure\(sweeps=...\) must be an integer of at least 5, got 2"),
        ({"sweeps": "x"}, r"measure\(sweeps=...\) must be an integer of at least 5, got 'x'"),
        ({"sweeps": 9, "burn_in": 7}, r"burn_in=...\) of 7 leaves less than 4 of 9 sweeps"),
        ({"burn_in": 0.5}, r"burn_in=...\) must be an integer of at least 0, got 0.5"),
        ({"time_limit": "x"}, "time_limit must be a number, got 'x'"),
        ({"callback": 3}, "callback must be a function of a Progress, got 3"),
    ],
)
def test_wrong_settings(settings, match):
    with pytest.raises(ModelError, match=match):
        measure(Ising((4, 4)), **settings)
