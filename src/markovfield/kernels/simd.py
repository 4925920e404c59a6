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

__all__ = [
    "BLOCK",
    "add_block",
    "add_dots_block",
    "add_masked_block",
    "add_rows_block",
    "add_to_rows_block",
    "max_sums_block",
    "product_block",
    "scale_block",
]

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
LANES = 4


def _summed(builder: Any, term: Any, first: Any, last: Any, start: Any) -> Any:
    """``start`` and the sum of ``term(i)`` from ``first`` to ``last``, in four sums side by side.

    One sum alone would wait for every addition to end before the next can begin.
    """
    zero = ir.Constant(start.type, [0.0] * BLOCK)
    lanes = [cgutils.alloca_once_value(builder, start if k == 0 else zero) for k in range(LANES)]
    step = ir.Constant(first.type, LANES)
    whole = builder.sub(last, builder.srem(builder.sub(last, first), step))

    def add(lane: Any, value: Any) -> None:
        builder.store(builder.fadd(builder.load(lane), value, flags=_FAST), lane)

    with cgutils.for_range_slice(builder, first, whole, step) as (i, _):
        for k, lane in enumerate(lanes):
            add(lane, term(builder.add(i, ir.Constant(first.type, k))))
    with cgutils.for_range_slice(builder, whole, last, ir.Constant(first.type, 1)) as (i, _):
        add(lanes[0], term(i))
    sums = [builder.load(lane) for lane in lanes]
    return builder.fadd(
        builder.fadd(sums[0], sums[1], flags=_FAST), builder.fadd(sums[2], sums[3], flags=_FAST), flags=_FAST
    )


def _total(builder: Any, block: Any) -> Any:
    """The sum of a block, halved again and again."""
    size = BLOCK
    while size > 1:
        size //= 2
        half = ir.VectorType(ir.IntType(32), size)
        low = builder.shuffle_vector(block, block, ir.Constant(half, list(range(size))))
        high = builder.shuffle_vector(block, block, ir.Constant(half, list(range(size, 2 * size))))
        block = builder.fadd(low, high, flags=_FAST)
    return builder.extract_element(block, ir.Constant(ir.IntType(32), 0))


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
    def add_masked_block(typing_context: Any, out: Any, o: Any, scale: Any, source: Any, p: Any, mask: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, _, _, t_source, _, t_mask = signature.args
            mine = _load(context, builder, t_out, args[0], args[1])
            other = builder.fmul(
                _load(context, builder, t_source, args[3], args[4]), _spread(builder, args[2]), flags=_FAST
            )
            kept = builder.uitofp(_load(context, builder, t_mask, args[5], args[1]), mine.type)
            other = builder.fmul(other, kept, flags=_FAST)
            _store(context, builder, t_out, args[0], args[1], builder.fadd(mine, other, flags=_FAST))
            return context.get_dummy_value()

        return types.void(out, types.int64, out.dtype, source, types.int64, mask), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def add_rows_block(
        typing_context: Any, out: Any, o: Any, weights: Any, k: Any, width: Any, rows: Any, first: Any, last: Any
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, t_weights, t_rows = signature.args[0], signature.args[2], signature.args[5]

            def term(r: Any) -> Any:
                row = builder.sext(_scalar(context, builder, t_rows, args[5], r), args[4].type)
                at = builder.add(builder.mul(row, args[4]), args[3])
                return _load(context, builder, t_weights, args[2], at)

            first = _load(context, builder, t_out, args[0], args[1])
            _store(context, builder, t_out, args[0], args[1], _summed(builder, term, args[6], args[7], first))
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, weights, i8, i8, rows, i8, i8), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def add_to_rows_block(
        typing_context: Any, out: Any, k: Any, width: Any, rows: Any, first: Any, last: Any, source: Any, p: Any
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, t_rows, t_source = signature.args[0], signature.args[3], signature.args[6]
            block = _load(context, builder, t_source, args[6], args[7])
            with cgutils.for_range_slice(builder, args[4], args[5], ir.Constant(args[4].type, 1)) as (r, _):
                row = builder.sext(_scalar(context, builder, t_rows, args[3], r), args[2].type)
                at = builder.add(builder.mul(row, args[2]), args[1])
                mine = _load(context, builder, t_out, args[0], at)
                _store(context, builder, t_out, args[0], at, builder.fadd(mine, block, flags=_FAST))
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, i8, rows, i8, i8, source, i8), codegen

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

            def term(i: Any) -> Any:
                scale = _scalar(context, builder, t_vector, args[2], builder.add(args[3], builder.mul(i, args[4])))
                block = _load(context, builder, t_matrix, args[5], builder.add(args[6], builder.mul(i, args[7])))
                return builder.fmul(block, _spread(builder, scale), flags=_FAST)

            first = _load(context, builder, t_out, args[0], args[1])
            total = _summed(builder, term, ir.Constant(args[8].type, 0), args[8], first)
            _store(context, builder, t_out, args[0], args[1], total)
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, vector, i8, i8, matrix, i8, i8, i8), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def product_block(typing_context: Any, out: Any, o: Any, scale: Any, one: Any, p: Any, other: Any, q: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, _, _, t_one, _, t_other, _ = signature.args
            block = builder.fmul(
                _load(context, builder, t_one, args[3], args[4]), _load(context, builder, t_other, args[5], args[6]),
                flags=_FAST,
            )  # fmt: skip
            _store(
                context, builder, t_out, args[0], args[1], builder.fmul(block, _spread(builder, args[2]), flags=_FAST)
            )
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, out.dtype, one, i8, other, i8), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def scale_block(typing_context: Any, out: Any, o: Any, scale: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            block = _load(context, builder, signature.args[0], args[0], args[1])
            block = builder.fmul(block, _spread(builder, args[2]), flags=_FAST)
            _store(context, builder, signature.args[0], args[0], args[1], block)
            return context.get_dummy_value()

        return types.void(out, types.int64, out.dtype), codegen

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

    return (
        add_block, add_masked_block, add_rows_block, add_to_rows_block, add_dots_block, product_block,
        scale_block, max_sums_block,
    )  # fmt: skip


def _interpreted() -> tuple[Any, ...]:
    """The same in plain Python, when the JIT is off; what the compiled ones mean."""

    def add_block(out: Any, o: int, scale: float, source: Any, p: int) -> None:
        out[o : o + BLOCK] += scale * source[p : p + BLOCK]

    def add_masked_block(out: Any, o: int, scale: float, source: Any, p: int, mask: Any) -> None:
        out[o : o + BLOCK] += scale * source[p : p + BLOCK] * mask[o : o + BLOCK]

    def add_rows_block(out: Any, o: int, weights: Any, k: int, width: int, rows: Any, first: int, last: int) -> None:
        for r in range(first, last):
            at = int(rows[r]) * width + k
            out[o : o + BLOCK] += weights[at : at + BLOCK]

    def add_to_rows_block(out: Any, k: int, width: int, rows: Any, first: int, last: int, source: Any, p: int) -> None:
        for r in range(first, last):
            at = int(rows[r]) * width + k
            out[at : at + BLOCK] += source[p : p + BLOCK]

    def add_dots_block(
        out: Any, o: int, vector: Any, v: int, v_step: int, matrix: Any, m: int, m_step: int, n: int
    ) -> None:
        for i in range(n):
            at = m + i * m_step
            out[o : o + BLOCK] += vector[v + i * v_step] * matrix[at : at + BLOCK]

    def product_block(out: Any, o: int, scale: float, one: Any, p: int, other: Any, q: int) -> None:
        out[o : o + BLOCK] = scale * one[p : p + BLOCK] * other[q : q + BLOCK]

    def scale_block(out: Any, o: int, scale: float) -> None:
        out[o : o + BLOCK] *= scale

    def max_sums_block(
        out: Any, o: int, origin: Any, vector: Any, v: int, matrix: Any, m: int, m_step: int, n: int
    ) -> None:
        for i in range(n):
            for k in range(BLOCK):
                other = vector[v + i] + matrix[m + i * m_step + k]
                if other > out[o + k]:
                    out[o + k], origin[o + k] = other, i

    return (
        add_block, add_masked_block, add_rows_block, add_to_rows_block, add_dots_block, product_block,
        scale_block, max_sums_block,
    )  # fmt: skip


# add_block(out, o, scale, source, p): out[o:o+8] += scale * source[p:p+8].
# add_masked_block(out, o, scale, source, p, mask): the same where mask[o:o+8] (bytes) is one and not zero.
# add_rows_block(out, o, weights, k, width, rows, first, last): out[o:o+8] += the sum over r in first..last of
#     weights[rows[r] * width + k:][:8].
# add_to_rows_block(out, k, width, rows, first, last, source, p): out[rows[r] * width + k:][:8] += source[p:p+8] for
#     every r in first..last.
# add_dots_block(out, o, vector, v, v_step, matrix, m, m_step, n): out[o:o+8] += the sum over i < n of
#     vector[v + i * v_step] * matrix[m + i * m_step:][:8].
# product_block(out, o, scale, one, p, other, q): out[o:o+8] becomes scale * one[p:p+8] * other[q:q+8].
# scale_block(out, o, scale): out[o:o+8] *= scale.
# max_sums_block(out, o, origin, vector, v, matrix, m, m_step, n): out[o:o+8] becomes the largest of itself and, over
#     i < n, vector[v + i] + matrix[m + i * m_step:][:8]; origin[o:o+8] becomes the first i that is the largest.
_DISABLED: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
_BLOCKS = _interpreted() if _DISABLED else _compiled()
(
    add_block, add_masked_block, add_rows_block, add_to_rows_block, add_dots_block, product_block,
    scale_block, max_sums_block,
) = _BLOCKS  # fmt: skip
