"""Features of pixels and of pairs of neighbours, for many images of different sizes at once.

Pixels of all images lie one after the other, each image in row order; ``offsets`` say where an image begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, Frozen, IntArray, offsets_of, short_repr
from markovfield.exceptions import ModelError

__all__ = [
    "DIRECTIONS",
    "GridEdges",
    "Images",
    "edge_features",
    "grid_edges",
    "node_feature_names",
    "node_features",
    "one_hot_colours",
    "stack_images",
]

# Steps in rows and columns from the first end of an edge to the second, which always comes later in row order.
DIRECTIONS = {"right": (0, 1), "down": (1, 0), "down right": (1, 1), "down left": (1, -1)}
NODE_KINDS = ("constant", "values", "blurred", "gradient", "variance", "position", "neighbourhood")
EDGE_KINDS = ("constant", "contrast", "difference", "values")
MOST_COLOURS = 256


@dataclass(frozen=True, eq=False, repr=False)
class Images(Frozen):
    """Images one after the other: pixel ``offsets[i] + row * columns + column`` is of image i.

    Attributes
    ----------
    values
        ``float64[n_pixels, channels]``.
    shapes
        ``int64[n, 2]``: rows and columns.
    offsets
        ``int64[n + 1]``.
    """

    values: FloatArray
    shapes: IntArray
    offsets: IntArray

    __repr__ = short_repr

    def split(self, flat: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Numbers of all pixels, ``[n_pixels, ...]``, as one array ``[rows, columns, ...]`` for each image."""
        parts = np.split(flat, self.offsets[1:-1])
        return [part.reshape(*shape, *part.shape[1:]) for part, shape in zip(parts, self.shapes.tolist(), strict=True)]


def stack_images(images: Sequence[npt.ArrayLike], n_channels: int | None = None) -> Images:
    """Images, ``[rows, columns]`` or ``[rows, columns, channels]``, one after the other; bytes count from 0 to 1.

    Where ``n_channels`` is given, all must have so many.

    Examples
    --------
    >>> stack_images([np.zeros((2, 3)), np.ones((4, 1))])
    Images(values=float64[10, 1], shapes=[[2, 3], [4, 1]], offsets=[0, 6, 10])
    >>> stack_images([np.zeros((2, 3)), np.full((4, 1), np.nan)])
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: images[1] needs pixels that are finite numbers, got nan at row 0, column 0
    """
    parts: list[FloatArray] = []
    shapes = []
    for i, image in enumerate(images):
        array = _numbers(image, i)
        if array.ndim not in (2, 3) or not array.size:
            raise ModelError(
                f"images[{i}] must be [rows, columns] or [rows, columns, channels] with pixels, got shape {array.shape}"
            )
        flat = array.reshape(array.shape[0] * array.shape[1], -1)
        expected = flat.shape[1] if n_channels is None else n_channels
        if flat.shape[1] != expected:
            raise ModelError(f"images[{i}] must have {expected} channels as others have, got {flat.shape[1]}")
        n_channels = expected
        if not np.isfinite(flat).all():
            pixel, channel = np.argwhere(~np.isfinite(flat))[0]
            row, column = divmod(int(pixel), array.shape[1])
            raise ModelError(
                f"images[{i}] needs pixels that are finite numbers, got {flat[pixel, channel]} at row {row}, "
                f"column {column}"
            )
        parts.append(flat)
        shapes.append(array.shape[:2])
    if not parts:
        raise ModelError("images must be a list of at least one image, got none")
    size = np.array(shapes, np.int64)
    return Images(np.concatenate(parts), size, offsets_of(size.prod(axis=1)))


def _numbers(image: npt.ArrayLike, i: int) -> FloatArray:
    array = np.asarray(image)
    if array.dtype == np.uint8:
        return array / 255.0
    if array.dtype.kind not in "biuf":
        raise ModelError(f"images[{i}] must be numbers, got an array of {array.dtype}")
    return array.astype(np.float64)


def one_hot_colours(
    images: Sequence[npt.ArrayLike], palette: npt.ArrayLike | None = None
) -> tuple[list[FloatArray], npt.NDArray[Any]]:
    """Images of few colours as one channel for each colour, and those colours.

    Parameters
    ----------
    images
        Of one number of channels.
    palette
        ``[colours, channels]`` as from an earlier call, so that other images get the same channels; a colour that is
        not among them is zero in all. None: the colours there are, in increasing order, at most 256.

    Examples
    --------
    >>> channels, palette = one_hot_colours([[[5, 7], [7, 5]], [[7, 9]]])
    >>> palette.tolist(), channels[1].tolist()
    ([[5], [7], [9]], [[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    """
    arrays = [np.asarray(image) for image in images]
    flats = [array.reshape(array.shape[0] * array.shape[1], -1) for array in arrays]
    found, index = np.unique(np.concatenate(flats), axis=0, return_inverse=True)
    if palette is None:
        if len(found) > MOST_COLOURS:
            raise ModelError(
                f"one_hot_colours(images) needs at most {MOST_COLOURS} different colours, got {len(found)}"
            )
        palette = found
    given = np.asarray(palette)
    code = (found[:, None, :] == given[None, :, :]).all(axis=2).astype(np.float64)[index.ravel()]
    ends = np.cumsum([len(flat) for flat in flats])[:-1]
    parts = [part.reshape(*array.shape[:2], -1) for part, array in zip(np.split(code, ends), arrays, strict=True)]
    return parts, given


# ---- pixels -------------------------------------------------------------------------------------------------


def node_features(
    images: Images,
    kinds: Sequence[str] = ("constant", "values"),
    *,
    scales: Sequence[float] = (1, 2, 4),
    window: int = 3,
) -> FloatArray:
    """Features of every pixel, ``float64[n_pixels, features]``; `node_feature_names` says which.

    Parameters
    ----------
    images
        As `stack_images` makes them.
    kinds
        Of: ``"constant"``, a one; ``"values"``, the channels; ``"position"``, row and column from -1 to 1;
        ``"neighbourhood"``, the channels of all pixels of a window around it, zero outside the image; and, for each
        scale and channel, ``"blurred"`` (by a Gaussian of that standard deviation in pixels), ``"gradient"`` (size of
        the blurred image's gradient) and ``"variance"`` (within a Gaussian window).
    scales
        Of what is computed at several scales. Beyond its border an image goes on as its nearest pixel.
    window
        Rows and columns of the neighbourhood, an odd number.

    Examples
    --------
    >>> images = stack_images([[[0, 1], [1, 1]]])
    >>> node_features(images, ["values", "position"])
    array([[ 0. , -0.5, -0.5],
           [ 1. , -0.5,  0.5],
           [ 1. ,  0.5, -0.5],
           [ 1. ,  0.5,  0.5]])
    """
    check_kinds(kinds, NODE_KINDS, "node_features")
    check_scales(scales, window)
    parts = []
    for image in images.split(images.values):
        columns = [_NODE[kind](image, tuple(scales), window) for kind in kinds]
        parts.append(np.concatenate(columns, axis=2).reshape(image.shape[0] * image.shape[1], -1))
    return np.concatenate(parts)


def node_feature_names(
    n_channels: int,
    kinds: Sequence[str] = ("constant", "values"),
    *,
    scales: Sequence[float] = (1, 2, 4),
    window: int = 3,
) -> list[str]:
    """What the columns of `node_features` are.

    Examples
    --------
    >>> node_feature_names(2, ["constant", "gradient", "position"], scales=[1.5])
    ['constant', 'gradient 1.5 of 0', 'gradient 1.5 of 1', 'row', 'column']
    """
    check_kinds(kinds, NODE_KINDS, "node_features")
    channels, reach = range(n_channels), range(-(window // 2), window // 2 + 1)
    names = {
        "constant": ["constant"],
        "values": [f"value {c}" for c in channels],
        "position": ["row", "column"],
        "neighbourhood": [f"value {c} at {down:+d},{right:+d}" for down in reach for right in reach for c in channels],
    }
    for kind in ("blurred", "gradient", "variance"):
        names[kind] = [f"{kind} {scale:g} of {c}" for scale in scales for c in channels]
    return [name for kind in kinds for name in names[kind]]


def _blur(image: FloatArray, scale: float) -> FloatArray:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(image, (scale, scale, 0), mode="nearest"))


def _gradient(image: FloatArray, scale: float) -> FloatArray:
    from scipy.ndimage import gaussian_filter

    down, right = (gaussian_filter(image, (scale, scale, 0), o, mode="nearest") for o in ((1, 0, 0), (0, 1, 0)))
    return np.hypot(down, right)


def _variance(image: FloatArray, scale: float) -> FloatArray:
    # From the image's mean, so that little is lost where the values are large and vary little.
    centred = image - image.mean(axis=(0, 1))
    return np.maximum(_blur(centred**2, scale) - _blur(centred, scale) ** 2, 0.0)


def _at_scales(each: Callable[[FloatArray, float], FloatArray]) -> Callable[..., FloatArray]:
    return lambda image, scales, window: np.concatenate([each(image, scale) for scale in scales], axis=2)


def _position(image: FloatArray, scales: tuple[float, ...], window: int) -> FloatArray:
    along = [(np.arange(n) + 0.5) * 2 / n - 1 for n in image.shape[:2]]
    return np.stack(np.meshgrid(*along, indexing="ij"), axis=2)


def _neighbourhood(image: FloatArray, scales: tuple[float, ...], window: int) -> FloatArray:
    reach = window // 2
    padded = np.pad(image, ((reach, reach), (reach, reach), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), axis=(0, 1))
    return windows.transpose(0, 1, 3, 4, 2).reshape(*image.shape[:2], -1)


_NODE: dict[str, Callable[..., FloatArray]] = {
    "constant": lambda image, scales, window: np.ones((*image.shape[:2], 1)),
    "values": lambda image, scales, window: image,
    "blurred": _at_scales(_blur),
    "gradient": _at_scales(_gradient),
    "variance": _at_scales(_variance),
    "position": _position,
    "neighbourhood": _neighbourhood,
}


# ---- pairs of neighbours ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class GridEdges(Frozen):
    """Pairs of neighbours of all images: an image's edges together, within it those of one direction, in row order.

    Attributes
    ----------
    ends
        ``int64[m, 2]``: positions of the two pixels; the first comes first in row order.
    direction
        ``int64[m]``: 0 right, 1 down, 2 down and right, 3 down and left.
    offsets
        ``int64[n + 1]``: where the edges of an image begin.
    n_directions
        2 or, with diagonals, 4.
    """

    ends: IntArray
    direction: IntArray
    offsets: IntArray
    n_directions: int

    __repr__ = short_repr


def grid_edges(shapes: npt.ArrayLike, connectivity: int = 4) -> GridEdges:
    """Neighbours in images of these rows and columns: 4, beside and below, or 8 with the diagonals.

    Examples
    --------
    >>> edges = grid_edges([(2, 2), (1, 3)])
    >>> edges.ends.tolist(), edges.direction.tolist(), edges.offsets.tolist()
    ([[0, 1], [2, 3], [0, 2], [1, 3], [4, 5], [5, 6]], [0, 0, 1, 1, 0, 0], [0, 4, 6])
    """
    if connectivity not in (4, 8):
        raise ModelError(f"connectivity must be 4 or 8, got {connectivity!r}")
    sizes = np.asarray(shapes, np.int64).reshape(-1, 2)
    known: dict[tuple[int, int], tuple[IntArray, IntArray]] = {}
    starts = offsets_of(sizes.prod(axis=1))
    parts = []
    for (rows, columns), start in zip(sizes.tolist(), starts, strict=False):
        if (rows, columns) not in known:
            known[rows, columns] = _edges(rows, columns, connectivity // 2)
        ends, direction = known[rows, columns]
        parts.append((ends + start, direction))
    ends = np.concatenate([np.zeros((0, 2), np.int64), *(e for e, _ in parts)])
    direction = np.concatenate([np.zeros(0, np.int64), *(d for _, d in parts)])
    return GridEdges(ends, direction, np.cumsum([0, *(len(d) for _, d in parts)]), connectivity // 2)


def _edges(rows: int, columns: int, n_directions: int) -> tuple[IntArray, IntArray]:
    pixel = np.arange(rows * columns).reshape(rows, columns)
    pairs = []
    for down, right in list(DIRECTIONS.values())[:n_directions]:
        first = pixel[: rows - down, max(0, -right) : columns - max(0, right)]
        second = pixel[down:, max(0, right) : columns + min(0, right)]
        pairs.append(np.stack([first.ravel(), second.ravel()], axis=1))
    return np.concatenate(pairs), np.repeat(np.arange(n_directions), [len(p) for p in pairs])


def edge_features(
    images: Images,
    edges: GridEdges,
    kinds: Sequence[str] = ("constant", "contrast"),
    *,
    beta: float | None = None,
    directional: bool = False,
) -> FloatArray:
    """Features of every edge, ``float64[m, features]``.

    Parameters
    ----------
    images, edges
        As `stack_images` and `grid_edges` make them.
    kinds
        Of: ``"constant"``, a one; ``"contrast"``, exp(-beta d) with d the squared distance of the two pixels' values;
        ``"difference"``, the channels' absolute differences; ``"values"``, the channels of the first end, then those of
        the second.
    beta
        None: 1 / (2 mean d), the mean over the edges of each image.
    directional
        A column for each feature and direction, zero at edges of other directions: direction by direction.

    Examples
    --------
    >>> images = stack_images([[[0, 0], [0, 2]]])
    >>> edge_features(images, grid_edges(images.shapes), directional=True, beta=0.5).round(2)
    array([[1.  , 1.  , 0.  , 0.  ],
           [1.  , 0.14, 0.  , 0.  ],
           [0.  , 0.  , 1.  , 1.  ],
           [0.  , 0.  , 1.  , 0.14]])
    """
    check_kinds(kinds, EDGE_KINDS, "edge_features")
    first, second = (images.values[edges.ends[:, side]] for side in (0, 1))
    found: list[FloatArray] = []
    for kind in kinds:
        if kind == "constant":
            found.append(np.ones((len(first), 1)))
        elif kind == "contrast":
            found.append(_contrast(((first - second) ** 2).sum(axis=1), edges, beta)[:, None])
        elif kind == "difference":
            found.append(np.abs(first - second))
        else:
            found += [first, second]
    features = np.concatenate(found, axis=1)
    if not directional:
        return features
    spread = np.zeros((len(features), edges.n_directions, features.shape[1]))
    spread[np.arange(len(features)), edges.direction] = features
    return spread.reshape(len(features), edges.n_directions * features.shape[1])


def _contrast(squared: FloatArray, edges: GridEdges, beta: float | None) -> FloatArray:
    if beta is not None:
        return np.asarray(np.exp(-beta * squared))
    n_edges = np.diff(edges.offsets)
    image = np.repeat(np.arange(len(n_edges)), n_edges)
    mean = np.bincount(image, squared, len(n_edges)) / np.maximum(n_edges, 1)
    # An image of one colour has no contrast anywhere.
    return np.asarray(np.exp(-0.5 * squared / np.where(mean > 0, mean, 1.0)[image]))


# ---- checks -------------------------------------------------------------------------------------------------


def check_kinds(kinds: Sequence[str], known: tuple[str, ...], what: str) -> None:
    """Raise unless the kinds of features are known ones, at least one and none twice."""
    given = [kinds] if isinstance(kinds, str) else list(kinds)
    unknown = [kind for kind in given if kind not in known]
    if isinstance(kinds, str) or unknown or not given or len(set(given)) < len(given):
        raise ModelError(f"{what} must be a list of different ones of {', '.join(known)}, got {kinds!r}")


def check_scales(scales: Sequence[float], window: int) -> None:
    """Raise unless scales are positive numbers and the window has a middle."""
    if not all(isinstance(s, (int, float, np.number)) and 0 < s < np.inf for s in scales):
        raise ModelError(f"scales must be positive numbers of pixels, got {scales!r}")
    if not isinstance(window, (int, np.integer)) or window < 1 or window % 2 == 0:
        raise ModelError(f"window must be an odd number of pixels, got {window!r}")
