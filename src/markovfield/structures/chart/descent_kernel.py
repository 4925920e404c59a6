"""From the top of a chart down to the words: the best tree of a chart of maxima, or a random one of a chart of sums."""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.random import draw_unit
from markovfield.structures.chart.inside_kernel import inside, new_chart, span_row

__all__ = ["chart_descents"]

TOKEN, UNARY, BINARY = 0, 1, 2


@kernel
def _choose(chart, rules, scores, pool, begin, n, i, j, a, chain, maximum, state):
    """How a symbol over words i to j is made: a kind, which rule or token column, and the split.

    The best way, or one at random in proportion; ``chain`` is how many unary rules led to it over the same words, of
    which the best tree has fewer than there are symbols.
    """
    symbols, columns, lefts, rights = len(rules.left_of), len(rules.token_symbols), rules.lefts, rules.rights
    at = span_row(n, i, j) * symbols
    value = chart.values[at + a]
    left = draw_unit(state) if not maximum else 0.0
    best, kind, which, split = -np.inf, -1, 0, 0
    if j - i == 1:
        for t in range(columns):
            if rules.token_symbols[t] == a:
                score = pool[begin + i * columns + t]
                left -= exp_scalar(score - value)
                if score > -np.inf and (score > best or not maximum):
                    best, kind, which = score, TOKEN, t
                if not maximum and left < 0.0:
                    return kind, which, split
    else:
        own = begin + n * columns + (i * (n - 1) - i * (i - 1) // 2 + j - i - 2) * rules.span_columns
        span_score = pool[own + rules.span_column[a]] if rules.span_columns > 0 and rules.span_column[a] >= 0 else 0.0
        for x in range(rules.parent_rules[a], rules.parent_rules[a + 1]):
            r = rules.by_parent[x]
            b, c = rules.rule_left[r], rules.rule_right[r]
            p, q = 2 * (i * lefts + b), 2 * (j * rights + c)
            first = max(chart.left_extent[p], chart.right_extent[q])
            last = min(chart.left_extent[p + 1], chart.right_extent[q + 1], j - 1)
            row = (i * n - i * (i - 1) // 2) * lefts + b * (n - i) - i - 1
            other = j * (j - 1) // 2 * rights + c * j
            for k in range(first, last + 1):
                score = scores.rules[r] + chart.left[row + k] + chart.right[other + k] + span_score
                if score == -np.inf:
                    continue
                left -= exp_scalar(score - value) if not maximum else 0.0
                if score > best or not maximum:
                    best, kind, which, split = score, BINARY, r, k
                if not maximum and left < 0.0:
                    return kind, which, split
    if chain < symbols or not maximum:
        for u in range(rules.unary_rules[a], rules.unary_rules[a + 1]):
            score = scores.unary[u] + chart.values[at + rules.unary_child[u]]
            if score == -np.inf:
                continue
            left -= exp_scalar(score - value) if not maximum else 0.0
            if score > best or not maximum:
                best, kind, which = score, UNARY, u
            if not maximum and left < 0.0:
                return kind, which, split
    return kind, which, split


@kernel
def _descend(chart, rules, scores, pool, begin, n, maximum, state, waiting, cells, at):
    """Write the cells of a tree from ``at`` on, parents before children, left before right; where they end.

    ``cells`` may be too short; what does not fit is not written.
    """
    columns = len(rules.token_symbols)
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, n, rules.start, 0
    depth = 1
    while depth > 0:
        depth -= 1
        i, j, a, chain = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2], waiting[depth, 3]
        kind, which, split = _choose(chart, rules, scores, pool, begin, n, i, j, a, chain, maximum, state)
        cell = begin + i * columns + which
        if kind == UNARY:
            cell = rules.unary_cell[which]
            waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = i, j, rules.unary_child[which]
            waiting[depth, 3] = chain + 1
            depth += 1
        elif kind == BINARY:
            cell = rules.rule_cell[which]
            waiting[depth, 0], waiting[depth, 1], waiting[depth, 3] = split, j, 0
            waiting[depth, 2] = rules.right_symbol[rules.rule_right[which]]
            depth += 1
            waiting[depth, 0], waiting[depth, 1], waiting[depth, 3] = i, split, 0
            waiting[depth, 2] = rules.left_symbol[rules.rule_left[which]]
            depth += 1
        if at < len(cells):
            cells[at] = cell
        at += 1
        if kind == BINARY and rules.span_columns > 0:
            if at < len(cells):
                spans = begin + n * columns + (i * (n - 1) - i * (i - 1) // 2 + j - i - 2) * rules.span_columns
                cells[at] = spans + rules.span_column[a]
            at += 1
    return at


@kernel
def chart_descents(first, last, offsets, lengths, rules, scores, pool, maximum, size, streams):
    """The cells of the best tree, or of ``size`` random ones, of some sentences, and how many each has; 0 of none."""
    longest = 0
    for s in range(first, last):
        longest = max(longest, lengths[s])
    chart = new_chart(longest, rules, maximum)
    waiting = np.empty((longest + 2, 4), np.int64)
    sizes = np.zeros((last - first) * size, np.int64)
    cells = np.empty(1024, np.int64)
    at = 0
    for s in range(first, last):
        n = lengths[s]
        if n == 0 or inside(pool, offsets[s], n, rules, scores, maximum, chart) == -np.inf:
            continue
        for d in range(size):
            state = streams[s].copy()
            end = _descend(chart, rules, scores, pool, offsets[s], n, maximum, state, waiting, cells, at)
            if end > len(cells):
                more = np.empty(2 * end, np.int64)
                more[:at] = cells[:at]
                cells = more
                state = streams[s].copy()
                end = _descend(chart, rules, scores, pool, offsets[s], n, maximum, state, waiting, cells, at)
            streams[s] = state
            sizes[(s - first) * size + d] = end - at
            at = end
    return cells[:at], sizes
