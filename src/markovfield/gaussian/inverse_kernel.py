"""Entries of the inverse on the pattern of a sparse Cholesky factor: the Takahashi equations, supernode by supernode.

From the root of the tree to its leaves. With ``U11`` the pivots' triangle of a supernode, ``U12`` the rest of its panel
and ``G = U11^-1 U12``, the inverse S among its columns (1) and rows (2) is ``S12 = -G S22``, ``S11 = (U11' U11)^-1 +
G S22 G'`` (Takahashi, Fagan and Chen 1973; Erisman and Tinney 1975), where S22 is a part of the parent's.

Measured on one core of a Zen 5, 300 x 300 sites: 0.045 s with 5 neighbours, 0.18 with 13, twice the factorisation; a
quarter of it is collecting the parents' parts (S22), at the pace of memory.

Invariant: what is kept of a supernode, its front, is minus the inverse, so that every step is ``C -= A B``. Fronts
of the path to the root are a stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.gaussian.dense_kernel import PAD, solve_transposed, subtract_product
from markovfield.gaussian.factor_kernel import find_runs
from markovfield.kernels.compiler import kernel

__all__ = ["front_layout", "invert_supernodes"]


@kernel
def front_layout(starts: Any, row_offsets: Any, parents: Any) -> tuple[Any, int]:
    """Where fronts lie in a buffer of how many numbers."""
    m = parents.size
    front_at = np.zeros(m, np.int64)
    deepest = 0
    for s in range(m - 1, -1, -1):
        p = parents[s]
        if p >= 0:
            front_at[s] = front_at[p] + _order(starts, row_offsets, p) ** 2
        deepest = max(deepest, front_at[s] + _order(starts, row_offsets, s) ** 2)
    return front_at, deepest


@kernel
def _order(starts: Any, row_offsets: Any, s: int) -> int:
    """Columns and rows of a front, each padded to whole vectors."""
    k = starts[s + 1] - starts[s]
    r = row_offsets[s + 1] - row_offsets[s]
    return (k + PAD - 1) // PAD * PAD + (r + PAD - 1) // PAD * PAD


@kernel
def invert_supernodes(
    tree: tuple[Any, ...],
    parents: Any,
    front_at: Any,
    panels: Any,
    entry_offsets: Any,
    entries: Any,
    places: Any,
    fronts: Any,
    found: Any,
    begin: int,
    end: int,
) -> None:
    """Write the inverse at every listed entry of the matrix to ``found``, in supernodes from ``end`` down to
    ``begin``."""
    starts, row_offsets, relative, _, _, panel_at, _ = tree
    inverse = np.zeros(PAD)
    triangle = np.zeros(1024)
    left = np.zeros(1024)
    runs = np.zeros(1024, np.int64)
    for s in range(end - 1, begin - 1, -1):
        k = starts[s + 1] - starts[s]
        r = row_offsets[s + 1] - row_offsets[s]
        at = panel_at[s]
        width = (k + r + PAD - 1) // PAD * PAD
        kp = (k + PAD - 1) // PAD * PAD
        side = kp + (r + PAD - 1) // PAD * PAD
        own = front_at[s]
        if triangle.size < k * kp:
            triangle = np.zeros(2 * k * kp)
        if left.size < r * kp:
            left = np.zeros(2 * r * kp)
        # U11'^-1, and G' = U12' U11'^-1 with its sign turned.
        for x in range(k * kp):
            triangle[x] = 0.0
        for i in range(k):
            triangle[i * kp + i] = 1.0
        solve_transposed(panels, at, width, k, triangle, 0, kp, k, inverse, True)
        for i in range(k):
            for j in range(i + 1, kp):
                triangle[i * kp + j] = 0.0
        for x in range(own, own + kp * side):
            fronts[x] = 0.0
        if r:
            p = parents[s]
            above = (starts[p + 1] - starts[p] + PAD - 1) // PAD * PAD - (starts[p + 1] - starts[p])
            if runs.size <= r:
                runs = np.zeros(2 * r, np.int64)
            n_runs = find_runs(relative, row_offsets[s], row_offsets[s + 1], starts[p + 1] - starts[p], runs)
            _gather(
                relative, row_offsets[s], r, runs, n_runs, starts[p + 1] - starts[p], above, fronts, front_at[p],
                _order(starts, row_offsets, p), own + kp * side + kp, side,
            )  # fmt: skip
            for x in range(r * kp):
                left[x] = 0.0
            subtract_product(left, 0, kp, panels, at + k, 1, width, triangle, 0, kp, r, k, k, False)
            # left is -G', so this is N12 = -(-G') ' N22 with N = -S: the sign is turned below.
            subtract_product(fronts, own + kp, side, left, 0, 1, kp, fronts, own + kp * side + kp, side, k, r, r, False)
            for i in range(k):
                for j in range(kp, kp + r):
                    fronts[own + i * side + j] = -fronts[own + i * side + j]
            for x in range(r * kp):
                left[x] = -left[x]
        subtract_product(fronts, own, side, triangle, 0, 1, kp, triangle, 0, kp, k, k, k, True)
        if r:
            subtract_product(fronts, own, side, fronts, own + kp, side, 1, left, 0, kp, k, k, r, True)
        for e in range(entry_offsets[s], entry_offsets[s + 1]):
            i = places[e] // width
            j = places[e] - i * width
            if j >= k:
                j += kp - k
            found[entries[e]] = -fronts[own + i * side + j]
        _mirror(fronts, own, side, k, kp, r)


@kernel
def _gather(
    relative: Any, first: int, r: int, runs: Any, n_runs: int, k: int, gap: int, fronts: Any, source: int,
    source_side: int, to: int, to_side: int,
) -> None:  # fmt: skip
    """The rows of a supernode in its parent's front."""
    for i in range(r):
        a = relative[first + i]
        row = source + (a + gap if a >= k else a) * source_side
        out = to + i * to_side
        for x in range(n_runs):
            j = runs[x]
            b = relative[first + j]
            shift = row + (b + gap if b >= k else b)
            for z in range(runs[x + 1] - j):
                fronts[out + j + z] = fronts[shift + z]


@kernel
def _mirror(fronts: Any, own: int, side: int, k: int, kp: int, r: int) -> None:
    """What is left of the diagonal from what is right of it, block by block."""
    for block in range(0, side, PAD):
        for i in range(k):
            for j in range(max(block, i + 1), block + PAD):
                if j < k or kp <= j < kp + r:
                    fronts[own + j * side + i] = fronts[own + i * side + j]
