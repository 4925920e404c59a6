"""What the messages of a loopy factor graph say: beliefs, the Bethe free energy term by term, expected counts, states.

Components of the graph that ran in log space (``in_logs``, by component) have logs for messages; all others sum to one.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.inference.belief_propagation.log_messages_kernel import (
    best_index,
    fill_scores,
    message_scratch,
    other_axes,
    reduce_scores,
    send_to_variable,
    write_belief,
)
from markovfield.inference.belief_propagation.tables_kernel import HUGE, TINY
from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = [
    "decide",
    "edge_term",
    "factor_terms",
    "linear_tables",
    "loopy_counts",
    "table_ranges",
    "unary_potentials",
    "variable_terms",
    "walk_components",
]


@kernel
def walk_components(layout):
    """Breadth first over the variables: their order, the connected component of each, and how many there are."""
    n = len(layout.value_offsets) - 1
    order, component = np.empty(n, np.int64), np.full(n, -1, np.int32)
    seen = np.zeros(len(layout.table_offsets), np.bool_)
    filled, n_components = 0, 0
    for root in range(n):
        if component[root] >= 0:
            continue
        component[root] = n_components
        order[filled] = root
        at = filled
        filled += 1
        while at < filled:
            v = order[at]
            at += 1
            for k in range(layout.variable_offsets[v], layout.variable_offsets[v + 1]):
                f = layout.edge_factor[layout.variable_edges[k]]
                if seen[f]:
                    continue
                seen[f] = True
                for e in range(layout.factor_offsets[f], layout.factor_offsets[f + 1]):
                    u = layout.edge_variable[e]
                    if component[u] < 0:
                        component[u] = n_components
                        order[filled] = u
                        filled += 1
        n_components += 1
    return order, component, n_components


@kernel
def table_ranges(layout, n_tables, log_tables):
    """Smallest finite and largest log-potential of the first factors (0 and 0 without any), and which have -inf."""
    low, high, zeros = np.zeros(n_tables), np.zeros(n_tables), np.zeros(n_tables, np.bool_)
    walk = np.zeros(layout.limits[0] + 1, np.int64)
    for f in range(n_tables):
        first, last = layout.factor_offsets[f], layout.factor_offsets[f + 1]
        same = f > 0 and layout.table_offsets[f] == layout.table_offsets[f - 1]
        same = same and last - first == first - layout.factor_offsets[f - 1]
        for e in range(first, last):
            before = e - (last - first)
            same = same and layout.table_strides[e] == layout.table_strides[before]
            same = same and _states(layout, e) == _states(layout, before)
        if same:
            low[f], high[f], zeros[f] = low[f - 1], high[f - 1], zeros[f - 1]
            continue
        cell = layout.table_offsets[f]
        stride, card = layout.table_strides[last - 1], _states(layout, last - 1)
        smallest, largest = np.inf, -np.inf
        a = 0
        while a >= 0:
            for j in range(card):
                x = log_tables[cell + j * stride]
                largest = max(largest, x)
                if x > -np.inf:
                    smallest = min(smallest, x)
                else:
                    zeros[f] = True
            a = last - first - 2
            while a >= 0:
                walk[a] += 1
                cell += layout.table_strides[first + a]
                if walk[a] < _states(layout, first + a):
                    break
                cell -= layout.table_strides[first + a] * walk[a]
                walk[a] = 0
                a -= 1
        if largest > -np.inf:
            low[f], high[f] = smallest, largest
    return low, high, zeros


@kernel
def _states(layout, e):
    return layout.message_offsets[e + 1] - layout.message_offsets[e]


@kernel
def linear_tables(log_tables, shift, out):
    """out = exp(log_tables - shift), cut off where it would be beyond use: those tables are not read."""
    for i in range(len(log_tables)):
        out[i] = exp_scalar(min(log_tables[i] - shift, 600.0))


@kernel
def unary_potentials(
    value_offsets, unary_variable, unary_offset, unary_stride, log_tables, states, unary, linear, scales
):
    """Add factors of one variable and what was observed to ``unary``; also in linear space, the largest entry one.

    ``unary`` comes with the log-likelihoods of virtual evidence, ``states`` holds observed states or -1, ``scales``
    gets what was taken out of ``linear``. Answers a variable that has no state left, or -1.
    """
    for u in range(len(unary_variable)):
        at = value_offsets[unary_variable[u]]
        for i in range(value_offsets[unary_variable[u] + 1] - at):
            unary[at + i] += log_tables[unary_offset[u] + i * unary_stride[u]]
    for v in range(len(value_offsets) - 1):
        at, end = value_offsets[v], value_offsets[v + 1]
        top = -np.inf
        for i in range(at, end):
            if states[v] >= 0 and i - at != states[v]:
                unary[i] = -np.inf
            top = max(top, unary[i])
        if top == -np.inf:
            return v
        scales[v] = top
        for i in range(at, end):
            linear[i] = exp_scalar(unary[i] - top)
    return np.int64(-1)


@kernel
def variable_terms(
    layout, begin, end, unary, linear, scales, factor_to_variable, component, in_logs, maximise, beliefs, terms
):
    """Beliefs of variables (max-marginals less the best, where maximised), and the log of each one's total."""
    total = np.empty(layout.limits[1])
    for v in range(begin, end):
        at = layout.value_offsets[v]
        card = layout.value_offsets[v + 1] - at
        shift = 0.0
        logs = in_logs[component[v]]
        for i in range(card):
            total[i] = unary[at + i] if logs else linear[at + i]
        for k in range(layout.variable_offsets[v], layout.variable_offsets[v + 1]):
            to = layout.message_offsets[layout.variable_edges[k]]
            whole = 1.0
            if logs:
                for i in range(card):
                    total[i] += factor_to_variable[to + i]
            else:
                whole = 0.0
                for i in range(card):
                    total[i] *= factor_to_variable[to + i]
                    whole += total[i]
            if whole < TINY and whole > 0.0:
                for i in range(card):
                    total[i] *= HUGE
                shift -= math.log(HUGE)
        if logs:
            terms[v] = reduce_scores(total, 0, card, maximise)
            write_belief(total, card, maximise, beliefs, at)
            continue
        whole, top = 0.0, 0.0
        for i in range(card):
            whole += total[i]
            top = max(top, total[i])
        terms[v] = math.log(top if maximise else whole) + shift + scales[v]
        for i in range(card):
            if maximise:
                beliefs[at + i] = math.log(total[i] / top) if total[i] > 0.0 else -np.inf
            else:
                beliefs[at + i] = total[i] / whole


@kernel
def edge_term(layout, e, variable_to_factor, factor_to_variable, logs, scores):
    """Log of the sum of the products of both messages of an edge."""
    at = layout.message_offsets[e]
    card = layout.message_offsets[e + 1] - at
    if logs:
        for i in range(card):
            scores[i] = variable_to_factor[at + i] + factor_to_variable[at + i]
        return reduce_scores(scores, 0, card, False)
    total = 0.0
    for i in range(card):
        total += variable_to_factor[at + i] * factor_to_variable[at + i]
    return math.log(total) if total > 0.0 else -np.inf


@kernel
def _cell_products(layout, f, variable_to_factor, scores, cells):
    """Products of the messages to a factor over all its cells, last axis fastest, and where those lie; how many.

    Axis by axis and in place: what is written lies at or after what is still to be read.
    """
    scores[0], cells[0] = 1.0, layout.table_offsets[f]
    count = 1
    for e in range(layout.factor_offsets[f], layout.factor_offsets[f + 1]):
        at, stride = layout.message_offsets[e], layout.table_strides[e]
        card = layout.message_offsets[e + 1] - at
        for c in range(count - 1, -1, -1):
            weight, cell = scores[c], cells[c]
            for i in range(card - 1, -1, -1):
                scores[c * card + i] = weight * variable_to_factor[at + i]
                cells[c * card + i] = cell + i * stride
        count *= card
    return count


@kernel
def _factor_scores(layout, f, tables, log_tables, variable_to_factor, logs, scores, cells, walk, sums):
    """scores = joint distribution of a factor's variables, cells = where they are read; log of the total, count."""
    if logs:
        n_axes = other_axes(layout.factor_offsets[f], layout.factor_offsets[f + 1], -1, walk, 0)
        count = fill_scores(
            layout.table_offsets[f], n_axes, -1, layout.message_offsets, layout.table_strides, log_tables,
            variable_to_factor, scores, walk, sums, cells,
        )  # fmt: skip
        total = reduce_scores(scores, 0, count, False)
        write_belief(scores, count, False, scores, 0)
        return total, count
    count = _cell_products(layout, f, variable_to_factor, scores, cells)
    whole = 0.0
    for j in range(count):
        scores[j] *= tables[cells[j]]
        whole += scores[j]
    if not whole > 0.0:
        return -np.inf, count
    for j in range(count):
        scores[j] /= whole
    return math.log(whole), count


@kernel
def factor_terms(
    layout, begin, end, tables, log_tables, shift, variable_to_factor, factor_to_variable, component, in_logs, terms
):
    """For each factor ``begin:end`` the log of its total, less what both its and its variables' totals count."""
    scores, walk, sums = message_scratch(layout.limits)
    scores = np.empty(max(len(scores), layout.limits[1]))
    cells = np.empty(len(scores), np.int64)
    for f in range(begin, end):
        first, last = layout.factor_offsets[f], layout.factor_offsets[f + 1]
        logs = in_logs[component[layout.edge_variable[first]]]
        if last - first == 2 and not logs:
            x_at, y_at = layout.message_offsets[first], layout.message_offsets[first + 1]
            n_y = layout.message_offsets[last] - y_at
            stride, whole = layout.table_strides[first + 1], 0.0
            for i in range(y_at - x_at):
                row, total = layout.table_offsets[f] + i * layout.table_strides[first], 0.0
                for j in range(n_y):
                    total += tables[row + j * stride] * variable_to_factor[y_at + j]
                whole += total * variable_to_factor[x_at + i]
            term = math.log(whole) + shift if whole > 0.0 else -np.inf
        else:
            term, _ = _factor_scores(layout, f, tables, log_tables, variable_to_factor, logs, scores, cells, walk, sums)
            if not logs:
                term += shift
        for e in range(first, last):
            term -= edge_term(layout, e, variable_to_factor, factor_to_variable, logs, scores)
        terms[f] = term


@kernel
def loopy_counts(layout, begin, end, tables, log_tables, variable_to_factor, component, in_logs, counts):
    """Add to every pool cell the probability that each of the factors ``begin:end`` reads it."""
    scores, walk, sums = message_scratch(layout.limits)
    cells = np.empty(len(scores), np.int64)
    for f in range(begin, end):
        logs = in_logs[component[layout.edge_variable[layout.factor_offsets[f]]]]
        _, count = _factor_scores(layout, f, tables, log_tables, variable_to_factor, logs, scores, cells, walk, sums)
        for j in range(count):
            counts[cells[j]] += scores[j]


@kernel
def decide(layout, order, begin, end, log_tables, unary, variable_to_factor, factor_to_variable, states):
    """Choose states one variable after the other, each given those chosen before; messages are logs of maxima.

    A chosen state goes to the variable's factors as certain, so that ties are broken alike all over the graph.
    """
    scores, walk, sums = message_scratch(layout.limits)
    none = np.empty(0, np.int64)
    total = np.empty(layout.limits[1])
    for i in range(begin, end):
        v = order[i]
        at = layout.value_offsets[v]
        card = layout.value_offsets[v + 1] - at
        for j in range(card):
            total[j] = unary[at + j]
        for k in range(layout.variable_offsets[v], layout.variable_offsets[v + 1]):
            e = layout.variable_edges[k]
            f = layout.edge_factor[e]
            send_to_variable(
                e, layout.factor_offsets[f], layout.factor_offsets[f + 1], layout.table_offsets[f],
                layout.message_offsets, layout.table_strides, log_tables, variable_to_factor, factor_to_variable,
                True, scores, walk, sums, none,
            )  # fmt: skip
            to = layout.message_offsets[e]
            for j in range(card):
                total[j] += factor_to_variable[to + j]
        best = best_index(total, card)
        states[v] = best
        for k in range(layout.variable_offsets[v], layout.variable_offsets[v + 1]):
            to = layout.message_offsets[layout.variable_edges[k]]
            for j in range(card):
                variable_to_factor[to + j] = 0.0 if j == best else -np.inf
