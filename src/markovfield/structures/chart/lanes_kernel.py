"""Sums and counts of charts as `dense_kernel` has them, with all spans of one width side by side.

Where phrases are few, or sentences many, the long axis is neither symbols nor splits but positions: entry ``[w, a, p]``
is phrase a over w words, from position ``p = i * lanes + s`` on, for word i of sentence s. A split after d words joins
``[d, b, p]`` with ``[w - d, c, p + d * lanes]``: two rows read in order. Sentences of a group have as many words.

Numbers are relative to the largest of their width in the group, words to the likeliest symbol of each, which every
tree has. Derivatives are those of log Z by these numbers. Rules and limits are those of `dense_kernel`: where a number
is too small a group is done again sentence by sentence, and such a sentence is given up (False). Invariant: 0 is
impossible. Free to change: the order of addition.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.structures.chart.dense_kernel import SMALLEST_ENTRY, SMALLEST_LOG_RATIO, SMALLEST_SPAN
from markovfield.structures.chart.products_kernel import add_dots, add_product, add_turned_product

__all__ = ["lane_sums"]

# Numbers of a chart that are worth keeping near, and positions that make loops long.
MOST_NUMBERS = 40_000
LONG = 256


class Room(NamedTuple):
    """Charts of one group; R positions."""

    words: np.ndarray  # [W, R]
    base: np.ndarray  # [lanes]: logs of what the words of a sentence are relative to
    chart: np.ndarray  # [n + 1, N, R]
    slope: np.ndarray  # [n + 1, N, R]: derivatives
    gains: np.ndarray  # [n + 1, N, R]: scores of spans, as numbers; nothing where there are none
    scale: np.ndarray  # [n + 1]: the log of what a width is relative to
    norm: np.ndarray  # [n + 1]: what the numbers of a width were divided by
    ratio: np.ndarray  # [n + 1]: for each split of one width the product of both scales
    before: np.ndarray  # [N * N, R]: of a word before a phrase
    after: np.ndarray
    both: np.ndarray  # [N * W, R]: of a word before a word
    before_slope: np.ndarray
    after_slope: np.ndarray
    both_slope: np.ndarray
    word_slope: np.ndarray  # [W, R]
    pairs: np.ndarray  # [N * N, R]: sums over the splits of one width
    pair_slope: np.ndarray
    sums: np.ndarray  # [N, R]


@kernel
def _new_room(n, lanes, rules):
    """Room for a group."""
    phrases, words, size = len(rules.phrases), len(rules.before), n * lanes
    square, wide = phrases * phrases, phrases * words
    return Room(
        np.empty((words, size)),
        np.zeros(lanes),
        np.empty((n + 1, phrases, size)),
        np.zeros((n + 1, phrases, size)),
        np.empty((n + 1 if rules.spans else 0, phrases, size)),
        np.zeros(n + 1),
        np.ones(n + 1),
        np.empty(n + 1),
        np.zeros((square, size)),
        np.zeros((square, size)),
        np.zeros((wide, size)),
        np.zeros((square, size)),
        np.zeros((square, size)),
        np.zeros((wide, size)),
        np.zeros((words, size)),
        np.empty((square, size)),
        np.empty((square, size)),
        np.empty((phrases, size)),
    )


@kernel
def _read_words(pool, begins, n, room):
    """Numbers of words; False where one is too small."""
    words, lanes = len(room.words), len(begins)
    for s in range(lanes):
        for i in range(n):
            at, p = begins[s] + i * words, i * lanes + s
            top, least = -np.inf, 1.0
            for t in range(words):
                top = max(top, pool[at + t])
            for t in range(words):
                score = pool[at + t]
                value = exp_scalar(score - top) if score > -np.inf else 0.0
                room.words[t, p] = value
                least = min(least, value if value > 0.0 or score > -np.inf else 1.0)
            if least < SMALLEST_ENTRY:
                return False
            room.base[s] += top if top > -np.inf else 0.0
    return True


@kernel
def _ratios(scale, width, ratio):
    """For each split of a width the product of both scales relative to the largest, whose log it is; NaN: too small."""
    top, least = -np.inf, 0.0
    for d in range(1, width):
        ratio[d] = scale[d] + scale[width - d]
        top = max(top, ratio[d])
    for d in range(1, width):
        gap = ratio[d] - top if ratio[d] > -np.inf else -np.inf
        least = min(least, gap if gap > -np.inf else 0.0)
        ratio[d] = exp_scalar(gap) if gap > -np.inf else 0.0
    return top if least >= SMALLEST_LOG_RATIO else np.nan


@kernel
def _add_beside(matrix, matrix_shift, vector, shift, ratio, many, sums):
    """Add what a word beside a phrase, or a word, gives."""
    columns = len(vector)
    for a in range(len(sums)):
        for c in range(columns):
            own, row, target = matrix[a * columns + c], vector[c], sums[a]
            for p in range(many):
                target[p] += ratio * own[p + matrix_shift] * row[p + shift]


@kernel
def _send_beside(matrix, matrix_shift, vector, shift, ratio, many, x, matrix_slope, vector_slope):
    """Derivatives of the same by the matrix and by the vector, from those by the sums."""
    columns = len(vector)
    for a in range(len(x)):
        for c in range(columns):
            own, to_own, given = matrix[a * columns + c], matrix_slope[a * columns + c], x[a]
            row, to_row = vector[c], vector_slope[c]
            for p in range(many):
                used = ratio * given[p]
                to_own[p + matrix_shift] += used * row[p + shift]
                to_row[p + shift] += used * own[p + matrix_shift]


@kernel
def _sum_pairs(chart, ratio, width, lanes, many, pairs):
    """The sum over splits into two phrases of their products, two splits in each pass."""
    phrases = chart.shape[1]
    for b in range(phrases):
        for c in range(phrases):
            out = pairs[b * phrases + c]
            d = 2
            if width % 2 == 0:  # an odd number of splits
                left, right, factor, shift = chart[d, b], chart[width - d, c], ratio[d], d * lanes
                for p in range(many):
                    out[p] = factor * left[p] * right[p + shift]
                d = 3
            else:
                out[:many] = 0.0
            while d < width - 1:
                left, right, factor, shift = chart[d, b], chart[width - d, c], ratio[d], d * lanes
                other_left, other_right = chart[d + 1, b], chart[width - d - 1, c]
                other_factor, other_shift = ratio[d + 1], (d + 1) * lanes
                for p in range(many):
                    out[p] += (
                        factor * left[p] * right[p + shift]
                        + other_factor * other_left[p] * other_right[p + other_shift]
                    )
                d += 2


@kernel
def _send_pairs(chart, slope, ratio, width, lanes, many, pair_slope):
    """Derivatives by both sides of all splits into two phrases."""
    phrases = chart.shape[1]
    for d in range(2, width - 1):
        factor, shift = ratio[d], d * lanes
        if factor == 0.0:
            continue
        for b in range(phrases):
            for c in range(phrases):
                given, left, right = pair_slope[b * phrases + c], chart[d, b], chart[width - d, c]
                to_left, to_right = slope[d, b], slope[width - d, c]
                for p in range(many):
                    to_left[p] += factor * given[p] * right[p + shift]
                for p in range(many):
                    to_right[p + shift] += factor * given[p] * left[p]


@kernel
def _span_cell(begin, n, words, phrases, i, width):
    """The cell of the first phrase over some words from word i on."""
    return begin + n * words + (i * (n - 1) - i * (i - 1) // 2 + width - 2) * phrases


@kernel
def _read_gains(pool, begins, n, width, words, out):
    """Scores of spans of one width as numbers relative to the largest, whose log it is; NaN: one is too small."""
    phrases, lanes, top, least = len(out), len(begins), -np.inf, 1.0
    for s in range(lanes):
        for i in range(n - width + 1):
            at = _span_cell(begins[s], n, words, phrases, i, width)
            for a in range(phrases):
                top = max(top, pool[at + a])
    for s in range(lanes):
        for i in range(n - width + 1):
            at = _span_cell(begins[s], n, words, phrases, i, width)
            for a in range(phrases):
                score = pool[at + a]
                value = exp_scalar(score - top) if score > -np.inf else 0.0
                out[a, i * lanes + s] = value
                least = min(least, value if score > -np.inf else 1.0)
    return top if least >= SMALLEST_SPAN else np.nan


@kernel
def _normalise(sums, many, out):
    """Divide by the largest, which is answered: 0 where there is none, NaN where a number gets too small."""
    top, least = 0.0, np.inf
    for a in range(len(sums)):
        for p in range(many):
            value = sums[a, p]
            top = max(top, value)
            least = min(least, value if value > 0.0 else np.inf)
    if top == 0.0:
        out[:, :many] = 0.0
        return 0.0
    inverse = 1.0 / top
    for a in range(len(sums)):
        for p in range(many):
            out[a, p] = sums[a, p] * inverse
    return top if least * inverse >= SMALLEST_ENTRY else np.nan


@kernel
def _inside(pool, begins, n, rules, room):
    """Fill the chart of a group; False where a number is too small."""
    phrases, words, lanes = len(rules.phrases), len(rules.before), len(begins)
    square, size, sums = phrases * phrases, n * lanes, room.sums
    if not _read_words(pool, begins, n, room):
        return False
    add_turned_product(room.before, rules.before, room.words, square, words, size)
    add_turned_product(room.after, rules.after, room.words, square, words, size)
    add_turned_product(room.both, rules.both, room.words, phrases * words, words, size)
    for width in range(2, n + 1):
        many = (n - width + 1) * lanes
        sums[:, :many] = 0.0
        log_scale = 0.0
        if width == 2:
            _add_beside(room.both, 0, room.words, lanes, 1.0, many, sums)
        else:
            log_scale = _ratios(room.scale, width, room.ratio)
            if math.isnan(log_scale):
                return False
            last = room.chart[width - 1]
            _add_beside(room.before, 0, last, lanes, room.ratio[1], many, sums)
            _add_beside(room.after, (width - 1) * lanes, last, 0, room.ratio[width - 1], many, sums)
        if width > 3:
            _sum_pairs(room.chart, room.ratio, width, lanes, many, room.pairs)
            add_product(sums, rules.phrases, room.pairs, phrases, square, many)
        if rules.spans:
            gains = room.gains[width]
            log_scale += _read_gains(pool, begins, n, width, words, gains)
            if math.isnan(log_scale):
                return False
            for a in range(phrases):
                for p in range(many):
                    sums[a, p] *= gains[a, p]
        norm = _normalise(sums, many, room.chart[width]) if log_scale > -np.inf else 0.0
        if math.isnan(norm):
            return False
        if norm == 0.0:
            room.chart[width, :, :many] = 0.0
            room.scale[width] = -np.inf
        else:
            room.scale[width] = log_scale + rules.shift + math.log(norm)
            room.norm[width] = norm
    return True


@kernel
def _outside(begins, n, rules, room, counts, totals):
    """Derivatives, from those by phrases that cover sentences; counts of spans, words and rules."""
    phrases, words, lanes = len(rules.phrases), len(rules.before), len(begins)
    square, size, x = phrases * phrases, n * lanes, room.sums
    for width in range(n, 1, -1):
        many = (n - width + 1) * lanes
        inverse, slope, chart = 1.0 / room.norm[width], room.slope[width], room.chart[width]
        for a in range(phrases):
            for p in range(many):
                x[a, p] = slope[a, p] * inverse
        if rules.spans:
            gains = room.gains[width]
            for a in range(phrases):
                for p in range(many):
                    x[a, p] *= gains[a, p]
            for s in range(lanes):
                for i in range(n - width + 1):
                    at, p = _span_cell(begins[s], n, words, phrases, i, width), i * lanes + s
                    for a in range(phrases):
                        counts[at + a] = chart[a, p] * slope[a, p]
        if width == 2:
            _send_beside(room.both, 0, room.words, lanes, 1.0, many, x, room.both_slope, room.word_slope)
            continue
        _ratios(room.scale, width, room.ratio)
        last, to_last, end = room.chart[width - 1], room.slope[width - 1], (width - 1) * lanes
        _send_beside(room.before, 0, last, lanes, room.ratio[1], many, x, room.before_slope, to_last)
        _send_beside(room.after, end, last, 0, room.ratio[width - 1], many, x, room.after_slope, to_last)
        if width > 3:
            _sum_pairs(room.chart, room.ratio, width, lanes, many, room.pairs)
            add_dots(totals.phrases, x, room.pairs, phrases, square, many)
            room.pair_slope[:, :many] = 0.0
            add_turned_product(room.pair_slope, rules.phrases, x, square, phrases, many)
            _send_pairs(room.chart, room.slope, room.ratio, width, lanes, many, room.pair_slope)
    add_product(room.word_slope, rules.before, room.before_slope, words, square, size)
    add_product(room.word_slope, rules.after, room.after_slope, words, square, size)
    add_product(room.word_slope, rules.both, room.both_slope, words, phrases * words, size)
    add_dots(totals.before, room.words, room.before_slope, words, square, size)
    add_dots(totals.after, room.words, room.after_slope, words, square, size)
    add_dots(totals.both, room.words, room.both_slope, words, phrases * words, size)
    for s in range(lanes):
        for i in range(n):
            at, p = begins[s] + i * words, i * lanes + s
            for t in range(words):
                counts[at + t] = room.words[t, p] * room.word_slope[t, p]


@kernel
def _group_sums(group, n, offsets, rules, pool, weights, log_z, counts, totals, done):
    """log Z and counts of sentences of n words; False where a number is too small."""
    lanes = len(group)
    begins = np.empty(lanes, np.int64)
    for s in range(lanes):
        begins[s] = offsets[group[s]]
    room = _new_room(n, lanes, rules)
    if not _inside(pool, begins, n, rules, room):
        return False
    values, root = (room.words, rules.word_root) if n == 1 else (room.chart[n], rules.root)
    slope, root_total = (room.word_slope, totals.word_root) if n == 1 else (room.slope[n], totals.root)
    for s in range(lanes):
        total = 0.0
        for a in range(len(root)):
            total += root[a] * values[a, s]
        if not total > 0.0:
            continue  # no tree: left for others to say so
        done[group[s]] = True
        log_z[group[s]] = math.log(total) + room.scale[n] + room.base[s] + rules.root_shift
        for a in range(len(root)):
            slope[a, s] = weights[group[s]] * root[a] / total
            if len(counts) > 0:
                root_total[a] += slope[a, s] * values[a, s]
    if len(counts) > 0:
        _outside(begins, n, rules, room, counts, totals)
    return True


@kernel
def lane_sums(ids, offsets, lengths, rules, pool, weights, log_z, counts, totals, done):
    """As `dense_sums`, of the sentences ``ids``, which come by length."""
    phrases = len(rules.phrases)
    k = 0
    while k < len(ids):
        n, many = lengths[ids[k]], 1
        most = min(LONG // max(n, 1), MOST_NUMBERS // max(phrases * n * n, 1))
        while many < most and k + many < len(ids) and lengths[ids[k + many]] == n:
            many += 1
        group = ids[k : k + many]
        words = (offsets, rules, pool, weights, log_z, counts, totals, done)
        if n > 0 and not _group_sums(group, n, *words) and many > 1:
            for s in range(many):
                _group_sums(group[s : s + 1], n, *words)
        k += many
