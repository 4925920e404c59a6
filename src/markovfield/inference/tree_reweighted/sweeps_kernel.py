"""Tree-reweighted messages on a graph of pairs: sweeps, the bound from explicit trees, pseudo-marginals.

An edge joins two nodes and has two *half-edges*, ``2 e`` and ``2 e + 1``. Half-edge h carries a log message on the
states of its own node, and any messages at all leave the total score as it is: what they add to the nodes they take
from the edges. With ``held`` the node potentials plus their messages, the score that spanning tree T is given is
``held`` on every node and (edge - its two messages) / probability on the edges of T. The average of these scores over
the trees is the model's, whatever the messages, so the average of the trees' log Z bounds log Z from above.

A *projection* joins an auxiliary node, whose states are the cells of a table, to a variable of that table: a cell
agrees with one state of it. Both its messages are vectors over the variable's states.

Free to change: `NEXT_TO_NOTHING`, and the special cases for two states.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.logarithm import log_scalar

__all__ = [
    "FIRST_IS_CELLS",
    "SECOND_IS_CELLS",
    "TABLE",
    "PairLayout",
    "backtrack_tree",
    "edge_score",
    "fill_linear",
    "hold",
    "sweep",
    "tree_value",
]

# What an edge is: a table, or a projection whose auxiliary node is at its first or its second half.
TABLE, FIRST_IS_CELLS, SECOND_IS_CELLS = 0, 1, 2
# Sums of products that are smaller are done again in log space: something may have underflowed.
NEXT_TO_NOTHING = 1e-250


class PairLayout(NamedTuple):
    """Nodes and edges of a graph of pairs.

    Nodes are numbered in breadth-first order, component after component; component c is the nodes
    ``component_offsets[c] .. component_offsets[c + 1]``. The states of node i start at ``value_offsets[i]``, its
    half-edges are ``adjacency[adjacency_offsets[i] : adjacency_offsets[i + 1]]``, the message of half-edge h starts at
    ``message_offsets[h]``. A table's cell is ``base + stride * state + stride * state`` in the pool; of a projection,
    ``cell_states[base + cell]`` is the variable's state that a cell agrees with.
    """

    value_offsets: npt.NDArray[np.int64]
    component_offsets: npt.NDArray[np.int64]
    adjacency_offsets: npt.NDArray[np.int64]
    adjacency: npt.NDArray[np.int64]
    half_node: npt.NDArray[np.int32]
    half_stride: npt.NDArray[np.int64]
    message_offsets: npt.NDArray[np.int64]
    edge_base: npt.NDArray[np.int64]
    edge_kind: npt.NDArray[np.int8]
    cell_states: npt.NDArray[np.int32]
    log_pool: npt.NDArray[np.float64]
    most_states: int


@kernel
def _add_up_cells(card, size, base, cell_states, source, at, maximise, tops, out):  # type: ignore[no-untyped-def]
    """out[j] = the sum, or the maximum, of the scores of the cells that agree with state j of the variable."""
    for j in range(size):
        tops[j] = -np.inf
        out[j] = 0.0
    for i in range(card):
        j = cell_states[base + i]
        tops[j] = max(tops[j], source[at + i])
    if not maximise:
        for i in range(card):
            j = cell_states[base + i]
            if tops[j] > -np.inf:
                out[j] += exp_scalar(source[at + i] - tops[j])
    for j in range(size):
        out[j] = tops[j] + math.log(out[j]) if not maximise and tops[j] > -np.inf else tops[j]


@kernel
def _send(  # type: ignore[no-untyped-def]
    h, inverse, source, at, value_offsets, half_node, half_stride, message_offsets, edge_base, edge_kind, cell_states,
    log_pool, messages, linear_at, linear, maximise, weights, scores, out,
):  # fmt: skip
    """out = what node ``half_node[h]`` says along h's edge, given its scores ``source[at:]``; its length.

    The sum, or the maximum, over the node's states of (edge - message of h) / probability + source. Sums go through
    the table in linear space where there is one, and back to logs where that leaves next to nothing.
    """
    e = h >> 1
    node = half_node[h]
    card = value_offsets[node + 1] - value_offsets[node]
    message = message_offsets[h]
    kind = edge_kind[e]
    other = h ^ 1
    size = message_offsets[other + 1] - message_offsets[other]
    if kind == TABLE:
        base, own, step = edge_base[e], half_stride[h], half_stride[other]
        for i in range(card):
            weights[i] = source[at + i] - messages[message + i] * inverse
        if not maximise and linear_at[e] >= 0:
            highest = -np.inf
            for i in range(card):
                highest = max(highest, weights[i])
            if highest > -np.inf:
                for i in range(card):
                    scores[i] = exp_scalar(weights[i] - highest)
            else:
                for i in range(card):
                    scores[i] = 0.0
            highest += linear[linear_at[e]]
            cells = linear[linear_at[e] + 1 : linear_at[e] + 1 + card * size]
            # In two dimensions, so that the compiler knows no index to be negative.
            if h & 1:
                table = cells.reshape((size, card))
                for j in range(size):
                    total = 0.0
                    for i in range(card):
                        total += table[j, i] * scores[i]
                    out[j] = total
            else:
                table = cells.reshape((card, size))
                for j in range(size):
                    out[j] = 0.0
                for i in range(card):
                    w = scores[i]
                    for j in range(size):
                        out[j] += table[i, j] * w
            sums = True
            for j in range(size):
                sums = sums and out[j] > NEXT_TO_NOTHING
            if sums:
                # All at once, which the compiler does in lanes: libm's log is a call per number.
                for j in range(size):
                    out[j] = highest + log_scalar(out[j])
                return size
        for j in range(size):
            if not maximise and linear_at[e] >= 0 and out[j] > NEXT_TO_NOTHING:
                out[j] = highest + math.log(out[j])
                continue
            cell = base + j * step
            top = -np.inf
            for i in range(card):
                scores[i] = log_pool[cell + i * own] * inverse + weights[i]
                top = max(top, scores[i])
            if not maximise and top > -np.inf:
                total = 0.0
                for i in range(card):
                    total += exp_scalar(scores[i] - top)
                top += math.log(total)
            out[j] = top
        return size
    if (kind == FIRST_IS_CELLS) == ((h & 1) == 0):
        _add_up_cells(card, size, edge_base[e], cell_states, source, at, maximise, scores, out)
        for j in range(size):
            out[j] -= messages[message + j] * inverse
        return size
    for j in range(size):
        out[j] = source[at + j] - messages[message + j] * inverse
    return size


@kernel
def fill_linear(layout, rho, edges, starts, linear):  # type: ignore[no-untyped-def]
    """linear[starts[k]] = the largest log of a table over its probability; then the table over it, in linear space."""
    for k in range(len(edges)):
        e = edges[k]
        first, second = layout.half_node[2 * e], layout.half_node[2 * e + 1]
        rows = layout.value_offsets[first + 1] - layout.value_offsets[first]
        columns = layout.value_offsets[second + 1] - layout.value_offsets[second]
        one, two = layout.half_stride[2 * e], layout.half_stride[2 * e + 1]
        inverse, base, at = 1.0 / rho[e], layout.edge_base[e], starts[k] + 1
        top = -np.inf
        for i in range(rows):
            for j in range(columns):
                value = layout.log_pool[base + i * one + j * two] * inverse
                linear[at + i * columns + j] = value
                top = max(top, value)
        for c in range(rows * columns):
            linear[at + c] = exp_scalar(linear[at + c] - top)
        linear[starts[k]] = top


@kernel
def _receives_cells(kind, h):  # type: ignore[no-untyped-def]
    """Whether half-edge h is the auxiliary end of a projection."""
    return (kind == FIRST_IS_CELLS and (h & 1) == 0) or (kind == SECOND_IS_CELLS and (h & 1) == 1)


@kernel
def hold(layout, node_log, messages, held):  # type: ignore[no-untyped-def]
    """held = node potentials plus the messages on all their half-edges."""
    for i in range(len(node_log)):
        held[i] = node_log[i]
    for h in range(len(layout.half_node)):
        node = layout.half_node[h]
        at, message = layout.value_offsets[node], layout.message_offsets[h]
        if _receives_cells(layout.edge_kind[h >> 1], h):
            base = layout.edge_base[h >> 1]
            for i in range(layout.value_offsets[node + 1] - at):
                held[at + i] += messages[message + layout.cell_states[base + i]]
        else:
            for i in range(layout.value_offsets[node + 1] - at):
                held[at + i] += messages[message + i]


@kernel
def _settle(  # type: ignore[no-untyped-def]
    h, size, rho, keep, out, value_offsets, half_node, message_offsets, edge_base, edge_kind, cell_states, messages,
    node_log, held,
):  # fmt: skip
    """The message of half-edge h becomes rho * out, its largest entry zero; returns the largest change.

    A state that nothing across the edge agrees with is impossible: its potential becomes -inf, and messages stay
    finite. The change is -1 where no state is left.
    """
    top = -np.inf
    for j in range(size):
        top = max(top, out[j])
    if top == -np.inf:
        return -1.0
    message = message_offsets[h]
    change = 0.0
    excluded = False
    for j in range(size):
        if out[j] == -np.inf:
            excluded = True
            continue
        old = messages[message + j]
        step = (rho * (out[j] - top) - old) * keep
        messages[message + j] = old + step
        change = max(change, abs(step))
        out[j] = step
    node = half_node[h]
    at = value_offsets[node]
    if _receives_cells(edge_kind[h >> 1], h):
        base = edge_base[h >> 1]
        for i in range(value_offsets[node + 1] - at):
            held[at + i] += out[cell_states[base + i]]
    else:
        for j in range(size):
            held[at + j] += out[j]
    if excluded:
        for i in range(at, value_offsets[node + 1]):
            if held[i] == -np.inf:
                node_log[i] = -np.inf
    return change


@kernel
def sweep(layout, rho, linear_at, linear, keep, maximise, active, messages, node_log, held, changes):  # type: ignore[no-untyped-def]
    """Send all messages of the active components once towards their first nodes, and once back.

    ``keep`` is one less the damping; ``changes[c]`` becomes the largest change of a message in component c, or -1
    where it was found to be impossible. On a tree one sweep is exact.
    """
    value_offsets, component_offsets = layout.value_offsets, layout.component_offsets
    adjacency_offsets, adjacency = layout.adjacency_offsets, layout.adjacency
    half_node, half_stride, message_offsets = layout.half_node, layout.half_stride, layout.message_offsets
    edge_base, edge_kind, cell_states, log_pool = (
        layout.edge_base,
        layout.edge_kind,
        layout.cell_states,
        layout.log_pool,
    )
    weights, scores, out = np.empty(layout.most_states), np.empty(layout.most_states), np.empty(layout.most_states)
    for c in range(len(component_offsets) - 1):
        if not active[c]:
            continue
        first, count = component_offsets[c], component_offsets[c + 1] - component_offsets[c]
        largest = 0.0
        for turn in range(2 * count):
            backward = turn < count
            node = first + count - 1 - turn if backward else first + turn - count
            at = value_offsets[node]
            binary = value_offsets[node + 1] - at == 2
            for k in range(adjacency_offsets[node], adjacency_offsets[node + 1]):
                h = adjacency[k]
                other = h ^ 1
                across = np.int64(half_node[other])
                if (across < node) != backward:
                    continue
                e = h >> 1
                to = value_offsets[across]
                if binary and edge_kind[e] == TABLE and value_offsets[across + 1] - to == 2:
                    # Two states on both sides, written out: calls with this many arrays cost more than the message.
                    inverse = 1.0 / rho[e]
                    own, message, cell = half_stride[h], message_offsets[h], edge_base[e]
                    w0 = held[at] - messages[message] * inverse
                    w1 = held[at + 1] - messages[message + 1] * inverse
                    a, b = log_pool[cell] * inverse + w0, log_pool[cell + own] * inverse + w1
                    cell += half_stride[other]
                    c0, d0 = log_pool[cell] * inverse + w0, log_pool[cell + own] * inverse + w1
                    one, two = max(a, b), max(c0, d0)
                    if one > -np.inf and two > -np.inf:
                        step = one - two
                        if not maximise:
                            step += math.log(
                                (1.0 + exp_scalar(min(a, b) - one)) / (1.0 + exp_scalar(min(c0, d0) - two))
                            )
                        step *= rho[e]
                        message = message_offsets[other]
                        one = (min(step, 0.0) - messages[message]) * keep
                        two = (min(-step, 0.0) - messages[message + 1]) * keep
                        messages[message] += one
                        messages[message + 1] += two
                        held[to] += one
                        held[to + 1] += two
                        largest = max(largest, abs(one), abs(two))
                        continue
                size = _send(
                    h, 1.0 / rho[e], held, at, value_offsets, half_node, half_stride, message_offsets, edge_base,
                    edge_kind, cell_states, log_pool, messages, linear_at, linear, maximise, weights, scores, out,
                )  # fmt: skip
                change = _settle(
                    other, size, rho[e], keep, out, value_offsets, half_node, message_offsets, edge_base, edge_kind,
                    cell_states, messages, node_log, held,
                )  # fmt: skip
                if change < 0.0:
                    changes[c] = -1.0
                    return
                largest = max(largest, change)
        changes[c] = largest


@kernel
def tree_value(layout, rho, linear_at, linear, order, parent_half, messages, held, maximise, collected, values):  # type: ignore[no-untyped-def]
    """values[c] = log Z, or the best score, of component c under one spanning forest.

    ``order`` has every node after its parent, ``parent_half[node]`` is the half-edge at the node that leads to its
    parent, -1 at the root. ``collected`` is left with each node's scores and what its children said.
    """
    value_offsets, half_node, half_stride = layout.value_offsets, layout.half_node, layout.half_stride
    message_offsets, edge_base, edge_kind = layout.message_offsets, layout.edge_base, layout.edge_kind
    cell_states, log_pool = layout.cell_states, layout.log_pool
    weights, scores, out = np.empty(layout.most_states), np.empty(layout.most_states), np.empty(layout.most_states)
    for i in range(len(held)):
        collected[i] = held[i]
    component = len(values)
    for k in range(len(order) - 1, -1, -1):
        node = order[k]
        at = value_offsets[node]
        h = parent_half[node]
        if h < 0:
            top = -np.inf
            for i in range(at, value_offsets[node + 1]):
                top = max(top, collected[i])
            if not maximise and top > -np.inf:
                total = 0.0
                for i in range(at, value_offsets[node + 1]):
                    total += exp_scalar(collected[i] - top)
                top += math.log(total)
            # Roots come in the order of their components.
            component -= 1
            values[component] = top
            continue
        inverse = 1.0 / rho[h >> 1]
        other = h ^ 1
        above = np.int64(half_node[other])
        to = value_offsets[above]
        message = message_offsets[other]
        if value_offsets[node + 1] - at == 2 and edge_kind[h >> 1] == TABLE and value_offsets[above + 1] - to == 2:
            own, cell, mine = half_stride[h], edge_base[h >> 1], message_offsets[h]
            w0 = collected[at] - messages[mine] * inverse
            w1 = collected[at + 1] - messages[mine + 1] * inverse
            for j in range(2):
                a, b = log_pool[cell] * inverse + w0, log_pool[cell + own] * inverse + w1
                top = max(a, b)
                if not maximise and top > -np.inf:
                    top += math.log(1.0 + exp_scalar(min(a, b) - top))
                collected[to + j] += top - messages[message + j] * inverse
                cell += half_stride[other]
            continue
        size = _send(
            h, inverse, collected, at, value_offsets, half_node, half_stride, message_offsets, edge_base, edge_kind,
            cell_states, log_pool, messages, linear_at, linear, maximise, weights, scores, out,
        )  # fmt: skip
        for j in range(size):
            out[j] -= messages[message + j] * inverse
        if _receives_cells(edge_kind[h >> 1], other):
            base = edge_base[h >> 1]
            for i in range(value_offsets[above + 1] - to):
                collected[to + i] += out[cell_states[base + i]]
        else:
            for j in range(size):
                collected[to + j] += out[j]


@kernel
def edge_score(layout, h, inverse, messages, own, other):  # type: ignore[no-untyped-def]
    """(edge - its messages) / probability, at state ``own`` of h's node and ``other`` of the node across."""
    e = h >> 1
    kind = layout.edge_kind[e]
    base = layout.edge_base[e]
    if kind == TABLE:
        value = layout.log_pool[base + layout.half_stride[h] * own + layout.half_stride[h ^ 1] * other]
    elif _receives_cells(kind, h):
        own = np.int64(layout.cell_states[base + own])
        value = 0.0 if own == other else -np.inf
    else:
        other = np.int64(layout.cell_states[base + other])
        value = 0.0 if own == other else -np.inf
    return (
        value - messages[layout.message_offsets[h] + own] - messages[layout.message_offsets[h ^ 1] + other]
    ) * inverse


@kernel
def backtrack_tree(layout, rho, order, parent_half, messages, collected, states):  # type: ignore[no-untyped-def]
    """After `tree_value` with maxima: the states of a best assignment of the forest."""
    for k in range(len(order)):
        node = order[k]
        h = parent_half[node]
        at = layout.value_offsets[node]
        best, top = np.int64(0), -np.inf
        for i in range(layout.value_offsets[node + 1] - at):
            score = collected[at + i]
            if h >= 0:
                score += edge_score(layout, h, 1.0 / rho[h >> 1], messages, i, states[layout.half_node[h ^ 1]])
            if score > top:
                best, top = np.int64(i), score
        states[node] = best
