"""The features of a linear-chain CRF: pairs of an attribute and a label, transitions, and where their weights lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.kernels.chain_layout import (
    count_references,
    fill_references,
    references_by_attribute,
    tally_labels,
)
from markovfield.kernels.chain_scores import Tokens
from markovfield.kernels.vector_blocks import BLOCK
from markovfield.structured.sequences import SequenceData

__all__ = ["ChainFeatures", "ChainWeights", "observed_features"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_NONE = np.zeros(0)


def padded(n_labels: int) -> int:
    """Labels and padding: a multiple of `BLOCK`."""
    return -(-n_labels // BLOCK) * BLOCK


@dataclass(frozen=True, eq=False)
class ChainWeights:
    """Weights laid out for the kernels.

    Attributes
    ----------
    rows
        ``float64[n_rows * width]``; zero where a row has no feature.
    pairs
        ``float64[n_pairs]``.
    transitions
        ``float64[width, width]``, entry [i, j] for label j after label i; -inf in the padding.
    """

    rows: FloatArray
    pairs: FloatArray
    transitions: FloatArray


@dataclass(frozen=True, eq=False)
class ChainFeatures:
    """Which features there are, and the way between a vector of weights and the layout of the kernels.

    The vector holds the features of rows, then those of pairs, then transitions.

    Attributes
    ----------
    row_of
        ``int32[n_attributes]``: the row of an attribute with many labels, or -1.
    row_cells
        ``int64``: cell ``row * width + label`` of each feature of a row.
    pair_start, pair_label
        ``int64[n_attributes + 1]`` and ``int32``: the pairs of every other attribute.
    transition_cells
        ``int64``: cell ``i * width + j`` of each transition that has a weight.
    """

    n_labels: int
    width: int
    row_of: npt.NDArray[np.int32]
    n_rows: int
    row_cells: IntArray
    pair_start: IntArray
    pair_label: npt.NDArray[np.int32]
    transition_cells: IntArray

    @property
    def n_state_features(self) -> int:
        """Pairs of an attribute and a label that have a weight."""
        return len(self.row_cells) + len(self.pair_label)

    @property
    def n_features(self) -> int:
        """Length of the vector of weights."""
        return self.n_state_features + len(self.transition_cells)

    def attributes_and_labels(self) -> tuple[IntArray, IntArray]:
        """The attribute and the label behind each state feature, in the order of the vector."""
        attribute_of_row = np.empty(self.n_rows, np.int64)
        known = np.flatnonzero(self.row_of >= 0)
        attribute_of_row[self.row_of[known]] = known
        pairs = np.repeat(np.arange(len(self.pair_start) - 1), np.diff(self.pair_start))
        attributes = np.concatenate([attribute_of_row[self.row_cells // self.width], pairs])
        return attributes, np.concatenate([self.row_cells % self.width, self.pair_label])

    def transitions_of(self) -> tuple[IntArray, IntArray]:
        """The labels before and after of each transition feature."""
        return self.transition_cells // self.width, self.transition_cells % self.width

    def encode(self, data: SequenceData) -> Tokens:
        """What each token of some data refers to; attributes without features are dropped."""
        row_offsets, pair_offsets = np.zeros(data.n_tokens + 1, np.int64), np.zeros(data.n_tokens + 1, np.int64)
        attributes = np.ascontiguousarray(data.attributes, np.int32)
        token_offsets = np.ascontiguousarray(data.token_offsets, np.int64)
        count_references(token_offsets, attributes, self.row_of, self.pair_start, row_offsets, pair_offsets)
        rows = np.empty(int(row_offsets[-1]), np.int32)
        pair_weight, pair_label = np.empty(int(pair_offsets[-1]), np.int32), np.empty(int(pair_offsets[-1]), np.int32)
        values = _NONE if data.values is None else np.ascontiguousarray(data.values, np.float64)
        row_values = np.empty(len(rows)) if len(values) else _NONE
        pair_values = np.empty(len(pair_weight)) if len(values) else _NONE
        fill_references(
            token_offsets, attributes, values, self.row_of, self.pair_start, self.pair_label, row_offsets, rows,
            row_values, pair_offsets, pair_weight, pair_label, pair_values,
        )  # fmt: skip
        return Tokens(row_offsets, rows, row_values, pair_offsets, pair_weight, pair_label, pair_values)

    def unpack(self, weights: FloatArray) -> ChainWeights:
        """A vector of weights laid out for the kernels."""
        n, m = len(self.row_cells), self.n_state_features
        rows = np.zeros(self.n_rows * self.width)
        rows[self.row_cells] = weights[:n]
        transitions = np.full((self.width, self.width), -np.inf)
        transitions[: self.n_labels, : self.n_labels] = 0.0
        transitions.ravel()[self.transition_cells] = weights[m:]
        return ChainWeights(rows, np.ascontiguousarray(weights[n:m]), transitions)

    def pack(self, rows: FloatArray, pairs: FloatArray, transitions: FloatArray) -> FloatArray:
        """Counts or gradients in the layout of the kernels as a vector."""
        return np.concatenate([rows[self.row_cells], pairs, transitions.ravel()[self.transition_cells]])


def _laid_out(
    n_labels: int, offsets: IntArray, labels: npt.NDArray[np.int32], frequency: IntArray, transitions: IntArray
) -> tuple[ChainFeatures, IntArray]:
    """Features from the labels of each attribute; also the order that brings the features to that of the vector.

    A row is worth its padding where an attribute has several labels: adding it costs about as much as three pairs for
    every thirty labels. Frequent attributes come first, to share the cache.
    """
    width = padded(n_labels)
    counts = np.diff(offsets)
    enough = max(3, width // 10)
    with_rows = np.flatnonzero(counts >= enough)
    with_rows = with_rows[np.argsort(-frequency[with_rows], kind="stable")]
    row_of = np.full(len(counts), -1, np.int32)
    row_of[with_rows] = np.arange(len(with_rows))
    attribute = np.repeat(np.arange(len(counts)), counts)
    in_row = row_of[attribute] >= 0
    cells = row_of[attribute[in_row]].astype(np.int64) * width + labels[in_row]
    by_cell = np.argsort(cells, kind="stable")
    order = np.concatenate([np.flatnonzero(in_row)[by_cell], np.flatnonzero(~in_row)])
    pair_start = np.concatenate([[0], np.cumsum(np.where(row_of >= 0, 0, counts))]).astype(np.int64)
    before, after = transitions // n_labels, transitions % n_labels
    features = ChainFeatures(
        n_labels,
        width,
        row_of,
        len(with_rows),
        cells[by_cell],
        pair_start,
        labels[~in_row].astype(np.int32),
        before * width + after,
    )
    return features, order


def observed_features(
    data: SequenceData,
    labels: npt.NDArray[np.int32],
    n_labels: int,
    *,
    token_weights: FloatArray | None = None,
    min_count: int = 1,
    all_states: bool = False,
    all_transitions: bool = False,
) -> tuple[ChainFeatures, FloatArray]:
    """The features seen in labelled data, and their empirical counts (Murphy 19.41) in the order of the vector.

    Parameters
    ----------
    labels
        ``int32[n_tokens]``; -1 where a token's label is not known, which counts nothing.
    token_weights
        ``float64[n_tokens]``; a transition weighs as the token it leads to.
    min_count
        A pair of an attribute and a label seen in fewer tokens gets no weight.
    all_states, all_transitions
        Also give weights to pairs, or transitions, that were never seen.
    """
    if len(labels) != data.n_tokens:
        raise ModelError(f"{data.n_tokens} tokens need as many labels, got {len(labels)}")
    weights = _NONE if token_weights is None else np.ascontiguousarray(token_weights, np.float64)
    offsets = np.zeros(data.n_attributes + 1, np.int64)
    attributes = np.ascontiguousarray(data.attributes, np.int32)
    values = _NONE if data.values is None else np.ascontiguousarray(data.values, np.float64)
    token_of = np.empty(len(attributes), np.int32)
    value_of = np.empty(len(values))
    references_by_attribute(data.token_offsets, attributes, values, data.n_attributes, offsets, token_of, value_of)
    labels = np.ascontiguousarray(labels, np.int32)
    feature_offsets = np.zeros(data.n_attributes + 1, np.int64)
    nothing: tuple[Any, ...] = (np.zeros(0, np.int32), _NONE, np.zeros(0, np.int64))
    tally = (offsets, token_of, value_of, labels, weights, n_labels, feature_offsets)
    tally_labels(*tally, *nothing)
    n = int(feature_offsets[-1])
    label_of, counts, seen = np.empty(n, np.int32), np.empty(n), np.empty(n, np.int64)
    if n:
        tally_labels(*tally, label_of, counts, seen)
    if min_count > 1:
        keep = seen >= min_count
        attribute = np.repeat(np.arange(data.n_attributes), np.diff(feature_offsets))[keep]
        label_of, counts = label_of[keep], counts[keep]
        feature_offsets = np.concatenate([[0], np.cumsum(np.bincount(attribute, minlength=data.n_attributes))])
    if all_states:
        full = np.zeros((data.n_attributes, n_labels))
        full[np.repeat(np.arange(data.n_attributes), np.diff(feature_offsets)), label_of] = counts
        counts = full.ravel()
        label_of = np.tile(np.arange(n_labels, dtype=np.int32), data.n_attributes)
        feature_offsets = np.arange(data.n_attributes + 1) * n_labels
    cells, moves = _moves(data, labels, n_labels, weights, all_transitions)
    features, order = _laid_out(n_labels, feature_offsets.astype(np.int64), label_of, np.diff(offsets), cells)
    return features, np.concatenate([counts[order], moves])


def _moves(
    data: SequenceData, labels: npt.NDArray[np.int32], n_labels: int, weights: FloatArray, everything: bool
) -> tuple[IntArray, FloatArray]:
    """Transitions seen between neighbouring tokens, as ``i * n_labels + j``, and how often."""
    second = np.ones(data.n_tokens, np.bool_)
    second[data.sequence_offsets[:-1][np.diff(data.sequence_offsets) > 0]] = False
    at = np.flatnonzero(second)
    at = at[(labels[at] >= 0) & (labels[at - 1] >= 0)]
    key = labels[at - 1].astype(np.int64) * n_labels + labels[at]
    times = np.bincount(key, minlength=n_labels**2)
    totals = np.bincount(key, weights[at] if len(weights) else None, n_labels**2).astype(np.float64)
    cells = np.arange(n_labels**2) if everything else np.flatnonzero(times)
    return cells, totals[cells]
