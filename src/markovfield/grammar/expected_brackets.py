"""Probabilities of labelled brackets, and the tree that they make the best (Goodman 1996).

A tree's brackets that are right number in expectation the sum of their probabilities, C. The tree that is found makes
``2 C / (N + T)`` largest, where N is how many brackets it has and T how many are expected in the true tree: F1 with
expectations above and below. Which brackets a tree has is decided by a chart of n^3 / 6 steps for a given price of a
bracket, and prices that are half of the last value reach the best in a few rounds (Dinkelbach 1967).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.grammar.binary_grammar import BinaryGrammar
from markovfield.grammar.treebank import Sentence
from markovfield.grammar.trees import Tree
from markovfield.inference.core.running import Running
from markovfield.structures.span_tree.family import SpanTrees

__all__ = ["Brackets", "best_brackets", "expected_brackets"]

# Rounds end by themselves, as values only rise and there are finitely many trees; this is for rounding.
MOST_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class Brackets:
    """What is expected of a sentence.

    Attributes
    ----------
    log_probability
        Of the sentence; -inf where it has no parse, and all others are zero.
    spans
        ``float64[n (n + 1) / 2, labels]``: of labels over spans, in the order (0, 0), (0, 1), ..., (1, 1), ...: first
        and last word. At most one, also where a chain has a label twice.
    tags
        ``float64[n, columns]``: of words' tags.
    """

    log_probability: float
    spans: FloatArray
    tags: FloatArray

    def square(self) -> FloatArray:
        """``float64[n, n, labels]``: the same by first and last word."""
        n = len(self.tags)
        found = np.zeros((n, n, self.spans.shape[1]))
        found[np.triu_indices(n)] = self.spans
        return found


def expected_brackets(grammar: BinaryGrammar, rules: FloatArray, tokens: FloatArray) -> Brackets:
    """Probabilities of brackets of one sentence, from scores of rules and of its words' tags."""
    n = len(tokens)
    log_z, nodes, tags = grammar.family([n]).nodes(np.concatenate([rules, tokens.ravel()]), 0)
    if log_z == -np.inf:
        return Brackets(log_z, np.zeros((len(nodes), len(grammar.labels))), np.zeros_like(tokens))
    # A word that is its symbol by itself is no bracket: that is its tag.
    words = np.arange(n)
    nodes[(words * n - words * (words - 1) // 2)[:, None], grammar.table.tokens] -= tags
    kept = np.flatnonzero(grammar.label_of >= 0)
    spans = np.zeros((len(grammar.labels), len(nodes)))
    np.add.at(spans, grammar.label_of[kept], nodes.T[kept])
    return Brackets(log_z, np.clip(spans.T, 0.0, 1.0), tags)


def best_brackets(
    grammar: BinaryGrammar, rules: FloatArray, found: Brackets, sentence: Sentence, running: Running
) -> tuple[Tree | None, float]:
    """The tree of highest expected F1, and that; no tree where the sentence has no parse."""
    if found.log_probability == -np.inf:
        return None, -np.inf
    n, total = len(sentence.words), found.spans.sum()
    family = SpanTrees.of(np.array([n]), 1)
    value, chosen = -1.0, np.zeros(0, np.int64)
    for _ in range(MOST_ROUNDS):
        price = max(value, 0.0) / 2
        gain = np.maximum(found.spans - price, 0.0).sum(axis=1)
        cells = family.maxima(gain, running=running).cells
        kept = found.spans[cells] * (found.spans[cells] > price)
        new = 2 * kept.sum() / ((kept > 0).sum() + total) if total else 0.0
        if new <= value:
            break
        value, chosen, cut = new, cells, price
    # What is over the whole sentence must have a label.
    labels = {int(cell): np.flatnonzero(found.spans[cell] > cut).tolist() for cell in chosen}
    whole = n - 1
    if not labels[whole] and total:
        labels[whole] = [int(np.argmax(found.spans[whole]))]
    above = _above(grammar, rules).tolist()
    order: Any = cmp_to_key(lambda a, b: (above[b][a] > above[a][b]) - (above[b][a] < above[a][b]))
    spans = family.spans(0, np.array(sorted(labels)))
    tags = [tag or grammar.tokens[int(np.argmax(row))] for tag, row in zip(sentence.tags, found.tags, strict=True)]
    named = [
        (int(i), int(j), [grammar.labels[x] for x in sorted(labels[cell], key=order)])
        for (i, j, _), cell in zip(spans.tolist(), sorted(labels), strict=True)
    ]
    return _tree(named, sentence.words, tags), float(value)


def _above(grammar: BinaryGrammar, rules: FloatArray) -> FloatArray:
    """``float64[labels, labels]``: probabilities of unary rules between labels, added up."""
    n = len(grammar.labels)
    found = np.zeros((n, n))
    parents, children = grammar.label_of[grammar.table.unary].reshape(-1, 2).T
    kept = (parents >= 0) & (children >= 0)
    own = np.exp(rules[len(grammar.table.binary) :])
    np.add.at(found, (parents[kept], children[kept]), own[kept])
    return found


def _tree(spans: Sequence[tuple[int, int, list[str]]], words: Sequence[str], tags: Sequence[str]) -> Tree:
    """The tree of spans with labels, from the outermost label of each inwards; a span without labels is no node."""
    done: list[list[Tree | str]] = []
    # From the last to the first in the order of a tree, so that the parts of a span are the last two that were made.
    for first, last, labels in sorted(spans, key=lambda span: (-span[0], span[1])):
        below: list[Tree | str] = [Tree(tags[first], [words[first]])] if first == last else done.pop() + done.pop()
        for label in reversed(labels):
            below = [Tree(label, below)]
        done.append(below)
    ((found,),) = done
    assert isinstance(found, Tree)
    return found
