"""A lattice that moves on as long as somebody looks: settings, sweeps, frames, and Onsager's curves beside them."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np

from markovfield._validation import number, whole_number
from markovfield.exceptions import ModelError
from markovfield.lattice.averages import lattice_average
from markovfield.lattice.onsager import critical_coupling, ising_energy, ising_magnetisation
from markovfield.lattice.simulation import LatticeSimulation
from markovfield.models.ising import Ising
from markovfield.models.potts import Potts

__all__ = ["LiveLattice", "exact_curves"]

KINDS = ("ising", "potts")
METHODS = ("gibbs", "metropolis", "swendsen_wang", "wolff")
STARTS = ("random", "cold")
VIEWS = ("states", "regions")
SMALLEST, LARGEST, MOST_STATES = 16, 512, 8
COLDEST, HOTTEST = 0.2, 6.0
MOST_SWEEPS = 1000
# A frame is sent after so many seconds with the sweeps made until then, so that the page never hangs on a slow one.
FRAME_SECONDS = 0.25
# Measurements that are kept since the last change; averages are over the later half, the earlier one is burn-in.
KEPT = 4096


@cache
def exact_curves() -> dict[str, list[float]]:
    """Onsager's energy and Yang's magnetisation of the infinite Ising lattice with coupling J = 1, by temperature.

    Examples
    --------
    >>> curves = exact_curves()
    >>> round(curves["energy"][0], 3), curves["magnetisation"][-1]
    (-2.0, 0.0)
    """
    critical = 1 / critical_coupling()
    grid = np.unique(np.round(np.concatenate([np.linspace(0.5, 5.0, 46), critical + np.linspace(-0.2, 0.2, 21)]), 4))
    return {
        "temperature": grid.tolist(),
        "energy": [round(t * ising_energy(1 / t), 6) for t in grid.tolist()],
        "magnetisation": [round(ising_magnetisation(1 / t), 6) for t in grid.tolist()],
    }


class LiveLattice:
    """An Ising or Potts model on a periodic square lattice with coupling J = 1, at a temperature that may change.

    Nothing moves by itself: `advance` makes sweeps and answers one frame. Whoever stops asking has stopped it.

    Parameters
    ----------
    settings
        See `change`.
    rng
        A seed, a generator or None.

    Examples
    --------
    >>> live = LiveLattice(size=32, method="wolff", temperature=1.5, rng=0)
    >>> told, states = live.advance(50)
    >>> told["sweeps"], len(states), set(states) <= {0, 1}
    (50, 1024, True)
    """

    def __init__(self, rng: Any = None, **settings: Any) -> None:
        self._rng = np.random.default_rng(rng)
        self.settings: dict[str, Any] = {
            "kind": "ising",
            "states": 2,
            "size": 128,
            "method": "swendsen_wang",
            "temperature": round(1 / critical_coupling(), 3),
            "start": "random",
            "view": "states",
        }
        self._simulation: LatticeSimulation | None = None
        self.sweeps = 0
        self.change(**settings)

    @property
    def critical_temperature(self) -> float:
        """Where order sets in on the infinite lattice."""
        return 1 / critical_coupling(None if self.settings["kind"] == "ising" else self.settings["states"])

    def change(self, *, restart: bool = False, **settings: Any) -> None:
        """Other settings; the configuration stays as long as its size and states do.

        Parameters
        ----------
        restart
            Start anew even so.
        settings
            ``kind`` (``ising``, ``potts``), ``states`` (2 to 8, of Potts models), ``size`` (even, 16 to 512),
            ``method`` (``gibbs``, ``metropolis``, ``swendsen_wang``, ``wolff``), ``temperature`` (0.2 to 6), ``start``
            (``random``, ``cold``) and ``view`` (``states``, or ``regions`` of equal states shaded by their size).
        """
        wanted = _checked({**self.settings, **settings}, set(settings) - set(self.settings))
        if wanted["kind"] == "ising":
            wanted["states"] = 2
        shape = ("kind", "states", "size", "start")
        fresh = restart or self._simulation is None or any(wanted[k] != self.settings[k] for k in shape)
        if not fresh and all(wanted[k] == self.settings[k] for k in ("method", "temperature")):
            self.settings = wanted
            return
        start = wanted["start"] if fresh or self._simulation is None else self._simulation.state
        side, coupling = wanted["size"], 1 / wanted["temperature"]
        model: Any = Ising((side, side), coupling, periodic=True)
        if wanted["kind"] == "potts":
            model = Potts((side, side), wanted["states"], coupling, periodic=True)
        self._simulation = LatticeSimulation(model, method=wanted["method"], rng=self._rng, start=start)
        self.sweeps = 0 if fresh else self.sweeps
        self._energy, self._magnetisation = np.zeros(0), np.zeros(0)
        self.settings = wanted

    def advance(self, sweeps: int, seconds: float | None = None) -> tuple[dict[str, Any], bytes]:
        """Make sweeps, as many as fit in so many seconds; what was measured, and a byte for each site."""
        simulation = self._simulation
        assert simulation is not None
        sweeps = whole_number(sweeps, "sweeps of a frame", 0, MOST_SWEEPS)
        before = simulation.sweeps
        record = simulation.run(sweeps, time_limit=seconds)
        self.sweeps += simulation.sweeps - before
        temperature = self.settings["temperature"]
        energy, size = record.energy * temperature, np.abs(record.magnetisation)
        self._energy = np.concatenate([self._energy, energy])[-KEPT:]
        self._magnetisation = np.concatenate([self._magnetisation, size])[-KEPT:]
        labels, sizes = simulation.clusters()
        n = labels.size
        told = {
            "settings": self.settings,
            "sweeps": self.sweeps,
            "energy": _rounded(energy),
            "magnetisation": _rounded(size),
            "averages": self._averages(),
            "largest_region": float(sizes.max() / n),
            "mean_region": float((sizes.astype(np.float64) ** 2).sum() / n),
            "regions": len(sizes),
            "critical_temperature": self.critical_temperature,
            "exact": self._exact(),
        }
        if self.settings["view"] == "regions":
            shades = np.rint(255 * np.log(sizes) / math.log(n)).astype(np.uint8)
            return told, shades[labels].tobytes()
        state = simulation.state
        return told, ((state + 1) // 2 if self.settings["kind"] == "ising" else state).astype(np.uint8).tobytes()

    def frame(self, sweeps: int) -> bytes:
        """The same as one message: length of the text in four bytes (little end first), the text (JSON), the states."""
        told, states = self.advance(sweeps, FRAME_SECONDS)
        text = json.dumps(told).encode()
        return len(text).to_bytes(4, "little") + text + states

    def _averages(self) -> dict[str, Any] | None:
        half = len(self._energy) // 2
        if len(self._energy) - half < 8:
            return None
        found = [lattice_average([x[half:]]) for x in (self._energy, self._magnetisation)]
        return {
            name: {"mean": one.mean, "error": one.standard_error if math.isfinite(one.standard_error) else None}
            for name, one in zip(("energy", "magnetisation"), found, strict=True)
        } | {"converged": all(one.converged for one in found), "measurements": len(self._energy) - half}

    def _exact(self) -> dict[str, float] | None:
        """Of the infinite lattice at this temperature; Potts models have no such formulas."""
        if self.settings["kind"] != "ising":
            return None
        temperature = self.settings["temperature"]
        return {
            "energy": temperature * ising_energy(1 / temperature),
            "magnetisation": ising_magnetisation(1 / temperature),
        }


def _rounded(series: Any) -> list[float]:
    """At most 64 of the numbers, evenly taken: what one frame adds to a curve."""
    step = max(1, len(series) // 64)
    return [round(float(x), 6) for x in series[step - 1 :: step]]


def _checked(settings: dict[str, Any], unknown: set[str]) -> dict[str, Any]:
    if unknown:
        raise ModelError(f"a live lattice has no setting {min(unknown)!r}")
    for name, known in (("kind", KINDS), ("method", METHODS), ("start", STARTS), ("view", VIEWS)):
        if settings[name] not in known:
            raise ModelError(f"{name} of a live lattice must be {', '.join(known)}, got {settings[name]!r:.60}")
    size = whole_number(settings["size"], "size of a live lattice", SMALLEST, LARGEST)
    if size % 2:
        raise ModelError(f"size of a live lattice must be even, for checkerboards, got {size}")
    states = whole_number(settings["states"], "states of a live lattice", 2, MOST_STATES)
    temperature = number(settings["temperature"], "temperature of a live lattice", least=COLDEST)
    if temperature > HOTTEST:
        raise ModelError(f"temperature of a live lattice must be at most {HOTTEST:g}, got {temperature:g}")
    return {**settings, "size": size, "states": states, "temperature": float(temperature)}
