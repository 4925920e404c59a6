"""What a query depends on: ground formulas that are connected to its atoms; the others factor out (knowledge-based
model construction)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from markovfield.logic.grounding.determined import DeterminedBlocks
from markovfield.logic.grounding.ground import Block

__all__ = ["atoms_in", "connected_to"]

IntArray = npt.NDArray[np.int64]


def atoms_in(blocks: Sequence[Block | DeterminedBlocks], n_atoms: int) -> IntArray:
    """Numbers of all atoms that occur, rising."""
    if n_atoms <= 2**28:
        seen = np.zeros(n_atoms, np.bool_)
        for block in blocks:
            seen[block.atoms] = True
        return np.flatnonzero(seen)
    return np.unique(np.concatenate([np.zeros(0, np.int64), *(np.unique(block.atoms) for block in blocks)]))


def connected_to(
    query: IntArray, blocks: Sequence[Block], determined: Sequence[DeterminedBlocks], atoms: IntArray
) -> tuple[list[Block], list[DeterminedBlocks]]:
    """The ground formulas in connected components of the graph in which a query atom is."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    first, other = [], []
    every: list[Block | DeterminedBlocks] = [*blocks, *determined]
    for block in every:
        size = np.diff(block.offsets)
        some = size > 0
        position = np.searchsorted(atoms, block.atoms)
        first.append(np.repeat(position[block.offsets[:-1][some]], size[some]))
        other.append(position)
    rows, columns = np.concatenate(first), np.concatenate(other)
    n = len(atoms)
    _, label = connected_components(csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(n, n)), False)
    wanted = np.zeros(int(label.max(initial=0)) + 1, np.bool_)
    at = np.searchsorted(atoms, query)
    inside = (at < n) & (atoms[np.minimum(at, max(n - 1, 0))] == query) if n else np.zeros(len(query), np.bool_)
    wanted[label[at[inside]]] = True
    kept, kept_determined = [], []
    for block in blocks:
        keep = wanted[label[np.searchsorted(atoms, block.atoms[block.offsets[:-1]])]]
        if keep.all():
            kept.append(block)
        elif keep.any():
            kept.append(block.rows(keep))
    for group in determined:
        keep = wanted[label[np.searchsorted(atoms, group.atoms[group.offsets[:-1]])]]
        size = np.diff(group.offsets)
        offsets = np.zeros(int(keep.sum()) + 1, np.int64)
        np.cumsum(size[keep], out=offsets[1:])
        if keep.any():
            kept_determined.append(DeterminedBlocks(offsets, group.atoms[np.repeat(keep, size)], group.exactly))
    return kept, kept_determined
