"""Unit propagation over watched literals, and clauses learned from conflicts (first unique implication points).

Invariant: literals as in `state_kernel`; the first two literals of a clause are watched, and the first one of a reason
is what it implies. Free to change: `LONGEST`, `DECAY`.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.model_counting.state_kernel import (
    ARENA,
    BEFORE,
    CONFLICT,
    CONFLICT_PAIR,
    CONFLICTS,
    HEAD,
    LEARNED,
    LEVEL,
    NO_CONFLICT,
    NO_REASON,
    PAIR_CONFLICT,
    TRAIL,
    UNITS,
    WORK,
)
from markovfield.kernels.compiler import kernel

__all__ = ["assign", "learn", "propagate", "undo", "watch"]

# Clauses longer than this are not kept.
LONGEST = 300
# Conflicts after which earlier ones count half.
DECAY = 64


@kernel
def set_literal(scalars, values, reasons, levels, trail, literal, reason):  # type: ignore[no-untyped-def]
    """Make a literal true at the present level."""
    values[literal], values[literal ^ 1] = 1, -1
    reasons[literal >> 1] = reason
    levels[literal >> 1] = scalars[LEVEL]
    trail[scalars[TRAIL]] = literal
    scalars[TRAIL] += 1


@kernel
def assign(s, literal, reason):  # type: ignore[no-untyped-def]
    """Make a literal true at the present level."""
    set_literal(s.scalars, s.values, s.reasons, s.levels, s.trail, literal, reason)


@kernel
def undo(s, length):  # type: ignore[no-untyped-def]
    """Take back the literals of the trail from ``length`` on."""
    scalars, values, trail = s.scalars, s.values, s.trail
    for k in range(length, scalars[TRAIL]):
        literal = trail[k]
        values[literal] = values[literal ^ 1] = 0
    scalars[TRAIL] = scalars[HEAD] = length


@kernel
def watch(s, clause):  # type: ignore[no-untyped-def]
    """Watch the first two literals of a clause."""
    for place in range(2):
        literal = s.arena[s.starts[clause] + place]
        s.watch_next[2 * clause + place] = s.watch_heads[literal]
        s.watch_heads[literal] = 2 * clause + place


@kernel
def propagate(f, s):  # type: ignore[no-untyped-def]
    """All consequences of the literals that are true: `NO_CONFLICT`, a clause that is false, or `PAIR_CONFLICT`."""
    # Arrays are taken out of their tuples once: each time costs a count of references.
    scalars, values, reasons, levels, trail = s.scalars, s.values, s.reasons, s.levels, s.trail
    arena, starts, lengths, heads, nodes = s.arena, s.starts, s.lengths, s.watch_heads, s.watch_next
    pair_offsets, pair_literals = f.pair_offsets, f.pair_literals
    work = np.int64(0)
    conflict = np.int64(NO_CONFLICT)
    while scalars[HEAD] < scalars[TRAIL] and conflict == NO_CONFLICT:
        false = trail[scalars[HEAD]] ^ 1
        scalars[HEAD] += 1
        begin, end = pair_offsets[false], pair_offsets[false + 1]
        work += end - begin + 1
        for k in range(begin, end):
            other = pair_literals[k]
            if values[other] < 0:
                scalars[CONFLICT], scalars[CONFLICT_PAIR] = false, other
                conflict = np.int64(PAIR_CONFLICT)
                break
            if values[other] == 0:
                set_literal(scalars, values, reasons, levels, trail, other, -2 - false)
        if conflict != NO_CONFLICT:
            break
        previous, node = np.int64(-1), np.int64(heads[false])
        while node >= 0:
            following = nodes[node]
            clause, place = node >> 1, node & 1
            start = starts[clause]
            other = arena[start + 1 - place]
            moved = False
            work += 1
            if values[other] <= 0:
                for k in range(start + 2, start + lengths[clause]):
                    literal = arena[k]
                    if values[literal] >= 0:
                        arena[start + place], arena[k] = literal, false
                        if previous < 0:
                            heads[false] = following
                        else:
                            nodes[previous] = following
                        nodes[node] = heads[literal]
                        heads[literal] = node
                        moved = True
                        break
                    work += 1
                if not moved:
                    if values[other] < 0:
                        conflict = clause
                        break
                    set_literal(scalars, values, reasons, levels, trail, other, clause)
            if not moved:
                previous = node
            node = np.int64(following)
    scalars[WORK] += work
    return conflict


@kernel
def _mark(s, literal, level, count, n_learnt):  # type: ignore[no-untyped-def]
    """Note a false literal of a clause that is resolved: how many of the present level, and the length learnt."""
    v = literal >> 1
    if not s.seen[v] and s.levels[v] > 0:
        s.seen[v] = True
        s.activity[v] += 1.0
        if s.levels[v] == level:
            count += 1
        else:
            s.learnt[n_learnt] = literal
            n_learnt += 1
    return count, n_learnt


@kernel
def _mark_reason(s, reason, true, level, count, n_learnt):  # type: ignore[no-untyped-def]
    """Note the false literals of a reason of the literal ``true``, or of a conflict, where that is -1."""
    if reason < NO_REASON:
        return _mark(s, -2 - reason, level, count, n_learnt)
    for k in range(s.starts[reason], s.starts[reason] + s.lengths[reason]):
        if s.arena[k] != true:
            count, n_learnt = _mark(s, s.arena[k], level, count, n_learnt)
    return count, n_learnt


@kernel
def _store(s, n_learnt):  # type: ignore[no-untyped-def]
    """Keep the clause in ``learnt``; its number, or `NO_REASON` where it is too long or there is no room."""
    scalars = s.scalars
    clause, start = scalars[LEARNED], scalars[ARENA]
    if n_learnt > LONGEST or clause >= len(s.starts) or start + n_learnt > len(s.arena):
        return np.int64(NO_REASON)
    # Second stands the literal of the highest level.
    for k in range(2, n_learnt):
        if s.levels[s.learnt[k] >> 1] > s.levels[s.learnt[1] >> 1]:
            s.learnt[1], s.learnt[k] = s.learnt[k], s.learnt[1]
    for k in range(n_learnt):
        s.arena[start + k] = s.learnt[k]
    s.starts[clause], s.lengths[clause] = start, n_learnt
    scalars[LEARNED] += 1
    scalars[ARENA] += n_learnt
    if n_learnt > 1:
        watch(s, clause)
    elif scalars[UNITS] < len(s.units):
        s.units[scalars[UNITS]] = clause
        scalars[UNITS] += 1
    return np.int64(clause)


@kernel
def _needless(s, literal):  # type: ignore[no-untyped-def]
    """Whether a literal of the clause learnt follows from others of it."""
    reason = s.reasons[literal >> 1]
    if reason == NO_REASON:
        return False
    if reason < NO_REASON:
        v = (-2 - reason) >> 1
        return s.seen[v] or s.levels[v] == 0
    for k in range(s.starts[reason], s.starts[reason] + s.lengths[reason]):
        v = s.arena[k] >> 1
        if v != literal >> 1 and not s.seen[v] and s.levels[v] > 0:
            return False
    return True


@kernel
def learn(f, s, conflict):  # type: ignore[no-untyped-def]
    """Learn a clause from a conflict; its number, or `NO_REASON` where there is none.

    Its first literal is the one that would have had to hold; all others are false at lower levels.
    """
    scalars = s.scalars
    level = scalars[LEVEL]
    count, n_learnt = np.int64(0), np.int64(1)
    scalars[CONFLICTS] += 1
    if scalars[CONFLICTS] % DECAY == 0:
        for v in range(len(s.activity)):
            s.activity[v] *= 0.5
    if conflict == PAIR_CONFLICT:
        count, n_learnt = _mark(s, scalars[CONFLICT], level, count, n_learnt)
        count, n_learnt = _mark(s, scalars[CONFLICT_PAIR], level, count, n_learnt)
    else:
        count, n_learnt = _mark_reason(s, conflict, np.int64(-1), level, count, n_learnt)
    at = scalars[TRAIL] - 1
    first = s.level_numbers[level, BEFORE]
    found = False
    while count > 0 and at >= first:
        true = s.trail[at]
        at -= 1
        v = true >> 1
        if not s.seen[v]:
            continue
        if count == 1:
            s.learnt[0] = true ^ 1
            found = True
            break
        if s.reasons[v] == NO_REASON:
            break
        s.seen[v] = False
        count -= 1
        count, n_learnt = _mark_reason(s, s.reasons[v], true, level, count, n_learnt)
        scalars[WORK] += 4
    kept = n_learnt
    if found:
        # Marks must stay until all literals are judged by them; the needless ones go to the end.
        k = 1
        while k < kept:
            if _needless(s, s.learnt[k]):
                kept -= 1
                s.learnt[k], s.learnt[kept] = s.learnt[kept], s.learnt[k]
            else:
                k += 1
    for k in range(1, n_learnt):
        s.seen[s.learnt[k] >> 1] = False
    for k in range(max(first, 0), scalars[TRAIL]):
        s.seen[s.trail[k] >> 1] = False
    scalars[WORK] += n_learnt
    return _store(s, kept) if found else np.int64(NO_REASON)
