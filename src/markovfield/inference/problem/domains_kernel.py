"""Shrinking domains: evidence, hard zeros (generalised arc consistency), barren variables.

A domain is kept as a compact list: ``domains[value_offsets[v] : value_offsets[v] + domain_sizes[v]]`` holds
the states of v that are still possible, in increasing order.

Free to change: `REEXAMINE_LIMIT` and the order of looks: pruning less is never wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel

__all__ = [
    "CHANGED", "IMPOSSIBLE", "UNCHANGED", "PlainTables", "factors_of_variables", "factors_with_zeros", "shrink_domains",
]  # fmt: skip

Array = npt.NDArray[Any]

UNCHANGED = 0
CHANGED = 1
IMPOSSIBLE = 2

# A factor of more cells than this is looked at once and not again: the pruning is optional, the time is not.
REEXAMINE_LIMIT = 2.0**22


class PlainTables(NamedTuple):
    """What kernels need to know of a structure of plain tables: its arrays, and what is derived from them alone.

    ``variable_factors[variable_offsets[v] : variable_offsets[v + 1]]`` are the factors that hold variable v;
    ``max_arity`` and ``max_width`` are the most axes of a factor, and the most states of its axes together.
    """

    cardinalities: Any
    scope_offsets: Any
    scopes: Any
    table_offsets: Any
    table_strides: Any
    child: Any
    variable_offsets: Any
    variable_factors: Any
    value_offsets: Any
    max_arity: int
    max_width: int


@kernel
def factors_of_variables(n_variables: int, scope_offsets: Array, scopes: Array) -> tuple[Array, Array]:
    """For each variable the factors that hold it, as offsets ``int64[n + 1]`` and a flat ``int32`` list."""
    offsets = np.zeros(n_variables + 1, np.int64)
    for v in scopes:
        offsets[v + 1] += 1
    for v in range(n_variables):
        offsets[v + 1] += offsets[v]
    fill = offsets[:-1].copy()
    factors = np.empty(len(scopes), np.int32)
    for f in range(len(scope_offsets) - 1):
        for p in range(scope_offsets[f], scope_offsets[f + 1]):
            v = scopes[p]
            factors[fill[v]] = f
            fill[v] += 1
    return offsets, factors


@kernel
def factors_with_zeros(tables: PlainTables, log_tables: Array) -> Array:
    """Whether each factor reads a cell of -inf, ``bool[m]``. Costs the cells of all factors, at worst."""
    cardinalities, scope_offsets, scopes = tables.cardinalities, tables.scope_offsets, tables.scopes
    table_offsets, table_strides = tables.table_offsets, tables.table_strides
    m = len(table_offsets)
    result = np.zeros(m, np.bool_)
    zero = False
    for value in log_tables:
        if value == -np.inf:
            zero = True
            break
    if not zero:
        return result
    index = np.zeros(len(scopes) + 1, np.int64)
    for f in range(m):
        begin, end = scope_offsets[f], scope_offsets[f + 1]
        # Tied factors mostly follow one another: the answer of the one before holds.
        if f > 0 and table_offsets[f] == table_offsets[f - 1] and end - begin == begin - scope_offsets[f - 1]:
            back = end - begin
            same = True
            for p in range(begin, end):
                if table_strides[p] != table_strides[p - back] or (
                    cardinalities[scopes[p]] != cardinalities[scopes[p - back]]
                ):
                    same = False
                    break
            if same:
                result[f] = result[f - 1]
                continue
        index[begin:end] = 0
        cell = table_offsets[f]
        while True:
            if log_tables[cell] == -np.inf:
                result[f] = True
                break
            p = end - 1
            while p >= begin:
                # An axis of stride zero reads the same cells over and over.
                if table_strides[p] != 0:
                    index[p] += 1
                    cell += table_strides[p]
                    if index[p] < cardinalities[scopes[p]]:
                        break
                    cell -= table_strides[p] * index[p]
                    index[p] = 0
                p -= 1
            if p < begin:
                break
    return result


@kernel
def _drop_barren(tables: PlainTables, evidence: Array, keep: Array, alive: Array, barren: Array) -> int:
    """Mark unobserved leaves and their conditional distributions, which sum to one, until none is left."""
    scope_offsets, scopes, child = tables.scope_offsets, tables.scopes, tables.child
    variable_offsets, variable_factors = tables.variable_offsets, tables.variable_factors
    n = len(tables.cardinalities)
    degree = np.empty(n, np.int64)
    stack = np.empty(n + 1, np.int64)
    n_stack = 0
    for v in range(n):
        degree[v] = variable_offsets[v + 1] - variable_offsets[v]
        if degree[v] == 1:
            stack[n_stack] = v
            n_stack += 1
    n_barren = 0
    while n_stack > 0:
        n_stack -= 1
        v = stack[n_stack]
        if evidence[v] >= 0 or degree[v] != 1 or (len(keep) > 0 and keep[v]):
            continue
        f = -1
        for i in range(variable_offsets[v], variable_offsets[v + 1]):
            if alive[variable_factors[i]]:
                f = variable_factors[i]
        if child[f] != v:
            continue
        alive[f] = False
        barren[v] = True
        n_barren += 1
        for p in range(scope_offsets[f], scope_offsets[f + 1]):
            u = scopes[p]
            degree[u] -= 1
            # Each variable comes to degree one once at most, so the stack has room for all of them.
            if degree[u] == 1:
                stack[n_stack] = u
                n_stack += 1
    return n_barren


@kernel
def _sweep(
    log_tables: Array,
    base: int,
    n_axes: int,
    sizes: Array,
    firsts: Array,
    strides: Array,
    marks: Array,
    domains: Array,
    index: Array,
    supported: Array,
) -> int:
    """Read every cell once and mark the states of those above -inf; the number of states without a mark."""
    last = n_axes - 1
    cell = base
    for b in range(n_axes):
        index[b] = 0
        cell += strides[b] * domains[firsts[b]]
    while True:
        any_above = False
        at = firsts[last]
        row = cell - strides[last] * domains[at]
        for i in range(sizes[last]):
            if log_tables[row + strides[last] * domains[at + i]] != -np.inf:
                any_above = True
                supported[marks[last] + i] = True
        if any_above:
            for b in range(last):
                supported[marks[b] + index[b]] = True
        b = last - 1
        while b >= 0:
            at = firsts[b] + index[b]
            index[b] += 1
            if index[b] < sizes[b]:
                cell += strides[b] * (domains[at + 1] - domains[at])
                break
            cell -= strides[b] * (domains[at] - domains[firsts[b]])
            index[b] = 0
            b -= 1
        if b < 0:
            break
    missing = 0
    for b in range(n_axes):
        for i in range(sizes[b]):
            if not supported[marks[b] + i]:
                missing += 1
    return missing


@kernel
def _find_supports(
    log_tables: Array,
    base: int,
    n_axes: int,
    sizes: Array,
    firsts: Array,
    strides: Array,
    marks: Array,
    domains: Array,
    start: Array,
    index: Array,
    supported: Array,
    cells: float,
) -> int:
    """Search, for each state of each axis, a cell above -inf; the number of states that have none.

    A cell found supports the states of all its axes. Each search starts on the diagonal, so that full tables
    and functional ones are done after few cells; only a state without support costs its whole slice. When the
    searches have read as many cells as there are, one sweep over all of them settles the rest.
    """
    missing = 0
    steps = 0
    for a in range(n_axes):
        for j in range(sizes[a]):
            if supported[marks[a] + j]:
                continue
            cell = base
            for b in range(n_axes):
                i = j if j < sizes[b] else j % sizes[b]
                start[b] = i
                index[b] = i
                cell += strides[b] * domains[firsts[b] + i]
            found = True
            while log_tables[cell] == -np.inf:
                b = n_axes - 1
                while b >= 0:
                    if b != a:
                        i = index[b] + 1
                        if i == sizes[b]:
                            i = 0
                        at = firsts[b]
                        cell += strides[b] * (domains[at + i] - domains[at + index[b]])
                        index[b] = i
                        if i != start[b]:
                            break
                    b -= 1
                if b < 0:
                    found = False
                    break
                steps += 1
            if found:
                for b in range(n_axes):
                    supported[marks[b] + index[b]] = True
            else:
                missing += 1
                if steps > cells:
                    return _sweep(log_tables, base, n_axes, sizes, firsts, strides, marks, domains, index, supported)
    return missing


@kernel
def _propagate(
    tables: PlainTables, log_tables: Array, has_zeros: Array, alive: Array, domain_sizes: Array, domains: Array
) -> bool:
    """Generalised arc consistency on the factors' supports; True when a domain became empty."""
    scope_offsets, scopes, value_offsets = tables.scope_offsets, tables.scopes, tables.value_offsets
    table_offsets, table_strides = tables.table_offsets, tables.table_strides
    variable_offsets, variable_factors = tables.variable_offsets, tables.variable_factors
    max_arity, max_width = tables.max_arity, tables.max_width
    m = len(table_offsets)
    queue = np.empty(m + 1, np.int64)
    active = np.empty(m, np.bool_)
    queued = np.empty(m, np.bool_)
    examined = np.zeros(m, np.bool_)
    head, waiting = 0, 0
    for f in range(m):
        active[f] = alive[f] and (len(has_zeros) == 0 or has_zeros[f])
        queued[f] = active[f]
        if active[f]:
            queue[waiting] = f
            waiting += 1
    variables = np.empty(max_arity, np.int64)
    sizes = np.empty(max_arity, np.int64)
    firsts = np.empty(max_arity, np.int64)
    strides = np.empty(max_arity, np.int64)
    marks = np.empty(max_arity, np.int64)
    start = np.empty(max_arity, np.int64)
    index = np.empty(max_arity, np.int64)
    supported = np.empty(max_width, np.bool_)
    while waiting > 0:
        f = queue[head]
        head = head + 1 if head + 1 < m else 0
        waiting -= 1
        queued[f] = False
        base = table_offsets[f]
        # A literal 0 is a type of its own, for which the search below would be compiled a second time.
        n_axes, width, cells = int(np.int64(0)), 0, 1.0
        for p in range(scope_offsets[f], scope_offsets[f + 1]):
            v = scopes[p]
            # A clamped axis is an offset; an axis of stride zero restricts nothing.
            if domain_sizes[v] == 1 or table_strides[p] == 0:
                base += table_strides[p] * domains[value_offsets[v]]
                continue
            variables[n_axes] = v
            sizes[n_axes] = domain_sizes[v]
            firsts[n_axes] = value_offsets[v]
            strides[n_axes] = table_strides[p]
            marks[n_axes] = width
            n_axes += 1
            width += domain_sizes[v]
            cells *= domain_sizes[v]
        if examined[f] and cells > REEXAMINE_LIMIT:
            continue
        examined[f] = True
        if n_axes == 0:
            if log_tables[base] == -np.inf:
                return True
            continue
        supported[:width] = False
        if not _find_supports(
            log_tables, base, n_axes, sizes, firsts, strides, marks, domains, start, index, supported, cells
        ):
            continue
        for a in range(n_axes):
            kept = 0
            for j in range(sizes[a]):
                if supported[marks[a] + j]:
                    domains[firsts[a] + kept] = domains[firsts[a] + j]
                    kept += 1
            if kept == sizes[a]:
                continue
            if kept == 0:
                return True
            v = variables[a]
            domain_sizes[v] = kept
            for i in range(variable_offsets[v], variable_offsets[v + 1]):
                g = variable_factors[i]
                # f itself need not be seen again: what it removed supported nothing in it.
                if g != f and active[g] and not queued[g]:
                    queued[g] = True
                    tail = head + waiting
                    queue[tail if tail < m else tail - m] = g
                    waiting += 1
    return False


@kernel
def shrink_domains(
    tables: PlainTables,
    log_tables: Array,
    evidence: Array,
    possible: Array,
    has_zeros: Array,
    keep: Array,
    propagate: bool,
    drop: bool,
) -> tuple[int, Array, Array, Array, Array]:
    """Clamp the evidence, drop what is barren, remove the states that hard zeros exclude.

    ``possible`` says of every state whether likelihoods leave it possible; empty where all do.

    Returns
    -------
    status
        `UNCHANGED`, `CHANGED`, `IMPOSSIBLE`, or ``-(v + 1)`` when the evidence on v is not one of its states.
    domain_sizes, domains, alive, barren
        ``int32[n]``, ``int32[total states]`` (laid out by ``value_offsets``), ``bool[m]``, ``bool[n]``.
    """
    cardinalities, value_offsets = tables.cardinalities, tables.value_offsets
    n, m = len(cardinalities), len(tables.table_offsets)
    domain_sizes = np.empty(n, np.int32)
    domains = np.empty(value_offsets[n], np.int32)
    alive = np.ones(m, np.bool_)
    barren = np.zeros(n, np.bool_)
    status = UNCHANGED
    for v in range(n):
        begin = value_offsets[v]
        if evidence[v] >= 0:
            if evidence[v] >= cardinalities[v]:
                return -(v + 1), domain_sizes, domains, alive, barren
            domain_sizes[v] = 1
            domains[begin] = evidence[v]
            status = CHANGED
        else:
            domain_sizes[v] = cardinalities[v]
            for s in range(cardinalities[v]):
                domains[begin + s] = s
    # Barren variables go first: once zeros have shrunk a child's domain its rows may no longer sum to one.
    if drop and _drop_barren(tables, evidence, keep, alive, barren):
        status = CHANGED
        for v in range(n):
            if barren[v]:
                domain_sizes[v] = 1
    if propagate and len(possible) > 0:
        for v in range(n):
            begin, kept = value_offsets[v], 0
            for i in range(domain_sizes[v]):
                if barren[v] or possible[begin + domains[begin + i]]:
                    domains[begin + kept] = domains[begin + i]
                    kept += 1
            if kept == 0:
                return IMPOSSIBLE, domain_sizes, domains, alive, barren
            if kept < domain_sizes[v]:
                domain_sizes[v] = kept
                status = CHANGED
    if propagate:
        zero = False
        if len(has_zeros) == 0:
            for value in log_tables:
                if value == -np.inf:
                    zero = True
                    break
        else:
            for value in has_zeros:
                if value:
                    zero = True
                    break
        if zero:
            if _propagate(tables, log_tables, has_zeros, alive, domain_sizes, domains):
                return IMPOSSIBLE, domain_sizes, domains, alive, barren
            if status == UNCHANGED:
                for v in range(n):
                    if domain_sizes[v] != cardinalities[v]:
                        status = CHANGED
                        break
    return status, domain_sizes, domains, alive, barren
