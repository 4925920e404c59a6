"""Orders of elimination that keep a sparse factor sparse: lattices are cut in halves, other graphs go by degree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from markovfield.arrays import IntArray, States
from markovfield.gaussian.degree_kernel import minimum_degree
from markovfield.gaussian.dissection_kernel import lattice_reach, slab_order

__all__ = ["Found", "find_lattice", "find_order"]

LEAST_DISSECTED = 5_000
"""Lattices of fewer sites have less fill by minimum degree, which then takes no time either."""
LEAF = 12
"""Parts of at most so many sites are left as they are."""
MOST_OFFSETS = 400


class Found(NamedTuple):
    """An order of elimination, and in words how it was found."""

    order: States
    method: str


def find_order(offsets: IntArray, rows: States, coordinates: IntArray | None) -> Found:
    """A fill-reducing order for a symmetric pattern by columns, with or without coordinates of its vertices."""
    n = len(offsets) - 1
    if n >= LEAST_DISSECTED:
        places = find_lattice(offsets, rows) if coordinates is None else np.asarray(coordinates, np.int64)
        if places is not None:
            reach = lattice_reach(offsets, rows, places)
            extent = places.max(axis=0) - places.min(axis=0) + 1
            # Where neighbours lie far apart, no slab is thin.
            if (reach**2 < 4 * extent).all() and (8 * reach < extent).any():
                shape = " x ".join(str(e) for e in extent.tolist())
                return Found(slab_order(places, reach, LEAF), f"nested dissection of a lattice of {shape}")
    return Found(minimum_degree(offsets, rows), "minimum degree")


def find_lattice(offsets: IntArray, rows: States) -> IntArray | None:
    """Coordinates, ``int64[n, d]``, of sites that are numbered row by row; None for what is not such a lattice.

    Neighbours on a lattice differ in their numbers by few amounts: 1, the length of a row, the size of a layer, and
    sums of these.
    """
    n = len(offsets) - 1
    if n < 4:
        return None
    distance = np.abs(rows - np.repeat(np.arange(n, dtype=np.int32), np.diff(offsets)))
    present = np.flatnonzero(np.bincount(distance, minlength=2))
    present = present[present > 0]
    if not 2 <= len(present) <= MOST_OFFSETS:
        return None
    strides = _strides(present)
    if not strides:
        return None
    places = np.empty((n, len(strides) + 1), np.int64)
    rest = np.arange(n)
    for axis, stride in enumerate(strides):
        rest, places[:, -1 - axis] = np.divmod(rest, stride)
    places[:, 0] = rest
    return places


def _strides(present: IntArray) -> list[int]:
    """Lengths of a row, of a layer in rows, and so on, from the differences of neighbours' numbers."""
    run = int(np.argmax(np.append(present, 0) != np.arange(1, len(present) + 2)))
    if run == 0 or run == len(present):
        return []
    others = present[run:]
    gaps = np.flatnonzero(np.diff(others) > 1)
    last = int(others[gaps[0]] if len(gaps) else others[-1])
    if (int(others[0]) + last) % 2:
        return []
    stride = (int(others[0]) + last) // 2
    if stride <= 2 * run:
        return []
    along = (present + stride // 2) // stride
    if np.abs(present - along * stride).max() > run:
        return []
    lines = np.unique(along[along > 0])
    return [stride, *_strides(lines)]
