"""What is read off a collected clique tree: a clique's table, the best assignment, the next best, samples.

Invariant: `Layout` and what `collect_kernel` leaves; ties go to the lowest state number, and a draw depends on its
uniform numbers alone. Free to change: `draw`'s choice between whole tables and single columns.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.inference.junction_tree.blocks_kernel import advance, form_block, scratch, start_offsets
from markovfield.inference.junction_tree.collect_kernel import mark_inputs
from markovfield.inference.junction_tree.distribute_kernel import spread
from markovfield.inference.junction_tree.layout_kernel import FACTOR, MESSAGE, SCALAR, STRETCH
from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = ["backtrack", "clique_table", "draw", "residual_table", "second_best"]


@kernel
def _constant(layout, c, log_space, factor_high):
    """What a clique's product starts from, so that it ends near one: in linear space the power of two that its
    factors' largest potentials lack."""
    if log_space:
        return 0.0
    high = 0.0
    for s in range(layout.input_offsets[c], layout.input_offsets[c + 1]):
        if layout.input_kind[s] == FACTOR:
            high += factor_high[layout.input_ref[s]]
    return math.ldexp(1.0, -math.floor(high))


@kernel
def clique_table(layout, c, log_space, pool, factor_high, message, likelihood, active, needed, ratio, with_ratio, out):
    """All states of a clique, in its axis order: its product near one, times the separator's ratio where asked for."""
    block, at, use, counter = scratch(layout)
    first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
    length, size, n_outer = layout.block[c], layout.separator_size[c], layout.n_outer[c]
    mark_inputs(layout, c, needed, active, use)
    constant = _constant(layout, c, log_space, factor_high)
    start_offsets(at, first, last, layout.input_base, counter, n_outer)
    for b in range(0, layout.size[c], length):
        form_block(
            block, length, first, last, layout.input_kind, layout.input_mode, layout.input_index_offset,
            layout.index, at, use, pool, message, likelihood, constant, log_space,
        )  # fmt: skip
        if with_ratio and layout.parent[c] >= 0:
            spread(block, length, ratio, layout.message_offset[c] + b % size, size, log_space)
        for j in range(length):
            out[b + j] = block[j]
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


@kernel
def _cell(layout, c, flat, use, constant, log_space, pool, message, likelihood):
    """The product at one state of a clique, given by its flat number."""
    first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
    length, n_outer, axis_start = layout.block[c], layout.n_outer[c], layout.axis_offsets[c]
    inner, outer = flat % length, flat // length
    value = constant
    for s in range(first, last):
        if not use[s - first]:
            continue
        cell = layout.input_base[s]
        rest = outer
        for a in range(n_outer - 1, -1, -1):
            card = layout.axis_card[axis_start + a]
            cell += layout.strides[layout.input_stride_offset[s] + a] * (rest % card)
            rest //= card
        if layout.input_mode[s] == STRETCH:
            cell += inner
        elif layout.input_mode[s] != SCALAR:
            cell += np.int64(layout.index[layout.input_index_offset[s] + inner])
        if layout.input_kind[s] == FACTOR:
            x = pool[cell]
        elif layout.input_kind[s] == MESSAGE:
            x = message[cell]
        else:
            x = likelihood[cell]
        if log_space:
            value += x
        else:
            value *= x
    return value


@kernel
def _separator_state(layout, c, states):
    """Flat number of the separator's state under an assignment."""
    flat = 0
    for i in range(layout.axis_offsets[c] + layout.n_residual[c], layout.axis_offsets[c + 1]):
        flat = flat * layout.axis_card[i] + states[layout.axis_variable[i]]
    return flat


@kernel
def _assign_residual(layout, c, residual, states):
    """Write the residual variables' states from their flat number."""
    start = layout.axis_offsets[c]
    for a in range(layout.n_residual[c] - 1, -1, -1):
        card = layout.axis_card[start + a]
        states[layout.axis_variable[start + a]] = residual % card
        residual //= card


@kernel
def residual_table(layout, c, states, pool, message, likelihood, active, needed, out):
    """The clique's product (log space) for every residual state, the separator being fixed by ``states``."""
    use = np.empty(max(1, layout.input_offsets[c + 1] - layout.input_offsets[c]), np.bool_)
    mark_inputs(layout, c, needed, active, use)
    size = layout.separator_size[c]
    fixed = _separator_state(layout, c, states)
    for r in range(layout.size[c] // size):
        out[r] = _cell(layout, c, r * size + fixed, use, 0.0, True, pool, message, likelihood)


@kernel
def backtrack(layout, first_clique, decode, pool, message, likelihood, active, needed, states):
    """From clique ``first_clique`` on, give each residual its best state given what is assigned above it.

    Log space. ``decode[c]`` is false for cliques that were summed out; their variables are left alone. Ties go to
    the lowest state number.
    """
    block, at, use, counter = scratch(layout)
    for c in range(first_clique, len(layout.parent)):
        if not decode[c]:
            continue
        mark_inputs(layout, c, needed, active, use)
        best, arg = -np.inf, 0
        if layout.parent[c] < 0:
            first, last = layout.input_offsets[c], layout.input_offsets[c + 1]
            length, n_outer = layout.block[c], layout.n_outer[c]
            start_offsets(at, first, last, layout.input_base, counter, n_outer)
            for b in range(0, layout.size[c], length):
                form_block(
                    block, length, first, last, layout.input_kind, layout.input_mode, layout.input_index_offset,
                    layout.index, at, use, pool, message, likelihood, 0.0, np.bool_(True),
                )  # fmt: skip
                for j in range(length):
                    if block[j] > best:
                        best, arg = block[j], b + j
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
        else:
            size = layout.separator_size[c]
            fixed = _separator_state(layout, c, states)
            for r in range(layout.size[c] // size):
                value = _cell(layout, c, r * size + fixed, use, 0.0, True, pool, message, likelihood)
                if value > best:
                    best, arg = value, r
        _assign_residual(layout, c, arg, states)


@kernel
def second_best(layout, first_clique, pool, message, likelihood, active, needed, states, losses):
    """For each clique from ``first_clique`` on: how much the score falls if it must leave its present residual state
    for the next best one while everything above stays and everything below is free."""
    for c in range(first_clique, len(layout.parent)):
        use = np.empty(max(1, layout.input_offsets[c + 1] - layout.input_offsets[c]), np.bool_)
        mark_inputs(layout, c, needed, active, use)
        size = layout.separator_size[c]
        fixed = _separator_state(layout, c, states)
        best, second = -np.inf, -np.inf
        for r in range(layout.size[c] // size):
            value = _cell(layout, c, r * size + fixed, use, 0.0, True, pool, message, likelihood)
            if value > best:
                best, second = value, best
            elif value > second:
                second = value
        losses[c] = best - second if second > -np.inf else np.inf


@kernel
def _exponentiate_columns(table, size, n_residual):
    """exp of a (residual, separator) table, each column's maximum becoming one."""
    for j in range(size):
        top = -np.inf
        for r in range(n_residual):
            top = max(top, table[r * size + j])
        for r in range(n_residual):
            table[r * size + j] = exp_scalar(table[r * size + j] - top) if top > -np.inf else 0.0


@kernel
def draw(layout, uniforms, log_space, pool, factor_high, message, likelihood, active, needed, states, table_limit):
    """Sample assignments from the roots down: each residual given the states above it.

    ``uniforms`` is ``float64[cliques, samples]``. Where many samples meet a small clique its conditional tables are
    accumulated once; else only the asked-for column is formed.
    """
    n, n_samples = uniforms.shape
    for c in range(n):
        size = layout.separator_size[c]
        n_residual = layout.size[c] // size
        use = np.empty(max(1, layout.input_offsets[c + 1] - layout.input_offsets[c]), np.bool_)
        mark_inputs(layout, c, needed, active, use)
        constant = _constant(layout, c, log_space, factor_high)
        tabulate = layout.parent[c] < 0 or (
            layout.size[c] <= table_limit and layout.size[c] <= 4 * n_samples * n_residual
        )
        table = np.empty(layout.size[c] if tabulate else n_residual)
        if tabulate:
            clique_table(
                layout, c, log_space, pool, factor_high, message, likelihood, active, needed, message, False, table
            )
            if log_space:
                _exponentiate_columns(table, size, n_residual)
            for i in range(size, layout.size[c]):
                table[i] += table[i - size]
        for k in range(n_samples):
            fixed = _separator_state(layout, c, states[k])
            step = size
            if not tabulate:
                step = 1
                for r in range(n_residual):
                    table[r] = _cell(layout, c, r * size + fixed, use, constant, log_space, pool, message, likelihood)
                if log_space:
                    _exponentiate_columns(table, 1, n_residual)
                for r in range(1, n_residual):
                    table[r] += table[r - 1]
                fixed = 0
            goal = uniforms[c, k] * table[(n_residual - 1) * step + fixed]
            low, high = 0, n_residual - 1
            while low < high:
                middle = (low + high) // 2
                if table[middle * step + fixed] > goal:
                    high = middle
                else:
                    low = middle + 1
            _assign_residual(layout, c, low, states[k])
