"""Scores of the labels of tokens from sparse attributes, and the way back: posteriors added up in a gradient.

An attribute that speaks for several labels has a *row*, one weight for each label and padding, so that adding it is one
vector operation. A rare attribute speaks for one or two labels: each token that has it lists *pairs* of a weight and a
label instead. Which attribute is of which sort is decided with the layout of features.

A `Tokens` tuple holds, for token t, ``rows[row_offsets[t]:row_offsets[t + 1]]`` and the pairs
``pair_weight``, ``pair_label`` at ``pair_offsets[t]:pair_offsets[t + 1]``; ``row_values`` and ``pair_values`` are empty
where every attribute has the value one.

An `Edges` tuple does the same for attributes of the step from one token to the next, which speak for pairs of labels;
without any, its ``offsets`` are empty. Steps then have transitions of their own, ``moves``: ``width * width`` numbers
for each step, entry ``i * width + j`` for label j after label i.

Invariant: scores are flat, ``width`` to a token, with ``width`` the labels padded to a multiple of `BLOCK`; the score
of a padding label is -inf. Free to change: which attributes get rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.simd import BLOCK, add_block, add_rows_block, add_to_rows_block

__all__ = [
    "NO_EDGES",
    "Edges",
    "Tokens",
    "add_edges",
    "add_posteriors",
    "edge_potentials",
    "edge_scores",
    "label_scores",
    "mask_scores",
    "step_posteriors",
]


TINY = 1e-200


class Tokens(NamedTuple):
    """References of tokens to rows and to pairs, flat."""

    row_offsets: np.ndarray
    rows: np.ndarray
    row_values: np.ndarray
    pair_offsets: np.ndarray
    pair_weight: np.ndarray
    pair_label: np.ndarray
    pair_values: np.ndarray


class Edges(NamedTuple):
    """References of the steps between tokens to weights of pairs of labels; those of the step to token t."""

    offsets: np.ndarray
    weight: np.ndarray
    cell: np.ndarray
    values: np.ndarray


NO_EDGES = Edges(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))


@kernel
def label_scores(tokens, first, last, n_labels, width, row_weights, pair_weights, scores):
    """Write ``scores[i * width + label]`` of tokens ``first + i`` before ``last``; padding gets -inf.

    ``row_weights`` is flat, ``width`` weights for each row.
    """
    for t in range(first, last):
        at = (t - first) * width
        for k in range(n_labels):
            scores[at + k] = 0.0
        for k in range(n_labels, width):
            scores[at + k] = -np.inf
        start, stop = tokens.row_offsets[t], tokens.row_offsets[t + 1]
        if len(tokens.row_values):
            for r in range(start, stop):
                base = np.int64(tokens.rows[r]) * width
                for k in range(0, width, BLOCK):
                    add_block(scores, at + k, tokens.row_values[r], row_weights, base + k)
        else:
            for k in range(0, width, BLOCK):
                add_rows_block(scores, at + k, row_weights, k, width, tokens.rows, start, stop)
        start, stop = tokens.pair_offsets[t], tokens.pair_offsets[t + 1]
        if len(tokens.pair_values):
            for r in range(start, stop):
                scores[at + tokens.pair_label[r]] += tokens.pair_values[r] * pair_weights[tokens.pair_weight[r]]
        else:
            for r in range(start, stop):
                scores[at + tokens.pair_label[r]] += pair_weights[tokens.pair_weight[r]]


@kernel
def mask_scores(masks, first, last, n_labels, width, scores):
    """Rule out labels: ``masks[t * n_labels + label]`` is zero where a token cannot have one; empty where all can."""
    if not len(masks):
        return
    for t in range(first, last):
        for k in range(n_labels):
            if not masks[t * n_labels + k]:
                scores[(t - first) * width + k] = -np.inf


@kernel
def add_posteriors(tokens, first, last, width, posteriors, scale, row_counts, pair_counts):
    """Add ``scale`` times the posteriors of tokens (laid out as their scores) to the counts of their features."""
    if scale != 1.0:
        for i in range((last - first) * width):
            posteriors[i] *= scale
    for t in range(first, last):
        at = (t - first) * width
        start, stop = tokens.row_offsets[t], tokens.row_offsets[t + 1]
        if len(tokens.row_values):
            for r in range(start, stop):
                base = np.int64(tokens.rows[r]) * width
                for k in range(0, width, BLOCK):
                    add_block(row_counts, base + k, tokens.row_values[r], posteriors, at + k)
        else:
            for k in range(0, width, BLOCK):
                add_to_rows_block(row_counts, k, width, tokens.rows, start, stop, posteriors, at + k)
        start, stop = tokens.pair_offsets[t], tokens.pair_offsets[t + 1]
        if len(tokens.pair_values):
            for r in range(start, stop):
                pair_counts[tokens.pair_weight[r]] += tokens.pair_values[r] * posteriors[at + tokens.pair_label[r]]
        else:
            for r in range(start, stop):
                pair_counts[tokens.pair_weight[r]] += posteriors[at + tokens.pair_label[r]]


@kernel
def edge_scores(edges, first, last, width, transitions, edge_weights, moves):
    """Write the log transitions of the steps between tokens ``first`` to ``last``; ``transitions`` are those common to
    all."""
    cells = width * width
    for t in range(first + 1, last):
        at = (t - first - 1) * cells
        for c in range(cells):
            moves[at + c] = transitions[c]
        for r in range(edges.offsets[t], edges.offsets[t + 1]):
            value = edges.values[r] if len(edges.values) else 1.0
            moves[at + edges.cell[r]] += value * edge_weights[edges.weight[r]]


@kernel
def edge_potentials(edges, first, last, width, transitions, edge_weights, scale, sums, moves):
    """The same as potentials: ``transitions`` are potentials, and edges' weights count ``scale`` times.

    ``sums`` is scratch of ``width * width`` zeros. A potential that would be tiny or huge beside its transition is nan.
    """
    cells = width * width
    for t in range(first + 1, last):
        at = (t - first - 1) * cells
        for c in range(cells):
            moves[at + c] = transitions[c]
        for r in range(edges.offsets[t], edges.offsets[t + 1]):
            value = edges.values[r] if len(edges.values) else 1.0
            sums[edges.cell[r]] += value * edge_weights[edges.weight[r]]
        for r in range(edges.offsets[t], edges.offsets[t + 1]):
            c = edges.cell[r]
            if sums[c] != 0.0:
                factor = math.exp(scale * sums[c])
                if moves[at + c] > 0.0:
                    moves[at + c] *= factor if factor > TINY and factor < 1.0 / TINY else np.nan
                sums[c] = 0.0


@kernel
def step_posteriors(n, n_labels, width, forward, incoming, moves, transition_counts):
    """Turn the potentials of the steps between ``n`` tokens into posteriors, and add them to the counts of transitions.

    They are the products of ``forward``, ``moves`` and ``incoming``, which carries the weight of the sequence.
    """
    cells = width * width
    for i in range(1, n):
        at = (i - 1) * cells
        for k in range(n_labels):
            p = forward[(i - 1) * width + k]
            for j in range(width):
                c = k * width + j
                moves[at + c] *= p * incoming[i * width + j]
                transition_counts[c] += moves[at + c]


@kernel
def add_edges(edges, first, last, width, moves, edge_counts):
    """Add the posteriors of the steps between tokens to the counts of edges' weights."""
    for t in range(first + 1, last):
        at = (t - first - 1) * width * width
        for r in range(edges.offsets[t], edges.offsets[t + 1]):
            value = edges.values[r] if len(edges.values) else 1.0
            edge_counts[edges.weight[r]] += value * moves[at + edges.cell[r]]
