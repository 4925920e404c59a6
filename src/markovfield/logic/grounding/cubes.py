"""Truth tables as few cubes: conjunctions of literals that hold in just the true rows (Minato 1992)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Cube", "cubes_of"]

# Axis to value.
Cube = dict[int, int]
Table = npt.NDArray[np.bool_]


def cubes_of(table: Table) -> list[Cube]:
    """Cubes, none of which can be spared, that cover the true rows of ``bool[2, ..., 2]`` and no others.

    Examples
    --------
    >>> cubes_of(np.array([[False, True], [True, True]]))
    [{0: 1}, {1: 1}]
    """
    return _cover(table, table, 0)[0]


def _cover(must: Table, may: Table, axis: int) -> tuple[list[Cube], Table]:
    """Cubes that cover what must be covered and only what may be, and what they cover."""
    if not must.any():
        return [], np.zeros_like(must)
    if may.all():
        return [{}], np.ones_like(must)
    low, low_covered = _cover(must[0] & ~may[1], may[0], axis + 1)
    high, high_covered = _cover(must[1] & ~may[0], may[1], axis + 1)
    rest = (must[0] & ~low_covered) | (must[1] & ~high_covered)
    both, both_covered = _cover(rest, may[0] & may[1], axis + 1)
    cubes = [*({axis: 0} | cube for cube in low), *({axis: 1} | cube for cube in high), *both]
    return cubes, np.stack([low_covered | both_covered, high_covered | both_covered])
