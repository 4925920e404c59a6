"""Single messages on the edges of a factor graph in log space: sums or maxima of products.

Invariant: edges as in `edges_kernel`. Messages from factors are shifted so that their largest entry is zero; those from
variables are plain sums of what the variable received. Functions take plain arrays, not the layout: reading a field of
a tuple counts references, at a cost of the order of a small message.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_sum

__all__ = [
    "AXIS",
    "best_index",
    "fill_scores",
    "message_scratch",
    "other_axes",
    "reduce_scores",
    "send_to_all_factors",
    "send_to_factor",
    "send_to_variable",
    "write_belief",
]

AXIS, STATE, CELL = 0, 1, 2


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
