"""Pairs of views with known disparities: the Middlebury pairs where they lie, and dots drawn by code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray, short_repr
from markovfield.datasets.reference import reference_folder, reference_path
from markovfield.exceptions import ModelError
from markovfield.extras import check_installed

__all__ = ["StereoPair", "random_dots", "stereo_pair"]

# Grey values of the true disparities are these times the disparity.
SCALES = {"tsukuba": 16, "venus": 8, "sawtooth": 8, "barn2": 8, "bull": 8, "poster": 8, "teddy": 4, "cones": 4}
ENDINGS = (".png", ".ppm", ".pgm")


class StereoPair(NamedTuple):
    """Two rectified views and what is known of them.

    Attributes
    ----------
    left, right
        ``float64[rows, columns, 3]`` or ``float64[rows, columns]``, from 0 to 1.
    disparity
        Of the left view's pixels, ``float64[rows, columns]``: a pixel at column x is at column x - disparity on the
        right. nan where it is not known.
    max_disparity
        The largest true disparity, rounded up: no search needs more.
    """

    left: FloatArray
    right: FloatArray
    disparity: FloatArray
    max_disparity: int

    def __repr__(self) -> str:
        return short_repr(self)


def stereo_pair(name: str = "tsukuba", *, step: int = 1) -> StereoPair:
    """Read a Middlebury pair (Scharstein and Szeliski 2002, 2003) from the reference data.

    The folder is ``stereo/<name>`` within ``MARKOVFIELD_DATA``, or within ``shared/data`` next to the project, with the
    images ``im2`` (left), ``im6`` (right) and ``disp2`` (true disparities of the left) as PNG, PPM or PGM. Reading
    them takes Pillow, which comes with the extra ``plot``.

    Parameters
    ----------
    name
        ``"tsukuba"``, ``"venus"``, ``"sawtooth"``, ``"barn2"``, ``"bull"``, ``"poster"``, ``"teddy"`` or ``"cones"``.
    step
        2 makes it half as large, disparities too: views are averaged over blocks of that many rows and columns.

    Examples
    --------
    >>> stereo_pair("no_such_pair")
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: stereo_pair(name=...) knows tsukuba, venus, ..., not 'no_such_pair'
    """
    if name not in SCALES:
        raise ModelError(f"stereo_pair(name=...) knows {', '.join(SCALES)}, not {name!r}")
    if step < 1:
        raise ModelError(f"stereo_pair(step=...) must be at least 1, got {step}")
    left, right, grey = (_image(name, file) for file in ("im2", "im6", "disp2"))
    if not left.shape[:2] == right.shape[:2] == grey.shape[:2]:
        sizes = ", ".join(str(image.shape[:2]) for image in (left, right, grey))
        raise ModelError(f"the images of the pair {name!r} must be of one size, got {sizes}")
    grey = grey if grey.ndim == 2 else grey[..., 0]
    disparity = np.where(grey > 0, grey / SCALES[name], np.nan)
    most = int(np.ceil(np.nanmax(disparity)))
    if step == 1:
        return StereoPair(left / 255.0, right / 255.0, disparity, most)
    rows, columns = (length // step for length in disparity.shape)
    disparity = disparity[: rows * step : step, : columns * step : step] / step
    views = [_blocks(view[: rows * step, : columns * step], step) / 255.0 for view in (left, right)]
    return StereoPair(views[0], views[1], disparity, -(-most // step))


def _blocks(view: FloatArray, step: int) -> FloatArray:
    rows, columns = view.shape[0] // step, view.shape[1] // step
    return np.asarray(view.reshape(rows, step, columns, step, *view.shape[2:]).mean(axis=(1, 3)))


def _image(pair: str, name: str) -> FloatArray:
    """Numbers from 0 to 255, ``[rows, columns]`` or with three channels."""
    folder = reference_folder() / "stereo" / pair
    found = next((name + ending for ending in ENDINGS if (folder / (name + ending)).is_file()), name)
    path = reference_path("stereo", pair, found, what=f"image {pair}/{name}", instead="random_dots()")
    check_installed("an image", "PIL")
    from PIL import Image

    with Image.open(path) as image:
        grey = image.mode in ("L", "1")
        return np.asarray(image.convert("L" if grey else "RGB"), np.float64)


def random_dots(
    shape: tuple[int, int] = (60, 90),
    disparities: tuple[int, ...] = (2, 5, 9),
    *,
    noise: float = 0.02,
    rng: Any = None,
) -> StereoPair:
    """Dots of random grey in which squares stand before a background, visible only with both views.

    Parameters
    ----------
    shape
        Rows and columns, at least 8 and so many that the squares fit.
    disparities
        Of the background, then of one square inside the other, each nearer than the one around it.
    noise
        Standard deviation of what is added to each view.
    rng
        Seed or generator.

    Returns
    -------
    StereoPair
        In grey; the disparity is nan where a pixel is hidden or outside on the right.

    Examples
    --------
    >>> pair = random_dots((20, 30), (1, 4), noise=0.0, rng=0)
    >>> float(pair.disparity[10, 15]), pair.max_disparity
    (4.0, 4)
    >>> bool(pair.left[10, 15] == pair.right[10, 11])
    True
    """
    rows, columns = shape
    given = list(disparities)
    if rows < 8 or columns < 8:
        raise ModelError(f"random_dots(shape=...) needs at least 8 rows and columns, got {shape}")
    if not given or given != sorted(set(given)) or given[0] < 0 or given[-1] >= columns // 2:
        raise ModelError(
            f"random_dots(disparities=...) must rise from at least 0 to below {columns // 2}, half of the columns, "
            f"got {disparities}"
        )
    if not 0 <= noise < np.inf:
        raise ModelError(f"random_dots(noise=...) must be a standard deviation, got {noise!r}")
    generator = generator_of(rng)
    disparity = np.full(shape, given[0])
    for level, d in enumerate(given[1:], 1):
        inset = level / (2 * len(given))
        top, side = round(inset * rows), round(inset * columns)
        disparity[top : rows - top, side : columns - side] = d
    left, right = generator.random(shape), generator.random(shape)
    source = np.full(shape, -1)
    row, column = np.mgrid[:rows, :columns]
    for d in given:
        # Nearer ones come later and cover what lies behind them.
        at = (disparity == d) & (column >= d)
        source[row[at], column[at] - d] = column[at]
    seen = source >= 0
    right[seen] = left[row[seen], source[seen]]
    known = np.zeros(shape, np.bool_)
    known[row[seen], source[seen]] = True
    views = [np.clip(view + noise * generator.normal(size=shape), 0.0, 1.0) for view in (left, right)]
    return StereoPair(views[0], views[1], np.where(known, disparity, np.nan), given[-1])
