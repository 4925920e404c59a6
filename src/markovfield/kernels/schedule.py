"""Cutting a clique tree into parts that can run at the same time, and into steps short enough to interrupt."""

from __future__ import annotations

import numpy as np

from markovfield.kernels._flags import kernel

__all__ = ["split_tree"]


@kernel
def split_tree(parent, cost, grain):
    """Give every clique a part: part 0 is the top of the trees, parts 1, 2, ... are whole subtrees below it.

    A subtree becomes a part when its cost is at most ``grain`` and its parent's subtree costs more. Parts do not
    depend on the number of threads, so neither do the results.
    """
    n = len(parent)
    below = cost.copy()
    for c in range(n - 1, -1, -1):
        if parent[c] >= 0:
            below[parent[c]] += below[c]
    part = np.zeros(n, np.int64)
    count = 0
    for c in range(n):
        p = parent[c]
        if p >= 0 and part[p] > 0:
            part[c] = part[p]
        elif below[c] <= grain:
            count += 1
            part[c] = count
    return part, count
