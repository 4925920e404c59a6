"""Eight numbers at a time, spelt out for the compiler.

Rows of a few dozen labels are too short for a loop vectoriser: with its checks for overlap and its scalar tails it runs
them at a third of the speed of these. Arrays are flat; a block is eight consecutive entries, and callers pad rows to
a multiple of `BLOCK`. Bounds are not checked.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["BLOCK", "add_block", "add_dots_block", "add_rows_block", "max_sums_block"]

BLOCK = 8


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Where a block of an array starts."""
    data = context.make_array(array_type)(context, builder, array).data
    vector = ir.VectorType(context.get_value_type(array_type.dtype), BLOCK)
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _load(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    return builder.load(_pointer(context, builder, array_type, array, index), align=array_type.dtype.bitwidth // 8)


def _store(context: Any, builder: Any, array_type: Any, array: Any, index: Any, value: Any) -> None:
    pointer = _pointer(context, builder, array_type, array, index)
    builder.store(value, pointer, align=array_type.dtype.bitwidth // 8)


def _spread(builder: Any, scalar: Any) -> Any:
    """The same number in all eight lanes."""
    vector = ir.VectorType(scalar.type, BLOCK)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), lanes)


def _scalar(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.load(builder.gep(data, [index]))


_FAST = ("reassoc", "contract", "nsz")


def _compiled() -> tuple[Any, ...]:
    @intrinsic  # type: ignore[untyped-decorator]
    def add_block(typing_context: Any, out: Any, o: Any, scale: Any, source: Any, p: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, _, _, t_source, _ = signature.args
            mine = _load(context, builder, t_out, args[0], args[1])
            other = builder.fmul(
                _load(context, builder, t_source, args[3], args[4]), _spread(builder, args[2]), flags=_FAST
            )
            _store(context, builder, t_out, args[0], args[1], builder.fadd(mine, other, flags=_FAST))
            return context.get_dummy_value()

        return types.void(out, types.int64, out.dtype, source, types.int64), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def add_rows_block(
        typing_context: Any, out: Any, o: Any, weights: Any, k: Any, width: Any, rows: Any, first: Any, last: Any
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, t_weights, t_rows = signature.args[0], signature.args[2], signature.args[5]
            total = cgutils.alloca_once_value(builder, _load(context, builder, t_out, args[0], args[1]))
            with cgutils.for_range_slice(builder, args[6], args[7], ir.Constant(args[6].type, 1)) as (r, _):
                row = builder.sext(_scalar(context, builder, t_rows, args[5], r), args[4].type)
                at = builder.add(builder.mul(row, args[4]), args[3])
                block = _load(context, builder, t_weights, args[2], at)
                builder.store(builder.fadd(builder.load(total), block, flags=_FAST), total)
            _store(context, builder, t_out, args[0], args[1], builder.load(total))
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, weights, i8, i8, rows, i8, i8), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def add_dots_block(
        typing_context: Any,
        out: Any,
        o: Any,
        vector: Any,
        v: Any,
        v_step: Any,
        matrix: Any,
        m: Any,
        m_step: Any,
        n: Any,
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, t_vector, t_matrix = signature.args[0], signature.args[2], signature.args[5]
            total = cgutils.alloca_once_value(builder, _load(context, builder, t_out, args[0], args[1]))
            zero, one = ir.Constant(args[8].type, 0), ir.Constant(args[8].type, 1)
            with cgutils.for_range_slice(builder, zero, args[8], one) as (i, _):
                scale = _scalar(context, builder, t_vector, args[2], builder.add(args[3], builder.mul(i, args[4])))
                at = builder.add(args[6], builder.mul(i, args[7]))
                term = builder.fmul(
                    _load(context, builder, t_matrix, args[5], at), _spread(builder, scale), flags=_FAST
                )
                builder.store(builder.fadd(builder.load(total), term, flags=_FAST), total)
            _store(context, builder, t_out, args[0], args[1], builder.load(total))
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, vector, i8, i8, matrix, i8, i8, i8), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def max_sums_block(
        typing_context: Any,
        out: Any,
        o: Any,
        origin: Any,
        vector: Any,
        v: Any,
        matrix: Any,
        m: Any,
        m_step: Any,
        n: Any,
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, _, t_origin, t_vector, _, t_matrix = signature.args[:6]
            best = cgutils.alloca_once_value(builder, _load(context, builder, t_out, args[0], args[1]))
            label = cgutils.alloca_once_value(builder, _load(context, builder, t_origin, args[2], args[1]))
            zero, one = ir.Constant(args[8].type, 0), ir.Constant(args[8].type, 1)
            kind = context.get_value_type(t_origin.dtype)
            with cgutils.for_range_slice(builder, zero, args[8], one) as (i, _):
                shift = _scalar(context, builder, t_vector, args[3], builder.add(args[4], i))
                block = _load(context, builder, t_matrix, args[5], builder.add(args[6], builder.mul(i, args[7])))
                other = builder.fadd(block, _spread(builder, shift))
                better = builder.fcmp_ordered(">", other, builder.load(best))
                name = _spread(builder, builder.trunc(i, kind))
                builder.store(builder.select(better, other, builder.load(best)), best)
                builder.store(builder.select(better, name, builder.load(label)), label)
            _store(context, builder, t_out, args[0], args[1], builder.load(best))
            _store(context, builder, t_origin, args[2], args[1], builder.load(label))
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, origin, vector, i8, matrix, i8, i8, i8), codegen

    return add_block, add_rows_block, add_dots_block, max_sums_block


def _interpreted() -> tuple[Any, ...]:
    """The same in plain Python, when the JIT is off; what the compiled ones mean."""

    def add_block(out: Any, o: int, scale: float, source: Any, p: int) -> None:
        out[o : o + BLOCK] += scale * source[p : p + BLOCK]

    def add_rows_block(out: Any, o: int, weights: Any, k: int, width: int, rows: Any, first: int, last: int) -> None:
        for r in range(first, last):
            at = int(rows[r]) * width + k
            out[o : o + BLOCK] += weights[at : at + BLOCK]

    def add_dots_block(
        out: Any, o: int, vector: Any, v: int, v_step: int, matrix: Any, m: int, m_step: int, n: int
    ) -> None:
        for i in range(n):
            at = m + i * m_step
            out[o : o + BLOCK] += vector[v + i * v_step] * matrix[at : at + BLOCK]

    def max_sums_block(
        out: Any, o: int, origin: Any, vector: Any, v: int, matrix: Any, m: int, m_step: int, n: int
    ) -> None:
        for i in range(n):
            for k in range(BLOCK):
                other = vector[v + i] + matrix[m + i * m_step + k]
                if other > out[o + k]:
                    out[o + k], origin[o + k] = other, i

    return add_block, add_rows_block, add_dots_block, max_sums_block


# add_block(out, o, scale, source, p): out[o:o+8] += scale * source[p:p+8].
# add_rows_block(out, o, weights, k, width, rows, first, last): out[o:o+8] += the sum over r in first..last of
#     weights[rows[r] * width + k:][:8].
# add_dots_block(out, o, vector, v, v_step, matrix, m, m_step, n): out[o:o+8] += the sum over i < n of
#     vector[v + i * v_step] * matrix[m + i * m_step:][:8].
# max_sums_block(out, o, origin, vector, v, matrix, m, m_step, n): out[o:o+8] becomes the largest of itself and, over
#     i < n, vector[v + i] + matrix[m + i * m_step:][:8]; origin[o:o+8] becomes the first i that is the largest.
_DISABLED: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
add_block, add_rows_block, add_dots_block, max_sums_block = _interpreted() if _DISABLED else _compiled()
