"""Boxes pushed apart until none lies on another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["apart"]

GAP, MARGIN = 12.0, 10.0
MOST_ROUNDS, BREATHE = 1000, 25
# How much of what is missing a round makes good, and by how much all is blown up where that does not end.
SHARE, GROWTH = 0.9, 1.06

Pairs = Sequence[tuple[float, float]]


def apart(centres: Pairs, sizes: Pairs) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Centres of boxes that keep a gap, and width and height of the whole.

    Overlapping boxes are pushed along the axis where less is missing, all pairs of a round at once; O(n log n) a round.

    Examples
    --------
    >>> placed, whole = apart([(50.0, 30.0), (52.0, 30.0)], [(40.0, 20.0), (40.0, 20.0)])
    >>> placed[1][1] - placed[0][1] > 20
    True
    """
    from scipy.spatial import cKDTree

    at, size = np.array(centres, np.float64).reshape(-1, 2), np.array(sizes, np.float64).reshape(-1, 2)
    if not len(at):
        return [], (2 * MARGIN, 2 * MARGIN)
    room = size + GAP
    largest = room.max(axis=0)
    for k in range(1, MOST_ROUNDS + 1):
        near = cKDTree(at / largest).query_pairs(1.0, p=np.inf, output_type="ndarray")
        a, b = near[:, 0], near[:, 1]
        off = at[b] - at[a]
        missing = (room[a] + room[b]) / 2 - np.abs(off)
        hit = (missing > 0.5).all(axis=1)
        if not hit.any():
            break
        a, b, off, missing = a[hit], b[hit], off[hit], missing[hit]
        axis = missing.argmin(axis=1)
        every = np.arange(len(axis))
        # Of two in one place the later one goes right, or down.
        push = SHARE / 2 * missing[every, axis] * np.where(off[every, axis] < 0, -1.0, 1.0)
        np.add.at(at, (b, axis), push)
        np.subtract.at(at, (a, axis), push)
        if k % BREATHE == 0:
            at *= GROWTH
    low = (at - size / 2).min(axis=0) - MARGIN
    width, height = ((at + size / 2).max(axis=0) + MARGIN - low).tolist()
    return [(x, y) for x, y in (at - low).tolist()], (width, height)
