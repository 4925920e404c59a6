"""Messages between the outer regions of a region graph and their intersections, in log space.

The belief of an outer region is its potential times the messages of the inner regions inside it. An inner region is
visited by summing the outer beliefs around it onto its cells, taking a weighted mean of them (less what it had itself
sent) as its own belief, and sending to each what makes it agree (Heskes, Albers and Kappen).

A cell is -inf only where it is proven impossible: where a potential is, or where every cell of an outer region over it
is. So zeros never come back, and the ratio of two of them is never needed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_sum

__all__ = [
    "IMPOSSIBLE",
    "RegionLayout",
    "RegionTables",
    "add_region_counts",
    "fill_potentials",
    "home_regions",
    "kikuchi",
    "region_values",
    "sweep",
]

IMPOSSIBLE = -1.0
"""What `sweep` answers when a region has no possible state left."""
# Logs that far below the largest vanish in linear space.
FAR = 700.0


class RegionLayout(NamedTuple):
    """Where cells and messages lie.

    The cells of outer region r are ``cell_offsets[r] .. cell_offsets[r + 1]``, last variable fastest; those of inner
    region b are ``inner_offsets[b] .. inner_offsets[b + 1]``. Message e goes from an inner region to an outer one
    around it, ``holder[e]``; those of inner region b are ``holder_offsets[b] .. holder_offsets[b + 1]``, those to outer
    region r are ``arcs[arc_offsets[r] : arc_offsets[r + 1]]``. Its entries start at ``message_offsets[e]``, and
    ``maps[message_map[e] + i]`` is the inner cell under cell i of the outer region. ``limits``: the most cells of a
    region, and the most entries of the messages of one inner region.
    """

    cell_offsets: npt.NDArray[np.int64]
    inner_offsets: npt.NDArray[np.int64]
    holder_offsets: npt.NDArray[np.int64]
    holder: npt.NDArray[np.int64]
    arc_offsets: npt.NDArray[np.int64]
    arcs: npt.NDArray[np.int64]
    message_offsets: npt.NDArray[np.int64]
    message_map: npt.NDArray[np.int64]
    maps: npt.NDArray[np.int32]
    limits: npt.NDArray[np.int64]


class RegionTables(NamedTuple):
    """Which outer region reads which table.

    Factor f is read by region ``factor_home[f]`` (-1: no variable is left in it), the likelihood of variable v by
    region ``variable_home[v]`` (-1: it has one state).
    """

    cards: npt.NDArray[np.int32]
    member_offsets: npt.NDArray[np.int64]
    members: npt.NDArray[np.int32]
    factor_home: npt.NDArray[np.int64]
    variable_home: npt.NDArray[np.int64]
    scope_offsets: npt.NDArray[np.int64]
    scopes: npt.NDArray[np.int32]
    table_offsets: npt.NDArray[np.int64]
    table_strides: npt.NDArray[np.int64]
    value_offsets: npt.NDArray[np.int64]


# ---- potentials and counts -----------------------------------------------------------------------------------------


@kernel
def home_regions(member_offsets, members, scope_offsets, scopes, first_offsets, first_factors):
    """For every factor an outer region that holds its scope, the first one; -1 where there is none.

    ``first_factors[first_offsets[v] : first_offsets[v + 1]]`` are the factors whose scope starts with variable v.
    """
    home = np.full(len(scope_offsets) - 1, -1, np.int64)
    inside = np.full(len(first_offsets) - 1, -1, np.int64)
    for r in range(len(member_offsets) - 1):
        for k in range(member_offsets[r], member_offsets[r + 1]):
            inside[members[k]] = r
        for k in range(member_offsets[r], member_offsets[r + 1]):
            v = members[k]
            for i in range(first_offsets[v], first_offsets[v + 1]):
                f = first_factors[i]
                whole = home[f] < 0
                for a in range(scope_offsets[f], scope_offsets[f + 1]):
                    whole &= inside[scopes[a]] == r
                if whole:
                    home[f] = r
    return home


@kernel
def _walk(tables, r, base, strides, state, where, n_cells):
    """The pool cell that a factor, by its strides on the region's axes, reads in each of region r's cells."""
    first = tables.member_offsets[r]
    k = tables.member_offsets[r + 1] - first
    for a in range(k):
        state[a] = 0
    at = base
    for i in range(n_cells):
        where[i] = at
        a = k - 1
        while a >= 0:
            state[a] += 1
            at += strides[a]
            if state[a] < tables.cards[tables.members[first + a]]:
                break
            at -= strides[a] * state[a]
            state[a] = 0
            a -= 1


@kernel
def _walk_factor(tables, r, f, strides, state, where, n_cells):
    """The same for factor f: axes that it does not have stand still."""
    first = tables.member_offsets[r]
    for k in range(first, tables.member_offsets[r + 1]):
        strides[k - first] = 0
        for a in range(tables.scope_offsets[f], tables.scope_offsets[f + 1]):
            if tables.scopes[a] == tables.members[k]:
                strides[k - first] = tables.table_strides[a]
    _walk(tables, r, tables.table_offsets[f], strides, state, where, n_cells)


@kernel
def fill_potentials(layout, tables, log_tables, likelihood, potentials):
    """Add up, in the cells of the outer regions, factors and likelihoods (none where that array is empty)."""
    where = np.empty(layout.limits[0], np.int64)
    strides = np.empty(64, np.int64)
    state = np.empty(64, np.int64)
    for i in range(len(potentials)):
        potentials[i] = 0.0
    for f in range(len(tables.factor_home)):
        r = tables.factor_home[f]
        if r >= 0:
            start = layout.cell_offsets[r]
            n_cells = layout.cell_offsets[r + 1] - start
            _walk_factor(tables, r, f, strides, state, where, n_cells)
            for i in range(n_cells):
                potentials[start + i] += log_tables[where[i]]
    for v in range(len(tables.variable_home) if len(likelihood) else 0):
        r = tables.variable_home[v]
        if r >= 0:
            start = layout.cell_offsets[r]
            n_cells = layout.cell_offsets[r + 1] - start
            first = tables.member_offsets[r]
            for k in range(first, tables.member_offsets[r + 1]):
                strides[k - first] = 1 if tables.members[k] == v else 0
            _walk(tables, r, tables.value_offsets[v], strides, state, where, n_cells)
            for i in range(n_cells):
                potentials[start + i] += likelihood[where[i]]


@kernel
def add_region_counts(layout, tables, beliefs, counts):
    """Add to each pool cell how often it is read in expectation."""
    where = np.empty(layout.limits[0], np.int64)
    strides = np.empty(64, np.int64)
    state = np.empty(64, np.int64)
    for f in range(len(tables.factor_home)):
        r = tables.factor_home[f]
        if r < 0:
            counts[tables.table_offsets[f]] += 1.0
            continue
        start = layout.cell_offsets[r]
        n_cells = layout.cell_offsets[r + 1] - start
        _walk_factor(tables, r, f, strides, state, where, n_cells)
        for i in range(n_cells):
            counts[where[i]] += beliefs[start + i]


@kernel
def region_values(layout, tables, value_map, beliefs, values):
    """Marginals of single variables, each summed off its home region; 1 for variables of one state, which have none."""
    for v in range(len(tables.variable_home)):
        start = tables.value_offsets[v]
        r = tables.variable_home[v]
        for i in range(start, tables.value_offsets[v + 1]):
            values[i] = 1.0 if r < 0 else 0.0
        if r >= 0:
            first = layout.cell_offsets[r]
            for i in range(layout.cell_offsets[r + 1] - first):
                values[start + layout.maps[value_map[v] + i]] += beliefs[first + i]


# ---- messages ------------------------------------------------------------------------------------------------------


@kernel
def outer_beliefs(layout, potentials, messages, log_beliefs):
    """Unnormalised log-beliefs of the outer regions: potential times messages."""
    for r in range(len(layout.arc_offsets) - 1):
        start = layout.cell_offsets[r]
        n_cells = layout.cell_offsets[r + 1] - start
        for i in range(n_cells):
            log_beliefs[start + i] = potentials[start + i]
        for k in range(layout.arc_offsets[r], layout.arc_offsets[r + 1]):
            e = layout.arcs[k]
            at, pattern = layout.message_offsets[e], layout.message_map[e]
            for i in range(n_cells):
                log_beliefs[start + i] += messages[at + layout.maps[pattern + i]]


@kernel
def _normalise(log_values, start, n):
    """Shift logs so that they are those of a distribution; False where all are -inf."""
    whole = log_sum(log_values, start, start + n)
    if whole == -np.inf:
        return False
    for j in range(n):
        log_values[start + j] -= whole
    return True


@kernel
def _sum_onto(log_beliefs, start, n_cells, maps, pattern, n, linear, peaks, out, at):
    """log of an outer belief, normalised and summed onto a region inside it; False where it has no state."""
    top, low = -np.inf, np.inf
    for i in range(n_cells):
        x = log_beliefs[start + i]
        top = max(top, x)
        low = min(low, x if x > -np.inf else np.inf)
    if top == -np.inf:
        return False
    for j in range(n):
        out[at + j] = 0.0
    if low > top - FAR:
        for i in range(n_cells):
            linear[i] = exp_scalar(log_beliefs[start + i] - top)
        total = 0.0
        for i in range(n_cells):
            total += linear[i]
        for i in range(n_cells):
            out[at + maps[pattern + i]] += linear[i]
        for j in range(n):
            out[at + j] = math.log(out[at + j] / total) if out[at + j] > 0.0 else -np.inf
        return True
    # Each cell has its own scale: what is far below the rest must not become zero.
    for j in range(n):
        peaks[j] = -np.inf
    for i in range(n_cells):
        j = maps[pattern + i]
        peaks[j] = max(peaks[j], log_beliefs[start + i])
    for i in range(n_cells):
        j = maps[pattern + i]
        if log_beliefs[start + i] > -np.inf:
            out[at + j] += exp_scalar(log_beliefs[start + i] - peaks[j])
    for j in range(n):
        out[at + j] = math.log(out[at + j]) + peaks[j] if out[at + j] > 0.0 else -np.inf
    return _normalise(out, at, n)


@kernel
def _move(inner, start, sums, at, messages, sent, n, step, in_logs, moved):
    """Move a message so that the outer belief agrees with the inner one; how far they were from each other.

    ``moved`` gets what was added. The distance is the largest difference of probabilities, or ``in_logs`` of their
    logs; a cell just found impossible counts as one.
    """
    distance = 0.0
    for j in range(n):
        if inner[start + j] > -np.inf:
            change = inner[start + j] - sums[at + j]
            moved[j] = step * change
            if not in_logs:
                change = exp_scalar(inner[start + j]) - exp_scalar(sums[at + j])
            distance = max(distance, abs(change))
        else:
            if messages[sent + j] > -np.inf:
                distance = max(distance, 1.0)
            moved[j] = -np.inf
        messages[sent + j] += moved[j]
    return distance


@kernel
def sweep(layout, order, weights, slack, refresh, in_logs, step, potentials, messages, log_beliefs, inner, reference):
    """Visit the inner regions in ``order`` once; the largest distance of two beliefs, or IMPOSSIBLE.

    ``weights`` is, for each inner region, the number of outer ones around it plus its counting number; ``slack`` is by
    how much that was raised, the rest being taken linear at the ``reference``. ``refresh`` moves the reference
    along. ``step`` is one less the damping; ``in_logs`` measures distances in logs.
    """
    outer_beliefs(layout, potentials, messages, log_beliefs)
    # Arrays in locals: taking one out of the layout in an inner loop counts references.
    cell_offsets, inner_offsets, holder_offsets = layout.cell_offsets, layout.inner_offsets, layout.holder_offsets
    holder, message_offsets, message_map = layout.holder, layout.message_offsets, layout.message_map
    maps = layout.maps
    linear = np.empty(layout.limits[0])
    peaks = np.empty(layout.limits[0])
    sums = np.empty(layout.limits[1])
    residual = 0.0
    for k in range(len(order)):
        b = order[k]
        first, last = holder_offsets[b], holder_offsets[b + 1]
        start = inner_offsets[b]
        n = inner_offsets[b + 1] - start
        for j in range(n):
            # Not slack times the reference: zero times -inf.
            inner[start + j] = slack[b] * reference[start + j] if slack[b] > 0.0 else 0.0
        for e in range(first, last):
            r = holder[e]
            begin = cell_offsets[r]
            n_cells = cell_offsets[r + 1] - begin
            at = (e - first) * n
            if not _sum_onto(log_beliefs, begin, n_cells, maps, message_map[e], n, linear, peaks, sums, at):
                return IMPOSSIBLE
            sent = message_offsets[e]
            for j in range(n):
                # Once impossible, always: both are -inf then.
                inner[start + j] += sums[at + j] - messages[sent + j] if sums[at + j] > -np.inf else -np.inf
        for j in range(n):
            inner[start + j] /= weights[b]
        if not _normalise(inner, start, n):
            return IMPOSSIBLE
        for e in range(first, last):
            r = holder[e]
            at, sent = (e - first) * n, message_offsets[e]
            distance = _move(inner, start, sums, at, messages, sent, n, step, in_logs, peaks)
            residual = max(residual, distance)
            begin, pattern = cell_offsets[r], message_map[e]
            for i in range(cell_offsets[r + 1] - begin):
                log_beliefs[begin + i] += peaks[maps[pattern + i]]
        if refresh:
            for j in range(n):
                reference[start + j] = inner[start + j]
    return residual


@kernel
def kikuchi(layout, counting, potentials, messages, log_beliefs, inner, beliefs):
    """Normalised beliefs of the outer regions and log Z; -inf where a region has no state.

    log Z is read off the Lagrangian, which is stationary in beliefs and messages alike: its error is quadratic in
    theirs.
    """
    outer_beliefs(layout, potentials, messages, log_beliefs)
    value = 0.0
    for r in range(len(layout.arc_offsets) - 1):
        start = layout.cell_offsets[r]
        n = layout.cell_offsets[r + 1] - start
        top = -np.inf
        for i in range(n):
            top = max(top, log_beliefs[start + i])
        if top == -np.inf:
            return -np.inf
        for i in range(n):
            beliefs[start + i] = exp_scalar(log_beliefs[start + i] - top)
        # By itself: a loop that also writes is compiled twice, for arrays that may overlap or not, and the two add in
        # different orders.
        total = 0.0
        for i in range(n):
            total += beliefs[start + i]
        for i in range(n):
            beliefs[start + i] /= total
        value += top + math.log(total)
    for b in range(len(counting)):
        start = layout.inner_offsets[b]
        for j in range(layout.inner_offsets[b + 1] - start):
            p = exp_scalar(inner[start + j])
            if p > 0.0:
                price = counting[b] * inner[start + j]
                for e in range(layout.holder_offsets[b], layout.holder_offsets[b + 1]):
                    price += messages[layout.message_offsets[e] + j]
                value -= p * price
    return value
