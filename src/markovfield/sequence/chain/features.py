"""The features of a linear-chain CRF: what has a weight, where weights lie, and what tokens refer to."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.kernels.simd import BLOCK
from markovfield.sequence.chain.blocks_kernel import aligned
from markovfield.sequence.chain.layout_kernel import count_references, fill_references
from markovfield.sequence.chain.scores_kernel import NO_EDGES, Edges, Tokens
from markovfield.sequence.text.sequences import SequenceData

__all__ = ["ChainFeatures", "ChainWeights", "Encoded", "padded"]

# Tokens of a task: enough to pay for a thread, few enough to stay interruptible.
TASK_TOKENS = 2**14
# Training cuts sequences into shards of about this many references each, but at most so many: every shard adds up a
# gradient of its own. Neither number depends on the threads, so neither do sums.
SHARD_REFERENCES, MOST_SHARDS = 2**16, 4
# Labels of references are kept in two bytes.
MOST_LABELS = 2**15 - 1
_NONE = np.zeros(0)
_NO_MASKS = np.zeros(0, np.uint8)


def padded(n_labels: int) -> int:
    """Labels and padding: a multiple of `BLOCK`."""
    return -(-n_labels // BLOCK) * BLOCK


@dataclass(frozen=True, eq=False)
class Encoded:
    """Sequences ready for the kernels.

    Attributes
    ----------
    masks
        ``uint8[n_tokens * n_labels]``, zero where a token cannot have a label; empty where every label is possible.
    edges
        What the steps between tokens refer to.
    """

    tokens: Tokens
    offsets: IntArray
    masks: npt.NDArray[np.uint8] = field(default_factory=lambda: _NO_MASKS)
    edges: Edges = NO_EDGES

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        """How many tokens there are in all sequences."""
        return int(self.offsets[-1])

    def longest(self, first: int, last: int) -> int:
        """Tokens of the longest of some sequences."""
        return int(np.diff(self.offsets[first : last + 1]).max(initial=0))

    def tasks(self) -> list[tuple[int, int]]:
        """Ranges of sequences, of about `TASK_TOKENS` tokens each."""
        n = -(-self.n_tokens // TASK_TOKENS)
        if n <= 1:
            return [(0, self.n_sequences)]
        cuts = np.searchsorted(self.offsets, np.linspace(0, self.n_tokens, n + 1)[1:-1])
        return list(pairwise(np.unique([0, *cuts.tolist(), self.n_sequences]).tolist()))

    def shards(self) -> list[int]:
        """Borders of ranges of sequences, each with a part of the references of its own."""
        references = self.tokens.row_offsets[self.offsets] + self.tokens.pair_offsets[self.offsets]
        n = int(min(MOST_SHARDS, max(1, references[-1] // SHARD_REFERENCES))) if self.n_sequences else 1
        cuts = np.searchsorted(references, np.linspace(0, references[-1], n + 1)[1:-1])
        return [0, *cuts.tolist(), self.n_sequences]


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
    edges
        ``float64``, one for each edge feature.
    triples
        ``float64[width, width, width]``, entry [i, j, k] for label k after j after i, without the weight of the
        transition from j to k; empty in a chain of first order.
    """

    rows: FloatArray
    pairs: FloatArray
    transitions: FloatArray
    edges: FloatArray
    triples: FloatArray


@dataclass(frozen=True, eq=False)
class ChainFeatures:
    """Which features there are, and the way between a vector of weights and the layout of the kernels.

    The vector holds the features of rows, then those of pairs, transitions, edges and triples.

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
    edge_start, edge_cell
        ``int64[n_edge_attributes + 1]`` and ``int32``: the transitions that each attribute of edges has weights for.
    triple_cells
        ``int64``: cell ``(i * width + j) * width + k`` of each triple of labels that has a weight.
    order
        2 where triples of labels count, else 1.
    """

    n_labels: int
    width: int
    row_of: npt.NDArray[np.int32]
    n_rows: int
    row_cells: IntArray
    pair_start: IntArray
    pair_label: npt.NDArray[np.int32]
    transition_cells: IntArray
    edge_start: IntArray = field(default_factory=lambda: np.zeros(1, np.int64))
    edge_cell: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    triple_cells: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    order: int = 1

    @property
    def n_state_features(self) -> int:
        """Pairs of an attribute and a label that have a weight."""
        return len(self.row_cells) + len(self.pair_label)

    @property
    def n_edge_attributes(self) -> int:
        """Attributes of edges."""
        return len(self.edge_start) - 1

    @property
    def borders(self) -> list[int]:
        """Where in the vector the pairs, transitions, edges and triples start, and its length."""
        parts = (self.row_cells, self.pair_label, self.transition_cells, self.edge_cell, self.triple_cells)
        return np.cumsum([len(part) for part in parts]).tolist()

    @property
    def n_features(self) -> int:
        """Length of the vector of weights."""
        return self.borders[-1]

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

    def edges_of(self) -> tuple[IntArray, IntArray, IntArray]:
        """The attribute and the labels before and after of each edge feature."""
        attributes = np.repeat(np.arange(self.n_edge_attributes), np.diff(self.edge_start))
        cells = self.edge_cell.astype(np.int64)
        return attributes, cells // self.width, cells % self.width

    def triples_of(self) -> tuple[IntArray, IntArray, IntArray]:
        """The three labels of each triple."""
        pairs = self.triple_cells // self.width
        return pairs // self.width, pairs % self.width, self.triple_cells % self.width

    def encode(
        self, data: SequenceData, edges: SequenceData | None = None, masks: npt.NDArray[np.uint8] = _NO_MASKS
    ) -> Encoded:
        """What each token of some data refers to; attributes without features are dropped."""
        if self.n_labels > MOST_LABELS:
            raise ModelError(f"a chain takes up to {MOST_LABELS} labels (or hidden states), got {self.n_labels}")
        row_offsets, pair_offsets = np.zeros(data.n_tokens + 1, np.int64), np.zeros(data.n_tokens + 1, np.int64)
        attributes = np.ascontiguousarray(data.attributes, np.int32)
        token_offsets = np.ascontiguousarray(data.token_offsets, np.int64)
        count_references(token_offsets, attributes, self.row_of, self.pair_start, row_offsets, pair_offsets)
        rows = np.empty(int(row_offsets[-1]), np.int32)
        pair_weight, pair_label = np.empty(int(pair_offsets[-1]), np.int32), np.empty(int(pair_offsets[-1]), np.int16)
        values = _NONE if data.values is None else np.ascontiguousarray(data.values, np.float64)
        row_values = np.empty(len(rows)) if len(values) else _NONE
        pair_values = np.empty(len(pair_weight)) if len(values) else _NONE
        fill_references(
            token_offsets, attributes, values, self.row_of, self.pair_start, self.pair_label, row_offsets, rows,
            row_values, pair_offsets, pair_weight, pair_label, pair_values,
        )  # fmt: skip
        tokens = Tokens(row_offsets, rows, row_values, pair_offsets, pair_weight, pair_label, pair_values)
        return Encoded(tokens, data.sequence_offsets, masks, self._encode_edges(data, edges))

    def _encode_edges(self, data: SequenceData, edges: SequenceData | None) -> Edges:
        if edges is None:
            return NO_EDGES
        if not np.array_equal(edges.sequence_offsets, data.sequence_offsets):
            raise ModelError("edges need the same sequences and lengths as X, a token's entry being the step to it")
        n = data.n_tokens
        offsets, none = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        attributes = np.ascontiguousarray(edges.attributes, np.int32)
        token_offsets = np.ascontiguousarray(edges.token_offsets, np.int64)
        values = _NONE if edges.values is None else np.ascontiguousarray(edges.values, np.float64)
        no_rows = np.full(self.n_edge_attributes, -1, np.int32)
        count_references(token_offsets, attributes, no_rows, self.edge_start, none, offsets)
        weight, cell = np.empty(int(offsets[-1]), np.int32), np.empty(int(offsets[-1]), np.int32)
        own = np.empty(len(weight)) if len(values) else _NONE
        nothing = np.zeros(0, np.int32)
        fill_references(
            token_offsets, attributes, values, no_rows, self.edge_start, self.edge_cell, none, nothing, _NONE, offsets,
            weight, cell, own,
        )  # fmt: skip
        return Edges(offsets, weight, cell, own)

    def unpack(self, weights: FloatArray) -> ChainWeights:
        """A vector of weights laid out for the kernels."""
        a, b, c, d, _ = self.borders
        k = self.n_labels
        rows = aligned(self.n_rows * self.width)
        rows[self.row_cells] = weights[:a]
        transitions = np.full((self.width, self.width), -np.inf)
        transitions[:k, :k] = 0.0
        transitions.ravel()[self.transition_cells] = weights[b:c]
        triples = np.zeros((0, 0, 0))
        if self.order == 2:
            triples = np.full((self.width, self.width, self.width), -np.inf)
            triples[:k, :k, :k] = 0.0
            triples.ravel()[self.triple_cells] = weights[d:]
        pairs, edges = (np.ascontiguousarray(part) for part in (weights[a:b], weights[c:d]))
        return ChainWeights(rows, pairs, transitions, edges, triples)

    def pack(
        self, rows: FloatArray, pairs: FloatArray, transitions: FloatArray, edges: FloatArray, triples: FloatArray
    ) -> FloatArray:
        """Counts or gradients in the layout of the kernels, each flat, as a vector."""
        return np.concatenate(
            [rows[self.row_cells], pairs, transitions[self.transition_cells], edges, triples[self.triple_cells]]
        )
