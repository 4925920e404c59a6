"""The upward pass: collecting messages towards the roots of a clique tree.

Written once for the three algebras. The operation is chosen clique by clique, which is what marginal MAP needs.
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
    TINY,
    UNDERFLOW,
    advance,
    block_maximum,
    block_sum,
    form_block,
    scratch,
    start_offsets,
)
from markovfield.inference.junction_tree.layout_kernel import FACTOR, MESSAGE, SCALAR, STRETCH, VARIABLE
from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = ["collect", "exponent_below", "mark_inputs", "messages_needed", "ranges", "underflowed"]


@kernel
def messages_needed(layout, active):
    """Which cliques must send a message: those whose message is not one by structure, or has evidence beneath."""
    n = len(layout.parent)
    needed = np.zeros(n, np.bool_)
    touched = np.zeros(n, np.bool_)
    for c in range(n - 1, -1, -1):
        for s in range(layout.input_offsets[c], layout.input_offsets[c + 1]):
            if layout.input_kind[s] == VARIABLE and active[layout.input_ref[s]]:
                touched[c] = True
        needed[c] = touched[c] or not layout.unit[c]
        if touched[c] and layout.parent[c] >= 0:
            touched[layout.parent[c]] = True
    return needed


@kernel
def mark_inputs(layout, c, needed, active, use):
    """Mark the inputs that a clique multiplies: factors, messages that are not one, variables with evidence."""
    first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
    for s in range(first, last):
        r = layout.input_ref[s]
        if layout.input_kind[s] == FACTOR:
            use[s - first] = True
        elif layout.input_kind[s] == MESSAGE:
            use[s - first] = needed[r]
        else:
            use[s - first] = active[r]


@kernel
def ranges(layout, c, use, factor_low, factor_high, message_low, variable_low):
    """log2 of the smallest positive product that can occur in a clique, and the exponent that keeps it near one."""
    first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
    low, high = 0.0, 0.0
    for s in range(first, last):
        if use[s - first]:
            r = layout.input_ref[s]
            if layout.input_kind[s] == FACTOR:
                low += factor_low[r]
                high += factor_high[r]
            elif layout.input_kind[s] == MESSAGE:
                low += message_low[r]
            else:
                low += variable_low[r]
    exponent = -math.floor(high)
    return low + exponent, exponent


@kernel
def underflowed(block, length, first, last, layout, at, use, pool, message, likelihood):
    """Whether a cell with no zero factor came out (nearly) zero."""
    for j in range(length):
        if block[j] >= TINY:
            continue
        positive = True
        for s in range(first, last):
            if not use[s - first]:
                continue
            cell = at[s - first]
            if layout.input_mode[s] == STRETCH:
                cell += j
            elif layout.input_mode[s] != SCALAR:
                cell += np.int64(layout.index[layout.input_index_offset[s] + j])
            if layout.input_kind[s] == FACTOR:
                value = pool[cell]
            elif layout.input_kind[s] == MESSAGE:
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
    first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
    length, size, n_outer = layout.block[c], layout.separator_size[c], layout.n_outer[c]
    start_offsets(at, first, last, layout.input_base, counter, n_outer)
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
                block, length, first, last, layout.input_kind, layout.input_mode, layout.input_index_offset,
                layout.index, at, use, pool, message, likelihood, constant, log_space,
            )  # fmt: skip
            if check and underflowed(block, length, first, last, layout, at, use, pool, message, likelihood):
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
                layout.input_stride_offset,
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
def exponent_below(layout, c, use, exponents):
    """The power of two taken out of the messages that a clique multiplies."""
    first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
    total = 0
    for s in range(first, last):
        if layout.input_kind[s] == MESSAGE and use[s - first]:
            total += exponents[layout.input_ref[s]]
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
        mark_inputs(layout, c, needed, active, use)
        constant, check = 0.0, False
        if not log_space:
            low, exponent = ranges(layout, c, use, factor_low, factor_high, message_low, variable_low)
            check = low < SAFE
            if abs(exponent) > 900:
                return UNDERFLOW
            constant = math.ldexp(1.0, exponent)
            exponents[c] = exponent_below(layout, c, use, exponents) - exponent
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
