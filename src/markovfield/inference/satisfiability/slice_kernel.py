"""A sweep of slices: which constraints hold now, what they force, and a draw within each component that is left.

Given the present states, each factor gets a height, uniform below what it reads; the states are then drawn anew among
all that read at least the heights (MC-SAT), by what single variables say, which is not sliced. After propagation the
constraints that are left in doubt fall into components. One that a search goes through within its budget is drawn as a
whole; another block by block, the rest held: small blocks of neighbours, larger ones, or stars (a variable with those
neighbours that no other constraint holds), at random.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from markovfield.inference.satisfiability.solutions_kernel import (
    ACTIVE,
    BASE,
    BEGIN,
    BLOCK,
    CARD,
    CLAUSE,
    CONJUNCTION,
    DEGREE,
    END,
    EPOCH,
    EPOCHS,
    FACTOR,
    FALSE,
    FIRST,
    FIXED,
    HEIGHT,
    HELD,
    IS_OPEN,
    KIND,
    LOOSE,
    LOW,
    MEMBERS,
    MET,
    OPEN,
    ORDER,
    SEEN,
    SETTLED,
    STATE,
    STRIDE,
    TABLE,
    TOUCHED,
    TRAIL,
    TRUE,
    VARIABLE,
    WAS_FALSE,
    WAS_TRUE,
    WATCH,
    assign,
    draw_solution,
    draw_state,
    in_doubt,
    propagate,
    push,
    undo,
)
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_index, draw_unit

__all__ = ["Slice", "advance_slices", "begin_slice", "classify", "draw_slice", "fill_slices", "move_columns"]

# What a search may cost for each variable and at least; leaves of a block; bits of a small and a larger block.
WORK_EACH, WORK_LEAST, BLOCK_LEAVES = 64, 4096, 512
SMALL_BITS, LARGE_BITS = 6.0, 32.0
UNLIMITED = 2**62
# No epoch; and the stamp of a variable whose component was drawn.
NEVER, ALL = -2, 1


class Slice(NamedTuple):
    """A problem, its domains within a slice, and scratch; columns and rows are named in `solutions_kernel`.

    ``variables``, ``factors``, ``axes``, ``entries``, ``places`` are ``int64`` with a row for each; ``heights`` has
    what factors are compared with, ``unary`` all that is said of single variables, a number for each place.
    """

    variables: np.ndarray
    factors: np.ndarray
    axes: np.ndarray
    entries: np.ndarray
    places: np.ndarray
    heights: np.ndarray
    unary: np.ndarray
    log_tables: np.ndarray
    trail: np.ndarray
    queue: np.ndarray
    chosen: np.ndarray
    lists: np.ndarray
    numbers: np.ndarray


@kernel
def _following(variables, axes, begin, end, at, cell):
    """The cell after this one, whose states are ``at``, last axis fastest; -1 after the last."""
    p = end - 1
    while p >= begin:
        j = p - begin
        at[j] += 1
        if at[j] < variables[axes[p, VARIABLE], CARD]:
            return cell + axes[p, STRIDE]
        cell -= axes[p, STRIDE] * (at[j] - 1)
        at[j] = 0
        p -= 1
    return np.int64(-1)


@kernel
def classify(variables, factors, axes, heights, log_tables, widest):
    """Fill KIND, STATE, LOW and LOOSE of all factors; one all of whose cells are equal rules nothing out.

    LOOSE is the ratio of the smallest potential to the largest: the probability that a slice through the largest rules
    nothing out. ``widest`` is the longest scope.
    """
    at, least, most = np.zeros(widest, np.int64), np.zeros(widest, np.int64), np.zeros(widest, np.int64)
    for f in range(len(factors)):
        begin, end = factors[f, BEGIN], factors[f, END]
        low, high, cell = np.inf, -np.inf, np.int64(factors[f, BASE])
        at[:] = 0
        while cell >= 0:
            value = log_tables[cell]
            if value < low:
                low = value
                least[:] = at
            if value > high:
                high = value
                most[:] = at
            cell = _following(variables, axes, begin, end, at, cell)
        n_low, n_high, n_cells = 0, 0, 0
        at[:] = 0
        cell = np.int64(factors[f, BASE])
        while cell >= 0:
            n_cells += 1
            n_low += log_tables[cell] == low
            n_high += log_tables[cell] == high
            cell = _following(variables, axes, begin, end, at, cell)
        heights[f, LOW] = low if high > low else np.inf
        heights[f, LOOSE] = math.exp(low - high) if high > low else 1.0
        factors[f, KIND] = TABLE
        if high > low and n_low + n_high == n_cells and (n_low == 1 or n_high == 1):
            factors[f, KIND] = CLAUSE if n_low == 1 else CONJUNCTION
            for p in range(begin, end):
                axes[p, STATE] = least[p - begin] if n_low == 1 else most[p - begin]


@kernel
def begin_slice(s, stream, states):
    """Heights below what factors read, domains with all states, and what follows from the constraints alone."""
    variables, factors, axes, places, heights = s.variables, s.factors, s.axes, s.places, s.heights
    numbers, queue, log_tables = s.numbers, s.queue, s.log_tables
    places[:, IS_OPEN] = 1
    for v in range(len(variables)):
        variables[v, OPEN] = variables[v, CARD]
        variables[v, HELD] = NEVER
        variables[v, SEEN] = 0
        variables[v, BLOCK] = 0
    numbers[:] = 0
    for f in range(len(factors)):
        for column in range(ACTIVE, MET + 1):
            factors[f, column] = 0
        cell = factors[f, BASE]
        for p in range(factors[f, BEGIN], factors[f, END]):
            cell += axes[p, STRIDE] * states[axes[p, VARIABLE]]
        value = log_tables[cell]
        if value <= heights[f, LOW]:
            continue
        u = 1.0 - draw_unit(stream)
        if factors[f, KIND] == TABLE:
            heights[f, HEIGHT] = value + math.log(u)
            active = heights[f, HEIGHT] > heights[f, LOW]
        else:
            active = u > heights[f, LOOSE]
        if active:
            factors[f, ACTIVE] = 1
            if factors[f, KIND] != CLAUSE:
                push(factors, queue, numbers, f)
    for v in range(len(variables)):
        if variables[v, FIXED]:
            assign(variables, factors, s.entries, places, s.trail, queue, numbers, v, states[v])
    propagate(
        variables, factors, axes, s.entries, places, heights, log_tables, s.trail, queue, s.lists, numbers, states
    )


@kernel
def _doubtful(factors, f):
    """Whether a factor rules something out that may still be read."""
    if not factors[f, ACTIVE] or factors[f, SETTLED]:
        return False
    return factors[f, KIND] != CLAUSE or factors[f, TRUE] == 0


@kernel
def _gather(variables, factors, axes, entries, chosen, start, stamp, begin):
    """List the variables of a component in breadth-first order from ``start``; where the list ends.

    The list is the row MEMBERS from ``begin`` on; members are stamped, and their DEGREE counts constraints in doubt.
    """
    chosen[MEMBERS, begin] = start
    variables[start, SEEN] = stamp
    end, k = begin + 1, begin
    while k < end:
        v = chosen[MEMBERS, k]
        k += 1
        count = 0
        for e in range(variables[v, BEGIN], variables[v, END]):
            f = entries[e, FACTOR]
            if not _doubtful(factors, f):
                continue
            count += 1
            if factors[f, MET] == stamp:
                continue
            factors[f, MET] = stamp
            for p in range(factors[f, BEGIN], factors[f, END]):
                u = axes[p, VARIABLE]
                if variables[u, OPEN] > 1 and variables[u, SEEN] != stamp:
                    variables[u, SEEN] = stamp
                    chosen[MEMBERS, end] = u
                    end += 1
        variables[v, DEGREE] = count
    return end


@kernel
def _sort_by_degree(variables, chosen, begin, end):
    """Members with many constraints first, as ORDER: what they decide decides most."""
    n = end - begin
    if n <= 16:
        for j in range(begin, end):
            v = chosen[MEMBERS, j]
            k = j
            while k > begin and variables[chosen[ORDER, k - 1], DEGREE] < variables[v, DEGREE]:
                chosen[ORDER, k] = chosen[ORDER, k - 1]
                k -= 1
            chosen[ORDER, k] = v
        return
    keys = np.empty(n, np.int64)
    for j in range(n):
        keys[j] = -variables[chosen[MEMBERS, begin + j], DEGREE]
    rank = np.argsort(keys, kind="mergesort")
    for j in range(n):
        chosen[ORDER, begin + j] = chosen[MEMBERS, begin + rank[j]]


@kernel
def _hold(variables, factors, axes, places, states, f, epoch):
    """Hold what a factor joins outside of a block, and count its literals anew."""
    holding, failing = 0, 0
    clause = factors[f, KIND] == CLAUSE
    for p in range(factors[f, BEGIN], factors[f, END]):
        u, a = axes[p, VARIABLE], axes[p, STATE]
        if variables[u, OPEN] > 1 and variables[u, BLOCK] != epoch:
            variables[u, HELD] = epoch
            if states[u] == a:
                failing += 1
            else:
                holding += 1
        elif clause:
            if not places[variables[u, FIRST] + a, IS_OPEN]:
                holding += 1
            elif variables[u, OPEN] == 1:
                failing += 1
    factors[f, TRUE] = holding if clause else 0
    factors[f, FALSE] = failing if clause else 0


@kernel
def _draw_block(s, begin, end, most_leaves, most_work, stream, states):
    """Draw the variables of ORDER from ``begin`` to ``end``, the others being held; whether it was done."""
    variables, factors, axes, entries, places = s.variables, s.factors, s.axes, s.entries, s.places
    chosen, lists, numbers = s.chosen, s.lists, s.numbers
    numbers[EPOCHS] += 1
    epoch = numbers[EPOCHS]
    touched = 0
    for j in range(begin, end):
        variables[chosen[ORDER, j], BLOCK] = epoch
    for j in range(begin, end):
        v = chosen[ORDER, j]
        for e in range(variables[v, BEGIN], variables[v, END]):
            f = entries[e, FACTOR]
            if factors[f, WATCH] == 0 and _doubtful(factors, f):
                factors[f, WATCH] = epoch
                lists[TOUCHED, touched] = f
                lists[WAS_TRUE, touched], lists[WAS_FALSE, touched] = factors[f, TRUE], factors[f, FALSE]
                touched += 1
    numbers[EPOCH] = epoch
    for i in range(touched):
        f = lists[TOUCHED, i]
        _hold(variables, factors, axes, places, states, f, epoch)
        push(factors, s.queue, numbers, f)
    mark = numbers[TRAIL]
    done = propagate(
        variables, factors, axes, entries, places, s.heights, s.log_tables, s.trail, s.queue, lists, numbers, states
    )
    done = done and draw_solution(s, begin, end, most_leaves, most_work, stream, states)
    undo(variables, factors, entries, places, s.trail, s.queue, numbers, mark)
    numbers[EPOCH] = 0
    for i in range(touched):
        f = lists[TOUCHED, i]
        factors[f, WATCH] = 0
        factors[f, TRUE], factors[f, FALSE] = lists[WAS_TRUE, i], lists[WAS_FALSE, i]
    return done


@kernel
def _draw_chunks(s, begin, end, bits, stream, states):
    """Draw a component in blocks of neighbours, of about so many bits of open states each."""
    variables, chosen = s.variables, s.chosen
    at = begin
    while at < end:
        last, size = at, 0.0
        while last < end:
            more = math.log2(variables[chosen[MEMBERS, last], OPEN])
            if last > at and size + more > bits:
                break
            size += more
            chosen[ORDER, last] = chosen[MEMBERS, last]
            last += 1
        if bits <= SMALL_BITS:
            # All assignments of the block are few: the search always comes to its end.
            _draw_block(s, at, last, np.int64(2.0 ** min(size, 40.0)) + 1, UNLIMITED, stream, states)
        else:
            _draw_block(s, at, last, BLOCK_LEAVES, WORK_LEAST * 8, stream, states)
        at = last


@kernel
def _draw_stars(s, begin, end, stream, states):
    """Draw each variable of a component together with those neighbours that are in no other constraint."""
    variables, factors, axes, entries, chosen = s.variables, s.factors, s.axes, s.entries, s.chosen
    for k in range(begin, end):
        v = chosen[MEMBERS, k]
        s.numbers[EPOCHS] += 1
        stamp = s.numbers[EPOCHS]
        variables[v, BLOCK] = stamp
        chosen[ORDER, begin] = v
        last = begin + 1
        for e in range(variables[v, BEGIN], variables[v, END]):
            f = entries[e, FACTOR]
            if not _doubtful(factors, f):
                continue
            for p in range(factors[f, BEGIN], factors[f, END]):
                u = axes[p, VARIABLE]
                if variables[u, OPEN] > 1 and variables[u, BLOCK] != stamp and variables[u, DEGREE] == 1:
                    variables[u, BLOCK] = stamp
                    chosen[ORDER, last] = u
                    last += 1
        if last > begin + 1 or variables[v, DEGREE] > 1:
            work = WORK_LEAST + WORK_EACH * (last - begin)
            _draw_block(s, begin, last, BLOCK_LEAVES, work, stream, states)


@kernel
def draw_slice(s, leaves, stream, states):
    """Draw all variables anew within a slice that was begun; how many were drawn block by block."""
    variables, factors, axes, entries, places = s.variables, s.factors, s.axes, s.entries, s.places
    chosen, numbers = s.chosen, s.numbers
    left, begin = 0, np.int64(0)
    for v in range(len(variables)):
        if variables[v, OPEN] < 2:
            # What follows from the slice holds already.
            continue
        if variables[v, SEEN] == ALL:
            continue
        if not in_doubt(variables, factors, entries, numbers, v):
            states[v] = draw_state(variables, places, s.unary, v, stream)
            continue
        end = _gather(variables, factors, axes, entries, chosen, v, ALL, begin)
        _sort_by_degree(variables, chosen, begin, end)
        work = WORK_EACH * (end - begin) + WORK_LEAST
        if not draw_solution(s, begin, end, leaves, work, stream, states):
            left += end - begin
            numbers[EPOCHS] += 1
            start = chosen[MEMBERS, begin + draw_index(stream, end - begin)]
            _gather(variables, factors, axes, entries, chosen, start, ALL + numbers[EPOCHS], begin)
            u = draw_unit(stream)
            if u < 0.5:
                _draw_stars(s, begin, end, stream, states)
            else:
                _draw_chunks(s, begin, end, SMALL_BITS if u < 0.75 else LARGE_BITS, stream, states)
            for j in range(begin, end):
                variables[chosen[MEMBERS, j], SEEN] = ALL
        begin = end
    return left


@kernel
def advance_slices(s, leaves, stream, states, sweeps, sums):
    """So many slices; the states of each are added to ``sums`` unless it is empty. Variables left to blocks, summed."""
    local, left = stream.copy(), 0
    for _ in range(sweeps):
        begin_slice(s, local, states)
        left += draw_slice(s, leaves, local, states)
        if len(sums):
            for v in range(len(s.variables)):
                sums[s.variables[v, FIRST] + states[v]] += 1.0
    stream[:] = local
    return left


@kernel
def fill_slices(s, leaves, stream, states, thinning, rows):
    """``thinning`` slices before each row; then the states are written there."""
    nothing = np.empty(0)
    for r in range(rows.shape[0]):
        advance_slices(s, leaves, stream, states, thinning, nothing)
        for v in range(rows.shape[1]):
            rows[r, v] = states[v]


@kernel
def move_columns(s, leaves, columns, streams, sweeps):
    """Move the Markov chain in each column of ``columns`` (``int16[n, chains]``) by so many slices."""
    states, nothing = np.empty(columns.shape[0], np.int32), np.empty(0)
    for r in range(columns.shape[1]):
        for v in range(len(states)):
            states[v] = columns[v, r]
        advance_slices(s, leaves, streams[r], states, sweeps, nothing)
        for v in range(len(states)):
            columns[v, r] = states[v]
