"""A grammar with probabilities: scores of sentences, trees by chance, and what counts make of it.

The probability of a tree is the product of those of its rules, words included (Murphy 19.6.2.4); that of a sentence is
the sum over its trees. Where a word's tag is given, the word itself is not scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.grammar.binary_grammar import BinaryGrammar
from markovfield.grammar.grammar_text import WrittenGrammar
from markovfield.grammar.lexicon import Lexicon, is_class
from markovfield.grammar.productions import Production, Remainders, binary_rules, long_rules
from markovfield.grammar.treebank import Sentence, TreebankGrammar, Way, token_scores, with_start
from markovfield.grammar.trees import Tree
from markovfield.structures.chart.family import Charts

__all__ = ["Probabilities", "shares"]

# A tree that is drawn and becomes larger than this is taken for one that has no end.
MOST_NODES = 1_000_000


@dataclass(frozen=True, eq=False)
class Probabilities:
    """A binary grammar, a lexicon and probabilities of both; how trees are made binary.

    Attributes
    ----------
    rules, words
        ``float64[n_rules]`` and ``float64[n_entries]``: probabilities. Those of a symbol's rules and words add up to
        one.
    """

    grammar: BinaryGrammar
    lexicon: Lexicon
    rules: FloatArray
    words: FloatArray
    way: Way

    @classmethod
    def counted(cls, treebank: TreebankGrammar) -> Probabilities:
        """Maximum likelihood: shares of counts."""
        none = np.zeros(len(treebank.rule_counts)), np.zeros(len(treebank.word_counts))
        found = cls(treebank.grammar, treebank.lexicon, *none, treebank.way)
        return found.from_counts(treebank.rule_counts, treebank.word_counts)

    @classmethod
    def written(cls, text: WrittenGrammar) -> Probabilities:
        """Of a grammar that somebody wrote."""
        rules, words = binary_rules(text.productions)
        grammar = BinaryGrammar.of(rules, (tag for _, tag in words), start=text.start)
        lexicon = Lexicon.of((word, grammar.column_of[tag]) for word, tag in words)
        by_cell = np.array([rules[rule] for rule in grammar.rules], np.float64)
        tags = grammar.tokens
        by_entry = np.array([words[word, tags[t]] for word, t in lexicon.pairs()], np.float64)
        return cls(grammar, lexicon, by_cell, by_entry, Remainders() if text.way is None else text.way)

    def to_written(self) -> WrittenGrammar:
        """As somebody would write it."""
        tags = self.grammar.tokens
        rules = dict(zip(self.grammar.rules, self.rules.tolist(), strict=True))
        pairs = [(word, tags[t]) for word, t in self.lexicon.pairs()]
        found = long_rules(rules, dict(zip(pairs, self.words.tolist(), strict=True)))
        way: Any = None if isinstance(self.way, Remainders) else self.way
        return WrittenGrammar(self.grammar.start, [Production(*one) for one in found], way)

    @cached_property
    def entry_symbols(self) -> IntArray:
        """``int64[n_entries]``: the symbol that makes each entry of the lexicon."""
        return self.grammar.table.tokens[self.lexicon.columns]

    @cached_property
    def logs(self) -> tuple[FloatArray, FloatArray]:
        """Scores of rules and of entries."""
        with np.errstate(divide="ignore"):
            return np.log(self.rules), np.log(self.words)

    def from_counts(self, rules: FloatArray, words: FloatArray) -> Probabilities:
        """The same grammar with shares of counts; a symbol that was never seen keeps what it had."""
        found = shares((rules, words), (self.grammar.parents, self.entry_symbols), (self.rules, self.words))
        return replace(self, rules=found[0], words=found[1])

    def scored(self, sentences: Sequence[Sentence]) -> tuple[Charts, FloatArray]:
        """The charts of sentences, and the scores of their cells."""
        rules, words = self.logs
        family = self.grammar.family([len(sentence.words) for sentence in sentences])
        tokens = token_scores(self.grammar, self.lexicon, sentences, words)
        return family, np.concatenate([rules, tokens.ravel()])

    def tree_score(self, tree: Tree) -> float:
        """The log-probability of a tree; -inf where the grammar does not make it."""
        rules, words = self.logs
        binary = with_start(self.way.transform(tree), self.grammar.start)
        if binary.label != self.grammar.start:
            return -np.inf
        cell, column, total = self.grammar.cell_of, self.grammar.column_of, 0.0
        rows = iter(self.lexicon.rows(tree.leaves).tolist())
        for node in binary:
            if not node.is_preterminal:
                own = cell.get((node.label, *(child.label for child in node.children)), -1)  # type: ignore[union-attr]
                total += rules[own] if own >= 0 else -np.inf
                continue
            row, tag = next(rows), column.get(node.label, -1)
            begin, end = (self.lexicon.offsets[row], self.lexicon.offsets[row + 1]) if row >= 0 else (0, 0)
            found = np.flatnonzero(self.lexicon.columns[begin:end] == tag)
            total += words[begin + found[0]] if len(found) else -np.inf
        return float(total)

    @cached_property
    def _ways(self) -> tuple[IntArray, IntArray, FloatArray]:
        """For each symbol its rules and entries (these after all rules), and running sums of their probabilities.

        Classes of unknown words are no words that could be drawn, unless a symbol has nothing else.
        """
        n_rules = len(self.rules)
        symbols = np.concatenate([self.grammar.parents, self.entry_symbols])
        classes = np.array([is_class(word) for word in self.lexicon.words], bool)[self.lexicon.entry_rows]
        weights = np.concatenate([self.rules, np.where(classes, 0.0, self.words)])
        bare = np.bincount(symbols, weights, len(self.grammar.symbols)) == 0
        weights[n_rules:] = np.where(bare[self.entry_symbols], self.words, weights[n_rules:])
        order = np.argsort(symbols, kind="stable")
        offsets = np.searchsorted(symbols[order], np.arange(len(self.grammar.symbols) + 1))
        return offsets, order, np.concatenate([[0.0], np.cumsum(weights[order])])

    def draw(self, rng: np.random.Generator) -> Tree:
        """A tree by chance, from the top down."""
        offsets, order, running = self._ways
        table, n_rules, n_binary = self.grammar.table, len(self.rules), len(self.grammar.table.binary)
        names, entry_rows = self.lexicon.words, self.lexicon.entry_rows
        cells: list[int] = []
        words: list[str] = []
        waiting = [table.start]
        while waiting:
            symbol = waiting.pop()
            first, last = int(offsets[symbol]), int(offsets[symbol + 1])
            low, high = running[first], running[last]
            if high <= low:
                raise ModelError(f"no rule of {self.grammar.symbols[symbol]} has a probability above 0")
            at = int(np.searchsorted(running, low + rng.random() * (high - low), side="right")) - 1
            chosen = int(order[min(max(at, first), last - 1)])
            if chosen < n_binary:
                waiting += [int(table.binary[chosen, 2]), int(table.binary[chosen, 1])]
                cells.append(chosen)
            elif chosen < n_rules:
                waiting.append(int(table.unary[chosen - n_binary, 1]))
                cells.append(chosen)
            else:
                entry = chosen - n_rules
                cells.append(n_rules + len(words) * len(table.tokens) + int(self.lexicon.columns[entry]))
                words.append(names[int(entry_rows[entry])])
            if len(cells) + len(waiting) > MOST_NODES:
                raise ModelError(f"a tree that was drawn has more than {MOST_NODES} nodes: the rules make no end")
        found = self.grammar.tree(cells, self.grammar.family([len(words)]), 0, words)
        assert found is not None
        return found

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What an archive keeps: JSON and vectors."""
        about, arrays = self.grammar.described()
        own, vectors = self.lexicon.described()
        way = None
        if not isinstance(self.way, Remainders):
            way = [getattr(self.way, name) for name in ("direction", "horizontal", "vertical")]
        return {**about, **own, "way": way}, {
            **arrays,
            **vectors,
            "rule_probabilities": self.rules,
            "word_probabilities": self.words,
        }

    @classmethod
    def restored(cls, about: Any, arrays: Any) -> Probabilities:
        """What an archive describes; a `FormatError` where it describes none."""
        from markovfield.grammar.binarisation import Binarisation

        grammar = BinaryGrammar.restored(about, arrays)
        lexicon = Lexicon.restored(about, arrays, len(grammar.tokens))
        sizes = {"rule_probabilities": grammar.table.n_rules, "word_probabilities": lexicon.n_entries}
        for name, size in sizes.items():
            own = arrays.get(name)
            if own is None or own.dtype != np.float64 or len(own) != size or not ((own >= 0) & (own <= 1 + 1e-9)).all():
                raise FormatError(f"it needs {size} numbers from 0 to 1 as {name}")
        given = about.get("way")
        if given is not None and not (isinstance(given, list) and len(given) == 3):
            raise FormatError("it does not say how trees are made binary")
        way: Way = Remainders() if given is None else Binarisation(*given)
        return cls(grammar, lexicon, arrays["rule_probabilities"], arrays["word_probabilities"], way)


def shares(counts: Sequence[FloatArray], symbols: Sequence[IntArray], before: Sequence[FloatArray]) -> list[FloatArray]:
    """Counts of several kinds divided by the sums of their symbols; what was there before where that is zero."""
    n = 1 + max((int(own.max()) for own in symbols if len(own)), default=0)
    totals = sum((np.bincount(s, c, n) for s, c in zip(symbols, counts, strict=True)), np.zeros(n))
    known = np.where(totals > 0, totals, 1.0)
    return [np.where(totals[s] > 0, c / known[s], old) for s, c, old in zip(symbols, counts, before, strict=True)]
