"""Arrays in a model's own shape, as rows of state numbers: spins, images of a lattice, visible units of a machine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.models import BoltzmannMachine, Hopfield, Ising, Potts, RestrictedBoltzmannMachine

__all__ = ["as_rows", "hidden_units"]


def as_rows(model: Any, data: Any) -> Any:
    """``int[rows, n]`` state numbers where ``data`` is an array in the shape of a lattice, image or visible layer.

    Spins -1 and +1 are taken for what they are where an array has no 0; everything else comes back as it is.
    """
    if not isinstance(data, np.ndarray | list | tuple) or not isinstance(
        model, Ising | Potts | Hopfield | BoltzmannMachine | RestrictedBoltzmannMachine
    ):
        return data
    try:
        array = np.asarray(data)
    except ValueError:
        return data
    if array.dtype.names or array.dtype.kind not in "iubf":
        return data
    if isinstance(model, BoltzmannMachine | RestrictedBoltzmannMachine):
        return _visible(model, array)
    shape = model.shape
    n = model.n_units if isinstance(model, Hopfield) else model.n_variables
    if shape is not None and array.shape[-len(shape) :] == tuple(shape) and array.ndim in (len(shape), len(shape) + 1):
        array = array.reshape(-1, math.prod(shape))
    if array.ndim != 2 or array.shape[1] != n:
        raise ModelError(f"data of {model!r} need the shape (rows, {n}) or (rows, *shape), got {array.shape}")
    spins = isinstance(model, Hopfield) or (isinstance(model, Ising) and model.spins == "-1/+1")
    if array.dtype == np.bool_:
        return array.astype(np.int16)
    whole = array.astype(np.int64)
    if not np.array_equal(whole, array):
        raise ModelError(f"data of {model!r} must be states, got {array[whole != array].flat[0]}")
    if spins and array.size and np.isin(whole, (-1, 1)).all():
        return ((whole + 1) // 2).astype(np.int16)
    return whole


def _visible(model: Any, array: Any) -> Any:
    """Rows of visible units, those of hidden ones missing; or rows of all units."""
    n = model.n_visible
    if array.ndim != 2 or array.shape[1] not in (n, n + model.n_hidden):
        raise ModelError(f"data of {model!r} need the shape (rows, {n}), one column a visible unit, got {array.shape}")
    strange = (array != 0) & (array != 1) & (array != -1)
    if strange.any():
        raise ModelError(f"data of {model!r} must be 0 and 1 (-1 where missing), got {array[strange].flat[0]}")
    rows = np.full((len(array), n + model.n_hidden), -1, np.int16)
    rows[:, : array.shape[1]] = array
    return rows


def hidden_units(model: Any, hidden: Any) -> Any:
    """Variables that are meant to have no values: those named, and the hidden units of a machine."""
    if not isinstance(model, BoltzmannMachine | RestrictedBoltzmannMachine) or not isinstance(hidden, list | tuple):
        return hidden
    return [*hidden, *(f"h{j}" for j in range(model.n_hidden) if f"h{j}" not in hidden)]
