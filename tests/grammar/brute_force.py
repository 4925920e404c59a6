"""All trees of a sentence by a grammar, one by one: what charts are compared with. Imports nothing of the charts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np

from markovfield.grammar import Tree

Grammar = dict[str, list[tuple[tuple[str, ...], float]]]


def grammar_of(text: str) -> Grammar:
    """Rules that are written one alternative a line, with quoted words; no checks."""
    found: Grammar = {}
    for line in text.strip().splitlines():
        left, _, right = line.partition(" -> ")
        *items, weight = right.split()
        found.setdefault(left.strip(), []).append((tuple(items), float(weight.strip("[]"))))
    return found


def trees_of(grammar: Grammar, symbol: str, words: tuple[str, ...]) -> Iterator[tuple[Tree, float]]:
    """All trees of a symbol over words with their probabilities; the grammar must have no unary cycle."""
    for items, p in grammar[symbol]:
        for borders in combinations(range(1, len(words)), len(items) - 1):
            cuts = [0, *borders, len(words)]
            parts = [words[a:b] for a, b in pairwise(cuts)]
            yield from ((Tree(symbol, below), p * q) for below, q in _products(grammar, items, parts))


def _products(grammar: Grammar, items, parts):
    if not items:
        yield [], 1.0
        return
    first, rest = items[0], items[1:]
    if first.startswith("'"):
        if parts[0] == (first.strip("'"),):
            yield from (([parts[0][0], *below], q) for below, q in _products(grammar, rest, parts[1:]))
        return
    for tree, p in trees_of(grammar, first, parts[0]):
        yield from (([tree, *below], p * q) for below, q in _products(grammar, rest, parts[1:]))


def brackets_of(trees: list[tuple[Tree, float]], labels: list[str], n: int) -> np.ndarray:
    """``float[n, n, labels]``: posterior probabilities of labelled brackets, each at most once in a tree."""
    total = math.fsum(p for _, p in trees)
    found = np.zeros((n, n, len(labels)))
    for tree, p in trees:
        for label, i, j in set(tree.spans()):
            found[i, j - 1, labels.index(label)] += p / total
    return found
