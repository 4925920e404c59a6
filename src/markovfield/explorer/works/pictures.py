"""Classes of a picture's pixels, with labels that a brush has painted as evidence; and depth from two views."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import number, whole_number
from markovfield.arrays import FloatArray, IntArray
from markovfield.datasets.images import noisy_letters
from markovfield.datasets.patterns import landscape
from markovfield.datasets.stereo import random_dots
from markovfield.exceptions import ModelError
from markovfield.inference.belief_propagation.belief_propagation import BeliefPropagation
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.verbs import marginals
from markovfield.vision.segmentation import ImageSegmentation
from markovfield.vision.stereo import SMOOTHNESS, StereoMatching, disparity_error

__all__ = ["SAMPLES", "paint", "picture_of", "sample_picture", "stereo"]

# A side, and all pixels, of a picture that is taken: answers then come within a moment.
LONGEST_SIDE, MOST_PIXELS = 512, 40_000
MOST_CLASSES = 6
SECONDS = 10.0
SAMPLES = ("letters", "landscape")
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
        # In the middle of the scale, where noise is not cut off.
        grey = 0.7 - 0.4 * noisy_letters("MARKOV", height=28, level=min(noise, 2.0), rng=rng).noisy[:, :, None]
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
    shape = pixels.shape[:2]
    count = whole_number(n_classes, "classes", 2, MOST_CLASSES)
    given = np.full(shape, -1, np.int64)
    if strokes is not None:
        painted = _bytes(strokes, given.size, "strokes").reshape(shape).astype(np.int64)
        if (strange := (painted != 255) & (painted >= count)).any():
            raise ModelError(f"strokes must be classes 0 to {count - 1}, or 255 for none, got {painted[strange][0]}")
        given = np.where(painted == 255, -1, painted)
    model = ImageSegmentation(
        count,
        coupling=_between(coupling, "coupling", 0.0, 20.0),
        contrast=_between(contrast, "contrast", 0.0, 10.0),
        connectivity=connectivity,
        rng=0,
    )
    every = len(np.unique(given[given >= 0])) == count
    with without_warnings():
        model.fit(pixels, given if every else None, time_limit=SECONDS)
        graph = model.to_factor_graph(pixels)
        evidence = {int(p): int(given.flat[p]) for p in np.flatnonzero(given.ravel() >= 0)}
        best = model.decode(pixels, labels=given, time_limit=SECONDS)
        beliefs = marginals(graph, evidence, method=BeliefPropagation(max_iterations=200), time_limit=SECONDS)
    table = beliefs.values.reshape(-1, count)
    labels = np.asarray(best.states, np.int64)
    alone = model.observation_.log_density(pixels.reshape(labels.size, -1)).argmax(axis=1)
    return {
        "shape": list(shape),
        "labels": _text(labels),
        "alone": _text(alone),
        "probability": _text(np.rint(255 * table[np.arange(labels.size), labels])),
        "colours": [_colour(pixels.reshape(labels.size, -1), labels == k) for k in range(count)],
        "from_strokes": every,
        "painted": len(evidence),
        "changed": int((labels != alone).sum()),
        "decoding": _decoding(best),
        "marginals": {
            "method": beliefs.method,
            "guarantee": beliefs.guarantee,
            "seconds": beliefs.seconds,
            "converged": bool(beliefs.converged),
        },
    }


def stereo(
    *, smoothness: Any = "truncated_linear", weight: Any = 0.8, truncation: Any = 2.0, noise: Any = 0.02, rng: Any = 0
) -> dict[str, Any]:
    """Disparities of the random-dots pair, with and without a prior, beside the truth.

    Examples
    --------
    >>> found = stereo(weight=0.8)
    >>> found["shape"], found["error"] < found["error_alone"]
    ([60, 90], True)
    """
    pair = random_dots(noise=_between(noise, "noise of the dots", 0.0, 0.5), rng=rng)
    if smoothness not in SMOOTHNESS:
        raise ModelError(f"smoothness must be {', '.join(SMOOTHNESS)}, got {smoothness!r:.60}")
    model = StereoMatching(
        pair.max_disparity + 2,
        smoothness=smoothness,
        weight=_between(weight, "weight", 0.0, 10.0),
        truncation=_between(truncation, "truncation", 0.1, 20.0),
    )
    with without_warnings():
        best = model.decode(pair.left, pair.right, time_limit=SECONDS)
    found = np.asarray(best.states, np.int64).reshape(pair.left.shape)
    alone = model.costs(pair.left, pair.right).argmin(axis=2)
    return {
        "shape": list(found.shape),
        "most": pair.max_disparity + 2,
        "left": _text(np.rint(255 * pair.left)),
        "right": _text(np.rint(255 * pair.right)),
        "disparity": _text(found),
        "alone": _text(alone),
        "truth": _text(np.where(np.isfinite(pair.disparity), pair.disparity, 255)),
        "error": disparity_error(found, pair.disparity),
        "error_alone": disparity_error(alone, pair.disparity),
        "decoding": _decoding(best),
    }


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
