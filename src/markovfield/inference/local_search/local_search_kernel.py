"""Changing one variable at a time: what every change would gain is kept at hand and repaired after each change.

For every state of every variable, ``soft`` is the sum of the finite log-potentials of the factors that hold the
variable, were it in that state and all others as they are, and ``hard`` how many of those factors would be at -inf. So
a change is compared by the constraints it breaks first and by its score second, and a search may pass through
assignments that are ruled out. A ``tally`` holds the constraints broken and the score of the present assignment.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from markovfield.factors.kinds_kernel import CARDINALITY, CLAUSE, DISTANCE, PARITY, TABLE
from markovfield.factors.kinds_kernel import literal_of as _literal_of
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_index, draw_unit

__all__ = [
    "Factors",
    "anneal",
    "cell_of",
    "change",
    "climb_from",
    "fill_gains",
    "part_of",
    "shake_steps",
    "tabu_steps",
]


literal_of = kernel(_literal_of)


class Factors(NamedTuple):
    """A structure with the factors of each variable; ``fixed`` variables never move.

    What a factor reads depends on a sum over its axes (`part_of`): of stride times state for a table, of true literals
    for a clause, a parity or a cardinality potential, and the difference of two states for a distance. ``caps`` are
    those of structured factors, ``unit`` is what a gain is compared with: one, or the largest log-potential where all
    are smaller.
    """

    cardinalities: np.ndarray
    value_offsets: np.ndarray
    scope_offsets: np.ndarray
    scopes: np.ndarray
    table_offsets: np.ndarray
    table_strides: np.ndarray
    kind: np.ndarray
    caps: np.ndarray
    log_tables: np.ndarray
    variable_offsets: np.ndarray
    variable_factors: np.ndarray
    fixed: np.ndarray
    unit: float


@kernel
def part_of(kind, stride, is_first, state):
    """What one axis adds to the sum of its factor."""
    if kind == TABLE:
        return stride * state
    if kind == DISTANCE:
        return np.int64(state) if is_first else -np.int64(state)
    literal = literal_of(stride) if kind == CARDINALITY else stride
    return np.int64(state != literal) if literal >= 0 else np.int64(state == -literal - 1)


@kernel
def cell_of(kind, cap, total):
    """The cell of a factor, counted from its first, that its sum says."""
    if kind == TABLE:
        return total
    if kind == PARITY:
        return total & 1
    return min(abs(total), cap)


@kernel
def fill_gains(at, likelihood, states, totals, soft, hard, tally):
    """Compute the sums of all factors, ``soft``, ``hard`` and the tally from nothing."""
    # Arrays by themselves: handing the bundle to a function would count references for every one of them.
    cardinalities, value_offsets, scope_offsets, scopes = (
        at.cardinalities,
        at.value_offsets,
        at.scope_offsets,
        at.scopes,
    )
    table_offsets, strides, kinds, caps, pool = at.table_offsets, at.table_strides, at.kind, at.caps, at.log_tables
    broken, score = 0, 0.0
    for i in range(len(soft)):
        soft[i] = 0.0
        hard[i] = 0
        if len(likelihood):
            if likelihood[i] == -np.inf:
                hard[i] = 1
            else:
                soft[i] = likelihood[i]
    if len(likelihood):
        for v in range(len(states)):
            own = value_offsets[v] + states[v]
            broken += hard[own]
            score += soft[own]
    for f in range(len(table_offsets)):
        first, last = scope_offsets[f], scope_offsets[f + 1]
        kind, cap, base = kinds[f], caps[f], table_offsets[f]
        total = np.int64(0)
        for p in range(first, last):
            total += part_of(kind, strides[p], p == first, states[scopes[p]])
        totals[f] = total
        value = pool[base + cell_of(kind, cap, total)]
        if value == -np.inf:
            broken += 1
        else:
            score += value
        for p in range(first, last):
            v, stride = scopes[p], strides[p]
            rest = total - part_of(kind, stride, p == first, states[v])
            to = value_offsets[v]
            for k in range(cardinalities[v]):
                value = pool[base + cell_of(kind, cap, rest + part_of(kind, stride, p == first, k))]
                if value == -np.inf:
                    hard[to + k] += 1
                else:
                    soft[to + k] += value
    tally[0], tally[1] = broken, score


@kernel
def change(at, v, state, states, totals, soft, hard):
    """Put a variable into another state; sums, and what the others would gain, are repaired."""
    cardinalities, value_offsets, scope_offsets, scopes = (
        at.cardinalities,
        at.value_offsets,
        at.scope_offsets,
        at.scopes,
    )
    table_offsets, strides, kinds, caps, pool = at.table_offsets, at.table_strides, at.kind, at.caps, at.log_tables
    before = states[v]
    for i in range(at.variable_offsets[v], at.variable_offsets[v + 1]):
        f = at.variable_factors[i]
        first, last = scope_offsets[f], scope_offsets[f + 1]
        kind, cap, base = kinds[f], caps[f], table_offsets[f]
        moved = np.int64(0)
        for p in range(first, last):
            if scopes[p] == v:
                moved = part_of(kind, strides[p], p == first, state) - part_of(kind, strides[p], p == first, before)
        if moved == 0:
            continue
        total = totals[f]
        totals[f] = total + moved
        if kind in (CLAUSE, CARDINALITY) and min(total, total + moved) > cap:
            continue  # one literal fewer would still reach the cap: nothing changes for the others
        for p in range(first, last):
            u, stride = scopes[p], strides[p]
            if u == v:
                continue
            rest = total - part_of(kind, stride, p == first, states[u])
            to = value_offsets[u]
            for k in range(cardinalities[u]):
                part = rest + part_of(kind, stride, p == first, k)
                old, new = pool[base + cell_of(kind, cap, part)], pool[base + cell_of(kind, cap, part + moved)]
                if old == -np.inf:
                    hard[to + k] -= 1
                else:
                    soft[to + k] -= old
                if new == -np.inf:
                    hard[to + k] += 1
                else:
                    soft[to + k] += new
    states[v] = state


@kernel
def _best_state(at, v, own, soft, hard):
    """The state that breaks fewest constraints, and scores highest among those by more than rounding."""
    base = at.value_offsets[v]
    best = own
    if at.fixed[v]:
        return best
    room = 1e-12 * (at.unit + abs(soft[base + own]))
    for k in range(at.cardinalities[v]):
        fewer = hard[base + k] < hard[base + best]
        if fewer or (hard[base + k] == hard[base + best] and soft[base + k] > soft[base + best] + room):
            best = k
    return best


@kernel
def _move(at, v, state, states, totals, soft, hard, tally):
    """Change a variable and tally it."""
    old, new = at.value_offsets[v] + states[v], at.value_offsets[v] + state
    tally[0] += hard[new] - hard[old]
    tally[1] += soft[new] - soft[old]
    change(at, v, state, states, totals, soft, hard)


@kernel
def climb_from(at, queue, ends, states, totals, soft, hard, queued, tally, journal, most):
    """Put variables into their best state, those in ``queue`` first and then again where a neighbour has moved, until
    none gains (iterated conditional modes) or ``most`` variables were looked at.

    ``queue`` is a ring of n + 1 places that holds variables marked as ``queued``, from ``ends[0]`` up to ``ends[1]``;
    both tell what is left where the work was cut short. ``journal`` takes pairs of a variable and the state it left,
    its first entry counting them; it may be empty. Whether it came to its end.
    """
    size = len(queue)
    head, tail = ends[0], ends[1]
    for _ in range(most):
        if head == tail:
            break
        v = queue[head]
        head = (head + 1) % size
        queued[v] = False
        best = _best_state(at, v, states[v], soft, hard)
        if best == states[v]:
            continue
        if len(journal):
            if journal[0] + 1 >= journal.shape[0] // 2:
                break
            journal[0] += 1
            journal[2 * journal[0]], journal[2 * journal[0] + 1] = v, states[v]
        _move(at, v, best, states, totals, soft, hard, tally)
        for i in range(at.variable_offsets[v], at.variable_offsets[v + 1]):
            f = at.variable_factors[i]
            for p in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
                u = at.scopes[p]
                if u != v and not queued[u]:
                    queued[u] = True
                    queue[tail] = u
                    tail = (tail + 1) % size
    ends[0], ends[1] = head, tail
    return head == tail


@kernel
def _into_queue(at, v, queue, length, queued):
    """Mark a variable and those that share a factor with it; the new length."""
    if not queued[v]:
        queued[v] = True
        queue[length] = v
        length += 1
    for i in range(at.variable_offsets[v], at.variable_offsets[v + 1]):
        f = at.variable_factors[i]
        for p in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
            u = at.scopes[p]
            if not queued[u]:
                queued[u] = True
                queue[length] = u
                length += 1
    return length


@kernel
def shake_steps(at, steps, shaken, starts, stream, queue, states, totals, soft, hard, queued, tally, journal):
    """Iterated local search: put a few neighbouring variables into random states, climb, and undo what was worse.

    The variables shaken are a walk over neighbours from a random one of ``starts``, so that the damage, and the work,
    is local.
    """
    n = len(starts)
    ends = np.zeros(2, np.int64)
    for _ in range(steps):
        before_broken, before_value = tally[0], tally[1]
        journal[0] = 0
        length = 0
        v = np.int64(starts[draw_index(stream, n)])
        for _ in range(shaken):
            if at.cardinalities[v] > 1 and not at.fixed[v]:
                state = draw_index(stream, at.cardinalities[v] - 1)
                journal[0] += 1
                journal[2 * journal[0]], journal[2 * journal[0] + 1] = v, states[v]
                _move(at, v, state + (state >= states[v]), states, totals, soft, hard, tally)
                length = _into_queue(at, v, queue, length, queued)
            around = at.variable_offsets[v + 1] - at.variable_offsets[v]
            if around:
                f = at.variable_factors[at.variable_offsets[v] + draw_index(stream, around)]
                wide = at.scope_offsets[f + 1] - at.scope_offsets[f]
                v = np.int64(at.scopes[at.scope_offsets[f] + draw_index(stream, wide)])
        ends[0], ends[1] = 0, length
        climb_from(at, queue, ends, states, totals, soft, hard, queued, tally, journal, len(journal))
        while ends[0] != ends[1]:
            queued[queue[ends[0]]] = False
            ends[0] = (ends[0] + 1) % len(queue)
        worse = tally[0] > before_broken or (tally[0] == before_broken and tally[1] < before_value)
        if worse:
            for i in range(journal[0], 0, -1):
                change(at, journal[2 * i], journal[2 * i + 1], states, totals, soft, hard)
            tally[0], tally[1] = before_broken, before_value


@kernel
def anneal(at, temperature, penalty, sweeps, cooling, stream, states, totals, soft, hard):
    """Sweeps of heat-bath moves at falling temperatures, a broken constraint costing ``penalty``; the last one."""
    n = len(states)
    most = 1
    for v in range(n):
        most = max(most, at.cardinalities[v])
    chances = np.empty(most)
    for _ in range(sweeps):
        for v in range(n):
            card = at.cardinalities[v]
            if card < 2 or at.fixed[v]:
                continue
            base = at.value_offsets[v]
            top = -np.inf
            for k in range(card):
                top = max(top, soft[base + k] - penalty * hard[base + k])
            total = 0.0
            for k in range(card):
                total += math.exp((soft[base + k] - penalty * hard[base + k] - top) / temperature)
                chances[k] = total
            u = draw_unit(stream) * total
            state = 0
            while state < card - 1 and u >= chances[state]:
                state += 1
            if state != states[v]:
                change(at, v, state, states, totals, soft, hard)
        temperature *= cooling
    return temperature


@kernel
def tabu_steps(at, steps, tenure, clock, until, stream, states, totals, soft, hard, best, record):
    """Take the best change that is not forbidden, whether it gains or not, ``steps`` times.

    A variable that moved may not move again for ``tenure`` steps and a random few more, unless that gives the best
    assignment so far. ``record[0]`` and ``record[1]`` are the broken constraints and the score of that, ``record[2]``
    and ``record[3]`` those of ``states``; ``best`` is the assignment. The new clock.
    """
    n = len(states)
    for _ in range(steps):
        clock += 1
        chosen, to = -1, 0
        least, most, ties = 0, -np.inf, 0
        for v in range(n):
            if at.fixed[v]:
                continue
            base = at.value_offsets[v]
            own = base + states[v]
            for k in range(at.cardinalities[v]):
                if k == states[v]:
                    continue
                worse = hard[base + k] - hard[own]
                gain = soft[base + k] - soft[own]
                if until[v] > clock:
                    broken = record[2] + worse
                    better = broken < record[0] or (broken == record[0] and record[3] + gain > record[1] + 1e-9)
                    if not better:
                        continue
                if chosen < 0 or worse < least or (worse == least and gain > most):
                    chosen, to, least, most, ties = v, k, worse, gain, 1
                elif worse == least and gain == most:
                    ties += 1
                    if draw_index(stream, ties) == 0:
                        chosen, to = v, k
        if chosen < 0:
            continue
        change(at, chosen, to, states, totals, soft, hard)
        record[2] += least
        record[3] += most
        until[chosen] = clock + tenure + draw_index(stream, 10)
        if record[2] < record[0] or (record[2] == record[0] and record[3] > record[1] + 1e-9):
            record[0], record[1] = record[2], record[3]
            for v in range(n):
                best[v] = states[v]
    return clock
