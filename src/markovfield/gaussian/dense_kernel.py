"""Dense blocks of a sparse factorisation: products, triangular solves and Cholesky factors, row by row.

A factor is kept as ``U`` with ``A = U' U``, in rows: so every product is of the form ``C -= A B`` whose ``B`` and ``C``
have contiguous rows, and ``A`` is read number by number, transposed or not, without a copy.

Measured on one core of a Zen 5 with AVX-512, blocks in the second-level cache: products run at 115 to 130 Gflop/s
(OpenBLAS's dgemm in the same minute: 50 to 62), panels of 64 and 200 pivots at 70 and 110, products of 24 x 24 by 8
steps at 18. Blocks are not packed: products far beyond the cache were seen at 45 and, on a busy machine, at 20.

Invariant: rows are padded to a multiple of `PAD` numbers; what is computed in the padding is never read. Products are
cut into pieces of ``B`` that stay in the second-level cache. Free to change: `STEPS`, `WIDTH`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.tiles import COLUMNS, LANES, ROWS, solve_rows, subtract_narrow, subtract_tile, subtract_wide

__all__ = ["PAD", "factor_panel", "solve_transposed", "subtract_product"]

PAD = 8
STEPS = 192
WIDTH = 10 * 24


@kernel
def subtract_product(
    out: Any,
    c: int,
    c_row: int,
    left: Any,
    a: int,
    a_row: int,
    a_step: int,
    right: Any,
    b: int,
    b_step: int,
    rows: int,
    columns: int,
    steps: int,
    upper: bool,
) -> None:
    """``C -= A B``, of ``rows`` times ``columns`` numbers; of an ``upper`` one only what is right of the diagonal.

    Row i of A starts at ``left[a + i * a_row]`` and goes on by ``a_step``; rows of B and C are contiguous. Columns are
    computed in whole vectors.
    """
    for first in range(0, steps, STEPS):
        n_steps = min(STEPS, steps - first)
        for chunk in range(0, columns, WIDTH):
            end = min(chunk + WIDTH, columns)
            for i in range(0, rows, ROWS):
                j = chunk
                if upper:
                    if i >= end:
                        break
                    j = max(j, i)
                height = min(ROWS, rows - i)
                at_a = a + i * a_row + first * a_step
                at_b = b + first * b_step
                at_c = c + i * c_row
                while j < end:
                    if end - j > 2 * LANES:
                        subtract_wide(
                            out, at_c + j, c_row, left, at_a, a_row, a_step, right, at_b + j, b_step, height, n_steps
                        )
                    elif end - j > LANES:
                        subtract_tile(
                            out, at_c + j, c_row, left, at_a, a_row, a_step, right, at_b + j, b_step, height, n_steps
                        )
                    else:
                        subtract_narrow(
                            out, at_c + j, c_row, left, at_a, a_row, a_step, right, at_b + j, b_step, height, n_steps
                        )
                    j += COLUMNS


@kernel
def factor_panel(panel: Any, at: int, width: int, k: int, m: int, smallest: Any, inverse: Any) -> int:
    """Factor the first ``k`` rows of a symmetric matrix of order ``m``, given by its upper part, in place.

    Row i starts at ``panel[at + i * width]``. Returns the first row whose pivot is not above ``smallest`` of it, where
    it stops with that pivot in place, or -1. ``inverse`` is scratch of ROWS numbers.
    """
    for start in range(0, k, BAND):
        stop = min(start + BAND, k)
        if start:
            subtract_product(
                panel, at + start * width + start, width, panel, at + start, 1, width, panel, at + start, width,
                stop - start, m - start, start, True,
            )  # fmt: skip
        for i in range(start, stop, ROWS):
            height = min(ROWS, stop - i)
            # Scalars up to a whole vector, so that the solve below starts with one.
            wide = min(ROWS, m - i)
            if i > start:
                top = at + start * width + i
                subtract_product(
                    panel, at + i * width + i, width, panel, top, 1, width, panel, top, width,
                    height, m - i, i - start, False,
                )  # fmt: skip
            corner = at + i * width + i
            for r in range(height):
                row = corner + r * width
                pivot = panel[row + r]
                for t in range(r):
                    above = panel[corner + t * width + r]
                    pivot -= above * above
                if not pivot > smallest[i + r]:
                    panel[row + r] = pivot
                    return i + r
                root = np.sqrt(pivot)
                panel[row + r] = root
                inverse[r] = 1.0 / root
                for s in range(r + 1, wide):
                    entry = panel[row + s]
                    for t in range(r):
                        entry -= panel[corner + t * width + r] * panel[corner + t * width + s]
                    panel[row + s] = entry * inverse[r]
            if m - i > ROWS:
                solve_rows(panel, corner, width, panel, corner + ROWS, width, inverse, height, m - i - ROWS)
    return -1


BAND = 64


@kernel
def solve_transposed(
    panel: Any, at: int, width: int, k: int, out: Any, c: int, c_row: int, columns: int, inverse: Any, triangle: bool
) -> None:
    """``C`` becomes ``U'^-1 C`` for the ``k`` by ``k`` factor at ``panel[at]``.

    In a ``triangle`` C is lower triangular (k columns), as the result then is; nothing above it is touched but inside
    the blocks on the diagonal.
    """
    for i in range(0, k, ROWS):
        height = min(ROWS, k - i)
        wide = min(i + ROWS, columns) if triangle else columns
        if i:
            subtract_product(out, c + i * c_row, c_row, panel, at + i, 1, width, out, c, c_row, height, wide, i, False)
        corner = at + i * width + i
        for r in range(height):
            inverse[r] = 1.0 / panel[corner + r * width + r]
        solve_rows(panel, corner, width, out, c + i * c_row, c_row, inverse, height, wide)
