"""The n best structures of a dynamic program, one after the other, from the scores of its best ones.

Where the best score of every item is known, the best completion of a partial derivation is known too: what is decided,
and the best of every item that is still open. Lawler's partitioning (1972) then needs no further dynamic program: a
solution that was found is split at every decision after the one where it left its parent, each part starting with the
next best way at that decision. Ways to make an item are sorted once, when a solution first goes through it. A solution
costs as many steps as it has decisions; the lazy algorithm of Huang and Chiang (2005) finds the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.core.running import Running
from markovfield.structures.core.family import Edge, Hyperedges

__all__ = ["k_best"]

Way = tuple[float, Edge]


def k_best(
    goal: Any,
    edges: Hyperedges,
    value: Callable[[Any], float],
    pool: FloatArray,
    n: int,
    running: Running | None = None,
) -> list[IntArray]:
    """The cells of the ``n`` best derivations of an item, best first; fewer where there are fewer.

    Parameters
    ----------
    goal
        The item that stands for the whole.
    edges
        From an item to the ways to make it; one way with no tails ends a branch.
    value
        From an item to the score of its best derivation, consistent with ``edges``; -inf where it has none.
    pool
        Scores of cells.

    Examples
    --------
    Two choices, made one after the other:

    >>> a, b = [Edge((), (0,)), Edge((), (1,))], [Edge((), (2,)), Edge((), (3,))]
    >>> ways = {"both": [Edge(("a", "b"), ())], "a": a, "b": b}
    >>> best = {"both": 3.0, "a": 1.0, "b": 2.0}
    >>> [cells.tolist() for cells in k_best("both", ways.get, best.get, np.array([1.0, 0.5, 2.0, 0.0]), 3)]
    [[0, 2], [1, 2], [0, 3]]
    """
    sorted_ways: dict[Any, list[Way]] = {}

    def ways(item: Any) -> list[Way]:
        known = sorted_ways.get(item)
        if known is None:
            made = ((float(sum(pool[c] for c in e.cells)) + sum(map(value, e.tails)), e) for e in edges(item))
            known = sorted((way for way in made if way[0] > -np.inf), key=lambda way: -way[0])
            sorted_ways[item] = known
        return known

    found: list[IntArray] = []
    if not ways(goal):
        return found
    tie = count()
    # Score; the decisions of the parent; the step where a solution leaves it, and the rank of the way that it takes.
    heap: list[tuple[float, int, list[int], int, int]] = [(-ways(goal)[0][0], next(tie), [], 0, 0)]
    while heap and len(found) < n:
        _, _, parent, left, taken = heapq.heappop(heap)
        if running is not None:
            running.check()
        ranks = [*parent[:left], taken]
        cells: list[int] = []
        decided, waiting = 0.0, value(goal)  # scores of what is decided, and of the best of all that is open
        stack, step = [goal], 0
        while stack:
            item = stack.pop()
            options = ways(item)
            if step > left:
                ranks.append(0)
            rank = ranks[step]
            waiting -= value(item)
            if step >= left and rank + 1 < len(options):
                heapq.heappush(heap, (-(decided + options[rank + 1][0] + waiting), next(tie), ranks, step, rank + 1))
            edge = options[rank][1]
            cells.extend(edge.cells)
            decided += float(sum(pool[c] for c in edge.cells))
            stack.extend(reversed(edge.tails))
            waiting += sum(map(value, edge.tails))
            step += 1
        found.append(np.array(cells, np.int64))
    return found
