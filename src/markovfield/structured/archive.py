"""Estimators of conditional models in the library's own save format (`markovfield.files` has the format itself).

Settings are plain values, or objects of the library: methods, solvers, objectives and models are frozen dataclasses,
and are written as their name and their fields. Nothing else is made from a file.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield._exports import NAMESPACES, names_in
from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike, read_archive, write_archive
from markovfield.learning.max_margin.kernel_expansion import KernelExpansion
from markovfield.structured.core.conditional import ConditionalModel
from markovfield.structured.models.kernelised import kernelised, plain_model

if TYPE_CHECKING:
    from markovfield.structured.conditional_estimator import ConditionalEstimator

__all__ = ["from_archive", "load_structured", "save_structured"]

VERSION = 1
# Where objects that settings may hold, and estimators, are looked for.
SPACES = ("methods", "structured", "learning", "vision", "sequence", "grammar", "dependency", "alignment")


def save_structured(estimator: ConditionalEstimator, path: PathLike) -> None:
    """Write a fitted estimator; an interrupted save leaves the file that was there."""
    shape, arrays = estimator.model_.known.described()
    settings = {}
    if callable(getattr(estimator, "kernel", None)):
        raise ModelError("a kernel that is a function cannot be saved: a file holds numbers and names")
    for name, value in estimator.get_params(deep=False).items():
        settings[name] = None if name == "rng" else _plain(value, name)
    model, expansion = estimator.model_, getattr(estimator.model_, "expansion", None)
    if expansion is not None:
        about_kernel, support = expansion.described()
        model, arrays = plain_model(model), {**arrays, **support}
    about = {
        "class": type(estimator).__name__,
        "settings": settings,
        "model": _plain(_settings_only(model), "model"),
        "shape": shape,
    }
    if expansion is not None:
        about["kernel"] = about_kernel
    write_archive(path, VERSION, about, {**arrays, "weights": estimator.weights_})


def load_structured(path: PathLike) -> Any:
    """Read an estimator that `save_structured` wrote; nothing in the file is ever executed."""
    return read_archive(path, VERSION, from_archive)


def from_archive(about: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The estimator that an archive describes."""
    from markovfield.structured.conditional_estimator import ConditionalEstimator

    kind = _found(about.get("class"))
    if not (isinstance(kind, type) and issubclass(kind, ConditionalEstimator)):
        raise FormatError(f"it holds a {about.get('class')!r}, which is no estimator of a conditional model")
    given, described = about.get("settings"), about.get("shape")
    if not isinstance(given, dict) or not isinstance(described, dict):
        raise FormatError("it has no settings or no shape")
    try:
        estimator = kind(**{str(name): _object(value) for name, value in given.items()})
        model = _object(about.get("model"))
        if not isinstance(model, ConditionalModel):
            raise FormatError("it has no model")
        model = model.with_shape(model.shape_class.restored(described, arrays))
        if about.get("kernel") is not None:
            n_labels = model.n_classes
            model = kernelised(model, n_labels, KernelExpansion.restored(about["kernel"], arrays, n_labels))
        n_weights = model.n_weights
    except (TypeError, ModelError, AttributeError, AssertionError) as error:
        raise FormatError(f"its settings do not fit: {error}") from None
    weights = arrays.get("weights")
    if weights is None or weights.dtype != np.float64 or len(weights) != n_weights or not np.isfinite(weights).all():
        raise FormatError(f"it needs {n_weights} finite weights")
    estimator.model_, estimator.weights_ = model, weights
    return estimator


def _settings_only(model: ConditionalModel) -> ConditionalModel:
    return model.with_shape(None)


def _plain(value: Any, name: str) -> Any:
    """A setting as JSON can hold it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item(), name)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ModelError(f"setting {name} is {value}, which cannot be saved")
        return value
    if isinstance(value, list | tuple):
        return {"tuple": [_plain(v, name) for v in value]}
    if isinstance(value, np.ndarray):
        return {"array": [_plain(v, name) for v in value.ravel().tolist()], "shape": list(value.shape)}
    if isinstance(value, dict) or (hasattr(value, "keys") and hasattr(value, "items")):
        return {"dict": [[_plain(k, name), _plain(v, name)] for k, v in value.items()]}
    if is_dataclass(value) and not isinstance(value, type) and _place(type(value).__name__) is not None:
        shown = {f.name: _plain(getattr(value, f.name), f.name) for f in fields(value) if f.init and f.name != "shape"}
        return {"object": type(value).__name__, "fields": shown}
    if isinstance(value, type):
        return {"class": value.__name__}
    raise ModelError(
        f"setting {name} is {type(value).__name__} {getattr(value, '__name__', '')!r}, which cannot be saved: a file "
        "holds numbers, texts and objects of markovfield"
    )


def _place(name: Any) -> str | None:
    """The module of a public name."""
    for space in (space for space in SPACES if space == "methods" or space in NAMESPACES):
        found = names_in(space).get(name) if isinstance(name, str) else None
        if found is not None:
            return found
    return None


def _found(name: Any) -> Any:
    place = _place(name)
    if place is None:
        raise FormatError(f"it holds a {name!r}, which this Markovfield does not know")
    return getattr(import_module(place), name)


def _object(value: Any) -> Any:
    """The setting that JSON holds."""
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_object(v) for v in value["tuple"])
    if "array" in value:
        return np.array(value["array"]).reshape([int(n) for n in value["shape"]])
    if "dict" in value:
        return {_object(k): _object(v) for k, v in value["dict"]}
    if "class" in value:
        return _found(value["class"])
    kind = _found(value.get("object"))
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise FormatError(f"{value.get('object')!r} is no object that a setting may hold")
    return kind(**{str(name): _object(v) for name, v in value["fields"].items()})
