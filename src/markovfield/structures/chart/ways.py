"""The ways to make a symbol over a span, read off a chart of maxima: what the n best trees are found from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.structures.chart.inside_kernel import Rules, Scores, span_row
from markovfield.structures.core.family import Edge

__all__ = ["Ways"]


@dataclass(frozen=True)
class Ways:
    """Of a sentence whose cells begin at ``begin``; an item is (first word, past the last word, symbol).

    Only the ``n`` best ways to make an item by binary rules are given: no more can be in the n best trees.
    """

    rules: Rules
    scores: Scores
    pool: FloatArray
    begin: int
    words: int
    values: FloatArray
    n: int

    def value(self, item: Any) -> float:
        """The score of the best tree below an item."""
        i, j, a = item
        return float(self.values[self._row(i, j), a])

    def edges(self, item: Any) -> list[Edge]:
        """The ways to make an item."""
        i, j, a = item
        rules, columns = self.rules, len(self.rules.token_symbols)
        found = self._binary(i, j, a)
        if j - i == 1:
            found = [
                Edge((), (self.begin + i * columns + t,)) for t in np.flatnonzero(rules.token_symbols == a).tolist()
            ]
        for u in range(int(rules.unary_rules[a]), int(rules.unary_rules[a + 1])):
            found.append(Edge(((i, j, int(rules.unary_child[u])),), (int(rules.unary_cell[u]),)))
        return found

    def _binary(self, i: int, j: int, a: int) -> list[Edge]:
        rules, words = self.rules, self.words
        own = rules.by_parent[rules.parent_rules[a] : rules.parent_rules[a + 1]]
        if j - i < 2 or not len(own):
            return []
        left, right = rules.left_symbol[rules.rule_left[own]], rules.right_symbol[rules.rule_right[own]]
        splits = range(i + 1, j)
        before, after = [self._row(i, k) for k in splits], [self._row(k, j) for k in splits]
        total = (self.values[before][:, left] + self.values[after][:, right] + self.scores.rules[own]).ravel()
        chosen = np.argpartition(-total, self.n - 1)[: self.n] if self.n < len(total) else np.arange(len(total))
        span: tuple[int, ...] = ()
        if rules.span_columns:
            at = i * (words - 1) - i * (i - 1) // 2 + j - i - 2
            first = self.begin + words * len(rules.token_symbols)
            span = (first + at * rules.span_columns + int(rules.span_column[a]),)
        found = []
        for k, r in zip(*np.divmod(chosen[total[chosen] > -np.inf], len(own)), strict=True):
            middle = i + 1 + int(k)
            cells = (int(rules.rule_cell[own[r]]), *span)
            found.append(Edge(((i, middle, int(left[r])), (middle, j, int(right[r]))), cells))
        return found

    def _row(self, i: int, j: int) -> int:
        return int(span_row(self.words, i, j))
