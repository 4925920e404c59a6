"""The n best structures where there is no dynamic program: Lawler's partitioning (1972), Murty's for assignments.

The best structure splits what is left by its parts: without the first, with the first but without the second, and so
on. The best of each piece is found by `Family.maxima`, all pieces of one split in one batch.
"""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.core.running import Running
from markovfield.structures.core.family import Family

__all__ = ["n_best"]


def n_best(family: Family, pool: FloatArray, n: int, running: Running) -> list[list[IntArray]]:
    """For each instance the cells of its ``n`` best structures, best first; fewer where there are fewer."""
    return [_of_one(family, pool, i, n, running) for i in range(family.n_instances)]


def _of_one(family: Family, pool: FloatArray, instance: int, n: int, running: Running) -> list[IntArray]:
    own, where = family.select(np.array([instance]))
    scores = pool[where]
    tie = count()
    first = own.maxima(scores, running=running).of(0)
    none = np.zeros(0, np.int64)
    heap = [(-float(scores[first].sum()), next(tie), first, none, none)] if len(first) else []
    found: list[IntArray] = []
    while heap and len(found) < n:
        _, _, cells, required, forbidden = heapq.heappop(heap)
        found.append(where[cells])
        if len(found) == n:
            break
        running.check()
        open_cells = cells[~np.isin(cells, required)]
        pieces = [
            (np.concatenate([required, open_cells[:j]]), np.append(forbidden, open_cells[j]))
            for j in range(len(open_cells))
        ]
        if not pieces:
            continue
        many, _ = own.select(np.zeros(len(pieces), np.int64))
        pools = np.concatenate([own.conditioned(scores, 0, *piece) for piece in pieces])
        best = many.maxima(pools, running=running)
        for j, piece in enumerate(pieces):
            cells = best.of(j) - many.cell_offsets[j]
            score = float(scores[cells].sum())
            if len(cells) and np.isfinite(score):
                heapq.heappush(heap, (-score, next(tie), cells, *piece))
    return found
