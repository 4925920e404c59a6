"""The residual schedule: the message that would move most goes first; in linear or in log space.

Invariant: a binary heap with the largest key on top, ``place`` being its inverse; messages as in `tables_kernel` or
`logs_kernel`. Free to change: the heap.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.belief_propagation.log_messages_kernel import message_scratch, send_to_variable
from markovfield.inference.belief_propagation.logs_kernel import (
    bounded_logs,
    log_distance,
    log_messages_of_variable,
    mix_logs,
)
from markovfield.inference.belief_propagation.tables_kernel import (
    CONTRADICTION,
    keep_message,
    message_moved,
    message_to_variable,
    messages_of_variable,
)
from markovfield.kernels.compiler import kernel

__all__ = ["residual_steps"]


@kernel
def _sift(heap, place, keys, e):
    """Move an edge whose key changed to where it belongs: children at 2i + 1 and 2i + 2, the largest key on top."""
    i = place[e]
    while i > 0:
        up = (i - 1) // 2
        if keys[heap[up]] >= keys[e]:
            break
        heap[i] = heap[up]
        place[heap[i]] = i
        i = up
    n = len(heap)
    while True:
        down = 2 * i + 1
        if down >= n:
            break
        if down + 1 < n and keys[heap[down + 1]] > keys[heap[down]]:
            down += 1
        if keys[heap[down]] <= keys[e]:
            break
        heap[i] = heap[down]
        place[heap[i]] = i
        i = down
    heap[i] = e
    place[e] = i


@kernel
def residual_steps(
    layout, steps, tolerance, unary, tables, variable_to_factor, factor_to_variable, pending, keys, heap, place,
    component, active, damping, maximise, floor, in_logs, flags,
):  # fmt: skip
    """Send ``steps`` messages, always the one that moves most (Elidan, McGraw and Koller 2006); how many were sent.

    ``pending`` holds what each factor would say now, ``keys`` how far that is from what it said. With ``steps`` of
    zero everything pending is worked out; the heap is then the caller's to build.
    """
    message_offsets, variable_offsets = layout.message_offsets, layout.variable_offsets
    variable_edges, value_offsets = layout.variable_edges, layout.value_offsets
    edge_variable, edge_factor, factor_offsets = layout.edge_variable, layout.edge_factor, layout.factor_offsets
    table_offsets, table_strides = layout.table_offsets, layout.table_strides
    slots = layout.variable_slots
    arity, most = layout.limits[0], layout.limits[1]
    fresh, product = np.empty((arity + 1) * most), np.empty(most)
    counter, part = np.empty(arity + 1, np.int64), np.empty((2, arity + 2))
    scores, walk, sums = message_scratch(layout.limits if in_logs else layout.limits * 0)
    none = np.empty(0, np.int64)
    for sent in range(-1 if steps == 0 else 0, steps):
        if sent < 0:
            first_edge, last_edge, said = 0, len(heap), np.int64(-1)
        else:
            said = heap[0]
            if keys[said] <= tolerance:
                return sent
            v = edge_variable[said]
            at = message_offsets[said]
            card = message_offsets[said + 1] - at
            new, kept = pending[at : at + card], factor_to_variable[at : at + card]
            if in_logs:
                if damping > 0.0:
                    for i in range(card):
                        fresh[i] = new[i]
                    mix_logs(fresh[:card], kept, damping)
                    for i in range(card):
                        kept[i] = fresh[i]
                    keys[said] = log_distance(new, kept)
                else:
                    for i in range(card):
                        kept[i] = new[i]
                    keys[said] = 0.0
                flag = log_messages_of_variable(layout, v, unary, variable_to_factor, factor_to_variable, product)
            else:
                moved, flag = keep_message(new, kept, damping, floor)
                keys[said] = damping * moved
                flag |= messages_of_variable(
                    slots[variable_offsets[v] : variable_offsets[v + 1]],
                    unary[value_offsets[v] : value_offsets[v + 1]], variable_to_factor, factor_to_variable,
                    product[:card], floor,
                )  # fmt: skip
            flags[component[v]] |= flag
            if flag:
                return sent + 1
            _sift(heap, place, keys, said)
            first_edge, last_edge = variable_offsets[v], variable_offsets[v + 1]
        for k in range(first_edge, last_edge):
            through = np.int64(k) if sent < 0 else variable_edges[k]
            if through == said:
                continue
            f = edge_factor[through]
            first, last, base = factor_offsets[f], factor_offsets[f + 1], table_offsets[f]
            if sent < 0 and not active[component[edge_variable[through]]]:
                keys[through] = 0.0
                continue
            for e in range(first, last):
                # At the start every edge is visited for itself, later all others of a factor that a new message came
                # to.
                if (e == through) == (sent >= 0):
                    continue
                at = message_offsets[e]
                card = message_offsets[e + 1] - at
                new, kept = pending[at : at + card], factor_to_variable[at : at + card]
                if in_logs:
                    top = send_to_variable(
                        e, first, last, base, message_offsets, table_strides, tables, variable_to_factor,
                        pending, maximise, scores, walk, sums, none,
                    )  # fmt: skip
                    if top == -np.inf:
                        flags[component[edge_variable[e]]] |= CONTRADICTION
                        return sent + 1
                    bounded_logs(new)
                    keys[e] = log_distance(new, kept)
                else:
                    start = message_to_variable(
                        e, first, last, base, message_offsets, table_strides, tables, variable_to_factor,
                        maximise, fresh, counter, part,
                    )  # fmt: skip
                    total = 0.0
                    for i in range(card):
                        total += fresh[start + i]
                    if not total > 0.0:
                        flags[component[edge_variable[e]]] |= CONTRADICTION
                        return sent + 1
                    for i in range(card):
                        new[i] = fresh[start + i] / total
                    keys[e] = message_moved(new, 1.0, kept)
                if sent >= 0:
                    _sift(heap, place, keys, e)
    return steps
