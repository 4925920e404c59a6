"""Messages on the edges of a factor graph, in log space: sums or maxima of products.

An *edge* joins a factor and a variable of its scope; edges are numbered as the axes are in ``scopes``. Each
carries one message either way, ``variable_to_factor`` and ``factor_to_variable``, flat over all edges.
Messages from factors are shifted so that their largest entry is zero; those from variables are plain sums of
what the variable received.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels._flags import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = [
    "MessageLayout",
    "add_counts",
    "backtrack",
    "collect",
    "distribute",
    "factor_belief",
    "factor_sizes",
    "grow_forest",
    "link_edges",
]


# Rows of the work space that walks over a table: its axes (edges), the state of each, the cell reached.
AXIS, STATE, CELL = 0, 1, 2


class MessageLayout(NamedTuple):
    """Where edges, their messages and their tables lie.

    The edges of factor f are ``factor_offsets[f] .. factor_offsets[f + 1]``, those of variable v are listed
    in ``variable_edges[variable_offsets[v] : variable_offsets[v + 1]]``. The messages of edge e start at
    ``message_offsets[e]``, the states of variable v at ``value_offsets[v]``. ``limits`` is the work space
    needed: the largest arity, the most states of a variable, the most cells of a factor.
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


# ---- the graph -------------------------------------------------------------------------------------------


@kernel
def link_edges(n_variables, scope_offsets, scopes):  # type: ignore[no-untyped-def]
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
def factor_sizes(cardinalities, scope_offsets, scopes):  # type: ignore[no-untyped-def]
    """Cells of each factor, as floats: a factor may be declared far larger than memory."""
    sizes = np.ones(len(scope_offsets) - 1)
    for f in range(len(sizes)):
        for e in range(scope_offsets[f], scope_offsets[f + 1]):
            sizes[f] *= cardinalities[scopes[e]]
    return sizes


@kernel
def grow_forest(layout):  # type: ignore[no-untyped-def]
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
def _scratch(limits):  # type: ignore[no-untyped-def]
    """Work space: scores of a factor's cells; `AXIS`, `STATE`, `CELL` and the sum of messages per axis."""
    return np.empty(limits[2]), np.empty((3, limits[0] + 1), np.int64), np.empty(limits[0] + 1)


@kernel
def _other_axes(first, last, left_out, walk, start):  # type: ignore[no-untyped-def]
    """List the edges ``first:last`` of a factor but one, from ``walk[AXIS, start]``; where the list ends."""
    end = start
    for e in range(first, last):
        if e != left_out:
            walk[AXIS, end] = e
            end += 1
    return end


@kernel
def _fill_scores(  # type: ignore[no-untyped-def]
    base, n_axes, silent, message_offsets, table_strides, log_tables, incoming, scores, walk, sums, cells
):
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
def _reduce(scores, begin, end, maximise):  # type: ignore[no-untyped-def]
    """The largest of ``scores[begin:end]``, or the log of the sum of their exponentials."""
    top = -np.inf
    for j in range(begin, end):
        top = max(top, scores[j])
    if maximise or end - begin == 1 or top == -np.inf:
        return top
    total = 0.0
    for j in range(begin, end):
        total += exp_scalar(scores[j] - top)
    return top + math.log(total)


@kernel
def _send_to_variable(  # type: ignore[no-untyped-def]
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
            value = _reduce(scores, 0, row, maximise)
            factor_to_variable[start + i] = value
            top = max(top, value)
    else:
        walk[AXIS, 0] = e
        n_axes = _other_axes(first, last, e, walk, 1)
        count = _fill_scores(
            base, n_axes, e, message_offsets, table_strides, log_tables, variable_to_factor, scores, walk,
            sums, no_cells,
        )  # fmt: skip
        row = count // card
        for i in range(card):
            value = _reduce(scores, i * row, i * row + row, maximise)
            factor_to_variable[start + i] = value
            top = max(top, value)
    if top > -np.inf:
        for i in range(card):
            factor_to_variable[start + i] -= top
    return top


@kernel
def _send_to_factor(  # type: ignore[no-untyped-def]
    e, first, last, variable_edges, message_offsets, factor_to_variable, own, own_at, card, out, start
):
    """out[start:] = sum of what a variable received on its edges but e (Andres 6.37), and its log-likelihood.

    ``variable_edges[first:last]`` are its edges, ``own[own_at:]`` its log-likelihood (none where that is
    empty). With e = -1 the result is the variable's belief.
    """
    for i in range(card):
        out[start + i] = own[own_at + i] if len(own) else 0.0
    for k in range(first, last):
        other = variable_edges[k]
        if other != e:
            at = message_offsets[other]
            for i in range(card):
                out[start + i] += factor_to_variable[at + i]


@kernel
def _send_to_all_factors(  # type: ignore[no-untyped-def]
    first, last, variable_edges, message_offsets, variable_to_factor, factor_to_variable, own, own_at, card,
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
        total[i] = own[own_at + i] if len(own) else 0.0
    for k in range(first, last):
        at = message_offsets[variable_edges[k]]
        for i in range(card):
            variable_to_factor[at + i] += total[i]
            total[i] += factor_to_variable[at + i]


# ---- two passes over a forest ----------------------------------------------------------------------------


@kernel
def collect(  # type: ignore[no-untyped-def]
    layout, order, parent_edge, begin, end, log_tables, likelihood, variable_to_factor, factor_to_variable,
    log_scales, maximise,
):  # fmt: skip
    """Send messages towards the roots, for the nodes ``order[begin:end]`` from the last to the first.

    ``log_scales[node]`` is what was taken out of a factor's message, and at a root the whole reduced belief:
    their sum is log Z, or the best score.
    """
    factor_offsets, variable_offsets = layout.factor_offsets, layout.variable_offsets
    variable_edges, value_offsets = layout.variable_edges, layout.value_offsets
    message_offsets, table_offsets, table_strides = (
        layout.message_offsets,
        layout.table_offsets,
        layout.table_strides,
    )
    n = len(value_offsets) - 1
    scores, walk, sums = _scratch(layout.limits)
    no_cells = np.empty(0, np.int64)
    belief = np.empty(layout.limits[1])
    for i in range(end - 1, begin - 1, -1):
        node = order[i]
        e = parent_edge[node]
        if node >= n:
            f = node - n
            if e < 0:
                log_scales[node] = log_tables[table_offsets[f]]
                continue
            log_scales[node] = _send_to_variable(
                e, factor_offsets[f], factor_offsets[f + 1], table_offsets[f], message_offsets, table_strides,
                log_tables, variable_to_factor, factor_to_variable, maximise, scores, walk, sums, no_cells,
            )  # fmt: skip
            continue
        at = value_offsets[node]
        card = value_offsets[node + 1] - at
        first, last = variable_offsets[node], variable_offsets[node + 1]
        out, start = (variable_to_factor, message_offsets[e]) if e >= 0 else (belief, np.int64(0))
        _send_to_factor(
            e, first, last, variable_edges, message_offsets, factor_to_variable, likelihood, at, card, out,
            start,
        )  # fmt: skip
        if e < 0:
            log_scales[node] = _reduce(belief, 0, card, maximise)


@kernel
def _write_belief(total, card, maximise, beliefs, start):  # type: ignore[no-untyped-def]
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
def distribute(  # type: ignore[no-untyped-def]
    layout, order, parent_edge, begin, end, log_tables, likelihood, variable_to_factor, factor_to_variable,
    beliefs, maximise,
):  # fmt: skip
    """After `collect`: send messages away from the roots, for ``order[begin:end]``, and write the beliefs."""
    factor_offsets, variable_offsets = layout.factor_offsets, layout.variable_offsets
    variable_edges, value_offsets = layout.variable_edges, layout.value_offsets
    message_offsets, table_offsets, table_strides = (
        layout.message_offsets,
        layout.table_offsets,
        layout.table_strides,
    )
    n = len(value_offsets) - 1
    scores, walk, sums = _scratch(layout.limits)
    no_cells = np.empty(0, np.int64)
    total = np.empty(layout.limits[1])
    for i in range(begin, end):
        node = order[i]
        if node < n:
            at = value_offsets[node]
            card = value_offsets[node + 1] - at
            _send_to_all_factors(
                variable_offsets[node], variable_offsets[node + 1], variable_edges, message_offsets,
                variable_to_factor, factor_to_variable, likelihood, at, card, total,
            )  # fmt: skip
            _write_belief(total, card, maximise, beliefs, at)
            continue
        f = node - n
        first, last = factor_offsets[f], factor_offsets[f + 1]
        for e in range(first, last):
            if e != parent_edge[node]:
                _send_to_variable(
                    e, first, last, table_offsets[f], message_offsets, table_strides, log_tables,
                    variable_to_factor, factor_to_variable, maximise, scores, walk, sums, no_cells,
                )  # fmt: skip


@kernel
def backtrack(  # type: ignore[no-untyped-def]
    layout, order, parent_edge, begin, end, log_tables, likelihood, variable_to_factor, factor_to_variable,
    states,
):  # fmt: skip
    """After `collect` with maxima: the best states, each factor choosing for its children given its parent's.

    Choosing factor by factor keeps ties consistent; choosing each variable by its max-marginal would not.
    """
    edge_variable, message_offsets = layout.edge_variable, layout.message_offsets
    value_offsets, variable_offsets = layout.value_offsets, layout.variable_offsets
    n = len(value_offsets) - 1
    scores, walk, sums = _scratch(layout.limits)
    no_cells = np.empty(0, np.int64)
    belief = np.empty(layout.limits[1])
    for i in range(begin, end):
        node = order[i]
        e = parent_edge[node]
        if node < n:
            if e < 0:
                at = value_offsets[node]
                card = value_offsets[node + 1] - at
                first, last = variable_offsets[node], variable_offsets[node + 1]
                _send_to_factor(
                    e, first, last, layout.variable_edges, message_offsets, factor_to_variable, likelihood,
                    at, card, belief, np.int64(0),
                )  # fmt: skip
                states[node] = _best(belief, card)
            continue
        if e < 0:
            continue
        f = node - n
        n_axes = _other_axes(layout.factor_offsets[f], layout.factor_offsets[f + 1], e, walk, 0)
        base = layout.table_offsets[f] + layout.table_strides[e] * states[edge_variable[e]]
        count = _fill_scores(
            base, n_axes, -1, message_offsets, layout.table_strides, log_tables, variable_to_factor, scores,
            walk, sums, no_cells,
        )  # fmt: skip
        best = _best(scores, count)
        for a in range(n_axes - 1, -1, -1):
            other = walk[AXIS, a]
            card = message_offsets[other + 1] - message_offsets[other]
            states[edge_variable[other]] = best % card
            best //= card


@kernel
def _best(scores, count):  # type: ignore[no-untyped-def]
    """Index of the largest of some scores, the first of equals."""
    best = np.int64(0)
    for j in range(1, count):
        if scores[j] > scores[best]:
            best = np.int64(j)
    return best


# ---- factor beliefs --------------------------------------------------------------------------------------


@kernel
def _factor_belief(layout, f, log_tables, variable_to_factor, scores, walk, sums, cells):  # type: ignore[no-untyped-def]
    """scores = joint distribution of a factor's variables (Andres 6.40), last axis fastest; its length."""
    n_axes = _other_axes(layout.factor_offsets[f], layout.factor_offsets[f + 1], -1, walk, 0)
    count = _fill_scores(
        layout.table_offsets[f], n_axes, -1, layout.message_offsets, layout.table_strides, log_tables,
        variable_to_factor, scores, walk, sums, cells,
    )  # fmt: skip
    _write_belief(scores, count, False, scores, 0)
    return count


@kernel
def factor_belief(layout, f, log_tables, variable_to_factor):  # type: ignore[no-untyped-def]
    """Joint distribution of a factor's variables (Andres 6.40), flat, last axis fastest."""
    scores, walk, sums = _scratch(layout.limits)
    no_cells = np.empty(0, np.int64)
    count = _factor_belief(layout, f, log_tables, variable_to_factor, scores, walk, sums, no_cells)
    return scores[:count].copy()


@kernel
def add_counts(layout, begin, end, log_tables, variable_to_factor, counts):  # type: ignore[no-untyped-def]
    """Add to every pool cell the probability that each of the factors ``begin:end`` reads it."""
    scores, walk, sums = _scratch(layout.limits)
    cells = np.empty(len(scores), np.int64)
    for f in range(begin, end):
        count = _factor_belief(layout, f, log_tables, variable_to_factor, scores, walk, sums, cells)
        for j in range(count):
            counts[cells[j]] += scores[j]
