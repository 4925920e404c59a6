"""Parting the factors of a graph into forests, greedily.

Invariant: a factor joins a forest only where its variables lie in different trees of it, so that the factor graph of
each part has no cycle.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.union_find import find, unite

__all__ = ["grow_part"]


@kernel
def grow_part(scope_offsets, scopes, n_variables, part, number):
    """Give ``part[f] = number`` to factors of two or more variables that have none (-1) and fit into one forest.

    Factors are taken in their order; answers how many are left without a part.
    """
    parent = np.arange(n_variables)
    roots = np.empty(len(scopes) + 1, np.int64)
    left = 0
    for f in range(len(part)):
        first, last = scope_offsets[f], scope_offsets[f + 1]
        if part[f] >= 0 or last - first < 2:
            continue
        fits = True
        for p in range(first, last):
            roots[p - first] = find(parent, np.int64(scopes[p]))
            for q in range(p - first):
                fits = fits and roots[q] != roots[p - first]
        if not fits:
            left += 1
            continue
        part[f] = number
        for p in range(first + 1, last):
            unite(parent, np.int64(scopes[first]), np.int64(scopes[p]))
    return left
