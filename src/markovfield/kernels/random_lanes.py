"""Many random numbers at once: xoshiro256++ in lanes, one stream each, that move side by side.

`markovfield.kernels.random` draws one number at a time, which a loop over whole layers of neurons would wait for.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.interpreter import either

__all__ = ["LANES", "draw_words", "lanes"]

LANES = 64
_SEVENTEEN = np.uint64(17)
_TWENTY_THREE, _FORTY_ONE = np.uint64(23), np.uint64(41)
_FORTY_FIVE, _NINETEEN = np.uint64(45), np.uint64(19)


def lanes(rng: np.random.Generator) -> np.ndarray:
    """``uint64[4, LANES]``: streams seeded from a generator.

    Examples
    --------
    >>> lanes(np.random.default_rng(0)).shape
    (4, 64)
    """
    words = rng.integers(0, 2**64, size=(4, LANES), dtype=np.uint64)
    words[0] |= np.uint64(1)  # all zeros is the one state that must not be
    return words


def _advance_lane_by_lane(a, b, c, d, out):
    for lane in range(len(a)):
        x, y, z, w = a[lane], b[lane], c[lane], d[lane]
        s = x + w
        out[lane] = ((s << _TWENTY_THREE) | (s >> _FORTY_ONE)) + x
        t = y << _SEVENTEEN
        z ^= x
        w ^= y
        y ^= z
        x ^= w
        z ^= t
        a[lane], b[lane], c[lane] = x, y, z
        d[lane] = (w << _FORTY_FIVE) | (w >> _NINETEEN)


def _advance_in_numpy(a, b, c, d, out):
    """The same on whole arrays, whose sums wrap around in silence."""
    s = a + d
    out[:] = ((s << _TWENTY_THREE) | (s >> _FORTY_ONE)) + a
    t = b << _SEVENTEEN
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d[:] = (d << _FORTY_FIVE) | (d >> _NINETEEN)


_advance = either(_advance_in_numpy, lambda: kernel(_advance_lane_by_lane))


@kernel
def draw_words(state, out, n):
    """Fill ``out``, a multiple of `LANES` of uint64, with random bits as far as entry ``n``, in whole lanes."""
    for first in range(0, n, state.shape[1]):
        _advance(state[0], state[1], state[2], state[3], out[first : first + state.shape[1]])
