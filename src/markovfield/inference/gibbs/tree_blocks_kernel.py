"""Drawing blocks of variables that hold no cycle as a whole: cut the graph, filter towards the roots, draw outwards.

Invariant: a block holds no cycle of the factor graph, given the rest, and all randomness comes from the chain's stream.
Blocks are made without a look at the states, which keeps the model's distribution. Free to change: how blocks are
grown.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_index, draw_unit
from markovfield.kernels.union_find import find

__all__ = ["BlockModel", "draw_trees"]


class BlockModel(NamedTuple):
    """The problem: its tables, the factors of each variable, log-likelihoods (or none), its free variables.

    ``limits``: the most axes of a factor and the most cells of one.
    """

    cardinalities: Any
    scope_offsets: Any
    scopes: Any
    table_offsets: Any
    table_strides: Any
    log_tables: Any
    variable_offsets: Any
    variable_factors: Any
    value_offsets: Any
    unary: Any
    free: Any
    limits: Any


class _Work(NamedTuple):
    """Scratch of a sweep.

    ``waiting``, ``members``: variables in no block yet, and those of the present one. ``block``: the block of each
    variable, counted over all sweeps. ``parent``: a forest of sets.
    ``seen``, ``holder``: of each set and each factor, who looked at it last and one of its variables
    in the block. ``above``: the factor that leads to each variable. ``queue``: the block's variables from the roots on.
    ``link_factor``, ``link_top``: factors that join variables of the block, in that order, each with the one nearest
    the root. ``below``: the other variables of a factor, and their strides. ``logs``: messages, over all states.
    ``shift``, ``inner``, ``values``: of each joint state of those below, its cells, messages and weight.
    """

    waiting: Any
    members: Any
    block: Any
    parent: Any
    seen: Any
    holder: Any
    holder_block: Any
    above: Any
    queue: Any
    link_factor: Any
    link_top: Any
    below: Any
    logs: Any
    shift: Any
    inner: Any
    values: Any


@kernel
def _work(model):  # type: ignore[no-untyped-def]
    n, m = len(model.cardinalities), len(model.table_offsets)
    cells = model.limits[1]
    return _Work(
        model.free.copy(),
        model.free.copy(),
        np.full(n, -1, np.int64),
        np.empty(n, np.int64),
        np.full(n, -1, np.int64),
        np.empty(m, np.int64),
        np.full(m, -1, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty((model.limits[0] + 1, 2), np.int64),
        np.empty(model.value_offsets[n]),
        np.empty(cells, np.int64),
        np.empty(cells),
        np.empty(cells),
    )


@kernel
def _take(model, work, count, number):  # type: ignore[no-untyped-def]
    """Move those of the first ``count`` waiting variables that close no cycle into a block; how many wait on."""
    variable_offsets, variable_factors = model.variable_offsets, model.variable_factors
    waiting, members, parent, seen = work.waiting, work.members, work.parent, work.seen
    holder, holder_block, block = work.holder, work.holder_block, work.block
    left, turn = 0, number * len(model.free)
    for i in range(count):
        v = np.int64(waiting[i])
        fits = True
        for j in range(variable_offsets[v], variable_offsets[v + 1]):
            f = variable_factors[j]
            if holder_block[f] == number:
                r = find(parent, holder[f])
                # Two factors that lead to one set would make a cycle.
                if seen[r] == turn + i:
                    fits = False
                    break
                seen[r] = turn + i
        if not fits:
            waiting[left] = v
            left += 1
            continue
        members[i - left] = v
        block[v] = number
        parent[v] = v
        for j in range(variable_offsets[v], variable_offsets[v + 1]):
            f = variable_factors[j]
            if holder_block[f] == number:
                parent[find(parent, holder[f])] = v
            holder[f], holder_block[f] = v, number
    return left


@kernel
def _members_below(  # type: ignore[no-untyped-def]
    scope_offsets, scopes, table_offsets, table_strides, block, f, top, number, states, below
):
    """The block's variables in a factor but ``top``: how many, the cell where all are in state 0, top's stride."""
    count, cell, stride = 0, table_offsets[f], np.int64(0)
    for k in range(scope_offsets[f], scope_offsets[f + 1]):
        u = scopes[k]
        if u == top:
            stride = table_strides[k]
        elif block[u] == number:
            below[count, 0], below[count, 1] = u, table_strides[k]
            count += 1
        else:
            cell += table_strides[k] * states[u]
    return count, cell, stride


@kernel
def _root_block(model, work, number, count, states):  # type: ignore[no-untyped-def]
    """Order a block of ``count`` from its roots on, and start its messages from factors of one variable of it.

    Answers how many links the block has.
    """
    # Arrays are taken out of the tuples once: doing so in the loops would cost more than the work.
    scope_offsets, scopes, table_offsets = model.scope_offsets, model.scopes, model.table_offsets
    table_strides, log_tables, cardinalities = model.table_strides, model.log_tables, model.cardinalities
    variable_offsets, variable_factors = model.variable_offsets, model.variable_factors
    value_offsets, unary = model.value_offsets, model.unary
    members, block, above, queue, below, logs = (
        work.members, work.block, work.above, work.queue, work.below, work.logs,
    )  # fmt: skip
    link_factor, link_top = work.link_factor, work.link_top
    size, links = 0, 0
    for i in range(count):
        start = np.int64(members[i])
        if above[start] != -2:
            continue
        above[start] = -1
        head = size
        queue[size] = start
        size += 1
        while head < size:
            v = queue[head]
            head += 1
            at, card = value_offsets[v], cardinalities[v]
            for k in range(card):
                logs[at + k] = unary[at + k] if len(unary) else 0.0
            for j in range(variable_offsets[v], variable_offsets[v + 1]):
                f = np.int64(variable_factors[j])
                if f == above[v]:
                    continue
                n_below, cell, stride = _members_below(
                    scope_offsets, scopes, table_offsets, table_strides, block, f, v, number, states, below
                )
                if n_below == 0:
                    for k in range(card):
                        logs[at + k] += log_tables[cell + k * stride]
                    continue
                link_factor[links], link_top[links] = f, v
                links += 1
                for b in range(n_below):
                    u = below[b, 0]
                    above[u] = f
                    queue[size] = u
                    size += 1
    return links


@kernel
def _joint_below(cardinalities, value_offsets, below, count, logs, shift, inner):  # type: ignore[no-untyped-def]
    """Cells and messages of the joint states of those below, the last variable fastest; how many there are."""
    shift[0], inner[0] = 0, 0.0
    joint = 1
    for b in range(count):
        u = below[b, 0]
        card, at, stride = np.int64(cardinalities[u]), value_offsets[u], below[b, 1]
        # From the back, so that nothing is overwritten before it is read.
        for j in range(joint - 1, -1, -1):
            cell, message = shift[j], inner[j]
            for k in range(card - 1, -1, -1):
                shift[j * card + k] = cell + k * stride
                inner[j * card + k] = message + logs[at + k]
        joint *= card
    return joint


@kernel
def _upward(model, work, links, number, states):  # type: ignore[no-untyped-def]
    """Add the messages of all links, from the last to the first, to those of the variables at their tops."""
    scope_offsets, scopes, table_offsets = model.scope_offsets, model.scopes, model.table_offsets
    table_strides, log_tables, cardinalities = model.table_strides, model.log_tables, model.cardinalities
    value_offsets, block, below, logs = model.value_offsets, work.block, work.below, work.logs
    shift, inner, values, link_factor, link_top = work.shift, work.inner, work.values, work.link_factor, work.link_top
    for t in range(links - 1, -1, -1):
        top = link_top[t]
        count, cell, stride = _members_below(
            scope_offsets, scopes, table_offsets, table_strides, block, link_factor[t], top, number, states, below
        )
        joint = _joint_below(cardinalities, value_offsets, below, count, logs, shift, inner)
        at = value_offsets[top]
        for k in range(cardinalities[top]):
            high = -np.inf
            for j in range(joint):
                value = inner[j] + log_tables[cell + shift[j] + k * stride]
                values[j] = value
                high = max(high, value)
            if high == -np.inf:
                logs[at + k] = -np.inf
                continue
            total = 0.0
            for j in range(joint):
                total += math.exp(values[j] - high)
            logs[at + k] += high + math.log(total)


@kernel
def _draw(values, first, n, stream):  # type: ignore[no-untyped-def]
    """Turn logs into probabilities in place, and draw one of them."""
    high = -np.inf
    for k in range(n):
        high = max(high, values[first + k])
    total = 0.0
    for k in range(n):
        values[first + k] = math.exp(values[first + k] - high)
        total += values[first + k]
    u = draw_unit(stream) * total
    chosen, found = 0, False
    for k in range(n):
        if not found and values[first + k] > 0.0:
            chosen = k
            found = u < values[first + k]
            u -= values[first + k]
        values[first + k] /= total
    return chosen


@kernel
def _downward(model, work, count, links, number, states, stream, sums):  # type: ignore[no-untyped-def]
    """Draw the roots of a block of ``count``, and then the variables below each link given the one at its top."""
    scope_offsets, scopes, table_offsets = model.scope_offsets, model.scopes, model.table_offsets
    table_strides, log_tables, cardinalities = model.table_strides, model.log_tables, model.cardinalities
    value_offsets, block, below, logs = model.value_offsets, work.block, work.below, work.logs
    shift, inner, values, link_factor, link_top = work.shift, work.inner, work.values, work.link_factor, work.link_top
    for i in range(count):
        v = work.queue[i]
        if work.above[v] == -1:
            at, card = value_offsets[v], np.int64(cardinalities[v])
            states[v] = _draw(logs, at, card, stream)
            if len(sums):
                for k in range(card):
                    sums[at + k] += logs[at + k]
    for t in range(links):
        # Those below still count as the block's, and none of them has been drawn.
        top = link_top[t]
        n_below, cell, stride = _members_below(
            scope_offsets, scopes, table_offsets, table_strides, block, link_factor[t], top, number, states, below
        )
        joint = _joint_below(cardinalities, value_offsets, below, n_below, logs, shift, inner)
        cell += stride * states[top]
        for j in range(joint):
            values[j] = inner[j] + log_tables[cell + shift[j]]
        chosen = _draw(values, np.int64(0), np.int64(joint), stream)
        step = joint
        for b in range(n_below):
            u = below[b, 0]
            card = np.int64(cardinalities[u])
            step //= card
            states[u] = chosen // step % card
            if len(sums):
                for j in range(joint):
                    sums[value_offsets[u] + j // step % card] += values[j]


@kernel
def draw_trees(model, states, stream, sweeps, sums):  # type: ignore[no-untyped-def]
    """Sweeps in each of which all free variables are cut into blocks at random and each block is drawn as a whole.

    ``sums`` is empty, or over all states: the distributions that variables were drawn from are added.
    """
    n = len(model.free)
    work = _work(model)
    number = np.int64(0)
    for _ in range(sweeps):
        for i in range(n):
            work.waiting[i] = model.free[i]
            work.above[model.free[i]] = -2
        for i in range(n - 1, 0, -1):
            j = draw_index(stream, i + 1)
            work.waiting[i], work.waiting[j] = work.waiting[j], work.waiting[i]
        left = n
        while left:
            before = left
            left = _take(model, work, left, number)
            links = _root_block(model, work, number, before - left, states)
            _upward(model, work, links, number, states)
            _downward(model, work, before - left, links, number, states, stream, sums)
            number += 1
