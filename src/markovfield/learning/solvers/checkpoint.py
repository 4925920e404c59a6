"""What a solver has done so far, in a file to go on from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield._validation import number
from markovfield.exceptions import ModelError
from markovfield.files import PathLike, read_archive, write_archive
from markovfield.kernels.compilations import clock

__all__ = ["Checkpoint", "Keeper", "State", "check_same"]

VERSION = 1
# Vectors, and what JSON can hold.
State = dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """A file that a solver writes its state to and goes on from when it is there.

    It is replaced whole or not at all, every so many seconds and at the end, also when the work is stopped between two
    steps. Nothing in it is ever executed. The same call goes on exactly where it was, a call that allows more
    iterations from there; remove the file to begin anew.

    Parameters
    ----------
    path
        Name of the file.
    seconds
        Between two writes.
    """

    path: PathLike
    seconds: float = 30.0

    def __post_init__(self) -> None:
        number(self.seconds, "seconds of Checkpoint", least=0.0)

    def read(self, solver: str, n_weights: int) -> State | None:
        """The state that is there, None where the file is not; an error where it is another solver's or model's."""
        if not os.path.exists(self.path):
            return None
        described, state = read_archive(self.path, VERSION, lambda described, arrays: (described, arrays))
        if described.get("kind") != "checkpoint" or described.get("solver") != solver:
            raise ModelError(
                f"{os.fspath(self.path)} is no checkpoint of {solver} but of {described.get('solver')!r}: remove it"
            )
        if len(state.get("weights", ())) != n_weights:
            raise ModelError(
                f"the checkpoint {os.fspath(self.path)} has {len(state.get('weights', ()))} weights, and there are "
                f"{n_weights}: remove it"
            )
        return {**described["state"], **state}

    def write(self, solver: str, state: Mapping[str, Any]) -> None:
        """Write a state, atomically."""
        arrays = {name: value.ravel() for name, value in state.items() if isinstance(value, np.ndarray)}
        rest = {name: value for name, value in state.items() if name not in arrays}
        write_archive(self.path, VERSION, {"kind": "checkpoint", "solver": solver, "state": rest}, arrays)


def check_same(value: float, values: Sequence[float]) -> None:
    """Raise where the objective has another value than when the checkpoint was written."""
    if len(values) and not abs(value - values[-1]) <= 1e-8 * max(1.0, abs(value)):
        raise ModelError(
            f"the checkpoint belongs to another objective: it was {values[-1]:.8g} there and is {value:.8g}; remove it"
        )


class Keeper:
    """When a solver writes its state, if at all."""

    def __init__(self, checkpoint: Checkpoint | None, solver: str) -> None:
        self.checkpoint, self.solver = checkpoint, solver
        self.last = clock()

    def read(self, n_weights: int) -> State | None:
        """What to go on from."""
        return None if self.checkpoint is None else self.checkpoint.read(self.solver, n_weights)

    def offer(self, state: Callable[[], State], *, now: bool = False) -> None:
        """Write if it is time, or now."""
        if self.checkpoint is None or not (now or clock() - self.last >= self.checkpoint.seconds):
            return
        self.checkpoint.write(self.solver, state())
        self.last = clock()
