"""The logistic function in the arithmetic of its argument, as polynomials that the compiler can vectorise.

Float32 stays float32: eight numbers at a time where float64 has four, and half the terms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from markovfield.kernels.compiler import kernel
from markovfield.kernels.interpreter import either

__all__ = ["exp_of", "sigmoid"]

_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
_MOST = 700.0
_LOG2_E_32, _LN2_HIGH_32, _LN2_LOW_32 = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
_MOST_32 = np.float32(87.0)
_ONE_32, _HALF_32 = np.float32(1.0), np.float32(0.5)
_T3, _T4, _T5, _T6 = (np.float32(1 / math.factorial(n)) for n in (3, 4, 5, 6))


def _make_nearest() -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def nearest(typing_context: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.call(builder.module.declare_intrinsic("llvm.rint", [args[0].type]), args)

        return x(x), codegen

    return nearest


def _make_scaled() -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def scaled(typing_context: Any, x: Any, k: Any) -> Any:
        bits, mantissa = (32, 23) if x == types.float32 else (64, 52)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            whole = ir.IntType(bits)
            shifted = builder.shl(builder.fptosi(args[1], whole), ir.Constant(whole, mantissa))
            return builder.bitcast(builder.add(builder.bitcast(args[0], whole), shifted), args[0].type)

        return x(x, x), codegen

    return scaled


# The nearest whole number, as a float; and x times two to the power k, for x and the result of ordinary size.
_nearest = either(np.rint, _make_nearest)
_scaled = either(lambda x, k: type(x)(math.ldexp(x, int(k))), _make_scaled)


@kernel
def _exp_64(x):
    x = min(max(x, -_MOST), _MOST)
    k = _nearest(x * _LOG2_E)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    # Taylor to degree 11 on |r| <= ln(2)/2 leaves 1e-14.
    p = 2.505210838544172e-08
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
    return _scaled(p, k)


@kernel
def _exp_32(x):
    x = min(max(x, -_MOST_32), _MOST_32)
    k = _nearest(x * _LOG2_E_32)
    r = (x - k * _LN2_HIGH_32) - k * _LN2_LOW_32
    # Taylor to degree 6 leaves 1.2e-7, the spacing of float32.
    p = _T6 * r + _T5
    p = p * r + _T4
    p = p * r + _T3
    p = p * r + _HALF_32
    p = p * r + _ONE_32
    p = p * r + _ONE_32
    return _scaled(p, k)


def exp_of(x: Any) -> Any:
    """exp(x) in the type of x, which is clipped where the result would be no ordinary number (700, in float32 87)."""
    return _exp_32(x) if isinstance(x, np.float32) else _exp_64(float(x))


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) in the type of x."""
    one = np.float32(1.0) if isinstance(x, np.float32) else 1.0
    return one / (one + exp_of(-x))


@overload(exp_of)  # type: ignore[untyped-decorator]
def _exp_of(x: Any) -> Any:
    def single(x: Any) -> Any:
        return _exp_32(x)

    def double(x: Any) -> Any:
        return _exp_64(x)

    return single if x == types.float32 else double


@overload(sigmoid)  # type: ignore[untyped-decorator]
def _sigmoid(x: Any) -> Any:
    def single(x: Any) -> Any:
        return _ONE_32 / (_ONE_32 + _exp_32(-x))

    def double(x: Any) -> Any:
        return 1.0 / (1.0 + _exp_64(-x))

    return single if x == types.float32 else double
