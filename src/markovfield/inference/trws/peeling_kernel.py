"""Taking a factor graph apart from its leaves: what hangs on the rest by trees is solved in one pass.

Invariant: what is taken off is a forest that hangs on the rest; each variable is listed once, leaves first. Linear in
the axes.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["peel"]


@kernel
def peel(variable_offsets, variable_axes, axis_factor, scope_offsets, scopes):  # type: ignore[no-untyped-def]
    """Variables in at most one factor that still joins two are taken off, as long as there are any.

    Returns the variables in the order they were taken, whether each variable was (``bool[n]``), and for each axis 1
    where its variable was the last one left of the factor, 2 where it was taken while the factor joined it to others,
    0 where neither.
    """
    n, m = len(variable_offsets) - 1, len(scope_offsets) - 1
    degree, left = np.empty(n, np.int64), np.empty(m, np.int64)
    taken, role = np.zeros(n, np.bool_), np.zeros(len(scopes), np.int8)
    order = np.empty(n, np.int64)
    tail, head = 0, 0
    for f in range(m):
        left[f] = scope_offsets[f + 1] - scope_offsets[f]
    for v in range(n):
        degree[v] = variable_offsets[v + 1] - variable_offsets[v]
        if degree[v] <= 1:
            order[tail] = v
            taken[v] = True
            tail += 1
    gone = np.zeros(n, np.bool_)
    while head < tail:
        v = order[head]
        head += 1
        gone[v] = True
        for a in range(variable_offsets[v], variable_offsets[v + 1]):
            p = variable_axes[a]
            f = axis_factor[p]
            if left[f] < 2:
                continue
            role[p] = 2
            left[f] -= 1
            if left[f] > 1:
                continue
            for q in range(scope_offsets[f], scope_offsets[f + 1]):
                u = scopes[q]
                if not gone[u]:
                    role[q] = 1
                    degree[u] -= 1
                    if degree[u] <= 1 and not taken[u]:
                        order[tail] = u
                        taken[u] = True
                        tail += 1
    return order[:tail].copy(), taken, role
