"""What a query depends on, once evidence has cut the graph: the components that its targets are in.

Invariant: domains as in `domains_kernel`; a variable of one state blocks a path. Linear in the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.inference.problem.domains_kernel import PlainTables
from markovfield.kernels.compiler import kernel

__all__ = ["drop_separated"]

Array = npt.NDArray[Any]


@kernel
def drop_separated(
    tables: PlainTables, keep: Array, domain_sizes: Array, domains: Array, alive: Array, barren: Array
) -> int:
    """Drop the variables and factors that no path of free variables connects with a kept one; how many variables.

    A variable with one state left blocks paths, as an observed one does. After barren variables are gone, what is left
    of a directed model is its ancestral graph, so this is d-separation by the moralised ancestral graph.
    """
    scope_offsets, scopes, value_offsets = tables.scope_offsets, tables.scopes, tables.value_offsets
    variable_offsets, variable_factors = tables.variable_offsets, tables.variable_factors
    n = len(domain_sizes)
    reached = np.zeros(n, np.bool_)
    heard = np.zeros(len(alive), np.bool_)
    stack = np.empty(n, np.int64)
    top = 0
    for v in range(n):
        if keep[v] and domain_sizes[v] > 1:
            reached[v] = True
            stack[top] = v
            top += 1
    while top:
        top -= 1
        v = stack[top]
        for i in range(variable_offsets[v], variable_offsets[v + 1]):
            f = variable_factors[i]
            if heard[f] or not alive[f]:
                continue
            heard[f] = True
            for p in range(scope_offsets[f], scope_offsets[f + 1]):
                u = scopes[p]
                if domain_sizes[u] > 1 and not reached[u]:
                    reached[u] = True
                    stack[top] = u
                    top += 1
    dropped = 0
    for v in range(n):
        if domain_sizes[v] > 1 and not reached[v]:
            domain_sizes[v] = 1
            domains[value_offsets[v]] = 0
            barren[v] = True
            dropped += 1
    for f in range(len(alive)):
        alive[f] = alive[f] and heard[f]
    return dropped
