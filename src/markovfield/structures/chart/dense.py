"""Grammars that have most of all rules, as tables: what `dense_kernel` reads, and cells for what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.structures.chart.dense_kernel import SMALLEST_RULE, DenseRules

if TYPE_CHECKING:
    from markovfield.structures.chart.rules import RuleTable

__all__ = ["DenseGrammar"]

# Share of all rules that must be there: products of matrices are so much faster for each of them.
LEAST_SHARE = 0.3
# So many phrases are few.
FEW = 8


@dataclass(frozen=True, eq=False)
class DenseGrammar:
    """A table of rules seen as tables of numbers, one for each kind of children: words or phrases.

    Where there are unary rules they must lead from the start symbol, which nothing else has as a child.
    """

    table: RuleTable

    @cached_property
    def fits(self) -> bool:
        """Whether the grammar can be seen this way, and has enough rules for it to pay."""
        rules = self.table
        phrases, words = rules.branching, rules.tokens
        every = len(phrases) * len(np.union1d(phrases, words)) ** 2
        if not len(phrases) or not len(words) or len(rules.binary) < LEAST_SHARE * every:
            return False
        if len(rules.unary):
            below = np.concatenate([rules.binary[:, 1:].ravel(), rules.unary[:, 1]])
            if (rules.unary[:, 0] != rules.start).any() or (below == rules.start).any():
                return False
            if len(np.unique(rules.unary[:, 1])) < len(rules.unary):
                return False
        return len(np.unique(words)) == len(words) and len(np.unique(rules.binary, axis=0)) == len(rules.binary)

    @cached_property
    def _numbers(self) -> tuple[IntArray, IntArray]:
        """For each symbol its number among phrases, and among words; -1 for none."""
        found = np.full((2, self.table.n_symbols), -1, np.int64)
        found[0, self.table.branching] = np.arange(len(self.table.branching))
        found[1, self.table.tokens] = np.arange(len(self.table.tokens))
        return found[0], found[1]

    @cached_property
    def _places(self) -> tuple[tuple[IntArray, IntArray], ...]:
        """For each of the four tables which rules it has, and where."""
        phrase, word = self._numbers
        n, w = len(self.table.branching), len(self.table.tokens)
        parent, left, right = self.table.binary.T
        a = phrase[parent]
        found = []
        for one, two, place in (
            (phrase[left], phrase[right], (a * n + phrase[left]) * n + phrase[right]),
            (word[left], phrase[right], (word[left] * n + a) * n + phrase[right]),
            (phrase[left], word[right], (word[right] * n + a) * n + phrase[left]),
            (word[left], word[right], (word[left] * n + a) * w + word[right]),
        ):
            there = np.flatnonzero((one >= 0) & (two >= 0))
            found.append((there, place[there]))
        return tuple(found)

    @cached_property
    def _shapes(self) -> tuple[tuple[int, int], ...]:
        n, w = len(self.table.branching), len(self.table.tokens)
        return (n, n * n), (w, n * n), (w, n * n), (w, n * w)

    @cached_property
    def _roots(self) -> tuple[IntArray, IntArray]:
        """What may cover a sentence: symbols, and their unary rules (-1 for the start symbol itself)."""
        symbols = np.concatenate([[self.table.start], self.table.unary[:, 1]]).astype(np.int64)
        return symbols, np.concatenate([[-1], len(self.table.binary) + np.arange(len(self.table.unary))])

    def rules(self, pool: FloatArray, spans: bool) -> DenseRules | None:
        """Scores as kernels read them; None where they are too far apart for sums of numbers."""
        scores = pool[: len(self.table.binary)]
        shift = float(scores.max(initial=-np.inf))
        symbols, cells = self._roots
        roots = np.where(cells >= 0, pool[cells], 0.0)
        root_shift = float(roots.max())
        if shift == -np.inf or root_shift == -np.inf:
            return None
        numbers, shares = np.exp(scores - shift), np.exp(roots - root_shift)
        for given, found in ((scores, numbers), (roots, shares)):
            if found[given > -np.inf].min() < SMALLEST_RULE:
                return None
        tables = []
        for shape, (there, place) in zip(self._shapes, self._places, strict=True):
            made = np.zeros(shape[0] * shape[1])
            made[place] = numbers[there]
            tables.append(made.reshape(shape))
        phrase, word = self._numbers
        root, word_root = np.zeros(len(self.table.branching)), np.zeros(len(self.table.tokens))
        for number, made in ((phrase[symbols], root), (word[symbols], word_root)):
            made[number[number >= 0]] = shares[number >= 0]
        a, b, c, d = tables
        return DenseRules(a, b, c, d, shift, root, word_root, root_shift, spans)

    @property
    def few_phrases(self) -> bool:
        """Whether positions of sentences make longer loops than phrases do: `lanes_kernel` is then the faster one."""
        return len(self.table.branching) <= FEW

    def work(self, lengths: IntArray) -> FloatArray:
        """``float64[n]``: operations of each sentence, about."""
        n, phrases, words = lengths.astype(np.float64), len(self.table.branching), len(self.table.tokens)
        cubic = n**3 * phrases**2 + 2 * n**2 * phrases**3
        return np.asarray(0.2 * (cubic + 3 * n * words * phrases * (2 * phrases + words)) + 100.0)

    def totals(self, rules: DenseRules) -> DenseRules:
        """Room for counts of everything in `DenseRules`."""
        a, b, c, d, root, word_root = (np.zeros_like(table) for table in (*rules[:4], rules.root, rules.word_root))
        return DenseRules(a, b, c, d, rules.shift, root, word_root, rules.root_shift, rules.spans)

    def counts(self, rules: DenseRules, totals: DenseRules) -> FloatArray:
        """Expected numbers of rules, binary and unary, from what kernels added up."""
        found = np.zeros(self.table.n_rules)
        for values, added, (there, place) in zip(rules[:4], totals[:4], self._places, strict=True):
            found[there] += (values * added).ravel()[place]
        phrase, word = self._numbers
        symbols, cells = self._roots
        for number, added in ((phrase[symbols], totals.root), (word[symbols], totals.word_root)):
            known = (number >= 0) & (cells >= 0)
            found[cells[known]] += added[number[known]]
        return found
