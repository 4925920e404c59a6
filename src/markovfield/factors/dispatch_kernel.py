"""Messages and expected statistics of structured factors, each kind at a cost far below that of its table.

| kind | sums | maxima |
| --- | --- | --- |
| clause, parity | O(n) | O(n) |
| cardinality, cap c | O(n c) | O(n min(c, log n)) |
| distance (Potts, truncated linear) | O(K) | O(K) |
| distance (truncated quadratic) | O(K c) | O(K) |
| noisy-max | O(n K) | none |

n is the number of variables, each with few states; K the states of a variable. Messages are logs, in the order of the
scope, one after the other in one flat array; ``-inf`` is a hard zero and stays one.

Invariant: the arguments and the layout of messages, which every caller shares. Free to change: how a kind is computed,
and the scratch it needs, as long as `structured_work_size` says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.factors.distance_kernel import add_distance_counts, distance_messages, distance_work_size
from markovfield.factors.kinds_kernel import CARDINALITY, DISTANCE, NOISY_MAX, PARITY
from markovfield.factors.literals_kernel import add_literal_counts, literal_messages, literal_work_size
from markovfield.factors.noisy_max_kernel import noisy_max_messages, noisy_max_work_size
from markovfield.kernels.compiler import kernel

__all__ = ["structured_factor_messages", "structured_statistics", "structured_work_size"]

Array = npt.NDArray[Any]


@kernel
def _cap(kind: int, strides: Array) -> int:
    """The largest count (or distance) that a factor tells apart from those above it."""
    if kind == DISTANCE:
        return strides[0]  # type: ignore[no-any-return]
    if kind == CARDINALITY:
        return (strides[0] + 2147483648) >> 32 if len(strides) > 0 else 0
    return 1


@kernel
def structured_work_size(kind: int, n: int, cards: Array, strides: Array) -> int:
    """How many numbers of scratch `structured_factor_messages` and `structured_statistics` need for a factor."""
    if kind == DISTANCE:
        return distance_work_size(cards[0], cards[1], strides[0])
    if kind == NOISY_MAX:
        return noisy_max_work_size(n, cards[n - 1])
    return literal_work_size(n, _cap(kind, strides))


@kernel
def structured_factor_messages(
    kind: int,
    n: int,
    cards: Array,
    strides: Array,
    pool: Array,
    base: int,
    incoming: Array,
    outgoing: Array,
    maximise: bool,
    work: Array,
) -> float:
    """All messages of one structured factor to its n variables; returns the log of its total.

    Parameters
    ----------
    kind
        Any kind but a plain table. The contributions of a noisy-max are summed whatever else is maximised, and that
        has no fast algorithm: its maxima come out as nan.
    cards, strides
        ``int64[n]``, the states of each variable and the factor's "strides", as in the structure.
    pool, base
        The log-potentials, and where those of the factor start.
    incoming, outgoing
        Flat log-messages, variable by variable in the order of the scope. Those going out are shifted so that the
        largest entry of each is zero (all are -inf where nothing is possible).
    maximise
        Maxima instead of sums.
    work
        At least `structured_work_size` numbers of scratch.

    Returns
    -------
    float
        Log of the sum (or the maximum) over all configurations of the potential times the incoming messages.
    """
    if kind == DISTANCE:
        return distance_messages(strides[0], cards[:n], pool, base, incoming, outgoing, maximise, work)
    if kind == NOISY_MAX:
        if maximise:
            for i in range(len(outgoing)):
                outgoing[i] = np.nan
            return np.nan
        return noisy_max_messages(cards[:n], strides[:n], pool, base, incoming, outgoing, work[:0], work)
    cap, counter, parity = _cap(kind, strides[:n]), kind == CARDINALITY, kind == PARITY
    return literal_messages(
        cap, parity, counter, cards[:n], strides[:n], pool, base, incoming, outgoing, maximise, work
    )


@kernel
def structured_statistics(
    kind: int,
    n: int,
    cards: Array,
    strides: Array,
    pool: Array,
    base: int,
    incoming: Array,
    counts: Array,
    work: Array,
) -> float:
    """Add a factor's expected statistics, given incoming messages, to ``counts``, which is as long as the pool.

    Arguments as for `structured_factor_messages`. The statistic of a cell is how often it is read (for a noisy-max: how
    often the contribution it is the log-probability of is made), so that it is the derivative of the log of the
    factor's total, which is returned, by the cell.
    """
    if kind == DISTANCE:
        return add_distance_counts(strides[0], cards[:n], pool, base, incoming, counts, work)
    if kind == NOISY_MAX:
        return noisy_max_messages(cards[:n], strides[:n], pool, base, incoming, work[:0], counts, work)
    cap, counter, parity = _cap(kind, strides[:n]), kind == CARDINALITY, kind == PARITY
    return add_literal_counts(cap, parity, counter, cards[:n], strides[:n], pool, base, incoming, counts, work)
