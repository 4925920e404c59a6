"""Inside values of charts: sums or maxima over all trees below a symbol and a span.

Values are logs. A row of the chart holds one symbol from one place: as left child all ends of spans that begin at i, as
right child all beginnings of spans that end at j, so that both children of a rule are read in order of the split. Rules
with the same children share the loop over splits. Rows are made when a symbol is first found; extents (the first and
last entry of a row) tell which rules can apply.

Sums over splits are sums of products of numbers between 0 and 1, each relative to the largest value of its span; where
such a sum is too small to be trusted the same is done with logs, so that nothing is lost.

Invariant: -inf is impossible, and never becomes NaN. Free to change: the order of addition.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.log_space import log_add

__all__ = ["SAFE", "Chart", "Rules", "Scores", "inside", "new_chart", "product", "span_row", "split_ratios"]

# Below this, a sum of products is computed with logs: what has been lost is then smaller by 1e150 and more.
SAFE = 1e-140


class Rules(NamedTuple):
    """A grammar as arrays. Left and right children are numbered among symbols that can be one.

    Binary rules are sorted by left child, right child, parent; a *pair* is two children that some rule has. Unary rules
    are sorted by parent. *Blocks* are sets of symbols that unary rules lead around between, children before parents;
    only what has unary rules is in one.
    """

    left_of: np.ndarray  # [symbols] or -1
    right_of: np.ndarray  # [symbols] or -1
    left_symbol: np.ndarray  # [lefts]
    right_symbol: np.ndarray  # [rights]
    left_pairs: np.ndarray  # [lefts + 1]
    pair_right: np.ndarray  # [pairs]
    pair_rules: np.ndarray  # [pairs + 1]
    parent: np.ndarray  # [rules]
    rule_left: np.ndarray  # [rules]
    rule_right: np.ndarray  # [rules]
    by_parent: np.ndarray  # [rules]: rules sorted by parent
    parent_rules: np.ndarray  # [symbols + 1]: where those of a parent begin
    rule_cell: np.ndarray  # [rules]
    unary_rules: np.ndarray  # [symbols + 1]
    unary_child: np.ndarray  # [unary rules]
    unary_cell: np.ndarray  # [unary rules]
    unary_within: np.ndarray  # [unary rules]: 1 where both symbols are in one block
    blocks: np.ndarray  # [blocks + 1]
    block_symbols: np.ndarray
    star_offsets: np.ndarray  # [blocks], or -1 where there is no way around
    token_symbols: np.ndarray  # [columns of token scores]
    span_column: np.ndarray  # [symbols] or -1: columns of span scores
    start: int
    lefts: int  # how many symbols are left children
    rights: int
    span_columns: int


class Scores(NamedTuple):
    """Scores of rules in the order of `Rules`, and sums (or maxima) over chains of unary rules within blocks."""

    rules: np.ndarray
    relative: np.ndarray  # exp(rules - shift)
    shift: float
    unary: np.ndarray
    star: np.ndarray


class Chart(NamedTuple):
    """Room for the chart of a sentence."""

    values: np.ndarray  # [spans, symbols], flat: of every symbol over every span
    left: np.ndarray
    right: np.ndarray
    left_parts: np.ndarray  # the same relative to the largest of the span; not for maxima
    right_parts: np.ndarray
    scale: np.ndarray  # [spans]: the largest value
    left_extent: np.ndarray  # [n, lefts, 2] flat: first and last end; the first is n + 1 where there is none
    right_extent: np.ndarray  # [n + 1, rights, 2] flat: first and last beginning
    active: np.ndarray  # [n, lefts] flat: left children found at a place
    n_active: np.ndarray  # [n]
    ratio: np.ndarray  # [n]: of splits
    sums: np.ndarray  # [symbols]
    found: np.ndarray  # [symbols]: the symbols of the span at hand


@kernel
def new_chart(n, rules, maximum):
    """Room for sentences of up to n words."""
    symbols = len(rules.left_of)
    lefts, rights = rules.lefts, rules.rights
    spans = n * (n + 1) // 2
    twice = 0 if maximum else spans
    return Chart(
        np.empty(spans * symbols),
        np.empty(spans * lefts),
        np.empty(spans * rights),
        np.empty(twice * lefts),
        np.empty(twice * rights),
        np.empty(spans),
        np.empty(2 * n * lefts, np.int64),
        np.empty(2 * (n + 1) * rights, np.int64),
        np.empty(n * lefts, np.int64),
        np.empty(n, np.int64),
        np.empty(n + 1),
        np.zeros(symbols),
        np.empty(symbols, np.int64),
    )


@kernel
def span_row(n, i, j):
    """The number of a span from i up to j, not included."""
    return i * n - i * (i - 1) // 2 + j - i - 1


@kernel
def product(left, p, right, q, first, last):
    """log of the sum of exp(left[p + k] + right[q + k]) for k from first to last."""
    top = -np.inf
    for k in range(first, last + 1):
        top = max(top, left[p + k] + right[q + k])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(first, last + 1):
        total += exp_scalar(left[p + k] + right[q + k] - top)
    return top + math.log(total)


@kernel
def _gathered(values, at, base, first, last, unary_child, unary, skipped, maximum):
    """A value with those of unary rules ``first`` up to ``last``, but for those that ``skipped`` marks."""
    top = base
    for u in range(first, last):
        if skipped[u] == 0:
            top = max(top, unary[u] + values[at + unary_child[u]])
    if maximum or top == -np.inf:
        return top
    total = exp_scalar(base - top)
    for u in range(first, last):
        if skipped[u] == 0:
            total += exp_scalar(unary[u] + values[at + unary_child[u]] - top)
    return top + math.log(total)


@kernel
def _close(chart, count, at, rules, scores, maximum):
    """Values of a span with all chains of unary rules, from those without any; how many symbols there are."""
    values, room, star, found = chart.values, chart.sums, scores.star, chart.found
    blocks, symbols, offsets, unary_rules = rules.blocks, rules.block_symbols, rules.star_offsets, rules.unary_rules
    child, within, unary = rules.unary_child, rules.unary_within, scores.unary
    for block in range(len(blocks) - 1):
        first, size = blocks[block], blocks[block + 1] - blocks[block]
        top = -np.inf
        for x in range(size):
            a = symbols[first + x]
            room[x] = _gathered(
                values, at, values[at + a], unary_rules[a], unary_rules[a + 1], child, unary, within, maximum
            )
            top = max(top, room[x])
        row = offsets[block]
        for x in range(size if top > -np.inf else 0):
            best = room[x]
            if row >= 0:
                best = -np.inf
                for y in range(size):
                    best = max(best, star[row + y] + room[y])
                if not maximum and best > -np.inf:
                    total = 0.0
                    for y in range(size):
                        total += exp_scalar(star[row + y] + room[y] - best)
                    best += math.log(total)
                row += size
            a = symbols[first + x]
            if values[at + a] == -np.inf and best > -np.inf:
                found[count] = a
                count += 1
            values[at + a] = best
        room[:size] = 0.0
    return count


@kernel
def _store(chart, count, rules, n, i, j, maximum):
    """Put the values of a span where rules find them as left and as right child."""
    lefts, rights, left_of, right_of = rules.lefts, rules.rights, rules.left_of, rules.right_of
    span = span_row(n, i, j)
    at = span * len(left_of)
    values, left, right, found = chart.values, chart.left, chart.right, chart.found
    left_extent, right_extent = chart.left_extent, chart.right_extent
    top = -np.inf
    for x in range(count):
        top = max(top, values[at + found[x]])
    chart.scale[span] = top
    before = (i * n - i * (i - 1) // 2) * lefts - i - 1
    for x in range(count):
        a = found[x]
        value = values[at + a]
        if value == -np.inf:
            continue
        part = 0.0 if maximum else exp_scalar(value - top)
        b, c = left_of[a], right_of[a]
        # Entries of a row between its first and its last are all written.
        if b >= 0 and j < n:
            row, e = before + b * (n - i), 2 * (i * lefts + b)
            if left_extent[e] > n:
                left_extent[e] = j
                chart.active[i * lefts + chart.n_active[i]] = b
                chart.n_active[i] += 1
            else:
                for k in range(left_extent[e + 1] + 1, j):
                    left[row + k] = -np.inf
                    if not maximum:
                        chart.left_parts[row + k] = 0.0
            left_extent[e + 1] = j
            left[row + j] = value
            if not maximum:
                chart.left_parts[row + j] = part
        if c >= 0 and i > 0:
            row, e = j * (j - 1) // 2 * rights + c * j, 2 * (j * rights + c)
            if right_extent[e] > n:
                right_extent[e + 1] = i
            else:
                for k in range(i + 1, right_extent[e]):
                    right[row + k] = -np.inf
                    if not maximum:
                        chart.right_parts[row + k] = 0.0
            right_extent[e] = i
            right[row + i] = value
            if not maximum:
                chart.right_parts[row + i] = part


@kernel
def _maxima(chart, rules, scores, n, i, j, at):
    """The best value of every symbol by a binary rule over words i to j; how many symbols there are."""
    lefts, rights = rules.lefts, rules.rights
    values, left, right, weight = chart.values, chart.left, chart.right, scores.rules
    left_extent, right_extent, pair_rules, parent = (
        chart.left_extent,
        chart.right_extent,
        rules.pair_rules,
        rules.parent,
    )
    pair_right, found = rules.pair_right, chart.found
    ends, count = 2 * j * rights, 0
    for x in range(chart.n_active[i]):
        b = chart.active[i * lefts + x]
        row = (i * n - i * (i - 1) // 2) * lefts + b * (n - i) - i - 1
        begin, end = left_extent[2 * (i * lefts + b)], min(left_extent[2 * (i * lefts + b) + 1], j - 1)
        for pair in range(rules.left_pairs[b], rules.left_pairs[b + 1]):
            c = pair_right[pair]
            first, last = max(begin, right_extent[ends + 2 * c]), min(end, right_extent[ends + 2 * c + 1])
            if first > last:
                continue
            other = j * (j - 1) // 2 * rights + c * j
            best = -np.inf
            for k in range(first, last + 1):
                value = left[row + k] + right[other + k]
                best = value if value > best else best
            if best > -np.inf:
                for r in range(pair_rules[pair], pair_rules[pair + 1]):
                    a, value = at + parent[r], weight[r] + best
                    if value > values[a]:
                        if values[a] == -np.inf:
                            found[count] = parent[r]
                            count += 1
                        values[a] = value
    return count


@kernel
def split_ratios(chart, n, i, j):
    """For every split of a span, the product of both scales relative to the largest such product, whose log it is."""
    top = -np.inf
    for k in range(i + 1, j):
        chart.ratio[k] = chart.scale[span_row(n, i, k)] + chart.scale[span_row(n, k, j)]
        top = max(top, chart.ratio[k])
    for k in range(i + 1, j):
        chart.ratio[k] = exp_scalar(chart.ratio[k] - top) if top > -np.inf else 0.0
    return top


@kernel
def _sums(chart, rules, scores, n, i, j, at):
    """The sum over binary rules and splits for every symbol over words i to j; how many symbols there are."""
    lefts, rights = rules.lefts, rules.rights
    values, ratio, sums = chart.values, chart.ratio, chart.sums
    left, right = chart.left_parts, chart.right_parts
    left_extent, right_extent, pair_rules, parent = (
        chart.left_extent,
        chart.right_extent,
        rules.pair_rules,
        rules.parent,
    )
    pair_right, relative, found = rules.pair_right, scores.relative, chart.found
    top = split_ratios(chart, n, i, j)
    ends, count = 2 * j * rights, 0
    for x in range(chart.n_active[i]):
        b = chart.active[i * lefts + x]
        row = (i * n - i * (i - 1) // 2) * lefts + b * (n - i) - i - 1
        begin, end = left_extent[2 * (i * lefts + b)], min(left_extent[2 * (i * lefts + b) + 1], j - 1)
        for pair in range(rules.left_pairs[b], rules.left_pairs[b + 1]):
            c = pair_right[pair]
            first, last = max(begin, right_extent[ends + 2 * c]), min(end, right_extent[ends + 2 * c + 1])
            if first > last:
                continue
            other = j * (j - 1) // 2 * rights + c * j
            total = 0.0
            for k in range(first, last + 1):
                total += left[row + k] * right[other + k] * ratio[k]
            exact = -np.inf
            if total < SAFE:
                exact = product(chart.left, row, chart.right, other, first, last)
                if exact == -np.inf:
                    continue
            for r in range(pair_rules[pair], pair_rules[pair + 1]):
                a, term = parent[r], relative[r] * total
                if scores.rules[r] == -np.inf:
                    continue
                if sums[a] == 0.0 and values[at + a] == -np.inf:
                    found[count] = a
                    count += 1
                if term >= SAFE * SAFE:
                    sums[a] += term
                else:
                    if exact == -np.inf:
                        exact = math.log(total) + top
                    values[at + a] = log_add(values[at + a], scores.rules[r] + exact)
    for x in range(count):
        a = found[x]
        if sums[a] > 0.0:
            own = math.log(sums[a]) + top + scores.shift
            values[at + a] = own if values[at + a] == -np.inf else log_add(values[at + a], own)
            sums[a] = 0.0
    return count


@kernel
def inside(pool, begin, n, rules, scores, maximum, chart):
    """Fill the chart of a sentence of n words whose cells begin at ``begin``; the value of the start symbol."""
    symbols, columns = len(rules.left_of), len(rules.token_symbols)
    n_spans = rules.span_columns
    chart.left_extent[:] = n + 1
    chart.right_extent[:] = n + 1
    chart.n_active[:n] = 0
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            at = span_row(n, i, j) * symbols
            chart.values[at : at + symbols] = -np.inf
            if j - i == 1:
                count = 0
                for t in range(columns):
                    score = pool[begin + i * columns + t]
                    if score > -np.inf:
                        chart.values[at + rules.token_symbols[t]] = score
                        chart.found[count] = rules.token_symbols[t]
                        count += 1
            else:
                if maximum:
                    count = _maxima(chart, rules, scores, n, i, j, at)
                else:
                    count = _sums(chart, rules, scores, n, i, j, at)
                if n_spans > 0:
                    own = begin + n * columns + (i * (n - 1) - i * (i - 1) // 2 + j - i - 2) * n_spans
                    for x in range(count):
                        a = chart.found[x]
                        chart.values[at + a] += pool[own + rules.span_column[a]]
            count = _close(chart, count, at, rules, scores, maximum)
            _store(chart, count, rules, n, i, j, maximum)
    return chart.values[span_row(n, 0, n) * symbols + rules.start]
