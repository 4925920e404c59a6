"""Sum messages of a noisy-max, in log space: a linear chain over its parents carries the largest contribution so far.

A parent comes down to the distribution of its contribution. Forwards and backwards, two running sums a parent, and no
difference of cumulative products, which would cancel: O(states * K) for each parent.

Invariant: parents' messages in scope order, the child's last; blocks of cells as in `kinds_kernel`. The layout of
scratch is free to change with `noisy_max_work_size`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_add

__all__ = ["noisy_max_messages", "noisy_max_work_size"]

Array = npt.NDArray[Any]


@kernel
def noisy_max_work_size(n: int, k: int) -> int:
    """Scratch that `noisy_max_messages` needs for a scope of n variables, the child of k states."""
    return (2 * n + 4) * k


@kernel
def _reaches(own: Array, k: int, later: Array, out: Array) -> None:
    """out[j] = log sum over i of own[i] * later[max(i, j)]: what follows a largest contribution of j."""
    run = -np.inf
    for j in range(k - 1, -1, -1):
        out[j] = run
        run = log_add(run, own[j] + later[j])
    run = -np.inf
    for j in range(k):
        run = log_add(run, own[j])
        out[j] = log_add(out[j], run + later[j])


@kernel
def noisy_max_messages(
    cards: Array, strides: Array, pool: Array, base: int, incoming: Array, outgoing: Array, counts: Array, work: Array
) -> float:
    """All messages of a noisy-max; where ``counts`` has any length, its expected statistics are added to it instead.

    Returns the log of the factor's total.
    """
    parents = len(cards) - 1
    k = cards[parents]
    # Distributions of contributions, and of the largest of the leak and the first i contributions.
    own, largest = 0, parents * k
    later, fresh, after = (2 * parents + 1) * k, (2 * parents + 2) * k, (2 * parents + 3) * k
    leak = base + strides[parents]
    for j in range(k):
        work[largest + j] = pool[leak + j]
    start = 0
    for i in range(parents):
        block = base + strides[i]
        up_to, up_to_own = -np.inf, -np.inf
        for j in range(k):
            value = -np.inf
            for x in range(cards[i]):
                value = log_add(value, incoming[start + x] + pool[block + x * k + j])
            work[own + i * k + j] = value
            # The larger of both is j: the one is j and the other at most j, or the other is j and the one below j.
            here = largest + i * k + j
            up_to_own = log_add(up_to_own, value)
            work[here + k] = log_add(work[here] + up_to_own, up_to + value)
            up_to = log_add(up_to, work[here])
        start += cards[i]
    total = -np.inf
    for j in range(k):
        work[later + j] = incoming[start + j]
        total = log_add(total, work[largest + parents * k + j] + incoming[start + j])
        if len(counts) == 0:
            outgoing[start + j] = work[largest + parents * k + j]
    if len(counts) > 0 and total == -np.inf:
        return total
    for i in range(parents - 1, -1, -1):
        block = base + strides[i]
        start -= cards[i]
        before = work[largest + i * k : largest + (i + 1) * k]
        _reaches(before, k, work[later : later + k], work[after : after + k])
        for x in range(cards[i]):
            value = -np.inf
            for j in range(k):
                reach = pool[block + x * k + j] + work[after + j]
                value = log_add(value, reach)
                if len(counts) > 0:
                    counts[block + x * k + j] += exp_scalar(incoming[start + x] + reach - total)
            if len(counts) == 0:
                outgoing[start + x] = value
        _reaches(work[own + i * k : own + (i + 1) * k], k, work[later : later + k], work[fresh : fresh + k])
        for j in range(k):
            work[later + j] = work[fresh + j]
    if len(counts) > 0:
        for j in range(k):
            counts[leak + j] += exp_scalar(pool[leak + j] + work[later + j] - total)
        return total
    start = 0
    for i in range(parents + 1):
        top = -np.inf
        for x in range(cards[i]):
            top = max(top, outgoing[start + x])
        if top > -np.inf:
            for x in range(cards[i]):
                outgoing[start + x] -= top
        start += cards[i]
    return total
