"""Building the problem that is left once domains have shrunk (see `domains`): fewer axes, states and factors.

Invariant: cells keep their places in the pool and copies are appended, last axis fastest; ``origin`` says of which cell
each is a copy. The partition function is unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.inference.problem.domains_kernel import PlainTables
from markovfield.kernels.compiler import kernel

__all__ = ["build_reduced"]

Array = npt.NDArray[Any]


@kernel
def _lost_nothing(
    log_tables: Array,
    base: int,
    scope: Array,
    strides: Array,
    child: int,
    cardinality: int,
    domain_sizes: Array,
    domains: Array,
    value_offsets: Array,
    index: Array,
) -> bool:
    """Whether the states that ``child`` lost are -inf for all remaining states of the other axes."""
    own = 0
    for a in range(len(scope)):
        if scope[a] == child:
            own = strides[a]
        else:
            base += strides[a] * domains[value_offsets[scope[a]]]
    kept = 0
    for s in range(cardinality):
        if kept < domain_sizes[child] and domains[value_offsets[child] + kept] == s:
            kept += 1
            continue
        index[: len(scope)] = 0
        cell = base + own * s
        while True:
            if log_tables[cell] != -np.inf:
                return False
            a = len(scope) - 1
            while a >= 0:
                v = scope[a]
                if v != child and strides[a] != 0:
                    at = value_offsets[v] + index[a]
                    index[a] += 1
                    if index[a] < domain_sizes[v]:
                        cell += strides[a] * (domains[at + 1] - domains[at])
                        break
                    cell -= strides[a] * (domains[at] - domains[value_offsets[v]])
                    index[a] = 0
                a -= 1
            if a < 0:
                break
    return True


@kernel
def _steps(domain_sizes: Array, domains: Array, value_offsets: Array) -> Array:
    """Distance between the remaining states of each variable where it is constant, else 0."""
    n = len(domain_sizes)
    steps = np.ones(n, np.int64)
    for v in range(n):
        at = value_offsets[v]
        if domain_sizes[v] > 1:
            step = domains[at + 1] - domains[at]
            for j in range(2, domain_sizes[v]):
                if domains[at + j] - domains[at + j - 1] != step:
                    step = 0
                    break
            steps[v] = step
    return steps


@kernel
def build_reduced(
    tables: PlainTables, log_tables: Array, domain_sizes: Array, domains: Array, alive: Array
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array, Array, Array]:
    """Arrays of the reduced problem: clamped axes become offsets, even domains strides, the rest copies.

    Returns
    -------
    scope_offsets, scopes, table_offsets, table_strides, child
        As in a structure.
    factors
        ``int32[m']``: the original factor of each one left.
    state_offsets, states
        The remaining original states of each variable.
    pool, origin
        The pool with the copies appended and the original cell of each copied one; both empty without copies.
    """
    cardinalities, scope_offsets, scopes = tables.cardinalities, tables.scope_offsets, tables.scopes
    table_offsets, table_strides = tables.table_offsets, tables.table_strides
    child, value_offsets = tables.child, tables.value_offsets
    n, m = len(domain_sizes), len(table_offsets)
    steps = _steps(domain_sizes, domains, value_offsets)
    state_offsets = np.zeros(n + 1, np.int64)
    for v in range(n):
        state_offsets[v + 1] = state_offsets[v] + domain_sizes[v]
    states = np.empty(state_offsets[n], np.int32)
    for v in range(n):
        for j in range(domain_sizes[v]):
            states[state_offsets[v] + j] = domains[value_offsets[v] + j]

    n_factors, n_axes, n_copied = 0, 0, 0
    for f in range(m):
        if not alive[f]:
            continue
        n_factors += 1
        cells, copied = 1, False
        for p in range(scope_offsets[f], scope_offsets[f + 1]):
            v = scopes[p]
            if domain_sizes[v] > 1:
                n_axes += 1
                if table_strides[p] != 0:
                    cells *= domain_sizes[v]
                    copied |= steps[v] == 0
        if copied:
            n_copied += cells
    new_offsets = np.zeros(n_factors + 1, np.int64)
    new_scopes = np.empty(n_axes, np.int32)
    new_bases = np.empty(n_factors, np.int64)
    new_strides = np.empty(n_axes, np.int64)
    new_child = np.empty(n_factors, np.int32)
    factors = np.empty(n_factors, np.int32)
    n_cells = len(log_tables)
    pool = np.empty(n_cells + n_copied if n_copied else 0, np.float64)
    origin = np.empty(n_copied, np.int64)
    if n_copied:
        # A loop, since assigning a slice makes Numba compile its error messages: more than a second.
        for i in range(n_cells):
            pool[i] = log_tables[i]
    index = np.empty(tables.max_arity, np.int64)

    g, q, copy_at = 0, 0, 0
    for f in range(m):
        if not alive[f]:
            continue
        begin, end = scope_offsets[f], scope_offsets[f + 1]
        base = table_offsets[f]
        first_axis = q
        copied = False
        for p in range(begin, end):
            v = scopes[p]
            base += table_strides[p] * domains[value_offsets[v]]
            if domain_sizes[v] > 1:
                new_scopes[q] = v
                new_strides[q] = table_strides[p] * steps[v]
                copied |= steps[v] == 0 and table_strides[p] != 0
                q += 1
        if copied:
            # Strides of the original for the walk, then those of the copy.
            a = first_axis
            for p in range(begin, end):
                if domain_sizes[scopes[p]] > 1:
                    new_strides[a] = table_strides[p]
                    index[a - first_axis] = 0
                    a += 1
            cell, begin_copy = base, copy_at
            while True:
                origin[copy_at] = cell
                pool[n_cells + copy_at] = log_tables[cell]
                copy_at += 1
                a = q - 1
                while a >= first_axis:
                    if new_strides[a] != 0:
                        v = new_scopes[a]
                        i = index[a - first_axis] + 1
                        at = value_offsets[v]
                        if i < domain_sizes[v]:
                            cell += new_strides[a] * (domains[at + i] - domains[at + i - 1])
                            index[a - first_axis] = i
                            break
                        cell -= new_strides[a] * (domains[at + i - 1] - domains[at])
                        index[a - first_axis] = 0
                    a -= 1
                if a < first_axis:
                    break
            base = n_cells + begin_copy
            stride = 1
            for a in range(q - 1, first_axis - 1, -1):
                if new_strides[a] != 0:
                    new_strides[a] = stride
                    stride *= domain_sizes[new_scopes[a]]
        new_bases[g] = base
        new_offsets[g + 1] = q
        factors[g] = f
        c = child[f]
        if c >= 0:
            if domain_sizes[c] == 1:
                c = -1
            elif domain_sizes[c] < cardinalities[c]:
                holds = _lost_nothing(
                    log_tables,
                    table_offsets[f],
                    scopes[begin:end],
                    table_strides[begin:end],
                    c,
                    cardinalities[c],
                    domain_sizes,
                    domains,
                    value_offsets,
                    index,
                )
                if not holds:
                    c = -1
        new_child[g] = c
        g += 1
    return new_offsets, new_scopes, new_bases, new_strides, new_child, factors, state_offsets, states, pool, origin
