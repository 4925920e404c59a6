"""Planar embeddings as rotations of darts: the order of the edges around every vertex."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["planar_rotation"]

IntArray = npt.NDArray[np.int64]


def _as_lattice(first: IntArray, second: IntArray, width: int) -> IntArray | None:
    """The rotation of a part of a lattice whose rows have ``width`` vertices; diagonals one way only."""
    step = second - first
    column = first % width
    right, down, back, ahead = step == 1, step == width, step == width - 1, step == width + 1
    fits = (right | ahead) & (column < width - 1) | down | back & (column > 0)
    if not fits.all() or (back.any() and ahead.any()):
        return None
    # Counterclockwise: right, then up, left and down, with the diagonals between.
    direction = np.select([right, back, down, ahead], [0, 5, 6, 7])
    tails = np.stack([first, second], axis=1).reshape(-1)
    turns = np.stack([direction, (direction + 4) % 8], axis=1).reshape(-1)
    order = np.lexsort([turns, tails])
    following = np.empty(len(tails), np.int64)
    following[order[:-1]] = order[1:]
    last = np.flatnonzero(np.diff(tails[order], append=-1) != 0)
    following[order[last]] = order[np.concatenate([[0], last[:-1] + 1])]
    return following


def _lattice_rotation(first: IntArray, second: IntArray) -> IntArray | None:
    """The rotation of a lattice whose vertices are numbered row by row, None for anything else."""
    steps = np.unique(second - first)
    steps = steps[steps > 1]
    for width in steps[:2].tolist() if len(steps) else [int(second.max(initial=0)) + 2]:
        found = _as_lattice(first, second, width) if width > 2 else None
        if found is not None:
            return found
    return None


def planar_rotation(first: IntArray, second: IntArray) -> IntArray | None:
    """Draw a graph in the plane without crossings; None where that cannot be done.

    Parameters
    ----------
    first, second
        ``int64[m]``: the ends of each edge, ``first < second``, no edge twice.

    Returns
    -------
    ndarray or None
        ``int64[2 m]``: dart 2e leaves the first end of edge e, dart 2e + 1 the second; for each dart, the next one
        around the same vertex, counterclockwise. Time is linear: square and triangular lattices numbered row by row
        are recognised, for others it is the left-right test of networkx.

    Examples
    --------
    >>> import numpy as np
    >>> planar_rotation(np.array([0, 1, 0]), np.array([1, 2, 2])).tolist()
    [4, 2, 1, 5, 0, 3]
    """
    m = len(first)
    n = len(np.unique(np.concatenate([first, second])))
    if n > 2 and m > 3 * n - 6:
        return None
    if m:
        lattice = _lattice_rotation(first, second)
        if lattice is not None:
            return lattice
    from networkx import Graph, check_planarity

    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    planar, embedding = check_planarity(Graph(pairs))
    if not planar:
        return None
    dart = {}
    for e, (u, v) in enumerate(pairs):
        dart[u, v] = 2 * e
        dart[v, u] = 2 * e + 1
    following = np.empty(2 * m, np.int64)
    for (u, v), d in dart.items():
        following[d] = dart[u, embedding[u][v]["ccw"]]
    return following
