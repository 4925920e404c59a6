"""The downward pass: distributing beliefs from the roots of a clique tree.

Invariant: `Layout`, cliques after their parents, separators last among a clique's axes; ``belief`` becomes the ratio of
belief and message, 0/0 being 0. Free to change: how blocks are walked.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.inference.junction_tree.blocks_kernel import (
    DONE,
    IMPOSSIBLE,
    LINEAR,
    LOG_MAX,
    LOG_SUM,
    SAFE,
    UNDERFLOW,
    advance,
    block_sum,
    deposit,
    deposit_maximum,
    exponentiate,
    form_block,
    scratch,
    start_offsets,
)
from markovfield.inference.junction_tree.collect_kernel import exponent_below, mark_inputs, ranges, underflowed
from markovfield.inference.junction_tree.layout_kernel import MESSAGE, VARIABLE
from markovfield.kernels.compiler import kernel

__all__ = ["distribute", "spread"]


@kernel
def spread(block, length, ratio, offset, size, log_space):
    """Bring the belief of the separator, over the message sent up, into a block."""
    run = min(length, size)
    stretch = ratio[offset : offset + run]
    for start in range(0, length, run):
        part = block[start : start + run]
        if log_space:
            for j in range(run):
                part[j] += stretch[j]
        else:
            for j in range(run):
                part[j] *= stretch[j]


@kernel
def _open_ratio(layout, c, operation, needed, message, belief):
    """Turn the separator's belief into the ratio belief / message, in place; 0/0 is 0."""
    start, size = layout.message_offset[c], layout.separator_size[c]
    b = belief[start : start + size]
    m = message[start : start + size]
    if operation == LINEAR:
        if needed[c]:
            for j in range(size):
                b[j] = b[j] / m[j] if m[j] > 0.0 else 0.0
    elif operation == LOG_SUM:
        for j in range(size):
            b[j] = (math.log(b[j]) if b[j] > 0.0 else -np.inf) - (m[j] if m[j] > -np.inf else 0.0)
    else:
        for j in range(size):
            b[j] -= m[j] if m[j] > -np.inf else 0.0


@kernel
def distribute(
    layout,
    schedule,
    operation,
    pool,
    factor_low,
    factor_high,
    likelihood,
    active,
    variable_low,
    needed,
    message,
    message_low,
    belief,
    totals,
    exponents,
    fused,
    marginals,
    counts,
    want_counts,
):
    """Downward pass: beliefs of separators (as ratios), marginals of variables, expected counts of cells.

    ``schedule`` lists the cliques to do, each after its parent.
    With ``fused`` (linear space, no counts) roots have not been collected: their totals come out of the same walk
    that feeds their children. Marginals must come in as zeros (-inf for LOG_MAX).
    """
    block, at, use, counter = scratch(layout)
    log_space = operation != LINEAR
    for c in schedule:
        is_root = layout.parent[c] < 0
        first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
        length, size, n_outer = layout.block[c], layout.separator_size[c], layout.n_outer[c]
        mark_inputs(layout, c, needed, active, use)
        start = layout.message_offset[c]
        constant, check = 0.0, False
        if not log_space:
            if not (needed[c] or is_root):
                constant = math.ldexp(1.0, exponent_below(layout, c, use, exponents))
            else:
                low, exponent = ranges(layout, c, use, factor_low, factor_high, message_low, variable_low)
                constant = math.ldexp(1.0, exponent)
                if is_root and fused:
                    if abs(exponent) > 900:
                        return UNDERFLOW
                    exponents[c] = exponent_below(layout, c, use, exponents) - exponent
                    check = low < SAFE
                elif is_root:
                    constant /= totals[c]
                else:
                    # The message was divided by both powers of two; so must the beliefs, to sum to one.
                    if exponent + math.frexp(totals[c])[1] > 1000:
                        return UNDERFLOW
                    constant *= totals[c]
        elif operation == LOG_SUM and is_root:
            constant = -totals[c]
        if not is_root:
            _open_ratio(layout, c, operation, needed, message, belief)
        total = 0.0
        start_offsets(at, first, last, layout.input_base, counter, n_outer)
        for b in range(0, layout.size[c], length):
            form_block(
                block, length, first, last, layout.input_kind, layout.input_mode, layout.input_index_offset,
                layout.index, at, use, pool, message, likelihood, constant, log_space,
            )  # fmt: skip
            if check and underflowed(block, length, first, last, layout, at, use, pool, message, likelihood):
                return UNDERFLOW
            if not is_root:
                spread(block, length, belief, start + b % size, size, log_space)
            if operation == LOG_SUM:
                exponentiate(block, length)
            if is_root and fused:
                total += block_sum(block, length)
            for s in range(first, last):
                i = s - first
                kind = layout.input_kind[s]
                if operation == LOG_MAX:
                    if kind == MESSAGE:
                        deposit_maximum(
                            block,
                            length,
                            belief,
                            at[i],
                            layout.input_mode[s],
                            layout.index,
                            layout.input_index_offset[s],
                        )
                    elif kind == VARIABLE:
                        deposit_maximum(
                            block,
                            length,
                            marginals,
                            at[i],
                            layout.input_mode[s],
                            layout.index,
                            layout.input_index_offset[s],
                        )
                elif kind == MESSAGE:
                    deposit(
                        block,
                        length,
                        belief,
                        at[i],
                        layout.input_mode[s],
                        layout.index,
                        layout.input_index_offset[s],
                    )
                elif kind == VARIABLE:
                    deposit(
                        block,
                        length,
                        marginals,
                        at[i],
                        layout.input_mode[s],
                        layout.index,
                        layout.input_index_offset[s],
                    )
                elif want_counts:
                    deposit(
                        block,
                        length,
                        counts,
                        at[i],
                        layout.input_mode[s],
                        layout.index,
                        layout.input_index_offset[s],
                    )
            advance(
                at,
                first,
                last,
                layout.input_stride_offset,
                layout.strides,
                counter,
                layout.axis_card,
                layout.axis_offsets[c],
                n_outer,
            )
        if is_root and fused:
            totals[c] = total
            if total == 0.0:
                return IMPOSSIBLE
            for s in range(first, last):
                r = layout.input_ref[s]
                if layout.input_kind[s] == MESSAGE:
                    o = layout.message_offset[r]
                    for j in range(o, o + layout.separator_size[r]):
                        belief[j] /= total
                elif layout.input_kind[s] == VARIABLE:
                    o = layout.input_base[s]
                    for a in range(layout.n_residual[c]):
                        if layout.axis_variable[layout.axis_offsets[c] + a] == r:
                            for j in range(o, o + layout.axis_card[layout.axis_offsets[c] + a]):
                                marginals[j] /= total
    return DONE
