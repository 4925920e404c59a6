"""Annealing from a forest of factors to all of them: weights and single-variable Gibbs moves (Neal 2001).

Invariant: `AnnealedGraph`; states are ``int32[chains, variables]``, and every chain has its own stream, so that answers
do not depend on threads. Zeros of tables are penalties until the last temperature. Free to change: the order of visits
within a sweep.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_from_logs

__all__ = ["AnnealedGraph", "anneal", "average_conditionals", "rest_of"]


class AnnealedGraph(NamedTuple):
    """A graph of plain tables, some of them tempered.

    At inverse temperature b, a tempered factor adds ``b`` times its log-potential to the score, any other all of it. A
    cell of -inf counts as the factor's best, less a penalty that grows to infinity, so that Markov chains may cross
    what will be ruled out only in the end. It begins at zero for tempered factors, and with some head start for others.

    Attributes
    ----------
    cardinalities, value_offsets, scope_offsets, scopes, table_offsets, table_strides, log_tables
        As in a structure.
    owner
        ``int32[axes]``: the factor that an axis belongs to.
    levels
        ``float64[factors]``: what a cell of -inf counts for but for the penalty: for tempered factors their best cell,
        for others that less the head start.
    unary
        ``float64[states]``: factors of single variables, likelihoods, all that is not tempered.
    tempered
        ``bool[factors]``; those of less than two variables are neither.
    slot_offsets, slots, slot_factor
        For each variable the axes that hold it, of factors with at least two variables, and the factors.
    slot_other
        The other variable, where there are two, else -1.
    """

    cardinalities: Any
    value_offsets: Any
    scope_offsets: Any
    scopes: Any
    table_offsets: Any
    table_strides: Any
    log_tables: Any
    owner: Any
    levels: Any
    unary: Any
    tempered: Any
    slot_offsets: Any
    slots: Any
    slot_factor: Any
    slot_other: Any


@kernel
def rest_of(graph, states):
    """What the tempered factors add to the score, and how many factors of any kind read a cell of -inf."""
    total = 0.0
    bad = 0
    for f in range(len(graph.tempered)):
        start, stop = graph.scope_offsets[f], graph.scope_offsets[f + 1]
        if stop - start > 1:
            cell = graph.table_offsets[f]
            for p in range(start, stop):
                cell += graph.table_strides[p] * states[graph.scopes[p]]
            value = graph.log_tables[cell]
            if value == -np.inf:
                bad += 1
                value = graph.levels[f]
            if graph.tempered[f]:
                total += value
    return total, bad


@kernel
def _conditional(graph, v, beta, penalty, states, logs, rest, bad):
    """Scores of v's states given the others into ``logs``; the tempered part of them into ``rest`` and ``bad``."""
    card = graph.cardinalities[v]
    at = graph.value_offsets[v]
    for k in range(card):
        logs[k] = graph.unary[at + k]
        rest[k] = 0.0
        bad[k] = 0
    for s in range(graph.slot_offsets[v], graph.slot_offsets[v + 1]):
        slot, f, other = graph.slots[s], graph.slot_factor[s], graph.slot_other[s]
        cell = graph.table_offsets[f]
        start = graph.scope_offsets[f]
        if other >= 0:
            # The axis beside this one.
            cell += graph.table_strides[2 * start + 1 - slot] * states[other]
        else:
            for p in range(start, graph.scope_offsets[f + 1]):
                if p != slot:
                    cell += graph.table_strides[p] * states[graph.scopes[p]]
        stride = graph.table_strides[slot]
        tempered = graph.tempered[f]
        for k in range(card):
            value = graph.log_tables[cell + stride * k]
            if value == -np.inf:
                bad[k] += 1
                value = graph.levels[f]
            if tempered:
                rest[k] += value
            else:
                logs[k] += value
    for k in range(card):
        logs[k] += beta * rest[k]
        if bad[k] > 0:
            logs[k] -= penalty * bad[k]


@kernel
def anneal(graph, betas, penalties, first, last, states, totals, bads, log_weights, streams):
    """Take Markov chains (rows of ``states``) from temperature ``first`` to ``last``: weigh, then move, for each step.

    ``totals`` and ``bads`` are `rest_of` each chain. A chain that ends in what is ruled out has a weight of -inf and
    stays where it is.
    """
    most = 1
    for card in graph.cardinalities:
        most = max(most, card)
    logs, rest, bad = np.empty(most), np.empty(most), np.empty(most, np.int64)
    for c in range(len(states)):
        row, stream = states[c], streams[c]
        for t in range(first, last):
            change = (betas[t + 1] - betas[t]) * totals[c]
            if bads[c] > 0:
                change -= (penalties[t + 1] - penalties[t]) * bads[c]
            log_weights[c] += change
            if change == -np.inf:
                continue
            for v in range(len(graph.cardinalities)):
                card = graph.cardinalities[v]
                if card > 1:
                    _conditional(graph, v, betas[t + 1], penalties[t + 1], row, logs, rest, bad)
                    new = draw_from_logs(stream, logs, 0, card)
                    totals[c] += rest[new] - rest[row[v]]
                    bads[c] += bad[new] - bad[row[v]]
                    row[v] = new


@kernel
def average_conditionals(graph, sweeps, states, stream, means):
    """Sweeps of one Markov chain at the model itself; ``means`` (zeros before) average each variable's conditionals."""
    most = 1
    for card in graph.cardinalities:
        most = max(most, card)
    logs, rest, bad = np.empty(most), np.empty(most), np.empty(most, np.int64)
    for _ in range(sweeps):
        for v in range(len(graph.cardinalities)):
            card = graph.cardinalities[v]
            _conditional(graph, v, 1.0, np.inf, states, logs, rest, bad)
            states[v] = draw_from_logs(stream, logs, 0, card)
            # The logs were left as running sums of what they weigh.
            at, total, before = graph.value_offsets[v], logs[card - 1], 0.0
            for k in range(card):
                means[at + k] += (logs[k] - before) / total / sweeps
                before = logs[k]
