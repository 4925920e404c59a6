"""Two passes of messages over a factor graph that is a forest, in log space, and the beliefs of factors.

Invariant: `MessageLayout`; every node stands in ``order`` after its parent; messages of factors have a largest entry of
zero, and what was taken out is in ``log_scales``. Ties go to the first state, factor by factor, so that they stay
consistent.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.belief_propagation.log_messages_kernel import (
    AXIS,
    best_index,
    fill_scores,
    message_scratch,
    other_axes,
    reduce_scores,
    send_to_all_factors,
    send_to_factor,
    send_to_variable,
    write_belief,
)
from markovfield.kernels.compiler import kernel

__all__ = ["add_counts", "backtrack", "collect", "distribute", "factor_belief"]


@kernel
def collect(
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
    scores, walk, sums = message_scratch(layout.limits)
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
            log_scales[node] = send_to_variable(
                e, factor_offsets[f], factor_offsets[f + 1], table_offsets[f], message_offsets, table_strides,
                log_tables, variable_to_factor, factor_to_variable, maximise, scores, walk, sums, no_cells,
            )  # fmt: skip
            continue
        at = value_offsets[node]
        card = value_offsets[node + 1] - at
        first, last = variable_offsets[node], variable_offsets[node + 1]
        out, start = (variable_to_factor, message_offsets[e]) if e >= 0 else (belief, np.int64(0))
        send_to_factor(
            e, first, last, variable_edges, message_offsets, factor_to_variable, likelihood, at, card, out,
            start,
        )  # fmt: skip
        if e < 0:
            log_scales[node] = reduce_scores(belief, 0, card, maximise)


@kernel
def distribute(
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
    scores, walk, sums = message_scratch(layout.limits)
    no_cells = np.empty(0, np.int64)
    total = np.empty(layout.limits[1])
    for i in range(begin, end):
        node = order[i]
        if node < n:
            at = value_offsets[node]
            card = value_offsets[node + 1] - at
            send_to_all_factors(
                variable_offsets[node], variable_offsets[node + 1], variable_edges, message_offsets,
                variable_to_factor, factor_to_variable, likelihood, at, card, total,
            )  # fmt: skip
            write_belief(total, card, maximise, beliefs, at)
            continue
        f = node - n
        first, last = factor_offsets[f], factor_offsets[f + 1]
        for e in range(first, last):
            if e != parent_edge[node]:
                send_to_variable(
                    e, first, last, table_offsets[f], message_offsets, table_strides, log_tables,
                    variable_to_factor, factor_to_variable, maximise, scores, walk, sums, no_cells,
                )  # fmt: skip


@kernel
def backtrack(
    layout, order, parent_edge, begin, end, log_tables, likelihood, variable_to_factor, factor_to_variable,
    states,
):  # fmt: skip
    """After `collect` with maxima: the best states, each factor choosing for its children given its parent's.

    Choosing factor by factor keeps ties consistent; choosing each variable by its max-marginal would not.
    """
    edge_variable, message_offsets = layout.edge_variable, layout.message_offsets
    value_offsets, variable_offsets = layout.value_offsets, layout.variable_offsets
    n = len(value_offsets) - 1
    scores, walk, sums = message_scratch(layout.limits)
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
                send_to_factor(
                    e, first, last, layout.variable_edges, message_offsets, factor_to_variable, likelihood,
                    at, card, belief, np.int64(0),
                )  # fmt: skip
                states[node] = best_index(belief, card)
            continue
        if e < 0:
            continue
        f = node - n
        n_axes = other_axes(layout.factor_offsets[f], layout.factor_offsets[f + 1], e, walk, 0)
        base = layout.table_offsets[f] + layout.table_strides[e] * states[edge_variable[e]]
        count = fill_scores(
            base, n_axes, -1, message_offsets, layout.table_strides, log_tables, variable_to_factor, scores,
            walk, sums, no_cells,
        )  # fmt: skip
        best = best_index(scores, count)
        for a in range(n_axes - 1, -1, -1):
            other = walk[AXIS, a]
            card = message_offsets[other + 1] - message_offsets[other]
            states[edge_variable[other]] = best % card
            best //= card


@kernel
def _factor_belief(
    first, last, base, message_offsets, table_strides, log_tables, variable_to_factor, scores, walk, sums, cells
):
    """scores = joint distribution of a factor's variables (Andres 6.40), last axis fastest; its length."""
    if last - first == 1 and len(cells) > 0:
        count = message_offsets[last] - message_offsets[first]
        for i in range(count):
            cells[i] = base + i * table_strides[first]
            scores[i] = log_tables[cells[i]] + variable_to_factor[message_offsets[first] + i]
    elif last - first == 2 and len(cells) > 0:
        # Most factors are pairs or of one variable, and the walk over axes costs more than their few cells.
        step, above, below = table_strides[first + 1], message_offsets[first], message_offsets[last - 1]
        n, row = below - above, message_offsets[last] - below
        count = n * row
        for i in range(n):
            cell, so_far = base + i * table_strides[first], variable_to_factor[above + i]
            for j in range(row):
                scores[i * row + j] = log_tables[cell + j * step] + (variable_to_factor[below + j] + so_far)
                cells[i * row + j] = cell + j * step
    else:
        n_axes = other_axes(first, last, -1, walk, 0)
        count = fill_scores(
            base, n_axes, -1, message_offsets, table_strides, log_tables, variable_to_factor, scores, walk, sums, cells,
        )  # fmt: skip
    write_belief(scores, count, False, scores, 0)
    return count


@kernel
def factor_belief(layout, f, log_tables, variable_to_factor):
    """Joint distribution of a factor's variables (Andres 6.40), flat, last axis fastest."""
    scores, walk, sums = message_scratch(layout.limits)
    no_cells = np.empty(0, np.int64)
    count = _factor_belief(
        layout.factor_offsets[f], layout.factor_offsets[f + 1], layout.table_offsets[f], layout.message_offsets,
        layout.table_strides, log_tables, variable_to_factor, scores, walk, sums, no_cells,
    )  # fmt: skip
    return scores[:count].copy()


@kernel
def add_counts(layout, begin, end, log_tables, variable_to_factor, counts):
    """Add to every pool cell the probability that each of the factors ``begin:end`` reads it."""
    factor_offsets, table_offsets = layout.factor_offsets, layout.table_offsets
    message_offsets, table_strides = layout.message_offsets, layout.table_strides
    scores, walk, sums = message_scratch(layout.limits)
    cells = np.empty(len(scores), np.int64)
    for f in range(begin, end):
        count = _factor_belief(
            factor_offsets[f], factor_offsets[f + 1], table_offsets[f], message_offsets, table_strides, log_tables,
            variable_to_factor, scores, walk, sums, cells,
        )  # fmt: skip
        for j in range(count):
            counts[cells[j]] += scores[j]
