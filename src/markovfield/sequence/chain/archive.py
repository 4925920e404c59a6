"""A fitted linear chain as something for JSON and vectors, and back; `markovfield.files` has the file itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import FormatError, ModelError
from markovfield.sequence.chain.features import ChainFeatures, padded
from markovfield.sequence.chain.training import TrainingReport
from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["VERSION", "Restored", "described", "restored"]

VERSION = 1
Arrays = dict[str, npt.NDArray[Any]]
_PLAIN = (str, int, float, bool, type(None))
_DTYPES = {
    "row_of": np.int32,
    "row_cells": np.int64,
    "pair_start": np.int64,
    "pair_label": np.int32,
    "transition_cells": np.int64,
    "edge_start": np.int64,
    "edge_cell": np.int32,
    "triple_cells": np.int64,
    "weights": np.float64,
}
_EDGES = "edge_"
# Settings that belong to a run or a machine, not to what was learnt.
_PASSING = ("n_jobs", "checkpoint", "verbose", "model_filename")


@dataclass(frozen=True, eq=False)
class Restored:
    """What an archive holds."""

    settings: dict[str, Any]
    labels: list[Any]
    vectoriser: AttributeVectoriser
    edge_vectoriser: AttributeVectoriser | None
    features: ChainFeatures
    weights: npt.NDArray[np.float64]
    report: TrainingReport


def described(
    crf: Any, features: ChainFeatures, weights: npt.NDArray[np.float64], report: TrainingReport | None
) -> tuple[dict[str, Any], Arrays]:
    """What an archive holds of a `ChainCRF`: settings, labels, attributes, features and weights.

    A generator of random numbers is left out.
    """
    labels = [_plain(label) for label in crf.classes_]
    for label in labels:
        if type(label) not in _PLAIN or (isinstance(label, float) and not math.isfinite(label)):
            raise ModelError(f"label {label!r} cannot be saved; name labels by str, int, finite float or bool")
    about, arrays = crf.vectoriser_.described()
    given = {k: _plain(v) for k, v in crf.get_params(deep=False).items()}
    settings = {k: v for k, v in given.items() if type(v) in _PLAIN and k not in _PASSING}
    body = {
        "class": type(crf).__name__,
        "settings": settings,
        "class_weight": None,
        "labels": labels,
        "vectoriser": about,
        "edge_vectoriser": None,
        "n_states": features.n_labels,
        "n_rows": features.n_rows,
        "order": int(features.order),
        "report": None if report is None else {**report.to_dict(), "objective": _finite(report.objective)},
    }
    weights_of_labels = getattr(crf, "class_weight", None)
    if isinstance(weights_of_labels, Mapping):
        body["class_weight"] = [[_plain(label), float(weight)] for label, weight in weights_of_labels.items()]
    if crf.edge_vectoriser_ is not None:
        body["edge_vectoriser"], on_edges = crf.edge_vectoriser_.described()
        arrays = {**arrays, **{_EDGES + name: array for name, array in on_edges.items()}}
    kept = {name: getattr(features, name) for name in _DTYPES if name != "weights"}
    return body, {**arrays, **kept, "weights": np.asarray(weights)}


def restored(about: dict[str, Any], arrays: Arrays, known: set[str]) -> Restored:
    """What an archive describes; whatever does not fit is a `FormatError`. ``known`` names the settings there are."""
    labels, settings, n_rows, order = (about.get(name) for name in ("labels", "settings", "n_rows", "order"))
    if not isinstance(labels, list) or not labels or any(type(x) not in _PLAIN for x in labels):
        raise FormatError("its labels are not a list of plain values")
    if len(set(map(repr, labels))) < len(labels):
        raise FormatError("it has the same label twice")
    if not isinstance(settings, dict) or any(type(x) not in _PLAIN for x in settings.values()):
        raise FormatError("its settings are not those of a chain")
    if type(n_rows) is not int or n_rows < 0 or type(order) is not int or order not in (1, 2):
        raise FormatError("its rows or its order are not those of a chain")
    for name, dtype in _DTYPES.items():
        kinds = (np.float64, np.float32) if name == "weights" else (dtype,)
        if name not in arrays or arrays[name].dtype not in kinds:
            raise FormatError(f"{name} is missing or of another type")
    hidden = settings.get("hidden_states", 1)
    if type(hidden) is not int or not 1 <= hidden <= 1000:
        raise FormatError("its hidden states are not a number of states")
    n_labels = len(labels) * hidden
    if about.get("n_states") != n_labels:
        raise FormatError(f"it has {about.get('n_states')!r} states for {n_labels}")
    features = ChainFeatures(
        n_labels=n_labels,
        width=padded(n_labels),
        n_rows=n_rows,
        order=order,
        **{name: np.ascontiguousarray(arrays[name]) for name in _DTYPES if name != "weights"},
    )
    vectoriser = _vectoriser(about.get("vectoriser"), arrays)
    on_edges = None
    if about.get("edge_vectoriser") is not None:
        theirs = {name.removeprefix(_EDGES): array for name, array in arrays.items() if name.startswith(_EDGES)}
        on_edges = _vectoriser(about["edge_vectoriser"], theirs)
    _check(features, arrays["weights"], vectoriser, on_edges)
    settings = {name: value for name, value in settings.items() if name in known}
    if about.get("class_weight") is not None:
        settings["class_weight"] = _class_weight(about["class_weight"], labels)
    weights = np.ascontiguousarray(arrays["weights"])
    return Restored(settings, labels, vectoriser, on_edges, features, weights, _report(about.get("report"), features))


def _plain(value: Any) -> Any:
    """A NumPy scalar as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _class_weight(pairs: Any, labels: list[Any]) -> dict[Any, float]:
    """Weights of labels, as they were given to the constructor."""
    try:
        found = {label: float(weight) for label, weight in pairs}
    except (TypeError, ValueError):
        raise FormatError("its class weights are not pairs of a label and a number") from None
    if any(label not in labels or not 0 <= weight < math.inf for label, weight in found.items()):
        raise FormatError("its class weights are not those of its labels")
    return found


def _finite(value: float) -> float | None:
    """A number that a file can hold; one that is not known is None."""
    return value if math.isfinite(value) else None


def _vectoriser(about: Any, arrays: Arrays) -> AttributeVectoriser:
    if not isinstance(about, dict) or set(about) - {"kinds"} != {"min_count", "hashing", "columns"}:
        raise FormatError("it does not say where its attributes come from")
    return AttributeVectoriser.restored(about, arrays)


def _report(about: Any, features: ChainFeatures) -> TrainingReport:
    """How training went; a checkpoint does not know yet."""
    if about is None:
        return TrainingReport("none", math.nan, 0, False, "a checkpoint", 0.0, 0, 0, features.n_features, 0)
    try:
        listed = {name: tuple(about[name]) for name in ("history", "accuracies", "f1_scores") if name in about}
        objective = math.nan if about["objective"] is None else about["objective"]
        return TrainingReport(**{**about, **listed, "objective": objective})
    except (TypeError, KeyError):
        raise FormatError("its report is not that of a training") from None


def _check(
    f: ChainFeatures,
    weights: npt.NDArray[np.float64],
    vectoriser: AttributeVectoriser,
    on_edges: AttributeVectoriser | None,
) -> None:
    """Kernels index memory with these numbers."""
    n_attributes, n_edges = vectoriser.n_attributes_, 0 if on_edges is None else on_edges.n_attributes_
    if len(f.row_of) != n_attributes:
        raise FormatError("its features do not fit its attributes")
    if f.n_rows > n_attributes or (len(f.row_of) and (f.row_of.min() < -1 or f.row_of.max() >= f.n_rows)):
        raise FormatError("an attribute has a row that is not there")
    if len(np.unique(f.row_of[f.row_of >= 0])) != f.n_rows:
        raise FormatError("its rows do not fit its attributes")
    for start, n, length in (
        (f.pair_start, n_attributes, len(f.pair_label)),
        (f.edge_start, n_edges, len(f.edge_cell)),
    ):
        if len(start) != n + 1 or start[0] != 0 or (np.diff(start) < 0).any() or start[-1] != length:
            raise FormatError("its features do not fit its attributes")
    if f.order == 1 and len(f.triple_cells):
        raise FormatError("a chain of first order has triples")
    tables: list[tuple[npt.NDArray[Any], int, int]] = [
        (f.row_cells, f.n_rows, 1),
        (f.transition_cells, 1, 2),
        (f.edge_cell, 1, 2),
        (f.triple_cells, 1, 3),
    ]
    for cells, n, axes in tables:
        if not len(cells):
            continue
        if cells.min() < 0 or cells.max() >= n * f.width**axes:
            raise FormatError("a feature lies outside of its table")
        if any((cells // f.width**axis % f.width).max() >= f.n_labels for axis in range(axes)):
            raise FormatError("a feature has a label that is not there")
    if len(f.pair_label) and (f.pair_label.min() < 0 or f.pair_label.max() >= f.n_labels):
        raise FormatError("a feature has a label that is not there")
    if len(weights) != f.n_features or not np.isfinite(weights).all():
        raise FormatError(f"it has {len(weights)} weights for {f.n_features} features, or some that are not finite")
