"""Search of a weighted model counter: decide, propagate, split into components, count each once (sharpSAT, Cachet).

Invariant: `State` and its level numbers; a call stops after about ``budget`` steps, or where an array is full, and can
be continued. Free to change: which variable is branched on, and which clauses are forgotten.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.model_counting.cache_kernel import encode, forget_since, store
from markovfield.inference.model_counting.components_kernel import bound, note, split
from markovfield.inference.model_counting.state_kernel import (
    ARENA,
    ASSIGN,
    BEFORE,
    BRANCH,
    CACHED,
    CAUSE,
    COMPONENTS,
    DATA,
    DECISION,
    DECISIONS,
    DESCEND,
    END,
    FINISHED,
    FIRST_COMPONENT,
    HASTY,
    LEARNED,
    LEVEL,
    MODE,
    N_COMPONENTS,
    NEWEST,
    NO_CONFLICT,
    NO_REASON,
    NODES,
    NOTED,
    NOTES,
    OPEN,
    PRODUCT,
    RECORD,
    ROOM,
    SECOND_RECORD,
    SUM,
    TRACE,
    TRAIL,
    UNITS,
    WHOLE,
    WORK,
    ZERO,
    add,
    multiply,
)
from markovfield.inference.model_counting.units_kernel import assign, learn, propagate, undo, watch
from markovfield.kernels.compiler import kernel

__all__ = ["LONGER_TRACE", "MORE_ROOM", "begin", "bounds", "count"]

# What `count` answers when the arrays of components, or those of the trace, are full.
MORE_ROOM, LONGER_TRACE = 2, 3


@kernel
def begin(f, s):  # type: ignore[no-untyped-def]
    """Set up level 0, whose component is the whole formula; clauses of one literal stand in ``units``."""
    scalars = s.scalars
    for clause in range(len(f.clause_offsets) - 1):
        watch(s, clause)
    n, m, t = len(f.group_of), len(f.clause_offsets) - 1, len(f.bases)
    s.component_starts[0] = 0
    s.component_sizes[0, 0], s.component_sizes[0, 1], s.component_sizes[0, 2] = n, m, t
    for k in range(n):
        s.data[k] = k
    for k in range(m):
        s.data[n + k] = k
    for k in range(t):
        s.data[n + m + k] = k
    scalars[DATA], scalars[COMPONENTS] = n + m + t, 1
    numbers = s.level_numbers[0]
    numbers[DECISION], numbers[BRANCH], numbers[CAUSE] = -1, 1, NO_REASON
    _clear(s, 0)
    scalars[MODE] = ASSIGN


@kernel
def _clear(s, level):  # type: ignore[no-untyped-def]
    """The numbers of a level that is entered."""
    s.level_mantissas[level, SUM], s.level_exponents[level, SUM] = 0.0, 0
    s.level_logs[level, SUM] = -np.inf
    s.level_numbers[level, OPEN] = 0
    s.level_numbers[level, RECORD] = s.level_numbers[level, SECOND_RECORD] = -1
    for p in range(len(s.primes)):
        s.level_residues[level, SUM, p] = 0


@kernel
def _enter_branch(f, s):  # type: ignore[no-untyped-def]
    """Decide the level's literal and what follows from it; whether the branch can have models."""
    scalars = s.scalars
    level = scalars[LEVEL]
    numbers = s.level_numbers[level]
    s.level_mantissas[level, PRODUCT], s.level_exponents[level, PRODUCT] = 0.5, 1
    s.level_logs[level, PRODUCT] = 0.0
    for p in range(len(s.primes)):
        s.level_residues[level, PRODUCT, p] = 1
    numbers[CACHED], numbers[N_COMPONENTS] = scalars[NEWEST], 0
    numbers[FIRST_COMPONENT], numbers[NOTED] = scalars[COMPONENTS], scalars[NOTES]
    if numbers[DECISION] >= 0:
        literal, cause = numbers[DECISION], numbers[CAUSE]
        own = cause >= 0 and s.arena[s.starts[cause]] == literal
        assign(s, literal, cause if own else np.int64(NO_REASON))
        if cause >= 0 and not own:
            # What was learned from the first branch holds in the second as well.
            implied = s.arena[s.starts[cause]]
            if s.values[implied] == 0:
                assign(s, implied, cause)
    for k in range(scalars[UNITS]):
        clause = s.units[k]
        literal = s.arena[s.starts[clause]]
        if s.values[literal] < 0:
            return False
        if s.values[literal] == 0:
            assign(s, literal, clause)
    conflict = propagate(f, s)
    if conflict != NO_CONFLICT:
        numbers[CAUSE] = learn(f, s, conflict)
        return False
    return split(f, s)


@kernel
def _choose(f, s, component):  # type: ignore[no-untyped-def]
    """The variable of a component to branch on."""
    start = s.component_starts[component]
    best, top = np.int64(-1), -np.inf
    data, merit, activity, frequency = s.data, f.merit, s.activity, s.frequency
    for k in range(start, start + s.component_sizes[component, 0]):
        v = data[k]
        score = merit[v] + activity[v] + frequency[v]
        if score > top:
            best, top = np.int64(v), score
    s.scalars[WORK] += s.component_sizes[component, 0]
    return best


@kernel
def _descend(f, s):  # type: ignore[no-untyped-def]
    """Enter the smallest component of the level's branch that is not counted yet."""
    scalars = s.scalars
    level, last = scalars[LEVEL], scalars[COMPONENTS] - 1
    small = last
    for c in range(s.level_numbers[level, FIRST_COMPONENT], last):
        if s.component_sizes[c, 0] < s.component_sizes[small, 0]:
            small = c
    if small != last:
        s.component_starts[small], s.component_starts[last] = s.component_starts[last], s.component_starts[small]
        for part in range(3):
            kept = s.component_sizes[small, part]
            s.component_sizes[small, part] = s.component_sizes[last, part]
            s.component_sizes[last, part] = kept
    level += 1
    scalars[LEVEL] = level
    scalars[DECISIONS] += 1
    numbers = s.level_numbers[level]
    numbers[DECISION] = f.prefers[_choose(f, s, last)]
    numbers[BRANCH], numbers[BEFORE], numbers[WHOLE], numbers[CAUSE] = 0, scalars[TRAIL], last, NO_REASON
    numbers[ROOM] = scalars[DATA]
    _clear(s, level)


@kernel
def _record(s, numbers):  # type: ignore[no-untyped-def]
    """Copy the notes of the present branch into the trace: their number, then they."""
    scalars = s.scalars
    if not len(s.notes):
        return
    at, first, size = scalars[TRACE], numbers[NOTED], scalars[NOTES] - numbers[NOTED]
    s.trace[at] = size
    s.trace[at + 1 : at + 1 + size] = s.notes[first : first + size]
    numbers[RECORD + numbers[BRANCH]] = at
    scalars[TRACE] = at + 1 + size
    level = scalars[LEVEL]
    if numbers[BRANCH] == 0 or numbers[RECORD] < 0:
        return
    # The second branch is done: the level's component gets the next number.
    gap = s.level_exponents[level, PRODUCT] - s.level_exponents[level, SUM]
    if abs(gap) > 1000:
        ratio = np.inf if gap > 0 else 0.0
    else:
        ratio = s.level_mantissas[level, PRODUCT] / s.level_mantissas[level, SUM] * 2.0 ** np.float64(gap)
    # Each by itself: one less the other would lose the small one.
    s.shares[scalars[NODES], 0] = 1.0 / (1.0 + ratio)
    s.shares[scalars[NODES], 1] = 1.0 / (1.0 + 1.0 / ratio)


@kernel
def _leave_branch(f, s, zero):  # type: ignore[no-untyped-def]
    """Add the branch to the level's sum and take it back."""
    scalars = s.scalars
    level = scalars[LEVEL]
    numbers = s.level_numbers[level]
    if not zero:
        _record(s, numbers)
        m, e = add(
            s.level_mantissas[level, SUM], s.level_exponents[level, SUM],
            s.level_mantissas[level, PRODUCT], s.level_exponents[level, PRODUCT],
        )  # fmt: skip
        s.level_mantissas[level, SUM], s.level_exponents[level, SUM] = m, e
        s.level_logs[level, SUM] = np.logaddexp2(s.level_logs[level, SUM], s.level_logs[level, PRODUCT])
        for p in range(len(s.primes)):
            s.level_residues[level, SUM, p] = (
                s.level_residues[level, SUM, p] + s.level_residues[level, PRODUCT, p]
            ) % s.primes[p]
    elif numbers[N_COMPONENTS] > 1:
        forget_since(s, numbers[CACHED])
    scalars[NOTES] = numbers[NOTED]
    if level > 0:
        undo(s, numbers[BEFORE])
        scalars[COMPONENTS] = numbers[WHOLE] + 1
        scalars[DATA] = numbers[ROOM]


@kernel
def _leave_level(f, s):  # type: ignore[no-untyped-def]
    """Keep the number of the level's component and multiply it into the branch above; the next mode."""
    scalars = s.scalars
    level = scalars[LEVEL]
    numbers = s.level_numbers[level]
    mantissa, exponent = s.level_mantissas[level, SUM], s.level_exponents[level, SUM]
    node = scalars[NODES]
    if len(s.notes) and mantissa > 0.0:
        s.nodes[node, 0], s.nodes[node, 1] = numbers[RECORD], numbers[SECOND_RECORD]
        if numbers[RECORD] < 0 or numbers[SECOND_RECORD] < 0:
            s.shares[node, 0] = 0.0 if numbers[RECORD] < 0 else 1.0
            s.shares[node, 1] = 1.0 - s.shares[node, 0]
        scalars[NODES] += 1
        note(s, 3 * len(f.group_of) + node)
    if not numbers[OPEN]:
        length, value = encode(f, s, numbers[WHOLE])
        store(s, length, value, mantissa, exponent, s.level_residues[level, SUM], node)
    scalars[COMPONENTS] -= 1
    scalars[LEVEL] = above = level - 1
    if mantissa == 0.0 and not numbers[OPEN]:
        return ZERO
    s.level_numbers[above, OPEN] |= numbers[OPEN]
    m, e = multiply(s.level_mantissas[above, PRODUCT], s.level_exponents[above, PRODUCT], mantissa, exponent)
    s.level_mantissas[above, PRODUCT], s.level_exponents[above, PRODUCT] = m, e
    s.level_logs[above, PRODUCT] += s.level_logs[level, SUM]
    for p in range(len(s.primes)):
        s.level_residues[above, PRODUCT, p] = (
            s.level_residues[above, PRODUCT, p] * s.level_residues[level, SUM, p] % s.primes[p]
        )
    return DESCEND


@kernel
def _forget_clauses(f, s):  # type: ignore[no-untyped-def]
    """Drop the older half of the longer learned clauses that are no reason of a literal."""
    scalars = s.scalars
    first = len(f.clause_offsets) - 1
    n = scalars[LEARNED]
    new = np.full(n - first, -1, np.int64)
    needed = np.zeros(n - first, np.bool_)
    for k in range(scalars[TRAIL]):
        reason = s.reasons[s.trail[k] >> 1]
        if reason >= first:
            needed[reason - first] = True
    for level in range(scalars[LEVEL] + 1):
        if s.level_numbers[level, CAUSE] >= first:
            needed[s.level_numbers[level, CAUSE] - first] = True
    for k in range(scalars[UNITS]):
        if s.units[k] >= first:
            needed[s.units[k] - first] = True
    for literal in range(len(s.watch_heads)):
        previous, node = np.int64(-1), np.int64(s.watch_heads[literal])
        while node >= 0:
            following = np.int64(s.watch_next[node])
            if node >> 1 >= first:
                if previous < 0:
                    s.watch_heads[literal] = following
                else:
                    s.watch_next[previous] = following
            else:
                previous = node
            node = following
    kept = first
    place = f.clause_offsets[first]
    for clause in range(first, n):
        length = s.lengths[clause]
        if not (needed[clause - first] or length <= 3 or (clause - first) * 2 > n - first):
            continue
        start = s.starts[clause]
        for k in range(length):
            s.arena[place + k] = s.arena[start + k]
        s.starts[kept], s.lengths[kept] = place, length
        new[clause - first] = kept
        if length > 1:
            watch(s, kept)
        place += length
        kept += 1
    scalars[LEARNED], scalars[ARENA] = kept, place
    for k in range(scalars[TRAIL]):
        v = s.trail[k] >> 1
        if s.reasons[v] >= first:
            s.reasons[v] = new[s.reasons[v] - first]
    for level in range(scalars[LEVEL] + 1):
        if s.level_numbers[level, CAUSE] >= first:
            s.level_numbers[level, CAUSE] = new[s.level_numbers[level, CAUSE] - first]
    for k in range(scalars[UNITS]):
        if s.units[k] >= first:
            s.units[k] = new[s.units[k] - first]
    scalars[WORK] += n


@kernel
def _trace_is_full(f, s):  # type: ignore[no-untyped-def]
    """Whether another branch might not fit: each of its notes stands for a variable at least."""
    scalars, most = s.scalars, len(f.group_of) + 2
    full = scalars[TRACE] + most > len(s.trace) or scalars[NOTES] + most > len(s.notes)
    return full or scalars[NODES] + 2 > len(s.nodes)


@kernel
def count(f, s, budget):  # type: ignore[no-untyped-def]
    """Search on for about ``budget`` steps of work: 1 when all is counted, 0 when not, or `MORE_ROOM`.

    In haste (``scalars[HASTY]``) the second branch of a level is left out as soon as the first has a model.
    """
    scalars = s.scalars
    end = scalars[WORK] + budget
    while scalars[WORK] < end:
        mode, level = scalars[MODE], scalars[LEVEL]
        if mode == FINISHED:
            return 1
        if len(s.notes) and _trace_is_full(f, s):
            return LONGER_TRACE
        if mode == ASSIGN:
            whole = s.level_numbers[level, WHOLE]
            room = scalars[DATA] + s.component_sizes[whole].sum() <= len(s.data)
            if not room or scalars[COMPONENTS] + s.component_sizes[whole, 0] >= len(s.component_starts):
                return MORE_ROOM
            if scalars[LEARNED] + 2 >= len(s.starts) or scalars[ARENA] + 1000 >= len(s.arena):
                _forget_clauses(f, s)
            scalars[MODE] = DESCEND if _enter_branch(f, s) else ZERO
        elif mode == DESCEND:
            if scalars[COMPONENTS] > s.level_numbers[level, FIRST_COMPONENT]:
                _descend(f, s)
                scalars[MODE] = ASSIGN
            else:
                scalars[MODE] = END
        else:
            _leave_branch(f, s, mode == ZERO)
            numbers = s.level_numbers[level]
            if level == 0:
                scalars[MODE] = FINISHED
            elif numbers[BRANCH] == 0:
                if scalars[HASTY] and s.level_mantissas[level, SUM] > 0.0:
                    numbers[OPEN] = 1
                    s.level_logs[level, SUM] = bound(f, s, numbers[WHOLE])
                    scalars[MODE] = _leave_level(f, s)
                else:
                    if mode == END:
                        numbers[CAUSE] = NO_REASON
                    numbers[BRANCH] = 1
                    numbers[DECISION] ^= 1
                    scalars[MODE] = ASSIGN
            else:
                scalars[MODE] = _leave_level(f, s)
    return 1 if scalars[MODE] == FINISHED else 0


@kernel
def bounds(f, s):  # type: ignore[no-untyped-def]
    """log2 of what is proven of the whole sum where the search stands: a lower and an upper bound."""
    level = s.scalars[LEVEL]
    mode = s.scalars[MODE]
    low, high = 0.0, 0.0
    last = s.scalars[COMPONENTS]
    for up in range(level, -1, -1):
        numbers = s.level_numbers[up]
        done = s.level_mantissas[up, SUM]
        low_sum = np.log2(done) + s.level_exponents[up, SUM] if done > 0.0 else -np.inf
        high_sum = s.level_logs[up, SUM] if numbers[OPEN] else low_sum
        if mode == FINISHED:
            return low_sum, high_sum
        own = bound(f, s, numbers[WHOLE])
        entered = up < level or mode in (DESCEND, END)
        if up == level and mode == ZERO:
            low_branch, high_branch = -np.inf, -np.inf
        elif not entered:
            low_branch, high_branch = -np.inf, own
        else:
            made = s.level_mantissas[up, PRODUCT]
            made_log = np.log2(made) + s.level_exponents[up, PRODUCT] if made > 0.0 else -np.inf
            low_branch, high_branch = made_log + low, s.level_logs[up, PRODUCT] + high
            first = numbers[FIRST_COMPONENT]
            for c in range(first, last):
                low_branch = -np.inf
                high_branch += bound(f, s, c)
        low, high = np.logaddexp2(low_sum, low_branch), np.logaddexp2(high_sum, high_branch)
        if numbers[BRANCH] == 0:
            high = np.logaddexp2(high, own)
        high = min(high, own)
        # The component that this level counts is the last one above.
        last = numbers[WHOLE]
    return low, high
