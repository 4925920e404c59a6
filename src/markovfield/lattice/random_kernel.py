"""Random words for the layers of a lattice: xoshiro256++ streams side by side, so that drawing runs in vectors.

Invariant: the generator and the order in which lanes are drawn, on which every simulation's numbers depend. `UNIT`
turns 53 bits into a number below one.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["UNIT", "fill_words", "next_word"]

UNIT = 2.0**-53
_SEVENTEEN, _TWENTY_THREE, _FORTY_ONE = np.uint64(17), np.uint64(23), np.uint64(41)
_FORTY_FIVE, _NINETEEN = np.uint64(45), np.uint64(19)


@kernel
def next_word(s0, s1, s2, s3):
    """The next word of a xoshiro256++ stream, and its state after that."""
    x = s0 + s3
    r = ((x << _TWENTY_THREE) | (x >> _FORTY_ONE)) + s0
    x = s1 << _SEVENTEEN
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= x
    return r, s0, s1, s2, (s3 << _FORTY_FIVE) | (s3 >> _NINETEEN)


@kernel
def fill_words(streams, g, words, n):
    """At least n random words, from ``uint64[layers, 4, lanes]``; ``words`` end at a multiple of lanes."""
    s0, s1, s2, s3 = streams[g, 0], streams[g, 1], streams[g, 2], streams[g, 3]
    lanes = streams.shape[2]
    for a in range(0, n, lanes):
        out = words[a : a + lanes]
        for w in range(lanes):
            out[w], s0[w], s1[w], s2[w], s3[w] = next_word(s0[w], s1[w], s2[w], s3[w])
