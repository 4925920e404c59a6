"""The operator of features and labels: weights only of pairs that training has seen, and of every feature alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.grammar.pairs_kernel import pair_counts, pair_scores

__all__ = ["FeatureRows", "LabelSupport", "PairProduct"]


class FeatureRows(NamedTuple):
    """Features of rows: ``features[rows[r] : rows[r + 1]]`` of row r, each with the value 1."""

    rows: IntArray
    features: npt.NDArray[np.int32]


class LabelSupport(NamedTuple):
    """The labels that each feature was seen with: ``labels[starts[f] : starts[f + 1]]`` of feature f."""

    starts: IntArray
    labels: IntArray

    @property
    def n_weights(self) -> int:
        """One for each feature, which all labels share, and one for each pair."""
        return len(self.starts) - 1 + len(self.labels)

    @classmethod
    def of(cls, rows: FeatureRows, labels: IntArray, n_features: int, n_labels: int) -> LabelSupport:
        """The pairs of rows that each have one label."""
        spread = np.repeat(labels, np.diff(rows.rows))
        pairs = np.unique(rows.features.astype(np.int64) * n_labels + spread)
        return cls.restored(pairs, n_features, n_labels)

    @classmethod
    def restored(cls, pairs: IntArray, n_features: int, n_labels: int) -> LabelSupport:
        """From sorted numbers ``feature * n_labels + label``."""
        features, labels = np.divmod(pairs, max(n_labels, 1))
        return cls(np.searchsorted(features, np.arange(n_features + 1)).astype(np.int64), labels.astype(np.int64))

    def numbers(self, n_labels: int) -> IntArray:
        """What `restored` takes."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts)) * n_labels + self.labels


@dataclass(frozen=True, eq=False)
class PairProduct:
    """``score of row r and column c = sum over its features of w_f + w_(f, label of c)``.

    Attributes
    ----------
    given
        Features of rows.
    support
        Which pairs have weights; those of features come first.
    column
        ``int64[n_labels]``: the column of each label, or -1 where it has none.
    n_columns
        How many columns there are.
    """

    given: FeatureRows
    support: LabelSupport
    column: IntArray
    n_columns: int

    @property
    def n_weights(self) -> int:
        """Weights it takes."""
        return self.support.n_weights

    @property
    def n_cells(self) -> int:
        """Scores it makes."""
        return (len(self.given.rows) - 1) * self.n_columns

    def forward(self, w: FloatArray) -> FloatArray:
        """Scores, row after row."""
        scores = np.empty(self.n_cells)
        pair_scores(*self.given, *self.support, self.column, self.n_columns, np.array(w), scores)
        return scores

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Features of counts of scores."""
        found = np.zeros(self.n_weights)
        counts = np.ascontiguousarray(cells, np.float64)
        pair_counts(*self.given, *self.support, self.column, self.n_columns, counts, found)
        return found

    def rows(self, cells: IntArray) -> Any:
        """``float64[len(cells), n_weights]``, sparse: what some cells are made of; no two labels share a column."""
        from scipy.sparse import csr_array

        row, column = np.divmod(np.asarray(cells, np.int64), self.n_columns)
        first, sizes = self.given.rows[row], np.diff(self.given.rows)[row]
        cell = np.repeat(np.arange(len(row)), sizes)
        offsets = offsets_of(sizes)
        features = self.given.features[np.arange(offsets[-1]) - offsets[cell] + first[cell]].astype(np.int64)
        label_of = np.full(self.n_columns, -1, np.int64)
        label_of[self.column[self.column >= 0]] = np.flatnonzero(self.column >= 0)
        labels, n_labels = label_of[column][cell], len(self.column)
        pairs = self.support.numbers(n_labels)
        wanted = features * n_labels + labels
        at = np.searchsorted(pairs, wanted)
        there = (labels >= 0) & (at < len(pairs))
        there[there] = pairs[at[there]] == wanted[there]
        columns = np.concatenate([features, len(self.support.starts) - 1 + at[there]])
        where = np.concatenate([cell, cell[there]])
        # Features that a row has twice are added up.
        return csr_array((np.ones(len(columns)), (where, columns)), shape=(len(row), self.n_weights))
