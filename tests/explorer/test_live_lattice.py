"""The lattice behind the page: settings, frames, Onsager's curves."""

import json

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.works.live_lattice import METHODS, LiveLattice, exact_curves


def test_exact_curves_are_onsagers():
    curves = exact_curves()
    assert len({len(x) for x in curves.values()}) == 1
    for t, energy, size in zip(*curves.values(), strict=True):
        assert energy == pytest.approx(t * mf.lattice.ising_energy(1 / t), abs=1e-5)
        assert size == pytest.approx(mf.lattice.ising_magnetisation(1 / t), abs=1e-5)
    assert (np.diff(curves["energy"]) > 0).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("kind", "states"), [("ising", 2), ("potts", 3)])
def test_frames_are_states(method, kind, states):
    live = LiveLattice(rng=0, size=16, kind=kind, states=states, method=method, temperature=1.1)
    frame = live.frame(3)
    length = int.from_bytes(frame[:4], "little")
    told, pixels = json.loads(frame[4 : 4 + length]), np.frombuffer(frame[4 + length :], np.uint8)
    assert len(pixels) == 16 * 16 and pixels.max() < states
    assert told["settings"]["method"] == method and told["sweeps"] <= 3
    # Energy of the frame, counted anew: the last one measured is that of the states sent.
    grid = pixels.reshape(16, 16)
    same = sum((grid == np.roll(grid, 1, axis)).sum() for axis in (0, 1))
    energy = -same / 256 if kind == "potts" else -(2 * same - 512) / 256
    if told["energy"]:
        assert told["energy"][-1] == pytest.approx(energy, abs=1e-5)


def test_averages_agree_with_onsager():
    """At 1.8, far below the critical point, a lattice of 64 is as good as infinite."""
    live = LiveLattice(rng=1, size=64, method="swendsen_wang", temperature=1.8, start="cold")
    for _ in range(8):
        told, _ = live.advance(100)
    averages, exact = told["averages"], told["exact"]
    assert averages["converged"]
    for name in ("energy", "magnetisation"):
        assert abs(averages[name]["mean"] - exact[name]) < 6 * averages[name]["error"] + 1e-3


def test_a_new_temperature_keeps_the_configuration():
    live = LiveLattice(rng=0, size=16, temperature=1.0)
    live.advance(20)
    _, before = live.advance(0)
    live.change(temperature=3.0, method="gibbs")
    told, after = live.advance(0)
    assert before == after and told["averages"] is None and told["sweeps"] == 20
    live.change(size=32)
    told, fresh = live.advance(0)
    assert len(fresh) == 1024 and told["sweeps"] == 0
    live.advance(5)
    live.change(restart=True, start="cold")
    told, cold = live.advance(0)
    assert told["sweeps"] == 0 and len(set(cold)) == 1 and told["largest_region"] == 1.0


def test_regions_are_shaded_by_size():
    live = LiveLattice(rng=0, size=16, start="cold", view="regions")
    told, shades = live.advance(0)
    assert set(shades) == {255} and told["regions"] == 1 and told["mean_region"] == 256


def test_potts_models_have_no_onsager():
    live = LiveLattice(rng=0, size=16, kind="potts", states=4)
    told, _ = live.advance(1)
    assert told["exact"] is None
    assert told["critical_temperature"] == pytest.approx(1 / mf.lattice.critical_coupling(4))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 1024}, "size of a live lattice must be an integer from 16 to 512, got 1024"),
        ({"size": 17}, "must be even, for checkerboards, got 17"),
        ({"size": "x"}, "must be an integer"),
        ({"states": 99, "kind": "potts"}, "states of a live lattice must be an integer from 2 to 8"),
        ({"temperature": 0.0}, "temperature of a live lattice must be a number of at least 0.2"),
        ({"temperature": 1e9}, "must be at most 6"),
        ({"temperature": None}, "must be a number"),
        ({"kind": "<b>"}, "kind of a live lattice must be ising, potts"),
        ({"method": ["gibbs"]}, "method of a live lattice must be gibbs"),
        ({"start": 1}, "start of a live lattice"),
        ({"view": "x"}, "view of a live lattice"),
        ({"colour": 1}, "no setting 'colour'"),
    ],
)
def test_settings_are_checked(settings, message):
    live = LiveLattice(rng=0, size=16)
    with pytest.raises(ModelError, match=message):
        live.change(**settings)
    assert live.settings["size"] == 16
    live.advance(1)


@pytest.mark.parametrize("sweeps", [-1, 10**9, 1.5, "x"])
def test_sweeps_are_checked(sweeps):
    with pytest.raises(ModelError, match="sweeps of a frame must be an integer from 0 to 1000"):
        LiveLattice(rng=0, size=16).advance(sweeps)
