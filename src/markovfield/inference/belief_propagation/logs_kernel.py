"""Loopy messages in log space, for components in which products would vanish; otherwise as `sweeps_kernel`.

Invariant: layouts, flags and the meaning of residuals as in `tables_kernel`; messages of factors have a largest entry
of zero, and -inf means impossible and nothing else, which is why `LEAST_LOG` stops those that diverge.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.belief_propagation.log_messages_kernel import (
    message_scratch,
    send_to_all_factors,
    send_to_variable,
)
from markovfield.inference.belief_propagation.tables_kernel import CONTRADICTION
from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = [
    "bounded_logs",
    "keep_logs",
    "log_distance",
    "log_factors_to_variables",
    "log_messages_of_variable",
    "log_sweep_variables",
    "log_variables_to_factors",
    "mix_logs",
]

# Messages that diverge double with every pass: below this they stay, or sums of them would be minus infinity, which
# means impossible.
LEAST_LOG = -1e200


@kernel
def bounded_logs(message):
    """Keep a message that diverges within what can be added up; minus infinity stays what it is."""
    for i in range(len(message)):
        if -np.inf < message[i] < LEAST_LOG:
            message[i] = LEAST_LOG


@kernel
def log_distance(one, two):
    """The largest change of an entry of a message given as logs, in proportion where that is far from zero."""
    moved = 0.0
    for i in range(len(one)):
        if one[i] != two[i]:
            moved = max(moved, min(abs(one[i] - two[i]), 1e300) / max(1.0, min(abs(one[i]), abs(two[i]))))
    return moved


@kernel
def mix_logs(fresh, old, damping):
    """fresh = log of the mixture of two messages, the largest entry zero; a zero stays a zero."""
    first, second = 0.0, 0.0
    for i in range(len(fresh)):
        first += exp_scalar(fresh[i])
        second += exp_scalar(old[i])
    top = -np.inf
    for i in range(len(fresh)):
        if fresh[i] > -np.inf:
            # Below e^-700 the exponential is zero: the larger share says enough.
            mixed = (1.0 - damping) * exp_scalar(fresh[i]) / first + damping * exp_scalar(old[i]) / second
            fresh[i] = np.log(mixed) if mixed > 0.0 else max(fresh[i], old[i])
        top = max(top, fresh[i])
    for i in range(len(fresh)):
        fresh[i] -= top


@kernel
def keep_logs(fresh, kept, damping):
    """As `keep_message`, for logs."""
    top = -np.inf
    for i in range(len(fresh)):
        top = max(top, fresh[i])
    if top == -np.inf:
        return 0.0, CONTRADICTION
    bounded_logs(fresh)
    moved = log_distance(fresh, kept)
    if damping > 0.0:
        mix_logs(fresh, kept, damping)
    for i in range(len(fresh)):
        kept[i] = fresh[i]
    return moved, 0


@kernel
def log_messages_of_variable(layout, v, unary, variable_to_factor, factor_to_variable, total):
    at = layout.value_offsets[v]
    card = layout.value_offsets[v + 1] - at
    send_to_all_factors(
        layout.variable_offsets[v], layout.variable_offsets[v + 1], layout.variable_edges, layout.message_offsets,
        variable_to_factor, factor_to_variable, unary, at, card, total,
    )  # fmt: skip
    for i in range(card):
        if total[i] > -np.inf:
            return 0
    return CONTRADICTION


@kernel
def log_variables_to_factors(
    layout, begin, end, unary, variable_to_factor, factor_to_variable, component, active, flags
):
    """As `variables_to_factors`, in log space."""
    total = np.empty(layout.limits[1])
    for v in range(begin, end):
        if active[component[v]]:
            flag = log_messages_of_variable(layout, v, unary, variable_to_factor, factor_to_variable, total)
            if flag:
                flags[component[v]] |= flag


@kernel
def _log_message(
    layout, e, log_tables, variable_to_factor, factor_to_variable, damping, maximise, scores, walk, sums, none, old
):
    """Send the message on edge e in log space and keep it: how far it moved, and flags."""
    f = layout.edge_factor[e]
    at = layout.message_offsets[e]
    card = layout.message_offsets[e + 1] - at
    for i in range(card):
        old[i] = factor_to_variable[at + i]
    top = send_to_variable(
        e, layout.factor_offsets[f], layout.factor_offsets[f + 1], layout.table_offsets[f], layout.message_offsets,
        layout.table_strides, log_tables, variable_to_factor, factor_to_variable, maximise, scores, walk, sums, none,
    )  # fmt: skip
    if top == -np.inf:
        return 0.0, CONTRADICTION
    bounded_logs(factor_to_variable[at : at + card])
    moved = log_distance(factor_to_variable[at : at + card], old[:card])
    if damping > 0.0:
        mix_logs(factor_to_variable[at : at + card], old[:card], damping)
    return moved, 0


@kernel
def log_factors_to_variables(
    layout, begin, end, log_tables, variable_to_factor, factor_to_variable, component, active, damping, maximise,
    residuals, flags,
):  # fmt: skip
    """As `factors_to_variables`, in log space."""
    scores, walk, sums = message_scratch(layout.limits)
    none, old = np.empty(0, np.int64), np.empty(layout.limits[1])
    for f in range(begin, end):
        c = component[layout.edge_variable[layout.factor_offsets[f]]]
        if not active[c]:
            continue
        for e in range(layout.factor_offsets[f], layout.factor_offsets[f + 1]):
            moved, flag = _log_message(
                layout, e, log_tables, variable_to_factor, factor_to_variable, damping, maximise, scores, walk, sums,
                none, old,
            )  # fmt: skip
            residuals[c] = max(residuals[c], moved)
            flags[c] |= flag


@kernel
def log_sweep_variables(
    layout, order, begin, end, unary, log_tables, variable_to_factor, factor_to_variable, component, active, damping,
    maximise, residuals, flags,
):  # fmt: skip
    """As `sweep_variables`, in log space."""
    product = np.empty(layout.limits[1])
    scores, walk, sums = message_scratch(layout.limits)
    none = np.empty(0, np.int64)
    for i in range(begin, end):
        v = order[i]
        c = component[v]
        if not active[c]:
            continue
        for k in range(layout.variable_offsets[v], layout.variable_offsets[v + 1]):
            moved, flag = _log_message(
                layout, layout.variable_edges[k], log_tables, variable_to_factor, factor_to_variable, damping,
                maximise, scores, walk, sums, none, product,
            )  # fmt: skip
            residuals[c] = max(residuals[c], moved)
            flags[c] |= flag
        flags[c] |= log_messages_of_variable(layout, v, unary, variable_to_factor, factor_to_variable, product)
