"""The features that labelled sequences show, and how often.

A feature has a *code*, one number: ``attribute * n + label`` for a pair of an attribute and one of n labels, ``i * n +
j`` for a transition, ``(attribute * n + i) * n + j`` for an edge, ``(i * n + j) * n + k`` for a triple of labels. Sets
of features are sorted vectors of codes, so that they join and compare without names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.kernels.simd import BLOCK
from markovfield.sequence.chain.features import ChainFeatures, padded
from markovfield.sequence.chain.layout_kernel import references_by_attribute, tally_labels
from markovfield.sequence.text.sequences import SequenceData

__all__ = ["FeatureSet", "observed_features", "seen_features"]

LabelArray = npt.NDArray[np.int32]
Counted = tuple[IntArray, FloatArray]
# Additions of pairs, for each block of a row, that make an attribute frequent: measured on chunking.
OFTEN = 16
_NONE = np.zeros(0)
_NOTHING: Counted = (np.zeros(0, np.int64), _NONE)


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """Codes of features in rising order, each kind with a number (a count or a weight) for each.

    Attributes
    ----------
    frequency
        ``int64[n_attributes]``: references to each attribute.
    """

    n_labels: int
    n_attributes: int
    n_edge_attributes: int
    states: Counted
    transitions: Counted
    edges: Counted
    triples: Counted
    order: int
    frequency: IntArray

    @classmethod
    def of(cls, features: ChainFeatures, values: FloatArray) -> FeatureSet:
        """The features of a layout, with a vector of numbers such as their weights."""
        a, b, c, d = features.borders[1], features.borders[2], features.borders[3], features.borders[4]
        n = features.n_labels

        def coded(parts: tuple[IntArray, ...], own: FloatArray) -> Counted:
            code = np.zeros(len(own), np.int64)
            for part in parts:
                code = code * n + part
            order = np.argsort(code, kind="stable")
            return code[order], own[order]

        return cls(
            n_labels=n,
            n_attributes=len(features.row_of),
            n_edge_attributes=features.n_edge_attributes,
            states=coded(features.attributes_and_labels(), values[:a]),
            transitions=coded(features.transitions_of(), values[a:b]),
            edges=coded(features.edges_of(), values[b:c]),
            triples=coded(features.triples_of(), values[c:d]),
            order=features.order,
            frequency=np.zeros(len(features.row_of), np.int64),
        )

    def relabelled(self, places: IntArray, n_labels: int) -> FeatureSet:
        """The same features when label k has become ``places[k]`` of ``n_labels``."""

        def moved(counted: Counted, n: int) -> Counted:
            left, code = counted[0], np.zeros(len(counted[0]), np.int64)
            for place in range(n):
                code += places[left % self.n_labels] * n_labels**place
                left = left // self.n_labels
            code += left * n_labels**n
            order = np.argsort(code, kind="stable")
            return code[order], counted[1][order]

        return replace(
            self,
            n_labels=n_labels,
            states=moved(self.states, 1),
            transitions=moved(self.transitions, 2),
            edges=moved(self.edges, 2),
            triples=moved(self.triples, 3),
        )

    def with_states(self, hidden: int) -> FeatureSet:
        """Every combination of the states of labels in place of the labels; their numbers become zero."""
        if hidden == 1:
            return self

        def spread(counted: Counted, n: int) -> Counted:
            base = self.n_labels
            result = (counted[0] // base**n)[:, None]
            for place in range(n - 1, -1, -1):
                state = (counted[0] // base**place % base)[:, None] * hidden + np.arange(hidden)
                result = (result[:, :, None] * (base * hidden) + state[:, None, :]).reshape(
                    len(result), hidden * result.shape[1]
                )
            return np.sort(result.ravel()), np.zeros(result.size)

        return replace(
            self,
            n_labels=self.n_labels * hidden,
            states=spread(self.states, 1),
            transitions=spread(self.transitions, 2),
            edges=spread(self.edges, 2),
            triples=spread(self.triples, 3),
        )

    def joined(self, other: FeatureSet) -> FeatureSet:
        """The features of both with the numbers of this one, zero where only the other has a feature."""
        kinds: dict[str, Any] = {}
        for kind in ("states", "transitions", "edges", "triples"):
            codes = np.union1d(getattr(self, kind)[0], getattr(other, kind)[0])
            kinds[kind] = (codes, _looked_up(codes, getattr(self, kind)))
        n = max(self.n_attributes, other.n_attributes)
        frequency = np.zeros(n, np.int64)
        frequency[: self.n_attributes] += self.frequency
        edges = max(self.n_edge_attributes, other.n_edge_attributes)
        return replace(self, n_attributes=n, n_edge_attributes=edges, frequency=frequency, **kinds)

    def with_values(self, other: FeatureSet) -> FeatureSet:
        """The same features with the numbers of another set, zero where it has none."""
        kinds: dict[str, Any] = {
            kind: (getattr(self, kind)[0], _looked_up(getattr(self, kind)[0], getattr(other, kind)))
            for kind in ("states", "transitions", "edges", "triples")
        }
        return replace(self, **kinds)

    def nonzero(self) -> FeatureSet:
        """The features whose number is not zero."""
        kinds: dict[str, Any] = {}
        for kind in ("states", "transitions", "edges", "triples"):
            codes, values = getattr(self, kind)
            kinds[kind] = (codes[values != 0], values[values != 0])
        return replace(self, **kinds)

    def without_attributes(self) -> tuple[FeatureSet, IntArray]:
        """The same without attributes that have no feature, and which attributes are left, in their order."""
        used, place = np.unique(self.states[0] // self.n_labels, return_inverse=True)
        codes = place.astype(np.int64) * self.n_labels + self.states[0] % self.n_labels
        return (
            replace(self, n_attributes=len(used), states=(codes, self.states[1]), frequency=self.frequency[used]),
            used,
        )

    def with_layout(self) -> tuple[ChainFeatures, FloatArray]:
        """The layout of these features, and their numbers in the order of its vector.

        A pair costs as much as four blocks of a row whose numbers are at hand, and as one that has to be fetched. So an
        attribute gets a row where it has more labels than a row has blocks, and, where it comes often enough for its
        row to stay at hand, already where it has a quarter as many. Frequent attributes come first, to share the cache.
        """
        n, width = self.n_labels, padded(self.n_labels)
        attribute, label = self.states[0] // n, (self.states[0] % n).astype(np.int32)
        counts = np.bincount(attribute, minlength=self.n_attributes)
        blocks = width // BLOCK
        often = (4 * counts > blocks) & (self.frequency * counts >= OFTEN * blocks)
        with_rows = np.flatnonzero((counts > blocks) | often)
        with_rows = with_rows[np.argsort(-self.frequency[with_rows], kind="stable")]
        row_of = np.full(self.n_attributes, -1, np.int32)
        row_of[with_rows] = np.arange(len(with_rows))
        row = row_of[attribute]
        in_row = row >= 0
        cells = row[in_row].astype(np.int64) * width + label[in_row]
        by_cell = np.argsort(cells, kind="stable")
        order = np.concatenate([np.flatnonzero(in_row)[by_cell], np.flatnonzero(~in_row)])
        edge_counts = np.bincount(self.edges[0] // n**2, minlength=self.n_edge_attributes)
        features = ChainFeatures(
            n_labels=n,
            width=width,
            row_of=row_of,
            n_rows=len(with_rows),
            row_cells=cells[by_cell],
            pair_start=offsets_of(np.where(row_of >= 0, 0, counts)),
            pair_label=label[~in_row],
            transition_cells=_cells(self.transitions[0], n, width, 2),
            edge_start=offsets_of(edge_counts),
            edge_cell=_cells(self.edges[0] % n**2, n, width, 2).astype(np.int32),
            triple_cells=_cells(self.triples[0], n, width, 3),
            order=self.order,
        )
        return features, np.concatenate([self.states[1][order], self.transitions[1], self.edges[1], self.triples[1]])


def observed_features(
    data: SequenceData, labels: LabelArray, n_labels: int, *, hidden: int = 1, **settings: Any
) -> tuple[ChainFeatures, FloatArray]:
    """The layout of the features seen in labelled data, and their empirical counts in the order of its vector.

    ``hidden`` states stand for each label, state m of label k being ``k * hidden + m``; their counts come as zero. For
    the other settings see `seen_features`.
    """
    return seen_features(data, labels, n_labels, **settings).with_states(hidden).with_layout()


def seen_features(
    data: SequenceData,
    labels: LabelArray,
    n_labels: int,
    *,
    edges: SequenceData | None = None,
    order: int = 1,
    token_weights: FloatArray | None = None,
    step_weights: FloatArray | None = None,
    min_count: int = 1,
    all_states: bool = False,
    all_transitions: bool = False,
) -> FeatureSet:
    """The features seen in labelled data, with their empirical counts (Murphy 19.41).

    Parameters
    ----------
    labels
        ``int32[n_tokens]``; -1 where a token's label is not known, which shows nothing.
    edges
        Attributes of the step to each token from the one before it.
    order
        2 for weights of triples of labels too.
    token_weights, step_weights
        ``float64[n_tokens]``: what attributes of a token count, and the step that leads to it; as much where nothing
        is said of steps. A weight of zero leaves a token out of the counts, not out of what is seen.
    min_count
        A feature of an attribute seen in fewer tokens gets no weight.
    all_states, all_transitions
        Also give weights to pairs, or transitions, that were never seen.
    """
    if len(labels) != data.n_tokens:
        raise ModelError(f"{data.n_tokens} tokens need as many labels, got {len(labels)}")
    labels = np.ascontiguousarray(labels, np.int32)
    weights = _NONE if token_weights is None else np.ascontiguousarray(token_weights, np.float64)
    moving = weights if step_weights is None else np.ascontiguousarray(step_weights, np.float64)
    states, frequency = _tally(data, labels, n_labels, weights, min_count)
    if all_states:
        codes = np.arange(data.n_attributes * n_labels)
        states = (codes, _looked_up(codes, states))
    firsts = data.sequence_offsets[:-1][np.diff(data.sequence_offsets) > 0]
    steps = _following(labels, firsts, n_labels, 2)
    on_edges = _NOTHING
    if edges is not None:
        if edges.n_tokens != data.n_tokens:
            raise ModelError(f"{data.n_tokens} tokens need as many entries of edges, got {edges.n_tokens}")
        on_edges, _ = _tally(edges, steps.astype(np.int32), n_labels**2, moving, min_count)
    triples = _NOTHING
    if order == 2:
        triples = _counted(_following(labels, firsts, n_labels, 3), n_labels**3, moving, all_transitions)
    return FeatureSet(
        n_labels=n_labels,
        n_attributes=data.n_attributes,
        n_edge_attributes=0 if edges is None else edges.n_attributes,
        states=states,
        transitions=_counted(steps, n_labels**2, moving, all_transitions),
        edges=on_edges,
        triples=triples,
        order=order,
        frequency=frequency,
    )


def _tally(
    data: SequenceData, labels: LabelArray, n_labels: int, weights: FloatArray, min_count: int
) -> tuple[Counted, IntArray]:
    """Pairs of attribute and label with their total values, and how many references each attribute has."""
    offsets = np.zeros(data.n_attributes + 1, np.int64)
    attributes = np.ascontiguousarray(data.attributes, np.int32)
    values = _NONE if data.values is None else np.ascontiguousarray(data.values, np.float64)
    token_of = np.empty(len(attributes), np.int32)
    value_of = np.empty(len(values))
    token_offsets = np.ascontiguousarray(data.token_offsets, np.int64)
    references_by_attribute(token_offsets, attributes, values, data.n_attributes, offsets, token_of, value_of)
    starts = np.zeros(data.n_attributes + 1, np.int64)
    nothing: tuple[Any, ...] = (np.zeros(0, np.int32), _NONE, np.zeros(0, np.int64))
    tally = (offsets, token_of, value_of, labels, weights, n_labels, starts)
    tally_labels(*tally, *nothing)
    n = int(starts[-1])
    label_of, counts, seen = np.empty(n, np.int32), np.empty(n), np.empty(n, np.int64)
    if n:
        tally_labels(*tally, label_of, counts, seen)
    codes = np.repeat(np.arange(data.n_attributes) * n_labels, np.diff(starts)) + label_of
    keep = slice(None) if min_count <= 1 else seen >= min_count
    return (codes[keep], counts[keep]), np.diff(offsets)


def _following(labels: LabelArray, firsts: IntArray, n_labels: int, n: int) -> IntArray:
    """For each token the last ``n`` labels as one number, first label first; -1 where there are not so many known."""
    code = labels.astype(np.int64)
    position = np.arange(len(labels)) - np.repeat(firsts, np.diff(firsts, append=len(labels)))
    known = code >= 0
    for back in range(1, n):
        before = np.concatenate([np.full(back, -1), labels[:-back]])[: len(labels)]
        code = code + before * n_labels**back
        known &= (before >= 0) & (position >= back)
    return np.where(known, code, -1)


def _counted(code: IntArray, n_codes: int, weights: FloatArray, everything: bool) -> Counted:
    """The codes from 0 on that occur among tokens (or all of them), and what their tokens weigh together."""
    at = np.flatnonzero(code >= 0)
    codes, which = np.unique(code[at], return_inverse=True)
    totals = np.bincount(which, weights[at] if len(weights) else None, len(codes)).astype(np.float64)
    if everything:
        return np.arange(n_codes), _looked_up(np.arange(n_codes), (codes, totals))
    return codes, totals


def _looked_up(codes: IntArray, counted: Counted) -> FloatArray:
    """The number of each code, zero where it has none."""
    known, values = counted
    if not len(known):
        return np.zeros(len(codes))
    at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[at] == codes, values[at], 0.0)


def _cells(codes: IntArray, n_labels: int, width: int, n: int) -> IntArray:
    """Codes of ``n`` labels as cells of a table with ``width`` entries along each axis."""
    left, result = codes, np.zeros(len(codes), np.int64)
    for place in range(n):
        result += left % n_labels * width**place
        left = left // n_labels
    return result
