"""The edges of a factor graph, and forests of them.

An *edge* joins a factor and a variable of its scope; edges are numbered as the axes are in ``scopes``. Each
carries one message either way, ``variable_to_factor`` and ``factor_to_variable``, flat over all edges.

Other kernels rely on this layout; it is the one thing here that is not free to change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel

__all__ = [
    "MessageLayout",
    "acyclic",
    "factor_sizes",
    "grow_forest",
    "link_edges",
]


class MessageLayout(NamedTuple):
    """Where edges, their messages and their tables lie.

    The edges of factor f are ``factor_offsets[f] .. factor_offsets[f + 1]``, those of variable v are listed
    in ``variable_edges[variable_offsets[v] : variable_offsets[v + 1]]``. The messages of edge e start at
    ``message_offsets[e]``, the states of variable v at ``value_offsets[v]``. ``variable_slots`` is ``message_offsets``
    at ``variable_edges``: edges of a variable lie far apart, and one look less is worth its memory. ``limits`` is
    the work space needed: the largest arity, the most states of a variable, the most cells of a factor.
    """

    factor_offsets: npt.NDArray[np.int64]
    edge_variable: npt.NDArray[np.int32]
    edge_factor: npt.NDArray[np.int32]
    variable_offsets: npt.NDArray[np.int64]
    variable_edges: npt.NDArray[np.int64]
    message_offsets: npt.NDArray[np.int64]
    value_offsets: npt.NDArray[np.int64]
    table_offsets: npt.NDArray[np.int64]
    table_strides: npt.NDArray[np.int64]
    limits: npt.NDArray[np.int64]
    variable_slots: npt.NDArray[np.int64]


# ---- the graph -------------------------------------------------------------------------------------------


@kernel
def link_edges(n_variables, scope_offsets, scopes):
    """The factor of each edge, and the edges of each variable as offsets and a list."""
    edge_factor = np.empty(len(scopes), np.int32)
    offsets = np.zeros(n_variables + 1, np.int64)
    for f in range(len(scope_offsets) - 1):
        for e in range(scope_offsets[f], scope_offsets[f + 1]):
            edge_factor[e] = f
            offsets[scopes[e] + 1] += 1
    for v in range(n_variables):
        offsets[v + 1] += offsets[v]
    fill = offsets.copy()
    edges = np.empty(len(scopes), np.int64)
    for e in range(len(scopes)):
        v = scopes[e]
        edges[fill[v]] = e
        fill[v] += 1
    return edge_factor, offsets, edges


@kernel
def factor_sizes(cardinalities, scope_offsets, scopes):
    """Cells of each factor, as floats: a factor may be declared far larger than memory."""
    sizes = np.ones(len(scope_offsets) - 1)
    for f in range(len(sizes)):
        for e in range(scope_offsets[f], scope_offsets[f + 1]):
            sizes[f] *= cardinalities[scopes[e]]
    return sizes


@kernel
def acyclic(n_variables, scope_offsets, scopes, states):
    """Whether factors and variables without a state (below 0) make a forest: no edge joins what is joined already."""
    root = np.arange(n_variables)
    for f in range(len(scope_offsets) - 1):
        joined = -1
        for e in range(scope_offsets[f], scope_offsets[f + 1]):
            v = np.int64(scopes[e])
            if states[v] >= 0:
                continue
            while root[v] != v:
                root[v] = root[root[v]]
                v = root[v]
            if joined < 0:
                joined = v
            elif joined == v:
                return False
            else:
                # The factor's own tree is rooted where it began.
                root[v] = joined
    return True


@kernel
def grow_forest(layout):
    """Every node after its parent, each node's edge to its parent (-1 for roots), an edge that closes a cycle.

    Nodes are the variables 0 .. n - 1 and then the factors. Each tree is rooted at its first variable; factors
    of no variable come last, as roots. On a cycle the search stops and names the edge that closes it,
    otherwise -1.
    """
    n, m = len(layout.value_offsets) - 1, len(layout.table_offsets)
    order = np.empty(n + m, np.int64)
    parent_edge = np.full(n + m, -1, np.int64)
    seen = np.zeros(n + m, np.bool_)
    filled = 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        at = filled
        order[filled] = root
        filled += 1
        while at < filled:
            node = order[at]
            at += 1
            from_factor = node >= n
            first = layout.factor_offsets[node - n] if from_factor else layout.variable_offsets[node]
            last = layout.factor_offsets[node - n + 1] if from_factor else layout.variable_offsets[node + 1]
            for i in range(first, last):
                e = i if from_factor else layout.variable_edges[i]
                if e == parent_edge[node]:
                    continue
                other = np.int64(layout.edge_variable[e]) if from_factor else n + np.int64(layout.edge_factor[e])
                if seen[other]:
                    return order, parent_edge, e
                seen[other] = True
                parent_edge[other] = e
                order[filled] = other
                filled += 1
    for f in range(m):
        if layout.factor_offsets[f] == layout.factor_offsets[f + 1]:
            order[filled] = n + f
            filled += 1
    return order, parent_edge, np.int64(-1)
