"""Small images drawn by code, a landscape to segment, and photographs from the reference data where there are any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray, short_repr
from markovfield.datasets.reference import reference_path
from markovfield.exceptions import ModelError
from markovfield.extras import check_installed

__all__ = ["Landscape", "binary_patterns", "horse", "house", "landscape", "photograph"]

Mask = npt.NDArray[np.bool_]


def _face(x: FloatArray, y: FloatArray) -> Mask:
    ring = np.abs(np.hypot(x, y) - 0.82) < 0.07
    eyes = np.hypot(np.abs(x) - 0.32, y + 0.28) < 0.13
    mouth = (np.abs(np.hypot(x, y + 0.05) - 0.48) < 0.07) & (y > 0.12)
    return ring | eyes | mouth


def _house(x: FloatArray, y: FloatArray) -> Mask:
    walls = (np.abs(x) < 0.6) & (y > -0.1) & (y < 0.85)
    roof = (y > -0.85) & (y <= -0.1) & (np.abs(x) < (y + 0.95) * 0.95)
    door = (np.abs(x + 0.2) < 0.16) & (y > 0.3)
    window = (np.abs(x - 0.28) < 0.16) & (np.abs(y - 0.3) < 0.16)
    return (walls | roof) & ~door & ~window


def _tree(x: FloatArray, y: FloatArray) -> Mask:
    crown = np.zeros(x.shape, np.bool_)
    for top in (-0.9, -0.5, -0.1):
        crown |= (y > top) & (y < top + 0.62) & (np.abs(x) < (y - top) * 1.05)
    return crown | ((np.abs(x) < 0.12) & (y > 0.4) & (y < 0.9))


def _rings(x: FloatArray, y: FloatArray) -> Mask:
    radius = np.hypot(x, y)
    return (radius < 0.9) & (np.floor(radius * 5.0) % 2 == 0)


def _letter_a(x: FloatArray, y: FloatArray) -> Mask:
    legs = np.abs(np.abs(x) - (y + 0.9) * 0.4) < 0.14
    bar = (np.abs(y - 0.3) < 0.11) & (np.abs(x) < (y + 0.9) * 0.4)
    return (legs | bar) & (np.abs(y) < 0.85)


def _checks(x: FloatArray, y: FloatArray) -> Mask:
    return (np.floor((x + 1) * 2.5) + np.floor((y + 1) * 2.5)) % 2 == 0


def _waves(x: FloatArray, y: FloatArray) -> Mask:
    return np.asarray(np.sin(9.0 * y + 1.6 * np.sin(4.0 * x)) > 0.1)


_DRAWN: dict[str, Callable[[FloatArray, FloatArray], Mask]] = {
    "face": _face,
    "house": _house,
    "tree": _tree,
    "rings": _rings,
    "letter": _letter_a,
    "checks": _checks,
    "waves": _waves,
}


def binary_patterns(names: Sequence[str] | None = None, *, size: int = 50) -> npt.NDArray[np.int8]:
    """Square images of -1 (paper) and +1 (ink), to be stored in a `Hopfield` network (Murphy, figure 19.7).

    Parameters
    ----------
    names
        Of ``"face"``, ``"house"``, ``"tree"``, ``"rings"``, ``"letter"``, ``"checks"`` and ``"waves"``; None for all.
    size
        Rows and columns, at least 8.

    Returns
    -------
    ndarray
        ``int8[images, size, size]``.

    Examples
    --------
    >>> for row in binary_patterns(["letter"], size=10)[0]:
    ...     print("".join("-#"[(pixel + 1) // 2] for pixel in row))
    ----------
    ----##----
    ----##----
    ---#-##---
    ---#--#---
    --##--##--
    --######--
    --#----#--
    -#------#-
    ----------
    """
    chosen = list(_DRAWN) if names is None else list(names)
    unknown = [name for name in chosen if name not in _DRAWN]
    if unknown:
        raise ModelError(f"binary_patterns(names=...) knows {', '.join(_DRAWN)}, not {unknown[0]!r}")
    if size < 8:
        raise ModelError(f"binary_patterns(size=...) must be at least 8, got {size}")
    at = (np.arange(size) + 0.5) * 2 / size - 1
    x, y = np.meshgrid(at, at)
    drawn = [np.where(_DRAWN[name](x, y), 1, -1) for name in chosen]
    return np.array(drawn, np.int8).reshape(-1, size, size)


class Landscape(NamedTuple):
    """An image in colours, ``float64[rows, columns, 3]`` from 0 to 1, and what each pixel shows, ``int64``."""

    image: FloatArray
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]

    def __repr__(self) -> str:
        return short_repr(self)


def landscape(
    shape: tuple[int, int] = (120, 160), *, noise: float = 0.1, rng: int | np.random.Generator | None = None
) -> Landscape:
    """A landscape with sky, a hill, a lake and a house, in colours that vary within each part and overlap between them.

    Examples
    --------
    >>> scene = landscape((60, 80), rng=0)
    >>> scene.image.shape, scene.labels.shape, scene.classes
    ((60, 80, 3), (60, 80), ('sky', 'hill', 'lake', 'house'))
    """
    rows, columns = shape
    if rows < 8 or columns < 8:
        raise ModelError(f"landscape(shape=...) needs at least 8 rows and columns, got {shape}")
    if not 0 <= noise < np.inf:
        raise ModelError(f"landscape(noise=...) must be a standard deviation, got {noise!r}")
    generator = generator_of(rng)
    y, x = np.meshgrid((np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns, indexing="ij")
    labels = np.zeros(shape, np.int64)
    labels[y > 0.5 + 0.13 * np.sin(5 * x + 0.6) + 0.03 * np.sin(19 * x)] = 1
    labels[((x - 0.35) / 0.3) ** 2 + ((y - 0.86) / 0.1) ** 2 < 1] = 2
    walls = (np.abs(x - 0.72) < 0.11) & (np.abs(y - 0.62) < 0.13)
    roof = (y > 0.33) & (y <= 0.49) & (np.abs(x - 0.72) < (y - 0.33) * 0.85)
    labels[walls | roof] = 3
    colours = np.array([[0.55, 0.7, 0.88], [0.36, 0.55, 0.28], [0.35, 0.5, 0.68], [0.62, 0.4, 0.3]])
    shade = 0.12 * (0.5 - y) + 0.05 * np.sin(7 * x + 11 * y)
    image = colours[labels] + shade[..., None] + noise * generator.normal(size=(*shape, 3))
    return Landscape(np.clip(image, 0.0, 1.0), labels, ("sky", "hill", "lake", "house"))


def photograph(name: str) -> FloatArray:
    """Read an image of the reference data: ``float64`` from 0 to 1, ``[rows, columns]`` or with channels.

    The folder is ``images`` within ``MARKOVFIELD_DATA``, or within ``shared/data`` next to the project.

    Examples
    --------
    >>> photograph("no_such_image.png")
    Traceback (most recent call last):
    FileNotFoundError: there is no image 'no_such_image.png' in the reference data; set MARKOVFIELD_DATA ...
    """
    path = reference_path("images", name, what=f"image {name!r}")
    check_installed("an image", "matplotlib")
    from matplotlib.image import imread

    pixels = np.asarray(imread(path))
    # matplotlib reads PNG as numbers up to 1 already, other formats as bytes.
    scale = 255.0 if np.issubdtype(pixels.dtype, np.integer) else 1.0
    return np.asarray(pixels, np.float64) / scale


def horse(step: int = 1) -> Landscape:
    """Read a horse of the Weizmann set and its mask from the reference data: class 1 is the horse, 0 the ground.

    Parameters
    ----------
    step
        2 takes every second row and column.

    Examples
    --------
    >>> horse(0)
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: horse(step) must be an integer of at least 1, got 0
    """
    step = whole_number(step, "horse(step)", 1)
    image, mask = photograph("horse323_image.png"), photograph("horse323_mask.png")
    return Landscape(image[::step, ::step], (mask[::step, ::step] > 0).astype(np.int64), ("ground", "horse"))


def house() -> FloatArray:
    """Read the house of the Middlebury benchmark of MRFs, grey with noise and two holes, from the reference data.

    Returns
    -------
    ndarray
        ``float64[rows, columns]`` from 0 to 1, nan in the holes.
    """
    from scipy.ndimage import binary_opening

    image = photograph("houseM-input.png")
    # Noise makes black pixels elsewhere too, but no black square.
    return np.where(binary_opening(image == 0, np.ones((7, 7))), np.nan, image)
