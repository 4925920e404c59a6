"""Sums and maxima over alignments without crossings, expected counts, and descents.

Cells of an instance: links (rows x columns), then for rows and for columns: first of a gap, further ones, and ones
before the first link or after the last where those have scores of their own. Charts have a row for each number of rows
that are behind a path. Invariant: -inf is impossible and never becomes NaN. Free to change: the order of addition.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_add
from markovfield.kernels.logarithm import log_scalar
from markovfield.kernels.random import draw_unit

__all__ = [
    "add_log_totals",
    "alignment_charts",
    "alignment_descents",
    "alignment_sums",
    "chosen",
    "send_shares",
    "share",
]


@kernel
def add_log_totals(out, a, b, c, d):
    """Add log of the sum of exp of four numbers to each number; -inf is zero.

    A loop without branches, which vectorises; called for each number it would not be.
    """
    for k in range(len(out)):
        top = a[k] if a[k] > b[k] else b[k]
        top = top if top > c[k] else c[k]
        top = top if top > d[k] else d[k]
        safe = max(top, -1e300)
        total = exp_scalar(a[k] - safe) + exp_scalar(b[k] - safe) + exp_scalar(c[k] - safe) + exp_scalar(d[k] - safe)
        out[k] += top + log_scalar(max(total, 0.5))


@kernel
def send_shares(to, own, parts, wholes):
    """Add to each number the share that a part has of a whole, ``own`` times; answers what was added.

    ``wholes`` are not below parts; 1e300 sends nothing.
    """
    total = 0.0
    for k in range(len(own)):
        sent = own[k] * exp_scalar(parts[k] - wholes[k])
        to[k] += sent
        total += sent
    return total


@kernel
def share(part, whole):
    """exp(part - whole): 0 of nothing."""
    return exp_scalar(part - max(whole, -1e300))


@kernel
def chosen(a, b, c, d, best, state):
    """Which of four logs is the largest; or one at random, in proportion to exp."""
    top, at = a, 0
    if b > top:
        top, at = b, 1
    if c > top:
        top, at = c, 2
    if d > top:
        top, at = d, 3
    if best:
        return at
    pa, pb, pc, pd = exp_scalar(a - top), exp_scalar(b - top), exp_scalar(c - top), exp_scalar(d - top)
    u = draw_unit(state) * (pa + pb + pc + pd)
    if u < pa:
        return 0
    if u < pa + pb:
        return 1
    if u < pa + pb + pc:
        return 2
    return 3 if pd > 0.0 else at


@kernel
def _borders(pool, begin, n, free, lead, tail):
    """Scores of the first k without a link before the first link, and of those from k on after the last."""
    lead[0], tail[n] = 0.0, 0.0
    for k in range(n):
        if free:
            lead[k + 1] = lead[k] + pool[begin + 2 * n + k]
        else:
            lead[k + 1] = lead[k] + (pool[begin + k] if k == 0 else pool[begin + n + k])
    further = 0.0
    for k in range(n - 1, -1, -1):
        if free:
            tail[k] = tail[k + 1] + pool[begin + 2 * n + k]
        else:
            tail[k] = pool[begin + k] + further
            further += pool[begin + n + k]


@kernel
def _border_counts(counts, begin, n, free, lead, tail):
    """Counts of cells from how often the first k are before the first link, and those from k on after the last."""
    before, after = 0.0, 0.0
    for k in range(n - 1, -1, -1):
        before += lead[k + 1]
        at = 2 * n + k if free else (k if k == 0 else n + k)
        counts[begin + at] += before
    for k in range(n):
        if free:
            after += tail[k]
            counts[begin + 2 * n + k] += after
        else:
            counts[begin + n + k] += after
            counts[begin + k] += tail[k]
            after += tail[k]


@kernel
def _border_cells(cells, at, begin, n, free, first, last):
    """Write the cells of a run without links at an end; answers where the next cell goes."""
    for k in range(first, last):
        cells[at] = begin + (2 * n + k if free else (k if k == first else n + k))
        at += 1
    return at


@kernel
def alignment_charts(pool, begin, m, n, low, high, free_rows, free_columns, best, charts, borders):
    """Fill the charts of an instance; answers log Z, or the best score.

    ``charts``: ``float64[3, (m + 1) * (n + 1)]``, links, gaps of rows, gaps of columns. ``borders``: ``float64[2 (m + n
    + 2)]``: rows before and after, columns before and after. ``low``, ``high``: where each row of the charts begins and
    ends, m + 1 of each.
    """
    links, down, right = charts[0], charts[1], charts[2]
    links[:], down[:], right[:] = -np.inf, -np.inf, -np.inf
    rows = begin + m * n
    columns = rows + 3 * m
    lead, tail = borders[: m + 1], borders[m + 1 : 2 * (m + 1)]
    over, under = borders[2 * (m + 1) : 2 * (m + 1) + n + 1], borders[2 * (m + 1) + n + 1 :]
    _borders(pool, rows, m, free_rows, lead, tail)
    _borders(pool, columns, n, free_columns, over, under)
    width = n + 1
    total = lead[m] + over[n]
    nothing, spare, opened, longer = np.full(width, -np.inf), np.empty(width), np.empty(width), np.empty(width)
    for i in range(1, m + 1):
        at, above = i * width, (i - 1) * width
        link, drop, turn = links[at : at + width], down[at : at + width], right[at : at + width]
        link_above, drop_above, turn_above = (
            links[above : above + width],
            down[above : above + width],
            right[above : above + width],
        )
        score, opening = pool[begin + (i - 1) * n : begin + i * n], pool[columns : columns + n]
        first, further, skipped = pool[rows + i - 1], pool[rows + m + i - 1], lead[i - 1]
        if best:
            for j in range(low[i], high[i]):
                before = max(link_above[j - 1], drop_above[j - 1], turn_above[j - 1], skipped + over[j - 1])
                link[j] = score[j - 1] + before
                drop[j] = max(link_above[j] + first, drop_above[j] + further)
            for j in range(low[i] + 1, high[i]):
                entered = max(link[j - 1], drop[j - 1]) + opening[j - 1]
                turn[j] = max(entered, turn[j - 1] + pool[columns + n + j - 1])
                total = max(total, link[j] + under[j] + tail[i])
            if low[i] < high[i]:
                total = max(total, link[low[i]] + under[low[i]] + tail[i])
            continue
        a, b, top = low[i], high[i], -np.inf
        for j in range(a, b):
            link[j] = score[j - 1]
            drop[j] = 0.0
            spare[j - 1] = skipped + over[j - 1]
            opened[j] = link_above[j] + first
            longer[j] = drop_above[j] + further
        add_log_totals(
            link[a:b],
            link_above[a - 1 : b - 1],
            drop_above[a - 1 : b - 1],
            turn_above[a - 1 : b - 1],
            spare[a - 1 : b - 1],
        )
        add_log_totals(drop[a:b], opened[a:b], longer[a:b], nothing[a:b], nothing[a:b])
        for j in range(a, b):
            turn[j] = opening[j - 1] if j > a else -np.inf
            top = max(top, link[j] + under[j])
        add_log_totals(turn[a + 1 : b], link[a : b - 1], drop[a : b - 1], nothing[a : b - 1], nothing[a : b - 1])
        for j in range(a + 2, b):
            turn[j] = log_add(turn[j], turn[j - 1] + pool[columns + n + j - 1])
        ended, safe = 0.0, max(top, -1e300)
        for j in range(low[i], high[i]):
            ended += exp_scalar(link[j] + under[j] - safe)
        if top > -np.inf:
            total = log_add(total, top + tail[i] + log_scalar(ended))
    return total


@kernel
def _send_back(pool, begin, m, n, low, high, free_rows, free_columns, weight, log_z, charts, borders, mass, counts):
    """Expected counts of an instance, ``weight`` times; ``mass`` is zero and shaped as charts."""
    links, down, right = charts[0], charts[1], charts[2]
    to_links, to_down, to_right = mass[0], mass[1], mass[2]
    rows = begin + m * n
    columns = rows + 3 * m
    lead, tail = borders[: m + 1], borders[m + 1 : 2 * (m + 1)]
    over, under = borders[2 * (m + 1) : 2 * (m + 1) + n + 1], borders[2 * (m + 1) + n + 1 :]
    leads, tails, overs, unders = np.zeros(m + 1), np.zeros(m + 1), np.zeros(n + 1), np.zeros(n + 1)
    width = n + 1
    opened, longer, wholes = np.empty(width), np.empty(width), np.empty(width)
    leads[m] += weight * exp_scalar(lead[m] + over[n] - log_z)
    overs[n] += leads[m]
    for i in range(m, 0, -1):
        at, above, score = i * width, (i - 1) * width, begin + (i - 1) * n - 1
        first, further, skipped = pool[rows + i - 1], pool[rows + m + i - 1], lead[i - 1]
        for j in range(low[i], high[i]):
            ends = weight * exp_scalar(links[at + j] + tail[i] + under[j] - log_z)
            to_links[at + j] += ends
            tails[i] += ends
            unders[j] += ends
        for j in range(high[i] - 1, low[i], -1):
            own = to_right[at + j]
            if own == 0.0:
                continue
            before, opening, value = at + j - 1, pool[columns + j - 1], right[at + j]
            from_link = own * share(links[before] + opening, value)
            from_down = own * share(down[before] + opening, value)
            from_right = own * share(right[before] + pool[columns + n + j - 1], value)
            to_links[before] += from_link
            to_down[before] += from_down
            to_right[before] += from_right
            counts[columns + j - 1] += from_link + from_down
            counts[columns + n + j - 1] += from_right
        link, drop, own_link, own_drop = (
            links[at : at + width],
            down[at : at + width],
            to_links[at : at + width],
            to_down[at : at + width],
        )
        link_above, drop_above, turn_above = (
            links[above : above + width],
            down[above : above + width],
            right[above : above + width],
        )
        to_link, to_drop, to_turn = (
            to_links[above : above + width],
            to_down[above : above + width],
            to_right[above : above + width],
        )
        a, b = low[i], high[i]
        for j in range(a, b):
            opened[j], longer[j] = link_above[j] + first, drop_above[j] + further
            wholes[j] = drop[j] if drop[j] > -np.inf else 1e300
        counts[rows + i - 1] += send_shares(to_link[a:b], own_drop[a:b], opened[a:b], wholes[a:b])
        counts[rows + m + i - 1] += send_shares(to_drop[a:b], own_drop[a:b], longer[a:b], wholes[a:b])
        for j in range(a, b):
            counts[score + j] = own_link[j]
            wholes[j] = link[j] - pool[score + j] if link[j] > -np.inf else 1e300
            opened[j] = skipped + over[j - 1]
        send_shares(to_link[a - 1 : b - 1], own_link[a:b], link_above[a - 1 : b - 1], wholes[a:b])
        send_shares(to_drop[a - 1 : b - 1], own_link[a:b], drop_above[a - 1 : b - 1], wholes[a:b])
        send_shares(to_turn[a - 1 : b - 1], own_link[a:b], turn_above[a - 1 : b - 1], wholes[a:b])
        leads[i - 1] += send_shares(overs[a - 1 : b - 1], own_link[a:b], opened[a:b], wholes[a:b])
    _border_counts(counts, rows, m, free_rows, leads, tails)
    _border_counts(counts, columns, n, free_columns, overs, unders)


@kernel
def alignment_sums(
    first,
    last,
    offsets,
    rows,
    columns,
    bands,
    low,
    high,
    free_rows,
    free_columns,
    pool,
    weights,
    with_counts,
    log_z,
    counts,
):
    """log Z of some instances, and the derivatives of its weighted sum by the pool."""
    for s in range(first, last):
        m, n, begin = rows[s], columns[s], offsets[s]
        charts, borders = np.empty((3, (m + 1) * (n + 1))), np.empty(2 * (m + n + 2))
        own_low, own_high = low[bands[s] : bands[s + 1]], high[bands[s] : bands[s + 1]]
        log_z[s] = alignment_charts(
            pool, begin, m, n, own_low, own_high, free_rows, free_columns, False, charts, borders
        )
        if with_counts and log_z[s] > -np.inf:
            _send_back(
                pool,
                begin,
                m,
                n,
                own_low,
                own_high,
                free_rows,
                free_columns,
                weights[s],
                log_z[s],
                charts,
                borders,
                np.zeros((3, (m + 1) * (n + 1))),
                counts,
            )


@kernel
def _descend(pool, begin, m, n, low, high, free_rows, free_columns, best, total, charts, borders, state, cells, at):
    """The cells of the best alignment, or of a random one."""
    links, down, right = charts[0], charts[1], charts[2]
    rows = begin + m * n
    columns = rows + 3 * m
    lead, tail = borders[: m + 1], borders[m + 1 : 2 * (m + 1)]
    over, under = borders[2 * (m + 1) : 2 * (m + 1) + n + 1], borders[2 * (m + 1) + n + 1 :]
    width = n + 1
    # The last link; (0, 0) is none at all.
    i, j, top = 0, 0, lead[m] + over[n]
    u = draw_unit(state) - exp_scalar(top - total) if not best else 0.0
    found = u < 0.0 and not best
    for a in range(1, m + 1):
        if found:
            break
        for b in range(low[a], high[a]):
            value = links[a * width + b] + tail[a] + under[b]
            if value > top:
                i, j, top = a, b, value  # also what is taken where rounding leaves u above all
            if not best:
                u -= exp_scalar(value - total)
                if u < 0.0:
                    i, j, found = a, b, True
                    break
    if i == 0:
        at = _border_cells(cells, at, rows, m, free_rows, 0, m)
        return _border_cells(cells, at, columns, n, free_columns, 0, n)
    at = _border_cells(cells, at, rows, m, free_rows, i, m)
    at = _border_cells(cells, at, columns, n, free_columns, j, n)
    kind = 0
    while True:
        here = i * width + j
        if kind == 0:
            cells[at] = begin + (i - 1) * n + j - 1
            i, j = i - 1, j - 1
            before = i * width + j
            kind = chosen(links[before], down[before], right[before], lead[i] + over[j], best, state)
            if kind == 3:
                at = _border_cells(cells, at + 1, rows, m, free_rows, 0, i)
                return _border_cells(cells, at, columns, n, free_columns, 0, j)
        elif kind == 1:
            before = here - width
            opened, longer = pool[rows + i - 1], pool[rows + m + i - 1]
            kind = chosen(links[before] + opened, down[before] + longer, -np.inf, -np.inf, best, state)
            cells[at] = rows + kind * m + i - 1
            i -= 1
        else:
            before = here - 1
            opened, longer = pool[columns + j - 1], pool[columns + n + j - 1]
            kind = chosen(links[before] + opened, down[before] + opened, right[before] + longer, -np.inf, best, state)
            cells[at] = columns + (n if kind == 2 else 0) + j - 1
            j -= 1
        at += 1


@kernel
def alignment_descents(
    first,
    last,
    offsets,
    rows,
    columns,
    bands,
    low,
    high,
    free_rows,
    free_columns,
    pool,
    best,
    size,
    streams,
    starts,
    cells,
):
    """The cells of the best alignment of some instances, or of ``size`` random ones; what is left over is -1.

    ``starts[s]`` is where the room of an instance begins, ``m + n`` cells for each alignment.
    """
    for s in range(first, last):
        m, n, begin = rows[s], columns[s], offsets[s]
        charts, borders = np.empty((3, (m + 1) * (n + 1))), np.empty(2 * (m + n + 2))
        own_low, own_high = low[bands[s] : bands[s + 1]], high[bands[s] : bands[s + 1]]
        total = alignment_charts(pool, begin, m, n, own_low, own_high, free_rows, free_columns, best, charts, borders)
        cells[starts[s] : starts[s] + size * (m + n)] = -1
        if total == -np.inf:
            continue
        for k in range(size):
            _descend(
                pool,
                begin,
                m,
                n,
                own_low,
                own_high,
                free_rows,
                free_columns,
                best,
                total,
                charts,
                borders,
                streams[s],
                cells,
                starts[s] + k * (m + n),
            )
