"""From weights of labels of spans to scores of the symbols of a chart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.grammar.pairs import PairProduct

__all__ = ["SymbolScores"]


@dataclass(frozen=True, eq=False)
class SymbolScores:
    """Scores of labels of spans as scores of the symbols of a chart that have these labels.

    Attributes
    ----------
    labels
        The operator of labels: spans of one word and more, sentence after sentence, times labels.
    lengths
        ``int64[n]``: words of each sentence.
    tokens, branching
        ``int64``: the label of each symbol that a word can be, and of each that a binary rule makes.
    """

    labels: PairProduct
    lengths: IntArray
    tokens: IntArray
    branching: IntArray

    @property
    def n_weights(self) -> int:
        """Weights it takes."""
        return self.labels.n_weights

    @cached_property
    def _blocks(self) -> list[tuple[slice, IntArray, IntArray, slice, slice]]:
        """For each sentence its rows, those of single words and of others among them, and their cells."""
        found = []
        row = cell = 0
        for n in self.lengths.tolist():
            first, last = np.triu_indices(n)
            single, several = np.flatnonzero(first == last), np.flatnonzero(first < last)
            middle = cell + n * len(self.tokens)
            end = middle + len(several) * len(self.branching)
            found.append((slice(row, row + len(first)), single, several, slice(cell, middle), slice(middle, end)))
            row, cell = row + len(first), end
        return found

    @property
    def n_cells(self) -> int:
        """Scores it makes."""
        return self._blocks[-1][-1].stop if len(self.lengths) else 0

    def spread(self, table: FloatArray) -> FloatArray:
        """Values of ``[spans, labels]`` for the symbols that have the labels."""
        found = np.empty(self.n_cells)
        for rows, single, several, words, spans in self._blocks:
            own = table[rows]
            found[words] = own[single][:, self.tokens].ravel()
            found[spans] = own[several][:, self.branching].ravel()
        return found

    def gathered(self, cells: FloatArray) -> FloatArray:
        """``[spans, labels]``: values of symbols added up by label, the transpose of `spread`."""
        n_labels = self.labels.n_columns
        found = np.zeros((len(self.labels.given.rows) - 1, n_labels))
        to_labels = [np.zeros((len(kind), n_labels)) for kind in (self.tokens, self.branching)]
        for matrix, kind in zip(to_labels, (self.tokens, self.branching), strict=True):
            matrix[np.arange(len(kind)), kind] = 1.0
        for rows, single, several, words, spans in self._blocks:
            own = found[rows]
            own[single] = cells[words].reshape(len(single), len(self.tokens)) @ to_labels[0]
            own[several] = cells[spans].reshape(len(several), len(self.branching)) @ to_labels[1]
        return found

    def forward(self, w: FloatArray) -> FloatArray:
        """Scores of symbols, sentence after sentence: of words, then of spans."""
        return self.spread(self.labels.forward(w).reshape(-1, self.labels.n_columns))

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Features of counts of symbols."""
        return self.labels.adjoint(self.gathered(cells).ravel())

    def rows(self, cells: IntArray) -> Any:
        """``float64[len(cells), n_weights]``, sparse: what some cells are made of."""
        numbers = np.arange((len(self.labels.given.rows) - 1) * self.labels.n_columns)
        where = self.spread(numbers.reshape(-1, self.labels.n_columns).astype(np.float64))
        return self.labels.rows(where[np.asarray(cells, np.int64)].astype(np.int64))
