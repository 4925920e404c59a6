"""Words of bits, a small random generator and fixed-point logarithms, for the graph kernels.

A set of vertices is a row of ``uint64`` words. Everything here also runs with the JIT off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from markovfield.kernels.compiler import kernel
from markovfield.kernels.interpreter import either

__all__ = [
    "bit",
    "bit_length",
    "log2_fixed",
    "lowest_bit",
    "popcount",
    "random_below",
    "random_seed",
    "random_word",
]

FIXED = 1 << 16
"""One bit of weight (log2) in the fixed-point numbers of the order kernels."""


def _unary(python: Callable[[int], int], build: Callable[[Any, Any], Any]) -> Any:
    """A function of one word: one machine instruction when compiled."""

    def make() -> Any:
        @intrinsic  # type: ignore[untyped-decorator]
        def instruction(context: Any, x: Any) -> Any:
            def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
                return build(builder, arguments[0])

            return types.int64(types.uint64), generate

        return instruction

    return either(lambda x: python(int(x)), make)


def _bit_length(builder: Any, x: Any) -> Any:
    return builder.sub(ir.Constant(x.type, 64), builder.ctlz(x, ir.Constant(ir.IntType(1), 0)))


popcount = _unary(lambda x: x.bit_count(), lambda builder, x: builder.ctpop(x))
"""Number of bits set in a word."""
lowest_bit = _unary(
    lambda x: (x & -x).bit_length() - 1, lambda builder, x: builder.cttz(x, ir.Constant(ir.IntType(1), 0))
)
"""Index of the lowest bit set in a word that is not zero."""
bit_length = _unary(lambda x: x.bit_length(), _bit_length)
"""Number of bits needed to write a word."""


@kernel
def bit(index: int) -> Any:
    """The word whose only bit is ``index % 64``."""
    return np.uint64(1) << np.uint64(index & 63)


@kernel
def log2_fixed(x: int) -> int:
    """Fixed-point log2 of ``1 <= x < 2**47``, linear between powers of two: monotone, and no libm in a hot loop."""
    e = bit_length(np.uint64(x)) - 1
    return (e << 16) + (((x << 16) >> e) - 65536)


@kernel
def random_seed(seed: int) -> Any:
    """State of a generator: one word, never zero, mixed so that near seeds give unlike streams."""
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(seed & 0x7FFFFFFFFFFFFFFF) ^ np.uint64(0x9E3779B97F4A7C15)
    if state[0] == np.uint64(0):
        state[0] = np.uint64(1)
    for _ in range(16):
        random_word(state)
    return state


@kernel
def random_word(state: Any) -> Any:
    """Next word of Marsaglia's xorshift64 (shifts only: no overflow warnings when run without the JIT)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return x


@kernel
def random_below(state: Any, n: int) -> int:
    """A number in ``range(n)``, for ``n < 2**31`` (bias below 2**-32 * n, harmless for a search)."""
    return np.int64(((random_word(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
