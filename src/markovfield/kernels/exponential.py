"""exp over arrays as one polynomial that the compiler can vectorise; libm's is a call per number."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from markovfield.kernels.compiler import kernel
from markovfield.kernels.interpreter import either

__all__ = ["exp_scalar", "fill_exp"]

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


def _make_bits_to_float() -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def bits_to_float(typing_context: Any, bits: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], ir.DoubleType())

        return types.float64(types.int64), codegen

    return bits_to_float


# 64 bits read as a float: one instruction when compiled.
_bits_to_float = either(lambda bits: struct.unpack("d", struct.pack("q", int(bits)))[0], _make_bits_to_float)


@kernel
def exp_scalar(x):
    """exp(x) for x below 700, to a relative 1e-13 or better; zero below -708 (and for -inf)."""
    clipped = max(x, -708.0)
    k = math.floor(clipped * _LOG2_E + 0.5)
    r = (clipped - k * _LN2_HIGH) - k * _LN2_LOW
    # Taylor to degree 13 on |r| <= ln(2)/2 leaves 2e-18.
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 1.984126984126984e-04
    p = p * r + 1.388888888888889e-03
    p = p * r + 8.333333333333333e-03
    p = p * r + 4.1666666666666664e-02
    p = p * r + 1.6666666666666666e-01
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    scale = _bits_to_float((np.int64(k) + np.int64(1023)) << np.int64(52))
    return p * scale if x >= -708.0 else 0.0


@kernel
def fill_exp(out, values, shift):
    """out[i] = exp(values[i] - shift)."""
    for i in range(len(values)):
        out[i] = exp_scalar(values[i] - shift)
