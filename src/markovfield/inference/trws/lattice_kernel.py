"""Sequential tree-reweighted passes over a rectangular lattice, diagonal by diagonal.

Variables on a diagonal (row + column = d) do not see each other, so they go through a pass together: the inner loop
runs over them, in vectors, whatever the messages do along the states. Of a diagonal, arrays hold state after state, and
of each state the variables by rising row; diagonals follow each other. ``across`` holds the message of the edge to the
right at its left end, ``down`` that of the edge below at its upper end: whichever way it was sent last. The order of
visits is any that goes right and down, so the numbers are those of a pass row by row.

Kept beside `passes_kernel` for its speed: a Potts lattice of 100 x 100 and 16 states takes half the time.

Free to change: `BLOCK`, the variables whose scores stay in cache.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["BLOCK", "SAME", "STEPS", "TABLE", "lattice_pass", "lattice_round"]

# Variables that go through a pass together: their scores stay in the nearest cache.
BLOCK = 128
# What the edges along an axis are, each less a constant: minus drop where states differ; minus step for each state
# between, down to minus drop; or one table for all, times each edge's drop.
SAME, STEPS, TABLE = 0, 1, 2


@kernel
def _falling(weights, tops, states, low, high, steps, drops, far, single):  # type: ignore[no-untyped-def]
    """weights = the maxima over the other end of weights less what the distance costs, lanes ``low`` to ``high``."""
    step, drop = steps[far + low : far + high], drops[far + low : far + high]
    if not single:
        for k in range(1, states):
            before, here = weights[k - 1, low:high], weights[k, low:high]
            for j in range(high - low):
                value = before[j] - step[j]
                here[j] = value if value > here[j] else here[j]
        for k in range(states - 2, -1, -1):
            before, here = weights[k + 1, low:high], weights[k, low:high]
            for j in range(high - low):
                value = before[j] - step[j]
                here[j] = value if value > here[j] else here[j]
    top = tops[low:high]
    for k in range(states):
        here = weights[k, low:high]
        for j in range(high - low):
            value, floor = here[j] - top[j], -drop[j]
            here[j] = value if value > floor else floor


@kernel
def _tabled(  # type: ignore[no-untyped-def]
    weights, out, tops, states, low, high, drops, far, table, floor, turned, band
):  # fmt: skip
    """out = the maxima over the other end of weights plus a table times drops; ``tops`` become their largest.

    Cells above the floor lie between ``band[k, 0]`` and ``band[k, 1]``.
    """
    top, drop = tops[low:high], drops[far + low : far + high]
    for k in range(states):
        here = out[k, low:high]
        for j in range(high - low):
            here[j] = top[j] + floor * drop[j]
        for i in range(band[k, 0], band[k, 1]):
            cell = table[k, i] if turned else table[i, k]
            if cell > floor:
                source = weights[i, low:high]
                for j in range(high - low):
                    value = source[j] + cell * drop[j]
                    here[j] = value if value > here[j] else here[j]
    for j in range(high - low):
        top[j] = -np.inf
    for k in range(states):
        here = out[k, low:high]
        for j in range(high - low):
            top[j] = here[j] if here[j] > top[j] else top[j]
    for k in range(states):
        here = out[k, low:high]
        for j in range(high - low):
            here[j] -= top[j]


@kernel
def _find_band(table, floor, turned, band):  # type: ignore[no-untyped-def]
    """Of each state here, from which to which state at the other end the table is above its least cell."""
    for k in range(len(band)):
        for i in range(len(band)):
            if (table[k, i] if turned else table[i, k]) > floor:
                band[k, 0] = i if band[k, 1] == 0 else band[k, 0]
                band[k, 1] = i + 1


@kernel
def _send(  # type: ignore[no-untyped-def]
    held, share, low, high, messages, start, length, kind, steps, drops, far, table, floor, turned, band, weights, out,
    tops
):  # fmt: skip
    """Messages of the variables in lanes ``low`` to ``high``, that of lane 0 at ``messages[start]``, states ``length``
    apart; the sum of what they were shifted by."""
    states = held.shape[0]
    if high <= low:
        return 0.0
    top, part = tops[low:high], share[low:high]
    for j in range(high - low):
        top[j] = -np.inf
    for k in range(states):
        old = messages[start + k * length + low : start + k * length + high]
        own, here = held[k, low:high], weights[k, low:high]
        for j in range(high - low):
            value = part[j] * own[j] - old[j]
            here[j] = value
            top[j] = value if value > top[j] else top[j]
    if kind == TABLE:
        _tabled(weights, out, tops, states, low, high, drops, far, table, floor, turned, band)
    else:
        _falling(weights, tops, states, low, high, steps, drops, far, kind == SAME)
    total = 0.0
    for j in range(high - low):
        total += top[j]
    for k in range(states):
        new = messages[start + k * length + low : start + k * length + high]
        here = out[k, low:high] if kind == TABLE else weights[k, low:high]
        for j in range(high - low):
            new[j] = here[j]
    return total


@kernel
def _add(held, k, low, high, messages, start):  # type: ignore[no-untyped-def]
    if high > low:
        row, source = held[k, low:high], messages[start + low : start + high]
        for j in range(high - low):
            row[j] += source[j]


@kernel
def lattice_pass(  # type: ignore[no-untyped-def]
    height, width, starts, unary, messages, kinds, steps, drops, tables, floors, backwards, begin, end, sums
):  # fmt: skip
    """Visit the diagonals from ``begin`` to ``end``, counted from the last one where it goes backwards.

    ``starts[d]`` counts the variables before diagonal d. Of axis 0 (across) and 1 (down): ``messages``, ``kinds``,
    ``steps`` and ``drops`` of each edge where its message is, ``tables`` and the least cell of each. ``sums[d]``
    receives what the diagonal adds to the bound.
    """
    states = tables.shape[1]
    held, weights = np.empty((states, BLOCK)), np.empty((states, BLOCK))
    out = np.empty((states, BLOCK))
    share, tops = np.empty(BLOCK), np.empty(BLOCK)
    bands = np.zeros((2, states, 2), np.int64)
    for axis in range(2):
        if kinds[axis] == TABLE:
            _find_band(tables[axis], floors[axis], backwards, bands[axis])
    for turn in range(begin, end):
        d = height + width - 2 - turn if backwards else turn
        low_row, n = max(0, d - width + 1), starts[d + 1] - starts[d]
        total = 0.0
        # The diagonal before: where its lanes lie relative to these.
        before = max(0, d - width)
        before_start = starts[max(0, d - 1)]
        length = starts[d] - before_start
        across, down = messages[0], messages[1]
        for b in range(0, n, BLOCK):
            m, row = min(BLOCK, n - b), low_row + b
            here = states * starts[d] + b
            left = states * before_start + row - before
            has_left, has_up = min(m, d - row), max(0, 1 - row)
            has_right, has_below = max(0, d - width + 2 - row), min(m, height - 1 - row)
            for k in range(states):
                line, source = held[k, :m], unary[here + k * n : here + k * n + m]
                for j in range(m):
                    line[j] = source[j]
                _add(held, k, has_right, m, across, here + k * n)
                _add(held, k, 0, has_below, down, here + k * n)
                if d > 0:
                    _add(held, k, 0, has_left, across, left + k * length)
                    _add(held, k, has_up, m, down, left - 1 + k * length)
            for j in range(m):
                r = row + j
                behind, ahead = (r < d) + (r > 0), (d - r < width - 1) + (r < height - 1)
                sent = behind if backwards else ahead
                share[j] = 1.0 / max(behind, ahead)
                if sent < max(behind, ahead):
                    top = -np.inf
                    for k in range(states):
                        top = max(top, held[k, j])
                    total += (1.0 - sent * share[j]) * top
            # One call for all four ways to send: each further one would be compiled again.
            for axis in range(2):
                low, high = (has_right, m) if axis == 0 else (0, has_below)
                start, apart, far = here, n, starts[d] + b
                if backwards:
                    low, high = (0, has_left) if axis == 0 else (has_up, m)
                    start, apart, far = left - axis, length, before_start + row - before - axis
                    if d == 0:
                        high = low
                total += _send(
                    held, share, low, high, messages[axis], start, apart, kinds[axis], steps[axis], drops[axis], far,
                    tables[axis], floors[axis], backwards, bands[axis], weights, out, tops,
                )  # fmt: skip
        sums[d] = total


@kernel
def _hear(held, messages, start, length):  # type: ignore[no-untyped-def]
    """Add a message, states ``length`` apart."""
    for k in range(len(held)):
        held[k] += messages[start + k * length]


@kernel
def _obey(held, kind, step, drop, table, turned, state):  # type: ignore[no-untyped-def]
    """Add what an edge says, less its constant, of each state when the other end is in ``state``."""
    for k in range(len(held)):
        if kind == TABLE:
            held[k] += drop * (table[k, state] if turned else table[state, k])
        elif k != state:
            held[k] -= drop if kind == SAME else min(step * abs(k - state), drop)


@kernel
def lattice_round(  # type: ignore[no-untyped-def]
    height, width, starts, unary, across, down, kinds, steps, drops, tables, forwards, chosen
):  # fmt: skip
    """Choose states in the order of a pass, given those chosen before; of the others, what they last said."""
    states = tables.shape[1]
    held = np.empty(states)
    # By name: making views of them for every variable would cost more than the work.
    right_steps, right_drops, right_table, right_kind = steps[0], drops[0], tables[0], kinds[0]
    below_steps, below_drops, below_table, below_kind = steps[1], drops[1], tables[1], kinds[1]
    for turn in range(height + width - 1):
        # Diagonal by diagonal, as the numbers lie.
        d = turn if forwards else height + width - 2 - turn
        n = starts[d + 1] - starts[d]
        length = starts[d] - starts[d - 1] if d > 0 else 0
        for lane in range(n):
            r = max(0, d - width + 1) + lane
            c = d - r
            i, here = r * width + c, starts[d] + lane
            first = states * starts[d] + lane
            for k in range(states):
                held[k] = unary[first + k * n]
            left, start = 0, 0
            if d > 0:
                left = starts[d - 1] + r - max(0, d - width)
                start = (states - 1) * starts[d - 1] + left
            if forwards:
                if c < width - 1:
                    _hear(held, across, first, n)
                if r < height - 1:
                    _hear(held, down, first, n)
                if c > 0:
                    _obey(held, right_kind, right_steps[left], right_drops[left], right_table, False, chosen[i - 1])
                if r > 0:
                    up = left - 1
                    _obey(held, below_kind, below_steps[up], below_drops[up], below_table, False, chosen[i - width])
            else:
                if c < width - 1:
                    _obey(held, right_kind, right_steps[here], right_drops[here], right_table, True, chosen[i + 1])
                if r < height - 1:
                    _obey(held, below_kind, below_steps[here], below_drops[here], below_table, True, chosen[i + width])
                if c > 0:
                    _hear(held, across, start, length)
                if r > 0:
                    _hear(held, down, start - 1, length)
            best = 0
            for k in range(1, states):
                if held[k] > held[best]:
                    best = k
            chosen[i] = best
