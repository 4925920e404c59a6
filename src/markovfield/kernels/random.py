"""Random numbers inside kernels: xoshiro256++ streams, one row of four words for each stream.

A stream belongs to a Markov chain, a shard or a row of a lattice, never to a thread, so that draws do not depend on how
many threads there are. The generator is that of Blackman and Vigna (2021): four words of state, period 2^256 - 1.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.interpreter import either

__all__ = ["draw_bits", "draw_from_logs", "draw_index", "draw_unit", "streams"]

_UNIT = 2.0**-53
_ALL = 2**64 - 1
_SEVENTEEN = np.uint64(17)
_ELEVEN = np.uint64(11)
_TWENTY_THREE, _FORTY_ONE = np.uint64(23), np.uint64(41)
_FORTY_FIVE, _NINETEEN = np.uint64(45), np.uint64(19)


def streams(rng: np.random.Generator, n: int) -> np.ndarray:
    """``uint64[n, 4]``: ``n`` streams seeded from a generator.

    Examples
    --------
    >>> streams(np.random.default_rng(0), 3).shape
    (3, 4)
    """
    words = rng.integers(0, 2**64, size=(n, 4), dtype=np.uint64)
    words[:, 0] |= np.uint64(1)  # all zeros is the one state that must not be
    return words


def _draw_bits(state):
    a, b, c, d = state[0], state[1], state[2], state[3]
    s = a + d
    result = ((s << _TWENTY_THREE) | (s >> _FORTY_ONE)) + a
    t = b << _SEVENTEEN
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = (d << _FORTY_FIVE) | (d >> _NINETEEN)
    state[0], state[1], state[2], state[3] = a, b, c, d
    return result


def _draw_bits_in_python(state):
    """The same with integers of any size: the sums of NumPy's would be reported as overflows."""
    a, b, c, d = (int(word) for word in state[:4])
    s = (a + d) & _ALL
    result = ((((s << 23) | (s >> 41)) & _ALL) + a) & _ALL
    t = (b << 17) & _ALL
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = ((d << 45) | (d >> 19)) & _ALL
    state[0], state[1], state[2], state[3] = a, b, c, d
    return np.uint64(result)


draw_bits = either(_draw_bits_in_python, lambda: kernel(_draw_bits))
"""64 random bits; the argument is a stream, four words that move on."""


@kernel
def draw_unit(state):
    """A number in [0, 1), a multiple of 2^-53."""
    return np.float64(draw_bits(state) >> _ELEVEN) * _UNIT


@kernel
def draw_index(state, n):
    """An integer in [0, n), for n below 2^32: its bias is below n / 2^53."""
    return min(np.int64(draw_unit(state) * n), n - 1)


@kernel
def draw_from_logs(state, logs, first, n):
    """An index k in [0, n) with probability proportional to exp(logs[first + k]); ``logs`` there are overwritten.

    Answers -1 where every entry is -inf.
    """
    top = -np.inf
    for k in range(n):
        top = max(top, logs[first + k])
    if top == -np.inf:
        return -1
    total = 0.0
    for k in range(n):
        total += math.exp(logs[first + k] - top)
        logs[first + k] = total
    u = draw_unit(state) * total
    for k in range(n - 1):
        if u < logs[first + k]:
            return k
    # Rounding can leave u at the total: the last index that has any weight.
    last = n - 1
    while last > 0 and logs[first + last] == logs[first + last - 1]:
        last -= 1
    return last
