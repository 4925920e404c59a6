"""Sums over segmentations, and one walk back through their charts that draws or decodes.

Charts are in log space: ``ends[j, k]`` is of the first j positions where a segment of label k ends at j, ``begins[i,
k]`` the same where one begins at i, before its score. Segments that end at a position are summed first, transitions
after them, so an instance takes n (L K + K^2) steps and n L K exponentials. Transitions run in linear space, divided by
the largest of their column; where such a sum is tiny beside the largest of its position it is taken anew in log space,
so that no segmentation is ever lost.

Counts are the derivative of log Z, backwards through the sums: what each segment is of the sum it went into is kept
where its count will be, and every step back is a weighted mean, which neither overflows nor loses what counts.

Invariant: scores of an instance are ``pool[at + (start * L + length - 1) * K + label]``; the pool starts with K * K
transitions (row before column), then K scores of the first label, then K of the last.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_sum
from markovfield.kernels.logarithm import log_scalar
from markovfield.kernels.random import draw_from_logs

__all__ = ["descend_segments", "sum_segments"]

TINY = 1e-200


@kernel
def scaled_transitions(pool, n_labels, moves, tops):
    """exp of transitions, each column divided by its largest, whose log is in ``tops`` (0 of a column of zeros)."""
    for k in range(n_labels):
        tops[k] = -np.inf
    for j in range(n_labels):
        for k in range(n_labels):
            tops[k] = max(tops[k], pool[j * n_labels + k])
    for k in range(n_labels):
        tops[k] = 0.0 if tops[k] == -np.inf else tops[k]
    for j in range(n_labels):
        for k in range(n_labels):
            moves[j * n_labels + k] = exp_scalar(pool[j * n_labels + k] - tops[k])


@kernel
def sum_ends(pool, at, j, max_length, n_labels, begins, ends, terms, tops, sums, shares):
    """Sum over the segments that end at ``j``; ``shares`` (or nothing) gets what each is of the sum of its label."""
    longest = min(max_length, j)
    step = n_labels - max_length * n_labels  # from a segment to the one that is longer by one
    first = at + (j - 1) * max_length * n_labels
    for k in range(n_labels):
        tops[k] = -np.inf
        sums[k] = 0.0
    for d in range(longest):
        row, before, own = first + d * step, (j - 1 - d) * n_labels, d * n_labels
        for k in range(n_labels):
            terms[own + k] = begins[before + k] + pool[row + k]
        for k in range(n_labels):
            tops[k] = max(tops[k], terms[own + k])
    for k in range(n_labels):
        tops[k] = 0.0 if tops[k] == -np.inf else tops[k]
    for d in range(longest):
        own = d * n_labels
        for k in range(n_labels):
            terms[own + k] -= tops[k]
    # One long loop: one over few labels would not vectorise well.
    for i in range(longest * n_labels):
        terms[i] = exp_scalar(terms[i])
    for d in range(longest):
        own = d * n_labels
        for k in range(n_labels):
            sums[k] += terms[own + k]
    for k in range(n_labels):
        possible = sums[k] > 0.0
        ends[j * n_labels + k] = tops[k] + log_scalar(sums[k]) if possible else -np.inf
        sums[k] = 1.0 / sums[k] if possible else 0.0
    if len(shares):
        for d in range(longest):
            row, own = first + d * step, d * n_labels
            for k in range(n_labels):
                shares[row + k] = terms[own + k] * sums[k]


@kernel
def log_entry(pool, ends, at, k, n_labels):
    """log of the sum over labels j before a segment of label k, in log space."""
    top = -np.inf
    for j in range(n_labels):
        top = max(top, ends[at + j] + pool[j * n_labels + k])
    if top == -np.inf:
        return top
    total = 0.0
    for j in range(n_labels):
        total += exp_scalar(ends[at + j] + pool[j * n_labels + k] - top)
    return top + log_scalar(total)


@kernel
def sum_begins(pool, j, n_labels, moves, tops, ends, begins, before, entries):
    """Sum over transitions at ``j``: ``before`` and ``entries`` get both sides in linear space, 0 where tiny."""
    at = j * n_labels
    top = -np.inf
    for k in range(n_labels):
        top = max(top, ends[at + k])
    top = 0.0 if top == -np.inf else top
    for k in range(n_labels):
        before[at + k] = exp_scalar(ends[at + k] - top)
        entries[at + k] = 0.0
    for i in range(n_labels):
        weight = before[at + i]
        if weight > 0.0:
            for k in range(n_labels):
                entries[at + k] += weight * moves[i * n_labels + k]
    for k in range(n_labels):
        if entries[at + k] > TINY:
            begins[at + k] = top + tops[k] + log_scalar(entries[at + k])
        else:
            entries[at + k] = 0.0
            begins[at + k] = log_entry(pool, ends, at, k, n_labels)


@kernel
def sum_charts(pool, at, n, max_length, n_labels, moves, move_tops, ends, begins, before, entries, shares):
    """Fill the charts of an instance of ``n`` > 0 positions; its log Z."""
    terms, tops, sums = np.empty(max_length * n_labels), np.empty(n_labels), np.empty(n_labels)
    first, last = n_labels * n_labels, n_labels * n_labels + n_labels
    for k in range(n_labels):
        begins[k] = pool[first + k]
    for j in range(1, n + 1):
        sum_ends(pool, at, j, max_length, n_labels, begins, ends, terms, tops, sums, shares)
        if j < n:
            sum_begins(pool, j, n_labels, moves, move_tops, ends, begins, before, entries)
    for k in range(n_labels):
        tops[k] = ends[n * n_labels + k] + pool[last + k]
    return log_sum(tops, 0, n_labels)


@kernel
def max_charts(pool, at, n, max_length, n_labels, ends, begins):
    """The same charts with the largest in place of sums; the score of the best."""
    first, last = n_labels * n_labels, n_labels * n_labels + n_labels
    for k in range(n_labels):
        begins[k] = pool[first + k]
    for j in range(1, n + 1):
        here = j * n_labels
        for k in range(n_labels):
            ends[here + k] = -np.inf
        for d in range(min(max_length, j)):
            i = j - 1 - d
            row = at + (i * max_length + d) * n_labels
            for k in range(n_labels):
                ends[here + k] = max(ends[here + k], begins[i * n_labels + k] + pool[row + k])
        if j < n:
            for k in range(n_labels):
                begins[here + k] = -np.inf
            for i in range(n_labels):
                for k in range(n_labels):
                    begins[here + k] = max(begins[here + k], ends[here + i] + pool[i * n_labels + k])
    best = -np.inf
    for k in range(n_labels):
        best = max(best, ends[n * n_labels + k] + pool[last + k])
    return best


@kernel
def add_counts(
    pool, at, n, max_length, n_labels, moves, log_partition, weight, ends, begins, before, entries, masses, counts,
    shared, exact,
):  # fmt: skip
    """Counts from the end back, ``weight`` times: shares of segments in ``counts`` become counts.

    ``shared`` (transitions still to be multiplied by ``moves``, first labels, last labels) and ``exact`` (transitions
    of entries that were tiny) are added to; ``masses`` is scratch: how likely a segment of each label ends at each
    position.
    """
    first, last = n_labels * n_labels, n_labels * n_labels + n_labels
    ratios, entering = np.empty(n_labels), np.empty(n_labels)
    for k in range(n_labels):
        p = weight * exp_scalar(ends[n * n_labels + k] + pool[last + k] - log_partition)
        masses[n * n_labels + k] = p
        shared[last + k] += p
    for i in range(n - 1, -1, -1):
        here = i * n_labels
        for k in range(n_labels):
            entering[k] = 0.0
        for d in range(min(max_length, n - i)):
            row, end = at + (i * max_length + d) * n_labels, (i + d + 1) * n_labels
            for k in range(n_labels):
                counts[row + k] *= masses[end + k]
            for k in range(n_labels):
                entering[k] += counts[row + k]
        if i == 0:
            for k in range(n_labels):
                shared[first + k] += entering[k]
            return
        for k in range(n_labels):
            ratios[k] = entering[k] / entries[here + k] if entries[here + k] > 0.0 else 0.0
        for j in range(n_labels):
            total = 0.0
            for k in range(n_labels):
                total += moves[j * n_labels + k] * ratios[k]
            masses[here + j] = before[here + j] * total
        for j in range(n_labels):
            own = before[here + j]
            if own > 0.0:
                for k in range(n_labels):
                    shared[j * n_labels + k] += own * ratios[k]
        for k in range(n_labels):
            if entries[here + k] == 0.0 and entering[k] != 0.0:
                for j in range(n_labels):
                    score = ends[here + j] + pool[j * n_labels + k]
                    p = entering[k] * exp_scalar(score - begins[here + k])
                    masses[here + j] += p
                    exact[j * n_labels + k] += p


@kernel
def sum_segments(pool, offsets, lengths, first, last, weights, max_length, n_labels, log_partitions, counts, shared):
    """log Z of instances ``first`` to ``last``, and with ``counts`` (or nothing) their expected counts.

    ``weights`` are those of instances, or nothing. ``shared`` are the counts of what all instances share, added to.
    """
    moves, tops = np.empty(n_labels * n_labels), np.empty(n_labels)
    scaled_transitions(pool, n_labels, moves, tops)
    longest = 0
    for s in range(first, last):
        longest = max(longest, lengths[s])
    size = (longest + 1) * n_labels
    ends, begins, before, entries = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    masses = np.empty(size)
    own, exact = np.zeros(len(shared)), np.zeros(n_labels * n_labels)
    for s in range(first, last):
        n, at = lengths[s], offsets[s]
        log_partitions[s] = 0.0
        if n == 0:
            continue
        found = sum_charts(pool, at, n, max_length, n_labels, moves, tops, ends, begins, before, entries, counts)
        log_partitions[s] = found
        if len(counts) == 0:
            continue
        weight = weights[s] if len(weights) else 1.0
        if found == -np.inf or weight == 0.0:
            for i in range(at, offsets[s + 1]):
                counts[i] = 0.0
            continue
        add_counts(
            pool, at, n, max_length, n_labels, moves, found, weight, ends, begins, before, entries, masses, counts,
            own, exact,
        )  # fmt: skip
    for i in range(n_labels * n_labels):
        shared[i] += own[i] * moves[i] + exact[i]
    for i in range(n_labels * n_labels, len(shared)):
        shared[i] += own[i]


@kernel
def chosen(values, n, state):
    """One of ``n`` log-weights: a random one, or the first of the largest where there is no stream of random bits."""
    if len(state):
        return draw_from_logs(state, values, 0, n)
    best = 0
    for i in range(1, n):
        if values[i] > values[best]:
            best = i
    return best


@kernel
def descend(pool, at, n, max_length, n_labels, ends, begins, values, state, cells, c):
    """Write the cells of one segmentation from ``cells[c]`` on, from the last segment to the first; where they end."""
    first, last = n_labels * n_labels, n_labels * n_labels + n_labels
    for k in range(n_labels):
        values[k] = ends[n * n_labels + k] + pool[last + k]
    label = chosen(values, n_labels, state)
    cells[c] = last + label
    c += 1
    j = n
    while True:
        for d in range(min(max_length, j)):
            i = j - 1 - d
            values[d] = begins[i * n_labels + label] + pool[at + (i * max_length + d) * n_labels + label]
        d = chosen(values, min(max_length, j), state)
        j -= d + 1
        cells[c] = at + (j * max_length + d) * n_labels + label
        if j == 0:
            cells[c + 1] = first + label
            return c + 2
        for k in range(n_labels):
            values[k] = ends[j * n_labels + k] + pool[k * n_labels + label]
        previous = chosen(values, n_labels, state)
        cells[c + 1] = previous * n_labels + label
        label = previous
        c += 2


@kernel
def descend_segments(pool, offsets, lengths, first, last, size, max_length, n_labels, states, places, cells, used):
    """``size`` segmentations of instances ``first`` to ``last``: drawn, or the best where ``states`` has no columns.

    Those of instance s are written from ``cells[places[s]]`` on, ``used[s * size + i]`` cells each: none where nothing
    is possible. Rows of ``states`` are streams of random bits.
    """
    moves, tops = np.empty(n_labels * n_labels), np.empty(n_labels)
    scaled_transitions(pool, n_labels, moves, tops)
    longest = 0
    for s in range(first, last):
        longest = max(longest, lengths[s])
    room = (longest + 1) * n_labels
    ends, begins, before, entries = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    values, nothing = np.empty(max(n_labels, max_length)), np.empty(0)
    for s in range(first, last):
        n, at, c = lengths[s], offsets[s], places[s]
        if n == 0:
            found = -np.inf
        elif states.shape[1]:
            found = sum_charts(
                pool, at, n, max_length, n_labels, moves, tops, ends, begins, before, entries, nothing
            )  # fmt: skip
        else:
            found = max_charts(pool, at, n, max_length, n_labels, ends, begins)
        for i in range(size):
            used[s * size + i] = 0
            if found > -np.inf:
                end = descend(pool, at, n, max_length, n_labels, ends, begins, values, states[s], cells, c)
                used[s * size + i] = end - c
                c = end
