"""Operations on the whole rows of labels of a linear chain, block by block (see `kernels.simd`).

Three blocks share each factor that is spread over them: a chain waits at every token for the message of the one before,
so that what is saved there is saved from end to end. Arrays that `aligned` made start where a cache line does; blocks
that straddle two lines take twice as long.

Invariant: rows are multiples of `BLOCK` long, and each sum is added up in a fixed order. Free to change: how many
blocks go together (`TOGETHER`).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from markovfield.kernels.simd import _FAST, BLOCK, _load, _scalar, _spread, _store, _total

__all__ = ["aligned", "dots_row", "scale_row", "shift_row", "times_dots_row", "top_of_row"]

TOGETHER = 3
LINE = 64  # bytes of a cache line


def aligned(source: npt.NDArray[np.float64] | int) -> npt.NDArray[np.float64]:
    """So many zeros, or a flat copy of an array, starting at a border of cache lines."""
    n = source if isinstance(source, int) else source.size
    room = np.zeros(n + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    made = room[first : first + n]
    if not isinstance(source, int):
        made[:] = source.ravel()
    return made


def _sums(context: Any, builder: Any, signature: Any, args: Any, k: Any, blocks: int) -> list[Any]:
    """The sums over i < n of vector[v + i] * matrix[m + k + i * width:], for some blocks from k on side by side."""
    t_vector, t_matrix = signature.args[4], signature.args[6]
    vector, v, matrix, m, width, n = args[4:]
    lanes = 2 if blocks > 1 else 4
    nothing = ir.Constant(ir.VectorType(context.get_value_type(t_matrix.dtype), BLOCK), [0.0] * BLOCK)
    totals = [[cgutils.alloca_once_value(builder, nothing) for _ in range(blocks)] for _ in range(lanes)]
    start = builder.add(m, k)

    def add(i: Any, lane: int) -> None:
        scale = _spread(builder, _scalar(context, builder, t_vector, vector, builder.add(v, i)))
        row = builder.add(start, builder.mul(i, width))
        for b, total in enumerate(totals[lane]):
            block = _load(context, builder, t_matrix, matrix, builder.add(row, ir.Constant(n.type, b * BLOCK)))
            term = builder.fmul(block, scale, flags=_FAST)
            builder.store(builder.fadd(builder.load(total), term, flags=_FAST), total)

    step = ir.Constant(n.type, lanes)
    whole = builder.sub(n, builder.srem(n, step))
    with cgutils.for_range_slice(builder, ir.Constant(n.type, 0), whole, step) as (i, _):
        for lane in range(lanes):
            add(builder.add(i, ir.Constant(n.type, lane)), lane)
    with cgutils.for_range_slice(builder, whole, n, ir.Constant(n.type, 1)) as (i, _):
        add(i, 0)
    sums = []
    for b in range(blocks):
        block = builder.load(totals[0][b])
        for lane in range(1, lanes):
            block = builder.fadd(block, builder.load(totals[lane][b]), flags=_FAST)
        sums.append(block)
    return sums


def _row_of_dots(context: Any, builder: Any, signature: Any, args: Any, times: bool) -> Any:
    """Write a row of sums, times the factors where ``times``; the total of their products with the factors."""
    t_out, t_factor = signature.args[0], signature.args[2]
    out, o, factor, f, width = args[0], args[1], args[2], args[3], args[8]
    nothing = ir.Constant(ir.VectorType(context.get_value_type(t_out.dtype), BLOCK), [0.0] * BLOCK)
    mass = cgutils.alloca_once_value(builder, nothing)

    def write(k: Any, blocks: int) -> None:
        for b, block in enumerate(_sums(context, builder, signature, args, k, blocks)):
            at = builder.add(k, ir.Constant(k.type, b * BLOCK))
            product = builder.fmul(block, _load(context, builder, t_factor, factor, builder.add(f, at)), flags=_FAST)
            _store(context, builder, t_out, out, builder.add(o, at), product if times else block)
            builder.store(builder.fadd(builder.load(mass), product, flags=_FAST), mass)

    step = ir.Constant(width.type, TOGETHER * BLOCK)
    whole = builder.sub(width, builder.srem(width, step))
    with cgutils.for_range_slice(builder, ir.Constant(width.type, 0), whole, step) as (k, _):
        write(k, TOGETHER)
    with cgutils.for_range_slice(builder, whole, width, ir.Constant(width.type, BLOCK)) as (k, _):
        write(k, 1)
    return _total(builder, builder.load(mass))


def _flagged(builder: Any, flags: Any, one: Any, other: Any) -> None:
    """Note where two conditions hold together, a bit for each lane."""
    both = builder.bitcast(builder.and_(one, other), ir.IntType(BLOCK))
    builder.store(builder.or_(builder.load(flags), both), flags)


def _compiled() -> tuple[Any, ...]:
    i8 = types.int64

    @intrinsic  # type: ignore[untyped-decorator]
    def times_dots_row(
        typing_context: Any, out: Any, o: Any, factor: Any, f: Any, vector: Any, v: Any, matrix: Any, m: Any,
        width: Any, n: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _row_of_dots(context, builder, signature, args, True)

        return out.dtype(out, i8, factor, i8, vector, i8, matrix, i8, i8, i8), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def dots_row(
        typing_context: Any, out: Any, o: Any, factor: Any, f: Any, vector: Any, v: Any, matrix: Any, m: Any,
        width: Any, n: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _row_of_dots(context, builder, signature, args, False)

        return out.dtype(out, i8, factor, i8, vector, i8, matrix, i8, i8, i8), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def scale_row(typing_context: Any, out: Any, o: Any, width: Any, scale: Any, factor: Any, f: Any, low: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, t_factor = signature.args[0], signature.args[4]
            flags = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(BLOCK), 0))
            zero, step = ir.Constant(args[2].type, 0), ir.Constant(args[2].type, BLOCK)
            scale, low = _spread(builder, args[3]), _spread(builder, args[6])
            with cgutils.for_range_slice(builder, zero, args[2], step) as (k, _):
                at = builder.add(args[1], k)
                block = builder.fmul(_load(context, builder, t_out, args[0], at), scale, flags=_FAST)
                _store(context, builder, t_out, args[0], at, block)
                factor = _load(context, builder, t_factor, args[4], builder.add(args[5], k))
                possible = builder.fcmp_ordered(">", factor, ir.Constant(factor.type, [0.0] * BLOCK))
                _flagged(builder, flags, builder.fcmp_ordered("<", block, low), possible)
            return builder.icmp_unsigned("!=", builder.load(flags), ir.Constant(ir.IntType(BLOCK), 0))

        return types.boolean(out, i8, i8, out.dtype, factor, i8, out.dtype), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def top_of_row(typing_context: Any, values: Any, o: Any, width: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.VectorType(context.get_value_type(signature.args[0].dtype), BLOCK)
            top = cgutils.alloca_once_value(builder, ir.Constant(kind, [-np.inf] * BLOCK))
            zero, step = ir.Constant(args[2].type, 0), ir.Constant(args[2].type, BLOCK)
            with cgutils.for_range_slice(builder, zero, args[2], step) as (k, _):
                block = _load(context, builder, signature.args[0], args[0], builder.add(args[1], k))
                best = builder.load(top)
                builder.store(builder.select(builder.fcmp_ordered(">", block, best), block, best), top)
            block, size = builder.load(top), BLOCK
            while size > 1:
                size //= 2
                half = ir.VectorType(ir.IntType(32), size)
                low = builder.shuffle_vector(block, block, ir.Constant(half, list(range(size))))
                high = builder.shuffle_vector(block, block, ir.Constant(half, list(range(size, 2 * size))))
                block = builder.select(builder.fcmp_ordered(">", high, low), high, low)
            return builder.extract_element(block, ir.Constant(ir.IntType(32), 0))

        return values.dtype(values, i8, i8), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def shift_row(typing_context: Any, values: Any, o: Any, width: Any, shift: Any, low: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_values = signature.args[0]
            flags = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(BLOCK), 0))
            zero, step = ir.Constant(args[2].type, 0), ir.Constant(args[2].type, BLOCK)
            shift, low = _spread(builder, args[3]), _spread(builder, args[4])
            with cgutils.for_range_slice(builder, zero, args[2], step) as (k, _):
                at = builder.add(args[1], k)
                block = builder.fsub(_load(context, builder, t_values, args[0], at), shift)
                _store(context, builder, t_values, args[0], at, block)
                possible = builder.fcmp_ordered(">", block, ir.Constant(block.type, [-np.inf] * BLOCK))
                _flagged(builder, flags, builder.fcmp_ordered("<", block, low), possible)
            return builder.icmp_unsigned("!=", builder.load(flags), ir.Constant(ir.IntType(BLOCK), 0))

        return types.boolean(values, i8, i8, values.dtype, values.dtype), codegen

    return times_dots_row, dots_row, scale_row, top_of_row, shift_row


def _interpreted() -> tuple[Any, ...]:
    """The same in plain Python, when the JIT is off; what the compiled ones mean."""

    def sums(vector: Any, v: int, matrix: Any, m: int, width: int, n: int) -> Any:
        return vector[v : v + n] @ matrix[m + width * np.arange(n)[:, None] + np.arange(width)]

    def times_dots_row(
        out: Any, o: int, factor: Any, f: int, vector: Any, v: int, matrix: Any, m: int, width: int, n: int
    ) -> float:
        out[o : o + width] = factor[f : f + width] * sums(vector, v, matrix, m, width, n)
        return float(out[o : o + width].sum())

    def dots_row(
        out: Any, o: int, factor: Any, f: int, vector: Any, v: int, matrix: Any, m: int, width: int, n: int
    ) -> float:
        out[o : o + width] = sums(vector, v, matrix, m, width, n)
        return float(out[o : o + width] @ factor[f : f + width])

    def scale_row(out: Any, o: int, width: int, scale: float, factor: Any, f: int, low: float) -> bool:
        out[o : o + width] *= scale
        return bool(((out[o : o + width] < low) & (factor[f : f + width] > 0.0)).any())

    def top_of_row(values: Any, o: int, width: int) -> float:
        return float(values[o : o + width].max())

    def shift_row(values: Any, o: int, width: int, shift: float, low: float) -> bool:
        values[o : o + width] -= shift
        return bool(((values[o : o + width] < low) & (values[o : o + width] > -np.inf)).any())

    return times_dots_row, dots_row, scale_row, top_of_row, shift_row


# times_dots_row(out, o, factor, f, vector, v, matrix, m, width, n): out[o:o+width] becomes factor[f:f+width] times the
#     sum over i < n of vector[v + i] * matrix[m + i * width:][:width]; the sum of these.
# dots_row(the same): out[o:o+width] becomes the sum over i alone; the sum of its products with factor[f:f+width].
# scale_row(out, o, width, scale, factor, f, low): out[o:o+width] *= scale; whether one is then below ``low`` whose
#     factor[f:f+width] is positive.
# top_of_row(values, o, width): the largest of values[o:o+width].
# shift_row(values, o, width, shift, low): values[o:o+width] -= shift; whether one is then below ``low``, yet not -inf.
_DISABLED: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
times_dots_row, dots_row, scale_row, top_of_row, shift_row = _interpreted() if _DISABLED else _compiled()
