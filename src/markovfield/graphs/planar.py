"""Embeddings in the plane and the torus as rotations of darts: the order of the edges around every vertex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markovfield.arrays import IntArray

__all__ = ["TorusDrawing", "planar_rotation", "torus_drawing"]


@dataclass(frozen=True, eq=False)
class TorusDrawing:
    """A lattice that is periodic both ways, drawn on a torus.

    Attributes
    ----------
    first, second
        ``int64[2 n]``: the edges that were given, then those of the lattice that were missing.
    around
        ``int64[4 n]``: as `planar_rotation` has it.
    loops
        The edges of two closed ways around the torus, one along a row and one along a column.
    """

    first: IntArray
    second: IntArray
    around: IntArray
    loops: tuple[IntArray, IntArray]


def _rotation(first: IntArray, second: IntArray, direction: IntArray) -> IntArray:
    """The rotation of straight edges; ``direction`` is how many eighths of a turn the first end sees its edge at."""
    tails = np.stack([first, second], axis=1).reshape(-1)
    turns = np.stack([direction, (direction + 4) % 8], axis=1).reshape(-1)
    order = np.lexsort([turns, tails])
    following = np.empty(len(tails), np.int64)
    following[order[:-1]] = order[1:]
    last = np.flatnonzero(np.diff(tails[order], append=-1) != 0)
    following[order[last]] = order[np.concatenate([[0], last[:-1] + 1])]
    return following


def _as_lattice(first: IntArray, second: IntArray, width: int) -> IntArray | None:
    """The rotation of a part of a lattice or cylinder whose rows have ``width`` vertices; diagonals one way only."""
    step = second - first
    column = first % width
    n = width * (int(second.max()) // width + 1)
    right, down, ahead = step == 1, step == width, step == width + 1
    back, row = (step == width - 1) & (column > 0), (step == width - 1) & (column == 0)
    along = (step == n - width) & (first < width) & ~down
    fits = (right | ahead) & (column < width - 1) | down | back | row | along
    if not fits.all() or (back.any() and ahead.any()) or (row.any() and along.any()):
        return None
    # Counterclockwise: right, then up, left and down, with the diagonals between. A row is closed from its first
    # vertex to the left, a column from its first upwards.
    direction = np.select([right, along, row, back, down, ahead], [0, 2, 4, 5, 6, 7])
    return _rotation(first, second, direction)


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
        are recognised, also where they are periodic one way; for others it is the left-right test of networkx.

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


def _as_torus(n: int, first: IntArray, second: IntArray, width: int) -> TorusDrawing | None:
    """The drawing of (a part of) a torus whose rows have ``width`` vertices."""
    at = np.arange(n).reshape(-1, width)
    ends = [
        np.stack([a.ravel(), b.ravel()])
        for a, b in ((at[:, :-1], at[:, 1:]), (at[:, :1], at[:, -1:]), (at[:-1], at[1:]), (at[:1], at[-1:]))
    ]
    low, high = np.concatenate(ends, axis=1)
    # Right, left around the back, down, and up around the back.
    direction = np.repeat([0, 4, 6, 2], [e.shape[1] for e in ends])
    order = np.argsort(low * n + high)
    keys = (low * n + high)[order]
    given = np.minimum(np.searchsorted(keys, first * n + second), len(keys) - 1)
    if not (keys[given] == first * n + second).all():
        return None
    missing = np.ones(len(keys), np.bool_)
    missing[given] = False
    order = order[np.concatenate([given, np.flatnonzero(missing)])]
    low, high, direction = low[order], high[order], direction[order]
    across = direction % 4 == 0
    loops = np.flatnonzero(across & (low < width)), np.flatnonzero(~across & (low % width == 0))
    return TorusDrawing(low, high, _rotation(low, high, direction), loops)


def torus_drawing(n: int, first: IntArray, second: IntArray) -> TorusDrawing | None:
    """Draw a square lattice that is periodic both ways, or one with some edges missing, on a torus.

    Parameters
    ----------
    n
        How many vertices there are, numbered row by row, at least three to a row and three rows.
    first, second
        ``int64[m]``: the ends of each edge, ``first < second``, no edge twice.

    Returns
    -------
    TorusDrawing or None
        None for any other graph.

    Examples
    --------
    >>> import numpy as np
    >>> torus_drawing(9, np.array([0, 0, 0, 3]), np.array([1, 2, 6, 4])).loops[0].tolist()  # the last was missing
    [0, 1, 5]
    """
    steps = np.unique(second - first)
    # Steps of a torus are 1 and width - 1 along a row, width and n - width along a column.
    if len(steps) > 4:
        return None
    for width in np.unique(np.concatenate([steps, steps + 1, n - steps])).tolist():
        if width > 2 and n % width == 0 and n // width > 2:
            found = _as_torus(n, first, second, width)
            if found is not None:
                return found
    return None
