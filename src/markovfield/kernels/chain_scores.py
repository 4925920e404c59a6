"""Scores of the labels of tokens from sparse attributes, and the way back: posteriors added up in a gradient.

An attribute that speaks for several labels has a *row*, one weight for each label and padding, so that adding it is one
vector operation. A rare attribute speaks for one or two labels: each token that has it lists *pairs* of a weight and a
label instead. Which attribute is of which sort is decided when features are laid out.

A `Tokens` bundle holds, for token t, ``rows[row_offsets[t]:row_offsets[t + 1]]`` and the pairs
``pair_weight``, ``pair_label`` at ``pair_offsets[t]:pair_offsets[t + 1]``; ``row_values`` and ``pair_values`` are empty
where every attribute has the value one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from markovfield.kernels._flags import kernel
from markovfield.kernels.vector_blocks import BLOCK, add_block, add_rows_block

__all__ = ["Tokens", "add_posteriors", "label_scores", "mask_scores"]


class Tokens(NamedTuple):
    """References of tokens to rows and to pairs, flat."""

    row_offsets: np.ndarray
    rows: np.ndarray
    row_values: np.ndarray
    pair_offsets: np.ndarray
    pair_weight: np.ndarray
    pair_label: np.ndarray
    pair_values: np.ndarray


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
        for r in range(start, stop):
            base = np.int64(tokens.rows[r]) * width
            value = tokens.row_values[r] if len(tokens.row_values) else 1.0
            for k in range(0, width, BLOCK):
                add_block(row_counts, base + k, value, posteriors, at + k)
        start, stop = tokens.pair_offsets[t], tokens.pair_offsets[t + 1]
        if len(tokens.pair_values):
            for r in range(start, stop):
                pair_counts[tokens.pair_weight[r]] += tokens.pair_values[r] * posteriors[at + tokens.pair_label[r]]
        else:
            for r in range(start, stop):
                pair_counts[tokens.pair_weight[r]] += posteriors[at + tokens.pair_label[r]]
