"""Assignments free of hard zeros: a search that keeps domains consistent, growth around one, ascent from one.

Invariant: factors of plain tables through offsets and strides; states that were removed are on a trail and come back in
order. Free to change: the order of choices.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["FOUND", "GAVE_UP", "NONE", "climb", "grow_support", "search"]

FOUND, NONE, GAVE_UP = 1, 0, -1


@kernel
def _next_cell(first, arity, skip, cardinalities, scopes, table_strides, states, cell):  # type: ignore[no-untyped-def]
    """Move ``states`` to the next configuration of a factor's axes but ``skip``; its cell, or -1 after the last."""
    a = arity - 1
    while a >= 0:
        if a != skip:
            states[a] += 1
            cell += table_strides[first + a]
            if states[a] < cardinalities[scopes[first + a]]:
                return cell
            cell -= table_strides[first + a] * states[a]
            states[a] = 0
        a -= 1
    return np.int64(-1)


@kernel
def _widest(cardinalities, scope_offsets, scopes):  # type: ignore[no-untyped-def]
    """The most axes of a factor, and the most states that its axes have together; at least one."""
    arity, width = np.int64(1), np.int64(1)
    for f in range(len(scope_offsets) - 1):
        total = 0
        for k in range(scope_offsets[f], scope_offsets[f + 1]):
            total += cardinalities[scopes[k]]
        arity, width = max(arity, scope_offsets[f + 1] - scope_offsets[f]), max(width, total)
    return arity, width


@kernel
def _revise(  # type: ignore[no-untyped-def]
    f, cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, value_offsets, alive, sizes,
    trail, filled, states, supported,
):  # fmt: skip
    """Remove the states that factor f has no finite cell for; the trail's length, as -1 less it at an empty domain."""
    first, arity = scope_offsets[f], scope_offsets[f + 1] - scope_offsets[f]
    offset = 0
    for a in range(arity):
        states[a] = 0
        for i in range(cardinalities[scopes[first + a]]):
            supported[offset + i] = False
        offset += cardinalities[scopes[first + a]]
    cell = table_offsets[f]
    while cell >= 0:
        if log_tables[cell] > -np.inf:
            possible = True
            for a in range(arity):
                possible = possible and alive[value_offsets[scopes[first + a]] + states[a]]
            if possible:
                offset = 0
                for a in range(arity):
                    supported[offset + states[a]] = True
                    offset += cardinalities[scopes[first + a]]
        cell = _next_cell(first, arity, -1, cardinalities, scopes, table_strides, states, cell)
    offset = 0
    for a in range(arity):
        v = scopes[first + a]
        for i in range(cardinalities[v]):
            at = value_offsets[v] + i
            if alive[at] and not supported[offset + i]:
                alive[at] = False
                sizes[v] -= 1
                trail[filled, 0], trail[filled, 1] = v, at
                filled += 1
        offset += cardinalities[v]
        if sizes[v] == 0:
            # Undone by the caller through the trail.
            return -filled - 1
    return filled


@kernel
def _propagate(  # type: ignore[no-untyped-def]
    cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, variable_offsets, variable_factors,
    value_offsets, hard, queue, waiting, tail, alive, sizes, trail, filled, states, supported,
):  # fmt: skip
    """Revise the factors ``queue[:tail]`` and all that this leads to; the trail's length, as -1 less it on failure."""
    m = len(queue) - 1
    head = 0
    while head != tail:
        f = queue[head]
        head = head + 1 if head < m else 0
        waiting[f] = False
        before = filled
        filled = _revise(
            f, cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, value_offsets, alive,
            sizes, trail, filled, states, supported,
        )  # fmt: skip
        if filled < 0:
            while head != tail:
                waiting[queue[head]] = False
                head = head + 1 if head < m else 0
            return filled
        for t in range(before, filled):
            v = trail[t, 0]
            for k in range(variable_offsets[v], variable_offsets[v + 1]):
                g = variable_factors[k]
                if hard[g] and g != f and not waiting[g]:
                    waiting[g] = True
                    queue[tail] = g
                    tail = tail + 1 if tail < m else 0
    return filled


@kernel
def search(  # type: ignore[no-untyped-def]
    cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, variable_offsets, variable_factors,
    value_offsets, hard, preference, order, budget, states,
):  # fmt: skip
    """An assignment in which no factor is -inf, preferred states first: `FOUND`, `NONE` or, past the budget, `GAVE_UP`.

    Depth-first, the variables in ``order`` (all that a hard factor holds), domains kept arc-consistent over the
    ``hard`` factors; ``budget`` is how many choices may be taken back. On a forest none ever is.
    """
    n, m = len(cardinalities), len(table_offsets)
    alive, sizes = np.ones(value_offsets[n], np.bool_), cardinalities.astype(np.int64)
    trail = np.empty((value_offsets[n] + 1, 2), np.int64)
    arity, width = _widest(cardinalities, scope_offsets, scopes)
    work, supported = np.empty(arity, np.int64), np.empty(width, np.bool_)
    queue, waiting = np.empty(m + 1, np.int64), np.zeros(m, np.bool_)
    # Of each choice: the value taken, the length of the trail before it, the place in the order.
    taken, lengths, places = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    tail, filled, depth, place = 0, 0, 0, 0
    for f in range(m):
        if hard[f]:
            queue[tail] = f
            tail += 1
            waiting[f] = True
    while True:
        filled = _propagate(
            cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, variable_offsets,
            variable_factors, value_offsets, hard, queue, waiting, tail, alive, sizes, trail, filled, work, supported,
        )  # fmt: skip
        tail = 0
        if filled < 0:
            filled = -filled - 1
            if depth == 0:
                return NONE
            if budget == 0:
                return GAVE_UP
            budget -= 1
            depth -= 1
            while filled > lengths[depth]:
                filled -= 1
                alive[trail[filled, 1]] = True
                sizes[trail[filled, 0]] += 1
            place = places[depth]
            v = order[place]
            # The state taken is impossible given the choices before it.
            alive[taken[depth]] = False
            sizes[v] -= 1
            trail[filled, 0], trail[filled, 1] = v, taken[depth]
            filled += 1
        else:
            while place < len(order) and sizes[order[place]] == 1:
                place += 1
            if place == len(order):
                break
            v = order[place]
            best = np.int64(-1)
            for at in range(value_offsets[v], value_offsets[v + 1]):
                if alive[at] and (best < 0 or preference[at] > preference[best]):
                    best = np.int64(at)
            taken[depth], lengths[depth], places[depth] = best, filled, place
            depth += 1
            for at in range(value_offsets[v], value_offsets[v + 1]):
                if alive[at] and at != best:
                    alive[at] = False
                    sizes[v] -= 1
                    trail[filled, 0], trail[filled, 1] = v, at
                    filled += 1
        for k in range(variable_offsets[v], variable_offsets[v + 1]):
            g = variable_factors[k]
            if hard[g]:
                waiting[g] = True
                queue[tail] = g
                tail += 1
    for v in range(n):
        best = np.int64(-1)
        for at in range(value_offsets[v], value_offsets[v + 1]):
            if alive[at] and (best < 0 or preference[at] > preference[best]):
                best = np.int64(at)
        states[v] = best - value_offsets[v]
    return FOUND


@kernel
def grow_support(  # type: ignore[no-untyped-def]
    cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, variable_offsets, variable_factors,
    value_offsets, hard, order, inside,
):  # fmt: skip
    """Add states to a product of sets, variable by variable in ``order``, as long as it holds no cell of -inf.

    ``inside`` starts from an assignment without one.
    """
    states = np.empty(_widest(cardinalities, scope_offsets, scopes)[0], np.int64)
    for k in range(len(order)):
        v = order[k]
        for i in range(cardinalities[v]):
            if inside[value_offsets[v] + i]:
                continue
            fits = True
            for j in range(variable_offsets[v], variable_offsets[v + 1]):
                f = variable_factors[j]
                if not hard[f] or not fits:
                    continue
                first, count = scope_offsets[f], scope_offsets[f + 1] - scope_offsets[f]
                own = np.int64(0)
                for a in range(count):
                    states[a] = 0
                    if scopes[first + a] == v:
                        own = np.int64(a)
                cell = table_offsets[f] + table_strides[first + own] * i
                while cell >= 0 and fits:
                    if log_tables[cell] == -np.inf:
                        reached = True
                        for a in range(count):
                            if a != own:
                                reached = reached and inside[value_offsets[scopes[first + a]] + states[a]]
                        fits = not reached
                    cell = _next_cell(first, count, own, cardinalities, scopes, table_strides, states, cell)
            inside[value_offsets[v] + i] = fits


@kernel
def climb(  # type: ignore[no-untyped-def]
    cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, variable_offsets, variable_factors,
    value_offsets, node_log, rounds, states,
):  # fmt: skip
    """Change one variable at a time to its best state given the others, until none changes or the rounds are over.

    ``node_log`` is empty, or a score of every state.
    """
    cells = np.empty(len(table_offsets), np.int64)
    for f in range(len(table_offsets)):
        cells[f] = table_offsets[f]
        for k in range(scope_offsets[f], scope_offsets[f + 1]):
            cells[f] += table_strides[k] * states[scopes[k]]
    for _ in range(rounds):
        changed = False
        for v in range(len(cardinalities)):
            old = states[v]
            best, top = old, -np.inf
            for turn in range(cardinalities[v] + 1):
                # The present state first, so that it stays among equals.
                i = old if turn == 0 else np.int64(turn - 1)
                score = node_log[value_offsets[v] + i] if len(node_log) else 0.0
                for j in range(variable_offsets[v], variable_offsets[v + 1]):
                    f = variable_factors[j]
                    cell = cells[f]
                    for k in range(scope_offsets[f], scope_offsets[f + 1]):
                        if scopes[k] == v:
                            cell += table_strides[k] * (i - old)
                    score += log_tables[cell]
                if score > top:
                    best, top = i, score
            if best != old:
                changed = True
                states[v] = best
                for j in range(variable_offsets[v], variable_offsets[v + 1]):
                    f = variable_factors[j]
                    for k in range(scope_offsets[f], scope_offsets[f + 1]):
                        if scopes[k] == v:
                            cells[f] += table_strides[k] * (best - old)
        if not changed:
            return
