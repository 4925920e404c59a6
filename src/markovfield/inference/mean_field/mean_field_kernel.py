"""Mean field over clusters of variables: exact inference inside a cluster, averages over all the others.

The variables are cut into clusters, each a tree by itself. The *part* of a factor in a cluster is what it has there:
its variables in the cluster, its *members*, and a joint distribution of them. A factor with parts in several clusters
is, to one of them, the average of its log-potentials over the parts in the others. With one variable a cluster this is
naive mean field.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = ["ClusterLayout", "evidence_bound", "fill_parts", "fill_shifts", "pool_counts", "update_clusters"]


class ClusterLayout(NamedTuple):
    """Clusters, and the parts of factors in them.

    The parts of factor f are ``factor_parts[f] .. factor_parts[f + 1]``; the members of part p are
    ``member_variable[member_offsets[p] : member_offsets[p + 1]]``, its cells start at ``cell_offsets[p]``, last member
    fastest, and ``shifts`` says how far each moves from the factor's base in the pool. ``variable_parts`` lists the
    parts of which a variable is the only member; ``cluster_parts`` the other parts of a cluster, from the roots on:
    ``parent_member[p]`` is the member nearer to the root, whose message starts at ``message_offsets[p]``.
    """

    value_offsets: npt.NDArray[np.int64]
    table_offsets: npt.NDArray[np.int64]
    factor_parts: npt.NDArray[np.int64]
    part_factor: npt.NDArray[np.int64]
    member_offsets: npt.NDArray[np.int64]
    member_variable: npt.NDArray[np.int32]
    cell_offsets: npt.NDArray[np.int64]
    shifts: npt.NDArray[np.int64]
    variable_offsets: npt.NDArray[np.int64]
    variable_parts: npt.NDArray[np.int64]
    cluster_offsets: npt.NDArray[np.int64]
    cluster_variables: npt.NDArray[np.int64]
    part_offsets: npt.NDArray[np.int64]
    cluster_parts: npt.NDArray[np.int64]
    parent_member: npt.NDArray[np.int64]
    message_offsets: npt.NDArray[np.int64]
    is_root: npt.NDArray[np.bool_]
    degree: npt.NDArray[np.int64]
    limits: npt.NDArray[np.int64]


@kernel
def fill_shifts(member_offsets, cardinalities, strides, cell_offsets, shifts):  # type: ignore[no-untyped-def]
    """shifts = for every cell of every part, the sum of stride times state over its members."""
    for p in range(len(member_offsets) - 1):
        first, last = member_offsets[p], member_offsets[p + 1]
        for c in range(cell_offsets[p + 1] - cell_offsets[p]):
            rest, total = np.int64(c), np.int64(0)
            for k in range(last - 1, first - 1, -1):
                total += strides[k] * (rest % cardinalities[k])
                rest //= cardinalities[k]
            shifts[cell_offsets[p] + c] = total


@kernel
def _average(  # type: ignore[no-untyped-def]
    p, part_factor, factor_parts, table_offsets, cell_offsets, shifts, log_tables, parts, at, turn, out
):
    """out[c] = the average log-potential of part p's cell c over the other parts of its factor.

    It is -inf as soon as one configuration of positive probability is: probabilities are looked at one by one, since
    their product may underflow.
    """
    f = part_factor[p]
    begin, end = factor_parts[f], factor_parts[f + 1]
    base = table_offsets[f]
    count = cell_offsets[p + 1] - cell_offsets[p]
    own = cell_offsets[p]
    if end - begin == 1:
        for c in range(count):
            out[c] = log_tables[base + shifts[own + c]]
        return
    for c in range(count):
        out[c] = 0.0
    if end - begin == 2:
        other = begin + end - 1 - p
        for d in range(cell_offsets[other], cell_offsets[other + 1]):
            w = parts[d]
            if w > 0.0:
                cell = base + shifts[d]
                for c in range(count):
                    out[c] += w * log_tables[cell + shifts[own + c]]
        return
    n_others = 0
    for q in range(begin, end):
        if q != p:
            at[n_others] = q
            turn[n_others] = 0
            n_others += 1
    while True:
        weight, cell, possible = 1.0, base, True
        for k in range(n_others):
            d = cell_offsets[at[k]] + turn[k]
            possible = possible and parts[d] > 0.0
            weight *= parts[d]
            cell += shifts[d]
        if possible:
            for c in range(count):
                value = log_tables[cell + shifts[own + c]]
                out[c] += weight * value if value > -np.inf else value
        k = n_others - 1
        while k >= 0:
            turn[k] += 1
            if turn[k] < cell_offsets[at[k] + 1] - cell_offsets[at[k]]:
                break
            turn[k] = 0
            k -= 1
        if k < 0:
            return


@kernel
def _normalise(scores, begin, count):  # type: ignore[no-untyped-def]
    """Log scores become probabilities; the log of what they were divided by."""
    top = -np.inf
    for c in range(begin, begin + count):
        top = max(top, scores[c])
    if top == -np.inf:
        return top
    total = 0.0
    for c in range(begin, begin + count):
        scores[c] = exp_scalar(scores[c] - top)
        total += scores[c]
    for c in range(begin, begin + count):
        scores[c] /= total
    return top + math.log(total)


@kernel
def _up(p, member_offsets, member_variable, value_offsets, cell_offsets, parent, tables, held, out):  # type: ignore[no-untyped-def]
    """out = what part p says to its parent member: the log-sum over the other members of table and scores."""
    first, last = member_offsets[p], member_offsets[p + 1]
    up = member_variable[first + parent]
    card = value_offsets[up + 1] - value_offsets[up]
    at, count = cell_offsets[p], cell_offsets[p + 1] - cell_offsets[p]
    inner = np.int64(1)
    for k in range(first + parent + 1, last):
        v = member_variable[k]
        inner *= value_offsets[v + 1] - value_offsets[v]
    tops = out[card:]
    for i in range(card):
        tops[i] = -np.inf
        out[i] = 0.0
    for turn in range(2):
        for c in range(count):
            score = tables[at + c]
            rest = np.int64(c)
            for k in range(last - 1, first - 1, -1):
                v = member_variable[k]
                states = value_offsets[v + 1] - value_offsets[v]
                if k != first + parent:
                    score += held[value_offsets[v] + rest % states]
                rest //= states
            i = (c // inner) % card
            if turn == 0:
                tops[i] = max(tops[i], score)
            elif tops[i] > -np.inf:
                out[i] += exp_scalar(score - tops[i])
    for i in range(card):
        out[i] = tops[i] + math.log(out[i]) if tops[i] > -np.inf else -np.inf


@kernel
def _down(  # type: ignore[no-untyped-def]
    p, member_offsets, member_variable, value_offsets, cell_offsets, parent, tables, held, messages, message, parts,
    values,
):  # fmt: skip
    """parts = joint distribution of part p's members, given its parent's; and the members' own, in ``values``.

    ``held`` of the parent is its log-probability; that of the other members becomes it.
    """
    first, last = member_offsets[p], member_offsets[p + 1]
    at, count = cell_offsets[p], cell_offsets[p + 1] - cell_offsets[p]
    for c in range(count):
        score = tables[at + c]
        rest = np.int64(c)
        for k in range(last - 1, first - 1, -1):
            v = member_variable[k]
            states = value_offsets[v + 1] - value_offsets[v]
            i = rest % states
            rest //= states
            mine = held[value_offsets[v] + i]
            if k == first + parent and mine > -np.inf:
                mine -= messages[message + i]
            score += mine
        parts[at + c] = score
    _normalise(parts, at, count)
    for k in range(first, last):
        if k != first + parent:
            v = member_variable[k]
            for i in range(value_offsets[v], value_offsets[v + 1]):
                values[i] = 0.0
    for c in range(count):
        rest = np.int64(c)
        for k in range(last - 1, first - 1, -1):
            v = member_variable[k]
            states = value_offsets[v + 1] - value_offsets[v]
            if k != first + parent:
                values[value_offsets[v] + rest % states] += parts[at + c]
            rest //= states
    for k in range(first, last):
        if k != first + parent:
            v = member_variable[k]
            for i in range(value_offsets[v], value_offsets[v + 1]):
                held[i] = math.log(values[i]) if values[i] > 0.0 else -np.inf


@kernel
def update_clusters(  # type: ignore[no-untyped-def]
    layout, begin, end, active, log_tables, likelihood, values, parts, tables, held, messages
):
    """Give the clusters ``begin:end``, one after the other, their best distribution given all the others.

    Those that are not ``active`` keep what they have. ``values`` are the variables' probabilities, ``parts`` those of
    the parts' cells; the others are work space. Answers whether every cluster had something possible left.
    """
    value_offsets, table_offsets, factor_parts = layout.value_offsets, layout.table_offsets, layout.factor_parts
    part_factor, cell_offsets, shifts = layout.part_factor, layout.cell_offsets, layout.shifts
    member_offsets, member_variable = layout.member_offsets, layout.member_variable
    variable_offsets, variable_parts = layout.variable_offsets, layout.variable_parts
    at, turn = np.empty(layout.limits[0] + 1, np.int64), np.empty(layout.limits[0] + 1, np.int64)
    work, message = np.empty(layout.limits[1]), np.empty(2 * layout.limits[2])
    for cluster in range(begin, end):
        if not active[cluster]:
            continue
        for j in range(layout.cluster_offsets[cluster], layout.cluster_offsets[cluster + 1]):
            v = layout.cluster_variables[j]
            start, card = value_offsets[v], value_offsets[v + 1] - value_offsets[v]
            for i in range(card):
                held[start + i] = likelihood[start + i] if len(likelihood) else 0.0
            for k in range(variable_offsets[v], variable_offsets[v + 1]):
                p = variable_parts[k]
                f = part_factor[p]
                first, last = factor_parts[f], factor_parts[f + 1]
                if last - first == 2:
                    # Most factors are pairs: written out, since a call costs as much as a small one.
                    other = first + last - 1 - p
                    for i in range(card):
                        cell = table_offsets[f] + shifts[cell_offsets[p] + i]
                        total = 0.0
                        for d in range(cell_offsets[other], cell_offsets[other + 1]):
                            if parts[d] > 0.0:
                                total += parts[d] * log_tables[cell + shifts[d]]
                        held[start + i] += total
                    continue
                _average(
                    p, part_factor, factor_parts, table_offsets, cell_offsets, shifts, log_tables, parts, at, turn, work
                )
                for i in range(card):
                    held[start + i] += work[i]
        for j in range(layout.part_offsets[cluster], layout.part_offsets[cluster + 1]):
            p = layout.cluster_parts[j]
            _average(
                p, part_factor, factor_parts, table_offsets, cell_offsets, shifts, log_tables, parts, at, turn,
                tables[cell_offsets[p] : cell_offsets[p + 1]],
            )  # fmt: skip
        for j in range(layout.part_offsets[cluster + 1] - 1, layout.part_offsets[cluster] - 1, -1):
            p = layout.cluster_parts[j]
            parent = layout.parent_member[p]
            _up(p, member_offsets, member_variable, value_offsets, cell_offsets, parent, tables, held, message)
            up = member_variable[member_offsets[p] + parent]
            for i in range(value_offsets[up + 1] - value_offsets[up]):
                messages[layout.message_offsets[p] + i] = message[i]
                held[value_offsets[up] + i] += message[i]
        if not _distribute_cluster(layout, cluster, tables, held, messages, parts, values):
            return False
    return True


@kernel
def _distribute_cluster(layout, cluster, tables, held, messages, parts, values):  # type: ignore[no-untyped-def]
    """From the roots down: probabilities of the variables and parts of a cluster; False where nothing is possible."""
    value_offsets, member_offsets, member_variable = (
        layout.value_offsets,
        layout.member_offsets,
        layout.member_variable,
    )
    cell_offsets = layout.cell_offsets
    for j in range(layout.cluster_offsets[cluster], layout.cluster_offsets[cluster + 1]):
        v = layout.cluster_variables[j]
        if not layout.is_root[v]:
            continue
        start, card = value_offsets[v], value_offsets[v + 1] - value_offsets[v]
        for i in range(card):
            values[start + i] = held[start + i]
        scale = _normalise(values, start, card)
        if scale == -np.inf:
            return False
        for i in range(card):
            held[start + i] -= scale
    for j in range(layout.part_offsets[cluster], layout.part_offsets[cluster + 1]):
        p = layout.cluster_parts[j]
        _down(
            p, member_offsets, member_variable, value_offsets, cell_offsets, layout.parent_member[p], tables, held,
            messages, layout.message_offsets[p], parts, values,
        )  # fmt: skip
    for j in range(layout.cluster_offsets[cluster], layout.cluster_offsets[cluster + 1]):
        v = layout.cluster_variables[j]
        for k in range(layout.variable_offsets[v], layout.variable_offsets[v + 1]):
            p = layout.variable_parts[k]
            for i in range(value_offsets[v + 1] - value_offsets[v]):
                parts[cell_offsets[p] + i] = values[value_offsets[v] + i]
    return True


@kernel
def fill_parts(layout, values, parts):  # type: ignore[no-untyped-def]
    """parts = products of the members' probabilities: independent variables."""
    for p in range(len(layout.member_offsets) - 1):
        at = layout.cell_offsets[p]
        for c in range(layout.cell_offsets[p + 1] - at):
            rest, product = np.int64(c), 1.0
            for k in range(layout.member_offsets[p + 1] - 1, layout.member_offsets[p] - 1, -1):
                v = layout.member_variable[k]
                states = layout.value_offsets[v + 1] - layout.value_offsets[v]
                product *= values[layout.value_offsets[v] + rest % states]
                rest //= states
            parts[at + c] = product


@kernel
def _entropy(p):  # type: ignore[no-untyped-def]
    return -p * math.log(p) if p > 0.0 else 0.0


@kernel
def evidence_bound(layout, log_tables, likelihood, values, parts, terms):  # type: ignore[no-untyped-def]
    """terms = for each factor its expected log-potential, then for each variable its share of the entropy.

    Their sum is a lower bound on log Z: the expected score plus the entropy, which in a forest is that of the parts
    less what their shared variables are counted too often.
    """
    cell_offsets, shifts, factor_parts = layout.cell_offsets, layout.shifts, layout.factor_parts
    m = len(layout.table_offsets)
    at, turn = np.empty(layout.limits[0] + 1, np.int64), np.empty(layout.limits[0] + 1, np.int64)
    work = np.empty(layout.limits[1])
    for f in range(m):
        p = factor_parts[f]
        if p == factor_parts[f + 1]:
            terms[f] = log_tables[layout.table_offsets[f]]
            continue
        _average(
            p, layout.part_factor, factor_parts, layout.table_offsets, cell_offsets, shifts, log_tables, parts, at,
            turn, work,
        )  # fmt: skip
        total = 0.0
        for c in range(cell_offsets[p + 1] - cell_offsets[p]):
            if parts[cell_offsets[p] + c] > 0.0:
                total += parts[cell_offsets[p] + c] * work[c]
        for q in range(p, factor_parts[f + 1]):
            if layout.member_offsets[q + 1] - layout.member_offsets[q] > 1:
                for c in range(cell_offsets[q], cell_offsets[q + 1]):
                    total += _entropy(parts[c])
        terms[f] = total
    for v in range(len(layout.value_offsets) - 1):
        total = 0.0
        for i in range(layout.value_offsets[v], layout.value_offsets[v + 1]):
            total += (1.0 - layout.degree[v]) * _entropy(values[i])
            if len(likelihood) and values[i] > 0.0:
                total += values[i] * likelihood[i]
        terms[m + v] = total


@kernel
def pool_counts(layout, parts, counts):  # type: ignore[no-untyped-def]
    """Add to every pool cell the probability that each factor reads it."""
    turn = np.empty(layout.limits[0] + 1, np.int64)
    for f in range(len(layout.table_offsets)):
        begin, end = layout.factor_parts[f], layout.factor_parts[f + 1]
        for q in range(end - begin):
            turn[q] = 0
        while True:
            weight, cell = 1.0, layout.table_offsets[f]
            for q in range(end - begin):
                d = layout.cell_offsets[begin + q] + turn[q]
                weight *= parts[d]
                cell += layout.shifts[d]
            counts[cell] += weight
            q = end - begin - 1
            while q >= 0:
                turn[q] += 1
                if turn[q] < layout.cell_offsets[begin + q + 1] - layout.cell_offsets[begin + q]:
                    break
                turn[q] = 0
                q -= 1
            if q < 0:
                break
