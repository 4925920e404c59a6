"""Axis orders, offsets and index blocks: everything a pass over the clique tree needs, laid out flat.

The axes of a clique are its residual variables, then its separator in the parent's axis order. So the separator is
the fast end: summing a clique onto its separator, and spreading a separator over its clique, run along contiguous
memory. The last axes, of about `BLOCK` states, form the clique's *block*; loops run over the axes before it.

An *input* is one small table that a clique reads in one direction and adds to in the other: a factor, a child's
message or a variable's unary vector. Its mode says how a block meets it: as a stretch (`STRETCH`), as a single number
(`SCALAR`), or through an index block: cell by cell (`GATHER`), in stretches of r cells each (mode r >= `RUN`), or in
runs of r states that meet the same cell (mode -r).

Every pass relies on this. Free to change: `BLOCK`, `LONG_BLOCK` and `RUN`, which change cost alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel

__all__ = ["BLOCK", "FACTOR", "GATHER", "MESSAGE", "SCALAR", "STRETCH", "VARIABLE", "Layout", "lay_out"]

BLOCK = 1024
LONG_BLOCK = 8192
FACTOR, MESSAGE, VARIABLE = 0, 1, 2
SCALAR, STRETCH, GATHER = 0, 1, 2
RUN = 8


class Layout(NamedTuple):
    """The flat plan. Cliques are in preorder; entry c of an ``_offsets`` array starts clique c's part.

    ``home`` is the clique of each factor; ``limits`` the longest block, the most outer axes and the most inputs of
    any clique, which is the work space a pass needs.
    """

    parent: npt.NDArray[np.int64]
    unit: npt.NDArray[np.bool_]
    axis_offsets: npt.NDArray[np.int64]
    axis_variable: npt.NDArray[np.int32]
    axis_card: npt.NDArray[np.int64]
    n_residual: npt.NDArray[np.int64]
    n_outer: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    block: npt.NDArray[np.int64]
    separator_size: npt.NDArray[np.int64]
    message_offset: npt.NDArray[np.int64]
    input_offsets: npt.NDArray[np.int64]
    input_kind: npt.NDArray[np.int8]
    input_ref: npt.NDArray[np.int64]
    input_base: npt.NDArray[np.int64]
    input_mode: npt.NDArray[np.int32]
    input_stride_offset: npt.NDArray[np.int64]
    input_index_offset: npt.NDArray[np.int64]
    strides: npt.NDArray[np.int64]
    index: npt.NDArray[np.uint32]  # type: ignore[assignment]
    home: npt.NDArray[np.int64]
    limits: npt.NDArray[np.int64]


@kernel
def _extends(block, card):
    """Whether a block takes in one more axis: up to `BLOCK` states, or `LONG_BLOCK` where it would be short."""
    return block * card <= BLOCK or (block < BLOCK // 2 and block * card <= LONG_BLOCK) or block == 1


@kernel
def _axis_orders(cardinalities, parent, offsets, members):
    """Order every clique's axes: residual first, separator last in the parent's order."""
    n = len(parent)
    inside = np.full(len(cardinalities), -1, np.int64)
    weight = np.zeros(len(members), np.int64)
    place = np.empty(len(cardinalities), np.int64)
    # How many children share each axis: shared axes go to the fast end, where children read them as stretches.
    # A clique's children follow it in preorder, so one stamp per clique and a list of children would do; counting
    # through the parent's members is as cheap because cliques are small.
    for c in range(n):
        p = parent[c]
        if p < 0:
            continue
        for i in range(offsets[c], offsets[c + 1]):
            inside[members[i]] = c
        for i in range(offsets[p], offsets[p + 1]):
            if inside[members[i]] == c:
                weight[i] += 1
    inside[:] = -1
    axes = np.empty(len(members), np.int32)
    n_residual = np.zeros(n, np.int64)
    for c in range(n):
        p = parent[c]
        start, stop = offsets[c], offsets[c + 1]
        for i in range(start, stop):
            inside[members[i]] = c
            place[members[i]] = i
        at = stop
        if p >= 0:
            for i in range(offsets[p + 1] - 1, offsets[p] - 1, -1):
                v = axes[i]
                if inside[v] == c:
                    at -= 1
                    axes[at] = v
                    inside[v] = -1
        n_residual[c] = at - start
        filled = start
        for i in range(start, stop):
            v = members[i]
            if inside[v] != c:
                continue
            # Insertion sort by weight: residuals are few.
            j = filled
            while j > start and weight[place[axes[j - 1]]] > weight[i]:
                axes[j] = axes[j - 1]
                j -= 1
            axes[j] = v
            filled += 1
    return axes, n_residual


@kernel
def _fill_index(index, at, strides, cards, first, last):
    """Offsets of a block's cells in an input's table, axes first..last-1, last axis fastest.

    Counted from the lowest cell (they are unsigned, which spares the loops a sign check); returns how far that cell
    lies from the block's own first one.
    """
    lowest = 0
    for a in range(first, last):
        lowest += min(0, strides[a] * (cards[a] - 1))
    index[at] = -lowest
    filled = 1
    for a in range(last - 1, first - 1, -1):
        stride = strides[a]
        for x in range(1, cards[a]):
            step = x * stride
            for j in range(filled):
                index[at + x * filled + j] = index[at + j] + step
        filled *= cards[a]
    return lowest


@kernel
def _run_mode(strides, cards, first, last):
    """How long the cells of consecutive states are consecutive, or the same; short runs are not worth a loop."""
    step, run = 1, 1
    if strides[last - 1] == 0:
        step = 0
    for a in range(last - 1, first - 1, -1):
        if strides[a] != step * run:
            break
        run *= cards[a]
    if run < RUN:
        return GATHER
    return run if step else -run


@kernel
def lay_out(
    cardinalities,
    value_offsets,
    scope_offsets,
    scopes,
    table_offsets,
    table_strides,
    parent,
    offsets,
    members,
    home,
    unit,
):
    """Lay out a clique tree (see `build_clique_tree`) as a `Layout`; allocates nothing of table size."""
    n = len(parent)
    axes, n_residual = _axis_orders(cardinalities, parent, offsets, members)
    cards = np.empty(len(axes), np.int64)
    for i in range(len(axes)):
        cards[i] = cardinalities[axes[i]]
    size = np.ones(n, np.int64)
    block = np.ones(n, np.int64)
    n_outer = np.zeros(n, np.int64)
    separator_size = np.ones(n, np.int64)
    message_offset = np.zeros(n + 1, np.int64)
    for c in range(n):
        start, stop = offsets[c], offsets[c + 1]
        outer = stop
        while outer > start and _extends(block[c], cards[outer - 1]):
            outer -= 1
            block[c] *= cards[outer]
        n_outer[c] = outer - start
        for i in range(start, stop):
            size[c] *= cards[i]
            if i >= start + n_residual[c]:
                separator_size[c] *= cards[i]
        message_offset[c + 1] = message_offset[c] + (separator_size[c] if parent[c] >= 0 else 0)
    # The smallest clique that holds each variable gives its marginal.
    variable_home = np.full(len(cardinalities), -1, np.int64)
    for c in range(n):
        for i in range(offsets[c], offsets[c + 1]):
            v = axes[i]
            if variable_home[v] < 0 or size[c] < size[variable_home[v]]:
                variable_home[v] = c
    input_offsets = np.zeros(n + 1, np.int64)
    for f in range(len(home)):
        if home[f] >= 0:
            input_offsets[home[f] + 1] += 1
    for v in range(len(cardinalities)):
        if variable_home[v] >= 0:
            input_offsets[variable_home[v] + 1] += 1
    for c in range(n):
        if parent[c] >= 0:
            input_offsets[parent[c] + 1] += 1
    n_strides, n_index = 0, 0
    for c in range(n):
        n_strides += input_offsets[c + 1] * n_outer[c]
        n_index += input_offsets[c + 1] * block[c]
        input_offsets[c + 1] += input_offsets[c]
    n_inputs = input_offsets[n]
    kind = np.empty(n_inputs, np.int8)
    ref = np.empty(n_inputs, np.int64)
    fill = input_offsets[:n].copy()
    for f in range(len(home)):
        if home[f] >= 0:
            kind[fill[home[f]]] = FACTOR
            ref[fill[home[f]]] = f
            fill[home[f]] += 1
    for c in range(n):
        p = parent[c]
        if p >= 0:
            kind[fill[p]] = MESSAGE
            ref[fill[p]] = c
            fill[p] += 1
    for v in range(len(cardinalities)):
        c = variable_home[v]
        if c >= 0:
            kind[fill[c]] = VARIABLE
            ref[fill[c]] = v
            fill[c] += 1
    base = np.empty(n_inputs, np.int64)
    mode = np.empty(n_inputs, np.int32)
    stride_offset = np.empty(n_inputs, np.int64)
    index_offset = np.empty(n_inputs, np.int64)
    strides = np.empty(n_strides, np.int64)
    index = np.empty(n_index, np.uint32)
    place = np.empty(len(cardinalities), np.int64)
    widest = 0
    for c in range(n):
        widest = max(widest, offsets[c + 1] - offsets[c])
    local = np.empty(widest, np.int64)
    local_cards = np.empty(widest, np.int64)
    strides_used, index_used = 0, 0
    limits = np.ones(3, np.int64)
    for c in range(n):
        start, width, outer = offsets[c], offsets[c + 1] - offsets[c], n_outer[c]
        for a in range(width):
            place[axes[start + a]] = a
            local_cards[a] = cards[start + a]
        limits[0] = max(limits[0], block[c])
        limits[1] = max(limits[1], outer)
        limits[2] = max(limits[2], input_offsets[c + 1] - input_offsets[c])
        for s in range(input_offsets[c], input_offsets[c + 1]):
            local[:width] = 0
            r = ref[s]
            if kind[s] == FACTOR:
                base[s] = table_offsets[r]
                for i in range(scope_offsets[r], scope_offsets[r + 1]):
                    if cardinalities[scopes[i]] > 1:
                        local[place[scopes[i]]] = table_strides[i]
            elif kind[s] == MESSAGE:
                base[s] = message_offset[r]
                step = 1
                for i in range(offsets[r + 1] - 1, offsets[r] + n_residual[r] - 1, -1):
                    local[place[axes[i]]] = step
                    step *= cards[i]
            else:
                base[s] = value_offsets[r]
                local[place[r]] = 1
            stride_offset[s] = strides_used
            for a in range(outer):
                strides[strides_used + a] = local[a]
            strides_used += outer
            scalar, stretch, step = True, True, 1
            for a in range(width - 1, outer - 1, -1):
                scalar = scalar and local[a] == 0
                stretch = stretch and local[a] == step
                step *= local_cards[a]
            index_offset[s] = index_used
            if scalar:
                mode[s] = SCALAR
            elif stretch:
                mode[s] = STRETCH
            else:
                mode[s] = _run_mode(local, local_cards, outer, width)
                base[s] += _fill_index(index, index_used, local, local_cards, outer, width)
                index_used += block[c]
    return (
        axes,
        cards,
        n_residual,
        n_outer,
        size,
        block,
        separator_size,
        message_offset,
        input_offsets,
        kind,
        ref,
        base,
        mode,
        stride_offset,
        index_offset,
        strides,
        index[:index_used].copy(),
        limits,
    )
