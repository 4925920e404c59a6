"""Collecting messages towards the roots of a clique tree, and distributing beliefs back.

Written once for three algebras: sums of products in linear space (messages rescaled by powers of two), the same in
log space, and maxima in log space. The operation is chosen clique by clique, which is what marginal MAP needs.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels._flags import kernel
from markovfield.kernels.blocks import (
    advance,
    block_maximum,
    block_sum,
    deposit,
    deposit_maximum,
    exponentiate,
    form_block,
    scratch,
    start_offsets,
)
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.layout import FACTOR, MESSAGE, SCALAR, STRETCH, VARIABLE

__all__ = [
    "DONE",
    "IMPOSSIBLE",
    "LINEAR",
    "LOG_MAX",
    "LOG_SUM",
    "UNDERFLOW",
    "collect",
    "distribute",
    "messages_needed",
]

LINEAR, LOG_SUM, LOG_MAX = 0, 1, 2
DONE, IMPOSSIBLE, UNDERFLOW = 0, 1, 2

# A product whose factors could together fall below 2**SAFE is checked cell by cell; TINY is what it must not reach.
SAFE = -900.0
TINY = 1e-290


@kernel
def _inputs(layout, c, needed, active, use):
    """Mark the slots that a clique multiplies: factors, messages that are not one, variables with evidence."""
    first, last = layout.slot_offsets[c], layout.slot_offsets[c + 1]
    for s in range(first, last):
        r = layout.slot_ref[s]
        if layout.slot_kind[s] == FACTOR:
            use[s - first] = True
        elif layout.slot_kind[s] == MESSAGE:
            use[s - first] = needed[r]
        else:
            use[s - first] = active[r]


@kernel
def _ranges(layout, c, use, factor_low, factor_high, message_low, variable_low):
    """log2 of the smallest positive product that can occur in a clique, and the exponent that keeps it near one."""
    first, last = layout.slot_offsets[c], layout.slot_offsets[c + 1]
    low, high = 0.0, 0.0
    for s in range(first, last):
        if use[s - first]:
            r = layout.slot_ref[s]
            if layout.slot_kind[s] == FACTOR:
                low += factor_low[r]
                high += factor_high[r]
            elif layout.slot_kind[s] == MESSAGE:
                low += message_low[r]
            else:
                low += variable_low[r]
    exponent = -math.floor(high)
    return low + exponent, exponent


@kernel
def _underflowed(block, length, first, last, layout, at, use, pool, message, likelihood):
    """Whether a cell with no zero factor came out (nearly) zero."""
    for j in range(length):
        if block[j] >= TINY:
            continue
        positive = True
        for s in range(first, last):
            if not use[s - first]:
                continue
            cell = at[s - first]
            if layout.slot_mode[s] == STRETCH:
                cell += j
            elif layout.slot_mode[s] != SCALAR:
                cell += np.int64(layout.index[layout.slot_index_offset[s] + j])
            if layout.slot_kind[s] == FACTOR:
                value = pool[cell]
            elif layout.slot_kind[s] == MESSAGE:
                value = message[cell]
            else:
                value = likelihood[cell]
            if value == 0.0:
                positive = False
                break
        if positive:
            return True
    return False


@kernel
def _fold(target, part, operation):
    if operation == LOG_MAX:
        for j in range(len(part)):
            target[j] = max(target[j], part[j])
    else:
        for j in range(len(part)):
            target[j] += part[j]


@kernel
def _onto_separator(block, length, target, offset, size, operation):
    """Reduce a block onto the separator, whose axes are the clique's fast end; the block is used up."""
    if size == 1:
        if operation == LOG_MAX:
            target[offset] = max(target[offset], block_maximum(block, length))
        else:
            target[offset] += block_sum(block, length)
        return
    if size < 16 and length >= 128:
        # Fold the block onto its first few dozen states, which vectorises; a short separator would not.
        chunk = size * (32 // size)
        whole = length - length % chunk
        for start in range(chunk, whole, chunk):
            _fold(block[:chunk], block[start : start + chunk], operation)
        _fold(block[:chunk], block[whole:length], operation)
        length = chunk
    run = min(length, size)
    stretch = target[offset : offset + run]
    for start in range(0, length, run):
        part = block[start : start + run]
        if operation == LOG_MAX:
            for j in range(run):
                stretch[j] = max(stretch[j], part[j])
        else:
            for j in range(run):
                stretch[j] += part[j]


@kernel
def _subtract_and_exponentiate(block, length, maxima, offset, size):
    """block = exp(block - maximum of its separator state); an impossible state stays zero."""
    run = min(length, size)
    for start in range(0, length, run):
        for j in range(run):
            top = maxima[offset + j]
            block[start + j] = exp_scalar(block[start + j] - top) if top > -np.inf else 0.0


@kernel
def _collect_clique(layout, c, operation, log_space, pool, message, likelihood, constant, check, work, target, offset):
    """One pass over a clique's blocks, reduced onto ``target[offset:]``; False when a product underflowed."""
    block, at, use, counter = work
    first, last = layout.slot_offsets[c], layout.slot_offsets[c + 1]
    length, size, n_outer = layout.block[c], layout.separator_size[c], layout.n_outer[c]
    start_offsets(at, first, last, layout.slot_base, counter, n_outer)
    passes = 2 if operation == LOG_SUM else 1
    maxima = target
    for p in range(passes):
        if operation == LINEAR:
            target[offset : offset + size] = 0.0
        elif p == 0:
            target[offset : offset + size] = -np.inf
        else:
            maxima = target[offset : offset + size].copy()
            target[offset : offset + size] = 0.0
        for b in range(0, layout.size[c], length):
            form_block(
                block, length, first, last, layout.slot_kind, layout.slot_mode, layout.slot_index_offset,
                layout.index, at, use, pool, message, likelihood, constant, log_space,
            )  # fmt: skip
            if check and _underflowed(block, length, first, last, layout, at, use, pool, message, likelihood):
                return False
            place = b % size
            if operation == LOG_SUM and p == 1:
                _subtract_and_exponentiate(block, length, maxima, place, size)
                _onto_separator(block, length, target, offset + place, size, LINEAR)
            else:
                _onto_separator(block, length, target, offset + place, size, LOG_MAX if log_space else LINEAR)
            advance(
                at,
                first,
                last,
                layout.slot_stride_offset,
                layout.strides,
                counter,
                layout.axis_card,
                layout.axis_offsets[c],
                n_outer,
            )
    if operation == LOG_SUM:
        for j in range(size):
            target[offset + j] = maxima[j] + math.log(target[offset + j]) if maxima[j] > -np.inf else -np.inf
    return True


@kernel
def _exponent_below(layout, c, use, exponents):
    """The power of two taken out of the messages that a clique multiplies."""
    first, last = layout.slot_offsets[c], layout.slot_offsets[c + 1]
    total = 0
    for s in range(first, last):
        if layout.slot_kind[s] == MESSAGE and use[s - first]:
            total += exponents[layout.slot_ref[s]]
    return total


@kernel
def collect(
    layout,
    schedule,
    operations,
    log_space,
    roots,
    pool,
    factor_low,
    factor_high,
    likelihood,
    active,
    variable_low,
    needed,
    message,
    message_low,
    totals,
    exponents,
):
    """Upward pass: the message of every clique that needs one, and with ``roots`` the total of every root.

    Parameters
    ----------
    schedule
        ``int64``: the cliques to do, each after all those beneath it that are to be done at all.
    operations
        ``int8[n]`` LINEAR, LOG_SUM or LOG_MAX per clique; LINEAR if and only if ``log_space`` is false.
    needed
        ``bool[n]`` whether a clique's message must be computed (it is one everywhere otherwise).
    totals
        ``float64[n]``: out, for roots the reduction over all states, for others the power of two that their
        message was multiplied by after reduction (linear space).
    exponents
        ``int64[n]``: out, the power of two by which a clique's message, or a root's total, is to be multiplied to be
        true: everything that was taken out of its subtree.

    Returns
    -------
    int
        DONE, or what went wrong.
    """
    work = scratch(layout)
    use = work[2]
    for c in schedule:
        is_root = layout.parent[c] < 0
        if (is_root and not roots) or (not is_root and not needed[c]):
            continue
        _inputs(layout, c, needed, active, use)
        constant, check = 0.0, False
        if not log_space:
            low, exponent = _ranges(layout, c, use, factor_low, factor_high, message_low, variable_low)
            check = low < SAFE
            if abs(exponent) > 900:
                return UNDERFLOW
            constant = math.ldexp(1.0, exponent)
            exponents[c] = _exponent_below(layout, c, use, exponents) - exponent
        if is_root:
            if not _collect_clique(
                layout,
                c,
                operations[c],
                log_space,
                pool,
                message,
                likelihood,
                constant,
                check,
                work,
                totals,
                c,
            ):
                return UNDERFLOW
            if (log_space and totals[c] == -np.inf) or (not log_space and totals[c] == 0.0):
                return IMPOSSIBLE
            continue
        start, size = layout.message_offset[c], layout.separator_size[c]
        if not _collect_clique(
            layout,
            c,
            operations[c],
            log_space,
            pool,
            message,
            likelihood,
            constant,
            check,
            work,
            message,
            start,
        ):
            return UNDERFLOW
        values = message[start : start + size]
        top = block_maximum(values, size)
        if log_space:
            if top == -np.inf:
                return IMPOSSIBLE
            continue
        if top == 0.0:
            return IMPOSSIBLE
        if top < TINY:
            return UNDERFLOW
        exponent = math.frexp(top)[1]
        scale = math.ldexp(1.0, -exponent)
        exponents[c] += exponent
        low = 1.0
        for j in range(size):
            value = values[j] * scale
            values[j] = value
            if value > 0.0:
                low = min(low, value)
        message_low[c] = math.log2(low)
        totals[c] = scale
        if low < TINY:
            return UNDERFLOW
    return DONE


@kernel
def _spread(block, length, ratio, offset, size, log_space):
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
        first, last = layout.slot_offsets[c], layout.slot_offsets[c + 1]
        length, size, n_outer = layout.block[c], layout.separator_size[c], layout.n_outer[c]
        _inputs(layout, c, needed, active, use)
        start = layout.message_offset[c]
        constant, check = 0.0, False
        if not log_space:
            if not (needed[c] or is_root):
                constant = math.ldexp(1.0, _exponent_below(layout, c, use, exponents))
            else:
                low, exponent = _ranges(layout, c, use, factor_low, factor_high, message_low, variable_low)
                constant = math.ldexp(1.0, exponent)
                if is_root and fused:
                    if abs(exponent) > 900:
                        return UNDERFLOW
                    exponents[c] = _exponent_below(layout, c, use, exponents) - exponent
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
        start_offsets(at, first, last, layout.slot_base, counter, n_outer)
        for b in range(0, layout.size[c], length):
            form_block(
                block, length, first, last, layout.slot_kind, layout.slot_mode, layout.slot_index_offset,
                layout.index, at, use, pool, message, likelihood, constant, log_space,
            )  # fmt: skip
            if check and _underflowed(block, length, first, last, layout, at, use, pool, message, likelihood):
                return UNDERFLOW
            if not is_root:
                _spread(block, length, belief, start + b % size, size, log_space)
            if operation == LOG_SUM:
                exponentiate(block, length)
            if is_root and fused:
                total += block_sum(block, length)
            for s in range(first, last):
                i = s - first
                kind = layout.slot_kind[s]
                if operation == LOG_MAX:
                    if kind == MESSAGE:
                        deposit_maximum(
                            block,
                            length,
                            belief,
                            at[i],
                            layout.slot_mode[s],
                            layout.index,
                            layout.slot_index_offset[s],
                        )
                    elif kind == VARIABLE:
                        deposit_maximum(
                            block,
                            length,
                            marginals,
                            at[i],
                            layout.slot_mode[s],
                            layout.index,
                            layout.slot_index_offset[s],
                        )
                elif kind == MESSAGE:
                    deposit(
                        block,
                        length,
                        belief,
                        at[i],
                        layout.slot_mode[s],
                        layout.index,
                        layout.slot_index_offset[s],
                    )
                elif kind == VARIABLE:
                    deposit(
                        block,
                        length,
                        marginals,
                        at[i],
                        layout.slot_mode[s],
                        layout.index,
                        layout.slot_index_offset[s],
                    )
                elif want_counts:
                    deposit(
                        block,
                        length,
                        counts,
                        at[i],
                        layout.slot_mode[s],
                        layout.index,
                        layout.slot_index_offset[s],
                    )
            advance(
                at,
                first,
                last,
                layout.slot_stride_offset,
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
                r = layout.slot_ref[s]
                if layout.slot_kind[s] == MESSAGE:
                    o = layout.message_offset[r]
                    for j in range(o, o + layout.separator_size[r]):
                        belief[j] /= total
                elif layout.slot_kind[s] == VARIABLE:
                    o = layout.slot_base[s]
                    for a in range(layout.n_residual[c]):
                        if layout.axis_variable[layout.axis_offsets[c] + a] == r:
                            for j in range(o, o + layout.axis_card[layout.axis_offsets[c] + a]):
                                marginals[j] /= total
    return DONE


@kernel
def messages_needed(layout, active):
    """Which cliques must send a message: those whose message is not one by structure, or has evidence beneath."""
    n = len(layout.parent)
    needed = np.zeros(n, np.bool_)
    touched = np.zeros(n, np.bool_)
    for c in range(n - 1, -1, -1):
        for s in range(layout.slot_offsets[c], layout.slot_offsets[c + 1]):
            if layout.slot_kind[s] == VARIABLE and active[layout.slot_ref[s]]:
                touched[c] = True
        needed[c] = touched[c] or not layout.unit[c]
        if touched[c] and layout.parent[c] >= 0:
            touched[layout.parent[c]] = True
    return needed
