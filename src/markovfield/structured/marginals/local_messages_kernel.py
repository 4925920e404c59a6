"""Messages from factors to their variables that lower a bound on best scores, maxima smoothed (Meshi et al. 2010).

With messages ``m_f,v(x_v)`` the bound is ``sum_v max belief_v + sum_f max [table_f - sum of its messages]``, a belief
being what is added to a variable and all messages to it. A message is worked out with all others fixed, as the least of
the bound with softmax at some temperature for max, which is smooth.

Invariant: messages and beliefs fit each other; the smoothed bound never rises. Free to change: the order of messages.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["bounds", "send"]


@kernel
def _step(cell, state, strides, cards, scopes, a, b):
    """The cell of the next configuration of a scope, in C order; ``state`` is changed in place."""
    for k in range(b - 1, a - 1, -1):
        state[k - a] += 1
        cell += strides[k]
        if state[k - a] < cards[scopes[k]]:
            return cell
        state[k - a] = 0
        cell -= strides[k] * cards[scopes[k]]
    return cell


@kernel
def send(
    scope_offsets, scopes, table_offsets, strides, cards, value_offsets, pool, message_offsets, messages, beliefs,
    sweeps, temperature,
):  # fmt: skip
    """So many sweeps over all messages; ``messages`` and ``beliefs`` are changed in place.

    Messages of the k-th entry of all scopes lie from ``message_offsets[k]`` on, beliefs of a variable from
    ``value_offsets[v]`` on.
    """
    state = np.zeros(64, np.int64)
    most = 0
    for v in range(len(cards)):
        most = max(most, cards[v])
    top, total = np.empty(most), np.empty(most)
    for _ in range(sweeps):
        for f in range(len(table_offsets)):
            a, b = scope_offsets[f], scope_offsets[f + 1]
            size = 1
            for k in range(a, b):
                size *= cards[scopes[k]]
            for own in range(a, b):
                n, first, at = cards[scopes[own]], message_offsets[own], value_offsets[scopes[own]]
                top[:n], total[:n], state[: b - a] = -np.inf, 0.0, 0
                cell = table_offsets[f]
                for _ in range(size):
                    value = pool[cell]
                    for k in range(a, b):
                        if k != own:
                            value -= messages[message_offsets[k] + state[k - a]]
                    x = state[own - a]
                    if value > top[x]:
                        total[x] = total[x] * np.exp((top[x] - value) / temperature) + 1.0
                        top[x] = value
                    else:
                        total[x] += np.exp((value - top[x]) / temperature)
                    cell = _step(cell, state, strides, cards, scopes, a, b)
                for x in range(n):
                    without = beliefs[at + x] - messages[first + x]
                    half = 0.5 * (top[x] + temperature * np.log(total[x]) - without)
                    messages[first + x], beliefs[at + x] = half, without + half


@kernel
def bounds(
    scope_offsets, scopes, table_offsets, strides, cards, value_offsets, pool, message_offsets, messages, beliefs,
    factor_weights, temperature, values, counts,
):  # fmt: skip
    """The greatest belief of each variable and part of each factor, and what its softmax expects of cells.

    ``values`` has a number for each variable and then for each factor; to ``counts`` of cells is added, each factor
    with its weight.
    """
    state = np.zeros(64, np.int64)
    for v in range(len(cards)):
        values[v] = -np.inf
        for x in range(cards[v]):
            values[v] = max(values[v], beliefs[value_offsets[v] + x])
    for f in range(len(table_offsets)):
        a, b = scope_offsets[f], scope_offsets[f + 1]
        size = 1
        for k in range(a, b):
            size *= cards[scopes[k]]
        top, total = -np.inf, 0.0
        for turn in range(2):
            state[: b - a] = 0
            cell = table_offsets[f]
            for _ in range(size):
                value = pool[cell]
                for k in range(a, b):
                    value -= messages[message_offsets[k] + state[k - a]]
                if turn == 1:
                    counts[cell] += factor_weights[f] * np.exp((value - top) / temperature) / total
                elif value > top:
                    total = total * np.exp((top - value) / temperature) + 1.0
                    top = value
                else:
                    total += np.exp((value - top) / temperature)
                cell = _step(cell, state, strides, cards, scopes, a, b)
        values[len(cards) + f] = top
