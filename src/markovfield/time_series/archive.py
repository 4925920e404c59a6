"""Time series models as something for JSON and vectors, and back; `markovfield.files` has the file itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.files import write_archive

if TYPE_CHECKING:
    from markovfield.time_series.state_space import LinearStateSpace
    from markovfield.time_series.vector_autoregression import VectorAutoregression

__all__ = ["ARRAYS", "autoregression_of", "save_autoregression", "save_state_space", "state_space_of"]

VERSION = 1
ARRAYS = (
    "transition",
    "transition_noise",
    "observation",
    "observation_noise",
    "transition_intercept",
    "observation_intercept",
    "initial_mean",
    "initial_covariance",
)


def save_autoregression(model: VectorAutoregression, path: Any) -> None:
    """Weights, noise, which of them are free, and the end of the data."""
    model.check_fitted()
    history = np.zeros((0, model.n_variables)) if model.history_ is None else model.history_
    about = {
        "class": "VectorAutoregression",
        "variables": list(model.variables_),
        "order": model.order,
        "intercept": model.intercept,
    }
    arrays = {
        "coefficients": model.coefficients_.ravel(),
        "constants": model.intercept_,
        "noise": model.noise_covariance_.ravel(),
        "precision": model.noise_precision_.ravel(),
        "free": model.free_.astype(np.int8).ravel(),
        "joined": model.joined_.astype(np.int8).ravel(),
        "history": history.ravel(),
    }
    write_archive(path, VERSION, about, arrays)


def _names(about: dict[str, Any], key: str) -> tuple[Any, ...]:
    names = about.get(key)
    if not isinstance(names, list) or not names or any(type(v) not in (str, int) for v in names):
        raise FormatError(f"its {key} are not a list of str and int")
    if len(set(names)) != len(names):
        raise FormatError(f"its {key} have a name twice")
    return tuple(names)


def _numbers(arrays: dict[str, Any], name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    vector = arrays.get(name)
    if vector is None or vector.dtype != dtype or len(vector) != math.prod(shape):
        raise FormatError(f"{name} is missing, of another type or of another size")
    if dtype is np.float64 and not np.isfinite(vector).all():
        raise FormatError(f"{name} has numbers that are not finite")
    return np.array(vector).reshape(shape)


def _symmetric(matrix: FloatArray, name: str) -> FloatArray:
    largest = np.abs(matrix).max(initial=0.0)
    least = np.linalg.eigvalsh(matrix)[0] if len(matrix) else 1.0
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-9 * largest or least <= 0:
        raise FormatError(f"{name} is not symmetric and positive definite")
    return matrix


def autoregression_of(cls: Any, about: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The model of an archive; whatever does not fit is a `FormatError`."""
    names, order, intercept = _names(about, "variables"), about.get("order"), about.get("intercept")
    k = len(names)
    if type(order) is not int or not 1 <= order <= 10_000 or not isinstance(intercept, bool):
        raise FormatError("its order is not a positive number, or its intercept neither true nor false")
    made = cls(order, intercept=intercept)
    made._hold(
        names,
        _numbers(arrays, "coefficients", (order, k, k)),
        _numbers(arrays, "constants", (k,)),
        _symmetric(_numbers(arrays, "noise", (k, k)), "noise"),
        _symmetric(_numbers(arrays, "precision", (k, k)), "precision"),
        _numbers(arrays, "free", (order, k, k), np.int8) != 0,
        _numbers(arrays, "joined", (k, k), np.int8) != 0,
    )
    history = arrays.get("history")
    if history is not None and len(history):
        made.history_ = _numbers(arrays, "history", (order, k))
    return made


def save_state_space(model: LinearStateSpace, path: Any) -> None:
    """All arrays and names."""
    about = {"class": "LinearStateSpace", "variables": list(model.variables), "states": list(model.states)}
    write_archive(path, VERSION, about, {name: getattr(model, name).ravel() for name in ARRAYS})


def state_space_of(cls: Any, about: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The model of an archive; whatever does not fit is a `FormatError`."""
    names, states = _names(about, "variables"), _names(about, "states")
    m, n = len(names), len(states)
    shapes = ((n, n), (n, n), (m, n), (m, m), (n,), (m,), (n,), (n, n))
    found = {name: _numbers(arrays, name, shape) for name, shape in zip(ARRAYS, shapes, strict=True)}
    try:
        return cls(**found, variables=names, states=states)
    except ModelError as error:
        raise FormatError(str(error)) from None
