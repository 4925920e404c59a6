"""Classes of a picture's pixels, with labels that a brush has painted as evidence; and depth from two views."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from copy import copy
from hashlib import sha256
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import number, whole_number
from markovfield.arrays import FloatArray, IntArray
from markovfield.datasets.images import noisy_letters
from markovfield.datasets.patterns import landscape
from markovfield.datasets.stereo import random_dots
from markovfield.exceptions import ModelError
from markovfield.explorer.core.stopping import nobody_waits
from markovfield.inference.belief_propagation.belief_propagation import BeliefPropagation
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.verbs import marginals
from markovfield.vision.grid_crf import GridCRF
from markovfield.vision.segmentation import ImageSegmentation
from markovfield.vision.stereo import SMOOTHNESS, StereoMatching, disparity_error

__all__ = ["SAMPLES", "paint", "paint_grid", "picture_of", "sample_picture", "stereo", "strokes_of"]

# A side, and all pixels, of a picture that is taken: answers then come within a moment.
LONGEST_SIDE, MOST_PIXELS = 512, 40_000
MOST_CLASSES = 6
SECONDS = 10.0
LIMITS: dict[str, Any] = {"time_limit": SECONDS, "callback": nobody_waits}
# Densities found by EM, which strokes do not change, are kept for so many pictures and settings.
MOST_FITS = 32
SAMPLES = ("letters", "landscape")
SCALES = ("unit", "bytes")
Bytes = npt.NDArray[np.uint8]


def sample_picture(name: str = "letters", *, noise: float = 0.4, rng: Any = 0) -> Bytes:
    """A picture made by code, ``uint8[rows, columns, channels]``.

    Examples
    --------
    >>> sample_picture("letters").ndim, sample_picture("landscape").shape[2]
    (3, 3)
    """
    noise = number(noise, "noise of a sample", least=0.0)
    if name == "letters":
        # Bright letters in the middle of the scale, where noise is not cut off.
        grey = 0.3 + 0.4 * noisy_letters("MARKOV", height=28, level=min(noise, 2.0), rng=rng).noisy[:, :, None]
    elif name == "landscape":
        made = np.asarray(landscape(rng=rng).image, np.float64)
        spread = np.random.default_rng(rng).normal(scale=0.5 * min(noise, 2.0), size=made.shape)
        grey = made + spread * made.std()
        grey = (grey - grey.min()) / max(float(np.ptp(grey)), 1e-9)
    else:
        raise ModelError(f"there are the samples {' and '.join(SAMPLES)}, not {name!r:.60}")
    return np.rint(255 * np.clip(grey, 0.0, 1.0)).astype(np.uint8)


def picture_of(rows: Any, columns: Any, channels: Any, data: Any) -> Bytes:
    """Pixels sent by a page, as base64 of one byte for each channel of each pixel in row order.

    No image format is ever parsed here: a picture is opened by the browser, which sends its pixels.

    Examples
    --------
    >>> picture_of(2, 2, 1, "AAECAw==")[..., 0].tolist()
    [[0, 1], [2, 3]]
    """
    shape = _shape(rows, columns)
    channels = whole_number(channels, "channels of a picture", 1, 3)
    return _bytes(data, shape[0] * shape[1] * channels, "a picture").reshape(*shape, channels)


def _shape(rows: Any, columns: Any) -> tuple[int, int]:
    shape = whole_number(rows, "rows of a picture", 2), whole_number(columns, "columns of a picture", 2)
    if max(shape) > LONGEST_SIDE or shape[0] * shape[1] > MOST_PIXELS:
        raise ModelError(
            f"a picture may have {LONGEST_SIDE} rows or columns and {MOST_PIXELS:,} pixels, got {shape[0]} x {shape[1]}"
        )
    return shape


def _bytes(data: Any, count: int, what: str) -> Bytes:
    if not isinstance(data, str) or len(data) > 4 * (count // 3 + 1):
        raise ModelError(f"{what} must be base64 of {count:,} bytes")
    try:
        found = np.frombuffer(base64.b64decode(data, validate=True), np.uint8)
    except (binascii.Error, ValueError):
        raise ModelError(f"{what} must be base64 of {count:,} bytes") from None
    if len(found) != count:
        raise ModelError(f"{what} must have {count:,} bytes, got {len(found):,}")
    return found


def paint(
    picture: Bytes,
    strokes: Any = None,
    *,
    n_classes: Any = 2,
    coupling: Any = 1.0,
    contrast: Any = 0.0,
    connectivity: Any = 4,
    model: ImageSegmentation | None = None,
) -> dict[str, Any]:
    """Labels and marginals of a picture's pixels (`ImageSegmentation`), given those that were painted.

    Parameters
    ----------
    picture
        ``uint8[rows, columns, channels]``.
    strokes
        base64 of a byte for each pixel: the class that it was painted with, 255 for none. Where every class was
        painted, their colours are learnt from these pixels, else by EM from all of them; either way painted pixels are
        evidence.
    n_classes, coupling, contrast, connectivity
        See `ImageSegmentation`.
    model
        One whose other settings are taken and, where it is fitted and not every class was painted, its densities.

    Returns
    -------
    dict
        ``labels``, ``alone`` (without neighbours), ``probability`` (of the label, 0 to 255) as base64 of a byte for
        each pixel; ``colours`` of the classes; what is known of the answers in words.

    Examples
    --------
    >>> found = paint(sample_picture("letters"), coupling=1.5)
    >>> found["decoding"]["optimal"], found["shape"], len(found["colours"])
    (True, [28, 141], 2)
    """
    pixels = np.asarray(picture, np.float64) / 255.0
    count = whole_number(n_classes, "classes", 2, MOST_CLASSES)
    given = strokes_of(strokes, pixels.shape[:2], count)
    own = ImageSegmentation(rng=0) if model is None else copy(model)
    own.set_params(
        n_classes=count,
        coupling=_between(coupling, "coupling", 0.0, 20.0),
        contrast=_between(contrast, "contrast", 0.0, 10.0),
        connectivity=connectivity,
    )
    every = len(np.unique(given[given >= 0])) == count
    known = model is not None and hasattr(model, "observation_") and model.n_classes == count
    with without_warnings():
        if every:
            own.fit(pixels, given)
        elif not known:
            _find_densities(own, pixels)
        graph = own.to_factor_graph(pixels)
        evidence = {int(p): int(given.flat[p]) for p in np.flatnonzero(given.ravel() >= 0)}
        best = own.decode(pixels, labels=given, **LIMITS)
        beliefs = marginals(graph, evidence, method=BeliefPropagation(max_iterations=200), **LIMITS)
    alone = own.observation_.log_density(pixels.reshape(given.size, -1)).argmax(axis=1)
    found = _answer(pixels, np.asarray(best.states, np.int64), alone, beliefs.values.reshape(-1, count))
    return found | {
        "colours_from": "strokes" if every else "model" if known else "picture",
        "settled": bool(getattr(own, "converged_", True)),
        "painted": len(evidence),
        "decoding": _decoding(best),
        "marginals": _beliefs(beliefs),
    }


_fits: OrderedDict[tuple[bytes, str], tuple[Any, bool]] = OrderedDict()
_fits_lock = Lock()


def _find_densities(model: ImageSegmentation, pixels: FloatArray) -> None:
    """Fit by EM, once for each picture and settings."""
    key = sha256(pixels.tobytes()).digest(), f"{pixels.shape} {model.get_params()}"
    with _fits_lock:
        found = _fits.get(key)
        if found is not None:
            _fits.move_to_end(key)
    if found is not None:
        model.observation_, model.converged_ = found
        return
    model.fit(pixels, **LIMITS)
    if nobody_waits():  # it was cut off
        return
    with _fits_lock:
        _fits[key] = model.observation_, model.converged_
        while len(_fits) > MOST_FITS:
            _fits.popitem(last=False)


def paint_grid(
    crf: GridCRF, picture: Bytes, strokes: Any = None, *, strength: Any = 1.0, scale: Any = "unit"
) -> dict[str, Any]:
    """Labels and marginals of a picture's pixels by a learned `GridCRF`, given those that were painted.

    Parameters
    ----------
    crf
        A fitted one.
    picture, strokes
        See `paint`; classes are counted in the order of ``crf.classes_``.
    strength
        What the learned weights of edges are multiplied by: 0 lets every pixel stand alone.
    scale
        What the model was trained on: ``"unit"``, numbers from 0 to 1, or ``"bytes"``, from 0 to 255.

    Returns
    -------
    dict
        As `paint` gives.
    """
    if scale not in SCALES:
        raise ModelError(f"scale must be {' or '.join(SCALES)}, got {scale!r:.60}")
    classes = list(crf.classes_)
    if len(classes) > MOST_CLASSES:
        raise ModelError(f"a picture is painted with at most {MOST_CLASSES} classes, the model has {len(classes)}")
    pixels = np.asarray(picture, np.float64) / 255.0
    shape = pixels.shape[:2]
    given = strokes_of(strokes, shape, len(classes))
    fixed = np.full(shape, None, object)
    for k, label in enumerate(classes):
        fixed[given == k] = label
    seen: Any = [pixels if scale == "unit" else np.asarray(picture, np.float64)]
    wanted = crf.model_.known.sizes["channels"]
    if wanted != pixels.shape[2]:
        raise ModelError(f"the model was trained on pictures of {wanted} channels, this one has {pixels.shape[2]}")
    own, single = _with_edges(crf, _between(strength, "strength", 0.0, 5.0)), _with_edges(crf, 0.0)
    with without_warnings():
        best = own.decode(seen, fixed=[fixed], **LIMITS)
        beliefs = own.marginals(seen, fixed=[fixed], **LIMITS)
        alone = single.decode(seen, **LIMITS).labels[0]
    number_of = {label: k for k, label in enumerate(classes)}
    labels, lonely = (np.array([number_of[x] for x in np.ravel(y).tolist()]) for y in (best.labels[0], alone))
    found = _answer(pixels, labels, lonely, np.asarray(beliefs.values[0]).reshape(-1, len(classes)))
    score, gap = float(best.scores[0]), float(best.gap)
    decoding = {"method": best.method, "score": score, "seconds": float(best.seconds)}
    return found | {
        "colours_from": "model",
        "settled": True,
        "painted": int((given >= 0).sum()),
        "decoding": decoding | {"gap": gap if np.isfinite(gap) else None, "optimal": best.guarantee == "exact"},
        "marginals": _beliefs(beliefs),
    }


def _with_edges(crf: GridCRF, strength: float) -> GridCRF:
    """The same model with other weights of edges."""
    found = copy(crf)
    found.weights_ = crf.weights_.copy()
    for kind, weights in crf.model_.named_weights(found.weights_).items():
        if kind not in ("pixels", "scores"):
            weights *= strength
    return found


def strokes_of(strokes: Any, shape: tuple[int, ...], count: int) -> IntArray:
    """The class that each pixel was painted with, ``int64[rows, columns]``, -1 for none; from a page's base64."""
    given = np.full(shape, -1, np.int64)
    if strokes is None:
        return given
    painted = _bytes(strokes, given.size, "strokes").reshape(shape).astype(np.int64)
    if (strange := (painted != 255) & (painted >= count)).any():
        raise ModelError(f"strokes must be classes 0 to {count - 1}, or 255 for none, got {painted[strange][0]}")
    return np.where(painted == 255, -1, painted)


def _answer(pixels: FloatArray, labels: IntArray, alone: IntArray, table: FloatArray) -> dict[str, Any]:
    own = table[np.arange(labels.size), labels]
    return {
        "shape": list(pixels.shape[:2]),
        "labels": _text(labels),
        "alone": _text(alone),
        "probability": _text(np.rint(255 * own)),
        "colours": [_colour(pixels.reshape(labels.size, -1), labels == k) for k in range(table.shape[1])],
        "changed": int((labels != alone).sum()),
    }


def _beliefs(answer: Any) -> dict[str, Any]:
    return {
        "method": answer.method,
        "guarantee": answer.guarantee,
        "seconds": float(answer.seconds),
        "converged": bool(answer.converged),
    }


def stereo(
    *,
    smoothness: Any = "truncated_linear",
    weight: Any = 0.8,
    truncation: Any = 2.0,
    noise: Any = 0.02,
    rng: Any = 0,
    model: StereoMatching | None = None,
    views: tuple[Bytes, Bytes] | None = None,
) -> dict[str, Any]:
    """Disparities of a pair of views, with and without a prior; of the random-dots pair beside the truth.

    Parameters
    ----------
    smoothness, weight, truncation
        See `StereoMatching`.
    noise, rng
        Of the random dots.
    model
        One whose other settings are taken.
    views
        A left and a right view; the random dots when None.

    Examples
    --------
    >>> found = stereo(weight=0.8)
    >>> found["shape"], found["error"] < found["error_alone"]
    ([60, 90], True)
    """
    pair = random_dots(noise=_between(noise, "noise of the dots", 0.0, 0.5), rng=rng)
    if smoothness not in SMOOTHNESS:
        raise ModelError(f"smoothness must be {', '.join(SMOOTHNESS)}, got {smoothness!r:.60}")
    left, right = (pair.left, pair.right) if views is None else (view / 255.0 for view in views)
    if left.shape != right.shape:
        raise ModelError(f"both views must have the same size and channels, got {left.shape} and {right.shape}")
    own = StereoMatching(pair.max_disparity + 2) if model is None else copy(model)
    own.set_params(
        smoothness=smoothness,
        weight=_between(weight, "weight", 0.0, 10.0),
        truncation=_between(truncation, "truncation", 0.1, 20.0),
    )
    with without_warnings():
        best = own.decode(left, right, **LIMITS)
    found = np.asarray(best.states, np.int64).reshape(left.shape[:2])
    alone = own.costs(left, right).argmin(axis=2)
    told = {
        "shape": list(found.shape),
        "most": own.max_disparity,
        "left": _grey(left),
        "right": _grey(right),
        "disparity": _text(found),
        "alone": _text(alone),
        "changed": int((found != alone).sum()),
        "decoding": _decoding(best),
    }
    if views is not None:
        return told
    return told | {
        "truth": _text(np.where(np.isfinite(pair.disparity), pair.disparity, 255)),
        "nearest": pair.max_disparity,
        "error": disparity_error(found, pair.disparity),
        "error_alone": disparity_error(alone, pair.disparity),
    }


def _grey(view: FloatArray) -> str:
    return _text(np.rint(255 * (view if view.ndim == 2 else view.mean(axis=2))))


def _between(value: Any, what: str, least: float, most: float) -> float:
    found = number(value, what, least=least)
    if found > most:
        raise ModelError(f"{what} must be at most {most:g}, got {found:g}")
    return found


def _decoding(best: Any) -> dict[str, Any]:
    gap = float(best.gap)
    return {
        "method": best.method,
        "score": float(best.score),
        "gap": gap if np.isfinite(gap) else None,
        "optimal": bool(best.optimal),
        "seconds": float(best.seconds),
    }


def _colour(pixels: FloatArray, own: npt.NDArray[np.bool_]) -> list[int]:
    """The mean colour of a class, red, green and blue."""
    mean = pixels[own].mean(axis=0) if own.any() else pixels.mean(axis=0)
    return [round(255 * float(mean[min(c, len(mean) - 1)])) for c in range(3)]


def _text(values: FloatArray | IntArray) -> str:
    return base64.b64encode(np.asarray(values).astype(np.uint8).tobytes()).decode()
