"""Solutions of a slice's constraints: domains, what constraints leave of them, and a draw among all solutions.

A slice says of each factor which of its cells may be read. A factor all of whose cells but one are equal is a *clause*:
that cell is ruled out, or nothing is. One all of whose cells but one are equal and lower is a *conjunction*. Of any
other *table* the cells are compared with the slice's height.

Domains are flags of the states that are open. Removing a state is noted on a trail and can be taken back. Clauses count
their literals that are certain to hold and certain to fail, so that a removal costs its variable's factors; tables go
through the cells that are open. In a *block* the variables around it are held in their states, and only the constraints
that touch it are looked at: their WATCH is the epoch.

A search goes through all solutions, deciding one variable after the other and taking what follows; where no constraint
is left in doubt, the states that are open are free of each other, and their weights are summed. One such leaf is drawn
by its weight, then the states within. So draws are exact, and where the work would exceed a budget (which depends on
the constraints alone, not on the present states), nothing moves: both leave the slice's distribution as it is.

Rows of tables of integers are handed over rather than one array for each column: calls in the innermost loops would
otherwise cost more than what they do (measured: ten times).
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_unit

__all__ = ["assign", "draw_solution", "draw_state", "in_doubt", "propagate", "push", "remove", "undo"]

# Kinds of factor.
TABLE, CLAUSE, CONJUNCTION = 0, 1, 2
# Columns of variables: first place, number of states, where its entries begin and end, how many states are open, the
# epoch it is held in, stamps of components and blocks, constraints in doubt, whether it never moves.
FIRST, CARD, BEGIN, END, OPEN, HELD, SEEN, BLOCK, DEGREE, FIXED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
# Columns of factors (after where axes begin and end, at BEGIN and END): what kind, first cell, whether a slice rules
# anything out, literals certain to hold and to fail, whether nothing that is left is ruled out, epoch, flags.
KIND, BASE, ACTIVE, TRUE, FALSE, SETTLED, WATCH, QUEUED, MET = 0, 1, 4, 5, 6, 7, 8, 9, 10
# Columns of axes; of entries (a variable's factors, with the state in the one cell of a clause or conjunction, or -1);
# of places (states of variables one after the other).
VARIABLE, STRIDE, STATE = 0, 1, 2
FACTOR, LITERAL = 0, 1
IS_OPEN, OWNER = 0, 1
# Columns of what factors are compared with: the height, the smallest log-potential, the chance that nothing binds.
HEIGHT, LOW, LOOSE = 0, 1, 2
# Numbers: length of the trail, ends of the queue, the epoch, work done, epochs so far.
TRAIL, HEAD, TAIL, EPOCH, DONE, EPOCHS = 0, 1, 2, 3, 4, 5
# Rows of lists over variables: components, what a search decides, marks on the trail, and for each depth of a search
# the state tried, the place of its variable in the list, and both for the leaf that was drawn.
MEMBERS, ORDER, MARKS, TRIED, PLACE, DRAWN, WHERE = 0, 1, 2, 3, 4, 5, 6
# Rows of lists over factors: those that a block touches with their two counts; of a table's axes the present states,
# where their states begin, and which of these are supported.
TOUCHED, WAS_TRUE, WAS_FALSE, AT, START, SUPPORTED = 0, 1, 2, 3, 4, 5


@kernel
def push(factors, queue, numbers, f):
    """Put a factor into the queue, once."""
    if not factors[f, QUEUED]:
        factors[f, QUEUED] = 1
        queue[numbers[TAIL]] = f
        after = numbers[TAIL] + 1
        numbers[TAIL] = after if after < len(queue) else 0


@kernel
def remove(variables, factors, entries, places, trail, queue, numbers, i):
    """Rule out the state of a variable at place ``i``; it must not be the last one."""
    v = places[i, OWNER]
    first = variables[v, FIRST]
    k = i - first
    places[i, IS_OPEN] = 0
    variables[v, OPEN] -= 1
    trail[numbers[TRAIL]] = i
    numbers[TRAIL] += 1
    single, epoch = variables[v, OPEN] == 1, numbers[EPOCH]
    begin, end = variables[v, BEGIN], variables[v, END]
    for e in range(begin, end):
        f = entries[e, FACTOR]
        if not factors[f, ACTIVE] or factors[f, WATCH] != epoch:
            continue
        a = entries[e, LITERAL]
        if factors[f, KIND] != CLAUSE:
            if not factors[f, SETTLED]:
                push(factors, queue, numbers, f)
        elif a == k:
            factors[f, TRUE] += 1
        elif single and places[first + a, IS_OPEN]:
            factors[f, FALSE] += 1
            if factors[f, TRUE] == 0 and factors[f, FALSE] >= factors[f, END] - factors[f, BEGIN] - 1:
                push(factors, queue, numbers, f)
    numbers[DONE] += 1 + end - begin


@kernel
def undo(variables, factors, entries, places, trail, queue, numbers, mark):
    """Take back what is on the trail above a mark, and forget the queue."""
    epoch = numbers[EPOCH]
    for t in range(numbers[TRAIL] - 1, mark - 1, -1):
        i = trail[t]
        if i < 0:
            factors[-i - 1, SETTLED] = 0
            continue
        v = places[i, OWNER]
        first = variables[v, FIRST]
        k = i - first
        single = variables[v, OPEN] == 1
        for e in range(variables[v, BEGIN], variables[v, END]):
            f = entries[e, FACTOR]
            if factors[f, KIND] != CLAUSE or not factors[f, ACTIVE] or factors[f, WATCH] != epoch:
                continue
            a = entries[e, LITERAL]
            if a == k:
                factors[f, TRUE] -= 1
            elif single and places[first + a, IS_OPEN]:
                factors[f, FALSE] -= 1
        places[i, IS_OPEN] = 1
        variables[v, OPEN] += 1
    numbers[TRAIL] = mark
    while numbers[HEAD] != numbers[TAIL]:
        factors[queue[numbers[HEAD]], QUEUED] = 0
        numbers[HEAD] = numbers[HEAD] + 1 if numbers[HEAD] + 1 < len(queue) else 0


@kernel
def assign(variables, factors, entries, places, trail, queue, numbers, v, state):
    """Leave one state of a variable; whether it was open."""
    first = variables[v, FIRST]
    if not places[first + state, IS_OPEN]:
        return False
    if variables[v, OPEN] > 1:
        for i in range(first, first + variables[v, CARD]):
            if i != first + state and places[i, IS_OPEN]:
                remove(variables, factors, entries, places, trail, queue, numbers, i)
    return True


@kernel
def _settle(factors, trail, numbers, f):
    factors[f, SETTLED] = 1
    trail[numbers[TRAIL]] = -f - 1
    numbers[TRAIL] += 1


@kernel
def _next_state(variables, places, v, state, states, epoch):
    """The next open state of a variable, or -1; the only one of a variable that is held."""
    if variables[v, HELD] == epoch:
        return np.int64(states[v]) if state < 0 else np.int64(-1)
    first = variables[v, FIRST]
    for k in range(state + 1, variables[v, CARD]):
        if places[first + k, IS_OPEN]:
            return np.int64(k)
    return np.int64(-1)


@kernel
def _go_through(variables, factors, axes, places, log_tables, height, lists, numbers, states, f):
    """Mark the states that allowed cells of a table support; how many open cells are allowed, and how many are not."""
    begin, width, epoch = factors[f, BEGIN], factors[f, END] - factors[f, BEGIN], numbers[EPOCH]
    start = np.int64(0)
    cell = factors[f, BASE]
    for j in range(width):
        v = axes[begin + j, VARIABLE]
        lists[START, j] = start
        for k in range(variables[v, CARD]):
            lists[SUPPORTED, start + k] = 0
        start += variables[v, CARD]
        lists[AT, j] = _next_state(variables, places, v, np.int64(-1), states, epoch)
        cell += axes[begin + j, STRIDE] * lists[AT, j]
    allowed, ruled_out = 0, 0
    while True:
        if log_tables[cell] >= height:
            allowed += 1
            for j in range(width):
                lists[SUPPORTED, lists[START, j] + lists[AT, j]] = 1
        else:
            ruled_out += 1
        j = width - 1
        while j >= 0:
            v, now = axes[begin + j, VARIABLE], lists[AT, j]
            after = _next_state(variables, places, v, now, states, epoch)
            wrapped = after < 0
            if wrapped:
                after = _next_state(variables, places, v, np.int64(-1), states, epoch)
            cell += axes[begin + j, STRIDE] * (after - now)
            lists[AT, j] = after
            if not wrapped:
                break
            j -= 1
        if j < 0:
            break
    numbers[DONE] += allowed + ruled_out
    return allowed, ruled_out


@kernel
def _force(variables, factors, axes, entries, places, trail, queue, numbers, states, f):
    """What a clause that has one literal left, or a conjunction, says; whether it can hold."""
    begin, end, epoch = factors[f, BEGIN], factors[f, END], numbers[EPOCH]
    if factors[f, KIND] == CONJUNCTION:
        for p in range(begin, end):
            v = axes[p, VARIABLE]
            if variables[v, HELD] == epoch:
                if states[v] != axes[p, STATE]:
                    return False
            elif not assign(variables, factors, entries, places, trail, queue, numbers, v, axes[p, STATE]):
                return False
        _settle(factors, trail, numbers, f)
        return True
    if factors[f, TRUE]:
        return True
    if factors[f, FALSE] == end - begin:
        return False
    if factors[f, FALSE] == end - begin - 1:
        for p in range(begin, end):
            v = axes[p, VARIABLE]
            i = variables[v, FIRST] + axes[p, STATE]
            if variables[v, HELD] != epoch and variables[v, OPEN] > 1 and places[i, IS_OPEN]:
                remove(variables, factors, entries, places, trail, queue, numbers, i)
                break
    return True


@kernel
def propagate(variables, factors, axes, entries, places, heights, log_tables, trail, queue, lists, numbers, states):
    """Take what follows until nothing does; whether no constraint was found violated."""
    epoch = numbers[EPOCH]
    while numbers[HEAD] != numbers[TAIL]:
        f = queue[numbers[HEAD]]
        numbers[HEAD] = numbers[HEAD] + 1 if numbers[HEAD] + 1 < len(queue) else 0
        factors[f, QUEUED] = 0
        if factors[f, SETTLED]:
            continue
        if factors[f, KIND] != TABLE:
            if not _force(variables, factors, axes, entries, places, trail, queue, numbers, states, f):
                return False
            continue
        height = heights[f, HEIGHT]
        allowed, ruled_out = _go_through(
            variables, factors, axes, places, log_tables, height, lists, numbers, states, f
        )
        if allowed == 0:
            return False
        if ruled_out == 0:
            _settle(factors, trail, numbers, f)
            continue
        begin = factors[f, BEGIN]
        for j in range(factors[f, END] - begin):
            v = axes[begin + j, VARIABLE]
            if variables[v, HELD] == epoch or variables[v, OPEN] < 2:
                continue
            first = variables[v, FIRST]
            for k in range(variables[v, CARD]):
                if places[first + k, IS_OPEN] and not lists[SUPPORTED, lists[START, j] + k]:
                    remove(variables, factors, entries, places, trail, queue, numbers, first + k)
    return True


@kernel
def in_doubt(variables, factors, entries, numbers, v):
    """Whether a variable has several states open, and a constraint that may still be violated."""
    if variables[v, OPEN] < 2:
        return False
    epoch = numbers[EPOCH]
    for e in range(variables[v, BEGIN], variables[v, END]):
        f = entries[e, FACTOR]
        binds = factors[f, ACTIVE] and factors[f, WATCH] == epoch and not factors[f, SETTLED]
        if binds and (factors[f, KIND] != CLAUSE or factors[f, TRUE] == 0):
            return True
    return False


@kernel
def _log_mass(variables, places, unary, v):
    """The log of the summed weights of a variable's open states."""
    top = -np.inf
    begin, end = variables[v, FIRST], variables[v, FIRST] + variables[v, CARD]
    for i in range(begin, end):
        if places[i, IS_OPEN]:
            top = max(top, unary[i])
    if top == -np.inf or variables[v, OPEN] == 1:
        return top
    total = 0.0
    for i in range(begin, end):
        if places[i, IS_OPEN]:
            total += math.exp(unary[i] - top)
    return top + math.log(total)


@kernel
def draw_state(variables, places, unary, v, stream):
    """One of a variable's open states, by its weight."""
    top, total = -np.inf, 0.0
    last, begin = np.int64(0), variables[v, FIRST]
    for k in range(variables[v, CARD]):
        if places[begin + k, IS_OPEN]:
            top = max(top, unary[begin + k])
            last = np.int64(k)
    if variables[v, OPEN] == 1:
        return last
    for k in range(variables[v, CARD]):
        if places[begin + k, IS_OPEN]:
            total += math.exp(unary[begin + k] - top)
    u = draw_unit(stream) * total
    for k in range(variables[v, CARD]):
        if places[begin + k, IS_OPEN]:
            weight = math.exp(unary[begin + k] - top)
            if weight > 0.0:
                last = np.int64(k)
                if u < weight:
                    break
                u -= weight
    return last


@kernel
def draw_solution(s, begin, end, most_leaves, most_work, stream, states):
    """Draw variables of ``s.order`` among all solutions, by their weights; whether it was done.

    They are those from ``begin`` to ``end`` of the row ORDER of ``s.chosen``. Domains must be as propagation left them;
    afterwards they are again. More leaves or more work than allowed, and nothing changes.
    """
    variables, factors, axes, entries, places = s.variables, s.factors, s.axes, s.entries, s.places
    heights, log_tables, unary, trail, queue = s.heights, s.log_tables, s.unary, s.trail, s.queue
    chosen, lists, numbers = s.chosen, s.lists, s.numbers
    root, started = numbers[TRAIL], numbers[DONE]
    total, leaves, depth, length = -np.inf, np.int64(0), np.int64(0), np.int64(0)
    place = np.int64(begin)
    within, down = True, True
    while True:
        if down:
            while place < end and not in_doubt(variables, factors, entries, numbers, chosen[ORDER, place]):
                place += 1
            if place < end:
                chosen[PLACE, depth], chosen[MARKS, depth], chosen[TRIED, depth] = place, numbers[TRAIL], -1
                depth += 1
            else:
                weight = 0.0
                for j in range(begin, end):
                    weight += _log_mass(variables, places, unary, chosen[ORDER, j])
                leaves += 1
                numbers[DONE] += end - begin
                if weight > -np.inf:
                    top = max(total, weight)
                    total = top + math.log(math.exp(total - top) + math.exp(weight - top))
                    if draw_unit(stream) < math.exp(weight - total):
                        length = depth
                        for d in range(depth):
                            chosen[DRAWN, d], chosen[WHERE, d] = chosen[TRIED, d], chosen[PLACE, d]
            within = leaves <= most_leaves and numbers[DONE] - started < most_work
            if depth == 0 or not within:
                break
        d = depth - 1
        undo(variables, factors, entries, places, trail, queue, numbers, chosen[MARKS, d])
        v = chosen[ORDER, chosen[PLACE, d]]
        k = _next_state(variables, places, v, chosen[TRIED, d], states, np.int64(-1))
        if k < 0:
            depth -= 1
            down = False
            if depth == 0:
                break
            continue
        chosen[TRIED, d] = k
        assign(variables, factors, entries, places, trail, queue, numbers, v, k)
        down = propagate(
            variables, factors, axes, entries, places, heights, log_tables, trail, queue, lists, numbers, states
        )
        place = chosen[PLACE, d] + 1
        if numbers[DONE] - started >= most_work:
            within = False
            break
    undo(variables, factors, entries, places, trail, queue, numbers, root)
    if not within or total == -np.inf:
        return False
    for d in range(length):
        v = chosen[ORDER, chosen[WHERE, d]]
        assign(variables, factors, entries, places, trail, queue, numbers, v, chosen[DRAWN, d])
        propagate(variables, factors, axes, entries, places, heights, log_tables, trail, queue, lists, numbers, states)
    for j in range(begin, end):
        v = chosen[ORDER, j]
        states[v] = draw_state(variables, places, unary, v, stream)
    undo(variables, factors, entries, places, trail, queue, numbers, root)
    return True
