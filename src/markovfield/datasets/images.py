"""Letters drawn by code, noise upon them, and the Ising model that takes it off again (Murphy 19.4.1)."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import short_repr
from markovfield.exceptions import ModelError
from markovfield.models import MarkovNetwork

__all__ = ["NoisyImage", "ising_denoiser", "letters", "noisy_letters"]

# Strokes on a grid four wide and six high, y downwards: "00" is the upper left corner, a space lifts the pen.
_STROKES = {
    "A": "062046 1434",
    "B": "00063645443303 3342413000",
    "C": "4130100105163645",
    "D": "00063645413000",
    "E": "40000646 0333",
    "F": "400006 0333",
    "G": "41301001051636454323",
    "H": "0006 4046 0343",
    "I": "0006",
    "J": "3035261605",
    "K": "0006 400346",
    "L": "000646",
    "M": "0600234046",
    "N": "06004640",
    "O": "100105163645413010",
    "P": "06003041423303",
    "Q": "100105163645413010 2446",
    "R": "06003041423303 2346",
    "S": "413010010213334445361605",
    "T": "0040 2026",
    "U": "000516364540",
    "V": "002640",
    "W": "0016223640",
    "X": "0046 4006",
    "Y": "002340 2326",
    "Z": "00400646",
    " ": "",
}
_GRID_HEIGHT = 6.0


class NoisyImage(NamedTuple):
    """A binary image, ``int8[rows, columns]``, and what is left of it, ``float64[rows, columns]``."""

    clean: npt.NDArray[np.int8]
    noisy: npt.NDArray[np.float64]

    def __repr__(self) -> str:
        return short_repr(self)


def _segments(letter: str) -> list[tuple[complex, complex]]:
    """The straight strokes of a letter, points as complex numbers."""
    found = []
    for line in _STROKES[letter].split():
        points = [complex(int(line[i]), int(line[i + 1])) for i in range(0, len(line), 2)]
        found += list(pairwise(points))
    return found


def letters(text: str = "MARKOVFIELD", *, height: int = 14, thickness: float = 2.9) -> npt.NDArray[np.int8]:
    """Draw text as a binary image.

    Parameters
    ----------
    text
        Letters A to Z (case does not matter) and spaces.
    height
        Rows of the image, at least 8. A lattice that is small in one direction has a small width, so that exact
        inference stays cheap however long the text is.
    thickness
        Width of the strokes in pixels.

    Returns
    -------
    ndarray
        ``int8[height, columns]``, 1 for ink.

    Examples
    --------
    >>> for row in letters("LO", height=8, thickness=1.1):
    ...     print("".join(" #"[pixel] for pixel in row).rstrip())
    <BLANKLINE>
     #     ###
     #     #  #
     #     #  #
     #     #  #
     #     #  #
     ####  ###
    <BLANKLINE>
    """
    unknown = sorted(set(text.upper()) - set(_STROKES))
    if unknown or not text.strip():
        raise ModelError(f"letters(text=...) takes letters A to Z and spaces, got {text!r}")
    if height < 8:
        raise ModelError(f"letters(height=...) must be at least 8 rows, got {height}")
    border = 1.0 + thickness / 2
    scale = (height - 2 * border) / _GRID_HEIGHT
    gap = thickness + 1.4 * scale
    strokes: list[tuple[complex, complex]] = []
    at = border
    for letter in text.upper():
        at = np.floor(at) + 0.5  # upright strokes of equal width, wherever the letter stands
        own = _segments(letter)
        strokes += [(a * scale + complex(at, border), b * scale + complex(at, border)) for a, b in own]
        at += gap + scale * max((point.real for segment in own for point in segment), default=2.0)
    columns = int(np.ceil(at - gap + border))
    y, x = np.mgrid[:height, :columns]
    centre = (x + 0.5) + 1j * (y + 0.5)
    ink = np.zeros((height, columns), np.bool_)
    for a, b in strokes:
        along = ((centre - a) * np.conj(b - a)).real / abs(b - a) ** 2
        ink |= np.abs(centre - (a + np.clip(along, 0, 1) * (b - a))) <= thickness / 2
    return ink.astype(np.int8)


def noisy_letters(
    text: str = "MARKOVFIELD",
    *,
    height: int = 14,
    noise: Literal["gaussian", "flip"] = "gaussian",
    level: float = 0.4,
    rng: int | np.random.Generator | None = None,
) -> NoisyImage:
    """Draw text and spoil it.

    Parameters
    ----------
    text, height
        See `letters`.
    noise, level
        ``"gaussian"`` adds to each pixel a normal number of standard deviation ``level``; ``"flip"`` turns each pixel
        over with probability ``level``.
    rng
        A seed or a generator.

    Examples
    --------
    >>> image = noisy_letters("MARKOV", rng=0)
    >>> image.clean.shape == image.noisy.shape
    True
    >>> bool(0.05 < (image.clean != (image.noisy > 0.5)).mean() < 0.15)
    True
    """
    if noise not in ("gaussian", "flip"):
        raise ModelError(f"noisy_letters(noise=...) must be 'gaussian' or 'flip', got {noise!r}")
    if not 0 <= level < np.inf or (noise == "flip" and level > 1):
        rule = "a probability" if noise == "flip" else "a standard deviation"
        raise ModelError(f"noisy_letters(level=...) must be {rule}, got {level!r}")
    clean = letters(text, height=height)
    generator = generator_of(rng)
    if noise == "flip":
        flipped = generator.random(clean.shape) < level
        return NoisyImage(clean, (clean ^ flipped).astype(np.float64))
    return NoisyImage(clean, clean + level * generator.normal(size=clean.shape))


def ising_denoiser(noisy: npt.ArrayLike, *, coupling: float = 0.6, field: float = 1.5) -> MarkovNetwork:
    """The posterior of a clean binary image given a noisy one: an Ising model on the lattice of pixels.

    With spins s = +1 for state 1 and -1 for state 0, the score of an image is ``coupling`` times the sum of s_p s_q
    over neighbouring pixels plus ``field`` times the sum of s_p y_p, where y = 2 * noisy - 1 is what was seen (Murphy
    19.17, both signs positive: neighbours attract, and so does the data).

    Parameters
    ----------
    noisy
        ``[rows, columns]`` numbers: about 0 where state 0 is likely, about 1 where state 1 is; 0.5 says nothing.
    coupling
        How strongly neighbours want to be equal.
    field
        How far the data is believed. It is the true likelihood with ``0.25 / level**2`` for Gaussian noise of that
        standard deviation, and with ``0.5 * log((1 - level) / level)`` for pixels turned over with that probability.

    Returns
    -------
    MarkovNetwork
        One variable of states 0 and 1 for each pixel, named by its index ``row * columns + column``. The width is
        about the smaller side of the image. All edges share one table, and so do pixels of equal value.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = ising_denoiser([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> mf.decode(net).assignment[4]
    1
    """
    seen = np.asarray(noisy, np.float64)
    if seen.ndim != 2 or not seen.size:
        raise ModelError(f"ising_denoiser(noisy) needs an image of rows and columns, got shape {seen.shape}")
    if not np.isfinite(seen).all():
        raise ModelError("ising_denoiser(noisy) needs pixels that are finite numbers")
    pixel = np.arange(seen.size).reshape(seen.shape)
    net = MarkovNetwork(dict.fromkeys(range(seen.size), 2))
    across = np.stack([pixel[:, :-1].ravel(), pixel[:, 1:].ravel()], axis=1)
    down = np.stack([pixel[:-1].ravel(), pixel[1:].ravel()], axis=1)
    edges = np.concatenate([across, down]).tolist()
    net.add_factors(edges, log_table=[[coupling, -coupling], [-coupling, coupling]])
    alike: dict[float, list[list[int]]] = {}
    for p, value in enumerate(seen.ravel().tolist()):
        alike.setdefault(value, []).append([p])
    for value, pixels in alike.items():
        pull = field * (2 * value - 1)
        net.add_factors(pixels, log_table=[-pull, pull])
    return net
