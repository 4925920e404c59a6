"""Products of small matrices, four terms in each pass over a row; no threads, and nothing to set up.

Matrices may be larger than the sizes that are given. Free to change: the order of addition.
"""

from __future__ import annotations

from markovfield.kernels.compiler import kernel

__all__ = ["add_dots", "add_product", "add_turned_product"]


@kernel
def add_product(out, left, right, rows, depth, width):
    """Add ``left[:rows, :depth] @ right[:depth, :width]``, four terms in each pass over a row of the result."""
    for r in range(rows):
        target, factors = out[r], left[r]
        k = 0
        while k + 4 <= depth:
            a, b, c, d = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
            row_a, row_b, row_c, row_d = right[k], right[k + 1], right[k + 2], right[k + 3]
            for m in range(width):
                target[m] += a * row_a[m] + b * row_b[m] + c * row_c[m] + d * row_d[m]
            k += 4
        while k < depth:
            a, row_a = factors[k], right[k]
            for m in range(width):
                target[m] += a * row_a[m]
            k += 1


@kernel
def add_turned_product(out, left, right, rows, depth, width):
    """Add ``left[:depth, :rows].T @ right[:depth, :width]``."""
    k = 0
    while k + 4 <= depth:
        row_a, row_b, row_c, row_d = right[k], right[k + 1], right[k + 2], right[k + 3]
        one, two, three, four = left[k], left[k + 1], left[k + 2], left[k + 3]
        for r in range(rows):
            target, a, b, c, d = out[r], one[r], two[r], three[r], four[r]
            for m in range(width):
                target[m] += a * row_a[m] + b * row_b[m] + c * row_c[m] + d * row_d[m]
        k += 4
    while k < depth:
        row_a, one = right[k], left[k]
        for r in range(rows):
            target, a = out[r], one[r]
            for m in range(width):
                target[m] += a * row_a[m]
        k += 1


@kernel
def add_dots(out, left, right, rows, columns, depth):
    """Add ``left[:rows, :depth] @ right[:columns, :depth].T``, four columns in each pass over a row."""
    for r in range(rows):
        row = left[r]
        k = 0
        while k + 4 <= columns:
            one, two, three, four = right[k], right[k + 1], right[k + 2], right[k + 3]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for m in range(depth):
                value = row[m]
                a += value * one[m]
                b += value * two[m]
                c += value * three[m]
                d += value * four[m]
            out[r, k] += a
            out[r, k + 1] += b
            out[r, k + 2] += c
            out[r, k + 3] += d
            k += 4
        while k < columns:
            one, a = right[k], 0.0
            for m in range(depth):
                a += row[m] * one[m]
            out[r, k] += a
            k += 1
