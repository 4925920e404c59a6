"""Both passes for many rows of evidence at once: rows are the fastest axis, `LANES` of them side by side.

The products of factors do not depend on the evidence, so each clique's is formed once; what is left per row and clique
state is a few vector operations over the lanes.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels._flags import kernel
from markovfield.kernels.blocks import advance, form_block, scratch, start_offsets
from markovfield.kernels.layout import FACTOR, GATHER, MESSAGE, STRETCH
from markovfield.kernels.propagation import SAFE

__all__ = ["LANES", "clique_potentials", "run_rows"]

LANES = 32


@kernel
def clique_potentials(layout, offsets, pool, factor_low, factor_high, out, low):
    """The product of every clique's factors, near one; returns the power of two taken out of all together."""
    block, at, use, counter = scratch(layout)
    empty = np.zeros(0)
    exponents = 0
    for c in range(len(layout.parent)):
        first, last = layout.slot_offsets[c], layout.slot_offsets[c + 1]
        lowest, highest = 0.0, 0.0
        for s in range(first, last):
            use[s - first] = layout.slot_kind[s] == FACTOR
            if use[s - first]:
                lowest += factor_low[layout.slot_ref[s]]
                highest += factor_high[layout.slot_ref[s]]
        exponent = -math.floor(highest)
        exponents -= exponent
        low[c] = lowest + exponent
        length, n_outer = layout.block[c], layout.n_outer[c]
        start_offsets(at, first, last, layout.slot_base, counter, n_outer)
        for b in range(0, layout.size[c], length):
            form_block(
                block, length, first, last, layout.slot_kind, layout.slot_mode, layout.slot_index_offset,
                layout.index, at, use, pool, empty, empty, math.ldexp(1.0, exponent), False,
            )  # fmt: skip
            for j in range(length):
                out[offsets[c] + b + j] = block[j]
            advance(
                at, first, last, layout.slot_stride_offset, layout.strides, counter, layout.axis_card,
                layout.axis_offsets[c], n_outer,
            )  # fmt: skip
    return exponents


@kernel
def _cell(layout, s, at, j):
    mode = layout.slot_mode[s]
    if mode == STRETCH:
        return at + j
    if mode == GATHER:
        return at + np.int64(layout.index[layout.slot_index_offset[s] + j])
    return at


@kernel
def _walk(layout, c, offset, potentials, message, likelihood, active, ratio, belief, marginals, target, down):
    """All states of a clique for all lanes: onto ``target`` (the separator) on the way up, onto children's
    separators and variables on the way down."""
    block, at, use, counter = scratch(layout)
    first, last = layout.slot_offsets[c], layout.slot_offsets[c + 1]
    length, n_outer, size = layout.block[c], layout.n_outer[c], layout.separator_size[c]
    start = layout.message_offset[c]
    is_root = layout.parent[c] < 0
    start_offsets(at, first, last, layout.slot_base, counter, n_outer)
    lanes = np.empty(LANES)
    for b in range(0, layout.size[c], length):
        for j in range(length):
            value = potentials[offset + b + j]
            if value == 0.0:
                continue
            for w in range(LANES):
                lanes[w] = value
            for s in range(first, last):
                if layout.slot_kind[s] == MESSAGE:
                    cell = _cell(layout, s, at[s - first], j)
                    for w in range(LANES):
                        lanes[w] *= message[cell, w]
                elif layout.slot_kind[s] != FACTOR and active[layout.slot_ref[s]]:
                    cell = _cell(layout, s, at[s - first], j)
                    for w in range(LANES):
                        lanes[w] *= likelihood[cell, w]
            place = (b + j) % size
            if not down:
                for w in range(LANES):
                    target[place, w] += lanes[w]
                continue
            if not is_root:
                for w in range(LANES):
                    lanes[w] *= ratio[start + place, w]
            for s in range(first, last):
                if layout.slot_kind[s] == MESSAGE:
                    cell = _cell(layout, s, at[s - first], j)
                    for w in range(LANES):
                        belief[cell, w] += lanes[w]
                elif layout.slot_kind[s] != FACTOR:
                    cell = _cell(layout, s, at[s - first], j)
                    for w in range(LANES):
                        marginals[cell, w] += lanes[w]
        advance(
            at, first, last, layout.slot_stride_offset, layout.strides, counter, layout.axis_card,
            layout.axis_offsets[c], n_outer,
        )  # fmt: skip


@kernel
def _enter(rows, start, value_offsets, cardinalities, likelihood, active):
    """Zero-one likelihoods of a tile of rows; which variables any of them observes."""
    for v in range(len(cardinalities)):
        active[v] = False
        if cardinalities[v] == 1:
            continue
        for w in range(LANES):
            if start + w < len(rows) and rows[start + w, v] >= 0:
                active[v] = True
        if not active[v]:
            continue
        for x in range(cardinalities[v]):
            for w in range(LANES):
                seen = rows[start + w, v] if start + w < len(rows) else -1
                likelihood[value_offsets[v] + x, w] = 1.0 if seen < 0 or seen == x else 0.0


@kernel
def _rescale(message, start, size, low, scale, total):
    """Make each lane's largest entry at most one; note the lane's smallest positive entry (log2) and the scale."""
    top = np.zeros(LANES)
    for i in range(start, start + size):
        for w in range(LANES):
            top[w] = max(top[w], message[i, w])
    bottom = np.ones(LANES)
    for w in range(LANES):
        exponent = math.frexp(top[w])[1] if top[w] > 0.0 else 0
        total[w] += exponent
        scale[w] = math.ldexp(1.0, -exponent)
    for i in range(start, start + size):
        for w in range(LANES):
            value = message[i, w] * scale[w]
            message[i, w] = value
            bottom[w] = min(bottom[w], value if value > 0.0 else 1.0)
    for w in range(LANES):
        low[w] = math.frexp(bottom[w])[1] - 1


@kernel
def run_rows(
    layout,
    rows,
    first_row,
    last_row,
    value_offsets,
    cardinalities,
    offsets,
    potentials,
    potential_low,
    downward,
    log_partition,
    values,
    suspect,
):
    """Propagate evidence rows ``first_row`` to ``last_row``.

    Parameters
    ----------
    rows
        ``int32[rows, variables]`` states, -1 where nothing is observed.
    potentials, offsets, potential_low
        What `clique_potentials` made.
    log_partition, values
        Out: ``float64[rows]`` (-inf for impossible rows; the scale of ``potentials`` is the caller's to add) and
        ``float64[rows, sum of cardinalities]``.
    suspect
        Out, ``bool[rows]``: a product may have underflowed, the row must be run again by itself.
    """
    n = len(layout.parent)
    n_messages = layout.message_offset[n]
    message = np.empty((n_messages, LANES))
    ratio = np.empty((n_messages if downward else 0, LANES))
    likelihood = np.empty((value_offsets[-1], LANES))
    marginals = np.empty((value_offsets[-1] if downward else 0, LANES))
    active = np.zeros(len(cardinalities), np.bool_)
    low = np.zeros((n, LANES))
    scale = np.ones((n, LANES))
    total = np.zeros(LANES)
    sums = np.zeros((1, LANES))
    for start in range(first_row, last_row, LANES):
        _enter(rows[:last_row], start, value_offsets, cardinalities, likelihood, active)
        total[:] = 0.0
        for i in range(n_messages):
            for w in range(LANES):
                message[i, w] = 0.0
        for i in range(len(ratio)):
            for w in range(LANES):
                ratio[i, w] = 0.0
        for i in range(len(marginals)):
            for w in range(LANES):
                marginals[i, w] = 0.0
        dead = np.zeros(LANES, np.bool_)
        doubt = np.zeros(LANES, np.bool_)
        roots = np.zeros(LANES)
        for c in range(n - 1, -1, -1):
            for w in range(LANES):
                below = potential_low[c]
                for s in range(layout.slot_offsets[c], layout.slot_offsets[c + 1]):
                    if layout.slot_kind[s] == MESSAGE:
                        below += low[layout.slot_ref[s], w]
                doubt[w] = doubt[w] or below < SAFE
            if layout.parent[c] < 0:
                for w in range(LANES):
                    sums[0, w] = 0.0
                _walk(
                    layout,
                    c,
                    offsets[c],
                    potentials,
                    message,
                    likelihood,
                    active,
                    ratio,
                    ratio,
                    marginals,
                    sums,
                    False,
                )
                for w in range(LANES):
                    if sums[0, w] > 0.0:
                        roots[w] += math.log(sums[0, w])
                        scale[c, w] = 1.0 / sums[0, w]
                    else:
                        dead[w] = True
                        scale[c, w] = 0.0
            else:
                begin, size = layout.message_offset[c], layout.separator_size[c]
                _walk(
                    layout, c, offsets[c], potentials, message, likelihood, active, ratio, ratio, marginals,
                    message[begin : begin + size], False,
                )  # fmt: skip
                _rescale(message, begin, size, low[c], scale[c], total)
        if downward:
            for c in range(n):
                begin, size = layout.message_offset[c], layout.separator_size[c]
                if layout.parent[c] >= 0:
                    for i in range(begin, begin + size):
                        for w in range(LANES):
                            m = message[i, w]
                            ratio[i, w] = ratio[i, w] * scale[c, w] / m if m > 0.0 else 0.0
                _walk(
                    layout,
                    c,
                    offsets[c],
                    potentials,
                    message,
                    likelihood,
                    active,
                    ratio,
                    ratio,
                    marginals,
                    sums,
                    True,
                )
                if layout.parent[c] < 0:
                    _divide_root(layout, c, scale[c], ratio, marginals)
        for w in range(min(LANES, last_row - start)):
            row = start + w
            suspect[row] = doubt[w]
            log_partition[row] = -np.inf if dead[w] else roots[w] + total[w] * math.log(2.0)
            if downward:
                for i in range(value_offsets[-1]):
                    values[row, i] = marginals[i, w]
                for v in range(len(cardinalities)):
                    if cardinalities[v] == 1:
                        values[row, value_offsets[v]] = 1.0


@kernel
def _divide_root(layout, c, scale, ratio, marginals):
    """Normalise what a root has handed out."""
    for s in range(layout.slot_offsets[c], layout.slot_offsets[c + 1]):
        r = layout.slot_ref[s]
        if layout.slot_kind[s] == MESSAGE:
            for i in range(layout.message_offset[r], layout.message_offset[r] + layout.separator_size[r]):
                for w in range(LANES):
                    ratio[i, w] *= scale[w]
        elif layout.slot_kind[s] != FACTOR:
            start = layout.axis_offsets[c]
            for a in range(start, layout.axis_offsets[c + 1]):
                if layout.axis_variable[a] == r:
                    for i in range(layout.slot_base[s], layout.slot_base[s] + layout.axis_card[a]):
                        for w in range(LANES):
                            marginals[i, w] *= scale[w]
