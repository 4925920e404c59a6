"""Moves that put many variables at once into their best states, the rest held: elimination on a random subgraph.

Each variable that is eliminated has a table over its own states (slowest) and those of its separator, in the order of
elimination, the last one fastest. Factors and messages are added into it and its own states are maximised out; the
message that is left belongs to the first of the separator.

Free to change: `AT_ONCE`, `INNER`, `SMALLEST`, and how regions and cycles are chosen: any move keeps the score true.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield.inference.local_search.subgraph_tables_kernel import separate, table_of
from markovfield.inference.local_search.subgraphs_kernel import HELD, cut, grow
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_index, draw_unit

__all__ = [
    "COLD",
    "ENTRIES",
    "SIZE",
    "VISITS",
    "WHOLE",
    "Model",
    "Settings",
    "Tables",
    "cross",
    "search_steps",
]

# What a tally has: the usual size of a region, which grows while nothing must be held in such regions and shrinks
# otherwise; members visited in this cycle; what a step that loses does, on average; whether all variables were
# eliminated at once. And of a region whose moves are not all done: its members, the moves so far, its score before.
SIZE, VISITS, LOSS, WHOLE, OPEN, MOVES, BEFORE, ENTRIES = range(8)
# Moves in a region, at most, before a call may end.
AT_ONCE = 8
# How a step ended: with moves left to do, done, or done with nothing held in a region of all variables.
UNFINISHED, FINISHED, EVERYTHING = 0, 1, 2

# Values this near are the same, relative to their size.
ROUNDING = 1e-12
# Members that a region has at least, where there are so many.
SMALLEST = 48.0
# The largest regions are so many times as large as those in which nothing must be held.
SPAN = 4.0
# The part of a cycle after which losses are no longer kept.
COLD = 0.8


class Model(NamedTuple):
    """Plain tables of at least two variables, with finite cells; ``unary``: what each state of each variable scores.

    ``variable_factors``: the factors of each variable; ``neighbours``: who shares one with it; ``logs``: log2 of
    cardinalities; ``free``: variables of more than one state.
    """

    cardinalities: Any
    value_offsets: Any
    unary: Any
    scope_offsets: Any
    scopes: Any
    table_offsets: Any
    table_strides: Any
    pool: Any
    variable_offsets: Any
    variable_factors: Any
    neighbour_offsets: Any
    neighbours: Any
    logs: Any
    free: Any


class Tables(NamedTuple):
    """Scratch of an elimination: ``separators[i, :n_separators[i]]`` are members, ``axis`` where each is in the
    present table, ``child`` and ``sibling`` chain the members whose messages come to one, ``starts`` says where in
    ``messages`` theirs lie. ``cells``: the present table; ``pairs``: what pairs add to it, axis by axis from
    ``pair_starts``; ``strides``: of the axes in what is being added; ``inner``, ``outer``: cells of its parts.
    """

    separators: Any
    n_separators: Any
    axis: Any
    child: Any
    sibling: Any
    starts: Any
    messages: Any
    cells: Any
    pairs: Any
    pair_starts: Any
    strides: Any
    inner: Any
    outer: Any


class Settings(NamedTuple):
    """``width``, ``work``: as for `cut`. ``rounds``: moves after the one from random states. ``heat``: how readily a
    step that loses is kept when a cycle begins, 1 being a third of the time. ``anew``: the share of cycles that begin
    from random states somewhere. ``cycle``: members visited in one. ``hopeless``: losses that are never kept.
    """

    width: Any
    work: Any
    rounds: Any
    heat: Any
    anew: Any
    cycle: Any
    hopeless: Any


@kernel
def _choose(at, region, t, i, turn, states, stream, values):
    """The best state of a member given those eliminated after it, any of the best where there are several."""
    place, rank, v = region.place, region.rank, region.members[i]
    card = at.cardinalities[v]
    for k in range(card):
        values[k] = at.unary[at.value_offsets[v] + k]
    for x in range(at.variable_offsets[v], at.variable_offsets[v + 1]):
        f = at.variable_factors[x]
        base, own, mine = at.table_offsets[f], np.int64(0), True
        for p in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
            u, stride = at.scopes[p], at.table_strides[p]
            if u == v:
                own = stride
                continue
            base += stride * states[u]
            j = place[u]
            if j >= 0 and rank[j] != HELD and rank[j] < turn:
                mine = False
                break
        if mine:
            for k in range(card):
                values[k] += at.pool[base + k * own]
    c = t.child[i]
    while c >= 0:
        step, base = 1, t.starts[c]
        for b in range(t.n_separators[c] - 1, 0, -1):
            u = region.members[t.separators[c, b]]
            base += step * states[u]
            step *= at.cardinalities[u]
        for k in range(card):
            values[k] += t.messages[base + k * step]
        c = t.sibling[c]
    top = values[0]
    for k in range(1, card):
        top = max(top, values[k])
    room = ROUNDING * (1.0 + abs(top))
    best, ties = 0, 0
    for k in range(card):
        if values[k] >= top - room:
            ties += 1
            if ties == 1 or draw_index(stream, ties) == 0:
                best = k
    return best


@kernel
def _solve(at, region, t, count, done, states, stream):
    """Put the members that are eliminated into their best states given all others."""
    order = region.order
    cards = np.empty(t.separators.shape[1] + 1, np.int64)
    for a in range(done):
        t.child[order[a]] = -1
    used = 0
    for a in range(done):
        i = order[a]
        d = separate(at, region, t, i, (count + 63) >> 6, cards)
        size = table_of(at, region, t, i, a, d, cards, states)
        t.starts[i] = used
        if d == 0:
            continue
        part = size // cards[0]
        cells, messages = t.cells, t.messages
        for x in range(part):
            messages[used + x] = cells[x]
        for k in range(1, cards[0]):
            for x in range(part):
                messages[used + x] = max(messages[used + x], cells[k * part + x])
        used += part
        parent = t.separators[i, 0]
        t.sibling[i] = t.child[parent]
        t.child[parent] = i
    for a in range(done - 1, -1, -1):
        i = order[a]
        states[region.members[i]] = _choose(at, region, t, i, a, states, stream, t.cells)


@kernel
def _region_score(at, region, count, states):
    """The sum of all factors that hold a member, each counted once."""
    members, place = region.members, region.place
    total = 0.0
    for i in range(count):
        v = members[i]
        total += at.unary[at.value_offsets[v] + states[v]]
        for x in range(at.variable_offsets[v], at.variable_offsets[v + 1]):
            f = at.variable_factors[x]
            cell, mine = at.table_offsets[f], True
            for p in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
                u = at.scopes[p]
                cell += at.table_strides[p] * states[u]
                if place[u] >= 0 and place[u] < i:
                    mine = False
                    break
            if mine:
                total += at.pool[cell]
    return total


@kernel
def _shake(at, region, done, count, stream, states):
    """Put some of the members that are held into random states: from one of them to all, each size as likely."""
    held = count - done
    few = np.int64(np.exp(draw_unit(stream) * np.log(held + 1.0)))
    for a in range(done, count):
        if draw_index(stream, held) < few:
            v = region.members[region.order[a]]
            states[v] = draw_index(stream, at.cardinalities[v])


@kernel
def _cross(at, best, states, label, queue):
    """Take over, of two assignments, what is better in each component of the graph where they differ.

    Components that no factor joins score independently, so the outcome, in both of them, is no worse than either.
    """
    for v in range(len(best)):
        label[v] = 0
    for start in range(len(best)):
        if label[start] or best[start] == states[start]:
            continue
        queue[0] = start
        label[start] = 1
        head, tail, gain = 0, 1, 0.0
        while head < tail:
            v = queue[head]
            head += 1
            gain += at.unary[at.value_offsets[v] + states[v]] - at.unary[at.value_offsets[v] + best[v]]
            for x in range(at.variable_offsets[v], at.variable_offsets[v + 1]):
                f = at.variable_factors[x]
                here, there, first = at.table_offsets[f], at.table_offsets[f], np.int64(-1)
                for p in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
                    u = at.scopes[p]
                    here += at.table_strides[p] * states[u]
                    there += at.table_strides[p] * best[u]
                    if states[u] != best[u]:
                        if first < 0:
                            first = u
                        if not label[u]:
                            label[u] = 1
                            queue[tail] = u
                            tail += 1
                if first == v:
                    gain += at.pool[here] - at.pool[there]
        for i in range(tail):
            v = queue[i]
            if gain >= 0.0:
                best[v] = states[v]
            else:
                states[v] = best[v]


@kernel
def _accepted(gain, how, tally, stream):
    """Whether a step is kept: always where it lost nothing, and early in a cycle sometimes where it did."""
    if gain >= 0.0:
        return True
    if gain < -how.hopeless:
        return False
    tally[LOSS] += 0.02 * (-gain - tally[LOSS]) if tally[LOSS] > 0.0 else -gain
    warmth = how.heat * tally[LOSS] * (1.0 - tally[VISITS] / (COLD * how.cycle))
    return warmth > 0.0 and draw_unit(stream) < np.exp(gain / warmth)


@kernel
def _step(at, region, t, how, stream, states, saved, tally):
    """Shake and maximise in one region, a new one where none is open; how that ended."""
    members, place = region.members, region.place
    most = region.rows.shape[0]
    if tally[OPEN] == 0.0:
        # From the smallest to some times the usual size, so that each doubling gets the same time.
        size = np.int64(SMALLEST / (1.0 - draw_unit(stream) * (1.0 - SMALLEST / (SPAN * tally[SIZE]))))
        count = grow(at.neighbour_offsets, at.neighbours, at.free, min(size, most), stream, members, place)
        for i in range(count):
            saved[i] = states[members[i]]
        tally[BEFORE] = _region_score(at, region, count, states)
        tally[OPEN], tally[MOVES] = count, 0.0
    count, first = np.int64(tally[OPEN]), np.int64(tally[MOVES])
    done = 0
    for r in range(first, 1 + how.rounds):
        if r == first + AT_ONCE:
            tally[MOVES] = r
            return UNFINISHED
        done = cut(at.neighbour_offsets, at.neighbours, at.logs, count, how.width, how.work, stream, region)
        if r == 0 and done < count:
            _shake(at, region, done, count, stream, states)
        _solve(at, region, t, count, done, states, stream)
        if done == count:
            break
    if count >= 0.7 * tally[SIZE]:
        tally[SIZE] = min(tally[SIZE] * 1.1, most) if done == count else max(tally[SIZE] * 0.9, SMALLEST)
    gain = _region_score(at, region, count, states) - tally[BEFORE]
    if not _accepted(gain, how, tally, stream):
        for i in range(count):
            states[members[i]] = saved[i]
    for i in range(count):
        place[members[i]] = -1
    tally[VISITS] += count
    tally[OPEN] = 0.0
    return EVERYTHING if done == len(at.free) else FINISHED


@kernel
def search_steps(at, region, t, how, steps, stream, states, best, saved, tally):
    """Grow a region, change some of the variables that are held in it, maximise over the others, and once more with
    others held; what is worse than before is undone, or kept with a probability that falls over a cycle.

    At the end of a cycle ``states`` and ``best`` are crossed, and some cycles begin from random states in a part of the
    graph. ``tally`` goes from call to call, see the numbers of its entries. A region of many moves takes several of the
    ``steps``; how many regions were finished.
    """
    label, queue = np.zeros(len(states), np.int64), np.zeros(len(states), np.int64)
    members, place = region.members, region.place
    finished = 0
    for _ in range(steps):
        ended = _step(at, region, t, how, stream, states, saved, tally)
        if ended == UNFINISHED:
            continue
        finished += 1
        whole = ended == EVERYTHING
        if tally[VISITS] < how.cycle and not whole:
            continue
        _cross(at, best, states, label, queue)
        tally[VISITS] = 0.0
        if whole:
            tally[WHOLE] = 1.0
            return finished
        if draw_unit(stream) < how.anew:
            size = np.int64(np.exp(draw_unit(stream) * np.log(len(at.free))))
            count = grow(at.neighbour_offsets, at.neighbours, at.free, size, stream, members, place)
            for i in range(count):
                states[members[i]] = draw_index(stream, at.cardinalities[members[i]])
                place[members[i]] = -1
    return finished


@kernel
def cross(at, states, best):
    """Cross two assignments before a cycle is over."""
    _cross(at, best, states, np.zeros(len(states), np.int64), np.zeros(len(states), np.int64))
