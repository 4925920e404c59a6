"""Products of vectors and matrices eight numbers at a time, with several sums under way at once.

A single sum waits for each of its additions to end; four at a time keep the machine busy. `kernels.simd`
says what a block is.

Invariant: the number of sums side by side (`TILE`) fixes the order of additions, and with it the last digits of
answers. The interpreted versions below do the same with the JIT off.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from markovfield.kernels.simd import _FAST, BLOCK, _load, _scalar, _spread, _store

__all__ = ["TILE", "add_outer_tile", "dots_block"]

TILE = 4


def _add_scaled(builder: Any, total: Any, block: Any, scale: Any) -> None:
    """Add a multiple of a block to a sum that lives in a register."""
    term = builder.fmul(block, _spread(builder, scale), flags=_FAST)
    builder.store(builder.fadd(builder.load(total), term, flags=_FAST), total)


def _compiled() -> tuple[Any, ...]:
    @intrinsic  # type: ignore[untyped-decorator]
    def dots_block(typing_context: Any, out: Any, o: Any, vector: Any, v: Any, matrix: Any, m: Any, m_step: Any,
                   n: Any) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, t_vector, t_matrix = signature.args[0], signature.args[2], signature.args[4]
            i8 = args[7].type
            kind = ir.VectorType(context.get_value_type(t_out.dtype), BLOCK)
            nothing = ir.Constant(kind, [0.0] * BLOCK)
            totals = [cgutils.alloca_once_value(builder, nothing) for _ in range(TILE)]

            def add(i: Any, total: Any) -> None:
                scale = _scalar(context, builder, t_vector, args[2], builder.add(args[3], i))
                at = builder.add(args[5], builder.mul(i, args[6]))
                _add_scaled(builder, total, _load(context, builder, t_matrix, args[4], at), scale)

            zero, one, tile = (ir.Constant(i8, c) for c in (0, 1, TILE))
            whole = builder.sub(args[7], builder.srem(args[7], tile))
            with cgutils.for_range_slice(builder, zero, whole, tile) as (i, _):
                for j, total in enumerate(totals):
                    add(builder.add(i, ir.Constant(i8, j)), total)
            with cgutils.for_range_slice(builder, whole, args[7], one) as (i, _):
                add(i, totals[0])
            a, b, c, d = (builder.load(total) for total in totals)
            both = builder.fadd(builder.fadd(a, b, flags=_FAST), builder.fadd(c, d, flags=_FAST), flags=_FAST)
            _store(context, builder, t_out, args[0], args[1], both)
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, vector, i8, matrix, i8, i8, i8), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def add_outer_tile(typing_context: Any, out: Any, o: Any, o_step: Any, left: Any, p: Any, p_step: Any, right: Any,
                       q: Any, q_step: Any, n: Any) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, t_left, t_right = signature.args[0], signature.args[3], signature.args[6]
            i8 = args[9].type
            rows = [builder.add(args[1], builder.mul(args[2], ir.Constant(i8, j))) for j in range(TILE)]
            totals = [cgutils.alloca_once_value(builder, _load(context, builder, t_out, args[0], row)) for row in rows]
            zero, one = ir.Constant(i8, 0), ir.Constant(i8, 1)
            with cgutils.for_range_slice(builder, zero, args[9], one) as (i, _):
                block = _load(context, builder, t_right, args[6], builder.add(args[7], builder.mul(i, args[8])))
                at = builder.add(args[4], builder.mul(i, args[5]))
                for j, total in enumerate(totals):
                    scale = _scalar(context, builder, t_left, args[3], builder.add(at, ir.Constant(i8, j)))
                    _add_scaled(builder, total, block, scale)
            for row, total in zip(rows, totals, strict=True):
                _store(context, builder, t_out, args[0], row, builder.load(total))
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, i8, left, i8, i8, right, i8, i8, i8), codegen

    return dots_block, add_outer_tile


def _interpreted() -> tuple[Any, ...]:
    """The same in plain Python, when the JIT is off; what the compiled ones mean."""

    def dots_block(out: Any, o: int, vector: Any, v: int, matrix: Any, m: int, m_step: int, n: int) -> None:
        out[o : o + BLOCK] = 0.0
        for i in range(n):
            out[o : o + BLOCK] += vector[v + i] * matrix[m + i * m_step : m + i * m_step + BLOCK]

    def add_outer_tile(
        out: Any, o: int, o_step: int, left: Any, p: int, p_step: int, right: Any, q: int, q_step: int, n: int
    ) -> None:
        for j in range(TILE):
            at = o + j * o_step
            for i in range(n):
                out[at : at + BLOCK] += left[p + i * p_step + j] * right[q + i * q_step : q + i * q_step + BLOCK]

    return dots_block, add_outer_tile


# dots_block(out, o, vector, v, matrix, m, m_step, n): out[o:o+8] becomes the sum over i < n of
#     vector[v + i] * matrix[m + i * m_step:][:8].
# add_outer_tile(out, o, o_step, left, p, p_step, right, q, q_step, n): for j < 4, out[o + j * o_step:][:8] += the sum
#     over i < n of left[p + i * p_step + j] * right[q + i * q_step:][:8].
_DISABLED: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
dots_block, add_outer_tile = _interpreted() if _DISABLED else _compiled()
