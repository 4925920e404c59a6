"""Messages of pairwise factors that depend on how far apart two states are: Potts, truncated linear and quadratic.

A message is ``out(x) = sum or max over y of theta[min(|x - y|, cap)] + incoming(y)``. States at the cap or beyond come
from running sums (maxima) from either end, at O(K) whatever the cells are. States nearer than the cap are a window:

* a cap of one (Potts) leaves only y = x;
* where the cells before the cap fall by equal steps, the window's sum goes block by block (a window is the end of one
  block and the beginning of the next), and maxima go by two passes: O(K);
* where they fall by squares, maxima go by an upper envelope of parabolas, O(K) (Felzenszwalb and Huttenlocher); sums
  have no exact O(K) method and cost O(K cap);
* other cells cost O(K cap).

Which it is, is read off the cells, O(cap) at each call: any other numbers in the same cells stay exact. Nothing is ever
subtracted. Sums run in linear space; where one comes out too small to be sure of, the message is done again in log
space.

Invariant: exact for any cells, whatever shape was recognised. Free to change: `LEAST_WINDOW`, and which shapes have a
fast path.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_add

__all__ = ["add_distance_counts", "distance_messages", "distance_work_size"]

Array = npt.NDArray[Any]

OTHER, LINEAR, QUADRATIC = 0, 1, 2
LEAST_SUM = 1e-280
"""A sum of numbers up to one that is smaller than this may have lost terms to underflow."""
LEAST_WINDOW = 20
"""With a cap below this a window is walked over cell by cell: it is short."""


@kernel
def distance_work_size(first: int, second: int, cap: int) -> int:
    """Scratch that `distance_messages` and `add_distance_counts` need."""
    return 6 * (max(first, second) + 1) + cap + 1


@kernel
def _shape(pool: Array, base: int, cap: int) -> tuple[int, float]:
    """How the cells before the cap fall (never rise), and by how much at the first step."""
    first = pool[base]
    if not (first > -np.inf and pool[base + 1] > -np.inf):
        return OTHER, 0.0
    step = first - pool[base + 1] if cap > 1 else 0.0
    if step < 0.0:
        return OTHER, 0.0
    slack = 1e-13 * (1.0 + abs(first) + step * cap)
    linear = True
    for d in range(cap):
        linear = linear and abs(first - step * d - pool[base + d]) <= slack
    if linear:
        return LINEAR, step
    slack = 1e-13 * (1.0 + abs(first) + step * cap * cap)
    for d in range(cap):
        if not abs(first - step * d * d - pool[base + d]) <= slack:
            return OTHER, 0.0
    return QUADRATIC, step


@kernel
def _is_truncated(pool: Array, base: int, cap: int, shape: int, step: float) -> bool:
    """Whether the cells are the larger of the falling line (or parabola) and the last cell: then so are maxima."""
    if shape == OTHER:
        return False
    fall = step * cap if shape == LINEAR else step * cap * cap
    slack = 1e-13 * (1.0 + abs(pool[base]) + fall)
    last = pool[base + cap]
    return bool(pool[base + cap - 1] >= last and pool[base] - fall <= last + slack)


@kernel
def _maxima(
    pool: Array,
    base: int,
    cap: int,
    incoming: Array,
    source: int,
    n: int,
    outgoing: Array,
    target: int,
    m: int,
    shape: int,
    step: float,
    work: Array,
) -> None:
    """out(x), from ``outgoing[target]`` on, for x < m, of in(y), from ``incoming[source]`` on, for y < n."""
    first, last = pool[base], pool[base + cap]
    if cap > 1 and _is_truncated(pool, base, cap, shape, step):
        top = -np.inf
        for y in range(n):
            top = max(top, incoming[source + y])
        if shape == LINEAR:
            best = -np.inf
            for y in range(n - 1, -1, -1):
                best = max(incoming[source + y], best - step)
                if y < m:
                    outgoing[target + y] = best
            best = -np.inf
            for x in range(m):
                best = max(incoming[source + x], best - step) if x < n else best - step
                outgoing[target + x] = max(best, outgoing[target + x]) if x < n else best
        else:
            _envelope(incoming, source, n, outgoing, target, m, step, work)
        for x in range(m):
            outgoing[target + x] = max(first + outgoing[target + x], last + top)
        return
    top = -np.inf
    for y in range(n):
        top = max(top, incoming[source + y])
        work[y] = top
    top = -np.inf
    for y in range(n - 1, -1, -1):
        top = max(top, incoming[source + y])
        work[n + y] = top
    for x in range(m):
        value = -np.inf
        if x >= cap:
            value = last + work[min(x - cap, n - 1)]
        if x + cap < n:
            value = max(value, last + work[n + x + cap])
        outgoing[target + x] = value
    for d in range(cap):
        theta = pool[base + d]
        for x in range(min(m, n - d)):
            outgoing[target + x] = max(outgoing[target + x], theta + incoming[source + x + d])
        for x in range(d, min(m, n + d)):
            outgoing[target + x] = max(outgoing[target + x], theta + incoming[source + x - d])


@kernel
def _envelope(
    incoming: Array, source: int, n: int, outgoing: Array, target: int, m: int, curve: float, work: Array
) -> None:
    """out(x) = max over y of in(y) - curve (x - y)^2, by the upper envelope of the parabolas."""
    # The peaks of those on the envelope, and n further on, where each begins.
    kept = np.int64(0)
    for y in range(n):
        value = incoming[source + y]
        if value == -np.inf:
            continue
        cut = -np.inf
        while kept > 0:
            p = work[kept - 1]
            # From here on the parabola of y is above that of p.
            cut = 0.5 * (y + p) + (incoming[source + np.int64(p)] - value) / (2.0 * curve * (y - p))
            if cut > work[n + kept - 1]:
                break
            kept -= 1
            cut = -np.inf
        work[kept] = y
        work[n + kept] = cut
        kept += 1
    at = np.int64(0)
    for x in range(m):
        while at + 1 < kept and work[n + at + 1] < x:
            at += 1
        if kept == 0:
            outgoing[target + x] = -np.inf
        else:
            outgoing[target + x] = incoming[source + np.int64(work[at])] - curve * (x - work[at]) ** 2


@kernel
def _decaying_windows(work: Array, total: int, spare: int, powers: int, n: int, cap: int) -> None:
    """total[x] += sum over distances d < cap of powers[d] times the values (at the start of ``work``) at that distance.

    Once from the left, and once from the right without d = 0. O(n): a window that ends at i is the end of one block of
    its size and the beginning of the next.
    """
    ratio = work[powers + 1]
    for side in range(2):
        size = cap - side
        turn = n - 1 if side == 1 else 0
        sign = 1 - 2 * side
        run = 0.0
        for i in range(n):
            value = work[turn + sign * i]
            run = value if i % size == 0 else value + ratio * run
            work[spare + i] = run
        for begin in range(0, n, size):
            end = min(begin + size, n) - 1
            run = 0.0
            for i in range(end, begin - 1, -1):
                # In the next block, the window that ends at `last` holds what is from i on here.
                run += work[powers + end - i] * work[turn + sign * i]
                last = i + size - 1
                if last > end and last < n:
                    work[spare + last] += work[powers + last - end] * run
        for i in range(n - side):
            work[total + turn + sign * (i + side)] += work[powers + side] * work[spare + i]


@kernel
def _sums(
    pool: Array,
    base: int,
    cap: int,
    incoming: Array,
    source: int,
    n: int,
    outgoing: Array,
    target: int,
    m: int,
    shape: int,
    step: float,
    work: Array,
) -> bool:
    """out(x) in linear space; false, and nothing of use, where one might have lost terms to underflow."""
    # Values, their sums up to each and from each on, totals and a spare, then the potentials.
    size = max(n, m)
    before, behind, total, spare, powers = size, 2 * size, 3 * size, 4 * size, 6 * size
    top, highest = -np.inf, -np.inf
    for y in range(n):
        top = max(top, incoming[source + y])
    for d in range(cap + 1):
        highest = max(highest, pool[base + d])
    if top == -np.inf or highest == -np.inf:
        return False
    for d in range(cap + 1):
        work[powers + d] = exp_scalar(pool[base + d] - highest)
    for y in range(n):
        work[y] = exp_scalar(incoming[source + y] - top)
    for y in range(n, size):
        work[y] = 0.0
    run = 0.0
    for y in range(n):
        run += work[y]
        work[before + y] = run
    run = 0.0
    for y in range(n - 1, -1, -1):
        run += work[y]
        work[behind + y] = run
    last, shift = work[powers + cap], top + highest
    for x in range(size):
        value = 0.0
        if x >= cap:
            value = work[before + min(x - cap, n - 1)]
        if x + cap < n:
            value += work[behind + x + cap]
        work[total + x] = last * value
    if shape == LINEAR and cap >= LEAST_WINDOW:
        scale = work[powers]
        if scale < LEAST_SUM:
            return False
        for d in range(cap):
            work[powers + d] = exp_scalar(-step * d)
        for x in range(size):
            work[total + x] /= scale
        _decaying_windows(work, total, spare, powers, size, cap)
        shift += math.log(scale)
    else:
        for d in range(cap):
            theta = work[powers + d]
            for x in range(min(m, n - d)):
                work[total + x] += theta * work[x + d]
            if d > 0:
                for x in range(d, min(m, n + d)):
                    work[total + x] += theta * work[x - d]
    for x in range(m):
        if not work[total + x] > LEAST_SUM:
            return False
        outgoing[target + x] = math.log(work[total + x]) + shift
    return True


@kernel
def _log_sums(
    pool: Array,
    base: int,
    cap: int,
    incoming: Array,
    source: int,
    n: int,
    outgoing: Array,
    target: int,
    m: int,
    work: Array,
) -> None:
    """out(x) in log space: slower, and sure. Leaves in ``work`` the log-sums up to each y, then from each y on."""
    for side in range(2):
        run = -np.inf
        for i in range(n):
            y = i if side == 0 else n - 1 - i
            run = log_add(run, incoming[source + y])
            work[side * n + y] = run
    last = pool[base + cap]
    for x in range(m):
        low = work[min(x - cap, n - 1)] + last if x >= cap else -np.inf
        high = work[n + x + cap] + last if x + cap < n else -np.inf
        top = max(low, high)
        for y in range(max(0, x - cap + 1), min(n, x + cap)):
            top = max(top, pool[base + abs(x - y)] + incoming[source + y])
        if top > -np.inf:
            total = exp_scalar(low - top) + exp_scalar(high - top)
            for y in range(max(0, x - cap + 1), min(n, x + cap)):
                total += exp_scalar(pool[base + abs(x - y)] + incoming[source + y] - top)
            top += math.log(total)
        outgoing[target + x] = top


@kernel
def _whole(incoming: Array, outgoing: Array, target: int, m: int, maximise: bool) -> float:
    """The total of the first variable's incoming message and what it is sent, from ``outgoing[target]`` on."""
    top = -np.inf
    for x in range(m):
        top = max(top, outgoing[target + x] + incoming[x])
    if maximise or top == -np.inf:
        return top
    total = 0.0
    for x in range(m):
        total += exp_scalar(outgoing[target + x] + incoming[x] - top)
    return top + math.log(total)


@kernel
def distance_messages(
    cap: int, cards: Array, pool: Array, base: int, incoming: Array, outgoing: Array, maximise: bool, work: Array
) -> float:
    """Both messages of a factor of the distance of two states; returns the log of the factor's total."""
    shape, step = _shape(pool, base, cap)
    whole = -np.inf
    for axis in range(2):
        m, n = cards[axis], cards[1 - axis]
        target, source = axis * cards[0], (1 - axis) * cards[0]
        if maximise:
            _maxima(pool, base, cap, incoming, source, n, outgoing, target, m, shape, step, work)
        elif not _sums(pool, base, cap, incoming, source, n, outgoing, target, m, shape, step, work):
            _log_sums(pool, base, cap, incoming, source, n, outgoing, target, m, work)
        if axis == 0:
            whole = _whole(incoming, outgoing, target, m, maximise)
        top = -np.inf
        for x in range(m):
            top = max(top, outgoing[target + x])
        if top > -np.inf:
            for x in range(m):
                outgoing[target + x] -= top
    return whole


@kernel
def add_distance_counts(
    cap: int, cards: Array, pool: Array, base: int, incoming: Array, counts: Array, work: Array
) -> float:
    """Add the posterior of each distance to its cell of ``counts``, O(K cap); returns the log of the factor's total."""
    m, n = cards[0], cards[1]
    _log_sums(pool, base, cap, incoming, m, n, work, 2 * n, m, work)
    total = _whole(incoming, work, 2 * n, m, np.bool_(False))
    if total == -np.inf:
        return total
    for x in range(m):
        own = incoming[x] - total
        for y in range(max(0, x - cap + 1), min(n, x + cap)):
            d = abs(x - y)
            counts[base + d] += exp_scalar(pool[base + d] + incoming[m + y] + own)
        if x >= cap:
            counts[base + cap] += exp_scalar(pool[base + cap] + work[min(x - cap, n - 1)] + own)
        if x + cap < n:
            counts[base + cap] += exp_scalar(pool[base + cap] + work[n + x + cap] + own)
    return total
