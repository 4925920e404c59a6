"""Both passes for many rows of evidence at once: rows are the fastest axis, `LANES` of them side by side.

The products of factors do not depend on the evidence, so each clique's is formed once; what is left per row and clique
state is a few vector operations over the lanes.

Free to change: `LANES`; no row reads another's lane.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.inference.junction_tree.blocks_kernel import (
    SAFE,
    TINY,
    advance,
    deposit,
    form_block,
    scratch,
    start_offsets,
)
from markovfield.inference.junction_tree.layout_kernel import FACTOR, MESSAGE, SCALAR, STRETCH
from markovfield.kernels.compiler import kernel

__all__ = ["LANES", "Program", "cell_counts", "run_rows", "unroll"]

LANES = 32


class Program(NamedTuple):
    """A clique tree unrolled for batches: per clique state its potential and the cells it meets.

    State j of clique c has potential ``potentials[offsets[c] + j]``; the cells of its ``n_messages[c]`` children's
    messages, then of its ``n_variables[c]`` variables, start at ``cells[cell_offsets[c] + j * (both together)]``.
    ``variables`` lists the variables in the same order, from ``variable_offsets[c]``; ``low`` is log2 of each
    clique's smallest positive potential.
    """

    offsets: npt.NDArray[np.int64]
    potentials: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    cell_offsets: npt.NDArray[np.int64]
    cells: npt.NDArray[np.uint32]
    n_messages: npt.NDArray[np.int64]
    n_variables: npt.NDArray[np.int64]
    variable_offsets: npt.NDArray[np.int64]
    variables: npt.NDArray[np.int64]


@kernel
def unroll(layout, pool, factor_low, factor_high):
    """The arrays of a `Program`, and the power of two taken out of all potentials together."""
    n = len(layout.parent)
    offsets = np.zeros(n + 1, np.int64)
    cell_offsets = np.zeros(n + 1, np.int64)
    variable_offsets = np.zeros(n + 1, np.int64)
    n_messages = np.zeros(n, np.int64)
    n_variables = np.zeros(n, np.int64)
    for c in range(n):
        for s in range(layout.input_offsets[c], layout.input_offsets[c + 1]):
            if layout.input_kind[s] == MESSAGE:
                n_messages[c] += 1
            elif layout.input_kind[s] != FACTOR:
                n_variables[c] += 1
        offsets[c + 1] = offsets[c] + layout.size[c]
        cell_offsets[c + 1] = cell_offsets[c] + layout.size[c] * (n_messages[c] + n_variables[c])
        variable_offsets[c + 1] = variable_offsets[c] + n_variables[c]
    potentials = np.empty(offsets[n])
    cells = np.empty(cell_offsets[n], np.uint32)
    variables = np.empty(variable_offsets[n], np.int64)
    low = np.zeros(n)
    block, at, use, counter = scratch(layout)
    # Booleans as values, not literals: for a literal the compiler would make another copy of the callee.
    empty = np.zeros(0)
    exponents = 0
    for c in range(n):
        first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
        lowest, highest = 0.0, 0.0
        found = variable_offsets[c]
        for s in range(first, last):
            use[s - first] = layout.input_kind[s] == FACTOR
            if use[s - first]:
                lowest += factor_low[layout.input_ref[s]]
                highest += factor_high[layout.input_ref[s]]
            elif layout.input_kind[s] != MESSAGE:
                variables[found] = layout.input_ref[s]
                found += 1
        exponent = -math.floor(highest)
        low[c] = lowest + exponent
        if abs(exponent) > 900:
            # Too far from one for linear space: every row is left to the caller.
            exponent = 0
            low[c] = -np.inf
        exponents -= exponent
        length, n_outer = layout.block[c], layout.n_outer[c]
        start_offsets(at, first, last, layout.input_base, counter, n_outer)
        p = cell_offsets[c]
        for b in range(0, layout.size[c], length):
            form_block(
                block, length, first, last, layout.input_kind, layout.input_mode, layout.input_index_offset,
                layout.index, at, use, pool, empty, empty, math.ldexp(1.0, exponent), np.bool_(False),
            )  # fmt: skip
            for j in range(length):
                potentials[offsets[c] + b + j] = block[j]
                for s in range(first, last):
                    if layout.input_kind[s] == FACTOR:
                        continue
                    cell = at[s - first]
                    if layout.input_mode[s] == STRETCH:
                        cell += j
                    elif layout.input_mode[s] != SCALAR:
                        cell += np.int64(layout.index[layout.input_index_offset[s] + j])
                    cells[p] = cell
                    p += 1
            advance(
                at, first, last, layout.input_stride_offset, layout.strides, counter, layout.axis_card,
                layout.axis_offsets[c], n_outer,
            )  # fmt: skip
    return (
        offsets, potentials, low, cell_offsets, cells, n_messages, n_variables, variable_offsets, variables, exponents
    )  # fmt: skip


@kernel
def _walk(
    layout, program, c, message, likelihood, active, ratio, marginals, target, target_at, down, lanes, seen, tally,
    weight,
):  # fmt: skip
    """All states of a clique for all lanes: onto ``target`` (its separator) on the way up, onto its children's
    separators and its variables on the way down; where counts are wanted, onto ``tally`` instead of the variables."""
    # Not the constant: the compiler would unroll these loops instead of vectorising them.
    width = len(lanes)
    size = layout.separator_size[c]
    start = layout.message_offset[c]
    spread = down and layout.parent[c] >= 0
    n_messages, n_variables = program.n_messages[c], program.n_variables[c]
    n_seen = 0
    for i in range(n_variables):
        if active[program.variables[program.variable_offsets[c] + i]]:
            seen[n_seen] = n_messages + i
            n_seen += 1
    offset = program.offsets[c]
    counting = len(tally) > 0
    p = program.cell_offsets[c]
    place = 0
    for j in range(layout.size[c]):
        value = program.potentials[offset + j]
        if value != 0.0:
            for w in range(width):
                lanes[w] = value
            for i in range(p, p + n_messages):
                cell = program.cells[i]
                for w in range(width):
                    lanes[w] *= message[cell, w]
            for i in range(n_seen):
                cell = program.cells[p + seen[i]]
                for w in range(width):
                    lanes[w] *= likelihood[cell, w]
            if not down:
                cell = np.uint32(target_at + place)
                for w in range(width):
                    target[cell, w] += lanes[w]
            else:
                if spread:
                    cell = np.uint32(start + place)
                    for w in range(width):
                        lanes[w] *= ratio[cell, w]
                for i in range(p, p + n_messages):
                    cell = program.cells[i]
                    for w in range(width):
                        ratio[cell, w] += lanes[w]
                if counting:
                    total = 0.0
                    for w in range(width):
                        total += lanes[w] * weight[w]
                    tally[offset + j] += total
                else:
                    for i in range(p + n_messages, p + n_messages + n_variables):
                        cell = program.cells[i]
                        for w in range(width):
                            marginals[cell, w] += lanes[w]
        p += n_messages + n_variables
        place += 1
        if place == size:
            place = 0


@kernel
def _enter(rows, start, stop, value_offsets, cardinalities, likelihood, active):
    """Zero-one likelihoods of a tile of rows; which variables any of them observes."""
    for v in range(len(cardinalities)):
        active[v] = False
        if cardinalities[v] == 1:
            continue
        for w in range(LANES):
            if start + w < stop and rows[start + w, v] >= 0:
                active[v] = True
        if not active[v]:
            continue
        for x in range(cardinalities[v]):
            for w in range(LANES):
                seen = rows[start + w, v] if start + w < stop else -1
                likelihood[value_offsets[v] + x, w] = 1.0 if seen < 0 or seen == x else 0.0


@kernel
def _rescale(message, start, size, low, scale, total):
    """Make each lane's largest entry at most one; note the lane's smallest positive entry (log2) and the scale."""
    width = message.shape[1]
    top = np.zeros(LANES)
    for i in range(start, start + size):
        for w in range(width):
            top[w] = max(top[w], message[i, w])
    bottom = np.ones(LANES)
    for w in range(width):
        exponent = math.frexp(top[w])[1] if top[w] > 0.0 else 0
        total[w] += exponent
        scale[w] = math.ldexp(1.0, -exponent)
    for i in range(start, start + size):
        for w in range(width):
            value = message[i, w] * scale[w]
            message[i, w] = value
            bottom[w] = min(bottom[w], value if value > 0.0 else 1.0)
    for w in range(width):
        low[w] = -np.inf if 0.0 < top[w] < TINY else math.frexp(bottom[w])[1] - 1


@kernel
def _clear(array):
    width = array.shape[1]
    for i in range(array.shape[0]):
        for w in range(width):
            array[i, w] = 0.0


@kernel
def _divide(ratio, message, scale, start, stop):
    """Beliefs of a separator over the message sent up through it; 0/0 is 0."""
    width = len(scale)
    for i in range(start, stop):
        for w in range(width):
            m = message[i, w]
            ratio[i, w] = ratio[i, w] * scale[w] / (m if m > 0.0 else 1.0)


@kernel
def _doubtful(layout, program, c, low, doubt):
    """Mark lanes in which a product of potentials and messages could have underflowed."""
    for w in range(LANES):
        below = program.low[c]
        for s in range(layout.input_offsets[c], layout.input_offsets[c + 1]):
            if layout.input_kind[s] == MESSAGE:
                below += low[layout.input_ref[s], w]
        doubt[w] = doubt[w] or below < SAFE


@kernel
def run_rows(
    layout, program, rows, first_row, last_row, value_offsets, cardinalities, log_partition, values, suspect, weights,
    tally,
):  # fmt: skip
    """Propagate evidence rows ``first_row`` to ``last_row``.

    Parameters
    ----------
    rows
        ``int32[rows, variables]`` states, -1 where nothing is observed.
    log_partition, values
        Out: ``float64[rows]`` (-inf for impossible rows; the scale of the potentials is the caller's to add) and
        ``float64[rows, sum of cardinalities]``.
    suspect
        Out, ``bool[rows]``: a product may have underflowed, the row must be run again by itself.
    weights, tally
        With a ``tally`` of the program's clique states (else both are empty), posterior probabilities of clique states
        are added to it, every row times its weight, and ``values`` is left alone. Suspect and impossible rows add
        nothing.
    """
    n = len(layout.parent)
    n_messages = layout.message_offset[n]
    # One row more than needed: the sums of roots go there.
    message = np.empty((n_messages + 1, LANES))
    ratio = np.empty((n_messages, LANES))
    likelihood = np.empty((value_offsets[-1], LANES))
    marginals = np.empty((value_offsets[-1], LANES))
    active = np.zeros(len(cardinalities), np.bool_)
    low = np.zeros((n, LANES))
    scale = np.ones((n, LANES))
    lanes = np.empty(LANES)
    seen = np.empty(layout.limits[2], np.int64)
    weight = np.zeros(LANES)
    root_weight = np.zeros(LANES)
    for start in range(first_row, last_row, LANES):
        _enter(rows, start, last_row, value_offsets, cardinalities, likelihood, active)
        _clear(message)
        _clear(ratio)
        _clear(marginals)
        total = np.zeros(LANES)
        roots = np.zeros(LANES)
        dead = np.zeros(LANES, np.bool_)
        doubt = np.zeros(LANES, np.bool_)
        for c in range(n - 1, -1, -1):
            _doubtful(layout, program, c, low, doubt)
            begin, size = layout.message_offset[c], layout.separator_size[c]
            if layout.parent[c] < 0:
                begin = n_messages
                for w in range(LANES):
                    message[begin, w] = 0.0
            _walk(
                layout, program, c, message, likelihood, active, ratio, marginals, message, begin, False, lanes, seen,
                tally, weight,
            )  # fmt: skip
            if layout.parent[c] >= 0:
                _rescale(message, begin, size, low[c], scale[c], total)
                continue
            for w in range(LANES):
                here = message[begin, w]
                dead[w] = dead[w] or not here > 0.0
                roots[w] += math.log(here) if here > 0.0 else 0.0
                scale[c, w] = 1.0 / here if here > 0.0 else 0.0
        if len(tally):
            for w in range(LANES):
                counted = start + w < last_row and not (doubt[w] or dead[w])
                weight[w] = weights[start + w] if counted else 0.0
        for c in range(n):
            begin, size = layout.message_offset[c], layout.separator_size[c]
            if layout.parent[c] >= 0:
                _divide(ratio, message, scale[c], begin, begin + size)
            for w in range(LANES):
                # What a root hands out is normalised after its walk; what it tallies must be at once.
                root_weight[w] = weight[w] * scale[c, w] if layout.parent[c] < 0 else weight[w]
            _walk(
                layout, program, c, message, likelihood, active, ratio, marginals, message, begin, True, lanes, seen,
                tally, root_weight,
            )  # fmt: skip
            if layout.parent[c] < 0:
                _divide_root(layout, c, scale[c], ratio, marginals)
        for w in range(min(LANES, last_row - start)):
            row = start + w
            suspect[row] = doubt[w]
            log_partition[row] = -np.inf if dead[w] else roots[w] + total[w] * math.log(2.0)
            if len(tally):
                continue
            for i in range(value_offsets[-1]):
                values[row, i] = marginals[i, w]
            for v in range(len(cardinalities)):
                if cardinalities[v] == 1:
                    values[row, value_offsets[v]] = 1.0


@kernel
def _divide_root(layout, c, scale, ratio, marginals):
    """Normalise what a root has handed out."""
    width = ratio.shape[1]
    for s in range(layout.input_offsets[c], layout.input_offsets[c + 1]):
        r = layout.input_ref[s]
        if layout.input_kind[s] == MESSAGE:
            for i in range(layout.message_offset[r], layout.message_offset[r] + layout.separator_size[r]):
                for w in range(width):
                    ratio[i, w] *= scale[w]
        elif layout.input_kind[s] != FACTOR:
            start = layout.axis_offsets[c]
            for a in range(start, layout.axis_offsets[c + 1]):
                if layout.axis_variable[a] == r:
                    for i in range(layout.input_base[s], layout.input_base[s] + layout.axis_card[a]):
                        for w in range(width):
                            marginals[i, w] *= scale[w]


@kernel
def cell_counts(layout, offsets, tally, counts):
    """Add a tally of clique states up in the cells of the factors that each clique multiplies."""
    block, at, _, counter = scratch(layout)
    for c in range(len(layout.parent)):
        first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
        length, n_outer = layout.block[c], layout.n_outer[c]
        start_offsets(at, first, last, layout.input_base, counter, n_outer)
        for b in range(offsets[c], offsets[c + 1], length):
            for j in range(length):
                block[j] = tally[b + j]
            for s in range(first, last):
                if layout.input_kind[s] == FACTOR:
                    deposit(
                        block, length, counts, at[s - first], layout.input_mode[s], layout.index,
                        layout.input_index_offset[s],
                    )  # fmt: skip
            advance(
                at, first, last, layout.input_stride_offset, layout.strides, counter, layout.axis_card,
                layout.axis_offsets[c], n_outer,
            )  # fmt: skip
