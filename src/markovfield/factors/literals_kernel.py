"""Messages of factors that count true literals: clauses, cardinality potentials, parities. All in log space.

Each axis comes down to two numbers, the weight of its literal being false and of its being true. A linear chain over
the axes then carries "how many so far" (up to a cap, or modulo two): forwards and backwards, with no difference ever
taken, so that nothing cancels. Counts of c = cap + 1 states cost O(n c).

Invariant: messages of all axes in scope order in one flat array, literals as in `kinds_kernel`. Free to change:
`SORTED_ABOVE`, and the layout of scratch, which `literal_work_size` sizes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_add

__all__ = ["SORTED_ABOVE", "add_literal_counts", "combine", "literal_messages", "literal_work_size", "sorted_maxima"]

Array = npt.NDArray[Any]

SORTED_ABOVE = 16
"""Maxima of cardinality potentials with a larger cap go by sorting, O(n log n), instead of by the chain, O(n cap)."""


@kernel
def combine(a: float, b: float, maximise: bool) -> float:
    """The larger of two logs, or the log of the sum of what they are logs of."""
    return max(a, b) if maximise else log_add(a, b)


@kernel
def _fold(cards: Array, strides: Array, counter: bool, incoming: Array, maximise: bool, work: Array) -> None:
    """work[i] and work[n + i]: the weights of the literal of axis i being false, and of its being true."""
    n, start = len(cards), np.int64(0)
    for i in range(n):
        literal = strides[i]
        if counter:
            literal = literal - (((literal + 2147483648) >> 32) << 32)
        state = literal if literal >= 0 else -literal - 1
        single, top = incoming[start + state], -np.inf
        for s in range(cards[i]):
            if s != state:
                top = max(top, incoming[start + s])
        rest = top
        if not maximise and top > -np.inf and cards[i] > 2:
            total = 0.0
            for s in range(cards[i]):
                if s != state:
                    total += exp_scalar(incoming[start + s] - top)
            rest = top + math.log(total)
        work[i] = single if literal >= 0 else rest
        work[n + i] = rest if literal >= 0 else single
        start += cards[i]


@kernel
def _write(card: int, stride: int, counter: bool, if_false: float, if_true: float, outgoing: Array, start: int) -> None:
    """The message of one axis: one value for the states in which its literal is false, one for the others."""
    literal = stride
    if counter:
        literal = literal - (((literal + 2147483648) >> 32) << 32)
    state = literal if literal >= 0 else -literal - 1
    single, rest = (if_false, if_true) if literal >= 0 else (if_true, if_false)
    top = single if card == 1 else max(single, rest)
    if top == -np.inf:
        top = 0.0
    for s in range(card):
        outgoing[start + s] = (single if s == state else rest) - top


@kernel
def literal_work_size(n: int, cap: int) -> int:
    """Scratch that `literal_messages` and `add_literal_counts` need (sorting needs less: its cap is large)."""
    return 2 * n + (n + 3) * (cap + 1)


@kernel
def _forward(n: int, cap: int, parity: bool, maximise: bool, work: Array) -> None:
    """work[2 n + i (cap + 1) + c]: the weight of c true literals (as far as they are counted) among the first i."""
    width = cap + 1
    for c in range(width):
        work[2 * n + c] = -np.inf
    work[2 * n] = 0.0
    for i in range(n):
        false, true, here = work[i], work[n + i], 2 * n + i * width
        for c in range(width):
            work[here + width + c] = work[here + c] + false
        for c in range(min(i, cap) + 1):
            after = here + width + (1 - c if parity else min(c + 1, cap))
            work[after] = combine(work[after], work[here + c] + true, maximise)


@kernel
def literal_messages(
    cap: int,
    parity: bool,
    counter: bool,
    cards: Array,
    strides: Array,
    pool: Array,
    base: int,
    incoming: Array,
    outgoing: Array,
    maximise: bool,
    work: Array,
) -> float:
    """All messages of a factor that reads ``base +`` the number of true literals, up to ``cap`` or modulo two.

    ``counter`` says whether the strides hold a cap besides their literals. Returns the log of the factor's total.
    """
    n, width = len(cards), cap + 1
    _fold(cards, strides, counter, incoming, maximise, work)
    if maximise and counter and cap > SORTED_ABOVE:
        return sorted_maxima(cap, counter, cards, strides, pool, base, outgoing, work)
    _forward(n, cap, parity, maximise, work)
    here, start = 2 * n + n * width, np.int64(0)
    behind, fresh = here + width, here + 2 * width
    total = -np.inf
    for i in range(n):
        start += cards[i]
    for c in range(width):
        work[behind + c] = pool[base + c]
        total = combine(total, work[here + c] + pool[base + c], maximise)
    for i in range(n - 1, -1, -1):
        here -= width
        reach, false, true = min(i, cap) + 1, work[i], work[n + i]
        if_false, if_true = -np.inf, -np.inf
        for c in range(reach):
            after = 1 - c if parity else min(c + 1, cap)
            if_false = max(if_false, work[here + c] + work[behind + c])
            if_true = max(if_true, work[here + c] + work[behind + after])
            work[fresh + c] = combine(false + work[behind + c], true + work[behind + after], maximise)
        if not maximise and reach > 1:
            # Shifted by the largest; where nothing is possible, every exponential below is zero and is not used.
            low, high = 0.0, 0.0
            shift_false, shift_true = max(if_false, -1e300), max(if_true, -1e300)
            for c in range(reach):
                after = 1 - c if parity else min(c + 1, cap)
                low += exp_scalar(work[here + c] + work[behind + c] - shift_false)
                high += exp_scalar(work[here + c] + work[behind + after] - shift_true)
            if_false = if_false + math.log(low) if low > 0.0 else -np.inf
            if_true = if_true + math.log(high) if high > 0.0 else -np.inf
        for c in range(reach):
            work[behind + c] = work[fresh + c]
        start -= cards[i]
        _write(cards[i], strides[i], counter, if_false, if_true, outgoing, start)
    return total


@kernel
def add_literal_counts(
    cap: int,
    parity: bool,
    counter: bool,
    cards: Array,
    strides: Array,
    pool: Array,
    base: int,
    incoming: Array,
    counts: Array,
    work: Array,
) -> float:
    """Add the posterior of "c literals are true" to ``counts[base + c]``; returns the log of the factor's total."""
    maximise = np.bool_(False)
    n, width = len(cards), cap + 1
    _fold(cards, strides, counter, incoming, maximise, work)
    _forward(n, cap, parity, maximise, work)
    total, last = -np.inf, 2 * n + n * width
    for c in range(width):
        total = combine(total, work[last + c] + pool[base + c], maximise)
    if total > -np.inf:
        for c in range(width):
            counts[base + c] += exp_scalar(work[last + c] + pool[base + c] - total)
    return total


# ---- maxima by sorting -----------------------------------------------------------------------------------------------


@kernel
def _sort_falling(work: Array, keys: int, items: int, n: int) -> None:
    """Heap sort of the n numbers from ``work[keys]`` on, largest first; those from ``work[items]`` on move along."""
    first, last = n // 2, n
    while last > 1:
        if first > 0:
            first -= 1
        else:
            last -= 1
            work[keys], work[keys + last] = work[keys + last], work[keys]
            work[items], work[items + last] = work[items + last], work[items]
        key, item, at = work[keys + first], work[items + first], first
        while True:
            child = 2 * at + 1
            if child >= last:
                break
            if child + 1 < last and work[keys + child + 1] < work[keys + child]:
                child += 1
            if work[keys + child] >= key:
                break
            work[keys + at], work[items + at] = work[keys + child], work[items + child]
            at = child
        work[keys + at], work[items + at] = key, item


@kernel
def sorted_maxima(
    cap: int,
    counter: bool,
    cards: Array,
    strides: Array,
    pool: Array,
    base: int,
    outgoing: Array,
    work: Array,
) -> float:
    """Max messages of a cardinality potential: the best c literals to be true are those that gain most by it.

    ``work`` begins as `_fold` leaves it. Literals that cannot be true, or cannot be false, are set apart; the others
    are sorted by what they gain. The best choice of c without a given one is the first c, or the first c + 1 without
    it: two running maxima over c.
    """
    n = len(cards)
    gains, items, sums = 2 * n, 3 * n, 4 * n
    before, behind, found = 5 * n + 1, 7 * n + 1, 9 * n + 1
    # Not plain zeros: a literal number as an argument would compile a second copy of what it is passed to.
    free: Any = np.int64(0)
    forced: Any = np.int64(0)
    dead, fixed = 0, 0.0
    for i in range(n):
        false, true = work[i], work[n + i]
        if false > -np.inf and true > -np.inf:
            work[gains + free] = true - false
            work[items + free] = i
            free += 1
        forced += 1 if false == -np.inf and true > -np.inf else 0
        dead += 1 if false == -np.inf and true == -np.inf else 0
        own = false if false > -np.inf else true
        fixed += own if own > -np.inf else 0.0
    _sort_falling(work, gains, items, free)
    work[sums] = 0.0
    for c in range(free):
        work[sums + c + 1] = work[sums + c] + work[gains + c]
    # The best over all free literals when one forced literal fewer, as many, or one more are true.
    fewer, same, more = -np.inf, -np.inf, -np.inf
    for c in range(free + 1):
        if forced + c > 0:
            fewer = max(fewer, pool[base + min(forced + c - 1, cap)] + work[sums + c])
        same = max(same, pool[base + min(forced + c, cap)] + work[sums + c])
        more = max(more, pool[base + min(forced + c + 1, cap)] + work[sums + c])
    for extra in range(2):
        best = -np.inf
        for c in range(free):
            best = max(best, pool[base + min(forced + extra + c, cap)] + work[sums + c])
            work[before + 2 * c + extra] = best
        best = -np.inf
        for c in range(free - 1, -1, -1):
            # Among counts above c: the choice takes in one more than it needs, and leaves out literal c.
            work[behind + 2 * c + extra] = best
            best = max(best, pool[base + min(forced + extra + c, cap)] + work[sums + c + 1])
    for i in range(n):
        false, true = work[i], work[n + i]
        own = false if false > -np.inf else true
        is_forced = false == -np.inf and true > -np.inf
        others = fixed - (own if own > -np.inf else 0.0)
        if dead > (1 if own == -np.inf else 0):
            others = -np.inf
        work[found + i] = others + (fewer if is_forced else same)
        work[found + n + i] = others + (same if is_forced else more)
    for c in range(free):
        i = np.int64(work[items + c])
        others, gain = fixed - work[i] if dead == 0 else -np.inf, work[gains + c]
        work[found + i] = others + max(work[before + 2 * c], work[behind + 2 * c] - gain)
        work[found + n + i] = others + max(work[before + 2 * c + 1], work[behind + 2 * c + 1] - gain)
    start = np.int64(0)
    for i in range(n):
        _write(cards[i], strides[i], counter, work[found + i], work[found + n + i], outgoing, start)
        start += cards[i]
    return -np.inf if dead > 0 else fixed + same
