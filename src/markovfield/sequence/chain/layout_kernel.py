"""Which attribute goes with which label, and what each token refers to.

Invariant: references are in compressed rows by token (``token_offsets``) or by attribute (``offsets``), and empty value
arrays mean ones. `tally_labels` and `count_references` size what a second call fills.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["count_references", "fill_references", "references_by_attribute", "tally_labels"]


@kernel
def references_by_attribute(token_offsets, attributes, values, n_attributes, offsets, token_of, value_of):
    """References sorted by attribute (a counting sort): ``offsets[a]`` to ``offsets[a + 1]`` are those of attribute a.

    ``value_of`` may be empty, where every value is one.
    """
    for r in range(len(attributes)):
        offsets[attributes[r] + 1] += 1
    for a in range(n_attributes):
        offsets[a + 1] += offsets[a]
    at = offsets.copy()
    for t in range(len(token_offsets) - 1):
        for r in range(token_offsets[t], token_offsets[t + 1]):
            a = attributes[r]
            token_of[at[a]] = t
            if len(value_of):
                value_of[at[a]] = values[r]
            at[a] += 1


@kernel
def tally_labels(offsets, token_of, value_of, labels, token_weights, n_labels, feature_offsets, label_of, counts, seen):
    """For every attribute, the labels it was seen with, in rising order, how often, and with what total value.

    Called twice: with an empty ``label_of`` it only fills ``feature_offsets``. A label of -1 is not counted.
    ``token_weights`` may be empty.
    """
    n_attributes = len(offsets) - 1
    times = np.zeros(n_labels, np.int64)
    total = np.zeros(n_labels)
    for a in range(n_attributes):
        for i in range(offsets[a], offsets[a + 1]):
            k = labels[token_of[i]]
            if k >= 0:
                times[k] += 1
                value = value_of[i] if len(value_of) else 1.0
                total[k] += value * (token_weights[token_of[i]] if len(token_weights) else 1.0)
        at = feature_offsets[a]
        for k in range(n_labels):
            if times[k]:
                if len(label_of):
                    label_of[at] = k
                    counts[at] = total[k]
                    seen[at] = times[k]
                at += 1
                times[k] = 0
                total[k] = 0.0
        if not len(label_of):
            feature_offsets[a + 1] = at


@kernel
def count_references(token_offsets, attributes, row_of, pair_start, row_offsets, pair_offsets):
    """How many rows and pairs each token refers to, added up from the first; unknown attributes have neither."""
    known = len(row_of)
    for t in range(len(token_offsets) - 1):
        rows, pairs = 0, 0
        for r in range(token_offsets[t], token_offsets[t + 1]):
            a = attributes[r]
            if a < 0 or a >= known:
                continue
            if row_of[a] >= 0:
                rows += 1
            else:
                pairs += pair_start[a + 1] - pair_start[a]
        row_offsets[t + 1] = row_offsets[t] + rows
        pair_offsets[t + 1] = pair_offsets[t] + pairs


@kernel
def fill_references(
    token_offsets, attributes, values, row_of, pair_start, labels_of_pairs, row_offsets, rows, row_values, pair_offsets,
    pair_weight, pair_label, pair_values,
):  # fmt: skip
    """The references themselves, counted by `count_references`."""
    known = len(row_of)
    for t in range(len(token_offsets) - 1):
        i, j = row_offsets[t], pair_offsets[t]
        for r in range(token_offsets[t], token_offsets[t + 1]):
            a = attributes[r]
            if a < 0 or a >= known:
                continue
            if row_of[a] >= 0:
                rows[i] = row_of[a]
                if len(row_values):
                    row_values[i] = values[r]
                i += 1
            else:
                for p in range(pair_start[a], pair_start[a + 1]):
                    pair_weight[j] = p
                    pair_label[j] = labels_of_pairs[p]
                    if len(pair_values):
                        pair_values[j] = values[r]
                    j += 1
