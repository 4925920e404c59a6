"""Expected numbers of rules, tokens and labelled spans: the derivatives of log Z, from the chart of inside sums.

What flows from the whole sentence down are expected numbers of nodes, never products of large and small numbers: a node
passes its own on to the ways it can be made, in proportion to their share in its inside sum. Nothing overflows, and
where inside sums are exact so are these.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.structures.chart.inside_kernel import SAFE, inside, new_chart, product, span_row, split_ratios

__all__ = ["chart_sums"]


class Flow(NamedTuple):
    """Room for expected numbers of nodes."""

    left: np.ndarray  # as left children, in the order of the chart
    right: np.ndarray
    nodes: np.ndarray  # [symbols]: of the span at hand
    share: np.ndarray  # [symbols]: nodes divided by their values, relative to the largest split
    lift: np.ndarray  # [symbols]: span score less value


@kernel
def _unary_counts(values, at, rules, scores, weight, nodes, room, counts):
    """Nodes that unary rules make below others of the same span, and how often each rule does."""
    for block in range(len(rules.blocks) - 2, -1, -1):
        first, last = rules.blocks[block], rules.blocks[block + 1]
        star = rules.star_offsets[block]
        if star >= 0:
            size = last - first
            for y in range(size):
                b = rules.block_symbols[first + y]
                room[y] = 0.0
                for x in range(size):
                    a = rules.block_symbols[first + x]
                    if nodes[a] > 0.0:
                        room[y] += nodes[a] * exp_scalar(
                            scores.star[star + x * size + y] + values[at + b] - values[at + a]
                        )
            for y in range(size):
                nodes[rules.block_symbols[first + y]] = room[y]
        for x in range(first, last):
            a = rules.block_symbols[x]
            if nodes[a] > 0.0:
                for u in range(rules.unary_rules[a], rules.unary_rules[a + 1]):
                    b = rules.unary_child[u]
                    used = nodes[a] * exp_scalar(scores.unary[u] + values[at + b] - values[at + a])
                    counts[rules.unary_cell[u]] += weight * used
                    if rules.unary_within[u] == 0:
                        nodes[b] += used


@kernel
def _binary_counts(chart, rules, scores, n, i, j, own, weight, pool, flow, shared, counts):
    """Nodes that binary rules make below those of a span, and how often each rule does."""
    symbols, lefts, rights = len(rules.left_of), rules.lefts, rules.rights
    at = span_row(n, i, j) * symbols
    values, nodes, share, lift, ratio = chart.values, flow.nodes, flow.share, flow.lift, chart.ratio
    parent, pair_rules, left_extent, right_extent = (
        rules.parent,
        rules.pair_rules,
        chart.left_extent,
        chart.right_extent,
    )
    left, right = chart.left_parts, chart.right_parts
    top = split_ratios(chart, n, i, j)
    for a in range(symbols):
        share[a] = 0.0
        if nodes[a] > 0.0:
            score = pool[own + rules.span_column[a]] if rules.span_columns > 0 and rules.span_column[a] >= 0 else 0.0
            lift[a] = score - values[at + a]
            share[a] = nodes[a] * exp_scalar(min(top + scores.shift + lift[a], 690.0))
    ends = 2 * j * rights
    for x in range(chart.n_active[i]):
        b = chart.active[i * lefts + x]
        row = (i * n - i * (i - 1) // 2) * lefts + b * (n - i) - i - 1
        begin, end = left_extent[2 * (i * lefts + b)], min(left_extent[2 * (i * lefts + b) + 1], j - 1)
        for pair in range(rules.left_pairs[b], rules.left_pairs[b + 1]):
            c = rules.pair_right[pair]
            first, last = max(begin, right_extent[ends + 2 * c]), min(end, right_extent[ends + 2 * c + 1])
            if first > last:
                continue
            wanted = False
            for r in range(pair_rules[pair], pair_rules[pair + 1]):
                wanted = wanted or nodes[parent[r]] > 0.0
            if not wanted:
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
            both = 0.0
            for r in range(pair_rules[pair], pair_rules[pair + 1]):
                a = parent[r]
                if nodes[a] == 0.0:
                    continue
                term = scores.relative[r] * total
                if term >= SAFE * SAFE:
                    used = share[a] * term
                else:
                    log_total = exact if exact > -np.inf else math.log(total) + top
                    used = nodes[a] * exp_scalar(scores.rules[r] + log_total + lift[a])
                both += used
                shared[rules.rule_cell[r]] += weight * used
                if rules.span_columns > 0:
                    counts[own + rules.span_column[a]] += weight * used
            if both == 0.0:
                continue
            if exact == -np.inf:
                both /= total
                for k in range(first, last + 1):
                    used = both * left[row + k] * right[other + k] * ratio[k]
                    flow.left[row + k] += used
                    flow.right[other + k] += used
            else:
                for k in range(first, last + 1):
                    used = both * exp_scalar(chart.left[row + k] + chart.right[other + k] - exact)
                    flow.left[row + k] += used
                    flow.right[other + k] += used


@kernel
def _outside(pool, begin, n, rules, scores, weight, chart, flow, shared, counts, kept):
    """Add the expected numbers of a sentence whose chart is filled; ``kept`` gets those of nodes, if it has room."""
    symbols, columns, lefts, rights = len(rules.left_of), len(rules.token_symbols), rules.lefts, rules.rights
    nodes, values = flow.nodes, chart.values
    for i in range(n):
        for x in range(chart.n_active[i]):
            row = (i * n - i * (i - 1) // 2) * lefts + chart.active[i * lefts + x] * (n - i)
            flow.left[row : row + n - i] = 0.0
    for j in range(1, n + 1):
        for c in range(rights):
            if chart.right_extent[2 * (j * rights + c)] <= n:
                row = j * (j - 1) // 2 * rights + c * j
                flow.right[row : row + j] = 0.0
    for i in range(n):
        for j in range(n, i, -1):
            span = span_row(n, i, j)
            at = span * symbols
            found = False
            for a in range(symbols):
                nodes[a] = 0.0
                if values[at + a] == -np.inf:
                    continue
                b, c = rules.left_of[a], rules.right_of[a]
                if b >= 0 and j < n:
                    nodes[a] += flow.left[(i * n - i * (i - 1) // 2) * lefts + b * (n - i) + j - i - 1]
                if c >= 0 and i > 0:
                    nodes[a] += flow.right[j * (j - 1) // 2 * rights + c * j + i]
                found = found or nodes[a] > 0.0
            if i == 0 and j == n:
                nodes[rules.start] += 1.0
                found = True
            if found:
                _unary_counts(values, at, rules, scores, weight, nodes, flow.share, shared)
                if j - i == 1:
                    for t in range(columns):
                        a, cell = rules.token_symbols[t], begin + i * columns + t
                        if nodes[a] > 0.0:
                            counts[cell] = weight * nodes[a] * exp_scalar(pool[cell] - values[at + a])
                else:
                    own = begin + n * columns + (i * (n - 1) - i * (i - 1) // 2 + j - i - 2) * rules.span_columns
                    _binary_counts(chart, rules, scores, n, i, j, own, weight, pool, flow, shared, counts)
            if len(kept) > 0:
                kept[at : at + symbols] = nodes


@kernel
def chart_sums(first, last, offsets, lengths, rules, scores, pool, weights, log_z, shared, counts, kept, done):
    """log Z of some sentences; and, unless ``counts`` is empty, expected numbers of cells, shared ones apart.

    Sentences that are ``done`` are left as they are.
    """
    longest = 0
    for s in range(first, last):
        if not done[s]:
            longest = max(longest, lengths[s])
    chart = new_chart(longest, rules, False)
    symbols = len(rules.left_of)
    flow = Flow(
        np.empty(len(chart.left)), np.empty(len(chart.right)), np.empty(symbols), np.empty(symbols), np.empty(symbols)
    )
    for s in range(first, last):
        if done[s]:
            continue
        n = lengths[s]
        log_z[s] = inside(pool, offsets[s], n, rules, scores, False, chart) if n > 0 else -np.inf
        if len(counts) > 0 and log_z[s] > -np.inf:
            _outside(pool, offsets[s], n, rules, scores, weights[s], chart, flow, shared, counts, kept)
