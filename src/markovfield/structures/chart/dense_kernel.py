"""Sums and counts of charts for grammars that have most of all rules, as products of matrices.

Symbols over one word (*words*, W of them) and over more (*phrases*, N of them) are numbered apart. Rules are four
tables of numbers between 0 and 1, by what their children are: ``phrases[a, b c]`` for two phrases, ``before[t, a c]``
for a word and a phrase, ``after[t, a b]`` for a phrase and a word, ``both[t, a u]`` for two words. The vector of a
span is relative to its largest entry, whose log is its scale.

For a span, ``pairs[b, c]`` is the sum over splits of the products of both children, and one product of it with the
rules gives the vector; a word beside a phrase has a matrix of its own, made once for each word. The same steps
backwards give expected numbers: derivatives of log Z, each times the value it is by.

Sums are those of numbers no smaller than the limits below, so that no possible part is lost: where one is smaller a
sentence is given up (False), and done with logs elsewhere. Invariant: 0 is impossible. Free to change: the order of
addition.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.structures.chart.products_kernel import add_dots, add_product, add_turned_product

__all__ = ["SMALLEST_RULE", "DenseRules", "dense_sums"]

# A product of a rule, two entries, a ratio of scales and the score of a span is then above 1e-280.
SMALLEST_RULE = 1e-50
SMALLEST_ENTRY = 1e-70
SMALLEST_LOG_RATIO = -115.0
SMALLEST_SPAN = 1e-30
# So many phrases are done number by number.
FEW = 4
# So many numbers are kept rather than computed twice.
MOST_KEPT = 1_000_000


class DenseRules(NamedTuple):
    """Rules as tables of numbers relative to the largest, whose log is ``shift``; and how a sentence may be covered."""

    phrases: np.ndarray  # [N, N * N]
    before: np.ndarray  # [W, N * N]
    after: np.ndarray  # [W, N * N]
    both: np.ndarray  # [W, N * W]
    shift: float
    root: np.ndarray  # [N]: a phrase that covers a sentence
    word_root: np.ndarray  # [W]: a word that is one
    root_shift: float
    spans: bool  # whether there are scores of spans, N of them for each


class Room(NamedTuple):
    """Charts and counts of one sentence after the other."""

    left: np.ndarray  # [n, n + 1, N]: the vector of words i to j, by i
    right: np.ndarray  # [n + 1, n, N]: the same, by j
    scale: np.ndarray  # [n, n + 1]: the log of what a vector is relative to
    end_scale: np.ndarray  # [n + 1, n]: the same, by j
    peak: np.ndarray  # [n, n + 1]: what a vector was divided by
    mass: np.ndarray  # [n, n + 1, N]: expected numbers of phrases
    words: np.ndarray  # [n, W]
    word_mass: np.ndarray  # [n, W]
    before: np.ndarray  # [n, N * N]: of a word before a phrase; then its derivative
    after: np.ndarray
    both: np.ndarray  # [n, N * W]
    before_mass: np.ndarray
    after_mass: np.ndarray
    both_mass: np.ndarray
    pairs: np.ndarray  # [n + 1, n, N * N]: of the spans of each width; where that is much, [1, n, N * N], of one
    slopes: np.ndarray  # [n, N * N]
    sums: np.ndarray  # [n, N]
    ratio: np.ndarray  # [n + 1]
    scaled: np.ndarray  # [n, N]
    other: np.ndarray  # [n, N]
    turned: np.ndarray  # [N, N]
    gains: np.ndarray  # [N]: scores of a span
    slope: np.ndarray  # [n, W]


@kernel
def _new_room(n, rules):
    """Room for sentences of up to n words."""
    phrases, words = len(rules.phrases), len(rules.before)
    square = phrases * phrases
    return Room(
        np.empty((n, n + 1, phrases)),
        np.empty((n + 1, n, phrases)),
        np.empty((n, n + 1)),
        np.empty((n + 1, n)),
        np.empty((n, n + 1)),
        np.empty((n, n + 1, phrases)),
        np.empty((n, words)),
        np.empty((n, words)),
        np.empty((n, square)),
        np.empty((n, square)),
        np.empty((n, phrases * words)),
        np.empty((n, square)),
        np.empty((n, square)),
        np.empty((n, phrases * words)),
        np.empty((n + 1 if n * n * square <= MOST_KEPT else 1, n, square)),
        np.empty((n, square)),
        np.empty((n, phrases)),
        np.empty(n + 1),
        np.empty((n, phrases)),
        np.empty((n, phrases)),
        np.empty((phrases, phrases)),
        np.ones(phrases),
        np.empty((n, words)),
    )


@kernel
def _ratios(scale, end_scale, all_ratios, i, j):
    """For every split of a span the product of both scales relative to the largest, whose log it is; NaN: too small."""
    before, after, ratio = scale[i, i + 1 : j], end_scale[j, i + 1 : j], all_ratios[i + 1 : j]
    top = -np.inf
    for k in range(len(ratio)):
        ratio[k] = before[k] + after[k]
        top = max(top, ratio[k])
    if top == -np.inf:
        ratio[:] = 0.0
        return top
    least = 0.0
    for k in range(len(ratio)):
        gap = ratio[k] - top
        least = min(least, gap if gap > -np.inf else 0.0)
        ratio[k] = exp_scalar(gap)
    return top if least >= SMALLEST_LOG_RATIO else np.nan


@kernel
def _pairs(left, right, ratio, scaled, i, j, out):
    """The sum over splits into two phrases of their products."""
    first, last = i + 2, j - 1
    phrases = left.shape[2]
    if phrases <= FEW:
        for b in range(phrases):
            for c in range(phrases):
                total = 0.0
                for k in range(first, last):
                    total += ratio[k] * left[i, k, b] * right[j, k, c]
                out[b * phrases + c] = total
        return
    out[:] = 0.0
    if first < last:
        ends = right[j]
        for k in range(first, last):
            factor = ratio[k]
            for c in range(phrases):
                scaled[k - first, c] = factor * ends[k, c]
        square = out.reshape(phrases, phrases)
        add_turned_product(square, left[i, first:last], scaled, phrases, last - first, phrases)


@kernel
def _relative(scores, smallest, out):
    """Scores as numbers relative to the largest, whose log it is (0 where there is none); NaN: one is too small."""
    top = -np.inf
    for a in range(len(scores)):
        top = max(top, scores[a])
    if top == -np.inf:
        out[:] = 0.0
        return top
    least = 1.0
    for a in range(len(scores)):
        out[a] = exp_scalar(scores[a] - top) if scores[a] > -np.inf else 0.0
        if scores[a] > -np.inf:
            least = min(least, out[a])
    return top if least >= smallest else np.nan


@kernel
def _normalised(values, out):
    """Values divided by the largest, which is answered: 0 where there is none, NaN where one gets too small."""
    top = 0.0
    for a in range(len(values)):
        top = max(top, values[a])
    if top == 0.0:
        out[:] = 0.0
        return 0.0
    inverse = 1.0 / top
    least = 1.0
    for a in range(len(values)):
        out[a] = values[a] * inverse
        if values[a] > 0.0:
            least = min(least, out[a])
    return top if least >= SMALLEST_ENTRY else np.nan


@kernel
def _read_words(pool, begin, n, rules, room):
    """Vectors of words and their matrices beside phrases; False where an entry is too small."""
    phrases, words = len(rules.phrases), len(rules.before)
    for i in range(n):
        at = begin + i * words
        room.scale[i, i + 1] = _relative(pool[at : at + words], SMALLEST_ENTRY, room.words[i])
        room.end_scale[i + 1, i] = room.scale[i, i + 1]
        if math.isnan(room.scale[i, i + 1]):
            return False
    square = phrases * phrases
    room.before[:n] = 0.0
    room.after[:n] = 0.0
    room.both[:n] = 0.0
    add_product(room.before, room.words, rules.before, n, words, square)
    add_product(room.after, room.words, rules.after, n, words, square)
    add_product(room.both, room.words, rules.both, n, words, phrases * words)
    return True


@kernel
def _add_beside(matrix, vector, ratio, sums):
    """Add what a word beside a phrase gives."""
    phrases = len(vector)
    for a in range(phrases):
        row = matrix[a * phrases : (a + 1) * phrases]
        total = 0.0
        for c in range(phrases):
            total += row[c] * vector[c]
        sums[a] += ratio * total


@kernel
def _span_place(n, i, j):
    """The number of a span of two or more words."""
    return i * (n - 1) - i * (i - 1) // 2 + j - i - 2


@kernel
def _inside(pool, begin, n, rules, room):
    """Fill the chart; False where a number is too small."""
    phrases, words = len(rules.phrases), len(rules.before)
    square = phrases * phrases
    spans = begin + n * words
    if not _read_words(pool, begin, n, rules, room):
        return False
    for width in range(2, n + 1):
        many, pairs = n - width + 1, room.pairs[width if len(room.pairs) > 1 else 0]
        room.sums[:many] = 0.0
        for i in range(many):
            j = i + width
            top = _ratios(room.scale, room.end_scale, room.ratio, i, j)
            if math.isnan(top):
                return False
            room.scale[i, j] = top + rules.shift
            if width == 2:
                for a in range(phrases):
                    total = 0.0
                    for t in range(words):
                        total += room.both[i, a * words + t] * room.words[i + 1, t]
                    room.sums[i, a] = total
            else:
                _add_beside(room.before[i], room.left[i + 1, j], room.ratio[i + 1], room.sums[i])
                _add_beside(room.after[j - 1], room.left[i, j - 1], room.ratio[j - 1], room.sums[i])
                _pairs(room.left, room.right, room.ratio, room.scaled, i, j, pairs[i])
        if width > 3:
            add_dots(room.sums, pairs, rules.phrases, many, phrases, square)
        for i in range(many):
            j = i + width
            if rules.spans:
                at = spans + _span_place(n, i, j) * phrases
                room.scale[i, j] += _relative(pool[at : at + phrases], SMALLEST_SPAN, room.gains)
                if math.isnan(room.scale[i, j]):
                    return False
                for a in range(phrases):
                    room.sums[i, a] *= room.gains[a]
            if room.scale[i, j] == -np.inf:
                room.sums[i] = 0.0
            peak = _normalised(room.sums[i], room.left[i, j])
            if math.isnan(peak):
                return False
            room.right[j, i] = room.left[i, j]
            room.peak[i, j] = peak
            room.scale[i, j] = room.scale[i, j] + math.log(peak) if peak > 0.0 else -np.inf
            room.end_scale[j, i] = room.scale[i, j]
    return True


@kernel
def _send_beside(matrix, x, vector, ratio, mass, matrix_mass):
    """What a word beside a phrase was worth: to the phrase, and to the matrix of the word."""
    phrases = len(vector)
    for a in range(phrases):
        factor = ratio * x[a]
        if factor == 0.0:
            continue
        row, own = matrix[a * phrases : (a + 1) * phrases], matrix_mass[a * phrases : (a + 1) * phrases]
        for c in range(phrases):
            used = factor * vector[c]
            mass[c] += used * row[c]
            own[c] += used


@kernel
def _send_few_pairs(left, right, ratio, i, j, slope, mass):
    """The same where phrases are few: rows of matrices would be too short to be worth their views."""
    phrases = left.shape[2]
    for k in range(i + 2, j - 1):
        for b in range(phrases):
            value = ratio[k] * left[i, k, b]
            for c in range(phrases):
                used = value * right[j, k, c] * slope[b * phrases + c]
                mass[i, k, b] += used
                mass[k, j, c] += used


@kernel
def _send_pairs(room, i, j, slope):
    """What splits into two phrases were worth, to both."""
    first, last = i + 2, j - 1
    phrases, depth = room.left.shape[2], last - first
    square = slope.reshape(phrases, phrases)
    turned, left, right = room.turned, room.left[i, first:last], room.right[j, first:last]
    for b in range(phrases):
        for c in range(phrases):
            turned[c, b] = square[b, c]
    room.other[:depth] = 0.0
    add_product(room.other, right, turned, depth, phrases, phrases)
    room.scaled[:depth] = 0.0
    add_product(room.scaled, left, square, depth, phrases, phrases)
    for k in range(depth):
        ratio = room.ratio[first + k]
        to_left, to_right = room.mass[i, first + k], room.mass[first + k, j]
        for b in range(phrases):
            to_left[b] += ratio * left[k, b] * room.other[k, b]
            to_right[b] += ratio * right[k, b] * room.scaled[k, b]


@kernel
def _derivatives(pool, begin, n, width, rules, room, counts):
    """``room.sums``: derivatives of log Z by the sums of all spans of one width; and counts of their scores."""
    phrases = len(rules.phrases)
    for i in range(n - width + 1):
        j = i + width
        mass, vector, x, peak = room.mass[i, j], room.left[i, j], room.sums[i], room.peak[i, j]
        if rules.spans:
            at = begin + n * len(rules.before) + _span_place(n, i, j) * phrases
            _relative(pool[at : at + phrases], SMALLEST_SPAN, room.gains)
            counts[at : at + phrases] = mass
        for a in range(phrases):
            x[a] = mass[a] * room.gains[a] / (vector[a] * peak) if vector[a] > 0.0 else 0.0


@kernel
def _word_counts(begin, n, rules, room, counts, totals):
    """Counts of words, and of rules that have one."""
    phrases, words = len(rules.phrases), len(rules.before)
    square = phrases * phrases
    room.slope[:n] = 0.0
    add_dots(room.slope, room.before_mass, rules.before, n, words, square)
    add_dots(room.slope, room.after_mass, rules.after, n, words, square)
    add_dots(room.slope, room.both_mass, rules.both, n, words, phrases * words)
    add_turned_product(totals.before, room.words, room.before_mass, words, n, square)
    add_turned_product(totals.after, room.words, room.after_mass, words, n, square)
    add_turned_product(totals.both, room.words, room.both_mass, words, n, phrases * words)
    for i in range(n):
        for t in range(words):
            counts[begin + i * words + t] = room.word_mass[i, t] + room.words[i, t] * room.slope[i, t]


@kernel
def _outside(pool, begin, n, rules, room, counts, totals):
    """Expected numbers, from those of phrases that cover the sentence, which ``room.mass`` has; others are 0 there."""
    phrases, words = len(rules.phrases), len(rules.before)
    square = phrases * phrases
    room.before_mass[:n] = 0.0
    room.after_mass[:n] = 0.0
    room.both_mass[:n] = 0.0
    for width in range(n, 1, -1):
        many, pairs = n - width + 1, room.pairs[width if len(room.pairs) > 1 else 0]
        _derivatives(pool, begin, n, width, rules, room, counts)
        if width > 3:
            room.slopes[:many] = 0.0
            add_product(room.slopes, room.sums, rules.phrases, many, phrases, square)
        for i in range(many):
            j, x = i + width, room.sums[i]
            if width == 2:
                for a in range(phrases):
                    row, own = room.both[i, a * words :], room.both_mass[i, a * words :]
                    for t in range(words):
                        used = x[a] * room.words[i + 1, t]
                        room.word_mass[i + 1, t] += used * row[t]
                        own[t] += used
                continue
            _ratios(room.scale, room.end_scale, room.ratio, i, j)
            _send_beside(
                room.before[i], x, room.left[i + 1, j], room.ratio[i + 1], room.mass[i + 1, j], room.before_mass[i]
            )
            _send_beside(
                room.after[j - 1],
                x,
                room.left[i, j - 1],
                room.ratio[j - 1],
                room.mass[i, j - 1],
                room.after_mass[j - 1],
            )
            if width > 3:
                if len(room.pairs) == 1:
                    _pairs(room.left, room.right, room.ratio, room.scaled, i, j, pairs[i])
                if phrases <= FEW:
                    _send_few_pairs(room.left, room.right, room.ratio, i, j, room.slopes[i], room.mass)
                else:
                    _send_pairs(room, i, j, room.slopes[i])
        if width > 3:
            add_turned_product(totals.phrases, room.sums, pairs, phrases, many, square)
    _word_counts(begin, n, rules, room, counts, totals)


@kernel
def _root(vector, root, mass, weight):
    """The sum over what may cover a sentence; ``mass`` gets the share of each."""
    total = 0.0
    for a in range(len(root)):
        total += root[a] * vector[a]
    for a in range(len(root)):
        mass[a] = weight * root[a] * vector[a] / total if total > 0.0 else 0.0
    return total


@kernel
def dense_sums(first, last, offsets, lengths, rules, pool, weights, log_z, counts, totals, done):
    """log Z of some sentences; and, unless ``counts`` is empty, expected numbers of cells.

    ``totals``: as `DenseRules`, gets the derivatives by the numbers of rules, and the counts of roots. ``done`` is
    False for sentences for which nothing was found or added: a number was too small, or there is no tree.
    """
    longest = 1
    for s in range(first, last):
        longest = max(longest, lengths[s])
    room = _new_room(longest, rules)
    for s in range(first, last):
        n, begin = lengths[s], offsets[s]
        done[s] = n > 0 and _inside(pool, begin, n, rules, room)
        if not done[s]:
            continue
        if n == 1:
            total = _root(room.words[0], rules.word_root, room.word_mass[0], weights[s])
        else:
            room.mass[:n] = 0.0
            room.word_mass[:n] = 0.0
            total = _root(room.left[0, n], rules.root, room.mass[0, n], weights[s])
        done[s] = total > 0.0
        if not done[s]:
            continue
        log_z[s] = math.log(total) + room.scale[0, n] + rules.root_shift
        if len(counts) == 0:
            continue
        if n == 1:
            totals.word_root[:] += room.word_mass[0]
            counts[begin : begin + len(rules.before)] = room.word_mass[0]
        else:
            totals.root[:] += room.mass[0, n]
            _outside(pool, begin, n, rules, room, counts, totals)
