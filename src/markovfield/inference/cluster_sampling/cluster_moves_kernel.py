"""Cluster moves for Ising and Potts models on any graph: Swendsen-Wang sweeps and Wolff clusters.

A cluster moves as one: every member's state is shifted by the same number modulo ``q``, which leaves the pairs inside
it as satisfied as they were.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_bits, draw_from_logs, draw_index, draw_unit
from markovfield.kernels.union_find import flatten, unite

__all__ = ["ClusterGraph", "swendsen_wang", "wolff"]

_ONE = np.uint64(1)


class ClusterGraph(NamedTuple):
    """An Ising or Potts model of ``n`` free variables with ``q`` states each.

    A pair is *satisfied* where ``states[first] == states[second] ^ crossed``; that adds ``strength >= 0`` to the score.
    ``crossed`` is 1 for pairs that want to differ, which only models of two states may have. A satisfied pair is bonded
    with probability ``threshold / 2^64``.

    Attributes
    ----------
    first, second, crossed, thresholds
        ``int32[m]`` twice, ``int8[m]``, ``uint64[m]``: the pairs.
    offsets, half_other, half_crossed, half_strength, half_thresholds
        Each pair twice, those of variable i from ``offsets[i]`` to ``offsets[i + 1]``.
    unary
        ``float64[n, q]``, what each state adds by itself, -inf where it is ruled out; no rows where every variable's
        states all add the same.
    columns, places
        ``int64[n]``: where a variable's state goes in a row of samples, and its first state in a vector of all states.
    """

    q: Any
    first: Any
    second: Any
    crossed: Any
    thresholds: Any
    offsets: Any
    half_other: Any
    half_crossed: Any
    half_strength: Any
    half_thresholds: Any
    unary: Any
    columns: Any
    places: Any


@kernel
def _shifted(state, shift, q):
    """A state moved on by a shift below q."""
    moved = state + shift
    return moved - q if moved >= q else moved


@kernel
def _heat_bath(graph, logs, states, stream):
    """One sweep of single-variable moves: each variable is drawn given all others. ``logs`` is ``float64[q]``."""
    fields = len(graph.unary) > 0
    for i in range(len(states)):
        for k in range(graph.q):
            logs[k] = graph.unary[i, k] if fields else 0.0
        for h in range(graph.offsets[i], graph.offsets[i + 1]):
            logs[states[graph.half_other[h]] ^ graph.half_crossed[h]] += graph.half_strength[h]
        states[i] = draw_from_logs(stream, logs, 0, graph.q)


@kernel
def _bonds(first, second, crossed, thresholds, states, stream, bonded):
    """Which pairs are bonded, their numbers in front of ``bonded``; answers how many.

    No branch depends on the draws: half of them would be guessed wrong. The stream is kept in four local words, since
    the compiler cannot know that the arrays are apart.
    """
    a, b, c, d = stream[0], stream[1], stream[2], stream[3]
    n = 0
    for e in range(len(first)):
        total = a + d
        bits = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
        shifted = b << np.uint64(17)
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = (d << np.uint64(45)) | (d >> np.uint64(19))
        satisfied = states[first[e]] == states[second[e]] ^ crossed[e]
        bonded[n] = e
        n += np.int64(satisfied & (bits < thresholds[e]))
    stream[0], stream[1], stream[2], stream[3] = a, b, c, d
    return n


@kernel
def _draw_even_shifts(q, shift, stream):
    """A shift for every variable, all equally likely; only roots will use theirs, but a test costs more than a draw."""
    n = len(shift)
    if q == 2:
        for start in range(0, n, 64):
            bits = draw_bits(stream)
            for i in range(start, min(start + 64, n)):
                shift[i] = np.int32(bits & _ONE)
                bits >>= _ONE
    else:
        for i in range(n):
            shift[i] = draw_index(stream, q)


@kernel
def _draw_shifts(q, unary, parent, weights, logs, states, shift, stream):
    """A shift for every root by the weight of its cluster; ``weights`` become the probabilities of its shifts."""
    for i in range(len(parent)):
        root = parent[i]
        if root == i:
            for k in range(q):
                weights[i, k] = 0.0
        for k in range(q):
            weights[root, k] += unary[i, _shifted(states[i], k, q)]
    for i in range(len(parent)):
        if parent[i] == i:
            for k in range(q):
                logs[k] = weights[i, k]
            shift[i] = draw_from_logs(stream, logs, 0, q)
            # The logs were left as running sums of what they weigh.
            total = logs[q - 1]
            for k in range(q - 1, 0, -1):
                weights[i, k] = (logs[k] - logs[k - 1]) / total
            weights[i, 0] = logs[0] / total


@kernel
def _add_probabilities(graph, parent, weights, states, sums):
    """Add each variable's probabilities given the clusters to ``sums``, before the clusters are shifted."""
    q = graph.q
    for i in range(len(parent)):
        at = graph.places[i]
        if len(weights):
            for k in range(q):
                sums[at + _shifted(states[i], k, q)] += weights[parent[i], k]
        else:
            for k in range(q):
                sums[at + k] += 1.0 / q


@kernel
def swendsen_wang(graph, local, sweeps, states, stream, rows, sums):
    """Sweeps in place in ``states``: bond satisfied pairs at random, then shift every cluster by itself.

    A cluster's shift is drawn with its weight, the sum of what its members' states add by themselves, so the move is
    exact for any fields. ``local`` sweeps of single variables follow each.

    Where ``rows`` (``int32[k, columns]``) has any, there are ``sweeps`` for each and the states are written there.
    Where ``sums`` is not empty, each sweep adds the probabilities of every variable's states given the clusters.
    """
    q, first, second, n = graph.q, graph.first, graph.second, len(states)
    parent = np.empty(n, np.int32)
    bonded = np.empty(len(first) + 1, np.int32)
    shift = np.empty(n, np.int32)
    logs = np.empty(q)
    fields = len(graph.unary) > 0
    weights = np.empty((n if fields else 0, q))
    for turn in range(max(1, len(rows))):
        for _ in range(sweeps):
            for i in range(n):
                parent[i] = i
            n_bonds = _bonds(first, second, graph.crossed, graph.thresholds, states, stream, bonded)
            for b in range(n_bonds):
                unite(parent, first[bonded[b]], second[bonded[b]])
            flatten(parent)
            if fields:
                _draw_shifts(q, graph.unary, parent, weights, logs, states, shift, stream)
            else:
                _draw_even_shifts(q, shift, stream)
            if len(sums):
                _add_probabilities(graph, parent, weights, states, sums)
            for i in range(n):
                states[i] = _shifted(states[i], shift[parent[i]], q)
            for _again in range(local):
                _heat_bath(graph, logs, states, stream)
        if len(rows):
            for i in range(n):
                rows[turn, graph.columns[i]] = states[i]


@kernel
def _other_shift(q, logs, stream):
    """A shift by the weights ``logs``, whose first is that of staying: Liu's (1996) Metropolised heat bath.

    A shift other than none is proposed by its weight among the others, and accepted with what the others weigh now over
    what they would weigh then. With two states this is Metropolis, with equal weights the move is always made.
    """
    top = -np.inf
    for k in range(q):
        top = max(top, logs[k])
    here = math.exp(logs[0] - top)
    others = 0.0
    for k in range(1, q):
        logs[k] = math.exp(logs[k] - top)
        others += logs[k]
    if others == 0.0:
        return 0
    u = draw_unit(stream) * others
    new = 0
    for k in range(1, q):
        # Rounding may leave u above all: then it is the last with any weight.
        if logs[k] > 0.0 and (new == 0 or u >= 0.0):
            new = k
        u -= logs[k]
    then = here
    for k in range(1, q):
        if k != new:
            then += logs[k]
    return new if draw_unit(stream) * then < others else 0


@kernel
def _grow(graph, seed, inside, members, logs, states, stream):
    """Grow one cluster; its members are left in front of ``members``, its weights in ``logs``. Answers its size."""
    fields = len(graph.unary) > 0
    inside[seed] = True
    members[0] = seed
    size = 1
    at = 0
    for k in range(graph.q):
        logs[k] = 0.0
    while at < size:
        i = members[at]
        at += 1
        for h in range(graph.offsets[i], graph.offsets[i + 1]):
            j = graph.half_other[h]
            if (
                not inside[j]
                and states[j] == states[i] ^ graph.half_crossed[h]
                and draw_bits(stream) < graph.half_thresholds[h]
            ):
                inside[j] = True
                members[size] = j
                size += 1
        if fields:
            for k in range(graph.q):
                logs[k] += graph.unary[i, _shifted(states[i], k, graph.q)]
    return size


@kernel
def wolff(graph, clusters, local, sweeps, states, stream, rows, sums):
    """Sweeps of ``clusters`` or one more single clusters in place in ``states``; answers how many states they held.

    A cluster grows from a variable drawn at random over bonded pairs. Whether there is one cluster more is a coin's
    choice: were it always the same number, Markov chains that accept every move could be periodic. ``local`` sweeps of
    single variables follow. ``rows`` and ``sums`` are as for `swendsen_wang`, but ``sums`` count states.
    """
    q, n = graph.q, len(states)
    inside = np.zeros(n, np.bool_)
    members = np.empty(n, np.int32)
    logs = np.empty(q)
    fields = len(graph.unary) > 0
    visited = 0
    for turn in range(max(1, len(rows))):
        for _ in range(sweeps):
            for _cluster in range(clusters + draw_index(stream, 2)):
                size = _grow(graph, draw_index(stream, n), inside, members, logs, states, stream)
                shift = _other_shift(q, logs, stream) if fields else 1 + draw_index(stream, q - 1)
                for m in range(size):
                    i = members[m]
                    inside[i] = False
                    states[i] = _shifted(states[i], shift, q)
                visited += size
            for _again in range(local):
                _heat_bath(graph, logs, states, stream)
            if len(sums):
                for i in range(n):
                    sums[graph.places[i] + states[i]] += 1.0
        if len(rows):
            for i in range(n):
                rows[turn, graph.columns[i]] = states[i]
    return visited
