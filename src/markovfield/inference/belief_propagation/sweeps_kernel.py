"""Sweeps over all messages of a factor graph in scaled linear space: all at once, or variable after variable.

Invariant: layouts, flags and residuals as in `tables_kernel`. A synchronous sweep may be cut anywhere into
``begin:end``, since it reads only what the other half of the sweep wrote; a sequential one may not be reordered. Free
to change: the special cases for two and three axes and two states, which are there for speed alone.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.belief_propagation.tables_kernel import (
    CONTRADICTION,
    LOW,
    binary_moved,
    keep_message,
    message_to_variable,
    messages_of_binary,
    messages_of_variable,
    pair_messages,
    table_messages,
    triple_messages,
)
from markovfield.kernels.compiler import kernel

__all__ = ["factors_to_variables", "sweep_variables", "variables_to_factors"]


@kernel
def variables_to_factors(
    layout, begin, end, unary, variable_to_factor, factor_to_variable, component, active, floor, flags
):
    """Every variable in ``begin:end`` sends each of its factors the product of its messages from the others.

    Products from the right and from the left: dividing the whole by one message would turn zeros into nan.
    """
    variable_offsets, slots, value_offsets = layout.variable_offsets, layout.variable_slots, layout.value_offsets
    product = np.empty(layout.limits[1])
    for v in range(begin, end):
        if not active[component[v]]:
            continue
        at = value_offsets[v]
        card = value_offsets[v + 1] - at
        first, last = variable_offsets[v], variable_offsets[v + 1]
        flag = 0
        if card == 2:
            flag = messages_of_binary(
                first, last, slots, unary[at], unary[at + 1], variable_to_factor, factor_to_variable, floor
            )
        else:
            flag = messages_of_variable(
                slots[first:last], unary[at : at + card], variable_to_factor, factor_to_variable, product[:card], floor
            )
        if flag:
            flags[component[v]] |= flag


@kernel
def factors_to_variables(
    layout, begin, end, tables, variable_to_factor, factor_to_variable, component, active, damping, maximise, floor,
    residuals, flags,
):  # fmt: skip
    """Every factor in ``begin:end`` sends to all its variables (Andres 6.38); how far messages moved, per component."""
    factor_offsets, message_offsets = layout.factor_offsets, layout.message_offsets
    table_offsets, table_strides, edge_variable = layout.table_offsets, layout.table_strides, layout.edge_variable
    arity, most = layout.limits[0], layout.limits[1]
    fresh = np.empty(max(arity, 2) * most)
    walk = np.empty(arity + 1, np.int64)
    part = np.empty((2, arity + 2))
    keep = 1.0 - damping
    for f in range(begin, end):
        first, last = factor_offsets[f], factor_offsets[f + 1]
        c = component[edge_variable[first]]
        if not active[c]:
            continue
        base = table_offsets[f]
        x_at = message_offsets[first]
        y_at = message_offsets[first + 1]
        n_x = y_at - x_at
        flag, moved = 0, 0.0
        if last - first == 2:
            step, stride = table_strides[first], table_strides[first + 1]
            n_y = message_offsets[last] - y_at
            if n_x == 2 and n_y == 2:
                t00, t01 = tables[base], tables[base + stride]
                t10, t11 = tables[base + step], tables[base + step + stride]
                p, q = variable_to_factor[x_at], variable_to_factor[x_at + 1]
                r, s = variable_to_factor[y_at], variable_to_factor[y_at + 1]
                if maximise:
                    x0, x1 = max(t00 * r, t01 * s), max(t10 * r, t11 * s)
                    y0, y1 = max(t00 * p, t10 * q), max(t01 * p, t11 * q)
                else:
                    x0, x1 = t00 * r + t01 * s, t10 * r + t11 * s
                    y0, y1 = t00 * p + t10 * q, t01 * p + t11 * q
                if not (x0 + x1 > 0.0 and y0 + y1 > 0.0):
                    flags[c] |= CONTRADICTION
                    continue
                scale = 1.0 / (x0 + x1)
                x0, x1 = x0 * scale, x1 * scale
                scale = 1.0 / (y0 + y1)
                y0, y1 = y0 * scale, y1 * scale
                p, q = factor_to_variable[x_at], factor_to_variable[x_at + 1]
                r, s = factor_to_variable[y_at], factor_to_variable[y_at + 1]
                moved = max(binary_moved(x0, x1, p, q), binary_moved(y0, y1, r, s))
                if damping > 0.0:
                    x0 = keep * x0 + damping * p if x0 > 0.0 else 0.0
                    x1 = keep * x1 + damping * q if x1 > 0.0 else 0.0
                    y0 = keep * y0 + damping * r if y0 > 0.0 else 0.0
                    y1 = keep * y1 + damping * s if y1 > 0.0 else 0.0
                if floor > 0.0:
                    flag = ((x0 < floor) & (x0 > 0.0)) | ((x1 < floor) & (x1 > 0.0))
                    flag |= ((y0 < floor) & (y0 > 0.0)) | ((y1 < floor) & (y1 > 0.0))
                factor_to_variable[x_at], factor_to_variable[x_at + 1] = x0, x1
                factor_to_variable[y_at], factor_to_variable[y_at + 1] = y0, y1
                residuals[c] = max(residuals[c], moved)
                if flag:
                    flags[c] |= LOW
                continue
            pair_messages(
                tables, base, step, stride, variable_to_factor[x_at:y_at], variable_to_factor[y_at : y_at + n_y],
                fresh[:n_x], fresh[n_x : n_x + n_y], maximise,
            )  # fmt: skip
        elif last - first == 3 and not maximise:
            triple_messages(first, base, message_offsets, table_strides, tables, variable_to_factor, fresh)
        else:
            table_messages(
                first, last, base, -1, message_offsets, table_strides, tables, variable_to_factor, maximise, fresh,
                walk, part,
            )  # fmt: skip
        for e in range(first, last):
            to = message_offsets[e]
            after = message_offsets[e + 1]
            far, low = keep_message(fresh[to - x_at : after - x_at], factor_to_variable[to:after], damping, floor)
            moved = max(moved, far)
            flag |= low
        residuals[c] = max(residuals[c], moved)
        if flag:
            flags[c] |= flag


@kernel
def sweep_variables(
    layout, order, begin, end, unary, tables, variable_to_factor, factor_to_variable, component, active, damping,
    maximise, floor, residuals, flags,
):  # fmt: skip
    """Variable after variable, ``order[begin:end]``: new messages from all its factors, then to them all.

    The next variable already uses what one variable has sent.
    """
    factor_offsets, variable_offsets = layout.factor_offsets, layout.variable_offsets
    variable_edges, value_offsets, edge_factor = layout.variable_edges, layout.value_offsets, layout.edge_factor
    message_offsets, table_offsets, table_strides = (
        layout.message_offsets,
        layout.table_offsets,
        layout.table_strides,
    )
    slots = layout.variable_slots
    arity, most = layout.limits[0], layout.limits[1]
    fresh = np.empty((arity + 1) * most)
    counter, part = np.empty(arity + 1, np.int64), np.empty((2, arity + 2))
    product = np.empty(most)
    for i in range(begin, end):
        v = order[i]
        c = component[v]
        if not active[c]:
            continue
        unary_at = value_offsets[v]
        card = value_offsets[v + 1] - unary_at
        begin_edge, end_edge = variable_offsets[v], variable_offsets[v + 1]
        flag, furthest = 0, 0.0
        for k in range(begin_edge, end_edge):
            e = variable_edges[k]
            f = edge_factor[e]
            to = slots[k]
            first, last = factor_offsets[f], factor_offsets[f + 1]
            other = first + last - 1 - e
            if last - first == 2 and card == 2 and message_offsets[other + 1] - message_offsets[other] == 2:
                at = message_offsets[other]
                p, q = variable_to_factor[at], variable_to_factor[at + 1]
                cell, stride = table_offsets[f], table_strides[other]
                x0, y0 = tables[cell] * p, tables[cell + stride] * q
                cell += table_strides[e]
                x1, y1 = tables[cell] * p, tables[cell + stride] * q
                if maximise:
                    x0, x1 = max(x0, y0), max(x1, y1)
                else:
                    x0, x1 = x0 + y0, x1 + y1
                if not x0 + x1 > 0.0:
                    flag |= CONTRADICTION
                    continue
                scale = 1.0 / (x0 + x1)
                x0, x1 = x0 * scale, x1 * scale
                p, q = factor_to_variable[to], factor_to_variable[to + 1]
                furthest = max(furthest, binary_moved(x0, x1, p, q))
                x0 = x0 + damping * (p - x0) if x0 > 0.0 else 0.0
                x1 = x1 + damping * (q - x1) if x1 > 0.0 else 0.0
                flag |= ((x0 < floor) & (x0 > 0.0)) | ((x1 < floor) & (x1 > 0.0))
                factor_to_variable[to], factor_to_variable[to + 1] = x0, x1
                continue
            start = message_to_variable(
                e, first, last, table_offsets[f], message_offsets, table_strides, tables, variable_to_factor,
                maximise, fresh, counter, part,
            )  # fmt: skip
            moved, low = keep_message(fresh[start:], factor_to_variable[to : to + card], damping, floor)
            furthest = max(furthest, moved)
            flag |= low
        if card == 2:
            flag |= messages_of_binary(
                begin_edge,
                end_edge,
                slots,
                unary[unary_at],
                unary[unary_at + 1],
                variable_to_factor,
                factor_to_variable,
                floor,
            )
        else:
            flag |= messages_of_variable(
                slots[begin_edge:end_edge], unary[unary_at : unary_at + card], variable_to_factor, factor_to_variable,
                product[:card], floor,
            )  # fmt: skip
        residuals[c] = max(residuals[c], furthest)
        if flag:
            flags[c] |= flag
