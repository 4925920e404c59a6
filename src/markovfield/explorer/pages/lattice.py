"""The page of Ising and Potts lattices: a simulation that moves on while it is looked at."""

from __future__ import annotations

from typing import Any

from markovfield.explorer.core.page import Channel, Page
from markovfield.explorer.core.subject import Subject, is_a

__all__ = ["PAGE"]


def _offered(subject: Subject) -> bool:
    return is_a(subject.model, "Ising", "Potts") and len(getattr(subject.model, "shape", None) or ()) == 2


def _settings(subject: Subject) -> dict[str, Any]:
    """What a lattice starts with: kind, states, side and temperature of the model, as near as there are any."""
    import numpy as np

    from markovfield.explorer.works.live_lattice import COLDEST, HOTTEST, LARGEST, MOST_STATES, SMALLEST, LiveLattice

    model = subject.model
    kind = "ising" if is_a(model, "Ising") else "potts"
    side = 2 * (min(max(*model.shape, SMALLEST), LARGEST) // 2)
    strength = float(np.abs(np.asarray(model.coupling, np.float64)).mean())
    temperature = min(max(1 / strength, COLDEST), HOTTEST) if strength > 0 else HOTTEST
    states = 2 if kind == "ising" else min(int(model.n_states), MOST_STATES)
    return LiveLattice(kind=kind, states=states, size=side, temperature=round(temperature, 3)).settings


def _start(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    from markovfield.explorer.works.live_lattice import COLDEST, HOTTEST, LiveLattice, exact_curves

    settings = _settings(subject)
    limits = {
        "coldest": COLDEST,
        "hottest": HOTTEST,
        "critical_temperature": LiveLattice(**settings).critical_temperature,
    }
    return {"settings": settings, "curves": exact_curves(), "limits": limits}


def _frames(subject: Subject, channel: Channel) -> None:
    """A frame for each word of the browser: ``settings``, ``sweeps`` to make, ``restarts`` asked for so far."""
    from markovfield.exceptions import ModelError
    from markovfield.explorer.works.live_lattice import LiveLattice

    live, restarts = LiveLattice(**_settings(subject)), 0
    while not channel.closed:
        asked = channel.latest(None)
        if asked is None:
            continue
        try:
            wanted = asked.get("settings", {})
            if not isinstance(wanted, dict):
                raise ModelError(f"settings of a lattice must be a JSON object, got {type(wanted).__name__}")
            count = asked.get("restarts", restarts)
            live.change(restart=count != restarts, **{str(k): v for k, v in wanted.items() if k != "restart"})
            restarts = count
            channel.send(live.frame(asked.get("sweeps", 1)))
        except ModelError as error:
            channel.send({"error": str(error)})


PAGE = Page("lattice", "Lattice", _offered, {"start": _start}, {"frames": _frames})
