"""Lattice simulations against exact distributions and energies, and against themselves on other threads.

Statistical tests have fixed seeds. Where a p-value is compared with 1e-4, that is the false-alarm rate of one case
under a new seed; "within five standard errors" is 6e-7 for each number compared.
"""

from __future__ import annotations

import os
import signal
import threading
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from markovfield.exceptions import ModelError
from markovfield.inference.core.diagnostics import autocorrelation_time
from markovfield.lattice.averages import lattice_average
from markovfield.lattice.bits import BitEngine
from markovfield.lattice.engines import PottsEngine, SpinEngine, TypewriterEngine
from markovfield.lattice.lattice_model import lattice_model
from markovfield.lattice.onsager import critical_coupling, ising_magnetisation, torus_energy
from markovfield.lattice.simulation import LatticeSimulation
from markovfield.models.ising import Ising
from markovfield.models.markov_network import MarkovNetwork
from markovfield.models.potts import Potts
from tests.patience import patience

FALSE_ALARM = 1e-4
METHODS = ("gibbs", "metropolis", "swendsen_wang", "wolff")
RNG = np.random.default_rng(7)


def all_states(n_sites: int, n_states: int) -> np.ndarray:
    return np.arange(n_states**n_sites)[:, None] // n_states ** np.arange(n_sites) % n_states


@cache
def exact(model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All configurations as states, their probabilities and scores, from the model's own energy."""
    n = int(np.prod(model.shape))
    states = all_states(n, model.n_states)
    shown = (model.to_spins(states) if isinstance(model, Ising) else states).reshape(-1, *model.shape)
    scores = -np.asarray(model.energy(shown))
    weights = np.exp(scores - scores.max())
    return states, weights / weights.sum(), scores


def run_states(simulation: LatticeSimulation, samples: int, apart: int) -> np.ndarray:
    """Numbers of configurations some sweeps apart, through the engine: `run` would take longer."""
    engine, k = simulation._engine, simulation._lattice.n_states
    place = k ** np.arange(simulation._lattice.n_sites)
    engine.advance(50, 1, 0, 1)
    found = np.empty(samples, np.int64)
    for t in range(samples):
        engine.advance(apart, apart, 0, 1)
        found[t] = engine.states() @ place
    return found


def p_value(counts: np.ndarray, expected: np.ndarray) -> float:
    """Of Pearson's chi-square, cells with few expected put together."""
    order = np.argsort(expected)
    low = np.cumsum(expected[order]) < 20
    cells = np.append(expected[order][~low], expected[order][low].sum())
    seen = np.append(counts[order][~low], counts[order][low].sum())
    cells, seen = cells[cells > 0], seen[cells > 0]
    return float(chi2.sf(((seen - cells) ** 2 / cells).sum(), len(cells) - 1))


def check_distribution(model, simulation: LatticeSimulation, *, samples: int = 4000, apart: int = 8) -> None:
    """Joint states of small models; of larger ones, energies with three spins told apart."""
    states, probabilities, scores = exact(model)
    seen = np.bincount(run_states(simulation, samples, apart), minlength=len(states))
    if len(states) > 1000:
        corners = states[:, [0, model.shape[-1] - 1, -1]] @ [1, 10, 100]
        _, group = np.unique(np.round(scores, 6) + 1e4 * corners, return_inverse=True)
        seen, probabilities = np.bincount(group, seen), np.bincount(group, probabilities)
    assert p_value(seen, samples * probabilities) > FALSE_ALARM


ISING = {
    "3 x 4 free": Ising((3, 4), 0.4),
    "3 x 4 free, field": Ising((3, 4), 0.4, 0.2),
    "5 x 3 free, axes": Ising((5, 3), (0.3, 0.6)),
    "4 x 4 torus": Ising((4, 4), 0.35, periodic=True),
    "4 x 4 torus, unlike": Ising((4, 4), -0.35, periodic=True),
    "4 x 3 cylinder": Ising((4, 3), (-0.3, 0.5), periodic=(True, False)),
    "3 x 4 cylinder": Ising((3, 4), 0.4, 0.1, periodic=(False, True)),
}
# How far apart samples are taken; Metropolis on a checkerboard forgets slowly.
APART = {"gibbs": 8, "metropolis": 24, "swendsen_wang": 6, "wolff": 12}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ISING)
def test_ising_distribution(name, method):
    simulation = LatticeSimulation(ISING[name], method=method, rng=3)
    check_distribution(ISING[name], simulation, apart=APART[method])


@pytest.mark.parametrize("metropolis", [False, True])
@pytest.mark.parametrize("name", ["3 x 4 free", "4 x 4 torus", "3 x 4 cylinder"])
@pytest.mark.parametrize("engine", [SpinEngine, PottsEngine, TypewriterEngine])
def test_every_engine_has_the_same_distribution(engine, name, metropolis):
    simulation = LatticeSimulation(ISING[name], rng=0)
    lattice, rng = lattice_model(ISING[name]), np.random.default_rng(4)
    simulation._engine = engine(lattice, simulation._engine.states(), rng, metropolis=metropolis)
    check_distribution(ISING[name], simulation, apart=24 if metropolis else 8)


GENERAL = {
    "chain": Ising(7, 0.5, 0.3, spins="0/1"),
    "ring": Ising(8, RNG.normal(size=8), RNG.normal(size=8), periodic=True),
    "spin glass": Ising((3, 4), RNG.normal(size=17), 0.5 * RNG.normal(size=(3, 4))),
    "cube": Ising((2, 3, 2), 0.3, 0.1),
    "cube spin glass": Ising((2, 3, 2), RNG.normal(size=20), RNG.normal(size=(2, 3, 2))),
    "Potts": Potts((2, 3), 3, 0.8),
    "Potts axes": Potts((2, 3), 3, (0.8, 0.3), [0.0, 0.3, -0.2]),
    "Potts unlike": Potts((3, 2), 3, -0.8),
    "Potts edges": Potts((2, 3), 3, np.abs(RNG.normal(size=7)), RNG.normal(size=(2, 3, 3))),
    "Potts ring": Potts(6, 3, np.abs(RNG.normal(size=6)), periodic=True),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", GENERAL)
def test_general_distribution(name, method):
    model = GENERAL[name]
    if name == "Potts unlike" and method in ("swendsen_wang", "wolff"):
        with pytest.raises(ModelError, match=r"not negative where there are more than two states, got -0.8.*'gibbs'"):
            LatticeSimulation(model, method=method)
        return
    check_distribution(model, LatticeSimulation(model, method=method, rng=5), apart=2 * APART[method])


@pytest.mark.parametrize(
    "model", [Ising((3, 5), (0.3, -0.4), 0.1, periodic=True), Potts((3, 3), 2, 0.7, periodic=True)]
)
@pytest.mark.parametrize("method", ["gibbs", "metropolis"])
def test_typewriter_takes_odd_tori(model, method):
    check_distribution(model, LatticeSimulation(model, method=method, scan="typewriter", rng=6))


def check_energy(model, **settings):
    _, probabilities, scores = exact(model)
    simulation = LatticeSimulation(model, rng=2, **settings)
    simulation.run(100)
    record = simulation.run(40_000)
    expected = -probabilities @ scores / simulation.state.size
    assert abs(record.mean("energy") - expected) < 5 * record.standard_error("energy") < 0.05


@pytest.mark.parametrize("coupling", [-0.7, 0.4])
@pytest.mark.parametrize("length", [3, 5, 6])
def test_metropolis_moves_that_cost_nothing_on_rings(length, coupling):
    check_energy(Ising(length, coupling, periodic=True), method="metropolis", scan="typewriter")
    if length % 2 == 0:
        check_energy(Ising(length, coupling, periodic=True), method="metropolis")


@pytest.mark.parametrize("scan", ["checkerboard", "typewriter"])
@pytest.mark.parametrize(
    "model", [Ising((2, 2), -0.7), Ising((3, 3), -0.7), Potts((2, 2), 2, -1.4), Potts((2, 2), 3, -0.7)], ids=repr
)
def test_metropolis_moves_that_cost_nothing_on_squares(model, scan):
    check_energy(model, method="metropolis", scan=scan)


@pytest.mark.parametrize("scan", ["checkerboard", "typewriter"])
@pytest.mark.parametrize("model", [Ising((3, 3), 0.0), Ising((2, 3), 0.0), Potts((2, 3), 3, 0.0)], ids=repr)
def test_metropolis_spins_without_couplings_are_independent(model, scan):
    # A free spin forgets by 7/8 in a sweep: 1e-3 is left after 56. Free states of three forget sooner.
    check_distribution(model, LatticeSimulation(model, method="metropolis", scan=scan, rng=4), apart=56)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", [Ising((1,), 0.5, 0.2), Potts((1,), 3, 0.5, [0.0, 0.7, -0.4])], ids=repr)
def test_fields_of_a_single_site(model, method):
    check_distribution(model, LatticeSimulation(model, method=method, rng=0), apart=24)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "model",
    [
        Ising((6, 5), 0.4, 0.1),
        Ising((6, 130), 0.4, periodic=(False, True)),
        Ising((4, 1030), (0.3, 0.2), periodic=True),
        Ising((4, 8300), 0.3),
        Ising((4, 3, 6), RNG.normal(size=180), RNG.normal(size=(4, 3, 6)), periodic=(True, False, False)),
        Ising((4, 5), 0.7, -0.3, spins="0/1"),
        Potts((5, 4), 4, 0.7),
        Potts((5, 40), 255, 3.5, np.linspace(0.0, 1.0, 255)),
        Potts((4, 3, 5), 5, np.abs(RNG.normal(size=133)), RNG.normal(size=(4, 3, 5, 5))),
    ],
    ids=repr,
)
def test_measurements_are_those_of_the_state(model, method):
    simulation = LatticeSimulation(model, method=method, rng=1)
    for every, sweeps in ((2, 7), (1, 3), (3, 3)):
        record = simulation.run(sweeps, measure_every=every)
        assert len(record) == sweeps // every and record.complete
    assert record.sweep.tolist() == [13] and simulation.sweeps == 13
    assert record.score[0] == pytest.approx(-model.energy(simulation.state), abs=1e-8)
    assert record.energy[0] == pytest.approx(-record.score[0] / simulation.state.size)
    if isinstance(model, Ising):
        assert record.magnetisation[0] == pytest.approx(simulation.state.mean())
    else:
        share = np.bincount(simulation.state.ravel()).max() / simulation.state.size
        assert record.magnetisation[0] == pytest.approx((model.n_states * share - 1) / (model.n_states - 1))
    assert simulation.record.sweep.tolist() == [2, 4, 6, 8, 9, 10, 13]


def test_packed_and_plain_spins_agree_in_energy_at_any_width():
    for width in (62, 64, 126, 130, 200):
        model = Ising((32, width), 0.35, periodic=True)
        record = LatticeSimulation(model, rng=width).run(3000)
        error = record.standard_error("energy")
        assert abs(record.energy[200:].mean() - torus_energy((32, width), 0.35)) < 5 * error


@pytest.mark.parametrize("field", [0.3, -1.1, 2.0])
def test_packed_probabilities_are_right_beyond_the_first_bits(field):
    """Spins by themselves, 3e8 of them: an error in one lane of 1024, those that go on to further bits, is seen."""
    n, sweeps = 1024 * 1024, 300
    simulation = LatticeSimulation(Ising((1024, 1024), 0.0, field), rng=3)
    assert simulation.engine == "BitEngine"
    ups = (1 + simulation.run(sweeps).magnetisation.mean()) / 2
    p = 1 / (1 + np.exp(-2 * field))
    assert abs(ups - p) < 5 * np.sqrt(p * (1 - p) / n / sweeps) < 2e-4


@pytest.mark.parametrize("coupling", [0.3, (0.2, 0.38), -0.25])
def test_packed_energy_is_right_beyond_the_first_bits(coupling):
    simulation = LatticeSimulation(Ising((512, 1024), coupling, periodic=True), rng=8)
    simulation.run(100, measure_every=100)
    record = simulation.run(1000)
    error = record.standard_error("energy")
    assert abs(record.mean("energy") - torus_energy((512, 1024), coupling)) < 5 * error < 5e-4


@pytest.mark.parametrize("coupling", [0.2, 0.35, critical_coupling(), 0.5, 0.7])
@pytest.mark.parametrize("method", ["gibbs", "swendsen_wang"])
def test_energy_and_magnetisation_at_five_temperatures(coupling, method):
    """Kaufman's exact energy of the finite torus; Yang's magnetisation where it is not small."""
    side = 32 if method == "swendsen_wang" else 48
    model = Ising((side, side), coupling, periodic=True)
    start = "cold" if coupling > 0.4 else "random"
    simulation = LatticeSimulation(model, method=method, rng=11, start=start)
    simulation.run(500, measure_every=500)
    record = simulation.run(2000 if method == "swendsen_wang" else 20_000)
    error = record.standard_error("energy")
    assert abs(record.mean("energy") - torus_energy((side, side), coupling)) < 5 * error < 0.02
    if coupling >= 0.5:
        series = np.abs(record.magnetisation)
        error = series.std() * np.sqrt(autocorrelation_time(series) / len(series))
        # In the ordered phase the correlation length is about a site, so the finite torus differs by far less.
        assert abs(series.mean() - ising_magnetisation(coupling)) < 5 * error + 1e-4


def test_potts_energy_at_the_critical_coupling_of_two_states():
    """Two-state Potts is Ising of half the coupling: energies differ by the coupling for each site."""
    coupling = 0.8
    record = LatticeSimulation(Potts((32, 32), 2, coupling, periodic=True), rng=2).run(5000)
    expected = torus_energy((32, 32), coupling / 2) - coupling
    assert abs(record.energy[300:].mean() - expected) < 5 * record.standard_error("energy")


def test_clusters_forget_sooner_at_the_critical_coupling():
    model = Ising((64, 64), critical_coupling(), periodic=True)
    times = {}
    for method, sweeps in (("gibbs", 40_000), ("swendsen_wang", 2000)):
        record = LatticeSimulation(model, method=method, rng=5).run(sweeps)
        times[method] = autocorrelation_time(np.abs(record.magnetisation[sweeps // 10 :]))
    # About 10 sweeps against about 4000.
    assert times["swendsen_wang"] < 20 and times["gibbs"] > 50 * times["swendsen_wang"]


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (Ising((512, 640), 0.44, periodic=True), "gibbs"),
        (Ising((512, 640), 0.44), "metropolis"),
        (Ising((301, 300), (0.3, 0.5), 0.1), "gibbs"),
        (Ising((48, 40, 36), 0.2, 0.1), "gibbs"),
        (Potts((256, 257), 5, 1.0), "gibbs"),
        (Potts((256, 256), 5, 1.0, periodic=True), "metropolis"),
        (Ising((300, 300), 0.44, periodic=True), "swendsen_wang"),
        (Potts((300, 300), 3, 1.0, [0.0, 0.001, 0.0]), "swendsen_wang"),
    ],
    ids=repr,
)
def test_threads_and_steps_change_nothing(model, method):
    one = LatticeSimulation(model, method=method, rng=9, n_jobs=1)
    four = LatticeSimulation(model, method=method, rng=9, n_jobs=4)
    record = one.run(12)
    parts = [four.run(n) for n in (5, 7)]
    assert np.array_equal(one.state, four.state)
    assert np.array_equal(record.score, np.concatenate([p.score for p in parts]))
    other = LatticeSimulation(model, method=method, rng=10, n_jobs=1)
    other.run(12)
    assert not np.array_equal(one.state, other.state)


def test_engines_are_chosen_by_what_fits():
    def engine(model, **settings):
        return LatticeSimulation(model, **settings).engine

    assert engine(Ising((6, 7), (0.3, 0.4))) == "BitEngine"
    assert engine(Potts((6, 8), 2, 0.4, [0.1, 0.2], periodic=True)) == "BitEngine"
    assert engine(Ising((6, 7), (0.3, 0.4), 0.1)) == "SpinEngine"
    assert engine(Ising((6, 7), 0.3, 0.1), method="metropolis") == "SpinEngine"
    assert engine(Ising((2, 7), 0.3)) == "SpinEngine"
    assert engine(Ising((6, 6, 6), 0.3), method="gibbs") == "SpinEngine"
    assert engine(Potts((6, 8), 3, 0.4)) == "PottsEngine"
    assert engine(Ising((6, 8), 0.3), scan="typewriter") == "TypewriterEngine"
    assert not BitEngine.takes(lattice_model(Ising((6, 8), 0.3, np.arange(48.0).reshape(6, 8))), metropolis=False)


def test_start_frames_and_clusters():
    model = Potts((3, 4), 3, 0.5, periodic=(False, True))
    start = np.array([[0, 1, 1, 0], [2, 2, 1, 2], [0, 2, 0, 0]])
    simulation = LatticeSimulation(model, rng=0, start=start)
    assert np.array_equal(simulation.state, start)
    labels, sizes = simulation.clusters()
    assert labels.tolist() == [[0, 1, 1, 0], [2, 2, 1, 2], [3, 2, 3, 3]] and sizes.tolist() == [2, 3, 4, 3]
    frames = list(simulation.frames(3, every=4))
    assert np.array_equal(frames[0], start) and simulation.sweeps == 8 and len(frames) == 3
    again = LatticeSimulation(model, rng=0, start=start)
    again.run(8)
    assert np.array_equal(frames[2], again.state)
    assert LatticeSimulation(Ising((3, 3), 1.0, spins="0/1"), start="cold").state.tolist() == [[1] * 3] * 3
    assert LatticeSimulation(Potts((3, 3), 5), start="cold").state.tolist() == [[0] * 3] * 3
    assert set(np.unique(LatticeSimulation(Ising((9, 9), 0.0), rng=0).state)) == {-1, 1}


def test_a_burn_in_is_made_and_not_measured():
    one, other = (LatticeSimulation(Ising((8, 8), 0.3), rng=0) for _ in range(2))
    record, whole = one.run(9, burn_in=5, measure_every=3), other.run(14)
    assert record.sweep.tolist() == [8, 11, 14] and record.complete
    assert np.array_equal(record.energy, whole.energy[[7, 10, 13]])
    assert whole.after(12).sweep.tolist() == [13, 14]
    assert np.isnan(whole.after(14).mean("energy"))


def test_stopping_leaves_whole_sweeps():
    model = Potts((200, 200), 10, 1.0)
    simulation = LatticeSimulation(model, rng=0)
    record = simulation.run(10**6, time_limit=0.3)
    assert not record.complete and 0 < len(record) == simulation.sweeps < 10**6
    told = []

    def stop(progress):
        told.append(progress)
        return len(told) == 2

    before = simulation.sweeps
    record = simulation.run(10**6, callback=stop)
    assert not record.complete and told[1].step == simulation.sweeps > before
    assert told[1].value == record.energy[-1]
    reference = LatticeSimulation(model, rng=0)
    reference.run(simulation.sweeps)
    assert np.array_equal(reference.state, simulation.state)


def test_interrupt_leaves_whole_sweeps():
    simulation = LatticeSimulation(Ising((256, 256), 0.4, periodic=True), rng=0)
    simulation.run(10)
    stop = threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT))
    stop.start()
    with patience(), pytest.raises(KeyboardInterrupt):
        simulation.run(10**9, measure_every=1000)
    made = simulation.sweeps
    assert made > 10
    reference = LatticeSimulation(Ising((256, 256), 0.4, periodic=True), rng=0, n_jobs=1)
    reference.run(made, measure_every=made)
    assert np.array_equal(reference.state, simulation.state)
    assert simulation.run(1).score[0] == pytest.approx(-simulation.model.energy(simulation.state))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (
            lambda: LatticeSimulation(Ising((4, 5), 1.0, periodic=True), method="gibbs"),
            r"axis 1 has 5 sites.*scan='typewriter'",
        ),
        (
            lambda: LatticeSimulation(Potts((5, 4), 3, periodic=True), method="metropolis"),
            r"even length.*method='swendsen_wang'",
        ),
        (lambda: LatticeSimulation(Ising([(0, 1), (1, 2)], 1.0)), r"got Ising on a graph; mf.sample takes"),
        (lambda: LatticeSimulation(MarkovNetwork({"A": 2})), "an Ising or a Potts model, got MarkovNetwork"),
        (lambda: LatticeSimulation(Potts((4, 4), 300)), "at most 255 states, got 300"),
        (
            lambda: LatticeSimulation(Ising((4, 4)), method="heat"),
            "auto, gibbs, metropolis, swendsen_wang, wolff, got 'heat'",
        ),
        (lambda: LatticeSimulation(Ising((4, 4)), scan="random"), "'checkerboard' or 'typewriter', got 'random'"),
        (lambda: LatticeSimulation(Ising((4, 4)), method="wolff", wolff_clusters=0), "at least 1, got 0"),
        (lambda: LatticeSimulation(Ising((4, 4)), n_jobs=0), "n_jobs must be at least 1, got 0"),
        (lambda: LatticeSimulation(Ising((4, 4)), start="hot"), "'random', 'cold' or an array, got 'hot'"),
        (lambda: LatticeSimulation(Ising((4, 4)), start=np.ones((4, 3))), r"the shape \(4, 4\), got \(4, 3\)"),
        (lambda: LatticeSimulation(Ising((4, 4)), start=np.zeros((4, 4))), r"spins -1 and 1, got 0"),
        (lambda: LatticeSimulation(Potts((4, 4), 3), start=np.full((4, 4), 3)), "states 0 to 2, got 3"),
        (lambda: LatticeSimulation(Ising((4, 4))).run(-1), r"run\(sweeps\) must be an integer of at least 0, got -1"),
        (lambda: LatticeSimulation(Ising((4, 4))).run(1, measure_every=0), "at least 1, got 0"),
        (lambda: list(LatticeSimulation(Ising((4, 4))).frames(1, every=0)), r"every=...\) must be.*at least 1, got 0"),
        (lambda: list(LatticeSimulation(Ising((4, 4))).frames("x")), r"frames\(n\) must be an integer.*got 'x'"),
        (lambda: LatticeSimulation(Ising((4, 4))).run(1.5), r"run\(sweeps\) must be an integer.*got 1.5"),
        (lambda: LatticeSimulation(Ising((4, 4))).run(None), r"run\(sweeps\) must be an integer.*got None"),
        (lambda: LatticeSimulation(Ising((4, 4))).run(1, measure_every="x"), r"measure_every=...\) must.*got 'x'"),
        (lambda: LatticeSimulation(Ising((4, 4))).run(1, burn_in=-1), r"burn_in=...\) must.*at least 0, got -1"),
        (
            lambda: LatticeSimulation(Ising((4, 4))).run(1, callback=3),
            "callback must be a function of a Progress, got 3",
        ),
        (lambda: LatticeSimulation(Ising((4, 4)), method="wolff", wolff_clusters=None), "at least 1, got None"),
        (lambda: LatticeSimulation(Ising((4, 4))).run(1).mean("heat"), "has the series sweep.*got 'heat'"),
        (lambda: lattice_average(None), "at least 4 measurements of each run, all of them numbers, got None"),
        (lambda: lattice_average([1.0, 2.0, 3.0, 4.0]), "a series of numbers for each"),
        (lambda: lattice_average([[1.0, 2.0, np.nan, 3.0]]), "all of them finite, got nan"),
    ],
)
def test_wrong_arguments(make, match):
    with pytest.raises(ModelError, match=match):
        make()


@pytest.mark.parametrize(("method", "size"), [("gibbs", 32), ("gibbs", 64), ("metropolis", 64), ("swendsen_wang", 16)])
def test_errors_at_the_critical_coupling_cover_the_exact_energy(method, size):
    """Forty pairs of runs from a random and a cold start, far too short for single sites: 38 within three errors."""
    coupling = critical_coupling()
    model = Ising((size, size), coupling, periodic=True)
    exact = torus_energy((size, size), coupling)
    scores, converged = [], 0
    for seed in range(40):
        runs = []
        for start in ("random", "cold"):
            simulation = LatticeSimulation(model, method=method, rng=seed, start=start)
            simulation.run(200)
            runs.append(simulation.run(800).energy)
        found = lattice_average(runs)
        scores.append((found.mean - exact) / found.standard_error)
        converged += found.converged
    assert (np.abs(scores) <= 3).sum() >= 38, scores
    assert converged >= 38 if method == "swendsen_wang" else converged <= 20
    # Nor are errors so large that they say nothing.
    assert np.mean(np.square(scores)) > 0.1


def test_drift_counts_in_the_error_of_one_run():
    """A large lattice on its way from a random start: its energy falls all along, and the error must not be small."""
    simulation = LatticeSimulation(Ising((128, 128), 0.6, periodic=True), rng=0)
    record = simulation.run(60)
    first, last = record.energy[:30].mean(), record.energy[30:].mean()
    assert record.standard_error("energy") >= abs(first - last) > 0.02
    with pytest.raises(ModelError, match="at least 4 measurements of each run, got 2"):
        lattice_average([record.energy, record.energy[:2]])
