"""Attributes, the labels they were seen with, and what tokens refer to, against dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from markovfield.sequence.chain.layout_kernel import (
    count_references,
    fill_references,
    references_by_attribute,
    tally_labels,
)

EMPTY = np.zeros(0)


def tokens(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, 30)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return offsets, rng.integers(0, 8, sizes.sum()).astype(np.int32), rng.normal(size=sizes.sum())


@pytest.mark.parametrize("with_values", [False, True])
def test_references_sorted_by_attribute(with_values: bool):
    at, attributes, values = tokens(0)
    offsets, token_of = np.zeros(9, np.int64), np.empty(len(attributes), np.int32)
    value_of = np.empty(len(attributes)) if with_values else EMPTY
    references_by_attribute(at, attributes, values, 8, offsets, token_of, value_of)
    token = np.repeat(np.arange(30), np.diff(at))
    for a in range(8):
        own = slice(offsets[a], offsets[a + 1])
        assert token_of[own].tolist() == token[attributes == a].tolist()
        if with_values:
            assert value_of[own].tolist() == values[attributes == a].tolist()


@pytest.mark.parametrize("weighted", [False, True])
def test_labels_seen_with_an_attribute(weighted: bool):
    at, attributes, values = tokens(1)
    rng = np.random.default_rng(5)
    labels = rng.integers(-1, 3, 30).astype(np.int32)
    weights = rng.random(30) if weighted else EMPTY
    offsets, token_of, value_of = np.zeros(9, np.int64), np.empty(len(attributes), np.int32), np.empty(len(attributes))
    references_by_attribute(at, attributes, values, 8, offsets, token_of, value_of)
    features = np.zeros(9, np.int64)
    none = np.zeros(0, np.int32)
    tally_labels(offsets, token_of, value_of, labels, weights, 3, features, none, EMPTY, none)
    label_of, counts, seen = (np.empty(features[-1], t) for t in (np.int32, np.float64, np.int32))
    tally_labels(offsets, token_of, value_of, labels, weights, 3, features, label_of, counts, seen)
    token = np.repeat(np.arange(30), np.diff(at))
    times: Counter = Counter()
    totals: Counter = Counter()
    for a, t, x in zip(attributes.tolist(), token.tolist(), values, strict=True):
        if labels[t] >= 0:
            times[a, int(labels[t])] += 1
            totals[a, int(labels[t])] += x * (weights[t] if weighted else 1.0)
    attribute = np.repeat(np.arange(8), np.diff(features))
    pairs = list(zip(attribute.tolist(), label_of.tolist(), strict=True))
    assert pairs == sorted(times)
    assert seen.tolist() == [times[p] for p in pairs]
    np.testing.assert_allclose(counts, [totals[p] for p in pairs], atol=1e-12)


def test_tokens_refer_to_rows_and_pairs():
    """Attributes 0 and 2 have a row, attribute 1 three pairs; -1 and 3 are unknown."""
    at = np.array([0, 3, 3, 6], np.int64)
    attributes = np.array([0, 1, -1, 3, 2, 1], np.int32)
    values = np.arange(6.0)
    row_of, pair_start = np.array([5, -1, 6], np.int32), np.array([0, 0, 3, 3], np.int64)
    labels_of_pairs = np.array([2, 0, 1], np.int32)
    row_offsets, pair_offsets = np.zeros(4, np.int64), np.zeros(4, np.int64)
    count_references(at, attributes, row_of, pair_start, row_offsets, pair_offsets)
    assert row_offsets.tolist() == [0, 1, 1, 2] and pair_offsets.tolist() == [0, 3, 3, 6]
    rows, row_values = np.empty(2, np.int32), np.empty(2)
    weight, label, pair_values = np.empty(6, np.int64), np.empty(6, np.int32), np.empty(6)
    fill_references(
        at, attributes, values, row_of, pair_start, labels_of_pairs, row_offsets, rows, row_values, pair_offsets,
        weight, label, pair_values,
    )  # fmt: skip
    assert rows.tolist() == [5, 6] and row_values.tolist() == [0.0, 4.0]
    assert weight.tolist() == [0, 1, 2] * 2 and label.tolist() == [2, 0, 1] * 2
    assert pair_values.tolist() == [1.0] * 3 + [5.0] * 3
