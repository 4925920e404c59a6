"""Cutting a clique tree into parts that can run at the same time, and into steps short enough to interrupt.

Invariant: cliques are in preorder, so every subtree is a run of numbers; how a tree is cut depends on the plan alone,
never on threads. Free to change: the grain.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["split_tree", "summarise"]


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


@kernel
def summarise(layout, cardinalities, value_offsets):
    """What every run of a plan asks for: cliques rising and falling, roots, the values of variables of one state,
    factors without a free variable, the widest clique, and the multiply-adds of both passes."""
    n = len(layout.parent)
    falling = np.arange(n)
    rising = falling[::-1].copy()
    roots = np.empty(n, np.int64)
    n_roots, width, operations = 0, 0, 0.0
    for c in range(n):
        if layout.parent[c] < 0:
            roots[n_roots] = c
            n_roots += 1
        width = max(width, layout.axis_offsets[c + 1] - layout.axis_offsets[c])
        inputs = layout.input_offsets[c + 1] - layout.input_offsets[c]
        operations += 2.0 * layout.size[c] * (inputs + 1.0)
    fixed = np.empty(len(cardinalities), np.int64)
    n_fixed = 0
    for v in range(len(cardinalities)):
        if cardinalities[v] == 1:
            fixed[n_fixed] = value_offsets[v]
            n_fixed += 1
    homeless = np.empty(len(layout.home), np.int64)
    n_homeless = 0
    for f in range(len(layout.home)):
        if layout.home[f] < 0:
            homeless[n_homeless] = f
            n_homeless += 1
    return falling, rising, roots[:n_roots], fixed[:n_fixed], homeless[:n_homeless], width - 1, operations
