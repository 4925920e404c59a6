"""A fitted chain as something for JSON and vectors, and back; the file itself is `markovfield.files`' business."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import FormatError, ModelError
from markovfield.structured.chain_features import ChainFeatures, padded
from markovfield.structured.vectoriser import AttributeVectoriser

__all__ = ["VERSION", "described", "restored"]

VERSION = 1
Arrays = dict[str, npt.NDArray[Any]]
_PLAIN = (str, int, float, bool, type(None))
_DTYPES = {
    "row_of": np.int32,
    "row_cells": np.int64,
    "pair_start": np.int64,
    "pair_label": np.int32,
    "transition_cells": np.int64,
    "weights": np.float64,
}


def described(crf: Any) -> tuple[dict[str, Any], Arrays]:
    """What an archive holds of a fitted `ChainCRF`: settings, labels, attributes, features and weights."""
    for label in crf.classes_:
        if type(label) not in _PLAIN:
            raise ModelError(f"label {label!r} cannot be saved; name labels by str, int, finite float or bool")
    f = crf.model_.features
    about, arrays = crf.vectoriser_.described()
    settings = {name: value for name, value in crf.get_params().items() if type(value) in _PLAIN}
    body = {
        "class": type(crf).__name__,
        "settings": settings,
        "labels": list(crf.classes_),
        "vectoriser": about,
        "n_rows": f.n_rows,
        "report": crf.report_.to_dict(),
    }
    kept = {name: getattr(f, name) for name in _DTYPES if name != "weights"}
    return body, {**arrays, **kept, "weights": np.asarray(crf.model_.weights, np.float64)}


def restored(
    about: dict[str, Any], arrays: Arrays
) -> tuple[dict[str, Any], list[Any], AttributeVectoriser, ChainFeatures, npt.NDArray[np.float64]]:
    """Settings, labels, attributes, features and weights of an archive; whatever does not fit is a `FormatError`."""
    labels, settings, n_rows = about.get("labels"), about.get("settings"), about.get("n_rows")
    if not isinstance(labels, list) or not labels or any(type(x) not in _PLAIN for x in labels):
        raise FormatError("its labels are not a list of plain values")
    if len(set(map(repr, labels))) < len(labels):
        raise FormatError("it has the same label twice")
    if not isinstance(settings, dict) or type(n_rows) is not int or n_rows < 0:
        raise FormatError("its settings are not those of a chain")
    if not isinstance(about.get("vectoriser"), dict) or not isinstance(about.get("report"), dict):
        raise FormatError("it does not say where its attributes come from")
    for name, dtype in _DTYPES.items():
        if name not in arrays or arrays[name].dtype != dtype:
            raise FormatError(f"{name} is missing or of another type")
    vectoriser = AttributeVectoriser.restored(about["vectoriser"], arrays)
    features = ChainFeatures(
        n_labels=len(labels),
        width=padded(len(labels)),
        n_rows=n_rows,
        **{name: np.ascontiguousarray(arrays[name]) for name in _DTYPES if name != "weights"},
    )
    _check(features, arrays["weights"], vectoriser.n_attributes_)
    return settings, labels, vectoriser, features, np.ascontiguousarray(arrays["weights"])


def _check(f: ChainFeatures, weights: npt.NDArray[np.float64], n_attributes: int) -> None:
    """Kernels index memory with these numbers."""
    steps = np.diff(f.pair_start)
    if len(f.row_of) != n_attributes or len(f.pair_start) != n_attributes + 1:
        raise FormatError("its features do not fit its attributes")
    if f.n_rows > n_attributes or (len(f.row_of) and (f.row_of.min() < -1 or f.row_of.max() >= f.n_rows)):
        raise FormatError("an attribute has a row that is not there")
    if f.pair_start[0] != 0 or (steps < 0).any() or f.pair_start[-1] != len(f.pair_label):
        raise FormatError("its pairs do not fit its attributes")
    limits = [(f.row_cells, f.n_rows * f.width), (f.transition_cells, f.n_labels * f.width)]
    for cells, size in limits:
        if len(cells) and (cells.min() < 0 or cells.max() >= size or (cells % f.width).max() >= f.n_labels):
            raise FormatError("a feature lies outside of its table")
    if len(f.pair_label) and (f.pair_label.min() < 0 or f.pair_label.max() >= f.n_labels):
        raise FormatError("a feature has a label that is not there")
    if len(weights) != f.n_features or not np.isfinite(weights).all():
        raise FormatError(f"it has {len(weights)} weights for {f.n_features} features, or some that are not finite")
