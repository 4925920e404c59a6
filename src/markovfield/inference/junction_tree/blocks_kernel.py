"""Meeting a block of clique states with an input: multiply it in, or add the block to it.

In linear space blocks are products, in log space sums. A block lives in cache and is never stored: cliques are
recomputed from their inputs whenever they are needed, which costs less than writing them to memory and back.

The three inner algebras of the passes, how a pass can end, and where linear space ends.

Invariant: the numbers, which plans and kernels share. `SAFE` and `TINY` may change together: they only decide when a
run falls back to log space.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.junction_tree.layout_kernel import FACTOR, MESSAGE, RUN, SCALAR, STRETCH
from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = [
    "DONE",
    "IMPOSSIBLE",
    "LINEAR",
    "LOG_MAX",
    "LOG_SUM",
    "SAFE",
    "TINY",
    "UNDERFLOW",
    "advance",
    "block_maximum",
    "block_sum",
    "deposit",
    "deposit_maximum",
    "form_block",
    "start_offsets",
]


@kernel
def _set(part, values, scalar, log_space):
    if log_space:
        for j in range(len(part)):
            part[j] = scalar + values[j]
    else:
        for j in range(len(part)):
            part[j] = scalar * values[j]


@kernel
def _update(part, values, log_space):
    if log_space:
        for j in range(len(part)):
            part[j] += values[j]
    else:
        for j in range(len(part)):
            part[j] *= values[j]


@kernel
def _combine(block, length, source, at, mode, index, index_at, scalar, fresh, log_space):
    """Bring one input into the block; ``fresh`` blocks are written, others updated."""
    if mode == STRETCH:
        if fresh:
            _set(block[:length], source[at : at + length], scalar, log_space)
        else:
            _update(block[:length], source[at : at + length], log_space)
        return
    if fresh:
        for j in range(length):
            block[j] = scalar
    if mode >= RUN:
        for start in range(0, length, mode):
            cell = at + np.int64(index[index_at + start])
            _update(block[start : start + mode], source[cell : cell + mode], log_space)
        return
    cells = source[at:]
    picks = index[index_at : index_at + length]
    if mode <= -RUN:
        for start in range(0, length, -mode):
            value = cells[picks[start]]
            part = block[start : start - mode]
            if log_space:
                for j in range(len(part)):
                    part[j] += value
            else:
                for j in range(len(part)):
                    part[j] *= value
    elif log_space:
        for j in range(length):
            block[j] += cells[picks[j]]
    else:
        for j in range(length):
            block[j] *= cells[picks[j]]


@kernel
def form_block(
    block,
    length,
    first,
    last,
    kind,
    mode,
    index_offset,
    index,
    at,
    use,
    pool,
    message,
    likelihood,
    constant,
    log_space,
):
    """The block's potentials: the combination of all inputs in use, at their present offsets."""
    scalar = constant
    for s in range(first, last):
        i = s - first
        if use[i] and mode[s] == SCALAR:
            if kind[s] == FACTOR:
                value = pool[at[i]]
            elif kind[s] == MESSAGE:
                value = message[at[i]]
            else:
                value = likelihood[at[i]]
            if log_space:
                scalar += value
            else:
                scalar *= value
    fresh = True
    for s in range(first, last):
        i = s - first
        if use[i] and mode[s] != SCALAR:
            if kind[s] == FACTOR:
                _combine(block, length, pool, at[i], mode[s], index, index_offset[s], scalar, fresh, log_space)
            elif kind[s] == MESSAGE:
                _combine(block, length, message, at[i], mode[s], index, index_offset[s], scalar, fresh, log_space)
            else:
                _combine(
                    block,
                    length,
                    likelihood,
                    at[i],
                    mode[s],
                    index,
                    index_offset[s],
                    scalar,
                    fresh,
                    log_space,
                )
            fresh = False
    if fresh:
        for j in range(length):
            block[j] = scalar


@kernel
def block_sum(block, length):
    """Sum of a block."""
    total = 0.0
    for j in range(length):
        total += block[j]
    return total


@kernel
def block_maximum(block, length):
    """Maximum of a block."""
    best = block[0]
    for j in range(1, length):
        best = max(best, block[j])
    return best


@kernel
def deposit(block, length, target, at, mode, index, index_at):
    """Add the block to an input's table: the adjoint of combining it."""
    if mode == SCALAR:
        target[at] += block_sum(block, length)
    elif mode == STRETCH:
        stretch = target[at : at + length]
        for j in range(length):
            stretch[j] += block[j]
    elif mode >= RUN:
        for start in range(0, length, mode):
            cell = at + np.int64(index[index_at + start])
            stretch = target[cell : cell + mode]
            part = block[start : start + mode]
            for j in range(mode):
                stretch[j] += part[j]
    elif mode <= -RUN:
        for start in range(0, length, -mode):
            target[at + np.int64(index[index_at + start])] += block_sum(block[start : start - mode], -mode)
    else:
        cells = target[at:]
        picks = index[index_at : index_at + length]
        for j in range(length):
            cells[picks[j]] += block[j]


@kernel
def deposit_maximum(block, length, target, at, mode, index, index_at):
    """Raise an input's table to the block's maxima."""
    if mode == SCALAR:
        target[at] = max(target[at], block_maximum(block, length))
    elif mode == STRETCH:
        stretch = target[at : at + length]
        for j in range(length):
            stretch[j] = max(stretch[j], block[j])
    else:
        cells = target[at:]
        picks = index[index_at : index_at + length]
        for j in range(length):
            cells[picks[j]] = max(cells[picks[j]], block[j])


@kernel
def start_offsets(at, first, last, base, counter, n_outer):
    """Begin a walk over a clique's blocks."""
    for s in range(first, last):
        at[s - first] = base[s]
    for a in range(n_outer):
        counter[a] = 0


@kernel
def advance(at, first, last, stride_offset, strides, counter, cards, axis_start, n_outer):
    """Step to the next block: an odometer over the axes before it, last fastest."""
    a = n_outer - 1
    while a >= 0:
        counter[a] += 1
        if counter[a] < cards[axis_start + a]:
            for s in range(first, last):
                at[s - first] += strides[stride_offset[s] + a]
            return
        back = cards[axis_start + a] - 1
        for s in range(first, last):
            at[s - first] -= strides[stride_offset[s] + a] * back
        counter[a] = 0
        a -= 1


@kernel
def exponentiate(block, length):
    """exp of a block, in place."""
    for j in range(length):
        block[j] = exp_scalar(block[j])


@kernel
def scratch(layout):
    """Work space of a pass: a block, the inputs' offsets, whether each is in use, the odometer."""
    longest, widest, most = layout.limits[0], layout.limits[1], layout.limits[2]
    return np.empty(longest), np.empty(most, np.int64), np.empty(most, np.bool_), np.empty(widest, np.int64)


LINEAR, LOG_SUM, LOG_MAX = 0, 1, 2
"""Sums of products in linear space (messages rescaled by powers of two); the same in log space; maxima in log space."""

DONE, IMPOSSIBLE, UNDERFLOW = 0, 1, 2

SAFE = -900.0
"""A product whose factors could together fall below 2**SAFE is checked cell by cell."""
TINY = 1e-290
"""What a product of positive factors must not reach in linear space."""
