"""Forests of factors: their order, log Z, and exact samples from the roots down.

Every factor of a forest joins one *upper* variable to others that are met through it for the first time. A variable's
belief is what it and all that hangs below it add up to, in logs. Cells of -inf count as the factor's entry in
``floors``, which may be -inf as well.

Forests elsewhere have passes of their own, each on the layout of its neighbours: messages on edges, also of maxima
(`belief_propagation.forest_kernel`), reweighted pairs (`tree_reweighted.sweeps_kernel`), clusters with averages
(`mean_field.mean_field_kernel`), blocks grown anew for every draw (`gibbs.tree_blocks_kernel`). To share one they would
have to copy their numbers into its layout for every pass, which costs as much as the pass.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_from_logs, draw_unit
from markovfield.kernels.union_find import find

__all__ = ["forest_beliefs", "forest_draw", "forest_order", "spanning_factors"]


@kernel
def spanning_factors(n, scope_offsets, scopes, order):
    """Go through factors in ``order`` and take those that close no cycle with what was taken, ``bool[factors]``."""
    parent = np.empty(n, np.int32)
    for v in range(n):
        parent[v] = v
    taken = np.zeros(len(scope_offsets) - 1, np.bool_)
    for f in order:
        start, stop = scope_offsets[f], scope_offsets[f + 1]
        apart = True
        for p in range(start, stop):
            root = find(parent, scopes[p])
            for q in range(start, p):
                if find(parent, scopes[q]) == root:
                    apart = False
        if apart:
            taken[f] = True
            for p in range(start + 1, stop):
                one, two = find(parent, scopes[start]), find(parent, scopes[p])
                parent[max(one, two)] = min(one, two)
    return taken


@kernel
def forest_order(scope_offsets, scopes, slot_offsets, slots, slot_factor, taken):
    """Axes of the upper variables of the taken factors, from the roots down; and which variables are roots.

    ``slots`` and ``slot_factor`` list, from ``slot_offsets[v]`` on, the axes that hold variable v and their factors.
    """
    n = len(slot_offsets) - 1
    met = np.zeros(n, np.bool_)
    roots = np.zeros(n, np.bool_)
    done = np.zeros(len(taken), np.bool_)
    queue = np.empty(n, np.int32)
    uppers = np.empty(len(taken), np.int64)
    n_uppers = 0
    for root in range(n):
        if met[root]:
            continue
        roots[root] = True
        met[root] = True
        queue[0] = root
        at, size = 0, 1
        while at < size:
            v = queue[at]
            at += 1
            for s in range(slot_offsets[v], slot_offsets[v + 1]):
                f = slot_factor[s]
                if taken[f] and not done[f]:
                    done[f] = True
                    uppers[n_uppers] = slots[s]
                    n_uppers += 1
                    for p in range(scope_offsets[f], scope_offsets[f + 1]):
                        if not met[scopes[p]]:
                            met[scopes[p]] = True
                            queue[size] = scopes[p]
                            size += 1
    return uppers[:n_uppers], roots


@kernel
def _cell_score(
    cardinalities, value_offsets, scopes, table_strides, log_tables, floor, start, stop, upper, base, k, beliefs
):
    """The score of the k-th configuration of a factor's lower variables, last axis fastest, with their beliefs."""
    cell = base
    score = 0.0
    for p in range(stop - 1, start - 1, -1):
        if p != upper:
            card = cardinalities[scopes[p]]
            state = k % card
            k //= card
            cell += table_strides[p] * state
            score += beliefs[value_offsets[scopes[p]] + state]
    value = log_tables[cell]
    return score + (floor if value == -np.inf else value)


@kernel
def _configurations(cardinalities, scopes, start, stop, upper):
    """How many configurations the lower variables of a factor have."""
    count = 1
    for p in range(start, stop):
        if p != upper:
            count *= cardinalities[scopes[p]]
    return count


@kernel
def forest_beliefs(
    cardinalities,
    value_offsets,
    scope_offsets,
    scopes,
    table_offsets,
    table_strides,
    log_tables,
    owner,
    floors,
    uppers,
    roots,
    beliefs,
):
    """Turn ``beliefs`` (potentials of single variables) into those with all that hangs below; answers log Z."""
    for u in range(len(uppers) - 1, -1, -1):
        upper = uppers[u]
        f = owner[upper]
        start, stop = scope_offsets[f], scope_offsets[f + 1]
        count = _configurations(cardinalities, scopes, start, stop, upper)
        v = scopes[upper]
        for state in range(cardinalities[v]):
            base = table_offsets[f] + table_strides[upper] * state
            top, total = -np.inf, 0.0
            for k in range(count):
                score = _cell_score(
                    cardinalities,
                    value_offsets,
                    scopes,
                    table_strides,
                    log_tables,
                    floors[f],
                    start,
                    stop,
                    upper,
                    base,
                    k,
                    beliefs,
                )
                if score > top:
                    total = total * math.exp(top - score) + 1.0
                    top = score
                elif score > -np.inf:
                    total += math.exp(score - top)
            beliefs[value_offsets[v] + state] += top + math.log(total) if top > -np.inf else -np.inf
    log_z = 0.0
    for v in range(len(cardinalities)):
        if roots[v]:
            top, total = -np.inf, 0.0
            for k in range(value_offsets[v], value_offsets[v + 1]):
                top = max(top, beliefs[k])
            if top == -np.inf:
                return -np.inf
            for k in range(value_offsets[v], value_offsets[v + 1]):
                total += math.exp(beliefs[k] - top)
            log_z += top + math.log(total)
    return log_z


@kernel
def forest_draw(
    cardinalities,
    value_offsets,
    scope_offsets,
    scopes,
    table_offsets,
    table_strides,
    log_tables,
    owner,
    floors,
    uppers,
    roots,
    beliefs,
    states,
    streams,
):
    """Draw rows of ``states`` (``int32[size, n]``), one for each stream, where log Z is above -inf."""
    most = 1
    for card in cardinalities:
        most = max(most, card)
    logs = np.empty(most)
    for r in range(len(states)):
        row, stream = states[r], streams[r]
        for v in range(len(cardinalities)):
            if roots[v]:
                for k in range(cardinalities[v]):
                    logs[k] = beliefs[value_offsets[v] + k]
                row[v] = draw_from_logs(stream, logs, 0, cardinalities[v])
        for upper in uppers:
            f = owner[upper]
            start, stop = scope_offsets[f], scope_offsets[f + 1]
            count = _configurations(cardinalities, scopes, start, stop, upper)
            base = table_offsets[f] + table_strides[upper] * row[scopes[upper]]
            # One pass: each configuration takes the place of those before with its share of the weight so far.
            top, total, chosen = -np.inf, 0.0, 0
            for k in range(count):
                score = _cell_score(
                    cardinalities,
                    value_offsets,
                    scopes,
                    table_strides,
                    log_tables,
                    floors[f],
                    start,
                    stop,
                    upper,
                    base,
                    k,
                    beliefs,
                )
                if score == -np.inf:
                    continue
                if score > top:
                    total *= math.exp(top - score)
                    top = score
                weight = math.exp(score - top)
                total += weight
                if draw_unit(stream) * total < weight:
                    chosen = k
            for p in range(stop - 1, start - 1, -1):
                if p != upper:
                    card = cardinalities[scopes[p]]
                    row[scopes[p]] = chosen % card
                    chosen //= card
