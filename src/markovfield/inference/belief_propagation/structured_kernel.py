"""Structured factors in loopy belief propagation: messages, Bethe terms and statistics without their table.

Structured factors work in log space. Where a component of the graph runs in linear space, logs are taken on the way in
and exponentials on the way out.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.factors.dispatch_kernel import (
    structured_factor_messages,
    structured_statistics,
    structured_work_size,
)
from markovfield.inference.belief_propagation.beliefs_kernel import edge_term
from markovfield.inference.belief_propagation.log_messages_kernel import best_index, message_scratch, send_to_variable
from markovfield.inference.belief_propagation.logs_kernel import keep_logs
from markovfield.inference.belief_propagation.tables_kernel import CONTRADICTION, LOW, keep_message
from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = ["decide_structured", "structured_counts", "structured_terms", "structured_to_variables"]


@kernel
def _work_space(layout, begin, end, kind):
    """Cardinalities of each edge, and scratch for the largest factor: its own, and messages in and out."""
    cards = np.empty(len(layout.edge_variable), np.int64)
    for e in range(layout.factor_offsets[begin], layout.factor_offsets[end]):
        cards[e] = layout.message_offsets[e + 1] - layout.message_offsets[e]
    size, widest = 1, 1
    for f in range(begin, end):
        first, last = layout.factor_offsets[f], layout.factor_offsets[f + 1]
        needed = structured_work_size(kind[f], last - first, cards[first:last], layout.table_strides[first:last])
        size = max(size, needed)
        widest = max(widest, layout.message_offsets[last] - layout.message_offsets[first])
    return cards, np.empty(size), np.empty(widest), np.empty(widest)


@kernel
def _read_logs(messages, at, end, logs, out):
    for i in range(end - at):
        x = messages[at + i]
        if logs:
            out[i] = x
        else:
            out[i] = math.log(x) if x > 0.0 else -np.inf


@kernel
def structured_to_variables(
    layout, begin, end, kind, log_tables, variable_to_factor, factor_to_variable, component, active, in_logs, damping,
    maximise, floor, residuals, flags,
):  # fmt: skip
    """As `factors_to_variables`, for factors of any kind but plain tables."""
    cards, work, incoming, fresh = _work_space(layout, begin, end, kind)
    for f in range(begin, end):
        first, last = layout.factor_offsets[f], layout.factor_offsets[f + 1]
        c = component[layout.edge_variable[first]]
        if not active[c]:
            continue
        at, stop = layout.message_offsets[first], layout.message_offsets[last]
        logs = in_logs[c]
        _read_logs(variable_to_factor, at, stop, logs, incoming)
        total = structured_factor_messages(
            kind[f], last - first, cards[first:last], layout.table_strides[first:last], log_tables,
            layout.table_offsets[f], incoming[: stop - at], fresh[: stop - at], maximise, work,
        )  # fmt: skip
        if total == -np.inf:
            flags[c] |= CONTRADICTION
            continue
        if not logs:
            for i in range(stop - at):
                if fresh[i] < -600.0 and fresh[i] > -np.inf:
                    flags[c] |= LOW
                fresh[i] = exp_scalar(fresh[i])
        for e in range(first, last):
            start, after = layout.message_offsets[e], layout.message_offsets[e + 1]
            new, kept = fresh[start - at : after - at], factor_to_variable[start:after]
            moved, flag = keep_logs(new, kept, damping) if logs else keep_message(new, kept, damping, floor)
            residuals[c] = max(residuals[c], moved)
            flags[c] |= flag


@kernel
def structured_terms(
    layout, begin, end, kind, log_tables, variable_to_factor, factor_to_variable, component, in_logs, terms
):
    """As `factor_terms`."""
    cards, work, incoming, fresh = _work_space(layout, begin, end, kind)
    scores = np.empty(layout.limits[1])
    for f in range(begin, end):
        first, last = layout.factor_offsets[f], layout.factor_offsets[f + 1]
        at, stop = layout.message_offsets[first], layout.message_offsets[last]
        logs = in_logs[component[layout.edge_variable[first]]]
        _read_logs(variable_to_factor, at, stop, logs, incoming)
        term = structured_factor_messages(
            kind[f], last - first, cards[first:last], layout.table_strides[first:last], log_tables,
            layout.table_offsets[f], incoming[: stop - at], fresh[: stop - at], False, work,
        )  # fmt: skip
        for e in range(first, last):
            term -= edge_term(layout, e, variable_to_factor, factor_to_variable, logs, scores)
        terms[f] = term


@kernel
def structured_counts(layout, begin, end, kind, log_tables, variable_to_factor, component, in_logs, counts):
    """Add each factor's expected statistics to the counts of its cells."""
    cards, work, incoming, _ = _work_space(layout, begin, end, kind)
    for f in range(begin, end):
        first, last = layout.factor_offsets[f], layout.factor_offsets[f + 1]
        at, stop = layout.message_offsets[first], layout.message_offsets[last]
        _read_logs(variable_to_factor, at, stop, in_logs[component[layout.edge_variable[first]]], incoming)
        structured_statistics(
            kind[f], last - first, cards[first:last], layout.table_strides[first:last], log_tables,
            layout.table_offsets[f], incoming[: stop - at], counts, work,
        )  # fmt: skip


@kernel
def decide_structured(
    layout, order, begin, end, n_tables, kind, log_tables, unary, variable_to_factor, factor_to_variable, states
):
    """As `decide`, for a graph with structured factors, which come after its tables."""
    scores, walk, sums = message_scratch(layout.limits)
    none, total = np.empty(0, np.int64), np.empty(layout.limits[1])
    cards, work, _, fresh = _work_space(layout, n_tables, len(kind), kind)
    for i in range(begin, end):
        v = order[i]
        at = layout.value_offsets[v]
        card = layout.value_offsets[v + 1] - at
        for j in range(card):
            total[j] = unary[at + j]
        for k in range(layout.variable_offsets[v], layout.variable_offsets[v + 1]):
            e = layout.variable_edges[k]
            f = layout.edge_factor[e]
            first, last = layout.factor_offsets[f], layout.factor_offsets[f + 1]
            to = layout.message_offsets[e]
            if f < n_tables:
                send_to_variable(
                    e, first, last, layout.table_offsets[f], layout.message_offsets, layout.table_strides, log_tables,
                    variable_to_factor, factor_to_variable, True, scores, walk, sums, none,
                )  # fmt: skip
                for j in range(card):
                    total[j] += factor_to_variable[to + j]
                continue
            start, stop = layout.message_offsets[first], layout.message_offsets[last]
            structured_factor_messages(
                kind[f], last - first, cards[first:last], layout.table_strides[first:last], log_tables,
                layout.table_offsets[f], variable_to_factor[start:stop], fresh[: stop - start], True, work,
            )  # fmt: skip
            for j in range(card):
                total[j] += fresh[to - start + j]
        best = best_index(total, card)
        states[v] = best
        for k in range(layout.variable_offsets[v], layout.variable_offsets[v + 1]):
            to = layout.message_offsets[layout.variable_edges[k]]
            for j in range(card):
                variable_to_factor[to + j] = 0.0 if j == best else -np.inf
