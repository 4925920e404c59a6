"""The edges of a factor graph, and single messages on them in log space: sums or maxima of products.

An *edge* joins a factor and a variable of its scope; edges are numbered as the axes are in ``scopes``. Each
carries one message either way, ``variable_to_factor`` and ``factor_to_variable``, flat over all edges.
Messages from factors are shifted so that their largest entry is zero; those from variables are plain sums of
what the variable received.

Other kernels rely on this layout; it is the one thing here that is not free to change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_sum

__all__ = [
    "AXIS",
    "MessageLayout",
    "acyclic",
    "best_index",
    "factor_sizes",
    "fill_scores",
    "grow_forest",
    "link_edges",
    "message_scratch",
    "other_axes",
    "reduce_scores",
    "send_to_all_factors",
    "send_to_factor",
    "send_to_variable",
    "write_belief",
]


AXIS, STATE, CELL = 0, 1, 2


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


# ---- one message -----------------------------------------------------------------------------------------
#
# These take plain arrays, not the layout: reading a field of a tuple counts references, at a cost of the
# order of a small message.


@kernel
def message_scratch(limits):
    """Work space: scores of a factor's cells; `AXIS`, `STATE`, `CELL` and the sum of messages per axis."""
    return np.empty(limits[2]), np.empty((3, limits[0] + 1), np.int64), np.empty(limits[0] + 1)


@kernel
def other_axes(first, last, left_out, walk, start):
    """List the edges ``first:last`` of a factor but one, from ``walk[AXIS, start]``; where the list ends."""
    end = start
    for e in range(first, last):
        if e != left_out:
            walk[AXIS, end] = e
            end += 1
    return end


@kernel
def fill_scores(base, n_axes, silent, message_offsets, table_strides, log_tables, incoming, scores, walk, sums, cells):
    """Table plus incoming messages over all states of ``walk``'s axes, last axis fastest; how many there are.

    The edge ``silent`` has an axis but no message. Where ``cells`` has any length, the pool cell of each score
    is written to it. Running sums per axis make the cost two additions a cell, whatever the arity.
    """
    keep = len(cells) > 0
    if n_axes == 0:
        scores[0] = log_tables[base]
        if keep:
            cells[0] = base
        return 1
    outer = n_axes - 1
    inner = walk[AXIS, outer]
    stride, offset = table_strides[inner], message_offsets[inner]
    card = message_offsets[inner + 1] - offset
    for a in range(outer):
        walk[STATE, a] = 0
    sums[0], walk[CELL, 0] = 0.0, base
    changed = 0
    count = 0
    while True:
        # sums[b] and CELL b are those of the axes before b.
        so_far, cell = sums[changed], walk[CELL, changed]
        for b in range(changed, outer):
            e, state = walk[AXIS, b], walk[STATE, b]
            sums[b], walk[CELL, b] = so_far, cell
            if e != silent:
                so_far += incoming[message_offsets[e] + state]
            cell += table_strides[e] * state
        if inner == silent:
            for j in range(card):
                scores[count + j] = log_tables[cell + j * stride] + so_far
        else:
            for j in range(card):
                scores[count + j] = log_tables[cell + j * stride] + (incoming[offset + j] + so_far)
        if keep:
            for j in range(card):
                cells[count + j] = cell + j * stride
        count += card
        changed = outer - 1
        while changed >= 0:
            e = walk[AXIS, changed]
            walk[STATE, changed] += 1
            if walk[STATE, changed] < message_offsets[e + 1] - message_offsets[e]:
                break
            walk[STATE, changed] = 0
            changed -= 1
        if changed < 0:
            return count


@kernel
def reduce_scores(scores, begin, end, maximise):
    """The largest of ``scores[begin:end]``, or the log of the sum of their exponentials."""
    if not maximise and end - begin > 1:
        return log_sum(scores, begin, end)
    top = -np.inf
    for j in range(begin, end):
        top = max(top, scores[j])
    return top


@kernel
def send_to_variable(
    e, first, last, base, message_offsets, table_strides, log_tables, variable_to_factor, factor_to_variable,
    maximise, scores, walk, sums, no_cells,
):  # fmt: skip
    """The message on edge e from its factor, whose edges are ``first:last`` (Andres 6.38).

    Returns what was subtracted to make its largest entry zero.
    """
    start, stride = message_offsets[e], table_strides[e]
    card = message_offsets[e + 1] - start
    top = -np.inf
    if last - first == 1:
        for i in range(card):
            value = log_tables[base + i * stride]
            factor_to_variable[start + i] = value
            top = max(top, value)
    elif last - first == 2:
        # Most factors are pairs, and a call with this many arrays costs more than a small pair's message.
        other = first + last - 1 - e
        offset, step = message_offsets[other], table_strides[other]
        row = message_offsets[other + 1] - offset
        for i in range(card):
            cell = base + i * stride
            for j in range(row):
                scores[j] = log_tables[cell + j * step] + variable_to_factor[offset + j]
            value = reduce_scores(scores, 0, row, maximise)
            factor_to_variable[start + i] = value
            top = max(top, value)
    else:
        walk[AXIS, 0] = e
        n_axes = other_axes(first, last, e, walk, 1)
        count = fill_scores(
            base, n_axes, e, message_offsets, table_strides, log_tables, variable_to_factor, scores, walk,
            sums, no_cells,
        )  # fmt: skip
        row = count // card
        for i in range(card):
            value = reduce_scores(scores, i * row, i * row + row, maximise)
            factor_to_variable[start + i] = value
            top = max(top, value)
    if top > -np.inf:
        for i in range(card):
            factor_to_variable[start + i] -= top
    return top


@kernel
def send_to_factor(
    e, first, last, variable_edges, message_offsets, factor_to_variable, unary, unary_at, card, out, start
):
    """out[start:] = sum of what a variable received on its edges but e (Andres 6.37), and its log-likelihood.

    ``variable_edges[first:last]`` are its edges, ``unary[unary_at:]`` its log-likelihood (none where that is
    empty). With e = -1 the result is the variable's belief.
    """
    for i in range(card):
        out[start + i] = unary[unary_at + i] if len(unary) else 0.0
    for k in range(first, last):
        other = variable_edges[k]
        if other != e:
            at = message_offsets[other]
            for i in range(card):
                out[start + i] += factor_to_variable[at + i]


@kernel
def send_to_all_factors(
    first, last, variable_edges, message_offsets, variable_to_factor, factor_to_variable, unary, unary_at, card,
    total,
):  # fmt: skip
    """All messages of a variable; its belief is left in ``total``.

    Sums from the left and from the right: subtracting from the total would turn -inf into nan.
    """
    for i in range(card):
        total[i] = 0.0
    for k in range(last - 1, first - 1, -1):
        at = message_offsets[variable_edges[k]]
        for i in range(card):
            variable_to_factor[at + i] = total[i]
            total[i] += factor_to_variable[at + i]
    for i in range(card):
        total[i] = unary[unary_at + i] if len(unary) else 0.0
    for k in range(first, last):
        at = message_offsets[variable_edges[k]]
        for i in range(card):
            variable_to_factor[at + i] += total[i]
            total[i] += factor_to_variable[at + i]


@kernel
def write_belief(total, card, maximise, beliefs, start):
    """beliefs[start:] = probabilities, or max-marginals less their largest."""
    top = -np.inf
    for i in range(card):
        top = max(top, total[i])
    if maximise:
        for i in range(card):
            beliefs[start + i] = total[i] - top
        return
    mass = 0.0
    for i in range(card):
        p = exp_scalar(total[i] - top)
        beliefs[start + i] = p
        mass += p
    for i in range(card):
        beliefs[start + i] /= mass


@kernel
def best_index(scores, count):
    """Index of the largest of some scores, the first of equals."""
    best = np.int64(0)
    for j in range(1, count):
        if scores[j] > scores[best]:
            best = np.int64(j)
    return best
