"""Products of small dense blocks kept in registers: what dense linear algebra in kernels is made of.

A tile is `ROWS` rows of `COLUMNS` numbers, as many as the processor's vector registers hold beside a row and a factor.
Numba's loop vectoriser neither keeps such a block of sums in registers nor unrolls two loops at once, so the tile is
spelt out in LLVM. Arrays are flat float64, with a place and a stride for each operand; bounds are not checked.

With AVX-512 a tile is 8 by 24, elsewhere 4 by 12. What they reach is said in `markovfield.gaussian.dense_kernel`.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from markovfield.kernels.interpreter import either

__all__ = [
    "COLUMNS",
    "LANES",
    "ROWS",
    "solve_rows",
    "subtract_dots",
    "subtract_narrow",
    "subtract_tile",
    "subtract_wide",
]

_WIDE: bool = bool(llvm.get_host_cpu_features().get("avx512f", False))
LANES = 8 if _WIDE else 4
ROWS = 8 if _WIDE else 4
BLOCKS = 3
COLUMNS = BLOCKS * LANES
_FAST = ("reassoc", "contract", "nsz")


def _tile(blocks: int) -> Any:
    """The intrinsic for ``blocks`` vectors a row."""

    @intrinsic  # type: ignore[untyped-decorator]
    def subtract(
        typing_context: Any,
        out: Any,
        o: Any,
        o_row: Any,
        left: Any,
        a: Any,
        a_row: Any,
        a_step: Any,
        right: Any,
        b: Any,
        b_step: Any,
        rows: Any,
        steps: Any,
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            (t_out, _, _, t_left, _, _, _, t_right, *_) = signature.args
            out, o, o_row, left, a, a_row, a_step, right, b, b_step, rows, steps = args
            i64 = steps.type
            vector = ir.VectorType(ir.DoubleType(), LANES)
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            undefined = ir.Constant(vector, ir.Undefined)
            out, left, right = (
                context.make_array(t)(context, builder, x).data
                for t, x in ((t_out, out), (t_left, left), (t_right, right))
            )

            def whole(k: int) -> Any:
                return ir.Constant(i64, k)

            def place(data: Any, index: Any) -> Any:
                return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())

            sums = [
                [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * LANES)) for _ in range(blocks)]
                for _ in range(ROWS)
            ]
            # Rows that are not there repeat the last one, and are not stored.
            last = builder.sub(rows, whole(1))
            starts = []
            for i in range(ROWS):
                row = builder.select(builder.icmp_signed("<", whole(i), last), whole(i), last)
                starts.append(builder.add(a, builder.mul(row, a_row)))
            with cgutils.for_range(builder, steps) as loop:
                at = builder.add(b, builder.mul(loop.index, b_step))
                rights = [builder.load(place(right, builder.add(at, whole(LANES * j))), align=8) for j in range(blocks)]
                shift = builder.mul(loop.index, a_step)
                for i in range(ROWS):
                    scalar = builder.load(builder.gep(left, [builder.add(starts[i], shift)]))
                    one = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
                    spread = builder.shuffle_vector(one, undefined, lanes)
                    for j in range(blocks):
                        term = builder.fmul(spread, rights[j], flags=_FAST)
                        builder.store(builder.fadd(builder.load(sums[i][j]), term, flags=_FAST), sums[i][j])
            for i in range(ROWS):
                with builder.if_then(builder.icmp_signed("<", whole(i), rows)):
                    at = builder.add(o, builder.mul(o_row, whole(i)))
                    for j in range(blocks):
                        target = place(out, builder.add(at, whole(LANES * j)))
                        left_over = builder.fsub(builder.load(target, align=8), builder.load(sums[i][j]), flags=_FAST)
                        builder.store(left_over, target, align=8)
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, i8, left, i8, i8, i8, right, i8, i8, i8, i8), codegen

    return subtract


def _triangle() -> Any:
    """The intrinsic that solves with a small triangle, a vector of columns at a time."""

    @intrinsic  # type: ignore[untyped-decorator]
    def solve(
        typing_context: Any,
        factor: Any,
        a: Any,
        a_row: Any,
        out: Any,
        o: Any,
        o_row: Any,
        inverse: Any,
        rows: Any,
        columns: Any,
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_factor, _, _, t_out, _, _, t_inverse, *_ = signature.args
            factor, a, a_row, out, o, o_row, inverse, rows, columns = args
            i64 = rows.type
            vector = ir.VectorType(ir.DoubleType(), LANES)
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            undefined = ir.Constant(vector, ir.Undefined)
            factor, out, inverse = (
                context.make_array(t)(context, builder, x).data
                for t, x in ((t_factor, factor), (t_out, out), (t_inverse, inverse))
            )

            def whole(k: int) -> Any:
                return ir.Constant(i64, k)

            def spread(data: Any, index: Any) -> Any:
                one = builder.insert_element(
                    undefined, builder.load(builder.gep(data, [index])), ir.Constant(ir.IntType(32), 0)
                )
                return builder.shuffle_vector(one, undefined, lanes)

            # Rows that are not there repeat the last one, and are not stored.
            last = builder.sub(rows, whole(1))
            kept = [builder.select(builder.icmp_signed("<", whole(i), last), whole(i), last) for i in range(ROWS)]
            with cgutils.for_range_slice(builder, whole(0), columns, whole(LANES)) as (at, _):
                found: list[Any] = []
                places = []
                for i in range(ROWS):
                    index = builder.add(builder.add(o, builder.mul(kept[i], o_row)), at)
                    place = builder.bitcast(builder.gep(out, [index]), vector.as_pointer())
                    value = builder.load(place, align=8)
                    for t in range(i):
                        corner = builder.add(builder.add(a, builder.mul(kept[t], a_row)), kept[i])
                        term = builder.fmul(spread(factor, corner), found[t], flags=_FAST)
                        value = builder.fsub(value, term, flags=_FAST)
                    found.append(builder.fmul(value, spread(inverse, whole(i)), flags=_FAST))
                    places.append(place)
                for i in range(ROWS):
                    with builder.if_then(builder.icmp_signed("<", whole(i), rows)):
                        builder.store(found[i], places[i], align=8)
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(factor, i8, i8, out, i8, i8, inverse, i8, i8), codegen

    return solve


def _interpreted_triangle() -> Any:
    """The same in plain Python."""

    def solve(
        factor: Any, a: int, a_row: int, out: Any, o: int, o_row: int, inverse: Any, rows: int, columns: int
    ) -> None:
        wide = -(-columns // LANES) * LANES
        for i in range(rows):
            row = slice(o + i * o_row, o + i * o_row + wide)
            for t in range(i):
                start = o + t * o_row
                out[row] -= factor[a + t * a_row + i] * out[start : start + wide]
            out[row] *= inverse[i]

    return solve


def _dots() -> Any:
    """The intrinsic that multiplies a few rows with one vector."""

    @intrinsic  # type: ignore[untyped-decorator]
    def subtract(
        typing_context: Any,
        out: Any,
        o: Any,
        left: Any,
        a: Any,
        a_row: Any,
        right: Any,
        b: Any,
        rows: Any,
        columns: Any,
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            t_out, _, t_left, _, _, t_right, *_ = signature.args
            out, o, left, a, a_row, right, b, rows, columns = args
            i64 = rows.type
            vector = ir.VectorType(ir.DoubleType(), LANES)
            out, left, right = (
                context.make_array(t)(context, builder, x).data
                for t, x in ((t_out, out), (t_left, left), (t_right, right))
            )

            def whole(k: int) -> Any:
                return ir.Constant(i64, k)

            def block(data: Any, index: Any) -> Any:
                return builder.load(builder.bitcast(builder.gep(data, [index]), vector.as_pointer()), align=8)

            last = builder.sub(rows, whole(1))
            starts = []
            for i in range(ROWS):
                row = builder.select(builder.icmp_signed("<", whole(i), last), whole(i), last)
                starts.append(builder.add(a, builder.mul(row, a_row)))
            sums = [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * LANES)) for _ in range(ROWS)]
            with cgutils.for_range_slice(builder, whole(0), columns, whole(LANES)) as (at, _):
                shared = block(right, builder.add(b, at))
                for i in range(ROWS):
                    term = builder.fmul(block(left, builder.add(starts[i], at)), shared, flags=_FAST)
                    builder.store(builder.fadd(builder.load(sums[i]), term, flags=_FAST), sums[i])
            for i in range(ROWS):
                with builder.if_then(builder.icmp_signed("<", whole(i), rows)):
                    place = builder.gep(out, [builder.add(o, whole(i))])
                    rest = builder.fsub(builder.load(place), _total(builder, builder.load(sums[i])), flags=_FAST)
                    builder.store(rest, place)
            return context.get_dummy_value()

        i8 = types.int64
        return types.void(out, i8, left, i8, i8, right, i8, i8, i8), codegen

    return subtract


def _total(builder: Any, block: Any) -> Any:
    """The sum of a vector, halved again and again."""
    size = LANES
    while size > 1:
        size //= 2
        half = ir.VectorType(ir.IntType(32), size)
        low = builder.shuffle_vector(block, block, ir.Constant(half, list(range(size))))
        high = builder.shuffle_vector(block, block, ir.Constant(half, list(range(size, 2 * size))))
        block = builder.fadd(low, high, flags=_FAST)
    return builder.extract_element(block, ir.Constant(ir.IntType(32), 0))


def _interpreted_dots() -> Any:
    """The same in plain Python."""

    def subtract(out: Any, o: int, left: Any, a: int, a_row: int, right: Any, b: int, rows: int, columns: int) -> None:
        wide = -(-columns // LANES) * LANES
        for i in range(rows):
            out[o + i] -= left[a + i * a_row : a + i * a_row + wide] @ right[b : b + wide]

    return subtract


def _interpreted(blocks: int) -> Any:
    """The same in plain Python, when the JIT is off; what the compiled one means."""

    def subtract(
        out: Any,
        o: int,
        o_row: int,
        left: Any,
        a: int,
        a_row: int,
        a_step: int,
        right: Any,
        b: int,
        b_step: int,
        rows: int,
        steps: int,
    ) -> None:
        for i in range(rows):
            at = slice(o + i * o_row, o + i * o_row + blocks * LANES)
            for k in range(steps):
                start = b + k * b_step
                out[at] -= left[a + i * a_row + k * a_step] * right[start : start + blocks * LANES]

    return subtract


# subtract_*(out, o, o_row, left, a, a_row, a_step, right, b, b_step, rows, steps): for i < rows <= ROWS and all j of 3,
# 2 or 1 vectors, out[o + i * o_row + j] -= sum over k < steps of left[a + i * a_row + k * a_step] *
# right[b + k * b_step + j].
subtract_wide = either(_interpreted(3), lambda: _tile(3))
subtract_tile = either(_interpreted(2), lambda: _tile(2))
subtract_narrow = either(_interpreted(1), lambda: _tile(1))
# solve_rows(factor, a, a_row, out, o, o_row, inverse, rows, columns): the rows of out, at most ROWS, become what solves
# U' X = out for the upper triangle U at factor[a], whose diagonal has the reciprocals `inverse`; in whole vectors.
solve_rows = either(_interpreted_triangle(), _triangle)
# subtract_dots(out, o, left, a, a_row, right, b, rows, columns): for i < rows <= ROWS, out[o + i] -= the sum over j of
# left[a + i * a_row + j] * right[b + j], in whole vectors.
subtract_dots = either(_interpreted_dots(), _dots)
