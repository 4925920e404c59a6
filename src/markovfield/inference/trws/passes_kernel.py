"""Sequential tree-reweighted max-product: passes over the variables in order, the bound, and rounding.

Every axis p of a factor of two or more variables carries a message on its variable's states, and any messages at all
leave the score as it is: a factor is its table less the messages of its axes, a variable its unary log-potentials plus
the messages of its axes. So the sum of all their maxima bounds every score from above. Two moves never raise it:

* *collect*: the message of an axis becomes the factor's maxima over the other axes, less the other messages;
* *push*: a share of the variable's scores is taken off the message of an axis, shares adding up to at most one.

A pass visits variables in order; each collects from the factors it is not the first of and pushes to those it is not
the last of. After it, a factor's own maximum is the constant that its last collect was shifted by (``shift``), and a
variable keeps what it did not push (``kept``).

Free to change: `LEAST_DISTANCE_STATES`, and which kinds of tables have a fast path.

Taking a factor graph apart from its leaves: what hangs on the rest by trees is solved in one pass.

Invariant: what is taken off is a forest that hangs on the rest; each variable is listed once, leaves first. Linear in
the axes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.factors.distance_kernel import _is_truncated, _maxima, _shape
from markovfield.kernels.compiler import kernel

__all__ = ["COLLECT", "PUSH", "PairTables", "SequentialLayout", "fill_pair_tables", "peel", "round_states", "run_pass"]


# What an axis does in a pass: forwards as here, backwards two bits further on.
COLLECT, PUSH = 1, 2
# Kinds of a table of two variables: cells above its least one in a band; a diagonal; a function of the distance; any.
BAND, DIAGONAL, DISTANCE, FULL = 0, 1, 2, 3
# With fewer states a band beats the two scalar passes of a distance transform: it runs in vectors.
LEAST_DISTANCE_STATES = 64


class SequentialLayout(NamedTuple):
    """Variables and factors of two or more of them, as passes read them.

    ``variable_axes[variable_offsets[i] : variable_offsets[i + 1]]`` are the axes of variable i; axis p belongs to
    factor ``axis_factor[p]`` and its message starts at ``message_offsets[p]``; ``roles[p]`` is what it does in a pass.
    Factor f has the axes ``scope_offsets[f] .. scope_offsets[f + 1]``, on variables ``scopes``; one of two variables
    reads table ``pair_table[f]``, any other has -1 there and the cells ``table_offsets[f] + stride * state + ...``.
    ``weight[i]`` is the share that variable i pushes to each axis.
    """

    value_offsets: npt.NDArray[np.int64]
    variable_offsets: npt.NDArray[np.int64]
    variable_axes: npt.NDArray[np.int64]
    axis_factor: npt.NDArray[np.int64]
    message_offsets: npt.NDArray[np.int64]
    roles: npt.NDArray[np.int8]
    scope_offsets: npt.NDArray[np.int64]
    scopes: npt.NDArray[np.int64]
    pair_table: npt.NDArray[np.int64]
    table_offsets: npt.NDArray[np.int64]
    table_strides: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]


class PairTables(NamedTuple):
    """Distinct tables of two variables, written out twice: rows of the first variable, then rows of the second.

    Table t has ``rows[t]`` and ``columns[t]`` states, its cells start at ``starts[t]``, its rows at ``row_starts[t]``
    in ``first`` and ``last``, which say where a row is above ``floor[t]``. In the pool it has a base and two strides.
    ``near`` holds, of a function of the distance, a cell for each distance up to ``cap[t]``.
    """

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    row_starts: npt.NDArray[np.int64]
    base: npt.NDArray[np.int64]
    row_stride: npt.NDArray[np.int64]
    column_stride: npt.NDArray[np.int64]
    cells: npt.NDArray[np.float64]
    first: npt.NDArray[np.int32]
    last: npt.NDArray[np.int32]
    floor: npt.NDArray[np.float64]
    kind: npt.NDArray[np.int8]
    near: npt.NDArray[np.float64]
    cap: npt.NDArray[np.int64]


@kernel
def fill_pair_tables(at, log_tables):  # type: ignore[no-untyped-def]
    """Write out the cells of every table, and find its kind."""
    for t in range(len(at.rows)):
        rows, columns = at.rows[t], at.columns[t]
        start, turned = at.starts[t], at.starts[t] + rows * columns
        floor = np.inf
        for i in range(rows):
            for j in range(columns):
                value = log_tables[at.base[t] + i * at.row_stride[t] + j * at.column_stride[t]]
                at.cells[start + i * columns + j] = value
                at.cells[turned + j * rows + i] = value
                floor = min(floor, value)
        at.floor[t] = floor
        diagonal, above = rows == columns, 0
        for side in range(2):
            n, m = (rows, columns) if side == 0 else (columns, rows)
            cells = start if side == 0 else turned
            base = at.row_starts[t] + (0 if side == 0 else rows)
            for i in range(n):
                low, high = m, 0
                for j in range(m):
                    if at.cells[cells + i * m + j] > floor:
                        low, high = min(low, j), j + 1
                at.first[base + i], at.last[base + i] = low, high
                above += max(0, high - low)
                diagonal = diagonal and low == i and high == i + 1 and at.cells[cells + i * m + i] == at.cells[start]
        at.kind[t] = DIAGONAL if diagonal else (FULL if 2 * above >= rows * columns else BAND)
        if not diagonal and min(rows, columns) >= LEAST_DISTANCE_STATES:
            _find_distance(at, t)


@kernel
def _find_distance(at, t):  # type: ignore[no-untyped-def]
    """Whether a table falls by equal steps, or by squares, down to a floor: then maxima cost O(K)."""
    rows, columns, start, near = at.rows[t], at.columns[t], at.starts[t], at.row_starts[t]
    far = max(rows, columns)
    for d in range(far):
        at.near[near + d] = at.cells[start + (d * columns if d < rows else d)]
    for i in range(rows):
        for j in range(columns):
            if at.cells[start + i * columns + j] != at.near[near + abs(i - j)]:
                return
    cap = far - 1
    while cap > 1 and at.near[near + cap - 1] == at.near[near + far - 1]:
        cap -= 1
    shape, step = _shape(at.near, near, cap)
    if cap > 1 and _is_truncated(at.near, near, cap, shape, step):
        at.kind[t] = DISTANCE
        at.cap[t] = cap


@kernel
def _distance_maxima(near, base, cap, weights, n, out, m, work):  # type: ignore[no-untyped-def]
    """out[j] = max over i of weights[i] + near[base + min(|i - j|, cap)], O(n) where that falls by steps or squares."""
    shape, step = _shape(near, base, cap)
    _maxima(near, base, cap, weights, np.int64(0), n, out, np.int64(0), m, shape, step, work)


@kernel
def _band_maxima(n, m, cells, start, first, last, row, floor, kind, weights, out):  # type: ignore[no-untyped-def]
    """out[j] = max over i of weights[i] + a cell, for a table of n rows of one of the kinds but a distance."""
    if kind == FULL:
        # In two dimensions, so that the compiler knows no index to be negative.
        whole = cells[start : start + n * m].reshape((n, m))
        for j in range(m):
            out[j] = weights[0] + whole[0, j]
        for i in range(1, n):
            weight = weights[i]
            for j in range(m):
                value = weight + whole[i, j]
                out[j] = value if value > out[j] else out[j]
        return
    top = weights[0]
    for i in range(1, n):
        top = max(top, weights[i])
    top += floor
    if kind == DIAGONAL:
        high = cells[start]
        for j in range(m):
            value = weights[j] + high
            out[j] = value if value > top else top
        return
    for j in range(m):
        out[j] = top
    for i in range(n):
        weight, low, high = weights[i], np.int64(first[row + i]), np.int64(last[row + i])
        if high > low:
            table, part = cells[start + i * m + low : start + i * m + high], out[low:high]
            for j in range(high - low):
                value = weight + table[j]
                part[j] = max(part[j], value)


@kernel
def _table_maxima(at, f, axis, log_tables, messages, fixed, states, out):  # type: ignore[no-untyped-def]
    """out[j] = max over the other axes of a table less their messages; fixed axes stay in their state for nothing."""
    first, last = at.scope_offsets[f], at.scope_offsets[f + 1]
    variable = at.scopes[axis]
    size = at.value_offsets[variable + 1] - at.value_offsets[variable]
    for j in range(size):
        out[j] = -np.inf
    cell, inner = at.table_offsets[f], first
    for p in range(first, last):
        v = at.scopes[p]
        if p != axis and fixed[v]:
            cell += at.table_strides[p] * states[v]
        else:
            states[v] = 0
            inner = p
    stride, length = at.table_strides[inner], at.message_offsets[inner + 1] - at.message_offsets[inner]
    while True:
        less = 0.0
        for p in range(first, inner):
            v = at.scopes[p]
            if p != axis and not fixed[v]:
                less += messages[at.message_offsets[p] + states[v]]
        if inner == axis:
            for j in range(length):
                out[j] = max(out[j], log_tables[cell + stride * j] - less)
        else:
            top, source = -np.inf, at.message_offsets[inner]
            for j in range(length):
                top = max(top, log_tables[cell + stride * j] - (less + messages[source + j]))
            out[states[variable]] = max(out[states[variable]], top)
        p = inner - 1
        while p >= first:
            v = at.scopes[p]
            if p == axis or not fixed[v]:
                states[v] += 1
                cell += at.table_strides[p]
                if states[v] < at.value_offsets[v + 1] - at.value_offsets[v]:
                    break
                cell -= at.table_strides[p] * states[v]
                states[v] = 0
            p -= 1
        if p < first:
            break
    return size


@kernel
def _shifted(out, size, target):  # type: ignore[no-untyped-def]
    """Write a message with its largest entry at zero; the constant it was shifted by."""
    top = out[0]
    for j in range(1, size):
        top = max(top, out[j])
    for j in range(size):
        target[j] = out[j] - top
    return top


@kernel
def run_pass(  # type: ignore[no-untyped-def]
    at, pairs, log_tables, order, start, stop, backwards, unary, messages, shift, kept, free, states, work
):  # fmt: skip
    """Visit the variables ``order[start:stop]``, or the same from the last to the first.

    ``unary`` are the variables' log-potentials; ``messages``, ``shift`` (a number for each factor) and ``kept`` (one
    for each variable) are renewed; ``free`` is all false, ``states`` and ``work`` are scratch.
    """
    # Arrays by name: a call that takes all of them costs more than a message.
    value_offsets, message_offsets, scope_offsets = at.value_offsets, at.message_offsets, at.scope_offsets
    variable_offsets, variable_axes, axis_factor = at.variable_offsets, at.variable_axes, at.axis_factor
    roles, pair_table, weight_of = at.roles, at.pair_table, at.weight
    rows, columns, starts, row_starts = pairs.rows, pairs.columns, pairs.starts, pairs.row_starts
    cells, first, last, floor, kind = pairs.cells, pairs.first, pairs.last, pairs.floor, pairs.kind
    most = len(work) // 12
    weights, out, held, spare = work[:most], work[most : 2 * most], work[2 * most : 3 * most], work[3 * most :]
    bits = 2 if backwards else 0
    for k in range(stop - start):
        i = order[stop - 1 - k] if backwards else order[start + k]
        base = value_offsets[i]
        card = value_offsets[i + 1] - base
        mine = unary[base : base + card]
        for j in range(card):
            held[j] = mine[j]
        pushes = 0
        for a in range(variable_offsets[i], variable_offsets[i + 1]):
            p = variable_axes[a]
            role = roles[p] >> bits
            message = messages[message_offsets[p] : message_offsets[p] + card]
            if role & COLLECT:
                f = axis_factor[p]
                t = pair_table[f]
                if t >= 0:
                    q = 2 * scope_offsets[f] + 1 - p
                    n = message_offsets[q + 1] - message_offsets[q]
                    other = messages[message_offsets[q] : message_offsets[q] + n]
                    for j in range(n):
                        weights[j] = -other[j]
                    if kind[t] == DISTANCE:
                        _distance_maxima(pairs.near, row_starts[t], pairs.cap[t], weights, n, out, card, spare)
                    else:
                        begin, row = starts[t], row_starts[t]
                        if q > p:
                            begin += rows[t] * columns[t]
                            row += card
                        _band_maxima(n, card, cells, begin, first, last, row, floor[t], kind[t], weights, out)
                else:
                    _table_maxima(at, f, p, log_tables, messages, free, states, out)
                shift[f] = _shifted(out, card, message)
            pushes += (role & PUSH) >> 1
            for j in range(card):
                held[j] += message[j]
        top = held[0]
        for j in range(1, card):
            top = max(top, held[j])
        weight = weight_of[i]
        kept[i] = max(0.0, 1.0 - weight * pushes) * top
        if pushes:
            for a in range(variable_offsets[i], variable_offsets[i + 1]):
                p = variable_axes[a]
                if (roles[p] >> bits) & PUSH:
                    message = messages[message_offsets[p] : message_offsets[p] + card]
                    for j in range(card):
                        message[j] -= weight * held[j]


@kernel
def round_states(  # type: ignore[no-untyped-def]
    at, pairs, log_tables, sequence, unary, messages, fixed, states, scratch, work
):  # fmt: skip
    """Choose a state for each variable in turn, given those already chosen; of the others, what they last said.

    ``fixed`` begins all false and ends all true. After a pass, the sequence is that of its visits in reverse.
    """
    most = len(work) // 12
    out, held = work[:most], work[most : 2 * most]
    for k in range(len(sequence)):
        i = sequence[k]
        base = at.value_offsets[i]
        card = at.value_offsets[i + 1] - base
        for j in range(card):
            held[j] = unary[base + j]
        for a in range(at.variable_offsets[i], at.variable_offsets[i + 1]):
            p = at.variable_axes[a]
            f = at.axis_factor[p]
            chosen = False
            for q in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
                chosen = chosen or fixed[at.scopes[q]]
            if not chosen:
                source = at.message_offsets[p]
                for j in range(card):
                    held[j] += messages[source + j]
                continue
            t = at.pair_table[f]
            if t >= 0:
                q = at.scope_offsets[f] + at.scope_offsets[f + 1] - 1 - p
                state = states[at.scopes[q]]
                row = pairs.starts[t] + state * card + (0 if q < p else pairs.rows[t] * pairs.columns[t])
                for j in range(card):
                    held[j] += pairs.cells[row + j]
            else:
                for q in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
                    scratch[at.scopes[q]] = states[at.scopes[q]]
                _table_maxima(at, f, p, log_tables, messages, fixed, scratch, out)
                for j in range(card):
                    held[j] += out[j]
        best = 0
        for j in range(1, card):
            if held[j] > held[best]:
                best = j
        states[i] = best
        fixed[i] = True


@kernel
def peel(variable_offsets, variable_axes, axis_factor, scope_offsets, scopes):  # type: ignore[no-untyped-def]
    """Variables in at most one factor that still joins two are taken off, as long as there are any.

    Returns the variables in the order they were taken, whether each variable was (``bool[n]``), and for each axis 1
    where its variable was the last one left of the factor, 2 where it was taken while the factor joined it to others,
    0 where neither.
    """
    n, m = len(variable_offsets) - 1, len(scope_offsets) - 1
    degree, left = np.empty(n, np.int64), np.empty(m, np.int64)
    taken, role = np.zeros(n, np.bool_), np.zeros(len(scopes), np.int8)
    order = np.empty(n, np.int64)
    tail, head = 0, 0
    for f in range(m):
        left[f] = scope_offsets[f + 1] - scope_offsets[f]
    for v in range(n):
        degree[v] = variable_offsets[v + 1] - variable_offsets[v]
        if degree[v] <= 1:
            order[tail] = v
            taken[v] = True
            tail += 1
    gone = np.zeros(n, np.bool_)
    while head < tail:
        v = order[head]
        head += 1
        gone[v] = True
        for a in range(variable_offsets[v], variable_offsets[v + 1]):
            p = variable_axes[a]
            f = axis_factor[p]
            if left[f] < 2:
                continue
            role[p] = 2
            left[f] -= 1
            if left[f] > 1:
                continue
            for q in range(scope_offsets[f], scope_offsets[f + 1]):
                u = scopes[q]
                if not gone[u]:
                    role[q] = 1
                    degree[u] -= 1
                    if degree[u] <= 1 and not taken[u]:
                        order[tail] = u
                        taken[u] = True
                        tail += 1
    return order[:tail].copy(), taken, role
